"""Where points are designed: in this process, in worker processes, or on the machines of a Dask cluster."""

import contextlib
import os
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, TypeVar

from designer.errors import Problem, StudyError
from designer.study.processes import ProcessExecutor, WorkerDiedError

_T = TypeVar("_T")
KINDS = "serial, processes, dask, dask:ADDRESS such as dask:tcp://10.0.0.1:8786, or dask-slurm"


@dataclass(frozen=True)
class Engine:
    """An executor in use: most tasks to hand it at a time, and how to have it drop what it has in hand."""

    executor: Executor
    in_flight: int
    drop: Callable[[], None]


class SerialExecutor(Executor):
    """Does the work at once, in this process."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Call `fn`; the future is done."""
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - raised again where the result is asked for
            future.set_exception(error)
        return future


@contextlib.contextmanager
def engine_of(executor: str | Executor, workers: int | None = None) -> Generator[Engine]:
    """The engine of a name, for as long as the context lasts; an `Executor` of one's own is left open.

    `workers` is the number of processes or of Slurm jobs; default: the cores that this process may use.

    Raises:
        StudyError: no such executor, or the cluster does not answer.
    """
    if workers is not None and workers < 1:
        raise StudyError([Problem("executor", None, "workers", str(workers), "a whole number >= 1")])
    number = workers or cores()
    if isinstance(executor, Executor):
        yield Engine(executor, 4 * number, _nothing)
    elif executor == "serial":
        yield Engine(SerialExecutor(), 1, _nothing)
    elif executor == "processes":
        with _processes(number) as engine:
            yield engine
    elif executor == "dask" or executor.startswith(("dask:", "dask-slurm")):
        from designer.study.dask_engine import dask_engine

        with dask_engine(executor, number) as engine:
            yield engine
    else:
        raise StudyError([Problem("executor", None, "", repr(executor), KINDS)])


@contextlib.contextmanager
def _processes(workers: int) -> Generator[Engine]:
    executor = ProcessExecutor(workers)
    try:
        _check_workers_start(executor)
        yield Engine(executor, 2 * workers, executor.kill)
    finally:
        executor.kill()


def _check_workers_start(executor: ProcessExecutor) -> None:
    """A worker imports the script of its parent; one that studies on import would start workers without end."""
    try:
        executor.submit(os.getpid).result()
    except (WorkerDiedError, RuntimeError) as error:
        found = f"worker processes that end as soon as they start: {error}"
        allowed = "in a script, calls of study() below `if __name__ == '__main__':`; or the executor serial"
        raise StudyError([Problem("executor", None, "processes", found, allowed)]) from None


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _nothing() -> None:
    """What is submitted one by one needs no dropping."""
