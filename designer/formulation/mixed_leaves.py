"""Every way to join the leaves of one kind of servers to shared spines, and the least bundles that carry the floors.

For u = S k uplinks of a leaf, k of them to each of S spines, what is needed of k follows for every number of ports to
endpoints and every S at once; the rules are those of `ClosProgram`. A larger bundle is never better: it costs more and
takes more ports of a spine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from designer.costing.pricing import Pricing, shape_cents
from designer.fabric.mixed import SharedPorts
from designer.fabric.shape import ClosShape, Hosts, Media, Spines
from designer.formulation.demand import EPSILON, Needs, whole_links
from designer.formulation.hardware import LeafKind, TierKind
from designer.instance.instance import Instance
from designer.workload.cuts import Floats, Ints, Layout

NEVER = np.int64(1) << 40  # links to a bundle that no switch has


@dataclass(frozen=True)
class LostLinks:
    """A failure above the leaves: `count` of a `kind` go, and so many `links` of each of some leaves must be left.

    A "spine" is left alone, where there are others, by all that the loss of links touches.
    """

    kind: str
    count: int
    links: Ints


@dataclass(frozen=True)
class Bundles:
    """(leaves, spines) the least links to a bundle: `single` where one link will do, else `several`, two or more."""

    single: Ints
    several: Ints

    def least(self, multiple: int) -> Ints:
        """The least that are a multiple of `multiple`."""
        best = np.where((self.single <= 1) & (multiple == 1), self.single, self.several)
        return -(-best // multiple) * multiple

    def allow(self, given: Ints, multiple: int) -> Ints:
        """Which of the given bundles will do."""
        enough = np.where(given == 1, self.single <= 1, given >= self.several)
        return np.asarray(enough & (given % multiple == 0))


def least_bundles(need: Ints, lost: Sequence[LostLinks], spines: Ints, *, ecmp: bool) -> Bundles:
    """(leaves, spines) the bundles with which a leaf keeps `need` uplinks, and after losses its share; or `NEVER`."""
    count = spines[None, :]
    single = -(-need[:, None] // count)
    several = single.copy()
    for item in lost:
        links = item.links[:, None]
        if item.kind in ("switch", "spine"):
            left = count - item.count
            least = np.where(left > 0, -(-links // np.maximum(left, 1)), NEVER)
            if item.kind == "spine":
                least = np.where(count == 1, 1, least)
            single, several = np.maximum(single, least), np.maximum(several, least)
        elif not ecmp:
            least = -(-(links + item.count) // count)
            single, several = np.maximum(single, least), np.maximum(several, least)
        else:
            # One link to each spine: the spine drops out. Several: the bundle that lost one slows all of the leaf.
            single = np.where(count - item.count >= links, single, NEVER)
            left = count - (item.count if item.count > 1 else 0)
            least = np.where(left > 0, -(-(links + item.count * count) // np.maximum(left, 1)), NEVER)
            several = np.maximum(np.maximum(several, least), 2)
    return Bundles(single, several)


@dataclass(frozen=True)
class Way:
    """Leaves of a model and mode on one medium, their uplinks and the spines' ports; arrays by ports to endpoints.

    `leaves` are those of a fabric, `base_cents` leaves and host links of all fabrics, `room` the uplinks that fit.
    """

    leaf: LeafKind
    spine: TierKind
    downs: Ints
    leaves: Ints
    base_cents: Ints
    room: Ints
    need: Ints
    lost: tuple[LostLinks, ...]

    @property
    def pool(self) -> tuple[int, int, str]:
        """What must be equal for two ways to share cages of a spine: ports of a cage, their speed, the module."""
        ports = SharedPorts.of(self.spine.tier.down_mode, self.spine.medium, 0)
        return ports.mode.ports_per_cage, ports.mode.gbps, ports.key


@dataclass(frozen=True)
class Attachments:
    """By ports to endpoints: leaves of a fabric, cost of all leaves and host links, need in Gb/s, its detour factor."""

    downs: Ints
    leaves: Ints
    base_cents: Ints
    gbps: Floats
    detour: Floats

    def of(self, chosen: NDArray[np.bool_]) -> "Attachments":
        """The chosen ones."""
        return Attachments(
            self.downs[chosen],
            self.leaves[chosen],
            self.base_cents[chosen],
            self.gbps[chosen],
            self.detour[chosen],
        )


@dataclass
class KindSide:
    """One kind of servers in one order of the endpoints: its leaves, their needs, and all ways to join them."""

    instance: Instance
    pricing: Pricing
    hosts: Hosts
    layout: Layout
    needs: Needs
    wary: bool = False
    _attached: dict[LeafKind, "Attachments"] = field(default_factory=dict[LeafKind, "Attachments"], repr=False)

    @property
    def fabrics(self) -> int:
        """Separate networks."""
        return -(-self.hosts.rails // self.layout.rails)

    def way(self, leaf: LeafKind, spine: TierKind, factor: float | None) -> Way:
        """The leaves with a tier above them.

        `factor` is on the needs of all, and leaves whose loss asks for more drop out; by default each has its own.
        """
        found, tier = self.attachments(leaf), leaf.tier
        if factor is not None:
            found = found.of(found.detour <= factor + EPSILON)
        up = spine.lower.up_mode
        free_cages = tier.switch.cages - -(-found.downs // tier.down_mode.ports_per_cage)
        room = np.minimum(tier.switch.max_ports - found.downs, free_cages * (up.ports_per_cage if up else 1))
        need = whole_links(found.gbps * (found.detour if factor is None else factor), spine.gbps)
        lost: list[LostLinks] = []
        for item in self.needs.lost_links:
            left = whole_links(found.gbps * item.share, spine.gbps)
            lost.append(LostLinks(item.kind, item.count, left))
            if self.wary and item.kind == "link":
                lost.append(LostLinks("spine", item.count, left))
        return Way(leaf, spine, found.downs, found.leaves, found.base_cents, room, need, tuple(lost))

    def attachments(self, leaf: LeafKind) -> "Attachments":
        """Ports to endpoints that a leaf can have and that a lost leaf does not rule out."""
        if leaf not in self._attached:
            needs, media = self.needs, Media(leaf.medium, self.instance.cabling.host_m)
            downs = [down for down in self._downs(leaf) if not math.isinf(needs.detour(down))]
            shapes = [ClosShape(self.hosts, self.layout, leaf.tier, down, media=media) for down in downs]
            self._attached[leaf] = Attachments(
                np.array(downs, dtype=np.int64),
                np.array([shape.leaves for shape in shapes], dtype=np.int64),
                np.array([shape_cents(shape, self.pricing) for shape in shapes], dtype=np.int64),
                np.array([needs.leaf_gbps(down) for down in downs], dtype=np.float64),
                np.array([needs.detour(down) for down in downs], dtype=np.float64),
            )
        return self._attached[leaf]

    def _downs(self, kind: LeafKind) -> list[int]:
        layout, search = self.layout, self.instance.search
        radix = kind.tier.switch.radix(kind.tier.down_mode)
        length = layout.endpoints if layout.mixed else layout.per_rail
        downs = set(range(1, min(radix, length) + 1))
        if not layout.mixed and search.leaf_sharing != "none":
            downs |= {rails * length for rails in range(2, layout.rails + 1) if rails * length <= radix}
        if search.leaf.down is not None:
            downs = {search.leaf.down} if search.leaf.down <= radix else set[int]()
        if not layout.mixed and layout.rails > 1 and search.leaf_sharing == "none":
            downs = {down for down in downs if down < 2 * length}
        return sorted(downs)

    def bundles(self, way: Way, spines: Ints) -> Ints:
        """(ports to endpoints, spines) the least links to a bundle, `NEVER` where they do not fit a leaf."""
        ecmp, pinned = self.instance.requirements.routing == "ecmp", self.instance.search.leaf.up
        multiple, found = way.spine.medium.bundle, least_bundles(way.need, way.lost, spines, ecmp=ecmp)
        bundle = found.least(multiple)
        if pinned is not None:
            given = np.broadcast_to(pinned // spines, bundle.shape)
            bundle = np.where((given * spines == pinned) & found.allow(given, multiple), given, NEVER)
        return np.where(bundle * spines <= way.room[:, None], bundle, NEVER)

    def cents(self, way: Way, spines: Ints, bundle: Ints) -> Ints:
        """(ports to endpoints, spines) what leaves, hosts and uplinks cost in all, cages of spines left out."""
        up = way.spine.lower.up_mode
        lower, _, link = self.pricing.medium_cents(way.spine.medium)
        uplinks = np.where(bundle < NEVER, bundle, 0) * spines
        each = link * uplinks + lower * -(-uplinks // (up.ports_per_cage if up else 1))
        return way.base_cents[:, None] + self.fabrics * way.leaves[:, None] * each

    def shape(self, way: Way, row: int, spines: int, bundle: int) -> ClosShape:
        """The leaves and spines of a way with so many ports to endpoints (by number), spines and links to a bundle."""
        cabling = self.instance.cabling
        media = Media(way.leaf.medium, cabling.host_m, way.spine.medium, cabling.leaf_spine_m)
        above = Spines(way.spine.tier, spines, bundle)
        down = int(way.downs[row])
        return ClosShape(self.hosts, self.layout, way.spine.lower, down, spines * bundle, above, None, media)
