"""Automorphisms: what the finder concludes from is checked again by networkx, and no damage passes `verified`."""

from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.certify import symmetry
from designer.certify.problem import FlowProblem, Hubs, Pairs
from designer.certify.symmetry import Refiner, SymmetryFinder, verified
from tests.certify.fabrics import flow_problems, hub, problem_of, relabelled, symmetric_problems
from tests.reference.flow_lp import graph_of_problem, rates_of_problem

SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def picture(problem: FlowProblem) -> nx.DiGraph:
    """Links and demands as one directed graph with what must be kept as attributes; a group is a node of its own."""
    graph = nx.DiGraph()
    for node in range(problem.nodes):
        graph.add_node(node, is_=("node", int(problem.label[node]), bool(problem.relays[node])))
    marks: dict[tuple[object, object], list[tuple]] = {}
    rows = zip(problem.a.tolist(), problem.b.tolist(), problem.capacity, problem.links_of, strict=True)
    for a, b, capacity, many in rows:
        for arc in ((a, b), (b, a)):
            marks.setdefault(arc, []).append(("link", float(capacity), int(many)))
    for number, each in enumerate(problem.hubs):
        for node, group, members in zip(each.node.tolist(), each.group.tolist(), each.members.tolist(), strict=True):
            graph.add_node(("group", number, group), is_=("group", number))
            marks.setdefault((node, ("group", number, group)), []).append(("member", members))
    for number, flow in enumerate(problem.pairs):
        for source, target, rate in zip(flow.source.tolist(), flow.target.tolist(), flow.rate.tolist(), strict=True):
            marks.setdefault((source, target), []).append(("pair", number, rate))
    for (tail, head), held in marks.items():
        graph.add_edge(tail, head, is_=tuple(sorted(held)))
    return graph


def is_automorphism(problem: FlowProblem, image: np.ndarray) -> bool:
    """By definition: links by their ends, and rates node by node, are the same multisets after renaming."""
    name = image.tolist()
    if sorted(name) != list(range(problem.nodes)):
        return False
    before, after = graph_of_problem(problem), graph_of_problem(relabelled(problem, image))
    undirected = [Counter((min(a, b), max(a, b), capacity) for a, b, capacity in g.links) for g in (before, after)]
    rates = rates_of_problem(problem)
    moved = {(name[source], name[target]): rate for (source, target), rate in rates.items()}
    return undirected[0] == undirected[1] and before.relays == after.relays and rates == pytest.approx(moved)


def truly_alike(problem: FlowProblem, one: int, other: int) -> bool:
    """Whether some automorphism maps one node to the other, by networkx."""
    left, right = picture(problem), picture(problem)
    left.nodes[one]["is_"] = right.nodes[other]["is_"] = "this"

    def same(x: dict, y: dict) -> bool:
        return x["is_"] == y["is_"]

    return nx.is_isomorphic(left, right, node_match=same, edge_match=same)


@SETTINGS
@given(st.one_of(symmetric_problems(), flow_problems()))
def test_orbits_are_of_real_automorphisms(problem: FlowProblem) -> None:
    """Nodes of one orbit are mapped onto each other by an automorphism of graph, groups and pairs."""
    orbits = SymmetryFinder(problem).find()
    for orbit in range(orbits.node_count):
        first, *others = np.flatnonzero(orbits.node == orbit).tolist()
        for other in others:
            assert truly_alike(problem, first, other)


@SETTINGS
@given(st.one_of(symmetric_problems(), flow_problems()))
def test_every_permutation_used_is_an_automorphism(problem: FlowProblem) -> None:
    """Each permutation that passes keeps every link and every rate, looked at one by one; so do the orbits of arcs."""
    used: list[np.ndarray] = []
    original = symmetry.verified

    def recorded(asked: FlowProblem, image: np.ndarray) -> bool:
        passed = original(asked, image)
        if passed:
            used.append(image)
        return passed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetry, "verified", recorded)
        orbits = SymmetryFinder(problem).find()
    assert len(used) == orbits.generators
    arcs = {(tail, head): at for at, (tail, head) in enumerate(zip(problem.tail, problem.head, strict=True))}
    for image in used:
        assert is_automorphism(problem, image)
        assert (orbits.node[image] == orbits.node).all()
        for (tail, head), at in arcs.items():
            assert orbits.arc[arcs[image[tail], image[head]]] == orbits.arc[at]


@SETTINGS
@given(st.one_of(symmetric_problems(), flow_problems(6)), st.randoms(use_true_random=False))
def test_verified_says_what_networkx_says(problem: FlowProblem, random: st.DataObject) -> None:
    """Any permutation whatever passes only when it maps every link and every demand onto an equal one."""
    image = np.arange(problem.nodes)
    for _ in range(12):
        random.shuffle(image)
        assert verified(problem, image) == kept(problem, image)


