"""A flow problem: a plain graph with capacities, and what its nodes send to each other.

This is what the mathematics of the certificate works on; `network.py` makes it from a fabric. Nodes are numbered from
0; links are undirected with the same capacity in both directions.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]


def joined(n: int, one: Ints, other: Ints) -> Ints:
    """The least node that each of n nodes is connected to by the given links."""
    label = np.arange(n)
    while True:
        low = np.minimum(label[one], label[other])
        finer = label.copy()
        np.minimum.at(finer, label[one], low)
        np.minimum.at(finer, label[other], low)
        while not np.array_equal(finer, finer[finer]):
            finer = finer[finer]
        if np.array_equal(finer, label):
            return label
        label = finer


def link_keys(a: Ints, b: Ints, nodes: int) -> Ints:
    """A number for each pair of ends, whichever comes first."""
    return np.minimum(a, b) * nodes + np.maximum(a, b)


def weigh(index: Ints, weight: Ints | Floats, size: int) -> Floats:
    """Sums of the weights of each index 0 .. size-1."""
    return np.asarray(np.bincount(index.reshape(-1), weight, size), dtype=np.float64)


@dataclass(frozen=True)
class Hubs:
    """All-to-all inside groups: entry i says that `members[i]` endpoints of group `group[i]` sit at node `node[i]`.

    Every member sends `pair_rate` to every other member of its group. A node and group stand together once.
    With a `hose_rate` the group means `any`: each member sends and receives that much, whoever the others are.
    """

    node: Ints
    group: Ints
    members: Ints
    pair_rate: float
    hose_rate: float = 0.0

    @cached_property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.group.max(initial=-1)) + 1


@dataclass(frozen=True)
class Pairs:
    """Rates from node to node; a pair stands once, and never from a node to itself."""

    source: Ints
    target: Ints
    rate: Floats


@dataclass(frozen=True)
class FlowProblem:
    """How much of a demand a graph carries.

    `label` tells nodes apart that are not alike for reasons outside the graph. A node that does not `relay` passes no
    traffic of others on. `links_of[i]` physical links make up link i, for ECMP. `most` is a bound on the throughput
    that the endpoints' own links set (they are not part of the graph where an endpoint has just one).
    """

    nodes: int
    label: Ints
    relays: NDArray[np.bool_]
    a: Ints
    b: Ints
    capacity: Floats
    links_of: Ints
    hubs: tuple[Hubs, ...]
    pairs: tuple[Pairs, ...]
    most: float = np.inf

    @cached_property
    def tail(self) -> Ints:
        """Where each arc begins; arc i + links is link i backwards."""
        return np.concatenate([self.a, self.b])

    @cached_property
    def head(self) -> Ints:
        """Where each arc ends."""
        return np.concatenate([self.b, self.a])

    @cached_property
    def arc_capacity(self) -> Floats:
        """Capacity of each arc."""
        return np.concatenate([self.capacity, self.capacity])

    @cached_property
    def arc_links(self) -> Ints:
        """Physical links of each arc."""
        return np.concatenate([self.links_of, self.links_of])

    @cached_property
    def sorted_links(self) -> tuple[Ints, Ints]:
        """Keys of the links by their ends, sorted, and the link of each key."""
        key = link_keys(self.a, self.b, self.nodes)
        order = np.argsort(key)
        return key[order], order

    @cached_property
    def _hub_rows(self) -> tuple[tuple[Ints, Ints], ...]:
        """For each hub component: entries in the order of their node, and in the order of their group."""
        return tuple((np.argsort(hub.node, kind="stable"), np.argsort(hub.group, kind="stable")) for hub in self.hubs)

    @cached_property
    def sources(self) -> Ints:
        """Nodes that send or receive."""
        parts = [hub.node for hub in self.hubs]
        parts += [nodes for pair in self.pairs for nodes in (pair.source, pair.target)]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)

    def row(self, source: int) -> tuple[Ints, Floats]:
        """Targets and rates of what `source` sends to other nodes."""
        return self._exchange(source, outgoing=True)

    def column(self, target: int) -> tuple[Ints, Floats]:
        """Sources and rates of what other nodes send to `target`."""
        return self._exchange(target, outgoing=False)

    def _exchange(self, node: int, *, outgoing: bool) -> tuple[Ints, Floats]:
        others: list[Ints] = []
        rates: list[Floats] = []
        for hub, (by_node, by_group) in zip(self.hubs, self._hub_rows, strict=True):
            low, high = np.searchsorted(hub.node[by_node], [node, node + 1])
            for entry in by_node[low:high]:
                group = hub.group[entry]
                first, last = np.searchsorted(hub.group[by_group], [group, group + 1])
                members = by_group[first:last]
                members = members[hub.node[members] != node]
                others.append(hub.node[members])
                rates.append(hub.members[members] * (float(hub.members[entry]) * hub.pair_rate))
        for pair in self.pairs:
            mine, theirs = (pair.source, pair.target) if outgoing else (pair.target, pair.source)
            chosen = np.flatnonzero(mine == node)
            others.append(theirs[chosen])
            rates.append(pair.rate[chosen])
        if not others:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        other, index = np.unique(np.concatenate(others), return_inverse=True)
        return other, weigh(index, np.concatenate(rates), len(other))


def digest(problem: FlowProblem) -> str:
    """A name that equal problems share, and (by SHA-256) no others."""
    summary = sha256()
    for part in (
        problem.label,
        problem.relays,
        problem.a,
        problem.b,
        problem.capacity,
        problem.links_of,
        np.array([problem.nodes, problem.most]),
    ):
        summary.update(np.ascontiguousarray(part).tobytes() + b"|")
    for hub in problem.hubs:
        for part in (hub.node, hub.group, hub.members, np.array([hub.pair_rate, hub.hose_rate])):
            summary.update(np.ascontiguousarray(part).tobytes() + b"|")
    for pair in problem.pairs:
        for part in (pair.source, pair.target, pair.rate):
            summary.update(np.ascontiguousarray(part).tobytes() + b"|")
    return summary.hexdigest()
