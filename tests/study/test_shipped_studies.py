"""The shipped studies: tables of the points of their files, last points as recorded, READMEs that are whole."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies import MARKS, STUDIES, names
from designer.study.run import Plan, run_plan
from designer.study.study_file import load_study

EVERY = pytest.mark.parametrize("name", names())


def table(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((STUDIES / name / "table.csv").open(newline="", encoding="utf-8")))


def text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


@EVERY
def test_the_table_has_the_points_of_the_file(name: str) -> None:
    points = load_study(STUDIES / name / "study.yaml").plan.points
    found = [{path: row[path] for path in points[0].settings} for row in table(name)]
    assert found == [{path: text(value) for path, value in point.settings.items()} for point in points]


@EVERY
def test_the_last_point_comes_out_as_recorded(name: str) -> None:
    plan = load_study(STUDIES / name / "study.yaml").plan
    result = run_plan(Plan(plan.base, plan.points[-1:], plan.options, plan.name), "serial")
    recorded = table(name)[-1]
    for column, value in result.rows[0].outcome.values.items():
        if isinstance(value, float):
            assert float(recorded[column]) == pytest.approx(value, rel=1e-9), column
        else:
            assert recorded[column] == text(value), column


@EVERY
def test_the_readme_shows_the_report_and_the_pictures(name: str) -> None:
    folder = STUDIES / name
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert readme.startswith(f"# {name}\n")
    assert all(readme.count(mark) == 1 for mark in MARKS)
    study = load_study(folder / "study.yaml")
    assert study.plan.name in readme.split(MARKS[0])[1]
    assert set(re.findall(r"\]\((.+?)\)", readme)) == {plot.file for plot in study.file.plots}
    assert all((folder / plot.file).exists() for plot in study.file.plots)
    assert f"| `{name}` |" in (STUDIES / "README.md").read_text(encoding="utf-8")


def test_the_rail_only_savings_of_the_paper_are_in_the_table() -> None:
    """Table 2 of arXiv 2307.12169v1, in whole percent as it truncates them."""
    published = json.loads((Path(__file__).parents[1] / "published" / "rail_only_table2.json").read_text())
    expected = {str(row["radix"]): row["cost_reduction_pct"] for row in published["rows"] if row["n_gpus"] == 32768}
    rows = [row for row in table("hb-domain-rail-only") if row["cluster.hb_domain"] == "256"]
    found = {row["radix"]: 100 - 100 * float(row["cost_usd"]) / float(row["fat_tree_usd"]) for row in rows}
    assert {radix: int(saving) for radix, saving in found.items()} == expected
