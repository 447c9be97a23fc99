"""The network on the page: a drawing, and below it fabrics, rails, pods and switches to open one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

import numpy as np

from designer.certify.read_design import DesignFile
from designer.fabric.fabric import GPU, LEAF
from designer.report.alike import TIERS, Alike, Anatomy, FabricKind, PodKind
from designer.report.amounts import count, endpoint_words, join_words, listing, runs, serves
from designer.report.graph import MOST_SWITCHES, NEW, by_plane, drawn_switches, graph_drawing, switch_names
from designer.report.markup import details, facts, section, table, tag
from designer.report.tiers import tiers_drawing
from designer.report.words import percent

MOST_LISTED, MOST_ROWS, MOST_KINDS = 64, 256, 8


def network_section(file: DesignFile, anatomy: Anatomy) -> Element:
    """The section: what is joined to what."""
    counts = file.fabric.counts()
    flat = counts["leaf_leaf_links"] > 0 or (file.family != "clos" and not counts["spine"])
    parts = _flat(file, anatomy) if flat else _tiers(file, anatomy)
    return section("network", "Network", *parts)


def _tiers(file: DesignFile, anatomy: Anatomy) -> Iterator[Element]:
    kinds = sorted(anatomy.kinds, key=lambda kind: -len(kind.fabrics))
    yield facts(_words(file, anatomy))
    for kind in kinds[:MOST_KINDS]:
        yield _figure(tiers_drawing(anatomy, kind), _caption(anatomy, kind))
    yield tag("h3", "What is where")
    for kind in kinds[:MOST_KINDS]:
        yield _fabrics(file, anatomy, kind)
    if len(kinds) > MOST_KINDS:
        yield tag("p", f"{len(kinds) - MOST_KINDS} further kinds of fabrics are not shown.")
    if file.cluster.rails > 1:
        yield _rails(file, anatomy)


def _figure(drawing: Element, caption: str) -> Element:
    return tag("figure", tag("div", drawing, class_="scroll", tabindex="0"), tag("figcaption", caption))


def _caption(anatomy: Anatomy, kind: FabricKind) -> str:
    which = "The fabric." if len(anatomy.kinds) == 1 else f"Fabric {kind.fabrics[0]}."
    if len(kind.fabrics) > 1:
        which = f"Fabric {kind.fabrics[0]}, one of {len(kind.fabrics):,} that are alike."
    return f"{which} Boxes are switches with their numbers, below the leaves the number of GPUs on each."


def _words(file: DesignFile, anatomy: Anatomy) -> Iterator[tuple[str, str]]:
    """Tiers, fabrics, what a leaf leads up, and the links, as labels and texts."""
    counts = file.fabric.counts()
    tiers = [tier for tier in reversed(TIERS) if counts[tier]]
    name = ("no tier", "one tier", "two tiers", "three tiers")[len(tiers)]
    yield "tiers", f"{name}: {listing([count(counts[tier], tier) for tier in tiers])}"
    rails = max((len(_rails_of(file, anatomy, kind.fabrics[0])) for kind in anatomy.kinds), default=0)
    held = "all rails" if rails == file.cluster.rails else f"{rails} of {file.cluster.rails} rails"
    separate = "1 fabric with" if counts["fabrics"] == 1 else f"{counts['fabrics']:,} separate fabrics, each with"
    yield "fabrics", f"{separate} {held}; {count(counts['planes'], 'plane')}"
    leaves = [item for kind in anatomy.kinds for part in kind.pods for item in part.switches if item.tier == "leaf"]
    ratios = [ratio for item in leaves if (ratio := _oversubscription(item)) is not None]
    if ratios:
        low, high = min(ratios), max(ratios)
        span = f"{low:.2f}:1 to {high:.2f}:1" if high - low > 0.005 else f"{high:.2f}:1"
        yield "oversubscription", f"{span} at a leaf, downlink over uplink capacity"
    yield "links", _links_words(counts)
    if anatomy.management_ports:
        yield "management", count(anatomy.management_ports, "further port")
    if file.record.worst_leaf_pair < 1:
        part = percent(file.record.worst_leaf_pair, 2)
        yield "worst leaf pair", f"two leaves share only {part} of their uplinks"


def _links_words(counts: dict[str, int]) -> str:
    named = {
        "endpoint_links": "to endpoints",
        "leaf_leaf_links": "between leaves",
        "leaf_spine_links": "from leaves to spines",
        "spine_core_links": "from spines to cores",
    }
    return listing([f"{counts[key]:,} {words}" for key, words in named.items() if counts[key]])


def _oversubscription(leaf: Alike) -> float | None:
    """Capacity to endpoints over capacity to the tiers above; None without links up."""
    down = sum(item.links * item.gbps for item in leaf.bundles if item.tier == "gpu")
    above = sum(item.links * item.gbps for item in leaf.bundles if item.tier == "spine")
    return down / above if above and down else None


def _rails_of(file: DesignFile, anatomy: Anatomy, fabric: int) -> list[int]:
    gpus = anatomy.gpus(anatomy.members(fabric, "leaf"))
    return sorted(set((gpus % file.cluster.rails).tolist()))


def _fabrics(file: DesignFile, anatomy: Anatomy, kind: FabricKind) -> Element:
    """Fabrics that are alike: which they are, and the pods and switches of the first."""
    size = listing([count(kind.switches(tier), tier) for tier in reversed(TIERS) if kind.switches(tier)])
    several = len(kind.fabrics) > 1
    name = f"{len(kind.fabrics):,} alike fabrics" if several else f"Fabric {kind.fabrics[0]}"
    parts: list[Element] = []
    if several:
        rows = [_fabric_row(file, anatomy, fabric) for fabric in kind.fabrics[:MOST_ROWS]]
        if len(kind.fabrics) > MOST_ROWS:
            rows.append([f"and {len(kind.fabrics) - MOST_ROWS:,} more", "", "", ""])
        parts.append(table(["fabric", "plane", "rails", "GPUs"], rows, right=(3,)))
    for pods in kind.pods:
        if -1 in pods.pods:
            parts.append(_switches(file, anatomy, kind.fabrics[0], pods))
        else:
            inside = listing([count(_of(pods, tier), tier) for tier in reversed(TIERS) if _of(pods, tier)])
            alike = len(pods.pods) > 1
            which = f"{len(pods.pods):,} alike pods, {runs(pods.pods)}" if alike else f"Pod {pods.pods[0]}"
            each = " each; those of the first:" if alike else ""
            parts.append(details(f"{which}: {inside}{each}", _switches(file, anatomy, kind.fabrics[0], pods)))
    of_first = " each; switches are those of the first" if several else ""
    return details(f"{name}: {size}{of_first}", *parts)


def _of(pods: PodKind, tier: str) -> int:
    return sum(len(item.nodes) for item in pods.switches if item.tier == tier)


def _fabric_row(file: DesignFile, anatomy: Anatomy, fabric: int) -> list[str]:
    leaves = anatomy.members(fabric, "leaf")
    gpus = anatomy.gpus(leaves)
    rails = sorted(set((gpus % file.cluster.rails).tolist()))
    plane = int(file.fabric.nodes.plane[leaves[0]]) if leaves else -1
    return [f"{fabric}", f"{plane}" if plane >= 0 else "", runs(rails), f"{len(gpus):,}"]


def _switches(file: DesignFile, anatomy: Anatomy, fabric: int, part: PodKind) -> Element:
    """The switches of a pod, or those in none, one by one where they are few, else those that are alike in one row."""
    place = {node: f"{tier} {number}" for tier in TIERS for number, node in enumerate(anatomy.members(fabric, tier))}
    single = sum(len(item.nodes) for item in part.switches) <= MOST_LISTED
    rows: list[tuple[tuple[int, int], list[str]]] = []
    for item in part.switches:
        for nodes in [[node] for node in item.nodes] if single else [list(item.nodes)]:
            numbers = [int(place[node].split()[1]) for node in nodes]
            name = f"{item.tier} {runs(numbers)}"
            held = serves(anatomy.gpus(nodes), file.cluster.rails, file.cluster.hb_domain) if item.endpoints else ""
            order = (TIERS[::-1].index(item.tier), numbers[0])
            rows.append((order, [name, item.model, endpoint_words(item), held, join_words(item)]))
    return table(["switch", "model", "endpoints", "serves", "links to switches"], [row for _, row in sorted(rows)])


def _rails(file: DesignFile, anatomy: Anatomy) -> Element:
    """Which leaves each rail is on."""
    nodes, links = file.fabric.nodes, file.fabric.links
    rows = np.flatnonzero((nodes.kind[links.a] == GPU) & (nodes.kind[links.b] == LEAF))
    ends = np.unique(np.stack([links.a[rows] % file.cluster.rails, links.b[rows]]), axis=1)
    number = {
        node: place
        for kind in anatomy.kinds
        for fabric in kind.fabrics
        for place, node in enumerate(anatomy.members(fabric, "leaf"))
    }
    found: list[list[str]] = []
    for rail in range(min(file.cluster.rails, MOST_ROWS)):
        leaves = ends[1][ends[0] == rail]
        for fabric in sorted(set(nodes.fabric[leaves].tolist())):
            mine = [number[node] for node in leaves[nodes.fabric[leaves] == fabric].tolist()]
            plane = int(nodes.plane[leaves[nodes.fabric[leaves] == fabric][0]])
            found.append([f"{rail}", f"{plane}", f"{fabric}", f"{len(mine):,}", runs(mine)])
    what = count(file.cluster.rails, "rail")
    headings = ["rail", "plane", "fabric", "leaves", "numbers of the leaves"]
    return details(f"{what}, {file.cluster.gpus_per_rail:,} GPUs on each", table(headings, found, right=(3,)))


def _flat(file: DesignFile, anatomy: Anatomy) -> Iterator[Element]:
    """Switches without tiers: any may be joined to any."""
    counts = file.fabric.counts()
    there = len(file.fabric.owned)
    words = count(counts["switches"], "switch") + (f", {there} of them there already" if there else "")
    yield facts(
        [
            ("switches", words),
            ("fabrics", f"{count(counts['fabrics'], 'fabric')}; {count(counts['planes'], 'plane')}"),
            ("links", _links_words(counts).replace("between leaves", "between switches")),
        ]
    )
    switches = drawn_switches(anatomy)
    drawing = graph_drawing(anatomy)
    if drawing is not None:
        one = "a switch" if len(switches) <= MOST_SWITCHES else "all switches that are alike"
        plane = " Planes are alike, the first is shown." if len(switches) < counts["switches"] else ""
        yield _figure(drawing, f"Each circle is {one}; numbers at lines count the links.{plane}")
    rows = _flat_rows(file, anatomy, switches)
    headings = ["switch", "model", "GPUs", "serves", "links to"]
    if len(rows) <= MOST_SWITCHES:
        yield table(headings, rows, right=(2,))
        return
    kinds = [
        [f"{len(item.nodes):,}", item.model + where, endpoint_words(item), join_words(item)]
        for where, item in by_plane(anatomy, switches)
    ]
    more = len(kinds) - MOST_LISTED
    kinds = [*kinds[:MOST_LISTED], [f"and {more:,} more", "", "", ""]] if more > 0 else kinds
    yield table(["alike", "model", "endpoints of each", "links to switches"], kinds)
    yield details(f"All {len(switches):,} switches", table(headings, rows, right=(2,)))


def _flat_rows(file: DesignFile, anatomy: Anatomy, switches: Sequence[int]) -> list[list[str]]:
    names = switch_names(anatomy)
    rows: list[list[str]] = []
    for node in switches[:MOST_ROWS]:
        model = file.fabric.models[int(file.fabric.nodes.model[node])]
        if node in anatomy.owned:
            model += f", {count(anatomy.owned[node].free_ports, 'free port')}"
        gpus = anatomy.gpus([node])
        words = _joined_words(anatomy, node, names)
        held = serves(gpus, file.cluster.rails, file.cluster.hb_domain)
        rows.append([names[node], model, f"{len(gpus):,}", held, words or "none"])
    if len(switches) > MOST_ROWS:
        rows.append([f"and {len(switches) - MOST_ROWS:,} more", "", "", "", ""])
    return rows


def _joined_words(anatomy: Anatomy, node: int, names: Mapping[int, str]) -> str:
    """The links of a switch to others; those to which as many lead are told together."""
    alike: dict[tuple[int, int], list[int]] = {}
    for other, gbps, links in anatomy.bundle(node, "leaf"):
        alike.setdefault((links, gbps), []).append(other)
    words: list[str] = []
    for (links, gbps), others in alike.items():
        known = [names[other] for other in others if other in anatomy.owned]
        bought = runs([int(names[other].removeprefix(NEW)) for other in others if other not in anatomy.owned])
        to = listing([*known, *([f"{NEW}{bought}"] if bought else [])])
        words.append(f"{links} × {gbps} Gb/s to {'each of ' if len(others) > 1 else ''}{to}")
    return "; ".join(words)
