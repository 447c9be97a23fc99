"""Tiled planes, cheapest first: which switch, which tile in each plane, how many uplinks, over which spines.

Two planes share no switch, so what is sent splits over them: at most half of line rate on each, and at most what that
plane's uplinks carry of what leaves its tiles. A closed bound on the rate of every step follows (`most_rate`). Tiles
wait with the price of no uplinks until that is the least of all; only then the bound says how many they need at least.
What turns out to carry too little gives way to the same tiles with more uplinks in one plane or the other.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement, product

import numpy as np

from designer.costing.pricing import MediaFinder, Pricing
from designer.costing.tiles import PricedTiles, priced_tiles
from designer.fabric.shape import Hosts
from designer.fabric.tiles import TiledPlane, TilesShape
from designer.formulation.demand import EPSILON
from designer.formulation.hardware import usable_switches
from designer.formulation.step_budget import Enough, at_floors
from designer.instance.instance import Instance
from designer.workload.cuts import Ints
from designer.workload.traffic import Component, Phase, Traffic

HALVINGS = 30
MOST_TILES = 200  # pairs of which are all priced
PORT = 0.5  # of line rate: what a NIC sends through one of its two ports


@dataclass(frozen=True)
class Part:
    """A component's traffic at line rates a GPU of the cluster: inside both tiles, out of the first, second, both.

    `pairs` says that each GPU has one peer, to which no plane carries more than half of line rate.
    """

    masses: tuple[float, float, float, float]
    pairs: bool


def carried(rate: float, parts: list[Part], uplinks: tuple[float, float]) -> bool:
    """Whether a step at this rate keeps to what ports and uplinks carry on average; `uplinks` in line rates a GPU.

    Of a mass m the first plane carries a, m - h <= a <= min(m, h), where h is half of line rate for pairs and no limit
    for others. Each plane carries at most half of line rate in all, and of what leaves its tiles no more than its
    uplinks do. Needed, not enough: limits are looked at one at a time.
    """
    mass = np.array([part.masses for part in parts])
    cap = np.where(np.array([part.pairs for part in parts])[:, None], PORT * mass, np.inf)
    total = rate * mass
    least, most = np.maximum(0.0, total - cap).sum(axis=0), np.minimum(total, cap).sum(axis=0)
    needs = (least[1] + least[3], least[2] + least[3])
    if any(need > limit + EPSILON for need, limit in zip(needs, uplinks, strict=True)):
        return False
    if least[1] + least[2] + total[:, 3].sum() > sum(uplinks) + EPSILON:
        return False
    first = min(PORT, most[0] + most[2] + min(most[1] + most[3], uplinks[0]))
    second = min(PORT, most[0] + most[1] + min(most[2] + most[3], uplinks[1]))
    return first + second >= total.sum() - EPSILON


def most_rate(parts: list[Part], uplinks: tuple[float, float]) -> float:
    """The most that any routing gives a step, as a part of line rate, but for rounding up."""
    if not parts or carried(1.0, parts, uplinks):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if carried(middle, parts, uplinks) else (low, middle)
    return high


@dataclass(frozen=True)
class _Waiting:
    """Tiles whose uplinks are not known yet (None), or are."""

    priced: PricedTiles
    steps: tuple[int, int] | None


class TilesSearch:
    """All pairs of tiled planes of an instance in the order of their cost."""

    def __init__(
        self, instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder, enough: Enough | None = None
    ) -> None:
        """`enough` says whether the rates of all steps will do; by default each at its floor."""
        self.instance, self.traffic, self.pricing, self.media = instance, traffic, pricing, media
        self.enough = enough or at_floors(traffic)
        self._queue: list[tuple[int, int, _Waiting]] = []
        self._seen: set[tuple[TilesShape, tuple[int, int]]] = set()
        self._ladders: dict[tuple[TilesShape, TiledPlane], list[TiledPlane]] = {}
        self._parts: dict[TilesShape, list[list[list[Part]]]] = {}
        self._count = 0
        for shape in self._bare():
            self._push(shape, None)

    def cheapest(self) -> PricedTiles | None:
        """The cheapest that is left; None where there is none."""
        while self._queue:
            waiting = self._queue[0][2]
            if waiting.steps is None:
                heapq.heappop(self._queue)
                self._start(waiting.priced.shape)
            elif self._allowed(waiting.priced.shape):
                return waiting.priced
            else:
                self.refuse()
        return None

    def refuse(self) -> None:
        """Takes the cheapest out; the same tiles with more uplinks in either plane take its place."""
        _, _, waiting = heapq.heappop(self._queue)
        if waiting.steps is not None:
            first, second = waiting.steps
            shape = self._without_spines(waiting.priced.shape)
            self._offer(shape, (first + 1, second))
            self._offer(shape, (first, second + 1))

    @cached_property
    def _across(self) -> bool:
        """Whether spines must join all rails."""
        return self.traffic.needs_joined_rails()

    def _push(self, shape: TilesShape, steps: tuple[int, int] | None) -> None:
        priced = priced_tiles(shape, self.instance.cabling, self.pricing, self.media)
        if priced is not None:
            self._count += 1
            heapq.heappush(self._queue, (priced.cents, self._count, _Waiting(priced, steps)))

    @staticmethod
    def _without_spines(shape: TilesShape) -> TilesShape:
        first, second = (replace(plane, spines=0, bundle=0) for plane in shape.planes)
        return replace(shape, planes=(first, second))

    def _start(self, bare: TilesShape) -> None:
        """Offers tiles with the least uplinks of each plane that the bound allows beside the other's most."""
        ladders = [self._ladder(bare, plane) for plane in bare.planes]
        tops = tuple(len(ladder) - 1 for ladder in ladders)
        least: list[int] = []
        for number in range(2):
            low, high = 0, tops[number] + 1
            while low < high:
                middle = (low + high) // 2
                steps = (middle, tops[1]) if number == 0 else (tops[0], middle)
                if self._allowed(self._spined(bare, steps)):
                    high = middle
                else:
                    low = middle + 1
            least.append(low)
        self._offer(bare, (least[0], least[1]))

    def _offer(self, bare: TilesShape, steps: tuple[int, int]) -> None:
        fits = all(step < len(self._ladder(bare, plane)) for step, plane in zip(steps, bare.planes, strict=True))
        if fits and (bare, steps) not in self._seen:
            self._seen.add((bare, steps))
            self._push(self._spined(bare, steps), steps)

    def _spined(self, bare: TilesShape, steps: tuple[int, int]) -> TilesShape:
        first, second = (self._ladder(bare, plane)[step] for step, plane in zip(steps, bare.planes, strict=True))
        return replace(bare, planes=(first, second))

    def _ladder(self, bare: TilesShape, plane: TiledPlane) -> list[TiledPlane]:
        """The plane without spines, then with more and more uplinks, each time over as few spines as can be.

        Uplinks are left out where more of them cost no more, for fewer spines.
        """
        key = (bare, plane)
        if key not in self._ladders:
            rungs = list(self._rungs(bare, plane))
            cents = [self._plane_cents(bare, rung) for rung in rungs]
            self._ladders[key] = [
                rung for number, rung in enumerate(rungs) if all(cents[number] < later for later in cents[number + 1 :])
            ]
        return self._ladders[key]

    def _plane_cents(self, bare: TilesShape, plane: TiledPlane) -> float:
        """What two such planes cost."""
        priced = priced_tiles(replace(bare, planes=(plane, plane)), self.instance.cabling, self.pricing, self.media)
        return math.inf if priced is None else priced.cents

    def _rungs(self, bare: TilesShape, plane: TiledPlane) -> Iterator[TiledPlane]:
        yield plane
        joined = replace(plane, joined=self._across or plane.sides[0] > 1)
        leaves, radix = bare.part_leaves(joined), bare.switch.radix(bare.mode)
        if leaves == 1:
            return
        for uplinks in range(1, min(radix - plane.down, plane.down) + 1):
            for spines in range(1, uplinks + 1):
                spined = replace(joined, spines=spines, bundle=uplinks // spines)
                if uplinks % spines == 0 and not replace(bare, planes=(spined, spined)).problems():
                    yield spined
                    break

    def _bare(self) -> Iterator[TilesShape]:
        """Every pair of tiles, without spines."""
        cluster, search = self.instance.cluster, self.instance.search
        pinned = search.leaf.down is not None or search.leaf.up is not None
        if cluster.management_ports or pinned:
            return
        switches = usable_switches(self.instance.catalog, cluster.nic, search, self.pricing)
        for nic_mode in cluster.nic.modes:
            if nic_mode.ports != 2 or (search.planes is not None and 2 not in search.planes):
                continue
            hosts = Hosts(cluster.gpus, cluster.rails, cluster.nic, nic_mode, 0)
            for switch in switches:
                for mode in switch.modes_at(nic_mode.gbps):
                    found = finest(self.traffic, switch.radix(mode))
                    radices, sides = found or ((), [])
                    for first, second in combinations_with_replacement(sides, 2):
                        shape = TilesShape(hosts, switch, mode, radices, (TiledPlane(first), TiledPlane(second)))
                        if not shape.problems():
                            yield shape

    def _allowed(self, shape: TilesShape) -> bool:
        """Whether the most that any routing gives every step is enough."""
        uplinks = (self._line_rates(shape, 0), self._line_rates(shape, 1))
        rates = [[most_rate(step, uplinks) for step in phase] for phase in self._parts_of(shape)]
        return self.enough(rates)

    @staticmethod
    def _line_rates(shape: TilesShape, number: int) -> float:
        plane = shape.planes[number]
        return PORT * plane.uplinks / plane.down

    def _parts_of(self, shape: TilesShape) -> list[list[list[Part]]]:
        bare = self._without_spines(shape)
        key = replace(bare, planes=tuple(replace(plane, joined=False) for plane in bare.planes))
        if key not in self._parts:
            first, second = (key.places(plane)[0] for plane in key.planes)
            self._parts[key] = [
                [[_part(self.traffic, phase, part, first, second) for part in step.components] for step in phase.steps]
                for phase in self.traffic.network_phases
            ]
        return self._parts[key]


def digits(traffic: Traffic, *, partners: bool = False) -> tuple[int, ...] | None:
    """What the groups of the traffic divide a GPU's number into, the rail first; None where they do not nest.

    With `partners` the steps of halving-doubling divide their groups further, down to pairs.
    """
    marks = {traffic.rails, traffic.hb_domain, traffic.gpus}
    for phase in traffic.network_phases:
        unit = traffic.hb_domain if phase.across == "rail" else 1
        if phase.first_gpu or phase.gpus != traffic.gpus:
            return None
        for step in phase.steps:
            for part in step.components:
                marks |= {unit * part.stride, unit * part.stride * part.size}
                if partners and part.pattern == "exchange":
                    marks.add(unit * part.stride * part.by)
    found: list[int] = []
    last = 1
    for mark in sorted(marks - {1}):
        if mark % last:
            return None
        if mark > last:
            found.append(mark // last)
            last = mark
    if last != traffic.gpus:
        return None
    if traffic.rails == 1:
        return (1, *found)
    return tuple(found) if found[0] == traffic.rails else None


def finest(traffic: Traffic, radix: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Digits and tiles for switches of this radix: down to pairs, where that does not make too many."""
    for partners in (True, False):
        radices = digits(traffic, partners=partners)
        if radices is not None:
            found = tiles(radices, radix)
            if len(found) <= MOST_TILES or not partners:
                return radices, found
    return None


def tiles(radices: tuple[int, ...], radix: int) -> list[tuple[int, ...]]:
    """Sides that divide their digits and make a leaf that a switch has ports for; rails alone or all together."""
    choices = [[side for side in range(1, size + 1) if size % side == 0] for size in radices]
    choices[0] = sorted({1, radices[0]})
    return [sides for sides in product(*choices) if math.prod(sides) <= radix]


def _part(traffic: Traffic, phase: Phase, part: Component, first: Ints, second: Ints) -> Part:
    """Where a component's traffic goes; `any` counts like an all-to-all, as its shifts do on average."""
    unit = traffic.hb_domain if phase.across == "rail" else 1
    gpu = np.arange(traffic.gpus)
    place, inside = gpu // unit, gpu % unit
    if part.pattern in ("any", "all-to-all"):
        period = part.stride * part.size
        group = (place // period * part.stride + place % part.stride) * unit + inside
        both, one, other = (_together(group, *keys) for keys in ((first, second), (first,), (second,)))
        others = max(part.size - 1, 1)
        shares = (both - 1, other - both, one - both, part.size - one - other + both)
        masses = [part.rate * share / others for share in shares]
        return Part((masses[0], masses[1], masses[2], masses[3]), pairs=False)
    digit = place // part.stride % part.size
    target = (digit + part.by) % part.size if part.pattern == "shift" else digit ^ part.by
    peer = gpu + (target - digit) * part.stride * unit
    out_first, out_second = first[gpu] != first[peer], second[gpu] != second[peer]
    shares = (~out_first & ~out_second, out_first & ~out_second, out_second & ~out_first, out_first & out_second)
    masses = [part.rate * float((share & (peer != gpu)).mean()) for share in shares]
    return Part((masses[0], masses[1], masses[2], masses[3]), pairs=True)


def _together(*keys: Ints) -> float:
    """The mean number of GPUs that share these keys with a GPU, itself included."""
    packed = keys[0]
    for key in keys[1:]:
        packed = packed * (int(key.max()) + 1) + key
    counts = np.unique(packed, return_counts=True)[1]
    return float((counts * counts).sum()) / len(packed)
