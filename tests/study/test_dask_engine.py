"""Dask: the serial table on a cluster of its own, on a running one and on (imitated) Slurm jobs; and its failures."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from designer import study
from designer.errors import StudyError
from designer.study.run import EngineLostError, Progress
from designer.study.store import RESULTS, keys_of
from designer.study.table import StudyResult
from tests.cli.conftest import environment
from tests.study.samples import AXES, BASE, FLOOR, LARGE, MANY, PRICE, Counting, die_for

distributed = pytest.importorskip("distributed", reason="dask distributed is not installed (extra dask)")


@pytest.fixture(scope="module")
def serial() -> StudyResult:
    return study(BASE, AXES, executor="serial")


@contextmanager
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """A scheduler and a worker, each a process of its own as on machines of a site; the scheduler comes first."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    scheduler = ["distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started: list[subprocess.Popen[str]] = []
    try:
        for command in [scheduler, worker]:
            full = [sys.executable, "-m", *command]
            with (tmp_path / f"log{len(started)}").open("w") as log:
                started.append(
                    subprocess.Popen(full, env=environment(), cwd=tmp_path, stdout=log, stderr=log, text=True)
                )
        deadline = time.monotonic() + 30
        while True:  # until it listens
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(address.rpartition(":")[2]))) == 0:
                    break
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield address, started
    finally:
        for process in started:
            process.kill()
            process.wait(30)


def test_a_local_cluster_gives_the_serial_table(serial: StudyResult) -> None:
    assert study(BASE, AXES, executor="dask", workers=2) == serial


def test_a_running_cluster_gives_the_serial_table_and_stays(tmp_path: Path, serial: StudyResult) -> None:
    with cluster(tmp_path) as (address, processes):
        assert study(BASE, AXES, executor=f"dask:{address}", folder=tmp_path / "results") == serial
        assert all(process.poll() is None for process in processes), "it is not the study's to end"


def test_a_scheduler_that_dies_ends_the_study_and_loses_nothing(tmp_path: Path) -> None:
    with cluster(tmp_path) as (address, processes):

        def kill(now: Progress) -> None:
            if now.done:
                processes[0].send_signal(signal.SIGKILL)

        with pytest.raises(EngineLostError, match="run it again"):
            study(LARGE, MANY, executor=f"dask:{address}", folder=tmp_path, progress=kill)
    done = set(keys_of(tmp_path / RESULTS))
    assert 1 <= len(done) < 8
    rest = Counting()
    assert study(LARGE, MANY, executor=rest, folder=tmp_path).finished
    assert done.isdisjoint(rest.keys)
    assert len(done) + len(rest.keys) == 8


class _Harming:
    """Dask's executor, whose tasks of one price kill their worker."""

    def __init__(self, inner: Any, marks: Path, deaths: int) -> None:
        self.inner, self.harm = inner, (str(marks), deaths, 20_000_00)

    def submit(self, fn: Any, /, *args: Any) -> Any:
        return self.inner.submit(die_for, *self.harm, fn, *args)

    def shutdown(self, wait: bool = True) -> None:
        self.inner.shutdown(wait=wait)


@pytest.mark.parametrize(("deaths", "status"), [(1, "optimal"), (2, "failed")])
def test_a_worker_that_dies_is_replaced_and_a_point_that_kills_two_has_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, serial: StudyResult, deaths: int, status: str
) -> None:
    import designer.study.dask_engine as engine

    real = engine.Engine

    def harming(executor: Any, in_flight: int, drop: Any) -> Any:
        return real(_Harming(executor, tmp_path, deaths), in_flight, drop)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(engine, "Engine", harming)
    result = study(BASE, {FLOOR: [1.0], PRICE: [30_000, 20_000]}, executor="dask", workers=1)
    assert [row["status"] for row in result] == ["optimal", status]
    assert (result.rows[1]["reason"] == "") is (status == "optimal")


def test_an_address_that_nobody_answers_is_told_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("designer.study.dask_engine.CONNECT_S", 0.5)
    study(BASE, {PRICE: [30_000]}, executor="serial", folder=tmp_path)
    before = (tmp_path / RESULTS).read_bytes()
    with socket.socket() as silent, socket.socket() as closed:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        closed.bind(("127.0.0.1", 0))
        ports = [silent.getsockname()[1], closed.getsockname()[1]]
        for address in (*(f"tcp://127.0.0.1:{port}" for port in ports), "tcp://nowhere.invalid:8786", "nowhere", ""):
            with pytest.raises(StudyError, match="the address of a Dask scheduler"):
                study(BASE, {PRICE: [30_000, 20_000]}, executor=f"dask:{address}", folder=tmp_path)
    assert (tmp_path / RESULTS).read_bytes() == before


def test_who_answers_and_is_no_scheduler_is_told_so() -> None:
    import threading

    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()

        def answer() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(StudyError, match="no Dask scheduler"):
            study(BASE, {PRICE: [1]}, executor=f"dask:tcp://127.0.0.1:{stranger.getsockname()[1]}")


SBATCH = """#!/bin/sh
# As Slurm: takes a job script, says a number, and runs it later, here.
cp "$1" "$HOME/job-$$.sh"
setsid sh "$HOME/job-$$.sh" >"$HOME/job-$$.log" 2>&1 &
echo $! >>"$HOME/jobs"
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job in "$@"; do kill "$job" 2>/dev/null; done
exit 0
"""


def test_slurm_jobs_are_submitted_and_give_the_serial_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, serial: StudyResult
) -> None:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed (extra dask)")
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    monkeypatch.chdir(tmp_path)
    assert study(BASE, AXES, executor="dask-slurm", workers=1) == serial
    script = next(tmp_path.glob("job-*.sh")).read_text()
    assert "#SBATCH --cpus-per-task=1" in script


def test_without_slurm_it_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed (extra dask)")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StudyError, match="no sbatch"):
        study(BASE, AXES, executor="dask-slurm")


def test_without_dask_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StudyError, match=r"pip install 'designer\[dask\]'"):
        study(BASE, AXES, executor="dask")
