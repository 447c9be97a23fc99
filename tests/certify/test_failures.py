"""Classes of failures against the removal of every element, and of every pair, one by one."""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from math import comb

import numpy as np
import pytest

from designer.certify.certificate import FailureResult
from designer.certify.failures import Element, FailureStudy, certify_failures, exhaustive_singles
from designer.certify.run import certify_throughput
from designer.certify.throughput import Judge
from designer.certify.view import Failure
from designer.fabric.fabric import HOST, KINDS, LEAF, LINK_CLASSES, SPINE, Fabric
from designer.workload.traffic import Traffic
from tests.certify.fabrics import (
    GBPS,
    SCALE_UP_GBPS,
    Sketch,
    Tree,
    all_to_all,
    clos,
    mesh,
    phase,
    requirements,
    shift,
    traffic,
    worst,
    zcube,
)

Told = tuple[object, ...]


def uneven() -> Fabric:
    """Three leaves of four uplinks over three spines: round and round, so that bundles are of one and two links."""
    sketch = Sketch(6)
    leaf0, spine0 = sketch.switches(3), sketch.switches(3, SPINE)
    sketch.links(np.arange(6), leaf0 + np.arange(6) // 2)
    turn = np.arange(12)
    sketch.links(leaf0 + turn // 4, spine0 + turn % 3, GBPS // 2)
    return sketch.fabric()


def dp(fabric: Fabric, domain: int, *parts: object, across: str = "rail") -> Traffic:
    """A phase for each component."""
    phases = [phase(f"p{number}", fabric.gpus, part, across=across) for number, part in enumerate(parts)]
    return traffic(fabric.gpus, domain, *phases)


def designs() -> dict[str, tuple[Fabric, Traffic]]:
    """Small networks of every kind with their traffic."""
    found: dict[str, tuple[Fabric, Traffic]] = {}

    def add(name: str, fabric: Fabric, domain: int, *parts: object, across: str = "rail") -> None:
        found[name] = fabric, dp(fabric, domain, *parts, across=across)

    add("one switch", clos(Tree(1, 4, 0)), 1, all_to_all(4))
    add("two tiers", clos(Tree(4, 2, 2)), 1, all_to_all(8), shift(8, 2))
    add("two tiers, any", clos(Tree(3, 2, 2, bundle=2, up_gbps=200)), 1, worst(6))
    add("three tiers", clos(Tree(2, 2, 2, pods=2, up=2, up_gbps=200)), 1, all_to_all(8))
    add("three tiers, groups", clos(Tree(2, 2, 2, pods=2, up=1)), 1, all_to_all(4), shift(8))
    add("two planes", clos(Tree(2, 3, 2), planes=2), 1, all_to_all(6))
    add("two planes, domains", clos(Tree(2, 2, 1), rails=2, planes=2), 2, all_to_all(4))
    add("rail-only", clos(Tree(1, 3, 0), rails=3), 3, all_to_all(3))
    add("rail-only, two tiers", clos(Tree(2, 2, 2), rails=2), 2, all_to_all(4), worst(2))
    add("three rails", clos(Tree(3, 2, 1), rails=3), 3, shift(6, 2))
    add("five rails", clos(Tree(2, 1, 1), rails=5), 5, all_to_all(2))
    add("joined rails", clos(Tree(4, 2, 2), rails=2, joined=True), 2, all_to_all(4), shift(8), across="cluster")
    add("uneven bundles", uneven(), 1, all_to_all(6))
    add("mesh", mesh(4, 2, 200), 1, shift(8, 2))
    add("zcube", zcube(3, 9), 1, all_to_all(9))
    add("zcube, a short row", zcube(3, 7), 1, all_to_all(7))
    return found


DESIGNS = designs()
BY_NAME = pytest.mark.parametrize("name", DESIGNS)


def study_of(name: str, **fields: object) -> FailureStudy:
    """The failure study of a design."""
    fabric, demands = DESIGNS[name]
    return FailureStudy(fabric, demands, requirements(**fields), SCALE_UP_GBPS, Judge())


def told(results: Iterable[FailureResult]) -> Counter[Told]:
    """How many real scenarios have each outcome."""
    counted: Counter[Told] = Counter()
    for result in results:
        values = (result.lower, result.upper, result.ecmp, result.spread, result.single_relay)
        rounded = tuple(None if value is None else round(value, 5) + 0.0 for value in values)
        counted[result.removed, *rounded, result.gpus_cut_off, result.met] += result.stands_for
    return counted


@BY_NAME
@pytest.mark.parametrize("detour", ["single-relay", "spread"])
def test_classes_agree_with_exhaustive_removal(name: str, detour: str) -> None:
    """One of each class stands for all: the outcomes and their numbers are those of removing everything one by one."""
    survive = [{"failure": "switch", "count": 1, "throughput": 0.5}, {"failure": "link", "count": 1, "throughput": 0.9}]
    study = study_of(name, detour=detour, survive=survive)
    assert told(certify_failures(study, pairs=False)) == told(exhaustive_singles(study))


def elements(fabric: Fabric) -> list[Element]:
    """Every link, NIC and switch."""
    classes, kind = fabric.link_class(), fabric.nodes.kind
    found = []
    for row, number in enumerate(classes.tolist()):
        name = ("nic", "") if number == HOST else ("link", LINK_CLASSES[number])
        found.append(Element(*name, Failure(links=(row,)), -1, 0))
    switches = np.flatnonzero(kind >= LEAF).tolist()
    found += [Element("switch", KINDS[int(kind[node])], Failure(nodes=(node,)), -1, 0) for node in switches]
    return found


@pytest.mark.parametrize(
    "name",
    [
        "two tiers, any",
        "two planes",
        "two planes, domains",
        "rail-only",
        "rail-only, two tiers",
        "three rails",
        "five rails",
        "mesh",
        "zcube, a short row",
    ],
)
def test_pairs_agree_with_exhaustive_removal(name: str) -> None:
    """Every pair of links or NICs, and of switches, removed one by one: the same outcomes in the same numbers."""
    study = study_of(name)
    every = elements(study.fabric)
    pairs = [
        pair
        for pair in combinations(every, 2)
        if len({"switch" if one.kind == "switch" else "link" for one in pair}) == 1
    ]
    one_by_one = told(study.judged(pair, 1) for pair in pairs)
    by_class = told(result for result in certify_failures(study) if "+" in result.removed)
    assert by_class == one_by_one


@BY_NAME
def test_classes_stand_for_everything(name: str) -> None:
    """What classes stand for adds up to all elements, and to all n (n-1) / 2 pairs of links and of switches."""
    study = study_of(name)
    counts = Counter(element.name for element in elements(study.fabric))
    results = certify_failures(study)
    singles, pairs = Counter[str](), Counter[str]()
    for result in results:
        (pairs if "+" in result.removed else singles)[result.removed] += result.stands_for
    counts["gpu"] = study.fabric.gpus
    if study.traffic.hb_domain > 1:
        counts["domain"] = study.fabric.gpus // study.traffic.hb_domain
    assert singles == counts
    switches = sum(count for kind, count in counts.items() if kind.startswith("switch"))
    links = sum(count for kind, count in counts.items() if kind.startswith(("link", "nic")))
    assert sum(count for pair, count in pairs.items() if "switch" in pair) == comb(switches, 2)
    assert sum(count for pair, count in pairs.items() if "switch" not in pair) == comb(links, 2)


def test_the_worst_comes_first() -> None:
    """Results are in the order of what is left."""
    left = [result.lower for result in certify_failures(study_of("two tiers"))]
    assert left == sorted(left)


def test_a_spine_of_many() -> None:
    """S spines, one lost, uniform: (S-1)/S of the uplinks are left, 3/4 of four."""
    fabric = clos(Tree(4, 4, 4))
    study = FailureStudy(fabric, dp(fabric, 1, shift(16, 4)), requirements(), SCALE_UP_GBPS, Judge())
    results = {result.removed: result for result in certify_failures(study, pairs=False)}
    spine = results["switch:spine"]
    assert (spine.lower, spine.upper, spine.stands_for) == (pytest.approx(3 / 4), pytest.approx(3 / 4), 4)
    assert results["link:leaf-spine"].stands_for == 16


@pytest.mark.parametrize(
    ("survive", "met"),
    [
        ([], True),
        ([{"failure": "switch", "count": 1, "throughput": 0.5}], True),
        ([{"failure": "switch", "count": 1, "throughput": 0.6}], False),
        ([{"failure": "link", "count": 1, "throughput": 1.0}], True),
        ([{"failure": "nic", "count": 1, "throughput": 0.6}], False),
        ([{"failure": "nic", "count": 1, "throughput": 0.5}], True),
    ],
)
def test_requirements_are_held_against_the_failures_they_name(survive: list[dict[str, object]], met: bool) -> None:
    """Rail-only of one switch a rail: a lost switch or NIC leaves one half by one relay."""
    results = certify_failures(study_of("rail-only", survive=survive), pairs=False)
    assert all(result.met for result in results) == met


@pytest.mark.parametrize(("count", "met"), [(1, True), (2, False)])
def test_two_failures_where_two_are_asked(count: int, met: bool) -> None:
    """Two of two spines lost is what survive with count 2 forbids; one may be lost."""
    survive = [{"failure": "switch", "count": count, "throughput": 0.5}]
    fabric = clos(Tree(2, 2, 2), rails=2)
    study = FailureStudy(fabric, dp(fabric, 2, shift(4, 2)), requirements(survive=survive), SCALE_UP_GBPS, Judge())
    assert all(result.met for result in certify_failures(study)) == met


def test_cut_off_gpus_fail_a_requirement() -> None:
    """Without a domain a leaf's GPUs are cut off: what the others carry does not make up for it."""
    fabric = clos(Tree(2, 2, 2))
    survive = [{"failure": "switch", "count": 1, "throughput": 0.25}]
    study = FailureStudy(fabric, dp(fabric, 1, all_to_all(4)), requirements(survive=survive), SCALE_UP_GBPS, Judge())
    leaf = next(result for result in certify_failures(study, pairs=False) if result.removed == "switch:leaf")
    assert (leaf.gpus_cut_off, leaf.met) == (2, False)


def test_routing_decides_which_throughput_counts() -> None:
    """A link lost makes paths unequal: what is left under ECMP is less, and is what `routing: ecmp` is held to."""
    fabric = clos(Tree(3, 2, 2, pods=2, up=3))
    survive = [{"failure": "link", "count": 1, "throughput": 0.7}]
    met = {}
    for routing in ("adaptive", "ecmp"):
        wanted = requirements(routing=routing, survive=survive)
        study = FailureStudy(fabric, dp(fabric, 1, all_to_all(12)), wanted, SCALE_UP_GBPS, Judge())
        links = [result for result in certify_failures(study, pairs=False) if result.removed == "link:leaf-spine"]
        assert all(result.ecmp is not None and result.ecmp <= result.lower + 1e-9 for result in links)
        met[routing] = all(result.met for result in links)
    assert met["adaptive"] >= met["ecmp"]


def test_the_whole_certificate_of_a_fabric() -> None:
    """`certify_throughput` gives phases, then failures by classes, with pairs, or one by one."""
    fabric, demands = DESIGNS["rail-only, two tiers"]
    steps: list[str] = []
    phases, by_class = certify_throughput(fabric, demands, requirements(), SCALE_UP_GBPS, steps.append)
    assert [result.phase for result in phases] == ["p0", "p1"]
    assert all(result.met for result in phases)
    assert steps
    _, one_by_one = certify_throughput(fabric, demands, requirements(), SCALE_UP_GBPS, exhaustive=True)
    _, with_pairs = certify_throughput(fabric, demands, requirements(), SCALE_UP_GBPS, pairs=True)
    assert told(by_class) == told(one_by_one)
    assert told(with_pairs) - told(by_class) == told(result for result in with_pairs if "+" in result.removed)
    with pytest.raises(ValueError, match="none of its GPUs is attached"):
        certify_throughput(without_hosts(), demands, requirements(), SCALE_UP_GBPS)


def without_hosts() -> Fabric:
    """Two switches, no host link."""
    sketch = Sketch(2)
    first = sketch.switches(2)
    sketch.links(first, first + 1)
    return sketch.fabric()
