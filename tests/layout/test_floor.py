"""Racks in rows, and lengths of cables between them, against what a tape measure would say."""

import numpy as np
import pytest
from floors import floor_of, on_floor, positions

from designer import instance_from_document
from designer.errors import InstanceError
from designer.fabric.fabric import GPU, LEAF, MANAGEMENT, SPINE, Fabric, Links, Nodes
from designer.layout.floor import Places, length_classes, switch_racks_for

TWO_BY_TWO = {"servers_per_rack": 2, "racks_per_row": 2}


def test_in_the_middle_of_rows_switches_stand_between_the_halves_of_the_servers() -> None:
    floor = floor_of(on_floor(64, TWO_BY_TWO), 2)
    assert positions(floor) == [(0, 0), (0, 2), (1, 0), (1, 2), (0, 1), (1, 1)]
    assert floor.first_switch_rack == 4
    assert floor.rack_name(1) == "row01-rack03"


def test_at_the_end_of_rows_switches_stand_after_the_servers() -> None:
    floor = floor_of(on_floor(64, TWO_BY_TWO | {"switches": "end-of-row"}), 4)
    assert positions(floor) == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]


def test_a_row_of_switches_stands_in_the_middle_of_the_room() -> None:
    layout = {"servers_per_rack": 1, "racks_per_row": 3, "switches": "network-row"}
    one = floor_of(on_floor(48, layout), 1)
    assert positions(one) == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2), (1, 1)]
    four = floor_of(on_floor(48, layout), 4)
    assert positions(four)[6:] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert positions(four)[3:6] == [(3, 0), (3, 1), (3, 2)]


def test_rows_are_as_equal_as_may_be() -> None:
    """Seven racks do not fill one row of five and leave two in the next."""
    floor = floor_of(on_floor(56, {"servers_per_rack": 1, "racks_per_row": 5, "switches": "end-of-row"}), 2)
    assert positions(floor)[:7] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]
    assert positions(floor)[7:] == [(0, 4), (1, 4)]


def test_racks_of_switches_are_as_many_in_every_row() -> None:
    layout = on_floor(64, TWO_BY_TWO).layout
    assert layout is not None
    assert [switch_racks_for(layout, 4, needed) for needed in (1, 2, 3)] == [2, 2, 4]
    assert switch_racks_for(layout.model_copy(update={"switches": "network-row"}), 4, 3) == 3


def test_a_cable_rises_runs_along_and_across_comes_down_and_has_slack() -> None:
    """From the first server rack to the switches of the second row: 0.6 m along, 2.4 m across, 1.5 and 0.5 m up."""
    floor = floor_of(on_floor(64, TWO_BY_TWO), 2)
    one, other = np.array([0, 0, 4, 4]), np.array([5, 4, 5, 4])
    assert floor.need_m(one, other).tolist() == pytest.approx([5.5, 3.1, 3.9, 1.5])
    wide = TWO_BY_TWO | {"rack_pitch_m": 1, "row_pitch_m": 10, "server_rise_m": 2, "switch_rise_m": 1, "slack_m": 0}
    assert floor_of(on_floor(64, wide), 2).need_m(one, other).tolist() == pytest.approx([14, 4, 12, 2])


def test_cables_are_made_in_lengths() -> None:
    need_m = np.array([0.2, 1, 1.1, 3, 3.01, 49.9, 99, 100.5, 500, 500.1, 1200])
    assert length_classes(need_m).tolist() == [1, 1, 2, 3, 5, 50, 100, 150, 500, 1000, 1500]


def test_racks_hold_servers_by_height_and_power() -> None:
    """An H100 server has 8 units and 10.2 kW: six by height, four by 45 kW, two of 20.4 kW."""
    assert floor_of(on_floor(256), 1).rack_of_gpu[::8].tolist() == [n // 4 for n in range(32)]
    assert floor_of(on_floor(64, {"rack_power_w": 20_400}), 1).rack_of_gpu[::8].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    by_height = floor_of(on_floor(64, {"rack_power_w": 1e6}), 1)
    assert by_height.rack_of_gpu[::8].tolist() == [0] * 6 + [1] * 2
    assert by_height.unit_of_gpu[:56:8].tolist() == [1, 9, 17, 25, 33, 41, 1]
    assert set(by_height.rack_of_gpu[:8].tolist()) == {0}


def test_a_domain_of_several_servers_is_not_split_over_racks_where_one_holds_it() -> None:
    cluster = {"gpus": 288, "gpu": "gb200-nvl72", "nic": "cx7-400"}
    whole = floor_of(on_floor(0, {"rack_power_w": 160_000}, cluster=cluster), 1)
    assert np.bincount(whole.rack_of_gpu).tolist() == [72] * 4
    split = floor_of(on_floor(0, {"rack_power_w": 50_000}, cluster=cluster), 1)
    assert np.bincount(split.rack_of_gpu)[0] == 7 * 4


def test_every_kind_of_servers_begins_a_new_rack() -> None:
    kinds = [{"count": 3, "gpu": "h100-sxm", "nic": "cx7-400"}, {"count": 2, "gpu": "a100-sxm", "nic": "cx6-200"}]
    instance = on_floor(
        0,
        {"servers_per_rack": 2},
        cluster={"servers": kinds},
        workload=[{"demand": "any", "across": "cluster"}],
        search={"families": ["link-placement"]},
    )
    floor = floor_of(instance, 1)
    assert floor.rack_of_gpu[::8].tolist() == [0, 0, 1, 2, 2]
    assert floor.unit_of_gpu[::8].tolist() == [1, 9, 1, 1, 7]


def test_links_are_measured_between_the_racks_of_their_ends_and_management_has_a_rack_of_its_own() -> None:
    floor = floor_of(on_floor(8, TWO_BY_TWO), 2, management=True)
    assert floor.management_rack == 1
    kind = np.array([GPU] * 8 + [MANAGEMENT, LEAF, SPINE])
    none = np.full(len(kind), -1)
    nodes = Nodes(kind, none, none, none, none, none)
    a, b = np.array([0, 8, 9]), np.array([9, 9, 10])
    zero = np.zeros(3, dtype=np.int64)
    fabric = Fabric(8, 1, (), (), nodes, Links(a, b, zero, zero, zero, zero, zero, zero))
    places = Places(2, np.array([0, 1]), np.array([1, 1]))
    assert positions(floor) == [(0, 0), (0, 3), (0, 1), (0, 2)]
    assert floor.link_needs_m(fabric, places).tolist() == pytest.approx([3.1, 3.7, 2.1])


@pytest.mark.parametrize(
    ("layout", "field"),
    [
        ({"rack_units": 7}, "layout.rack_units"),
        ({"rack_power_w": 10_000}, "layout.rack_power_w"),
        ({"servers_per_rack": 7, "rack_power_w": 1e6}, "layout.rack_units"),
        ({"servers_per_rack": 5}, "layout.rack_power_w"),
        ({"server_units": 49}, "layout.rack_units"),
        ({"switch_units": 60, "rack_units": 50}, "layout.switch_units"),
        ({"switches": "top"}, "layout.switches"),
        ({"rows": 3}, "layout.rows"),
    ],
)
def test_a_floor_with_no_room_is_refused_by_its_field(layout: dict[str, object], field: str) -> None:
    with pytest.raises(InstanceError) as raised:
        on_floor(64, layout)
    assert field in [problem.field for problem in raised.value.problems]


def test_lengths_are_given_once() -> None:
    document = on_floor(64).document
    with pytest.raises(InstanceError, match="one of the two"):
        instance_from_document({**document, "cabling": {"host_m": 3}})
