"""Maximum concurrent flow by symmetry: prototype values, the trap of colours, and the plain LP on random problems."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.certify.certificate import EXACT
from designer.certify.demand import step_demand
from designer.certify.flow import TooLargeError, exact_throughput, upper_bound
from designer.certify.network import unit_problems
from designer.certify.problem import FlowProblem
from designer.certify.symmetry import Orbits, SymmetryFinder
from designer.certify.view import FabricView, Failure
from designer.fabric.fabric import Fabric
from designer.workload.traffic import Component
from tests.certify.fabrics import (
    GBPS,
    SCALE_UP_GBPS,
    Tree,
    all_to_all,
    clos,
    flow_problems,
    hub,
    mesh,
    phase,
    problem_of,
    relabelled,
    shift,
    symmetric_problems,
    traffic,
    zcube,
)
from tests.reference.flow_lp import problem_throughput

SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def problem_for(fabric: Fabric, component: Component, lost: Failure | None = None) -> FlowProblem:
    """The one flow problem of a fabric of one unit whose GPUs all take part."""
    every = traffic(fabric.gpus, 1, phase("dp", fabric.gpus, component))
    (demanded,) = every.phases
    demand = step_demand(FabricView(fabric, lost), every, demanded, demanded.steps[0], GBPS, SCALE_UP_GBPS, "spread")
    ((problem,),) = unit_problems(FabricView(fabric, lost), demand)
    return problem


def exact(problem: FlowProblem) -> float:
    """The exact value, whose flow was checked on every arc."""
    found = exact_throughput(problem, SymmetryFinder(problem).find())
    assert found.checked == pytest.approx(found.value, abs=EXACT)
    return found.value


SMALL = Tree(leaves=3, down=2, spines=2, pods=2, up=1)


@pytest.mark.parametrize(
    ("fabric", "component", "lost", "value"),
    [
        (clos(SMALL), all_to_all(12), Failure(), 0.611111),
        (clos(SMALL), all_to_all(12), Failure(links=(12,)), 0.55),
        (zcube(4, 16), all_to_all(16), Failure(), 1.0),
        (zcube(4, 16), shift(16, 4), Failure(), 1.0),
        (mesh(5, 4), all_to_all(20), Failure(), 1.0),
    ],
    ids=["clos", "clos, a leaf-spine link lost", "zcube, all-to-all", "zcube, shift", "mesh"],
)
def test_prototype_values(fabric: Fabric, component: Component, lost: Failure, value: float) -> None:
    """Small fabrics have the values of the plain LP that the prototype printed."""
    problem = problem_for(fabric, component, lost)
    assert exact(problem) == pytest.approx(value, abs=1e-6)
    assert problem_throughput(problem) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("pods", "lost"), [(32, 0.969667), (128, 0.968979)], ids=["32,768", "131,072"])
def test_prototype_values_of_large_clos(pods: int, lost: float) -> None:
    """All-to-all of 32,768 and of 131,072 endpoints is carried in full; less one leaf-spine link, so much of it."""
    tree = Tree(leaves=32, down=32, spines=32, pods=pods, up=32)
    fabric = clos(tree)
    assert exact(problem_for(fabric, all_to_all(tree.endpoints))) == pytest.approx(1.0, abs=1e-6)
    cut = Failure(links=(tree.endpoints,))
    assert exact(problem_for(fabric, all_to_all(tree.endpoints), cut)) == pytest.approx(lost, abs=1e-6)


def test_prototype_value_of_a_large_zcube() -> None:
    """ZCube(128), 16,384 GPUs, carries all-to-all in full."""
    assert exact(problem_for(zcube(128, 16384), all_to_all(16384))) == pytest.approx(1.0, abs=1e-6)


def test_the_trap_of_colours() -> None:
    """Full mesh 5 x 4, shift 4: colours take all leaf-leaf arcs for alike and say 1.0; the truth is 0.625."""
    problem = problem_for(mesh(5, 4), shift(20, 4))
    assert upper_bound(problem) == pytest.approx(1.0, abs=1e-6)
    assert exact(problem) == pytest.approx(0.625, abs=1e-6)
    assert problem_throughput(problem) == pytest.approx(0.625, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "target", "truth"),
    [(6, [3, 4, 1, 5, 2, 0], 1.0), (6, [3, 0, 5, 2, 1, 4], 0.75), (8, [4, 6, 3, 5, 7, 0, 1, 2], 0.6)],
)
def test_one_colour_far_and_near(n: int, target: list[int], truth: float) -> None:
    """On a ring under a permutation all nodes have one colour; the first is far from its peer, others are near.

    To take the first for all of them would bound the throughput by 2/3, 2/3 and 1/2.
    """
    links = [(min(i, (i + 1) % n), max(i, (i + 1) % n), 1.0) for i in range(n)]
    problem = problem_of(n, links, pairs=[(i, to, 1.0) for i, to in enumerate(target)])
    assert problem_throughput(problem) == pytest.approx(truth, abs=EXACT)
    assert exact(problem) == pytest.approx(truth, abs=EXACT)
    assert upper_bound(problem) >= truth - EXACT


@pytest.mark.parametrize("leaves", [16, 64])
def test_the_trap_on_large_meshes(leaves: int) -> None:
    """A shift between leaves of a large mesh takes the direct link and two hops: (L-1 + 1) / 2 of (L-1) links."""
    down = leaves - 1
    problem = problem_for(mesh(leaves, down), shift(leaves * down, down))
    assert exact(problem) == pytest.approx(leaves / (2 * down), abs=1e-6)


@SETTINGS
@given(flow_problems())
def test_random_problems(problem: FlowProblem) -> None:
    """On any small graph and demand the exact value is the plain LP's, and colours alone are never below it."""
    truth = problem_throughput(problem)
    assert exact(problem) == pytest.approx(truth, abs=EXACT)
    assert upper_bound(problem) >= truth - EXACT


