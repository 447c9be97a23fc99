"""A network as a wiring list says that it is plugged: the design's own list changes nothing, swapped cables stay so."""

import csv
from pathlib import Path

import pytest

from designer import instance_from_document
from designer.certify.read_design import design_from_document, read_design
from designer.certify.verify import verify_file
from designer.errors import InstanceError
from designer.export.plan import make_plan
from designer.export.wiring import write_wiring_csv
from tests.rewiring.test_existing_designs import RAILS, SMALL, changed, solve, with_existing


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A design and its wiring list."""
    design, wiring = tmp_path / "old.json", tmp_path / "wiring.csv"
    solve(RAILS).save(design)
    write_wiring_csv(make_plan(read_design(design)), wiring)
    return design, wiring


def rows_of(wiring: Path) -> list[dict[str, str]]:
    """The rows of a list."""
    with wiring.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(wiring: Path, rows: list[dict[str, str]]) -> None:
    """Writes the rows of a list."""
    with wiring.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_the_list_of_the_design_is_the_design(files: tuple[Path, Path]) -> None:
    """Nothing moves, and the file says where the links come from."""
    design, wiring = files
    result = solve(with_existing(design, wiring=str(wiring)))
    assert result.cost_cents == 0
    assert result.rewired is not None
    assert result.rewired.moves.plugged == 0
    file = design_from_document(result.to_document())
    assert file.record.existing is not None
    assert file.record.existing.wiring == str(wiring)
    assert verify_file(file).ok


def test_cables_that_were_swapped_or_pulled_are_plugged_again(files: tuple[Path, Path]) -> None:
    """Two GPUs of a rail on each other's leaf and one cable gone: three links to plug at most, one cable to buy."""
    design, wiring = files
    rows = rows_of(wiring)
    hosts = [row for row in rows if row["a_device"].startswith("server")]
    one = hosts[0]
    other = next(row for row in hosts if row["z_device"] != one["z_device"] and row["a_port"] == one["a_port"])
    gone = next(row for row in hosts if row not in (one, other))
    for name in ("z_device", "z_port"):
        one[name], other[name] = other[name], one[name]
    write(wiring, [row for row in rows if row is not gone])
    result = solve(with_existing(design, wiring=str(wiring)))
    assert result.rewired is not None
    moves = result.rewired.moves
    assert result.rewired.existing.fabric.n_links == len(rows) - 1
    assert 1 <= moves.plugged <= 3
    assert moves.kept == result.fabric.n_links - moves.plugged
    assert result.cost_cents > 0
    bought = {line.section: line.bought for line in result.bill.lines if line.bought}
    assert "switches" not in bought
    assert max(bought.values()) <= 2
    assert verify_file(design_from_document(result.to_document())).ok


@pytest.mark.parametrize("wrong", ["unknown", "twice", "empty", "missing"])
def test_a_list_that_is_none_is_refused_with_its_field(wrong: str, files: tuple[Path, Path]) -> None:
    """Ports that the design does not use, ports used twice, no links, no file."""
    design, wiring = files
    rows = rows_of(wiring)
    if wrong == "unknown":
        rows[0]["z_port"] = "swp99"
    elif wrong == "twice":
        rows[0]["z_device"], rows[0]["z_port"] = rows[1]["z_device"], rows[1]["z_port"]
    write(wiring, rows)
    if wrong == "empty":
        wiring.write_text(wiring.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    elif wrong == "missing":
        wiring.unlink()
    document = changed(with_existing(design, wiring=str(wiring)), catalog=str(SMALL / "catalog.yaml"))
    with pytest.raises(InstanceError) as error:
        instance_from_document(document)
    assert {problem.field for problem in error.value.problems} == {"search.existing.wiring"}
    assert error.value.exit_code == 3
