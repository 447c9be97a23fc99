"""Studies: every point designed once, rows equal to single designs, whatever happens to processes on the way."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from designer import design, instance_from_document, study
from designer.errors import StudyError
from designer.instance.instance import Job
from designer.study.run import EngineLostError, Progress
from designer.study.schema import StudyOptions
from designer.study.store import RESULTS, keys_of
from designer.study.table import StudyResult
from designer.study.task import perform, task_of
from designer.workload.step_time import memory_per_gpu, step_time
from tests.cli.conftest import environment
from tests.study.samples import AXES, BASE, DOMAIN, FLOOR, LARGE, MANY, PIPELINE, PRICE, Counting, Deadly


@pytest.fixture(scope="module")
def serial() -> StudyResult:
    """The study that the others are compared with."""
    return study(BASE, AXES, executor="serial")


def test_rows_are_the_single_designs(serial: StudyResult) -> None:
    assert len(serial) == 12
    assert serial.finished
    row = serial.rows[4]
    assert row.settings == {PIPELINE: 1, FLOOR: 1.0, PRICE: 20_000}
    by_hand = design(instance_from_document({**BASE, "requirements": {"throughput": {"dp": 1.0}}}))
    prices = [line.quantity * line.unit_cents for line in by_hand.bill.lines if line.item == "qm9700"]
    saved = sum(prices) - sum(line.quantity for line in by_hand.bill.lines if line.item == "qm9700") * 20_000_00
    assert row["cost_usd"] == (by_hand.cost_cents - saved) / 100, "one design is the only one at both prices"
    assert row["status"] == "optimal"
    assert row["gap"] == 0
    assert row["leaf"] == by_hand.counts["leaf"]
    assert (row["leaf_switch"], row["leaf_radix"], row["core_switch"], row["core_radix"]) == ("qm9700", 64, None, None)
    assert row["power_w"] == by_hand.power_w
    certificate = by_hand.certificate
    assert certificate is not None
    assert row["throughput_dp"] == min(phase.interval.lower for phase in certificate.phases)
    worst = min(certificate.failures, key=lambda failure: failure.lower)
    assert (row["worst_failure"], row["worst_failure_throughput"]) == (worst.removed, worst.lower)
    assert row["worst_failure_upper"] == worst.upper
    assert row["met"] is certificate.met
    assert row["termination"] == by_hand.provenance.termination
    assert row["rail_only_usd"] > 0
    assert sum(piece.quantity for piece in row.pieces if piece.used_for == "leaf") == row["leaf"]


def test_steps_take_what_the_certified_throughputs_leave(serial: StudyResult) -> None:
    full, half = serial.rows[4], study(BASE, {"workload[0].model": ["gpt3-175b"], FLOOR: [0.5, 1.0]}, executor="serial")
    made = design(instance_from_document(BASE))
    job, gpu = made.instance.workload[0], made.instance.cluster.gpu
    assert isinstance(job, Job)
    expected = step_time(job, gpu, 400, made.traffic, {"dp": 1.0})
    assert (full["step_time_s"], full["mfu"], full["step_overhead"]) == (expected.total_s, expected.mfu, 0)
    assert full["memory_gb"] == memory_per_gpu(job, gpu).total_bytes / 1e9
    assert [row["memory_fits"] for row in (full, *half)] == [True, False, False]
    assert half.pareto("cost", "power") == (False, False), "what does not fit is on no front"
    plain = study(BASE, {}, options=StudyOptions(certify=False), executor="serial").rows[0]
    assert plain["memory_gb"] == full["memory_gb"]
    assert plain["step_time_s"] is None


def test_points_that_cannot_be_are_rows_with_their_reason(serial: StudyResult) -> None:
    refused = [row for row in serial if row["status"] == "refused"]
    assert [row.settings[PIPELINE] for row in refused] == [2] * 6
    assert all("2 x dp 8" in row["reason"] and row["cost_usd"] is None for row in refused)
    tight = {"requirements.survive": [[], [{"failure": "nic", "throughput": 1.0}]]}
    result = study(BASE, tight, executor="serial")
    assert [row["status"] for row in result] == ["optimal", "infeasible"]
    assert "constraints together" in result.rows[1]["reason"]


def test_what_fails_inside_is_a_row_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    import designer.search

    real = designer.search.design

    def failing(instance: Any, options: Any) -> Any:
        if instance.cluster.gpus == 128:
            raise ZeroDivisionError("no luck")
        return real(instance, options)

    monkeypatch.setattr(designer.search, "design", failing)
    axes = {("cluster.gpus", "workload[0].parallelism.dp"): [(128, 16), (64, 8)]}
    result = study(BASE, axes, executor="serial")
    assert [row["status"] for row in result] == ["failed", "optimal"]
    assert result.rows[0]["reason"] == "internal error: ZeroDivisionError: no luck"


def test_a_point_that_cannot_even_be_read_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    import designer.study.base

    def failing(document: Any, folder: Any, catalog: Any) -> Any:
        raise ZeroDivisionError("no luck")

    monkeypatch.setattr(designer.study.base, "instance_from_document", failing)
    result = study(BASE, {FLOOR: [1.0]}, executor="serial")
    assert (result.rows[0]["status"], result.rows[0]["reason"]) == (
        "failed",
        "internal error: ZeroDivisionError: no luck",
    )


def test_nothing_is_designed_twice(tmp_path: Path, serial: StudyResult) -> None:
    first = Counting()
    assert study(BASE, AXES, executor=first, folder=tmp_path) == serial
    assert len(first.keys) == 4, "two floors and two prices; a price that comes twice is one task"
    assert len(set(first.keys)) == 4
    again = Counting()
    assert study({**BASE, "name": "other"}, AXES, executor=again, folder=tmp_path).rows == serial.rows
    assert again.keys == []
    more = Counting()
    study(BASE, {**AXES, PRICE: [20_000, 30_000, 35_000]}, executor=more, folder=tmp_path)
    assert len(more.keys) == 2, "the new price only"
    changed = Counting()
    study(BASE, {**AXES, "options.gap": [0.5]}, executor=changed, folder=tmp_path)
    assert len(changed.keys) == 4, "other options, other tasks"


def test_an_interrupted_study_goes_on_from_what_is_done(tmp_path: Path, serial: StudyResult) -> None:
    with pytest.raises(KeyboardInterrupt):
        study(BASE, AXES, executor=Counting(most=3), folder=tmp_path)
    rest = Counting()
    assert study(BASE, AXES, executor=rest, folder=tmp_path) == serial
    assert 1 <= len(rest.keys) < 4
    keys = list(keys_of(tmp_path / RESULTS))
    assert len(keys) == len(set(keys)) == 4


def test_a_study_that_is_told_to_stop_gives_what_it_has(tmp_path: Path, serial: StudyResult) -> None:
    seen: list[Progress] = []
    result = study(
        BASE, AXES, executor="serial", folder=tmp_path, progress=seen.append, should_stop=lambda: len(seen) > 2
    )
    assert not result.finished
    done = [row for row in result if row["status"] != "missing"]
    assert 1 <= len(done) < 8
    assert all(row in serial.rows for row in done)
    rest = Counting()
    assert study(BASE, AXES, executor=rest, folder=tmp_path) == serial
    assert rest.keys


def test_progress_counts_points_and_knows_the_cheapest(tmp_path: Path) -> None:
    seen: list[Progress] = []
    result = study(BASE, AXES, executor="serial", folder=tmp_path, progress=seen.append)
    assert [now.done for now in seen] == sorted(now.done for now in seen)
    last = seen[-1]
    assert (last.done, last.total, last.kept, last.without_design) == (12, 12, 0, 6)
    assert last.cheapest_usd == min(cost for cost in result.values("cost") if cost is not None)
    assert last.cheapest is not None
    assert last.cheapest[PRICE] == 20_000
    study(BASE, AXES, executor="serial", folder=tmp_path, progress=seen.append)
    assert seen[-1].kept == 4


def test_processes_and_an_executor_of_ones_own_give_the_serial_table(tmp_path: Path, serial: StudyResult) -> None:
    assert study(BASE, AXES, executor="processes", workers=2, folder=tmp_path) == serial
    with ThreadPoolExecutor(2) as threads:
        assert study(BASE, AXES, executor=threads) == serial


def test_a_worker_that_is_killed_costs_nothing_but_a_second_try(tmp_path: Path, serial: StudyResult) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with Deadly(marks, deaths=1, price_usd=20_000) as executor:
        assert study(BASE, AXES, executor=executor) == serial
    assert len(list(marks.iterdir())) == 1


def test_a_point_that_kills_its_worker_twice_has_failed_and_no_other(tmp_path: Path, serial: StudyResult) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    axes = {**AXES, FLOOR: [1.0]}
    with Deadly(marks, deaths=2, price_usd=20_000) as executor:
        result = study(BASE, axes, executor=executor, folder=tmp_path)
    assert [row["status"] for row in result] == ["optimal", "failed", "optimal", *["refused"] * 3]
    assert "SIGKILL" in result.rows[1]["reason"]
    again = Counting()
    healed = study(BASE, axes, executor=again, folder=tmp_path)
    assert healed.rows == tuple(row for row in serial if row.settings[FLOOR] == 1.0)
    assert len(again.keys) == 1


STUDY = f"""
import sys
from designer import study
study({LARGE!r}, {MANY!r}, executor="processes", workers=2, folder=sys.argv[1],
    progress=lambda now: print(now.done, flush=True))
