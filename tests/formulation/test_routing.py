"""Routes against plain programs: they carry the optimum, recomputed by their weights, GPU by GPU and arc by arc."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from designer.certify.demand import step_demand as certified_demand
from designer.certify.network import unit_problems
from designer.certify.oblivious import oblivious_routing
from designer.certify.static_routes import fixed_rates, hoses
from designer.certify.view import FabricView
from designer.fabric.fabric import SPINE, Fabric
from designer.fabric.routes import StepRouting
from designer.formulation import routing
from designer.formulation.routing import route
from designer.formulation.switch_rates import Attachment, RoutingError, step_demand
from designer.workload.traffic import Phase, Step, Traffic
from tests.certify.fabrics import (
    GBPS,
    Sketch,
    Tree,
    all_to_all,
    clos,
    components,
    irregular,
    mesh,
    phase,
    regular,
    shift,
    traffic,
    worst,
    zcube,
)
from tests.reference.flow_lp import graph_of, line_rate_gbps, rates_of, throughput, worst_permutation

SETTINGS = settings(
    derandomize=True, max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
CLOSE = 1e-6


def routed(fabric: Fabric, demands: Traffic) -> StepRouting:
    """The routes of the only step."""
    (found,) = route(fabric, demands)
    return found


def rates_by_gpu(fabric: Fabric, demands: Traffic) -> dict[tuple[int, int], float]:
    (demanded,) = demands.phases
    return rates_of(demands, demanded, demanded.steps[0], line_rate_gbps(fabric, demanded))


def homes(fabric: Fabric) -> dict[int, list[int]]:
    """The switches of every GPU."""
    result: dict[int, list[int]] = {}
    for a, b in zip(fabric.links.a.tolist(), fabric.links.b.tolist(), strict=True):
        if a < fabric.gpus:
            result.setdefault(a, []).append(b)
    return result


def carried(fabric: Fabric, rates: Mapping[tuple[int, int], float], found: StepRouting) -> float:
    """What the weights carry of rates from GPU to GPU, on links of GPUs too, at most 1; each GPU has one port."""
    at = {gpu: switches[0] for gpu, switches in homes(fabric).items()}
    load: dict[tuple[int, int], float] = {}
    for (source, target), rate in rates.items():
        ends = [(source, at[source]), (at[target], target)]
        inner = [] if at[source] == at[target] else found.paths[at[source], at[target]]
        crossed = [(hop, path.weight) for path in inner for hop in pairwise(path.switches)]
        for hop, weight in [(end, 1.0) for end in ends] + crossed:
            load[hop] = load.get(hop, 0.0) + rate * weight
    capacity = graph_of(fabric).arcs()
    return min([1.0, *(capacity[hop] / amount for hop, amount in load.items())])


def one_port(fabric: Fabric) -> bool:
    return all(len(switches) == 1 for switches in homes(fabric).values())


@SETTINGS
@given(st.one_of(regular(), irregular()), st.data())
def test_fixed_rates_are_carried_as_well_as_can_be(fabric: Fabric, data: st.DataObject) -> None:
    """On any small graph the weights carry what the plain program says can be carried, recomputed GPU by GPU."""
    assume(one_port(fabric))
    parts = data.draw(components(fabric.gpus))
    demands = traffic(fabric.gpus, 1, phase("dp", fabric.gpus, *parts))
    rates = rates_by_gpu(fabric, demands)
    found = routed(fabric, demands)
    assert found.throughput == pytest.approx(min(1.0, throughput(graph_of(fabric), rates)), abs=CLOSE)
    assert found.throughput == pytest.approx(carried(fabric, rates, found), abs=1e-9)
    for (source, target), paths in found.paths.items():
        assert sum(path.weight for path in paths) == pytest.approx(1, abs=1e-12)
        assert all((path.switches[0], path.switches[-1]) == (source, target) for path in paths)
        assert all(len(set(path.switches)) == len(path.switches) for path in paths)


@settings(SETTINGS, max_examples=25)
@given(irregular(most_gpus=4), st.data())
def test_any_is_carried_as_well_as_static_weights_can(fabric: Fabric, data: st.DataObject) -> None:
    """One set of weights for all permutations: each is carried, and another solver's best static routing is no better.

    Fixed rates may stand beside them.
    """
    assume(one_port(fabric))
    rate = data.draw(st.sampled_from([1.0, 0.5]))
    demanded = [worst(fabric.gpus, 1, rate)]
    rest = data.draw(st.sampled_from([shift(fabric.gpus, 1, 1, 0.5), all_to_all(fabric.gpus, 1, 0.5)]))
    fixed: dict[tuple[int, int], float] = {}
    if rate < 1:
        demanded.append(rest)
        fixed = rates_by_gpu(fabric, traffic(fabric.gpus, 1, phase("dp", fabric.gpus, rest)))
    demands = traffic(fabric.gpus, 1, phase("dp", fabric.gpus, *demanded))
    (only,) = demands.phases
    line_gbps = line_rate_gbps(fabric, only)
    found = routed(fabric, demands)
    truth = worst_permutation(graph_of(fabric), [(rate * line_gbps, list(range(fabric.gpus)))], fixed)
    assert found.throughput <= min(1.0, truth) + CLOSE
    demand = certified_demand(FabricView(fabric), demands, only, only.steps[0], line_gbps, np.inf, "spread")
    ((problem,),) = unit_problems(FabricView(fabric), demand)
    other = oblivious_routing(problem) if found.paths else None
    assert found.throughput == pytest.approx(min(1.0, other.throughput if other else problem.most), abs=CLOSE)


@settings(SETTINGS, max_examples=60)
@given(st.data())
def test_demand_of_switches_is_the_certificates(data: st.DataObject) -> None:
    """Rails apart and joined, planes, groups and pairs from rail to rail: two ways to the same rates."""
    rails, planes = data.draw(st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 1), (1, 2)]))
    joined = data.draw(st.booleans())
    leaves = 2 * rails if joined else 2
    fabric = clos(Tree(leaves, 3, 2), rails=rails, planes=planes, joined=joined)
    domain = data.draw(st.sampled_from([rails, 2 * rails] if fabric.gpus % (2 * rails) == 0 else [rails]))
    across = data.draw(st.sampled_from(["rail", "cluster"]))
    members = fabric.gpus // domain if across == "rail" else fabric.gpus
    assume(members > 1)
    patterns = data.draw(st.sampled_from([("all-to-all", "shift", "exchange"), ("any", "all-to-all")]))
    demands = traffic(
        fabric.gpus, domain, phase("dp", fabric.gpus, *data.draw(components(members, patterns)), across=across)
    )
    (only,) = demands.phases
    at, view = Attachment(fabric), FabricView(fabric)
    try:
        mine = step_demand(at, demands, only, only.steps[0])
    except RoutingError:
        assert "any" in patterns
        return
    asked = certified_demand(view, demands, only, only.steps[0], GBPS, np.inf, "spread")
    units = [
        (np.flatnonzero(view.unit_of_node == unit), problem)
        for slot, problems in enumerate(unit_problems(view, asked))
        for unit, problem in zip(np.unique(view.attachment[0][:, slot]).tolist(), problems, strict=True)
    ]
    for switches, problem in units:
        demand = mine.get(int(at.unit_of[switches[0]]))
        rates = {(int(switches[s]), int(switches[t])): rate for (s, t), rate in fixed_rates(problem).items()}
        assert (demand.rates if demand else {}) == pytest.approx(rates)
        members_of = {
            tuple(zip(switches[hose.node].tolist(), hose.members.tolist(), strict=True)): hose.rate
            for hose in hoses(problem)
        }
        assert ({hose.members: hose.gbps for hose in demand.hoses} if demand else {}) == pytest.approx(members_of)
        if demand and np.isfinite(problem.most):
            assert demand.most == pytest.approx(problem.most)


def test_clos_paths_are_short_and_even() -> None:
    """Leaf to leaf over every spine in equal parts."""
    found = routed(clos(Tree(3, 2, 2)), traffic(6, 1, phase("dp", 6, worst(6))))
    assert found.throughput == 1
    assert len(found.paths) == 6
    for (source, target), paths in found.paths.items():
        assert sorted(path.switches for path in paths) == [(source, spine, target) for spine in (9, 10)]
        assert [path.weight for path in paths] == pytest.approx([0.5, 0.5])


def test_detours_only_as_far_as_needed() -> None:
    """Five leaves joined each to each, all of a leaf to the next: two fifths go directly, the rest two hops."""
    fabric = mesh(5, 4)
    found = routed(fabric, traffic(20, 1, phase("dp", 20, shift(20, 4))))
    assert found.throughput == pytest.approx(0.625, abs=CLOSE)
    hops = [sum(path.weight * (len(path.switches) - 1) for path in paths) for paths in found.paths.values()]
    assert sum(hops) / len(hops) == pytest.approx(0.4 * 1 + 0.6 * 2, abs=1e-5)
    direct = routed(fabric, traffic(20, 1, phase("dp", 20, all_to_all(20))))
    assert all(len(paths) == 1 and len(paths[0].switches) == 2 for paths in direct.paths.values())


def test_uneven_bundles_in_proportion_to_what_both_leaves_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves with 3 + 1 and 1 + 3 links to two spines share one link's worth over each; a third has 2 + 2.

    That is the split without programs; with them the first also sends over the third leaf.
    """
    sketch = Sketch(12)
    leaf, spine = sketch.switches(3), sketch.switches(2, SPINE)
    sketch.links(np.arange(12), leaf + np.arange(12) // 4)
    for number, (left, right) in enumerate([(3, 1), (1, 3), (2, 2)]):
        sketch.links(leaf + number, spine, GBPS, left)
        sketch.links(leaf + number, spine + 1, GBPS, right)
    fabric, demands = sketch.fabric(), traffic(12, 1, phase("dp", 12, shift(12, 4)))
    best = routed(fabric, demands)
    assert best.throughput == pytest.approx(throughput(graph_of(fabric), rates_by_gpu(fabric, demands)), abs=CLOSE)
    monkeypatch.setattr(routing, "MAX_FLOWS", 0)
    even = routed(fabric, demands)
    weights = {ends: [path.weight for path in paths] for ends, paths in even.paths.items()}
    assert weights[leaf, leaf + 1] == pytest.approx([1 / 2, 1 / 2])
    assert weights[leaf + 1, leaf + 2] == pytest.approx([2 / 3, 1 / 3])
    assert even.throughput == pytest.approx(1 / 2)
    assert best.throughput == pytest.approx(3 / 4, abs=CLOSE)


def test_rails_and_planes_that_are_alike_have_the_same_routes() -> None:
    """Every fabric has routes of its own, between its own switches, in the same parts."""
    fabric = clos(Tree(3, 2, 2), rails=2, planes=2)
    found = routed(fabric, traffic(fabric.gpus, 2, phase("dp", fabric.gpus, shift(6, 2))))
    assert len(found.paths) == 4 * 3
    offsets = {
        tuple(sorted((tuple(s - source for s in path.switches), path.weight) for path in paths))
        for (source, target), paths in found.paths.items()
        if target == source + 1
    }
    assert len(offsets) <= 2
    unit_of = FabricView(fabric).unit_of_node
    assert all(len(set(unit_of[list(path.switches)])) == 1 for paths in found.paths.values() for path in paths)


def test_from_rail_to_rail_the_traffic_takes_the_rail_of_the_receiver() -> None:
    """All-to-all of 8 GPUs on two rails apart: a GPU sends 1/7 to each, so a domain 2/7 to each GPU of another.

    Two domains share a leaf, so 2 times 2 times 2/7 of a line rate pass its only uplink.
    """
    fabric = clos(Tree(2, 2, 1), rails=2)
    demands = traffic(8, 2, phase("ep", 8, all_to_all(8), across="cluster"))
    assert routed(fabric, demands).throughput == pytest.approx(7 / 8, abs=CLOSE)


def test_a_phase_runs_at_the_rate_of_its_slowest_nic() -> None:
    """Half of the GPUs have slower NICs: a phase of all runs at their rate, one of the faster half at its own."""
    sketch = Sketch(8)
    leaf, spine = sketch.switches(4), sketch.switches(1, SPINE)
    sketch.links(np.arange(8), leaf + np.arange(8) // 2, 0)
    sketch.ends[0][2] = np.where(np.arange(8) < 4, GBPS // 2, GBPS)
    sketch.links(leaf + np.arange(4), spine, GBPS)
    step = (Step("s", (shift(4, 2),), 1.0),)
    phases = [Phase(name, "job", step, 1.0, 0.0, "rail", first, 4) for name, first in (("slow", 0), ("fast", 4))]
    every = phase("all", 8, shift(8, 2))
    values = [found.throughput for found in route(sketch.fabric(), traffic(8, 1, *phases, every))]
    assert values == pytest.approx([1.0, 0.5, 1.0])


def test_like_steps_and_units_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight rails and two equal steps are one problem."""
    solved: list[object] = []
    best = routing.best_routes
    monkeypatch.setattr(routing, "best_routes", lambda problem: solved.append(problem) or best(problem))
    steps = tuple(Step(name, (shift(4, 2),), 1.0) for name in ("one", "two"))
    demanded = Phase("dp", "job", steps, 1.0, 0.0, "rail", 0, 32)
    found = route(clos(Tree(2, 2, 2), rails=8), traffic(32, 8, demanded))
    assert len(solved) == 1
    assert [one.step for one in found] == ["one", "two"]
    assert found[0].paths == found[1].paths


def test_programs_that_are_too_large_leave_shortest_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without programs the routes are the even ones, and tell what they carry."""
    for name in ("MAX_FLOWS", "MAX_STATIC", "MAX_LEGS"):
        monkeypatch.setattr(routing, name, 0)
    for part in (shift(20, 4), worst(20)):
        found = routed(mesh(5, 4), traffic(20, 1, phase("dp", 20, part)))
        assert found.throughput == pytest.approx(0.25)
        assert all(len(path.switches) == 2 for paths in found.paths.values() for path in paths)


def test_two_legs_where_the_program_of_any_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """`any` over all switches as intermediate ones, which on a mesh is the best there is; fixed rates go beside it."""
    monkeypatch.setattr(routing, "MAX_STATIC", 0)
    found = routed(mesh(5, 4), traffic(20, 1, phase("dp", 20, worst(20))))
    assert found.throughput == pytest.approx(0.625, abs=CLOSE)
    halves = traffic(20, 1, phase("dp", 20, worst(20, 1, 0.5), shift(20, 4, 1, 0.5)))
    routes = routed(mesh(5, 4), halves)
    assert 0.3 < routes.throughput < 0.625


def _stray() -> Fabric:
    """Four GPUs on two leaves that nothing joins."""
    sketch = Sketch(4)
    leaf = sketch.switches(2)
    sketch.links(np.arange(4), leaf + np.arange(4) // 2)
    return sketch.fabric()


def _unattached() -> Fabric:
    """A GPU without a port."""
    sketch = Sketch(3)
    leaf = sketch.switches(1)
    sketch.links(np.arange(2), leaf)
    return sketch.fabric()


def _unlike() -> Fabric:
    """GPU 0 is on both planes, GPU 1 on the second only."""
    sketch = Sketch(2)
    leaf = sketch.switches(2)
    sketch.links([0, 0, 1], [leaf, leaf + 1, leaf + 1])
    return sketch.fabric()


@pytest.mark.parametrize(
    ("fabric", "part", "words"),
    [
        (zcube(2, 4), shift(4, 1), "several ports in one network"),
        (clos(Tree(33, 1, 32)), shift(33, 1), "65 switches"),
        (_stray(), shift(4, 2), "no network joins"),
        (_stray(), worst(4), "any"),
        (_unattached(), shift(3, 1), "GPU 2 is attached nowhere"),
        (_unlike(), shift(2, 1), "planes"),
    ],
)
def test_what_is_refused(fabric: Fabric, part: object, words: str) -> None:
    """Fabrics and traffic that no routes are made for are refused in words."""
    with pytest.raises(RoutingError, match=words):
        route(fabric, traffic(fabric.gpus, 1, phase("dp", fabric.gpus, part)))
