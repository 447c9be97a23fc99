"""Grids: row and column switches in a complete bipartite graph, and GPUs with two NIC ports at the crossings.

Port 0 of a GPU at cell (i, j) goes to row switch i, port 1 to column switch j; `bundle` links join every row switch
with every column switch. With one GPU to a cell and single links this is ZCube(n, 2): Yan et al., SIGCOMM 2025. Where
the GPUs fill no rectangle the last row is short.
"""

import math
from dataclasses import dataclass

import numpy as np

from designer.catalog.components import PortMode, Switch
from designer.catalog.media import LinkMedium
from designer.fabric.build import Drawing
from designer.fabric.fabric import LEAF, Column, Fabric, flat_counts
from designer.fabric.shape import ClassTally, Hosts

ROW_HOST_M = 3.0  # all NICs of a server share the row switch, which stands beside it (ATOP, section 4.1)


@dataclass(frozen=True)
class GridShape:
    """A grid on one switch model; all its ports run in `mode`. `per_cell` GPUs sit at each crossing.

    GPUs fill the cells row by row in their own order, or rail by rail where `by_rail` is set.
    """

    hosts: Hosts
    switch: Switch
    mode: PortMode
    columns: int
    per_cell: int = 1
    bundle: int = 1
    by_rail: bool = False

    @property
    def rows(self) -> int:
        """Row switches."""
        return -(-self.hosts.gpus // (self.columns * self.per_cell))

    @property
    def switches(self) -> int:
        """All switches."""
        return self.rows + self.columns

    @property
    def beside_servers(self) -> bool:
        """Whether every server has all its GPUs on one row switch, which can then stand beside it."""
        return not self.by_rail and self.columns * self.per_cell % self.hosts.rails == 0

    def cells(self) -> tuple[Column, Column]:
        """The row and the column of every GPU."""
        gpu = np.arange(self.hosts.gpus)
        rails = self.hosts.rails
        place = gpu % rails * (self.hosts.gpus // rails) + gpu // rails if self.by_rail else gpu
        row, column = np.divmod(place // self.per_cell, self.columns)
        return row, column

    def counts(self) -> dict[str, int]:
        """Totals, by closed form; the same keys as `Fabric.counts`."""
        hosts, between = 2 * self.hosts.gpus, self.rows * self.columns * self.bundle
        return flat_counts(self.switches, 1, 2, hosts, between)

    def problems(self) -> list[str]:
        """Why it cannot be built; empty when it can."""
        found: list[str] = []
        if self.hosts.planes != 2:
            found.append(f"a NIC of 2 ports is needed, not {self.hosts.planes}")
        if self.mode.gbps != self.hosts.gbps:
            found.append(f"switch ports of {self.mode.gbps} Gb/s for endpoints of {self.hosts.gbps}")
        per_cage = self.mode.ports_per_cage
        for others in (self.columns, self.rows):
            down, across = others * self.per_cell, others * self.bundle
            cages = -(-down // per_cage) + -(-across // per_cage)
            if cages > self.switch.cages or down + across > self.switch.max_ports:
                found.append(f"{self.switch.key}: {down + across} ports, it has {self.switch.radix(self.mode)}")
        return found

    def tally(self) -> dict[str, ClassTally]:
        """Links and cages: to row switches, to column switches, between the two.

        Ports for hosts and for switches share no cage, so that each cage holds one kind of module.
        """
        gpus, per_cage = self.hosts.gpus, self.mode.ports_per_cage
        nic = self.hosts.nic
        own_cage = nic.cages_per_nic > 1
        lower = gpus // nic.nics_per_cage
        in_rows, in_columns = (int((-(-np.bincount(place) // per_cage)).sum()) for place in self.cells())
        across = [-(-others * self.bundle // per_cage) for others in (self.columns, self.rows)]
        return {
            "row": ClassTally(gpus, lower, in_rows),
            "column": ClassTally(gpus, lower if own_cage else 0, in_columns),
            "row-column": ClassTally(
                self.rows * self.columns * self.bundle, self.rows * across[0], self.columns * across[1]
            ),
        }


def zcube(hosts: Hosts, switch: Switch, mode: PortMode) -> GridShape:
    """ZCube(n, 2) for these GPUs, n the side of the smallest square that holds them."""
    return GridShape(hosts, switch, mode, math.isqrt(hosts.gpus - 1) + 1)


@dataclass(frozen=True)
class GridMedia:
    """Media of the three classes of links, with their lengths in metres."""

    row: LinkMedium
    row_m: float
    column: LinkMedium
    column_m: float
    between: LinkMedium
    between_m: float


def build_grid(shape: GridShape, media: GridMedia) -> Fabric:
    """The fabric of a grid.

    Raises:
        ValueError: the shape has problems.
    """
    if problems := shape.problems():
        raise ValueError("; ".join(problems))
    hosts, per_cage = shape.hosts, shape.mode.ports_per_cage
    drawing = Drawing(hosts.gpus, hosts.rails, hosts.nic)
    first_row = drawing.add_nodes(shape.rows, LEAF, plane=0, fabric=0, model=shape.switch.key)
    first_column = drawing.add_nodes(shape.columns, LEAF, plane=1, fabric=0, model=shape.switch.key)
    row, column = shape.cells()
    for plane, first, place, medium, length_m in (
        (0, first_row, row, media.row, media.row_m),
        (1, first_column, column, media.column, media.column_m),
    ):
        gpu = np.lexsort((row, column, place))
        port = np.arange(hosts.gpus) - np.searchsorted(place[gpu], place[gpu])
        end = (first + place[gpu], port // per_cage, port % per_cage)
        drawing.add_links(drawing.gpu_ports(hosts.nic_mode, plane, gpu), end, hosts.gbps, medium, length_m)
    link = np.arange(shape.rows * shape.columns * shape.bundle)
    row, rest = np.divmod(link, shape.columns * shape.bundle)
    column, nth = np.divmod(rest, shape.bundle)
    row_cage, column_cage = (-(-others * shape.per_cell // per_cage) for others in (shape.columns, shape.rows))
    row_port, column_port = column * shape.bundle + nth, row * shape.bundle + nth
    drawing.add_links(
        (first_row + row, row_cage + row_port // per_cage, row_port % per_cage),
        (first_column + column, column_cage + column_port // per_cage, column_port % per_cage),
        hosts.gbps,
        media.between,
        media.between_m,
    )
    return drawing.finish()
