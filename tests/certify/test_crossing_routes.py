"""Crossing routes of grids: never above the plain LP, even splitting as the general count, no claim elsewhere."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.certify.crossing_routes import damaged_grid_throughput, grid_throughput
from designer.certify.demand import step_demand
from designer.certify.ecmp import ecmp_throughput
from designer.certify.network import unit_problems
from designer.certify.symmetry import apart_orbits
from designer.certify.view import FabricView, Failure
from designer.fabric.fabric import Fabric
from designer.workload.traffic import Component
from tests.certify.fabrics import GBPS, SCALE_UP_GBPS, all_to_all, mesh, phase, shift, traffic, zcube
from tests.certify.test_flow import problem_for
from tests.reference.flow_lp import problem_throughput

DEMANDS = [all_to_all(12), all_to_all(4), all_to_all(3, 4), shift(12, 1), shift(12, 4), shift(4, 1, 3), shift(6, 3)]


@pytest.mark.parametrize(("columns", "demand"), list(product((3, 4, 5), DEMANDS)), ids=str)
def test_crossing_is_below_the_truth_and_ecmp_is_the_general_one(columns: int, demand: Component) -> None:
    """On grids of 12 GPUs, the last row short or not: crossing <= plain LP, ECMP equal to the count over all paths."""
    problem = problem_for(zcube(columns, 12), demand)
    found = grid_throughput(problem)
    assert found is not None
    truth = problem_throughput(problem)
    assert found.crossing <= truth + 1e-6
    assert found.ecmp == pytest.approx(ecmp_throughput(problem, apart_orbits(problem)), abs=1e-9)


@settings(derandomize=True, max_examples=25, deadline=None, database=None)
@given(columns=st.integers(2, 5), gpus=st.integers(4, 14), by=st.integers(1, 13), share=st.floats(0.1, 0.9))
def test_mixed_steps(columns: int, gpus: int, by: int, share: float) -> None:
    """A shift beside an all-to-all, at any rates: still below the plain LP, and the same ECMP."""
    parts = shift(gpus, by % gpus or 1, rate=share), all_to_all(gpus, rate=1 - share)
    every = traffic(gpus, 1, phase("dp", gpus, *parts))
    view = FabricView(zcube(columns, gpus))
    demand = step_demand(view, every, every.phases[0], every.phases[0].steps[0], GBPS, SCALE_UP_GBPS, "spread")
    ((problem,),) = unit_problems(view, demand)
    found = grid_throughput(problem)
    assert found is not None
    assert found.crossing <= problem_throughput(problem) + 1e-6
    assert found.ecmp == pytest.approx(ecmp_throughput(problem, apart_orbits(problem)), abs=1e-9)


def test_a_square_grid_carries_every_shift_in_full() -> None:
    """Rows to rows, along a row and to another row: 1 by crossing routes, where even splitting stays at a half."""
    for by in (1, 4, 5):
        found = grid_throughput(problem_for(zcube(4, 16), shift(16, by)))
        assert found is not None
        assert found.crossing == pytest.approx(1.0, abs=1e-12)
    along = grid_throughput(problem_for(zcube(4, 16), shift(4, 1)))
    assert along is not None
    assert (along.crossing, along.ecmp) == (pytest.approx(1.0), pytest.approx(0.5))


@pytest.mark.parametrize(
    ("fabric", "lost"),
    [(mesh(4, 4), Failure()), (zcube(4, 16), Failure(links=(32,))), (zcube(4, 16), Failure(links=(0,)))],
    ids=["a mesh", "a link between switches lost", "a host link lost"],
)
def test_no_claim_where_it_is_no_whole_grid(fabric: Fabric, lost: Failure) -> None:
    """Endpoints with one port, or a route without its link: the general means decide."""
    assert grid_throughput(problem_for(fabric, all_to_all(16), lost)) is None


@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(
    columns=st.integers(2, 5),
    gpus=st.integers(6, 14),
    by=st.integers(1, 13),
    lost=st.lists(st.integers(0, 10_000), max_size=2),
    switch=st.booleans(),
)
def test_routes_around_what_is_lost_are_below_the_truth(columns, gpus, by, lost, switch) -> None:
    """Links and switches lost at random: the routes around them carry no more than the plain LP says is possible."""
    fabric = zcube(columns, gpus)
    links = tuple(number % fabric.n_links for number in lost)
    nodes = (gpus + (lost or [0])[0] % (fabric.n_nodes - gpus),) if switch else ()
    problem = problem_for(fabric, shift(gpus, by % gpus or 1), Failure(links, nodes))
    found = damaged_grid_throughput(problem)
    if found is not None:
        assert found <= problem_throughput(problem) + 1e-6


def test_values_around_a_lost_link_and_a_lost_switch() -> None:
    """Less a link between switches nearly all is left; less a switch, half, as its GPUs have one port left."""
    link = damaged_grid_throughput(problem_for(zcube(8, 64), shift(64, 9), Failure(links=(128,))))
    assert link is not None
    assert 7 / 8 <= link < 1
    switch = damaged_grid_throughput(problem_for(zcube(8, 64), shift(64, 9), Failure(nodes=(64,))))
    assert switch == pytest.approx(0.5)
