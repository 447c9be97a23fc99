"""The throughput of every phase of every job: bounds with proof, and what ECMP gives.

Each step becomes flow problems, one for each unit of the fabric; equal ones are solved once. A phase's throughput is
the byte-weighted harmonic mean over its steps.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice, product

import numpy as np

from designer.certify.certificate import EXACT, Interval, PhaseResult
from designer.certify.crossing_routes import damaged_grid_throughput, grid_throughput
from designer.certify.demand import (
    Demand,
    GroupDemand,
    PairDemand,
    TooManyPairsError,
    apart,
    common_slots,
    demand_left,
    domain_cut,
    on_rails,
    step_demand,
    step_groups,
)
from designer.certify.ecmp import ecmp_throughput
from designer.certify.flow import MAX_COLUMNS, TooLargeError, exact_throughput, upper_bound
from designer.certify.hose import clos_hose
from designer.certify.network import unit_problems
from designer.certify.oblivious import oblivious_routing
from designer.certify.problem import FlowProblem, Pairs, digest
from designer.certify.static_routes import even_throughput
from designer.certify.symmetry import Orbits, SymmetryFinder, apart_orbits
from designer.certify.view import Bools, FabricView, JoinedView
from designer.fabric.fabric import Fabric
from designer.fabric.pairs import worst_leaf_pair
from designer.instance.schema import RequirementsSection
from designer.workload.traffic import Phase, Step, Traffic

POLICIES = ("single-relay", "spread")
TOGETHER = "jobs at once"
TIGHT = 1e-12
HOSE_COLUMNS = 6000  # of the programs that bound `any`, which are many: large ones take minutes
SMALL_GRID = 256  # nodes up to which damaged grids are solved exactly
MAX_COMBINATIONS = 1024
MAX_EVEN_NODES = 64
MAX_PLAIN_ECMP = 5_000_000  # destinations times arcs


@dataclass(frozen=True)
class Bounds:
    """Throughput of one step: proven bounds, ECMP's own, how they were found, GPUs without a way to their peers."""

    lower: float
    upper: float
    ecmp: float | None
    how: str
    cut_off: int = 0


