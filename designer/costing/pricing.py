"""Unit prices under an objective: purchase and the energy of some years (tco), or purchase alone (all others).

Prices are full ones; a stock of pieces that are owned takes purchases off a whole network (`saved_cents`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from designer.catalog.components import Catalog, Switch
from designer.catalog.media import LinkMedium, link_media
from designer.costing.stock import Piece, Stock, class_pieces
from designer.fabric.shape import ClassTally, ClosShape, Media
from designer.instance.schema import CablingSection, EnergySection
from designer.units import energy_cents


@dataclass(frozen=True)
class Pricing:
    """What one piece adds to the objective, in whole cents."""

    objective: str
    energy: EnergySection
    stock: Stock | None = field(default=None, kw_only=True)

    def unit_cents(self, price_cents: int, power_w: float) -> int:
        """Objective of one piece of this price and power."""
        return price_cents + self.energy_cents(power_w)

    def energy_cents(self, power_w: float) -> int:
        """Energy of one piece over the years of the objective tco; 0 for the others."""
        if self.objective != "tco" or power_w == 0:
            return 0
        return energy_cents(power_w, self.energy.years, self.energy.usd_per_kwh, self.energy.pue)

    def switch_cents(self, switch: Switch) -> int:
        """Objective of one switch."""
        return self.unit_cents(switch.price.cents, switch.power_w)

    def medium_cents(self, medium: LinkMedium) -> tuple[int, int, int]:
        """Objective of what one lower cage, one upper cage and one link take."""
        return (
            self.unit_cents(medium.lower_cage_cents, medium.lower_cage_w),
            self.unit_cents(medium.upper_cage_cents, medium.upper_cage_w),
            self.unit_cents(medium.link_cents, medium.link_w),
        )

    def saved_cents(self, needed: Mapping[Piece, int]) -> int:
        """What a network saves of its full price by using what is owned."""
        return 0 if self.stock is None else self.stock.saved_cents(needed)

    def permits(self, needed: Mapping[Piece, int]) -> bool:
        """Whether what a network needs may be bought where it is not owned."""
        return self.stock is None or self.stock.permits(needed)

    def class_cents(self, tally: ClassTally, medium: LinkMedium) -> int:
        """Objective of a class of links."""
        return tally.cost_cents(*self.medium_cents(medium))

    def host_cents(self, shape: ClosShape, tally: ClassTally, medium: LinkMedium) -> int:
        """Objective of the links to hosts of a shape."""
        del shape  # a price that knows the floor looks at it
        return self.class_cents(tally, medium)


@dataclass(frozen=True)
class MediaFinder:
    """The media that fit between two kinds of ports, remembered: the same question comes often.

    Media of a component in `keep` are among them even where others are cheaper.
    """

    catalog: Catalog
    keep: frozenset[str] = field(default=frozenset(), kw_only=True)

    def __hash__(self) -> int:
        return id(self.catalog)

    @lru_cache(maxsize=4096)  # noqa: B019  (lives as long as one design run)
    def between(
        self, lower: tuple[str, int], upper: tuple[str, int], gbps: int, length_m: float
    ) -> tuple[LinkMedium, ...]:
        """Media between (cage kind, ports per cage) of the lower and the upper end."""
        return self.find(lower, upper, gbps, length_m)

    def find(
        self, lower: tuple[str, int], upper: tuple[str, int], gbps: int, length_m: float
    ) -> tuple[LinkMedium, ...]:
        """What `between` remembers."""
        return link_media(self.catalog, *lower, *upper, gbps, length_m, self.keep)


def with_media(shape: ClosShape, media: MediaFinder, cabling: CablingSection, pricing: Pricing) -> ClosShape | None:
    """The shape with the cheapest medium for each class of links; None where some class has no medium that fits."""
    tally = shape.tally()

    def best(options: tuple[LinkMedium, ...], of: ClassTally, bundle: int | None) -> LinkMedium | None:
        fitting = [medium for medium in options if medium.bundle == 1 or (bundle and bundle % medium.bundle == 0)]
        return min(fitting, key=lambda medium: pricing.class_cents(of, medium), default=None)

    nic, leaf = shape.hosts.nic, shape.leaf
    lower = (nic.cage, nic.ports_per_cage(shape.hosts.nic_mode))
    upper = (leaf.switch.cage, leaf.down_mode.ports_per_cage)
    host = best(media.between(lower, upper, shape.hosts.gbps, cabling.host_m), tally["host"], 1)
    if host is None:
        return None
    chosen = Media(host, cabling.host_m)
    if shape.spines and leaf.up_mode:
        spine = shape.spines.tier
        lower = (leaf.switch.cage, leaf.up_mode.ports_per_cage)
        upper = (spine.switch.cage, spine.down_mode.ports_per_cage)
        options = media.between(lower, upper, leaf.up_mode.gbps, cabling.leaf_spine_m)
        medium = best(options, tally["leaf_spine"], shape.spines.bundle)
        if medium is None:
            return None
        chosen = replace(chosen, leaf_spine=medium, leaf_spine_m=cabling.leaf_spine_m)
        if shape.cores and spine.up_mode:
            core = shape.cores.tier
            lower = (spine.switch.cage, spine.up_mode.ports_per_cage)
            upper = (core.switch.cage, core.down_mode.ports_per_cage)
            options = media.between(lower, upper, spine.up_mode.gbps, cabling.spine_core_m)
            medium = best(options, tally["spine_core"], shape.cores.bundle)
            if medium is None:
                return None
            chosen = replace(chosen, spine_core=medium, spine_core_m=cabling.spine_core_m)
    return replace(shape, media=chosen)


def shape_cents(shape: ClosShape, pricing: Pricing) -> int:
    """Objective of a shape with media, by closed form.

    Raises:
        ValueError: the shape has no media yet.
    """
    return sum(cost_parts(shape, pricing).values())


def shape_pieces(shape: ClosShape, catalog: Catalog) -> Counter[Piece]:
    """Every switch, module and cable that a shape with media takes.

    Raises:
        ValueError: the shape has no media yet.
    """
    if shape.media is None:
        raise ValueError("a shape without media")
    media, tally = shape.media, shape.tally()
    needed: Counter[Piece] = Counter({(shape.leaf.switch.key, 0.0): shape.all_leaves})
    needed += class_pieces(catalog, tally["host"], media.host, media.host_m)
    if shape.spines and media.leaf_spine:
        needed[shape.spines.tier.switch.key, 0.0] += shape.spines_per_fabric * shape.fabrics
        needed += class_pieces(catalog, tally["leaf_spine"], media.leaf_spine, media.leaf_spine_m)
    if shape.cores and media.spine_core:
        needed[shape.cores.tier.switch.key, 0.0] += shape.cores_per_fabric * shape.fabrics
        needed += class_pieces(catalog, tally["spine_core"], media.spine_core, media.spine_core_m)
    return needed


def cost_parts(shape: ClosShape, pricing: Pricing) -> dict[str, int]:
    """The objective of a shape with media in parts: switches of each tier, cabling of each class of links.

    Raises:
        ValueError: the shape has no media yet.
    """
    if shape.media is None:
        raise ValueError("a shape without media")
    tally = shape.tally()
    parts = {
        "leaf": shape.all_leaves * pricing.switch_cents(shape.leaf.switch),
        "host": pricing.host_cents(shape, tally["host"], shape.media.host),
    }
    if shape.spines and shape.media.leaf_spine:
        spines = shape.spines_per_fabric * shape.fabrics
        parts["spine"] = spines * pricing.switch_cents(shape.spines.tier.switch)
        parts["leaf_spine"] = pricing.class_cents(tally["leaf_spine"], shape.media.leaf_spine)
    if shape.cores and shape.media.spine_core:
        cores = shape.cores_per_fabric * shape.fabrics
        parts["core"] = cores * pricing.switch_cents(shape.cores.tier.switch)
        parts["spine_core"] = pricing.class_cents(tally["spine_core"], shape.media.spine_core)
    return parts


def pieces(tally: ClassTally, medium: LinkMedium) -> Counter[str]:
    """What a class of links buys, by catalog key."""
    bought: Counter[str] = Counter()
    for key, count in (
        (medium.per_lower_cage, tally.lower_cages),
        (medium.per_upper_cage, tally.upper_cages),
        (medium.per_link, tally.links),
    ):
        if key is not None:
            bought[key] += count
    return bought
