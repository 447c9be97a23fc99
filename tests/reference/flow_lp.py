"""Throughput the slow and obvious way: every GPU a node, every pair of GPUs a rate, a commodity a source, a plain LP.

Nothing here knows of symmetry, of classes or of units. GPUs pass no traffic on unless told to (`relaying`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from designer.certify.problem import FlowProblem
from designer.fabric.fabric import Fabric
from designer.workload.traffic import Phase, Step, Traffic
from tests.reference.explicit import step_flows

Rates = Mapping[tuple[int, int], float]


@dataclass(frozen=True)
class Graph:
    """Nodes 0 .. nodes-1; each link (a, b, capacity) is one physical link, usable in both directions."""

    nodes: int
    links: tuple[tuple[int, int, float], ...]
    relays: frozenset[int]

    def arcs(self) -> dict[tuple[int, int], float]:
        """Capacity from node to node; parallel links add up."""
        result: dict[tuple[int, int], float] = {}
        for a, b, capacity in self.links:
            for arc in ((a, b), (b, a)):
                result[arc] = result.get(arc, 0.0) + capacity
        return result


def graph_of(
    fabric: Fabric,
    lost_links: Iterable[int] = (),
    lost_nodes: Iterable[int] = (),
    *,
    domain: int = 1,
    scale_up_gbps: float = 0.0,
) -> Graph:
    """The fabric with GPUs as nodes; with `scale_up_gbps` each HB domain has an NVSwitch, and its GPUs relay."""
    gone_links, gone = set(lost_links), set(lost_nodes)
    rows = zip(fabric.links.a.tolist(), fabric.links.b.tolist(), fabric.links.gbps.tolist(), strict=True)
    links = [
        (a, b, float(gbps))
        for row, (a, b, gbps) in enumerate(rows)
        if row not in gone_links and a not in gone and b not in gone
    ]
    relays, nodes = set(range(fabric.gpus, fabric.n_nodes)), fabric.n_nodes
    if scale_up_gbps:
        relays |= set(range(fabric.gpus))
        for start in range(0, fabric.gpus, domain):
            links += [(gpu, nodes, scale_up_gbps) for gpu in range(start, start + domain) if gpu not in gone]
            relays.add(nodes)
            nodes += 1
    return Graph(nodes, tuple(links), frozenset(relays))


def line_rate_gbps(fabric: Fabric, phase: Phase) -> float:
    """All ports of the slowest NIC among the GPUs of a phase."""
    rate = dict.fromkeys(range(phase.first_gpu, phase.first_gpu + phase.gpus), 0.0)
    for end, gbps in zip(fabric.links.a.tolist(), fabric.links.gbps.tolist(), strict=True):
        if end in rate:
            rate[end] += gbps
    return min(rate.values())


def rates_of(
    traffic: Traffic, phase: Phase, step: Step, nic_gbps: float, lost_nodes: Iterable[int] = ()
) -> dict[tuple[int, int], float]:
    """Gb/s from GPU to GPU of a step without `any`; what dead GPUs would send or receive is left out."""
    gone = set(lost_nodes)
    fixed, worst = step_flows(traffic, phase, step)
    assert not worst
    rates: dict[tuple[int, int], float] = {}
    for source, target, rate in fixed:
        if source != target and not {source, target} & gone:
            rates[source, target] = rates.get((source, target), 0.0) + rate * nic_gbps
    return rates


def throughput(graph: Graph, rates: Rates) -> float:
    """The largest part of all rates that the graph carries at once."""
    if not rates:
        return np.inf
    arcs = graph.arcs()
    if not arcs:
        return 0.0
    ends, scale = list(arcs), max(arcs.values())
    limit = np.array(list(arcs.values())) / scale
    sources = sorted({source for source, _ in rates})
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    capacity: list[tuple[int, int]] = []
    column = 1  # column 0 is the throughput
    for number, source in enumerate(sources):
        for index, (tail, head) in enumerate(ends):
            if tail != source and tail not in graph.relays:
                continue
            rows += [number * graph.nodes + head, number * graph.nodes + tail]
            columns += [column, column]
            values += [1.0, -1.0]
            capacity.append((index, column))
            column += 1
    for (source, target), rate in rates.items():
        number = sources.index(source)
        rows += [number * graph.nodes + target, number * graph.nodes + source]
        columns += [0, 0]
        values += [-rate / scale, rate / scale]
    balance = sp.csr_matrix((values, (rows, columns)), shape=(len(sources) * graph.nodes, column))
    over, used = zip(*capacity, strict=True)
    load = sp.csr_matrix((np.ones(len(over)), (over, used)), shape=(len(ends), column))
    aim = np.zeros(column)
    aim[0] = -1
    found = linprog(aim, A_ub=load, b_ub=limit, A_eq=balance, b_eq=np.zeros(balance.shape[0]), method="highs")
    assert found.status == 0, found.message
    return float(-found.fun)


def graph_of_problem(problem: FlowProblem) -> Graph:
    """The graph of a flow problem, each of its links as the physical links it stands for."""
    rows = zip(problem.a, problem.b, problem.capacity, problem.links_of, strict=True)
    links = [(int(a), int(b), float(gbps) / int(many)) for a, b, gbps, many in rows for _ in range(int(many))]
    return Graph(problem.nodes, tuple(links), frozenset(np.flatnonzero(problem.relays).tolist()))


def rates_of_problem(problem: FlowProblem) -> dict[tuple[int, int], float]:
    """Rates from node to node of a flow problem, endpoint by endpoint."""
    rates: dict[tuple[int, int], float] = {}
    for hub in problem.hubs:
        endpoints = endpoints_of(hub.node, hub.group, hub.members)
        for members in endpoints:
            for one, other in permutations(range(len(members)), 2):
                pair = members[one], members[other]
                if pair[0] != pair[1]:
                    rates[pair] = rates.get(pair, 0.0) + hub.pair_rate
    for flow in problem.pairs:
        for source, target, rate in zip(flow.source.tolist(), flow.target.tolist(), flow.rate.tolist(), strict=True):
            rates[source, target] = rates.get((source, target), 0.0) + rate
    return rates


def endpoints_of(node: Sequence[int], group: Sequence[int], members: Sequence[int]) -> list[list[int]]:
    """For each group the nodes of its endpoints, one entry an endpoint."""
    result: dict[int, list[int]] = {}
    for where, name, many in zip(node, group, members, strict=True):
        result.setdefault(int(name), []).extend([int(where)] * int(many))
    return list(result.values())


def problem_throughput(problem: FlowProblem) -> float:
    """The plain LP of a flow problem, no more than its endpoints' links allow."""
    return min(problem.most, throughput(graph_of_problem(problem), rates_of_problem(problem)))


