"""Meshes, cheapest first: which order of the endpoints, leaf, modes, ports to endpoints, and links to a bundle.

A mesh has few parameters, so all of them are looked at. The least bundle follows from two bounds that every routing
obeys: what a leaf sends to the others, and how many links all traffic takes at least (`least_links`). A mesh that turns
out to carry too little is proposed again with one link more to a bundle, which is the cut: with fewer it carries less.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from designer.costing.meshes import PricedMesh, priced_mesh
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.mesh import MeshShape
from designer.fabric.shape import Hosts, Tier
from designer.formulation.block_demand import BlockDemand, TooManyStepsError, block_demands
from designer.formulation.demand import EPSILON, links_for
from designer.formulation.hardware import usable_switches
from designer.formulation.step_budget import Enough
from designer.instance.instance import Instance
from designer.workload.cuts import Floats, Ints, Layout, layouts
from designer.workload.traffic import Traffic


def least_links(rates_gbps: Floats, bundle_gbps: float) -> float:
    """The least that traffic loads all links of a mesh together, both directions, in Gb/s.

    Traffic between two leaves takes one link as far as their own bundle carries it, and two or more beyond.
    """
    return float((rates_gbps + np.maximum(rates_gbps - bundle_gbps, 0.0)).sum())


@dataclass(frozen=True)
class LeafRates:
    """What leaves send to each other (leaves, leaves), and the most that one sends to, or gets from, all others."""

    gbps: Floats
    out_gbps: float


class MeshSearch:
    """All meshes of an instance in the order of their cost.

    A mesh waits with the price of single links until that is the least of all; only then its bundles are counted.
    """

    def __init__(
        self, instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder, enough: Enough | None = None
    ) -> None:
        """`enough` is not looked at: bundles are the least at the floors, which are needed in any case."""
        del enough
        self.instance, self.traffic, self.pricing, self.media = instance, traffic, pricing, media
        self._queue: list[tuple[int, int, PricedMesh, bool]] = []  # cost, number, mesh, whether its bundles are counted
        self._count = 0
        self._rates: dict[tuple[Layout, int, int], list[LeafRates]] = {}
        for shape in self._frames():
            self._push(shape, counted=False)

    def cheapest(self) -> PricedMesh | None:
        """The cheapest mesh that is left; None where there is none."""
        while self._queue:
            _, _, priced, counted = self._queue[0]
            if counted:
                return priced
            heapq.heappop(self._queue)
            self._push(replace(priced.shape, bundle=self._least_bundle(priced.shape)), counted=True)
        return None

    def refuse(self) -> None:
        """Takes the cheapest mesh out, and with it the same mesh with smaller bundles, which carries no more.

        The same mesh with one link more to a bundle takes its place.
        """
        priced = self.cheapest()
        if priced is not None:
            heapq.heappop(self._queue)
            self._push(replace(priced.shape, bundle=priced.shape.bundle + 1), counted=True)

    def _push(self, shape: MeshShape, *, counted: bool) -> None:
        fixed = self.instance.search.leaf.up
        if shape.problems() or (counted and fixed not in (None, shape.uplinks)):
            return
        priced = priced_mesh(shape, self.instance.cabling, self.pricing, self.media)
        if priced is not None:
            self._count += 1
            heapq.heappush(self._queue, (priced.cents, self._count, priced, counted))

    def _frames(self) -> Iterator[MeshShape]:
        """Every mesh for which at least single links fit."""
        cluster, search = self.instance.cluster, self.instance.search
        switches = usable_switches(self.instance.catalog, cluster.nic, search, self.pricing)
        for nic_mode in cluster.nic.modes:
            if (search.planes is not None and nic_mode.ports not in search.planes) or cluster.management_ports:
                continue
            hosts = Hosts(cluster.gpus, cluster.rails, cluster.nic, nic_mode, 0)
            tiers = [
                Tier(switch, down_mode, up_mode)
                for switch in switches
                for down_mode in switch.modes_at(nic_mode.gbps)
                for up_mode in switch.modes
            ]
            for layout in layouts(self.traffic, search.leaf_sharing):
                for down in _downs(layout, whole_rails=search.leaf_sharing != "none"):
                    if search.leaf.down not in (None, down):
                        continue
                    for tier in tiers:
                        shape = MeshShape(hosts, layout, tier, down)
                        if not shape.problems():
                            yield shape

    def _least_bundle(self, shape: MeshShape) -> int:
        """Links to a bundle below which some step at its floor cannot be carried; more where uplinks are fixed."""
        key = (shape.layout, shape.down, shape.hosts.gbps)
        if key not in self._rates:
            self._rates[key] = self._leaf_rates(shape)
        gbps = shape.leaf.up_mode.gbps if shape.leaf.up_mode else 1
        others, bundle = shape.leaves - 1, 1
        for rates in self._rates[key]:
            bundle = max(bundle, -(-links_for(rates.out_gbps, gbps) // others))
            arcs = shape.leaves * others
            while least_links(rates.gbps, bundle * gbps) > arcs * bundle * gbps + EPSILON:
                bundle += 1
        return max(bundle, (self.instance.search.leaf.up or 0) // others)

    def _leaf_rates(self, shape: MeshShape) -> list[LeafRates]:
        """What the leaves of one fabric send to each other, step by step at the floors.

        Nothing where jobs that run at once have too many steps to combine: then the certificate alone decides.
        """
        line_gbps = np.full(self.traffic.gpus, float(shape.hosts.gbps))
        try:
            demands = block_demands(self.traffic, _leaf_of_gpu(shape), line_gbps)
        except TooManyStepsError:
            return []
        leaves = shape.leaves
        return [
            LeafRates(rates[:leaves, :leaves], _most_out_gbps(demand, leaves))
            for demand in demands
            for rates in _examples(demand)
        ]


def _downs(layout: Layout, *, whole_rails: bool) -> Iterator[int]:
    """Ports to endpoints that make different leaves, two of them at least."""
    length = layout.endpoints if layout.mixed else layout.per_rail
    for down in range(1, length + 1):
        if layout.leaves(down) > 1:
            yield down
    if not layout.mixed and whole_rails:
        yield from (rails * length for rails in range(2, layout.rails))


def _leaf_of_gpu(shape: MeshShape) -> Ints:
    """The leaf of every GPU of the first fabric; GPUs of others are on one more leaf, which nobody sends to."""
    layout, down = shape.layout, shape.down
    gpu = np.arange(shape.hosts.gpus)
    if layout.mixed:
        return gpu // down
    rail, position = gpu % shape.hosts.rails, gpu // shape.hosts.rails
    if down >= layout.per_rail:
        leaf = rail // (down // layout.per_rail)
    else:
        leaf = rail * -(-layout.per_rail // down) + position // down
    return np.where(rail < layout.rails, leaf, shape.leaves)


def _most_out_gbps(demand: BlockDemand, leaves: int) -> float:
    """The most that one of the leaves sends or gets; of q in a group of n, min(q, n - q) may send out at once."""
    hoses = np.zeros(len(demand.gbps))
    for hose in demand.hoses:
        hoses += hose.gbps * np.minimum(hose.members, hose.members.sum() - hose.members)
    ways = (demand.gbps.sum(axis=axis) + hoses for axis in (0, 1))
    return float(max(way[:leaves].max() for way in ways))


def _examples(demand: BlockDemand) -> Sequence[Floats]:
    """Traffic that a demand may mean: where groups mean `any`, all their shifts in turn, and the shift by a half."""
    if not demand.hoses:
        return [demand.gbps]
    blocks = len(demand.gbps)
    even, half = demand.gbps.copy(), demand.gbps.copy()
    for hose in demand.hoses:
        size = int(hose.members.sum())
        even += np.outer(hose.members, hose.members) * (hose.gbps / max(size - 1, 1))
        home = np.repeat(np.arange(blocks), hose.members)
        np.add.at(half, (home, np.roll(home, -(size // 2))), hose.gbps)
    for rates in (even, half):
        np.fill_diagonal(rates, 0.0)
    return [even, half]
