"""Failures bounded as a whole: never above what any single element leaves, by exact programs on small networks."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from designer.certify import failures
from designer.certify.certificate import EXACT, FailureResult
from designer.certify.failure_bounds import bounded_failures, leaf_rates, spread_of
from designer.certify.failures import FailureStudy, certify_failures, exhaustive_singles
from designer.certify.throughput import Judge
from designer.certify.view import FabricView
from designer.fabric.fabric import SPINE, Fabric
from designer.instance.schema import RequirementsSection, SurviveSection
from designer.workload.traffic import Traffic
from tests.certify.fabrics import GBPS, SCALE_UP_GBPS, Sketch, Tree, all_to_all, clos, phase, shift, traffic, worst

SETTINGS = settings(
    derandomize=True, max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def bounded(fabric: Fabric, demands: Traffic, policy: str, *survive: SurviveSection) -> dict[str, FailureResult] | None:
    requirements = RequirementsSection.model_validate({"detour": policy, "survive": list(survive)})
    found = bounded_failures(FabricView(fabric), demands, requirements, SCALE_UP_GBPS)
    return None if found is None else {result.removed: result for result in found}


def exact(fabric: Fabric, demands: Traffic, policy: str) -> dict[str, tuple[float, float]]:
    """The least of every kind of failure, bounds from below and above, each element removed by itself."""
    requirements = RequirementsSection.model_validate({"detour": policy})
    study = FailureStudy(fabric, demands, requirements, SCALE_UP_GBPS, Judge())
    least: dict[str, tuple[float, float]] = {}
    for result in exhaustive_singles(study):
        low, high = least.get(result.removed, (1.0, 1.0))
        least[result.removed] = min(low, result.lower), min(high, result.upper)
    return least


@st.composite
def networks(draw: st.DrawFn) -> tuple[Fabric, Traffic]:
    leaves, down, rails = draw(st.integers(2, 4)), draw(st.integers(1, 4)), draw(st.integers(2, 3))
    joined = draw(st.booleans())
    up_gbps = draw(st.sampled_from([100, 200, 400]))
    tree = Tree(leaves * rails if joined else leaves, down, draw(st.integers(1, 3)), up_gbps=up_gbps)
    fabric = clos(tree, rails=rails, planes=draw(st.integers(1, 2)), joined=joined)
    domains = leaves * down
    size = draw(st.sampled_from([n for n in range(2, domains + 1) if domains % n == 0]))
    part = draw(
        st.sampled_from([all_to_all(size), shift(size, draw(st.integers(1, size - 1))), worst(size)]),
    )
    floor = draw(st.sampled_from([1.0, 0.5]))
    return fabric, traffic(domains * rails, rails, replace(phase("dp", domains * rails, part), floor=floor))


@SETTINGS
@given(networks(), st.sampled_from(["single-relay", "spread"]))
def test_never_above_what_a_single_element_leaves(network: tuple[Fabric, Traffic], policy: str) -> None:
    fabric, demands = network
    found = bounded(fabric, demands, policy)
    assume(found is not None)
    assert found is not None
    truth = exact(fabric, demands, policy)
    assert found.keys() == truth.keys()
    for name, result in found.items():
        low, high = truth[name]
        assert result.lower <= high + 1e-6, name
        assert result.upper >= low - 1e-6, name


@st.composite
def uneven(draw: st.DrawFn) -> tuple[Fabric, Traffic]:
    """One rail of leaves whose links to the spines differ, each leaf with as many in all; domains of one GPU."""
    leaves, down, spines, uplinks = (draw(st.integers(2, most)) for most in (4, 3, 3, 4))
    rows = [[draw(st.integers(0, spines - 1)) for _ in range(uplinks)] for _ in range(leaves)]
    sketch = Sketch(leaves * down)
    leaf, spine = sketch.switches(leaves), sketch.switches(spines, SPINE)
    sketch.links(np.arange(leaves * down), leaf + np.arange(leaves * down) // down, GBPS)
    for number, row in enumerate(rows):
        sketch.links(np.full(uplinks, leaf + number), spine + np.array(row), draw(st.just(200)))
    size = leaves * down
    part = draw(st.sampled_from([all_to_all(size), shift(size, draw(st.integers(1, size - 1))), worst(size)]))
    return sketch.fabric(), traffic(size, 1, phase("dp", size, part))


@SETTINGS
@given(uneven())
def test_bundles_that_differ(network: tuple[Fabric, Traffic]) -> None:
    fabric, demands = network
    requirements = RequirementsSection.model_validate({"symmetric_uplinks": False})
    found = bounded_failures(FabricView(fabric), demands, requirements, SCALE_UP_GBPS)
    assume(found is not None)
    assert found is not None
    study = FailureStudy(fabric, demands, requirements, SCALE_UP_GBPS, Judge())
    truth: dict[str, float] = {}
    for result in exhaustive_singles(study):
        truth[result.removed] = min(truth.get(result.removed, 1.0), result.upper)
    for result in found:
        assert result.lower <= truth[result.removed] + 1e-6, result.removed


def test_by_hand() -> None:
    """Two rails of three leaves of four at 400 Gb/s under two spines, bundles of one at 400: a ring sends one out."""
    fabric = clos(Tree(3, 4, 2, up_gbps=GBPS), rails=2)
    demands = traffic(24, 2, phase("dp", 24, shift(12, 4)))
    found = bounded(fabric, demands, "single-relay", SurviveSection(failure="switch", throughput=0.2))
    assert found is not None
    # Every leaf sends all of its four to the next one, over two links; one is left without a spine, or without a link.
    assert found["switch:spine"].lower == pytest.approx(0.25)
    assert found["link:leaf-spine"].lower == pytest.approx(0.25)
    # Uplinks carry two of 4 + 4, and of 4 + 1.
    assert found["switch:leaf"].lower == pytest.approx(0.25)
    assert found["nic"].lower == pytest.approx(0.4)
    assert found["gpu"].lower == pytest.approx(0.5)
    numbers = {name: result.stands_for for name, result in found.items()}
    expected = {"switch:leaf": 6, "switch:spine": 4, "link:leaf-spine": 12, "nic": 24, "gpu": 24, "domain": 12}
    assert numbers == expected
    assert (found["switch:spine"].required, found["switch:spine"].met) == (0.2, True)
    assert found["nic"].required is None


def test_rates_of_leaves_by_hand() -> None:
    """Groups of four over leaves of three: 0, 1, 2 | 3, 4, 5 | 6, 7; what is inside a leaf does not count."""
    from designer.certify.demand import GroupDemand, PairDemand

    home = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    group = GroupDemand(np.arange(8), np.arange(8) // 4, 1.0)
    assert leaf_rates([group], [], home).tolist() == [3.0, 3.0 + 4.0, 4.0]
    anything = replace(group, hose_rate=3.0)
    assert leaf_rates([anything], [], home).tolist() == [3.0, 3.0 + 6.0, 6.0]
    pairs = PairDemand(np.array([0, 3, 4]), np.array([1, 6, 7]), np.array([5.0, 2.0, 2.0]))
    assert leaf_rates([], [pairs], home).tolist() == [0.0, 4.0, 4.0]


def test_other_networks_are_left_alone() -> None:
    """Cores, bundles that differ, and rails that serve other domains by their leaves are not bounded."""
    demands = traffic(16, 2, phase("dp", 16, all_to_all(8)))
    assert spread_of(FabricView(clos(Tree(2, 2, 2, pods=2, up=1), rails=2)), demands) is None
    fabric = clos(Tree(4, 2, 2), rails=2)
    assert spread_of(FabricView(fabric), demands) is not None
    links = fabric.links
    rows = np.delete(np.arange(fabric.n_links), np.flatnonzero(links.a >= fabric.gpus)[0])
    fewer = replace(links, **{field.name: getattr(links, field.name)[rows] for field in fields(links)})
    assert spread_of(FabricView(replace(fabric, links=fewer)), demands) is None


def test_used_where_classes_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limits the certificate bounds kinds as a whole, asked or not."""
    fabric = clos(Tree(3, 4, 2, up_gbps=GBPS), rails=2)
    demands = traffic(24, 2, phase("dp", 24, shift(12, 4)))
    for survive in ([], [{"failure": "switch", "throughput": 0.2}]):
        requirements = RequirementsSection.model_validate({"survive": survive})
        study = FailureStudy(fabric, demands, requirements, SCALE_UP_GBPS, Judge())
        classes = {result.removed: result.lower for result in certify_failures(study, pairs=False)}
        with monkeypatch.context() as patch:
            patch.setattr(failures, "MOST_CLASSES", 0)
            patch.setattr(failures, "MOST_ASKED", 0)
            whole = {result.removed: result.lower for result in certify_failures(study, pairs=False)}
        assert whole.keys() == classes.keys()
        assert all(value <= classes[name] + EXACT for name, value in whole.items())
