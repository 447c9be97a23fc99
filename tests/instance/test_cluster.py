"""Clusters as an instance file gives them: alike or of several kinds of servers, with switches that are there."""

from pathlib import Path
from typing import Any

import pytest

from designer import load_instance
from designer.catalog import load_catalog
from designer.catalog.components import PortMode
from designer.errors import InstanceError
from designer.instance.instance import Cluster, ExistingSwitch
from designer.instance.load import instance_from_document
from designer.result import cluster_document
from designer.workload.phases import derive_traffic

MIXED: dict[str, Any] = {
    "servers": [
        {"count": 7, "gpu": "h100-sxm", "nic": "cx7-400"},
        {"count": 3, "gpu": "a100-sxm", "gpus": 4, "nic": "cx7-200"},
    ],
    "existing": [
        {"name": "used-a", "switch": "qm9700", "free_ports": 11},
        {"name": "used-b", "switch": "sn5600", "free_ports": 64},
    ],
}
ALIKE: dict[str, Any] = {"gpus": 16, "gpu": "h100-sxm", "nic": "cx7-400"}


def cluster_of(section: dict[str, Any], **others: Any) -> Cluster:
    document = {"name": "test", "cluster": section, "workload": [{"demand": "ring"}], **others}
    return instance_from_document(document).cluster


def problems_of(section: dict[str, Any], **others: Any) -> list[str]:
    """Every problem as one text, `field: found; allowed`."""
    with pytest.raises(InstanceError) as refused:
        cluster_of(section, **others)
    return [f"{problem.field}: {problem.found}; {problem.allowed}" for problem in refused.value.problems]


def test_the_slowest_of_some_gpus() -> None:
    """H100 at 400 Gb/s up to GPU 55, A100 at 200 from 56 on: what a job on both goes at; two ports of a NIC add up."""
    cluster = cluster_of(MIXED)
    found = [cluster.slowest(first, gpus) for first, gpus in ((0, 56), (55, 1), (56, 12), (48, 16), (0, 68))]
    fast, slow = ("h100-sxm", 400.0), ("a100-sxm", 200.0)
    assert [(gpu.key, gbps) for gpu, gbps in found] == [fast, fast, slow, slow, slow]
    gpu, gbps = cluster_of(ALIKE | {"nic": "cx7-2x200"}).slowest(8, 8)
    assert (gpu.key, gbps) == ("h100-sxm", 400.0)


def test_kinds_of_servers_one_after_the_other() -> None:
    """GPUs are numbered kind by kind; the domain divides every server; the first kind gives GPU and NIC."""
    cluster = cluster_of(MIXED)
    assert (cluster.gpus, cluster.hb_domain, cluster.rails, cluster.irregular) == (68, 4, 4, True)
    assert (cluster.gpu.key, cluster.nic.key) == ("h100-sxm", "cx7-400")
    assert [(kind.count, kind.gpus, kind.gpu.key, kind.nic.key) for kind in cluster.kinds()] == [
        (7, 8, "h100-sxm", "cx7-400"),
        (3, 4, "a100-sxm", "cx7-200"),
    ]
    assert cluster.kind_ranges() == (range(56), range(56, 68))
    assert cluster.scale_up_gbps == 2400.0
    assert [(item.name, item.switch.key, item.free_ports) for item in cluster.existing] == [
        ("used-a", "qm9700", 11),
        ("used-b", "sn5600", 64),
    ]


def test_servers_that_are_alike_are_one_kind() -> None:
    cluster = cluster_of(ALIKE | {"existing": MIXED["existing"]})
    (kind,) = cluster.kinds()
    assert not cluster.irregular
    assert (kind.count, kind.gpus, kind.nic.key) == (2, 8, "cx7-400")
    assert cluster.kind_ranges() == (range(16),)
    assert len(cluster.existing) == 2
    halves = cluster_of(ALIKE | {"hb_domain": 4})
    assert [(kind.count, kind.gpus) for kind in halves.kinds()] == [(4, 4)]