@dataclass
class Judge:
    """Solves flow problems and remembers them by their digest."""

    known: dict[str, Bounds] = field(default_factory=dict[str, Bounds])
    tick: Callable[[], None] | None = None

    def flow(self, problem: FlowProblem, most_columns: int = MAX_COLUMNS) -> Bounds:
        """Bounds of a problem with groups as all-to-all and pairs; its program has at most so many columns."""
        name = digest(problem) if most_columns == MAX_COLUMNS else f"{most_columns} {digest(problem)}"
        if name not in self.known:
            if self.tick:
                self.tick()
            self.known[name] = self._flow(problem, most_columns)
        return self.known[name]

    @staticmethod
    def _flow(problem: FlowProblem, most_columns: int) -> Bounds:
        if not len(problem.sources):
            return Bounds(problem.most, problem.most, problem.most, "endpoint links")
        if len(problem.sources) * len(problem.tail) <= MAX_PLAIN_ECMP:
            # Where even splitting meets the bound of the endpoints' links, no symmetry is needed to know the value.
            plain = ecmp_throughput(problem, apart_orbits(problem))
            if plain is not None and plain >= problem.most:
                return Bounds(problem.most, problem.most, problem.most, "even split")
        grid = grid_throughput(problem)
        if grid is not None and grid.crossing >= problem.most * (1 - TIGHT):
            return Bounds(problem.most, problem.most, grid.ecmp, "crossing routes")
        around = damaged_grid_throughput(problem) if problem.nodes > SMALL_GRID else None
        if around is not None:
            return Bounds(around, problem.most, None, "crossing routes around what is lost")
        orbits = SymmetryFinder(problem).find()
        ecmp = ecmp_throughput(problem, orbits)
        try:
            exact = exact_throughput(problem, orbits, most_columns)
        except TooLargeError:
            return _loose(problem, orbits, max(ecmp or 0.0, 0.0 if grid is None else grid.crossing), ecmp)
        return Bounds(float(exact.checked), float(max(exact.value, exact.checked)), ecmp, "symmetric flow")

    def hose(self, problem: FlowProblem) -> Bounds:
        """Bounds of a problem some of whose groups mean `any`."""
        name = f"any {digest(problem)}"
        if name not in self.known:
            if self.tick:
                self.tick()
            self.known[name] = self._hose(problem)
        return self.known[name]

    def _hose(self, problem: FlowProblem) -> Bounds:
        if not len(problem.sources):
            return Bounds(problem.most, problem.most, problem.most, "endpoint links")
        clos = clos_hose(problem)
        if clos is not None:
            ecmp = clos.ecmp
            if ecmp is None:
                ecmp = self._even(problem, clos.upper)
            return Bounds(clos.lower, clos.upper, ecmp, "oblivious split and cuts")
        # Two legs of an all-to-all (Valiant) carry any permutation: of n members each sends rate / n to each, twice.
        # Permutations bound from above.
        # Where endpoints are parts of their switches, only links between switches carry both legs.
        legs = _two_legs(problem)
        merged = bool(problem.relays[problem.sources].all()) and legs > 0
        both = self.flow(replace(problem, most=problem.most / legs) if merged else problem, HOSE_COLUMNS)
        upper = min(both.upper, problem.most)
        ecmp = None if both.ecmp is None else min(both.ecmp, problem.most)
        fixed = tuple(hub for hub in problem.hubs if not hub.hose_rate)
        for pairs in _permutations(problem):
            one = self.flow(replace(problem, hubs=fixed, pairs=(*problem.pairs, *pairs)), HOSE_COLUMNS)
            upper = min(upper, one.upper)
            ecmp = None if ecmp is None or one.ecmp is None else min(ecmp, one.ecmp)
        lower, how = both.lower * legs, "two legs of an all-to-all"
        if problem.nodes <= MAX_EVEN_NODES:
            ecmp = even_throughput(problem)
            lower, how = max((lower, how), (ecmp, "even split"))
        if lower < upper - EXACT:
            static = oblivious_routing(problem, upper)
            if static is not None:
                lower, how = max((lower, how), (static.throughput, "oblivious routing"))
        return Bounds(min(lower, upper), upper, ecmp, f"{how}, and the worst of some permutations")

    def _even(self, problem: FlowProblem, upper: float) -> float | None:
        """ECMP of the worst permutation; where there are many nodes that of an all-to-all, as far as cuts allow."""
        if problem.nodes <= MAX_EVEN_NODES:
            return even_throughput(problem)
        ecmp = self.flow(problem).ecmp
        return None if ecmp is None else min(ecmp, upper)


def _loose(problem: FlowProblem, orbits: Orbits, lower: float, ecmp: float | None) -> Bounds:
    try:
        upper = upper_bound(problem, orbits)
    except TooLargeError:
        upper = problem.most
    return Bounds(min(lower, upper), upper, ecmp, "colours and given routes")


def _two_legs(problem: FlowProblem) -> float:
    """The part of every `any` that two legs of an all-to-all at `pair_rate` carry, in the group where it is least."""
    part = 1.0
    for hub in problem.hubs:
        if hub.hose_rate:
            least = float(np.bincount(hub.group, hub.members).min())
            part = min(part, hub.pair_rate * least / (2 * hub.hose_rate))
    return part