"""


def _workers(parent: int) -> list[int]:
    """The processes that a study started to work for it."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, of, command in lines if int(of) == parent and "spawn_main" in command]


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are listed by /proc")
def test_after_sigkill_of_a_worker_and_then_of_the_study_it_resumes_to_the_same_table(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUDY, str(tmp_path)], env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None

    def wait_for(points: int) -> None:
        while int(process.stdout.readline() or points) < points:
            pass

    wait_for(1)
    os.kill(_workers(process.pid)[0], signal.SIGKILL)
    wait_for(2)
    workers = _workers(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    deadline = time.monotonic() + 30
    while any(_running(worker) for worker in workers):
        assert time.monotonic() < deadline, "workers outlive their study"
        time.sleep(0.05)
    done = set(keys_of(tmp_path / RESULTS))
    assert 1 <= len(done) < 8
    rest = Counting()
    assert study(LARGE, MANY, executor=rest, folder=tmp_path) == study(LARGE, MANY, executor="serial")
    assert done.isdisjoint(rest.keys)
    assert len(done) + len(rest.keys) == 8


def test_a_worker_of_another_version_says_so() -> None:
    task = task_of(instance_from_document(BASE), StudyOptions())
    assert perform(task).status == "optimal"
    other = perform(replace(task, version="0.0.1"))
    assert other.status == "failed"
    assert "the study 0.0.1" in other.reason


def test_an_executor_that_breaks_ends_the_study_in_words(tmp_path: Path) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(EngineLostError, match="run it again"):
        study(BASE, AXES, executor=executor, folder=tmp_path)


def test_a_script_that_studies_on_import_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"from designer import study\nstudy({BASE!r}, {{{DOMAIN!r}: [8]}}, executor='processes')\n")
    command = [sys.executable, script]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "__name__ == '__main__'" in ended.stderr.splitlines()[-1]


def test_bad_axes_options_and_executors_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    executor = Counting()
    for axes in ({"cluster.gpu_count": [8]}, {DOMAIN: [8, 0]}, {"options.gap": [7]}, {DOMAIN: []}):
        with pytest.raises(StudyError):
            study(BASE, axes, executor=executor, folder=tmp_path)
    assert executor.keys == []
    for name, allowed in (("threads", "serial, processes"), ("dask-pbs", "dask-slurm")):
        with pytest.raises(StudyError, match=allowed):
            study(BASE, AXES, executor=name)
    with pytest.raises(StudyError, match="workers"):
        study(BASE, AXES, workers=0)


def test_the_package_and_the_function_go_by_one_name() -> None:
    program = (
        "import designer.study.points; from designer import study; import designer; print(study is designer.study)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert ended.stdout == "True\n"
