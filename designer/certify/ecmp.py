"""Throughput under ECMP: every node splits evenly over the links that lie on shortest paths to the destination."""

import numpy as np

from designer.certify.problem import Floats, FlowProblem, Ints
from designer.certify.symmetry import Orbits

MAX_WORK = 3_000_000_000


def ecmp_throughput(problem: FlowProblem, orbits: Orbits) -> float | None:
    """The throughput of even splitting over shortest paths, by links; None where symmetry is too small to tell.

    One destination of each orbit is routed; as the routing follows every automorphism, each arc of an orbit carries
    the average of what the orbit of destinations puts on it. Unreachable demand counts as throughput 0.
    """
    sources = problem.sources
    if not len(sources):
        return problem.most
    _, first, sizes = np.unique(orbits.node[sources], return_index=True, return_counts=True)
    if len(first) * len(problem.tail) > MAX_WORK:
        return None
    order, starts = _by_head(problem)
    load = np.zeros(orbits.arc_count)
    for target, size in zip(sources[first].tolist(), sizes.tolist(), strict=True):
        flow = _routed(problem, target, *problem.column(target), order, starts)
        if flow is None:
            return 0.0
        load += size * np.bincount(orbits.arc, flow, orbits.arc_count)
    # Load and capacity are both totals over an orbit of equal arcs.
    capacity = np.bincount(orbits.arc, problem.arc_capacity, orbits.arc_count)
    used = load > 0
    if not used.any():
        return problem.most
    return min(problem.most, float((capacity[used] / load[used]).min()))


def even_share(problem: FlowProblem, source: int, target: int) -> Floats | None:
    """The part on every arc of what `source` sends to `target`; None where there is no way."""
    return _routed(problem, target, np.array([source]), np.ones(1), *_by_head(problem))


def _by_head(problem: FlowProblem) -> tuple[Ints, Ints]:
    order = np.argsort(problem.head, kind="stable")
    return order, np.searchsorted(problem.head[order], np.arange(problem.nodes + 1))


def _routed(
    problem: FlowProblem, target: int, source: Ints, rate: Floats, by_head: Ints, starts: Ints
) -> Floats | None:
    """Load on every arc of what the sources send to `target`; None where some of them cannot reach it."""
    distance = _distances(problem, target, by_head, starts)
    if (distance[source] < 0).any():
        return None
    tail, head = problem.tail, problem.head
    usable = (distance[tail] == distance[head] + 1) & (distance[head] >= 0)
    usable &= problem.relays[head] | (head == target)
    weight = np.where(usable, problem.arc_links, 0).astype(np.float64)
    total = np.bincount(tail, weight, problem.nodes)
    through = np.zeros(problem.nodes)
    np.add.at(through, source, rate)
    flow = np.zeros(len(tail))
    level = distance[tail]
    order = np.argsort(-level[usable], kind="stable")
    arcs = np.flatnonzero(usable)[order]
    bounds = np.flatnonzero(np.diff(level[arcs])) + 1
    for part in np.split(arcs, bounds):
        flow[part] = through[tail[part]] * weight[part] / total[tail[part]]
        np.add.at(through, head[part], flow[part])
    return flow


def _distances(problem: FlowProblem, target: int, by_head: Ints, starts: Ints) -> Ints:
    """Hops from every node to `target` over nodes that relay; -1 where there is no way."""
    distance = np.full(problem.nodes, -1, dtype=np.int64)
    distance[target] = 0
    front = np.array([target])
    hops = 0
    while len(front):
        hops += 1
        counts = starts[front + 1] - starts[front]
        offsets = np.repeat(starts[front] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        arcs = by_head[offsets + np.arange(int(counts.sum()))]
        reached = np.unique(problem.tail[arcs])
        reached = reached[distance[reached] < 0]
        distance[reached] = hops
        front = reached[problem.relays[reached]]
    return distance
