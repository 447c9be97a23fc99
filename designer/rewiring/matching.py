"""Which switch of a new network is which one that is there, so that as many links as can be stay.

Links stay where two switches, or a switch and an endpoint, were joined by as many links of that speed and cabling.
With all other tiers fixed, the best choice for one tier is an assignment problem; tiers take turns until nothing is
gained. What no choice exceeds is the Gilmore-Lawler bound of this quadratic assignment problem: a switch taken by
itself keeps at most its links to endpoints and half of the smaller numbers of its bundles, both sorted, and the best
assignment of those numbers is a bound (Gilmore 1962, doi 10.1137/0110022; Lawler 1963, doi 10.1287/mnsc.9.4.586).
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designer.fabric.fabric import KINDS, LEAF, MANAGEMENT, Column, Fabric
from designer.rewiring.assignment import Weights, assigned, most_assigned
from designer.rewiring.moves import medium_codes, nodes_as_old

CODES = 1 << 32  # kinds of links, in a packed number
MOST_ROUNDS = 8
MOST_PAIRS = 1 << 24  # pairs of bundles that are looked at to place a tier
MOST_BOUND = 1 << 24  # pairs of switches up to which the bound looks at them


@dataclass(frozen=True)
class _Bundles:
    """Bundles seen from one of their ends: switch, peer, kind of links, and how many of them."""

    node: Column
    peer: Column
    code: Column
    count: Column


@dataclass(frozen=True)
class Matching:
    """`same_as[i]` is the old node that switch i of the new fabric is, -1 where it is new.

    No matching of the two fabrics keeps more than `kept_at_most` links.
    """

    same_as: Column
    kept_at_most: int


class Matcher:
    """Finds the matching of two fabrics; the old one's GPUs are the first ones of the new one."""

    def __init__(self, old: Fabric, new: Fabric) -> None:
        self.old, self.new = old, new
        self.first = int((new.nodes.kind < LEAF).sum())
        known: dict[str, int] = {}
        models = [[known.setdefault(key, len(known)) for key in fabric.models] for fabric in (old, new)]
        self.old_model, self.new_model = (
            np.where(fabric.nodes.model >= 0, np.array([*numbers, -1])[fabric.nodes.model], -1)
            for fabric, numbers in zip((old, new), models, strict=True)
        )
        straight, turned = medium_codes(old, new)
        self.old_bundles, self.new_bundles = (
            _bundles(fabric, straight[number], turned[number]) for number, fabric in enumerate((old, new))
        )
        self.hosts = self._host_weights(straight)
        self.same = np.full(new.n_nodes, -1, dtype=np.int64)

    def run(self) -> Matching:
        """Tiers in turn, until no link more stays; what is left of the old switches then stands in for new ones."""
        tiers = [kind for kind in range(LEAF, len(KINDS)) if (self.new.nodes.kind == kind).any()]
        best, kept = self.same, -1
        for _ in range(MOST_ROUNDS):
            for kind in tiers:
                self._place(kind)
            now = self._kept(self.same)
            if now <= kept:
                break
            best, kept = self.same.copy(), now
        self.same = best
        self._fill(tiers)
        return Matching(self.same[self.first :], self.bound())

    def _host_weights(self, straight: list[Column]) -> Weights:
        """Links to endpoints that two switches have in common: of the same NIC port, speed and cabling."""
        as_old = nodes_as_old(self.old, self.new, np.full(self.new.n_nodes - self.first, -1))
        sides: list[tuple[Column, Column]] = []
        for number, (fabric, name) in enumerate(((self.old, np.arange(self.old.n_nodes)), (self.new, as_old))):
            links = fabric.links
            ends = np.flatnonzero((fabric.nodes.kind[links.a] <= MANAGEMENT) & (name[links.a] >= 0))
            port = (name[links.a[ends]] * 4096 + links.a_cage[ends]) * 4096 + links.a_lane[ends]
            code = straight[number][links.medium[ends]] * (1 << 20) + links.gbps[ends]
            order = np.argsort(port)
            sides.append((np.stack([port, code, links.b[ends]])[:, order], port[order]))
        (old, old_port), (new, _) = sides
        if not old.shape[1] or not new.shape[1]:
            return Weights(*(np.zeros(0, dtype=np.int64) for _ in range(3)))
        port: Column = new[0]
        at = np.minimum(np.searchsorted(old_port, port), old.shape[1] - 1)
        same = (old[0][at] == new[0]) & (old[1][at] == new[1])
        same &= self.old_model[old[2][at]] == self.new_model[new[2]]
        return self._summed(new[2][same], old[2][at][same], np.ones(int(same.sum()), dtype=np.int64))

    def _summed(self, new: Column, old: Column, links: Column) -> Weights:
        pairs, where = np.unique(new * self.old.n_nodes + old, return_inverse=True)
        total = np.bincount(where.reshape(-1), links, len(pairs)).astype(np.int64)
        return Weights(pairs // self.old.n_nodes, pairs % self.old.n_nodes, total)

    def _weights(self, kind: int) -> Weights:
        """What the switches of a tier keep as each old one, the other tiers as they are placed."""
        chosen = self.new.nodes.kind[self.hosts.new] == kind
        parts = [(self.hosts.new[chosen], self.hosts.old[chosen], self.hosts.links[chosen])]
        here, there = self.new_bundles, self.old_bundles
        rows = np.flatnonzero((self.new.nodes.kind[here.node] == kind) & (self.same[here.peer] >= 0))
        key = self.same[here.peer[rows]] * CODES + here.code[rows]
        order = np.argsort(there.peer * CODES + there.code, kind="stable")
        sorted_key = (there.peer * CODES + there.code)[order]
        low, high = np.searchsorted(sorted_key, key), np.searchsorted(sorted_key, key, side="right")
        if int((high - low).sum()) <= MOST_PAIRS:
            mine = np.repeat(rows, high - low)
            offset = np.arange(len(mine)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
            theirs: Column = order[np.repeat(low, high - low) + offset]
            alike = self.new_model[here.node[mine]] == self.old_model[there.node[theirs]]
            mine, theirs = mine[alike], theirs[alike]
            parts.append((here.node[mine], there.node[theirs], np.minimum(here.count[mine], there.count[theirs])))
        return self._summed(*(np.concatenate([part[at] for part in parts]) for at in range(3)))

    def _place(self, kind: int) -> None:
        """The best choice of old switches for a tier, of those that the other tiers leave."""
        mine = self.new.nodes.kind == kind
        taken = set(self.same[~mine & (self.same >= 0) & (self.new.nodes.kind >= LEAF)].tolist())
        weights = self._weights(kind)
        free = np.array([node not in taken for node in weights.old.tolist()], dtype=np.bool_)
        weights = Weights(weights.new[free], weights.old[free], weights.links[free])
        self.same[mine] = -1
        for new, old in assigned(weights, self.new.n_nodes, self.old.n_nodes):
            self.same[new] = old

    def _kept(self, same: Column) -> int:
        """Links that stay, bundle by bundle, wherever their ports are."""
        ends = self.hosts
        kept = int(ends.links[same[ends.new] == ends.old].sum())
        there = {
            (node, peer, code): count
            for node, peer, code, count in zip(*(part.tolist() for part in _columns(self.old_bundles)), strict=True)
        }
        twice = sum(
            min(count, there.get((node, peer, code), 0))
            for node, peer, code, count in zip(
                same[self.new_bundles.node].tolist(),
                same[self.new_bundles.peer].tolist(),
                self.new_bundles.code.tolist(),
                self.new_bundles.count.tolist(),
                strict=True,
            )
        )
        return kept + twice // 2

    def _fill(self, tiers: list[int]) -> None:
        """Old switches that keep no link take the place of new ones of their model, of the same tier first."""
        used = set(self.same[self.same >= 0].tolist())
        for same_tier in (True, False):
            for kind in tiers:
                open_nodes = np.flatnonzero((self.new.nodes.kind == kind) & (self.same < 0))
                spare: dict[int, list[int]] = defaultdict(list)
                for node in np.flatnonzero(self.old.nodes.kind >= LEAF)[::-1].tolist():
                    if node not in used and (not same_tier or self.old.nodes.kind[node] == kind):
                        spare[int(self.old_model[node])].append(node)
                for node in open_nodes.tolist():
                    if spare[int(self.new_model[node])]:
                        self.same[node] = spare[int(self.new_model[node])].pop()
                        used.add(int(self.same[node]))

    def bound(self) -> int:
        """No matching keeps more links than this."""
        halves = self._half_bundles
        new, old = (np.flatnonzero(fabric.nodes.kind >= LEAF) for fabric in (self.new, self.old))
        if len(new) * len(old) > MOST_BOUND:
            return min(self.new.n_links, self.old.n_links)
        table = np.zeros((len(new), len(old)), dtype=np.int64)
        new_profile, old_profile = self._profiles
        for here in np.unique(new_profile).tolist():
            for there in np.unique(old_profile).tolist():
                table[np.ix_(new_profile == here, old_profile == there)] = halves[here][there]
        new_at, old_at = ({node: at for at, node in enumerate(nodes.tolist())} for nodes in (new, old))
        ends = self.hosts.new.tolist(), self.hosts.old.tolist(), self.hosts.links.tolist()
        for node, other, links in zip(*ends, strict=True):
            table[new_at[node], old_at[other]] += 2 * links
        rows, columns = np.nonzero(table)
        weights = Weights(rows, columns, table[rows, columns])
        return most_assigned(weights, len(new), len(old)) // 2

    @cached_property
    def _profiles(self) -> tuple[Column, Column]:
        """For every switch of the new and of the old fabric the number of what it looks like."""
        self._looks: list[tuple[int, dict[int, Column]]] = []
        known: dict[object, int] = {}
        result: list[Column] = []
        for fabric, bundles, model in (
            (self.new, self.new_bundles, self.new_model),
            (self.old, self.old_bundles, self.old_model),
        ):
            counts: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
            for node, code, count in zip(
                bundles.node.tolist(), bundles.code.tolist(), bundles.count.tolist(), strict=True
            ):
                counts[node][code].append(count)
            numbers: list[int] = []
            for node in np.flatnonzero(fabric.nodes.kind >= LEAF).tolist():
                look = tuple(sorted((code, tuple(sorted(found, reverse=True))) for code, found in counts[node].items()))
                key = (int(model[node]), look)
                if key not in known:
                    known[key] = len(known)
                    self._looks.append((key[0], {code: np.array(found) for code, found in look}))
                numbers.append(known[key])
            result.append(np.array(numbers, dtype=np.int64))
        return result[0], result[1]

    @cached_property
    def _half_bundles(self) -> list[list[int]]:
        """Links between switches that one of the first look keeps at most as one of the second, of the same model."""
        _ = self._profiles
        return [[_common(one, other) for other in self._looks] for one in self._looks]


def _columns(bundles: _Bundles) -> tuple[Column, Column, Column, Column]:
    return bundles.node, bundles.peer, bundles.code, bundles.count


def _common(one: tuple[int, dict[int, Column]], other: tuple[int, dict[int, Column]]) -> int:
    """Sums of the smaller of two numbers, both sorted: no pairing of the bundles has more in common."""
    if one[0] != other[0]:
        return 0
    total = 0
    for code, counts in one[1].items():
        theirs = other[1].get(code)
        if theirs is not None:
            both = min(len(counts), len(theirs))
            total += int(np.minimum(counts[:both], theirs[:both]).sum())
    return total


def _bundles(fabric: Fabric, straight: Column, turned: Column) -> _Bundles:
    """Links between switches as bundles, from both of their ends."""
    links = fabric.links
    rows = np.flatnonzero(fabric.nodes.kind[links.a] >= LEAF)
    a, b, medium, gbps = links.a[rows], links.b[rows], links.medium[rows], links.gbps[rows]
    # Kinds of cabling and speeds by numbers that fit into a key together.
    speed = np.minimum(gbps, (1 << 17) - 1)
    ends = np.concatenate([np.stack([a, b, straight[medium], speed]), np.stack([b, a, turned[medium], speed])], axis=1)
    found, counts = np.unique(ends, axis=1, return_counts=True)
    return _Bundles(found[0], found[1], found[2] * (1 << 17) + found[3], counts)
