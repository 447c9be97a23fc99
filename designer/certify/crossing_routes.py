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
    """What a grid carries over crossing routes, and with even splitting over shortest paths (None: not counted)."""

    crossing: float
    ecmp: float | None


def grid_throughput(problem: FlowProblem) -> GridThroughput | None:
    """Throughput under both routings; None where the problem is no whole grid.

    Even splitting differs for endpoints that share a relay: what they send to each other takes that relay alone.
    """
    ports = _two_ports(problem)
    if ports is None or any(hub.hose_rate for hub in problem.hubs):
        return None
    first, second = ports
    if (first[problem.sources] < 0).any() or (second[problem.sources] < 0).any():
        return None
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
    if crossing.missing or ecmp.missing:
        return None
    return GridThroughput(*(min(loads.carried(), problem.most) for loads in (crossing, ecmp)))


def damaged_grid_throughput(problem: FlowProblem) -> float | None:
    """What routes around the lost parts of a grid carry of pairs; None where it is no grid, or they find no way.

    A pair uses both crossings where both its ends have the ports for them, else the one that is left, else the ports
    of one side that both have, over any relay of the other. A crossing whose link is lost goes evenly over two further
    relays.
    """
    ports = _two_ports(problem)
    if ports is None or problem.hubs:
        return None
    first, second = ports
    loads = _Loads(problem)
    for pair in problem.pairs:
        source, target, rate = pair.source, pair.target, pair.rate
        there = [(own[source] >= 0) & (other[target] >= 0) for own, other in ((first, second), (second, first))]
        crossings = there[0].astype(np.int64) + there[1]
        for (own, other), some in zip(((first, second), (second, first)), there, strict=True):
            part = rate[some] / crossings[some]
            loads.route(own[source[some]], other[target[some]], part)
            loads.leave(source[some], own[source[some]], part)
            loads.leave(other[target[some]], target[some], part)
        left = crossings == 0
        for own in (first, second):
            some = left & (own[source] >= 0) & (own[target] >= 0)
            loads.spread(own[source[some]], own[target[some]], rate[some])
            loads.leave(source[some], own[source[some]], rate[some])
            loads.leave(own[target[some]], target[some], rate[some])
            left &= ~some
        if left.any():
            return None
    if not loads.detour_missing():
        return None
    return min(loads.carried(), problem.most)


class _Loads:
    """Loads of the arcs between relays, and of the ports of the endpoints by their relay."""

    def __init__(self, problem: FlowProblem) -> None:
        self.problem = problem
        self.key, self.link = problem.sorted_links
        self.arcs = np.zeros(2 * len(self.link))  # arc i is link i from a to b, arc i + links the other way
        self.missing: list[tuple[Ints, Ints, Floats]] = []

    def route(self, tail: Ints, head: Ints, rate: Floats) -> None:
        """Traffic from relay to relay over the link between them; none where both are one."""
        some = (tail != head) & (rate > 0)
        self.leave(tail[some], head[some], rate[some])

    def port(self, source: Ints, target: Ints, own: Ints, rate: Floats) -> None:
        """What leaves the source by its port to its own relay, and arrives at the target by its port of that side."""
        self.leave(source, own[source], rate)
        self.leave(own[target], target, rate)

    def leave(self, tail: Ints, head: Ints, rate: Floats) -> None:
        """Traffic over the link from each tail to its head; what has none is noted as missing."""
        wanted = link_keys(tail, head, self.problem.nodes)
        at = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        found = self.key[at] == wanted
        if not found.all():
            self.missing.append((tail[~found], head[~found], rate[~found]))
        tail, at = tail[found], at[found]
        arc = np.where(self.problem.a[self.link[at]] == tail, self.link[at], self.link[at] + len(self.link))
        np.add.at(self.arcs, arc, rate[found])

    def spread(self, tail: Ints, head: Ints, rate: Floats) -> None:
        """Traffic between relays of one side, evenly over the relays of the other that both have links to."""
        some = tail != head
        pairs, index = np.unique(tail[some] * self.problem.nodes + head[some], return_inverse=True)
        for pair, total in zip(pairs.tolist(), weigh(index, rate[some], len(pairs)).tolist(), strict=True):
            one, other = divmod(pair, self.problem.nodes)
            self._over(one, np.intersect1d(self._next(one), self._next(other)), other, total)

    def _over(self, one: int, between: Ints, other: int, total: float) -> None:
        many = len(between)
        if not many:
            self.missing.append((np.array([-1]), np.array([-1]), np.array([total])))
            return
        share = np.full(many, total / many)
        self.leave(np.full(many, one), between, share)
        self.leave(between, np.full(many, other), share)

    def _next(self, relay: int) -> Ints:
        a, b, relays = self.problem.a, self.problem.b, self.problem.relays
        found = np.concatenate([b[a == relay], a[b == relay]])
        return found[relays[found]]

    def detour_missing(self) -> bool:
        """Sends what misses its link p -> q over p -> k -> l -> q, evenly over all k and l; whether that can be."""
        missing, self.missing = self.missing, []
        for tails, heads, rates in missing:
            for tail, head, rate in zip(tails.tolist(), heads.tolist(), rates.tolist(), strict=True):
                if tail < 0 or not (self.problem.relays[tail] and self.problem.relays[head]):
                    return False
                out, into = self._next(tail), self._next(head)
                if not (len(out) and len(into)):
                    return False
                self.leave(np.full(len(out), tail), out, np.full(len(out), rate / len(out)))
                self.leave(into, np.full(len(into), head), np.full(len(into), rate / len(into)))
                ends = np.repeat(out, len(into)), np.tile(into, len(out))
                self.leave(*ends, np.full(len(ends[0]), rate / len(ends[0])))
        return not self.missing

    def carried(self) -> float:
        """The part of the demand at which the first arc is full."""
        busy = self.arcs > 0
        return float((self.problem.arc_capacity[busy] / self.arcs[busy]).min(initial=np.inf))


def _two_ports(problem: FlowProblem) -> tuple[Ints, Ints] | None:
    """For every endpoint its relay of either colour, -1 where it has no port there; None where it is no grid."""
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
        if (np.bincount(tail[chosen], minlength=problem.nodes)[ends] > 1).any():
            return None
        table[tail[chosen]] = head[chosen]
    every = np.stack([first, second])[:, ends]
    both = (every >= 0).all(axis=0).any()  # some endpoint has a port on each side, else it is another kind of network
    return (first, second) if both and (every >= 0).any(axis=0).all() else None


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
    if (colour[a] < 0).any() or (colour[a] == colour[b]).any():
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
