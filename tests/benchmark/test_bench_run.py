"""Instances in processes of their own: what is measured, and that nothing of one reaches another."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from designer import design, load_instance
from designer.benchmark.measure import RunOptions, measure, peak_mb
from designer.benchmark.row import BenchRow
from designer.benchmark.run import run_suites
from designer.benchmark.suites import Suite, find_suites
from designer.search import Options
from designer.study.processes import ProcessExecutor

SMALL = Path(__file__).parents[2] / "instances" / "small"


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Suite]:
    """A suite with copies of small instances."""

    def make(*names: str) -> Suite:
        for name in ("catalog", *names):
            shutil.copy(SMALL / f"{name}.yaml", tmp_path)
        records = json.loads((SMALL / "best_known.json").read_text())
        (tmp_path / "best_known.json").write_text(json.dumps({name: records[name] for name in names}))
        return find_suites([str(tmp_path)])[0]

    return make


def test_a_row_has_what_the_design_has(folder: Callable[..., Suite]) -> None:
    suite = folder("any-16-two-tiers")
    found = measure(suite.instances[0], RunOptions())
    plain = design(load_instance(suite.instances[0]), Options())
    assert found.status == plain.status == "optimal"
    assert (found.cost_usd, found.lower_bound_usd) == (plain.cost_cents / 100, plain.bound_cents / 100)
    assert plain.any_topology_bound_cents is not None
    assert found.any_topology_bound_usd == plain.any_topology_bound_cents / 100
    assert (found.gpus, found.family, found.met, found.exact) == (16, "clos", True, True)
    assert plain.certificate is not None
    assert found.failure_classes == len(plain.certificate.failures) > 0
    assert {item.template: item.saving for item in found.savings} == {
        row.template: row.saving for row in plain.comparison
    }


def test_times_are_in_their_order(folder: Callable[..., Suite]) -> None:
    found = measure(folder("survive-switch-64").instances[0], RunOptions())
    assert found.first_s is not None
    assert found.best_s is not None
    assert found.proof_s is not None
    assert found.certificate_s is not None
    assert 0 < found.first_s <= found.best_s <= found.proof_s == found.design_s
    assert found.certificate_s > 0


def test_what_goes_wrong_is_an_outcome(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: bad\n")
    refused = measure(tmp_path / "bad.yaml", RunOptions())
    assert (refused.status, refused.cost_usd) == ("refused", None)
    assert "bad.yaml" in refused.reason
    document = yaml.safe_load((SMALL / "any-16-three-tiers.yaml").read_text())
    document["catalog"] = str(SMALL / "catalog.yaml")
    document["search"] = {"families": ["clos"], "switches": ["mini-4"], "max_tiers": 1}
    (tmp_path / "none.yaml").write_text(yaml.safe_dump(document))
    infeasible = measure(tmp_path / "none.yaml", RunOptions())
    assert (infeasible.status, infeasible.met) == ("infeasible", None)


def test_memory_is_that_of_the_process() -> None:
    before = peak_mb()
    block = bytearray(int(before * 1e6) + 200_000_000)  # more than this process had at any time
    block[:: 1 << 12] = b"x" * len(block[:: 1 << 12])
    assert peak_mb() - before > 150
    del block
    assert peak_mb() - before > 150, "a peak does not fall"


def test_a_certificate_that_takes_too_long_is_given_up(folder: Callable[..., Suite]) -> None:
    found = measure(folder("survive-switch-64").instances[0], RunOptions(certificate_limit_s=0.0))
    assert (found.status, found.met, found.certificate_s) == ("optimal", None, None)
    assert found.cost_usd is not None


def test_every_call_of_fresh_workers_has_a_process_of_its_own() -> None:
    executor = ProcessExecutor(1, fresh=True)
    try:
        first, second = (executor.submit(os.getpid).result() for _ in range(2))
    finally:
        executor.kill()
    assert len({first, second, os.getpid()}) == 3


def test_rows_come_in_the_order_of_the_suite_and_are_told_as_they_come(folder: Callable[..., Suite]) -> None:
    suite, told = folder("any-08-one-switch", "any-12-uniform", "planes-16"), list[tuple[BenchRow, int, int]]()
    rows = run_suites([suite], workers=2, report=lambda *news: told.append(news))
    assert [row.instance for row in rows] == ["any-08-one-switch", "any-12-uniform", "planes-16"]
    assert [(done, of) for _, done, of in told] == [(1, 3), (2, 3), (3, 3)]
    assert {row.instance for row, _, _ in told} == {row.instance for row in rows}
    assert {(row.verdict, row.measured.met) for row in rows} == {("as known", True)}


def test_a_run_that_is_to_stop_keeps_what_is_done(folder: Callable[..., Suite]) -> None:
    told: list[BenchRow] = []
    rows = run_suites(
        [folder("any-08-one-switch", "any-12-uniform", "any-16-two-tiers", "planes-16")],
        workers=1,
        report=lambda row, *_: told.append(row),
        should_stop=lambda: bool(told),
    )
    assert rows == told
    assert len(rows) < 4
