"""The bill of materials of a fabric, counted from its nodes and ports: what it takes, for which links, at what price.

A cage counts once, however many links leave it; a splitter cable counts once, however many lanes it has. Of what is
owned already only the energy costs.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from designer.catalog.components import Catalog
from designer.catalog.media import item_unit
from designer.costing.pricing import Pricing
from designer.costing.stock import Piece, Stock, piece_of
from designer.fabric.fabric import GPU, LINK_CLASSES, Column, Fabric
from designer.units import usd

CABLE_SECTIONS = ("cables", "fibres")
LABOUR = "labour"  # section and use of the line for links that are plugged anew
SOCKETS = 1 << 16  # cages of a device, in a packed number
SWITCH_CLASSES = {2: "leaf", 3: "spine", 4: "core"}


@dataclass(frozen=True)
class BillLine:
    """One line: `quantity` pieces of a component for a class of links or a tier, with price, power and origin.

    `reused` of them are owned already.
    """

    item: str
    section: str
    description: str
    used_for: str
    quantity: int
    unit_cents: int
    unit_power_w: float
    unit_energy_cents: int
    price_assumed: bool
    power_assumed: bool
    source: str
    date: str
    reused: int = 0

    @property
    def bought(self) -> int:
        """Pieces that are bought."""
        return self.quantity - self.reused

    @property
    def total_cents(self) -> int:
        """What the line adds to the objective."""
        return self.bought * self.unit_cents + self.quantity * self.unit_energy_cents

    def to_document(self) -> dict[str, object]:
        """The line as plain data, money in USD."""
        return {
            "item": self.item,
            "section": self.section,
            "description": self.description,
            "used_for": self.used_for,
            "quantity": self.quantity,
            "reused": self.reused,
            "unit_usd": usd(self.unit_cents),
            "unit_energy_usd": usd(self.unit_energy_cents),
            "unit_power_w": self.unit_power_w,
            "total_usd": usd(self.total_cents),
            "price_assumed": self.price_assumed,
            "power_assumed": self.power_assumed,
            "source": self.source,
            "date": self.date,
        }


@dataclass(frozen=True)
class Bill:
    """All lines, and what they add up to."""

    lines: tuple[BillLine, ...]

    @property
    def total_cents(self) -> int:
        """The objective: purchase, and energy where the objective counts it."""
        return sum(line.total_cents for line in self.lines)

    @property
    def capex_cents(self) -> int:
        """The purchase alone."""
        return sum(line.bought * line.unit_cents for line in self.lines)

    @property
    def energy_cents(self) -> int:
        """The energy alone; 0 where the objective does not count it."""
        return self.total_cents - self.capex_cents

    @property
    def assumed_cents(self) -> int:
        """The part of the purchase whose prices no source published."""
        return sum(line.bought * line.unit_cents for line in self.lines if line.price_assumed)

    @property
    def power_w(self) -> float:
        """Power of all pieces."""
        return sum(line.quantity * line.unit_power_w for line in self.lines)

    def pieces(self, *sections: str) -> int:
        """Pieces of these sections of the catalog, owned ones among them."""
        return sum(line.quantity for line in self.lines if line.section in sections)


def bill_of_materials(fabric: Fabric, catalog: Catalog, pricing: Pricing, labour: BillLine | None = None) -> Bill:
    """The bill of `fabric` at the prices of `catalog`; switches that are owned are not on it, what is plugged in is.

    Where `pricing` has a stock, lines say how much of it they use, the first of them first. `labour` is a further line.

    Raises:
        CatalogError: the fabric names a component that the catalog does not hold.
    """
    left: Counter[Piece] = Counter() if pricing.stock is None else Counter(pricing.stock.owned)
    lines: dict[BillLine, list[int]] = {}  # a cable of one price for several lengths is one line
    for (item, used_for, length_m), count in count_pieces(fabric, catalog).items():
        piece = piece_of(catalog, item, length_m)
        reused = min(count, left[piece])
        left[piece] -= reused
        entry = lines.setdefault(_line(catalog, pricing, item, used_for, length_m, 0), [0, 0])
        entry[0] += count
        entry[1] += reused
    bill = tuple(replace(line, quantity=count, reused=reused) for line, (count, reused) in lines.items())
    return Bill(bill if labour is None else (*bill, labour))


def labour_line(links: int, cents: int) -> BillLine | None:
    """The line for links that are plugged anew at `cents` each; None where that costs nothing."""
    if not cents * links:
        return None
    words, source = "a link plugged anew", "the instance"
    return BillLine("link", LABOUR, words, LABOUR, links, cents, 0.0, 0, True, False, source, "")


def stock_of(fabric: Fabric, catalog: Catalog, *, new_switches: bool = True) -> Stock:
    """All pieces of a fabric as a stock.

    Raises:
        CatalogError: the fabric names a component that the catalog does not hold.
    """
    pieces: Counter[Piece] = Counter()
    for (item, _, length_m), count in count_pieces(fabric, catalog).items():
        item_unit(catalog, item, length_m)
        pieces[piece_of(catalog, item, length_m)] += count
    return Stock(catalog, tuple((*piece, count) for piece, count in pieces.items()), new_switches)


def count_pieces(fabric: Fabric, catalog: Catalog) -> Counter[tuple[str, str, float]]:
    """Pieces of a fabric as (key, what for, length in metres); the length of a switch or module is 0."""
    quantity: Counter[tuple[str, str, float]] = Counter()
    modules: dict[tuple[str, str], list[Column]] = {}
    nodes, links = fabric.nodes, fabric.links
    bought = nodes.model >= 0
    bought[[switch.node for switch in fabric.owned]] = False
    for kind, model in zip(*_pairs(nodes.kind[bought], nodes.model[bought]), strict=True):
        count = int((bought & (nodes.kind == kind) & (nodes.model == model)).sum())
        quantity[fabric.models[model], SWITCH_CLASSES[kind], 0.0] += count
    classes = fabric.link_class()
    for class_, medium in zip(*_pairs(classes, links.medium), strict=True):
        chosen = (classes == class_) & (links.medium == medium)
        use, used_for = fabric.media[medium], LINK_CLASSES[class_]
        if use.per_link:
            quantity[use.per_link, used_for, use.length_m] += int(chosen.sum())
        # NICs of one server may share a socket: the first of them stands for it.
        lower = links.a[chosen] - np.where(
            nodes.kind[links.a[chosen]] == GPU, links.a[chosen] % fabric.gpus_per_cage, 0
        )
        for item, sockets in (
            (use.per_lower_cage, lower * SOCKETS + links.a_cage[chosen]),
            (use.per_upper_cage, links.b[chosen] * SOCKETS + links.b_cage[chosen]),
        ):
            if item and item in catalog.transceivers:
                modules.setdefault((item, used_for), []).append(sockets)
            elif item:
                quantity[item, used_for, use.length_m] += len(np.unique(sockets))
    for (item, used_for), parts in modules.items():  # one module serves links of several lengths, and both their ends
        quantity[item, used_for, 0.0] += len(np.unique(np.concatenate(parts)))
    return quantity


def _pairs(one: Column, other: Column) -> tuple[list[int], list[int]]:
    pairs = np.unique(np.stack([one, other]), axis=1)
    return pairs[0].tolist(), pairs[1].tolist()


def _line(catalog: Catalog, pricing: Pricing, item: str, used_for: str, length_m: float, count: int) -> BillLine:
    unit = item_unit(catalog, item, length_m)
    return BillLine(
        item,
        unit.section,
        unit.description,
        used_for,
        count,
        unit.price_cents,
        unit.power_w,
        pricing.energy_cents(unit.power_w),
        unit.price_assumed,
        unit.power_assumed,
        unit.source,
        unit.date,
    )
