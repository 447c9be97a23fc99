"""Routes under judgement: those of the program, those drawn by hand, and those that were tampered with."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from designer.certify.certificate import EXACT
from designer.certify.routing import judge_routing
from designer.errors import InputError
from designer.fabric.fabric import SPINE, Fabric
from designer.fabric.routes import RoutedPath, StepRouting, routing_document
from designer.formulation.routing import route
from designer.formulation.switch_rates import RoutingError
from designer.workload.traffic import Component, Traffic
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
from tests.certify.test_oblivious import listed_permutations
from tests.reference.flow_lp import graph_of

SETTINGS = settings(
    derandomize=True, max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def written(steps: tuple[StepRouting, ...]) -> dict[str, Any]:
    """The document as a file holds it."""
    return json.loads(json.dumps(routing_document(steps)))


def only(fabric: Fabric, *parts: Component) -> Traffic:
    """One step of all GPUs."""
    return traffic(fabric.gpus, 1, phase("dp", fabric.gpus, *parts))


def uneven() -> Fabric:
    """Three leaves with 3 + 1, 1 + 3 and 2 + 2 links to two spines."""
    sketch = Sketch(12)
    leaf, spine = sketch.switches(3), sketch.switches(2, SPINE)
    sketch.links(np.arange(12), leaf + np.arange(12) // 4)
    for number, (left, right) in enumerate([(3, 1), (1, 3), (2, 2)]):
        sketch.links(leaf + number, spine, GBPS, left)
        sketch.links(leaf + number, spine + 1, GBPS, right)
    return sketch.fabric()


@SETTINGS
@given(st.one_of(regular(), irregular()), st.data())
def test_routes_of_the_program_are_accepted(fabric: Fabric, data: st.DataObject) -> None:
    """On any fabric with a port a plane: the throughput is what it says, between that of ECMP and the bound."""
    patterns = data.draw(st.sampled_from([("all-to-all", "shift", "exchange"), ("any", "shift"), ("any",)]))
    parts = data.draw(components(fabric.gpus, patterns))
    demands = only(fabric, *parts)
    try:
        steps = route(fabric, demands)
    except RoutingError:
        assume(False)
    (result,) = judge_routing(fabric, demands, written(steps))
    assert (result.job, result.phase, result.step) == ("job", "dp", "dp")
    assert result.weighted == pytest.approx(steps[0].throughput, abs=EXACT)
    assert result.weighted <= result.upper + EXACT
    if result.ecmp is not None and "any" not in patterns:
        assert result.ecmp <= result.weighted + EXACT


@settings(SETTINGS, max_examples=60)
@given(st.data())
def test_rails_and_planes_are_accepted(data: st.DataObject) -> None:
    """Several networks at once, traffic from rail to rail over the HB domain too."""
    rails, planes = data.draw(st.sampled_from([(2, 1), (2, 2), (4, 1), (1, 2)]))
    joined = data.draw(st.booleans())
    fabric = clos(Tree(2 * rails if joined else 2, 2, 1), rails=rails, planes=planes, joined=joined)
    across = data.draw(st.sampled_from(["rail", "cluster"]))
    members = fabric.gpus // rails if across == "rail" else fabric.gpus
    parts = data.draw(st.one_of(components(members), st.just((worst(members),))))
    demands = traffic(fabric.gpus, rails, phase("dp", fabric.gpus, *parts, across=across))
    steps = route(fabric, demands)
    (result,) = judge_routing(fabric, demands, written(steps))
    assert result.weighted == pytest.approx(steps[0].throughput, abs=EXACT)
    assert result.weighted <= result.upper + EXACT


@pytest.mark.parametrize(
    ("fabric", "part", "weighted", "ecmp"),
    [
        (mesh(5, 4), shift(20, 4), 0.625, 0.25),
        (mesh(5, 4), worst(20), 0.625, 0.25),
        (uneven(), shift(12, 4), 0.75, 1 / 3),
        (clos(Tree(3, 3, 2)), worst(9), 2 / 3, 2 / 3),
    ],
)
def test_weights_beside_ecmp(fabric: Fabric, part: Component, weighted: float, ecmp: float) -> None:
    """Where shortest paths are too few or unlike, weights carry more than even splitting; on a plain Clos the same."""
    demands = only(fabric, part)
    (result,) = judge_routing(fabric, demands, written(route(fabric, demands)))
    assert (result.weighted, result.ecmp) == pytest.approx((weighted, ecmp), abs=EXACT)


@settings(SETTINGS, max_examples=30)
@given(st.data())
def test_weights_drawn_by_hand_carry_the_worst_permutation(data: st.DataObject) -> None:
    """Any weights on the ways of a mesh: `any` is carried as far as the worst of all permutations, link by link."""
    leaves, down = data.draw(st.sampled_from([(3, 1), (4, 1), (2, 2), (3, 2)]))
    fabric = mesh(leaves, down, data.draw(st.sampled_from([100, 400])))
    first = fabric.gpus
    paths: dict[tuple[int, int], tuple[RoutedPath, ...]] = {}
    for one in range(first, first + leaves):
        for other in range(first, first + leaves):
            if one != other:
                ways = [(one, other)] + [
                    (one, via, other) for via in range(first, first + leaves) if via not in (one, other)
                ]
                parts = [data.draw(st.integers(0, 2)) for _ in ways[1:]]
                parts = [data.draw(st.integers(1, 2)), *parts]
                paths[one, other] = tuple(
                    RoutedPath(way, part / sum(parts)) for way, part in zip(ways, parts, strict=True) if part
                )
    capacity = graph_of(fabric).arcs()
    truth = 1.0
    home = [first + gpu // down for gpu in range(fabric.gpus)]
    for rates in listed_permutations(home, GBPS):
        load: dict[tuple[int, int], float] = {}
        for ends, rate in rates.items():
            for path in paths[ends]:
                for hop in pairwise(path.switches):
                    load[hop] = load.get(hop, 0.0) + rate * path.weight
        truth = min([truth, *(capacity[hop] / amount for hop, amount in load.items())])
    demands = only(fabric, worst(fabric.gpus))
    (result,) = judge_routing(fabric, demands, written((StepRouting("job", "dp", "dp", truth, paths),)))
    assert result.weighted == pytest.approx(truth, abs=1e-9)


def test_a_step_without_traffic_between_switches() -> None:
    """All on one leaf: nothing to route, nothing in the way."""
    fabric = mesh(2, 2)
    demands = only(fabric, shift(2, 1))
    steps = route(fabric, demands)
    assert not steps[0].paths
    (result,) = judge_routing(fabric, demands, written(steps))
    assert (result.weighted, result.ecmp, result.upper) == (1.0, 1.0, 1.0)


def tampered(change: str) -> dict[str, Any]:
    """Routes of a mesh of 3 leaves (switches 6, 7, 8) with one thing changed."""
    fabric = mesh(3, 2)
    document = written(route(fabric, only(fabric, all_to_all(6))))
    (step,) = document["steps"]
    pair = step["pairs"][0]
    if change == "gone":
        del step["pairs"][0]
    elif change == "throughput":
        step["throughput"] -= 1e-3
    elif change == "name":
        step["phase"] = "pp"
    elif change == "steps":
        document["steps"] *= 2
    elif change == "gpu":
        pair["paths"] = [{"switches": [6, 0, 7], "weight": 1.0}]
    elif change == "strange":
        pair["paths"] = [{"switches": [6, 99, 7], "weight": 1.0}]
    elif change == "longer":
        pair["paths"] = [{"switches": [6, 8, 7], "weight": 1.0}]
    return document


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("gone", "no path from switch 6 to 7"),
        ("throughput", r"steps\[0\].throughput"),
        ("name", "job dp dp"),
        ("steps", "2 steps"),
        ("gpu", "a hop from 6 to 0"),
        ("strange", "a hop from 6 to 99"),
        ("longer", r"steps\[0\].throughput: found 1; allowed: 0.5"),
    ],
)
def test_tampered_routes_are_refused(change: str, words: str) -> None:
    """Missing pairs, hops without a link, another step, another throughput: each is named."""
    fabric = mesh(3, 2, 320)
    demands = only(fabric, all_to_all(6))
    assert judge_routing(fabric, demands, tampered(""))[0].weighted == pytest.approx(1.0)
    with pytest.raises(InputError, match=words):
        judge_routing(fabric, demands, tampered(change))


def test_fabrics_that_cannot_be_judged() -> None:
    """Several ports of a GPU in one network, and `any` between networks, have no routes to judge."""
    for fabric, part, words in (
        (zcube(2, 4), shift(4, 1), "several ports"),
        (clos(Tree(2, 2, 0), rails=1), worst(4), "any"),
    ):
        empty = StepRouting("job", "dp", "dp", 1.0, {})
        with pytest.raises(InputError, match=words):
            judge_routing(fabric, only(fabric, part), written((empty,)))
