"""Static routing of `any`: against every permutation one by one, and against the plain program that lists them all."""

from dataclasses import replace
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from designer.certify import oblivious
from designer.certify.certificate import EXACT
from designer.certify.hose import clos_hose
from designer.certify.oblivious import StaticRouting, oblivious_routing
from designer.certify.problem import FlowProblem, Hubs
from designer.certify.static_routes import even_throughput, sending_pairs, static_throughput, worst_load
from designer.certify.throughput import Judge
from tests.certify.fabrics import hub, problem_of
from tests.reference.flow_lp import (
    ecmp_by_paths,
    endpoints_of,
    graph_of_problem,
    rates_of_problem,
    worst_permutation,
)

SETTINGS = settings(
    derandomize=True, max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def any_of(*groups: list[tuple[int, int]], rate: float = 1.0) -> Hubs:
    """Groups whose members may send at `rate` to any other."""
    largest = max(sum(many for _, many in group) for group in groups)
    return hub(*groups, pair_rate=rate / (largest - 1), hose_rate=rate)


def routed(problem: FlowProblem) -> StaticRouting:
    """The routing found; there must be one."""
    found = oblivious_routing(problem)
    assert found is not None
    return found


def hose_groups(problem: FlowProblem) -> list[tuple[float, list[int]]]:
    """Rate and nodes of the members of every `any` group."""
    return [
        (hub.hose_rate, members)
        for hub in problem.hubs
        if hub.hose_rate
        for members in endpoints_of(hub.node, hub.group, hub.members)
    ]


def fixed_part(problem: FlowProblem) -> dict[tuple[int, int], float]:
    """Rates of what is not `any`."""
    return rates_of_problem(replace(problem, hubs=tuple(each for each in problem.hubs if not each.hose_rate)))


def listed_permutations(members: list[int], rate: float) -> list[dict[tuple[int, int], float]]:
    """What members at these nodes may send each other: every permutation, as rates from node to node."""
    listed: list[dict[tuple[int, int], float]] = []
    for image in sorted(set(permutations(members))):
        rates: dict[tuple[int, int], float] = {}
        for source, target in zip(members, image, strict=True):
            if source != target:
                rates[source, target] = rates.get((source, target), 0.0) + rate
        listed.append(rates)
    return listed


def listed_demands(problem: FlowProblem) -> list[dict[tuple[int, int], float]]:
    """All that may be sent: one permutation of every group, beside the fixed rates."""
    demands: dict[tuple[tuple[tuple[int, int], float], ...], dict[tuple[int, int], float]] = {}
    for chosen in product(*(listed_permutations(members, rate) for rate, members in hose_groups(problem))):
        rates = dict(fixed_part(problem))
        for part in chosen:
            for ends, rate in part.items():
                rates[ends] = rates.get(ends, 0.0) + rate
        demands[tuple(sorted(rates.items()))] = rates
    return list(demands.values())


def listed_throughput(problem: FlowProblem, routing: StaticRouting) -> float:
    """The least throughput of the routes over all listed demands, arc by arc."""
    capacity = graph_of_problem(problem).arcs()
    worst = np.inf
    for rates in listed_demands(problem):
        load: dict[tuple[int, int], float] = {}
        for pair, rate in rates.items():
            for path, weight in routing.routes[pair]:
                for arc in pairwise(path):
                    load[arc] = load.get(arc, 0.0) + rate * weight
        worst = min([worst, *(capacity[arc] / carried for arc, carried in load.items() if carried > 0)])
    return float(worst)


def best_static(problem: FlowProblem) -> float:
    """The best static routing by a plain program: a flow for every ordered pair, a row for every demand and arc."""
    capacity = graph_of_problem(problem).arcs()
    arcs, pairs, demands = list(capacity), sorted(sending_pairs(problem)), listed_demands(problem)
    relays = graph_of_problem(problem).relays
    columns = {key: 1 + number for number, key in enumerate(product(range(len(pairs)), range(len(arcs))))}
    upper = np.full(1 + len(columns), np.inf)
    balance = np.zeros((len(pairs) * problem.nodes, 1 + len(columns)))
    due = np.zeros(len(balance))
    for (number, arc), column in columns.items():
        (source, target), (tail, head) = pairs[number], arcs[arc]
        balance[number * problem.nodes + head, column] += 1
        balance[number * problem.nodes + tail, column] -= 1
        if tail not in relays | {source} or head not in relays | {target}:
            upper[column] = 0
    for number, (source, target) in enumerate(pairs):
        due[number * problem.nodes + target] += 1
        due[number * problem.nodes + source] -= 1
    rows = np.zeros((len(demands) * len(arcs), 1 + len(columns)))
    for row, (rates, arc) in enumerate(product(demands, range(len(arcs)))):
        rows[row, 0] = -capacity[arcs[arc]]
        for pair, rate in rates.items():
            rows[row, columns[pairs.index(pair), arc]] = rate
    aim = np.zeros(1 + len(columns))
    aim[0] = 1
    bounds = list(zip(np.zeros(len(upper)), upper, strict=True))
    found = linprog(aim, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=balance, b_eq=due, bounds=bounds, method="highs")
    assert found.status == 0, found.message
    return float(1 / found.fun)


@st.composite
def small_problems(draw: st.DrawFn, *, fixed: bool) -> FlowProblem:
    """A connected graph of 3 to 5 nodes with links of unequal speed, one or two groups, at times pairs beside them."""
    nodes = draw(st.integers(3, 5))
    size = st.sampled_from([1.0, 1.0, 2.0, 0.5])
    links = {(draw(st.integers(0, node - 1)), node): draw(size) for node in range(1, nodes)}
    for _ in range(draw(st.integers(0, 4))):
        one, other = draw(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)))
        if one != other:
            links[min(one, other), max(one, other)] = draw(size)
    at = st.integers(0, nodes - 1)
    spread = draw(st.lists(at, min_size=2, max_size=4).filter(lambda chosen: len(set(chosen)) > 1))
    groups = [[(node, spread.count(node)) for node in sorted(set(spread))]]
    if draw(st.booleans()):
        groups.append([(node, 1) for node in sorted(draw(st.sets(at, min_size=2, max_size=2)))])
    hubs = [any_of(*groups, rate=draw(st.sampled_from([1.0, 0.5])))]
    pairs = []
    if fixed:
        pairs = draw(st.dictionaries(st.tuples(at, at).filter(lambda pair: pair[0] != pair[1]), size, max_size=3))
        pairs = [(*pair, rate) for pair, rate in pairs.items()]
        hubs += [hub([(0, 1), (nodes - 1, 2)], pair_rate=0.25)] if draw(st.booleans()) else []
    ends = draw(st.sampled_from([[], [], [nodes - 1]]))
    return problem_of(nodes, [(*pair, limit) for pair, limit in links.items()], hubs=hubs, pairs=pairs, ends=ends)


