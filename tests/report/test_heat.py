"""The heat map and the table of phases, against bytes added up GPU by GPU."""

from itertools import permutations

import numpy as np
import pytest

from designer.report.heat import SHADES, blocks, shades
from designer.report.page import report_page
from designer.workload.traffic import Component, Phase, Step, Traffic
from tests.report.reading import Document, Node, Page, document, file_of, rows_of


def with_phases(*phases: Phase) -> Page:
    content: Document = document("rails")
    records = [
        {
            "name": phase.name,
            "job": phase.job,
            "steps": [
                {
                    "name": step.name,
                    "nic_bytes": step.nic_bytes,
                    "components": [vars(part) for part in step.components],
                }
                for step in phase.steps
            ],
            "floor": phase.floor,
            "domain_bytes": phase.domain_bytes,
            "across": phase.across,
            "first_gpu": phase.first_gpu,
            "gpus": phase.gpus,
        }
        for phase in phases
    ]
    content["traffic"]["phases"] = records
    return Page(report_page(file_of(content)))


def phase(name: str, job: str, parts: list[Component], nic_bytes: float, domain_bytes: float = 0.0) -> Phase:
    steps = (Step(name, tuple(parts), nic_bytes),) if parts else ()
    return Phase(name, job, steps, 1.0, domain_bytes, "cluster", 0, 32)


def cells(drawing: Node) -> np.ndarray:
    """The shades of a map, read back from its paths."""
    side = int(drawing.attributes["viewbox"].split()[-1])
    found = np.zeros((side, side), dtype=int)
    for path in drawing.all("path"):
        level = int(path.attributes["class"].split()[-1][1:])
        for part in path.attributes["d"].split("z")[:-1]:
            place, rest = part[1:].split("h", 1)
            column, row = map(int, place.split())
            length = int(rest.split("v")[0])
            assert not found[row, column : column + length].any()
            found[row, column : column + length] = level
    return found


def test_the_map_shows_who_sends_to_whom() -> None:
    """A shift and an all-to-all on 32 GPUs: a cell a GPU, as added up pair by pair."""
    shift = phase("pp", "job", [Component("shift", 4, 8, 1, 1.0)], 8e9)
    mixed = phase("ep", "job", [Component("all-to-all", 1, 4, 0, 1.0)], 3e6)
    (drawing,) = with_phases(shift, mixed).section("traffic").all("svg", "map")
    expected = np.zeros((32, 32))
    for gpu in range(32):
        digit = gpu // 4
        expected[gpu, (digit + 1) % 8 * 4 + gpu % 4] += 8e9
    for first in range(0, 32, 4):
        for one, other in permutations(range(first, first + 4), 2):
            expected[one, other] += 1e6
    found = cells(drawing)
    assert (found == shades(expected)).all()
    assert ((found > 0) == (expected > 0)).all()
    assert (found[expected >= 8e9] == SHADES).all()
    assert (found[expected == 1e6] == 1).all(), "3.9 decades below the most"


def test_shades_follow_the_logarithm() -> None:
    table = np.array([[0.0, 1e-3, 1.0], [1e2, 3e2, 1e4], [9.9e3, 3.2e3, 3.1e3]])
    assert shades(table).tolist() == [[0, 1, 1], [4, 5, 8], [8, 8, 7]]
    assert shades(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("gpus", "domain", "width"),
    [
        (16, 2, 1),
        (64, 8, 1),
        (96, 8, 2),
        (512, 8, 8),
        (1024, 8, 16),
        (1032, 8, 24),
        (131072, 8, 2048),
        (129600, 72, 2088),
    ],
)
def test_blocks_are_whole_domains_or_equal_parts_of_one(gpus: int, domain: int, width: int) -> None:
    found, block = blocks(Traffic(gpus, domain, 1, ()))
    assert found == width
    assert block[0] == 0
    assert block[-1] == (gpus - 1) // width < 64


def test_bytes_inside_the_domains_and_of_mixes_are_not_in_the_map_but_in_the_words() -> None:
    shift = [Component("shift", 1, 32, 1, 1.0)]
    tensor = phase("tp", "job", [], 0.0, 6e9)
    both = phase("dp+pp", "job", shift, 4e9)
    section = with_phases(tensor, phase("dp", "job", shift, 1e9), phase("pp", "job", shift, 1e9), both).section(
        "traffic"
    )
    assert "Of all bytes 75.00 % stay inside HB domains, 25.00 % go through the network." in section.text
    assert "the darkest is 2.00 GB in one iteration" in section.text
    rows = rows_of(section.all("table")[0])
    assert [row[0] for row in rows] == ["tp", "dp", "pp", "dp+pp"]
    assert rows[0][2] == "inside the domain"
    assert rows[1][5:] == ["1.00 GB", "0 B", "100 %"]


def test_demands_without_a_model_have_no_bytes() -> None:
    section = with_phases(phase("mine", "mine", [Component("shift", 1, 32, 1, 1.0)], 1.0)).section("traffic")
    assert rows_of(section.all("table")[0])[0][5:7] == ["as demanded", ""]
    assert "every demand counts alike" in section.text
    assert "Of all bytes" not in section.text


def test_without_traffic_there_is_no_map() -> None:
    section = with_phases().section("traffic")
    assert "holds no traffic" in section.text
    assert not section.all("svg")
