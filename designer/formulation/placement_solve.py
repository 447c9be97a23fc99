"""Solves a link placement problem: the intact network first, failures as they turn out to be violated.

A network that misses failures costs no more than one that stands them, so every bound on the way holds.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from designer.formulation.block_demand import BlockDemand
from designer.formulation.link_placement import PlacementProgram, Scenario, placement_program
from designer.formulation.placement import Placement, PlacementProblem
from designer.formulation.placement_cuts import add_cut_sets, add_shortfalls
from designer.formulation.solvers import INF, HighsSolver, Progress, SolveLimits, Solver, Termination
from designer.workload.cuts import Ints

ALL_CUT_SETS = 9  # switches up to which every cut set is written out
LEAST_STEP = 0.005  # half a cent, in USD


@dataclass(frozen=True)
class PlacementReport:
    """What was found and proved of one problem; money in cents, `bound_cents` infinite where there is no network."""

    termination: Termination
    placement: Placement | None
    cost_cents: float | None
    bound_cents: float
    solves: int
    scenarios: int


def solve_placement(
    problem: PlacementProblem,
    limits: SolveLimits,
    *,
    below_cents: float = INF,
    standing: Ints | None = None,
    solver: Solver | None = None,
    progress: Progress | None = None,
) -> PlacementReport:
    """The cheapest placement that costs less than `below_cents`; `infeasible` where there is none.

    Args:
        problem: what to place.
        limits: seconds, gap and a question that may end the search.
        below_cents: only cheaper networks count.
        standing: the slot of each block, where that is decided already.
        solver: HiGHS where none is named.
        progress: told (cost, bound) in USD.
    """
    solver, began = solver or HighsSolver(), time.monotonic()
    chosen = [Scenario(1.0)]
    pending = failures(problem)
    bound, solves = -INF, 0
    while True:
        left = limits.time_limit_s - (time.monotonic() - began)
        if left <= 0 or limits.should_stop():
            end: Termination = "time_limit" if left <= 0 else "interrupted"
            return PlacementReport(end, None, None, bound, solves, len(chosen) - 1)
        program = _program(problem, chosen, below_cents, standing)
        report = solver.solve(program.model(), replace(limits, time_limit_s=left), progress=progress)
        solves += 1
        bound = max(bound, 100 * report.bound)
        if report.values is None:
            return PlacementReport(report.termination, None, None, bound, solves, len(chosen) - 1)
        placement = program.placement(report.values)
        broken = [scenario for scenario in pending if not carries(problem, placement, scenario)]
        if not broken:
            cost = float(placement.cost(problem))
            return PlacementReport(report.termination, placement, cost, min(bound, cost), solves, len(chosen) - 1)
        chosen.append(broken[0])
        pending.remove(broken[0])


def failures(problem: PlacementProblem) -> list[Scenario]:
    """All failures that the network must survive, one at a time."""
    found: list[Scenario] = []
    for item in problem.survivals:
        if item.kind == "switch":
            found += [Scenario(item.share, switch=slot) for slot in range(len(problem.slots))]
        elif item.kind == "link":
            found += [
                Scenario(item.share, link=pair, kind=kind)
                for pair, kinds in problem.link_kinds.items()
                for kind in range(len(kinds))
            ]
    return found


def _program(
    problem: PlacementProblem, scenarios: list[Scenario], below_cents: float, standing: Ints | None
) -> PlacementProgram:
    program = placement_program(problem, scenarios, order=standing is None)
    if standing is not None:
        stand(program, standing)
    if math.isfinite(below_cents):
        columns, costs = program.builder.costs()
        program.builder.add_row(-INF, below_cents / 100 - LEAST_STEP, columns, costs)
    return program


def stand(program: PlacementProgram, slots: Ints) -> None:
    """Blocks on given switches, with the inequalities that hold there."""
    for (block, slot), column in program.attach.items():
        program.builder.fix(column, float(slots[block] == slot))
    for slot in range(len(program.problem.slots)):
        program.builder.fix(program.used[slot], 1.0)
    count = len(program.problem.slots)
    for demand in program.problem.demands:
        add_cut_sets(program, demand, slots, count // 2 if count <= ALL_CUT_SETS else 2)
        if not demand.hoses:
            add_shortfalls(program, demand, slots)


def without_flows(problem: PlacementProblem, slots: Ints, below_cents: float) -> PlacementProgram:
    """Blocks on given switches and the inequalities alone: solved in no time, it excludes most of what cannot be."""
    return _program(problem, [], below_cents, slots)


def carries(problem: PlacementProblem, placement: Placement, scenario: Scenario) -> bool:
    """Whether a placement carries the demands in a scenario, one after the other (a linear program each)."""
    for demand in problem.demands:
        program = placement_program(_only(problem, demand), [scenario], placement)
        model = program.model(relaxed=True)
        if HighsSolver().solve(replace(model, cost=np.zeros(model.columns)), SolveLimits()).values is None:
            return False
    return True


def _only(problem: PlacementProblem, demand: BlockDemand) -> PlacementProblem:
    return replace(problem, demands=(demand,), crossing=0.0)
