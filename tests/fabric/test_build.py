"""Drawn fabrics: counts, ports and wiring of random Clos shapes and of ZCube."""

import json
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.build import build_clos
from designer.fabric.fabric import CORE, GPU, LEAF, LEAF_LEAF, LEAF_SPINE, MANAGEMENT, SPINE, SPINE_CORE, Fabric
from designer.fabric.grid import GridMedia, build_grid, zcube
from designer.fabric.shape import ClosShape, Hosts
from tests.strategies import BREAKOUT, HALVES, OPTICS, catalog, instance_of, nic, shapes, switch

SETTINGS = settings(
    derandomize=True, max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def pairs(fabric: Fabric, link_class: int) -> Counter[tuple[int, int]]:
    """Links between each pair of nodes of a class."""
    chosen = fabric.link_class() == link_class
    return Counter(zip(fabric.links.a[chosen].tolist(), fabric.links.b[chosen].tolist(), strict=True))


def check_ports(fabric: Fabric, cages_of: dict[str, int]) -> None:
    """No port is used twice, no cage beyond those of the switch, one kind of neighbour and speed in each cage."""
    links, nodes = fabric.links, fabric.nodes
    used: Counter[tuple[int, int, int]] = Counter()
    kinds: dict[tuple[int, int], set[tuple[int, bool]]] = {}
    for index in range(fabric.n_links):
        a, b = int(links.a[index]), int(links.b[index])
        for node, cage, lane, upward in (
            (a, int(links.a_cage[index]), int(links.a_lane[index]), True),
            (b, int(links.b_cage[index]), int(links.b_lane[index]), False),
        ):
            used[node, cage, lane] += 1
            kinds.setdefault((node, cage), set()).add((int(links.gbps[index]), upward))
    assert max(used.values()) == 1
    for (node, cage), speeds in kinds.items():
        model = int(nodes.model[node])
        assert len(speeds) == 1
        if model >= 0:
            assert cage < cages_of[fabric.models[model]]


@SETTINGS
@given(shapes())
def test_counts_are_the_closed_forms(drawn):
    """Drawn and counted, or from closed forms: the same switches, fabrics, planes and links."""
    _, shape = drawn
    assert build_clos(shape).counts() == shape.counts()


@SETTINGS
@given(shapes())
def test_ports_are_used_once(drawn):
    """Every (switch, cage, lane) has one link; cages and lanes stay within the switch and its mode."""
    instance, shape = drawn
    fabric = build_clos(shape)
    check_ports(fabric, {key: item.cages for key, item in instance.catalog.switches.items()})
    tiers = {LEAF: (shape.leaf.down_mode, shape.leaf.up_mode)}
    if shape.spines:
        tiers[SPINE] = (shape.spines.tier.down_mode, shape.spines.tier.up_mode)
    if shape.cores:
        tiers[CORE] = (shape.cores.tier.down_mode, None)
    links, nodes = fabric.links, fabric.nodes
    for kind, (down_mode, up_mode) in tiers.items():
        below, above = nodes.kind[links.b] == kind, nodes.kind[links.a] == kind
        assert links.b_lane[below].max(initial=0) < down_mode.ports_per_cage
        assert set(links.gbps[below].tolist()) <= {down_mode.gbps}
        if up_mode and above.any():
            assert links.a_lane[above].max() < up_mode.ports_per_cage
            assert set(links.gbps[above].tolist()) == {up_mode.gbps}


@SETTINGS
@given(shapes())
def test_hosts(drawn):
    """Every GPU has one link in each plane, to a leaf of its plane; a leaf has no more than its ports down."""
    _, shape = drawn
    fabric = build_clos(shape)
    links, nodes = fabric.links, fabric.nodes
    host = nodes.kind[links.a] == GPU
    planes = Counter(zip(links.a[host].tolist(), nodes.plane[links.b[host]].tolist(), strict=True))
    assert planes == dict.fromkeys(product(range(shape.hosts.gpus), range(shape.hosts.planes)), 1)
    attached = Counter(links.b[nodes.kind[links.a] <= MANAGEMENT].tolist())
    assert max(attached.values()) <= shape.down
    management = links.a[nodes.kind[links.a] == MANAGEMENT].tolist()
    assert sorted(management) == np.flatnonzero(nodes.kind == MANAGEMENT).tolist()
    # A fabric of single-rail leaves keeps rails apart.
    if not shape.layout.mixed and shape.down < 2 * shape.layout.per_rail:
        rail_of: dict[int, set[int]] = {}
        for gpu, leaf in zip(links.a[host].tolist(), links.b[host].tolist(), strict=True):
            rail_of.setdefault(leaf, set()).add(int(nodes.rail[gpu]))
        assert all(len(rails) == 1 for rails in rail_of.values())


@SETTINGS
@given(shapes())
def test_leaf_spine_bundles(drawn):
    """Every leaf reaches every spine of its pod by k links, or by numbers that differ by one, and no other spine."""
    _, shape = drawn
    if shape.spines is None:
        return
    fabric = build_clos(shape)
    nodes, bundles = fabric.nodes, pairs(fabric, LEAF_SPINE)
    leaves, spines = np.flatnonzero(nodes.kind == LEAF).tolist(), np.flatnonzero(nodes.kind == SPINE).tolist()
    for leaf in leaves:
        home = (int(nodes.fabric[leaf]), int(nodes.pod[leaf]))
        sizes = {}
        for spine in spines:
            if (int(nodes.fabric[spine]), int(nodes.pod[spine])) == home:
                sizes[spine] = bundles[leaf, spine]
            else:
                assert bundles[leaf, spine] == 0
        assert sum(sizes.values()) == shape.uplinks
        assert len(sizes) == shape.spines.count
        assert max(sizes.values()) - min(sizes.values()) <= (shape.spines.bundle is None)
    if shape.cores is None:
        degrees = Counter(spine for _, spine in bundles.elements())
        assert max(degrees.values()) - min(degrees.values()) <= 1


@SETTINGS
@given(shapes())
def test_spine_core_bundles(drawn):
    """A spine has `bundle` links to each core of its group; every core reaches every pod of its fabric alike."""
    _, shape = drawn
    if shape.cores is None:
        return
    fabric = build_clos(shape)
    nodes, bundles = fabric.nodes, pairs(fabric, SPINE_CORE)
    assert set(bundles.values()) == {shape.cores.bundle}
    reached: dict[int, Counter[int]] = {}
    for (spine, core), links in bundles.items():
        assert nodes.fabric[spine] == nodes.fabric[core]
        reached.setdefault(core, Counter())[int(nodes.pod[spine])] += links
    each = shape.cores.positions * shape.cores.bundle
    assert all(pods == dict.fromkeys(range(shape.pods), each) for pods in reached.values())
    assert set(reached) == set(np.flatnonzero(nodes.kind == CORE).tolist())
    degrees = Counter(spine for spine, _ in bundles.elements())
    assert set(degrees.values()) == {shape.cores.uplinks}
    leaves_of_pod = Counter(
        zip(*(column[nodes.kind == LEAF].tolist() for column in (nodes.fabric, nodes.pod)), strict=True)
    )
    assert max(leaves_of_pod.values()) == min(shape.cores.leaves_per_pod, shape.leaves)


@SETTINGS
@given(shapes())
def test_document_round_trip(drawn):
    """Written as JSON and read back, a fabric is the same."""
    _, shape = drawn
    fabric = build_clos(shape)
    document = json.loads(json.dumps(fabric.to_document()))
    again = Fabric.from_document(document)
    assert again.to_document() == fabric.to_document()
    assert again.counts() == fabric.counts()
    for table, other in ((fabric.nodes, again.nodes), (fabric.links, again.links)):
        for name, column in vars(table).items():
            assert np.array_equal(column, getattr(other, name)), name


def test_networkx_has_every_link():
    """The graph for exports has a node for each node and an edge for each link, parallel ones too."""
    shape = _some_shape()
    fabric = build_clos(shape)
    graph = fabric.to_networkx()
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (fabric.n_nodes, fabric.n_links)


def _some_shape() -> ClosShape:
    from designer.formulation.clos_search import ClosSearch, Limits
    from designer.workload.phases import derive_traffic

    instance = instance_of(catalog({"s8": switch(8, 1000)}), {"gpus": 20})
    pricing = Pricing(instance.objective, instance.energy)
    search = ClosSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    shape = search.run(Limits()).shape
    assert shape is not None
    return shape


def test_a_shape_with_problems_is_not_built():
    """Ports that a switch has not are an error."""
    from dataclasses import replace

    shape = _some_shape()
    with pytest.raises(ValueError, match="cages"):
        build_clos(replace(shape, down=40))
    with pytest.raises(ValueError, match="media"):
        build_clos(replace(shape, media=None))


@pytest.mark.parametrize("gpus", [4, 9, 12, 20, 30, 36])
@pytest.mark.parametrize(("modes", "cages_per_nic"), [(BREAKOUT, 1), (HALVES, 1), (HALVES, 2)])
def test_zcube(gpus, modes, cages_per_nic):
    """Port 0 of a GPU goes to its row switch, port 1 to its column switch; one link from each row to each column."""
    record = nic(((2, 200),), cages_per_nic=cages_per_nic)
    instance = instance_of(catalog({"s": switch(16, 1000, modes)}, OPTICS, record), {"gpus": gpus})
    hosts = Hosts(gpus, 1, instance.cluster.nic, instance.cluster.nic.modes[0], 0)
    model = instance.catalog.switches["s"]
    shape = zcube(hosts, model, model.modes_at(200)[0])
    assert not shape.problems()
    end = (model.cage, shape.mode.ports_per_cage)
    finder = MediaFinder(instance.catalog)
    host = finder.between(("port", hosts.nic.ports_per_cage(hosts.nic_mode)), end, 200, 15)[0]
    between = finder.between(end, end, 200, 30)[0]
    fabric = build_grid(shape, GridMedia(host, 15, host, 15, between, 30))
    assert fabric.counts() == shape.counts()
    check_ports(fabric, {"s": model.cages})
    links, nodes = fabric.links, fabric.nodes
    rows = np.flatnonzero((nodes.kind == LEAF) & (nodes.plane == 0)).tolist()
    columns = np.flatnonzero((nodes.kind == LEAF) & (nodes.plane == 1)).tolist()
    assert pairs(fabric, LEAF_LEAF) == dict.fromkeys(product(rows, columns), 1)
    host_links = nodes.kind[links.a] == GPU
    homes: dict[int, list[int]] = {}
    for gpu, leaf in zip(links.a[host_links].tolist(), links.b[host_links].tolist(), strict=True):
        homes.setdefault(gpu, []).append(leaf)
    assert len({tuple(sorted(pair)) for pair in homes.values()}) == gpus  # no two GPUs share both switches
    assert all(set(pair) & set(rows) and set(pair) & set(columns) for pair in homes.values())
    assert Fabric.from_document(fabric.to_document()).to_document() == fabric.to_document()
