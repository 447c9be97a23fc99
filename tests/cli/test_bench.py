"""`designer bench sndlib`: rows against a table of known costs, every exit code, what is written, bad folders."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from designer.cli.bench_sndlib import exit_code
from designer.formulation import design_folder
from designer.formulation.design_folder import FolderRow
from tests.cli.conftest import ROOT, Run, start

SHIPPED = ROOT / "instances" / "network_design"
SINGLE = "single link, free rerouting"
KNOWN = [("nd6", "none", 869), ("nd6", SINGLE, 1613), ("nd7", "none", 1351)]

# The second problem waits for Ctrl-C.
WAITING = """
import sys, time
import designer.formulation.design_folder as folder
real, solved = folder.solve_network_design, []
def waiting(network, *, limits, **options):
    if solved:
        print("waiting", file=sys.stderr, flush=True)
        while not limits.should_stop():
            time.sleep(0.01)
    solved.append(network)
    return real(network, limits=limits, **options)
folder.solve_network_design = waiting
"""

# The second problem ends in an error.
FAILING = """
import designer.formulation.design_folder as folder
from designer.formulation.network_design import UnverifiedError
real, solved = folder.solve_network_design, []
def failing(network, **options):
    if solved:
        raise UnverifiedError("does not carry all demands")
    solved.append(network)
    return real(network, **options)
folder.solve_network_design = failing
"""


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder with two networks and a table of what is known, some of it changed: (instance, survivability) -> row."""

    def make(changes: dict[tuple[str, str], dict[str, Any]] | None = None) -> Path:
        path = tmp_path / "networks"
        path.mkdir()
        for name in ("nd6.txt", "nd7.txt"):
            (path / name).write_text((SHIPPED / name).read_text(encoding="utf-8"), encoding="utf-8")
        table = [
            {"instance": name, "survivability": survives, "optimum": cost, "best_known": cost}
            | (changes or {}).get((name, survives), {})
            for name, survives, cost in KNOWN
        ]
        (path / "optima.json").write_text(json.dumps(table), encoding="utf-8")
        return path

    return make


def test_known_costs_are_found_and_shown(run: Run, folder: Callable[..., Path]) -> None:
    ran = run("bench", "sndlib", folder())
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[2][:7] == ["nd6", "none", "869", "869", "0.00", "%", "869"]
    assert lines[3][:8] == ["nd6", "single", "link", "1,613", "1,613", "0.00", "%", "1,613"]
    assert lines[4][-2:] == ["projected", "highs"]
    assert "3 problems, 3 proven: 3 as known" in ran.out
    assert ran.err.count("as known") == 3


def test_one_document_is_printed_and_written(run: Run, folder: Callable[..., Path], tmp_path: Path) -> None:
    ran = run("bench", "sndlib", folder(), "--json", "-o", tmp_path / "results", "--solver", "scip", "--seed", 3)
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document == json.loads((tmp_path / "results" / "sndlib.json").read_text())
    assert [item.name for item in (tmp_path / "results").iterdir()] == ["sndlib.json"]
    assert [(row["instance"], row["survivability"], row["cost"]) for row in document["rows"]] == KNOWN
    assert all(row["cost"] == row["bound"] == row["known"] and row["proven"] for row in document["rows"])
    assert {row["solver"] for row in document["rows"]} == {"scip"}
    assert document["summary"]["verdicts"] == {"as known": 3}
    assert document["seed"] == 3


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        ({"optimum": 870}, "better"),
        ({"optimum": 868}, "worse"),
        ({"optimum": None, "best_known": 868}, "worse"),
    ],
)
def test_a_result_that_contradicts_the_table_is_7(
    run: Run, folder: Callable[..., Path], wrong: dict[str, Any], verdict: str
) -> None:
    path = folder({("nd6", "none"): wrong})
    ran = run("bench", "sndlib", path, "--json")
    assert ran.code == 7
    row = json.loads(ran.out)["rows"][0]
    assert (row["verdict"], row["contradicts"]) == (verdict, True)
    assert "contradicts the table" in ran.err


def test_a_cost_below_one_that_nobody_proved_is_a_find(run: Run, folder: Callable[..., Path]) -> None:
    ran = run("bench", "sndlib", folder({("nd6", "none"): {"optimum": None, "best_known": 870}}))
    assert ran.code == 0
    assert "870*" in ran.out
    assert "1 better" in ran.out


