"""The table of a study and its ways out."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designer.errors import OutputError, StudyError
from designer.study.pareto import front
from designer.study.table import Column, Row, StudyResult
from designer.study.task import Outcome


def row(label: str, cost: float | None, settings: dict[str, Any] | None = None, **values: Any) -> Row:
    if cost is None:
        return Row(settings or {"x": 1}, {"l": label}, Outcome("infeasible", 'it cannot be, "so"\n', wall_s=1.0))
    outcome = Outcome("optimal", "", {"cost_usd": cost, **values}, (), 2.0)
    return Row(settings or {"x": 1}, {"l": label}, outcome)


RESULT = StudyResult(
    "test",
    (
        row("a", 10.5, {"x": [1, 2], "y": 1, "z": 1}, power_w=5.0, throughput_dp=0.5, met=True, leaf=3),
        row("b", 20.0, {"x": None, "y": "all", "z": 2.5}, power_w=5.0, throughput_dp=1.0, met=True, leaf=4),
        row("c", 5.0, {"x": {"k": 1}, "y": 2, "z": 3}, power_w=9.0, throughput_dp=0.5, met=False, leaf=5),
        row("d", None, {"x": True, "y": 3, "z": 4}),
    ),
)


def test_columns_are_settings_then_what_came_out_then_seconds() -> None:
    names = [column.name for column in RESULT.columns]
    assert names[:6] == ["x", "y", "z", "l", "status", "reason"]
    assert names[-1] == "wall_s"
    units = {column.name: column.unit for column in RESULT.columns if column.unit}
    assert units == {"cost_usd": "USD", "power_w": "W", "wall_s": "s"}
    better = {column.name: column.better for column in RESULT.columns}
    assert (better["cost_usd"], better["throughput_dp"], better["met"]) == ("less", "more", "more")


def test_a_column_is_found_with_and_without_its_unit() -> None:
    assert RESULT.column("cost") == RESULT.column("cost_usd") == Column("cost_usd", "USD", "less")
    assert RESULT.values("power") == [5.0, 5.0, 9.0, None]
    with pytest.raises(StudyError, match="found 'costs'; allowed: one of: x, y"):
        RESULT.column("costs")


def test_seconds_play_no_part_in_equality() -> None:
    assert row("a", 1.0) == Row({"x": 1}, {"l": "a"}, Outcome("optimal", "", {"cost_usd": 1.0}, (), 9.0))
    assert row("a", 1.0) != row("a", 1.5)


def test_csv_holds_every_row_and_texts_as_they_are(tmp_path: Path) -> None:
    RESULT.write(tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").open(newline="")))
    assert [line["x"] for line in rows] == ["[1, 2]", "", '{"k": 1}', "true"]
    assert [line["cost_usd"] for line in rows] == ["10.5", "20.0", "5.0", ""]
    assert rows[3]["reason"] == 'it cannot be, "so"\n'
    assert rows[0]["met"] == "true"


def test_json_holds_columns_with_units_and_rows(tmp_path: Path) -> None:
    RESULT.write(tmp_path / "table.json")
    document = json.loads((tmp_path / "table.json").read_text())
    assert {"name": "cost_usd", "unit": "USD"} in document["columns"]
    assert document["rows"][0]["x"] == [1, 2]
    assert document["rows"][3]["status"] == "infeasible"
    assert document["finished"] is True


def test_parquet_and_data_frame_hold_the_same(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    RESULT.write(tmp_path / "table.parquet")
    table = parquet.read_table(tmp_path / "table.parquet")
    assert table.column("cost_usd").to_pylist() == [10.5, 20.0, 5.0, None]
    assert table.column("leaf").to_pylist() == [3, 4, 5, None]
    assert table.column("z").to_pylist() == [1.0, 2.5, 3.0, 4.0]
    assert table.column("y").to_pylist() == ["1", "all", "2", "3"]
    assert table.column("x").to_pylist() == ["[1, 2]", None, '{"k": 1}', "true"]
    assert table.schema.field("power_w").metadata == {b"unit": b"W"}
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = RESULT.to_dataframe()
    assert list(frame.columns) == [column.name for column in RESULT.columns]
    assert frame["cost_usd"].tolist()[:3] == [10.5, 20.0, 5.0]
    assert frame.attrs["units"]["cost_usd"] == "USD"


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="csv, json, parquet"):
        RESULT.write(tmp_path / "table.xlsx")


def test_the_front_leaves_out_what_falls_short_or_has_no_design() -> None:
    assert RESULT.pareto("cost", "throughput_dp") == (True, True, False, False)
    assert RESULT.pareto("cost", "power") == (True, False, False, False)
    marked = RESULT.with_front("cost", "throughput_dp", "power")
    assert marked.values("pareto") == [True, True, False, False]
    for names in ((), ("cost",), ("cost", "power", "leaf", "throughput_dp"), ("cost", "nothing")):
        with pytest.raises(StudyError):
            RESULT.pareto(*names)


@given(
    st.integers(2, 3).flatmap(
        lambda size: st.lists(st.one_of(st.none(), st.tuples(*[st.integers(0, 4)] * size)), max_size=20)
    )
)
def test_the_front_is_what_the_definition_says(points: list[tuple[int, ...] | None]) -> None:
    def beats(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return all(a <= b for a, b in zip(one, other, strict=True)) and one != other

    known = [point for point in points if point is not None]
    expected = [point is not None and not any(beats(other, point) for other in known) for point in points]
    assert list(front(points)) == expected
