"""InfiniBand: a `.topo` file for ibdiagnet and ibtopodiff, and a net file for ibsim with the list of root switches.

Systems of the `.topo` file are the switches and the servers; the ports are numbered as in `plan.Ends`. Sources:
ibdm-topo-file(1) and ibdm-ibnl-file(1) of ibutils, ibsim's README, opensm(8). GUIDs do not exist before the machines
do: those of the net file are made up, from the numbers of switches and NICs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from designer.certify.tree_rules import tree_rules
from designer.certify.wiring import components
from designer.export.plan import SERVER, Plan
from designer.fabric.fabric import GPU, LEAF, LEAF_LEAF, Column
from designer.files import make_folder, text_written_atomically

MAX_PORTS = 254
_NAME = re.compile(r"[A-Za-z0-9_.:%@~/-]+")
SWITCH_GUID, ADAPTER_GUID = 0x0001_0000_0000_0000, 0x0002_0000_0000_0000


@dataclass(frozen=True)
class _Node:
    """An InfiniBand node: a switch, or one NIC of a server, or a management port."""

    name: str
    is_switch: bool
    ports: int
    guid: int

    @property
    def identity(self) -> str:
        """What links call it."""
        return f"{'S' if self.is_switch else 'H'}-{self.guid:016x}"


def adapter(number: int) -> str:
    """Name of a NIC of a server, as the operating system numbers them."""
    return f"mlx5_{number}"


@dataclass(frozen=True)
class _System:
    """A type of system of the `.topo` file: a switch with ports, or a server with so many NICs."""

    kind: str
    switch_ports: int
    adapters: int


def write_topo(plan: Plan, path: Path) -> tuple[str, ...]:
    """Writes the `.topo` file, and beside it a folder `PATH.ibnl` that defines its types of systems.

    Raises:
        ExportError: a switch with too many ports, or a name that the format does not take.
        OutputError: it cannot be written.
    """
    _check(plan)
    systems, names, role = _systems(plan), plan.devices.name, plan.devices.role
    hosts = np.flatnonzero(plan.fabric.nodes.kind[plan.fabric.links.a] == GPU)
    nic = np.zeros(plan.fabric.n_links, dtype=np.int64)
    nic[hosts] = plan.nic_of(hosts)
    cables: dict[int, list[tuple[int, str]]] = {}
    for a, port, b, far_port, place in plan.rows(plan.a.device, plan.a.number, plan.b.device, plan.b.number, nic):
        near = f"P{port}" if role[a] >= LEAF else f"{adapter(place)}/P{port}"
        if role[a] >= LEAF:
            cables.setdefault(a, []).append((port, f"{systems[b].kind} {names[b]} P{far_port}"))
        cables.setdefault(b, []).append((far_port, f"{systems[a].kind} {names[a]} {near}"))
    definitions = path.with_name(f"{path.name}.ibnl")
    make_folder(definitions)
    for system in dict.fromkeys(systems):
        with text_written_atomically(definitions / f"{system.kind}.ibnl") as file:
            file.writelines(_definition(system, _nic_ports(plan)))
    with text_written_atomically(path) as file:
        for device in sorted(cables):
            file.write(f"{systems[device].kind} {names[device]}\n")
            file.writelines(f"   P{port} -> {far}\n" for port, far in sorted(cables[device]))
            file.write("\n")
    return (f"definitions of the systems: {definitions}; IBDM_IBNL_PATH must name this folder", *_notes(plan))


def _systems(plan: Plan) -> list[_System]:
    """Type of system of each device."""
    catalog, cluster = plan.file.catalog, plan.file.cluster
    stops = [gpus.stop for gpus in cluster.kind_ranges()]
    result: list[_System] = []
    for number in range(len(plan.devices.name)):
        role, node = int(plan.devices.role[number]), int(plan.devices.node[number])
        if role < LEAF:
            nics = cluster.kinds()[int(np.searchsorted(stops, node, side="right"))].gpus if role == SERVER else 1
            result.append(_System(f"HCA_mlx5_{nics}", 0, nics))
            continue
        number_of_model = int(plan.fabric.nodes.model[node])
        switch = catalog.switches[plan.fabric.models[number_of_model]]
        model = re.sub(r"[^A-Za-z0-9_.]+", "_", switch.model)
        kind = f"M{model}" if switch.vendor == "NVIDIA" else f"switch_{model}"
        result.append(_System(kind, plan.ports_of_model[number_of_model], 0))
    return result


def _definition(system: _System, nic_ports: int) -> Iterator[str]:
    """The type of system in IBNL: its nodes, and which of their ports are which of the system's."""
    yield f"TOPSYSTEM {system.kind}\n"
    if system.switch_ports:
        yield f"\nNODE SW {system.switch_ports} {system.kind} U1\n"
        yield from (f"{port} -> P{port}\n" for port in range(1, system.switch_ports + 1))
    for nic in range(system.adapters):
        yield f"\nNODE CA {nic_ports} MT4129 {adapter(nic)}\n"
        yield from (f"{port} -> {adapter(nic)}/P{port}\n" for port in range(1, nic_ports + 1))


