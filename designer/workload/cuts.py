"""Cut functions: how much a block of neighbouring endpoints sends out, at most, in units of one NIC's line rate.

Blocks are the leaves of a fabric, and its pods of consecutive leaves. Demands are periodic in the order of the
endpoints, so the rate of a block follows from where it begins and ends, without visiting its endpoints.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from designer.workload.traffic import Component, Phase, Step, Traffic

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """The order of the endpoints of a fabric.

    aligned: `rails` rails one after the other, each in the order of its domains; a leaf serves one rail, or several
    whole ones. mixed: all GPUs in their own order, so that a leaf serves all NICs of its servers (`rails` is then the
    number of all rails). `per_rail` endpoints belong to each rail.
    """

    mixed: bool
    rails: int
    per_rail: int

    @property
    def endpoints(self) -> int:
        """Endpoints of the fabric."""
        return self.rails * self.per_rail

    def leaves(self, down: int) -> int:
        """Leaves that the endpoints take with `down` ports each."""
        if self.mixed:
            return -(-self.endpoints // down)
        if down >= self.per_rail:
            return -(-self.rails // (down // self.per_rail))
        return self.rails * -(-self.per_rail // down)

    def leaf_sizes(self, down: int) -> Ints:
        """Endpoints of each leaf, in order."""
        if not self.mixed and down >= self.per_rail:
            whole = down // self.per_rail
            rails_left = self.rails - whole * np.arange(self.leaves(down))
            return np.minimum(rails_left, whole) * self.per_rail
        length = self.endpoints if self.mixed else self.per_rail
        starts = np.arange(0, length, down)
        sizes = np.minimum(length - starts, down)
        return sizes if self.mixed else np.tile(sizes, self.rails)


def members_out(pattern: str, start: Ints, end: Ints, size: int, by: int) -> Floats:
    """Rate that the members start..end-1 of a group of `size` send to the others, for each pair of the arrays.

    With q members inside: all-to-all q(g-q)/(g-1); any min(q, g-q); shift and exchange by counting partners.
    """
    count = np.maximum(end - start, 0).astype(np.float64)
    if pattern == "all-to-all":
        return count * (size - count) / max(size - 1, 1)
    if pattern == "any":
        return np.minimum(count, size - count)
    if pattern == "shift":
        kept = np.maximum(count - by, 0) + np.maximum(count - (size - by), 0)
        return count - kept
    low = np.maximum(end - by, start)  # pairs (x, x + by) with the bit clear in x and both inside
    pairs = _bit_clear_below(low, by) - _bit_clear_below(start, by)
    return count - 2 * np.maximum(pairs, 0)


def _bit_clear_below(limit: Ints, bit: int) -> Ints:
    return limit // (2 * bit) * bit + np.minimum(limit % (2 * bit), bit)


def _residues_out(part: Component, stride: int, start: Ints, end: Ints) -> Floats:
    """Rate out of the interval start..end-1 within one period of `stride` interleaved groups."""
    first, first_rest = np.divmod(start, stride)
    last, last_rest = np.divmod(end, stride)
    total = np.zeros(len(start))
    for late_start, late_end, residues in (
        (1, 1, np.minimum(first_rest, last_rest)),
        (1, 0, np.maximum(first_rest - last_rest, 0)),
        (0, 1, np.maximum(last_rest - first_rest, 0)),
        (0, 0, stride - np.maximum(first_rest, last_rest)),
    ):
        total += residues * members_out(part.pattern, first + late_start, last + late_end, part.size, part.by)
    return total


def interval_out(part: Component, stride: int, start: Ints, end: Ints) -> Floats:
    """Rate of `part` out of each interval of positions start..end-1; `stride` is between members, in positions."""
    period = stride * part.size
    first = start // period
    last = np.maximum(end - 1, start) // period
    split = first != last
    middle = np.where(split, period, end - first * period)
    rate = _residues_out(part, stride, start - first * period, middle)
    tail = np.where(split, end - last * period, 0)
    rate += np.where(split, _residues_out(part, stride, np.zeros_like(tail), tail), 0.0)
    return np.where(end > start, rate * part.rate, 0.0)


class CutFunction:
    """X of the leaves and pods of one layout, over all phases with their floors, in NIC line rates.

    Phases of jobs on the same GPUs take turns, those on separate GPUs add up.
    """

    def __init__(self, traffic: Traffic, layout: Layout, known: dict[tuple[bool, int], float] | None = None) -> None:
        """`known` may be shared by cut functions of one traffic: leaves of a single rail are alike in all layouts."""
        if traffic.needs_joined_rails() and not layout.mixed and layout.rails < traffic.rails:
            raise ValueError("traffic from rail to rail on a fabric that does not join all rails")
        self.traffic = traffic
        self.layout = layout
        self._sets = list(traffic.concurrent())
        self._known = {} if known is None else known

    def leaf(self, down: int) -> float:
        """The largest rate out of one leaf with `down` endpoints."""
        single_rail = not self.layout.mixed and down < self.layout.per_rail and not self.traffic.needs_joined_rails()
        if not single_rail and not self.layout.mixed:
            return float(self._rates(down, np.array([1]))[0])
        key = (self.layout.mixed, down)
        if key not in self._known:
            self._known[key] = float(self._rates(down, np.array([1]))[0])
        return self._known[key]

    def pods(self, down: int, leaves_per_pod: Ints) -> Floats:
        """The largest rate out of one pod, for each number of leaves in a pod."""
        return self._rates(down, leaves_per_pod)

    def phase_leaf(self, phase: Phase, step: Step, down: int) -> float:
        """X of a single step, without its floor, out of one leaf with `down` endpoints."""
        blocks = self._blocks(down, np.array([1]))
        return float(self._step_out(phase, step, down, blocks).max(initial=0.0))

    def _rates(self, down: int, leaves_per_pod: Ints) -> Floats:
        blocks = self._blocks(down, leaves_per_pod)
        total = np.zeros(len(blocks.pod_first))
        for phases in self._sets:
            worst = np.zeros(len(total))
            for phase in phases:
                for step in phase.steps:
                    np.maximum(worst, phase.floor * self._step_out(phase, step, down, blocks), out=worst)
            total += worst
        return np.maximum.reduceat(total, blocks.offsets)

    def _blocks(self, down: int, leaves_per_pod: Ints) -> "_Blocks":
        leaves = self.layout.leaves(down)
        counts = -(-leaves // leaves_per_pod)
        offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
        pods = np.arange(int(counts.sum())) - np.repeat(offsets, counts)
        width = np.repeat(leaves_per_pod, counts)
        return _Blocks(pods * width, np.minimum((pods + 1) * width, leaves), offsets)

    def _step_out(self, phase: Phase, step: Step, down: int, blocks: "_Blocks") -> Floats:
        layout, traffic = self.layout, self.traffic
        if phase.across == "cluster" and traffic.rails > 1 and not layout.mixed:
            return self._explicit_out(phase, step, down, blocks)
        if not layout.mixed and down >= layout.per_rail:
            return np.zeros(len(blocks.pod_first))  # every block holds whole rails
        if layout.mixed:
            scale, shrink = (traffic.hb_domain if phase.across == "rail" else 1), 1
            ranges = [(blocks.pod_first * down, np.minimum(blocks.pod_last * down, layout.endpoints))]
        else:
            scale = traffic.hb_domain // traffic.rails if phase.across == "rail" else 1
            shrink = traffic.rails
            ranges = self._rail_ranges(down, blocks)
        first, length = phase.first_gpu // shrink, phase.gpus // shrink
        total = np.zeros(len(blocks.pod_first))
        for start, end in ranges:
            low, high = np.clip(start - first, 0, length), np.clip(end - first, 0, length)
            for part in step.components:
                total += interval_out(part, part.stride * scale, low, high)
        return total

    def _rail_ranges(self, down: int, blocks: "_Blocks") -> list[tuple[Ints, Ints]]:
        """Positions on a rail of each block: a part at the end of its first rail, a part at the start of its last."""
        per_rail = self.layout.per_rail
        leaves = -(-per_rail // down)
        first, last = blocks.pod_first // leaves, (blocks.pod_last - 1) // leaves
        start = (blocks.pod_first - first * leaves) * down
        end = np.minimum((blocks.pod_last - last * leaves) * down, per_rail)
        split = first != last
        return [(start, np.where(split, per_rail, end)), (np.zeros_like(end), np.where(split, end, 0))]

    def _explicit_out(self, phase: Phase, step: Step, down: int, blocks: "_Blocks") -> Floats:
        """Traffic across the rails of an aligned fabric, counted GPU by GPU: its groups are not periodic there."""
        layout = self.layout
        if all(part.size == self.traffic.gpus and part.pattern in ("any", "all-to-all") for part in step.components):
            # A single group of all GPUs: only how many of them are in a block matters.
            ends = np.concatenate([[0], np.cumsum(layout.leaf_sizes(down))])
            inside = ends[blocks.pod_last] - ends[blocks.pod_first]
            zero = np.zeros_like(inside)
            outs = [members_out(part.pattern, zero, inside, part.size, 0) * part.rate for part in step.components]
            return np.sum(outs, axis=0)
        gpu = np.arange(phase.first_gpu, phase.first_gpu + phase.gpus)
        rail, position = gpu % self.traffic.rails, gpu // self.traffic.rails
        if down >= layout.per_rail:
            leaf = rail // (down // layout.per_rail)
        else:
            leaf = rail * -(-layout.per_rail // down) + position // down
        bounds = [*blocks.offsets.tolist(), len(blocks.pod_first)]
        total = np.zeros(len(blocks.pod_first))
        for begin, stop in pairwise(bounds):
            width = int(blocks.pod_last[begin] - blocks.pod_first[begin])
            for part in step.components:
                total[begin:stop] += explicit_out(part, leaf // width, stop - begin)
        return total


@dataclass(frozen=True)
class _Blocks:
    """Pods as ranges of leaves; `offsets` says where the pods of each pod size begin."""

    pod_first: Ints
    pod_last: Ints
    offsets: Ints


def explicit_out(part: Component, block: Ints, blocks: int) -> Floats:
    """Rate of `part` out of each block, member by member; `block[i]` is where position i lies."""
    if part.pattern in ("any", "all-to-all"):
        position, period = np.arange(len(block)), part.stride * part.size
        group = position // period * part.stride + position % part.stride
        keys, inside = np.unique(group * blocks + block, return_counts=True)
        zero = np.zeros_like(inside)
        rates = members_out(part.pattern, zero, inside, part.size, 0)
        return np.asarray(np.bincount(keys % blocks, rates, blocks) * part.rate, dtype=np.float64)
    position = np.arange(len(block))
    digit = position // part.stride % part.size
    target = (digit + part.by) % part.size if part.pattern == "shift" else digit ^ part.by
    peer = position + (target - digit) * part.stride
    leaving = np.bincount(block[block != block[peer]], minlength=blocks)
    return leaving.astype(np.float64) * part.rate


def layouts(traffic: Traffic, leaf_sharing: str) -> Iterable[Layout]:
    """The orders of endpoints to look at: divisors of the rails side by side, and all GPUs mixed where allowed."""
    per_rail = traffic.gpus // traffic.rails
    least = traffic.rails if traffic.needs_joined_rails() else 1
    for rails in range(least, traffic.rails + 1):
        if traffic.rails % rails == 0:
            yield Layout(mixed=False, rails=rails, per_rail=per_rail)
    if traffic.rails > 1 and (leaf_sharing == "any" or traffic.needs_joined_rails()):
        yield Layout(mixed=True, rails=traffic.rails, per_rail=per_rail)
