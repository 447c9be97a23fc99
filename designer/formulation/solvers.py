"""Linear and integer programs as arrays, and the solvers that take them through one small protocol.

Every solver says in its own status what it proved; what a limit cut short is never called optimal. All run on one
thread, so that a run repeats for a seed unless a time limit ends it.
"""

# HiGHS, OR-Tools and PuLP are typed in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

import contextlib
import math
import os
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from designer.errors import DesignerError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Termination = Literal["optimal", "gap", "time_limit", "interrupted", "infeasible", "unbounded", "error"]
Progress = Callable[[float | None, float | None], None]
INF = math.inf
FEASIBILITY = 1e-6
PULP_NAMES = {"cbc": "PULP_CBC_CMD", "gurobi": "GUROBI", "cplex": "CPLEX_CMD", "xpress": "XPRESS"}


class SolverError(DesignerError):
    """A solver that is not there, or a model that it cannot take."""


@dataclass(frozen=True)
class LinearModel:
    """Minimise cost·x + offset over row_lower <= A x <= row_upper, lower <= x <= upper, some x whole.

    Row r of A has `values[starts[r]:starts[r + 1]]` in the columns `indices[...]`.
    """

    cost: Floats
    lower: Floats
    upper: Floats
    integer: Bools
    row_lower: Floats
    row_upper: Floats
    starts: Ints
    indices: Ints
    values: Floats
    offset: float = 0.0

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_lower)

    @property
    def whole(self) -> bool:
        """Whether every column is an integer."""
        return bool(self.integer.all())

    def objective(self, x: Floats) -> float:
        """Value of the objective at x."""
        return float(self.cost @ x) + self.offset


@dataclass
class ModelBuilder:
    """Collects columns and rows; `add_...` functions of the formulations write into it."""

    offset: float = 0.0
    _columns: list[tuple[float, float, float, bool]] = field(default_factory=list[tuple[float, float, float, bool]])
    _rows: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    _starts: list[int] = field(default_factory=lambda: [0])
    _indices: list[int] = field(default_factory=list[int])
    _values: list[float] = field(default_factory=list[float])

    def add_column(self, cost: float, lower: float = 0.0, upper: float = INF, *, integer: bool = False) -> int:
        """A new variable; returns its number."""
        self._columns.append((cost, lower, upper, integer))
        return len(self._columns) - 1

    def add_row(self, lower: float, upper: float, indices: Sequence[int], values: Sequence[float]) -> int:
        """A new row lower <= values·x[indices] <= upper; returns its number."""
        self._rows.append((lower, upper))
        self._indices += indices
        self._values += values
        self._starts.append(len(self._indices))
        return len(self._rows) - 1

    def fix(self, column: int, value: float) -> None:
        """Gives a variable the one value that it may take."""
        cost, _, _, integer = self._columns[column]
        self._columns[column] = (cost, value, value, integer)

    def upper_of(self, column: int) -> float:
        """The upper bound of a variable."""
        return self._columns[column][2]

    def costs(self) -> tuple[list[int], list[float]]:
        """Variables that cost something, and their costs."""
        found = [(number, column[0]) for number, column in enumerate(self._columns) if column[0]]
        return [number for number, _ in found], [cost for _, cost in found]

    def build(self, *, relaxed: bool = False) -> LinearModel:
        """The model so far; `relaxed` without integrality."""
        columns = np.array(self._columns, float).reshape(-1, 4)
        rows = np.array(self._rows, float).reshape(-1, 2)
        return LinearModel(
            columns[:, 0].copy(),
            columns[:, 1].copy(),
            columns[:, 2].copy(),
            (columns[:, 3] > 0) & (not relaxed),
            rows[:, 0].copy(),
            rows[:, 1].copy(),
            np.array(self._starts, np.int64),
            np.array(self._indices, np.int64),
            np.array(self._values, float),
            self.offset,
        )


@dataclass(frozen=True)
class SolveLimits:
    """When to stop: seconds, the relative gap that is good enough, and a question asked often (where it can be)."""

    time_limit_s: float = INF
    gap: float = 0.0
    seed: int = 0
    should_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Report:
    """What a solver found and proved. `objective` and `values` are None without a solution, `bound` may be -inf."""

    termination: Termination
    objective: float | None
    bound: float
    values: Floats | None
    seconds: float
    solver: str

    @property
    def gap(self) -> float:
        """(objective - bound) / |objective|; infinite without a solution."""
        return relative_gap(self.objective, self.bound)


def relative_gap(objective: float | None, bound: float) -> float:
    """(objective - bound) / |objective|, not below 0; infinite without a solution."""
    if objective is None:
        return INF
    difference = max(objective - bound, 0.0)
    return difference / abs(objective) if objective else (0.0 if difference <= FEASIBILITY else INF)


