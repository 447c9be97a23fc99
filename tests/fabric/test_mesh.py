"""Meshes link by link: every two leaves of a fabric joined by one bundle, every NIC port where the order puts it."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from designer.costing.meshes import priced_mesh
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.fabric import GPU, LEAF, Fabric
from designer.fabric.mesh import MeshShape, build_mesh
from designer.fabric.shape import Hosts, Tier
from designer.instance.instance import Instance
from designer.workload.cuts import Layout
from tests.strategies import BREAKOUT, HALVES, OPTICS, catalog, instance_of, nic, switch

CASES = {
    "one rail": (10, 1, Layout(mixed=False, rails=1, per_rail=10), 4, 1),
    "last leaf short, bundles": (11, 1, Layout(mixed=False, rails=1, per_rail=11), 5, 2),
    "a mesh for each rail": (24, 3, Layout(mixed=False, rails=1, per_rail=8), 4, 3),
    "rails joined": (24, 3, Layout(mixed=False, rails=3, per_rail=8), 4, 1),
    "whole rails on a leaf": (24, 4, Layout(mixed=False, rails=4, per_rail=6), 12, 2),
    "rails mixed": (24, 4, Layout(mixed=True, rails=4, per_rail=6), 9, 1),
}


def shape_of(name: str, *, planes: int = 1) -> tuple[Instance, MeshShape]:
    gpus, rails, layout, down, bundle = CASES[name]
    record = nic(((1, 400), (2, 200)))
    modes = (*BREAKOUT, *HALVES) if planes == 1 else HALVES
    parts = catalog({"s": switch(24, 1000, tuple(dict.fromkeys(modes)))}, OPTICS, record)
    instance = instance_of(parts, {"gpus": gpus, "hb_domain": rails, "rails": rails})
    nic_mode = next(mode for mode in instance.cluster.nic.modes if mode.ports == planes)
    model = instance.catalog.switches["s"]
    leaf = Tier(model, model.modes_at(nic_mode.gbps)[0], model.modes_at(200)[0])
    return instance, MeshShape(Hosts(gpus, rails, instance.cluster.nic, nic_mode, 0), layout, leaf, down, bundle)


def drawn(instance: Instance, shape: MeshShape) -> Fabric:
    pricing = Pricing(instance.objective, instance.energy)
    priced = priced_mesh(shape, instance.cabling, pricing, MediaFinder(instance.catalog))
    assert priced is not None
    return priced.draw()


def home(shape: MeshShape, gpu: int) -> tuple[int, int]:
    """The set of rails and the leaf in it of a GPU, from the order of the endpoints."""
    layout, rail, place = shape.layout, gpu % shape.hosts.rails, gpu // shape.hosts.rails
    if layout.mixed:
        return 0, gpu // shape.down
    rail_set, rail = divmod(rail, layout.rails)
    if shape.down >= layout.per_rail:
        return rail_set, rail // (shape.down // layout.per_rail)
    return rail_set, rail * -(-layout.per_rail // shape.down) + place // shape.down


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_every_two_leaves_of_a_fabric_share_one_bundle(name: str, planes: int) -> None:
    instance, shape = shape_of(name, planes=planes)
    fabric = drawn(instance, shape)
    links, nodes = fabric.links, fabric.nodes
    between = nodes.kind[links.a] == LEAF
    found: dict[tuple[int, int], int] = {}
    for one, other in zip(links.a[between].tolist(), links.b[between].tolist(), strict=True):
        found[one, other] = found.get((one, other), 0) + 1
    leaves = np.flatnonzero(nodes.kind == LEAF)
    expected = [
        pair
        for number in range(shape.fabrics)
        for pair in combinations(leaves[nodes.fabric[leaves] == number].tolist(), 2)
    ]
    assert found == dict.fromkeys(expected, shape.bundle)
    assert set(links.gbps[between].tolist()) == {200}
    assert fabric.counts() == shape.counts()


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_every_nic_port_is_on_the_leaf_of_its_order(name: str, planes: int) -> None:
    instance, shape = shape_of(name, planes=planes)
    fabric = drawn(instance, shape)
    links, nodes = fabric.links, fabric.nodes
    hosts = np.flatnonzero(nodes.kind[links.a] == GPU)
    sets = shape.fabrics // planes
    where = sorted(
        (gpu, nodes.plane[leaf], nodes.fabric[leaf] % sets, leaf)
        for gpu, leaf in zip(links.a[hosts].tolist(), links.b[hosts].tolist(), strict=True)
    )
    first = np.flatnonzero(nodes.kind == LEAF)[0]
    expected = [
        (gpu, plane, rail_set, first + (plane * sets + rail_set) * shape.leaves + leaf)
        for gpu in range(shape.hosts.gpus)
        for plane in range(planes)
        for rail_set, leaf in [home(shape, gpu)]
    ]
    assert where == expected


@pytest.mark.parametrize("name", CASES)
def test_a_port_holds_one_link_and_a_cage_one_side(name: str) -> None:
    """Ports of a leaf are used once, within its cages; hosts and other leaves share none."""
    instance, shape = shape_of(name)
    fabric = drawn(instance, shape)
    links, nodes = fabric.links, fabric.nodes
    to_hosts = nodes.kind[links.a] == GPU
    ends = [*zip(links.b, links.b_cage, links.b_lane, to_hosts, strict=True)]
    ends += [
        *zip(links.a[~to_hosts], links.a_cage[~to_hosts], links.a_lane[~to_hosts], to_hosts[~to_hosts], strict=True)
    ]
    assert len({end[:3] for end in ends}) == len(ends)
    assert max(end[1] for end in ends) < shape.leaf.switch.cages
    sides: dict[tuple[int, int], set[bool]] = {}
    for node, cage, _, side in ends:
        sides.setdefault((node, cage), set()).add(bool(side))
    assert all(len(found) == 1 for found in sides.values())
    for leaf in np.unique(links.b[to_hosts]).tolist():
        between = [side for (node, _), found in sides.items() if node == leaf for side in found if not side]
        assert shape.leaf.up_mode is not None
        assert len(between) == -(-shape.uplinks // shape.leaf.up_mode.ports_per_cage)  # no lane is left out


def test_what_cannot_be_built_is_refused() -> None:
    instance, shape = shape_of("one rail")
    pricing = Pricing(instance.objective, instance.energy)
    priced = priced_mesh(shape, instance.cabling, pricing, MediaFinder(instance.catalog))
    assert priced is not None
    for wrong, words in (
        (replace(shape, bundle=30), "cages"),
        (replace(shape, down=10), "two leaves"),
        (replace(shape, leaf=replace(shape.leaf, up_mode=None)), "two leaves"),
        (replace(shape, hosts=replace(shape.hosts, management_ports=1)), "management"),
    ):
        with pytest.raises(ValueError, match=words):
            build_mesh(wrong, priced.media)
