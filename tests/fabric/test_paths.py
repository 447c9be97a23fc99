"""Flows taken apart into paths."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.fabric.paths import LEAST_WEIGHT, flow_paths

SETTINGS = settings(derandomize=True, max_examples=60, deadline=None, database=None)


def taken(flows: dict[tuple[int, int], float], source: int, wanted: dict[int, float]) -> dict[int, dict]:
    """Paths by destination with their weights."""
    tail, head = (np.array([ends[side] for ends in flows], dtype=np.int64) for side in range(2))
    return {target: dict(paths) for target, paths in flow_paths(tail, head, flows.values(), source, wanted).items()}


def test_shortest_paths_first_and_cycles_left() -> None:
    """Two ways to 3 and a cycle that serves nothing."""
    flows = {(0, 3): 1.0, (0, 1): 3.0, (1, 3): 3.0, (1, 2): 5.0, (2, 1): 5.0}
    found = taken(flows, 0, {3: 4.0})
    assert list(found[3]) == [(0, 3), (0, 1, 3)]
    assert found[3] == pytest.approx({(0, 3): 0.25, (0, 1, 3): 0.75})


def test_the_widest_of_equally_short_paths_first() -> None:
    """A destination that takes in less than arrives gets the widest path alone."""
    for one, other in ((1, 2), (2, 1)):
        flows = {(0, one): 1.0, (one, 3): 1.0, (0, other): 2.0, (other, 3): 2.0}
        for order in (list(flows), list(flows)[::-1]):
            assert taken({arc: flows[arc] for arc in order}, 0, {3: 2.0}) == {3: {(0, other, 3): 1.0}}


def test_dust_is_dropped() -> None:
    """What a solver leaves behind is no path, and what is left adds up to 1."""
    flows = {(0, 1): LEAST_WEIGHT / 10, (0, 2): 1.0, (2, 1): 1.0}
    assert taken(flows, 0, {1: 1.0}) == {1: {(0, 2, 1): 1.0}}


def test_what_is_not_reached_is_missing() -> None:
    """A destination without flow has no paths."""
    assert taken({(0, 1): 1.0}, 0, {1: 1.0, 2: 1.0}) == {1: {(0, 1): 1.0}}


@SETTINGS
@given(
    st.lists(st.tuples(st.permutations(range(1, 6)), st.integers(1, 5), st.sampled_from([0.5, 1.0, 3.0])), min_size=1)
)
def test_paths_of_a_flow_made_of_paths(drawn: list[tuple[list[int], int, float]]) -> None:
    """Paths laid over each other are taken apart into paths that carry as much to everyone, on no arc more."""
    flows: dict[tuple[int, int], float] = {}
    wanted: dict[int, float] = {}
    for order, length, amount in drawn:
        path = [0, *order[:length]]
        wanted[path[-1]] = wanted.get(path[-1], 0.0) + amount
        for arc in pairwise(path):
            flows[arc] = flows.get(arc, 0.0) + amount
    found = taken(flows, 0, wanted)
    load: dict[tuple[int, int], float] = {}
    for target, paths in found.items():
        assert sum(paths.values()) == pytest.approx(1)
        for path, weight in paths.items():
            assert (path[0], path[-1]) == (0, target)
            assert len(set(path)) == len(path)
            for arc in pairwise(path):
                load[arc] = load.get(arc, 0.0) + weight * wanted[target]
    assert found.keys() == wanted.keys()
    assert all(amount <= flows[arc] * (1 + 1e-9) for arc, amount in load.items())
