"""Network design on given graphs: known optima, the plain model, and the validity of every cut."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.errors import DesignerError, InstanceError
from designer.formulation.cut_sets import bonds, cut_pool, mixed_integer_rounding, rounded
from designer.formulation.design_folder import SINGLE_LINK, format_row, read_table, solve_folder
from designer.formulation.metric import MetricSeparator, carried_share, metric_inequality, unreachable
from designer.formulation.modules import add_flows, cheapest_modules, design_data, master_model
from designer.formulation.network_design import NetworkDesignReport, solve_network_design
from designer.formulation.pulp_models import write_model
from designer.formulation.solvers import SolveLimits, SolverError
from designer.sndlib import CandidateLink, Demand, DesignModel, Module, NetworkDesign, read_network_design
from tests.reference.compact_design import compact_optimum

SHIPPED = Path(__file__).parent.parent.parent / "instances" / "network_design"
OPTIMA = [row for row in read_table(SHIPPED / "optima.json") if row["instance"] in {"nd6", "nd7", "nd8", "nd9", "nd10"}]
EXPLICIT = "EXPLICIT_LINK_CAPACITIES"
SOLVED = SolveLimits(60)


def shipped(name: str) -> NetworkDesign:
    return read_network_design(SHIPPED / f"{name}.txt")


def network(
    nodes: int,
    links: list[tuple[int, int]],
    modules: list[tuple[float, float]],
    demands: list[tuple[int, int, float]],
    *,
    model: DesignModel | None = None,
    pre_installed: float = 0.0,
    routing_cost: float = 0.0,
) -> NetworkDesign:
    sizes = tuple(Module(*module) for module in modules)
    return NetworkDesign(
        "drawn",
        tuple(f"N{at}" for at in range(nodes)),
        tuple(
            # Each link a little dearer than the one before, so that optima are rarely tied.
            CandidateLink(
                f"L{at}",
                a,
                b,
                pre_installed,
                0.0,
                routing_cost,
                0.0,
                tuple(Module(size.capacity, size.cost + at) for size in sizes),
            )
            for at, (a, b) in enumerate(links)
        ),
        tuple(Demand(f"D{at}", *demand) for at, demand in enumerate(demands)),
        model or DesignModel(),
    )


TRIANGLE = network(3, [(0, 1), (1, 2), (0, 2)], [(10, 7)], [(0, 1, 13), (1, 2, 4)])
TRIANGLE_LP = r"""\* design *\
Minimize
OBJ: 7 x0 + 8 x1 + 9 x2
Subject To
r0: x3 - x4 + x6 = 1.3
r1: x4 + x5 - x6 = 0
r2: x10 - x8 + x9 = 0
r3: - x10 + x7 + x8 = 0.4
r4: x0 - x3 - x9 >= 0
r5: x1 - x4 - x6 - x7 >= 0
r6: - x10 + x2 - x5 - x8 >= 0
Bounds
 0 <= x0 <= 2
 0 <= x1 <= 2
 0 <= x2 <= 2
