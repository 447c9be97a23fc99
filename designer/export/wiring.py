"""The wiring plan, one row for each link: both ends, modules, length, cable and label.

A cable with several lanes has a row for each lane, all with its number. Racks and rack units are those of the design's
floor; without one they are empty. Beside a network that was there a further column says whether a link is kept as it
is, or plugged.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from designer.certify.floor import floor_of
from designer.export.cabling import cable_id, cabling_of
from designer.export.plan import Plan
from designer.export.table import MAX_XLSX_ROWS, Cell, write_csv, write_xlsx
from designer.fabric.fabric import GPU, LEAF, Column
from designer.rewiring.moves import kept_links

HEADER = (
    "cable_id",
    "a_rack",
    "a_u",
    "a_device",
    "a_port",
    "a_transceiver",
    "z_rack",
    "z_u",
    "z_device",
    "z_port",
    "z_transceiver",
    "medium",
    "length_m",
    "speed_gbps",
    "plane",
    "rail",
    "label",
    "part_number",
)
EXISTING, PLUGGED, KEPT = "existing", "plugged", "kept"


def write_wiring_csv(plan: Plan, path: Path) -> None:
    """Writes the wiring plan as CSV."""
    write_csv(path, header_of(plan), wiring_rows(plan))


def write_wiring_xlsx(plan: Plan, path: Path) -> None:
    """Writes the wiring plan as a workbook.

    Raises:
        ExportError: the extra `xlsx` is not installed, or a sheet does not hold so many links.
    """
    if plan.fabric.n_links >= MAX_XLSX_ROWS:
        raise plan.refuse(f"{plan.fabric.n_links:,} links", f"fewer than {MAX_XLSX_ROWS:,} rows of a sheet: use CSV")
    write_xlsx(path, "wiring", header_of(plan), wiring_rows(plan))


def header_of(plan: Plan) -> tuple[str, ...]:
    """The columns of a plan's list."""
    return HEADER if plan.file.old_fabric is None else (*HEADER, EXISTING)


def wiring_rows(plan: Plan) -> Iterator[tuple[Cell, ...]]:
    """The rows under `header_of`: `a` is the end toward the GPUs, `z` the other."""
    cabling, links = cabling_of(plan), plan.fabric.links
    names, ports, media = plan.devices.name, plan.port_names, cabling.media
    racks, units = _stands(plan)
    existing, stays = _existing(plan)
    rows = plan.rows(
        cabling.cable,
        plan.a.device,
        plan.a.port,
        plan.b.device,
        plan.b.port,
        links.medium,
        links.gbps,
        _plane(plan),
        _rail(plan),
        existing,
    )
    for cable, a, a_port, z, z_port, row, gbps, plane, rail, kept in rows:
        medium = media[row]
        near, far = f"{names[a]}:{ports[a_port]}", f"{names[z]}:{ports[z_port]}"
        yield (
            cable_id(cable),
            racks[a],
            units[a],
            names[a],
            ports[a_port],
            medium.lower_module,
            racks[z],
            units[z],
            names[z],
            ports[z_port],
            medium.upper_module,
            medium.kind,
            _number(medium.length_m),
            gbps,
            plane if plane >= 0 else "",
            rail if rail >= 0 else "",
            f"{near} / {far}",
            medium.part,
            *stays[kept],
        )


def _existing(plan: Plan) -> tuple[Column, Sequence[tuple[Cell, ...]]]:
    """For each link the number of what becomes of it, and the cells that say so; none without a network before."""
    old, record = plan.file.old_fabric, plan.file.record.existing
    if old is None or record is None:
        return np.zeros(plan.fabric.n_links, dtype=np.int64), [()]
    kept, _ = kept_links(old, plan.fabric, np.array(record.same_as, dtype=np.int64))
    return kept.astype(np.int64), [(PLUGGED,), (KEPT,)]


def _stands(plan: Plan) -> tuple[Sequence[Cell], Sequence[Cell]]:
    """The rack and the lowest rack unit of every device; empty without a floor, and the unit of management."""
    found = floor_of(plan.file)
    if found is None:
        nowhere = [""] * len(plan.devices.name)
        return nowhere, nowhere
    floor, places = found
    node = plan.devices.node
    rack = floor.rack_of_node(plan.fabric, places)[node]
    unit = np.zeros(plan.fabric.n_nodes, dtype=np.int64)
    unit[: plan.fabric.gpus] = floor.unit_of_gpu
    unit[plan.fabric.nodes.kind >= LEAF] = places.unit
    named = {each: floor.rack_name(each) for each in np.unique(rack).tolist()}
    return [named[each] for each in rack.tolist()], [each or "" for each in unit[node].tolist()]


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _plane(plan: Plan) -> Column:
    """The plane of each link; -1 for those that join two planes."""
    nodes, links = plan.fabric.nodes, plan.fabric.links
    lower = nodes.plane[links.a]
    same = (nodes.kind[links.a] < LEAF) | (lower == nodes.plane[links.b])
    return np.where(same, nodes.plane[links.b], -1)


def _rail(plan: Plan) -> Column:
    """The rail of each link: of its GPU, or of both switches where they serve one; -1 for others."""
    nodes, links = plan.fabric.nodes, plan.fabric.links
    lower = np.where(nodes.kind[links.a] == GPU, links.a % plan.file.cluster.rails, nodes.rail[links.a])
    same = (nodes.kind[links.a] == GPU) | (nodes.rail[links.a] == nodes.rail[links.b])
    return np.where(same, lower, -1)
