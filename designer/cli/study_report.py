"""A study as tables: the points side by side, and what uncertain prices mean."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from designer.certify.certificate import EXACT
from designer.cli.console import printable, table
from designer.cli.design_report import percent
from designer.plain_yaml import shorten
from designer.study.task import MISSING

if TYPE_CHECKING:
    from designer.study.robustness import Robustness
    from designer.study.table import Row, StudyResult

MOST_ROWS = 40
MOST_REASON = 300
MOST_WIDTH = 24
PARTS = ("gap", "throughput_", "step_overhead", "worst_failure_throughput")


def study_report(result: "StudyResult", robust: "Robustness | None", front: Sequence[str]) -> Iterator[Any]:
    """The parts of the report, for `render`."""
    from rich.text import Text

    yield Text(printable(result.name), style="bold")
    if len(result) > 1 or (result.rows and result.rows[0].settings):
        yield points_table(result)
        notes = [f"and {len(result) - MOST_ROWS:,} more points, see the table files"] if len(result) > MOST_ROWS else []
        if front:
            notes.append(f"+ Pareto-optimal in {' and '.join(front)}")
        notes += _reasons(result)
        if notes:
            yield Text("\n".join(notes))
    if robust is not None:
        yield from robustness_parts(robust)


def points_table(result: "StudyResult") -> Any:
    """A row a point: what was set, then cost and proof, throughput, and what is left after the worst failure."""
    settings, chosen = _settings(result), _shown(result)
    marked = any(row.on_front for row in result)
    headings = [name.split(".")[-1] if _unique(name, settings) else name for name in settings]
    words = [_heading(name) for name in chosen]
    shown = table(*headings, *words, *([""] if marked else []), right=tuple(range(len(settings) + len(chosen))))
    for row in result.rows[:MOST_ROWS]:
        cells = [printable(_cell(name, row[name], row)) for name in (*settings, *chosen)]
        if row["cost_usd"] is None:
            cells[len(settings)] = row.outcome.status
        for column, cell in zip(shown.columns, cells[: len(settings) + 1], strict=False):
            column.min_width = max(column.min_width or 0, min(len(cell), MOST_WIDTH))  # headings break before cells do
        shown.add_row(*cells, *(["+" if row.on_front else ""] if marked else []))
    return shown


def _shown(result: "StudyResult") -> list[str]:
    """Columns that say something: a gap where there is one, memory where it does not suffice."""
    names = [column.name for column in result.columns]
    chosen = ["cost_usd", "gap", "switches", *(name for name in names if name.startswith("throughput_"))]
    chosen += ["step_time_s", "step_overhead", "memory_gb", "worst_failure_throughput", "met"]
    idle = {
        "gap": not any(row["gap"] for row in result),
        "memory_gb": all(row["memory_fits"] is not False for row in result),
        "met": all(row["met"] is not False for row in result),
    }
    return [name for name in chosen if name == "cost_usd" or (name in names and not idle.get(name))]


def _heading(name: str) -> str:
    if name.startswith("throughput_"):
        return f"{name.removeprefix('throughput_')} gets"
    short = {"cost_usd": "cost", "worst_failure_throughput": "worst failure leaves", "step_overhead": "overhead"}
    return short.get(name, name).removesuffix("_s").removesuffix("_gb").replace("_", " ")


def _settings(result: "StudyResult") -> list[str]:
    """What differs between rows; labels in place of what they label, where that is more than a number or a text."""
    first = result.rows[0]
    plain = [name for name, value in first.settings.items() if not (first.labels and isinstance(value, list | dict))]
    names = [*plain, *first.labels]
    varied = [name for name in names if any(row[name] != first[name] for row in result)]
    return varied or names


def _unique(name: str, names: Sequence[str]) -> bool:
    ends = [other.rpartition(".")[2] for other in names]
    return ends.count(name.rpartition(".")[2]) == 1


def _cell(name: str, value: Any, row: "Row") -> str:
    units = {"_usd": "${:,.0f}", "_s": "{:,.4g} s", "_gb": "{:,.1f} GB"}
    form = next((form for ending, form in units.items() if name.endswith(ending) and "." not in name), None)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return "" if value is None else value if isinstance(value, str) else shorten(value)
    if form is not None:
        return form.format(value)
    if name == "worst_failure_throughput" and row["worst_failure_upper"] - value > EXACT:
        return f"{percent(value)} to {percent(row['worst_failure_upper'])}"
    if name.startswith(PARTS):
        return percent(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _reasons(result: "StudyResult") -> Iterator[str]:
    """Why points have no design, each reason once."""
    without = Counter((row.outcome.status, row.outcome.reason) for row in result if row["cost_usd"] is None)
    for (status, reason), number in without.most_common(MOST_ROWS):
        points = "1 point" if number == 1 else f"{number:,} points"
        line = "; ".join(part.strip(" -") for part in reason.splitlines())
        short = line if len(line) <= MOST_REASON else line[: MOST_REASON - 1] + "…"
        yield f"{points} not done" if status == MISSING else f"{points} {status}: {printable(short)}"


def robustness_parts(robust: "Robustness") -> Iterator[Any]:
    """The designs that are the cheapest under some prices, and the prices at which the choice changes."""
    from rich.text import Text

    yield Text("\nUncertain prices", style="bold")
    shown = table("design", "what it is", "cost", "cheapest in", "mean regret", "worst regret", right=(2, 3, 4, 5))
    for choice in robust.choices:
        shown.add_row(
            choice.name,
            printable(choice.words),
            f"${choice.base_cost_usd:,.0f}",
            percent(choice.cheapest),
            f"${choice.mean_regret_usd:,.0f}",
            f"${choice.worst_regret_usd:,.0f}",
        )
    yield shown
    yield Text(f"over {robust.samples:,} price lists; regret is what a design costs above the cheapest of a list")
    if robust.break_evens:
        yield Text("\nBreak-even prices, all others as in the base", style="bold")
        changes = table("price", "from", "below it", "above it", right=(1,))
        for change in robust.break_evens:
            changes.add_row(printable(change.path), f"${change.value_usd:,.2f}", change.below, change.above)
        yield changes
    if robust.unchanged:
        yield Text("alone these change nothing within their range: " + printable(", ".join(robust.unchanged)))
