"""Tables as CSV and XLSX: rows are written as they come, and equal rows give equal files."""

import csv
import datetime as dt
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from designer.errors import ExportError, Problem
from designer.files import bytes_written_atomically, text_written_atomically

Cell = str | int | float | bool | None
Rows = Iterable[Sequence[Cell]]
MAX_XLSX_ROWS = 1 << 20
FIXED_DATE = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - a workbook has no time zone


def write_csv(path: Path, header: Sequence[str], rows: Rows) -> None:
    """Writes a CSV file in UTF-8 with lines that end in a line feed.

    Raises:
        OutputError: it cannot be written.
    """
    with text_written_atomically(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_xlsx(path: Path, sheet: str, header: Sequence[str], rows: Rows) -> None:
    """Writes a workbook of one sheet, of fewer than `MAX_XLSX_ROWS` rows; text stays text, whatever it begins with.

    Raises:
        ExportError: the extra `xlsx` is not installed.
        OutputError: it cannot be written.
    """
    xlsxwriter = _xlsxwriter(path)
    with bytes_written_atomically(path) as file:
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        book: Any = xlsxwriter.Workbook(file, options)
        book.set_properties({"created": FIXED_DATE})
        page = book.add_worksheet(sheet)
        page.freeze_panes(1, 0)
        page.write_row(0, 0, header, book.add_format({"bold": True}))
        for number, row in enumerate(rows, start=1):
            page.write_row(number, 0, row)
        book.close()


def _xlsxwriter(path: Path) -> Any:
    try:
        return import_module("xlsxwriter")
    except ImportError:
        found, allowed = "no XlsxWriter in this environment", "one with it: pip install 'designer[xlsx]'"
        raise ExportError([Problem(str(path), None, "", found, allowed)]) from None