def worst_permutation(graph: Graph, groups: Sequence[tuple[float, Sequence[int]]], fixed: Rates | None = None) -> float:
    """The hose model by enumeration: least throughput over all permutations inside the groups, beside fixed rates.

    `groups` are (Gb/s of a member, nodes of the members). Any traffic of the hose is a mixture of permutations, and the
    inverse of the throughput is convex, so no other traffic is worse.
    """
    worst = np.inf
    for images in product(*(list(permutations(members)) for _, members in groups)):
        rates = dict(fixed or {})
        for (rate, members), image in zip(groups, images, strict=True):
            for source, target in zip(members, image, strict=True):
                if source != target:
                    rates[source, target] = rates.get((source, target), 0.0) + rate
        worst = min(worst, throughput(graph, rates))
    return worst


def shortest_paths(graph: Graph, source: int, target: int) -> Iterator[tuple[list[tuple[int, int]], float]]:
    """Every shortest path with the part of the traffic it gets: each node splits evenly over its links onward."""
    many: dict[tuple[int, int], int] = {}
    for a, b, _ in graph.links:
        for arc in ((a, b), (b, a)):
            many[arc] = many.get(arc, 0) + 1
    hops = {target: 0}
    front = [target]
    while front:
        reached = [tail for head in front for (tail, at) in many if at == head and tail not in hops]
        for node in reached:
            hops[node] = hops[front[0]] + 1
        front = [node for node in dict.fromkeys(reached) if node in graph.relays]
    if source not in hops:
        return

    def onward(node: int, path: list[tuple[int, int]], part: float) -> Iterator[tuple[list[tuple[int, int]], float]]:
        if node == target:
            yield path, part
            return
        steps = {
            head: links
            for (tail, head), links in many.items()
            if tail == node and hops.get(head) == hops[node] - 1 and (head == target or head in graph.relays)
        }
        for head, links in steps.items():
            yield from onward(head, [*path, (node, head)], part * links / sum(steps.values()))

    yield from onward(source, [], 1.0)


def ecmp_by_paths(graph: Graph, rates: Rates) -> float:
    """Throughput when every pair uses its shortest paths, split evenly; 0 where a pair has none."""
    load: dict[tuple[int, int], float] = {}
    for (source, target), rate in rates.items():
        paths = list(shortest_paths(graph, source, target))
        if not paths:
            return 0.0
        for path, part in paths:
            for arc in path:
                load[arc] = load.get(arc, 0.0) + rate * part
    arcs = graph.arcs()
    return min((arcs[arc] / carried for arc, carried in load.items()), default=np.inf)
