"""Models handed to PuLP: CBC and the solvers a user has, and LP and MPS files with short, fixed names."""

# PuLP is typed in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from designer.formulation.solvers import (
    INF,
    PULP_NAMES,
    Floats,
    LinearModel,
    Progress,
    Report,
    SolveLimits,
    SolverError,
    Termination,
)


def to_pulp(model: LinearModel, name: str = "design") -> Any:
    """The model as a PuLP problem with columns x0, x1, ... and rows r0, r1, ...; the offset is left out.

    A row with two different finite sides becomes two, r0 and r0u.
    """
    import pulp

    program = pulp.LpProblem(name, pulp.LpMinimize)
    columns = [
        pulp.LpVariable(
            f"x{number}",
            low if low > -INF else None,
            high if high < INF else None,
            pulp.LpInteger if whole else pulp.LpContinuous,
        )
        for number, (low, high, whole) in enumerate(
            zip(model.lower.tolist(), model.upper.tolist(), model.integer.tolist(), strict=True)
        )
    ]
    program.setObjective(
        pulp.LpAffineExpression([(columns[at], float(model.cost[at])) for at in np.flatnonzero(model.cost).tolist()])
    )
    indices, values, starts = model.indices.tolist(), model.values.tolist(), model.starts.tolist()
    for row, (low, high) in enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        span = range(starts[row], starts[row + 1])
        terms = pulp.LpAffineExpression([(columns[indices[at]], values[at]) for at in span])
        if low == high:
            program += terms == low, f"r{row}"
        else:
            if low > -INF:
                program += terms >= low, f"r{row}"
            if high < INF:
                program += terms <= high, f"r{row}u"
    return program


def write_model(model: LinearModel, path: Path | str) -> None:
    """Writes the model in LP or MPS format, by the ending of the file name (.lp or .mps).

    Raises:
        SolverError: another ending.
    """
    program, ending = to_pulp(model), Path(path).suffix
    if ending == ".lp":
        program.writeLP(str(path))
    elif ending == ".mps":
        program.writeMPS(str(path))
    else:
        raise SolverError(f"model file {path}: found the ending '{ending}'; allowed: .lp or .mps")


_CBC_ENDS: tuple[tuple[str, Termination], ...] = (
    ("Result - Optimal solution found (within gap tolerance)", "gap"),
    ("Result - Optimal solution found", "optimal"),
    ("Result - Stopped on time limit", "time_limit"),
    ("Result - Problem proven infeasible", "infeasible"),
    ("Problem is infeasible", "infeasible"),
    ("Result - Linear relaxation infeasible", "infeasible"),
    ("Result - Linear relaxation unbounded", "unbounded"),
    ("Optimal - objective value", "optimal"),
)


@dataclass(frozen=True)
class PulpSolver:
    """CBC while PuLP carries it, and Gurobi, CPLEX or XPRESS where they are installed.

    CBC's end and bound come from its log. Of the others PuLP hands on a status that calls a solution at the time limit
    optimal: optimal is believed only of a run that ended before its limit, and otherwise there is no bound.
    """

    name: str = "cbc"

    def solve(
        self, model: LinearModel, limits: SolveLimits, start: Floats | None = None, progress: Progress | None = None
    ) -> Report:
        """Solves; see `Solver`. `progress` hears the end only; `start` is not used.

        Raises:
            SolverError: the solver is not installed.
        """
        import pulp

        del start
        if PULP_NAMES[self.name] not in pulp.listSolvers(onlyAvailable=True):
            raise SolverError(f"solver {self.name}: not installed")
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log.txt"
            options: dict[str, Any] = {"msg": False, "gapRel": limits.gap, "threads": 1}
            if limits.time_limit_s < 1e9:
                options["timeLimit"] = max(limits.time_limit_s, 0.01)
            if self.name == "cbc":
                options |= {"logPath": str(log), "options": [f"randomCbcSeed {limits.seed + 1}", "allow 1e-6"]}
            program = to_pulp(model)
            program.solve(pulp.getSolver(PULP_NAMES[self.name], **options))
            text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        seconds = time.perf_counter() - began
        termination = _cbc_end(text) if self.name == "cbc" else _pulp_end(program.status, seconds, limits)
        values = None
        if program.sol_status in {pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible}:
            found: dict[str, float] = {variable.name: variable.varValue or 0.0 for variable in program.variables()}
            # A column without cost and rows never reaches the solver.
            rest = np.clip(0.0, model.lower, model.upper).tolist()
            values = np.array([found.get(f"x{at}", low) for at, low in enumerate(rest)], float)
        if values is None or termination in {"infeasible", "unbounded"}:
            return Report(termination, None, INF if termination == "infeasible" else -INF, None, seconds, self.name)
        objective = model.objective(values)
        bound = objective if termination == "optimal" else _cbc_bound(text) + model.offset
        if progress is not None:
            progress(objective, bound)
        return Report(termination, objective, min(bound, objective), values, seconds, self.name)


def _cbc_end(log: str) -> Termination:
    for line, end in _CBC_ENDS:
        if line in log:
            return end
    return "error"


def _cbc_bound(log: str) -> float:
    found = re.search(r"^Lower bound:\s+(-?[\d.e+]+)$", log, re.MULTILINE)
    return float(found[1]) if found else -INF


def _pulp_end(status: int, seconds: float, limits: SolveLimits) -> Termination:
    ends: dict[int, Termination] = {1: "optimal", -1: "infeasible", -2: "unbounded"}
    ended = ends.get(status, "error")
    if seconds >= 0.99 * limits.time_limit_s:
        return "time_limit"
    return "gap" if ended == "optimal" and limits.gap > 0 else ended
