"""The programs of routes on graphs drawn by hand: throughput, hops, both directions, the worst demand of an arc."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from designer.formulation.route_programs import ConcurrentFlow, Ends, RouteProblem, Routes, StaticFlow, worst_loads
from designer.formulation.routing import best_routes, carried, cut_bound, two_legs

SETTINGS = settings(
    derandomize=True, max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
Links = dict[tuple[int, int], float]


def problem_of(
    nodes: int, links: Links, rates: dict[Ends, float], hoses: list[tuple[list[tuple[int, int]], float]] | None = None
) -> RouteProblem:
    """A problem whose endpoints' ports carry everything."""
    a, b = (np.array([ends[side] for ends in links], dtype=np.int64) for side in range(2))
    many = tuple((tuple(members), rate) for members, rate in hoses or [])
    return RouteProblem(nodes, a, b, np.array(list(links.values())), rates, many, np.inf)


SQUARE: Links = {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0, (0, 3): 1.0}
MESH: Links = {(one, other): 1.0 for one in range(5) for other in range(one + 1, 5)}


def mean_hops(routes: Routes, rates: dict[Ends, float]) -> float:
    """Hops of a unit of traffic."""
    total = sum(rate * weight * (len(path) - 1) for ends, rate in rates.items() for path, weight in routes[ends])
    return total / sum(rates.values())


def plain(problem: RouteProblem, enough: float) -> tuple[float, float]:
    """Largest throughput up to `enough`, and fewest hops of a unit of traffic at it, with a flow for every pair."""
    pairs, arcs = list(problem.rates), len(problem.tail)
    columns = 1 + len(pairs) * arcs
    balance = np.zeros((len(pairs) * problem.nodes, columns))
    load = np.zeros((arcs, columns))
    for number, (source, target) in enumerate(pairs):
        start, row = 1 + number * arcs, number * problem.nodes
        for arc in range(arcs):
            balance[row + problem.head[arc], start + arc] += 1
            balance[row + problem.tail[arc], start + arc] -= 1
            load[arc, start + arc] = 1
        balance[row + target, 0] = -problem.rates[source, target]
        balance[row + source, 0] = problem.rates[source, target]
    due, lowest, aim = np.zeros(len(balance)), 0.0, np.zeros(columns)
    aim[0] = -1
    for _ in range(2):
        bounds = [(lowest, enough)] + [(0, None)] * (columns - 1)
        found = linprog(aim, load, problem.capacity, balance, due, bounds, method="highs")
        assert found.status == 0, found.message
        lowest = float(found.x[0]) * (1 - 1e-7)
        enough, aim = lowest, np.where(np.arange(columns) > 0, 1.0, 0.0)
    return lowest, float(found.fun) / (lowest * sum(problem.rates.values()))


@st.composite
def problems(draw: st.DrawFn) -> RouteProblem:
    """A connected graph of 3 to 6 nodes and what some of them send."""
    nodes = draw(st.integers(3, 6))
    size = st.sampled_from([1.0, 2.0, 0.5])
    links: Links = {(draw(st.integers(0, node - 1)), node): draw(size) for node in range(1, nodes)}
    at = st.integers(0, nodes - 1)
    for one, other in draw(st.lists(st.tuples(at, at), max_size=6)):
        if one != other:
            links[min(one, other), max(one, other)] = draw(size)
    ends = st.tuples(at, at).map(lambda pair: pair if pair[0] != pair[1] else (pair[0], (pair[0] + 1) % nodes))
    return problem_of(nodes, links, draw(st.dictionaries(ends, size, min_size=1, max_size=4)))


@SETTINGS
@given(problems(), st.sampled_from([0.25, 1.0, 100.0]))
def test_fewest_hops_at_the_largest_throughput(problem: RouteProblem, enough: float) -> None:
    """No routing that carries as much, or as much as is asked for, has fewer hops."""
    routes = ConcurrentFlow(problem, problem.nodes, enough).routes()
    assert routes is not None
    throughput, hops = plain(problem, enough)
    assert throughput <= cut_bound(problem) + 1e-6
    assert carried(problem, routes) >= min(1.0, throughput) - 1e-6
    assert mean_hops(routes, dict(problem.rates)) == pytest.approx(hops, abs=1e-5)


