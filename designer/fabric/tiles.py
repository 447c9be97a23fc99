"""Tiled planes: two planes of leaves that each serve endpoints in an order of their own, joined by spines or not.

The ranks of a GPU are the digits of its number: its place in the HB domain, then what the groups of the traffic divide
it into. A tile is a block of so many neighbours in every digit; one leaf of a plane serves one tile. With other tiles
in the other plane, peers that one plane would send through spines share a leaf there. No switch belongs to both planes.
"""

import math
from dataclasses import dataclass

import numpy as np

from designer.catalog.components import PortMode, Switch
from designer.catalog.media import LinkMedium
from designer.fabric.build import Drawing
from designer.fabric.fabric import LEAF, Column, Fabric, flat_counts
from designer.fabric.grid import ROW_HOST_M
from designer.fabric.shape import ClassTally, Hosts


@dataclass(frozen=True)
class TiledPlane:
    """One plane: sides of a tile in every digit; `spines` over the leaves of a part, `bundle` links to each of them.

    Without spines the leaves stand alone. `joined` says whether spines join all leaves, or those of a rail.
    """

    sides: tuple[int, ...]
    spines: int = 0
    bundle: int = 0
    joined: bool = False

    @property
    def down(self) -> int:
        """Ports of a leaf to endpoints."""
        return math.prod(self.sides)

    @property
    def uplinks(self) -> int:
        """Ports of a leaf to spines."""
        return self.spines * self.bundle