@SETTINGS
@given(small_problems(fixed=True))
def test_lower_bound_of_every_permutation(problem: FlowProblem) -> None:
    """No permutation, routed as well as it can be, is worse; the value is that of the routes, permutation by one."""
    found = oblivious_routing(problem)
    graph = graph_of_problem(problem)
    truth = worst_permutation(graph, hose_groups(problem), fixed_part(problem))
    if found is None:
        assert truth == 0
        return
    assert found.throughput <= truth + 1e-9
    assert found.throughput == pytest.approx(listed_throughput(problem, found), rel=1e-9)
    for (source, target), paths in found.routes.items():
        assert sum(weight for _, weight in paths) == pytest.approx(1, abs=1e-12)
        assert all((path[0], path[-1], len(set(path))) == (source, target, len(path)) for path, _ in paths)
        assert all(set(path[1:-1]) <= graph.relays for path, _ in paths)


@settings(SETTINGS, max_examples=60)
@given(small_problems(fixed=False))
def test_the_best_static_routing_of_any(problem: FlowProblem) -> None:
    """For groups alone it is the best static routing there is, though only pairs s < t are variables."""
    found = oblivious_routing(problem)
    if found is not None:
        assert found.throughput == pytest.approx(best_static(problem), rel=1e-6)


def ring(nodes: int) -> list[tuple[int, int, float]]:
    return [(min(node, (node + 1) % nodes), max(node, (node + 1) % nodes), 1.0) for node in range(nodes)]


def mesh(nodes: int) -> list[tuple[int, int, float]]:
    return [(one, other, 1.0) for one in range(nodes) for other in range(one + 1, nodes)]


@pytest.mark.parametrize(
    ("links", "switches", "members", "value"),
    [
        (mesh(4), 4, 4, 4 / 8),  # n switches with m members each: two legs of m / n on every link
        (mesh(6), 6, 3, 6 / 6),
        (ring(6), 6, 1, 4 / 6),  # everyone to the opposite one: n / 4 hops each way, half of it in each direction
        ([(0, 1, 3.0)], 2, 4, 3 / 4),
        ([(node, 4, 2.0) for node in range(4)], 4, 3, 2 / 3),
    ],
)
def test_known_values(links: list[tuple[int, int, float]], switches: int, members: int, value: float) -> None:
    """Meshes, rings, two switches, a star: the values that follow by hand."""
    nodes = 1 + max(other for _, other, _ in links)
    problem = problem_of(nodes, links, hubs=[any_of([(node, members) for node in range(switches)])])
    assert routed(problem).throughput == pytest.approx(value, abs=EXACT)


