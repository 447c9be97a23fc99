"""Symmetries of a flow problem: colours that are cheap, and automorphisms that are checked link by link.

Colour refinement tells nodes apart that cannot be exchanged. It may leave together what is not alike (a full mesh under
a shift is the example), so nothing is concluded from colours alone but upper bounds. What is concluded from symmetry
rests on permutations of the nodes that were verified to map every link and every demand onto an equal one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designer.certify.problem import FlowProblem, Ints, joined, link_keys

Hashes = NDArray[np.uint64]
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
MAX_FAILED_MOVES = 60
MAX_CELLS = 300  # beyond, a problem has too little symmetry for the search to pay


def mix(value: Hashes) -> Hashes:
    """The finalizer of splitmix64: a hash, so that colours mean the same wherever they come from."""
    mixed = value ^ (value >> np.uint64(30))
    mixed = mixed * _ONE
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _TWO
    return mixed ^ (mixed >> np.uint64(31))


class Refiner:
    """Colour refinement of the graph and the demand together; a group is a node of its own, without capacity.

    Neighbours of node `tails[i]` are `heads` from `starts[i]` on.
    """

    def __init__(self, problem: FlowProblem, arc_labels: Ints | None = None, node_labels: Ints | None = None) -> None:
        self.problem = problem
        tails, heads, labels = [problem.tail], [problem.head], [_arc_labels(problem, arc_labels)]
        total, kind = problem.nodes, 1 << 40
        for hub in problem.hubs:
            node = total + hub.group
            total += hub.groups
            label = kind + 4 * hub.members
            tails += [hub.node, node]
            heads += [node, hub.node]
            labels += [label, label + 1]
            kind += 1 << 40
        for pair in problem.pairs:
            label = kind + 4 * np.unique(pair.rate, return_inverse=True)[1].reshape(-1)
            tails += [pair.source, pair.target]
            heads += [pair.target, pair.source]
            labels += [label + 2, label + 3]
            kind += 1 << 40
        self.total = total
        tail = np.concatenate(tails)
        order = np.argsort(tail, kind="stable")
        self.heads = np.concatenate(heads)[order]
        self._label = mix(np.concatenate(labels)[order].astype(np.uint64)) * _PRIME
        self.tails, self.starts = np.unique(tail[order], return_index=True)
        base = np.full(total, 1, dtype=np.int64)
        base[: problem.nodes] = 2 + 2 * (problem.label if node_labels is None else node_labels) + problem.relays
        if node_labels is not None:
            base[: problem.nodes] += 1 << 30
        self.start = mix(base.astype(np.uint64))
        self.base = self.refine(self.start)

    def refine(self, colour: Hashes) -> Hashes:
        """Split colours by the colours of the neighbours until nothing changes."""
        count = len(np.unique(colour))
        while True:
            key = mix(self._label + mix(colour[self.heads]))
            total = np.zeros(self.total, dtype=np.uint64)
            if len(key):
                total[self.tails] = np.add.reduceat(key, self.starts)
            finer = mix(colour * _PRIME + total)
            finer_count = len(np.unique(finer))
            if finer_count == count:
                return colour
            colour, count = finer, finer_count

    def seen_from(self, node: int) -> Hashes:
        """Colours after `node` was made unique."""
        colour = self.base.copy()
        colour[node] = np.uint64(12345)
        return self.refine(colour)


def _arc_labels(problem: FlowProblem, given: Ints | None) -> Ints:
    if given is not None:
        return given
    keys = np.stack([problem.arc_capacity, problem.arc_links.astype(np.float64)], axis=1)
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)


def joint_classes(*columns: Ints) -> Ints:
    """Numbers for the distinct rows of some columns of small non-negative numbers, in the order of the rows."""
    return np.unique(joint_keys(*columns), return_inverse=True)[1].reshape(-1)


def joint_keys(*columns: Ints) -> Ints:
    """A number for each row of some columns of small non-negative numbers; equal rows have equal ones."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column
    return key


@dataclass(frozen=True)
class Orbits:
    """Classes of nodes and arcs under verified automorphisms; `generators` of them were found."""

    node: Ints
    arc: Ints
    generators: int

    @property
    def node_count(self) -> int:
        """Number of node classes."""
        return int(self.node.max(initial=-1)) + 1

    @property
    def arc_count(self) -> int:
        """Number of arc classes."""
        return int(self.arc.max(initial=-1)) + 1


def apart_orbits(problem: FlowProblem) -> Orbits:
    """Every node and arc in a class of its own: what holds without any symmetry."""
    return Orbits(np.arange(problem.nodes), np.arange(len(problem.tail)), 0)


