"""Where everything stands: rows and racks on a design's floor, power, and the bundles of cables between them.

A design without a floor has no racks; then what has to find a place is counted: switches and links with their lengths.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

import numpy as np

from designer.certify.floor import floor_of
from designer.certify.read_design import DesignFile
from designer.errors import InputError
from designer.fabric.fabric import KINDS, LEAF, LINK_CLASSES
from designer.instance.racks import server_power_w
from designer.layout.bundles import ROUTES, bundles_of
from designer.layout.floor import Floor, Places
from designer.layout.power import node_power_w
from designer.layout.words import floor_words
from designer.report.amounts import LINK_NAMES, PLURALS, count, listing, runs
from designer.report.markup import Cell, section, table, tag
from designer.units import W_PER_KW


def racks_section(file: DesignFile) -> Element:
    """The section: rows, racks of switches and bundles of cables on the floor; switches and links by model and kind."""
    try:
        found = floor_of(file)
    except InputError as error:
        note = f"The file's floor cannot be drawn: {'; '.join(str(item) for item in error.problems)}."
        return section("racks", "Rack plan", tag("p", note), _switches(file), _links(file))
    if found is None:
        note = (
            "The design has no floor plan: racks and cable ways are still to be laid out. This has to be placed; "
            "modules are counted in the power of the whole network, not here."
        )
        return section("racks", "Rack plan", tag("p", note), _switches(file), _links(file))
    floor, places = found
    lengths_m = [use.length_m for use in file.fabric.media]
    layout = floor.layout
    limits = (
        f"A rack has {layout.rack_units} units and {layout.rack_power_w / W_PER_KW:,.1f} kW. Power of servers is their "
        "largest, that of switches is with their modules; of a cable with attached ends half counts at each end."
    )
    return section(
        "racks",
        "Rack plan",
        tag("p", f"{floor_words(floor, places, lengths_m)}."),
        tag("p", limits, class_="quiet"),
        _rows(file, floor, places),
        tag("h3", "Racks of switches"),
        _racks(file, floor, places),
        tag("h3", "Bundles of cables"),
        tag("p", "A bundle is all cables of one length between two racks.", class_="quiet"),
        _bundles(file, floor, places),
        tag("h3", "Switches and links"),
        _switches(file),
        _links(file),
    )


def _rows(file: DesignFile, floor: Floor, places: Places) -> Element:
    """Racks, servers, switches and power of each row; neighbouring rows that are alike share a line."""
    switches = file.fabric.nodes.kind >= LEAF
    rack = floor.first_switch_rack + places.rack
    power_w = np.bincount(rack, weights=node_power_w(file.fabric, file.catalog)[switches], minlength=floor.racks)
    servers = np.zeros(floor.racks, dtype=np.int64)
    for kind, gpus in zip(file.cluster.kinds(), file.cluster.kind_ranges(), strict=True):
        of_kind = np.bincount(floor.rack_of_gpu[gpus.start : gpus.stop : kind.gpus], minlength=floor.racks)
        servers += of_kind
        power_w += of_kind * server_power_w(floor.layout, kind)
    standing = np.bincount(rack, minlength=floor.racks)
    lines: dict[tuple[int, ...], list[int]] = {}
    for row in range(int(floor.row.max()) + 1):
        mine = floor.row == row
        figures = (
            int((servers[mine] > 0).sum()),
            int(servers[mine].sum()),
            int((standing[mine] > 0).sum()),
            int(standing[mine].sum()),
            round(float(power_w[mine].sum())),
        )
        lines.setdefault(figures, []).append(row + 1)
    shown: list[list[Cell]] = [
        [runs(rows), *(f"{figure:,}" for figure in figures[:4]), f"{figures[4] / W_PER_KW:,.1f} kW"]
        for figures, rows in lines.items()
        if any(figures)
    ]
    totals = [int((servers > 0).sum()), int(servers.sum()), int((standing > 0).sum()), int(standing.sum())]
    total_kw = f"{float(power_w.sum()) / W_PER_KW:,.1f} kW"
    shown.append(["all rows", *(f"{figure:,}" for figure in totals), total_kw])
    headings = ["row", "racks of servers", "servers", "racks of switches", "switches", "power of the row"]
    return table(headings, shown, right=(1, 2, 3, 4, 5))


def _racks(file: DesignFile, floor: Floor, places: Places) -> Element:
    """What stands in the racks of switches; racks with as many of each tier share a line."""
    nodes = file.fabric.nodes
    switches = np.flatnonzero(nodes.kind >= LEAF)
    power_w = np.bincount(
        places.rack, weights=node_power_w(file.fabric, file.catalog)[switches], minlength=places.switch_racks
    )
    tiers = [kind for kind in range(LEAF, len(KINDS)) if (nodes.kind == kind).any()]
    counts = np.stack(
        [np.bincount(places.rack[nodes.kind[switches] == kind], minlength=places.switch_racks) for kind in tiers],
        axis=1,
    )
    alike: dict[tuple[int, ...], list[int]] = {}
    for rack, held in enumerate(counts.tolist()):
        if any(held):
            alike.setdefault(tuple(held), []).append(rack)
    rows: list[list[Cell]] = []
    for held, racks in alike.items():
        contents = listing([count(number, KINDS[kind]) for kind, number in zip(tiers, held, strict=True) if number])
        units = sum(held) * floor.layout.switch_units
        most_w = float(power_w[racks].max())
        names = _names(floor, racks)
        rows.append([names, f"{len(racks):,}", contents, f"{units}", f"{most_w / W_PER_KW:,.1f} kW"])
    return table(["racks", "number", "each holds", "units", "power of one at most"], rows, right=(1, 3, 4))


def _names(floor: Floor, racks: Sequence[int]) -> str:
    names = [floor.rack_name(floor.first_switch_rack + rack) for rack in racks[:2]]
    return listing(names) if len(racks) <= len(names) else f"{names[0]} and {len(racks) - 1:,} more"


def _bundles(file: DesignFile, floor: Floor, places: Places) -> Element:
    rows: list[list[Cell]] = []
    for item in bundles_of(file.fabric, file.catalog, floor, places):
        size = f"{item.most:,}" if item.fewest == item.most else f"{item.fewest:,} to {item.most:,}"
        name = LINK_NAMES[LINK_CLASSES[item.link_class]]
        rows.append([name, ROUTES[item.route], f"{item.length_m:g} m", f"{item.cables:,}", f"{item.bundles:,}", size])
    headings = ["cables of", "way", "length", "cables", "bundles", "cables of a bundle"]
    return table(headings, rows, right=(2, 3, 4, 5))


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
