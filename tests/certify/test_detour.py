"""Traffic of GPUs without a NIC over their HB domain, against the plain LP with NVSwitch nodes and GPUs that relay."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.certify.certificate import EXACT
from designer.certify.throughput import Bounds, Judge, step_bounds
from designer.certify.view import FabricView, Failure
from designer.fabric.fabric import LEAF, Fabric
from designer.workload.traffic import Component, Traffic
from tests.certify.fabrics import (
    GBPS,
    SCALE_UP_GBPS,
    Tree,
    all_to_all,
    clos,
    components,
    irregular,
    phase,
    shift,
    traffic,
    worst,
)
from tests.reference.flow_lp import graph_of, line_rate_gbps, rates_of, throughput

SETTINGS = settings(
    derandomize=True, max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def bounds_of(
    fabric: Fabric, demands: Traffic, lost: Failure, policy: str, scale_up_gbps: float = SCALE_UP_GBPS
) -> Bounds:
    """Bounds of the only step under a policy."""
    (demanded,) = demands.phases
    view = FabricView(fabric, lost, FabricView(fabric))
    return step_bounds(Judge(), view, demands, demanded, demanded.steps[0], scale_up_gbps, policy)


def truth_of(fabric: Fabric, demands: Traffic, lost: Failure, scale_up_gbps: float = SCALE_UP_GBPS) -> float:
    """The plain LP with the domains' NVSwitches; domains without any NIC take no part."""
    (demanded,) = demands.phases
    domain = demands.hb_domain
    graph = graph_of(fabric, lost.links, lost.nodes, domain=domain, scale_up_gbps=scale_up_gbps)
    has_nic = {a for a, b, _ in graph.links if a < fabric.gpus and b < fabric.n_nodes}
    alive = {gpu // domain for gpu in has_nic}
    rates = rates_of(demands, demanded, demanded.steps[0], line_rate_gbps(fabric, demanded), lost.nodes)
    left = {pair: rate for pair, rate in rates.items() if {gpu // domain for gpu in pair} <= alive}
    return throughput(graph, left)


def leaf_of(fabric: Fabric, gpu: int) -> int:
    """The leaf of a GPU's first link."""
    return int(fabric.links.b[np.flatnonzero(fabric.links.a == gpu)[0]])


def dp(fabric: Fabric, domain: int, *parts: Component, across: str = "rail") -> Traffic:
    """One phase on all GPUs."""
    return traffic(fabric.gpus, domain, phase("dp", fabric.gpus, *parts, across=across))


@pytest.mark.parametrize("domain", [2, 4, 8])
@pytest.mark.parametrize("part", ["all-to-all", "ring"])
@pytest.mark.parametrize("what", ["nic", "leaf"])
def test_a_lost_nic_or_leaf(domain: int, part: str, what: str) -> None:
    """One of K NICs, or the leaf of one rail: (K-1)/K is left spread over the peers, as by the plain LP; 1/2 by one."""
    fabric = clos(Tree(2, 2, 2), rails=domain)
    demands = dp(fabric, domain, all_to_all(4) if part == "all-to-all" else shift(4))
    lost = Failure(links=(0,)) if what == "nic" else Failure(nodes=(leaf_of(fabric, 0),))
    spread = bounds_of(fabric, demands, lost, "spread")
    assert spread.lower == pytest.approx((domain - 1) / domain, abs=EXACT)
    assert spread.upper == pytest.approx((domain - 1) / domain, abs=EXACT)
    assert truth_of(fabric, demands, lost) == pytest.approx((domain - 1) / domain, abs=EXACT)
    single = bounds_of(fabric, demands, lost, "single-relay")
    assert (single.lower, single.upper) == pytest.approx((0.5, 0.5), abs=EXACT)
    assert spread.cut_off == single.cut_off == 0


@pytest.mark.parametrize("policy", ["spread", "single-relay"])
def test_without_a_domain_gpus_are_cut_off(policy: str) -> None:
    """GPUs alone in their domains have no peer: those on the lost leaf are counted, the others carry on."""
    fabric = clos(Tree(3, 2, 2))
    found = bounds_of(fabric, dp(fabric, 1, all_to_all(6)), Failure(nodes=(leaf_of(fabric, 0),)), policy)
    assert found.cut_off == 2
    assert found.lower >= 1 - EXACT
    any_found = bounds_of(fabric, dp(fabric, 1, worst(6)), Failure(nodes=(leaf_of(fabric, 0),)), policy)
    assert (any_found.cut_off, any_found.lower) == (2, pytest.approx(1.0))


def test_a_domain_without_any_nic_is_cut_off() -> None:
    """All NICs of one domain lost: its GPUs are cut off, however many peers they have."""
    fabric = clos(Tree(1, 3, 0), rails=2)
    lost = Failure(links=tuple(np.flatnonzero(fabric.links.a < 2).tolist()))
    for policy in ("spread", "single-relay"):
        assert bounds_of(fabric, dp(fabric, 2, all_to_all(3)), lost, policy).cut_off == 2
        assert bounds_of(fabric, dp(fabric, 2, worst(3)), lost, policy).cut_off == 2


def test_two_lost_nics_take_different_relays() -> None:
    """Two of four NICs of a domain lost: one relay each, 1/2; with three lost, one NIC carries all four, 1/4."""
    fabric = clos(Tree(1, 4, 0), rails=4)
    demands = dp(fabric, 4, all_to_all(4))
    for gone, left in ((2, 1 / 2), (3, 1 / 4)):
        lost = Failure(links=tuple(np.flatnonzero(fabric.links.a < gone).tolist()))
        assert bounds_of(fabric, demands, lost, "single-relay").lower == pytest.approx(left, abs=EXACT)
        assert bounds_of(fabric, demands, lost, "spread").lower == pytest.approx(1 - gone / 4, abs=EXACT)
        assert truth_of(fabric, demands, lost) == pytest.approx(1 - gone / 4, abs=EXACT)


@pytest.mark.parametrize("gone", [(0, 1), (0, 6), (1, 7), (3, 4), (0, 2, 5), (5, 6, 7)])
def test_relays_are_not_shared_while_others_are_free(gone: tuple[int, ...]) -> None:
    """Whichever NICs of a domain of eight are lost, each has a relay of its own: 1/2 is left."""
    fabric = clos(Tree(1, 3, 0), rails=8)
    lost = Failure(links=tuple(np.flatnonzero(np.isin(fabric.links.a, gone)).tolist()))
    found = bounds_of(fabric, dp(fabric, 8, all_to_all(3)), lost, "single-relay")
    assert (found.lower, found.upper) == pytest.approx((0.5, 0.5), abs=EXACT)


def test_a_rail_down_entirely() -> None:
    """Rail-only, 8 rails, all leaves of one lost: 7/8 spread, 1/2 by one relay, for an odd number of domains too."""
    fabric = clos(Tree(3, 3, 3), rails=8)
    demands = dp(fabric, 8, all_to_all(9))
    leaves = {leaf_of(fabric, gpu) for gpu in range(0, 72, 8)}
    lost = Failure(nodes=tuple(leaves))
    assert bounds_of(fabric, demands, lost, "spread").lower == pytest.approx(7 / 8, abs=EXACT)
    assert bounds_of(fabric, demands, lost, "spread").upper == pytest.approx(7 / 8, abs=EXACT)
    assert bounds_of(fabric, demands, lost, "single-relay").lower == pytest.approx(1 / 2, abs=EXACT)
    for policy, left in (("spread", 7 / 8), ("single-relay", 1 / 2)):
        assert bounds_of(fabric, dp(fabric, 8, worst(9)), lost, policy).lower == pytest.approx(left, abs=EXACT)


def test_an_odd_number_of_domains_intact() -> None:
    """Rail-aligned rings and all-to-all of 9 domains need no even number."""
    fabric = clos(Tree(3, 3, 3), rails=8)
    for part in (all_to_all(9), shift(9), worst(9)):
        found = bounds_of(fabric, dp(fabric, 8, part), Failure(), "spread")
        assert (found.lower, found.upper) == pytest.approx((1.0, 1.0), abs=EXACT)


def test_the_lone_gpu_of_a_second_domain() -> None:
    """Nine GPUs of rail-only, 8 + 1: the ninth reaches the others over relays, and its one rail bounds nothing else."""
    fabric = clos(Tree(1, 2, 0), rails=8)
    nine = traffic(16, 8, phase("ep", 9, all_to_all(9), across="cluster"))
    found = bounds_of(fabric, nine, Failure(), "spread")
    truth = truth_of(fabric, nine, Failure())
    assert min(found.lower, 1.0) <= truth + EXACT
    assert min(truth, 1.0) <= found.upper + EXACT
    assert found.lower > 0
    assert found.cut_off == 0


def test_separate_networks_without_a_domain_carry_nothing_across() -> None:
    """Rail-only without HB domains: what must go from rail to rail has no way, and is not forgotten."""
    fabric = clos(Tree(1, 2, 0), rails=2)
    for part in (all_to_all(4), shift(4)):
        demands = traffic(4, 1, phase("ep", 4, part, across="cluster"))
        found = bounds_of(fabric, demands, Failure(), "spread")
        assert found.lower == 0
        assert throughput(graph_of(fabric), rates_of(demands, demands.phases[0], demands.phases[0].steps[0], GBPS)) == 0
    hose = bounds_of(fabric, traffic(4, 1, phase("ep", 4, worst(4), across="cluster")), Failure(), "spread")
    assert hose.lower == 0


def test_two_planes_lost_at_two_gpus() -> None:
    """One GPU has plane 0 left, another plane 1: alone in their domains they cannot reach each other."""
    fabric = clos(Tree(1, 3, 0), planes=2)
    demands = dp(fabric, 1, all_to_all(3))
    lost = Failure(links=(0, 4))
    assert truth_of(fabric, demands, lost, 0.0) == 0
    assert bounds_of(fabric, demands, lost, "spread").lower == 0


@pytest.mark.parametrize("scale_up", [100.0, 400.0, 3600.0])
def test_the_scale_up_network_bounds_the_detour(scale_up: float) -> None:
    """However slow the domain's own network is, the plain LP lies between the bounds."""
    fabric = clos(Tree(1, 3, 0), rails=2)
    for demands in (dp(fabric, 2, all_to_all(3)), dp(fabric, 2, all_to_all(6), across="cluster")):
        for lost in (Failure(links=(0,)), Failure()):
            found, truth = (
                bounds_of(fabric, demands, lost, "spread", scale_up),
                truth_of(fabric, demands, lost, scale_up),
            )
            assert min(found.lower, 1.0) <= truth + EXACT
            assert min(truth, 1.0) <= max(found.upper, found.lower) + EXACT


@st.composite
def cases(draw: st.DrawFn) -> tuple[Fabric, Traffic, Failure]:
    """Small clusters of domains of 2 to 4, rails apart or joined, one plane or two; NICs, a leaf and a GPU lost."""
    domain = draw(st.sampled_from([2, 2, 3, 4]))
    joined = draw(st.booleans())
    tree = draw(st.sampled_from([Tree(2, 2, 2), Tree(2, 2, 1), Tree(1, 3, 0), Tree(2, 1, 1)]))
    if joined:
        tree = Tree(2 * domain, tree.down, 2)
    fabric = clos(tree, rails=domain, planes=draw(st.sampled_from([1, 1, 2])), joined=joined)
    across = draw(st.sampled_from(["rail", "rail", "cluster"]))
    members = fabric.gpus // domain if across == "rail" else fabric.gpus
    demands = dp(fabric, domain, *draw(components(members)), across=across)
    hosts = np.flatnonzero(fabric.links.a < fabric.gpus).tolist()
    leaves = np.flatnonzero(fabric.nodes.kind == LEAF).tolist()
    links = draw(st.lists(st.sampled_from(hosts), max_size=2, unique=True))
    nodes = draw(st.lists(st.sampled_from(leaves), max_size=1)) + draw(
        st.lists(st.integers(0, fabric.gpus - 1), max_size=1)
    )
    return fabric, demands, Failure(tuple(links), tuple(nodes))


@st.composite
def unshaped_cases(draw: st.DrawFn) -> tuple[Fabric, Traffic, Failure]:
    """Any graph of leaves, domains of 2 whose NICs run at one of two speeds; NICs or a leaf lost."""
    fabric = draw(irregular(10).filter(lambda fabric: fabric.gpus % 2 == 0))
    across = draw(st.sampled_from(["rail", "rail", "cluster"]))
    demands = dp(fabric, 2, *draw(components(fabric.gpus // 2 if across == "rail" else fabric.gpus)), across=across)
    hosts = np.flatnonzero(fabric.links.a < fabric.gpus).tolist()
    links = draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=2, unique=True))
    nodes = draw(st.lists(st.sampled_from(np.flatnonzero(fabric.nodes.kind == LEAF).tolist()), max_size=1))
    return fabric, demands, Failure(tuple(links), tuple(nodes))


@SETTINGS
@given(st.one_of(cases(), unshaped_cases()))
def test_bounds_hold_the_plain_lp(case: tuple[Fabric, Traffic, Failure]) -> None:
    """The LP carries what the certificate says; where traffic takes detours it carries no more than `upper`."""
    fabric, demands, lost = case
    truth = truth_of(fabric, demands, lost)
    for policy in ("spread", "single-relay"):
        found = bounds_of(fabric, demands, lost, policy)
        assert min(found.lower, 1.0) <= truth + EXACT or found.cut_off
        if "spread detour" in found.how:
            assert min(truth, 1.0) <= found.upper + EXACT
