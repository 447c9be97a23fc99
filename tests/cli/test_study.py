"""`designer study`: tables and files, resuming, parts and job scripts, bad input, Ctrl-C."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from designer.study.store import RESULTS, keys_of
from tests.cli.conftest import RUN, Run, environment, small_document, start

PRICE = "catalog.switches.qm9700.price.usd"
STUDY: dict[str, Any] = {
    "name": "switch prices",
    "base": "instance.yaml",
    "axes": [
        {"path": PRICE, "values": {"from": 20_000, "to": 30_000, "step": 5000}},
        {"path": "requirements.throughput.dp", "values": [0.5, 1.0], "name": "floor", "labels": ["half", "full"]},
    ],
    "pareto": ["cost", "throughput_dp"],
}
Write = Callable[..., Path]


@pytest.fixture
def write_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the study with the given changes, and its base; the folder is the working one."""
    monkeypatch.chdir(tmp_path)

    def write(**changes: Any) -> Path:
        (tmp_path / "instance.yaml").write_text(yaml.safe_dump(small_document(search={"families": ["clos"]})))
        path = tmp_path / "prices.yaml"
        path.write_text(yaml.safe_dump({**STUDY, **changes}, sort_keys=False))
        return path

    return write


def test_a_study_prints_its_points_and_writes_its_tables(run: Run, write_study: Write) -> None:
    path = write_study(tables=["csv", "json"])
    ran = run("study", path, "--executor", "serial")
    assert ran.code == 0
    for text in ("switch prices", "20,000", "half", "cost", "dp gets", "Pareto-optimal in cost", " +"):
        assert text in ran.out
    assert "6 of 6 points" in ran.err
    folder = path.parent / "prices-results"
    assert sorted(item.name for item in folder.iterdir()) == [RESULTS, "table.csv", "table.json"]
    rows = list(csv.DictReader((folder / "table.csv").open(newline="")))
    assert [row["floor"] for row in rows] == ["half", "full"] * 3
    assert [row["pareto"] for row in rows][:2].count("true") >= 1
    again = run("study", path, "--executor", "serial", "--json", "--pareto", "power, cost")
    assert again.code == 0
    assert "kept from before" in again.err
    document = json.loads(again.out)
    assert [row["cost_usd"] for row in document["rows"]] == [float(row["cost_usd"]) for row in rows]
    assert len(list(keys_of(folder / RESULTS))) == 6


def test_uncertain_prices_are_told_and_drawn(run: Run, write_study: Write) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plots)")
    path = write_study(
        prices={"samples": 5, "vary": {PRICE: {"from": 1, "to": 9}}},
        plots=[{"kind": "lines", "x": PRICE, "y": "cost", "by": "floor", "file": "lines.svg"}],
    )
    ran = run("study", path, "-o", "out", "--executor", "serial")
    assert ran.code == 0
    for text in ("Uncertain prices", "design 1", "of 64 ports", "100.0 %", "change nothing within their range"):
        assert text in ran.out
    assert json.loads(Path("out/robustness.json").read_text())["samples"] == 5
    assert Path("out/lines.svg").read_text().startswith("<?xml")


def test_parts_are_merged_and_nothing_is_designed_twice(run: Run, write_study: Write) -> None:
    path = write_study()
    for part in ("1/2", "2/2"):
        ran = run("study", path, "--executor", "serial", "--part", part)
        assert (ran.code, ran.out) == (0, "")
    folder = path.parent / "prices-results"
    parts = sorted(folder.iterdir())
    assert [item.name for item in parts] == ["results-part-1-of-2.jsonl", "results-part-2-of-2.jsonl"]
    assert [len(list(keys_of(item))) for item in parts] == [3, 3]
    whole = run("study", path, "--executor", "serial", "--json")
    assert json.loads(whole.out)["finished"]
    assert list(keys_of(folder / RESULTS)) == []