def test_traffic_of_a_mixed_cluster_takes_every_domain() -> None:
    """68 GPUs in domains of 4: a ring of 17 domains on each of 4 rails."""
    document = {"name": "test", "cluster": MIXED, "workload": [{"demand": "ring"}]}
    traffic = derive_traffic(instance_from_document(document))
    assert (traffic.gpus, traffic.hb_domain, traffic.rails) == (68, 4, 4)
    assert {part.size for phase in traffic.phases for step in phase.steps for part in step.components} == {17}


def test_a_design_file_keeps_the_cluster() -> None:
    """Servers and switches as they were given, and beside them what follows from them; nothing more where all alike."""
    document = {"name": "test", "cluster": MIXED, "workload": [{"demand": "ring"}]}
    kept = cluster_document(instance_from_document(document))
    assert kept == {
        "gpus": 68,
        "gpu": "h100-sxm",
        "nic": "cx7-400",
        "hb_domain": 4,
        "rails": 4,
        "management_ports": 0,
        "servers": [MIXED["servers"][0] | {"gpus": 8}, MIXED["servers"][1]],
        "existing": MIXED["existing"],
    }
    alike = cluster_document(instance_from_document(document | {"cluster": ALIKE}))
    assert alike.keys() == {"gpus", "gpu", "nic", "hb_domain", "rails", "management_ports"}


@pytest.mark.parametrize(
    ("key", "mode", "free_ports", "cages"),
    [
        ("qm9700", PortMode(2, 400), 11, range(26, 32)),
        ("qm9700", PortMode(2, 400), 64, range(32)),
        ("sn5600", PortMode(1, 800), 3, range(61, 64)),
        ("sn4600", PortMode(1, 200), 1, range(63, 64)),
    ],
)
def test_free_ports_are_those_of_the_last_cages(key: str, mode: PortMode, free_ports: int, cages: range) -> None:
    """The native mode is the fastest; two ports to a cage make six cages of eleven ports."""
    switch = load_catalog("builtin").switches[key]
    assert switch.native_mode == mode
    assert ExistingSwitch("used", switch, free_ports).free_cages == cages


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (MIXED | {"gpus": 68}, ["cluster.gpus: 68; no such field beside servers"]),
        (MIXED | {"nic": "cx7-400", "rails": 4}, ["cluster.nic: 'cx7-400'; no such", "cluster.rails: 4; no such"]),
        (MIXED | {"gpu": "h100-sxm", "hb_domain": 8}, ["cluster.gpu: 'h100-sxm'; no", "cluster.hb_domain: 8; no such"]),
        ({"gpus": 16, "gpu": "h100-sxm"}, ["cluster.nic: nothing; a component of the catalog"]),
        ({}, ["cluster.gpu: nothing", "cluster.nic: nothing", "cluster.gpus: nothing; the number of GPUs"]),
        ({"servers": []}, ["cluster.servers: "]),
    ],
)
def test_one_of_both_forms(section: dict[str, Any], expected: list[str]) -> None:
    assert_told(problems_of(section), expected)


def assert_told(found: list[str], expected: list[str]) -> None:
    """Each problem begins with what is expected, in any order, and there is no other."""
    assert len(found) == len(expected), found
    for start in expected:
        assert any(text.startswith(start) for text in found), (start, found)


def servers(**changes: Any) -> dict[str, Any]:
    return {"servers": [MIXED["servers"][0], MIXED["servers"][1] | changes]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"gpu": "a101"}, "cluster.servers[1].gpu: 'a101'; a component of the catalog, one of: a100-sxm"),
        ({"nic": "cx77"}, "cluster.servers[1].nic: 'cx77'; a component of the catalog, one of: cx6-200"),
        ({"nic": "cx7-2x200"}, "cluster.servers[1].nic: 'cx7-2x200'; a NIC with a socket of its own and one port: cx6"),
        ({"nic": "cx7-400-dgx"}, "cluster.servers[1].nic: 'cx7-400-dgx'; a NIC with a socket of its own"),
        ({"gpus": 16}, "cluster.servers[1].gpus: 16; at most the 8 GPUs that the scale-up network of a100-sxm joins"),
        ({"gpus": 0}, "cluster.servers[1].gpus: 0; "),
        ({"count": 0}, "cluster.servers[1].count: 0; "),
        ({"count": 1 << 20}, "cluster.servers: 4194360 GPUs; at most 1048576"),
        ({"rail": 4}, "cluster.servers[1].rail: the unknown field 'rail'"),
    ],
)
def test_servers_that_cannot_be(changes: dict[str, Any], expected: str) -> None:
    assert_told(problems_of(servers(**changes)), [expected])


