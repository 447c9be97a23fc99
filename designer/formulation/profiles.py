"""Endpoints that are all alike: only how many go on each switch matters, so profiles of counts are tried in turn.

A profile is the sorted list of endpoints per switch. Its cost is bounded by what each switch must pay by itself: its
price, its endpoints, and half of the links that B(n) asks for. Profiles come cheapest bound first; each is a link
placement with its blocks standing. The search ends when the next bound is no less than the best cost.
"""

import heapq
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from designer.catalog.components import Nic, NicMode, Switch
from designer.formulation.block_demand import SLACK, block_demands
from designer.formulation.placement import (
    Block,
    HostKind,
    KindFinder,
    LinkKind,
    Placement,
    PlacementProblem,
    Slot,
    Survival,
    offered,
)
from designer.formulation.placement_solve import PlacementReport, solve_placement, without_flows
from designer.formulation.solvers import INF, HighsSolver, SolveLimits, Solver, Termination
from designer.workload.cuts import Floats, Ints
from designer.workload.traffic import Traffic

MOST_OPEN = 200_000  # profiles in the queue


@dataclass(frozen=True)
class ProfileResult:
    """The best placement of all profiles with its problem, None where there is none; `bound_cents` is over them all."""

    termination: Termination
    problem: PlacementProblem | None
    placement: Placement | None
    bound_cents: float
    profiles: int


@dataclass(frozen=True)
class AlikeEndpoints:
    """Endpoints of one NIC mode and plane that can all be swapped, to be put on switches of one model."""

    traffic: Traffic
    nic: Nic
    mode: NicMode
    switch: Switch
    finder: KindFinder
    survivals: tuple[Survival, ...]
    scale: float

    def need_gbps(self, most: int) -> Floats:
        """B(n) for n = 0 .. most: all-to-all rate n(N-n)/(N-1), any rate min(n, N-n), the worst of the steps."""
        ports, total = np.arange(most + 1, dtype=np.float64), self.traffic.gpus
        need = np.zeros(most + 1)
        for phase in self.traffic.network_phases:
            for step in phase.steps:
                out = np.zeros(most + 1)
                for part in step.components:
                    rate = part.rate * phase.floor * self.mode.gbps * self.scale
                    even = ports * (total - ports) / max(total - 1, 1)
                    out += rate * (np.minimum(ports, total - ports) if part.pattern == "any" else even)
                need = np.maximum(need, out)
        return need

    def problem(self, counts: tuple[int, ...]) -> tuple[PlacementProblem, Ints]:
        """The placement problem of a profile, and the slot of each block."""
        total = self.traffic.gpus
        slots = tuple(Slot(self.switch, self.finder.pricing.switch_cents(self.switch), 0) for _ in counts)
        holding = [count for count in counts if count]
        homes = np.repeat(np.arange(len(holding)), holding)
        blocks = tuple(
            Block(tuple(np.flatnonzero(homes == number).tolist()), self.nic, self.mode)
            for number in range(len(holding))
        )
        demands = block_demands(self.traffic, homes, np.full(total, float(self.mode.gbps)))
        hosts, links = offered(self.finder, slots, blocks)
        scaled = tuple(demand.at(self.scale) for demand in demands)
        problem = PlacementProblem(slots, blocks, scaled, hosts, links, self.survivals)
        return problem, np.arange(len(blocks))


