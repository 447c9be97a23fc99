"""The bill of materials as a table: what is taken, for which links, at what price, and where the price comes from.

Of the quantity what is reused is there already and not bought.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from designer.certify.declared import recounted_bill
from designer.export.plan import Plan
from designer.export.table import Cell, write_csv, write_xlsx

HEADER = (
    "item",
    "section",
    "description",
    "used_for",
    "quantity",
    "reused",
    "unit_usd",
    "unit_energy_usd",
    "unit_power_w",
    "total_usd",
    "price_assumed",
    "power_assumed",
    "source",
    "date",
)


def write_bom_csv(plan: Plan, path: Path) -> None:
    """Writes the bill as CSV."""
    write_csv(path, HEADER, bom_rows(plan))


def write_bom_xlsx(plan: Plan, path: Path) -> None:
    """Writes the bill as a workbook."""
    write_xlsx(path, "bill of materials", HEADER, bom_rows(plan))


def bom_rows(plan: Plan) -> Iterator[tuple[Cell, ...]]:
    """The lines of the bill under `HEADER`, counted anew from the fabric: cages and cables, not lanes."""
    for line in recounted_bill(plan.file).lines:
        yield tuple(_cell(value) for value in (line.to_document()[name] for name in HEADER))


def _cell(value: object) -> Cell:
    return ("yes" if value else "no") if isinstance(value, bool) else cast("Cell", value)