def _permutations(problem: FlowProblem) -> list[list[Pairs]]:
    """Shifts by one, by half and mirrored, inside every `any` group, of endpoints in their order."""
    results: list[list[Pairs]] = []
    for turn in ("one", "half", "mirror"):
        moved: list[Pairs] = []
        for hub in problem.hubs:
            if not hub.hose_rate:
                continue
            order = np.lexsort((hub.node, hub.group))
            member = np.repeat(hub.node[order], hub.members[order])
            group = np.repeat(hub.group[order], hub.members[order])
            start = np.searchsorted(group, group)
            size = np.searchsorted(group, group, side="right") - start
            place = np.arange(len(group)) - start
            by = {"one": place + 1, "half": place + size // 2, "mirror": size - 1 - place}[turn] % size
            target = member[start + by]
            apart = member != target
            key, count = np.unique(member[apart] * problem.nodes + target[apart], return_counts=True)
            moved.append(Pairs(key // problem.nodes, key % problem.nodes, count * hub.hose_rate))
        results.append(moved)
    return results


def step_bounds(
    judge: Judge,
    view: FabricView,
    traffic: Traffic,
    phase: Phase,
    step: Step,
    scale_up_gbps: float,
    policy: str,
) -> Bounds:
    """Bounds of one step on what is left of a fabric, under a detour policy.

    Planes that are alike carry equal parts, so the value of one is the value of all. Where a failure makes them
    differ, or where traffic takes a detour, the split is a given one: the value is what it reaches, and the upper
    bound is what the ports that are left allow.
    """
    if any(part.pattern == "any" for part in step.components):
        return _any_bounds(judge, view, traffic, phase, step, scale_up_gbps, policy)
    try:
        demand = step_demand(view, traffic, phase, step, view.line_rate_gbps(phase), scale_up_gbps, policy)
    except TooManyPairsError:
        return Bounds(0.0, 1.0, None, "too many single pairs")
    by_plane = unit_problems(view, demand)
    worst = _worst([judge.flow(problem) for problems in by_plane for problem in problems])
    planes = len(by_plane) > 1
    if not demand.detours and planes_alike(view, by_plane):
        return replace(worst, cut_off=demand.cut_off)
    if planes and view.whole and not demand.detours:
        return _over_planes(judge, view, demand, worst)
    most = 1.0 if demand.cut_off or (policy == "single-relay" and demand.detours) else demand.cut
    upper = worst.upper if policy == "single-relay" and not planes else max(worst.lower, min(1.0, most))
    how = f"{worst.how}, {policy} detour" if demand.detours else worst.how
    return replace(worst, upper=upper, how=how, cut_off=demand.cut_off)


def _over_planes(judge: Judge, view: FabricView, demand: Demand, split: Bounds) -> Bounds:
    """Bounds on planes that are not alike: even parts of the traffic are one way, any split at all the most.

    A pair has no more than the ports to the units that both its GPUs reach.
    """
    most = min(1.0, demand.cut)
    ports = view.attachment[1]
    for pair in demand.pairs:
        if len(pair.rate):
            reach = np.where(common_slots(view, pair), np.minimum(ports[pair.source], ports[pair.target]), 0.0)
            most = min(most, float((reach.sum(axis=1) / pair.rate).min()))
    if split.lower >= most - EXACT:
        return replace(split, upper=max(split.lower, most))
    ((problem,),) = unit_problems(JoinedView(view.fabric), demand)
    whole = judge.flow(problem, HOSE_COLUMNS)
    upper = max(split.lower, min(most, whole.upper))
    if whole.lower <= split.lower:
        return replace(split, upper=upper)
    return Bounds(min(whole.lower, upper), upper, split.ecmp, f"{whole.how} over all planes")


def planes_alike(view: FabricView, by_plane: list[list[FlowProblem]]) -> bool:
    """Whether every plane has the same GPUs at the same places of the same problems.

    Then equal parts of the traffic are the best split.
    """
    if len(by_plane) == 1:
        return True
    names = [[digest(problem) for problem in problems] for problems in by_plane]
    return view.planes_match and all(name == names[0] for name in names)


def _worst(parts: list[Bounds]) -> Bounds:
    if not parts:
        return Bounds(np.inf, np.inf, np.inf, "nothing to send")
    known = [part.ecmp for part in parts if part.ecmp is not None]
    least = min(parts, key=lambda part: part.lower)
    return Bounds(
        least.lower,
        min(part.upper for part in parts),
        min(known) if len(known) == len(parts) else None,
        least.how,
    )


def _any_bounds(
    judge: Judge,
    view: FabricView,
    traffic: Traffic,
    phase: Phase,
    step: Step,
    scale_up_gbps: float,
    policy: str,
) -> Bounds:
    """`any`: the hose on what is left, in each plane; lost ports load other planes and peers by the policy's factor.

    Spread: a domain sends and receives evenly over the ports that it has left, whole/left of their own share each.
    Single relay: a GPU with some planes left sends all over them, and with `lost` of a domain's K NICs gone each other
    one carries its own traffic and that of ceil(lost/(K-lost)) whole NICs. Both bound what any permutation asks of a
    port. No GPU hands more over in its domain than its own traffic, or what it relays.
    """
    line_gbps = view.line_rate_gbps(phase)
    groups, pairs = step_groups(traffic, phase, step, line_gbps)
    groups, handed = on_rails(groups, view, traffic.hb_domain)
    most = scale_up_gbps / handed if handed else np.inf
    cut = domain_cut(view, groups, pairs, traffic.hb_domain)
    if apart(view, groups, pairs):
        return Bounds(0.0, min(1.0, cut), None, "any between networks of their own: not bounded")
    domain, slots = traffic.hb_domain, view.attachment[0].shape[1]
    demand = Demand(tuple(group.of(view.has_nic) for group in groups), tuple(pairs), 0, most, detours=False)
    by_plane = unit_problems(view, demand)
    whole = _worst([judge.hose(problem) for problems in by_plane for problem in problems])
    if not planes_alike(view, by_plane):
        whole = replace(whole, upper=1.0)
    if view.whole:
        return whole
    alive = view.gpus_alive
    lost = (alive & ~view.has_nic).reshape(-1, domain).sum(axis=1)
    left = view.has_nic.reshape(-1, domain).sum(axis=1)
    dead, hit = (lost > 0) & (left == 0), (lost > 0) & (left > 0)
    extra = float(np.ceil(lost[hit] / left[hit]).max(initial=0.0))
    if policy == "spread":
        factor = _share_of_ports_left(view, domain)
    else:
        planes_left = (view.port_gbps > 0).sum(axis=1)
        factor = float((slots / planes_left[view.has_nic]).max(initial=1.0)) * (1 + extra)
    ecmp = None if whole.ecmp is None else min(whole.ecmp, 1.0) / factor
    how = whole.how if factor == 1 else f"{whole.how}, {policy} detour"
    lower = min(whole.lower, 1.0) / factor
    if factor > 1 and domain > 1:
        handed_over = max((group.hose_rate for group in groups), default=0.0) * max(1.0, extra)
        lower = min(lower, scale_up_gbps / handed_over) if handed_over else lower
    if policy == "spread" or not hit.any():
        upper = min(whole.upper, cut)
    else:
        upper = _relay_most(view, domain, hit, line_gbps) if phase.gpus == traffic.gpus else 1.0
    return Bounds(lower, max(lower, upper), ecmp, how, int(lost[dead].sum()))


def _relay_most(view: FabricView, domain: int, hit: Bools, line_gbps: float) -> float:
    """What the relays of the `hit` domains carry: ceil(lost / left) NICs beside their own, at their own speed."""
    alive, rate = view.gpus_alive, view.attachment[1].sum(axis=1)
    lost = (alive & ~view.has_nic).reshape(-1, domain).sum(axis=1)[hit]
    left = view.has_nic.reshape(-1, domain).sum(axis=1)[hit]
    fastest = (rate * view.has_nic).reshape(-1, domain).max(axis=1)[hit] / line_gbps
    return float((fastest / (1 + np.ceil(lost / left))).min(initial=1.0))


def _share_of_ports_left(view: FabricView, domain: int) -> float:
    """What a port carries when the domain hit worst spreads its traffic evenly, in units of its own share."""
    whole = (view.attachment[1].sum(axis=1) * view.gpus_alive).reshape(-1, domain).sum(axis=1)
    left = (view.port_gbps.sum(axis=1) * view.gpus_alive).reshape(-1, domain).sum(axis=1)
    some = left > 0
    return float((whole[some] / left[some]).max(initial=1.0))


def phase_bounds(
    judge: Judge, view: FabricView, traffic: Traffic, phase: Phase, scale_up_gbps: float, policy: str
) -> Bounds:
    """Bounds of a phase: the byte-weighted harmonic mean over its steps, never above line rate."""
    parts = [step_bounds(judge, view, traffic, phase, step, scale_up_gbps, policy) for step in phase.steps]
    weights = np.array([step.nic_bytes for step in phase.steps])

    def mean(values: list[float]) -> float:
        clipped = np.minimum(np.array(values), 1.0)
        if (clipped <= 0).any():
            return 0.0
        return float(weights.sum() / (weights / clipped).sum())

    ecmps = [part.ecmp for part in parts]
    known = [value for value in ecmps if value is not None]
    slowest = min(parts, key=lambda part: part.lower)
    return Bounds(
        mean([part.lower for part in parts]),
        mean([part.upper for part in parts]),
        mean(known) if len(known) == len(ecmps) else None,
        slowest.how,
        max(part.cut_off for part in parts),
    )


def certify_phases(
    fabric: Fabric,
    traffic: Traffic,
    requirements: RequirementsSection,
    judge: Judge,
    scale_up_gbps: float,
) -> tuple[PhaseResult, ...]:
    """Every phase on the intact fabric against its floor, under the routing that the requirement means.

    Where the requirements allow uneven bundles, a floor means the uplinks of a leaf as a whole, and a single pair of
    leaves may get the part of it that the worst pair shares.
    """
    view = FabricView(fabric)
    shared = pair_share(fabric, requirements)
    results: list[PhaseResult] = []
    for phase in traffic.network_phases:
        bounds = phase_bounds(judge, view, traffic, phase, scale_up_gbps, "spread")
        interval = Interval(bounds.lower, bounds.upper, bounds.ecmp, bounds.how)
        carried = bounds.lower if requirements.routing == "adaptive" else (bounds.ecmp or 0.0)
        required = phase.floor * shared
        results.append(PhaseResult(phase.job, phase.name, interval, required, carried >= required - EXACT))
    together = _together(view, traffic, judge, scale_up_gbps)
    if together is not None:
        bounds, names = together
        interval = Interval(bounds.lower, bounds.upper, bounds.ecmp, bounds.how)
        carried = bounds.lower if requirements.routing == "adaptive" else (bounds.ecmp or 0.0)
        results.append(PhaseResult(TOGETHER, names, interval, shared, carried >= shared - EXACT))
    return tuple(results)


def _together(view: FabricView, traffic: Traffic, judge: Judge, scale_up_gbps: float) -> tuple[Bounds, str] | None:
    """Jobs on separate GPUs at the same time, each step at its floor: the worst choice of one step of each.

    None where jobs do not run at the same time. Throughput 1 is every floor.
    """
    sets: list[list[tuple[Phase, Step]]] = []
    for phases in traffic.concurrent():
        # Steps that ask the same of the same GPUs are looked at once.
        alike = {
            (step.components, phase.floor, phase.across, phase.first_gpu, phase.gpus): (phase, step)
            for phase in phases
            for step in phase.steps
        }
        sets.append(list(alike.values()))
    if len(sets) < 2:
        return None
    worst: tuple[Bounds, str] | None = None
    for chosen in islice(product(*sets), MAX_COMBINATIONS):
        groups: list[GroupDemand] = []
        pairs: list[PairDemand] = []
        for phase, step in chosen:
            own, flows = step_groups(traffic, phase, step, view.line_rate_gbps(phase))
            groups += [
                replace(group, pair_rate=group.pair_rate * phase.floor, hose_rate=group.hose_rate * phase.floor)
                for group in own
            ]
            pairs += [replace(flow, rate=flow.rate * phase.floor) for flow in flows]
        bounds = _at_once(judge, view, groups, pairs, traffic.hb_domain, scale_up_gbps)
        if worst is None or bounds.lower < worst[0].lower:
            worst = bounds, " + ".join(f"{phase.job} {phase.name}" for phase, _ in chosen)
    if worst is None:
        return None
    bounds, names = worst
    if math.prod(len(steps) for steps in sets) > MAX_COMBINATIONS:
        bounds = replace(bounds, lower=0.0, ecmp=None, how=f"the first {MAX_COMBINATIONS} choices of steps only")
    ecmp = None if bounds.ecmp is None else min(1.0, bounds.ecmp)
    return replace(bounds, lower=min(1.0, bounds.lower), upper=min(1.0, bounds.upper), ecmp=ecmp), names


def _at_once(
    judge: Judge,
    view: FabricView,
    groups: list[GroupDemand],
    pairs: list[PairDemand],
    domain: int,
    scale_up_gbps: float,
) -> Bounds:
    """Bounds of any traffic on an intact fabric."""
    railed, _ = on_rails(groups, view, domain)
    cut = domain_cut(view, groups, pairs, domain)
    if any(group.hose_rate for group in groups) and apart(view, railed, pairs):
        return Bounds(0.0, min(1.0, cut), None, "any between networks of their own: not bounded")
    try:
        demand = demand_left(view, groups, pairs, domain, scale_up_gbps, "spread")
    except TooManyPairsError:
        return Bounds(0.0, min(1.0, cut), None, "too many single pairs")
    by_plane = unit_problems(view, demand)
    bounds = _worst(
        [
            judge.hose(problem) if any(hub.hose_rate for hub in problem.hubs) else judge.flow(problem)
            for problems in by_plane
            for problem in problems
        ]
    )
    if not demand.detours and planes_alike(view, by_plane):
        return bounds
    return replace(bounds, upper=max(bounds.lower, min(1.0, cut)))


def pair_share(fabric: Fabric, requirements: RequirementsSection) -> float:
    """The part of a leaf's uplinks that the worst pair of leaves shares, where uneven bundles are allowed; else 1."""
    return 1.0 if requirements.symmetric_uplinks else worst_leaf_pair(fabric)
