"""Link placement as a program: each family of constraints as a file that can be read, and its parts.

python tests/formulation/test_link_placement.py --update     writes the files anew

A file holds the columns that a family needs and the rows it adds: z_s switch s is used, x_b_s block b sits on switch s,
y_s_t_k bundles of kind k between s and t, u_s_t_k whether there are any, c_s_e cages of switch s for ends of kind e,
h_s_e whether such ends are in the cage that is taken in part; v are the rest, such as flows.
"""

import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from designer.formulation import link_placement as rows
from designer.formulation.block_demand import Hose
from designer.formulation.link_placement import PlacementProgram, Scenario
from designer.formulation.placement import End, PlacementProblem, Slot
from designer.formulation.placement_cuts import add_cut_sets, add_shortfalls
from designer.formulation.pulp_models import write_model
from tests.formulation.placements import blocks_of, demand, host_kind, link_kind, model

GOLDEN = Path(__file__).parent / "golden"
BOUGHT = Slot(model(4), 50_000, 0)
THERE = Slot(model(4), 0, 1, "used", 3)
HOSE = Hose(200.0, np.array([2, 1]))


def tiny(slots: tuple[Slot, ...] = (BOUGHT, BOUGHT), blocks: int = 2) -> PlacementProblem:
    """One block of two GPUs, the others of one, on switches joined by one kind of links."""
    sizes = (2, 1, 1)[:blocks]
    pairs = [(one, other) for one in range(len(slots)) for other in range(one + 1, len(slots))]
    hosts = {(b, s): host_kind() for b in range(blocks) for s in range(len(slots))}
    return PlacementProblem(slots, blocks_of(*sizes), (), hosts, {pair: (link_kind(),) for pair in pairs})


def bare(problem: PlacementProblem, *wanted: str) -> PlacementProgram:
    """A program with columns and no rows: `used`, `attach`, `links`, `cages`, `some`."""
    program = PlacementProgram(problem)

    def column(most: float = 1.0) -> int:
        return program.builder.add_column(0.0, 0.0, most, integer=True)

    if "used" in wanted:
        program.used = [column() for _ in problem.slots]
    if "attach" in wanted:
        program.attach = {pair: column() for pair in problem.host_kinds}
    if "links" in wanted:
        program.links = {pair: [column(4) for _ in kinds] for pair, kinds in problem.link_kinds.items()}
    if "some" in wanted:
        program.some = {pair: [column() for _ in kinds] for pair, kinds in problem.link_kinds.items()}
    if "cages" in wanted:
        ends = {(s, kind.end, True): None for (_, s), kind in problem.host_kinds.items()}
        for pair, kinds in problem.link_kinds.items():
            ends |= {
                (s, end, False): None for kind in kinds for s, end in zip(pair, (kind.lower, kind.upper), strict=True)
            }
        program.cages = {end: column(4) for end in ends}
    return program


def two_speeds() -> PlacementProblem:
    """Three switches, one there already; links of 200 Gb/s in pairs and of 400; the second block fits two of them."""
    problem = tiny((BOUGHT, BOUGHT, THERE))
    hosts = {pair: kind for pair, kind in problem.host_kinds.items() if pair != (1, 2)}
    kinds = link_kind(200, 2, 2), link_kind()
    return replace(problem, host_kinds=hosts, link_kinds={(0, 1): kinds, (0, 2): kinds[1:], (1, 2): ()})


def switches() -> PlacementProgram:
    program = PlacementProgram(tiny((BOUGHT, THERE)))
    rows.add_switches(program)
    return program


def switches_all_bought() -> PlacementProgram:
    program = PlacementProgram(replace(tiny((BOUGHT, THERE)), all_bought=True))
    rows.add_switches(program)
    return program


def attachment() -> PlacementProgram:
    program = bare(two_speeds(), "used")
    rows.add_attachment(program)
    return program


def links() -> PlacementProgram:
    program = bare(two_speeds())
    rows.add_links(program)
    return program


def cages() -> PlacementProgram:
    program = bare(two_speeds(), "attach", "links")
    rows.add_cages(program)
    return program


def part_taken() -> PlacementProblem:
    """One block on a switch of two ports to a cage, one cage half taken, that is joined to a new one."""
    slots = Slot(model(4, 2), 0, 1, "used", 3), BOUGHT
    problem = tiny(slots, 1)
    kind = replace(link_kind(), lower=End("up400", 2, 4000))
    return replace(problem, host_kinds={(0, 0): host_kind(4)}, link_kinds={(0, 1): (kind,)})


def cages_in_part() -> PlacementProgram:
    program = bare(part_taken(), "attach", "links")
    rows.add_cages(program)
    return program


def port_limits_in_part() -> PlacementProgram:
    program = bare(part_taken(), "used", "attach", "links", "cages")
    program.in_part = {
        key: program.builder.add_column(0.0, 0.0, 1.0, integer=True) for key in program.cages if key[0] == 0
    }
    rows.add_port_limits(program)
    return program


def port_limits() -> PlacementProgram:
    program = bare(two_speeds(), "used", "attach", "links", "cages")
    rows.add_port_limits(program)
    return program


