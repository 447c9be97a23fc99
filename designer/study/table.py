"""The table of a study: a row a point, columns with units, and its ways out."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from designer.errors import OutputError, Problem, StudyError
from designer.files import write_bytes_atomically, write_text_atomically
from designer.study.extras import extra
from designer.study.pareto import front
from designer.study.task import MISSING, Outcome, Piece

TABLE_VERSION = 1
UNITS = {"_usd": "USD", "_w": "W", "_s": "s", "_gb": "GB", "_gbps": "Gb/s", "_m": "m", "_bytes": "B"}
FORMATS = ("csv", "json", "parquet")
FRONT = "pareto"
_MORE_IS_BETTER = (
    "throughput_",
    "worst_failure_throughput",
    "worst_failure_upper",
    "worst_leaf_pair",
    "met",
    "mfu",
    "memory_fits",
)


@dataclass(frozen=True)
class Column:
    """A column: its name, its unit where it has one, and whether less or more of it is better."""

    name: str
    unit: str
    better: Literal["less", "more"]

    @staticmethod
    def of(name: str) -> "Column":
        """The column of this name; the unit stands at its end."""
        unit = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")
        more = name.startswith(_MORE_IS_BETTER) or name.endswith("_meets")
        return Column(name, unit, "more" if more else "less")


@dataclass(frozen=True)
class Row:
    """A point: its settings, and how it ended. `wall_s` plays no part when rows are compared."""

    settings: dict[str, Any]
    labels: dict[str, str]
    outcome: Outcome
    on_front: bool | None = None

    def __getitem__(self, name: str) -> Any:
        """The value in a column; None where this point has none."""
        return self.values().get(name)

    def values(self) -> dict[str, Any]:
        """All columns of this row."""
        outcome = self.outcome
        front = {} if self.on_front is None else {FRONT: self.on_front}
        ends = {"status": outcome.status, "reason": outcome.reason}
        return {**self.settings, **self.labels, **front, **ends, **outcome.values, "wall_s": outcome.wall_s}

    @property
    def possible(self) -> bool:
        """Whether neither the certificate falls short nor a job asks for more memory than the GPUs have."""
        return self["met"] is not False and self["memory_fits"] is not False

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What the design of this point buys."""
        return self.outcome.pieces


