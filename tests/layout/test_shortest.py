"""Bounds on the floor against every placement of small cases, and against networks that were laid out."""

from itertools import product

import numpy as np
import pytest
from floors import on_floor
from hypothesis import given, settings
from hypothesis import strategies as st

from designer import Instance, design
from designer.comparison import best_templates
from designer.costing.pricing import Pricing
from designer.fabric.build import build_clos
from designer.fabric.shape import ClosShape
from designer.layout.fitting import FLOOR, lay_out
from designer.layout.floor import length_classes, make_floor
from designer.layout.floor_search import apart_cents
from designer.layout.shortest import EmptyFloor, at_least, least_cents, with_typical_lengths
from designer.search import Options
from designer.workload.phases import derive_traffic

WHERE = ("end-of-row", "middle-of-row", "network-row")


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_leaves_near_their_hosts_or_their_spines_pay_at_least_the_bound(data: st.DataObject) -> None:
    """Against every place of the spines and of each leaf, as many to a place as have room."""
    leaves, places = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    numbers = st.lists(st.integers(0, 20), min_size=places, max_size=places)
    hosts = np.array(data.draw(st.lists(numbers, min_size=leaves, max_size=leaves)), dtype=np.float64)
    steps = data.draw(st.lists(st.integers(0, 15), min_size=places, max_size=places))
    prices = np.cumsum(steps).astype(float)
    room = data.draw(st.integers(-(-leaves // places), 4))
    best = min(
        sum(hosts[leaf, at] + prices[abs(at - spines)] for leaf, at in enumerate(way))
        for spines in range(places)
        for way in product(range(places), repeat=leaves)
        if max(way.count(at) for at in way) <= room
    )
    extra = best - hosts.min(axis=1).sum() - leaves * prices[0]
    assert 0 <= apart_cents(hosts, tuple(prices.tolist()), room) <= extra + 1e-9


def test_the_bound_is_what_leaves_and_spines_cost_where_they_cannot_meet() -> None:
    """Two leaves with hosts at the ends of five places: one of them pays for its uplinks or for its hosts."""
    hosts = np.array([[0, 9, 9, 9, 9], [9, 9, 9, 9, 0]], dtype=np.float64)
    assert apart_cents(hosts, (1.0, 4.0, 4.0, 4.0, 4.0), 5) == 3
    assert apart_cents(hosts, (1.0, 40.0, 40.0, 40.0, 40.0), 5) == 9


@pytest.mark.parametrize("where", WHERE)
def test_nothing_stands_nearer_than_the_empty_floor_says(where: str) -> None:
    """Whatever number of racks is set aside for switches."""
    instance = on_floor(416, {"switches": where, "racks_per_row": 5})
    assert instance.layout is not None
    empty = EmptyFloor(instance.layout, instance.cluster)
    for racks in (3, 6, 9, 14):
        floor = make_floor(instance.layout, instance.cluster, racks, management=False)
        servers, switches = np.arange(floor.first_switch_rack), np.arange(floor.first_switch_rack, floor.racks)
        ways_m = floor.need_m(servers[:, None], switches[None, :])
        assert (ways_m.min(axis=1) >= empty.nearest_m - 1e-9).all()
        # Any one rack of switches has all servers at least as far away as some place of the empty floor.
        for column in ways_m.T:
            assert (column[:, None] >= empty.ways_m - 1e-9).all(axis=0).any()


def _laid_out(instance: Instance) -> list[tuple[ClosShape, dict[str, int]]]:
    """Clos templates of an instance with their bills by part, once they are on its floor."""
    typical, pricing = with_typical_lengths(instance), Pricing(instance.objective, instance.energy)
    found: list[tuple[ClosShape, dict[str, int]]] = []
    for item in best_templates(typical, derive_traffic(typical), pricing):
        if isinstance(item.shape, ClosShape):
            bill = lay_out(instance, pricing, build_clos(item.shape)).bill
            parts: dict[str, int] = {}
            for line in bill.lines:
                parts[line.used_for] = parts.get(line.used_for, 0) + line.total_cents
            found.append((item.shape, parts))
    return found


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("nic", ["cx7-400", "cx7-400-dgx", "bf3-2x200"])
def test_links_to_hosts_cost_no_less_than_their_bound(where: str, nic: str) -> None:
    layout = {"switches": where, "racks_per_row": 6}
    cluster = {"gpus": 352, "gpu": "h100-sxm", "nic": nic, "management_ports": 3}
    instance = on_floor(0, layout, cluster=cluster, search={"families": ["clos"], "switches": ["qm9700", "sn5600"]})
    _, prices, media = at_least(instance, Pricing("capex", instance.energy))
    shapes = _laid_out(instance)
    assert len(shapes) >= 3
    for shape, parts in shapes:
        lower = shape.hosts.nic.cage, shape.hosts.nic.ports_per_cage(shape.hosts.nic_mode)
        upper = shape.leaf.switch.cage, shape.leaf.down_mode.ports_per_cage
        (medium,) = media.between(lower, upper, shape.hosts.gbps, 0.5)
        bound = prices.host_cents(shape, shape.tally()["host"], medium)
        mean = prices.class_cents(shape.tally()["host"], medium)
        assert mean <= bound + 1000  # leaf by leaf is no worse, up to rounding down of every link
        assert 0 < bound <= parts["host"]


@pytest.mark.parametrize("where", WHERE)
def test_the_bound_of_a_search_holds_for_designs_with_pinned_leaves(where: str) -> None:
    layout = {"switches": where, "racks_per_row": 4, "servers_per_rack": 2}
    sections = {"requirements": {"throughput": {"any": 0.5}}, "workload": [{"demand": "any", "across": "cluster"}]}
    cluster = {"gpus": 160, "gpu": "h100-sxm", "nic": "cx7-400", "rails": 1}
    options = Options(certify=False)
    free = design(on_floor(0, layout, cluster=cluster, **sections), options)
    assert 0 < free.bound_cents <= free.cost_cents
    assert free.provenance.termination == ("optimal" if free.gap == 0 else FLOOR)
    for down in (20, 32, 40):
        search = {"families": ["clos"], "switches": ["qm9700"], "leaf": {"down": down}}
        pinned = design(on_floor(0, layout, cluster=cluster, **sections, search=search), options)
        assert free.bound_cents <= pinned.cost_cents
        assert pinned.bound_cents <= pinned.cost_cents


def test_longer_ways_never_lower_a_bound() -> None:
    bounds = [
        design(on_floor(192, {"slack_m": slack_m}), Options(certify=False)).bound_cents for slack_m in (0, 2, 9, 40)
    ]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]


def test_one_tier_in_one_rack_is_proven_optimal() -> None:
    """One rack holds all leaves at every server's best: what the bound says is what it costs."""
    result = design(on_floor(128, {"racks_per_row": 8}))
    assert result.counts["spine"] == 0
    assert result.status == "optimal"
    assert result.provenance.termination == "optimal"
    assert result.cost_cents == result.bound_cents


def test_a_link_costs_no_less_than_its_share_of_full_cages() -> None:
    """3 m: half of a direct cable for two NICs, $260; 7 m: a module, half of one, and 7 m of OM4."""
    instance = on_floor(64)
    pricing, lower, upper = Pricing("capex", instance.energy), ("osfp-rhs", 1), ("osfp", 2)
    assert least_cents(instance.catalog, pricing, lower, upper, 400, 3) == 13_000
    assert least_cents(instance.catalog, pricing, lower, upper, 400, 7) == 65_900 + 139_900 / 2 + 5_000 + 7 * 150
    assert least_cents(instance.catalog, pricing, lower, upper, 400, 5000) == float("inf")


def test_typical_lengths_are_lengths_that_cables_are_made_in() -> None:
    instance = on_floor(1024)
    typical = with_typical_lengths(instance).cabling
    lengths = np.array([typical.host_m, typical.leaf_spine_m, typical.spine_core_m])
    assert (length_classes(lengths) == lengths).all()
