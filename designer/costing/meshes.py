"""What a mesh costs: media for its two classes of links, and the objective in parts."""

from collections import Counter
from dataclasses import dataclass
from itertools import product

from designer.catalog.components import Catalog
from designer.catalog.media import LinkMedium
from designer.costing.pricing import MediaFinder, Pricing, pieces
from designer.costing.stock import Piece, class_pieces
from designer.fabric.fabric import Fabric
from designer.fabric.mesh import MeshMedia, MeshShape, build_mesh
from designer.instance.schema import CablingSection


@dataclass(frozen=True)
class PricedMesh:
    """A mesh with media, and what it costs in cents by part: leaf, host, leaf_leaf, less what is owned of it."""

    shape: MeshShape
    media: MeshMedia
    parts: dict[str, int]
    saved_cents: int = 0

    @property
    def cents(self) -> int:
        """The objective."""
        return sum(self.parts.values()) - self.saved_cents

    def pieces(self) -> Counter[str]:
        """Cables and modules by catalog key."""
        tally = self.shape.tally()
        return pieces(tally["host"], self.media.host) + pieces(tally["leaf-leaf"], self.media.between)

    def draw(self) -> Fabric:
        """The network link by link."""
        return build_mesh(self.shape, self.media)


def priced_mesh(shape: MeshShape, cabling: CablingSection, pricing: Pricing, media: MediaFinder) -> PricedMesh | None:
    """The mesh with its cheapest media; None where some links have none that fits, or switches may not be bought."""
    hosts, leaf = shape.hosts, shape.leaf
    if leaf.up_mode is None:
        return None
    nic_end = (hosts.nic.cage, hosts.nic.ports_per_cage(hosts.nic_mode))
    host_end = (leaf.switch.cage, leaf.down_mode.ports_per_cage)
    end = (leaf.switch.cage, leaf.up_mode.ports_per_cage)
    to_hosts = [item for item in media.between(nic_end, host_end, hosts.gbps, cabling.host_m) if item.bundle == 1]
    between = [item for item in media.between(end, end, leaf.up_mode.gbps, cabling.leaf_spine_m) if _even(item)]
    best: PricedMesh | None = None
    for host, chosen in product(to_hosts, between):
        used = MeshMedia(host, cabling.host_m, chosen, cabling.leaf_spine_m)
        priced = _priced(shape, used, pricing, media.catalog)
        if priced is not None and (best is None or priced.cents < best.cents):
            best = priced
    return best


def _priced(shape: MeshShape, used: MeshMedia, pricing: Pricing, catalog: Catalog) -> PricedMesh | None:
    tally = shape.tally()
    parts = {
        "leaf": shape.switches * pricing.switch_cents(shape.leaf.switch),
        "host": pricing.class_cents(tally["host"], used.host),
        "leaf_leaf": pricing.class_cents(tally["leaf-leaf"], used.between),
    }
    if pricing.stock is None:
        return PricedMesh(shape, used, parts)
    needed: Counter[Piece] = Counter({(shape.leaf.switch.key, 0.0): shape.switches})
    needed += class_pieces(catalog, tally["host"], used.host, used.host_m)
    needed += class_pieces(catalog, tally["leaf-leaf"], used.between, used.between_m)
    return PricedMesh(shape, used, parts, pricing.saved_cents(needed)) if pricing.permits(needed) else None


def _even(medium: LinkMedium) -> bool:
    """Whether both ends of a link take the same, so that a cage may hold ends of either kind."""
    return medium.bundle == 1 and medium.per_lower_cage == medium.per_upper_cage