@pytest.mark.parametrize("pair", [(0, 2, 2.0), (2, 0, 2.0)])
def test_fixed_rates_are_routed_too(pair: tuple[int, int, float]) -> None:
    """What one corner of a square sends to the opposite one takes both ways round."""
    assert routed(problem_of(4, ring(4), pairs=[pair])).throughput == pytest.approx(1.0, abs=EXACT)


def test_a_star_meets_the_cut_of_the_clos() -> None:
    """Where the cut function decides, the program finds the same."""
    problem = problem_of(4, [(0, 3, 2.0), (1, 3, 1.0), (2, 3, 4.0)], hubs=[any_of([(0, 4), (1, 1), (2, 3)])])
    clos = clos_hose(problem)
    assert clos is not None
    assert routed(problem).throughput == pytest.approx(clos.upper, abs=EXACT)
    assert clos.upper == pytest.approx(0.5)


@pytest.mark.parametrize(("rows", "value", "how"), [(9999, 1.0, "oblivious routing"), (0, 0.75, "two legs")])
def test_better_than_two_legs(rows: int, value: float, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three switches in a row, two of them joined by two ways: every permutation passes in full.

    An all-to-all over intermediate members does not, and shortest paths leave one of the ways unused.
    """
    monkeypatch.setattr(oblivious, "MAX_ROWS", rows)
    links = [(0, 1, 0.5), (0, 3, 0.5), (1, 3, 0.5), (1, 2, 1.0)]
    bounds = Judge().hose(problem_of(4, links, hubs=[any_of([(0, 1), (1, 1), (2, 1)])]))
    assert (bounds.lower, bounds.upper, bounds.ecmp) == pytest.approx((value, 1.0, 0.5), abs=EXACT)
    assert bounds.how.startswith(how)


def test_limits() -> None:
    """Too many rows, or a solver without time: no bound in place of a wrong one."""
    problem = problem_of(5, ring(5), hubs=[any_of([(node, 2) for node in range(5)])])
    for name in ("MAX_ROWS", "MAX_NODES", "DETERMINISTIC_TIME"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(oblivious, name, 0)
            assert oblivious_routing(problem) is None
    assert routed(problem).throughput > 0


def test_enough_is_where_it_stops() -> None:
    """The direct way carries a quarter; who asks for no more than that gets no detours of three hops."""
    problem = problem_of(6, [*ring(6)[:5], (0, 5, 0.25)], hubs=[any_of([(0, 1), (5, 1)])])
    first = oblivious_routing(problem, 0.25)
    assert first is not None
    assert first.throughput == pytest.approx(0.25)
    assert routed(problem).throughput == pytest.approx(1.25)


def test_a_bad_routing_is_told_as_bad() -> None:
    """All traffic of a triangle the long way round: two members' worth on every arc."""
    problem = problem_of(3, ring(3), hubs=[any_of([(0, 1), (1, 1), (2, 1)])])
    routes = {
        (one, other): (((one, 3 - one - other, other), 1.0),) for one in range(3) for other in range(3) if one != other
    }
    assert static_throughput(problem, routes) == pytest.approx(0.5)
    with pytest.raises(KeyError):
        static_throughput(problem, {pair: paths for pair, paths in routes.items() if pair != (0, 1)})
    broken = problem_of(3, ring(3)[:2], hubs=problem.hubs)
    with pytest.raises(KeyError):
        static_throughput(broken, routes)


@SETTINGS
@given(st.data())
def test_worst_load_is_that_of_the_worst_assignment(data: st.DataObject) -> None:
    """The worst demand of a group on an arc by listing every way to assign its members to each other."""
    size = data.draw(st.integers(2, 4))
    share = np.array([[0.0 if row == column else data.draw(_PARTS) for column in range(size)] for row in range(size)])
    members = np.array([data.draw(st.integers(1, 2)) for _ in range(size)])
    homes = np.repeat(np.arange(size), members)
    if len(homes) > 6:
        return
    truth = max(float(share[homes, list(image)].sum()) for image in set(permutations(homes.tolist())))
    assert worst_load(share, members) == pytest.approx(truth, abs=1e-9)


_PARTS = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 0.3])


@SETTINGS
@given(small_problems(fixed=True))
def test_ecmp_of_any_is_that_of_the_worst_permutation(problem: FlowProblem) -> None:
    """Even splitting over shortest paths, permutation by permutation, path by path."""
    graph = graph_of_problem(problem)
    truth = min(ecmp_by_paths(graph, rates) for rates in listed_demands(problem))
    assert even_throughput(problem) == pytest.approx(truth, rel=1e-9)
