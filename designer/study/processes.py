"""Worker processes behind the interface of concurrent.futures, each with one solver thread.

A worker that dies takes only its own point with it: that point is tried once more in a new worker, and if this one dies
as well, the point has failed. Workers end with the process that started them, however that ends.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from designer.errors import DesignerError

_T = TypeVar("_T")
TRIES = 2


class WorkerDiedError(DesignerError):
    """The process that worked on a point ended without an answer, at every try."""


class _WorkerLostError(Exception):
    """The process ended without an answer, this time."""


class ProcessExecutor(Executor):
    """As many workers as asked for, started when there is work for them; where `fresh`, anew for every call."""

    def __init__(self, workers: int, *, fresh: bool = False) -> None:
        self._fresh = fresh
        # One thread waits for each worker: so it is known which point a worker that died had in hand.
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="study")
        self._own = threading.local()
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._killed = False

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Have a worker call `fn`; it must be importable by its name there."""
        return self._threads.submit(self._call, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers once what was submitted is done; with `cancel_futures`, once what they have in hand is."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if wait:
            self._end_workers()

    def kill(self) -> None:
        """End the workers at once; what they have in hand is lost."""
        self._killed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._end_workers()

    def _end_workers(self) -> None:
        with self._lock:
            workers, self._workers = self._workers, set()
        for worker in workers:
            worker.end()

    def _call(self, fn: Callable[..., _T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _T:
        lost = ""
        for _ in range(TRIES):
            if self._killed:
                break
            worker = self._worker()
            try:
                result = worker.call(fn, args, kwargs)
            except _WorkerLostError as error:
                lost = str(error)
                self._forget(worker)
            else:
                if self._fresh:
                    self._forget(worker)
                    worker.end()
                return result
        raise WorkerDiedError(f"the worker process {lost or 'was ended'}, {TRIES} times")

    def _forget(self, worker: "_Worker") -> None:
        self._own.worker = None
        with self._lock:
            self._workers.discard(worker)

    def _worker(self) -> "_Worker":
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = _Worker()
            with self._lock:
                self._workers.add(worker)
        return worker


class _Worker:
    """A process and the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # solvers hold threads, which do not survive a fork
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()  # with our copy gone, the end of the process ends the pipe

    def call(self, fn: Callable[..., _T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _T:
        try:
            self._connection.send((fn, args, kwargs))
            done, result = self._connection.recv()
        except (EOFError, OSError) as error:
            self.end()
            raise _WorkerLostError(_how_it_ended(self._process.exitcode)) from error
        if done:
            return result
        raise result

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"


def _serve(connection: "Connection[Any, Any]") -> None:
    # Ctrl-C reaches every process of the terminal; what it means for the study is for the study to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            fn, args, kwargs = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = (True, fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - raised again where the result is asked for
            answer = (False, error)
        connection.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
