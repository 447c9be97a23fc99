"""`Design`: the answer, complete: what to buy, what it costs, how far from proven optimal, the network itself.

A design file holds everything that a check needs: cluster, requirements, traffic, the fabric link by link, the bill,
and the catalog entries that priced it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from designer.candidates import Drawn
from designer.catalog import catalog_document
from designer.certify.certificate import Certificate
from designer.comparison import ComparisonRow
from designer.costing.bill import CABLE_SECTIONS, LABOUR, Bill
from designer.costing.training import TrainingCost
from designer.digest import with_digest
from designer.fabric.fabric import Fabric
from designer.fabric.pairs import worst_leaf_pair
from designer.fabric.shape import ClosShape
from designer.files import write_text_atomically
from designer.instance.instance import Instance
from designer.layout.floor import Floor, Places, make_floor
from designer.rewiring.rewired import Rewired
from designer.units import usd
from designer.workload.traffic import Traffic

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Provenance:
    """How a design came about. `termination` is the search's own word; `wall_s` its seconds."""

    solver: str
    termination: str
    seed: int
    wall_s: float


@dataclass(frozen=True)
class FamilyResult:
    """What the search of a family came to: cost of its best network (None without), bound (None where none exists)."""

    family: str
    searched: str
    cost_cents: int | None
    bound_cents: int | None
    termination: str
    solver: str

    def to_document(self) -> dict[str, Any]:
        """The result as plain data, money in USD."""
        return {
            "family": self.family,
            "searched": self.searched,
            "cost_usd": None if self.cost_cents is None else usd(self.cost_cents),
            "lower_bound_usd": None if self.bound_cents is None else usd(self.bound_cents),
            "termination": self.termination,
            "solver": self.solver,
        }


@dataclass(frozen=True)
class Design:
    """A network for an instance.

    Money in cents; `bound_cents` holds for every network of `searched`, `any_topology_bound_cents` for any network of
    the catalog's switches. Only a Clos has a `shape`, only a network with a floor has `places`, and only one beside a
    network that is there is `rewired`.
    """

    name: str
    status: str
    objective: str
    cost_cents: int
    bound_cents: int
    searched: str
    counts: dict[str, int]
    fabric: Fabric
    bill: Bill
    traffic: Traffic
    comparison: list[ComparisonRow]
    worst_leaf_pair: float
    provenance: Provenance
    instance: Instance
    family: str
    families: tuple[FamilyResult, ...]
    shape: ClosShape | None = None
    routing: dict[str, Any] | None = None
    certificate: Certificate | None = None
    any_topology_bound_cents: int | None = None
    training: TrainingCost | None = None
    places: Places | None = None
    rewired: Rewired | None = None

    @staticmethod
    def of(
        instance: Instance,
        traffic: Traffic,
        drawn: Drawn,
        bound_cents: int,
        family: str,
        searched: str,
        families: tuple[FamilyResult, ...],
        comparison: list[ComparisonRow],
        provenance: Provenance,
    ) -> "Design":
        """The design of a drawn and priced network."""
        fabric, bill = drawn.fabric, drawn.bill
        counts = fabric.counts() | {
            "cables": bill.pieces(*CABLE_SECTIONS),
            "transceivers": bill.pieces("transceivers"),
        }
        return Design(
            instance.name,
            "optimal" if bound_cents >= bill.total_cents else "feasible",
            instance.objective,
            bill.total_cents,
            bound_cents,
            searched,
            counts,
            fabric,
            bill,
            traffic,
            comparison,
            worst_leaf_pair(fabric),
            provenance,
            instance,
            family,
            families,
            drawn.shape,
            places=drawn.places,
            rewired=drawn.rewired,
        )

    @property
    def gap(self) -> float:
        """(cost - bound) / cost over the networks of `searched`."""
        return (self.cost_cents - self.bound_cents) / self.cost_cents if self.cost_cents else 0.0

    @cached_property
    def floor(self) -> Floor | None:
        """The racks on the floor of the instance; None without a layout."""
        layout = self.instance.layout
        if layout is None or self.places is None:
            return None
        management = self.instance.cluster.management_ports > 0
        return make_floor(layout, self.instance.cluster, self.places.switch_racks, management=management)

    @cached_property
    def power_w(self) -> float:
        """Power of switches and modules."""
        return self.bill.power_w

    def to_document(self) -> dict[str, Any]:
        """The design as plain data, as the design file holds it."""
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "status": self.status,
            "objective": self.objective,
            "cost_usd": usd(self.cost_cents),
            "lower_bound_usd": usd(self.bound_cents),
            "gap": self.gap,
            "searched": self.searched,
            "family": self.family,
            "families": [found.to_document() for found in self.families],
            "any_topology_bound_usd": None
            if self.any_topology_bound_cents is None
            else usd(self.any_topology_bound_cents),
            "capex_usd": usd(self.bill.capex_cents),
            "energy_usd": usd(self.bill.energy_cents),
            "assumed_usd": usd(self.bill.assumed_cents),
            "power_w": self.power_w,
            "counts": self.counts,
            "worst_leaf_pair": self.worst_leaf_pair,
            "bill_of_materials": [line.to_document() for line in self.bill.lines],
            "comparison": [row.to_document() for row in self.comparison],
            "traffic": traffic_document(self.traffic),
            "requirements": self.instance.requirements.model_dump(mode="json"),
            "energy": self.instance.energy.model_dump(mode="json"),
            "cluster": cluster_document(self.instance),
            "instance": self.instance.document,
            "catalog": catalog_document(self.instance.catalog, used_components(self)),
            "provenance": {"version": package_version(), **asdict(self.provenance)},
            "fabric": self.fabric.to_document(),
        }
        document["layout"] = None if self.places is None else self.places.to_document()
        document["existing"] = None if self.rewired is None else self.rewired.to_document()
        document["routing"] = self.routing
        document["training"] = None if self.training is None else self.training.to_document()
        document["certificate"] = None if self.certificate is None else self.certificate.to_document()
        return with_digest(document)

    def save(self, path: Path | str) -> None:
        """Writes the design file, whole or not at all.

        Raises:
            OutputError: the path cannot be written.
        """
        write_text_atomically(path, json.dumps(self.to_document(), separators=(",", ":"), allow_nan=False) + "\n")


