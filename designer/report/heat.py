"""The traffic on the page: phases, and a map of which GPUs send to which through the network."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

import numpy as np

from designer.certify.read_design import DesignFile
from designer.report.amounts import count
from designer.report.bars import bar
from designer.report.markup import Cell, number, section, table, tag
from designer.report.words import part, percent
from designer.workload.cuts import Floats, Ints
from designer.workload.heatmap import bytes_between, network_exchanges
from designer.workload.traffic import Phase, Traffic

MOST_BLOCKS, SHADES = 64, 8
DECADES = 4.0  # what is less than 10^-4 of the most gets the lightest shade
STATED_BYTES = 2.0  # a demand that is stated without a model has a byte for its step, or one for each way


def traffic_section(file: DesignFile) -> Element:
    """The section: phases with their bytes, and the heat map."""
    traffic = file.traffic
    if not traffic.phases:
        return section("traffic", "Traffic", tag("p", "The design file holds no traffic."))
    phases = _counted(traffic.phases)
    return section("traffic", "Traffic", _phase_table(traffic.phases), *_shares(phases), *_heat(traffic, phases))


def _counted(phases: Sequence[Phase]) -> list[Phase]:
    """The phases whose bytes add up to the traffic: a mix has those of its parts once more."""
    names = {(phase.job, phase.name) for phase in phases}

    def mixed(phase: Phase) -> bool:
        parts = phase.name.split("+")
        return len(parts) > 1 and all((phase.job, name) in names for name in parts)

    return [phase for phase in phases if not mixed(phase)]


def _stated(phase: Phase) -> bool:
    """Whether the user stated the demand directly, so that there are no bytes to count."""
    return phase.name == phase.job and phase.nic_bytes <= STATED_BYTES and not phase.domain_bytes


def _phase_table(phases: Sequence[Phase]) -> Element:
    rows: list[list[Cell]] = []
    for phase in phases:
        parts = [item for step in phase.steps for item in step.components]
        unit = "domain" if phase.across == "rail" else "GPU"
        groups = dict.fromkeys(f"{count(item.size, unit)}, {item.stride:,} apart" for item in parts)
        patterns = ", ".join(dict.fromkeys(item.pattern for item in parts))
        where = f"GPUs {phase.first_gpu:,}–{phase.first_gpu + phase.gpus - 1:,}"
        row: list[Cell] = [phase.name, phase.job, patterns or "inside the domain", "; ".join(groups), where]
        row += ["as demanded", ""] if _stated(phase) else [size(phase.nic_bytes), size(phase.domain_bytes)]
        rows.append([*row, part(phase.floor) if phase.steps else ""])
    headings = ["phase", "job", "pattern", "groups", "on", "by NIC", "in the domain", "floor"]
    note = "Bytes are those that a GPU sends in one iteration; the floor is the part of line rate that is asked for."
    return tag("div", table(headings, rows, right=(5, 6, 7)), tag("p", note, class_="quiet"))


def size(amount_bytes: float) -> str:
    """Bytes with their unit."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount_bytes >= factor:
            return f"{amount_bytes / factor:,.2f} {unit}"
    return f"{amount_bytes:,.0f} B"


def _shares(phases: Sequence[Phase]) -> Iterator[Element]:
    """How much of all bytes stays inside the domains."""
    counted = [phase for phase in phases if not _stated(phase)]
    inside, outside = (
        sum(getattr(phase, name) * phase.gpus for phase in counted) for name in ("domain_bytes", "nic_bytes")
    )
    if inside + outside:
        share = inside / (inside + outside)
        yield bar([("domain", 0.0, share), ("network", share, 1.0)])
        words = f"{percent(share, 2)} stay inside HB domains, {percent(1 - share, 2)} go through the network"
        yield tag("p", f"Of all bytes {words}.")


def blocks(traffic: Traffic) -> tuple[int, Ints]:
    """GPUs of a block of the map, whole domains or equal parts of one, and the block of each GPU; 64 blocks at most."""
    domain = traffic.hb_domain
    width = -(-traffic.gpus // MOST_BLOCKS)
    if width >= domain:
        width = -(-width // domain) * domain
    else:
        width = next(size for size in range(width, domain + 1) if domain % size == 0)
    return width, np.arange(traffic.gpus) // width


def _heat(traffic: Traffic, phases: Sequence[Phase]) -> Iterator[Element]:
    """What blocks of GPUs send to each other through the network, by shades of one colour."""
    sending = [phase for phase in phases if phase.steps]
    stated = all(_stated(phase) for phase in sending)
    sending = sending if stated else [phase for phase in sending if not _stated(phase)]
    width, block = blocks(traffic)
    items = [item for phase in sending for item in network_exchanges(phase, traffic.hb_domain)]
    table_ = bytes_between(items, block, int(block.max()) + 1)
    most = float(table_.max(initial=0.0))
    if not most:
        return
    yield tag("h3", "Who sends to whom")
    drawn = tag("div", _map(table_), class_="scroll", tabindex="0")
    unit = "one GPU" if width == 1 else f"{width:,} GPUs"
    less = 10 ** (DECADES / SHADES)
    what = f"the darkest is {size(most)} in one iteration, a shade lighter is {less:.1f} times less"
    if stated:
        what = "every demand counts alike"
    words = (
        f"What goes from NIC to NIC: rows send, columns receive, {unit} each, GPU 0 at the top left; {what}. Any is "
        "drawn as a ring, one of the permutations that it allows."
    )
    yield tag("figure", drawn, _key(), tag("figcaption", words))


def shades(table_: Floats) -> Ints:
    """The shade of every pair of blocks: 0 for nothing, then by the logarithm of the bytes up to `SHADES`."""
    most = float(table_.max(initial=0.0))
    with np.errstate(divide="ignore"):
        depth = 1 + np.log10(table_ / most) / DECADES if most else np.full(table_.shape, -np.inf)
    level = np.clip(np.ceil(np.maximum(depth, 0) * SHADES), 1, SHADES)
    return np.where(table_ > 0, level, 0).astype(np.int64)


def _map(table_: Floats) -> Element:
    """A path a shade; equal neighbours in a row are one rectangle."""
    found = shades(table_)
    count_ = len(found)
    strokes: dict[int, list[str]] = {}
    for row, levels in enumerate(found.tolist()):
        start = 0
        for column in range(1, count_ + 1):
            if column == count_ or levels[column] != levels[start]:
                if levels[start]:
                    stroke = f"M{start} {row}h{column - start}v1h-{column - start}z"
                    strokes.setdefault(levels[start], []).append(stroke)
                start = column
    paths = [tag("path", d="".join(parts), class_=f"heat h{level}") for level, parts in sorted(strokes.items())]
    edge = number(count_)
    return tag(
        "svg",
        tag("rect", width=edge, height=edge, class_="ground"),
        *paths,
        viewBox=f"0 0 {edge} {edge}",
        class_="map",
        role="img",
        aria_label=f"Heat map of {count_} by {count_} blocks of GPUs; {(found > 0).mean():.0%} of them exchange bytes",
    )


def _key() -> Element:
    """The shades from nothing to the most."""
    boxes = [
        tag("rect", x=level, width=1, height=1, class_=f"heat h{level}" if level else "ground")
        for level in range(SHADES + 1)
    ]
    drawn = tag(
        "svg", *boxes, viewBox=f"0 0 {SHADES + 1} 1", preserveAspectRatio="none", class_="shades", aria_hidden="true"
    )
    return tag("p", "nothing ", drawn, " most", class_="quiet")
