"""Routes to deploy: for every step of the traffic the paths, and their weights, between the switches that exchange it.

Even splitting over shortest paths in proportion to what they carry comes first. Where a cut shows that nothing carries
more, that is it; else linear programs look for more, over paths of no, of one and of any number of hops more than
necessary, as far as their size allows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np

from designer.fabric.fabric import Fabric
from designer.fabric.paths import Weighted, flow_paths
from designer.fabric.routes import RoutedPath, StepRouting
from designer.formulation.route_programs import ConcurrentFlow, Ends, RouteProblem, Routes, StaticFlow, worst_loads
from designer.formulation.solvers import Ints
from designer.formulation.switch_rates import Attachment, RoutingError, Unit, UnitDemand, step_demand
from designer.workload.traffic import Traffic

MAX_SWITCHES = 64
MAX_FLOWS = 40_000
MAX_STATIC = 30_000  # flows and worst-case rows of `any`
MAX_LEGS = 400  # pairs that send over intermediate switches
CLOSE = 1e-7


def route(fabric: Fabric, traffic: Traffic) -> tuple[StepRouting, ...]:
    """Routes for every step of every phase that loads the network, on an intact fabric.

    Raises:
        RoutingError: more than 64 switches in one network, GPUs with several ports in one, planes that are unlike, or
            traffic between networks that has no way, or whose `any` would take a detour.
    """
    at = Attachment(fabric)
    known: dict[object, tuple[Routes, float]] = {}
    result: list[StepRouting] = []
    for phase in traffic.network_phases:
        for step in phase.steps:
            throughput = 1.0
            paths: dict[Ends, tuple[RoutedPath, ...]] = {}
            for number, demand in step_demand(at, traffic, phase, step).items():
                unit = at.units[number]
                routes, value = _unit_routes(unit, demand, known)
                throughput = min(throughput, value)
                for (source, target), weighted in routes.items():
                    paths[unit.switches[source], unit.switches[target]] = tuple(
                        RoutedPath(tuple(unit.switches[node] for node in path), weight) for path, weight in weighted
                    )
            result.append(StepRouting(phase.job, phase.name, step.name, throughput, paths))
    return tuple(result)


def _unit_routes(unit: Unit, demand: UnitDemand, known: dict[object, tuple[Routes, float]]) -> tuple[Routes, float]:
    """Routes by places in the unit; units that are alike, and ask the same, are solved once."""
    if len(unit.switches) > MAX_SWITCHES:
        raise RoutingError(
            f"a network of {len(unit.switches)} switches; routes are made for at most {MAX_SWITCHES} that are joined"
        )
    place = {switch: number for number, switch in enumerate(unit.switches)}
    a = np.array([place[switch] for switch in unit.a.tolist()], dtype=np.int64)
    b = np.array([place[switch] for switch in unit.b.tolist()], dtype=np.int64)
    rates = {(place[source], place[target]): rate for (source, target), rate in sorted(demand.rates.items())}
    hoses = tuple((tuple((place[node], many) for node, many in hose.members), hose.gbps) for hose in demand.hoses)
    key = (len(place), a.tobytes(), b.tobytes(), unit.gbps.tobytes(), tuple(rates.items()), hoses, demand.most)
    if key not in known:
        known[key] = best_routes(RouteProblem(len(place), a, b, unit.gbps, rates, hoses, demand.most))
    return known[key]


def best_routes(problem: RouteProblem) -> tuple[Routes, float]:
    """Routes for every pair that sends, and the part of the demand that they carry, at most 1."""
    best = spread_routes(problem)
    value = carried(problem, best)
    enough = min(1.0, problem.most, cut_bound(problem))
    size = 0
    for detour in (0, 1, 2, problem.nodes):
        if value >= enough * (1 - CLOSE):
            break
        program = StaticFlow if problem.hoses else ConcurrentFlow
        found = program(problem, detour, enough)
        if found.size > (MAX_STATIC if problem.hoses else MAX_FLOWS):
            break
        if found.size == size:
            continue
        size = found.size
        routes = found.routes()
        reached = 0.0 if routes is None else carried(problem, routes)
        if routes is not None and reached > value * (1 + CLOSE):
            best, value = routes, reached
    if problem.hoses and value < enough * (1 - CLOSE) and len(problem.pairs) <= MAX_LEGS:
        routes = two_legs(problem)
        reached = carried(problem, routes)
        if reached > value * (1 + CLOSE):
            best, value = routes, reached
    return best, value


def two_legs(problem: RouteProblem) -> Routes:
    """Every pair sends over all members of its `any` groups, there and on as an all-to-all would (Valiant, 1982).

    Pairs of fixed rates go as they would beside that all-to-all. What comes by the same switch twice is cut short.
    """
    rates = dict(problem.rates)
    weight: dict[Ends, dict[int, float]] = {}
    for members, gbps in problem.hoses:
        total = sum(many for _, many in members)
        for (one, many), (other, more) in permutations(members, 2):
            rates[one, other] = rates.get((one, other), 0.0) + 2 * gbps * many * more / total
            over = weight.setdefault((one, other), {})
            for via, there in members:
                over[via] = over.get(via, 0.0) + gbps * there
    legs, _ = best_routes(replace(problem, rates=rates, hoses=()))
    return {ends: _over(ends, weight[ends], legs) if ends in weight else legs[ends] for ends in problem.pairs}


def _over(ends: Ends, weight: Mapping[int, float], legs: Routes) -> Weighted:
    flow: dict[Ends, float] = {}
    total = sum(weight.values())
    for via, part in weight.items():
        for leg in {(ends[0], via), (via, ends[1])} & legs.keys():
            for hop, share in _hops(legs[leg]):
                flow[hop] = flow.get(hop, 0.0) + share * part / total
    tail, head = (np.array([hop[side] for hop in flow], dtype=np.int64) for side in range(2))
    return flow_paths(tail, head, flow.values(), ends[0], {ends[1]: 1.0})[ends[1]]


def cut_bound(problem: RouteProblem) -> float:
    """An upper bound: what the links of a set of nodes carry of what it has to send, and to take in.

    The sets are single nodes, and what hangs together of the nodes less than two, three .. hops away from those that
    send: the pods of a Clos.
    """
    senders = sorted({node for ends in problem.pairs for node in ends})
    depth = problem.hops[senders].min(axis=0) if senders else np.zeros(problem.nodes)
    bound = _blocks_cut(problem, np.arange(problem.nodes))
    for most in range(1, int(depth.max(initial=0.0))):
        near = depth <= most
        inside = near[problem.a] & near[problem.b]
        hops = RouteProblem(problem.nodes, problem.a[inside], problem.b[inside], problem.gbps[inside], {}, (), 1.0).hops
        bound = min(bound, _blocks_cut(problem, np.where(near, np.argmax(np.isfinite(hops), axis=1), -1)))
    return bound


def _blocks_cut(problem: RouteProblem, block: Ints) -> float:
    """The bound of disjoint sets: `block[v]` is the number of that of node v, -1 for none."""
    out, into, links = (np.zeros(problem.nodes) for _ in range(3))
    for (source, target), rate in problem.rates.items():
        one, other = block[source], block[target]
        if one != other:
            out[one] += rate if one >= 0 else 0.0
            into[other] += rate if other >= 0 else 0.0
    need = np.maximum(out, into)
    for members, gbps in problem.hoses:
        inside = np.zeros(problem.nodes)
        for node, many in members:
            if block[node] >= 0:
                inside[block[node]] += many
        need += gbps * np.minimum(inside, sum(many for _, many in members) - inside)
    crossing = (block[problem.tail] != block[problem.head]) & (block[problem.tail] >= 0)
    np.add.at(links, block[problem.tail[crossing]], problem.capacity[crossing])
    busy = need > 0
    return float((links[busy] / need[busy]).min(initial=np.inf))


def spread_routes(problem: RouteProblem) -> Routes:
    """Every node splits over its next hops on shortest paths in proportion to what they carry onward.

    The width of a node is the sum over its next hops of the smaller of link and width there; the destination has no
    limit. On a Clos with bundles of unequal size leaf l sends to m over spine s in proportion to min(c_ls, c_sm).
    """
    sources: dict[int, list[int]] = {}
    for source, target in problem.pairs:
        sources.setdefault(target, []).append(source)
    result: Routes = {}
    for target, own in sources.items():
        shares = _shares(problem, target)
        for source in own:
            arcs, flow = _spread(problem, shares, source, target)
            paths = flow_paths(problem.tail[arcs], problem.head[arcs], flow, source, {target: 1.0})
            result[source, target] = paths[target]
    return result


def _shares(problem: RouteProblem, target: int) -> dict[int, list[tuple[int, float]]]:
    """For every node the arcs that it uses toward the target, with the part of its traffic on each."""
    distance = problem.hops[:, target]
    width = np.full(problem.nodes, np.inf)
    shares: dict[int, list[tuple[int, float]]] = {}
    for node in np.argsort(distance, kind="stable").tolist():
        if node == target:
            continue
        onward = np.flatnonzero((problem.tail == node) & (distance[problem.head] == distance[node] - 1))
        carries = np.minimum(problem.capacity[onward], width[problem.head[onward]])
        width[node] = carries.sum()
        shares[node] = list(zip(onward.tolist(), (carries / width[node]).tolist(), strict=True))
    return shares


def _spread(
    problem: RouteProblem, shares: dict[int, list[tuple[int, float]]], source: int, target: int
) -> tuple[list[int], list[float]]:
    flow: dict[int, float] = {}
    through = {source: 1.0}
    while through:
        following: dict[int, float] = {}
        for node, amount in through.items():
            for arc, share in shares[node]:
                flow[arc] = amount * share
                head = int(problem.head[arc])
                if head != target:
                    following[head] = following.get(head, 0.0) + amount * share
        through = following
    return list(flow), list(flow.values())


def carried(problem: RouteProblem, routes: Routes) -> float:
    """The part of the demand, at most 1, that the routes carry, whatever `any` groups send."""
    arcs = {ends: arc for arc, ends in enumerate(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))}
    shares: dict[int, dict[Ends, float]] = {}
    for ends, weighted in routes.items():
        for hop, weight in _hops(weighted):
            crossing = shares.setdefault(arcs[hop], {})
            crossing[ends] = crossing.get(ends, 0.0) + weight
    load = np.zeros(len(arcs))
    for arc, crossing in shares.items():
        load[arc] = sum(problem.rates.get(ends, 0.0) * share for ends, share in crossing.items())
    for members, gbps in problem.hoses:
        nodes = {node for node, _ in members}
        inside = {
            arc: {ends: share for ends, share in crossing.items() if nodes.issuperset(ends)}
            for arc, crossing in shares.items()
        }
        for arc, worst in worst_loads(members, inside).items():
            load[arc] += gbps * worst
    used = load > 0
    return min(1.0, problem.most, float((problem.capacity[used] / load[used]).min(initial=np.inf)))


def _hops(weighted: Weighted) -> Iterator[tuple[Ends, float]]:
    for path, weight in weighted:
        yield from ((hop, weight) for hop in pairwise(path))
