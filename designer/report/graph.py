"""A network without tiers as a drawing: switches on a circle and the links between them.

Beyond `MOST_SWITCHES` the switches that are alike are one place on the circle.
"""

import math
from collections import Counter
from collections.abc import Sequence
from xml.etree.ElementTree import Element

import numpy as np

from designer.fabric.fabric import LEAF
from designer.report.alike import Alike, Anatomy
from designer.report.amounts import count
from designer.report.markup import number, tag
from designer.report.tiers import thickness

MOST_SWITCHES, MOST_LABELS, MOST_LONG = 24, 36, 8
NEW = "new "  # with a number the name of a switch to buy
WIDTH, MARGIN, SPOT = 860.0, 78.0, 13.0


def switch_names(anatomy: Anatomy) -> dict[int, str]:
    """A name for every switch: of those that were there their own, of the others a number."""
    owned = anatomy.owned
    return {
        node: owned[node].name if node in owned else f"{NEW}{place}"
        for place, node in enumerate(anatomy.switches.tolist())
    }


def drawn_switches(anatomy: Anatomy) -> list[int]:
    """All switches, or those of the first plane where planes are separate networks and so are alike."""
    nodes = anatomy.fabric.nodes
    planes = nodes.plane[anatomy.switches]
    fabrics = len(np.unique(nodes.fabric[anatomy.switches]))
    alike = fabrics >= len(np.unique(planes))
    return anatomy.switches[planes == planes.min(initial=0)].tolist() if alike else anatomy.switches.tolist()


def graph_drawing(anatomy: Anatomy) -> Element | None:
    """The switches on a circle; None where even the kinds of switches are too many."""
    switches = drawn_switches(anatomy)
    names = switch_names(anatomy)
    places: list[tuple[str, list[int]]] = [(names[node], [node]) for node in switches]
    if len(places) > MOST_SWITCHES:
        alike = by_plane(anatomy, switches)
        places = [(f"{len(item.nodes):,} × {item.model}{where}", list(item.nodes)) for where, item in alike]
    if not 0 < len(places) <= MOST_SWITCHES:
        return None
    return _drawn(anatomy, places)


def by_plane(anatomy: Anatomy, switches: Sequence[int]) -> list[tuple[str, Alike]]:
    """Switches that are alike in a plane, which is named where there are several."""
    nodes = np.array(switches, dtype=np.int64)
    planes = anatomy.fabric.nodes.plane[nodes]
    several = len(np.unique(planes)) > 1
    return [
        (f", plane {plane}" if several else "", item)
        for plane in np.unique(planes).tolist()
        for item in anatomy.alike(nodes[planes == plane])
    ]


def _drawn(anatomy: Anatomy, places: Sequence[tuple[str, list[int]]]) -> Element:
    home = np.full(anatomy.fabric.n_nodes, -1, dtype=np.int64)
    for place, (_, nodes) in enumerate(places):
        home[nodes] = place
    links = _links(anatomy, home)
    middle = WIDTH / 2, _radius(len(places)) + MARGIN
    at = [_position(place, len(places), middle) for place in range(len(places))]
    parts: list[Element] = []
    for (one, other), joined in links.items():
        if one != other:
            ends = {"x1": at[one][0], "y1": at[one][1], "x2": at[other][0], "y2": at[other][1]}
            parts.append(tag("line", class_="link", stroke_width=thickness(joined), **ends))
    if len(links) <= MOST_LABELS:
        parts += [_link_label(at[one], at[other], joined) for (one, other), joined in links.items() if one != other]
    short = len(places) > MOST_LONG
    for place, (name, nodes) in enumerate(places):
        parts += _spot(anatomy, at[place], middle, name, nodes, links.get((place, place), 0), short=short)
    joined = sum(links.values())
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {number(WIDTH)} {number(2 * middle[1])}",
        class_="graph",
        role="img",
        aria_label=f"Drawing of {count(sum(len(nodes) for _, nodes in places), 'switch')} and the "
        f"{count(joined, 'link')} between them",
    )


def _links(anatomy: Anatomy, home: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Counter[tuple[int, int]]:
    """Links between two places, or inside one."""
    fabric = anatomy.fabric
    inner = (fabric.nodes.kind[fabric.links.a] >= LEAF) & (home[fabric.links.a] >= 0) & (home[fabric.links.b] >= 0)
    ends = np.sort(np.stack([home[fabric.links.a[inner]], home[fabric.links.b[inner]]]), axis=0)
    pairs, joined = np.unique(ends, axis=1, return_counts=True)
    return Counter(dict(zip(zip(*pairs.tolist(), strict=True), joined.tolist(), strict=True)))


def _radius(places: int) -> float:
    """Of the circle: larger for more places."""
    return 0.0 if places == 1 else min(190.0, 60.0 + 12.0 * places)


def _position(place: int, places: int, middle: tuple[float, float]) -> tuple[float, float]:
    """Places follow each other clockwise; two lie side by side."""
    angle = 2 * math.pi * (place + 0.5) / places - math.pi / 2
    return middle[0] + _radius(places) * math.cos(angle), middle[1] + _radius(places) * math.sin(angle)


def _link_label(one: tuple[float, float], other: tuple[float, float], links: int) -> Element:
    """The number of links, nearer to one end so that labels of crossing lines lie apart."""
    x, y = (0.62 * one[axis] + 0.38 * other[axis] for axis in (0, 1))
    return tag("text", f"{links:,}", x=x, y=y + 4, class_="middle count")


def _lines(anatomy: Anatomy, name: str, nodes: Sequence[int], inside: int, *, short: bool) -> list[str]:
    """What stands beside a switch, or several alike; in one line where `short` leaves no room for more."""
    hosts = count(len(anatomy.gpus([nodes[0]])), "GPU")
    there = ", there already" if nodes[0] in anatomy.owned else ""
    if len(nodes) > 1:
        among = [f"{count(inside, 'link')} among them"] if inside else []
        return [f"{name}: {hosts} each{there}"] if short else [name, f"{hosts} each{there}", *among]
    model = anatomy.fabric.models[int(anatomy.fabric.nodes.model[nodes[0]])]
    return [f"{name}: {hosts}{there}"] if short else [f"{name} ({model})", f"{hosts}{there}"]


def _spot(
    anatomy: Anatomy,
    at: tuple[float, float],
    middle: tuple[float, float],
    name: str,
    nodes: Sequence[int],
    inside: int,
    *,
    short: bool,
) -> list[Element]:
    """A switch, or several alike, with its label outside of the circle."""
    owned = nodes[0] in anatomy.owned
    x, y = at
    dx, dy = x - middle[0], y - middle[1]
    length = math.hypot(dx, dy) or 1.0
    x_text, y_text = x + (SPOT + 13) * dx / length, y + (SPOT + 13) * dy / length
    side = "middle" if abs(dx) < 1 else "start" if dx > 0 else "end"
    y_text += 4 if side != "middle" else (16 + SPOT if dy >= 0 else -20.0)
    lines = _lines(anatomy, name, nodes, inside, short=short)
    spots = [tag("circle", cx=x, cy=y, r=SPOT, class_="switch leaf owned" if owned else "switch leaf")]
    if owned:
        spots.append(tag("circle", cx=x, cy=y, r=SPOT + 4, class_="ring"))
    texts = [
        tag("text", line, x=x_text, y=y_text + 15 * place, class_=f"{side}{' quiet' if place else ' strong'}")
        for place, line in enumerate(lines)
    ]
    return [*spots, *texts]
