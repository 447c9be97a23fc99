"""What cables cost at least on a floor, whatever the network: the bound beside a network whose cables were laid out.

Two things are known before there is a network. A link to a host is no shorter than from its server's rack to the next
rack of switches; a link between switches is no shorter than inside a rack. And a link costs no less than its share of
full cages with the cheapest cable that reaches so far, whatever its neighbours use. A search that pays just this for
every link finds a lower bound for all networks of its family on this floor.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from designer.catalog.components import Catalog
from designer.catalog.media import LinkMedium, link_media
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.build import leaf_places
from designer.fabric.fabric import Column
from designer.fabric.shape import ClassTally, ClosShape
from designer.instance.instance import Cluster, Instance
from designer.instance.schema import CablingSection, LayoutSection
from designer.layout.floor import Floor, Metres, length_classes, make_floor, rows_of, server_racks
from designer.layout.sockets import Socket
from designer.workload.cuts import Layout

Cents = NDArray[np.float64]
MOST_KEPT = 1 << 18  # numbers kept in memory of one kind of leaves; more are computed again
HOST, LEAF_SPINE, SPINE_CORE = 0.5, 1.0, 2.0  # in place of lengths
SINGLE, SEVERAL = "single", "several"
NO_CABLE_CENTS = 1e10  # of a link that no cable of the catalog can be: more than any network saves


def least_cents(catalog: Catalog, pricing: Pricing, lower: Socket, upper: Socket, gbps: int, length_m: float) -> float:
    """The least that a link between cages of these kinds adds to the objective, cages shared by full ones.

    Infinite where nothing reaches so far.
    """
    best = math.inf
    for medium in link_media(catalog, *lower, *upper, gbps, length_m):
        of_lower, of_upper, of_link = pricing.medium_cents(medium)
        best = min(best, of_lower / lower[1] + of_upper / upper[1] + of_link)
    return best


@dataclass(frozen=True, eq=False)
class LeastMedia(MediaFinder):
    """In place of media, what costs as much as a link costs at least; keys are `SINGLE` and `SEVERAL`.

    Lengths that are asked for are labels: `HOST` for links to hosts, whose GPUs are `host_m[i]` from the next rack of
    switches in the parts `host_parts[i]`, and management `management_m`; all others for links between switches, which
    are no shorter than `between_m`. Between leaf and spine there are two, for bundles of one link and of several, that
    cost the same here.
    """

    pricing: Pricing
    host_m: tuple[float, ...]
    host_parts: tuple[float, ...]
    management_m: float
    between_m: float

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def find(
        self, lower: tuple[str, int], upper: tuple[str, int], gbps: int, length_m: float
    ) -> tuple[LinkMedium, ...]:
        """The media between (cage kind, ports per cage) of the lower and the upper end; none where none reaches."""
        if length_m == HOST:
            cents = self._host_cents(lower, upper, gbps)
        else:
            cents = self._least(lower, upper, gbps, self.between_m)
        if math.isinf(cents):
            return ()
        # Rounded down, as prices are whole cents.
        least = LinkMedium(SEVERAL, "optics", None, None, None, 1, math.inf, link_cents=math.floor(cents))
        return (least, replace(least, key=SINGLE)) if length_m == LEAF_SPINE else (least,)

    def _least(self, lower: Socket, upper: Socket, gbps: int, length_m: float) -> float:
        return least_cents(self.catalog, self.pricing, lower, upper, gbps, length_m)

    def _host_cents(self, lower: Socket, upper: Socket, gbps: int) -> float:
        prices = [self._least(lower, upper, gbps, length_m) for length_m in self.host_m]
        mean = sum(part * price for part, price in zip(self.host_parts, prices, strict=True))
        # Nobody knows how many of the links are management's: they count as the cheaper kind.
        return min(mean, self._least(lower, upper, gbps, self.management_m))


@dataclass(frozen=True, eq=False)
class LeastPricing(Pricing):
    """Prices with which links to the hosts of a Clos cost at least what they cost on a floor.

    Its leaves and their GPUs are known, so all links of a leaf are priced from its best rack, whichever that is.
    """

    catalog: Catalog
    empty: "EmptyFloor"
    sums: dict[object, float] = field(default_factory=dict[object, float])
    kept: dict[object, tuple[Cents, ...]] = field(default_factory=dict[object, tuple[Cents, ...]])
    tables: dict[object, Cents] = field(default_factory=dict[object, Cents])

    def host_cents(self, shape: ClosShape, tally: ClassTally, medium: LinkMedium) -> int:
        """Objective of the links to hosts, rounded down to whole cents."""
        del tally  # every leaf is looked at by itself
        question = _question(shape)
        if question not in self.sums:
            self.sums[question] = sum(float(cents.min(axis=1).sum()) for cents in self.leaf_cents(shape))
        management = shape.hosts.management_ports * shape.fabrics
        leaves = math.floor(shape.hosts.planes * self.sums[question])
        return leaves + (self.class_cents(ClassTally(links=management), medium) if management else 0)

    def leaf_cents(self, shape: ClosShape) -> tuple[Cents, ...]:
        """For each set of rails (leaves, places): what a leaf's links to GPUs cost at least from each place.

        Places are rows, or where switches have a row of their own the racks of one. Leaves with the same GPUs by rack
        may be in any order.
        """
        question = _question(shape)
        if question in self.kept:
            return self.kept[question]
        table = self._table(*question[2:])
        found: dict[bytes, Cents] = {}  # sets of rails whose GPUs lie alike cost alike
        sets: list[Cents] = []
        for part in range(shape.rail_sets):
            links = self._links_by_rack(shape, part)
            key = links.tobytes()
            if key not in found:
                found[key] = _leaf_cents(links, table)
            sets.append(found[key])
        if sum(cents.size for cents in found.values()) <= MOST_KEPT:
            self.kept[question] = tuple(sets)
        return tuple(sets)

    def _table(self, lower: Socket, upper: Socket, gbps: int) -> Cents:
        """(racks of servers, places): what a link costs at least."""
        question = lower, upper, gbps
        if question not in self.tables:
            lengths_m, length = self.empty.way_lengths
            found = [least_cents(self.catalog, self, lower, upper, gbps, each) for each in lengths_m]
            self.tables[question] = np.minimum(found, NO_CABLE_CENTS)[length]
        return self.tables[question]

    def _links_by_rack(self, shape: ClosShape, rail_set: int) -> Column:
        """Leaf, rack, and how many links go from one to the other, as columns."""
        racks = self.empty.floor.first_switch_rack
        gpu, leaf, _ = leaf_places(shape, rail_set)
        pairs, count = np.unique(leaf * racks + self.empty.floor.rack_of_gpu[gpu], return_counts=True)
        return np.stack([pairs // racks, pairs % racks, count])


def _question(shape: ClosShape) -> tuple[Layout, int, Socket, Socket, int]:
    """What prices of links to hosts depend on."""
    hosts, leaf = shape.hosts, shape.leaf
    lower = hosts.nic.cage, hosts.nic.ports_per_cage(hosts.nic_mode)
    return shape.layout, shape.down, lower, (leaf.switch.cage, leaf.down_mode.ports_per_cage), hosts.gbps


def _leaf_cents(links: Column, table: Cents) -> Cents:
    leaf, rack, count = links
    result = np.zeros((int(leaf[-1]) + 1, table.shape[1]))
    for place in range(table.shape[1]):
        result[:, place] = np.bincount(leaf, weights=count * table[rack, place], minlength=len(result))
    return result


@dataclass(frozen=True)
class EmptyFloor:
    """The floor of a cluster before its switches are known: one rack of switches in each row that may have some."""

    layout: LayoutSection
    cluster: Cluster

    @cached_property
    def floor(self) -> Floor:
        """The racks."""
        management = self.cluster.management_ports > 0
        racks = server_racks(self.layout, self.cluster, management=management)
        rows, per_row = rows_of(self.layout, racks)
        wide = per_row if self.layout.switches == "network-row" else rows
        return make_floor(self.layout, self.cluster, wide, management=management)

    @cached_property
    def nearest_m(self) -> Metres:
        """For every rack of servers, then that of management, the way to the next rack of switches.

        It holds for any number of racks of switches. In rows of servers they stand side by side, and more of them move
        no server away from the next. A row of their own is taken to reach as far as the servers'.
        """
        return self.ways_m.min(axis=1)

    @cached_property
    def ways_m(self) -> Metres:
        """From every rack of servers and management to every rack of switches; no further ones are nearer to any."""
        floor = self.floor
        racks, switches = np.arange(floor.first_switch_rack), np.arange(floor.first_switch_rack, floor.racks)
        return floor.need_m(racks[:, None], switches[None, :])

    @cached_property
    def way_lengths(self) -> tuple[list[float], Column]:
        """The different lengths of cables over `ways_m`, and which of them each way takes."""
        lengths_m, length = np.unique(length_classes(self.ways_m), return_inverse=True)
        return lengths_m.tolist(), length.reshape(self.ways_m.shape)

    @property
    def between_m(self) -> float:
        """The shortest cable between two switches: up to the tray and down again in one rack."""
        return float(length_classes(np.array([self.apart_m(0)]))[0])

    def apart_m(self, places: int) -> float:
        """The least length that a cable between switches needs so many places (`LeastPricing.leaf_cents`) apart."""
        layout = self.layout
        pitch_m = layout.rack_pitch_m if layout.switches == "network-row" else layout.row_pitch_m
        return 2 * layout.switch_rise_m + layout.slack_m + places * pitch_m

    def typical(self) -> CablingSection:
        """One length for each class of links, for a search: to the next switches, and between any two racks of them."""
        floor = self.floor
        hosts = float(self.nearest_m[floor.rack_of_gpu].mean())
        switches = np.arange(floor.first_switch_rack, floor.racks)
        between = float(floor.need_m(switches[:, None], switches[None, :]).mean())
        lengths = length_classes(np.array([hosts, between]))
        return CablingSection(host_m=lengths[0], leaf_spine_m=lengths[1], spine_core_m=lengths[1])


def with_typical_lengths(instance: Instance) -> Instance:
    """The instance with cable lengths that are typical of its floor; as it is without one."""
    if instance.layout is None:
        return instance
    return replace(instance, cabling=EmptyFloor(instance.layout, instance.cluster).typical())


def at_least(instance: Instance, pricing: Pricing) -> "tuple[Instance, LeastPricing, LeastMedia]":
    """The instance, prices and finder of media with which a search bounds what networks on its floor cost.

    Raises:
        ValueError: the instance has no layout.
    """
    if instance.layout is None:
        raise ValueError("an instance without a layout")
    empty = EmptyFloor(instance.layout, instance.cluster)
    hosts_m, counts = np.unique(length_classes(empty.nearest_m[empty.floor.rack_of_gpu]), return_counts=True)
    if instance.cluster.irregular:  # which kind of servers stands where is not asked for
        hosts_m, counts = hosts_m[:1], counts[:1]
    parts = counts / counts.sum()
    last_m = float(length_classes(empty.nearest_m[-1:])[0])
    management_m = last_m if instance.cluster.management_ports else math.inf
    least = LeastMedia(
        instance.catalog, pricing, tuple(hosts_m.tolist()), tuple(parts.tolist()), management_m, empty.between_m
    )
    labels = CablingSection(host_m=HOST, leaf_spine_m=LEAF_SPINE, spine_core_m=SPINE_CORE)
    prices = LeastPricing(pricing.objective, pricing.energy, instance.catalog, empty)
    return replace(instance, cabling=labels), prices, least
