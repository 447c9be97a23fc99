"""A study as tables: the points side by side, and what uncertain prices mean."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from designer.cli.console import printable, table
from designer.plain_yaml import shorten
from designer.report.words import percent
from designer.study.task import MISSING

if TYPE_CHECKING:
    from designer.study.robustness import Robustness
    from designer.study.table import Row, StudyResult

MOST_ROWS = 40
SHOWN = ("cost_usd", "gap", "switches", "links", "power_w", "step_time_s", "step_overhead")


def study_report(result: "StudyResult", robust: "Robustness | None", front: Sequence[str]) -> Iterator[Any]:
    """The parts of the report, for `render`."""
    from rich.text import Text

    yield Text(printable(result.name), style="bold")
    if len(result) > 1 or (result.rows and result.rows[0].settings):
        yield points_table(result)
        notes = [f"and {len(result) - MOST_ROWS:,} more points, see the table files"] if len(result) > MOST_ROWS else []
        if front:
            notes.append(f"+ Pareto-optimal in {' and '.join(front)}")
        missing = sum(row.outcome.status == MISSING for row in result)
        if missing:
            notes.append(f"{missing:,} of {len(result):,} points are not done")
        if notes:
            yield Text("\n".join(notes))
    if robust is not None:
        yield from robustness_parts(robust)


def points_table(result: "StudyResult") -> Any:
    """A row a point: what was set, then cost and proof, throughput, the worst failure, or why there is no design."""
    columns = [column.name for column in result.columns]
    settings = _settings(result)
    chosen = [name for name in columns if name in SHOWN or name.startswith("throughput_")]
    marked = any(row.on_front for row in result)
    headings = [name.split(".")[-1] if _unique(name, settings) else name for name in settings]
    right = tuple(range(len(settings) + len(chosen)))
    shown = table(*headings, *chosen, "worst failure", "met", *([""] if marked else []), right=right)
    for row in result.rows[:MOST_ROWS]:
        cells = [printable(_cell(name, row[name])) for name in (*settings, *chosen)]
        shown.add_row(*cells, _worst(row), _met(row), *(["+" if row.on_front else ""] if marked else []))
    return shown


def _settings(result: "StudyResult") -> list[str]:
    """Labels in place of what they label, where there are some."""
    first = result.rows[0]
    plain = [name for name, value in first.settings.items() if not (first.labels and isinstance(value, list | dict))]
    return [*plain, *first.labels]


def _unique(name: str, names: Sequence[str]) -> bool:
    return "." in name and [other.split(".")[-1] for other in names].count(name.rsplit(".", maxsplit=1)[-1]) == 1


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, str) else shorten(value)
    if name.endswith("_usd"):
        return f"{value:,.0f}"
    if name in {"gap", "step_overhead"} or name.startswith("throughput_"):
        return percent(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _worst(row: "Row") -> str:
    if row["cost_usd"] is None:
        return printable(f"{row.outcome.status}: {row.outcome.reason}".removesuffix(": "))
    worst = row["worst_failure_throughput"]
    return "" if worst is None else f"{row['worst_failure']} {percent(worst)}"


def _met(row: "Row") -> str:
    return {True: "yes", False: "no", None: ""}[row["met"]]


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
