"""ECMP by classes against shortest paths listed one by one."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.certify import ecmp
from designer.certify.certificate import EXACT
from designer.certify.ecmp import ecmp_throughput
from designer.certify.problem import FlowProblem
from designer.certify.symmetry import SymmetryFinder
from tests.certify.fabrics import flow_problems, hub, problem_of, relabelled, symmetric_problems
from tests.reference.flow_lp import ecmp_by_paths, graph_of_problem, problem_throughput, rates_of_problem

SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def by_classes(problem: FlowProblem) -> float:
    found = ecmp_throughput(problem, SymmetryFinder(problem).find())
    assert found is not None
    return found


@SETTINGS
@given(flow_problems())
def test_random_problems(problem: FlowProblem) -> None:
    """The same as over all shortest paths listed, and no more than the best splitting carries."""
    listed = ecmp_by_paths(graph_of_problem(problem), rates_of_problem(problem))
    assert by_classes(problem) == pytest.approx(listed, abs=EXACT)
    assert listed <= problem_throughput(problem) + EXACT


@settings(SETTINGS, max_examples=40)
@given(symmetric_problems(), st.randoms(use_true_random=False))
def test_symmetric_problems(problem: FlowProblem, random: st.DataObject) -> None:
    """With many automorphisms one destination of each class tells all; new names change nothing."""
    listed = ecmp_by_paths(graph_of_problem(problem), rates_of_problem(problem))
    assert by_classes(problem) == pytest.approx(listed, abs=EXACT)
    image = np.arange(problem.nodes)
    random.shuffle(image)
    assert by_classes(relabelled(problem, image)) == pytest.approx(listed, abs=EXACT)


def test_links_count_not_capacity() -> None:
    """Two links one way and one the other: two thirds go the first way, whatever the links' speeds."""
    links = [(0, 1, 2.0), (0, 2, 1.0), (1, 3, 9.0), (2, 3, 9.0)]
    problem = problem_of(4, links, pairs=[(0, 3, 1.0)], links_of=[2, 1, 1, 1])
    assert by_classes(problem) == pytest.approx(3.0)
    faster = problem_of(4, [(0, 1, 2.0), (0, 2, 4.0), *links[2:]], pairs=[(0, 3, 1.0)], links_of=[2, 1, 1, 1])
    assert by_classes(faster) == pytest.approx(3.0)


def test_a_longer_way_is_not_used() -> None:
    """The direct link carries all, though a detour of two hops is free."""
    problem = problem_of(3, [(0, 1, 0.5), (0, 2, 9.0), (1, 2, 9.0)], pairs=[(0, 1, 1.0)])
    assert by_classes(problem) == pytest.approx(0.5)


def test_no_way() -> None:
    """Demand between islands: 0."""
    assert by_classes(problem_of(3, [(0, 1, 1.0)], hubs=[hub([(0, 1), (2, 1)])])) == 0


def test_too_much_work_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the answer is that it is not known."""
    monkeypatch.setattr(ecmp, "MAX_WORK", 1)
    problem = problem_of(3, [(0, 1, 1.0), (1, 2, 1.0)], pairs=[(0, 2, 1.0)])
    assert ecmp_throughput(problem, SymmetryFinder(problem).find()) is None
