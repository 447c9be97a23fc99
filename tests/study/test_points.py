"""Axes and the points that they span."""

from typing import Any

import numpy as np
import pytest

from designer.errors import StudyError
from designer.study.paths import PathError, steps_into_catalog, steps_of, with_value
from designer.study.points import axes_of, check_points, points_of, range_values
from designer.study.schema import RangeSection


def settings(axes: dict[Any, Any]) -> list[dict[str, Any]]:
    spanned = axes_of(axes)
    check_points(spanned)
    return [point.settings for point in points_of(spanned)]


def refusal(axes: dict[Any, Any]) -> str:
    with pytest.raises(StudyError) as caught:
        settings(axes)
    return str(caught.value)


def test_points_are_all_combinations_and_the_last_axis_changes_fastest() -> None:
    assert settings({"a": [1, 2], "b": ["x", "y"]}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    assert settings({}) == [{}]


def test_paths_of_a_tuple_change_together() -> None:
    assert settings({("a", "b"): [(1, "x"), [2, "y"]], "c": [0]}) == [
        {"a": 1, "b": "x", "c": 0},
        {"a": 2, "b": "y", "c": 0},
    ]


def test_a_function_sees_the_axes_before_it_and_adds_no_points() -> None:
    found = settings({"tp": [1, 2, 4], "dp": lambda point: 8 // point["tp"], "c": [1, 2]})
    assert [(point["tp"], point["dp"]) for point in found[::2]] == [(1, 8), (2, 4), (4, 2)]
    assert len(found) == 6


def test_numpy_values_become_plain_numbers() -> None:
    values = [point["a"] for point in settings({"a": np.arange(3)})]
    assert values == [0, 1, 2]
    assert all(type(value) is int for value in values)


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ({"from": 1, "to": 8, "factor": 2}, [1, 2, 4, 8]),
        ({"from": 8, "to": 30, "step": 8}, [8, 16, 24]),
        ({"from": 0.1, "to": 0.3, "step": 0.1}, [0.1, 0.2, 0.3]),
        ({"from": 4, "to": 9, "factor": 1.5}, [4.0, 6.0, 9.0]),
        ({"from": 5, "to": 5, "step": 1}, [5]),
    ],
)
def test_a_range_has_the_numbers_that_a_person_would_write(section: dict[str, Any], values: list[float]) -> None:
    found = range_values(RangeSection.model_validate(section))
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]
    assert [point["a"] for point in settings({"a": section})] == values


def test_axes_that_mean_nothing_are_refused_in_words() -> None:
    assert "either step or factor" in refusal({"a": {"from": 1, "to": 2}})
    assert "either step or factor" in refusal({"a": {"from": 1, "to": 2, "step": 1, "factor": 2}})
    assert "`to` from `from` on" in refusal({"a": {"from": 3, "to": 2, "step": 1}})
    assert "above 0" in refusal({"a": {"from": 0, "to": 2, "factor": 2}})
    assert "at least one value" in refusal({"a": []})
    assert "a list of values" in refusal({"a": 3})
    assert "a list of values" in refusal({"a": "many"})
    assert "2 values, one a path" in refusal({("a", "b"): [(1, 2), (1, 2, 3)]})
    assert "a tuple of paths" in refusal({3: [1]})
    assert "lists for several" in refusal({("a", "b"): lambda _: (1, 2)})
    assert "one axis a path" in refusal({"a": [1], ("b", "a"): [(1, 2)]})
    assert "at most 100,000" in refusal({"a": range(1000), "b": range(1000)})
    assert "100,000 values" in refusal({"a": {"from": 0, "to": 1e9, "step": 1}})
    assert "KeyError" in refusal({"a": [1], "b": lambda point: point["c"]})


def test_paths_are_fields_and_numbered_entries() -> None:
    assert steps_of("workload[0].parallelism.tp") == ("workload", 0, "parallelism", "tp")
    assert steps_of("a[0][12]") == ("a", 0, 12)
    assert steps_of("requirements.throughput.dp+pp") == ("requirements", "throughput", "dp+pp")
    for path in ("", ".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "[0]", "a b"):
        with pytest.raises(PathError):
            steps_of(path)


def test_keys_of_a_catalog_may_hold_dots() -> None:
    records = {"names": ["x"], "cables": {"dac-2.5": {}, "dac-2.5.1": {}, "dac": {}}}
    assert steps_into_catalog("cables.dac-2.5.price.usd", records) == ("cables", "dac-2.5", ("price", "usd"))
    assert steps_into_catalog("cables.dac-2.5.1", records) == ("cables", "dac-2.5.1", ())
    assert steps_into_catalog("cables.dac.modes[0].gbps", records) == ("cables", "dac", ("modes", 0, "gbps"))
    for path in ("cables.dac-3.price", "wires.dac", "names", "cables"):
        with pytest.raises(PathError):
            steps_into_catalog(path, records)


def test_a_value_is_set_in_a_copy_and_missing_mappings_are_made() -> None:
    data = {"a": [{"b": 1}, {"c": 2}], "d": {"e": 3}}
    changed = with_value(data, ("a", 1, "c"), 9)
    assert changed == {"a": [{"b": 1}, {"c": 9}], "d": {"e": 3}}
    assert data["a"] == [{"b": 1}, {"c": 2}]
    assert changed["d"] is data["d"]
    assert with_value(data, ("x", "y"), 1)["x"] == {"y": 1}
    for location in (("a", 2, "c"), ("d", "e", "f"), ("x", 0), ("a", "b")):
        with pytest.raises(PathError):
            with_value(data, location, 1)
