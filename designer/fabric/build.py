"""Draws the Fabric of a shape: every node, every link, every port, by array arithmetic."""

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from designer.catalog.components import Nic, NicMode
from designer.catalog.media import LinkMedium
from designer.fabric.fabric import CORE, GPU, LEAF, MANAGEMENT, SPINE, Column, Fabric, Links, MediumUse, Nodes
from designer.fabric.shape import ClosShape

_T = TypeVar("_T")


@dataclass
class Drawing:
    """Columns that grow as parts of a network are drawn; `finish` makes them a Fabric."""

    gpus: int
    rails: int
    nic: Nic
    node_columns: dict[str, list[Column]] = field(default_factory=dict[str, list[Column]])
    link_columns: dict[str, list[Column]] = field(default_factory=dict[str, list[Column]])
    models: list[str] = field(default_factory=list[str])
    media: list[MediumUse] = field(default_factory=list[MediumUse])
    size: int = 0

    def __post_init__(self) -> None:
        gpu = np.arange(self.gpus)
        self.add_nodes(self.gpus, GPU, rail=gpu % self.rails)

    def add_nodes(
        self,
        count: int,
        kind: int,
        *,
        rail: Column | int = -1,
        plane: Column | int = -1,
        pod: Column | int = -1,
        fabric: Column | int = -1,
        model: str | None = None,
    ) -> int:
        """Adds `count` nodes; returns the number of the first."""
        index = _index(self.models, model) if model else -1
        values = {"kind": kind, "rail": rail, "plane": plane, "pod": pod, "fabric": fabric, "model": index}
        for name, value in values.items():
            self.node_columns.setdefault(name, []).append(np.broadcast_to(np.asarray(value, dtype=np.int64), (count,)))
        first, self.size = self.size, self.size + count
        return first

    def add_links(
        self,
        a: tuple[Column, Column, Column],
        b: tuple[Column, Column, Column],
        gbps: int,
        medium: LinkMedium,
        length_m: float,
    ) -> None:
        """Adds links between (node, cage, lane) columns of the lower and the upper end."""
        use = MediumUse(medium.per_lower_cage, medium.per_upper_cage, medium.per_link, length_m)
        columns: dict[str, Column] = dict(
            zip(("a", "a_cage", "a_lane", "b", "b_cage", "b_lane"), (*a, *b), strict=True)
        )
        count = len(columns["a"])
        columns["gbps"] = np.full(count, gbps)
        columns["medium"] = np.full(count, _index(self.media, use))
        for name, column in columns.items():
            self.link_columns.setdefault(name, []).append(np.asarray(column, dtype=np.int64))

    def gpu_ports(self, mode: NicMode, plane: int, gpu: Column) -> tuple[Column, Column, Column]:
        """Node, cage and lane of the port of `plane` on each of `gpu`."""
        return nic_port(self.nic, mode, plane, gpu)

    def finish(self) -> Fabric:
        """The Fabric of all that was drawn."""
        nodes = Nodes(**{name: np.concatenate(parts) for name, parts in self.node_columns.items()})
        links = Links(**{name: np.concatenate(parts) for name, parts in self.link_columns.items()})
        return Fabric(self.gpus, self.nic.nics_per_cage, tuple(self.models), tuple(self.media), nodes, links)


