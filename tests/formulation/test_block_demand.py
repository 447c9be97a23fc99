"""Demands between blocks against flows written out GPU by GPU; which demands cover others; which GPUs are alike."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.formulation.block_demand import (
    BlockDemand,
    Hose,
    TooManyStepsError,
    block_demands,
    interchangeable,
    uncovered,
)
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Phase, Step, Traffic
from tests.formulation.placements import demand
from tests.reference.explicit import step_flows, turns
from tests.strategies import Document, catalog, clusters, demands, instance_of, switch

SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
LINE_GBPS = 400.0
CATALOG = catalog({"s8": switch(8, 1000)})


def traffic_of(cluster: Document, workload: list[Document], **floors: float) -> Traffic:
    return derive_traffic(instance_of(CATALOG, cluster, workload, requirements={"throughput": floors}))


def explicit(traffic: Traffic, phase: Phase, step: Step, block: np.ndarray, line: np.ndarray) -> BlockDemand:
    """The step flow by flow, each GPU at the floor of the slowest port of the phase."""
    fixed, worst = step_flows(traffic, phase, step)
    rate = phase.floor * min(line[phase.first_gpu : phase.first_gpu + phase.gpus])
    gbps = np.zeros((block.max() + 1,) * 2)
    for source, target, part in fixed:
        if block[source] != block[target]:
            gbps[block[source], block[target]] += rate * part
    hoses = [
        Hose(rate * part, np.bincount(block[list(gpus)], minlength=block.max() + 1))
        for part, gpus in worst
        if len(set(block[list(gpus)])) > 1
    ]
    return BlockDemand("explicit", gbps, tuple(hoses))


def key(asked: BlockDemand) -> tuple:
    """What a demand asks, whatever its name."""
    hoses = sorted((round(hose.gbps, 6), *hose.members.tolist()) for hose in asked.hoses)
    return tuple(asked.gbps.round(6).reshape(-1).tolist()), tuple(hoses)


@st.composite
def blocked(draw: st.DrawFn) -> tuple[Traffic, np.ndarray, np.ndarray]:
    """Traffic of a small cluster, a block for each GPU and the rate of its port."""
    cluster = draw(clusters(6, 3))
    workload = [draw(demands(cluster)) for _ in range(draw(st.sampled_from([1, 1, 2])))]
    floors = {item["demand"]: draw(st.sampled_from([1.0, 0.5])) for item in workload}
    traffic = traffic_of(cluster, workload, **floors)
    many = draw(st.integers(2, 5))
    block = draw(st.lists(st.integers(0, many - 1), min_size=traffic.gpus, max_size=traffic.gpus))
    line = draw(st.lists(st.sampled_from([400.0, 200.0]), min_size=traffic.gpus, max_size=traffic.gpus))
    return traffic, np.unique(block, return_inverse=True)[1].reshape(-1), np.array(line)


@SETTINGS
@given(blocked())
def test_steps_are_what_the_flows_add_up_to(case: tuple[Traffic, np.ndarray, np.ndarray]) -> None:
    """Every demand is a step written out, and every step is one of the demands or lies within one."""
    traffic, block, line = case
    found = block_demands(traffic, block, line)
    steps = [explicit(traffic, phase, step, block, line) for phase in traffic.network_phases for step in phase.steps]
    assert {key(asked) for asked in found} <= {key(step) for step in steps}
    for step in steps:
        assert not step.asks or any(step.within(asked) for asked in found)


def test_jobs_side_by_side_add_up_and_jobs_on_the_same_gpus_take_turns() -> None:
    """Each pair of steps of the two jobs on separate halves; the third job, on the second half, stands in for one."""
    workload = [
        {"name": "left", "demand": "halving-doubling", "gpus": 4},
        {"name": "right", "demand": "any", "first_gpu": 4, "gpus": 4},
        {"name": "turn", "demand": "ring", "first_gpu": 4, "gpus": 4},
    ]
    traffic = traffic_of({"gpus": 8}, workload, left=0.5)
    block, line = np.array([0, 0, 1, 1, 0, 1, 2, 3]), np.full(8, LINE_GBPS)
    (left, right) = turns(traffic)
    expected = [
        (one, other)
        for one in (explicit(traffic, phase, step, block, line) for phase in left for step in phase.steps)
        for other in (explicit(traffic, phase, step, block, line) for phase in right for step in phase.steps)
    ]
    assert len(expected) == 2 * 2
    sums = {key(BlockDemand("", one.gbps + other.gbps, one.hoses + other.hoses)) for one, other in expected}
    assert {key(asked) for asked in block_demands(traffic, block, line)} <= sums
    assert len(block_demands(traffic, block, line)) == 2, "the step of halving-doubling inside the blocks asks nothing"


def test_a_phase_runs_at_its_slowest_port() -> None:
    traffic = traffic_of({"gpus": 4}, [{"demand": "ring"}, {"name": "fast", "demand": "shift", "by": 1, "gpus": 2}])
    line = np.array([400.0, 400.0, 400.0, 200.0])
    found = {asked.name: asked.gbps for asked in block_demands(traffic, np.arange(4), line)}
    assert {name: gbps.max() for name, gbps in found.items()} == {"ring ring": 200.0, "fast fast": 400.0}


def test_too_many_steps_at_once_are_refused() -> None:
    """Seven jobs of three steps each would be 2,187 choices."""
    workload = [
        {"name": f"job-{number}", "demand": "halving-doubling", "first_gpu": 8 * number, "gpus": 8}
        for number in range(7)
    ]
    traffic = traffic_of({"gpus": 56}, workload)
    with pytest.raises(TooManyStepsError, match="more than 64"):
        block_demands(traffic, np.arange(56), np.full(56, LINE_GBPS))


RATES = demand({(0, 1): 100.0}, 2)
HALF = Hose(100.0, np.array([2, 2]))
WHOLE = Hose(200.0, np.array([2, 2]))


@pytest.mark.parametrize(
    ("one", "other", "covered"),
    [
        (RATES, RATES, True),
        (RATES.at(0.5), RATES, True),
        (RATES, RATES.at(0.5), False),
        (demand({(1, 0): 100.0}, 2), RATES, False),
        (demand({}, 2, [HALF]), demand({}, 2, [WHOLE]), True),
        (demand({}, 2, [WHOLE]), demand({}, 2, [HALF]), False),
        (demand({}, 2, [HALF, HALF]), demand({}, 2, [WHOLE]), True),
        (demand({}, 2, [WHOLE, WHOLE]), demand({}, 2, [WHOLE, HALF]), False),
        (demand({}, 2, [Hose(100.0, np.array([4, 1]))]), demand({}, 2, [WHOLE]), True),
        (demand({}, 2, [HALF]), RATES, False),
    ],
)
def test_covering(one: BlockDemand, other: BlockDemand, covered: bool) -> None:
    """What a network that carries the other carries for certain; two hoses need room for both."""
    assert one.within(other) == covered


def test_of_equal_demands_one_is_kept() -> None:
    assert [asked.gbps.sum() for asked in uncovered([RATES.at(0.5), RATES, RATES])] == [100.0]
    apart = [RATES, demand({(1, 0): 100.0}, 2)]
    assert len(uncovered(apart)) == 2


@pytest.mark.parametrize(
    ("workload", "cluster", "alike"),
    [
        ({"demand": "all-to-all"}, {"gpus": 8}, True),
        ({"demand": "any"}, {"gpus": 8}, True),
        ({"demand": "ring"}, {"gpus": 8}, False),
        ({"demand": "all-to-all", "group": 4}, {"gpus": 8}, False),
        ({"demand": "all-to-all", "gpus": 6}, {"gpus": 8}, False),
        ({"demand": "all-to-all"}, {"gpus": 8, "hb_domain": 2}, False),
        ({"demand": "all-to-all", "across": "cluster"}, {"gpus": 8, "hb_domain": 2}, True),
    ],
)
def test_endpoints_that_can_be_swapped(workload: Document, cluster: Document, alike: bool) -> None:
    """Exactly those whose swapping changes no step: of the first two GPUs, and of all where they are alike."""
    traffic = traffic_of(cluster, [workload])
    assert interchangeable(traffic) == alike
    line, gpus = np.full(8, LINE_GBPS), np.arange(8)
    asked = {key(item) for item in block_demands(traffic, gpus, line)}
    same = []
    for one, other in permutations(range(8), 2):
        order = gpus.copy()
        order[[one, other]] = order[[other, one]]
        same.append({key(item) for item in block_demands(traffic, order, line)} == asked)
    assert all(same) == alike


def test_a_share_scales_rates_and_hoses() -> None:
    asked = replace(RATES, hoses=(WHOLE,)).at(0.25)
    assert asked.gbps[0, 1] == 25.0
    assert [hose.gbps for hose in asked.hoses] == [50.0]
