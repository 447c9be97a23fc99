"""What a mesh costs: media for its two classes of links, and the objective in parts."""

from collections import Counter
from dataclasses import dataclass

from designer.catalog.media import LinkMedium
from designer.costing.pricing import MediaFinder, Pricing, pieces
from designer.fabric.fabric import Fabric
from designer.fabric.mesh import MeshMedia, MeshShape, build_mesh
from designer.instance.schema import CablingSection


@dataclass(frozen=True)
class PricedMesh:
    """A mesh with media, and what it costs in cents by part: leaf, host, leaf_leaf."""

    shape: MeshShape
    media: MeshMedia
    parts: dict[str, int]

    @property
    def cents(self) -> int:
        """The objective."""
        return sum(self.parts.values())

    def pieces(self) -> Counter[str]:
        """Cables and modules by catalog key."""
        tally = self.shape.tally()
        return pieces(tally["host"], self.media.host) + pieces(tally["leaf-leaf"], self.media.between)

    def draw(self) -> Fabric:
        """The network link by link."""
        return build_mesh(self.shape, self.media)


def priced_mesh(shape: MeshShape, cabling: CablingSection, pricing: Pricing, media: MediaFinder) -> PricedMesh | None:
    """The mesh with its cheapest media; None where some links have none that fits."""
    hosts, leaf, tally = shape.hosts, shape.leaf, shape.tally()
    if leaf.up_mode is None:
        return None
    nic_end = (hosts.nic.cage, hosts.nic.ports_per_cage(hosts.nic_mode))
    host_end = (leaf.switch.cage, leaf.down_mode.ports_per_cage)
    end = (leaf.switch.cage, leaf.up_mode.ports_per_cage)
    to_hosts = [item for item in media.between(nic_end, host_end, hosts.gbps, cabling.host_m) if item.bundle == 1]
    between = [item for item in media.between(end, end, leaf.up_mode.gbps, cabling.leaf_spine_m) if _even(item)]
    if not to_hosts or not between:
        return None
    host = min(to_hosts, key=lambda item: pricing.class_cents(tally["host"], item))
    chosen = min(between, key=lambda item: pricing.class_cents(tally["leaf-leaf"], item))
    parts = {
        "leaf": shape.switches * pricing.switch_cents(leaf.switch),
        "host": pricing.class_cents(tally["host"], host),
        "leaf_leaf": pricing.class_cents(tally["leaf-leaf"], chosen),
    }
    return PricedMesh(shape, MeshMedia(host, cabling.host_m, chosen, cabling.leaf_spine_m), parts)


def _even(medium: LinkMedium) -> bool:
    """Whether both ends of a link take the same, so that a cage may hold ends of either kind."""
    return medium.bundle == 1 and medium.per_lower_cage == medium.per_upper_cage
