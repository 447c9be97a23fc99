"""What each command prints, as tables and as JSON."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from designer.design_schema import DesignFile
from tests.cli.conftest import Run

Write = Callable[..., Path]


@pytest.mark.parametrize("template", ["dense", "moe", "multi-job", "existing"])
def test_every_template_loads_and_designs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"my {template}: 1"
    made = run("new", name, "--template", template, "-o", "made.yaml")
    assert made.code == 0
    assert made.out == "made.yaml\n"
    text = Path("made.yaml").read_text()
    assert text.count("#") > 5
    assert yaml.safe_load(text)["name"] == name
    ran = run("design", "made.yaml", "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document["name"] == name
    assert document["status"] == "optimal"
    assert run("traffic", "made.yaml").code == 0


def test_new_names_the_file_and_refuses_to_overwrite(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(run("new", "mine", "--json").out) == {"path": "mine.yaml", "name": "mine", "template": "dense"}
    Path("mine.yaml").write_text("edited")
    refused = run("new", "mine")
    assert refused.code == 3
    assert "--force" in refused.err
    assert Path("mine.yaml").read_text() == "edited"
    assert run("new", "mine", "--force").code == 0
    assert run("new", "../mine").code == 2
    assert run("new", "mine", "--template", "sparse").code == 2
    assert run("new", "mine", "-o", "missing/mine.yaml").code == 3
    assert sorted(item.name for item in tmp_path.iterdir()) == ["mine.yaml"]


def test_design_says_what_to_buy_and_why(run: Run, write: Write) -> None:
    path = write(
        cluster={"gpus": 512, "management_ports": 1},
        workload=[{"model": "gpt-22b", "parallelism": {"tp": 8, "pp": 4, "dp": 16}, "global_batch": 512}],
        requirements={"throughput": {"pp": 0.25}},
        search={"leaf": {"down": 32}},
        objective="tco",
    )
    ran = run("design", path)
    assert ran.code == 0
    for text in (
        "optimal",
        "searched",
        "QM9700",
        "quantity",
        "assumed prices, marked *",
        "energy over 4 years",
        "oversubscription",
        "management ports",
        "leaf uplinks give",
        "rail-only",
        "saving",
        "in place of",
        "throughput",
        "exact",
        "without",
        "switch:leaf",
        "checks hold",
    ):
        assert text in ran.out
    document = json.loads(run("design", path, "--json").out)
    assert f"${document['cost_usd']:,.0f}"[:6] in ran.out


def test_design_and_verify_show_the_same_certificate(run: Run, write: Write, tmp_path: Path) -> None:
    path = write(**CASE_7, requirements={"survive": [{"failure": "switch", "throughput": 0.5}]})
    output = tmp_path / "design.json"
    shown = run("design", path, "-o", output).out
    ran = run("verify", output)
    assert ran.code == 0
    tables = ran.out.split("phase ", 1)[1].split("availability", 1)[0]
    lines = [line.split() for line in tables.splitlines() if line.strip() and "─" not in line]
    rows = [line.split() for line in shown.splitlines()]
    assert lines[1:]
    for line in lines[1:]:
        assert any(set(line) <= set(row) for row in rows), line


def test_pairs_of_failures_on_request(run: Run, write: Write) -> None:
    path = write(cluster={"gpus": 128}, workload=[{"demand": "any", "across": "cluster"}])
    single = json.loads(run("design", path, "--json").out)["certificate"]["failures"]
    pairs = json.loads(run("design", path, "--json", "--failures", "pairs").out)["certificate"]["failures"]
    assert not any("+" in failure["removed"] for failure in single)
    assert [failure for failure in pairs if "+" not in failure["removed"]] == single
    assert any("+" in failure["removed"] for failure in pairs)
    assert re.search(r"\nand \d+ more\n", run("design", path, "--failures", "pairs").out)
    assert run("design", path, "--failures", "triples").code == 2


def test_the_design_document_follows_its_schema(run: Run, write: Write) -> None:
    document = json.loads(run("design", write(), "--json").out)
    DesignFile.model_validate(document)
    schema = json.loads(run("schema", "design").out)
    assert set(schema["required"]) <= set(document)
    with pytest.raises(ValueError, match="gap"):
        DesignFile.model_validate({**document, "gap": -1})


@pytest.mark.parametrize("kind", ["instance", "catalog", "design"])
def test_schemas_are_json_schema(run: Run, kind: str) -> None:
    schema = json.loads(run("schema", kind, "--json").out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["type"] == "object"
    assert schema["properties"]


def test_documents_validate_by_an_independent_checker(run: Run, write: Write) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    path = write()
    for kind, document in (
        ("instance", yaml.safe_load(path.read_text())),
        ("design", json.loads(run("design", path, "--json").out)),
    ):
        jsonschema.validate(document, json.loads(run("schema", kind).out))


CASE_7 = {
    "cluster": {"gpus": 1056},
    "workload": [{"demand": "any", "across": "cluster"}],
    "search": {"switches": ["qm9790"], "leaf": {"down": 32, "up": 32}},
}


def test_compare_shows_the_choice_as_a_pareto_list(run: Run, write: Write) -> None:
    """FIELD 7: 33 leaves under 32 uniform spines, or 17 uneven ones whose worst pair shares 93.75 %."""
    path = write(**CASE_7)
    ran = run("compare", path, "--json")
    assert ran.code == 0
    rows = {row["template"]: row for row in json.loads(ran.out)}
    assert rows["optimum"]["counts"]["leaf"] == 33
    assert rows["optimum"]["counts"]["spine"] == 32
    assert rows["optimum"]["worst_leaf_pair"] == 1
    assert rows["optimum-uneven"]["counts"]["spine"] == 17
    assert rows["optimum-uneven"]["worst_leaf_pair"] == pytest.approx(0.9375)
    assert rows["optimum"]["pareto"]
    assert rows["optimum-uneven"]["pareto"]
    assert not rows["rail-optimized"]["pareto"]
    text = run("compare", path).out
    assert "93.75 %" in text
    assert "Pareto" in text


def test_compare_with_a_larger_spine_in_the_catalog(run: Run, write: Write) -> None:
    """FIELD 7 again: 11 spines of 128 ports are cheaper than 32 of 64, and no pair of leaves shares less."""
    path = write(**CASE_7)
    overlay = {
        "switches": {
            "wide": {
                **_record("qm9790"),
                "model": "wide spine",
                "cages": 64,
                "price": {"usd": 70_000, "assumed": True},
            }
        }
    }
    path.with_name("wide.yaml").write_text(yaml.safe_dump(overlay))
    document = yaml.safe_load(path.read_text())
    document["catalog"] = ["builtin", "wide.yaml"]
    document["search"] = {"switches": ["qm9790", "wide"], "leaf": {"down": 32, "up": 33}}
    path.write_text(yaml.safe_dump(document))
    rows = {row["template"]: row for row in json.loads(run("compare", path, "--json").out)}
    assert rows["optimum"]["worst_leaf_pair"] == 1
    assert rows["optimum"]["counts"]["spine"] == 11


def _record(key: str) -> dict[str, object]:
    from importlib.resources import files

    text = files("designer.catalog").joinpath("data", "builtin.yaml").read_text()
    return yaml.safe_load(text)["switches"][key]


def test_compare_rows_hold_the_comparison_of_the_design(run: Run, write: Write) -> None:
    path = write(cluster={"gpus": 512}, workload=[{"demand": "any", "across": "rail"}])
    rows = json.loads(run("compare", path, "--json").out)
    design = json.loads(run("design", path, "--json").out)
    templates = {row["template"]: row for row in rows if not row["template"].startswith("optimum")}
    for row in design["comparison"]:
        assert {**templates[row["template"]], **row} == templates[row["template"]]
    optimum = next(row for row in rows if row["template"] == "optimum")
    assert optimum["counts"] == design["counts"]
    assert optimum["cost_usd"] == design["cost_usd"]


def test_traffic_shows_phases_cuts_and_pairs(run: Run, write: Write) -> None:
    path = write(
        cluster={"gpus": 1024},
        workload=[{"model": "gpt3-175b", "parallelism": {"tp": 8, "pp": 8, "dp": 16}, "global_batch": 1536}],
    )
    text = run("traffic", path).out
    for word in ("tp", "dp", "pp", "inside the HB domain", "Cut function", "99.41 %", "exchange nothing"):
        assert word in text
    document = json.loads(run("traffic", path, "--json").out)
    assert document["pairs"]["silent_share"] > 0.99
    cut = document["cut_function"]
    assert cut["block_sizes"] == [1, 2, 4, 8, 16, 32, 64, 128]
    by_phase = {item["phase"]: item["line_rates"] for item in cut["phases"]}
    assert by_phase["dp"] == [1, 2, 4, 8, 0, 0, 0, 0]
    assert by_phase["pp"] == [1, 2, 4, 8, 16, 16, 16, 0]
    assert sum(document["shares"].values()) == pytest.approx(1)
    assert len(document["heat_map"]["bytes"]) == 32


def test_traffic_of_stated_demands_and_of_the_largest_cluster(run: Run, write: Write) -> None:
    path = write(cluster={"gpus": 131_072}, workload=[{"demand": "all-to-all", "across": "cluster"}])
    document = json.loads(run("traffic", path, "--json").out)
    assert document["phases"][0]["nic_bytes"] is None
    assert document["pairs"]["silent_share"] == 0
    assert document["cut_function"]["blocks"] == "n GPUs in a row"
    assert run("traffic", path).code == 0


def test_catalog_list_show_check(run: Run, tmp_path: Path) -> None:
    listed = run("catalog", "list")
    assert listed.code == 0
    assert "qm9700" in listed.out
    assert run("catalog").out == listed.out
    assert "switches" in json.loads(run("catalog", "list", "--json").out)
    shown = json.loads(run("catalog", "show", "qm9700", "--json").out)
    assert shown["section"] == "switches"
    assert shown["price"]["usd"] == 36_000
    assert "NVIDIA" in run("catalog", "show", "qm9700").out
    missing = run("catalog", "show", "qm970")
    assert missing.code == 3
    assert "qm9700" in missing.err
    assert run("catalog", "check").code == 0
    assert run("catalog", "list", "--catalog", "paper-2023").code == 0
    assert run("catalog", "list", "--catalog", "none-such").code == 3

    nonsense = tmp_path / "nonsense.yaml"
    record = {**_record("qm9700"), "modes": [{"ports_per_cage": 4, "gbps": 400}]}
    nonsense.write_text(yaml.safe_dump({"switches": {"too-much": record}}))
    found = run("catalog", "check", nonsense)
    assert found.code == 3
    assert "too-much.modes" in found.out
    findings = json.loads(run("catalog", "check", nonsense, "--json").out)["findings"]
    assert findings[0]["component"] == "too-much"
    nonsense.write_text("switches: {bad: {}}")
    assert run("catalog", "check", nonsense).code == 3
