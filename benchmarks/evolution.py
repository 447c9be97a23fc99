"""An evolutionary search over the parameters of the Clos family, judged by the package's certificate.

As searches of the field do it: a population of parameter sets, tournaments, crossover and mutation, every child drawn,
priced and certified. Parameters are the planes, rails of a fabric, model and port modes of every tier, ports of a leaf
down and up, spines, and with three tiers leaves of a pod, uplinks of a spine, bundles and groups of cores. A child that
costs at least as much as the best certified one is not certified: it could not become the answer.
"""

import math
import random
import time
from dataclasses import dataclass, replace

from designer.certify.run import certify_throughput
from designer.certify.throughput import Judge, certify_phases
from designer.costing.pricing import MediaFinder, Pricing, shape_cents, with_media
from designer.fabric.build import build_clos
from designer.fabric.shape import ClosShape, Cores, Hosts, Spines, Tier
from designer.formulation.hardware import joinable, usable_switches
from designer.instance.instance import Instance
from designer.units import usd
from designer.workload.cuts import Layout, layouts
from designer.workload.phases import derive_traffic

POPULATION = 40
TOURNAMENT = 3
MUTATION = 0.3  # of each parameter of a child
FRESH = 0.1  # part of the children that are drawn anew
NUMBERS = ("down", "bundle", "spines", "pod_leaves", "core_uplinks", "core_bundle", "positions")
CHOICES = ("mode", "layout", "leaf", "spine", "core", "tiers")


@dataclass(frozen=True)
class Found:
    """What a search came to: the cheapest certified network (None: none), children drawn and certified, seconds."""

    cost_usd: float | None
    looked_at: int
    certified: int
    seconds: float


@dataclass(frozen=True)
class _Member:
    """A parameter set with its worth: certified ones by cost, others behind them, by how far they fall short."""

    genes: dict[str, int]
    worth: tuple[int, float]


