"""Every way in which a file, a path or an option can be wrong: a message that says where, the right code, no harm."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, spawn

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cluster": {"gpuss": 64}}, ["cluster.gpuss", "gpus"]),
        ({"cluster": {"nic": "cx77-400"}}, ["cluster.nic", "'cx77-400'", "cx7-400"]),
        ({"cluster": {"gpu": "none-such"}}, ["cluster.gpu", "h100-sxm"]),
        ({"search": {"switches": ["qm1"]}}, ["search.switches[0]", "qm9700"]),
        (
            {"workload": [{"model": "gpt-22b", "parallelism": {"tp": 8, "dp": 4}, "global_batch": 64}]},
            ["tp 8 x pp 1 x dp 4 x cp 1 = 32", "64 GPUs"],
        ),
        ({"cluster": {"gpus": 1001}}, ["cluster.gpus", "1001", "8 GPUs of a server", "1000 or 1008"]),
        ({"requirements": {"throughput": {"dp": float("nan")}}}, ["requirements.throughput.dp"]),
        ({"requirements": {"throughput": {"dp": float("inf")}}}, ["requirements.throughput.dp"]),
        ({"cabling": {"host_m": -1}}, ["cabling.host_m", "-1"]),
        ({"cluster": {"gpus": 10**30}}, ["cluster.gpus"]),
        ({"cluster": {"gpus": -8}}, ["cluster.gpus", "-8"]),
        ({"catalog": "no-such.yaml"}, ["no-such.yaml"]),
    ],
    ids=[
        "unknown key",
        "missing NIC",
        "missing GPU",
        "missing switch",
        "degrees",
        "server",
        "NaN",
        "infinity",
        "negative length",
        "absurd number",
        "negative GPUs",
        "missing catalog",
    ],
)
@pytest.mark.parametrize("command", ["design", "compare", "traffic"])
def test_wrong_fields_are_told_with_file_and_line(
    run: Run, write: Write, command: str, changes: dict[str, Any], expected: list[str]
) -> None:
    path = write(**changes)
    ran = run(command, path, "--json")
    assert ran.code == 3
    assert ran.out == ""
    assert "found" in ran.err
    assert "allowed" in ran.err
    for text in expected:
        assert text in ran.err


def test_an_unknown_key_suggests_the_right_one(run: Run, write: Write) -> None:
    ran = run("design", write(cluster={"railss": 8}))
    assert ran.code == 3
    assert "did you mean" in ran.err
    assert "rails" in ran.err


def test_all_problems_are_told_at_once(run: Run, write: Write) -> None:
    ran = run("design", write(cluster={"gpus": -1}, cabling={"host_m": 0}, objective="cheap"))
    assert ran.code == 3
    for field in ("cluster.gpus", "cabling.host_m", "objective"):
        assert field in ran.err


HARMFUL = {
    "broken YAML": "name: [unclosed\ncluster: {",
    "empty": "",
    "no mapping": "- 1\n- 2\n",
    "alias bomb": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "deep nesting": "a: " + "[" * 100_000,
    "code": "name: !!python/object/apply:os.system ['touch EXECUTED']\n",
    "huge integer": "name: x\ncluster: {gpus: " + "9" * 10_000 + "}\n",
    "control characters": "name: \x07\x1b[31m\n",
    "duplicate keys": "name: a\nname: b\n",
}


@pytest.mark.parametrize("text", HARMFUL.values(), ids=HARMFUL.keys())
def test_harmful_files_are_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    path, output = tmp_path / "bad.yaml", tmp_path / "design.json"
    path.write_text(text)
    ran = run("design", path, "-o", output)
    assert ran.code == 3
    assert ran.out == ""
    assert "bad.yaml" in ran.err
    assert "\x1b" not in ran.err
    assert sorted(item.name for item in tmp_path.iterdir()) == ["bad.yaml"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_a_hundred_megabytes_of_noise_take_no_memory(tmp_path: Path) -> None:
    path, peak = tmp_path / "noise.yaml", tmp_path / "peak"
    with path.open("wb") as file:
        noise = os.urandom(2**20)
        for _ in range(100):
            file.write(noise)
    copy = f"import atexit, shutil; atexit.register(shutil.copyfile, '/proc/self/status', {str(peak)!r})"
    ran = spawn("design", path, prelude=copy)
    assert ran.code == 3
    assert "100 MiB" in ran.err
    (kilobytes,) = re.findall(r"VmHWM:\s*(\d+) kB", peak.read_text())
    assert int(kilobytes) <= 400 * 1024


def test_an_impossible_demand_names_what_clashes_and_what_would_resolve_it(run: Run, write: Write) -> None:
    """FIELD 5: 64 endpoints on a leaf with 2 uplinks, 1:1 asked."""
    path = write(
        cluster={"gpus": 512, "nic": "cx7-400"},
        workload=[{"demand": "any", "across": "cluster"}],
        search={"switches": ["sn5600"], "leaf": {"down": 64, "up": 2}},
    )
    output = path.with_name("design.json")
    output.write_text("before")
    ran = run("design", path, "-o", output, "--json")
    assert ran.code == 4
    assert ran.out == ""
    clash, _, remedies = ran.err.partition("would resolve it")
    assert "requirements.throughput.any: 1" in clash
    assert "search.leaf: 64 ports down, 2 up" in clash
    assert "requirements.throughput.any" in remedies
    assert "search.leaf" in remedies
    assert output.read_text() == "before"
    assert run("compare", path).code == 4


@pytest.mark.parametrize("where", ["missing/design.json", "folder", "file/design.json"])
def test_an_output_that_cannot_be_written_is_told_before_solving(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("the search began")

    monkeypatch.setattr("designer.search.design", never)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    ran = run("design", write(), "-o", tmp_path / where)
    assert ran.code == 3
    assert str(tmp_path / where) in ran.err
    assert not list(tmp_path.glob("**/*.json"))


def test_the_instance_is_not_overwritten(run: Run, write: Write) -> None:
    path = write()
    before = path.read_text()
    assert run("design", path, "-o", path).code == 2
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--solver", "gurobi"], "cp-sat"),
        (["--families", "torus"], "clos"),
        (["--time-limit", "nan"], "seconds"),
        (["--time-limit", "-1"], "seconds"),
        (["--gap", "1"], "below 1"),
        (["--gap", "nan"], "below 1"),
        (["--threads", "0"], "--threads"),
        (["--seed", "-1"], "--seed"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_wrong_options_are_usage_errors(run: Run, write: Write, arguments: list[str], expected: str) -> None:
    ran = run("design", write(), *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert expected in ran.err


@pytest.mark.parametrize("arguments", [["desing"], ["design"], ["study"], ["schema", "nothing"], []])
def test_wrong_commands_are_usage_errors(run: Run, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err
