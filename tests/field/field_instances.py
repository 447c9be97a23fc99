"""Instances of the cases, and what the tests read from networks and bills."""

from collections import Counter
from pathlib import Path
from typing import Any

from designer import Instance, instance_from_document, templates
from designer.comparison import TemplateDesign
from designer.costing.bill import Bill
from designer.fabric.fabric import Fabric
from designer.fabric.shape import ClosShape

HERE = Path(__file__).parent
CATALOG = ["builtin", "parts.yaml"]


def instance_of(
    gpus: int,
    switches: list[str] | None,
    *,
    rails: int = 1,
    across: str = "cluster",
    nic: str = "nic-400",
    management_ports: int = 0,
    requirements: dict[str, Any] | None = None,
    **search: Any,
) -> Instance:
    """GPUs in domains of `rails`, any permutation at full rate between any two (cluster) or on each rail (rail)."""
    return instance_from_document(
        {
            "name": f"{gpus} GPUs",
            "cluster": {
                "gpus": gpus,
                "gpu": "h100-sxm",
                "nic": nic,
                "hb_domain": rails,
                "rails": rails,
                "management_ports": management_ports,
            },
            "workload": [{"demand": "any", "group": "all", "across": across}],
            "requirements": requirements or {},
            "search": {"switches": switches, "max_tiers": 2, **search},
            "catalog": CATALOG,
        },
        HERE,
    )


def ports(*radices: int) -> list[str]:
    return [f"ports-{radix}" for radix in radices]


def template(instance: Instance, name: str) -> TemplateDesign:
    return next(item for item in templates(instance) if item.name == name)


def clos_of(item: TemplateDesign) -> ClosShape:
    assert isinstance(item.shape, ClosShape)
    return item.shape


def links_by_pair(fabric: Fabric, link_class: int) -> Counter[tuple[int, int]]:
    chosen = fabric.link_class() == link_class
    return Counter(zip(fabric.links.a[chosen].tolist(), fabric.links.b[chosen].tolist(), strict=True))


def quantity(bill: Bill, used_for: str, keys: set[str]) -> int:
    return sum(line.quantity for line in bill.lines if line.used_for == used_for and line.item in keys)