class Solver(Protocol):
    """Anything that solves a `LinearModel`."""

    @property
    def name(self) -> str:
        """The name by which `solver_named` knows it."""
        ...

    def solve(
        self, model: LinearModel, limits: SolveLimits, start: Floats | None = None, progress: Progress | None = None
    ) -> Report:
        """Solves; `start` is a solution to begin with, `progress` is told (objective, bound) where the solver can."""
        ...


@dataclass(frozen=True)
class HighsSolver:
    """HiGHS from arrays: takes starts, reports progress, can be interrupted.

    `linear` is its method for linear programs: simplex, ipm (interior point, for flows), or choose.
    """

    name: str = "highs"
    linear: str = "choose"

    def solve(
        self, model: LinearModel, limits: SolveLimits, start: Floats | None = None, progress: Progress | None = None
    ) -> Report:
        """Solves; see `Solver`.

        Raises:
            SolverError: HiGHS does not accept the model, as when a row names a column twice.
        """
        import highspy

        began = time.perf_counter()
        highs = quiet_highs()
        if highs.passModel(_highs_model(model)) == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS does not accept a model of {model.columns} columns and {model.rows} rows")
        options = {
            "threads": 1,
            "solver": self.linear,
            "random_seed": limits.seed,
            "mip_rel_gap": limits.gap,
            "mip_abs_gap": FEASIBILITY,
            "mip_feasibility_tolerance": FEASIBILITY,
            "time_limit": min(limits.time_limit_s, 1e20),
        }
        for option, value in options.items():
            highs.setOptionValue(option, value)
        if start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = start.tolist()
            highs.setSolution(solution)
        if model.integer.any():

            def interrupt(event: Any) -> None:
                event.interrupt(limits.should_stop())

            highs.cbMipInterrupt.subscribe(interrupt)
            if progress is not None:
                tell = progress

                def log(event: Any) -> None:
                    tell(*_told(event.data_out))

                highs.setOptionValue("output_flag", True)  # without it the callback stays silent too
                highs.cbMipLogging.subscribe(log)
        highs.run()
        return self._report(highs, model, limits, time.perf_counter() - began)

    def _report(self, highs: Any, model: LinearModel, limits: SolveLimits, seconds: float) -> Report:
        import highspy

        status, info = highs.getModelStatus(), highs.getInfo()
        known = highspy.HighsModelStatus
        ends: dict[Any, Termination] = {
            known.kOptimal: "optimal",
            known.kModelEmpty: "optimal",
            known.kInfeasible: "infeasible",
            known.kUnbounded: "unbounded",
            known.kTimeLimit: "time_limit",
            known.kInterrupt: "interrupted",
        }
        termination = ends.get(status, "error")
        mip = bool(model.integer.any())
        values = np.array(highs.getSolution().col_value, float)
        feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if termination in {"infeasible", "unbounded", "error"} or (not feasible and termination != "optimal"):
            bound = INF if termination == "infeasible" else (info.mip_dual_bound if mip else -INF)
            return Report(termination, None, bound, None, seconds, self.name)
        objective = model.objective(values)
        proven = objective if termination == "optimal" else -INF  # the objective of an LP at a limit bounds nothing
        bound = min(info.mip_dual_bound, objective) if mip else proven
        return Report(_within(termination, objective, bound, limits), objective, bound, values, seconds, self.name)


def _within(termination: Termination, objective: float, bound: float, limits: SolveLimits) -> Termination:
    """Solvers call a solution within the allowed gap optimal; optimal is one whose gap is closed."""
    if termination == "optimal" and limits.gap > 0 and objective - bound > FEASIBILITY * max(1.0, abs(objective)):
        return "gap"
    return termination


def _told(event: Any) -> tuple[float | None, float | None]:
    primal, dual = float(event.mip_primal_bound), float(event.mip_dual_bound)
    return (primal if abs(primal) < 1e30 else None), (dual if abs(dual) < 1e30 else None)


def quiet_highs() -> Any:
    """A HiGHS instance that prints nothing; its banner goes to file descriptor 1 before any option could stop it."""
    import highspy

    with _no_stdout():
        highs = highspy.Highs()
    highs.setOptionValue("log_to_console", False)
    highs.setOptionValue("output_flag", False)
    return highs


@contextlib.contextmanager
def _no_stdout() -> Generator[None]:
    kept = os.dup(1)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(sink)


def _highs_model(model: LinearModel) -> Any:
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = model.columns, model.rows
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = model.cost, model.lower, model.upper
    lp.row_lower_, lp.row_upper_ = model.row_lower, model.row_upper
    lp.offset_ = model.offset
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = model.starts.astype(np.int32)
    lp.a_matrix_.index_ = model.indices.astype(np.int32)
    lp.a_matrix_.value_ = model.values
    if model.integer.any():
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in model.integer.tolist()]
    return lp