Generals
x0
x1
x2
End
"""


@st.composite
def problems(draw: st.DrawFn, model: DesignModel | None = None) -> NetworkDesign:
    """Small connected networks, some links parallel, one or two modules."""
    nodes = draw(st.integers(3, 5))
    links = [(at, draw(st.integers(0, at - 1))) for at in range(1, nodes)]
    pairs = [(a, b) for a in range(nodes) for b in range(a)]
    links += draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=4))
    small, cost = draw(st.integers(2, 6)), draw(st.integers(3, 12))
    modules = [(small, cost)]
    if draw(st.booleans()):
        modules.append((small * draw(st.sampled_from([2, 2.5, 4])), cost * draw(st.sampled_from([1.5, 2, 3]))))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1), st.integers(1, 15))
    drawn = draw(st.lists(ends.filter(lambda end: end[0] != end[1]), min_size=1, max_size=5))
    demands: dict[tuple[int, int], float] = {}
    for a, b, value in drawn:
        pair = (a, b) if model is not None and model.demand_model == "DIRECTED" else (min(a, b), max(a, b))
        demands[pair] = demands.get(pair, 0.0) + value
    listed = [(*pair, value) for pair, value in demands.items()]
    pre_installed = float(draw(st.sampled_from([0, 0, 3])))
    return network(nodes, links, modules, listed, model=model, pre_installed=pre_installed)


def agree(report: NetworkDesignReport, problem: NetworkDesign, *, survivable: bool) -> None:
    plain = compact_optimum(problem, survivable, 60)
    if plain.infeasible:
        assert report.termination == "infeasible"
    else:
        assert plain.optimal
        assert report.termination == "optimal"
        assert report.cost == pytest.approx(plain.objective, abs=1e-4)
        assert report.bound == pytest.approx(report.cost, abs=1e-4)


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("row", OPTIMA, ids=lambda row: f"{row['instance']}-{row['survivability'].split()[0]}")
def test_proven_optima_are_reached_exactly(row: dict[str, object], solver: str) -> None:
    problem = shipped(str(row["instance"]))
    survivable = row["survivability"] == SINGLE_LINK
    report = solve_network_design(problem, survivable=survivable, solver=solver, limits=SOLVED)
    assert (report.termination, report.cost, report.bound, report.gap) == ("optimal", row["optimum"], row["optimum"], 0)
    bought = sum(
        count * module.cost
        for link, counts in zip(problem.links, report.modules, strict=True)
        for module, count in zip(link.modules, counts, strict=True)
    )
    assert bought == report.cost
    counts = np.array([count for counts in report.modules for count in counts], float)
    assert carried_share(design_data(problem), counts, survivable=survivable) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize(
    ("name", "survivable"), [("nd6", False), ("nd6", True), ("nd7", True), ("nd8", False), ("nd9", False)]
)
def test_the_plain_model_and_the_flow_method_agree(name: str, survivable: bool) -> None:
    problem = shipped(name)
    report = solve_network_design(problem, survivable=survivable, method="flow", limits=SOLVED)
    assert report.method == "flow"
    agree(report, problem, survivable=survivable)


@settings(max_examples=25, deadline=None)
@given(problems(), st.booleans(), st.sampled_from(["projected", "flow"]))
def test_small_networks_agree_with_the_plain_model(problem: NetworkDesign, survivable: bool, method: str) -> None:
    agree(
        solve_network_design(problem, survivable=survivable, method=method, limits=SOLVED),
        problem,
        survivable=survivable,
    )


@settings(max_examples=15, deadline=None)
@given(st.data(), st.sampled_from(["UNDIRECTED", "BIDIRECTED", "DIRECTED"]), st.booleans())
def test_directed_demands_agree_with_the_plain_model(data: st.DataObject, links: str, survivable: bool) -> None:
    problem = data.draw(problems(DesignModel("DIRECTED", links)))
    agree(solve_network_design(problem, survivable=survivable, limits=SOLVED), problem, survivable=survivable)


@settings(max_examples=15, deadline=None)
@given(problems(DesignModel(capacity_model=EXPLICIT)), st.booleans())
def test_explicit_capacities_agree_with_the_plain_model(problem: NetworkDesign, survivable: bool) -> None:
    report = solve_network_design(problem, survivable=survivable, limits=SOLVED)
    assert all(sum(counts) <= 1 for counts in report.modules)
    agree(report, problem, survivable=survivable)


@settings(max_examples=10, deadline=None)
@given(problems(), st.sampled_from([0.25, 2.0]), st.booleans())
def test_routing_costs_agree_with_the_plain_model(problem: NetworkDesign, cost: float, survivable: bool) -> None:
    priced = replace(problem, links=tuple(replace(link, routing_cost=cost) for link in problem.links))
    report = solve_network_design(priced, survivable=survivable, limits=SOLVED)
    assert report.method == ("auto" if report.reason else "flow")
    agree(report, priced, survivable=survivable)


@settings(max_examples=20, deadline=None)
@given(problems(), st.data())
def test_survival_and_more_demand_never_cost_less(problem: NetworkDesign, data: st.DataObject) -> None:
    plain = solve_network_design(problem, survivable=False, limits=SOLVED)
    survivable = solve_network_design(problem, survivable=True, limits=SOLVED)
    assert plain.cost is not None
    assert survivable.cost is None or survivable.cost >= plain.cost
    raised = data.draw(st.integers(0, len(problem.demands) - 1))
    demands = tuple(replace(each, value=each.value + 3 * (at == raised)) for at, each in enumerate(problem.demands))
    more = solve_network_design(replace(problem, demands=demands), survivable=False, limits=SOLVED)
    assert more.cost is not None
    assert more.cost >= plain.cost


@settings(max_examples=20, deadline=None)
@given(problems(), st.booleans(), st.data())
def test_no_cut_removes_a_design_that_carries_the_demands(
    problem: NetworkDesign, survivable: bool, data: st.DataObject
) -> None:
    problem_data = design_data(problem)
    pool, complete = cut_pool(problem_data, survivable=survivable)
    assert complete
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    most = problem_data.column_upper.astype(int)
    if np.prod(most + 1.0) <= 300:
        designs = np.array(list(itertools.product(*(range(each + 1) for each in most))), float)
    else:
        designs = random.integers(0, most + 1, (300, len(most))).astype(float)
    for counts in designs:
        broken = any(coefficients @ counts[columns] < rhs - 1e-6 for columns, coefficients, rhs in pool.rows)
        if broken:
            assert unreachable(problem_data, survivable=survivable) or (
                carried_share(problem_data, counts, survivable=survivable) < 1 - 1e-6
            )


@settings(max_examples=20, deadline=None)
@given(problems(), st.integers(0, 2**32))
def test_metric_inequalities_hold_where_demands_are_carried_and_separate_where_not(
    problem: NetworkDesign, seed: int
) -> None:
    data, random = design_data(problem), np.random.default_rng(seed)
    separator = MetricSeparator(data)
    for _ in range(8):
        counts = np.rint(random.random(len(data.column_upper)) * data.column_upper / 2)
        carried = carried_share(data, counts, survivable=False) >= 1 - 1e-7
        found = separator.separate(data.capacity(counts), None)
        assert (found is None) == carried
        if found is not None:
            assert found[0] @ data.capacity(counts) < found[1]
        weights, rhs = metric_inequality(data, random.random(len(data.row_link)), None)
        assert not carried or weights @ data.capacity(counts) >= rhs - 1e-6


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=3),
    st.integers(1, 40),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
)
def test_mixed_integer_rounding_keeps_all_whole_solutions(sizes: list[int], rhs: int, counts: list[int]) -> None:
    row, y = np.array(sizes, float), np.array(counts[: len(sizes)], float)
    if row @ y >= rhs:
        assert all(coefficients @ y >= bound - 1e-9 for coefficients, bound in rounded(row, float(rhs)))


def test_rounding_of_the_textbook() -> None:
    """50 on modules of 12 and 48: five of the small, or (f = 1/24 of the large) nearly two of the large."""
    small = mixed_integer_rounding(np.array([12.0, 48.0]), 50.0, 12.0)
    assert small[0].tolist() == [1, 4]
    assert small[1] == 5
    large = mixed_integer_rounding(*small, 4.0)
    assert large[0].tolist() == [1, 1]
    assert large[1] == 2


def test_bonds_of_a_ring_are_its_pairs_of_links() -> None:
    ring = network(6, [(at, (at + 1) % 6) for at in range(6)], [(1, 1)], [(0, 3, 1)])
    sides, complete = bonds(design_data(ring))
    assert complete
    assert len(sides) == 15


def test_the_compact_formulation_as_an_lp_file(tmp_path: Path) -> None:
    data = design_data(TRIANGLE)
    builder = master_model(data)
    add_flows(builder, data)
    write_model(builder.build(), tmp_path / "triangle.lp")
    text = (tmp_path / "triangle.lp").read_text(encoding="utf-8")
    assert text == TRIANGLE_LP


def test_capacity_is_covered_cheaply() -> None:
    data = design_data(shipped("nd16"))
    counts = cheapest_modules(data, np.full(data.links, 4.5))
    assert counts is not None
    assert (data.capacity(counts) >= 4.5).all()
    assert counts[:3].tolist() == [1, 1, 0]  # 12 + 48 of the link's 12, 48 and 192 carry 54


def test_what_no_capacity_could_carry_is_said_in_the_users_words() -> None:
    apart = network(3, [(0, 1)], [(1, 1)], [(0, 2, 1)])
    report = solve_network_design(apart)
    assert (report.termination, report.cost, report.modules) == ("infeasible", None, ())
    assert report.reason == "no links lead from node N0 to node N2"
    bridge = network(2, [(0, 1)], [(1, 1)], [(0, 1, 1)])
    assert solve_network_design(bridge).cost == 1
    assert solve_network_design(bridge, survivable=True).reason.endswith("after the failure of link L0")
    parallel = network(2, [(0, 1), (0, 1)], [(1, 1)], [(0, 1, 1)])
    assert solve_network_design(parallel, survivable=True).cost == 3


def test_too_little_explicit_capacity_is_infeasible() -> None:
    short = network(2, [(0, 1)], [(5, 1)], [(0, 1, 6)], model=DesignModel(capacity_model=EXPLICIT))
    assert solve_network_design(short).termination == "infeasible"
    assert solve_network_design(short, method="flow").termination == "infeasible"


def test_pre_installed_capacity_counts_and_its_cost_is_paid() -> None:
    problem = network(2, [(0, 1)], [(5, 3)], [(0, 1, 6)], pre_installed=2.0)
    paid = replace(problem, links=tuple(replace(link, pre_installed_cost=10.0) for link in problem.links))
    report = solve_network_design(paid)
    assert (report.cost, report.modules) == (13, ((1,),))


def test_the_model_of_a_network_says_whether_it_survives() -> None:
    problem = shipped("nd6")
    survives = replace(problem, model=DesignModel(survivability_model="UNRESTRICTED_FLOW_RECONFIGURATION"))
    assert solve_network_design(survives).cost == 1613


def test_a_large_module_next_to_a_small_demand_is_bought() -> None:
    """A tolerance against a large coefficient must not make it free."""
    problem = network(2, [(0, 1)], [(1e7, 100)], [(0, 1, 5)])
    for solver in ("highs", "scip", "cbc"):
        for method in ("projected", "flow"):
            assert solve_network_design(problem, solver=solver, method=method).cost == 100


def test_at_a_time_limit_there_is_a_design_with_an_honest_gap() -> None:
    problem = shipped("nd20")
    report = solve_network_design(problem, survivable=True, limits=SolveLimits(1.0))
    assert report.termination in {"time_limit", "optimal"}
    if report.cost is not None:
        counts = np.array([count for counts in report.modules for count in counts], float)
        assert carried_share(design_data(problem), counts, survivable=True) >= 1 - 1e-6
        assert report.bound <= report.cost


def test_a_gap_that_is_good_enough_ends_the_search() -> None:
    report = solve_network_design(shipped("nd12"), survivable=False, limits=SolveLimits(60, gap=0.2))
    assert report.termination in {"gap", "optimal"}
    assert report.gap <= 0.2


def test_progress_is_told_and_never_crosses() -> None:
    heard: list[tuple[float | None, float | None]] = []
    solve_network_design(shipped("nd9"), survivable=False, progress=lambda *told: heard.append(told))
    assert heard[-1] == (1823, 1823)
    assert all(cost is None or bound is None or bound <= cost + 1e-6 for cost, bound in heard)


def test_methods_and_solvers_that_do_not_fit_are_refused() -> None:
    priced = network(2, [(0, 1)], [(1, 1)], [(0, 1, 1)], routing_cost=1.0)
    with pytest.raises(DesignerError, match="projected"):
        solve_network_design(priced, method="projected")
    with pytest.raises(DesignerError, match="guess"):
        solve_network_design(priced, method="guess")
    with pytest.raises(SolverError, match="nope"):
        solve_network_design(priced, solver="nope")


def test_a_folder_is_compared_with_its_table(tmp_path: Path) -> None:
    for name in ("nd6.txt", "nd7.txt"):
        (tmp_path / name).write_text((SHIPPED / name).read_text(encoding="utf-8"), encoding="utf-8")
    table = """[{"instance": "nd6", "survivability": "none", "optimum": 870, "best_known": 870},
        {"instance": "nd6", "survivability": "single link, free rerouting", "optimum": null, "best_known": 1620}]"""
    (tmp_path / "optima.json").write_text(table, encoding="utf-8")
    first, second, third = solve_folder(tmp_path)
    assert (first.verdict, first.contradicts, first.cost) == ("better", True, 869)
    assert (second.verdict, second.contradicts, second.proven) == ("better", False, False)
    assert (third.instance, third.verdict, third.cost) == ("nd7", "new", 1351)
    assert "better" in format_row(first)
    assert replace(second, known=1600.0).contradicts, "a proven cost above one that was reached"
    assert replace(first, termination="infeasible", cost=None, bound=math.inf).contradicts


@pytest.mark.parametrize(
    "table", ["{}", "[1]", '[{"instance": 1}]', "[", '[{"instance": "a", "survivability": "none", "optimum": "x"}]']
)
def test_a_broken_table_or_folder_is_refused(tmp_path: Path, table: str) -> None:
    with pytest.raises(InstanceError):
        list(solve_folder(tmp_path / "none"))
    with pytest.raises(InstanceError):
        list(solve_folder(tmp_path))
    (tmp_path / "nd6.txt").write_text((SHIPPED / "nd6.txt").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "optima.json").write_text(table, encoding="utf-8")
    with pytest.raises(InstanceError):
        list(solve_folder(tmp_path))


def test_the_method_follows_density_bonds_and_survivability() -> None:
    pairs = [(a, b) for a in range(6) for b in range(a)]
    dense = network(6, pairs, [(5, 3)], [(0, 5, 7)])
    assert solve_network_design(dense, limits=SOLVED).method == "flow"
    assert solve_network_design(dense, survivable=True, limits=SOLVED).method == "projected"
    assert solve_network_design(shipped("nd6"), limits=SOLVED).method == "projected"


@settings(max_examples=20, deadline=None)
@given(problems(), st.integers(0, 2**32))
def test_a_metric_inequality_of_a_failure_counts_nothing_of_the_failed_link(problem: NetworkDesign, seed: int) -> None:
    data, random = design_data(problem), np.random.default_rng(seed)
    separator = MetricSeparator(data)
    for failed in range(data.links):
        weights, rhs = metric_inequality(data, random.random(len(data.row_link)), failed)
        assert weights[failed] == 0
        lone = replace(problem, links=tuple(link for at, link in enumerate(problem.links) if at != failed))
        if unreachable(design_data(lone), survivable=False):
            continue
        counts = np.rint(random.random(len(data.column_upper)) * data.column_upper)
        capacity = data.capacity(counts)
        without = carried_share(design_data(lone), counts[data.column_link != failed], survivable=False) >= 1 - 1e-7
        assert (separator.separate(capacity, failed) is None) == without
        assert not without or weights @ capacity >= rhs - 1e-6
