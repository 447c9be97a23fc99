"""Nodes and links of a plan as a multigraph: networkx's node-link JSON, and GraphML.

Both are written line by line, as the graph of 131,072 GPUs would fill the memory, and both read back with networkx as
the same multigraph: nodes are devices, the key of a link is its number in the design.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from designer.export.cabling import cabling_of
from designer.export.plan import ROLES, SERVER, Plan
from designer.fabric.fabric import LEAF
from designer.files import text_written_atomically

Attributes = dict[str, Any]
NODE_TYPES = {
    "role": "string",
    "model": "string",
    "gpus": "int",
    "rail": "int",
    "plane": "int",
    "pod": "int",
    "fabric": "int",
}
LINK_TYPES = {"gbps": "int", "a_port": "string", "b_port": "string", "medium": "string", "length_m": "double"}
"""Attributes of nodes and links with their types in GraphML."""


def graph_nodes(plan: Plan) -> Iterator[tuple[str, Attributes]]:
    """Devices with their attributes; those without a value are left out."""
    file, devices, nodes = plan.file, plan.devices, plan.fabric.nodes
    kinds = file.cluster.kinds()
    stops = [gpus.stop for gpus in file.cluster.kind_ranges()]
    places = (nodes.rail, nodes.plane, nodes.pod, nodes.fabric)
    for number, name in enumerate(devices.name):
        role, node = int(devices.role[number]), int(devices.node[number])
        attributes: Attributes = {"role": ROLES[role]}
        if role == SERVER:
            kind = kinds[int(np.searchsorted(stops, node, side="right"))]
            attributes |= {"model": kind.gpu.key, "gpus": kind.gpus}
        else:
            if role >= LEAF:
                attributes["model"] = plan.fabric.models[int(nodes.model[node])]
            where = zip(("rail", "plane", "pod", "fabric"), (int(column[node]) for column in places), strict=True)
            attributes |= {field: value for field, value in where if value >= 0}
        yield name, attributes


def graph_links(plan: Plan) -> Iterator[tuple[str, str, int, Attributes]]:
    """Links as (source, target, key, attributes), the earlier device first; `a_port` is the port of the source."""
    names, ports, links = plan.devices.name, plan.port_names, plan.fabric.links
    media = cabling_of(plan).media
    number = np.arange(plan.fabric.n_links)
    rows = plan.rows(number, plan.a.device, plan.a.port, plan.b.device, plan.b.port, links.gbps, links.medium)
    for link, a, a_port, b, b_port, gbps, row in rows:
        (source, source_port), (target, target_port) = sorted(((a, a_port), (b, b_port)))
        yield (
            names[source],
            names[target],
            link,
            {
                "gbps": gbps,
                "a_port": ports[source_port],
                "b_port": ports[target_port],
                "medium": media[row].part,
                "length_m": float(media[row].length_m),
            },
        )


def write_node_link(plan: Plan, path: Path) -> None:
    """Writes the node-link JSON that `networkx.node_link_graph(..., edges="edges")` reads.

    Raises:
        OutputError: it cannot be written.
    """
    nodes = ({**attributes, "id": name} for name, attributes in graph_nodes(plan))
    edges = (
        {**attributes, "source": source, "target": target, "key": key}
        for source, target, key, attributes in graph_links(plan)
    )
    with text_written_atomically(path) as file:
        graph = json.dumps({"name": plan.file.record.name})
        file.write(f'{{"directed": false, "multigraph": true, "graph": {graph},\n"nodes": [')
        file.writelines(_entries(nodes))
        file.write('],\n"edges": [')
        file.writelines(_entries(edges))
        file.write("]}\n")


def _entries(items: Iterator[Attributes]) -> Iterator[str]:
    comma = "\n"
    for item in items:
        yield comma + json.dumps(item)
        comma = ",\n"


def write_graphml(plan: Plan, path: Path) -> None:
    """Writes GraphML; the `id` of an edge is the number of its link.

    Raises:
        OutputError: it cannot be written.
    """
    with text_written_atomically(path) as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n')
        file.write('<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for element, types in (("node", NODE_TYPES), ("edge", LINK_TYPES)):
            for name, kind in types.items():
                file.write(f'<key id="{element}_{name}" for="{element}" attr.name="{name}" attr.type="{kind}"/>\n')
        file.write('<key id="graph_name" for="graph" attr.name="name" attr.type="string"/>\n')
        file.write(f'<graph edgedefault="undirected">\n{_data("graph", {"name": plan.file.record.name})}\n')
        for name, attributes in graph_nodes(plan):
            file.write(f"<node id={quoteattr(name)}>{_data('node', attributes)}</node>\n")
        for source, target, key, attributes in graph_links(plan):
            ends = f"source={quoteattr(source)} target={quoteattr(target)}"
            file.write(f'<edge {ends} id="{key}">{_data("edge", attributes)}</edge>\n')
        file.write("</graph>\n</graphml>\n")


def _data(element: str, attributes: Attributes) -> str:
    return "".join(
        f'<data key="{element}_{name}">{escape(_for_xml(str(value)))}</data>' for name, value in attributes.items()
    )


def _for_xml(text: str) -> str:
    """The text without the control characters that XML cannot hold."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