@pytest.mark.parametrize("cluster", [MIXED, ALIKE], ids=["mixed", "alike"])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": "used-a"}, "cluster.existing[1].name: 'used-a'; a name that no other switch has"),
        ({"name": ""}, "cluster.existing[1].name: "),
        ({"switch": "sn1"}, "cluster.existing[1].switch: 'sn1'; a switch of the catalog, one of: "),
        ({"free_ports": 65}, "cluster.existing[1].free_ports: 65; 1 to the 64 ports of a sn5600"),
        ({"free_ports": 0}, "cluster.existing[1].free_ports: 0; "),
        ({"ports": 3}, "cluster.existing[1].ports: the unknown field 'ports'"),
    ],
)
def test_existing_switches_that_cannot_be(cluster: dict[str, Any], changes: dict[str, Any], expected: str) -> None:
    existing = [MIXED["existing"][0], MIXED["existing"][1] | changes]
    assert_told(problems_of(cluster | {"existing": existing}), [expected])


def test_an_existing_switch_must_speak_with_some_nic() -> None:
    ethernet_only = ALIKE | {"nic": "thor2-400", "existing": MIXED["existing"]}
    told = "qm9700, which speaks infiniband; a switch that speaks with the NICs: ethernet"
    assert_told(problems_of(ethernet_only), [f"cluster.existing[0].switch: {told}"])
    mixed = {"servers": [MIXED["servers"][0], MIXED["servers"][1] | {"nic": "thor2-400"}]}
    assert len(cluster_of(mixed | {"existing": MIXED["existing"]}).existing) == 2


def test_all_problems_at_once_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "mixed.yaml"
    path.write_text(
        "name: test\n"
        "cluster:\n"
        "  rails: 4\n"
        "  servers:\n"
        "    - {count: 7, gpu: h100-sxm, nic: cx77}\n"
        "    - count: 3\n"
        "      gpu: a100\n"
        "      nic: cx7-2x200\n"
        "  existing:\n"
        "    - {name: a, switch: qm9700, free_ports: 65}\n"
        "    - {name: a, switch: none, free_ports: 1}\n"
        "workload: [{demand: any}]\n"
    )
    with pytest.raises(InstanceError) as refused:
        load_instance(path)
    assert {(problem.line, problem.field) for problem in refused.value.problems} == {
        (3, "cluster.rails"),
        (5, "cluster.servers[0].nic"),
        (7, "cluster.servers[1].gpu"),
        (8, "cluster.servers[1].nic"),
        (10, "cluster.existing[0].free_ports"),
        (11, "cluster.existing[1].name"),
        (11, "cluster.existing[1].switch"),
    }


def test_a_mixed_cluster_runs_on_one_port_to_a_nic() -> None:
    """Planes of one kind of NIC mean nothing to the other."""
    fast = {"servers": [MIXED["servers"][0] | {"nic": "cx8-800"}, MIXED["servers"][1]]}
    expected = "search.planes: [2]; at least one number of ports that cx8-800, cx7-200 offers: 1"
    assert_told(problems_of(fast, search={"planes": [2]}), [expected])
    assert cluster_of(fast, search={"planes": [1, 2]}).gpus == 68
    ethernet = {"servers": [MIXED["servers"][0] | {"nic": "thor2-400"}]}
    expected = "search.protocols: ['infiniband']; a protocol of thor2-400: ethernet"
    assert_told(problems_of(ethernet, search={"protocols": ["infiniband"]}), [expected])


def test_demands_take_whole_domains_of_the_common_size() -> None:
    """Six GPUs are no whole domains of 4, however the servers are."""
    found = problems_of(MIXED, workload=[{"demand": "ring", "gpus": 6}])
    assert_told(found, ["workload[0].gpus: 6 GPUs from 0 on; whole HB domains of 4 GPUs"])
