"""What has to find a place: switches with their sockets and power, and links with their lengths.

A design file has no floor plan, and the catalog no heights; so this counts, and places nothing.
"""

from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from designer.certify.read_design import DesignFile
from designer.fabric.fabric import KINDS, LEAF, LINK_CLASSES
from designer.report.amounts import LINK_NAMES, PLURALS
from designer.report.markup import Cell, section, table, tag
from designer.units import W_PER_KW


def racks_section(file: DesignFile) -> Element:
    """The section: switches by tier and model, links by class and length."""
    note = (
        "The design has no floor plan: racks and cable ways are still to be laid out. This has to be placed; modules "
        "are counted in the power of the whole network, not here."
    )
    return section("racks", "Rack plan", tag("p", note), _switches(file), _links(file))


def _switches(file: DesignFile) -> Element:
    nodes = file.fabric.nodes
    owned = {switch.node for switch in file.fabric.owned}
    counted: Counter[tuple[int, str, bool]] = Counter()
    for node in np.flatnonzero(nodes.kind >= LEAF).tolist():
        counted[int(nodes.kind[node]), file.fabric.models[int(nodes.model[node])], node in owned] += 1
    rows: list[list[Cell]] = []
    total_w = 0.0
    for (kind, key, there), number in sorted(counted.items()):
        switch = file.catalog.switches[key]
        mark = "†" if switch.power_assumed else ""
        total_w += number * switch.power_w
        name = f"{switch.vendor} {switch.model}" + (", there already" if there else "")
        each = f"{switch.cages} × {switch.cage}"
        row: list[Cell] = [PLURALS.get(KINDS[kind], f"{KINDS[kind]}s"), name, f"{number:,}", each]
        rows.append([*row, f"{switch.power_w:,.0f} W{mark}", f"{number * switch.power_w / W_PER_KW:,.1f} kW{mark}"])
    rows.append(["all switches", "", f"{sum(counted.values()):,}", "", "", f"{total_w / W_PER_KW:,.1f} kW"])
    headings = ["tier", "model", "switches", "sockets of one", "power of one", "power"]
    shown = table(headings, rows, right=(2, 4, 5))
    if any(file.catalog.switches[key].power_assumed for _, key, _ in counted):
        return tag("div", shown, tag("p", "† no source published it: assumed", class_="quiet"))
    return shown


def _links(file: DesignFile) -> Element:
    fabric = file.fabric
    kinds = np.stack([fabric.link_class(), fabric.links.medium, fabric.links.gbps], axis=1)
    found, count = np.unique(kinds, axis=0, return_counts=True)
    rows: list[list[Cell]] = []
    for kind, number in zip(found, count.tolist(), strict=True):
        class_, medium, gbps = (int(value) for value in kind)
        use = fabric.media[medium]
        parts = dict.fromkeys(_pieces(use.per_lower_cage, use.per_link, use.per_upper_cage))
        name = LINK_NAMES[LINK_CLASSES[class_]]
        rows.append([name, f"{number:,}", f"{gbps} Gb/s", f"{use.length_m:g} m", ", ".join(parts)])
    return table(["links", "number", "speed", "length", "cabled with"], rows, right=(1, 2, 3))


def _pieces(*keys: str | None) -> Iterator[str]:
    return (key for key in keys if key)
