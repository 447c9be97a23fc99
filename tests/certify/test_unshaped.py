"""Networks without a shape, of servers of two kinds, in part of switches that were there: design files of them hold."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from damaged import check, told, with_counts

from designer.certify.certificate import EXACT
from designer.certify.failures import FailureStudy, certify_failures, exhaustive_singles
from designer.certify.read_design import design_from_document
from designer.certify.structure import check_structure
from designer.certify.throughput import TOGETHER, Judge, certify_phases, step_bounds
from designer.certify.view import FabricView, Failure
from designer.costing.bill import bill_of_materials
from designer.costing.pricing import Pricing
from designer.digest import with_digest
from designer.errors import InputError
from designer.fabric.fabric import SPINE, Fabric, OwnedSwitch
from designer.instance.instance import Instance
from designer.workload.phases import derive_traffic
from tests.certify.unshaped import Wires, design_document, mixed_instance
from tests.reference.flow_lp import ecmp_by_paths, graph_of, rates_of, throughput
from tests.strategies import Document

OLD = {"name": "old", "switch": "double", "free_ports": 7}
ALL = {"name": "all", "demand": "all-to-all"}
FAST_SHIFT = {"name": "fast", "demand": "shift", "by": 2, "gpus": 8}
FLOORS = {"throughput": {"fast": 0.5}}
FAST_GBPS, SLOW_GBPS = 400, 200


def joined(workload: list[Document] | None = None, links: int = 2, **sections: Any) -> tuple[Instance, Fabric]:
    """Half of each kind of servers on a new switch, the others on an old one, links of 400 Gb/s between."""
    sections = {"requirements": FLOORS if workload is None else {}} | sections
    instance = mixed_instance(workload or [ALL, FAST_SHIFT], [OLD], **sections)
    wires = Wires(instance)
    new, old = wires.buy("eight"), wires.use(instance.cluster.existing[0])
    for switch, ranges in ((new, (range(4), range(8, 10))), (old, (range(4, 8), range(10, 12)))):
        for gpus in ranges:
            wires.attach(switch, gpus)
    wires.join(new, old, links)
    return instance, wires.fabric()


def ring_of_three() -> tuple[Instance, Fabric]:
    """Three new switches in a ring: one server of 4 on each of two, the small ones on the third."""
    instance = mixed_instance([ALL, FAST_SHIFT])
    wires = Wires(instance)
    switches = [wires.buy("eight") for _ in range(3)]
    for switch, gpus in zip(switches, (range(4), range(4, 8), range(8, 12)), strict=True):
        wires.attach(switch, gpus)
    for one, other, count in ((0, 1, 2), (1, 2, 1), (0, 2, 1)):
        wires.join(switches[one], switches[other], count)
    return instance, wires.fabric()


def test_the_whole_file_holds() -> None:
    """A design of a mixed cluster with a switch that was there: structure, bill, traffic and certificate, all of it."""
    result = check(design_document(*joined()), seal=False)
    assert result.ok, told(result)
    assert result.certificate.met
    assert {check.name for check in result.certificate.structure.checks} >= {"protocols", "switches there before"}
    assert result.certificate.rail_only is not None
    assert "servers that are all alike" in result.certificate.rail_only.words


def test_relays_are_as_fast_as_the_fastest_phase_and_the_slowest_domain() -> None:
    """A hop at 400 of 2400 Gb/s, though other phases run at 200 and other GPUs have 3600."""
    instance, fabric = joined([ALL, {"name": "fast", "demand": "all-to-all", "gpus": 8}])
    assert design_document(instance, fabric)["certificate"]["relays"]["bound"] == pytest.approx(400 / 2400)


@pytest.mark.parametrize("build", [joined, ring_of_three])
def test_values_are_those_of_the_plain_lp(build: Callable[[], tuple[Instance, Fabric]]) -> None:
    """Every phase at the rate of its own slowest NIC; every GPU a node, every link a pair of arcs."""
    instance, fabric = build()
    demands = derive_traffic(instance)
    results = certify_phases(fabric, demands, instance.requirements, Judge(), instance.cluster.scale_up_gbps)
    rates = {"all": SLOW_GBPS, "fast": FAST_GBPS}
    seen: dict[str, float] = {}
    for phase, result in zip(demands.phases, results, strict=True):
        sent = rates_of(demands, phase, phase.steps[0], rates[phase.name])
        truth = min(1.0, throughput(graph_of(fabric), sent))
        assert result.interval.lower == pytest.approx(truth, abs=EXACT), phase.name
        assert result.interval.upper == pytest.approx(truth, abs=EXACT), phase.name
        ecmp = min(1.0, ecmp_by_paths(graph_of(fabric), sent))
        assert result.interval.ecmp == pytest.approx(ecmp, abs=EXACT), phase.name
        seen[phase.name] = truth
    assert 0 < seen["fast"] < 1, "a value that the other line rate would not give"


def test_what_is_sent_between_fast_servers_does_not_know_of_slow_ones() -> None:
    """Two servers of 4 x 400 Gb/s, all crossing 2 x 400: one half. At 200 Gb/s it would be whole."""
    instance, fabric = joined()
    phases = certify_phases(fabric, derive_traffic(instance), instance.requirements, Judge(), 2400.0)
    assert [round(phase.interval.lower, 6) for phase in phases] == [1.0, 0.5]
    assert [phase.met for phase in phases] == [True, True]


@pytest.mark.parametrize("links", [2, 5])
def test_jobs_at_once_run_each_at_its_own_rate(links: int) -> None:
    """Half of the servers across: 4 x 400 Gb/s of the fast job and 2 x 200 of the slow one share the links."""
    fast = {"name": "fast", "demand": "shift", "by": 2, "gpus": 8}
    slow = {"name": "slow", "demand": "shift", "first_gpu": 8, "gpus": 4}
    instance = mixed_instance([fast, slow])
    wires = Wires(instance)
    ends = [wires.buy("sixteen"), wires.buy("sixteen")]
    for switch, ranges in zip(ends, ((range(4), range(8, 10)), (range(4, 8), range(10, 12))), strict=True):
        for gpus in ranges:
            wires.attach(switch, gpus)
    wires.join(*ends, links)
    phases = certify_phases(wires.fabric(), derive_traffic(instance), instance.requirements, Judge(), 2400.0)
    found = {phase.job: phase.interval.lower for phase in phases}
    assert found[TOGETHER] == pytest.approx(min(1.0, links * 400 / (4 * 400 + 2 * 200)))


@pytest.mark.parametrize("build", [joined, ring_of_three])
def test_failures_by_classes_are_those_one_by_one(build: Callable[[], tuple[Instance, Fabric]]) -> None:
    """Links between leaves, switches, NICs of both speeds, GPUs and domains."""
    instance, fabric = build()
    demands = derive_traffic(instance)
    study = FailureStudy(fabric, demands, instance.requirements, instance.cluster.scale_up_gbps, Judge())
    by_class, one_by_one = certify_failures(study, pairs=False), exhaustive_singles(study)
    count: Counter[str] = Counter()
    for result in by_class:
        count[result.removed] += result.stands_for
    links = int((fabric.links.a >= fabric.gpus).sum())
    switches = fabric.n_nodes - fabric.gpus
    assert count == {"link:leaf-leaf": links, "switch:leaf": switches, "nic": 12, "gpu": 12, "domain": 6}
    assert sorted(map(repr, map(_rounded, by_class))) == sorted(map(repr, map(_rounded, one_by_one)))


def _rounded(result: Any) -> tuple[Any, ...]:
    values = (result.lower, result.upper, result.ecmp, result.spread, result.single_relay)
    near = tuple(None if value is None else round(value, 5) + 0.0 for value in values)
    return (result.removed, result.stands_for, *near, result.gpus_cut_off, result.met)


@pytest.mark.parametrize("pattern", ["all-to-all", "any"])
@pytest.mark.parametrize(("gpu", "left"), [(1, 1.0), (9, 0.5)])
def test_a_fast_relay_carries_more_than_a_slow_phase_asks(pattern: str, gpu: int, left: float) -> None:
    """Pairs of like servers, all at the 200 Gb/s of the slowest: a relay of 400 Gb/s carries two of them in full."""
    instance = mixed_instance([{"name": "pairs", "demand": pattern, "group": 2}])
    wires = Wires(instance)
    wires.attach(wires.buy("sixteen"), range(12))
    fabric, demands = wires.fabric(), derive_traffic(instance)
    (phase,) = demands.phases
    row = int(np.flatnonzero(fabric.links.a == gpu)[0])
    lost = FabricView(fabric, Failure(links=(row,)), FabricView(fabric))
    for policy in ("spread", "single-relay"):
        bounds = step_bounds(Judge(), lost, demands, phase, phase.steps[0], 2400.0, policy)
        assert bounds.lower <= left <= bounds.upper + EXACT
        if pattern == "all-to-all" or gpu == 9:
            assert min(bounds.lower, 1.0) == pytest.approx(left)


def test_the_bill_leaves_out_what_was_there_and_counts_what_is_plugged_into_it() -> None:
    """The same network bought whole costs one switch more, and nothing else differs."""
    instance, fabric = joined()
    pricing = Pricing(instance.objective, instance.energy)
    bought = bill_of_materials(replace(fabric, owned=()), instance.catalog, pricing)
    with_old = bill_of_materials(fabric, instance.catalog, pricing)
    assert bought.capex_cents - with_old.capex_cents == 1500_00
    assert with_old.pieces("switches") == 1
    assert with_old.pieces("transceivers") == bought.pieces("transceivers") > 0
    both = replace(fabric, owned=(*fabric.owned, OwnedSwitch(12, "other", 8)))
    assert bill_of_materials(both, instance.catalog, pricing).pieces("switches") == 0
    instance, fabric = ring_of_three()
    one_of_three = bill_of_materials(replace(fabric, owned=(OwnedSwitch(13, "old", 8),)), instance.catalog, pricing)
    assert one_of_three.pieces("switches") == 2


def test_the_fabric_keeps_its_owned_switches_in_a_file() -> None:
    _, fabric = joined()
    document = fabric.to_document()
    assert Fabric.from_document(document).owned == fabric.owned == (OwnedSwitch(13, "old", 7),)
    del document["owned"]
    assert Fabric.from_document(document).owned == ()


def found_in(instance: Instance, fabric: Fabric) -> str:
    structure = check_structure(fabric, instance.catalog, instance.cluster, fabric.counts(), family="link-placement")
    return "\n".join(f"{check.name}: {line}" for check in structure.checks for line in check.found)


def test_one_link_more_than_the_old_switch_has_ports_for() -> None:
    """Three links take a cage more than its last ones, and a port more than it has free."""
    assert found_in(*joined()) == ""
    instance, fabric = joined(links=3)
    words = found_in(instance, fabric)
    assert "cages: leaf node 13, cage 4 lane 0" in words
    assert "switch old (node 13): links take 8 ports, free are 7" in words


@pytest.mark.parametrize(
    ("free_ports", "words"),
    [
        (8, "model double, 7 free ports; the cluster has model double, 8 free ports"),
        (6, "model double, 7 free ports; the cluster has model double, 6 free ports"),
    ],
)
def test_free_ports_are_those_of_the_cluster(free_ports: int, words: str) -> None:
    instance, fabric = joined()
    (known,) = instance.cluster.existing
    cluster = replace(instance.cluster, existing=(replace(known, free_ports=free_ports),))
    assert words in found_in(replace(instance, cluster=cluster), fabric)


def test_ports_of_a_broken_out_cage_count_by_their_part() -> None:
    """Five free ports of 400 Gb/s: three and four of 200 fit, four and four do not; cages below are not free."""
    old = {"name": "old", "switch": "double", "free_ports": 5}
    fast = [{"name": "fast", "demand": "all-to-all", "gpus": 2, "across": "cluster"}]
    for links, problem in ((3, ""), (4, "switch old (node 12): links take 6 ports, free are 5")):
        instance = mixed_instance(fast, [old])
        wires = Wires(instance)
        used = wires.use(instance.cluster.existing[0], ("up", 400))
        first, second = wires.buy("eight"), wires.buy("eight")
        wires.attach(used, range(8, 12))
        wires.attach(first, range(4))
        wires.attach(second, range(4, 8))
        wires.join(used, first, links - 1)
        wires.join(used, second, 1)
        wires.join(first, second, 1)
        fabric = wires.fabric()
        assert problem in found_in(instance, fabric)
        assert problem or not found_in(instance, fabric)
        moved = replace(fabric.links, a_cage=fabric.links.a_cage - (fabric.links.a == 12))
        assert "links in cages 0, free are 1 to 3" in found_in(instance, replace(fabric, links=moved))


def test_the_port_of_a_cage_that_was_in_use_stays_in_use() -> None:
    """Seven of eight ports free: of the first cage the second half, ports 2 and 3 of four."""
    instance, fabric = joined()
    slow = np.isin(fabric.links.a, (10, 11))
    assert fabric.links.b_cage[slow].tolist() == [0, 0]
    assert fabric.links.b_lane[slow].tolist() == [2, 3]
    for back in (1, 2):
        moved = replace(fabric.links, b_lane=fabric.links.b_lane - back * slow)
        words = f"a link at port {2 - back} of cage 0, a part of which was in use"
        assert words in found_in(instance, replace(fabric, links=moved))


def test_a_switch_that_runs_few_ports_keeps_those_in_use() -> None:
    """Ten of its ports are in use: of the 12 that the model runs two are left, however its cages are broken out."""
    instance, fabric = joined()
    few = replace(instance.catalog.switches["double"], max_ports=8)
    catalog = replace(instance.catalog, switches={**instance.catalog.switches, "double": few})
    (known,) = instance.cluster.existing
    cluster = replace(instance.cluster, existing=(replace(known, switch=few),))
    structure = check_structure(fabric, catalog, cluster, fabric.counts(), family="link-placement")
    (check,) = [check for check in structure.checks if check.name == "switches there before"]
    assert check.found == ("switch old (node 13): 8 links, it runs 7 more ports at most",)


def test_switches_that_speak_nothing_in_common() -> None:
    """An InfiniBand switch between Ethernet ones: each pair of ports may fit, the network does not work."""
    instance, fabric = ring_of_three()
    foreign = replace(instance.catalog.switches["eight"], protocols=("infiniband",))
    catalog = replace(instance.catalog, switches={**instance.catalog.switches, "eight": foreign})
    structure = check_structure(fabric, catalog, instance.cluster, fabric.counts(), family="link-placement")
    (check,) = [check for check in structure.checks if check.name == "protocols"]
    assert not check.met
    assert "eight infiniband" in check.found[0]
    assert "nic-200 ethernet" in check.found[0]


def test_such_a_network_is_no_clos() -> None:
    """Without the family, the rules of regular networks speak."""
    instance, fabric = joined()
    structure = check_structure(fabric, instance.catalog, instance.cluster, fabric.counts())
    assert not structure.met


# Damage to design files.

Damage = Callable[[Document], None]


def _set(*path: Any, value: Any) -> Damage:
    def damage(document: Document) -> None:
        place: Any = document
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return damage


def _column(part: str, name: str, row: int, value: int) -> Damage:
    return _set("fabric", part, name, row, value=value)


def second_switch_claimed(document: Document) -> None:
    document["fabric"]["owned"].append({"node": 12, "name": "gift", "free_ports": 8})


def claim_moved(document: Document) -> None:
    document["fabric"]["owned"][0]["node"] = 12


def claim_dropped(document: Document) -> None:
    document["fabric"]["owned"] = []


def claimed_in_both(document: Document) -> None:
    """A switch that the instance does not have, in the cluster of the file and in its fabric."""
    second_switch_claimed(document)
    document["cluster"]["existing"].append({"name": "gift", "switch": "eight", "free_ports": 8})


def slow_hosts_at_400(document: Document) -> None:
    links = document["fabric"]["links"]
    for row, gpu in enumerate(links["a"]):
        if 8 <= gpu < 12:
            links["gbps"][row] = 400


def shorter_links(document: Document) -> None:
    document["fabric"]["media"][-1]["length_m"] = 1.0


DAMAGES: list[tuple[str, Damage, str]] = [
    ("a gift", second_switch_claimed, r"switch gift \(node 12\): the cluster has no switch of this name"),
    ("another model", claim_moved, r"switch old \(node 12\): model eight, 7 free ports; the cluster has model double"),
    ("not claimed", claim_dropped, r"bill: double for leaf is missing from the bill"),
    ("a gift in both", claimed_in_both, r"cluster: differs from that of the instance"),
    (
        "more free ports",
        _set("fabric", "owned", 0, "free_ports", value=8),
        r"model double, 8 free ports; the cluster has",
    ),
    ("a spine", _column("nodes", "kind", 12, SPINE), r"labels: spine node 12"),
    ("a pod", _column("nodes", "pod", 12, 0), r"labels: leaf node 12: pod 0"),
    ("a rail", _column("nodes", "rail", 13, 1), r"labels: leaf node 13: pod -1, rail 1"),
    ("a plane", _column("nodes", "plane", 13, 1), r"planes: NIC port 0 of GPU 4 is on leaf node 13 of plane 1"),
    ("two fabrics", _column("nodes", "fabric", 13, 1), r"connected: link \d+ joins fabric 0"),
    ("wrong module", _column("links", "medium", 4, 0), r"media: link 4: \w+ does not fit a cage small at 200 Gb/s"),
    ("slow NICs sped up", slow_hosts_at_400, r"NIC ports: nic-200 has no mode of 1 ports at 400 Gb/s"),
    ("short links", shorter_links, r"cabling.leaf_spine_m is 30 m"),
    ("a Clos", _set("family", value="clos"), r"structure: "),
]


@pytest.mark.parametrize(("damage", "words"), [item[1:] for item in DAMAGES], ids=[item[0] for item in DAMAGES])
def test_damage_is_found(damage: Damage, words: str) -> None:
    document = design_document(*joined())
    damage(document)
    with_counts(document)
    result = check(document)
    assert not result.ok
    assert re.search(words, told(result)), told(result)


UNREADABLE: list[tuple[Damage, str]] = [
    (_set("fabric", "owned", 0, "node", value=3), r"fabric.owned\[0\].node: found 3"),
    (_set("fabric", "owned", 0, "node", value=99), r"fabric.owned\[0\].node: found 99"),
    (_set("fabric", "owned", 0, "free_ports", value=0), r"fabric.owned\[0\].free_ports: found 0"),
    (_set("fabric", "owned", 0, "name", value=""), r"fabric.owned\[0\].name"),
    (_set("fabric", "owned", 0, "extra", value=1), r""),
    (_set("fabric", "owned", value=None), r"fabric.owned"),
    (_set("fabric", "owned", value=[{"node": 13, "name": "old", "free_ports": 7}] * 2), r"fabric.owned\[1\].node"),
    (
        _set("fabric", "owned", value=[{"node": node, "name": "old", "free_ports": 7} for node in (12, 13)]),
        r"fabric.owned\[1\].name: found 'old'",
    ),
    (_set("cluster", "gpus", value=10), r"cluster.gpus: found 10; allowed: 12, as the servers have it"),
    (_set("cluster", "hb_domain", value=4), r"cluster.hb_domain: found 4; allowed: 2"),
    (_set("cluster", "nic", value="nic-200"), r"cluster.nic: found 'nic-200'; allowed: 'nic-400'"),
    (_set("cluster", "servers", 0, "nic", value="none"), r"cluster.servers\[0\].nic: found 'none'"),
    (_set("cluster", "servers", 1, "count", value=0), r"cluster.servers\[1\].count"),
    (
        _set("cluster", "existing", 0, "free_ports", value=9),
        r"cluster.existing\[0\].free_ports: found 9; allowed: 1 to",
    ),
    (_set("cluster", "existing", 0, "switch", value="none"), r"cluster.existing\[0\].switch: found 'none'"),
    (_set("family", value="torus"), r"family"),
]


@pytest.mark.parametrize(("damage", "words"), UNREADABLE, ids=[str(number) for number in range(len(UNREADABLE))])
def test_what_is_no_such_design_is_refused_with_its_field(damage: Damage, words: str) -> None:
    document = design_document(*joined())
    damage(document)
    if not words:
        design_from_document(with_digest(document))
        return
    with pytest.raises(InputError, match=words):
        design_from_document(with_digest(document))