class ProfileSearch:
    """The search over the profiles of one switch model."""

    def __init__(self, ends: AlikeEndpoints, solver: Solver | None = None) -> None:
        self.ends, self.solver = ends, solver or HighsSolver()
        self.total = ends.traffic.gpus
        host = ends.finder.host(ends.nic, ends.mode, ends.switch)
        self.host = host
        self.kinds = ends.finder.between(ends.switch, ends.switch)
        most = 0
        if host is not None:
            most = min(self.total, ends.switch.max_ports, ends.switch.cages * host.end.per_cage)
        self.cents = self._cents(most)
        self.least = self._cover()
        self.least_cents = float(self.least[self.total])

    def _cents(self, most: int) -> Floats:
        """What a switch with n endpoints costs at least, n = 0 .. most; infinite where it cannot have the links."""
        need = self.ends.need_gbps(most)
        cents = np.full(most + 1, INF)
        for n in range(most + 1):
            if self.host is not None:
                cents[n] = _own_cents(self.ends, n, float(need[n]), self.host, self.kinds)
        return cents

    def _cover(self) -> Floats:
        """The least bound of any profile of r endpoints, r = 0 .. total."""
        least = np.full(self.total + 1, INF)
        least[0] = 0.0
        sizes = np.arange(1, len(self.cents))
        for r in range(1, self.total + 1):
            fits = sizes[sizes <= r]
            if len(fits):
                least[r] = (self.cents[fits] + least[r - fits]).min()
        return least

    def profiles(self) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Profiles with their bound, cheapest first; the last counts may be 0, switches that only pass traffic on."""
        heap: list[tuple[float, tuple[int, ...], int]] = [(float(self.least[self.total]), (), self.total)]
        while heap:
            bound, counts, rest = heapq.heappop(heap)
            if bound == INF:
                return
            if rest == 0:
                yield bound, counts
                if len(counts) > 1:
                    heapq.heappush(heap, (bound + float(self.cents[0]), (*counts, 0), 0))
                continue
            spent = bound - float(self.least[rest])
            for n in range(1, min(counts[-1] if counts else rest, rest, len(self.cents) - 1) + 1):
                value = spent + float(self.cents[n]) + float(self.least[rest - n])
                if value < INF:
                    heapq.heappush(heap, (value, (*counts, n), rest - n))
            if len(heap) > MOST_OPEN:
                yield heap[0][0], ()
                return

    def run(
        self, limits: SolveLimits, below_cents: float, tell: Callable[[float | None, float | None], None]
    ) -> ProfileResult:
        """The cheapest placement below a cost; `tell` hears the best cost (or None) and the bound, in cents."""
        began = time.monotonic()
        best: tuple[PlacementProblem | None, Placement | None] = (None, None)
        upper, tried, open_bound = below_cents, 0, INF

        def result(termination: Termination, bound: float) -> ProfileResult:
            return ProfileResult(termination, *best, min(bound, open_bound, upper), tried)

        for bound, counts in self.profiles():
            if bound >= upper - SLACK:
                return result("optimal", upper)
            if not counts:
                return result("time_limit", bound)
            tell(None if best[0] is None else upper, min(bound, open_bound))
            left = limits.time_limit_s - (time.monotonic() - began)
            if left <= 0 or limits.should_stop():
                return result("time_limit" if left <= 0 else "interrupted", bound)
            tried += 1
            found = self._profile(counts, replace(limits, time_limit_s=left), upper)
            if found is None:
                continue
            problem, report = found
            if report.cost_cents is not None and report.cost_cents < upper:
                best, upper = (problem, report.placement), report.cost_cents
                if upper - bound <= limits.gap * upper:
                    return result("gap" if upper > bound else "optimal", bound)
            if report.termination not in ("optimal", "infeasible"):
                open_bound = min(open_bound, max(bound, report.bound_cents))
        return result("optimal" if upper < INF else "infeasible", upper)

    def _profile(
        self, counts: tuple[int, ...], limits: SolveLimits, below_cents: float
    ) -> tuple[PlacementProblem, PlacementReport] | None:
        problem, standing = self.ends.problem(counts)
        relaxed = HighsSolver().solve(without_flows(problem, standing, below_cents).model(), limits)
        if relaxed.termination == "infeasible":
            return None
        return problem, solve_placement(problem, limits, below_cents=below_cents, standing=standing, solver=self.solver)


def _own_cents(ends: AlikeEndpoints, n: int, need_gbps: float, host: HostKind, kinds: tuple[LinkKind, ...]) -> float:
    """Price, n endpoints and half of the links of one switch; infinite where the ports do not suffice."""
    switch = ends.switch
    cages = -(-n // host.end.per_cage)
    own = ends.finder.pricing.switch_cents(switch) + n * host.cents + cages * host.end.cage_cents
    if need_gbps <= SLACK:
        return float(own)
    best = INF
    for kind in kinds:
        links = math.ceil(need_gbps / kind.gbps - SLACK)
        links = -(-links // kind.bundle) * kind.bundle
        most = max(kind.lower.per_cage, kind.upper.per_cage)
        if cages + -(-links // most) <= switch.cages and n + links <= switch.max_ports:
            best = min(best, float(links * kind.half_cents))
    if len(kinds) > 1:  # links of several speeds together: no dearer than the cheapest rate, and taken to fit
        best = min(best, need_gbps * min(float(kind.half_cents) / kind.gbps for kind in kinds))
    return float(own) + best
