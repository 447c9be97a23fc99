"""The rows of a benchmark as tables: cost and proof, savings against templates, a line for each suite, what changed."""

from collections.abc import Iterator, Sequence
from typing import Any

from designer.benchmark.row import BenchRow
from designer.benchmark.summary import SuiteSummary, summaries
from designer.cli.console import printable, table
from designer.fabric.templates import NAMES
from designer.report.words import percent

NOTHING = "-"


def bench_report(rows: Sequence[BenchRow]) -> Iterator[Any]:
    """The parts of the report, for `render`."""
    from rich.text import Text

    suites = summaries(rows)
    yield _rows_table(rows)
    yield Text("\nWhat the designs save of the cost of each template (*: falls short, ?: not judged)", style="bold")
    yield _savings_table(rows, suites)
    yield Text("\nSuites", style="bold")
    yield _suites_table(suites)
    changed = [row for row in rows if row.changes]
    if changed:
        yield Text("\nAgainst what is known", style="bold")
        for row in changed:
            yield Text(printable(f"{_name(row)}: {'; '.join(row.changes)}"))
    trouble = [row for row in rows if row.measured.reason]
    if trouble:
        yield Text("\nWithout a design", style="bold")
        for row in trouble:
            yield Text(printable(f"{_name(row)}: {row.measured.reason}"))


def row_line(row: BenchRow) -> str:
    """A row in one line, for whoever waits."""
    found = row.measured
    if found.cost_usd is None:
        return f"{_name(row)}: {found.status.replace('_', ' ')}"
    certificate = {True: "certified", False: "CERTIFICATE FALLS SHORT", None: "no certificate"}[found.met]
    times = f"{_seconds(found.design_s)} + {_seconds(found.certificate_s)}"
    gap = percent(found.gap or 0.0, 2)
    return f"{_name(row)}: ${found.cost_usd:,.0f}, gap {gap}, {certificate}, {row.verdict}, {times}"


def _rows_table(rows: Sequence[BenchRow]) -> Any:
    headings = (
        "instance",
        "cost, $",
        "gap",
        "any shape",
        "first",
        "best",
        "proof",
        "cert.",
        "MB",
        "certificate",
        "known",
    )
    result = table(*headings, right=tuple(range(1, 9)))
    for row in rows:
        found = row.measured
        result.add_row(
            printable(_name(row)),
            NOTHING if found.cost_usd is None else f"{found.cost_usd:,.0f}",
            _part(found.gap),
            _part(found.any_topology_gap),
            _seconds(found.first_s),
            _seconds(found.best_s),
            _seconds(found.proof_s),
            _seconds(found.certificate_s),
            NOTHING if found.peak_mb is None else f"{found.peak_mb:,.0f}",
            {True: "met" if found.exact else "met, bounds apart", False: "falls short", None: NOTHING}[found.met],
            row.verdict,
        )
    return result


def _savings_table(rows: Sequence[BenchRow], suites: Sequence[SuiteSummary]) -> Any:
    names = [name for name in NAMES if any(item.template == name for row in rows for item in row.measured.savings)]
    result = table("instance", *names, right=tuple(range(1, len(names) + 1)))
    for row in rows:
        by_name = {item.template: item for item in row.measured.savings}
        cells = [
            NOTHING
            if name not in by_name
            else percent(by_name[name].saving) + {True: "", False: "*", None: "?"}[by_name[name].meets]
            for name in names
        ]
        if by_name:
            result.add_row(printable(_name(row)), *cells)
    for suite in suites:
        means = {item.template: percent(item.saving) for item in suite.savings}
        if means:
            what = f"mean of {suite.suite}, those that meet"
            result.add_row(printable(what), *(means.get(name, NOTHING) for name in names), style="bold")
    return result


def _suites_table(found: Sequence[SuiteSummary]) -> Any:
    headings = (
        "suite",
        "instances",
        "proven",
        "certified",
        "known",
        "gap",
        "any shape",
        "search",
        "certificates",
        "MB",
    )
    result = table(*headings, right=(1, 2, 3, 5, 6, 7, 8, 9))
    for suite in found:
        result.add_row(
            printable(suite.suite),
            str(suite.instances),
            str(suite.proven),
            str(suite.certified),
            ", ".join(f"{count} {verdict}" for verdict, count in suite.verdicts.items()),
            _part(suite.mean_gap),
            _part(suite.mean_any_topology_gap),
            _seconds(suite.design_s),
            _seconds(suite.certificate_s),
            f"{suite.peak_mb:,.0f}",
        )
    return result


def _name(row: BenchRow) -> str:
    return f"{row.suite}/{row.instance}"


def _part(value: float | None) -> str:
    return NOTHING if value is None else percent(value, 1)


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f} s"
