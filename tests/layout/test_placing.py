"""Places of switches against every way to place them, and against what a rack holds."""

from dataclasses import fields, replace
from itertools import permutations, product

import numpy as np
import pytest
from floors import on_floor
from hypothesis import given, settings
from hypothesis import strategies as st

from designer import Instance, design
from designer.catalog.media import link_media
from designer.costing.pricing import Pricing
from designer.errors import InstanceError
from designer.fabric.fabric import LEAF, Fabric
from designer.layout.floor import Floor, Places, length_classes
from designer.layout.placing import AssignmentError, assign, place_switches
from designer.layout.slots import full_power_w, slots_of, switches_per_rack
from designer.search import Options

NIC, LEAF_CAGE = ("osfp-rhs", 1), ("osfp", 2)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_assignment_costs_no_more_than_any_other(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    slots = data.draw(st.lists(st.integers(1, 3), min_size=columns, max_size=columns).filter(lambda s: sum(s) >= rows))
    # Few different numbers, so that rows are often alike.
    numbers = st.lists(st.integers(0, 4), min_size=columns, max_size=columns)
    costs = np.array(data.draw(st.lists(numbers, min_size=rows, max_size=rows)), dtype=np.int64)
    found = assign(costs, np.array(slots))
    assert (np.bincount(found, minlength=columns) <= slots).all()
    every = [
        sum(int(costs[row, column]) for row, column in enumerate(way))
        for way in product(range(columns), repeat=rows)
        if all(way.count(column) <= slots[column] for column in range(columns))
    ]
    assert int(costs[np.arange(rows), found].sum()) == min(every)


def test_more_switches_than_slots_are_refused() -> None:
    with pytest.raises(AssignmentError):
        assign(np.zeros((3, 2), dtype=np.int64), np.array([1, 1]))


def _fabric(instance: Instance) -> Fabric:
    return design(instance, Options(certify=False)).fabric


def _placed(instance: Instance, fabric: Fabric) -> tuple[Floor, Places]:
    assert instance.layout is not None
    pricing = Pricing(instance.objective, instance.energy)
    return place_switches(fabric, instance.catalog, instance.cluster, instance.layout, pricing)


def _cents(instance: Instance, lower: tuple[str, int], upper: tuple[str, int], need_m: float) -> float:
    """What a link costs, in full cages of the cheapest medium; written out once more."""
    length_m = float(length_classes(np.array([need_m]))[0])
    return min(
        item.lower_cage_cents / lower[1] + item.upper_cage_cents / upper[1] + item.link_cents
        for item in link_media(instance.catalog, *lower, *upper, 400, length_m)
    )


def _total_cents(instance: Instance, fabric: Fabric, floor: Floor, places: Places) -> float:
    rack = floor.rack_of_node(fabric, places)
    total = 0.0
    for a, b in zip(fabric.links.a.tolist(), fabric.links.b.tolist(), strict=True):
        lower = NIC if a < fabric.gpus else LEAF_CAGE
        total += _cents(instance, lower, LEAF_CAGE, float(floor.need_m(rack[[a]], rack[[b]])[0]))
    return total


@pytest.mark.parametrize("where", ["end-of-row", "middle-of-row", "network-row"])
def test_leaves_stand_where_their_links_to_hosts_cost_least(where: str) -> None:
    """Six leaves of three rails' halves, four racks of one switch each and more: every placement is tried."""
    layout = {"switches": where, "servers_per_rack": 1, "racks_per_row": 2, "row_pitch_m": 1.5, "switch_units": 20}
    cluster = {"gpus": 48, "gpu": "h100-sxm", "nic": "cx7-400", "rails": 1}
    workload = [{"demand": "all-to-all", "group": 8, "across": "cluster"}]
    pinned = {"families": ["clos"], "switches": ["qm9700"], "leaf": {"down": 8}, "leaf_sharing": "any"}
    instance = on_floor(0, layout, cluster=cluster, workload=workload, search=pinned)
    fabric = _fabric(instance)
    leaves = int((fabric.nodes.kind == LEAF).sum())
    assert leaves == 6
    hosts = fabric.links.a < fabric.gpus
    alone = _only_leaves(fabric, hosts)
    floor, places = _placed(instance, alone)
    slots = np.repeat(np.arange(places.switch_racks), 2)
    every = {
        _total_cents(instance, alone, floor, Places(places.switch_racks, np.array(way), places.unit))
        for way in set(permutations(slots.tolist(), leaves))
    }
    assert len(every) > 1
    assert _total_cents(instance, alone, floor, places) == min(every)


def _only_leaves(fabric: Fabric, hosts: np.ndarray) -> Fabric:
    """The fabric without spines and links to them."""
    kept = fabric.nodes.kind <= LEAF
    nodes = {field.name: getattr(fabric.nodes, field.name)[kept] for field in fields(fabric.nodes)}
    links = {field.name: getattr(fabric.links, field.name)[hosts] for field in fields(fabric.links)}
    assert kept[: int(kept.sum())].all()
    return replace(fabric, nodes=replace(fabric.nodes, **nodes), links=replace(fabric.links, **links))


def test_spines_and_leaves_together_stand_as_well_as_any_way() -> None:
    """Two leaves and a spine in racks of one switch: all permutations are tried."""
    layout = {"servers_per_rack": 2, "racks_per_row": 2, "switch_units": 30, "row_pitch_m": 3}
    cluster = {"gpus": 64, "gpu": "h100-sxm", "nic": "cx7-400", "rails": 1}
    workload = [{"demand": "any", "across": "cluster"}]
    search = {"families": ["clos"], "switches": ["qm9700"], "leaf": {"down": 32, "up": 32}}
    instance = on_floor(0, layout, cluster=cluster, workload=workload, search=search)
    fabric = _fabric(instance)
    floor, places = _placed(instance, fabric)
    switches = int((fabric.nodes.kind >= LEAF).sum())
    assert switches == 3
    assert places.switch_racks == 4
    assert sorted(np.bincount(places.rack, minlength=4)) == [0, 1, 1, 1]
    every = [
        _total_cents(instance, fabric, floor, Places(4, np.array(way), places.unit))
        for way in permutations(range(4), switches)
    ]
    assert len(set(every)) > 1
    assert _total_cents(instance, fabric, floor, places) == min(every)


def test_racks_are_filled_from_the_top_and_hold_what_fits() -> None:
    """24 switches of two units to a rack of 48, twelve of four; no two of them overlap."""
    instance = on_floor(1024, {"switch_units": 4, "switches": "network-row"}, search={"leaf": {"down": 32, "up": 32}})
    fabric = _fabric(instance)
    floor, places = _placed(instance, fabric)
    switches = int((fabric.nodes.kind >= LEAF).sum())
    assert places.switch_racks == -(-switches // 12)
    for rack in range(places.switch_racks):
        units = sorted(places.unit[places.rack == rack].tolist(), reverse=True)
        assert units == [45 - 4 * number for number in range(len(units))]
    assert floor.racks - floor.first_switch_rack == places.switch_racks


def test_power_limits_switches_with_their_hungriest_modules() -> None:
    """A QM9700 draws 747 W and 32 modules of 17 W: 1,291 W."""
    instance = on_floor(64)
    catalog, layout = instance.catalog, instance.layout
    assert layout is not None
    switch = catalog.switches["qm9700"]
    assert full_power_w(catalog, switch) == 747 + 32 * 17
    for power_w, held in ((45_000, 24), (13_000, 10), (12_909, 9), (1_290, 0)):
        assert slots_of(layout.model_copy(update={"rack_power_w": power_w}), catalog, switch) == held
    with pytest.raises(InstanceError, match="racks that power a switch"):
        switches_per_rack(layout.model_copy(update={"rack_power_w": 1_290}), catalog, [switch])
