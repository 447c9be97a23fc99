"""What is alike in a network, against counts made switch by switch."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from designer.fabric.build import build_clos
from designer.fabric.fabric import GPU, KINDS, LEAF, Fabric
from designer.fabric.shape import ClosShape
from designer.instance.instance import Instance
from designer.report.alike import Anatomy
from tests.report.reading import document, file_of
from tests.strategies import shapes

SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def check(fabric: Fabric) -> None:
    """Every switch is in one class, whose bundles are its own; pods and fabrics add up to all switches."""
    anatomy, nodes = Anatomy(fabric), fabric.nodes
    joined: dict[int, Counter[tuple[int, int]]] = {node: Counter() for node in anatomy.switches.tolist()}
    for a, b, gbps in zip(fabric.links.a.tolist(), fabric.links.b.tolist(), fabric.links.gbps.tolist(), strict=True):
        for node, other in ((a, b), (b, a)):
            if node in joined:
                joined[node][other, gbps] += 1
    seen: list[int] = []
    for item in anatomy.alike(anatomy.switches):
        for node in item.nodes:
            expected: dict[tuple[str, int], list[int]] = {}
            for (other, gbps), count in joined[node].items():
                expected.setdefault((KINDS[int(nodes.kind[other])], gbps), []).append(count)
            found = {(part.tier, part.gbps): (part.links, part.nodes, part.fewest, part.most) for part in item.bundles}
            assert found == {
                key: (sum(counts), len(counts), min(counts), max(counts)) for key, counts in expected.items()
            }
            assert item.tier == KINDS[int(nodes.kind[node])]
            assert item.model == fabric.models[int(nodes.model[node])]
            seen.append(node)
    assert sorted(seen) == anatomy.switches.tolist()
    for tier in KINDS[LEAF:]:
        assert fabric.counts()[tier] == sum(len(kind.fabrics) * kind.switches(tier) for kind in anatomy.kinds)
    assert sorted(one for kind in anatomy.kinds for one in kind.fabrics) == sorted(
        set(nodes.fabric[nodes.kind >= LEAF])
    )


@SETTINGS
@given(shapes())
def test_clos_networks(drawn: tuple[Instance, ClosShape]) -> None:
    check(build_clos(drawn[1]))


@pytest.mark.parametrize("name", ["pods", "uneven", "mixed"])
def test_designs(name: str) -> None:
    check(file_of(document(name)).fabric)


def test_what_differs_is_told_apart() -> None:
    """A lost link sets its two switches, their pods and their fabric apart from the others."""
    fabric = file_of(document("planes")).fabric
    assert [len(kind.fabrics) for kind in Anatomy(fabric).kinds] == [2]
    inner = np.flatnonzero(fabric.nodes.kind[fabric.links.a] >= LEAF)
    kept = np.delete(np.arange(fabric.n_links), inner[0])
    links = type(fabric.links)(**{name: getattr(fabric.links, name)[kept] for name in vars(fabric.links)})
    damaged = Fabric(fabric.gpus, 1, fabric.models, fabric.media, fabric.nodes, links)
    anatomy = Anatomy(damaged)
    assert [len(kind.fabrics) for kind in anatomy.kinds] == [1, 1]
    check(damaged)


def test_the_gpus_of_switches_come_once_and_in_order() -> None:
    fabric = file_of(document("planes")).fabric
    anatomy = Anatomy(fabric)
    leaves = [node for kind in anatomy.kinds for one in kind.fabrics for node in anatomy.members(one, "leaf")]
    assert anatomy.gpus(leaves).tolist() == list(range(16))
    assert anatomy.gpus([]).tolist() == []
    for leaf in leaves:
        on = {
            int(a)
            for a, b in zip(fabric.links.a, fabric.links.b, strict=True)
            if b == leaf and fabric.nodes.kind[a] == GPU
        }
        assert set(anatomy.gpus([leaf]).tolist()) == on


def test_a_switch_that_was_there_is_not_like_one_that_is_bought() -> None:
    content = document("rails")
    leaves = [node for node, kind in enumerate(content["fabric"]["nodes"]["kind"]) if kind == LEAF]
    assert len(Anatomy(file_of(content).fabric).alike(np.array(leaves))) == 1
    content["fabric"]["owned"] = [{"node": leaves[1], "name": "old", "free_ports": 8}]
    alike = Anatomy(file_of(content).fabric).alike(np.array(leaves))
    assert {item.nodes: item.owned for item in alike} == {
        (leaves[1],): True,
        tuple(node for node in leaves if node != leaves[1]): False,
    }