def verified(problem: FlowProblem, image: Ints) -> bool:
    """Whether the permutation `image` of the nodes maps links onto links, demands onto demands, kinds onto kinds."""
    n = problem.nodes
    if not np.array_equal(np.sort(image), np.arange(n)):
        return False
    if (problem.label[image] != problem.label).any() or (problem.relays[image] != problem.relays).any():
        return False
    if link_image(problem, image) is None:  # nodes are permuted, so no two links have one image
        return False
    for pair in problem.pairs:
        before, after = pair.source * n + pair.target, image[pair.source] * n + image[pair.target]
        one, other = np.argsort(before), np.argsort(after)
        if (before[one] != after[other]).any() or (pair.rate[one] != pair.rate[other]).any():
            return False
    return all(_maps_groups(hub.node, hub.group, hub.members, image, n) for hub in problem.hubs)


def link_image(problem: FlowProblem, image: Ints) -> Ints | None:
    """The link that each link is mapped to; None where one is mapped to no link, or to an unequal one."""
    keys, order = problem.sorted_links
    wanted = link_keys(image[problem.a], image[problem.b], problem.nodes)
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    if (keys[place] != wanted).any():
        return None
    target = order[place]
    equal = (problem.capacity[target] == problem.capacity) & (problem.links_of[target] == problem.links_of)
    return target if equal.all() else None


def _maps_groups(node: Ints, group: Ints, members: Ints, image: Ints, n: int) -> bool:
    """Whether the groups, as sets of (node, members), are mapped onto each other.

    The image of a group is the group that holds the image of its first entry; then all entries must agree.
    """
    order = np.lexsort((node, group))
    node, group, members = node[order], group[order], members[order]
    groups = int(group.max(initial=-1)) + 1
    key = np.sort(group * n + node)
    # A node may be in several groups of one component only where it stands for several endpoints.
    holders = np.full(n, -1, dtype=np.int64)
    holders[node] = group
    if len(np.unique(node)) != len(node):
        return _maps_many_groups(node, group, members, image)
    to_group = np.full(groups, -1, dtype=np.int64)
    to_group[group] = holders[image[node]]
    if (to_group < 0).any() or (holders[image[node]] != to_group[group]).any():
        return False
    moved = to_group[group] * n + image[node]
    position = np.argsort(moved)
    return bool((np.sort(moved) == key).all() and (members[position] == members[np.argsort(group * n + node)]).all())


def _maps_many_groups(node: Ints, group: Ints, members: Ints, image: Ints) -> bool:
    """The same where nodes stand in several groups: equal multisets of the groups, each as its sorted entries."""
    groups = int(group.max(initial=-1)) + 1
    bounds = np.searchsorted(group, np.arange(groups + 1))
    before: list[bytes] = []
    after: list[bytes] = []
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        own = np.sort(node[first:last] * (1 << 24) + members[first:last])
        moved = np.sort(image[node[first:last]] * (1 << 24) + members[first:last])
        before.append(own.tobytes())
        after.append(moved.tobytes())
    return sorted(before) == sorted(after)


