"""The Clos search at least prices, with what leaves pay for standing apart from their spines or from their hosts.

With two tiers every leaf has its u links dealt evenly to all spines. Take the spine whose links cost least in all: the
others cost no less than they would at its place. So leaves and spines cost together no less than if all spines stood
at one place, and each leaf where its links to hosts and to that place are cheapest, of which only so many can be near.
And where a leaf has one link to each spine, cables with several links fit nowhere but in cages that hold one, of which
a leaf has at most one.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from designer.catalog.media import link_media
from designer.fabric.shape import ClosShape
from designer.formulation.clos import ClosProgram, Hardware, LeafOption, Rules
from designer.formulation.clos_search import ClosSearch
from designer.formulation.step_budget import required
from designer.instance.instance import Instance
from designer.layout.floor import length_classes
from designer.layout.shortest import NO_CABLE_CENTS, SEVERAL, SINGLE, Cents, LeastMedia, LeastPricing
from designer.layout.slots import slots_of
from designer.workload.traffic import Traffic

MOST_SORTED = 1 << 18  # leaves times places; beyond, the leaves that gain most from being near are not sought
MOST_NEAR = 3  # places on either side that are looked at as being near


class FloorProgram(ClosProgram):
    """The Clos program; links at the price of several to a bundle are several."""

    def __init__(self, options: list[LeafOption], hardware: Hardware, rules: Rules) -> None:
        super().__init__(options, hardware, rules)
        if hardware.spine.medium.key == SEVERAL:
            self.model.add(self.bundle >= 2)


class FloorSearch(ClosSearch):
    """The Clos search for what `shortest.at_least` gives; it speaks of networks that cost less than `below_cents`."""

    program = FloorProgram

    def __init__(
        self, instance: Instance, traffic: Traffic, pricing: LeastPricing, media: LeastMedia, below_cents: float
    ) -> None:
        super().__init__(instance, traffic, pricing, media, required(instance, traffic))
        self.least, self.least_media, self.below_cents = pricing, media, below_cents
        if math.isfinite(below_cents):
            self.best_cents = int(below_cents)  # what costs as much is of no interest
        self._known: dict[object, float] = {}
        self._prices: dict[object, tuple[float, float]] = {}

    def _option(
        self,
        part: Any,
        hardware: Hardware,
        attachment: Any,
        pods: Any = None,
        spine_uplinks: int = 0,
        bound_cents: int | None = None,
    ) -> LeafOption | None:
        option = super()._option(part, hardware, attachment, pods, spine_uplinks, bound_cents)
        if pods is not None or spine_uplinks or not self._hopeful(option):  # a third tier is above; or no use
            return option
        return super()._option(part, hardware, self._dearer(part, hardware, attachment))

    def _pod_options(self, part: Any, hardware: Hardware, attachment: Any) -> Iterator[LeafOption | None]:
        yield from super()._pod_options(part, hardware, self._dearer(part, hardware, attachment))

    def _dearer(self, part: Any, hardware: Hardware, attachment: Any) -> Any:
        """The attachment with what its fewest uplinks cost above their least price, wherever its leaves stand.

        More uplinks cost no less than the least price each.
        """
        uplinks = self._uplinks(part, hardware, attachment)
        if uplinks is None:
            return attachment
        prices = self._uplink_prices(hardware, uplinks)
        extra = (prices[0] - uplinks * hardware.spine.medium.link_cents) * part.fabrics * attachment.leaves
        if hardware.core is None and self.instance.requirements.symmetric_uplinks:
            room = self._room(part, hardware, attachment)
            question = part.layout, attachment.down, hardware.leaf.tier, part.hosts.nic_mode, prices, room
            if question not in self._known:
                shape = ClosShape(part.hosts, part.layout, hardware.leaf.tier, attachment.down)
                apart = sum(apart_cents(cents, prices, room) for cents in self.least.leaf_cents(shape))
                self._known[question] = part.hosts.planes * apart
            extra += self._known[question]
        return replace(attachment, base_cents=attachment.base_cents + math.floor(extra))

    def _uplink_prices(self, hardware: Hardware, uplinks: int) -> tuple[float, ...]:
        """What all uplinks of a leaf cost at least to spines 0, 1, 2, ... places away."""
        spine, empty = hardware.spine, self.least.empty
        mode = spine.lower.up_mode
        lower = spine.lower.switch.cage, mode.ports_per_cage if mode else 1
        upper = spine.tier.switch.cage, spine.tier.down_mode.ports_per_cage
        places = min(empty.ways_m.shape[1], MOST_NEAR + 2)
        found: list[float] = []
        for length_m in length_classes(np.array([empty.apart_m(place) for place in range(places)])).tolist():
            several, single = self._least_prices(lower, upper, spine.gbps, length_m)
            found.append((uplinks - 1) * (single if spine.medium.key == SINGLE else several) + several)
        return tuple(found)

    def _least_prices(
        self, lower: tuple[str, int], upper: tuple[str, int], gbps: int, length_m: float
    ) -> tuple[float, float]:
        """What a link costs at least, with any medium and with those that carry single links."""
        question = lower, upper, gbps, length_m
        if question not in self._prices:
            media = link_media(self.instance.catalog, *lower, *upper, gbps, length_m)
            costs = [(medium.bundle, self.least.medium_cents(medium)) for medium in media]
            each = [(bundle, one / lower[1] + other / upper[1] + link) for bundle, (one, other, link) in costs]
            several = min((cents for _, cents in each), default=NO_CABLE_CENTS)
            single = min((cents for bundle, cents in each if bundle == 1), default=NO_CABLE_CENTS)
            self._prices[question] = several, single
        return self._prices[question]

    def _room(self, part: Any, hardware: Hardware, attachment: Any) -> float:
        """Switches that can stand at one place, in networks of two tiers that cost less than `below_cents`."""
        layout, catalog = self.least.empty.layout, self.instance.catalog
        models = hardware.leaf.tier.switch, hardware.spine.tier.switch
        if math.isinf(self.below_cents) or not hardware.spine_cents or self.instance.cluster.existing:
            return math.inf
        spines = int(self.below_cents - attachment.base_cents) // hardware.spine_cents
        switches = part.fabrics * attachment.leaves + max(0, spines)
        racks = -(-switches // max(1, min(slots_of(layout, catalog, model) for model in models)))
        least_w = min(model.power_w for model in models)
        by_power = math.floor(layout.rack_power_w / least_w) if least_w else layout.rack_units
        at_place = -(-racks // self.least.empty.ways_m.shape[1])
        return at_place * min(layout.rack_units // layout.switch_units, by_power)


def apart_cents(hosts: Cents, prices: tuple[float, ...], room: float) -> float:
    """What leaves pay at least beyond the next place for their hosts and the least price of their uplinks.

    Leaves within some places of the spines' one, as many as can stand there, pay for their hosts from there; the others
    for uplinks over more places. Whatever number of places is called near, this is a bound. `hosts` are of (leaves,
    places), `prices` of a leaf's uplinks by distance in places, `room` is that of one place.
    """
    leaves, places = hosts.shape
    own = hosts.min(axis=1)
    best = 0.0
    for near in range(len(prices) - 1):
        further = leaves * (prices[near + 1] - prices[0])
        if further <= best or (near and prices[near + 1] == prices[near]):
            continue  # no better than with fewer places called near
        padded = np.full((leaves, places + 2 * near), np.inf)
        padded[:, near : near + places] = hosts
        from_there = padded[:, :places]
        for shift in range(1, 2 * near + 1):
            from_there = np.minimum(from_there, padded[:, shift : shift + places])
        gain = np.minimum(from_there + prices[0] - own[:, None] - prices[near + 1], 0.0)
        taken = (2 * near + 1) * room
        if taken < leaves and hosts.size <= MOST_SORTED:
            gain = np.partition(gain, int(taken), axis=0)[: int(taken)]
        saved = gain.sum(axis=0)
        if taken < leaves:
            saved = np.maximum(saved, taken * gain.min(axis=0))
        best = max(best, further + float(saved.min()))
    return best
