"""ZCube(n, 2): n x n GPUs with two NIC ports each, n row and n column switches in a complete bipartite graph.

Port 0 of GPU (i, j) goes to row switch i, port 1 to column switch j. Source: Yan et al., SIGCOMM 2025. Where the GPUs
are no square the last row is short.
"""

import math
from dataclasses import dataclass

import numpy as np

from designer.catalog.components import PortMode, Switch
from designer.catalog.media import LinkMedium
from designer.fabric.build import Drawing
from designer.fabric.fabric import LEAF, Fabric
from designer.fabric.shape import ClassTally, Hosts

ROW_HOST_M = 3.0  # all NICs of a server share the row switch, which stands beside it (ATOP, section 4.1)


@dataclass(frozen=True)
class ZCubeShape:
    """A ZCube on one switch model; all its ports run in `mode`."""

    hosts: Hosts
    switch: Switch
    mode: PortMode

    @property
    def columns(self) -> int:
        """Column switches, and GPUs of a full row."""
        return math.isqrt(self.hosts.gpus - 1) + 1

    @property
    def rows(self) -> int:
        """Row switches."""
        return -(-self.hosts.gpus // self.columns)

    @property
    def switches(self) -> int:
        """All switches."""
        return self.rows + self.columns

    def counts(self) -> dict[str, int]:
        """Totals, by closed form; the same keys as `Fabric.counts`."""
        hosts, between = 2 * self.hosts.gpus, self.rows * self.columns
        return {
            "switches": self.switches,
            "leaf": self.switches,
            "spine": 0,
            "core": 0,
            "fabrics": 1,
            "planes": 2,
            "links": hosts + between,
            "endpoint_links": hosts,
            "leaf_leaf_links": between,
            "leaf_spine_links": 0,
            "spine_core_links": 0,
        }

    def problems(self) -> list[str]:
        """Why it cannot be built; empty when it can."""
        found: list[str] = []
        if self.hosts.planes != 2:
            found.append(f"a NIC of 2 ports is needed, not {self.hosts.planes}")
        if self.mode.gbps != self.hosts.gbps:
            found.append(f"switch ports of {self.mode.gbps} Gb/s for endpoints of {self.hosts.gbps}")
        ports = 2 * self.columns
        if ports > self.switch.radix(self.mode):
            found.append(f"{self.switch.key}: {ports} ports, it has {self.switch.radix(self.mode)}")
        return found

    def tally(self) -> dict[str, ClassTally]:
        """Links and cages: to row switches, to column switches, between the two.

        Ports for hosts and for switches share no cage, so that each cage holds one kind of module.
        """
        gpus, rows, columns, per_cage = self.hosts.gpus, self.rows, self.columns, self.mode.ports_per_cage
        last = gpus - (rows - 1) * columns
        in_rows = (rows - 1) * -(-columns // per_cage) + -(-last // per_cage)
        in_columns = last * -(-rows // per_cage) + (columns - last) * -(-(rows - 1) // per_cage)
        nic = self.hosts.nic
        own_cage = nic.cages_per_nic > 1
        lower = gpus // nic.nics_per_cage
        return {
            "row": ClassTally(gpus, lower, in_rows),
            "column": ClassTally(gpus, lower if own_cage else 0, in_columns),
            "row-column": ClassTally(rows * columns, rows * -(-columns // per_cage), columns * -(-rows // per_cage)),
        }


@dataclass(frozen=True)
class ZCubeMedia:
    """Media of the three classes of links, with their lengths in metres."""

    row: LinkMedium
    column: LinkMedium
    column_m: float
    between: LinkMedium
    between_m: float


def build_zcube(shape: ZCubeShape, media: ZCubeMedia) -> Fabric:
    """The fabric of a ZCube.

    Raises:
        ValueError: the shape has problems.
    """
    if problems := shape.problems():
        raise ValueError("; ".join(problems))
    hosts, per_cage = shape.hosts, shape.mode.ports_per_cage
    drawing = Drawing(hosts.gpus, hosts.rails, hosts.nic)
    first_row = drawing.add_nodes(shape.rows, LEAF, plane=0, fabric=0, model=shape.switch.key)
    first_column = drawing.add_nodes(shape.columns, LEAF, plane=1, fabric=0, model=shape.switch.key)
    gpu = np.arange(hosts.gpus)
    row, column = np.divmod(gpu, shape.columns)
    for plane, switch, port, medium, length_m in (
        (0, first_row + row, column, media.row, ROW_HOST_M),
        (1, first_column + column, row, media.column, media.column_m),
    ):
        end = (switch, port // per_cage, port % per_cage)
        drawing.add_links(drawing.gpu_ports(hosts.nic_mode, plane, gpu), end, hosts.gbps, medium, length_m)
    row, column = np.divmod(np.arange(shape.rows * shape.columns), shape.columns)
    row_cage, column_cage = -(-shape.columns // per_cage), -(-shape.rows // per_cage)
    drawing.add_links(
        (first_row + row, row_cage + column // per_cage, column % per_cage),
        (first_column + column, column_cage + row // per_cage, row % per_cage),
        hosts.gbps,
        media.between,
        media.between_m,
    )
    return drawing.finish()
