"""Plans: names that differ, ports that repeat, and designs that cannot be named."""

from dataclasses import replace

import numpy as np
import pytest
from exported import NAMES, bare_plan, design_file, document_of, plan_of
from hypothesis import HealthCheck, given, settings

from designer.certify.read_design import design_from_document
from designer.errors import ExportError
from designer.export.names import Names, names_from_options
from designer.export.plan import ROLES, Plan, make_plan
from designer.fabric.build import build_clos
from designer.fabric.fabric import LEAF
from tests.strategies import shapes

SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def ends_of(plan: Plan) -> list[tuple[str, str]]:
    names, ports = plan.devices.name, plan.port_names
    return [
        (names[device], ports[port])
        for ends in (plan.a, plan.b)
        for device, port in zip(ends.device.tolist(), ends.port.tolist(), strict=True)
    ]


def check_pattern(plan: Plan) -> None:
    """A cage and lane has one name and number on all switches of a tier and model, which no other cage and lane has."""
    links, nodes = plan.fabric.links, plan.fabric.nodes
    named: dict[tuple[int, int], dict[tuple[int, int], tuple[str, int]]] = {}
    for ends, node, cage, lane in (
        (plan.a, links.a, links.a_cage, links.a_lane),
        (plan.b, links.b, links.b_cage, links.b_lane),
    ):
        for row in np.flatnonzero(nodes.kind[node] >= LEAF).tolist():
            kind = int(nodes.kind[node[row]]), int(nodes.model[node[row]])
            name = plan.port_names[int(ends.port[row])], int(ends.number[row])
            place = int(cage[row]), int(lane[row])
            assert named.setdefault(kind, {}).setdefault(place, name) == name
    for places in named.values():
        assert len({name for name, _ in places.values()}) == len(places)
        assert len({number for _, number in places.values()}) == len(places)


@SETTINGS
@given(shapes())
def test_every_device_and_port_of_a_random_network_has_a_name_of_its_own(drawn) -> None:
    instance, shape = drawn
    plan = bare_plan(instance, build_clos(shape))
    assert len(set(plan.devices.name)) == len(plan.devices.name)
    ends = ends_of(plan)
    assert len(set(ends)) == len(ends) == 2 * plan.fabric.n_links
    assert sorted(plan.order.tolist()) == list(range(plan.fabric.n_links))
    check_pattern(plan)


@pytest.mark.parametrize("name", NAMES)
def test_ports_repeat_from_switch_to_switch(name: str) -> None:
    plan = plan_of(name)
    check_pattern(plan)
    counts = design_file(name).record.counts
    roles = [ROLES[role] for role in plan.devices.role.tolist()]
    assert [roles.count(role) for role in ("leaf", "spine", "core")] == [counts.leaf, counts.spine, counts.core]


def test_the_names_say_rail_plane_pod_and_network() -> None:
    rails = set(plan_of("rails").devices.name)
    assert {"rail3-plane0-leaf01", "rail7-plane0-spine00", "server63", "management15"} <= rails
    assert plan_of("pods").devices.name[-1] == "plane0-core03"
    assert "plane0-pod3-leaf01" in plan_of("pods").devices.name
    assert "plane1-leaf00" in plan_of("planes").devices.name
    assert "rail7-plane0-leaf01" in plan_of("mesh").devices.name, "a network whose GPUs are all of one rail"
    assert "fabric2-plane0-leaf00" in plan_of("racks").devices.name, "a network of several rails among others"
    assert {"used-a", "used-b"} <= set(plan_of("existing").devices.name)


def test_ports_of_servers_say_rail_twin_and_port() -> None:
    assert {"rail0", "rail7", "swp1s0", "port0"} <= set(plan_of("rails").port_names)
    assert {"rail0n7p0", "rail0n7p1", "swp1s3"} <= set(plan_of("planes").port_names)
    assert {"rail0", "rail71"} <= set(plan_of("racks").port_names)
    assert {"rail2n1", "rail3"} <= set(plan_of("existing").port_names), "servers of eight and of four on four rails"


def test_patterns_change_the_names_and_nothing_else() -> None:
    names = names_from_options(["leaf=l[r{rail}-]{index}", "port=p{cage}[/{split}]", "nic=eth{nic}[-{port}]"])
    plan, usual = plan_of("rails", names), plan_of("rails")
    assert {"lr0-00", "lr7-01"} <= set(plan.devices.name)
    assert {"p1/1", "p1/2", "eth7"} <= set(plan.port_names)
    assert plan.order.tolist() == usual.order.tolist()
    assert plan.a.number.tolist() == usual.a.number.tolist()


def test_devices_that_a_pattern_does_not_tell_apart_are_counted() -> None:
    assert "x15" in plan_of("rails", names_from_options(["leaf=x{index}"])).devices.name


@pytest.mark.parametrize(
    ("option", "words"),
    [("leaf=server{index}", "2 devices named"), ("leaf=pod{pod}-{index}", "pod has no value")],
)
def test_names_that_clash_or_have_no_value_are_refused(option: str, words: str) -> None:
    with pytest.raises(ExportError) as caught:
        plan_of("rails", names_from_options([option]))
    assert words in str(caught.value)


def test_an_owned_switch_whose_name_no_list_can_hold_is_refused() -> None:
    file = design_file("existing")
    owned = (replace(file.fabric.owned[0], name="line\nbreak"), *file.fabric.owned[1:])
    with pytest.raises(ExportError, match="printable"):
        make_plan(replace(file, fabric=replace(file.fabric, owned=owned)))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("b_lane", 5, "a port that the model has"),
        ("a_cage", 3, "a port that the NIC has"),
        ("gbps", 123, "a port that the model has"),
        ("b", 0, "a switch at the upper end"),
    ],
)
def test_a_link_that_ends_at_no_port_is_refused(column: str, value: int, words: str) -> None:
    document = document_of("joined-64")
    document["fabric"]["links"][column][0] = value
    with pytest.raises(ExportError, match=words):
        make_plan(design_from_document(document), Names())


def test_two_links_at_one_port_are_refused() -> None:
    document = document_of("joined-64")
    links = document["fabric"]["links"]
    for column in ("b", "b_cage", "b_lane"):
        links[column][1] = links[column][0]
    with pytest.raises(ExportError, match="2 links at plane0-leaf00:swp1s0"):
        make_plan(design_from_document(document))
