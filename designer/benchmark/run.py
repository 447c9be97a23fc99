"""Runs suites: every instance in a process of its own, several at a time."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import replace
from pathlib import Path

from designer.benchmark.measure import RunOptions, measure
from designer.benchmark.row import FAILED, BenchRow, Measured
from designer.benchmark.suites import Suite
from designer.errors import DesignerError, InputError
from designer.study.executors import cores
from designer.study.processes import ProcessExecutor

LOOK_S = 0.2  # how often a run that waits looks whether it should stop
QUICK_GPUS = 1024
# Not larger, but with certificates that take minutes.
NOT_QUICK = frozenset({"1024-dense-2x200", "1024-moe-1x400", "1024-moe-2x200"})

Report = Callable[[BenchRow, int, int], None]


def quick(suites: Sequence[Suite]) -> list[Suite]:
    """The suites with the instances that are done in seconds: those of up to 1,024 GPUs, or else the smallest one."""
    return [replace(suite, instances=_quick_ones(suite)) for suite in suites]


def _quick_ones(suite: Suite) -> tuple[Path, ...]:
    sizes = {path: _gpus(path) for path in suite.instances if path.stem not in NOT_QUICK}
    small = tuple(path for path, gpus in sizes.items() if gpus <= QUICK_GPUS)
    return small or tuple(sorted(sizes, key=lambda path: sizes[path])[:1])


def _gpus(path: Path) -> int:
    from designer.instance.load import load_instance

    try:
        return load_instance(path).cluster.gpus
    except InputError:
        return 0  # the run says what is wrong with it


def run_suites(
    suites: Sequence[Suite],
    options: RunOptions | None = None,
    *,
    workers: int | None = None,
    report: Report | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[BenchRow]:
    """A row for every instance, in the order of the suites; those that are done where `should_stop` came true.

    `workers` is the number of instances at a time; default: the cores that this process may use. `report` is called
    with each row as it comes, the number of rows so far, and that of all.
    """
    options, stop = options or RunOptions(), should_stop or _never
    tasks = [(suite, path) for suite in suites for path in suite.instances]
    executor = ProcessExecutor(workers or cores(), fresh=True)
    rows: dict[tuple[str, str], BenchRow] = {}
    hand: dict[Future[Measured], tuple[Suite, Path]] = {}
    try:
        hand = {executor.submit(measure, path, options): (suite, path) for suite, path in tasks}
        while hand and not stop():
            for future in wait(hand, LOOK_S, FIRST_COMPLETED).done:
                suite, path = hand.pop(future)
                row = BenchRow(suite.name, path.stem, _result(future), suite.known.get(path.stem))
                rows[suite.name, path.stem] = row
                if report is not None:
                    report(row, len(rows), len(tasks))
    finally:
        executor.kill()
    order = [(suite.name, path.stem) for suite, path in tasks]
    return [rows[key] for key in order if key in rows]


def _result(future: Future[Measured]) -> Measured:
    try:
        return future.result()
    except (CancelledError, DesignerError) as error:  # the process of this instance died
        return Measured(FAILED, str(error))


def _never() -> bool:
    return False
