"""Where racks and devices stand, and how long a cable between two of them has to be.

Racks of servers come first, filled in the order of the GPUs; one rack for management ports, where there are any, comes
after them; then the racks of switches. A cable goes up to the tray, along rows and across them, and down again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.fabric.fabric import LEAF, MANAGEMENT, Column, Fabric
from designer.instance.instance import Cluster
from designer.instance.racks import server_units, servers_per_rack
from designer.instance.schema import LayoutSection

Metres = NDArray[np.float64]
LENGTHS_M = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)  # lengths that cables are made in
STEP_M = 500.0  # beyond the longest of them cables are a multiple of it
NEAR_M = 1e-6


@dataclass(frozen=True)
class Places:
    """Where switches stand, one entry each in the order of their nodes.

    `rack` counts the `switch_racks` racks set aside for switches from 0; `unit` is the lowest rack unit, from 1.
    """

    switch_racks: int
    rack: Column
    unit: Column

    def to_document(self) -> dict[str, Any]:
        """Plain data, as a design file holds it."""
        return {"switch_racks": self.switch_racks, "rack": self.rack.tolist(), "unit": self.unit.tolist()}


def length_classes(need_m: Metres) -> Metres:
    """The shortest lengths that cables are made in and that are long enough."""
    made = np.array(LENGTHS_M, dtype=np.float64)
    index = np.searchsorted(made, need_m - NEAR_M)
    longer = np.ceil((need_m - NEAR_M) / STEP_M) * STEP_M
    return np.where(index < len(made), made[np.minimum(index, len(made) - 1)], longer)


@dataclass(frozen=True)
class Floor:
    """Racks on the floor: `row` and `place` of each, the server racks first, those of switches last.

    `rack_of_gpu` has an entry for each GPU, `unit_of_gpu` the lowest rack unit of its server. `first_switch_rack` is
    the number of racks for servers and management.
    """

    layout: LayoutSection
    row: Column
    place: Column
    rack_of_gpu: Column
    unit_of_gpu: Column
    management_rack: int | None
    first_switch_rack: int

    @property
    def racks(self) -> int:
        """All racks, also those of switches that stay empty."""
        return len(self.row)

    @cached_property
    def _rise_m(self) -> Metres:
        switches = np.arange(self.racks) >= self.first_switch_rack
        return np.where(switches, self.layout.switch_rise_m, self.layout.server_rise_m)

    def need_m(self, one: Column, other: Column) -> Metres:
        """Length that a cable between devices of two racks needs: Manhattan route, both rises, and slack."""
        along = np.abs(self.place[one] - self.place[other]) * self.layout.rack_pitch_m
        across = np.abs(self.row[one] - self.row[other]) * self.layout.row_pitch_m
        return along + across + self._rise_m[one] + self._rise_m[other] + self.layout.slack_m

    def rack_of_node(self, fabric: Fabric, places: Places) -> Column:
        """The rack of every node of a fabric."""
        rack = np.full(fabric.n_nodes, -1, dtype=np.int64)
        rack[: fabric.gpus] = self.rack_of_gpu
        if self.management_rack is not None:
            rack[fabric.nodes.kind == MANAGEMENT] = self.management_rack
        rack[fabric.nodes.kind >= LEAF] = self.first_switch_rack + places.rack
        return rack

    def link_needs_m(self, fabric: Fabric, places: Places) -> Metres:
        """Length that the cable of every link needs."""
        rack = self.rack_of_node(fabric, places)
        return self.need_m(rack[fabric.links.a], rack[fabric.links.b])

    def rack_name(self, rack: int) -> str:
        """Name of a rack: its row and its place in it, both from 1."""
        return f"row{int(self.row[rack]) + 1:02}-rack{int(self.place[rack]) + 1:02}"


def rows_of(layout: LayoutSection, racks: int) -> tuple[int, int]:
    """Rows for so many racks of servers and management, and racks of a full row: rows are as equal as may be."""
    rows = -(-racks // layout.racks_per_row)
    return rows, -(-racks // rows)


def switch_racks_for(layout: LayoutSection, server_racks: int, needed: int) -> int:
    """Racks set aside for switches where so many are needed: where they stand in rows, as many in each."""
    if layout.switches == "network-row":
        return needed
    rows, _ = rows_of(layout, server_racks)
    return -(-needed // rows) * rows


def make_floor(layout: LayoutSection, cluster: Cluster, switch_racks: int, *, management: bool) -> Floor:
    """The floor with so many racks set aside for switches.

    Raises:
        ValueError: a server does not fit into a rack.
    """
    rack_of_gpu, unit_of_gpu, servers = _server_racks(layout, cluster)
    others = servers + management
    rows, per_row = rows_of(layout, others)
    row, place = np.divmod(np.arange(others), per_row)
    switch = np.arange(switch_racks)
    if layout.switches == "network-row":
        network_rows = -(-switch_racks // per_row)
        width = -(-switch_racks // max(1, network_rows))
        before = rows - rows // 2
        switch_row = before + switch // max(1, width)
        switch_place = (per_row - width) // 2 + switch % max(1, width)
        row = np.where(row < before, row, row + network_rows)
    else:
        in_row = -(-switch_racks // rows)
        first = per_row if layout.switches == "end-of-row" else per_row - per_row // 2
        switch_row, number = np.divmod(switch, max(1, in_row))
        switch_place = first + number
        place = np.where(place < first, place, place + in_row)
    return Floor(
        layout,
        np.concatenate([row, switch_row]),
        np.concatenate([place, switch_place]),
        rack_of_gpu,
        unit_of_gpu,
        servers if management else None,
        others,
    )


def server_racks(layout: LayoutSection, cluster: Cluster, *, management: bool) -> int:
    """Racks for servers, and the one for management."""
    return _server_racks(layout, cluster)[2] + management


def _server_racks(layout: LayoutSection, cluster: Cluster) -> tuple[Column, Column, int]:
    """Rack and lowest unit of the server of each GPU, and how many racks; each kind of servers begins a new one."""
    racks, units, first = list[Column](), list[Column](), 0
    for kind in cluster.kinds():
        fitting = servers_per_rack(layout, cluster, kind)
        if fitting < 1:
            raise ValueError(f"no server of {kind.gpu.key} fits into a rack")
        rack, number = np.divmod(np.repeat(np.arange(kind.count), kind.gpus), fitting)
        racks.append(first + rack)
        units.append(1 + number * server_units(layout, kind))
        first += -(-kind.count // fitting)
    return np.concatenate(racks), np.concatenate(units), first
