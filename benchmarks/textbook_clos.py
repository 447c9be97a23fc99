"""The Clos problem as a textbook would write it: one mixed-integer linear program with big-M rows, for PuLP and HiGHS.

Two tiers at most, uniform bundles, no failures. The program chooses

    y_h    the hardware: models and port modes of leaf and spine, cables (h without a spine: one tier)
    z_qd   planes and rails of a fabric (q) together with the ports of a leaf to endpoints (d)
    u, S   uplinks of a leaf and spines of a fabric, whole numbers
    t_k    the links of a bundle, so that u = k S

What of a leaf depends on d alone, its number L_qd and its need X_qd, comes from a table; every product of a choice and
a number becomes a row that holds where the choice is made:

    ports      ceil(d / down_h) + ceil(u / up_h) <= cages_h                 if y_h
    capacity   gbps_h u >= X_qd                                             if y_h and z_qd
    bundles    u = k S                                                      if t_k
    spines     k L_qd <= radix_h                                            if y_h and z_qd
    cost       price_h F_q L_qd, price_h F_q S, link_h F_q L_qd u, host_h   if y_h and z_qd

Cages that a bundle or a leaf fills in part count in part here; the network that comes out is priced by the package, so
costs are comparable to the cent, and its cost may be a little above the program's own.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import highspy
import pulp

from designer.costing.pricing import MediaFinder, Pricing, shape_cents, with_media
from designer.fabric.shape import ClosShape, Hosts, Spines, Tier
from designer.formulation.hardware import LeafKind, TierKind, leaf_kinds, tiers_above, usable_switches
from designer.instance.instance import Instance
from designer.units import usd
from designer.workload.cuts import CutFunction, Layout, layouts
from designer.workload.phases import derive_traffic

K_USD = 1e5  # cents: the objective is in thousands of USD
MOST_BUNDLE = 64


@dataclass(frozen=True)
class Answer:
    """What the program came to; `cost_usd` is the package's price of its network, None where it found none."""

    proven: bool
    cost_usd: float | None
    bound_usd: float | None
    columns: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class _Hardware:
    """One choice of models, modes and cables; `above` is None where one tier is all."""

    hosts: Hosts
    leaf: LeafKind
    above: TierKind | None

    def host_cents(self, pricing: Pricing) -> float:
        """Cables of all endpoints."""
        lower, upper, link = pricing.medium_cents(self.leaf.medium)
        hosts, nic = self.hosts, self.hosts.nic
        links = hosts.gpus * hosts.planes
        nic_cages = -(-hosts.gpus // nic.nics_per_cage) * min(nic.cages_per_nic, hosts.nic_mode.ports)
        return lower * nic_cages + upper * links / self.leaf.tier.down_mode.ports_per_cage + link * links

    def uplink_cents(self, pricing: Pricing) -> float:
        """Cable of one uplink."""
        if self.above is None or self.above.lower.up_mode is None:
            return 0.0
        lower, upper, link = pricing.medium_cents(self.above.medium)
        down = self.above.tier.down_mode.ports_per_cage
        return lower / self.above.lower.up_mode.ports_per_cage + upper / down + link


@dataclass(frozen=True)
class _Slice:
    """Planes and rails of a fabric, with a table by the ports of a leaf: how many leaves, Gb/s that one sends up."""

    hosts: Hosts
    layout: Layout
    table: dict[int, tuple[int, float]]

    @property
    def fabrics(self) -> int:
        return self.hosts.planes * -(-self.hosts.rails // self.layout.rails)


def _hardware(instance: Instance, pricing: Pricing, media: MediaFinder) -> Iterator[_Hardware]:
    cluster = instance.cluster
    switches = usable_switches(instance.catalog, cluster.nic, instance.search, pricing)
    for mode in cluster.nic.modes:
        hosts = Hosts(cluster.gpus, cluster.rails, cluster.nic, mode, 0)
        for leaf in leaf_kinds(switches, cluster.nic, mode.ports, mode.gbps, media, instance.cabling):
            yield _Hardware(hosts, leaf, None)
            for above in tiers_above(leaf.tier, switches, media, instance.cabling.leaf_spine_m):
                yield _Hardware(hosts, leaf, above)


def _slices(instance: Instance, choices: list[_Hardware]) -> Iterator[_Slice]:
    traffic = derive_traffic(instance)
    for hosts in dict.fromkeys(choice.hosts for choice in choices):
        kinds = [choice.leaf.tier for choice in choices if choice.hosts == hosts]
        most = max(kind.switch.radix(kind.down_mode) for kind in kinds)
        for layout in layouts(traffic, instance.search.leaf_sharing):
            cuts = CutFunction(traffic, layout)
            pinned = instance.search.leaf.down
            downs = [pinned] if pinned else range(1, min(most, layout.endpoints) + 1)
            yield _Slice(hosts, layout, {d: (layout.leaves(d), cuts.leaf(d) * hosts.gbps) for d in downs})


class Program:
    """The program of an instance."""

    def __init__(self, instance: Instance) -> None:
        """Builds all columns and rows.

        Raises:
            ValueError: the instance asks for what the program does not have.
        """
        if instance.requirements.survive or instance.cluster.management_ports or instance.cluster.irregular:
            raise ValueError("the textbook program has neither failures nor management ports")
        self.instance = instance
        self.pricing = Pricing(instance.objective, instance.energy)
        self.media = MediaFinder(instance.catalog)
        self.hardware = list(_hardware(instance, self.pricing, self.media))
        self.slices = list(_slices(instance, self.hardware))
        self.most_up = max(item.leaf.tier.switch.max_ports for item in self.hardware)
        self.program = pulp.LpProblem("clos", pulp.LpMinimize)
        self.y = [self._binary(f"y{number}") for number in range(len(self.hardware))]
        self.z = {
            (index, down): self._binary(f"z{index}_{down}")
            for index, part in enumerate(self.slices)
            for down in part.table
        }
        self.t = {k: self._binary(f"t{k}") for k in range(1, MOST_BUNDLE + 1)}
        self.u, self.s = self._integer("u", self.most_up), self._integer("s", self.most_up)
        self._choices()
        self._ports_and_capacity()
        self._bundles()
        self.program.setObjective(self._cost())

    def _binary(self, name: str) -> pulp.LpVariable:
        return pulp.LpVariable(name, cat=pulp.LpBinary)

    def _integer(self, name: str, most: float) -> pulp.LpVariable:
        return pulp.LpVariable(name, 0, most, pulp.LpInteger)

    def _add(self, row: pulp.LpConstraint) -> None:
        self.program.addConstraint(row)

    def _choices(self) -> None:
        """One of each; hardware and slice have the same planes; without spines a fabric is one leaf."""
        for of in (self.y, list(self.z.values()), list(self.t.values())):
            self._add(pulp.lpSum(of) == 1)
        for hosts in dict.fromkeys(item.hosts for item in self.hardware):
            chosen = pulp.lpSum(y for y, item in zip(self.y, self.hardware, strict=True) if item.hosts == hosts)
            fitting = pulp.lpSum(z for (index, _), z in self.z.items() if self.slices[index].hosts == hosts)
            self._add(chosen == fitting)
        self.spined = pulp.lpSum(y for y, item in zip(self.y, self.hardware, strict=True) if item.above is not None)
        several = pulp.lpSum(z for (index, down), z in self.z.items() if self.slices[index].table[down][0] > 1)
        self._add(several <= self.spined)
        self._add(self.u <= self.most_up * self.spined)
        self._add(self.u >= self.spined)
        self._add(self.s <= self.most_up * self.spined)
        self._add(self.s >= self.spined)
        if self.instance.search.leaf.up is not None:
            self._add(self.u == self.instance.search.leaf.up)

    def _ports_and_capacity(self) -> None:
        below, above = self._integer("cages_down", self.most_up), self._integer("cages_up", self.most_up)
        down = pulp.lpSum(d * z for (_, d), z in self.z.items())
        need = pulp.lpSum(self.slices[index].table[d][1] * z for (index, d), z in self.z.items())
        most_need = max(gbps for part in self.slices for _, gbps in part.table.values())
        tiers = [item.leaf.tier for item in self.hardware]
        pairs = list(zip(self.y, tiers, strict=True))
        self._add(below + above <= pulp.lpSum(tier.switch.cages * y for y, tier in pairs))
        self._add(down + self.u <= pulp.lpSum(tier.switch.max_ports * y for y, tier in pairs))
        for y, item in zip(self.y, self.hardware, strict=True):
            per_cage = item.leaf.tier.down_mode.ports_per_cage
            self._add(per_cage * below >= down - self.most_up * (1 - y))
            if item.above is not None and item.above.lower.up_mode is not None:
                mode = item.above.lower.up_mode
                self._add(mode.ports_per_cage * above >= self.u - self.most_up * (1 - y))
                self._add(mode.gbps * self.u >= need - most_need * (1 - y))

    def _bundles(self) -> None:
        for k, t in self.t.items():
            self._add(self.u - k * self.s <= self.most_up * (1 - t))
            self._add(self.u - k * self.s >= -k * self.most_up * (1 - t))
        bundle = pulp.lpSum(k * t for k, t in self.t.items())
        radix = pulp.lpSum(
            item.above.tier.switch.radix(item.above.tier.down_mode) * y
            for y, item in zip(self.y, self.hardware, strict=True)
            if item.above is not None
        )
        for (index, down), z in self.z.items():
            leaves = self.slices[index].table[down][0]
            if leaves > 1:
                self._add(leaves * bundle <= radix + leaves * MOST_BUNDLE * (1 - z))
        for y, item in zip(self.y, self.hardware, strict=True):
            if item.above is not None and item.above.medium.bundle > 1:
                odd = pulp.lpSum(t for k, t in self.t.items() if k % item.above.medium.bundle)
                self._add(odd <= 1 - y)

    def _cost(self) -> pulp.LpAffineExpression:
        """Thousands of USD."""
        names = ("spines", "uplinks", "leaf_cost", "spine_cost", "uplink_cost", "host_cost")
        spines, uplinks, leaf_cost, spine_cost, uplink_cost, host_cost = (pulp.LpVariable(name, 0) for name in names)
        totals = {key: self.slices[key[0]].fabrics * self.slices[key[0]].table[key[1]][0] for key in self.z}
        leaves = pulp.lpSum(totals[key] * z for key, z in self.z.items())
        most_fabrics = max(part.fabrics for part in self.slices)
        for index, part in enumerate(self.slices):
            chosen = pulp.lpSum(z for (of, _), z in self.z.items() if of == index)
            self._add(spines >= part.fabrics * self.s - most_fabrics * self.most_up * (1 - chosen))
        for key, z in self.z.items():
            self._add(uplinks >= totals[key] * self.u - totals[key] * self.most_up * (1 - z))
        most_leaves = max(totals.values())
        for y, item in zip(self.y, self.hardware, strict=True):
            price = self.pricing.switch_cents(item.leaf.tier.switch) / K_USD
            self._add(leaf_cost >= price * leaves - price * most_leaves * (1 - y))
            self._add(host_cost >= item.host_cents(self.pricing) / K_USD * y)
            if item.above is not None:
                price = self.pricing.switch_cents(item.above.tier.switch) / K_USD
                self._add(spine_cost >= price * spines - price * most_fabrics * self.most_up * (1 - y))
                price = item.uplink_cents(self.pricing) / K_USD
                self._add(uplink_cost >= price * uplinks - price * most_leaves * self.most_up * (1 - y))
        return leaf_cost + spine_cost + uplink_cost + host_cost

    def solve(self, limit_s: float) -> Answer:
        """Solves by HiGHS with one thread; what is proven is read from the solver, not from PuLP."""
        began = time.perf_counter()
        self.program.solve(pulp.HiGHS(msg=False, timeLimit=limit_s, threads=1, gapRel=0.0))
        seconds = time.perf_counter() - began
        solver = self.program.solverModel
        proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        bound = solver.getInfo().mip_dual_bound
        shape = self.shape() if solver.getInfo().primal_solution_status == 2 else None  # feasible
        return Answer(
            proven,
            None if shape is None else usd(shape_cents(shape, self.pricing)),
            bound * K_USD / 100 if abs(bound) < 1e15 else None,
            self.program.numVariables(),
            self.program.numConstraints(),
            seconds,
        )

    def shape(self) -> ClosShape:
        """The network of the solution, with the package's cables.

        Raises:
            ValueError: it cannot be built.
        """
        hardware = next(item for y, item in zip(self.y, self.hardware, strict=True) if round(y.value()))
        index, down = next(key for key, z in self.z.items() if round(z.value()))
        part = self.slices[index]
        uplinks, spines = round(self.u.value()), round(self.s.value())
        bare = ClosShape(part.hosts, part.layout, hardware.leaf.tier, down)
        if hardware.above is not None:
            tier = Tier(hardware.above.tier.switch, hardware.above.tier.down_mode)
            above = Spines(tier, spines, uplinks // spines)
            bare = ClosShape(part.hosts, part.layout, hardware.above.lower, down, uplinks, above)
        shape = with_media(bare, self.media, self.instance.cabling, self.pricing)
        if bare.problems() or shape is None:
            raise ValueError(f"the textbook program's network cannot be built: {bare.problems()}")
        return shape
