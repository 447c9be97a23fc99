"""The floor of a design file: its racks anew from the instance's layout, where the file says that switches stand.

Whether everything fits, and whether every cable is as long as its way asks for.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from designer.certify.ports import Ends, node_name, told
from designer.certify.read_design import DesignFile
from designer.design_schema import LayoutRecord
from designer.errors import InputError, Problem
from designer.fabric.fabric import LEAF, MANAGEMENT, Column, Fabric
from designer.instance.racks import rack_problems
from designer.instance.schema import LayoutSection
from designer.layout.floor import NEAR_M, Floor, Metres, Places, length_classes, make_floor
from designer.layout.power import node_power_w
from designer.source import Source, validate

MOST_RACKS = 1 << 20
NEAR_W = 1e-6


def floor_of(file: DesignFile) -> tuple[Floor, Places] | None:
    """The floor of a design and the places of its switches; None where its instance has no layout.

    Raises:
        InputError: layout and places do not fit the network.
    """
    stated: Any = file.instance.get("layout")
    if stated is None and file.record.layout is None:
        return None
    layout = validate(LayoutSection, Source(f"{file.path}, layout of the instance", stated or {}))
    problems = list(_problems(file, layout, missing=stated is None))
    record = file.record.layout
    if problems or record is None:
        raise InputError([Problem(file.path, None, *problem) for problem in problems])
    places = Places(record.switch_racks, np.array(record.rack, dtype=np.int64), np.array(record.unit, dtype=np.int64))
    management = bool((file.fabric.nodes.kind == MANAGEMENT).any())
    return make_floor(layout, file.cluster, record.switch_racks, management=management), places


def _problems(file: DesignFile, layout: LayoutSection, *, missing: bool) -> Iterator[tuple[str, str, str]]:
    """What keeps the floor from being drawn: field, found, allowed."""
    if missing:
        yield "layout", "places of switches", "none, as the instance has no layout"
    for field, found, allowed in rack_problems(layout, file.cluster):
        yield f"instance.layout.{field}", found, allowed
    record = file.record.layout
    if record is None:
        yield "layout", "nothing", "the places of the switches on the floor of the instance"
        return
    switches = int((file.fabric.nodes.kind >= LEAF).sum())
    if (len(record.rack), len(record.unit)) != (switches, switches):
        yield "layout", f"{len(record.rack)} racks and {len(record.unit)} units", f"one each for {switches} switches"
    yield from _outside(record, layout)


def _outside(record: LayoutRecord, layout: LayoutSection) -> Iterator[tuple[str, str, str]]:
    if not 1 <= record.switch_racks <= MOST_RACKS:
        yield "layout.switch_racks", str(record.switch_racks), f"1 to {MOST_RACKS}"
    top = layout.rack_units - layout.switch_units + 1
    for name, values, first, last in (
        ("rack", record.rack, 0, record.switch_racks - 1),
        ("unit", record.unit, 1, top),
    ):
        for number, value in enumerate(values):
            if not first <= value <= last:
                yield f"layout.{name}[{number}]", str(value), f"{first} to {last}"
                break


def floor_findings(file: DesignFile) -> Iterator[tuple[str, str]]:
    """Switches in each other's way, racks that draw too much, cables not as long as their way: (kind, words)."""
    try:
        found = floor_of(file)
    except InputError as error:
        yield from (("layout", f"{item.field}: found {item.found}; allowed: {item.allowed}") for item in error.problems)
        return
    if found is None:
        return
    floor, places = found
    yield from (("layout", words) for words in _collisions(file.fabric, floor, places))
    yield from (("layout", words) for words in _overloads(file, floor, places))
    yield from (("cabling", words) for words in _lengths(file, floor, places))


def _collisions(fabric: Fabric, floor: Floor, places: Places) -> list[str]:
    nodes = np.flatnonzero(fabric.nodes.kind >= LEAF)
    order = np.lexsort((places.unit, places.rack))
    rack, unit = places.rack[order], places.unit[order]
    close = np.flatnonzero((np.diff(rack) == 0) & (np.diff(unit) < floor.layout.switch_units))

    def say(row: int) -> str:
        one, other = (node_name(fabric, int(nodes[order[at]])) for at in (row, row + 1))
        name = floor.rack_name(floor.first_switch_rack + int(rack[row]))
        return f"{one} and {other} overlap in {name} at units {unit[row]} and {unit[row + 1]}"

    return told(close, say)


def _overloads(file: DesignFile, floor: Floor, places: Places) -> list[str]:
    switches = file.fabric.nodes.kind >= LEAF
    power_w = node_power_w(file.fabric, file.catalog)[switches]
    drawn = np.bincount(places.rack, weights=power_w, minlength=places.switch_racks)
    most = floor.layout.rack_power_w

    def say(rack: int) -> str:
        name = floor.rack_name(floor.first_switch_rack + rack)
        return f"{name}: its switches and their modules draw {drawn[rack]:g} W, a rack gives {most:g} W"

    return told(np.flatnonzero(drawn > most + NEAR_W), say)


def _lengths(file: DesignFile, floor: Floor, places: Places) -> list[str]:
    """Links whose length is not the one that cables are made in next to what their way needs.

    All links of a cable with several lanes are as long as the longest of them needs.
    """
    fabric = file.fabric
    due_m = length_classes(floor.link_needs_m(fabric, places))
    due_m = _of_cables(file, due_m)
    said_m = np.array([use.length_m for use in fabric.media])[fabric.links.medium]

    def say(link: int) -> str:
        return f"link {link} is {said_m[link]:g} m long, the way between its racks asks for {due_m[link]:g} m"

    return told(np.flatnonzero(np.abs(said_m - due_m) > NEAR_M), say)


def _of_cables(file: DesignFile, due_m: Metres) -> Metres:
    fabric, count = file.fabric, file.fabric.n_links
    cage = Ends(fabric).cage_number
    result = due_m.copy()
    for row, use in enumerate(fabric.media):
        for key, of_end in ((use.per_lower_cage, cage[:count]), (use.per_upper_cage, cage[count:])):
            if key is not None and key in file.catalog.cables:
                mine: Column = np.flatnonzero(fabric.links.medium == row)
                longest = np.zeros(int(cage.max()) + 1)
                np.maximum.at(longest, of_end[mine], due_m[mine])
                result[mine] = longest[of_end[mine]]
    return result
