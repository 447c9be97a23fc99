"""`any` against the hose model by enumeration: every permutation of small groups, each solved by the plain LP."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.certify.certificate import EXACT
from designer.certify.hose import clos_hose, worst_rate
from designer.certify.problem import FlowProblem, Hubs
from designer.certify.throughput import Judge
from tests.certify.fabrics import hub, problem_of
from tests.reference.flow_lp import ecmp_by_paths, endpoints_of, graph_of_problem, worst_permutation

SETTINGS = settings(
    derandomize=True, max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def any_of(*groups: list[tuple[int, int]]) -> Hubs:
    """Groups whose members may send at rate 1 to any other; the smallest group sets the rates of the all-to-all."""
    return hub(*groups, pair_rate=1.0 / (max(sum(many for _, many in group) for group in groups) - 1), hose_rate=1.0)


def hose_truth(problem: FlowProblem) -> float:
    """Least throughput over all permutations inside the groups at rate 1, beside the pairs."""
    groups = [(1.0, members) for each in problem.hubs for members in endpoints_of(each.node, each.group, each.members)]
    fixed = {
        (source, target): rate
        for flow in problem.pairs
        for source, target, rate in zip(flow.source.tolist(), flow.target.tolist(), flow.rate.tolist(), strict=True)
    }
    return worst_permutation(graph_of_problem(problem), groups, fixed)


@st.composite
def clos_problems(draw: st.DrawFn) -> FlowProblem:
    """A Clos of two or three tiers with bundles of any size, some links missing, and groups of at most 5 endpoints."""
    leaves = draw(st.integers(2, 4))
    deep = leaves == 4 and draw(st.booleans())
    pods = 2 if deep else 1
    spines = draw(st.integers(1, 2))
    size = st.sampled_from([1.0, 1.0, 2.0, 0.5])
    links = []
    for leaf in range(leaves):
        for spine in range(spines):
            at = leaves + (leaf * pods // leaves) * spines + spine
            if spine == 0 or draw(st.sampled_from([True, True, True, False])):
                links.append((leaf, at, draw(size)))
    top = leaves + pods * spines
    if deep:
        links += [
            (leaves + pod * spines + spine, top + spine, draw(size)) for pod in range(2) for spine in range(spines)
        ]
    nodes = top + (spines if deep else 0)
    members = draw(st.lists(st.integers(0, leaves - 1), min_size=2, max_size=4))
    counts = np.bincount(members, minlength=leaves)
    group = [(leaf, int(count)) for leaf, count in enumerate(counts) if count]
    groups = [group]
    if draw(st.booleans()):
        groups.append([(0, 1), (leaves - 1, 1)])
    groups = [each for each in groups if len(each) > 1] or [[(0, 1), (1, 1)]]
    pairs = [(1, 0, 0.5)] if draw(st.sampled_from([False, False, True])) else []
    return problem_of(nodes, links, hubs=[any_of(*groups)], pairs=pairs)


@SETTINGS
@given(clos_problems())
def test_bounds_on_clos_hold_the_truth(problem: FlowProblem) -> None:
    """Lower and upper bound of any small Clos, uneven and damaged ones too, hold the worst permutation between them."""
    bounds = clos_hose(problem)
    truth = hose_truth(problem)
    if bounds is None:
        return
    assert bounds.lower <= truth + EXACT
    assert truth <= bounds.upper + EXACT


@SETTINGS
@given(clos_problems(), st.randoms(use_true_random=False))
def test_ecmp_on_clos_is_a_floor(problem: FlowProblem, random: st.DataObject) -> None:
    """What is told for ECMP is reached by every permutation that is tried."""
    bounds = clos_hose(problem)
    if bounds is None or bounds.ecmp is None:
        return
    for _ in range(6):
        rates: dict[tuple[int, int], float] = {}
        for flow in problem.pairs:
            rates |= {(int(s), int(t)): float(r) for s, t, r in zip(flow.source, flow.target, flow.rate, strict=True)}
        for members in [m for each in problem.hubs for m in endpoints_of(each.node, each.group, each.members)]:
            image = members.copy()
            random.shuffle(image)
            for source, target in zip(members, image, strict=True):
                if source != target:
                    rates[source, target] = rates.get((source, target), 0.0) + 1.0
        assert bounds.ecmp <= ecmp_by_paths(graph_of_problem(problem), rates) + EXACT


@pytest.mark.parametrize(
    ("leaves", "down", "spines", "bundle", "value"),
    [(2, 2, 2, 1, 1.0), (3, 1, 1, 1, 1.0), (2, 2, 1, 1, 0.5), (2, 2, 3, 1, 1.5)],
)
def test_uniform_clos_is_exact(leaves: int, down: int, spines: int, bundle: int, value: float) -> None:
    """Uplinks over endpoints of a leaf, where the others can take all that it sends."""
    links = [(leaf, leaves + spine, float(bundle)) for leaf in range(leaves) for spine in range(spines)]
    problem = problem_of(leaves + spines, links, hubs=[any_of([(leaf, down) for leaf in range(leaves)])])
    bounds = clos_hose(problem)
    assert bounds is not None
    assert bounds.lower == pytest.approx(value)
    assert bounds.upper == pytest.approx(value)
    assert hose_truth(problem) == pytest.approx(value)


def test_pods_are_cuts_too() -> None:
    """Leaves have links enough, pods have not: the cut around the pod decides."""
    links = [(leaf, 4 + leaf // 2, 2.0) for leaf in range(4)] + [(4, 6, 1.0), (5, 6, 1.0)]
    problem = problem_of(7, links, hubs=[any_of([(leaf, 1) for leaf in range(4)])])
    bounds = clos_hose(problem)
    assert bounds is not None
    assert (bounds.lower, bounds.upper) == pytest.approx((0.5, 0.5))
    assert hose_truth(problem) == pytest.approx(0.5)


@st.composite
def other_problems(draw: st.DrawFn) -> FlowProblem:
    """Meshes and rings of 3 or 4 switches, links of unequal speed, one group of at most 4 endpoints."""
    n = draw(st.integers(3, 4))
    every = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = every if draw(st.booleans()) else [pair for pair in every if pair[1] == pair[0] + 1 or pair == (0, n - 1)]
    links = [(*pair, draw(st.sampled_from([1.0, 1.0, 2.0, 0.5]))) for pair in chosen]
    members = draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=4).filter(lambda at: len(set(at)) > 1))
    counts = np.bincount(members, minlength=n)
    group = [(leaf, int(count)) for leaf, count in enumerate(counts) if count]
    return problem_of(n, links, hubs=[any_of(group)])


@SETTINGS
@given(other_problems())
def test_bounds_on_other_networks_hold_the_truth(problem: FlowProblem) -> None:
    """Half of an all-to-all is a floor of the worst permutation, and a few permutations bound it from above."""
    bounds = Judge().hose(problem)
    truth = hose_truth(problem)
    assert bounds.lower <= truth + EXACT
    assert truth <= bounds.upper + EXACT


def test_members_lost_from_a_group_leave_rates_as_they_were() -> None:
    """Of eight GPUs two are left, each at full rate to the other: all-to-all's pair rate of eight says too little."""
    problem = problem_of(
        3, [(0, 1, 0.2), (1, 2, 0.2), (0, 2, 0.2)], hubs=[hub([(0, 1), (1, 1)], pair_rate=1 / 7, hose_rate=1.0)]
    )
    truth = hose_truth(problem)
    assert truth == pytest.approx(0.4)
    bounds = Judge().hose(problem)
    assert bounds.lower <= truth + EXACT
    assert truth <= bounds.upper + EXACT


def test_what_a_block_may_have_to_send() -> None:
    """`any`: the smaller of what a group has inside and outside. All-to-all: their product. Groups and pairs add up."""
    groups = [[(0, 3), (1, 1)], [(0, 1), (2, 4)]]
    block = np.array([0, 1, 1, -1])
    asked = problem_of(4, [(0, 3, 1.0)], hubs=[hub(*groups, pair_rate=9.0, hose_rate=0.5)])
    assert worst_rate(asked, block, 2).tolist() == [1, 1]
    assert worst_rate(replace(asked, hubs=(hub(*groups),)), block, 2).tolist() == [3 + 4, 3 + 4]
    pairs = problem_of(4, [(0, 3, 1.0)], pairs=[(0, 1, 2.0), (0, 2, 1.0), (1, 0, 2.5)]).pairs
    assert worst_rate(replace(asked, pairs=pairs), block, 2).tolist() == [1 + 3, 1 + 3]
