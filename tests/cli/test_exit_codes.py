"""The ends of a search: proven, out of time with and without a design, interrupted once and twice."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import designer.search
from designer.certify.certificate import Interval
from tests.cli.conftest import Run, start

Write = Callable[..., Path]

# The real search, told to stop as soon as Ctrl-C came: it waits for that, so that the test need not hit a moment.
WAITING_SEARCH = """
import sys, time
import designer.search as search
real = search.design
def waiting(instance, options):
    print("waiting", file=sys.stderr, flush=True)
    while not options.should_stop():
        time.sleep(0.01)
    return real(instance, options)
search.design = waiting
"""

# The real search, then a certificate that waits for Ctrl-C.
WAITING_CHECKS = """
import sys, time
import designer.search as search
def waiting(design, *, pairs, progress):
    print("waiting", file=sys.stderr, flush=True)
    while True:
        progress("something")
        time.sleep(0.01)
search.certified = waiting
"""

DEAF_SEARCH = """
import sys, time
import designer.search as search
def deaf(instance, options):
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(300)
search.design = deaf
"""

# Whether a design is in hand when time is up: a template meets the first, none meets the pinned leaves of the second.
JOB = {"model": "gpt-22b", "parallelism": {"tp": 8, "pp": 8, "dp": 16}, "global_batch": 512}
SPACIOUS = {"cluster": {"gpus": 1024}, "workload": [JOB], "requirements": {"throughput": {"pp": 0.25}}}
PINNED = {"cluster": {"gpus": 512}, "search": {"leaf": {"down": 24}}, "requirements": {"throughput": {"dp": 0.5}}}
TWO_TIERS = [{"demand": "any", "group": 16, "across": "rail"}, {"demand": "all-to-all", "across": "cluster"}]


def test_a_proven_optimum_is_0_and_written(run: Run, write: Write) -> None:
    path = write()
    output = path.with_name("design.json")
    ran = run("design", path, "-o", output, "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document["status"] == "optimal"
    assert document["gap"] == 0
    assert json.loads(output.read_text()) == document


def test_a_limit_with_a_design_in_hand_is_5(run: Run, write: Write) -> None:
    path = write(**SPACIOUS)
    output = path.with_name("design.json")
    ran = run("design", path, "-o", output, "--time-limit", "0")
    assert ran.code == 5
    assert "stopped by the time limit" in ran.out
    assert "gap" in ran.err
    document = json.loads(output.read_text())
    assert document["status"] == "feasible"
    assert document["provenance"]["termination"] == "time_limit"
    assert document["lower_bound_usd"] < document["cost_usd"]


def test_a_limit_without_a_design_is_6(run: Run, write: Write) -> None:
    path = write(**PINNED, workload=TWO_TIERS)
    output = path.with_name("design.json")
    ran = run("design", path, "-o", output, "--time-limit", "0", "--json")
    assert ran.code == 6
    assert ran.out == ""
    assert "no design" in ran.err
    assert not output.exists()
    assert run("compare", path, "--time-limit", "0").code == 6


def test_a_gap_asked_for_is_0(run: Run, write: Write) -> None:
    ran = run("design", write(**SPACIOUS), "--gap", "0.9", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["gap"] <= 0.9


def interrupted(process: "subprocess.Popen[str]") -> None:
    """Sends Ctrl-C once the search waits for it."""
    assert process.stderr is not None
    for line in process.stderr:
        if "waiting" in line:
            break
    process.send_signal(signal.SIGINT)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_writes_the_best_design_so_far_and_is_130(write: Write) -> None:
    path = write(**SPACIOUS)
    output = path.with_name("design.json")
    process = start("design", path, "-o", output, "--json", prelude=WAITING_SEARCH)
    interrupted(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out) == json.loads(output.read_text())
    assert json.loads(out)["provenance"]["termination"] == "interrupted"
    assert json.loads(out)["certificate"] is None
    assert "it has no certificate" in err
    assert "interrupted" in err
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_during_the_checks_writes_the_optimum_without_a_certificate(write: Write) -> None:
    path = write()
    output = path.with_name("design.json")
    process = start("design", path, "-o", output, "--json", prelude=WAITING_CHECKS)
    interrupted(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    document = json.loads(out)
    assert document == json.loads(output.read_text())
    assert document["status"] == "optimal"
    assert document["certificate"] is None
    assert "interrupted after the search: this design is optimal; it has no certificate" in err


def test_a_certificate_that_falls_short_is_7_and_the_design_is_written(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = designer.search.throughput_of

    def worse(*arguments: Any, **options: Any) -> Any:
        phases, failures = real(*arguments, **options)
        first = replace(phases[0], interval=Interval(0.25, 0.5, 0.25, "planted"), met=False)
        return (first, *phases[1:]), (replace(failures[0], required=0.9, met=False), *failures[1:])

    monkeypatch.setattr("designer.search.throughput_of", worse)
    path = write()
    output = path.with_name("design.json")
    ran = run("design", path, "-o", output)
    assert ran.code == 7
    assert "falls short" in ran.out
    assert "25 % to 50 %" in ran.out
    assert "interval" in ran.out
    assert "the certificate falls short of the requirements" in ran.err
    assert "carries 25 % to 50 %, its floor is 100 %" in ran.err
    assert json.loads(output.read_text())["certificate"]["met"] is False
    assert run("verify", output).code == 7  # the planted certificate is not what the fabric gives


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_with_no_design_yet_is_130_and_writes_nothing(write: Write) -> None:
    path = write(**PINNED, workload=TWO_TIERS)
    output = path.with_name("design.json")
    process = start("design", path, "-o", output, prelude=WAITING_SEARCH)
    interrupted(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "before any design was found" in err
    assert not output.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_second_ctrl_c_ends_a_search_that_does_not_listen(write: Write) -> None:
    path = write()
    output = path.with_name("design.json")
    process = start("design", path, "-o", output, prelude=DEAF_SEARCH)
    interrupted(process)
    assert process.stderr is not None
    assert "once more" in process.stderr.readline()
    time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert sorted(item.name for item in path.parent.iterdir()) == ["instance.yaml"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_outside_a_search_is_130(write: Write) -> None:
    prelude = (
        "import designer.instance.load as load\ndef stop(path):\n    raise KeyboardInterrupt\nload.load_instance = stop"
    )
    process = start("traffic", write(), prelude=prelude)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