def test_no_time_is_6_without_a_design(run: Run, folder: Callable[..., Path]) -> None:
    ran = run("bench", "sndlib", folder(), "--time-limit", "0", "--json")
    assert ran.code == 6
    rows = json.loads(ran.out)["rows"]
    assert [(row["cost"], row["bound"], row["gap"], row["verdict"]) for row in rows] == [
        (None, None, None, "no design")
    ] * 3


def test_seed_and_time_limit_reach_every_problem(
    run: Run, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    solve, heard = design_folder.solve_network_design, []

    def listening(network: Any, *, limits: Any, **options: Any) -> Any:
        heard.append((limits.seed, limits.time_limit_s, options["solver"]))
        return solve(network, limits=limits, **options)

    monkeypatch.setattr(design_folder, "solve_network_design", listening)
    run("bench", "sndlib", folder(), "--seed", 7, "--time-limit", 50, "--solver", "scip")
    assert heard == [(7, 50.0, "scip")] * 3


ROW = FolderRow("a", "none", "flow", "highs", "optimal", 10.0, 10.0, 0.0, 10.0, True, 1.0)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"termination": "time_limit", "bound": 9.0, "gap": 0.1}, 5),
        ({"termination": "time_limit", "bound": 9.0, "cost": 11.0, "proven": False}, 7),
        ({"termination": "time_limit", "bound": 9.0, "cost": 11.0, "known": None}, 5),
        ({"termination": "time_limit", "bound": 9.0, "cost": None}, 6),
        ({"termination": "time_limit", "bound": 11.0, "cost": None}, 7),
        ({"termination": "infeasible", "bound": float("inf"), "cost": None, "known": None}, 4),
        ({"termination": "infeasible", "bound": float("inf"), "cost": None, "proven": False}, 7),
        ({"termination": "error", "bound": 9.0, "cost": None}, 1),
    ],
)
def test_the_gravest_row_decides(changes: dict[str, Any], code: int) -> None:
    assert exit_code([ROW, replace(ROW, **changes), ROW]) == code


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_prints_the_rows_so_far_and_is_130(folder: Callable[..., Path], tmp_path: Path) -> None:
    process = start("bench", "sndlib", folder(), "--json", "-o", tmp_path / "results", prelude=WAITING)
    assert process.stderr is not None
    for line in process.stderr:
        if "waiting" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document == json.loads((tmp_path / "results" / "sndlib.json").read_text())
    assert [row["termination"] for row in document["rows"]] == ["optimal", "interrupted"]


def test_an_error_takes_nothing_from_the_rows_before(folder: Callable[..., Path]) -> None:
    process = start("bench", "sndlib", folder(), "--json", prelude=FAILING, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 7
    assert [row["cost"] for row in json.loads(out)["rows"]] == [869]
    assert "does not carry all demands" in err


def test_folders_and_files_that_cannot_be_used_are_3(run: Run, folder: Callable[..., Path], tmp_path: Path) -> None:
    def refused(path: Path, message: str) -> None:
        ran = run("bench", "sndlib", path)
        assert (ran.code, ran.out) == (3, "")
        assert message in ran.err

    (tmp_path / "empty").mkdir()
    refused(tmp_path / "missing", "no such folder")
    refused(tmp_path / "empty", "no networks")
    path = folder()
    ran = run("bench", "sndlib", path, "-o", path / "nd6.txt")
    assert (ran.code, ran.out) == (3, "")
    assert run("bench", "sndlib", path, "-o", path / "no" / "results").code == 3
    (path / "nd7.txt").write_text("?SNDlib native format; type: network; version: 1.0\nNODES (\n", encoding="utf-8")
    refused(path, "nd7.txt")


def test_what_is_not_there_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    assert run("bench", "sndlib").code == 2
    assert run("bench", "sndlib", tmp_path, "--quick").code == 2
    assert run("bench", "sndlib", tmp_path, tmp_path).code == 2
    ran = run("bench", "sndlib", tmp_path, "--solver", "abacus")
    assert ran.code == 2
    assert "highs" in ran.err
