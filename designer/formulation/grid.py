"""Grids, cheapest first: which switch, how many columns, GPUs to a cell and links to a bundle, in which order of GPUs.

A grid has few parameters, so all of them are looked at; links in a bundle follow from a bound that every routing obeys
(`least_hops`). A grid that turns out to carry too little is proposed again with one link more to a bundle, which is the
cut: with fewer it carries less.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from designer.costing.grids import PricedGrid, priced_grid
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.grid import GridShape
from designer.fabric.shape import Hosts
from designer.formulation.demand import EPSILON
from designer.formulation.hardware import usable_switches
from designer.formulation.step_budget import Enough
from designer.instance.instance import Instance
from designer.workload.cuts import Ints
from designer.workload.traffic import Component, Phase, Traffic

HALVINGS = 30


@dataclass(frozen=True)
class Shares:
    """Of what a GPU sends on average: rate to other cells of its row, of its column, and elsewhere, in NIC ports."""

    row: float
    column: float
    elsewhere: float

    @property
    def least_hops(self) -> float:
        """The least links between switches that this traffic takes, times its rate, for each GPU.

        Traffic leaves by the row or the column port and arrives by one of them. Between different kinds of ports it
        takes one link; between row ports none inside a row and two elsewhere, likewise between column ports. With x
        from row to row port and y from column to column port, of a total T <= 2, both directions of both ports at most
        1 each leave T <= 2 - |x - y|. So at most lo + min(hi, lo + 2 - T) is saved of T, lo and hi the smaller and the
        larger of what stays in rows and in columns.
        """
        total = self.row + self.column + self.elsewhere
        low, high = sorted((min(self.row, 1.0), min(self.column, 1.0)))
        return total - (low + min(high, low + max(0.0, 2.0 - total)))


@dataclass(frozen=True)
class Hops:
    """A step's components, their rates in line rates and shares by `_shares`, and the part of GPUs that take part."""

    rates: tuple[float, ...]
    shares: tuple[tuple[float, float, float], ...]
    of: float

    def at(self, rate: float) -> float:
        """The least hops at a part of line rate, in links' rates a GPU of the cluster."""
        ports = [2 * rate * part for part in self.rates]
        parts = (sum(port * share[at] for port, share in zip(ports, self.shares, strict=True)) for at in range(3))
        return Shares(*parts).least_hops * self.of

    def most_rate(self, links: float) -> float:
        """The most that so many links a GPU allow, but for rounding up."""
        if self.at(1.0) <= links + EPSILON:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.at(middle) <= links + EPSILON else (low, middle)
        return high


