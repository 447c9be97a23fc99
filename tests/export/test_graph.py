"""Node-link JSON and GraphML: networkx reads both as the same multigraph, which is the design's."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from exported import NAMES, design_file, plan_of, written

from designer.export.plan import make_plan


def read_both(name: str, folder: Path) -> tuple[nx.MultiGraph, nx.MultiGraph]:
    plan = plan_of(name)
    node_link = nx.node_link_graph(json.loads(written(plan, "node-link", folder).read_text()), edges="edges")
    graphml = nx.read_graphml(written(plan, "graphml", folder), edge_key_type=int, force_multigraph=True)
    return node_link, graphml


@pytest.mark.parametrize("name", NAMES)
def test_both_read_back_as_the_same_multigraph(name: str, tmp_path: Path) -> None:
    node_link, graphml = read_both(name, tmp_path)
    assert isinstance(node_link, nx.MultiGraph)
    assert dict(node_link.nodes(data=True)) == dict(graphml.nodes(data=True))
    assert list(node_link.edges(keys=True, data=True)) == list(graphml.edges(keys=True, data=True))
    assert node_link.graph["name"] == graphml.graph["name"] == design_file(name).record.name


@pytest.mark.parametrize("name", NAMES)
def test_the_multigraph_is_the_one_of_the_fabric_with_gpus_gathered_in_servers(name: str, tmp_path: Path) -> None:
    graph, plan, fabric = read_both(name, tmp_path)[0], plan_of(name), design_file(name).fabric
    names, links = plan.devices.name, fabric.links
    expected: Counter[tuple[frozenset[str], int]] = Counter()
    for a, b, gbps in zip(links.a.tolist(), links.b.tolist(), links.gbps.tolist(), strict=True):
        expected[frozenset((names[plan.of_node[a]], names[plan.of_node[b]])), gbps] += 1
    assert Counter((frozenset((one, other)), data["gbps"]) for one, other, data in graph.edges(data=True)) == expected
    roles = Counter(role for _, role in graph.nodes(data="role"))
    counts = design_file(name).record.counts
    assert (roles["leaf"], roles["spine"], roles["core"]) == (counts.leaf, counts.spine, counts.core)
    assert sum(gpus or 0 for _, gpus in graph.nodes(data="gpus")) == fabric.gpus


def test_ports_are_those_of_source_and_target(tmp_path: Path) -> None:
    plan = plan_of("existing")
    document = json.loads(written(plan, "node-link", tmp_path).read_text())
    names, ports = plan.devices.name, plan.port_names
    ends = {
        (names[device], ports[port])
        for side in (plan.a, plan.b)
        for device, port in zip(side.device.tolist(), side.port.tolist(), strict=True)
    }
    for edge in document["edges"]:
        assert (edge["source"], edge["a_port"]) in ends
        assert (edge["target"], edge["b_port"]) in ends
    assert len({edge["key"] for edge in document["edges"]}) == len(document["edges"])


def test_names_with_signs_of_xml_and_json_come_back(tmp_path: Path) -> None:
    file = design_file("existing")
    odd = 'a<b>&"c"\'ü\\'
    owned = (replace(file.fabric.owned[0], name=odd), *file.fabric.owned[1:])
    file = replace(
        file, fabric=replace(file.fabric, owned=owned), record=file.record.model_copy(update={"name": "\0<&"})
    )
    plan = make_plan(file)
    assert odd in nx.read_graphml(written(plan, "graphml", tmp_path))
    assert odd in nx.node_link_graph(json.loads(written(plan, "node-link", tmp_path).read_text()), edges="edges")
