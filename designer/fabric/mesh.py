"""Meshes: the leaves of a fabric joined each with each other one by equal bundles of links, and no tier above them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designer.catalog.media import LinkMedium
from designer.fabric.build import Drawing, draw_hosts, port_of
from designer.fabric.fabric import LEAF, Fabric, flat_counts
from designer.fabric.shape import ClassTally, ClosShape, Hosts, Media, Tier
from designer.workload.cuts import Layout


@dataclass(frozen=True)
class MeshShape:
    """Leaves of one model with `down` ports to endpoints, and `bundle` links in `leaf.up_mode` between any two.

    Fabrics are those of a Clos: one for each plane and each set of `layout.rails` rails.
    """

    hosts: Hosts
    layout: Layout
    leaf: Tier
    down: int
    bundle: int = 1

    @property
    def leaves(self) -> int:
        """Leaves of one fabric."""
        return self.layout.leaves(self.down)

    @property
    def uplinks(self) -> int:
        """Links of a leaf to the others."""
        return (self.leaves - 1) * self.bundle

    @property
    def fabrics(self) -> int:
        """Separate networks."""
        return self.hosts.rails // self.layout.rails * self.hosts.planes

    @property
    def switches(self) -> int:
        """All switches."""
        return self.leaves * self.fabrics

    @cached_property
    def below(self) -> ClosShape:
        """The leaves and their hosts alone, as the lowest tier of a Clos."""
        return ClosShape(self.hosts, self.layout, self.leaf, self.down)

    def counts(self) -> dict[str, int]:
        """Totals over all fabrics, by closed form; the same keys as `Fabric.counts`."""
        tally = self.tally()
        hosts, between = tally["host"].links, tally["leaf-leaf"].links
        return flat_counts(self.switches, self.fabrics, self.hosts.planes, hosts, between)

    def problems(self) -> list[str]:
        """Why it cannot be built; empty when it can."""
        found: list[str | None] = [self.leaf.ports_problem(self.down, self.uplinks)]
        if self.leaves < 2 or self.leaf.up_mode is None:
            found.append("a mesh joins two leaves at least")
        if self.leaf.down_mode.gbps != self.hosts.gbps:
            found.append(f"leaf ports of {self.leaf.down_mode.gbps} Gb/s for endpoints of {self.hosts.gbps}")
        if self.hosts.rails % self.layout.rails:
            found.append(f"sets of {self.layout.rails} rails do not divide {self.hosts.rails}")
        if self.hosts.management_ports:
            found.append("management ports in a mesh")
        return [problem for problem in found if problem]

    def tally(self) -> dict[str, ClassTally]:
        """Links and cages to hosts and between leaves.

        A cage of a leaf may hold the lower ends of some links between leaves and the upper ends of others: all such
        cages are counted as lower ones.
        """
        links = self.switches * self.uplinks // 2
        per_cage = self.leaf.up_mode.ports_per_cage if self.leaf.up_mode else 1
        cages = self.switches * -(-self.uplinks // per_cage)
        return {"host": self.below.tally()["host"], "leaf-leaf": ClassTally(links, cages, 0)}


@dataclass(frozen=True)
class MeshMedia:
    """Media of the two classes of links, with their lengths in metres."""

    host: LinkMedium
    host_m: float
    between: LinkMedium
    between_m: float


def build_mesh(shape: MeshShape, media: MeshMedia) -> Fabric:
    """The fabric of a mesh.

    Raises:
        ValueError: the shape has problems.
    """
    if (problems := shape.problems()) or shape.leaf.up_mode is None:
        raise ValueError("; ".join(problems))
    hosts, mode = shape.hosts, shape.leaf.up_mode
    below = ClosShape(hosts, shape.layout, shape.leaf, shape.down, media=Media(media.host, media.host_m))
    drawing = Drawing(hosts.gpus, hosts.rails, hosts.nic)
    down_cages = -(-shape.down // shape.leaf.down_mode.ports_per_cage)
    one, other = (np.repeat(leaf, shape.bundle) for leaf in np.triu_indices(shape.leaves, 1))
    nth = np.tile(np.arange(shape.bundle), len(one) // shape.bundle)
    # A leaf's bundles come in the order of the leaves that they lead to, itself left out.
    to_other, to_one = (other - 1) * shape.bundle + nth, one * shape.bundle + nth
    for number in range(shape.fabrics):
        plane, rail_set = divmod(number, shape.fabrics // hosts.planes)
        first = drawing.add_nodes(shape.leaves, LEAF, plane=plane, fabric=number, model=shape.leaf.switch.key)
        draw_hosts(drawing, below, plane, rail_set, first, np.arange(0))
        drawing.add_links(
            port_of(first + one, to_other, mode.ports_per_cage, down_cages),
            port_of(first + other, to_one, mode.ports_per_cage, down_cages),
            mode.gbps,
            media.between,
            media.between_m,
        )
    return drawing.finish()