class SymmetryFinder:
    """Looks for automorphisms by rotating nodes of one colour and letting refinement complete the rest."""

    def __init__(self, problem: FlowProblem) -> None:
        self.problem = problem
        self.refiner = Refiner(problem)
        base = np.unique(self.refiner.base[: problem.nodes], return_inverse=True)[1].reshape(-1)
        self.cell = base.astype(np.int64)
        self.arc_cell = joint_classes(self.cell[problem.tail], self.cell[problem.head], _arc_labels(problem, None))
        self.arc_cells = int(self.arc_cell.max(initial=-1)) + 1

    def find(self) -> Orbits:
        """Orbits under all automorphisms found; colour classes that stayed split are split in the result."""
        problem = self.problem
        node, arc = np.arange(problem.nodes), np.arange(len(problem.tail))
        generators = failed = 0
        if int(self.cell.max(initial=0)) > MAX_CELLS:
            return apart_orbits(problem)
        for cell, order, image in self._moves():
            if self._done(node, arc) or failed >= MAX_FAILED_MOVES:
                break
            if not self._useful(cell, node, arc):
                continue
            permutation = self._complete(order, image)
            if permutation is None:
                failed += 1
                continue
            generators += 1
            node = _join(node, permutation)
            arc = _join(arc, self._arc_image(permutation))
        node_ids = np.unique(node, return_inverse=True)[1].reshape(-1)
        arc_ids = np.unique(arc, return_inverse=True)[1].reshape(-1)
        return Orbits(node_ids, arc_ids, generators)

    def _done(self, node: Ints, arc: Ints) -> bool:
        """Whether the orbits are the colour classes, so that no more can be joined."""
        cells = int(self.cell.max(initial=-1)) + 1
        # A class is named by its least element, which so names itself.
        return _classes(node) == cells and _classes(arc) == self.arc_cells

    def _useful(self, cell: int, node: Ints, arc: Ints) -> bool:
        """Whether rotating this cell can still join orbits: its nodes, or arcs at them, are in several."""
        members = np.flatnonzero(self.cell == cell)
        if _distinct(node[members]) > 1:
            return True
        touching = np.flatnonzero(self.cell[self.problem.tail] == cell)
        return _distinct(arc[touching]) > _distinct(self.arc_cell[touching])

    def _moves(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Candidate rotations: (cell, its nodes, their images), blocks before whole cells, small cells first."""
        sizes = np.bincount(self.cell)
        cells = sorted(np.flatnonzero(sizes > 1).tolist(), key=lambda cell: (sizes[cell], cell))
        systems: dict[int, list[Ints]] = {}
        for cell in cells:
            systems[cell] = self._block_systems(np.flatnonzero(self.cell == cell))
            for blocks in systems[cell]:
                if blocks.shape[1] > 1:
                    yield cell, blocks.reshape(-1), np.roll(blocks, -1, axis=1).reshape(-1)
        for cell in cells:
            for blocks in systems[cell]:
                if blocks.shape[0] > 1:
                    yield cell, blocks.reshape(-1), np.roll(blocks, -1, axis=0).reshape(-1)
        for cell in cells:  # what no block system caught: exchanging two halves, and single neighbours
            members = np.flatnonzero(self.cell == cell)
            yield cell, members, np.roll(members, -1)
            yield cell, members, np.roll(members, -(len(members) // 2))
            yield cell, members, members[::-1].copy()
            for position in range(min(len(members) - 1, 8)):
                swapped = members.copy()
                swapped[[position, position + 1]] = swapped[[position + 1, position]]
                yield cell, members, swapped

    def _block_systems(self, members: Ints) -> list[Ints]:
        """Ways to cut a cell into equal blocks: nodes of a block have the same neighbours of some colour.

        Each is an array (blocks, nodes of a block). Neighbours by links and by demand count alike.
        """
        systems: list[Ints] = [members.reshape(1, -1)]
        seen = {systems[0].tobytes() + b"1"}
        for key in self._neighbour_keys(members):
            order = np.argsort(key, kind="stable")
            counts = np.unique(key, return_counts=True)[1]
            if len(set(counts.tolist())) != 1:
                continue
            width = int(counts[0])
            table = members[order].reshape(-1, width)
            table = table[np.argsort(table[:, 0])]
            name = table.tobytes() + str(width).encode()
            if name not in seen:
                seen.add(name)
                systems.append(table)
        return systems

    def _neighbour_keys(self, members: Ints) -> Iterator[Hashes]:
        """For each colour among the neighbours of a cell: a hash of each member's set of such neighbours."""
        refiner = self.refiner
        names = mix(np.arange(refiner.total, dtype=np.uint64) + np.uint64(7))
        colours = np.unique(refiner.base, return_inverse=True)[1].reshape(-1)
        wanted = np.zeros(refiner.total, dtype=bool)
        wanted[members] = True
        starts = np.append(refiner.starts, len(refiner.heads))
        tail = np.repeat(refiner.tails, np.diff(starts))
        chosen = wanted[tail]
        tail, head = tail[chosen], refiner.heads[chosen]
        for colour in np.unique(colours[head]):
            of = colours[head] == colour
            total = np.zeros(refiner.total, dtype=np.uint64)
            np.add.at(total, tail[of], names[head[of]])
            yield total[members]

    def _complete(self, order: Ints, image: Ints) -> Ints | None:
        """Extends order[i] -> image[i] to an automorphism, or None.

        The nodes of the cell get one colour each, before and after; refinement carries that on. Cells that stay
        undecided are matched in the order of their numbers; the verification says whether that was right.
        """
        refiner, n = self.refiner, self.problem.nodes
        numbers = mix(np.arange(len(order), dtype=np.uint64) + np.uint64(1 << 50))
        before, after = refiner.base.copy(), refiner.base.copy()
        before[order], after[image] = numbers, numbers
        before, after = refiner.refine(before), refiner.refine(after)
        left, right = np.argsort(before[:n], kind="stable"), np.argsort(after[:n], kind="stable")
        if (before[left] != after[right]).any():
            return None
        permutation = np.empty(n, dtype=np.int64)
        permutation[left] = right
        return permutation if verified(self.problem, permutation) else None

    def _arc_image(self, permutation: Ints) -> Ints:
        problem = self.problem
        target = link_image(problem, permutation)
        if target is None:
            raise ValueError("no automorphism")
        m = len(problem.a)
        turned = problem.a[target] != permutation[problem.a]
        return np.concatenate([np.where(turned, target + m, target), np.where(turned, target, target + m)])


def _distinct(number: Ints) -> int:
    return int(np.count_nonzero(np.bincount(number)))


def _classes(label: Ints) -> int:
    return int(np.count_nonzero(label == np.arange(len(label))))


def _join(label: Ints, permutation: Ints) -> Ints:
    """Labels of the classes after joining the class of every element with that of its image."""
    return joined(int(label.max(initial=-1)) + 1, label, label[permutation])[label]
