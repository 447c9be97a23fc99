"""`designer bench` on suites of instances: tables, document, every exit code, Ctrl-C."""

import json
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from designer.benchmark.records import Known
from designer.benchmark.row import BenchRow, Measured
from designer.cli.bench import exit_code
from tests.cli.conftest import ROOT, Run, start

SMALL = ROOT / "instances" / "small"
NAMES = ("any-08-one-switch", "any-16-two-tiers")


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A suite of two instances; `changes` go into the record of the first."""

    def make(**changes: Any) -> Path:
        path = tmp_path / "mine"
        path.mkdir()
        for name in ("catalog", *NAMES):
            shutil.copy(SMALL / f"{name}.yaml", path)
        records = json.loads((SMALL / "best_known.json").read_text())
        known = {name: records[name] for name in NAMES}
        known[NAMES[0]] |= changes
        (path / "best_known.json").write_text(json.dumps(known))
        return path

    return make


def test_tables_show_costs_proofs_savings_and_the_suite(run: Run, folder: Callable[..., Path]) -> None:
    ran = run("bench", folder())
    assert ran.code == 0
    assert "mine/any-16-two-tiers" in ran.out
    for heading in ("any shape", "first", "proof", "fat-tree", "certified"):
        assert heading in ran.out
    assert "2 as known" in ran.out
    assert "[2/2] " in ran.err
    assert "Against what is known" not in ran.out


def test_one_document_is_printed_and_written(run: Run, folder: Callable[..., Path], tmp_path: Path) -> None:
    ran = run("bench", folder(), "--json", "-o", tmp_path / "results", "--workers", 1, "--seed", 5)
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document == json.loads((tmp_path / "results" / "bench.json").read_text())
    assert [(row["suite"], row["instance"], row["verdict"]) for row in document["rows"]] == [
        ("mine", name, "as known") for name in NAMES
    ]
    assert all(row["proof_s"] > 0 and row["peak_mb"] > 20 and row["met"] for row in document["rows"])
    assert {item["template"] for item in document["rows"][1]["savings"]} >= {"fat-tree", "rail-only"}
    assert (document["seed"], document["workers"], document["summary"][0]["proven"]) == (5, 1, 2)


def test_a_missed_best_known_cost_is_7(run: Run, folder: Callable[..., Path]) -> None:
    ran = run("bench", folder(cost_usd=1000.0))
    assert ran.code == 7
    assert "cost worse: $1,880 for $1,000 (+88.00 %)" in ran.out
    assert "a best known cost is missed" in ran.err


def test_a_better_cost_is_told_and_is_0(run: Run, folder: Callable[..., Path]) -> None:
    ran = run("bench", folder(cost_usd=2000.0))
    assert ran.code == 0
    assert "cost better: $1,880 for $2,000 (-6.00 %)" in ran.out


def test_ctrl_c_keeps_the_rows_so_far_and_is_130(folder: Callable[..., Path], tmp_path: Path) -> None:
    path = folder()
    atop = ROOT / "instances" / "atop"
    long = (atop / "1024-moe-2x200.yaml").read_text()  # takes minutes
    (path / "z-long.yaml").write_text(long.replace("catalog.yaml", str(atop / "catalog.yaml")))
    process = start("bench", path, "--json", "--workers", 1, "-o", tmp_path / "results")
    assert process.stderr is not None
    for line in process.stderr:
        if "[2/3]" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document == json.loads((tmp_path / "results" / "bench.json").read_text())
    assert [row["instance"] for row in document["rows"]] == list(NAMES)


def test_suites_that_are_none_are_3(run: Run, tmp_path: Path) -> None:
    ran = run("bench", "no-such-suite")
    assert (ran.code, ran.out) == (3, "")
    assert "no such suite" in ran.err
    assert run("bench", tmp_path).code == 3


def test_an_instance_that_cannot_be_read_is_3_after_the_others(run: Run, folder: Callable[..., Path]) -> None:
    path = folder()
    (path / "broken.yaml").write_text("name: broken\n")
    ran = run("bench", path)
    assert ran.code == 3
    assert "mine/any-16-two-tiers" in ran.out
    assert "broken.yaml" in ran.out


FOUND = Measured("optimal", cost_usd=10.0, lower_bound_usd=10.0, met=True)
KNOWN = Known(10.0, 10.0, "0.1.0")


def row(known: Known | None = KNOWN, **changes: Any) -> BenchRow:
    return BenchRow("suite", "one", replace(FOUND, **changes), known)


GAP = {"status": "feasible", "lower_bound_usd": 9.0}
NOTHING = {"cost_usd": None, "lower_bound_usd": None, "met": None}


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([row()], 0),
        ([row(met=None)], 0),
        ([row(**GAP)], 5),
        ([row(Known(10.0, 9.0, "0.1.0"), **GAP)], 0),
        ([row(None, **GAP)], 5),
        ([row(met=False)], 7),
        ([row(status="failed", **NOTHING), row(met=False)], 7),
        ([row(status="infeasible", **NOTHING)], 7),
        ([row(None, status="infeasible", **NOTHING)], 4),
        ([row(status="no_design", **NOTHING), row(**GAP)], 6),
        ([row(status="refused", **NOTHING), row(status="no_design", **NOTHING)], 3),
        ([row(status="failed", **NOTHING), row(status="refused", **NOTHING)], 1),
    ],
)
def test_the_gravest_row_decides_the_exit_code(rows: list[BenchRow], code: int) -> None:
    assert exit_code(rows) == code