def nic_port(nic: Nic, mode: NicMode, plane: int, gpu: Column) -> tuple[Column, Column, Column]:
    """Node, cage and lane of the port of `plane` on the NIC of each of `gpu`."""
    per_cage = nic.ports_per_cage(mode)
    if nic.nics_per_cage > 1:
        return gpu, np.zeros_like(gpu), gpu % nic.nics_per_cage * mode.ports + plane
    return gpu, np.full_like(gpu, plane // per_cage), np.full_like(gpu, plane % per_cage)


def _index(table: list[_T], value: _T) -> int:
    if value not in table:
        table.append(value)
    return table.index(value)


def build_clos(shape: ClosShape) -> Fabric:
    """The fabric of a Clos shape whose media are chosen.

    Raises:
        ValueError: the shape has port problems or no media.
    """
    problems = shape.problems()
    if problems or shape.media is None:
        raise ValueError("; ".join(problems) or "a shape without media")
    drawing = Drawing(shape.hosts.gpus, shape.hosts.rails, shape.hosts.nic)
    fabrics = [(plane, index) for plane in range(shape.hosts.planes) for index in range(shape.rail_sets)]
    ports = shape.hosts.management_ports
    management = [drawing.add_nodes(ports, MANAGEMENT, plane=plane) for plane, _ in fabrics]
    for number, ((plane, index), first) in enumerate(zip(fabrics, management, strict=True)):
        _draw_fabric(drawing, shape, number, plane, index, np.arange(first, first + ports))
    return drawing.finish()


def port_of(node: Column, port: Column, per_cage: int, first_cage: int = 0) -> tuple[Column, Column, Column]:
    """Node, cage and lane of ports counted from the first lane of `first_cage`."""
    return node, first_cage + port // per_cage, port % per_cage


def _draw_fabric(
    drawing: Drawing, shape: ClosShape, number: int, plane: int, rail_set: int, management: Column
) -> None:
    rails = shape.set_rails(rail_set)
    sizes = shape.leaf_sizes_of(rails)
    leaves = len(sizes)
    pod_of_leaf = np.arange(leaves) // (shape.cores.leaves_per_pod if shape.cores else leaves)
    leaf_rail = rail_of_leaf(shape, rails, rail_set, leaves)
    first_leaf = drawing.add_nodes(
        leaves,
        LEAF,
        rail=leaf_rail,
        plane=plane,
        pod=pod_of_leaf if shape.cores else -1,
        fabric=number,
        model=shape.leaf.switch.key,
    )
    draw_hosts(drawing, shape, plane, rail_set, first_leaf, management)
    if shape.spines is None:
        return
    same_rail = int(leaf_rail[0]) if len(set(leaf_rail.tolist())) == 1 else -1
    spine_pod = np.repeat(np.arange(shape.pods), shape.spines.count) if shape.cores else -1
    first_spine = drawing.add_nodes(
        shape.spines_per_fabric,
        SPINE,
        rail=same_rail,
        plane=plane,
        pod=spine_pod,
        fabric=number,
        model=shape.spines.tier.switch.key,
    )
    _draw_leaf_spine(drawing, shape, first_leaf, first_spine, leaves)
    if shape.cores is None:
        return
    first_core = drawing.add_nodes(
        shape.cores_per_fabric, CORE, rail=same_rail, plane=plane, fabric=number, model=shape.cores.tier.switch.key
    )
    _draw_spine_core(drawing, shape, first_spine, first_core)


def rail_of_leaf(shape: ClosShape, rails: int, rail_set: int, leaves: int) -> Column:
    """The rail that each leaf serves; -1 where it serves several."""
    if shape.layout.mixed or shape.hosts.rails == 1 or (shape.down >= 2 * shape.layout.per_rail and rails > 1):
        return np.full(leaves, 0 if shape.hosts.rails == 1 else -1)
    first = rail_set * shape.layout.rails
    per_rail = max(1, -(-shape.layout.per_rail // shape.down))
    rail = first + np.arange(leaves) // per_rail
    return np.where(rail < first + rails, rail, -1)  # leaves beyond hold management ports only


def leaf_places(shape: ClosShape, rail_set: int) -> tuple[Column, Column, Column]:
    """GPUs of a set of rails, and for each its leaf in the fabric of the set and its place among that leaf's ports."""
    layout, total_rails, down = shape.layout, shape.hosts.rails, shape.down
    gpu = np.arange(shape.hosts.gpus)
    if layout.mixed:
        return gpu, gpu // down, gpu % down
    gpu = gpu[(gpu % total_rails) // layout.rails == rail_set] if layout.rails < total_rails else gpu
    rail, position = gpu % total_rails - rail_set * layout.rails, gpu // total_rails
    if down >= layout.per_rail:
        whole = down // layout.per_rail
        return gpu, rail // whole, rail % whole * layout.per_rail + position
    leaf = rail * -(-layout.per_rail // down) + position // down
    return gpu, leaf, position % down


def draw_hosts(
    drawing: Drawing, shape: ClosShape, plane: int, rail_set: int, first_leaf: int, management: Column
) -> None:
    """Draws the links from NICs and management ports to the leaves of one fabric; tiers above them do not matter.

    Raises:
        ValueError: the shape has no media.
    """
    sizes = shape.leaf_sizes_of(shape.set_rails(rail_set))
    gpu, leaf, slot = leaf_places(shape, rail_set)
    media = shape.media
    if media is None:
        raise ValueError("a shape without media")
    per_cage = shape.leaf.down_mode.ports_per_cage
    drawing.add_links(
        drawing.gpu_ports(shape.hosts.nic_mode, plane, gpu),
        port_of(first_leaf + leaf, slot, per_cage),
        shape.hosts.gbps,
        media.host,
        media.host_m,
    )
    if len(management):
        taken = np.bincount(leaf, minlength=len(sizes))
        homes = np.repeat(np.arange(len(sizes)), sizes - taken)
        nth = np.arange(len(homes)) - np.searchsorted(homes, homes)
        zero = np.zeros_like(management)
        drawing.add_links(
            (management, zero, zero),
            port_of(first_leaf + homes, taken[homes] + nth, per_cage),
            shape.hosts.gbps,
            media.host,
            media.host_m,
        )


def _draw_leaf_spine(drawing: Drawing, shape: ClosShape, first_leaf: int, first_spine: int, leaves: int) -> None:
    spines, media, up_mode = shape.spines, shape.media, shape.leaf.up_mode
    if spines is None or media is None or media.leaf_spine is None or up_mode is None:
        raise ValueError("a shape without its second tier")
    leaf = np.repeat(np.arange(leaves), shape.uplinks)
    uplink = np.tile(np.arange(shape.uplinks), leaves)
    if spines.bundle is None:
        turn = leaf * shape.uplinks + uplink  # round and round: bundles differ by at most one
        spine, spine_port = turn % spines.count, turn // spines.count
    else:
        per_pod = shape.cores.leaves_per_pod if shape.cores else leaves
        spine = leaf // per_pod * spines.count + uplink // spines.bundle
        spine_port = leaf % per_pod * spines.bundle + uplink % spines.bundle
    down_cages = -(-shape.down // shape.leaf.down_mode.ports_per_cage)
    drawing.add_links(
        port_of(first_leaf + leaf, uplink, up_mode.ports_per_cage, down_cages),
        port_of(first_spine + spine, spine_port, spines.tier.down_mode.ports_per_cage),
        up_mode.gbps,
        media.leaf_spine,
        media.leaf_spine_m,
    )


def _draw_spine_core(drawing: Drawing, shape: ClosShape, first_spine: int, first_core: int) -> None:
    spines, cores, media = shape.spines, shape.cores, shape.media
    if spines is None or cores is None or media is None or media.spine_core is None or spines.tier.up_mode is None:
        raise ValueError("a shape without its third tier")
    count = shape.spines_per_fabric
    spine = np.repeat(np.arange(count), cores.uplinks)
    uplink = np.tile(np.arange(cores.uplinks), count)
    pod, place = spine // spines.count, spine % spines.count
    core = place // cores.positions * shape.cores_per_group + uplink // cores.bundle
    core_port = (pod * cores.positions + place % cores.positions) * cores.bundle + uplink % cores.bundle
    down_ports = min(cores.leaves_per_pod, shape.leaves) * (spines.bundle or 0)
    down_cages = -(-down_ports // spines.tier.down_mode.ports_per_cage)
    drawing.add_links(
        port_of(first_spine + spine, uplink, spines.tier.up_mode.ports_per_cage, down_cages),
        port_of(first_core + core, core_port, cores.tier.down_mode.ports_per_cage),
        spines.tier.up_mode.gbps,
        media.spine_core,
        media.spine_core_m,
    )