def _nic_ports(plan: Plan) -> int:
    hosts = plan.fabric.nodes.kind[plan.fabric.links.a] < LEAF
    return int(plan.a.number[hosts].max(initial=1))


def write_ibsim(plan: Plan, path: Path) -> tuple[str, ...]:
    """Writes the net file of ibsim, and beside it `PATH.roots`: GUIDs of the top switches for opensm --root_guid_file.

    A network without tiers has no roots.

    Raises:
        ExportError: a switch with too many ports, or a name that the format does not take.
        OutputError: it cannot be written.
    """
    _check(plan)
    nodes, of_end = _nodes(plan)
    rows: list[list[tuple[int, int, int]]] = [[] for _ in nodes]
    for a, port, b, far_port in plan.rows(of_end[0], plan.a.number, of_end[1], plan.b.number):
        rows[a].append((port, b, far_port))
        rows[b].append((far_port, a, port))
    notes = tuple(_notes(plan))
    if (plan.fabric.link_class() != LEAF_LEAF).all():
        roots = path.with_name(f"{path.name}.roots")
        with text_written_atomically(roots) as file:
            file.writelines(f"0x{nodes[int(node)].guid:016x}\n" for node in np.unique(of_end[1][_tops(plan)]))
        notes = (f"root switches: {roots}", *notes)
    with text_written_atomically(path) as file:
        for node, mine in zip(nodes, rows, strict=True):
            file.writelines(_node_lines(node))
            file.writelines(f'[{port}]\t"{nodes[far].identity}"[{far_port}]\n' for port, far, far_port in sorted(mine))
            file.write("\n")
    return notes


def _node_lines(node: _Node) -> Iterator[str]:
    if node.is_switch:
        yield f"switchguid=0x{node.guid:x}(0x{node.guid:x})\n"
        yield f'Switch\t{node.ports} "{node.identity}"\t# "{node.name}" base port 0 lid 0 lmc 0\n'
    else:
        yield f"caguid=0x{node.guid:x}\n"
        yield f'Hca\t{node.ports} "{node.identity}"\t# "{node.name}"\n'


def _nodes(plan: Plan) -> tuple[list[_Node], tuple[Column, Column]]:
    """The InfiniBand nodes, hosts first, and which of them is at the lower and at the upper end of each link.

    Nodes stand in the order of the fabric's nodes, as each GPU has a NIC.
    """
    fabric, ports = plan.fabric, _nic_ports(plan)
    result: list[_Node] = []
    for node in range(fabric.n_nodes):
        device = int(plan.of_node[node])
        name, kind = plan.devices.name[device], int(fabric.nodes.kind[node])
        if kind >= LEAF:
            count = plan.ports_of_model[int(fabric.nodes.model[node])]
            result.append(_Node(name, True, count, SWITCH_GUID + 256 * (node + 1)))
            continue
        place = node - int(plan.devices.node[device]) if kind == GPU else 0
        result.append(_Node(f"{name} {adapter(place)}", False, ports, ADAPTER_GUID + 256 * (node + 1)))
    return result, (fabric.links.a, fabric.links.b)


def _tops(plan: Plan) -> Column:
    """Links whose upper end is a top switch of its network: none of its own links leads up."""
    links = plan.fabric.links
    lower = np.zeros(plan.fabric.n_nodes, dtype=bool)
    lower[links.a] = True
    return np.flatnonzero(~lower[links.b])


def _check(plan: Plan) -> None:
    for model, ports in zip(plan.fabric.models, plan.ports_of_model, strict=True):
        if ports > MAX_PORTS:
            raise plan.refuse(f"{model} with {ports} ports", f"at most {MAX_PORTS} ports of an InfiniBand switch")
    for name in plan.devices.name:
        if not _NAME.fullmatch(name):
            raise plan.refuse(f"the name {name!r}", "letters, digits and _ . : % @ ~ / -")


def _notes(plan: Plan) -> Iterator[str]:
    """What a user of InfiniBand tools has to know about this network."""
    links, catalog = plan.fabric.links, plan.file.catalog
    other = [key for key in plan.fabric.models if "infiniband" not in catalog.switches[key].protocols]
    if other:
        yield f"{', '.join(other)} speak no InfiniBand: the file describes the network as if they did"
    kind = plan.fabric.nodes.kind
    between = kind[links.a] >= LEAF  # nothing passes through a NIC, even if its ports are on two switches
    part = components(plan.fabric.n_nodes, links.a[between], links.b[between])
    networks = len(np.unique(part[kind >= LEAF]))
    if networks > 1:
        yield f"{networks} separate networks: a subnet manager sees one of them"
    if (plan.fabric.link_class() == LEAF_LEAF).any():
        yield "leaves are joined with leaves: no tree, which `opensm -R ftree` does not route"
        return
    # An uneven ratio alone is routed, if less evenly.
    found = [finding for finding in tree_rules(plan.fabric).found if not finding.startswith("CBB ratio")]
    if found:
        yield f"no pure fat tree ({found[0]}): without the root list `opensm -R ftree` falls back to another routing"
