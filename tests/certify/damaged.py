"""Small designs for the tests of the certificate, and what damages their documents."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from designer import design, instance_from_document
from designer.certify.read_design import design_from_document
from designer.certify.verify import Verification, verify_file
from designer.digest import with_digest
from designer.fabric.fabric import Fabric

SMALL = Path(__file__).parents[2] / "instances" / "small"
Document = dict[str, Any]

RAILS: Document = {
    "name": "rails",
    "cluster": {"gpus": 32, "gpu": "pair", "nic": "mini-100", "hb_domain": 2, "rails": 2},
    "workload": [{"demand": "any"}],
    "search": {"families": ["clos"], "switches": ["mini-8"]},
}
PODS: Document = {
    "name": "pods",
    "cluster": {"gpus": 16, "gpu": "pair", "nic": "mini-100", "rails": 1},
    "workload": [{"demand": "any", "across": "cluster"}],
    "search": {"families": ["clos"], "switches": ["mini-4"]},
}
PLANES: Document = {
    "name": "planes",
    "cluster": {"gpus": 16, "gpu": "pair", "nic": "mini-2x100", "rails": 1},
    "workload": [{"demand": "any", "across": "cluster"}],
    "search": {"families": ["clos"], "switches": ["mini-8"]},
}
UNEVEN: Document = {
    "name": "uneven",
    "cluster": {"gpus": 24, "gpu": "pair", "nic": "mini-100", "rails": 1},
    "workload": [{"demand": "all-to-all", "across": "cluster"}],
    "requirements": {"symmetric_uplinks": False},
    "search": {"families": ["clos"], "switches": ["mini-8"], "max_tiers": 2},
}
BREAKOUT: Document = {
    "name": "breakout",
    "cluster": {"gpus": 16, "gpu": "pair", "nic": "mini-100", "rails": 1},
    "workload": [{"demand": "any", "across": "cluster"}],
    "search": {"families": ["clos"], "switches": ["mini-4x200"]},
}
HALF: Document = {**RAILS, "name": "half", "requirements": {"throughput": {"any": 0.5}}}
INSTANCES = {str(each["name"]): each for each in (RAILS, PODS, PLANES, UNEVEN, BREAKOUT, HALF)}


@cache
def _text(name: str) -> str:
    instance = instance_from_document({**INSTANCES[name], "catalog": "catalog.yaml"}, SMALL)
    return json.dumps(design(instance).to_document())


def document_of(name: str) -> Document:
    """A fresh document of the design, columns as plain lists."""
    document: Document = json.loads(_text(name))
    fabric = Fabric.from_document(document["fabric"])
    for part in ("nodes", "links"):
        table = getattr(fabric, part)
        document["fabric"][part] = {column: getattr(table, column).tolist() for column in document["fabric"][part]}
    return with_digest(document)


def check(document: Document, *, seal: bool = True) -> Verification:
    """Verification of a document; with `seal` its digest is made right first, so that other checks must speak."""
    document = json.loads(json.dumps(document))
    return verify_file(design_from_document(with_digest(document) if seal else document))


def told(result: Verification) -> str:
    return "\n".join(str(finding) for finding in result.findings)


def drop_link(document: Document, link: int) -> None:
    for column in document["fabric"]["links"].values():
        del column[link]


def copy_link(document: Document, link: int) -> None:
    for column in document["fabric"]["links"].values():
        column.append(column[link])


def links_of(document: Document, kind_a: int, kind_b: int) -> list[int]:
    fabric = document["fabric"]
    kind, links = fabric["nodes"]["kind"], fabric["links"]
    ends = enumerate(zip(links["a"], links["b"], strict=True))
    return [row for row, (a, b) in ends if (kind[a], kind[b]) == (kind_a, kind_b)]


def swap(document: Document, columns: tuple[str, ...], one: int, other: int) -> None:
    links = document["fabric"]["links"]
    for name in columns:
        links[name][one], links[name][other] = links[name][other], links[name][one]


def with_counts(document: Document) -> None:
    """Declares the counts that the damaged fabric has."""
    document["counts"] |= Fabric.from_document(copy.deepcopy(document["fabric"])).counts()
