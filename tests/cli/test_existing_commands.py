"""Clusters that have a network on the command line: what is told, the bill, exit codes, and exports of what stays."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Run
from tests.rewiring.test_existing_designs import NEW, RAILS, SMALL, with_existing

Write = Callable[[str, dict[str, Any]], Path]


@pytest.fixture
def save(tmp_path: Path) -> Write:
    """Writes an instance on the parts of `instances/small`."""

    def write_file(name: str, document: dict[str, Any]) -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**document, "catalog": str(SMALL / "catalog.yaml")}), encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def old(save: Write, run: Run, tmp_path: Path) -> Path:
    """The design file of the network that is there; instances name it by its name alone."""
    path = tmp_path / "old.json"
    assert run("design", save("old", RAILS), "-o", path).code == 0
    return Path(path.name)


def test_a_grown_cluster_from_design_to_export(old: Path, save: Write, run: Run, tmp_path: Path) -> None:
    """Lines on links and switches, a column of reused pieces, a file that verifies, exports and is shown."""
    grown, design = save("grown", with_existing(old, NEW["grown"])), tmp_path / "grown.json"
    done = run("design", grown, "-o", design)
    assert done.code == 0
    said = json.loads(run("design", grown, "--json").out)["existing"]
    assert f"{said['kept']:,} stay as they are" in done.out
    assert f"{said['plugged']:,} are plugged" in done.out
    assert "reused" in done.out
    assert run("verify", design).code == 0
    bill = tmp_path / "bom.csv"
    assert run("export", design, "--format", "bom-csv", "-o", bill).code == 0
    with bill.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert sum(int(line["reused"]) for line in lines) > 0
    for line in lines:
        bought = int(line["quantity"]) - int(line["reused"])
        assert float(line["total_usd"]) == bought * float(line["unit_usd"])
    wiring = tmp_path / "wiring.csv"
    assert run("export", design, "--format", "wiring-csv", "-o", wiring).code == 0
    with wiring.open(encoding="utf-8", newline="") as file:
        actions = [line["existing"] for line in csv.DictReader(file)]
    assert (actions.count("kept"), actions.count("plugged")) == (said["kept"], said["plugged"])
    assert len(actions) == said["kept"] + said["plugged"]
    assert run("report", design, "-o", tmp_path / "page.html").code == 0
    assert "Beside what is there" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_exit_codes(old: Path, save: Write, run: Run) -> None:
    """0 as it is, 3 without a file, 4 proven infeasible, 5 and 6 at a limit."""
    grown = NEW["grown"]
    cases = {
        "as-it-is": (with_existing(old), 0, "all 38 stay as they are"),
        "no-file": (with_existing(Path("none.json")), 3, "search.existing"),
        "no-switches": (with_existing(old, NEW["twice"], new_switches=False), 4, "search.existing.new_switches"),
        "no-links": (with_existing(old, grown, most_links_moved=3), 4, "search.existing.most_links_moved"),
        "few-links": (with_existing(old, grown, most_links_moved=16), 6, "the least that was found is"),
        "no-time": (with_existing(old, grown), 5, "time limit"),
    }
    for name, (document, code, words) in cases.items():
        options = ("--time-limit", "0") if name == "no-time" else ()
        done = run("design", save(name, document), *options)
        assert done.code == code, (name, done.err)
        assert words in done.out + done.err, name
    still = run("design", save("still", with_existing(old)), "--time-limit", "0")
    assert still.code == 0, "what is there is looked at first"