def test_the_slurm_script_does_the_study_in_parts(run: Run, write_study: Write) -> None:
    path = write_study(name="a name; with signs")
    ran = run("study", path, "-o", "out of this", "--script", "slurm", "--workers", "4")
    assert ran.code == 0
    assert "#SBATCH --array=1-4\n" in ran.out
    assert "#SBATCH --job-name=a-name-with-signs\n" in ran.out
    assert not Path("out of this").exists()
    Path("bin").mkdir()
    Path("bin/designer").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{RUN}" "$@"\n')
    Path("bin/designer").chmod(0o755)
    env = environment() | {"PATH": f"{Path('bin').absolute()}{os.pathsep}{os.environ['PATH']}"}
    script = subprocess.run(
        ["designer", "study", str(path), "-o", "out of this", "--script", "slurm", "--workers", "2"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for task in (1, 2):
        subprocess.run(["sh"], input=script, env={**env, "SLURM_ARRAY_TASK_ID": str(task)}, text=True, check=True)
    merged = run("study", path, "-o", "out of this", "--executor", "serial", "--json")
    assert json.loads(merged.out)["finished"]
    assert list(keys_of(Path("out of this") / RESULTS)) == []
    assert len(list(Path("out of this").glob("results-part-*"))) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"axes": [{"path": "cluster.hb_domian", "values": [8]}]}, "prices.yaml:4: axes[0].path: found the path"),
        ({"axes": [{"path": "cluster.hb_domain", "values": [8, 0]}]}, "prices.yaml:7: axes[0].values[1]: found 0;"),
        ({"axes": [{"pair": {"cluster.gpu_s": [8]}}]}, "axes[0].pair.cluster.gpu_s: found the path"),
        ({"axes": [{"path": "cluster.gpus", "values": []}]}, "axes[0].values"),
        ({"axes": [{"values": [8]}]}, "either path and values, or pair"),
        ({"axes": [{"pair": {"cluster.gpus": [8, 16], "name": ["a"]}}]}, "1 values; allowed: 2 values"),
        ({"axes": [{"path": "name", "values": ["a", "b"], "name": "n", "labels": ["x"]}]}, "2 labels"),
        ({"axes": [{"path": "name", "values": ["a"], "labels": ["x"]}]}, "name and labels together"),
        ({"axes": []}, "axes, prices, or both"),
        ({"axes": [{"path": "name", "values": {"from": 1, "to": 9}}]}, "either step or factor"),
        ({"base": "missing.yaml"}, "no such file"),
        ({"bass": 1}, "unknown field 'bass'"),
        ({"pareto": ["cost"]}, "two or three columns"),
        ({"options": {"gap": 2}}, "options.gap: found 2"),
        ({"prices": {"vary": {"cluster.gpus": {"from": 1, "to": 2}}}}, "the path of a price"),
        ({"prices": {"vary": {"catalog.switches.none.price.usd": {"from": 1, "to": 2}}}}, "no component 'none'"),
        ({"prices": {"vary": {PRICE: {"from": 3, "to": 2}}}}, "`to` from `from` on"),
        ({"prices": {"vary": {PRICE: {"from": 3}}}}, "either from and to"),
        ({"plots": [{"kind": "heat", "x": "a", "y": "b", "file": "a.svg"}]}, "`value` for a heat map"),
        ({"plots": [{"kind": "lines", "x": "a", "y": "b", "file": "../a.svg"}]}, "plots[0].file"),
    ],
)
def test_a_bad_study_file_is_refused_before_anything_is_done(
    run: Run, write_study: Write, changes: dict[str, Any], words: str
) -> None:
    path = write_study(**changes)
    ran = run("study", path)
    assert ran.code == 3
    assert words in ran.err
    assert not (path.parent / "prices-results").exists()


def test_bad_options_are_refused(run: Run, write_study: Write) -> None:
    path = write_study()
    for options in (["--part", "3/2"], ["--part", "x"], ["--workers", "0"], ["--script", "pbs"]):
        assert run("study", path, *options).code == 2
    assert run("study", path, "--executor", "threads").code == 3
    refused = run("study", path, "--executor", "serial", "--pareto", "cost,beauty")
    assert refused.code == 3
    assert "found 'beauty'" in refused.err
    assert run("study", path, "--executor", "serial").code == 0, "and what was done is kept"


def test_points_without_a_design_are_rows_and_failures_have_a_code(
    run: Run, write_study: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_study(axes=[{"path": "workload[0].parallelism.tp", "values": [8, 16]}], pareto=[])
    ran = run("study", path, "--executor", "serial")
    assert ran.code == 0
    assert "1 point refused: workload[0].parallelism: found tp 16" in " ".join(ran.out.split())
    path = write_study(axes=[{"path": "search.leaf.down", "values": [1, 24]}], options={"time_limit_s": 0}, pareto=[])
    assert run("study", path, "--executor", "serial").code == 6

    def failing(instance: Any, options: Any) -> Any:
        raise ZeroDivisionError("no luck")

    monkeypatch.setattr("designer.search.design", failing)
    path = write_study(options={"seed": 7}, pareto=[])
    ran = run("study", path, "--executor", "serial")
    assert ran.code == 1
    assert "no luck" in ran.out
    assert "once more" in ran.err


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(write_study: Write, run: Run) -> None:
    many = {"path": PRICE, "values": {"from": 1, "to": 3000, "step": 1}}
    path = write_study(axes=[many], pareto=[])
    process = start("study", path, "--executor", "processes", "--workers", "2", start_new_session=True)
    results = path.parent / "prices-results" / RESULTS
    while not results.exists() or not results.stat().st_size:
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers, too
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert "the same command goes on from here" in err
    assert "points not done" in out
    done = list(keys_of(results))
    assert 1 <= len(done) < 3000
    path = write_study(axes=[{"path": PRICE, "values": [1, 2, 3]}], pareto=[])
    assert run("study", path, "--executor", "serial").code == 0
    assert len(list(keys_of(results))) <= len(done) + 2


def test_the_schema_of_a_study_is_told(run: Run) -> None:
    document = json.loads(run("schema", "study").out)
    assert {"base", "axes", "prices", "plots"} <= document["properties"].keys()
