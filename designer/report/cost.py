"""What the network costs: by what it is bought for, line by line, and beside the templates and the proven bounds."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from designer.certify.read_design import DesignFile
from designer.design_schema import BillLineRecord, TemplateRow
from designer.report.amounts import LINK_NAMES, PLURALS
from designer.report.bars import bar, stacked
from designer.report.markup import Cell, section, table, tag
from designer.report.words import MEETS, beside_words, money, percent
from designer.units import cents, usd

KINDS = {
    "switches": "switches",
    "transceivers": "modules",
    "fibres": "fibres",
    "cables": "cables",
    "labour": "plugging",
}
ENERGY = "energy"


def cost_section(file: DesignFile) -> Element:
    """The section: parts of the cost, and the bill of materials."""
    lines = file.record.bill_of_materials
    if not lines:
        return section("cost", "Cost", tag("p", "Nothing has to be bought."))
    uses = list(dict.fromkeys(line.used_for for line in lines))
    return section("cost", "Cost", *_legend(file), _parts(file, uses), tag("h3", "What to buy"), _bill(file))


def _amounts(lines: list[BillLineRecord]) -> list[tuple[str, int]]:
    """The lines' purchase by kind of component, and their energy, in cents."""
    found = dict.fromkeys([*KINDS, ENERGY], 0)
    for line in lines:
        bought = line.quantity - line.reused
        found[line.section if line.section in KINDS else "cables"] += bought * cents(line.unit_usd)
        found[ENERGY] += line.quantity * cents(line.unit_energy_usd)
    return list(found.items())


def _legend(file: DesignFile) -> Iterator[Element]:
    total = file.cents("cost_usd") or 0
    amounts = [(kind, amount) for kind, amount in _amounts(file.record.bill_of_materials) if amount]
    yield stacked([(kind, amount) for kind, amount in amounts], total)
    items: list[Element] = []
    for kind, amount in amounts:
        words = f"{KINDS.get(kind, kind)} {money(amount)}, {_share(amount, total)}"
        items.append(tag("li", tag("span", class_=f"key {kind}"), words))
    yield tag("ul", *items, class_="legend")


def _share(amount: int, total: int) -> str:
    return percent(amount / total if total else 0.0)


def use_name(used_for: str) -> str:
    """What a line of the bill is for, in words."""
    return LINK_NAMES.get(used_for) or PLURALS.get(used_for) or f"{used_for}s"


def _parts(file: DesignFile, uses: list[str]) -> Element:
    """Each tier of switches and each class of links as a bar on one scale."""
    total = file.cents("cost_usd") or 0
    rows: list[list[Cell]] = []
    sums: dict[str, int] = {}
    for use in uses:
        amounts = _amounts([line for line in file.record.bill_of_materials if line.used_for == use])
        sums[use] = sum(amount for _, amount in amounts)
        rows.append([use_name(use), money(sums[use]), _share(sums[use], total), amounts_bar(amounts, uses, file)])
    rows.append(["all", money(total), "100.0 %", ""])
    return table(["part", "cost", "share", "what of"], rows, right=(1, 2))


def amounts_bar(amounts: list[tuple[str, int]], uses: list[str], file: DesignFile) -> Element:
    """The amounts of one part, the largest part being the whole length."""
    lines = file.record.bill_of_materials
    whole = max(sum(amount for _, amount in _amounts([line for line in lines if line.used_for == use])) for use in uses)
    return stacked([(kind, amount) for kind, amount in amounts], whole)


def _bill(file: DesignFile) -> Element:
    record, energy = file.record, (file.cents("energy_usd") or 0) > 0
    headings = ["component", "description", "for", "quantity", "reused", "unit price", "energy of one", "total"]
    owned = any(line.reused for line in record.bill_of_materials)
    if not energy:
        headings.remove("energy of one")
    if not owned:
        headings.remove("reused")
    rows: list[list[Cell]] = []
    for line in record.bill_of_materials:
        mark = "*" if line.price_assumed else ""
        row: list[Cell] = [line.item, line.description, use_name(line.used_for), f"{line.quantity:,}"]
        if owned:
            row.append(f"{line.reused:,}")
        row.append(money(cents(line.unit_usd)) + mark)
        if energy:
            row.append(money(cents(line.unit_energy_usd)))
        rows.append([*row, money(cents(line.total_usd)) + mark])
    blank = [""] * (len(headings) - 2)
    rows.append(["purchase", *blank, money(file.cents("capex_usd") or 0)])
    if energy:
        rows.append(["energy", *blank, money(file.cents("energy_usd") or 0)])
    note = tag("p", "* an assumed price, see Assumptions", class_="quiet")
    shown = table(headings, rows, right=tuple(range(3, len(headings))))
    return tag("div", shown, note) if any(line.price_assumed for line in record.bill_of_materials) else shown


def comparison_section(file: DesignFile) -> Element:
    """The section: templates, bounds and the design on one scale, and in words how the design differs from each."""
    record = file.record
    cost, bound, any_shape = (file.cents(name) for name in ("cost_usd", "lower_bound_usd", "any_topology_bound_usd"))
    most = max([record.cost_usd, *(row.cost_usd for row in record.comparison)]) or 1.0

    def scaled(kind: str, amount_cents: int | None) -> Element:
        return bar([(kind, 0.0, usd(amount_cents or 0) / most)])

    rows: list[list[Cell]] = []
    if any_shape is not None:
        rows.append(["any network of these switches, at least", money(any_shape), "", "", scaled("bound", any_shape)])
    if bound:
        rows.append(["networks searched, at least", money(bound), "", "", scaled("bound", bound)])
    rows.append([tag("strong", "this design"), money(cost or 0), "", "", scaled("design", cost)])
    for row in record.comparison:
        name = f"{row.template} ({row.switch})"
        amount = cents(row.cost_usd)
        kind = {True: "template", False: "template short", None: "template open"}[row.meets]
        rows.append([name, money(amount), MEETS[row.meets], percent(row.saving), scaled(kind, amount)])
    parts = [
        table(["network", "cost", "meets the requirements", "the design saves", "on one scale"], rows, right=(1, 3))
    ]
    beside = [found for found in record.families if found.family != record.family]
    for found in beside:
        words = beside_words(found.searched, _cents(found.cost_usd), _cents(found.lower_bound_usd), found.termination)
        parts.append(tag("p", f"Searched as well, {words}."))
    if not record.comparison:
        words = "No template can be built from this catalog for this cluster."
        if file.cluster.irregular:
            words = "The templates are for servers that are all alike."
        parts.append(tag("p", words))
    return section("comparison", "Beside the templates", *parts, *_why(record.comparison))


def _cents(amount_usd: float | None) -> int | None:
    return None if amount_usd is None else cents(amount_usd)


def _why(rows: list[TemplateRow]) -> Iterator[Element]:
    """What the design does differently from each template; templates that differ alike are told together."""
    told: dict[tuple[str, float], list[TemplateRow]] = {}
    for row in rows:
        told.setdefault((row.why, row.saving), []).append(row)
    for (why, saving), alike in told.items():
        names = ", ".join(row.template for row in alike)
        changes = [tag("li", sentence) for sentence in why.split("; ") if sentence]
        counts = alike[0].counts
        parts = [f"{counts.switches:,} switches", f"{counts.links:,} links"]
        heading = f"{names}: {', '.join(parts)}; the design saves {percent(saving)}"
        if saving < 0:
            heading = f"{names}: {', '.join(parts)}; the design costs {percent(-saving)} more"
        yield tag("h3", heading)
        yield tag("ul", *changes)
