"""`designer export` and `designer verify --wiring` from outside: streams, exit codes, files that stay whole."""

import csv
import json
from pathlib import Path

import pytest
from conftest import Run, spawn

from designer.cli.export import Format
from designer.export.formats import FORMATS

Row = dict[str, str]


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("design")
    document = {
        "name": "small",
        "cluster": {"gpus": 64, "gpu": "h100-sxm", "nic": "cx7-400"},
        "workload": [{"demand": "any", "across": "cluster"}],
        "search": {"families": ["clos"], "switches": ["qm9700"], "leaf": {"down": 16, "up": 16}},
    }
    (folder / "instance.yaml").write_text(json.dumps(document))
    ran = spawn("design", folder / "instance.yaml", "-o", folder / "design.json")
    assert ran.code == 0
    return folder / "design.json"


def test_the_command_line_knows_the_formats_that_there_are() -> None:
    assert [form.value for form in Format] == list(FORMATS)


@pytest.mark.parametrize("form", list(FORMATS))
def test_every_format_is_written_and_the_path_is_the_result(form: str, design: Path, tmp_path: Path, run: Run) -> None:
    ran = run("export", design, "--format", form, "-o", tmp_path / "out")
    assert ran.code == 0
    assert ran.out == f"{tmp_path / 'out'}\n"
    assert (tmp_path / "out").exists()
    assert not list(tmp_path.rglob("*.tmp"))
    assert all(line.startswith("note: ") for line in ran.err.splitlines())


def test_json_has_the_notes_too(design: Path, tmp_path: Path, run: Run) -> None:
    ran = run("export", design, "--format", "ibsim", "-o", tmp_path / "net", "--json")
    assert json.loads(ran.out) == {
        "format": "ibsim",
        "path": str(tmp_path / "net"),
        "notes": [f"root switches: {tmp_path / 'net'}.roots"],
    }


def test_an_unknown_format_is_2_and_the_names_are_listed(design: Path, tmp_path: Path, run: Run) -> None:
    ran = run("export", design, "--format", "visio", "-o", tmp_path / "out")
    assert ran.code == 2
    assert all(name in ran.err for name in FORMATS)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["wiring-csv", "netbox", "ib-topo", "ibsim", "lp", "bom-xlsx"])
def test_a_path_that_cannot_be_written_is_3(form: str, design: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("kept")
    ran = run("export", design, "--format", form, "-o", tmp_path / "none" / "out")
    assert (ran.code, ran.out) == (3, "")
    assert "does not exist" in ran.err
    ran = run("export", design, "--format", form, "-o", tmp_path / "file" / "out")
    assert ran.code == 3
    assert "is not a folder" in ran.err
    assert (tmp_path / "file").read_text() == "kept"


def test_a_file_where_the_folder_should_be_is_3_and_stays(design: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "out").write_text("kept")
    ran = run("export", design, "--format", "netbox", "-o", tmp_path / "out")
    assert ran.code == 3
    assert "a file, not a folder" in ran.err
    assert (tmp_path / "out").read_text() == "kept"
    (tmp_path / "folder").mkdir()
    assert run("export", design, "--format", "ptm", "-o", tmp_path / "folder").code == 3


def test_a_design_that_the_format_cannot_express_is_3_and_leaves_what_was_there(
    design: Path, tmp_path: Path, run: Run
) -> None:
    document = json.loads(design.read_text())
    links = document["fabric"]["links"]
    for name, column in links.items():
        links[name] = [value for value, times in column["runs"] for _ in range(times)] if "runs" in column else column
        links[name] = links[name][:-1]
    (tmp_path / "less.json").write_text(json.dumps(document))
    (tmp_path / "out").write_text("kept")
    ran = run("export", tmp_path / "less.json", "--format", "htsim", "-o", tmp_path / "out")
    assert ran.code == 3
    assert "a uniform Clos network" in ran.err
    assert (tmp_path / "out").read_text() == "kept"


def test_the_design_is_not_overwritten(design: Path, run: Run) -> None:
    before = design.read_bytes()
    assert run("export", design, "--format", "ptm", "-o", design).code == 2
    assert design.read_bytes() == before


def test_what_is_no_design_is_3(tmp_path: Path, run: Run) -> None:
    (tmp_path / "text").write_text("text")
    for path in (tmp_path / "text", tmp_path / "none"):
        assert run("export", path, "--format", "ptm", "-o", tmp_path / "out").code == 3


def test_patterns_of_names(design: Path, tmp_path: Path, run: Run) -> None:
    options = ("--name", "leaf=tor{index}", "--name", "port=Eth{cage}[/{split}]")
    assert run("export", design, "--format", "ptm", "-o", tmp_path / "out", *options).code == 0
    assert '"tor00":"Eth1/1"' in (tmp_path / "out").read_text()
    assert run("verify", design, "--wiring", tmp_path / "out", *options).code == 0
    assert run("verify", design, "--wiring", tmp_path / "out").code == 7
    ran = run("export", design, "--format", "ptm", "-o", tmp_path / "out", "--name", "leaf=tor")
    assert ran.code == 2
    assert "would not differ" in ran.err
    ran = run("export", design, "--format", "ptm", "-o", tmp_path / "out", "--name", "leaf=server{index}")
    assert ran.code == 3
    assert "2 devices named" in ran.err
    assert run("verify", design, *options).code == 2


def rows_of(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_wiring_as_designed_is_0_and_faults_are_7(design: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "wiring.csv"
    run("export", design, "--format", "wiring-csv", "-o", path)
    ran = run("verify", "--wiring", path, design)
    assert (ran.code, ran.out) == (0, f"{path}: all 128 links of small are as designed\n")
    assert json.loads(run("verify", "--wiring", path, design, "--json").out)["met"] is True
    rows = rows_of(path)
    for column in ("z_device", "z_port"):
        rows[0][column], rows[1][column] = rows[1][column], rows[0][column]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows[:-1])
    ran = run("verify", "--wiring", path, design)
    assert ran.code == 7
    first, *findings = ran.out.splitlines()
    assert first == f"{path}: 125 of 128 links of small are as designed: 1 missing, 1 swapped"
    assert [line.split(":")[0] for line in findings] == ["- missing", "- swapped"]
    document = json.loads(run("verify", "--wiring", path, design, "--json").out)
    assert document["counts"] == {"missing": 1, "swapped": 1}
    assert document["differences"][0]["planned"][0][0].startswith("plane0-leaf03:swp")
    assert document["differences"][1]["found"][0] == ["server00:rail0", "plane0-leaf00:swp1s1"]


def test_a_long_list_of_faults_is_cut_but_not_in_json(design: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "none.csv").write_text("a_device,a_port,z_device,z_port\n")
    ran = run("verify", "--wiring", tmp_path / "none.csv", design)
    assert ran.out.splitlines()[-1] == "... and 78 more (--json lists all)"
    ran = run("verify", "--wiring", tmp_path / "none.csv", design, "--json")
    assert (ran.code, len(json.loads(ran.out)["differences"])) == (7, 128)


def test_a_list_that_cannot_be_read_is_3_and_options_that_do_not_go_together_are_2(
    design: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "list").write_text("a_device,a_port,z_device,z_port\nx,y,z\n")
    ran = run("verify", "--wiring", tmp_path / "list", design)
    assert ran.code == 3
    assert "list:2: z_port" in ran.err
    assert run("verify", "--wiring", tmp_path / "list", design, "--exhaustive").code == 2
