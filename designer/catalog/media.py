"""How two ports can be joined: the transceiver pairs and cables that fit both sockets, with what they cost and draw.

A link's speed is that of both its ends, and what carries it must fit both sockets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from designer.catalog.components import Cable, CableEnd, Catalog, Fibre, Gpu, Transceiver
from designer.errors import CatalogError, Problem


@dataclass(frozen=True)
class LinkMedium:
    """One way to carry links, and what is bought for each occupied cage of the lower and upper ends and for each link.

    `kind` is dac, acc, aec, aoc or optics; the `per_` fields are catalog keys. Links between two devices come in
    multiples of `bundle`.
    """

    key: str
    kind: str
    per_lower_cage: str | None
    per_upper_cage: str | None
    per_link: str | None
    bundle: int
    reach_m: float
    lower_cage_cents: int = 0
    upper_cage_cents: int = 0
    link_cents: int = 0
    lower_cage_w: float = 0.0
    upper_cage_w: float = 0.0
    link_w: float = 0.0

    def cost_cents(self, lower_cages: int, upper_cages: int, links: int) -> int:
        """Price in cents of a set of links that occupies so many cages at its ends."""
        return self.lower_cage_cents * lower_cages + self.upper_cage_cents * upper_cages + self.link_cents * links

    def power_w(self, lower_cages: int, upper_cages: int, links: int) -> float:
        """Power in W of a set of links that occupies so many cages at its ends."""
        return self.lower_cage_w * lower_cages + self.upper_cage_w * upper_cages + self.link_w * links


@dataclass(frozen=True)
class ItemUnit:
    """What one piece of a component costs and draws, for a bill of materials; `section` is where the catalog has it."""

    key: str
    section: str
    description: str
    price_cents: int
    power_w: float
    price_assumed: bool
    power_assumed: bool
    source: str
    date: str


def link_media(
    catalog: Catalog,
    lower_cage: str,
    lower_ports_per_cage: int,
    upper_cage: str,
    upper_ports_per_cage: int,
    gbps: int,
    length_m: float,
    keep: frozenset[str] = frozenset(),
) -> tuple[LinkMedium, ...]:
    """All ways to carry links of `gbps` over `length_m` between cages of these kinds that no other way beats.

    A way beats another of the same bundle when it is no worse in all three prices and all three powers; ways with a
    component in `keep` stay all the same. The cheapest a link with full cages comes first; equal ones are ordered by
    power, then by key. Empty when nothing fits.
    """
    fitting = [
        *_optics(catalog, (lower_cage, lower_ports_per_cage), (upper_cage, upper_ports_per_cage), gbps, length_m),
        *_cables(catalog, (lower_cage, lower_ports_per_cage), (upper_cage, upper_ports_per_cage), gbps, length_m),
    ]

    def order(medium: LinkMedium) -> tuple[Fraction, float, str]:
        price = (
            Fraction(medium.lower_cage_cents, lower_ports_per_cage)
            + Fraction(medium.upper_cage_cents, upper_ports_per_cage)
            + medium.link_cents
        )
        power_w = (
            medium.lower_cage_w / lower_ports_per_cage + medium.upper_cage_w / upper_ports_per_cage + medium.link_w
        )
        return price, power_w, medium.key

    kept: list[LinkMedium] = []
    for medium in sorted(fitting, key=order):  # whatever beats a medium comes before it in this order
        named = {medium.per_lower_cage, medium.per_upper_cage, medium.per_link}
        if named & keep or not any(_beats(other, medium) for other in kept):
            kept.append(medium)
    return tuple(kept)


def _beats(one: LinkMedium, other: LinkMedium) -> bool:
    return one.bundle == other.bundle and all(
        mine <= theirs for mine, theirs in zip(_burdens(one), _burdens(other), strict=True)
    )


def _burdens(medium: LinkMedium) -> tuple[float, ...]:
    return (
        medium.lower_cage_cents,
        medium.upper_cage_cents,
        medium.link_cents,
        medium.lower_cage_w,
        medium.upper_cage_w,
        medium.link_w,
    )


def carries(transceiver: Transceiver, cage: str, ports_per_cage: int, gbps: int) -> bool:
    """Whether the module fits the cage and its lanes make up `ports_per_cage` ports of `gbps`."""
    return cage in transceiver.cages and ports_per_cage * gbps <= transceiver.gbps and gbps % transceiver.lane_gbps == 0


def joins(fibre: Fibre, transceiver: Transceiver, gbps: int) -> bool:
    """Whether one such fibre cable carries a link of `gbps` of the module."""
    return (
        fibre.fibre == transceiver.fibre
        and transceiver.optics in fibre.optics
        and (fibre.lanes is None or gbps <= fibre.lanes * transceiver.lane_gbps)
    )


def _optics(
    catalog: Catalog, lower: tuple[str, int], upper: tuple[str, int], gbps: int, length_m: float
) -> Iterator[LinkMedium]:
    below = [module for module in catalog.transceivers.values() if carries(module, *lower, gbps)]
    above = [module for module in catalog.transceivers.values() if carries(module, *upper, gbps)]
    for one in below:
        for other in above:
            if (one.fibre, one.optics, one.lane_gbps) != (other.fibre, other.optics, other.lane_gbps):
                continue
            for fibre in catalog.fibres.values():
                reach_m = min(one.reach_m, other.reach_m, fibre.reach_m)
                if joins(fibre, one, gbps) and reach_m >= length_m:
                    yield LinkMedium(
                        key=f"{one.key}+{fibre.key}+{other.key}",
                        kind="optics",
                        per_lower_cage=one.key,
                        per_upper_cage=other.key,
                        per_link=fibre.key,
                        bundle=1,
                        reach_m=reach_m,
                        lower_cage_cents=one.price.cents,
                        upper_cage_cents=other.price.cents,
                        link_cents=fibre.price_cents(length_m),
                        lower_cage_w=one.power_w,
                        upper_cage_w=other.power_w,
                    )


def _cables(
    catalog: Catalog, lower: tuple[str, int], upper: tuple[str, int], gbps: int, length_m: float
) -> Iterator[LinkMedium]:
    for cable in catalog.cables.values():
        if gbps not in cable.port_gbps or cable.reach_m < length_m:
            continue
        # A straight cable fits either way round and is counted above; a splitter is counted where its wide end is.
        if _fits(cable.narrow, *lower) and _fits(cable.wide, *upper):
            yield _cable_medium(cable, wide_end_is_lower=False)
        elif _fits(cable.wide, *lower) and _fits(cable.narrow, *upper):
            yield _cable_medium(cable, wide_end_is_lower=cable.wide.ports != cable.narrow.ports)


def _fits(end: CableEnd, cage: str, ports_per_cage: int) -> bool:
    return cage in end.cages and end.ports == ports_per_cage


def _cable_medium(cable: Cable, *, wide_end_is_lower: bool) -> LinkMedium:
    # All links of one narrow end lead to the same device at the other end.
    key, bundle, reach_m = cable.key, cable.narrow.ports, cable.reach_m
    price, power = cable.price.cents, cable.power_w
    if cable.wide.ports == 1:
        return LinkMedium(key, cable.kind, None, None, key, bundle, reach_m, link_cents=price, link_w=power)
    if wide_end_is_lower:
        return LinkMedium(key, cable.kind, key, None, None, bundle, reach_m, lower_cage_cents=price, lower_cage_w=power)
    return LinkMedium(key, cable.kind, None, key, None, bundle, reach_m, upper_cage_cents=price, upper_cage_w=power)


def item_unit(catalog: Catalog, key: str, length_m: float = 0.0) -> ItemUnit:
    """Price and power of one piece of any component; `length_m` matters to fibres only.

    Raises:
        CatalogError: no component has this key, or it is a GPU without a price.
    """
    for section, components in (
        ("switches", catalog.switches),
        ("nics", catalog.nics),
        ("transceivers", catalog.transceivers),
        ("fibres", catalog.fibres),
        ("cables", catalog.cables),
        ("gpus", catalog.gpus),
    ):
        component = components.get(key)
        if component is None:
            continue
        price = component.price
        if price is None:
            raise _unusable(catalog, key, "a component without a price", "a component with a price")
        description = f"{component.vendor} {component.model}"
        return ItemUnit(
            key=key,
            section=section,
            description=f"{description}, {length_m:g} m" if isinstance(component, Fibre) else description,
            price_cents=component.price_cents(length_m) if isinstance(component, Fibre) else price.cents,
            # The power of a GPU belongs to its server, not to the network.
            power_w=0.0 if isinstance(component, Fibre | Gpu) else component.power_w,
            price_assumed=price.assumed,
            power_assumed=False if isinstance(component, Fibre | Gpu) else component.power_assumed,
            source=price.source,
            date=price.date,
        )
    raise _unusable(catalog, key, "no such component", "a key of the catalog")


def _unusable(catalog: Catalog, key: str, found: str, allowed: str) -> CatalogError:
    return CatalogError([Problem("+".join(catalog.names), None, key, found, allowed)])
