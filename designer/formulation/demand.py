"""What leaves and pods need of uplinks, intact and after failures, as plain capacities in Gb/s."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from designer.fabric.shape import ClosShape
from designer.instance.schema import RequirementsSection
from designer.workload.cuts import CutFunction, Floats, Ints

EPSILON = 1e-9


@dataclass(frozen=True)
class LostLinks:
    """A failure in the tiers above the leaves: `count` elements go, and `share` of the intact need must still fit."""

    kind: str
    count: int
    share: float


def links_for(need_gbps: float, gbps: int) -> int:
    """Whole links of `gbps` that carry `need_gbps`; at least one, so that a fabric is connected."""
    return max(1, math.ceil(need_gbps / gbps - EPSILON))


class Needs:
    """Uplink needs of one layout under the requirements.

    A lost leaf or NIC moves its GPUs' traffic to other planes or, over the HB domain, to other rails; what those carry
    on top is the factor `detour`. Losses above the leaves are `lost_links`.
    """

    def __init__(self, cuts: CutFunction, requirements: RequirementsSection, planes: int, endpoint_gbps: int) -> None:
        self.cuts = cuts
        self.requirements = requirements
        self.planes = planes
        self.endpoint_gbps = endpoint_gbps
        self.lost_links = tuple(
            LostLinks(item.failure, item.count, item.throughput)
            for item in requirements.survive
            if item.failure in ("switch", "link")
        )
        self._highest_floor = max((phase.floor for phase in cuts.traffic.network_phases), default=0.0)
        self._leaf: dict[int, float] = {}
        self._pods: dict[int, Floats] = {}

    def detour(self, down: int) -> float:
        """Factor on the intact need that lost leaves and NICs ask of what is left; infinite where GPUs are cut off."""
        factors = [1.0]
        for item in self.requirements.survive:
            if item.failure == "link":
                continue
            nics_lost = item.count if item.failure == "nic" else item.count * self._nics_of_leaf(down)
            planes_left = self.planes - item.count if item.failure == "switch" else 0
            over_planes = self.planes / planes_left if planes_left > 0 else math.inf
            factor = item.throughput * min(over_planes, self._over_domain(nics_lost))
            if factor * self._highest_floor > 1 + EPSILON:
                return math.inf  # more than the line rate of the NICs that are left
            factors.append(factor)
        return max(factors)

    def _nics_of_leaf(self, down: int) -> int:
        """NICs of one HB domain on one leaf, at most."""
        layout, traffic = self.cuts.layout, self.cuts.traffic
        if layout.mixed:
            return min(traffic.hb_domain, down)
        of_rail = traffic.hb_domain // traffic.rails
        if down < layout.per_rail:
            return min(of_rail, down)
        return min(down // layout.per_rail, layout.rails) * of_rail

    def _over_domain(self, nics_lost: int) -> float:
        """Load on a NIC of the domain, in units of its own, when `nics_lost` of the domain's NICs are gone."""
        total = self.cuts.traffic.hb_domain
        left = total - nics_lost
        if left <= 0:
            return math.inf
        if self.requirements.detour == "spread":
            return total / left
        return 1 + math.ceil(nics_lost / left)

    def leaf_gbps(self, down: int) -> float:
        """What the endpoints of a leaf send up at most, floors included, nothing lost."""
        if down not in self._leaf:
            self._leaf[down] = self.cuts.leaf(down) * self.endpoint_gbps
        return self._leaf[down]

    def pods_gbps(self, down: int, most_leaves: int) -> Floats:
        """The same for pods of 1, 2 .. `most_leaves` leaves."""
        known = self._pods.get(down)
        if known is None or len(known) < most_leaves:
            known = self.cuts.pods(down, np.arange(1, most_leaves + 1)) * self.endpoint_gbps
            self._pods[down] = known
        return known[:most_leaves]

    def leaf_links(self, down: int, gbps: int) -> int:
        """Uplinks of `gbps` that a leaf needs."""
        return links_for(self.leaf_gbps(down) * self.detour(down), gbps)


def whole_links(need_gbps: Floats | Iterable[float], gbps: int) -> Ints:
    """`links_for` of many needs."""
    need = np.asarray(need_gbps, dtype=np.float64)
    return np.maximum(1, np.ceil(need / gbps - EPSILON)).astype(np.int64)


def unmet(shape: ClosShape, needs: Needs, *, ecmp: bool) -> list[str]:
    """Which requirements a Clos with these needs falls short of, in words; empty when it meets all.

    The same arithmetic as the program's constraints, on one given network.
    """
    found: list[str] = []
    down = shape.down
    detour = needs.detour(down)
    if math.isinf(detour):
        found.append("a lost leaf or NIC cuts GPUs off, or leaves their peers more than line rate to carry")
        detour = 1.0
    if shape.spines is None or shape.leaf.up_mode is None:
        return found
    spines, cores, uplinks = shape.spines, shape.cores, shape.uplinks
    bundle = spines.bundle or -(-uplinks // spines.count)
    levels = [_Level("leaf", needs.leaf_gbps(down), shape.leaf.up_mode.gbps, uplinks, bundle, spines.count)]
    if cores is not None and spines.tier.up_mode is not None:
        pod = float(needs.pods_gbps(down, cores.leaves_per_pod)[-1])
        links, peers = spines.count * cores.uplinks, spines.count * shape.cores_per_group
        levels.append(_Level("pod", pod, spines.tier.up_mode.gbps, links, cores.bundle, peers))
    for level in levels:
        if level.links < links_for(level.need_gbps * detour, level.gbps):
            carried = level.links * level.gbps
            found.append(f"a {level.name} sends {level.need_gbps * detour:g} Gb/s, its uplinks carry {carried}")
        for item in needs.lost_links:
            left = level.links - _links_lost(level, item, shape, ecmp=ecmp)
            if left < links_for(level.need_gbps * item.share, level.gbps):
                found.append(f"with {item.count} {item.kind} lost a {level.name} has {left} uplinks left")
    return found


@dataclass(frozen=True)
class _Level:
    """Uplinks of a leaf or a pod: the need, and `links` in bundles of at most `bundle`, `peers` of them."""

    name: str
    need_gbps: float
    gbps: int
    links: int
    bundle: int
    peers: int


def _links_lost(level: _Level, item: LostLinks, shape: ClosShape, *, ecmp: bool) -> int:
    """Uplinks of a leaf or pod that a failure makes useless; the rules are those of `ClosProgram.add_survivability`."""
    count, cores = item.count, shape.cores
    if item.kind == "link":
        if not ecmp or level.bundle == 1:
            return count
        return count * level.peers + (count * level.bundle if count > 1 else 0)
    group_dies = ecmp and cores is not None and shape.cores_per_group <= count
    if cores is None or shape.spines is None or level.name == "leaf":
        return count * level.bundle * (cores.positions if cores is not None and group_dies else 1)
    of_core = cores.positions * (cores.uplinks if group_dies else cores.bundle)
    if ecmp and not group_dies:
        of_core = shape.spines.count * cores.bundle
    return count * max(cores.uplinks, of_core)