def package_version() -> str:
    """Version of this package."""
    try:
        return version("designer")
    except PackageNotFoundError:
        return "unknown"


def used_components(design: Design) -> set[str]:
    """Catalog keys that the design, its hosts, its bill and the templates beside it name."""
    cluster = design.instance.cluster
    switches = {*design.fabric.models, *(row.switch for row in design.comparison)}
    hosts = {key for kind in cluster.kinds() for key in (kind.gpu.key, kind.nic.key)}
    owned = {item.switch.key for item in cluster.existing}
    if design.rewired is not None:
        owned |= design.rewired.existing.stock.keys
    bought = {line.item for line in design.bill.lines if line.section != LABOUR}
    return bought | hosts | owned | switches


def traffic_document(traffic: Traffic) -> dict[str, Any]:
    """Phases with their steps as plain data."""
    return {**asdict(traffic), "phases": [asdict(phase) for phase in traffic.phases]}


def cluster_document(instance: Instance) -> Mapping[str, Any]:
    """The cluster as plain data; beside kinds of servers the other fields say what follows from them."""
    cluster = instance.cluster
    document: dict[str, object] = {
        "gpus": cluster.gpus,
        "gpu": cluster.gpu.key,
        "nic": cluster.nic.key,
        "hb_domain": cluster.hb_domain,
        "rails": cluster.rails,
        "management_ports": cluster.management_ports,
    }
    if cluster.irregular:
        document["servers"] = [
            {"count": kind.count, "gpu": kind.gpu.key, "gpus": kind.gpus, "nic": kind.nic.key}
            for kind in cluster.servers
        ]
    if cluster.existing:
        document["existing"] = [
            {"name": item.name, "switch": item.switch.key, "free_ports": item.free_ports} for item in cluster.existing
        ]
    return document
