"""Small networks without a shape: a catalog with two speeds, a builder that plugs cables, and their design files."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from designer.catalog import catalog_document
from designer.certify.read_design import design_from_document
from designer.certify.verify import certificate_of, structure_of, throughput_of
from designer.costing.bill import CABLE_SECTIONS, bill_of_materials
from designer.costing.pricing import MediaFinder, Pricing
from designer.digest import with_digest
from designer.fabric.fabric import GPU, LEAF, Fabric, Links, MediumUse, Nodes, OwnedSwitch
from designer.instance.instance import ExistingSwitch, Instance
from designer.result import cluster_document, traffic_document
from designer.units import usd
from designer.workload.phases import derive_traffic
from tests.strategies import OPTICS, Document, catalog, gpu, instance_of, nic, switch, transceiver

LINK_COLUMNS = ("a", "b", "a_cage", "a_lane", "b_cage", "b_lane", "gbps", "medium")
FAST = gpu() | {"gpus_per_server": 4, "hb_domain": 4}
SLOW = gpu() | {"gpus_per_server": 2, "hb_domain": 2, "scale_up_gbps": 2400.0}
SWITCHES = {
    "eight": switch(8, 1000, ((1, 400), (2, 200))),
    "sixteen": switch(16, 3000, ((1, 400), (2, 200))),
    "double": switch(4, 1500, ((2, 400), (4, 200))),
}
SERVERS = [
    {"count": 2, "gpu": "fast", "nic": "nic-400"},
    {"count": 2, "gpu": "slow", "nic": "nic-200"},
]


def mixed_instance(workload: list[Document], existing: list[Document] | None = None, **sections: Any) -> Instance:
    """Two servers of 4 GPUs at 400 Gb/s, two of 2 at 200: 12 GPUs in domains of 2."""
    parts = catalog(SWITCHES, OPTICS)
    parts["nics"] = {"nic-400": nic(), "nic-200": nic(((1, 200),), cage="small")}
    parts["transceivers"] = OPTICS["transceivers"] | {"small": transceiver(50, 2) | {"cages": ["small"]}}
    parts["gpus"] = {"fast": FAST, "slow": SLOW}
    regular = dict.fromkeys(("gpu", "nic", "hb_domain"))
    cluster = regular | {"servers": SERVERS, "existing": existing or []}
    return instance_of(parts, cluster, workload, **sections)


@dataclass
class Wires:
    """Switches and links of a network of an instance; ports are given out in order, each speed in cages of its own."""

    instance: Instance
    models: list[str] = field(default_factory=list)
    owned: list[OwnedSwitch] = field(default_factory=list)
    next_cage: list[int] = field(default_factory=list)
    open_cage: dict[tuple[int, str, int], tuple[int, int]] = field(default_factory=dict)
    media: list[MediumUse] = field(default_factory=list)
    rows: list[tuple[int, ...]] = field(default_factory=list)

    def buy(self, model: str) -> int:
        """A switch to buy; its number."""
        self.models.append(model)
        self.next_cage.append(0)
        return len(self.models) - 1

    def use(self, existing: ExistingSwitch, in_part: tuple[str, int] = ("host", 200)) -> int:
        """A switch that is there already; a cage that is taken in part goes to ports of one kind and speed."""
        number, native = self.buy(existing.switch.key), existing.switch.native_mode.ports_per_cage
        self.owned.append(OwnedSwitch(self.instance.cluster.gpus + number, existing.name, existing.free_ports))
        first, taken = existing.free_cages.start, -existing.free_ports % native
        if taken:
            (mode,) = existing.switch.modes_at(in_part[1])
            self.open_cage[number, *in_part] = first, taken * mode.ports_per_cage // native
            first += 1
        self.next_cage[number] = first
        return number

    def attach(self, at: int, gpus: range) -> None:
        """GPUs on a switch."""
        cluster = self.instance.cluster
        for kind, members in zip(cluster.kinds(), cluster.kind_ranges(), strict=True):
            gbps = kind.nic.gbps
            for host in sorted(set(gpus) & set(members)):
                medium = self._medium((kind.nic.cage, 1), at, gbps, self.instance.cabling.host_m)
                self._row((host, 0, 0), self._port(at, "host", gbps), at, gbps, medium)

    def join(self, one: int, other: int, count: int, gbps: int = 400) -> None:
        """Links between two switches."""
        lower = self.instance.catalog.switches[self.models[one]]
        (mode,) = lower.modes_at(gbps)
        medium = self._medium((lower.cage, mode.ports_per_cage), other, gbps, self.instance.cabling.leaf_spine_m)
        for _ in range(count):
            cage, lane = self._port(one, "up", gbps)
            self._row(
                (self.instance.cluster.gpus + one, cage, lane), self._port(other, "up", gbps), other, gbps, medium
            )

    def _medium(self, lower: tuple[str, int], at: int, gbps: int, length_m: float) -> int:
        upper = self.instance.catalog.switches[self.models[at]]
        (mode,) = upper.modes_at(gbps)
        found, *_ = MediaFinder(self.instance.catalog).between(lower, (upper.cage, mode.ports_per_cage), gbps, length_m)
        use = MediumUse(found.per_lower_cage, found.per_upper_cage, found.per_link, length_m)
        if use not in self.media:
            self.media.append(use)
        return self.media.index(use)

    def _port(self, at: int, kind: str, gbps: int) -> tuple[int, int]:
        (mode,) = self.instance.catalog.switches[self.models[at]].modes_at(gbps)
        cage, lane = self.open_cage.get((at, kind, gbps), (-1, mode.ports_per_cage))
        if lane == mode.ports_per_cage:
            cage, lane = self.next_cage[at], 0
            self.next_cage[at] += 1
        self.open_cage[at, kind, gbps] = cage, lane + 1
        return cage, lane

    def _row(self, lower: tuple[int, int, int], port: tuple[int, int], at: int, gbps: int, medium: int) -> None:
        node = self.instance.cluster.gpus + at
        self.rows.append((lower[0], node, *lower[1:], *port, gbps, medium))

    def fabric(self) -> Fabric:
        """The fabric, each part that is joined a fabric of its own number."""
        gpus, switches = self.instance.cluster.gpus, len(self.models)
        home = list(range(switches))
        for a, b, *_ in self.rows:
            if a >= gpus:
                home = [home[a - gpus] if part == home[b - gpus] else part for part in home]
        names = sorted(set(self.models))
        none, hosts = [-1] * gpus, [GPU] * gpus
        columns = {
            "kind": hosts + [LEAF] * switches,
            "rail": [host % self.instance.cluster.rails for host in range(gpus)] + [-1] * switches,
            "plane": none + [0] * switches,
            "pod": none + [-1] * switches,
            "fabric": none + [sorted(set(home)).index(part) for part in home],
            "model": none + [names.index(model) for model in self.models],
        }
        nodes = Nodes(**{name: np.array(column, dtype=np.int64) for name, column in columns.items()})
        links = Links(**dict(zip(LINK_COLUMNS, np.array(self.rows, dtype=np.int64).T, strict=True)))
        return Fabric(gpus, 1, tuple(names), tuple(self.media), nodes, links, tuple(self.owned))


def design_document(instance: Instance, fabric: Fabric) -> Document:
    """A design file of a network, certificate included, as a search that found it would write."""
    bill = bill_of_materials(fabric, instance.catalog, Pricing(instance.objective, instance.energy))
    cluster = instance.cluster
    keys = {line.item for line in bill.lines} | set(fabric.models)
    keys |= {key for kind in cluster.kinds() for key in (kind.gpu.key, kind.nic.key)}
    keys |= {item.switch.key for item in cluster.existing}
    pieces = {"cables": bill.pieces(*CABLE_SECTIONS), "transceivers": bill.pieces("transceivers")}
    cost = usd(bill.total_cents)
    document: Document = {
        "schema_version": 1,
        "name": instance.name,
        "family": "link-placement",
        "status": "optimal",
        "objective": instance.objective,
        "cost_usd": cost,
        "lower_bound_usd": cost,
        "gap": 0.0,
        "searched": "one network",
        "any_topology_bound_usd": None,
        "capex_usd": usd(bill.capex_cents),
        "energy_usd": usd(bill.energy_cents),
        "assumed_usd": usd(bill.assumed_cents),
        "power_w": bill.power_w,
        "counts": fabric.counts() | pieces,
        "worst_leaf_pair": 1.0,
        "bill_of_materials": [line.to_document() for line in bill.lines],
        "comparison": [],
        "traffic": traffic_document(derive_traffic(instance)),
        "requirements": instance.requirements.model_dump(mode="json"),
        "energy": instance.energy.model_dump(mode="json"),
        "cluster": cluster_document(instance),
        "instance": instance.document,
        "catalog": catalog_document(instance.catalog, keys),
        "provenance": {"version": "0", "solver": "none", "termination": "none", "seed": 0, "wall_s": 0.0},
        "fabric": fabric.to_document(),
        "certificate": None,
    }
    for part in ("nodes", "links"):
        table = getattr(fabric, part)
        document["fabric"][part] = {column: getattr(table, column).tolist() for column in document["fabric"][part]}
    file = design_from_document(with_digest(document))
    results = throughput_of(file, exhaustive=False, pairs=False, progress=None)
    document["certificate"] = certificate_of(file, structure_of(file), results).to_document()
    return with_digest(document)
