"""A lower bound for grids: endpoints with a port on each side of a two-sided network of switches.

Where relays can be coloured so that links join different colours only, and every endpoint has one port to each colour,
half of all traffic leaves by the first port and arrives by the second, over the one link between the two relays; the
other half the other way round. The loads of this routing are counted on every arc, so what it carries is proven.
Even splitting over shortest paths is counted the same way.
"""

from dataclasses import dataclass

import numpy as np

from designer.certify.problem import Floats, FlowProblem, Hubs, Ints, link_keys, weigh
from designer.certify.view import Bools


@dataclass(frozen=True)
class GridThroughput:
    """What a grid carries over crossing routes, and with even splitting over shortest paths."""

    crossing: float
    ecmp: float


def grid_throughput(problem: FlowProblem) -> GridThroughput | None:
    """Throughput under both routings; None where the problem is no grid, or some route has no link.

    Even splitting differs for endpoints that share a relay: what they send to each other takes that relay alone.
    """
    ports = _two_ports(problem)
    if ports is None or any(hub.hose_rate for hub in problem.hubs):
        return None
    first, second = ports
    crossing, ecmp = _Loads(problem), _Loads(problem)
    for pair in problem.pairs:
        sides = (first, second), (second, first)
        shared = [own[pair.source] == own[pair.target] for own, _ in sides]
        alone = shared[0] ^ shared[1]
        for (own, other), same in zip(sides, shared, strict=True):
            half = pair.rate / 2
            crossing.route(own[pair.source], other[pair.target], half)
            crossing.port(pair.source, pair.target, own, half)
            ecmp.route(own[pair.source], other[pair.target], np.where(shared[0] | shared[1], 0.0, half))
            ecmp.port(pair.source, pair.target, own, np.where(alone, np.where(same, pair.rate, 0.0), half))
    for hub in problem.hubs:
        _add_hub(hub, first, second, crossing, ecmp)
    if not (crossing.complete and ecmp.complete):
        return None
    return GridThroughput(*(min(loads.carried(), problem.most) for loads in (crossing, ecmp)))


class _Loads:
    """Loads of the arcs between relays, and of the ports of the endpoints by their relay."""

    def __init__(self, problem: FlowProblem) -> None:
        self.problem = problem
        self.key, self.link = problem.sorted_links
        self.arcs = np.zeros(2 * len(self.link))  # arc i is link i from a to b, arc i + links the other way
        self.complete = True

    def route(self, tail: Ints, head: Ints, rate: Floats) -> None:
        """Traffic from relay to relay over the link between them; none where both are one."""
        some = (tail != head) & (rate > 0)
        self._add(tail[some], head[some], rate[some])

    def port(self, source: Ints, target: Ints, own: Ints, rate: Floats) -> None:
        """What leaves the source by its port to its own relay, and arrives at the target by its port of that side."""
        self._add(source, own[source], rate)
        self._add(own[target], target, rate)

    def _add(self, tail: Ints, head: Ints, rate: Floats) -> None:
        wanted = link_keys(tail, head, self.problem.nodes)
        at = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        if (self.key[at] != wanted).any():
            self.complete = False
            return
        arc = np.where(self.problem.a[self.link[at]] == tail, self.link[at], self.link[at] + len(self.link))
        np.add.at(self.arcs, arc, rate)

    def carried(self) -> float:
        """The part of the demand at which the first arc is full."""
        busy = self.arcs > 0
        return float((self.problem.arc_capacity[busy] / self.arcs[busy]).min(initial=np.inf))


def _two_ports(problem: FlowProblem) -> tuple[Ints, Ints] | None:
    """For every endpoint its relay of either colour (-1 for relays); None where the problem is no grid."""
    relays = problem.relays
    if len(problem.a) == 0:
        return None
    between = relays[problem.a] & relays[problem.b]
    colour = _coloured(problem, between)
    ends = problem.sources
    if colour is None or relays[ends].any():
        return None
    tail, head = problem.tail, problem.head
    hosts = ~relays[tail] & relays[head]
    first, second = np.full(problem.nodes, -1, dtype=np.int64), np.full(problem.nodes, -1, dtype=np.int64)
    for side, table in ((0, first), (1, second)):
        chosen = hosts & (colour[head] == side)
        if (np.bincount(tail[chosen], minlength=problem.nodes)[ends] != 1).any():
            return None
        table[tail[chosen]] = head[chosen]
    return first, second


def _coloured(problem: FlowProblem, between: Bools) -> Ints | None:
    """0 or 1 for every relay, different at the ends of every link between relays; None where that cannot be."""
    colour = np.full(problem.nodes, -1, dtype=np.int64)
    a, b = problem.a[between], problem.b[between]
    if not len(a):
        return None
    colour[a[0]] = 0
    while True:
        before = int((colour >= 0).sum())
        for one, other in ((a, b), (b, a)):
            known = (colour[one] >= 0) & (colour[other] < 0)
            colour[other[known]] = 1 - colour[one[known]]
        if int((colour >= 0).sum()) == before:
            break
    if (colour[problem.relays] < 0).any() or (colour[a] == colour[b]).any():
        return None
    return colour


def _add_hub(hub: Hubs, first: Ints, second: Ints, crossing: _Loads, ecmp: _Loads) -> None:
    """An all-to-all: each group's members by relays of both colours, less those that share one."""
    order = np.argsort(hub.group, kind="stable")
    bounds = np.searchsorted(hub.group[order], np.arange(hub.groups + 1))
    for own, other in ((first, second), (second, first)):
        for number in range(hub.groups):
            rows = order[bounds[number] : bounds[number + 1]]
            node, members = hub.node[rows], hub.members[rows].astype(np.float64)
            size, rate = members.sum(), hub.pair_rate
            tail, of_tail = np.unique(own[node], return_inverse=True)
            head, of_head = np.unique(other[node], return_inverse=True)
            of_tail, of_head = of_tail.reshape(-1), of_head.reshape(-1)
            here, there = weigh(of_tail, members, len(tail)), weigh(of_head, members, len(head))
            cell = np.zeros((len(tail), len(head)))
            np.add.at(cell, (of_tail, of_head), members)
            itself = np.zeros_like(cell)
            np.add.at(itself, (of_tail, of_head), members * members)
            ends = np.repeat(tail, len(head)), np.tile(head, len(tail))
            crossing.route(*ends, ((np.outer(here, there) - itself) * rate / 2).reshape(-1))
            ecmp.route(*ends, ((here[:, None] - cell) * (there[None, :] - cell) * rate / 2).reshape(-1))
            in_cell = cell[of_tail, of_head]
            on_own, on_other = here[of_tail] - in_cell, there[of_head] - in_cell
            half = members * (size - members) * rate / 2
            even = members * rate * (on_own + (size - members - on_own - on_other) / 2)
            for loads, sent in ((crossing, half), (ecmp, even)):
                loads.port(node, node, own, sent)