class Evolution:
    """A search on one instance."""

    def __init__(self, instance: Instance, seed: int) -> None:
        """Prepares what parameters can be."""
        self.instance, self.random = instance, random.Random(seed)  # noqa: S311 - no secret
        self.traffic = derive_traffic(instance)
        self.pricing, self.media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
        cluster, search = instance.cluster, instance.search
        self.switches = usable_switches(instance.catalog, cluster.nic, search, self.pricing)
        self.modes = [mode for mode in cluster.nic.modes if search.planes is None or mode.ports in search.planes]
        self.layouts: list[Layout] = list(layouts(self.traffic, search.leaf_sharing))
        rails = cluster.rails
        if search.leaf_sharing != "none" and not self.traffic.needs_joined_rails():
            # One-tier fabrics may hold any number of whole rails.
            self.layouts += [replace(self.layouts[0], rails=many) for many in range(1, rails + 1) if rails % many]
        self.most = max(switch.max_ports for switch in self.switches)
        self.best_cents: int | None = None
        self.looked_at = self.certified = 0

    def run(self, limit_s: float) -> Found:
        """Searches for `limit_s` seconds."""
        began = time.perf_counter()
        members = [self._member(self._random_genes()) for _ in range(POPULATION)]
        while time.perf_counter() - began < limit_s:
            child = self._random_genes() if self.random.random() < FRESH else self._child(members)
            members.append(self._member(child))
            members.remove(max(members, key=lambda member: member.worth))
        cost = None if self.best_cents is None else usd(self.best_cents)
        return Found(cost, self.looked_at, self.certified, time.perf_counter() - began)

    def _random_genes(self) -> dict[str, int]:
        genes = {name: self.random.randrange(1 << 16) for name in CHOICES}
        genes |= {name: self._number() for name in NUMBERS}
        return genes

    def _number(self) -> int:
        """Small ones as often as large ones, powers of two more often than others."""
        number = math.exp(self.random.uniform(0, math.log(self.most)))
        return max(1, 1 << round(math.log2(number)) if self.random.random() < 0.5 else round(number))

    def _child(self, members: list[_Member]) -> dict[str, int]:
        one, other = (
            min(self.random.sample(members, TOURNAMENT), key=lambda member: member.worth).genes for _ in range(2)
        )
        child = {name: (one if self.random.random() < 0.5 else other)[name] for name in one}
        for name, value in child.items():
            if self.random.random() < MUTATION / 2:
                child[name] = self._number() if name in NUMBERS else self.random.randrange(1 << 16)
            elif name in NUMBERS and self.random.random() < MUTATION / 2:
                child[name] = max(1, value + self.random.choice((-2, -1, 1, 2)))
        return child

    def _member(self, genes: dict[str, int]) -> _Member:
        self.looked_at += 1
        shape = self._shape(genes)
        if shape is None:
            return _Member(genes, (3, 0.0))
        cents = shape_cents(shape, self.pricing)
        if self.best_cents is not None and cents >= self.best_cents:
            return _Member(genes, (1, cents))
        self.certified += 1
        short = self._shortfall(shape)
        if short <= 0:
            self.best_cents = cents
            return _Member(genes, (0, cents))
        return _Member(genes, (2, short))

    def _shape(self, genes: dict[str, int]) -> ClosShape | None:
        """The network of a parameter set with what follows from it: ports used up where that costs nothing."""
        cluster, switches = self.instance.cluster, self.switches
        mode = self.modes[genes["mode"] % len(self.modes)]
        hosts = Hosts(cluster.gpus, cluster.rails, cluster.nic, mode, cluster.management_ports)
        layout = self.layouts[genes["layout"] % len(self.layouts)]
        leaf = switches[genes["leaf"] % len(switches)]
        down_modes = leaf.modes_at(mode.gbps)
        if not down_modes:
            return None
        tiers = 1 + genes["tiers"] % self.instance.search.max_tiers
        pinned = self.instance.search.leaf
        down = pinned.down or min(genes["down"], layout.endpoints + hosts.management_ports)
        down_mode = down_modes[genes["leaf"] // len(switches) % len(down_modes)]
        if tiers == 1:
            full = layout.endpoints + hosts.management_ports
            return self._checked(ClosShape(hosts, layout, Tier(leaf, down_mode), pinned.down or full))
        spine = switches[genes["spine"] % len(switches)]
        up_mode = leaf.modes[genes["spine"] // len(switches) % len(leaf.modes)]
        spine_modes = spine.modes_at(up_mode.gbps)
        if not spine_modes or not joinable(leaf, spine):
            return None
        spine_mode = spine_modes[genes["spine"] // 256 % len(spine_modes)]
        uplinks = genes["spines"] * genes["bundle"]
        if pinned.up is not None and uplinks != pinned.up:
            return None
        shape = ClosShape(
            hosts,
            layout,
            Tier(leaf, down_mode, up_mode),
            down,
            uplinks,
            Spines(Tier(spine, spine_mode), genes["spines"], genes["bundle"]),
        )
        return self._checked(shape if tiers == 2 else self._with_cores(shape, genes))

    def _with_cores(self, shape: ClosShape, genes: dict[str, int]) -> ClosShape | None:
        assert shape.spines is not None  # noqa: S101 - for the type checker
        spine, switches = shape.spines.tier, self.switches
        core = switches[genes["core"] % len(switches)]
        up_mode = spine.switch.modes[genes["core"] // len(switches) % len(spine.switch.modes)]
        core_modes = core.modes_at(up_mode.gbps)
        if not core_modes or not joinable(spine.switch, core):
            return None
        spines = replace(shape.spines, tier=Tier(spine.switch, spine.down_mode, up_mode))
        cores = Cores(
            Tier(core, core_modes[genes["core"] // 256 % len(core_modes)]),
            min(genes["pod_leaves"], shape.leaves),
            genes["core_uplinks"],
            genes["core_bundle"],
            genes["positions"],
        )
        return replace(shape, spines=spines, cores=cores)

    def _checked(self, shape: ClosShape | None) -> ClosShape | None:
        if shape is None or shape.problems():
            return None
        return with_media(shape, self.media, self.instance.cabling, self.pricing)

    def _shortfall(self, shape: ClosShape) -> float:
        """0 where the certificate holds, else how much of a floor is missing."""
        fabric, requirements = build_clos(shape), self.instance.requirements
        if shape.layout.rails < self.traffic.rails and self.traffic.needs_joined_rails():
            return 1.0
        scale_up_gbps = self.instance.cluster.scale_up_gbps
        phases = certify_phases(fabric, self.traffic, requirements, Judge(), scale_up_gbps)
        short = max((1 - phase.interval.lower / phase.required for phase in phases if not phase.met), default=0.0)
        if short > 0 or not requirements.survive:
            return short
        failures = certify_throughput(fabric, self.traffic, requirements, scale_up_gbps)[1]
        return max(
            (1 - failure.lower / (failure.required or 1.0) for failure in failures if not failure.met), default=0.0
        )
