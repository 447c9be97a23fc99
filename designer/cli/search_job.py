"""Runs a search so that it can be interrupted: the search in a thread, the signals in the main thread."""

import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any, Generic, TypeVar

import typer

from designer.cli.console import solver_output_to_stderr, write_error
from designer.errors import DesignerError, NoDesignError

_T = TypeVar("_T")

INTERRUPTED = 130
NOT_MET = 7


def _finite(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter("a number of seconds from 0 on")
    return value


def _part(value: float) -> float:
    if not 0 <= value < 1:
        raise typer.BadParameter("a part of the cost, from 0 to below 1")
    return value


def _solver(value: str | None) -> str | None:
    from designer.formulation.solvers import SolverError, solver_named

    if value is None or value == "cp-sat":  # what solves Clos networks anyway, and cannot take flows
        return None
    try:
        solver_named(value)
    except SolverError as error:
        raise typer.BadParameter(str(error)) from None
    return value


FAMILIES = ("clos", "grid", "mesh", "tiled-planes", "mixed-clos", "link-placement")


def _families(value: str | None) -> str | None:
    unknown = [name for name in family_names(value) or () if name not in FAMILIES]
    if unknown:
        allowed = ", ".join(FAMILIES)
        raise typer.BadParameter(f"'{unknown[0]}' is not available; the families of this version are: {allowed}")
    return value


def family_names(value: str | None) -> tuple[str, ...] | None:
    """The names in a list with commas; None where the option is not given."""
    return None if value is None else tuple(name.strip() for name in value.split(","))


TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", callback=_finite, help="Stop the search after this.")
]
Gap = Annotated[
    float,
    typer.Option(metavar="PART", callback=_part, help="Stop when the cost is proven within this part of the optimum."),
]
Threads = Annotated[int, typer.Option(min=1, max=1024, metavar="N", help="Threads of the solver.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, metavar="N", help="Random seed of the solver.")]
Solver = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        callback=_solver,
        help="Solver of link placements: highs (default), scip, cbc, or gurobi, cplex, xpress where installed; "
        "Clos networks are solved by cp-sat.",
    ),
]
Families = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        callback=_families,
        help="Families of networks to search: clos, grid, mesh, tiled-planes, mixed-clos, link-placement.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


class InterruptedSearchError(DesignerError):
    """Ctrl-C before any design was found."""

    exit_code = INTERRUPTED


class _Job(Generic[_T]):
    def __init__(self, work: Callable[[Callable[[], bool]], _T], ending: str) -> None:
        self.work, self.ending = work, ending
        self.stop, self.done = threading.Event(), threading.Event()
        self.result: list[_T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result.append(self.work(self.stop.is_set))
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self.error = error
        finally:
            self.done.set()

    def interrupt(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        if self.stop.is_set():
            os._exit(INTERRUPTED)  # the search holds nothing that has to be put away, and may not listen for long
        self.stop.set()
        write_error(f"interrupted: {self.ending}; Ctrl-C once more ends at once")


def run_interruptibly(
    work: Callable[[Callable[[], bool]], _T], ending: str = "ending with the best design so far"
) -> tuple[_T, bool]:
    """Does `work(should_stop)`; returns its result, and whether Ctrl-C came. A second Ctrl-C exits at once.

    `ending` says what a first Ctrl-C leads to.

    Raises:
        InterruptedSearchError: it was interrupted before any design was found.
    """
    job = _Job(work, ending)
    own_signals = threading.current_thread() is threading.main_thread()
    before: Any = signal.signal(signal.SIGINT, job.interrupt) if own_signals else None  # None also: not from Python
    try:
        with solver_output_to_stderr():
            threading.Thread(target=job.run, daemon=True, name="search").start()
            # In slices, as signals reach Python code only between two of them on some systems.
            while not job.done.wait(0.2):
                pass
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    interrupted = job.stop.is_set()
    if interrupted and isinstance(job.error, NoDesignError):
        raise InterruptedSearchError("interrupted before any design was found") from job.error
    if job.error is not None:
        raise job.error
    return job.result[0], interrupted


def exit_code(termination: str, gap: float, asked_gap: float, *, interrupted: bool, certified: bool = True) -> int:
    """The contract's code for a search that found a design; `certified` is False where its certificate is not met."""
    if interrupted:
        return INTERRUPTED
    if not certified:
        return NOT_MET
    return 0 if termination in ("optimal", "gap") or gap <= asked_gap else 5


class Line:
    """What goes on, on stderr: one line that changes on a terminal, else a line now and then."""

    def __init__(self, every_s: float = 2.0) -> None:
        from designer.cli.console import is_terminal

        self.moving = is_terminal(sys.stderr)
        self.every_s = 0.1 if self.moving else every_s
        self.last_s = -math.inf

    def show(self, line: str) -> None:
        """Shows a line in place of the one before, or below it."""
        if self.moving:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        else:
            write_error(line)

    def finish(self) -> None:
        """Ends the line that changes."""
        if self.moving and self.last_s > -math.inf:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class CheckProgress(Line):
    """Tells what a certificate looks at: every kind of thing once, then what is at hand now and then."""

    def __init__(self, every_s: float = 2.0) -> None:
        super().__init__(every_s)
        self.seen: set[str] = set()

    def __call__(self, what: str) -> None:
        """Called by the checks, often."""
        kind, now_s = re.sub(r"\d+", "", what), time.monotonic()
        if (kind in self.seen or self.moving) and now_s - self.last_s < self.every_s:
            return
        self.seen.add(kind)
        self.last_s = now_s
        self.show(f"checking: {what}")


class Progress(Line):
    """Tells seconds, cost, bound and gap."""

    def __init__(self, every_s: float = 2.0) -> None:
        super().__init__(every_s)
        self.last_cost: int | None = None

    def __call__(self, seconds: float, cost_cents: int | None, bound_cents: int | None) -> None:
        """Called by the search, often."""
        if cost_cents == self.last_cost and seconds - self.last_s < self.every_s:
            return
        self.last_s, self.last_cost = seconds, cost_cents
        self.show(progress_line(seconds, cost_cents, bound_cents))


def progress_line(seconds: float, cost_cents: int | None, bound_cents: int | None) -> str:
    """One line: seconds, best cost, bound, and the gap between the two."""
    from designer.units import usd

    cost = "none yet" if cost_cents is None else f"${usd(cost_cents):,.0f}"
    bound = "none yet" if bound_cents is None else f"${usd(bound_cents):,.0f}"
    gap = ""
    if cost_cents and bound_cents is not None:
        gap = f", gap {100 * max(cost_cents - bound_cents, 0) / cost_cents:.2f} %"
    return f"{seconds:7.1f} s  best {cost}, bound {bound}{gap}"