@settings(SETTINGS, max_examples=40)
@given(symmetric_problems(), st.randoms(use_true_random=False))
def test_symmetric_problems(problem: FlowProblem, random: st.DataObject) -> None:
    """With many automorphisms the value is the plain LP's too, and new names for nodes change nothing."""
    truth = problem_throughput(problem)
    assert exact(problem) == pytest.approx(truth, abs=EXACT)
    image = np.arange(problem.nodes)
    random.shuffle(image)
    assert exact(relabelled(problem, image)) == pytest.approx(truth, abs=EXACT)
    assert upper_bound(relabelled(problem, image)) == pytest.approx(upper_bound(problem), abs=EXACT)


@settings(SETTINGS, max_examples=30)
@given(symmetric_problems())
def test_any_group_of_automorphisms_gives_the_value(problem: FlowProblem) -> None:
    """No symmetry at all, every node by itself, gives the same value as all that were found."""
    alone = Orbits(np.arange(problem.nodes), np.arange(len(problem.tail)), 0)
    assert exact_throughput(problem, alone).value == pytest.approx(exact(problem), abs=EXACT)


def test_endpoint_links_bound_the_value() -> None:
    """`most` is never exceeded; without demand it is the value."""
    problem = problem_of(2, [(0, 1, 8.0)], pairs=[(0, 1, 1.0)])
    assert exact(problem) == pytest.approx(8.0)
    assert exact(replace(problem, most=0.75)) == pytest.approx(0.75)
    assert exact(replace(problem, pairs=(), most=0.75)) == pytest.approx(0.75)


def test_demand_without_a_way_is_not_carried() -> None:
    """Two islands: throughput 0, whatever the rest carries."""
    problem = problem_of(4, [(0, 1, 1.0), (2, 3, 1.0)], hubs=[hub([(0, 1), (1, 1), (2, 1)])])
    assert exact(problem) == pytest.approx(0.0, abs=EXACT)


def test_nodes_that_do_not_relay() -> None:
    """A path over an endpoint is no path: only the way round counts."""
    links = [(0, 1, 1.0), (1, 2, 1.0), (0, 3, 0.25), (3, 2, 0.25)]
    assert exact(problem_of(4, links, pairs=[(0, 2, 1.0)])) == pytest.approx(1.25)
    assert exact(problem_of(4, links, pairs=[(0, 2, 1.0)], ends=[1])) == pytest.approx(0.25)


def test_too_many_columns() -> None:
    """A program beyond the limit is refused, not solved."""
    problem = problem_for(clos(SMALL), all_to_all(12))
    with pytest.raises(TooLargeError):
        exact_throughput(problem, SymmetryFinder(problem).find(), most_columns=3)
