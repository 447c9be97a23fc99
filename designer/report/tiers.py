"""A network of tiers as a drawing: one fabric of those that are alike, with the middle of long rows left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from designer.report.alike import TIERS, Anatomy, Bundles, FabricKind
from designer.report.amounts import bundle_words, count, link_words
from designer.report.markup import number, tag

WIDTH, LABELS, GAP = 960.0, 200.0, 64.0
ROW, BOX_HEIGHT, TOP = 116.0, 30.0, 26.0
MOST_IN_ROW, MOST_PODS, MOST_IN_POD, MOST_CORES = 12, 4, 4, 9
MOST_BOX_WIDTH = 60.0


@dataclass
class _Drawing:
    """Lines go below boxes, boxes below texts."""

    lines: list[Element] = field(default_factory=list[Element])
    boxes: list[Element] = field(default_factory=list[Element])
    texts: list[Element] = field(default_factory=list[Element])
    centre: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])

    def text(self, x: float, y: float, words: str, **attributes: str) -> None:
        self.texts.append(tag("text", words, x=x, y=y, **attributes))

    def box(self, node: int, tier: str, x: float, y: float, width: float, name: str) -> None:
        """A switch with its number, centred at x."""
        self.centre[node] = (x, y)
        place = {"x": x - width / 2, "y": y, "width": width, "height": BOX_HEIGHT, "rx": 4.0}
        self.boxes.append(tag("rect", class_=f"switch {tier}", **place))
        self.text(x, y + 19, name, class_="middle")


def shown(items: Sequence[int], most: int) -> list[int]:
    """The items, or the first of them and the last: at most `most` with the gap."""
    return list(items) if len(items) <= most else [*items[: most - 2], items[-1]]


def with_gaps(items: Sequence[int], chosen: Sequence[int]) -> list[tuple[int | None, int]]:
    """The chosen items in order, each as (item, 0), and for those left out between them (None, how many)."""
    found: list[tuple[int | None, int]] = []
    wanted = set(chosen)
    places = [place for place, item in enumerate(items) if item in wanted]
    if not places:
        return [(None, len(items))] if items else []
    for place, following in zip(places, [*places[1:], len(items)], strict=True):
        found.append((items[place], 0))
        if following > place + 1:
            found.append((None, following - place - 1))
    return found


def tiers_drawing(anatomy: Anatomy, kind: FabricKind) -> Element:
    """The first fabric of a kind: its tiers from the core down to the endpoints, pods as frames."""
    fabric = kind.fabrics[0]
    tiers = [tier for tier in TIERS if kind.switches(tier)]
    drawing = _Drawing()
    rows = {tier: TOP + place * ROW for place, tier in enumerate(tiers)}
    pods = _pods(kind)
    # As the tables below the drawing count them.
    numbers = {node: place for tier in tiers for place, node in enumerate(anatomy.members(fabric, tier))}
    area = (LABELS, WIDTH - 14)
    if pods:
        _draw_pods(drawing, anatomy, fabric, pods, rows, numbers)
    for tier in ("core",) if pods else tiers:
        members = anatomy.members(fabric, tier)
        chosen = _joined_cores(anatomy, drawing) if pods else shown(members, MOST_IN_ROW)
        _draw_row(drawing, with_gaps(members, chosen), tier, rows.get(tier, TOP), area, numbers)
    _draw_links(drawing, anatomy)
    if "leaf" in rows:
        _draw_endpoints(drawing, anatomy, rows["leaf"])
    for tier in tiers:
        _label(drawing, kind, tier, rows[tier])
    height = max(rows.values()) + BOX_HEIGHT + 62
    words = ", ".join(count(kind.switches(tier), tier) for tier in tiers)
    return tag(
        "svg",
        *drawing.lines,
        *drawing.boxes,
        *drawing.texts,
        viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        class_="tiers",
        role="img",
        aria_label=f"Drawing of one fabric by tiers: {words}",
    )


def _pods(kind: FabricKind) -> list[int]:
    """The pods to draw: none unless all leaves and spines are in one, and no core is."""
    if any((item.tier == "core") != (-1 in part.pods) for part in kind.pods for item in part.switches):
        return []
    return sorted(pod for part in kind.pods for pod in part.pods if pod != -1)


def _joined_cores(anatomy: Anatomy, drawing: _Drawing) -> list[int]:
    """A few cores of each spine that is drawn, so that no spine seems to end there."""
    joined = [tuple(core for core, _, _ in anatomy.bundle(node, "core")) for node in drawing.centre]
    groups = [cores for cores in dict.fromkeys(joined) if cores]
    each = max(1, MOST_CORES // max(1, len(groups)))
    return sorted({core for cores in groups for core in cores[:each]})


def _draw_row(
    drawing: _Drawing,
    items: Sequence[tuple[int | None, int]],
    tier: str,
    y: float,
    area: tuple[float, float],
    numbers: dict[int, int],
) -> None:
    """Switches of a tier, and how many are left out, side by side between two abscissas."""
    slot = (area[1] - area[0]) / max(1, len(items))
    for place, (node, left_out) in enumerate(items):
        x = area[0] + slot * (place + 0.5)
        if node is None:
            drawing.text(x, y + 19, f"+ {left_out:,}", class_="middle quiet")
        else:
            drawing.box(node, tier, x, y, min(MOST_BOX_WIDTH, slot * 0.82), f"{numbers[node]}")


def _draw_pods(
    drawing: _Drawing,
    anatomy: Anatomy,
    fabric: int,
    pods: Sequence[int],
    rows: dict[str, float],
    numbers: dict[int, int],
) -> None:
    """Frames with the leaves and spines of some pods, the name of a pod where no lines are."""
    items = with_gaps(pods, shown(pods, MOST_PODS))
    gaps = sum(pod is None for pod, _ in items)
    slot = (WIDTH - 14 - LABELS - GAP * gaps) / (len(items) - gaps)
    inside = {tier: y for tier, y in rows.items() if tier != "core"}
    x, top, bottom = LABELS, min(inside.values()) - 12, max(inside.values()) + BOX_HEIGHT + 52
    for pod, left_out in items:
        if pod is None:
            middle = (top + bottom) / 2
            drawing.text(x + GAP / 2, middle - 8, f"+ {left_out:,}", class_="middle quiet")
            drawing.text(x + GAP / 2, middle + 8, "pods", class_="middle quiet")
            x += GAP
            continue
        frame = {"x": x + 3, "y": top, "width": slot - 6, "height": bottom - top, "rx": 6.0}
        drawing.lines.append(tag("rect", class_="pod", **frame))
        drawing.text(x + 12, bottom - 9, f"pod {pod}", class_="quiet")
        for tier, y in inside.items():
            members = anatomy.members(fabric, tier, pod)
            row = with_gaps(members, shown(members, MOST_IN_POD))
            _draw_row(drawing, row, tier, y, (x + 6, x + slot - 6), numbers)
        x += slot


def _draw_links(drawing: _Drawing, anatomy: Anatomy) -> None:
    """Links between switches that are both drawn, thicker where there are more of them."""
    for node, (x, y) in drawing.centre.items():
        for tier in ("spine", "core"):
            for other, _, links in anatomy.bundle(node, tier):
                if other in drawing.centre and drawing.centre[other][1] < y:
                    above, y_above = drawing.centre[other]
                    ends = {"x1": x, "y1": y, "x2": above, "y2": y_above + BOX_HEIGHT}
                    drawing.lines.append(tag("line", class_="link", stroke_width=thickness(links), **ends))


def thickness(links: int) -> float:
    """Width of a line that stands for so many links."""
    return min(5.0, 1.0 + 0.4 * (links - 1) ** 0.5)


def _draw_endpoints(drawing: _Drawing, anatomy: Anatomy, y: float) -> None:
    """Below each leaf the number of its endpoints."""
    for node, (x, at) in drawing.centre.items():
        if at == y:
            drawing.lines.append(tag("line", class_="link", x1=x, y1=y + BOX_HEIGHT, x2=x, y2=y + BOX_HEIGHT + 10))
            drawing.text(x, y + BOX_HEIGHT + 24, f"{len(anatomy.gpus([node])):,}", class_="middle quiet")


def _label(drawing: _Drawing, kind: FabricKind, tier: str, y: float) -> None:
    """On the left: how many switches of a tier, which model, and what joins them to the tier below."""
    alike = [item for part in kind.pods for item in part.switches if item.tier == tier]
    drawing.text(0, y + 13, count(kind.switches(tier), tier), class_="strong")
    drawing.text(0, y + 29, ", ".join(dict.fromkeys(item.model for item in alike)), class_="quiet")
    below = {"core": "spine", "spine": "leaf", "leaf": "gpu"}[tier]
    for line, words in enumerate(_joined(kind, tier, below)):
        drawing.text(0, y + 56 + 16 * line, words)


def _joined(kind: FabricKind, tier: str, below: str) -> Iterator[str]:
    """The links from a tier to the one below it in at most two lines: how many, and how they are spread."""
    sides: dict[int, int] = {}
    bundles: list[Bundles] = []
    for part in kind.pods:
        for item in part.switches:
            for bundle in item.bundles:
                if item.tier == tier and bundle.tier == below:
                    sides[bundle.gbps] = sides.get(bundle.gbps, 0) + bundle.links * len(item.nodes) * len(part.pods)
                    bundles.append(bundle)
    if not bundles:
        return
    yield link_words(sides)
    if below == "gpu":
        sizes = {item.endpoints for part in kind.pods for item in part.switches if item.tier == tier}
        most, fewest = max(sizes), min(sizes)
        yield f"{fewest} to {most} on a leaf" if fewest < most else f"{most} on a leaf"
    else:
        yield bundle_words(bundles, below, kind.switches(below))
