"""Runs a study: every point designed once, outcomes kept as they come, and the table of all at the end."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

from designer.errors import DesignerError, InputError, Problem, StudyError
from designer.study.base import Base, refused_values
from designer.study.executors import Engine, SerialExecutor, engine_of
from designer.study.points import Point, axes_of, check_points, points_of
from designer.study.schema import StudyOptions
from designer.study.store import Store
from designer.study.table import Row, StudyResult
from designer.study.task import FAILED, MISSING, REFUSED, Outcome, Task, perform, task_of

LOOK_S = 0.2  # how often a study that waits looks whether it should stop


@dataclass(frozen=True)
class Progress:
    """Where a study is: points that have an outcome, of these the ones kept from before, and the cheapest so far."""

    done: int
    total: int
    kept: int
    without_design: int
    cheapest_usd: float | None
    cheapest: Mapping[str, Any] | None


class EngineLostError(DesignerError):
    """The machines of a study are gone; what was done is kept."""


def study(
    base: Path | str | Mapping[str, Any],
    axes: Mapping[Any, Any],
    *,
    options: StudyOptions | None = None,
    executor: str | Executor = "processes",
    workers: int | None = None,
    folder: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> StudyResult:
    """The table of the designs of every combination of the axes' values on a base instance.

    `axes` go from paths (`cluster.hb_domain`, `catalog.switches.qm9700.price.usd`, `options.gap`) to lists of values,
    to ranges (`{"from": 1, "to": 8, "factor": 2}`), or to functions of the settings so far; a tuple of paths goes to a
    list of tuples, for fields that change together. `executor` is serial, processes, dask, dask:ADDRESS, dask-slurm, or
    an `Executor` of one's own. Outcomes are kept in `folder`, and a study that is run again goes on from there. A point
    that fails is a row with its reason.

    Raises:
        StudyError: a path that names no field, a value that the schema refuses, a cluster that does not answer.
        InstanceError, CatalogError: the base cannot be read.
        OutputError: the folder cannot be written.
        EngineLostError: the cluster went away.
    """
    chosen = Base.of(base)
    spanned = axes_of(axes)
    check_points(spanned)
    if problems := refused_values(chosen, spanned):
        raise StudyError(problems)
    plan = Plan(chosen, tuple(points_of(spanned)), options or StudyOptions.model_validate({}), chosen.name)
    return run_plan(plan, executor, workers=workers, folder=folder, progress=progress, should_stop=should_stop)


@dataclass(frozen=True)
class Plan:
    """What is to be designed: points of a base, under the name of the study."""

    base: Base
    points: tuple[Point, ...]
    options: StudyOptions
    name: str


def run_plan(
    plan: Plan,
    executor: str | Executor = "processes",
    *,
    workers: int | None = None,
    folder: Path | str | None = None,
    part: tuple[int, int] | None = None,
    progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> StudyResult:
    """The table of a plan; see `study`. Part (I, N) is every N-th point from the I-th on, counted from 1."""
    if part is not None:
        plan = replace(plan, points=plan.points[part[0] - 1 :: part[1]])
    with Store(folder, part) if folder is not None else nullcontext() as store:
        run = _Run(plan, store, progress, should_stop or _never)
        tasks = run.tasks()
        first = next(tasks, None)
        if first is not None:  # else nothing is left to do, and no workers are needed
            with engine_of(executor, workers) as engine:
                run.work(chain([first], tasks), engine)
    return run.result()


class _Run:
    """A study under way."""

    def __init__(
        self,
        plan: Plan,
        store: Store | None,
        progress: Callable[[Progress], None] | None,
        should_stop: Callable[[], bool],
    ) -> None:
        self.plan, self.store, self.tell, self.should_stop = plan, store, progress, should_stop
        self.keys: list[str] = []  # of the points looked at so far
        self.outcomes: dict[str, Outcome] = {}
        self.waiting: Counter[str] = Counter()  # points of a key in hand
        self.progress = Progress(0, len(plan.points), 0, 0, None, None)

    def tasks(self) -> Iterator[tuple[Task, Point]]:
        """What is left to do; points whose outcome is there already are counted on the way."""
        base, options = self.plan.base, self.plan.options
        for number, point in enumerate(self.plan.points):
            try:
                task = task_of(base.instance(point), base.options(point, options))
            except Exception as error:  # noqa: BLE001 - one point that cannot be read does not end the study
                self.keys.append(f"point {number}")
                self._count(self.keys[-1], _refused(error), point)
                continue
            self.keys.append(task.key)
            held = self.outcomes.get(task.key) or (self.store and self.store.get(task.key))
            if held:
                self.progress = replace(self.progress, kept=self.progress.kept + (task.key not in self.outcomes))
                self._count(task.key, held, point)
                continue
            self.waiting[task.key] += 1
            if self.waiting[task.key] == 1:
                yield task, point

    def work(self, tasks: Iterator[tuple[Task, Point]], engine: Engine) -> None:
        """Do the tasks, until they are done or the study should stop.

        Raises:
            EngineLostError: the machines are gone.
        """
        hand: dict[Future[Outcome], tuple[Task, Point]] = {}
        try:
            while not self.should_stop():
                for task, point in islice(tasks, engine.in_flight - len(hand)):
                    hand[self._submitted(engine, task)] = (task, point)
                if not hand:
                    return
                for future in wait(hand, LOOK_S, FIRST_COMPLETED).done:
                    self._take(future, *hand.pop(future))
                self._report()
        finally:  # also where Ctrl-C came: what is done is kept
            for future in [future for future in hand if future.done() and not future.cancelled()]:
                self._take(future, *hand.pop(future))
            if hand:
                engine.drop()

    def _submitted(self, engine: Engine, task: Task) -> Future[Outcome]:
        try:
            if isinstance(engine.executor, SerialExecutor):
                return engine.executor.submit(perform, task, self.should_stop)
            return engine.executor.submit(perform, task)
        except (BrokenExecutor, RuntimeError) as error:
            raise _lost(error) from error

    def _take(self, future: Future[Outcome], task: Task, point: Point) -> None:
        try:
            outcome = future.result()
        except (CancelledError, BrokenExecutor) as error:
            if self.should_stop():
                return
            raise _lost(error) from error
        except Exception as error:  # noqa: BLE001 - whatever a worker could not do is the end of one point only
            outcome = Outcome(FAILED, _worker_words(error))
        if outcome.status == MISSING:
            return
        if self.store is not None:
            self.store.add(task.key, outcome, point.settings | point.labels)
        self._count(task.key, outcome, point)

    def _count(self, key: str, outcome: Outcome, point: Point) -> None:
        self.outcomes[key] = outcome
        number = self.waiting.pop(key, 1)
        now = replace(self.progress, done=self.progress.done + number)
        cost_usd = outcome.values.get("cost_usd")
        if not isinstance(cost_usd, float):
            now = replace(now, without_design=now.without_design + number)
        elif now.cheapest_usd is None or cost_usd < now.cheapest_usd:
            now = replace(now, cheapest_usd=cost_usd, cheapest=point.settings | point.labels)
        self.progress = now
        self._report()

    def _report(self) -> None:
        if self.tell is not None:
            self.tell(self.progress)

    def result(self) -> StudyResult:
        """The table; points that were not come to are in it as missing."""
        missing = Outcome(MISSING, "the study ended before")
        keys = chain(self.keys, repeat(""))
        rows = (
            Row(point.settings, point.labels, self.outcomes.get(key, missing))
            for point, key in zip(self.plan.points, keys, strict=False)
        )
        return StudyResult(self.plan.name, tuple(rows))


def _lost(error: BaseException) -> EngineLostError:
    words = f"{type(error).__name__}: {error}".removesuffix(": ")
    return EngineLostError(f"the study lost its workers ({words}); run it again to go on from what is done")


def _refused(error: Exception) -> Outcome:
    if isinstance(error, InputError):
        return Outcome(REFUSED, "; ".join(map(_words, error.problems)))
    return Outcome(FAILED, _worker_words(error))


def _worker_words(error: Exception) -> str:
    if type(error).__name__ == "KilledWorker":  # of Dask, whose own words name machines
        return "the worker process died at every try"
    return str(error) if isinstance(error, DesignerError) else f"internal error: {type(error).__name__}: {error}"


def _words(problem: Problem) -> str:
    return f"{problem.field}: found {problem.found}; allowed: {problem.allowed}"


def _never() -> bool:
    return False
