"""`designer bench sndlib`: network design problems whose best answers are known, solved anew and compared."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designer.cli.search_job import INTERRUPTED, NOT_MET, run_interruptibly

if TYPE_CHECKING:
    from collections.abc import Callable

    from designer.formulation.design_folder import FolderRow

FAILED, INFEASIBLE, GAP_LEFT, NONE_FOUND = 1, 4, 5, 6
SCHEMA_VERSION = 1
_WHY = {
    FAILED: "the solver failed on a problem",
    INFEASIBLE: "proven: a problem of which nothing is known has no design",
    GAP_LEFT: "a limit was hit: not every cost is proven",
    NONE_FOUND: "a limit was hit before a design was found",
    NOT_MET: "a result contradicts the table of known costs, or misses a best known cost",
    INTERRUPTED: "interrupted: these are the results so far",
}


def bench_sndlib(
    folder: Path, output: Path | None, *, as_json: bool, time_limit_s: float | None, seed: int, solver: str
) -> int:
    """Solves the network design problems of a folder, prints and writes the rows, and returns the exit code."""
    from designer.cli.console import render, write_error, write_json, write_out
    from designer.files import write_text_atomically
    from designer.formulation.design_folder import format_row, solve_folder
    from designer.formulation.solvers import SolveLimits

    written = None if output is None else file_in(output, "sndlib.json")
    rows: list[FolderRow] = []

    def work(should_stop: "Callable[[], bool]") -> None:
        limits = SolveLimits(math.inf if time_limit_s is None else time_limit_s, seed=seed, should_stop=should_stop)
        for row in solve_folder(folder, solver, limits=limits):
            rows.append(row)
            write_error(format_row(row))
            if should_stop():
                return

    interrupted, ended = False, False
    try:
        _, interrupted = run_interruptibly(work)
        ended = True
    finally:  # an error in one problem takes nothing from those before it
        if rows or ended:
            document = {**_document(folder, rows), "seed": seed, "time_limit_s": time_limit_s}
            if as_json:
                write_json(document)
            else:
                write_out(render(*_report(rows)))
            if written is not None:
                write_text_atomically(written, json_text(document))
                write_error(f"results written to {written}")
    code = INTERRUPTED if interrupted else exit_code(rows)
    if code:
        write_error(_WHY[code])
    return code


def exit_code(rows: "Sequence[FolderRow]") -> int:
    """The contract's code for a run that was not interrupted; the gravest of its results decides."""
    if any(row.contradicts or row.verdict == "worse" for row in rows):
        return NOT_MET
    if any(row.termination in ("error", "unbounded") for row in rows):
        return FAILED
    if any(row.cost is None and row.termination != "infeasible" for row in rows):
        return NONE_FOUND
    if any(row.termination not in ("optimal", "infeasible") for row in rows):
        return GAP_LEFT
    return INFEASIBLE if any(row.cost is None for row in rows) else 0


def file_in(folder: Path, name: str) -> Path:
    """The file for the results, in a folder that exists from then on.

    Raises:
        OutputError: the folder or the file cannot be written.
    """
    from designer.errors import OutputError
    from designer.files import check_writable

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(folder, error.strerror or str(error)) from error
    path = folder / name
    check_writable(path)
    return path


def json_text(document: object) -> str:
    """The text of a results file."""
    import json

    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _document(folder: Path, rows: "Sequence[FolderRow]") -> dict[str, Any]:
    from dataclasses import asdict

    from designer.result import package_version

    return {
        "schema_version": SCHEMA_VERSION,
        "version": package_version(),
        "suite": "sndlib",
        "folder": str(folder),
        "rows": [
            {
                **asdict(row),
                "bound": _finite(row.bound),
                "gap": _finite(row.gap),
                "verdict": row.verdict,
                "contradicts": row.contradicts,
            }
            for row in rows
        ],
        "summary": _summary(rows),
    }


def _summary(rows: "Sequence[FolderRow]") -> dict[str, Any]:
    verdicts = [row.verdict for row in rows]
    return {
        "problems": len(rows),
        "proven": sum(row.termination in ("optimal", "infeasible") for row in rows),
        "verdicts": {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        "contradictions": sum(row.contradicts for row in rows),
        "seconds": sum(row.seconds for row in rows),
    }


def _report(rows: "Sequence[FolderRow]") -> list[Any]:
    from rich.text import Text

    from designer.cli.console import printable, table
    from designer.formulation.design_folder import SINGLE_LINK
    from designer.report.words import percent

    right = (2, 3, 4, 5, 7)
    headings = ("instance", "survives", "cost", "bound", "gap", "known", "verdict", "time", "method", "solver")
    result = table(*headings, right=right)
    for row in rows:
        unproven = "" if row.known is None or row.proven else "*"
        result.add_row(
            printable(row.instance),
            "single link" if row.survivability == SINGLE_LINK else "none",
            _number(row.cost),
            _number(row.bound),
            percent(row.gap, 2) if math.isfinite(row.gap) else "-",
            _number(row.known) + unproven,
            "contradicts" if row.contradicts else row.verdict,
            f"{row.seconds:.1f} s",
            row.method,
            row.solver,
        )
    summary = _summary(rows)
    counts = [f"{count} {verdict}" for verdict, count in summary["verdicts"].items()]
    counts += [f"{summary['contradictions']} contradict the table"] if summary["contradictions"] else []
    line = f"{summary['problems']} problems, {summary['proven']} proven: {', '.join(counts) or 'none solved'}"
    marks = any(row.known is not None and not row.proven for row in rows)
    legend = [Text("* the best known, not proven")] if marks else []
    return [result, *legend, Text(f"{line}, {summary['seconds']:.1f} s")]


def _number(value: float | None) -> str:
    return f"{value:,.10g}" if value is not None and math.isfinite(value) else "-"
