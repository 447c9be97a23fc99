"""Networks without a shape, drawn: every port once, cages not mixed, used switches on their free ports, planes."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer import design
from designer.catalog.components import Switch
from designer.catalog.media import LinkMedium
from designer.costing.pricing import MediaFinder
from designer.errors import InfeasibleError, NoDesignError
from designer.fabric.fabric import Fabric
from designer.fabric.placed import PlacedHosts, PlacedLinks, PlacedNetwork, PlacedSwitch, build_placement
from designer.instance.instance import Instance
from designer.search import Options
from tests.certify.unshaped import mixed_instance
from tests.strategies import BREAKOUT, OPTICS, Document, catalog, demands, instance_of, nic, switch

INSTANCE = mixed_instance([{"demand": "ring"}])
FAST, SLOW = INSTANCE.cluster.kinds()
EIGHT, SIXTEEN, DOUBLE = (INSTANCE.catalog.switches[key] for key in ("eight", "sixteen", "double"))
FIND = MediaFinder(INSTANCE.catalog)


def medium(lower: tuple[str, int], upper: tuple[Switch, int], gbps: int, length_m: float) -> LinkMedium:
    """The cheapest way to join cages of so many ports."""
    return FIND.between(lower, (upper[0].cage, upper[1]), gbps, length_m)[0]


def hosts(at: int, model: Switch, gpus: range, *, fast: bool) -> PlacedHosts:
    kind = FAST if fast else SLOW
    (mode,) = kind.nic.modes
    (port,) = model.modes_at(mode.gbps)
    found = medium((kind.nic.cage, 1), (model, port.ports_per_cage), mode.gbps, 15.0)
    return PlacedHosts(at, tuple(gpus), kind.nic, mode, port.ports_per_cage, found, 15.0)


def links(one: tuple[int, Switch], other: tuple[int, Switch], count: int, gbps: int = 400) -> PlacedLinks:
    (low,), (high,) = one[1].modes_at(gbps), other[1].modes_at(gbps)
    found = medium((one[1].cage, low.ports_per_cage), (other[1], high.ports_per_cage), gbps, 30.0)
    ends = low.ports_per_cage, high.ports_per_cage
    return PlacedLinks(one[0], other[0], count, gbps, *ends, found, 30.0)


def two_switches(free: int | None = 8, planes: int = 1) -> PlacedNetwork:
    """Six fast and two slow GPUs on a switch of sixteen, the others on one of four cages; two links, of two speeds."""
    new, old = PlacedSwitch(SIXTEEN), PlacedSwitch(DOUBLE, "" if free is None else "old", free)
    return PlacedNetwork(
        12,
        2,
        planes,
        (new, old),
        (
            hosts(0, SIXTEEN, range(3), fast=True),
            hosts(0, SIXTEEN, range(3, 6), fast=True),
            hosts(0, SIXTEEN, range(8, 10), fast=False),
            hosts(1, DOUBLE, range(6, 8), fast=True),
            hosts(1, DOUBLE, range(10, 12), fast=False),
        ),
        (links((0, SIXTEEN), (1, DOUBLE), 1), links((0, SIXTEEN), (1, DOUBLE), 1, 200)),
    )


Port = tuple[int, int, int]


def ports_of(fabric: Fabric) -> dict[Port, tuple[str, int, str | None]]:
    """Each port of a switch that has a link: to hosts or to switches, Gb/s, module of its cage."""
    table, found = fabric.links, dict[Port, tuple[str, int, str | None]]()
    rows = zip(
        table.a, table.a_cage, table.a_lane, table.b, table.b_cage, table.b_lane, table.gbps, table.medium, strict=True
    )
    for a, a_cage, a_lane, b, b_cage, b_lane, gbps, number in (map(int, row) for row in rows):
        use = fabric.media[number]
        ends = [((b, b_cage, b_lane), use.per_upper_cage)]
        if a >= fabric.gpus:
            ends.append(((a, a_cage, a_lane), use.per_lower_cage))
        for port, module in ends:
            assert port not in found, f"port {port} has two links"
            found[port] = ("host" if a < fabric.gpus else "up", gbps, module)
    return found


def check_cages(fabric: Fabric, models: dict[str, Switch]) -> None:
    """Lanes and cages exist; a cage holds one kind of ports, of one speed and one module."""
    cages: dict[tuple[int, int], set[tuple[str, int, str | None]]] = {}
    for (node, cage, lane), what in ports_of(fabric).items():
        model = models[fabric.models[int(fabric.nodes.model[node])]]
        assert 0 <= cage < model.cages
        assert 0 <= lane < max(mode.ports_per_cage for mode in model.modes_at(what[1]))
        cages.setdefault((node, cage), set()).add(what)
    assert all(len(kinds) == 1 for kinds in cages.values()), cages


@pytest.mark.parametrize("free", [None, 8])
def test_every_port_has_one_link_and_cages_are_not_mixed(free: int | None) -> None:
    fabric = build_placement(two_switches(free))
    check_cages(fabric, dict(INSTANCE.catalog.switches))
    assert fabric.counts()["endpoint_links"] == 12
    assert fabric.counts()["leaf_leaf_links"] == 2
    by_switch = Counter(port[0] for port in ports_of(fabric))
    assert by_switch == {12: 8 + 2, 13: 4 + 2}
    homes = dict(zip(fabric.links.a.tolist(), fabric.links.b.tolist(), strict=True))
    assert [homes[gpu] for gpu in range(12)] == [12] * 6 + [13] * 2 + [12] * 2 + [13] * 2
    assert [int(fabric.links.gbps[fabric.links.a == gpu][0]) for gpu in range(12)] == [400] * 8 + [200] * 4


def test_hosts_given_in_parts_share_cages() -> None:
    """Slow hosts of a switch in two parts fill one cage of two ports; fast ones of four cages take theirs."""
    parts = (hosts(0, EIGHT, range(8, 9), fast=False), hosts(0, EIGHT, range(9, 10), fast=False))
    fabric = build_placement(PlacedNetwork(12, 2, 1, (PlacedSwitch(EIGHT),), parts, ()))
    assert sorted(ports_of(fabric)) == [(12, 0, 0), (12, 0, 1)]


@pytest.mark.parametrize(("free", "cages"), [(8, {0, 1, 2, 3}), (6, {1, 2, 3}), (4, {2, 3})])
def test_a_used_switch_has_its_links_in_its_last_cages(free: int, cages: set[int]) -> None:
    """Two fast hosts in a cage; where there are enough free cages, slow hosts and links in cages of their own."""
    rest = (hosts(0, DOUBLE, range(10, 12), fast=False),) if free > 4 else ()
    up = (links((0, DOUBLE), (1, EIGHT), 1),)
    placed = PlacedNetwork(
        12,
        2,
        1,
        (PlacedSwitch(DOUBLE, "old", free), PlacedSwitch(EIGHT)),
        (hosts(0, DOUBLE, range(2), fast=True), *rest),
        up,
    )
    fabric = build_placement(placed)
    check_cages(fabric, dict(INSTANCE.catalog.switches))
    used = {cage for node, cage, _ in ports_of(fabric) if node == 12}
    assert used <= cages
    assert len(used) == (3 if free > 4 else 2)
    (owned,) = fabric.owned
    assert (owned.node, owned.name, owned.free_ports) == (12, "old", free)


def test_a_cage_that_is_half_taken_gets_the_fewest_links_at_its_end() -> None:
    """Three free ports: the last cage and the second half of the one before."""
    switches = PlacedSwitch(DOUBLE, "old", 3), PlacedSwitch(EIGHT)
    placed = PlacedNetwork(
        12, 2, 1, switches, (hosts(0, DOUBLE, range(2), fast=True),), (links((0, DOUBLE), (1, EIGHT), 1),)
    )
    ports = {port: what[0] for port, what in ports_of(build_placement(placed)).items() if port[0] == 12}
    assert ports == {(12, 3, 0): "host", (12, 3, 1): "host", (12, 2, 1): "up"}


def test_a_cage_that_is_half_taken_stays_as_it_is_where_others_suffice() -> None:
    switches = (PlacedSwitch(DOUBLE, "old", 3),)
    placed = PlacedNetwork(12, 2, 1, switches, (hosts(0, DOUBLE, range(2), fast=True),), ())
    assert sorted(ports_of(build_placement(placed))) == [(12, 3, 0), (12, 3, 1)]


def test_planes_are_alike_and_parts_that_are_not_joined_are_fabrics() -> None:
    """Three switches, two of them joined, in two planes: four fabrics, every plane with the same links."""
    one = instance_of(
        catalog({"s4": switch(4, 500)}, OPTICS, nic(((2, 400),), cages_per_nic=2)), {"gpus": 6}, [{"demand": "ring"}]
    )
    model, card = one.catalog.switches["s4"], one.cluster.nic
    finder = MediaFinder(one.catalog)
    host = finder.between((card.cage, 1), (model.cage, 1), 400, 15.0)[0]
    up = finder.between((model.cage, 1), (model.cage, 1), 400, 30.0)[0]
    placed = PlacedNetwork(
        6,
        1,
        2,
        (PlacedSwitch(model),) * 3,
        tuple(PlacedHosts(at, (2 * at, 2 * at + 1), card, card.modes[0], 1, host, 15.0) for at in range(3)),
        (PlacedLinks(0, 2, 2, 400, 1, 1, up, 30.0),),
    )
    fabric = build_placement(placed)
    check_cages(fabric, dict(one.catalog.switches))
    assert fabric.nodes.plane[6:].tolist() == [0, 0, 0, 1, 1, 1]
    assert fabric.nodes.fabric[6:].tolist() == [0, 1, 0, 2, 3, 2]
    counts = fabric.counts()
    assert (counts["fabrics"], counts["planes"], counts["endpoint_links"], counts["leaf_leaf_links"]) == (4, 2, 12, 4)
    ends = np.sort(np.stack([fabric.links.a, fabric.links.b]), axis=0).T.tolist()
    first = [(a if a < 6 else a - 6, b - 6) for a, b in ends if b < 9]
    second = [(a if a < 6 else a - 9, b - 9) for a, b in ends if b >= 9]
    assert sorted(first) == sorted(second)
    assert set(zip(fabric.links.a.tolist(), fabric.links.a_cage.tolist(), strict=True)) >= {
        (gpu, cage) for gpu in range(6) for cage in range(2)
    }


@st.composite
def used(draw: st.DrawFn) -> Instance:
    """A few GPUs of two kinds beside two used switches of two ports to a cage, odd numbers of them free."""
    fast, slow = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    parts = catalog({"s": switch(3, 900, ((2, 400), (4, 200))), "t": switch(5, 800, BREAKOUT)}, OPTICS)
    parts["nics"] = {"fast": nic(), "slow": nic(((1, 200),))}
    cluster: Document = dict.fromkeys(("gpu", "nic", "hb_domain"))
    cluster["servers"] = [
        {"count": fast, "gpu": "gpu", "gpus": 1, "nic": "fast"},
        {"count": slow, "gpu": "gpu", "gpus": 1, "nic": "slow"},
    ]
    cluster["existing"] = [
        {"name": f"used-{number}", "switch": "s", "free_ports": draw(st.integers(1, 6))} for number in range(2)
    ]
    demand = draw(demands({"gpus": fast + slow, "hb_domain": 1}, across=("rail",)))
    floor: dict[str, Any] = {"throughput": {demand["demand"]: draw(st.sampled_from([0.5, 1.0]))}}
    return instance_of(parts, cluster, [demand], requirements=floor, search={"switches": ["t"]})


@settings(derandomize=True, max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(used())
def test_what_the_search_draws_can_be_plugged_in(instance: Instance) -> None:
    """Drawn, priced to the cent of the program, and found sound by the certificate, on whatever ports are left."""
    try:
        result = design(instance, Options(time_limit_s=1.0))
    except (InfeasibleError, NoDesignError):
        return
    check_cages(result.fabric, dict(instance.catalog.switches))
    assert result.certificate is not None
    assert result.certificate.structure.met, result.certificate.structure
    assert result.certificate.met
