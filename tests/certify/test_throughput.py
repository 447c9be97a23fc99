"""Throughput of phases on fabrics against the plain LP in which every GPU is a node."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from designer.certify import flow
from designer.certify.certificate import EXACT
from designer.certify.demand import step_groups
from designer.certify.throughput import Bounds, Judge, certify_phases, phase_bounds, step_bounds
from designer.certify.view import FabricView, Failure
from designer.fabric.fabric import LEAF, SPINE, Fabric
from designer.workload.traffic import Component, Phase, Step, Traffic
from tests.certify.fabrics import (
    GBPS,
    SCALE_UP_GBPS,
    Sketch,
    Tree,
    all_to_all,
    clos,
    components,
    irregular,
    mesh,
    phase,
    regular,
    requirements,
    shift,
    traffic,
    worst,
    zcube,
)
from tests.reference.flow_lp import ecmp_by_paths, graph_of, line_rate_gbps, rates_of, throughput, worst_permutation

SETTINGS = settings(
    derandomize=True, max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def bounds_of(
    fabric: Fabric, demands: Traffic, lost: Failure | None = None, policy: str = "spread", judge: Judge | None = None
) -> Bounds:
    """Bounds of the only step of the only phase."""
    (demanded,) = demands.phases
    view = FabricView(fabric, lost, FabricView(fabric))
    return step_bounds(judge or Judge(), view, demands, demanded, demanded.steps[0], SCALE_UP_GBPS, policy)


def truth_of(fabric: Fabric, demands: Traffic, lost: Failure | None = None) -> float:
    """The plain LP of the same."""
    (demanded,) = demands.phases
    lost = lost or Failure()
    rates = rates_of(demands, demanded, demanded.steps[0], line_rate_gbps(fabric, demanded), lost.nodes)
    return throughput(graph_of(fabric, lost.links, lost.nodes), rates)


def ecmp_of(fabric: Fabric, demands: Traffic, lost: Failure | None = None) -> float:
    """Shortest paths listed one by one."""
    (demanded,) = demands.phases
    lost = lost or Failure()
    rates = rates_of(demands, demanded, demanded.steps[0], line_rate_gbps(fabric, demanded), lost.nodes)
    return ecmp_by_paths(graph_of(fabric, lost.links, lost.nodes), rates)


def one_unit(fabric: Fabric) -> bool:
    """Whether all switches are joined."""
    return len(np.unique(FabricView(fabric).attachment[0])) == 1


def assert_holds(bounds: Bounds, truth: float) -> None:
    """The truth lies between the bounds, no more than line rate."""
    assert min(bounds.lower, 1.0) <= truth + EXACT
    assert min(truth, 1.0) <= bounds.upper + EXACT
    assert bounds.lower <= bounds.upper


@st.composite
def cases(draw: st.DrawFn, fabrics: st.SearchStrategy[Fabric], *, failing: bool) -> tuple[Fabric, Traffic, Failure]:
    """A fabric with GPUs that are domains of their own, a demand, and at times what failed between the switches."""
    fabric = draw(fabrics)
    parts = draw(components(fabric.gpus))
    lost = Failure()
    if failing:
        inner = np.flatnonzero(fabric.links.a >= fabric.gpus).tolist()
        above = np.flatnonzero(fabric.nodes.kind > LEAF).tolist()
        links = draw(st.lists(st.sampled_from(inner), max_size=2, unique=True)) if inner else []
        nodes = draw(st.lists(st.sampled_from(above), max_size=1)) if above else []
        dead = draw(st.lists(st.integers(0, fabric.gpus - 1), max_size=1))
        lost = Failure(tuple(links), tuple(nodes + dead))
    return fabric, traffic(fabric.gpus, 1, phase("dp", fabric.gpus, *parts)), lost


@SETTINGS
@given(cases(st.one_of(regular(), irregular()), failing=False))
def test_intact(case: tuple[Fabric, Traffic, Failure]) -> None:
    """On any small fabric and demand the bounds hold the plain LP, and meet at it; ECMP is that of listed paths."""
    fabric, demands, _ = case
    bounds, truth = bounds_of(fabric, demands), truth_of(fabric, demands)
    assert_holds(bounds, truth)
    if one_unit(fabric):
        assert bounds.lower == pytest.approx(truth, abs=EXACT)
        assert bounds.upper == pytest.approx(truth, abs=EXACT)
        assert bounds.ecmp == pytest.approx(ecmp_of(fabric, demands), abs=EXACT)
    if bounds.ecmp is not None:
        assert bounds.ecmp <= bounds.upper + EXACT


@SETTINGS
@given(cases(st.one_of(regular(), irregular()), failing=True))
def test_with_failures(case: tuple[Fabric, Traffic, Failure]) -> None:
    """Links, switches above the leaves and GPUs lost: the bounds hold the plain LP of what is left."""
    fabric, demands, lost = case
    bounds, truth = bounds_of(fabric, demands, lost), truth_of(fabric, demands, lost)
    assert_holds(bounds, truth)
    if one_unit(fabric):
        assert min(bounds.lower, 1) == pytest.approx(min(truth, 1), abs=EXACT)
        assert bounds.ecmp == pytest.approx(ecmp_of(fabric, demands, lost), abs=EXACT)


@settings(SETTINGS, max_examples=25)
@given(cases(st.one_of(regular(), irregular()), failing=True))
def test_without_the_exact_program(case: tuple[Fabric, Traffic, Failure]) -> None:
    """Where symmetry is too small for the exact program, ECMP and colours still hold the plain LP between them."""
    fabric, demands, lost = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "MAX_COLUMNS", 30)
        for policy in ("spread", "single-relay"):
            assert_holds(bounds_of(fabric, demands, lost, policy), truth_of(fabric, demands, lost))


@settings(SETTINGS, max_examples=25)
@given(st.one_of(regular(), irregular()), st.data())
def test_demand_is_the_definition_pair_by_pair(fabric: Fabric, data: st.DataObject) -> None:
    """Groups and pairs of a step add up to the rates written out from the definitions of the patterns."""
    domain = data.draw(st.sampled_from([size for size in (1, 2, 3) if fabric.gpus % size == 0 and fabric.gpus > size]))
    across = data.draw(st.sampled_from(["rail", "cluster"]))
    members = fabric.gpus // domain if across == "rail" else fabric.gpus
    assume(members > 1)
    demands = traffic(fabric.gpus, domain, phase("dp", fabric.gpus, *data.draw(components(members)), across=across))
    (demanded,) = demands.phases
    groups, pairs = step_groups(demands, demanded, demanded.steps[0], GBPS)
    rates: dict[tuple[int, int], float] = {}
    for group in groups:
        for name in np.unique(group.group):
            chosen = group.gpu[group.group == name].tolist()
            for one in chosen:
                for other in chosen:
                    if one != other:
                        rates[one, other] = rates.get((one, other), 0.0) + group.pair_rate
    for flows in pairs:
        for one, other, rate in zip(flows.source.tolist(), flows.target.tolist(), flows.rate.tolist(), strict=True):
            rates[one, other] = rates.get((one, other), 0.0) + rate
    assert rates == pytest.approx(rates_of(demands, demanded, demanded.steps[0], GBPS))


@settings(SETTINGS, max_examples=25)
@given(cases(st.one_of(regular(), irregular()), failing=False), st.randoms(use_true_random=False))
def test_names_of_switches_change_nothing(case: tuple[Fabric, Traffic, Failure], random: st.DataObject) -> None:
    """Switches under other numbers and links in another order: the same bounds and the same ECMP."""
    fabric, demands, _ = case
    image = np.arange(fabric.n_nodes)
    switches = image[fabric.gpus :].tolist()
    random.shuffle(switches)
    image[fabric.gpus :] = switches
    order = np.arange(fabric.n_links)
    random.shuffle(order)
    kind = fabric.nodes.kind[np.argsort(image)]
    links = replace(
        fabric.links, a=image[fabric.links.a][order], b=image[fabric.links.b][order], gbps=fabric.links.gbps[order]
    )
    other = replace(fabric, nodes=replace(fabric.nodes, kind=kind), links=links)
    one, two = bounds_of(fabric, demands), bounds_of(other, demands)
    assert (one.lower, one.upper, one.ecmp) == pytest.approx((two.lower, two.upper, two.ecmp), abs=EXACT)


def two_speeds() -> Fabric:
    """Three leaves in a ring, four GPUs, one of them at half the speed of the others."""
    sketch = Sketch(4)
    first = sketch.switches(3)
    for gpu, leaf in enumerate((0, 0, 1, 2)):
        sketch.links(gpu, first + leaf, GBPS // 2 if gpu == 2 else GBPS)
    sketch.links([first, first, first + 1], [first + 1, first + 2, first + 2], 100)
    return sketch.fabric()


@settings(SETTINGS, max_examples=30)
@given(st.data())
def test_any_holds_the_worst_permutation(data: st.DataObject) -> None:
    """`any`, alone or beside a shift, intact or damaged: between its bounds lies the worst of all permutations."""
    fabric = data.draw(
        st.sampled_from(
            [
                clos(Tree(2, 2, 1)),
                clos(Tree(2, 2, 2)),
                clos(Tree(2, 2, 1, up_gbps=200), planes=2),
                clos(Tree(2, 1, 1, pods=2, up=1)),
                mesh(4, 1, 200),
                mesh(2, 2, 200, 2),
                two_speeds(),
                zcube(2, 4),
            ]
        )
    )
    members, rate = fabric.gpus, data.draw(st.sampled_from([1.0, 0.75, 0.25]))
    size = data.draw(st.sampled_from([members, 2]))
    parts = [worst(size, data.draw(st.sampled_from([1, members // size])), rate)]
    if rate < 1:
        more = st.sampled_from([shift(4, 1), shift(4, 2), all_to_all(4)])
        parts.append(replace(data.draw(more), rate=1 - rate))
    demands = traffic(members, 1, phase("dp", members, *parts))
    inner = np.flatnonzero(fabric.links.a >= members).tolist()
    links = data.draw(st.lists(st.sampled_from(inner), max_size=1)) if inner else []
    lost = Failure(links=tuple(links))
    assert_any_holds(fabric, demands, lost, Component("any", parts[0].stride, size, 1, rate), parts[1:])


def assert_any_holds(fabric: Fabric, demands: Traffic, lost: Failure, hose: Component, rest: list[Component]) -> None:
    """The bounds of a demand with one `any` component hold the truth by enumeration."""
    fixed: dict[tuple[int, int], float] = {}
    line_gbps = line_rate_gbps(fabric, demands.phases[0])
    if rest:
        alone = traffic(fabric.gpus, 1, phase("dp", fabric.gpus, *rest))
        fixed = rates_of(alone, alone.phases[0], alone.phases[0].steps[0], line_gbps)
    period = hose.stride * hose.size
    groups = [
        (hose.rate * line_gbps, [start + residue + hose.stride * digit for digit in range(hose.size)])
        for start in range(0, fabric.gpus, period)
        for residue in range(hose.stride)
    ]
    assert_holds(
        bounds_of(fabric, demands, lost), worst_permutation(graph_of(fabric, lost.links, lost.nodes), groups, fixed)
    )


def test_steps_are_averaged_by_bytes() -> None:
    """A phase is as fast as its steps one after the other: the harmonic mean by bytes, never above line rate."""
    fabric = clos(Tree(2, 2, 1))
    steps = (Step("near", (shift(2),), 3.0), Step("far", (shift(4, 2),), 1.0))
    demanded = Phase("dp", "job", steps, 1.0, 0.0, "rail", 0, 4)
    bounds = phase_bounds(Judge(), FabricView(fabric), traffic(4, 1, demanded), demanded, 0.0, "spread")
    assert bounds.lower == pytest.approx(4 / (3 / 1 + 1 / 0.5))
    assert bounds.upper == pytest.approx(bounds.lower)
    assert bounds.ecmp == pytest.approx(bounds.lower)


def test_a_phase_meets_its_floor_or_not() -> None:
    """Half of what is asked is carried: floor 0.5 holds, 0.6 does not; ECMP counts where it is what is meant."""
    fabric = clos(Tree(2, 2, 1))
    for floor, met in ((0.5, True), (0.6, False)):
        demands = traffic(4, 1, phase("dp", 4, shift(4, 2), floor=floor))
        (result,) = certify_phases(fabric, demands, requirements(), Judge(), 0.0)
        assert (result.met, result.interval.exact, result.required) == (met, True, floor)
    trap = mesh(5, 4)
    demands = traffic(20, 1, phase("dp", 20, shift(20, 4), floor=0.5))
    for routing, met in (("adaptive", True), ("ecmp", False)):
        (result,) = certify_phases(trap, demands, requirements(routing=routing), Judge(), 0.0)
        assert result.met == met
        assert result.interval.lower == pytest.approx(0.625, abs=EXACT)
        assert result.interval.upper == pytest.approx(0.625, abs=EXACT)
        assert result.interval.ecmp == pytest.approx(0.25, abs=EXACT)


def test_equal_problems_are_solved_once() -> None:
    """Eight rails alike are one flow problem."""
    solved = []
    judge = Judge(tick=lambda: solved.append(1))
    fabric = clos(Tree(2, 2, 2), rails=8)
    bounds_of(fabric, traffic(32, 8, phase("dp", 32, all_to_all(4))), judge=judge)
    assert len(solved) == 1


def test_traffic_splits_over_planes_that_place_gpus_differently() -> None:
    """One plane keeps GPUs 0, 1 and 2, 3 on a leaf, the other 0, 2 and 1, 3: each carries what stays on its leaves.

    Even parts would reach half of what the best split does.
    """
    sketch = Sketch(4)
    for homes in ([0, 0, 1, 1], [0, 1, 0, 1]):
        leaf0, spine = sketch.switches(2), sketch.switches(1, SPINE)
        sketch.links(np.arange(4), leaf0 + np.array(homes), GBPS // 2)
        sketch.links(leaf0 + np.arange(2), spine, 100)
    fabric = sketch.fabric()
    demands = traffic(4, 1, phase("dp", 4, all_to_all(4)))
    bounds, truth = bounds_of(fabric, demands), truth_of(fabric, demands)
    assert bounds.ecmp == pytest.approx(truth / 2)
    assert (bounds.lower, bounds.upper) == pytest.approx((truth, truth), abs=EXACT)


@pytest.mark.parametrize("by", [1, 2])
def test_pairs_have_the_ports_to_units_that_both_reach(by: int) -> None:
    """Leaves that nothing joins: 0, 1 and 2, 3 share one in the first plane, 0, 2 and 1, 3 in the second."""
    sketch = Sketch(4)
    for homes in ([0, 0, 1, 1], [0, 1, 0, 1]):
        sketch.links(np.arange(4), sketch.switches(2) + np.array(homes), GBPS // 2)
    demands = traffic(4, 1, phase("dp", 4, Component("exchange", 1, 4, by, 1.0)))
    bounds = bounds_of(sketch.fabric(), demands)
    assert (bounds.lower, bounds.upper) == pytest.approx((0.5, 0.5), abs=EXACT)


def test_planes_that_failed_on_different_rails_are_not_alike() -> None:
    """Rail 0 without its first plane's spine, rail 1 without its second's: each has a whole plane left."""
    fabric = clos(Tree(2, 2, 1, up_gbps=200), rails=2, planes=2)
    demands = traffic(8, 2, phase("dp", 8, shift(4, 2)))
    spines = np.flatnonzero(fabric.nodes.kind == SPINE)
    lost = Failure(nodes=(int(spines[0]), int(spines[3])))
    bounds, truth = bounds_of(fabric, demands, lost), truth_of(fabric, demands, lost)
    assert truth == pytest.approx(0.25)
    assert_holds(bounds, truth)


@pytest.mark.parametrize("joined", [False, True])
def test_rails(joined: bool) -> None:
    """Rail-aligned traffic of four domains on two rails, apart or joined by spines: the plain LP's value."""
    fabric = clos(Tree(4 if joined else 2, 2, 1), rails=2, joined=joined)
    demands = traffic(8, 2, phase("dp", 8, all_to_all(4)))
    bounds = bounds_of(fabric, demands)
    assert bounds.lower == pytest.approx(truth_of(fabric, demands), abs=EXACT)
    assert bounds.upper == pytest.approx(bounds.lower, abs=EXACT)


def test_from_rail_to_rail_without_a_spine() -> None:
    """All-to-all of all GPUs on separate rails goes over the domain: 4 of 5 bytes leave it, NICs carry them at 7/6."""
    fabric = clos(Tree(1, 4, 0), rails=2)
    demands = traffic(8, 2, phase("ep", 8, all_to_all(8), across="cluster"))
    bounds = bounds_of(fabric, demands)
    (demanded,) = demands.phases
    graph = graph_of(fabric, domain=2, scale_up_gbps=SCALE_UP_GBPS)
    truth = throughput(graph, rates_of(demands, demanded, demanded.steps[0], GBPS))
    assert truth == pytest.approx(7 / 6, abs=EXACT)
    assert bounds.lower == pytest.approx(truth, abs=EXACT)
    assert bounds.upper == pytest.approx(truth, abs=EXACT)
