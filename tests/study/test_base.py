"""Points become instances: the ones a user would write by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from designer import instance_from_document, load_instance
from designer.catalog import catalog_records, load_catalog
from designer.errors import CatalogError, InputError, InstanceError
from designer.study.base import Base, refused_values
from designer.study.points import Point, axes_of
from designer.study.schema import StudyOptions
from designer.study.task import task_key
from tests.study.samples import BASE, DOMAIN, FLOOR, PRICE


def problem(path: str, *values: Any) -> str:
    found = refused_values(Base.of(BASE), axes_of({path: list(values)}))
    assert len(found) == 1, found
    return str(found[0])


def key(instance: Any, options: StudyOptions | None = None) -> str:
    return task_key(instance, options or StudyOptions(), "1")


def test_a_point_is_the_instance_written_by_hand(tmp_path: Path) -> None:
    point = Point({FLOOR: 0.5, DOMAIN: 8, "workload[0].parallelism.pp": 2, "workload[0].parallelism.dp": 4}, {})
    by_hand = {**BASE, "requirements": {"throughput": {"dp": 0.5}}}
    by_hand["cluster"] = {**BASE["cluster"], "hb_domain": 8}
    by_hand["workload"] = [{**BASE["workload"][0], "parallelism": {"tp": 8, "pp": 2, "dp": 4}}]
    made = Base.of(BASE).instance(point)
    assert made.document == by_hand
    assert made == instance_from_document(by_hand)
    assert BASE["workload"][0]["parallelism"] == {"tp": 8, "dp": 8}, "the base stays as it is"


def test_a_price_of_the_catalog_is_that_of_an_overlay_file(tmp_path: Path) -> None:
    base = Base.of({**BASE, "search": {"families": ["clos"], "switches": ["sn5600"]}})
    made = base.instance(Point({"catalog.switches.sn5600.price.usd": 1234.5}, {}))
    assert made.catalog.switches["sn5600"].price.cents == 123450
    plain = base.instance(Point({}, {}))
    assert plain.catalog.switches["sn5600"].price.cents != 123450
    assert {**made.catalog.switches, "sn5600": 0} == {**plain.catalog.switches, "sn5600": 0}
    assert made.catalog.names != plain.catalog.names, "a changed catalog does not go by the name of the shipped one"


def test_what_follows_from_a_changed_field_of_the_catalog_follows() -> None:
    base = Base.of(BASE)
    before = base.instance(Point({}, {})).catalog.switches["qm9700"]
    after = base.instance(Point({"catalog.switches.qm9700.cages": 64}, {})).catalog.switches["qm9700"]
    assert (before.cages, before.max_ports) == (32, 128)
    assert (after.cages, after.max_ports) == (64, 256)


def test_several_changes_are_those_of_overlay_files(tmp_path: Path) -> None:
    price = {"usd": 5, "assumed": True}
    layer = {
        "switches": {"qm9700": {**catalog_records("builtin")["switches"]["qm9700"], "cages": 16, "price": price}},
        "fibres": {"mfp7e30": None},
    }
    (tmp_path / "layer.yaml").write_text(yaml.safe_dump(layer))
    changes = {
        "catalog.switches.qm9700.cages": 16,
        "catalog.switches.qm9700.price": price,
        "catalog.fibres.mfp7e30": None,
    }
    made = Base.of(BASE).instance(Point(changes, {})).catalog
    by_hand = load_catalog(["builtin", "layer.yaml"], tmp_path)
    assert replace(made, names=()) == replace(by_hand, names=())
    assert list(made.switches) == list(by_hand.switches), "ties go by the order"


def test_null_takes_a_component_away() -> None:
    made = Base.of(BASE).instance(Point({"catalog.switches.qm9790": None}, {}))
    assert "qm9790" not in made.catalog.switches
    assert "qm9700" in made.catalog.switches


def test_layers_of_the_catalog_can_be_an_axis_and_be_changed_at_once(tmp_path: Path) -> None:
    layer = {"transceivers": {"mms4x00-nm": None}}
    (tmp_path / "less.yaml").write_text(yaml.safe_dump(layer))
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(BASE))
    base = Base.of(tmp_path / "base.yaml")
    made = base.instance(Point({"catalog": ["builtin", "less.yaml"], PRICE: 7}, {}))
    assert "mms4x00-nm" not in made.catalog.transceivers
    assert made.catalog.switches["qm9700"].price.cents == 700
    with pytest.raises(CatalogError):
        base.instance(Point({"catalog": "missing.yaml"}, {}))
    with pytest.raises(InstanceError):
        base.instance(Point({"catalog": 3}, {}))


def test_fields_that_do_not_go_together_are_refused_at_the_point() -> None:
    with pytest.raises(InputError, match="2 x dp 8"):
        Base.of(BASE).instance(Point({"workload[0].parallelism.pp": 2}, {}))


def test_a_path_that_names_no_field_is_found_with_what_was_meant() -> None:
    assert "did you mean 'hb_domain'" in problem("cluster.hb_domian", 8, 16)
    assert "did you mean 'cluster'" in problem("clustr.hb_domain", 8)
    assert "no entry [1]" in problem("workload[1].model", "gpt3-175b")
    assert "no component 'qm9900'" in problem("catalog.switches.qm9900.price.usd", 1)
    assert "no section 'switch'" in problem("catalog.switch.qm9700.price.usd", 1)
    assert "known fields" in problem("catalog.switches.qm9700.prize.usd", 1)
    assert "did you mean 'gap'" in problem("options.gab", 0.1)
    assert "no mapping there" in problem("name.first", "x")
    assert "no path of fields" in problem("cluster..gpus", 8)
    assert "known fields" in str(refused_values(Base.of(BASE), axes_of({"cluster.gpuss": lambda _: 1}))[0])


def test_a_value_that_the_schema_refuses_is_found_with_its_place() -> None:
    found = problem(DOMAIN, 8, -3, 16)
    assert found.startswith(f"axes: {DOMAIN}[1]: found -3; allowed: a whole number >= 1")
    assert "found 1.5; allowed" in problem(FLOOR, 1.5)
    assert "found 2; allowed" in problem("options.gap", 2)
    assert "found -1; allowed" in problem(PRICE, -1)
    assert "[0][0].failure" in problem("requirements.survive", [{"failure": "fire", "throughput": 1}])


def test_values_that_only_other_axes_make_right_or_wrong_are_not_refused_beforehand() -> None:
    axes = {"workload[0].parallelism.pp": [2], "workload[0].parallelism.dp": [4], "cluster.gpus": [63]}
    assert refused_values(Base.of(BASE), axes_of(axes)) == []


def test_a_base_that_the_schema_refuses_is_no_base(tmp_path: Path) -> None:
    with pytest.raises(InstanceError):
        Base.of({**BASE, "cluster": {"gpus": -1}})
    with pytest.raises(InstanceError):
        Base.of(tmp_path / "missing.yaml")


def test_a_key_depends_on_what_is_designed_and_on_nothing_else(tmp_path: Path) -> None:
    base = Base.of(BASE)
    plain = key(base.instance(Point({}, {})))
    written_out = {**BASE, "name": "other", "requirements": {"throughput": {}}, "objective": "capex"}
    written_out["cluster"] = {**BASE["cluster"], "hb_domain": 8, "rails": 8}
    assert key(instance_from_document(written_out)) == plain
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "same.yaml").write_text(yaml.safe_dump({**BASE, "catalog": ["builtin"]}))
    assert key(load_instance(tmp_path / "deep" / "same.yaml")) == plain
    unchanged = base.instance(Point({}, {})).catalog.switches["qm9700"].price.cents / 100
    assert key(base.instance(Point({PRICE: unchanged}, {}))) == plain
    keys = {
        plain,
        key(base.instance(Point({PRICE: 1}, {}))),
        key(base.instance(Point({FLOOR: 0.5}, {}))),
        key(base.instance(Point({"objective": "tco"}, {}))),
        key(base.instance(Point({}, {})), StudyOptions(gap=0.1)),
        key(base.instance(Point({}, {})), StudyOptions(certify=False)),
        task_key(base.instance(Point({}, {})), StudyOptions(), "2"),
    }
    assert len(keys) == 7
