"""LP and MPS files of the link-placement program: another solver reads them and finds what the design costs."""

from pathlib import Path

import highspy
import pytest
from exported import ROOT, design_file, file_of, plan_of, written

from designer.errors import ExportError
from designer.export.plan import Plan, make_plan
from designer.instance.load import load_instance


def optimum(path: Path, ending: str) -> float:
    """The least objective of a model file, by HiGHS."""
    named = path.rename(path.with_name(f"model{ending}"))
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(named))
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().objective_function_value


def small(name: str) -> Plan:
    return make_plan(file_of(load_instance(ROOT / "instances" / "small" / f"{name}.yaml")))


@pytest.mark.parametrize("form", ["lp", "mps"])
def test_a_link_placement_is_the_optimum_of_its_own_program(form: str, tmp_path: Path) -> None:
    assert design_file("existing").record.status == "optimal"
    found = optimum(written(plan_of("existing"), form, tmp_path), f".{form}")
    assert found == pytest.approx(design_file("existing").record.cost_usd, abs=0.01)


@pytest.mark.parametrize(("name", "planes"), [("any-08-one-switch", 1), ("planes-16", 2)])
def test_the_program_is_that_of_one_plane(name: str, planes: int, tmp_path: Path) -> None:
    plan = small(name)
    assert planes * optimum(written(plan, "mps", tmp_path), ".mps") == pytest.approx(plan.file.record.cost_usd)


def test_columns_and_rows_have_short_names_and_the_files_are_what_solvers_know(tmp_path: Path) -> None:
    lp = written(plan_of("existing"), "lp", tmp_path).read_text().splitlines()
    assert lp[:2] == ["\\* design *\\", "Minimize"]
    assert lp[-1] == "End"
    mps = written(plan_of("existing"), "mps", tmp_path).read_text().splitlines()
    assert mps[0] == "*SENSE:Minimize"
    assert mps[-1] == "ENDATA"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("joined-704", "704 GPUs are more than the 512"),
        ("rails", "management ports"),
        ("joined-64", "a program of about"),
    ],
)
def test_designs_that_are_too_large_or_strange_for_the_program_are_refused(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("designer.export.model_files.MOST_FLOWS", 100)
    with pytest.raises(ExportError, match=words):
        written(plan_of(name), "lp", tmp_path)
    assert list(tmp_path.iterdir()) == []
