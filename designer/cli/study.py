"""`designer study`: what-if sweeps over an instance, resumable, on one machine or many."""

import shutil
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from designer.cli.search_job import INTERRUPTED, NOT_MET, Json, Line, run_interruptibly

if TYPE_CHECKING:
    from collections.abc import Callable

    from designer.study.robustness import Robustness
    from designer.study.run import Progress
    from designer.study.study_file import Study
    from designer.study.table import StudyResult

BAR = 24
FAILED_POINTS, LIMIT_WITH, LIMIT_WITHOUT = 1, 5, 6


class Script(StrEnum):
    """Schedulers that a job script can be written for."""

    SLURM = "slurm"


def _part(value: str | None) -> str | None:
    if value is not None:
        number, _, of = value.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= 100_000):
            raise typer.BadParameter("I/N with I from 1 to N, such as 3/8")
    return value


def study(
    study_file: Annotated[Path, typer.Argument(metavar="STUDY", help="Study file (YAML or JSON).")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Folder of results, tables and pictures [STUDY-results]."),
    ] = None,
    as_json: Json = False,
    executor: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="serial, processes, dask, dask:ADDRESS (dask:tcp://HOST:PORT) or dask-slurm."
        ),
    ] = "processes",
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=100_000, metavar="N", help="Processes, or jobs of Slurm; default: the cores here."),
    ] = None,
    pareto: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Mark the front of two or three columns: cost,power.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(metavar="I/N", callback=_part, help="Do every N-th point from the I-th on, no tables.")
    ] = None,
    script: Annotated[
        Script | None, typer.Option(help="Print a job script that does the study in parts, and do nothing else.")
    ] = None,
) -> None:
    """Design every point of STUDY, and set them side by side.

    Results are kept in DIR as they come: run it again after a crash or Ctrl-C, and it goes on from there.

    Exit codes: 0 done (points that no network can meet are rows with their reason), 1 some points failed, 3 bad input,
    5 and 6 a time limit left points with a gap or without a design, 7 a certificate falls short, 130 interrupted.
    """
    from designer.cli.console import write_error, write_out
    from designer.study.script import slurm_script
    from designer.study.study_file import load_study

    loaded = load_study(study_file)
    folder = output or Path(f"{study_file.stem}-results")
    points = len(loaded.plan.points)
    if script is not None:
        write_out(slurm_script(study_file, folder, loaded.plan.name, points, workers))
        return
    write_error(f"{loaded.plan.name}: {points:,} points, results in {folder}")
    progress = StudyProgress()
    chosen = None if part is None else (int(part.split("/")[0]), int(part.split("/")[1]))

    def work(should_stop: "Callable[[], bool]") -> "tuple[StudyResult, Robustness | None]":
        return _work(loaded, folder, executor, workers, chosen, progress, should_stop)

    try:
        (result, robust), interrupted = run_interruptibly(work, "ending; what is done is kept")
    finally:
        progress.finish()
    if chosen is None:
        _tell(loaded, result, robust, folder, pareto, as_json=as_json)
    code = INTERRUPTED if interrupted else _exit_code(result)
    if interrupted:
        write_error("interrupted: the same command goes on from here")
    elif code:
        write_error(_WHY[code])
    raise typer.Exit(code)


def _work(
    loaded: "Study",
    folder: Path,
    executor: str,
    workers: int | None,
    part: tuple[int, int] | None,
    progress: "StudyProgress",
    should_stop: "Callable[[], bool]",
) -> "tuple[StudyResult, Robustness | None]":
    from designer.study.robustness import robustness
    from designer.study.run import run_plan

    plan, prices = loaded.plan, loaded.file.prices
    result = run_plan(
        plan, executor, workers=workers, folder=folder, part=part, progress=progress, should_stop=should_stop
    )
    if prices is None or part is not None or not result.finished:
        return result, None
    robust = robustness(
        plan.base,
        prices,
        plan.options,
        executor,
        workers=workers,
        folder=folder,
        progress=progress,
        should_stop=should_stop,
    )
    return result, robust


def _tell(
    loaded: "Study",
    result: "StudyResult",
    robust: "Robustness | None",
    folder: Path,
    pareto: str | None,
    *,
    as_json: bool,
) -> None:
    """Writes tables and pictures, then prints; what goes wrong with a picture comes after the table is out."""
    import json

    from designer.cli.console import render, write_error, write_json, write_out
    from designer.cli.study_report import study_report
    from designer.files import write_text_atomically
    from designer.study.plots import draw

    names = pareto.split(",") if pareto else loaded.file.pareto
    if names:
        result = result.with_front(*(name.strip() for name in names))
    written = [folder / f"table.{kind}" for kind in loaded.file.tables]
    for path in written:
        result.write(path)
    if robust is not None:
        written.append(folder / "robustness.json")
        write_text_atomically(written[-1], json.dumps(robust.to_document(), indent=1) + "\n")
    if as_json:
        write_json({**result.to_document(), "robustness": None if robust is None else robust.to_document()})
    else:
        write_out(render(*study_report(result, robust, names)))
    for plot in loaded.file.plots:
        written.append(folder / plot.file)
        draw(result, plot, written[-1])
    write_error("written: " + ", ".join(str(path) for path in written))


_WHY = {
    FAILED_POINTS: "some points failed; running the same command again tries them once more",
    LIMIT_WITH: "the time limit left some points with a gap",
    LIMIT_WITHOUT: "the time limit left some points without a design",
    NOT_MET: "the certificate of some points falls short of the requirements",
}


def _exit_code(result: "StudyResult") -> int:
    from designer.study.task import FAILED, NO_DESIGN

    if any(row.outcome.status == FAILED for row in result):
        return FAILED_POINTS
    if any(row["met"] is False for row in result):
        return NOT_MET
    if any(row.outcome.status == NO_DESIGN for row in result):
        return LIMIT_WITHOUT
    return LIMIT_WITH if any(row["termination"] == "time_limit" for row in result) else 0


class StudyProgress(Line):
    """Tells how many points are done, how long the others will take, and the cheapest design so far."""

    def __init__(self, every_s: float = 5.0) -> None:
        super().__init__(every_s)
        self.started_s = time.monotonic()
        self.last_told: Progress | None = None

    def __call__(self, now: "Progress") -> None:
        """Called by the study, often."""
        seconds = time.monotonic()
        last = now.done == now.total
        if self.last_told == now or (not last and seconds - self.last_s < self.every_s):
            return
        self.last_s, self.last_told = seconds, now
        line = study_line(now, seconds - self.started_s)
        self.show(line[: shutil.get_terminal_size().columns - 1] if self.moving else line)


def study_line(now: "Progress", seconds: float) -> str:
    """One line: a bar, points done of all, seconds left, the cheapest design and where it is."""
    full = BAR * now.done // max(now.total, 1)
    parts = [f"[{'#' * full}{'.' * (BAR - full)}] {now.done:,} of {now.total:,} points"]
    if now.kept:
        parts.append(f"{now.kept:,} kept from before")
    fresh = now.done - now.kept
    if fresh and now.done < now.total:
        parts.append(f"about {seconds / fresh * (now.total - now.done):,.0f} s left")
    if now.without_design:
        parts.append(f"{now.without_design:,} without a design")
    if now.cheapest_usd is not None:
        where = ", ".join(f"{name} = {_short(value)}" for name, value in (now.cheapest or {}).items())
        parts.append(f"cheapest ${now.cheapest_usd:,.0f}" + (f" at {where}" if where else ""))
    return ", ".join(parts)


def _short(value: Any) -> str:
    from designer.plain_yaml import shorten

    return value if isinstance(value, str) else shorten(value)
