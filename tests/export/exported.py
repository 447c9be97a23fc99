"""Small designs of many kinds for the tests of the exports, their plans, and files read back."""

import csv
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from designer import Instance, design, instance_from_document
from designer.certify.read_design import DesignFile, design_from_document
from designer.export.formats import FORMATS
from designer.export.names import Names
from designer.export.plan import Plan, make_plan
from designer.fabric.fabric import Fabric
from tests.strategies import cable, catalog, instance_of, nic, switch

ROOT = Path(__file__).parents[2]
Document = dict[str, Any]
JOINED: Document = {
    "cluster": {"gpu": "h100-sxm", "nic": "cx7-400", "rails": 1},
    "workload": [{"demand": "any", "across": "cluster"}],
    "search": {"families": ["clos"], "switches": ["qm9700"], "max_tiers": 2},
}


def joined(gpus: int, **sections: Any) -> Document:
    """Any to any among 400G NICs on InfiniBand switches of 64 ports."""
    document = {"name": f"joined-{gpus}", **JOINED, **sections}
    document["search"] = {**JOINED["search"], **sections.get("search", {})}
    document["cluster"] = {**JOINED["cluster"], "gpus": gpus}
    return document


DOCUMENTS: dict[str, Document] = {
    "joined-64": joined(64, search={"leaf": {"down": 16, "up": 16}}),
    "joined-704": joined(704),
    "joined-1024": joined(1024),
    "uneven-704": joined(704, requirements={"symmetric_uplinks": False}),
    "rails": {
        "name": "rails",
        "cluster": {"gpus": 512, "gpu": "h100-sxm", "nic": "cx7-400-dgx", "management_ports": 2},
        "workload": [{"demand": "any"}],
        "search": {
            "families": ["clos"],
            "switches": ["qm9700"],
            "leaf_sharing": "none",
            "leaf": {"down": 34, "up": 17},
        },
        "requirements": {"throughput": {"any": 0.5}},
    },
    "planes": {
        "name": "planes",
        "cluster": {"gpus": 256, "gpu": "h100-sxm", "nic": "bf3-2x200", "rails": 1},
        "workload": [{"demand": "any", "across": "cluster"}],
        "search": {"families": ["clos"], "switches": ["sn5600"], "max_tiers": 2},
        "cabling": {"host_m": 2},
    },
    "racks": {
        "name": "racks",
        "cluster": {"gpus": 144, "gpu": "gb200-nvl72", "nic": "cx7-400"},
        "workload": [{"demand": "any"}],
        "search": {"families": ["clos"], "switches": ["qm9700"]},
    },
    "mesh": {
        "name": "mesh",
        "cluster": {"gpus": 768, "gpu": "h100-sxm", "nic": "cx7-400"},
        "workload": [{"demand": "all-to-all", "group": 16}],
        "requirements": {"throughput": {"all-to-all": 0.25}},
        "search": {"families": ["mesh"], "switches": ["qm9700"]},
    },
    "grid": {
        "name": "grid",
        "cluster": {"gpus": 256, "gpu": "h100-sxm", "nic": "bf3-2x200"},
        "workload": [{"demand": "all-to-all", "across": "cluster"}],
        "search": {"families": ["grid"], "switches": ["sn5600"]},
    },
    "existing": {
        "name": "existing",
        "cluster": {
            "servers": [
                {"count": 2, "gpu": "h100-sxm", "gpus": 8, "nic": "cx7-400"},
                {"count": 1, "gpu": "h100-sxm", "gpus": 4, "nic": "cx7-200"},
            ],
            "existing": [
                {"name": "used-a", "switch": "qm9700", "free_ports": 13},
                {"name": "used-b", "switch": "qm9700", "free_ports": 16},
            ],
        },
        "workload": [{"demand": "any", "across": "cluster"}],
        "requirements": {"throughput": {"any": 0.25}},
        "search": {"families": ["link-placement"], "switches": ["qm9700"]},
    },
}


@cache
def design_file(name: str) -> DesignFile:
    """The design of an instance above, of a small one with pods, or of one with ports that are broken out."""
    if name == "pods":
        document = {
            "name": "pods",
            "cluster": {"gpus": 16, "gpu": "pair", "nic": "mini-100", "rails": 1},
            "workload": [{"demand": "any", "across": "cluster"}],
            "search": {"families": ["clos"], "switches": ["mini-4"]},
            "catalog": "catalog.yaml",
        }
        return file_of(instance_from_document(document, ROOT / "instances" / "small"))
    if name == "split":
        return file_of(split_instance())
    return file_of(instance_from_document(DOCUMENTS[name]))


NAMES = (*DOCUMENTS, "pods", "split")
WITHOUT_TIERS = ("existing", "mesh", "grid")


def split_instance() -> Instance:
    """Four servers with two ports of 25G each, on two switches whose ports of 100G are broken out to four of 25G."""
    media = {"cables": {"splitter": cable(50, 4, 1, (25,), 30.0)}}
    switches = {"switch": switch(4, 100, ((1, 100), (4, 25)))}
    records = catalog(switches, media, nic(((2, 25),), cages_per_nic=2))
    return instance_of(records, {"gpus": 4, "rails": 1}, search={"families": ["clos"]})


def file_of(instance: Instance) -> DesignFile:
    """The design of an instance as its file is read."""
    return design_from_document(json.loads(json.dumps(design(instance).to_document())))


def document_of(name: str) -> Document:
    """A fresh document of a design, columns as plain lists, to be damaged."""
    instance = instance_from_document(DOCUMENTS[name])
    document: Document = json.loads(json.dumps(design(instance).to_document()))
    fabric = Fabric.from_document(document["fabric"])
    for part in ("nodes", "links"):
        table = getattr(fabric, part)
        document["fabric"][part] = {column: getattr(table, column).tolist() for column in document["fabric"][part]}
    return document


def plan_of(name: str, names: Names | None = None) -> Plan:
    """The plan of a design above."""
    return make_plan(design_file(name), names)


def bare_plan(instance: Instance, fabric: Fabric) -> Plan:
    """The plan of any fabric, with as much of a design file as plans look at."""
    record = SimpleNamespace(name=instance.name, objective=instance.objective, layout=None)
    file = SimpleNamespace(
        path="bare",
        fabric=fabric,
        cluster=instance.cluster,
        catalog=instance.catalog,
        record=record,
        energy=instance.energy,
        instance={},
    )
    return make_plan(cast("DesignFile", file))


def written(plan: Plan, form: str, folder: Path) -> Path:
    """The path that an export of a plan went to."""
    path = folder / form
    FORMATS[form].write(plan, path)
    return path


def table_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