def sides() -> PlacementProgram:
    program = bare(replace(tiny(), sides=2, blocks=blocks_of(2, 1, sides=(0, 1))), "attach", "links")
    rows.add_sides(program)
    return program


def order_of_switches() -> PlacementProgram:
    program = bare(tiny((BOUGHT, BOUGHT, THERE)), "used", "attach")
    rows.add_order_of_switches(program)
    return program


def order_of_blocks() -> PlacementProgram:
    problem = tiny((BOUGHT, BOUGHT, THERE), 3)
    program = bare(replace(problem, blocks=blocks_of(2, 1, 1, alike=(0, 1, 1))), "attach")
    rows.add_order_of_blocks(program)
    return program


def crossing() -> PlacementProgram:
    program = bare(replace(two_speeds(), crossing=150.0), "attach", "links")
    rows.add_crossing(program)
    return program


def least_cost() -> PlacementProgram:
    program = PlacementProgram(replace(tiny(), least_cents=123_400))
    rows.add_switches(program)
    rows.add_links(program)
    rows.add_least_cost(program)
    return program


def some_links() -> PlacementProgram:
    program = bare(two_speeds(), "links")
    rows.add_some_links(program)
    return program


def flows_of(problem: PlacementProblem, scenario: Scenario, *more: str) -> PlacementProgram:
    """Flows in one direction and their capacity."""
    program = bare(problem, "attach", "links", *more)
    asked = demand({(0, 1): 300.0}, len(problem.blocks))
    rows.add_capacity(program, [rows.add_flows(program, asked, scenario)], scenario)
    return program


def flows() -> PlacementProgram:
    return flows_of(tiny(), Scenario(1.0))


def flows_switch_lost() -> PlacementProgram:
    return flows_of(tiny((BOUGHT,) * 3), Scenario(1.0, switch=2))


def flows_link_lost() -> PlacementProgram:
    return flows_of(two_speeds(), Scenario(1.0, link=(0, 1)), "some")


def hoses() -> PlacementProgram:
    problem = tiny()
    program = bare(problem, "attach", "links")
    asked, scenario = demand({}, 2, [HOSE]), Scenario(1.0)
    rows.add_capacity(program, [rows.add_hoses(program, asked, scenario)], scenario)
    return program


def hoses_switch_lost() -> PlacementProgram:
    program = bare(tiny((BOUGHT,) * 3), "attach", "links")
    asked, scenario = demand({}, 2, [Hose(200.0, np.array([1, 1]))]), Scenario(1.0, switch=2)
    rows.add_capacity(program, [rows.add_hoses(program, asked, scenario)], scenario)
    return program


def shortfalls() -> PlacementProgram:
    program = bare(tiny((BOUGHT,) * 3), "links")
    add_shortfalls(program, demand({(0, 1): 1000.0, (1, 0): 400.0}, 2), np.array([0, 2]))
    return program


def cut_sets() -> PlacementProgram:
    program = bare(tiny((BOUGHT,) * 3), "links")
    hose = Hose(200.0, np.array([3, 2, 1]))
    add_cut_sets(program, demand({(0, 1): 500.0, (2, 0): 700.0}, 3, [hose]), np.arange(3), 1)
    return program


FAMILIES: dict[str, Callable[[], PlacementProgram]] = {
    made.__name__: made
    for made in (
        switches,
        switches_all_bought,
        attachment,
        links,
        cages,
        cages_in_part,
        port_limits,
        port_limits_in_part,
        sides,
        order_of_switches,
        order_of_blocks,
        crossing,
        least_cost,
        some_links,
        flows,
        flows_switch_lost,
        flows_link_lost,
        hoses,
        hoses_switch_lost,
        shortfalls,
        cut_sets,
    )
}


def names_of(program: PlacementProgram) -> dict[int, str]:
    """The columns by what they stand for."""
    names = {column: f"z_{slot}" for slot, column in enumerate(program.used)}
    names |= {column: f"x_{b}_{s}" for (b, s), column in program.attach.items()}
    for letter, table in (("y", program.links), ("u", program.some)):
        names |= {
            column: f"{letter}_{one}_{other}_{kind}"
            for (one, other), columns in table.items()
            for kind, column in enumerate(columns)
        }
    for letter, table in (("c", program.cages), ("h", program.in_part)):
        names |= {column: f"{letter}_{s}_{end.key}" for (s, end, _), column in table.items()}
    return names


def text_of(program: PlacementProgram) -> str:
    """The program as an LP file whose columns have telling names."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lp"
        write_model(program.model(), path)
        text = path.read_text(encoding="utf-8")
    names = names_of(program)
    return re.sub(r"\bx(\d+)\b", lambda match: names.get(int(match[1]), f"v{match[1]}"), text)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_of_constraints_is_the_recorded_one(family: str) -> None:
    assert text_of(FAMILIES[family]()) == (GOLDEN / f"{family}.lp").read_text(encoding="utf-8")


def test_every_recorded_family_is_there() -> None:
    assert {path.stem for path in GOLDEN.glob("*.lp")} == set(FAMILIES)


def _update() -> None:
    for family, made in FAMILIES.items():
        (GOLDEN / f"{family}.lp").write_text(text_of(made()), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python tests/formulation/test_link_placement.py --update")
    _update()