@dataclass(frozen=True)
class StudyResult:
    """All points of a study, in the order of the axes; equal to another whose rows differ in seconds only."""

    name: str
    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def finished(self) -> bool:
        """Whether no point is missing: a study that was interrupted leaves some."""
        return all(row.outcome.status != MISSING for row in self.rows)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns: settings first, as they were given, then what came out, seconds last."""
        names = dict.fromkeys(name for row in self.rows for name in row.values() if name != "wall_s")
        return tuple(Column.of(name) for name in [*names, "wall_s"])

    def column(self, name: str) -> Column:
        """The column of this name, with or without the unit at its end: cost is cost_usd.

        Raises:
            StudyError: there is none, or there are several.
        """
        columns = self.columns
        found = [column for column in columns if column.name == name]
        found = found or [column for column in columns if any(column.name == name + ending for ending in UNITS)]
        if len(found) == 1:
            return found[0]
        allowed = "one of: " + ", ".join(column.name for column in found or columns)
        raise StudyError([Problem("table", None, "column", repr(name), allowed)])

    def values(self, name: str) -> list[Any]:
        """The column of this name, an entry a row; None where a row has no such value.

        Raises:
            StudyError: as for `column`.
        """
        full = self.column(name).name
        return [row[full] for row in self.rows]

    def pareto(self, *names: str) -> tuple[bool, ...]:
        """For each row whether it is on the front of two or three columns: none is better in one and as good in all.

        Rows without a design or without one of the values are on no front, nor are those whose certificate falls short
        or whose job does not fit into the GPUs' memory.

        Raises:
            StudyError: there is no such column, or not two or three of them.
        """
        columns = [self.column(name) for name in names]
        if len(columns) not in {2, 3}:
            raise StudyError([Problem("table", None, "pareto", f"{len(columns)} columns", "two or three columns")])
        points: list[list[float] | None] = []
        for row in self.rows:
            found = [row[column.name] for column in columns]
            usable = row.possible and all(isinstance(value, int | float) for value in found)
            signs = [1 if column.better == "less" else -1 for column in columns]
            points.append([sign * value for sign, value in zip(signs, found, strict=True)] if usable else None)
        return front(points)

    def with_front(self, *names: str) -> "StudyResult":
        """The table with a further column, `pareto`, that says which rows are on the front of these columns.

        Raises:
            StudyError: as for `pareto`.
        """
        marks = self.pareto(*names)
        rows = (replace(row, on_front=mark) for row, mark in zip(self.rows, marks, strict=True))
        return replace(self, rows=tuple(rows))

    def to_document(self) -> dict[str, Any]:
        """The table as plain data."""
        return {
            "schema_version": TABLE_VERSION,
            "name": self.name,
            "finished": self.finished,
            "columns": [{"name": column.name, "unit": column.unit} for column in self.columns],
            "rows": [row.values() for row in self.rows],
        }

    def to_dataframe(self) -> Any:
        """The table as a pandas data frame; `attrs["units"]` has the units by column.

        Raises:
            StudyError: pandas is not installed.
        """
        pd = extra("pandas", "data frame", "pandas")
        frame = pd.DataFrame(self._cells())
        frame.attrs["units"] = {column.name: column.unit for column in self.columns if column.unit}
        return frame

    def write(self, path: Path | str) -> None:
        """Writes the table as its name says: .csv, .json or .parquet.

        Raises:
            OutputError: the path cannot be written, or has another ending.
            StudyError: Parquet without pyarrow.
        """
        kind = Path(path).suffix.lower().removeprefix(".")
        if kind == "csv":
            write_text_atomically(path, self._csv())
        elif kind == "json":
            write_text_atomically(path, json.dumps(self.to_document(), allow_nan=False) + "\n")
        elif kind == "parquet":
            write_bytes_atomically(path, self._parquet())
        else:
            raise OutputError(path, f"a table can be {', '.join(FORMATS)}; the ending of the name says which")

    def _cells(self) -> dict[str, list[Any]]:
        """All columns as lists."""
        rows = [row.values() for row in self.rows]
        return {column.name: [row.get(column.name) for row in rows] for column in self.columns}

    def _csv(self) -> str:
        cells = self._cells()
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(cells)
        writer.writerows([_text(value) for value in row] for row in zip(*cells.values(), strict=True))
        return buffer.getvalue()

    def _parquet(self) -> bytes:
        arrow, parquet = (extra(name, "Parquet", "pyarrow") for name in ("pyarrow", "pyarrow.parquet"))
        units = {column.name: column.unit for column in self.columns}
        columns = {name: arrow.array(_of_one_kind(values)) for name, values in self._cells().items()}
        schema = arrow.schema(
            [arrow.field(name, values.type, metadata={"unit": units[name]}) for name, values in columns.items()]
        )
        buffer = arrow.BufferOutputStream()
        parquet.write_table(arrow.table(list(columns.values()), schema=schema), buffer)
        return bytes(buffer.getvalue())


def _text(value: Any) -> Any:
    """A cell of a CSV file: lists and mappings as JSON, true and false as JSON has them."""
    return json.dumps(value) if isinstance(value, bool | list | tuple | dict) else value


def _of_one_kind(values: Sequence[Any]) -> list[Any]:
    """The column as it is where its values are of one kind, numbers as floats where some are, else as texts."""
    kinds: set[type] = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) <= 1 and kinds <= {bool, int, float, str}:
        return list(values)
    return [None if value is None else str(_text(value)) for value in values]
