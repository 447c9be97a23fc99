"""What tiled planes cost: media for their classes of links, and the objective in parts."""

from collections import Counter
from dataclasses import dataclass
from itertools import product

from designer.catalog.media import LinkMedium
from designer.costing.pricing import MediaFinder, Pricing, pieces
from designer.fabric.fabric import Fabric
from designer.fabric.tiles import TilesMedia, TilesShape, build_tiles, hosts_m
from designer.instance.schema import CablingSection


@dataclass(frozen=True)
class PricedTiles:
    """Tiled planes with media, and what they cost in cents by part: leaf, host, leaf_leaf."""

    shape: TilesShape
    media: TilesMedia
    parts: dict[str, int]

    @property
    def cents(self) -> int:
        """The objective."""
        return sum(self.parts.values())

    def pieces(self) -> Counter[str]:
        """Cables and modules by catalog key."""
        tally, used = self.shape.tally(), self.media.hosts
        bought: Counter[str] = Counter()
        for number in range(2):
            bought += pieces(tally[f"host {number}"], used[number])
            bought += pieces(tally[f"between {number}"], self.media.between)
        return bought

    def draw(self) -> Fabric:
        """The network link by link."""
        return build_tiles(self.shape, self.media)


def priced_tiles(
    shape: TilesShape, cabling: CablingSection, pricing: Pricing, media: MediaFinder
) -> PricedTiles | None:
    """Tiled planes with their cheapest media; None where some links have none that fits."""
    hosts, tally = shape.hosts, shape.tally()
    nic_end = (hosts.nic.cage, hosts.nic.ports_per_cage(hosts.nic_mode))
    end = (shape.switch.cage, shape.mode.ports_per_cage)
    lengths = hosts_m(shape, cabling.host_m)
    to_hosts = [_single(media.between(nic_end, end, hosts.gbps, length_m)) for length_m in lengths]
    between = _single(media.between(end, end, hosts.gbps, cabling.leaf_spine_m))
    pairs = [
        pair
        for pair in product(*to_hosts)
        # Both ports of a NIC with one socket go through the same module.
        if hosts.nic.cages_per_nic > 1
        or (pair[0].kind == "optics" and pair[0].per_lower_cage == pair[1].per_lower_cage)
    ]
    if not pairs or not between:
        return None

    def hosts_cents(pair: tuple[LinkMedium, ...]) -> int:
        return sum(pricing.class_cents(tally[f"host {number}"], medium) for number, medium in enumerate(pair))

    def between_cents(medium: LinkMedium) -> int:
        return sum(pricing.class_cents(tally[f"between {number}"], medium) for number in range(2))

    first, second = min(pairs, key=hosts_cents)
    chosen = min(between, key=between_cents)
    parts = {
        "leaf": shape.switches * pricing.switch_cents(shape.switch),
        "host": hosts_cents((first, second)),
        "leaf_leaf": between_cents(chosen),
    }
    used = TilesMedia((first, second), lengths, chosen, cabling.leaf_spine_m)
    return PricedTiles(shape, used, parts)


def _single(found: tuple[LinkMedium, ...]) -> list[LinkMedium]:
    return [medium for medium in found if medium.bundle == 1]