def test_pods_are_cuts_too() -> None:
    """Leaves 0 .. 3 have links enough to spines 4 and 5, these to core 6 have not: fixed rates and `any` alike."""
    links: Links = {(leaf, 4 + leaf // 2): 2.0 for leaf in range(4)} | {(4, 6): 1.0, (5, 6): 1.0}
    every = [(leaf, 1) for leaf in range(4)]
    assert cut_bound(problem_of(7, links, {(0, 2): 1.0, (1, 3): 1.0})) == pytest.approx(0.5)
    assert cut_bound(problem_of(7, links, {(2, 0): 1.0, (3, 0): 1.0, (0, 1): 1.0})) == pytest.approx(0.5)
    assert cut_bound(problem_of(7, links, {(0, 2): 1.0, (0, 1): 8.0})) == pytest.approx(2 / 9)
    assert cut_bound(problem_of(7, links, {}, [(every, 1.0)])) == pytest.approx(0.5)
    assert cut_bound(problem_of(7, links, {}, [(every[:3], 1.0)])) == pytest.approx(1.0)


def test_cuts_of_nodes() -> None:
    """A corner of a square with two links: what it sends, what it takes in, what `any` may ask of it."""
    assert cut_bound(problem_of(4, SQUARE, {(0, 1): 3.0, (0, 2): 3.0})) == pytest.approx(1 / 3)
    assert cut_bound(problem_of(4, SQUARE, {(1, 0): 3.0, (2, 0): 3.0})) == pytest.approx(1 / 3)
    assert cut_bound(problem_of(4, SQUARE, {}, [([(0, 5), (1, 1), (2, 2)], 1.0)])) == pytest.approx(2 / 3)


def test_two_legs_go_over_members_by_their_number() -> None:
    """Half of the members sit at switch 0: half of what 1 sends to 2 goes there first, the rest directly."""
    links: Links = {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 1.0}
    routes = two_legs(problem_of(3, links, {}, [([(0, 2), (1, 1), (2, 1)], 1.0)]))
    assert dict(routes[1, 2]) == pytest.approx({(1, 2): 0.5, (1, 0, 2): 0.5})
    assert dict(routes[1, 0]) == pytest.approx({(1, 0): 0.75, (1, 2, 0): 0.25})


def test_any_has_fewest_hops_too() -> None:
    """Where direct links carry it all, nothing takes two hops, whatever the program would allow."""
    problem = problem_of(5, MESH, {}, [([(node, 1) for node in range(5)], 1.0)])
    routes = StaticFlow(problem, 5, 1.0).routes()
    assert routes is not None
    assert all(path == ends for ends, weighted in routes.items() for path, _ in weighted)


@pytest.mark.parametrize("ends", [(0, 2), (2, 0)])
def test_fixed_rates_beside_any_take_both_ways(ends: Ends) -> None:
    """What one corner of a square sends to the opposite one takes both ways round, in either direction."""
    problem = problem_of(4, SQUARE, {ends: 2.0}, [([(1, 1), (3, 1)], 1e-9)])
    routes = StaticFlow(problem, 4, 1.0).routes()
    assert routes is not None
    assert carried(problem, routes) == pytest.approx(1.0, abs=1e-6)


def test_paths_backwards_are_the_same() -> None:
    """`any` goes back the way it came."""
    problem = problem_of(4, SQUARE | {(1, 3): 2.0}, {}, [([(0, 2), (2, 1), (3, 2)], 1.0)])
    routes, _ = best_routes(problem)
    for (source, target), weighted in routes.items():
        assert {path[::-1]: weight for path, weight in weighted} == dict(routes[target, source])


@SETTINGS
@given(st.data())
def test_worst_loads_are_those_of_the_worst_assignment(data: st.DataObject) -> None:
    """Several arcs at once, each against every way to assign members to each other."""
    size = data.draw(st.integers(2, 3))
    members = tuple((node, data.draw(st.integers(1, 2))) for node in range(size))
    part = st.sampled_from([0.25, 0.5, 1.0, 0.3])
    pairs = st.sampled_from(list(permutations(range(size), 2)))
    shares = {arc: data.draw(st.dictionaries(pairs, part, min_size=1)) for arc in (3, 7)}
    found = worst_loads(members, shares)
    homes = [node for node, many in members for _ in range(many)]
    for arc, crossing in shares.items():
        images = set(permutations(homes))
        listed = [sum(crossing.get(ends, 0.0) for ends in zip(homes, image, strict=True)) for image in images]
        assert found[arc] == pytest.approx(max(listed), abs=1e-7)