class GridSearch:
    """All grids of an instance in the order of their cost."""

    def __init__(
        self, instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder, enough: Enough | None = None
    ) -> None:
        """`enough` says whether the rates of all steps will do; by default each has to be at its floor."""
        self.instance, self.traffic, self.pricing, self.media = instance, traffic, pricing, media
        self.enough = enough
        self._queue: list[tuple[int, int, PricedGrid]] = []
        self._count = 0
        for shape in self._shapes():
            self._push(shape)

    def cheapest(self) -> PricedGrid | None:
        """The cheapest grid that is left; None where there is none."""
        return self._queue[0][2] if self._queue else None

    def refuse(self) -> None:
        """Takes the cheapest grid out, and with it all that carry no more at the same cost or less.

        The same grid with one link more to a bundle takes its place.
        """
        _, _, priced = heapq.heappop(self._queue)
        self._push(replace(priced.shape, bundle=priced.shape.bundle + 1))

    def _push(self, shape: GridShape) -> None:
        if shape.problems():
            return
        priced = priced_grid(shape, self.instance.cabling, self.pricing, self.media)
        if priced is not None:
            self._count += 1
            heapq.heappush(self._queue, (priced.cents, self._count, priced))

    def _shapes(self) -> Iterator[GridShape]:
        """Every grid with the least bundle that its hops allow."""
        cluster, planes = self.instance.cluster, self.instance.search.planes
        switches = usable_switches(self.instance.catalog, cluster.nic, self.instance.search, self.pricing)
        known: dict[tuple[bool, int, int], list[list[Hops]]] = {}
        for nic_mode in cluster.nic.modes:
            if nic_mode.ports != 2 or (planes is not None and 2 not in planes) or cluster.management_ports:
                continue
            hosts = Hosts(cluster.gpus, cluster.rails, cluster.nic, nic_mode, 0)
            for switch in switches:
                for mode in switch.modes_at(nic_mode.gbps):
                    for bare in _frames(GridShape(hosts, switch, mode, 1), switch.radix(mode)):
                        key = (bare.by_rail, bare.columns, bare.per_cell)
                        if key not in known:
                            known[key] = self._hops(bare)
                        yield replace(bare, bundle=self._least_bundle(bare, known[key], switch.radix(mode)))

    def _least_bundle(self, bare: GridShape, hops: list[list[Hops]], radix: int) -> int:
        """The least links to a bundle with which hops allow what every step needs; `radix` where none do."""
        per_gpu = 2 * bare.rows * bare.columns / bare.hosts.gpus  # every bundle carries its rate both ways
        if self.enough is None:
            floors = [phase.floor for phase in self.traffic.network_phases]
            most = max((step.at(floor) for floor, row in zip(floors, hops, strict=True) for step in row), default=0.0)
            return max(1, math.ceil(most / per_gpu - EPSILON))
        low, high = 1, radix
        while low < high:
            middle = (low + high) // 2
            enough = self.enough([[step.most_rate(middle * per_gpu) for step in row] for row in hops])
            low, high = (low, middle) if enough else (middle + 1, high)
        return low

    def _hops(self, shape: GridShape) -> list[list[Hops]]:
        """What every step of every phase asks for."""
        row, column = shape.cells()
        return [
            [
                Hops(
                    tuple(part.rate for part in step.components),
                    tuple(_shares(self.traffic, phase, part, row, column) for part in step.components),
                    phase.gpus / self.traffic.gpus,
                )
                for step in phase.steps
            ]
            for phase in self.traffic.network_phases
        ]


def _frames(bare: GridShape, radix: int) -> Iterator[GridShape]:
    """Columns and GPUs to a cell for which at least single links fit, in both orders of the GPUs."""
    gpus = bare.hosts.gpus
    for per_cell in range(1, min(radix, gpus) + 1):
        for columns in range(1, min(radix // (per_cell + 1), -(-gpus // per_cell)) + 1):
            frame = replace(bare, columns=columns, per_cell=per_cell)
            if frame.rows * (per_cell + 1) <= radix:
                yield frame
                if bare.hosts.rails > 1:
                    yield replace(frame, by_rail=True)


def _shares(traffic: Traffic, phase: Phase, part: Component, row: Ints, column: Ints) -> tuple[float, float, float]:
    """Parts of a component's traffic that go to another cell of the row, of the column, and elsewhere.

    `any` counts like an all-to-all: the shifts inside a group are permutations, and on average they are one.
    """
    unit = traffic.hb_domain if phase.across == "rail" else 1
    gpu = np.arange(phase.first_gpu, phase.first_gpu + phase.gpus)
    place, inside = (gpu - phase.first_gpu) // unit, gpu % unit
    if part.pattern in ("any", "all-to-all"):
        period = part.stride * part.size
        group = (place // period * part.stride + place % part.stride) * unit + inside
        return _group_shares(group, row[gpu], column[gpu], part.size)
    digit = place // part.stride % part.size
    target = (digit + part.by) % part.size if part.pattern == "shift" else digit ^ part.by
    peer = gpu + (target - digit) * part.stride * unit
    same_row, same_column = row[gpu] == row[peer], column[gpu] == column[peer]
    in_row, in_column = (same_row & ~same_column).mean(), (same_column & ~same_row).mean()
    return float(in_row), float(in_column), float((~same_row & ~same_column).mean())


def _group_shares(group: Ints, row: Ints, column: Ints, size: int) -> tuple[float, float, float]:
    def together(*keys: Ints) -> float:
        """The mean number of members of a GPU's group that share these keys with it, itself included."""
        packed = group
        for key in keys:
            packed = packed * (int(key.max()) + 1) + key
        counts = np.unique(packed, return_counts=True)[1]
        return float((counts * counts).sum()) / len(group)

    cell, in_row, in_column = together(row, column), together(row), together(column)
    others = max(size - 1, 1)
    return (in_row - cell) / others, (in_column - cell) / others, (size - in_row - in_column + cell) / others
