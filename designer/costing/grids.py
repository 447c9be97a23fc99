"""What a grid costs: media for its three classes of links, and the objective in parts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from designer.catalog.components import Catalog
from designer.costing.pricing import MediaFinder, Pricing, pieces
from designer.costing.stock import Piece, class_pieces
from designer.fabric.fabric import Fabric
from designer.fabric.grid import ROW_HOST_M, GridMedia, GridShape, build_grid
from designer.instance.schema import CablingSection


@dataclass(frozen=True)
class PricedGrid:
    """A grid with media, and what it costs in cents by part: leaf, host, leaf_leaf, less what is owned of it."""

    shape: GridShape
    media: GridMedia
    parts: dict[str, int]
    saved_cents: int = 0

    @property
    def cents(self) -> int:
        """The objective."""
        return sum(self.parts.values()) - self.saved_cents

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
    """The grid with its cheapest media; None where some links have none that fits, or switches may not be bought."""
    best: PricedGrid | None = None
    for chosen in _media(shape, cabling, media):
        priced = _priced(shape, chosen, pricing, media.catalog)
        if priced is not None and (best is None or priced.cents < best.cents):
            best = priced
    return best


def _priced(shape: GridShape, chosen: GridMedia, pricing: Pricing, catalog: Catalog) -> PricedGrid | None:
    tally = shape.tally()
    parts = {
        "leaf": shape.switches * pricing.switch_cents(shape.switch),
        "host": pricing.class_cents(tally["row"], chosen.row) + pricing.class_cents(tally["column"], chosen.column),
        "leaf_leaf": pricing.class_cents(tally["row-column"], chosen.between),
    }
    if pricing.stock is None:
        return PricedGrid(shape, chosen, parts)
    needed: Counter[Piece] = Counter({(shape.switch.key, 0.0): shape.switches})
    needed += class_pieces(catalog, tally["row"], chosen.row, chosen.row_m)
    needed += class_pieces(catalog, tally["column"], chosen.column, chosen.column_m)
    needed += class_pieces(catalog, tally["row-column"], chosen.between, chosen.between_m)
    return PricedGrid(shape, chosen, parts, pricing.saved_cents(needed)) if pricing.permits(needed) else None


def _media(shape: GridShape, cabling: CablingSection, media: MediaFinder) -> Iterator[GridMedia]:
    """Every choice of media for the three classes of links."""
    hosts = shape.hosts
    nic_end = (hosts.nic.cage, hosts.nic.ports_per_cage(hosts.nic_mode))
    end = (shape.switch.cage, shape.mode.ports_per_cage)
    row_m = min(ROW_HOST_M, cabling.host_m) if shape.beside_servers else cabling.host_m
    rows = [item for item in media.between(nic_end, end, hosts.gbps, row_m) if item.bundle == 1]
    columns = [item for item in media.between(nic_end, end, hosts.gbps, cabling.host_m) if item.bundle == 1]
    between = [item for item in media.between(end, end, hosts.gbps, cabling.leaf_spine_m) if item.bundle == 1]
    for row, column, chosen in product(rows, columns, between):
        # Both ports of a NIC with one socket go through the same module.
        if hosts.nic.cages_per_nic > 1 or (row.kind == "optics" and row.per_lower_cage == column.per_lower_cage):
            yield GridMedia(row, row_m, column, cabling.host_m, chosen, cabling.leaf_spine_m)
