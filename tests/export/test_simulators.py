"""Topologies for simulators: merged links and true counts for ns-3, dimensions for ASTRA-sim, arithmetic of htsim."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from exported import NAMES, WITHOUT_TIERS, bare_plan, design_file, document_of, file_of, plan_of, written
from hypothesis import HealthCheck, given, settings

from designer import Instance, instance_from_document, templates
from designer.certify.read_design import design_from_document
from designer.errors import ExportError
from designer.export.formats import FORMATS
from designer.export.plan import make_plan
from designer.export.uniform import uniform_clos
from designer.fabric.build import build_clos
from designer.fabric.fabric import CORE, GPU, LEAF, MANAGEMENT, SPINE
from designer.fabric.shape import ClosShape
from tests.strategies import shapes

SETTINGS = settings(
    derandomize=True, max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@pytest.mark.parametrize("name", NAMES)
def test_ns3_declares_as_many_links_as_follow_each_of_another_pair(name: str, tmp_path: Path) -> None:
    file, lines = design_file(name), written(plan_of(name), "ns3", tmp_path).read_text().splitlines()
    nodes, per_domain, nvswitches, switches, links, gpu_type = lines[0].split()
    cluster = file.cluster
    assert int(nodes) == cluster.gpus + int(nvswitches) + int(switches)
    assert int(switches) == file.record.counts.switches
    assert int(per_domain) * int(nvswitches) in (0, cluster.gpus)
    assert [int(number) for number in lines[1].split()] == list(range(cluster.gpus, int(nodes)))
    assert int(links) == len(lines) - 2
    pairs = [tuple(map(int, line.split()[:2])) for line in lines[2:]]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert max(max(pair) for pair in pairs) < int(nodes)
    assert all(re.fullmatch(r"\d+ \d+ \d+Gbps 0\.0+5ms 0|\d+ \d+ \d+Gbps 0\.000025ms 0", line) for line in lines[2:])
    assert gpu_type in ("H100", "NONE")


@pytest.mark.parametrize("name", NAMES)
def test_ns3_keeps_the_rate_of_every_gpu_and_switch(name: str, tmp_path: Path) -> None:
    """Parallel links go into one, with the sum of their rates; what GPUs have in their domain comes on top."""
    fabric, cluster = design_file(name).fabric, design_file(name).cluster
    lines = written(plan_of(name), "ns3", tmp_path).read_text().splitlines()
    domains = int(lines[0].split()[2])
    network: Counter[int] = Counter()
    in_domain: Counter[int] = Counter()
    for line in lines[2:]:
        a, b, rate = line.split()[:3]
        to_domain = cluster.gpus <= int(b) < cluster.gpus + domains
        for node in (int(a), int(b)):
            (in_domain if to_domain else network)[node] += int(rate.removesuffix("Gbps"))
    kind, links = fabric.nodes.kind, fabric.links
    switch = {int(node): cluster.gpus + domains + at for at, node in enumerate(np.flatnonzero(kind >= LEAF))}
    expected: Counter[int] = Counter()
    for a, b, gbps in zip(links.a.tolist(), links.b.tolist(), links.gbps.tolist(), strict=True):
        if kind[a] != MANAGEMENT:
            expected[switch.get(a, a)] += gbps
            expected[switch[b]] += gbps
    assert network == expected
    assert domains == 0 or in_domain[0] == cluster.scale_up_gbps


def test_ns3_merges_four_parallel_links_into_one_of_four_times_the_rate(tmp_path: Path) -> None:
    plan = plan_of("joined-64")  # a leaf has sixteen links to the one spine
    lines = written(plan, "ns3", tmp_path).read_text().splitlines()
    assert lines[0] == "77 8 8 5 132 H100"
    assert lines[-4:] == [f"{leaf} 76 6400Gbps 0.0005ms 0" for leaf in range(72, 76)]
    assert lines[2] == "0 64 3600Gbps 0.000025ms 0"
    told = FORMATS["ns3"].write(plan, tmp_path / "again") or ()
    assert told == ("60 parallel links are merged into others, whose rates they add to",)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_TIERS])
def test_astra_sim_has_as_many_npus_as_gpus_and_no_dimension_faster_than_the_one_below(
    name: str, tmp_path: Path
) -> None:
    file = design_file(name)
    network = yaml.safe_load(written(plan_of(name), "astra-sim", tmp_path).read_text())
    assert list(network) == ["topology", "npus_count", "bandwidth", "latency"]
    assert len({len(column) for column in network.values()}) == 1
    assert set(network["topology"]) == {"Switch"}
    assert np.prod(network["npus_count"]) == file.cluster.gpus
    assert min(network["npus_count"]) > 1
    assert network["bandwidth"] == sorted(network["bandwidth"], reverse=True)


@pytest.mark.parametrize(
    ("name", "counts", "gb_per_s"),
    [
        ("joined-64", [8, 2, 4], [450.0, 50.0, 50.0]),  # domains of a leaf, leaves
        ("racks", [72, 2], [900.0, 50.0]),  # leaves hold whole rails
        ("pods", [2, 2, 4], [3.125, 12.5, 12.5]),
        ("planes", [8, 32], [450.0, 50.0]),  # both ports of a NIC together
    ],
)
def test_astra_sim_has_a_dimension_for_the_domain_and_for_each_tier(
    name: str, counts: list[int], gb_per_s: list[float], tmp_path: Path
) -> None:
    network = yaml.safe_load(written(plan_of(name), "astra-sim", tmp_path).read_text())
    assert network["npus_count"] == counts
    if name != "pods":
        assert network["bandwidth"] == gb_per_s


def test_astra_sim_shows_what_uplinks_leave_of_the_rate(tmp_path: Path) -> None:
    """Leaves of the rails differ, so the least share counts; with half of the uplinks half of the rate is left."""
    told = FORMATS["astra-sim"].write(plan_of("rails"), tmp_path / "network") or ()
    network = yaml.safe_load((tmp_path / "network").read_text())
    assert (network["npus_count"], network["bandwidth"]) == ([8, 64], [450.0, 25.0])
    assert "least share" in told[0]
    document = {
        "name": "half",
        "cluster": {"gpus": 256, "gpu": "h100-sxm", "nic": "cx7-400"},
        "workload": [{"demand": "any"}],
        "requirements": {"throughput": {"any": 0.5}},
        "search": {"families": ["clos"], "switches": ["qm9700"], "leaf_sharing": "none", "leaf": {"down": 16, "up": 8}},
    }
    plan = make_plan(file_of(instance_from_document(document)))
    network = yaml.safe_load(written(plan, "astra-sim", tmp_path).read_text())
    assert (network["npus_count"], network["bandwidth"]) == ([8, 16, 2], [450.0, 50.0, 25.0])


@pytest.mark.parametrize("form", ["astra-sim", "htsim"])
@pytest.mark.parametrize("name", WITHOUT_TIERS)
def test_networks_without_tiers_are_refused(name: str, form: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="leaves that are joined with leaves"):
        written(plan_of(name), form, tmp_path)


def htsim_counts(text: str) -> tuple[int, int, int]:
    """Switches of each tier as `FatTreeTopology::set_custom_params` works them out, and the checks that it makes."""
    tiers: list[dict[str, int]] = []
    header: dict[str, int] = {}
    for line in text.splitlines():
        if not line:
            continue
        key, value = line.split()
        if key == "Tier":
            assert int(value) == len(tiers)
            tiers.append({"Bundle": 1, "Oversubscribed": 1})
        else:
            (tiers[-1] if tiers else header)[key] = int(value)
    assert len(tiers) == header["Tiers"]
    hosts, pods = header["Nodes"], header["Nodes"] // header["Podsize"]
    assert hosts % header["Podsize"] == 0
    assert header["Podsize"] % tiers[0]["Radix_Down"] == 0
    counts = [hosts // tiers[0]["Radix_Down"]]
    below, links = tiers[0], hosts
    for tier in tiers[1:]:
        assert below["Radix_Up"] % tier["Bundle"] == 0
        assert tier["Radix_Down"] % tier["Bundle"] == 0
        rate = links * below["Downlink_speed_Gbps"]
        assert rate % (tier["Downlink_speed_Gbps"] * below["Oversubscribed"]) == 0
        links = rate // (tier["Downlink_speed_Gbps"] * below["Oversubscribed"])
        assert links == counts[-1] * below["Radix_Up"]
        assert links % tier["Radix_Down"] == 0
        counts.append(links // tier["Radix_Down"])
        below = tier
    assert counts[1] % pods == 0
    assert counts[1] // pods == tiers[0]["Radix_Up"] // tiers[1]["Bundle"], "a leaf reaches every spine of its pod"
    return counts[0], counts[1], counts[2] if len(counts) == 3 else 0


@pytest.mark.parametrize("name", ["joined-64", "joined-704", "joined-1024", "pods"])
def test_htsim_builds_the_switches_of_the_design(name: str, tmp_path: Path) -> None:
    counts = design_file(name).record.counts
    text = written(plan_of(name), "htsim", tmp_path).read_text()
    assert htsim_counts(text) == (counts.leaf, counts.spine, counts.core)


def test_htsim_says_how_many_equal_networks_there_are(tmp_path: Path) -> None:
    document = {
        "name": "rails",
        "cluster": {"gpus": 1024, "gpu": "h100-sxm", "nic": "cx7-400"},
        "workload": [{"demand": "any"}],
        "search": {"switches": ["qm9700"]},
    }
    instance = instance_from_document(document)
    shape = next(item.shape for item in templates(instance) if item.name == "rail-only")
    assert isinstance(shape, ClosShape)
    told = FORMATS["htsim"].write(bare_plan(instance, build_clos(shape)), tmp_path / "topology") or ()
    assert told == ("one of 8 equal networks; they are simulated apart",)
    assert htsim_counts((tmp_path / "topology").read_text()) == (4, 2, 0)


@SETTINGS
@given(shapes())
def test_a_random_network_is_uniform_when_its_numbers_say_so_and_then_htsim_builds_it_or_says_why(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Instance, ClosShape]
) -> None:
    instance, shape = drawn
    plan, fabric = bare_plan(instance, build_clos(shape)), build_clos(shape)
    hosts = np.bincount(fabric.links.b[fabric.nodes.kind[fabric.links.a] == GPU], minlength=fabric.n_nodes)
    even = len(set(hosts[fabric.nodes.kind == LEAF].tolist())) == 1
    whole_pods = shape.cores is None or shape.leaves % shape.cores.leaves_per_pod == 0
    bundles = shape.spines is None or shape.spines.bundle is not None
    alike = shape.set_rails(shape.rail_sets - 1) == shape.layout.rails
    try:
        clos = uniform_clos(plan)
    except ExportError:
        assert not (even and whole_pods and bundles and alike)
        return
    assert even
    counts = [int((fabric.nodes.kind == kind).sum()) for kind in (LEAF, SPINE, CORE)]
    assert [tier.count * clos.fabrics for tier in clos.tiers] == [count for count in counts if count]
    path = tmp_path_factory.mktemp("htsim") / "topology"
    refused = ""
    try:
        FORMATS["htsim"].write(plan, path)
    except ExportError as error:
        refused = str(error)
    if refused:
        assert re.search("one tier|oversubscription|several spines of a pod", refused)
        return
    assert [count * clos.fabrics for count in htsim_counts(path.read_text())] == counts


def test_what_htsim_cannot_build_is_refused_with_the_reason(tmp_path: Path) -> None:
    for name, words in (
        ("uneven-704", "links of spines to one device: 2 to 3"),
        ("rails", "links down of leaves: 30 to 34"),
        ("planes", "one tier of switches"),
    ):
        with pytest.raises(ExportError, match=words):
            written(plan_of(name), "htsim", tmp_path)
    document = document_of("joined-64")
    for column in document["fabric"]["links"].values():
        del column[-1]
    with pytest.raises(ExportError, match="15 to 16"):
        written(make_plan(design_from_document(document)), "htsim", tmp_path)
    assert list(tmp_path.iterdir()) == []