@dataclass(frozen=True)
class MathOptSolver:
    """SCIP or CP-SAT through OR-Tools' MathOpt. CP-SAT takes models of whole numbers only, coefficients included."""

    name: str = "scip"

    def solve(
        self, model: LinearModel, limits: SolveLimits, start: Floats | None = None, progress: Progress | None = None
    ) -> Report:
        """Solves; see `Solver`. `progress` hears the end only, and `should_stop` is asked before the start only.

        Raises:
            SolverError: CP-SAT, whose adapter would round, and a model with continuous columns.
        """
        from ortools.math_opt.python import mathopt

        began = time.perf_counter()
        if self.name == "cp-sat" and not (model.whole and bool((model.values == np.rint(model.values)).all())):
            raise SolverError("CP-SAT solves models of whole numbers only; this one has others")
        if limits.should_stop():
            return Report("interrupted", None, -INF, None, 0.0, self.name)
        program, columns = _mathopt_model(model)
        hints = []
        if start is not None:
            hints = [mathopt.SolutionHint(variable_values=dict(zip(columns, start.tolist(), strict=True)))]
        finite = limits.time_limit_s < 1e9
        parameters = mathopt.SolveParameters(
            time_limit=timedelta(seconds=max(limits.time_limit_s, 0.0)) if finite else None,
            relative_gap_tolerance=limits.gap,
            absolute_gap_tolerance=FEASIBILITY,
            random_seed=limits.seed,
            threads=1,
        )
        kind = mathopt.SolverType.CP_SAT if self.name == "cp-sat" else mathopt.SolverType.GSCIP
        result = mathopt.solve(
            program, kind, params=parameters, model_params=mathopt.ModelSolveParameters(solution_hints=hints)
        )
        seconds = time.perf_counter() - began
        reason, limit = result.termination.reason, result.termination.limit
        reasons, interrupt = mathopt.TerminationReason, mathopt.Limit.INTERRUPTED
        ended: Termination = "interrupted" if limit is interrupt else "time_limit"
        ends: dict[Any, Termination] = {
            reasons.OPTIMAL: "optimal",
            reasons.INFEASIBLE: "infeasible",
            reasons.UNBOUNDED: "unbounded",
            reasons.FEASIBLE: ended,
            reasons.NO_SOLUTION_FOUND: ended,
        }
        termination = ends.get(reason, "error")
        bound = float(result.termination.objective_bounds.dual_bound)
        if not result.has_primal_feasible_solution():
            return Report(termination, None, INF if termination == "infeasible" else bound, None, seconds, self.name)
        found = result.variable_values()
        values = np.array([found[column] for column in columns], float)
        objective = model.objective(values)
        bound = min(bound, objective)
        if progress is not None:
            progress(objective, bound)
        return Report(_within(termination, objective, bound, limits), objective, bound, values, seconds, self.name)


def _mathopt_model(model: LinearModel) -> tuple[Any, list[Any]]:
    from ortools.math_opt.python import mathopt

    program = mathopt.Model()
    columns = [
        program.add_variable(lb=low, ub=high, is_integer=whole)
        for low, high, whole in zip(model.lower.tolist(), model.upper.tolist(), model.integer.tolist(), strict=True)
    ]
    indices, values, starts = model.indices.tolist(), model.values.tolist(), model.starts.tolist()
    for row, (low, high) in enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        constraint = program.add_linear_constraint(lb=low, ub=high)
        for at in range(starts[row], starts[row + 1]):
            constraint.set_coefficient(columns[indices[at]], values[at])
    for column, cost in zip(columns, model.cost.tolist(), strict=True):
        program.objective.set_linear_coefficient(column, cost)
    program.objective.offset = model.offset
    return program, columns


def _installed(name: str) -> bool:
    import pulp

    return PULP_NAMES[name] in pulp.listSolvers(onlyAvailable=True)


def available_solvers() -> tuple[str, ...]:
    """Names of the solvers that can be used here, the default first."""
    return ("highs", "scip", "cp-sat", *(name for name in PULP_NAMES if _installed(name)))


def solver_named(name: str) -> Solver:
    """The solver of that name.

    Raises:
        SolverError: unknown, or not installed; the message lists what is.
    """
    if name == "highs":
        return HighsSolver()
    if name in {"scip", "cp-sat"}:
        return MathOptSolver(name)
    if name in PULP_NAMES and _installed(name):
        from designer.formulation.pulp_models import PulpSolver

        return PulpSolver(name)
    reason = "not installed" if name in PULP_NAMES else "unknown"
    raise SolverError(f"solver {name}: {reason}; allowed: {', '.join(available_solvers())}")
