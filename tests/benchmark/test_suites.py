"""Suites of instances: which folders are some, what is known of them, which instances are quick."""

import json
import shutil
from pathlib import Path

import pytest

from designer.benchmark.records import Known, read_known
from designer.benchmark.run import QUICK_GPUS, quick
from designer.benchmark.suites import find_suites
from designer.errors import InstanceError
from designer.instance.load import load_instance

ROOT = Path(__file__).parents[2] / "instances"


def test_all_suites_are_found_with_their_instances_and_records() -> None:
    suites = {suite.name: suite for suite in find_suites((), ROOT)}
    assert {"atop", "dense", "moe", "nvl72", "rail-only", "scale", "small", "superpod"} <= set(suites)
    assert sum(len(suite.instances) for suite in suites.values()) >= 60
    for suite in suites.values():
        assert set(suite.known) == {path.stem for path in suite.instances}
    assert "catalog" not in {path.stem for path in suites["small"].instances}
    assert not {"network_design", "studies"} & set(suites), "they have no instances of their own"


def test_a_suite_is_a_name_below_the_root_or_a_path(tmp_path: Path) -> None:
    shutil.copy(ROOT / "small" / "any-08-one-switch.yaml", tmp_path / "mine.yaml")
    names = ["moe", str(tmp_path), "moe"]
    assert [suite.name for suite in find_suites(names, ROOT)] == ["moe", tmp_path.name]
    (suite,) = find_suites([str(tmp_path)], ROOT)
    assert (suite.instances, suite.known) == ((tmp_path / "mine.yaml",), {})


def test_every_folder_that_is_no_suite_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as refused:
        find_suites(["moe", "nowhere", str(tmp_path)], ROOT)
    assert [problem.found for problem in refused.value.problems] == ["no such suite", "no instances in it"]
    assert "superpod" in refused.value.problems[0].allowed
    with pytest.raises(InstanceError, match="no such folder"):
        find_suites((), tmp_path / "instances")


def test_records_are_read_as_cost_bound_and_version(tmp_path: Path) -> None:
    record = {"cost_usd": 7, "lower_bound_usd": 6.5, "version": "0.1.0", "status": "feasible"}
    (tmp_path / "best_known.json").write_text(json.dumps({"one": record}))
    assert read_known(tmp_path) == {"one": Known(7.0, 6.5, "0.1.0")}
    assert not read_known(tmp_path)["one"].proven
    assert Known(7.0, 7.0, "0.1.0").proven


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"one": 3}',
        '{"one": {"cost_usd": "7", "lower_bound_usd": 7, "version": "1"}}',
        '{"one": {"cost_usd": 7, "lower_bound_usd": true, "version": "1"}}',
        '{"one": {"cost_usd": 7, "lower_bound_usd": 7}}',
    ],
)
def test_records_that_are_none_are_refused_with_their_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "best_known.json").write_text(text)
    with pytest.raises(InstanceError, match=r"best_known\.json"):
        read_known(tmp_path)


def test_quick_is_every_suite_with_its_small_instances_or_the_smallest() -> None:
    suites = find_suites(["small", "scale", "rail-only"], ROOT)
    small, scale, rail_only = quick(suites)
    assert small == suites[0]
    assert [path.stem for path in scale.instances] == ["joined-001024", "rails-001024"]
    (only,) = rail_only.instances
    sizes = [load_instance(path).cluster.gpus for path in suites[2].instances]
    assert load_instance(only).cluster.gpus == min(sizes) > QUICK_GPUS
