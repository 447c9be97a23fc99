"""What a grid costs: media for its three classes of links, and the objective in parts."""

from collections import Counter
from dataclasses import dataclass

from designer.costing.pricing import MediaFinder, Pricing, pieces
from designer.fabric.fabric import Fabric
from designer.fabric.grid import ROW_HOST_M, GridMedia, GridShape, build_grid
from designer.instance.schema import CablingSection


@dataclass(frozen=True)
class PricedGrid:
    """A grid with media, and what it costs in cents by part: leaf, host, leaf_leaf."""

    shape: GridShape
    media: GridMedia
    parts: dict[str, int]

    @property
    def cents(self) -> int:
        """The objective."""
        return sum(self.parts.values())

    def pieces(self) -> Counter[str]:
        """Cables and modules by catalog key."""
        tally = self.shape.tally()
        used = {"row": self.media.row, "column": self.media.column, "row-column": self.media.between}
        bought: Counter[str] = Counter()
        for name, medium in used.items():
            bought += pieces(tally[name], medium)
        return bought

    def draw(self) -> Fabric:
        """The network link by link."""
        return build_grid(self.shape, self.media)


def priced_grid(shape: GridShape, cabling: CablingSection, pricing: Pricing, media: MediaFinder) -> PricedGrid | None:
    """The grid with its cheapest media; None where some links have none that fits."""
    chosen = _media(shape, cabling, pricing, media)
    if chosen is None:
        return None
    tally = shape.tally()
    parts = {
        "leaf": shape.switches * pricing.switch_cents(shape.switch),
        "host": pricing.class_cents(tally["row"], chosen.row) + pricing.class_cents(tally["column"], chosen.column),
        "leaf_leaf": pricing.class_cents(tally["row-column"], chosen.between),
    }
    return PricedGrid(shape, chosen, parts)


def _media(shape: GridShape, cabling: CablingSection, pricing: Pricing, media: MediaFinder) -> GridMedia | None:
    hosts, tally = shape.hosts, shape.tally()
    nic_end = (hosts.nic.cage, hosts.nic.ports_per_cage(hosts.nic_mode))
    end = (shape.switch.cage, shape.mode.ports_per_cage)
    row_m = min(ROW_HOST_M, cabling.host_m) if shape.beside_servers else cabling.host_m
    rows = [item for item in media.between(nic_end, end, hosts.gbps, row_m) if item.bundle == 1]
    columns = [item for item in media.between(nic_end, end, hosts.gbps, cabling.host_m) if item.bundle == 1]
    between = [item for item in media.between(end, end, hosts.gbps, cabling.leaf_spine_m) if item.bundle == 1]
    pairs = [
        (row, column)
        for row in rows
        for column in columns
        # Both ports of a NIC with one socket go through the same module.
        if hosts.nic.cages_per_nic > 1 or (row.kind == "optics" and row.per_lower_cage == column.per_lower_cage)
    ]
    if not pairs or not between:
        return None
    row, column = min(
        pairs,
        key=lambda pair: pricing.class_cents(tally["row"], pair[0]) + pricing.class_cents(tally["column"], pair[1]),
    )
    chosen = min(between, key=lambda item: pricing.class_cents(tally["row-column"], item))
    return GridMedia(row, row_m, column, cabling.host_m, chosen, cabling.leaf_spine_m)
