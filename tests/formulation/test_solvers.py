"""Every solver that is installed: the same answers, honest ends, quiet on stdout."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from designer.formulation.pulp_models import PulpSolver, write_model
from designer.formulation.solvers import (
    INF,
    LinearModel,
    ModelBuilder,
    SolveLimits,
    SolverError,
    available_solvers,
    quiet_highs,
    relative_gap,
    solver_named,
)

SOLVERS = available_solvers()
CONTINUOUS = [name for name in SOLVERS if name != "cp-sat"]
GOLDEN = r"""\* tiny *\
Minimize
OBJ: 3 x0 + 5 x1 + 4 x2
Subject To
r0: 2 x0 + 4 x1 + 3 x2 >= 11
r1: x0 + x1 >= 1
r1u: x0 + x1 <= 4
r2: x1 - x2 = 1
Bounds
 0 <= x0 <= 5
 0 <= x1 <= 5
 x2 <= 2
Generals
x0
x1
End
"""


def tiny(*, last_whole: bool = True, least: float = 11.0) -> LinearModel:
    """Minimise 3a + 5b + 4c + 7: 2a + 4b + 3c >= 11, 1 <= a + b <= 4, b - c = 1: 21, at b = 2 and c = 1."""
    builder = ModelBuilder(offset=7.0)
    a, b = (builder.add_column(cost, 0, 5, integer=True) for cost in (3, 5))
    c = builder.add_column(4, 0, 2, integer=last_whole)
    builder.add_row(least, INF, [a, b, c], [2, 4, 3])
    builder.add_row(1, 4, [a, b], [1, 1])
    builder.add_row(1, 1, [b, c], [1, -1])
    return builder.build()


def market_split(rows: int = 5, columns: int = 40) -> LinearModel:
    """Half of every column sum met with least deviation: small, and out of reach of branch and bound in seconds."""
    random = np.random.default_rng(3)
    builder = ModelBuilder()
    whole = [builder.add_column(0, 0, 1, integer=True) for _ in range(columns)]
    for _ in range(rows):
        weights = random.integers(0, 100, columns)
        over, under = (builder.add_column(1, 0, 10_000, integer=True) for _ in range(2))
        half = float(weights.sum() // 2)
        builder.add_row(half, half, [*whole, over, under], [*weights.astype(float).tolist(), 1, -1])
    return builder.build()


@pytest.mark.parametrize("name", SOLVERS)
def test_the_optimum_with_offset_is_found_and_its_bound_meets_it(name: str) -> None:
    model = tiny()
    heard: list[tuple[float | None, float | None]] = []
    report = solver_named(name).solve(model, SolveLimits(30), progress=lambda *told: heard.append(told))
    assert (report.termination, report.solver) == ("optimal", name)
    assert report.objective == pytest.approx(21)
    assert report.bound == pytest.approx(21)
    assert report.gap == pytest.approx(0)
    assert report.values == pytest.approx([0, 2, 1])


@pytest.mark.parametrize("name", SOLVERS)
def test_infeasible_is_called_so(name: str) -> None:
    report = solver_named(name).solve(tiny(least=100), SolveLimits(30))
    assert (report.termination, report.objective, report.values, report.bound) == ("infeasible", None, None, INF)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_columns_and_relaxations_are_solved(name: str) -> None:
    report = solver_named(name).solve(tiny(last_whole=False), SolveLimits(30))
    assert report.objective == pytest.approx(21)
    builder = ModelBuilder()
    x = builder.add_column(2, 0, INF)
    builder.add_row(3, INF, [x], [2])
    relaxed = solver_named(name).solve(builder.build(), SolveLimits(30))
    assert (relaxed.termination, relaxed.objective) == ("optimal", pytest.approx(3))


@pytest.mark.parametrize("name", SOLVERS)
def test_a_limit_is_never_called_optimal(name: str) -> None:
    report = solver_named(name).solve(market_split(), SolveLimits(0.7))
    assert report.termination == "time_limit"
    assert report.gap > 0
    if report.objective is not None:
        assert report.bound < report.objective


@pytest.mark.parametrize("name", SOLVERS)
def test_runs_repeat(name: str) -> None:
    first, second = (solver_named(name).solve(tiny(), SolveLimits(30, seed=5)) for _ in range(2))
    assert first.values is not None
    assert second.values is not None
    assert first.values.tolist() == second.values.tolist()


def test_highs_takes_a_start_tells_progress_and_can_be_interrupted() -> None:
    model = market_split()
    heard: list[tuple[float | None, float | None]] = []
    start = np.zeros(model.columns)
    start[40:] = np.array([[model.row_lower[row], 0.0] for row in range(model.rows)]).ravel()
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls > 50

    limits = SolveLimits(20, should_stop=stop)
    report = solver_named("highs").solve(model, limits, start, lambda *told: heard.append(told))
    assert report.termination == "interrupted"
    assert report.seconds < 15
    assert report.objective is not None
    assert report.objective <= model.objective(start)
    assert heard


def test_cp_sat_refuses_what_it_would_round() -> None:
    with pytest.raises(SolverError, match="whole numbers"):
        solver_named("cp-sat").solve(tiny(last_whole=False), SolveLimits())


def test_an_unknown_or_missing_solver_is_an_error_that_lists_the_others() -> None:
    with pytest.raises(SolverError, match=r"solver nope: unknown; allowed: highs, scip"):
        solver_named("nope")
    missing = [name for name in ("gurobi", "cplex", "xpress") if name not in SOLVERS]
    for name in missing:
        with pytest.raises(SolverError, match="not installed"):
            solver_named(name)
        with pytest.raises(SolverError, match="not installed"):
            PulpSolver(name).solve(tiny(), SolveLimits())


@pytest.mark.parametrize("name", SOLVERS)
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    solver_named(name).solve(tiny(), SolveLimits(30))
    assert capfd.readouterr().out == ""


def test_lp_files_have_fixed_short_names(tmp_path: Path) -> None:
    path = tmp_path / "tiny.lp"
    write_model(tiny(last_whole=False), path)
    assert path.read_text(encoding="utf-8").replace("design", "tiny") == GOLDEN
    with pytest.raises(SolverError, match=r"allowed: \.lp or \.mps"):
        write_model(tiny(), tmp_path / "tiny.txt")


@pytest.mark.parametrize("ending", ["lp", "mps"])
def test_files_read_back_have_the_same_optimum(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"tiny.{ending}"
    write_model(tiny(), path)
    highs = quiet_highs()
    highs.readModel(str(path))
    highs.run()
    assert highs.getInfo().objective_function_value == pytest.approx(21 - 7)


def test_the_gap_of_nothing_is_infinite_and_of_zero_cost_zero() -> None:
    assert relative_gap(None, 3.0) == INF
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(10.0, 9.0) == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["highs", "scip", "cp-sat"])
def test_a_solution_within_the_allowed_gap_is_not_called_optimal(name: str) -> None:
    report = solver_named(name).solve(replace(market_split(), offset=1000.0), SolveLimits(30, gap=0.5))
    assert report.termination == "gap"
    assert 1e-6 < report.gap <= 0.5
