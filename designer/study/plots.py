"""Pictures of a table: lines, heat maps and Pareto fronts, as SVG or PNG."""

import io
import json
from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any

from designer.errors import Problem, StudyError
from designer.files import write_bytes_atomically
from designer.study.extras import extra
from designer.study.schema import PlotSection
from designer.study.table import Row, StudyResult

EXTRA = "'designer[plots]'"
SIZE_INCHES = (7.0, 4.5)
DPI = 150
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # told apart by all eyes
MARKERS = "osD^vPX"
# Equal tables give equal files: no random ids, no date.
STYLE = {"svg.hashsalt": "designer", "svg.fonttype": "none", "font.size": 10.0}


def draw(result: StudyResult, plot: PlotSection, path: Path | str) -> None:
    """Draws a picture of the rows that have a design, and writes it as its name says, .svg or .png.

    Raises:
        StudyError: matplotlib is missing, or the table lacks a column or any value to draw.
        OutputError: the path cannot be written.
    """
    matplotlib = extra("matplotlib", "plots", EXTRA)
    extra("matplotlib.figure", "plots", EXTRA)
    columns = [result.column(name).name for name in (plot.x, plot.y, plot.by, plot.value) if name is not None]
    rows = [row for row in result if all(row[name] is not None for name in columns)]
    if plot.kind == "front":
        rows = [row for row in rows if row.possible]
    if not rows:
        found = f"no row with values in {', '.join(columns)}"
        raise StudyError([Problem("plots", None, plot.file, found, "columns that some point has values in")])
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=SIZE_INCHES, layout="constrained")
        axes = figure.add_subplot()
        {"lines": _lines, "heat": _heat, "front": _front}[plot.kind](result, rows, plot, axes)
        axes.set_title(plot.title or result.name)
        buffer = io.BytesIO()
        kind = Path(path).suffix.removeprefix(".")
        figure.savefig(buffer, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else None)
    write_bytes_atomically(path, buffer.getvalue())


def _lines(result: StudyResult, rows: Sequence[Row], plot: PlotSection, axes: Any) -> None:
    x, y = result.column(plot.x).name, result.column(plot.y).name
    places = _places(result, rows, x)
    by = None if plot.by is None else result.column(plot.by).name
    # A line breaks where a point has no design.
    whole = [row for row in result if _key(row[x]) in places and (by is None or row[by] is not None)]
    for number, (label, group) in enumerate(_groups(result, whole, plot.by)):
        points = sorted((places[_key(row[x])], nan if row[y] is None else row[y]) for row in group)
        axes.plot(*zip(*points, strict=True), label=label, **_look(number))
    _finish(result, plot, axes, {"x": places})


def _front(result: StudyResult, rows: Sequence[Row], plot: PlotSection, axes: Any) -> None:
    x, y = result.column(plot.x).name, result.column(plot.y).name
    for number, (label, group) in enumerate(_groups(result, rows, plot.by)):
        look = _look(number) | {"linestyle": "none"}
        axes.plot([row[x] for row in group], [row[y] for row in group], label=label, alpha=0.6, **look)
    marks = dict(zip(map(id, result.rows), result.pareto(x, y), strict=True))
    best = sorted((row[x], row[y]) for row in rows if marks[id(row)])
    if best:
        axes.plot(*zip(*best, strict=True), "k--", linewidth=1, label="front", marker="o", mfc="none", markersize=10)
    _finish(result, plot, axes, {})


def _heat(result: StudyResult, rows: Sequence[Row], plot: PlotSection, axes: Any) -> None:
    x, y = result.column(plot.x).name, result.column(plot.y).name
    value = result.column(plot.value or "")
    across, up = _places(result, rows, x, ranks=True), _places(result, rows, y, ranks=True)
    grid = [[float("nan")] * len(across) for _ in up]
    for row in rows:  # of several rows at a place the least
        line, place = grid[int(up[_key(row[y])])], int(across[_key(row[x])])
        line[place] = row[value.name] if isnan(line[place]) else min(line[place], row[value.name])
    norm = "log" if "value" in plot.log else "linear"
    image = axes.imshow(grid, origin="lower", aspect="auto", cmap="viridis", norm=norm)
    form = "{x:,.0f}" if value.unit == "USD" else None
    axes.figure.colorbar(image, ax=axes, label=_title(result, value.name), format=form)
    _finish(result, plot, axes, {"x": across, "y": up}, ranked=True)


def _finish(
    result: StudyResult, plot: PlotSection, axes: Any, places: dict[str, dict[str, float]], *, ranked: bool = False
) -> None:
    ticker = extra("matplotlib.ticker", "plots", EXTRA)
    given = {name for row in result.rows for name in (*row.settings, *row.labels)}
    for side, name in (("x", plot.x), ("y", plot.y)):
        getattr(axes, f"set_{side}label")(_title(result, name))
        axis, texts = getattr(axes, f"{side}axis"), places.get(side)
        if side in plot.log and not ranked:
            getattr(axes, f"set_{side}scale")("log", base=2)
        if result.column(name).unit == "USD":
            axis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        if texts is not None and result.column(name).name in given:  # what was set stands below its own tick
            axis.set_ticks(list(texts.values()), labels=[text.strip('"') for text in texts], minor=False)
            axis.set_minor_locator(ticker.NullLocator())
    if plot.by is not None or plot.kind == "front":
        axes.legend(title=_title(result, plot.by) if plot.by else None, frameon=False)
    if not ranked:
        axes.grid(visible=True, alpha=0.3)


def _title(result: StudyResult, name: str) -> str:
    column = result.column(name)
    words = column.name.removesuffix(f"_{column.unit.lower()}") if column.unit else column.name
    words = words if "." in words else words.replace("_", " ")
    return f"{words}, {column.unit}" if column.unit else words


def _groups(result: StudyResult, rows: Sequence[Row], by: str | None) -> list[tuple[str, list[Row]]]:
    if by is None:
        return [("points", list(rows))]
    name = result.column(by).name
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_key(row[name]), []).append(row)
    return [(text.strip('"'), group) for text, group in groups.items()]


def _places(result: StudyResult, rows: Sequence[Row], name: str, *, ranks: bool = False) -> dict[str, float]:
    """Where each value goes on an axis, by its text: numbers at themselves, others side by side as in the study."""
    used = {_key(row[name]) for row in rows}
    found = [text for text in dict.fromkeys(_key(row[name]) for row in result) if text in used]
    decoded = [json.loads(text) for text in found]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in decoded):
        return {text: float(rank) for rank, text in enumerate(found)}
    ordered = sorted(zip(decoded, found, strict=True))
    return {text: float(rank if ranks else value) for rank, (value, text) in enumerate(ordered)}


def _key(value: Any) -> str:
    return json.dumps(value)


def _look(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "markersize": 5}
