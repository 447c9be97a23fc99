"""`designer bench`: instances whose best designs are known, designed anew and compared."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from designer.cli.search_job import INTERRUPTED, NOT_MET, Json, Seed, TimeLimit, run_interruptibly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from designer.benchmark.row import BenchRow
    from designer.benchmark.suites import Suite

SNDLIB = "sndlib"
FAILED_ROWS, BAD_INPUT, NO_NETWORK, WEAKER, NONE_FOUND = 1, 3, 4, 5, 6
FILE = "bench.json"
_WHY = {
    FAILED_ROWS: "some instances failed",
    BAD_INPUT: "some instances cannot be read",
    NO_NETWORK: "proven: an instance of which nothing is known has no design",
    WEAKER: "a limit was hit: some bounds are below the recorded ones, or do not prove the cost of a new design",
    NONE_FOUND: "a limit was hit before a design was found",
    NOT_MET: "a certificate falls short, or a best known cost is missed",
    INTERRUPTED: "interrupted: these are the rows so far",
}


def _solver(name: str | None) -> str | None:
    from designer.formulation.solvers import available_solvers

    if name is not None and name not in available_solvers():
        raise typer.BadParameter(f"'{name}' is not available; the solvers here are: {', '.join(available_solvers())}")
    return name


def bench(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE ...]",
            help="Folders below instances/ or elsewhere, default: all of instances/. Or: sndlib DIR, network design.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only instances that are done in seconds.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write the results into this folder as JSON.")
    ] = None,
    as_json: Json = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, metavar="N", help="Instances at a time, a process each; default: the cores here."
        ),
    ] = None,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    solver: Annotated[
        str | None, typer.Option(metavar="NAME", callback=_solver, help="Solver of the integer programs with flows.")
    ] = None,
) -> None:
    """Design instances whose best designs are known, and compare: cost, bounds, times, memory, certificates.

    A suite is a folder of instances; its best_known.json holds what is known of them. A time limit is for each search,
    by default 600 s. `sndlib DIR` takes a folder of network files in SNDlib's native format (*.txt), with known costs
    in optima.json; a time limit is for each problem.

    Exit codes: 0 all as known or better and certified, 1 an instance failed, 3 bad input, 4 proven infeasible where
    nothing is known, 5 a limit left a bound below the recorded one, 6 a limit was hit and no design found, 7 a
    certificate falls short, or a result misses a best known cost or contradicts a known one, 130 interrupted (the rows
    so far are printed and written).
    """
    from designer.benchmark.run import quick as quick_ones
    from designer.benchmark.suites import find_suites
    from designer.cli.bench_sndlib import bench_sndlib

    names = suites or []
    if SNDLIB in names[:1]:
        if len(names) != 2 or quick or workers is not None:
            raise typer.BadParameter("`sndlib` takes one folder, and neither --quick nor --workers")
        chosen = solver or "highs"
        folder = Path(names[1])
        code = bench_sndlib(folder, output, as_json=as_json, time_limit_s=time_limit, seed=seed, solver=chosen)
        raise typer.Exit(code)
    found = find_suites(names)
    run = _Run(quick_ones(found) if quick else found, output, as_json=as_json, quick=quick, workers=workers)
    raise typer.Exit(run.work(time_limit, seed, solver))


class _Run:
    """A run of suites: rows as they come on stderr and in the file, tables or a document at the end on stdout."""

    def __init__(
        self, suites: "list[Suite]", output: Path | None, *, as_json: bool, quick: bool, workers: int | None
    ) -> None:
        from designer.benchmark.summary import load_now
        from designer.cli.bench_sndlib import file_in

        self.suites, self.as_json, self.quick, self.workers = suites, as_json, quick, workers
        self.written = None if output is None else file_in(output, FILE)
        self.load = load_now()
        self.rows: list[BenchRow] = []

    def work(self, time_limit_s: float | None, seed: int, solver: str | None) -> int:
        from designer.benchmark.measure import LIMIT_S, RunOptions
        from designer.benchmark.run import run_suites
        from designer.cli.bench_report import bench_report
        from designer.cli.console import render, write_error, write_json, write_out

        limit_s = LIMIT_S if time_limit_s is None else time_limit_s
        self.options = RunOptions(limit_s, seed=seed, solver=solver)

        def job(should_stop: "Callable[[], bool]") -> "list[BenchRow]":
            return run_suites(
                self.suites, self.options, workers=self.workers, report=self._take, should_stop=should_stop
            )

        self.rows, interrupted = run_interruptibly(job, "ending with the rows so far")
        self._write()
        if self.as_json:
            write_json(self._document())
        else:
            write_out(render(*bench_report(self.rows)))
        if self.written is not None:
            write_error(f"results written to {self.written}")
        code = INTERRUPTED if interrupted else exit_code(self.rows)
        if code:
            write_error(_WHY[code])
        return code

    def _take(self, row: "BenchRow", done: int, of: int) -> None:
        from designer.cli.bench_report import row_line
        from designer.cli.console import write_error

        self.rows.append(row)
        write_error(f"[{done}/{of}] {row_line(row)}")
        self._write()  # each time: what is done outlives a crash

    def _document(self) -> dict[str, object]:
        from designer.benchmark.summary import document_of

        return document_of(self.rows, self.options, quick=self.quick, workers=self.workers, load=self.load)

    def _write(self) -> None:
        from designer.cli.bench_sndlib import json_text
        from designer.files import write_text_atomically

        if self.written is not None:
            write_text_atomically(self.written, json_text(self._document()))


def exit_code(rows: "Sequence[BenchRow]") -> int:
    """The contract's code for a run that was not interrupted; the gravest of its rows decides."""
    from designer.benchmark import row as words

    ends = [row.measured.status for row in rows]
    if any(row.missed or row.measured.met is False for row in rows):
        return NOT_MET
    for status, code in ((words.FAILED, FAILED_ROWS), (words.REFUSED, BAD_INPUT), (words.NO_DESIGN, NONE_FOUND)):
        if status in ends:
            return code
    weaker = any(
        row.bound_verdict == words.WORSE or (row.known is None and row.measured.status == words.FEASIBLE)
        for row in rows
    )
    if weaker:
        return WEAKER
    return NO_NETWORK if words.INFEASIBLE in ends else 0
