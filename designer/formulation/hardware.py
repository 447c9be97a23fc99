"""What the catalog offers for each tier: switches worth looking at, their modes, and the media between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from designer.catalog.components import Catalog, Nic, Switch
from designer.catalog.media import LinkMedium
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.shape import Tier
from designer.instance.schema import CablingSection, SearchSection


@dataclass(frozen=True)
class LeafKind:
    """Leaves of one model and down mode, with one medium to the hosts."""

    tier: Tier
    medium: LinkMedium


@dataclass(frozen=True)
class TierKind:
    """An upper tier joined to the tier below: the lower switch's up mode, this switch and its down mode, the medium."""

    lower: Tier
    tier: Tier
    medium: LinkMedium

    @property
    def gbps(self) -> int:
        """Rate of a link between the two tiers."""
        return self.tier.down_mode.gbps


def usable_switches(catalog: Catalog, nic: Nic, search: SearchSection, pricing: Pricing) -> list[Switch]:
    """Switches that the search may use, without those that another one replaces at no higher cost.

    Models that are owned stay, and where no others may be bought they are all there is.
    """
    stock = pricing.stock
    owned = frozenset[str]() if stock is None else stock.keys
    allowed = [
        switch
        for key, switch in catalog.switches.items()
        if (key in owned or ((stock is None or stock.new_switches) and key in (search.switches or catalog.switches)))
        and usable_protocols(switch, nic, search)
    ]
    return [
        switch
        for index, switch in enumerate(allowed)
        if switch.key in owned
        or not any(
            _replaces(other, switch, pricing, earlier=number < index)
            for number, other in enumerate(allowed)
            if number != index
        )
    ]


def usable_protocols(switch: Switch, nic: Nic, search: SearchSection) -> list[str]:
    """Protocols that switch and NIC share and the search allows."""
    return [
        protocol
        for protocol in switch.protocols
        if protocol in nic.protocols and (search.protocols is None or protocol in search.protocols)
    ]


def _replaces(one: Switch, other: Switch, pricing: Pricing, *, earlier: bool) -> bool:
    cost, other_cost = pricing.switch_cents(one), pricing.switch_cents(other)
    return (
        set(other.protocols) <= set(one.protocols)
        and one.cage == other.cage
        and one.cages >= other.cages
        and one.max_ports >= other.max_ports
        and set(other.modes) <= set(one.modes)
        and (cost < other_cost or (cost == other_cost and (earlier or one.cages > other.cages)))
    )


def joinable(lower: Switch, upper: Switch) -> bool:
    """Whether the two speak one protocol."""
    return bool(set(lower.protocols) & set(upper.protocols))


def tiers_above(lower: Tier, switches: list[Switch], media: MediaFinder, length_m: float) -> Iterator[TierKind]:
    """Every way to put a tier above `lower`: up mode, switch, its down mode, medium."""
    for up_mode in lower.switch.modes:
        for switch in switches:
            if not joinable(lower.switch, switch):
                continue
            for down_mode in switch.modes_at(up_mode.gbps):
                ends = (lower.switch.cage, up_mode.ports_per_cage), (switch.cage, down_mode.ports_per_cage)
                for medium in media.between(*ends, up_mode.gbps, length_m):
                    yield TierKind(Tier(lower.switch, lower.down_mode, up_mode), Tier(switch, down_mode), medium)


def leaf_kinds(
    switches: list[Switch], nic: Nic, ports: int, gbps: int, media: MediaFinder, cabling: CablingSection
) -> Iterator[LeafKind]:
    """Every leaf for endpoints of `gbps`, `ports` of them to a NIC: model, down mode, medium to the hosts."""
    nic_ports_per_cage = ports * nic.nics_per_cage // nic.cages_per_nic
    for switch in switches:
        for mode in switch.modes_at(gbps):
            ends = (nic.cage, nic_ports_per_cage), (switch.cage, mode.ports_per_cage)
            for medium in media.between(*ends, gbps, cabling.host_m):
                if medium.bundle == 1:
                    yield LeafKind(Tier(switch, mode), medium)