def kept(problem: FlowProblem, image: np.ndarray) -> bool:
    """Whether the picture, renamed, is the same picture, groups in any order."""
    graph = picture(problem)
    nodes = [node for node in graph if isinstance(node, int)]
    # Groups have no names of their own: a group is what its members are.
    one, other = Counter(), Counter()
    for number, each in enumerate(problem.hubs):
        for group in range(each.groups):
            at = each.group == group
            rows = list(zip(each.node[at].tolist(), each.members[at].tolist(), strict=True))
            one[number, frozenset(rows)] += 1
            other[number, frozenset((int(image[node]), many) for node, many in rows)] += 1
    plain = graph.subgraph(nodes)
    renamed = nx.relabel_nodes(plain, {node: int(image[node]) for node in nodes})
    same_nodes = all(plain.nodes[node]["is_"] == renamed.nodes[node]["is_"] for node in nodes)
    same_edges = dict(plain.edges) == dict(renamed.edges)
    return one == other and same_nodes and same_edges


def damaged(problem: FlowProblem) -> dict[str, FlowProblem]:
    """A ring whose rotation is an automorphism, each with one thing that breaks it."""
    capacity, many, label = problem.capacity.copy(), problem.links_of.copy(), problem.label.copy()
    capacity[0] *= 1.0000001
    many[0] = 2
    label[0] = 5
    relays = problem.relays.copy()
    relays[1] = False
    (pairs,) = problem.pairs
    rate = pairs.rate.copy()
    rate[-1] = 2.0
    (groups,) = problem.hubs
    members = groups.members.copy()
    members[0] += 1
    target = pairs.target.copy()
    target[[0, 1]] = target[[1, 0]]
    return {
        "a capacity": replace(problem, capacity=capacity),
        "links of a bundle": replace(problem, links_of=many),
        "a label": replace(problem, label=label),
        "a node that does not relay": replace(problem, relays=relays),
        "a rate": replace(problem, pairs=(replace(pairs, rate=rate),)),
        "a pair gone": replace(problem, pairs=(Pairs(pairs.source[1:], pairs.target[1:], pairs.rate[1:]),)),
        "two targets swapped": replace(problem, pairs=(replace(pairs, target=target),)),
        "a link gone": replace(
            problem, a=problem.a[1:], b=problem.b[1:], capacity=problem.capacity[1:], links_of=problem.links_of[1:]
        ),
        "members of a group": replace(problem, hubs=(replace(groups, members=members),)),
        "a group of others": replace(
            problem, hubs=(Hubs(groups.node[:-1], groups.group[:-1], groups.members[:-1], 1.0),)
        ),
        "groups cut elsewhere": replace(problem, hubs=(hub([(0, 1), (1, 1)], [(2, 1), (3, 1)], [(4, 1), (5, 1)]),)),
    }


def ring() -> FlowProblem:
    """Six nodes in a ring, each sending to the second next, and all to all."""
    return problem_of(
        6,
        [(node, (node + 1) % 6, 1.0) for node in range(6)],
        hubs=[hub([(node, 1) for node in range(6)])],
        pairs=[(node, (node + 2) % 6, 1.0) for node in range(6)],
    )


@pytest.mark.parametrize("damage", damaged(ring()))
def test_slight_damage_is_seen(damage: str) -> None:
    """The rotation of a ring is an automorphism until one thing is changed."""
    rotation = np.roll(np.arange(6), -1)
    assert verified(ring(), rotation)
    assert not verified(damaged(ring())[damage], rotation)


@pytest.mark.parametrize("image", [[0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [-1, 0, 1, 2, 3, 4]])
def test_only_permutations_pass(image: list[int]) -> None:
    """Two nodes on one, or nodes that do not exist: no."""
    assert not verified(ring(), np.array(image))


@SETTINGS
@given(flow_problems(), st.randoms(use_true_random=False))
def test_colours_do_not_depend_on_names(problem: FlowProblem, random: st.DataObject) -> None:
    """Colours are hashes: a node has the same one under another name, so the colours of alike nodes are equal."""
    image = np.arange(problem.nodes)
    random.shuffle(image)
    one, other = Refiner(problem), Refiner(relabelled(problem, image))
    assert (one.base[: problem.nodes] == other.base[image]).all()
    assert (one.seen_from(0)[: problem.nodes] == other.seen_from(int(image[0]))[image]).all()


def test_a_clos_has_few_orbits_and_a_random_graph_many() -> None:
    """Six leaves alike under two spines alike; a path of unequal links leaves every node by itself."""
    links = [(leaf, 6 + spine, 1.0) for leaf in range(6) for spine in range(2)]
    found = SymmetryFinder(problem_of(8, links, hubs=[hub([(leaf, 4) for leaf in range(6)])])).find()
    assert (found.node_count, found.arc_count) == (2, 2)
    path = problem_of(4, [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 4.0)], pairs=[(0, 3, 1.0)])
    assert SymmetryFinder(path).find().node_count == 4