@dataclass(frozen=True)
class TilesShape:
    """Two tiled planes on switches of one model whose ports all run in `mode`; `radices` are the digits' sizes.

    The first digit is the GPU's place among the rails; the product of all is the number of GPUs.
    """

    hosts: Hosts
    switch: Switch
    mode: PortMode
    radices: tuple[int, ...]
    planes: tuple[TiledPlane, TiledPlane]

    def leaves(self, plane: TiledPlane) -> int:
        """Leaves of a plane."""
        return self.hosts.gpus // plane.down

    def parts(self, plane: TiledPlane) -> int:
        """Parts of a plane that no spine joins, where it has spines."""
        return 1 if plane.joined else self.radices[0] // plane.sides[0]

    def part_leaves(self, plane: TiledPlane) -> int:
        """Leaves that the same spines join."""
        return self.leaves(plane) // self.parts(plane)

    @property
    def switches(self) -> int:
        """All switches."""
        return sum(self.leaves(plane) + self.parts(plane) * plane.spines for plane in self.planes)

    @property
    def beside_servers(self) -> int | None:
        """The plane that has all GPUs of a server on one leaf, which then stands beside its servers; one at most."""
        whole = [number for number, plane in enumerate(self.planes) if 1 < plane.sides[0] == self.radices[0]]
        return whole[0] if whole else None

    def places(self, plane: TiledPlane) -> tuple[Column, Column]:
        """The leaf of every GPU, those of a rail in a row, and its port there."""
        leaf, port = np.zeros(self.hosts.gpus, dtype=np.int64), np.zeros(self.hosts.gpus, dtype=np.int64)
        ports, rest = 1, np.arange(self.hosts.gpus)
        numbers: list[tuple[Column, int]] = []
        for radix, side in zip(self.radices, plane.sides, strict=True):
            rest, digit = np.divmod(rest, radix)
            port += digit % side * ports
            ports *= side
            numbers.append((digit // side, radix // side))
        # The first digit, that of the rails, changes last.
        factor = 1
        for number, count in (*numbers[1:], numbers[0]):
            leaf += number * factor
            factor *= count
        return leaf, port

    def counts(self) -> dict[str, int]:
        """Totals, by closed form; the same keys as `Fabric.counts`."""
        hosts = 2 * self.hosts.gpus
        between = sum(self.leaves(plane) * plane.uplinks for plane in self.planes)
        fabrics = sum(self.parts(plane) if plane.spines else self.leaves(plane) for plane in self.planes)
        return flat_counts(self.switches, fabrics, 2, hosts, between)

    def problems(self) -> list[str]:
        """Why it cannot be built; empty when it can."""
        found: list[str] = []
        if self.hosts.planes != 2:
            found.append(f"a NIC of 2 ports is needed, not {self.hosts.planes}")
        if self.mode.gbps != self.hosts.gbps:
            found.append(f"switch ports of {self.mode.gbps} Gb/s for endpoints of {self.hosts.gbps}")
        if math.prod(self.radices) != self.hosts.gpus:
            found.append(f"digits of {math.prod(self.radices)} GPUs for {self.hosts.gpus}")
        for plane in self.planes:
            if any(radix % side for radix, side in zip(self.radices, plane.sides, strict=True)):
                found.append(f"sides {plane.sides} do not divide {self.radices}")
            elif plane.spines:
                found += self._too_many(plane.down, plane.uplinks)
                found += self._too_many(self.part_leaves(plane) * plane.bundle, 0)
            else:
                found += self._too_many(plane.down, 0)
        return found

    def _too_many(self, down: int, up: int) -> list[str]:
        cages = self._cages(down) + self._cages(up)
        if cages <= self.switch.cages and down + up <= self.switch.max_ports:
            return []
        return [f"{self.switch.key}: {down + up} ports, it has {self.switch.radix(self.mode)}"]

    def _cages(self, ports: int) -> int:
        return -(-ports // self.mode.ports_per_cage)

    def tally(self) -> dict[str, ClassTally]:
        """Links and cages: to leaves of each plane, and between switches of each.

        Ports for hosts and for switches share no cage, so that each cage holds one kind of module.
        """
        gpus, nic = self.hosts.gpus, self.hosts.nic
        found: dict[str, ClassTally] = {}
        for number, plane in enumerate(self.planes):
            leaves = self.leaves(plane)
            lower = gpus // nic.nics_per_cage if number == 0 or nic.cages_per_nic > 1 else 0
            found[f"host {number}"] = ClassTally(gpus, lower, leaves * self._cages(plane.down))
            spines = self.parts(plane) * plane.spines
            found[f"between {number}"] = ClassTally(
                leaves * plane.uplinks,
                leaves * self._cages(plane.uplinks),
                spines * self._cages(self.part_leaves(plane) * plane.bundle),
            )
        return found


@dataclass(frozen=True)
class TilesMedia:
    """Media of links to hosts, of each plane with its length in metres, and between switches."""

    hosts: tuple[LinkMedium, LinkMedium]
    hosts_m: tuple[float, float]
    between: LinkMedium
    between_m: float


def hosts_m(shape: TilesShape, typical_m: float) -> tuple[float, float]:
    """Length of the links to the hosts of each plane: short where leaves stand beside the servers."""
    first, second = (min(ROW_HOST_M, typical_m) if shape.beside_servers == plane else typical_m for plane in range(2))
    return first, second


def build_tiles(shape: TilesShape, media: TilesMedia) -> Fabric:
    """The fabric of tiled planes.

    Raises:
        ValueError: the shape has problems.
    """
    if problems := shape.problems():
        raise ValueError("; ".join(problems))
    hosts, per_cage = shape.hosts, shape.mode.ports_per_cage
    drawing = Drawing(hosts.gpus, hosts.rails, hosts.nic)
    first_fabric = 0
    for number, plane in enumerate(shape.planes):
        leaves = shape.leaves(plane)
        in_part = shape.part_leaves(plane) if plane.spines else 1
        fabric = first_fabric + np.arange(leaves) // in_part
        first = drawing.add_nodes(leaves, LEAF, plane=number, fabric=fabric, model=shape.switch.key)
        leaf, port = shape.places(plane)
        gpu = np.lexsort((port, leaf))
        end = (first + leaf[gpu], port[gpu] // per_cage, port[gpu] % per_cage)
        drawing.add_links(
            drawing.gpu_ports(hosts.nic_mode, number, gpu), end, hosts.gbps, media.hosts[number], media.hosts_m[number]
        )
        if plane.spines:
            _draw_spines(drawing, shape, number, first, first_fabric, media)
        first_fabric += leaves // in_part
    return drawing.finish()


def _draw_spines(
    drawing: Drawing, shape: TilesShape, number: int, first_leaf: int, first_fabric: int, media: TilesMedia
) -> None:
    plane, per_cage = shape.planes[number], shape.mode.ports_per_cage
    spines, parts, in_part = plane.spines, shape.parts(plane), shape.part_leaves(plane)
    fabric = first_fabric + np.arange(parts * spines) // spines
    first = drawing.add_nodes(parts * spines, LEAF, plane=number, fabric=fabric, model=shape.switch.key)
    leaf, port = np.divmod(np.arange(shape.leaves(plane) * plane.uplinks), plane.uplinks)
    spine, nth = np.divmod(port, plane.bundle)
    part, place = np.divmod(leaf, in_part)
    spine_port = place * plane.bundle + nth
    drawing.add_links(
        (first_leaf + leaf, -(-plane.down // per_cage) + port // per_cage, port % per_cage),
        (first + part * spines + spine, spine_port // per_cage, spine_port % per_cage),
        shape.hosts.gbps,
        media.between,
        media.between_m,
    )
