"""`designer verify` on files: exit codes, both forms of output, and what is told without being a fault."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from damaged import check, document_of

from designer import design, instance_from_document, load_instance
from designer.certify.read_design import design_from_document, traffic_from_document
from designer.certify.verify import verify_design
from designer.errors import InputError
from designer.result import traffic_document
from designer.workload.phases import derive_traffic

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from designer.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def written(folder: Path, document: object) -> str:
    path = folder / "design.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_a_sound_design_ends_with_0_and_a_table(tmp_path: Path) -> None:
    done = run("verify", written(tmp_path, document_of("rails")))
    assert done.returncode == 0, done.stderr
    assert "rails: holds" in done.stdout
    assert "endpoint order" in done.stdout
    assert "checking: structure" in done.stderr


def test_a_damaged_design_ends_with_7_and_the_list(tmp_path: Path) -> None:
    document = document_of("rails")
    document["counts"]["spine"] = 9
    done = run("verify", written(tmp_path, document))
    assert done.returncode == 7
    assert "spine: 9 declared, 4 in the fabric" in done.stdout
    assert "the file was edited" in done.stdout


def test_json_holds_the_findings_and_nothing_else_is_on_stdout(tmp_path: Path) -> None:
    document = document_of("rails")
    document["status"] = "feasible"
    done = run("verify", "--json", written(tmp_path, document))
    assert done.returncode == 7
    result = json.loads(done.stdout)
    assert not result["ok"]
    assert {finding["kind"] for finding in result["findings"]} == {"digest", "status"}
    assert result["certificate"]["structure"]["met"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", "3"])
def test_what_is_no_design_ends_with_3_and_no_traceback(tmp_path: Path, text: str) -> None:
    path = tmp_path / "design.json"
    path.write_text(text, encoding="utf-8")
    done = run("verify", str(path))
    assert done.returncode == 3
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert str(path) in done.stderr


def test_a_file_that_is_not_there_ends_with_3(tmp_path: Path) -> None:
    assert run("verify", str(tmp_path / "none.json")).returncode == 3
    assert run("verify", str(tmp_path)).returncode == 3


@pytest.mark.parametrize(
    "name", ["superpod/dgx-h100-su02", "multi-job/halves-2048", "moe/deepseek-v3-2048", "small/planes-16"]
)
def test_designs_as_saved_verify(tmp_path: Path, name: str) -> None:
    path = tmp_path / "design.json"
    design(load_instance(ROOT / "instances" / f"{name}.yaml")).save(path)
    result = verify_design(path)
    assert result.ok, result.findings


def test_energy_in_the_objective_is_recounted() -> None:
    instance = load_instance(ROOT / "instances" / "small" / "energy-16.yaml")
    document = json.loads(json.dumps(design(instance).to_document()))
    assert document["energy_usd"] > 0
    assert check(document).ok
    document["bill_of_materials"][0]["unit_energy_usd"] += 1
    assert any("unit_energy_usd" in finding.message for finding in check(document).findings)


def test_traffic_comes_back_as_it_was_written() -> None:
    for name in ("multi-job/turns-2048", "moe/deepseek-v3-2048"):
        instance = load_instance(ROOT / "instances" / f"{name}.yaml")
        traffic = derive_traffic(instance)
        assert traffic_from_document(json.loads(json.dumps(traffic_document(traffic)))) == traffic


def test_an_edited_catalog_of_the_same_release_is_a_note() -> None:
    instance = instance_from_document(
        {
            "name": "shipped",
            "cluster": {"gpus": 64, "gpu": "h100-sxm", "nic": "cx7-400"},
            "workload": [{"demand": "any"}],
            "search": {"switches": ["qm9700"]},
        }
    )
    document = json.loads(json.dumps(design(instance).to_document()))
    assert not any("not as catalog builtin" in note for note in check(document).notes)
    document["catalog"]["switches"]["qm9700"]["vendor"] = "another"
    result = check(document)
    assert any("catalog.switches.qm9700: not as catalog builtin" in note for note in result.notes)


def test_a_model_file_of_a_stranger_is_not_read(tmp_path: Path) -> None:
    """The instance inside a design file may name a path; it is told, and not followed."""
    document = json.loads(json.dumps(document_of("rails")))
    document["instance"]["workload"] = [{"model": "/etc/hostname", "global_batch": 1}]
    result = check(document)
    assert any("the model /etc/hostname is a file of its own" in note for note in result.notes)


def test_a_file_without_its_parts_is_refused() -> None:
    for name in ("fabric", "traffic", "cluster", "catalog", "requirements", "instance", "counts"):
        document = document_of("rails")
        del document[name]
        with pytest.raises(InputError, match=name):
            design_from_document(document)
