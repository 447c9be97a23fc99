"""`Plan`: every device and every port of a design by name, and the order in which links are listed.

Devices are servers, management ports and switches, numbered in this order. A name depends on the place in the network
alone, so that equal designs give equal names, and port n of a switch has the same name on every switch.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.certify.ports import fitting_modes, nic_ports, node_name
from designer.certify.read_design import DesignFile
from designer.errors import ExportError, Problem
from designer.export.names import Names, Pattern, PatternError
from designer.fabric.fabric import GPU, HOST, LEAF, MANAGEMENT, Column, Fabric

ROLES = ("server", "management", "leaf", "spine", "core")
SERVER = GPU
CHUNK = 1 << 16


@dataclass(frozen=True)
class Devices:
    """Names of the devices; columns of their role (index in `ROLES`) and of a node: of a server, its first GPU."""

    name: list[str]
    role: Column
    node: Column


@dataclass(frozen=True)
class Ends:
    """One end of every link: device, port (index in `Plan.port_names`), the number of the port, from 1, and `split`.

    `split` is how many ports a switch's cage is split into, 1 elsewhere.
    Ports of a switch are numbered lane by lane through all cages, with as many lanes to each cage as any cage of the
    model has in this design; those of a server NIC by NIC, each from 1.
    """

    device: Column
    port: Column
    number: Column
    split: Column


@dataclass(frozen=True)
class Plan:
    """A design with names: `a` are the lower ends of its links, `b` the upper ones; `of_node` is each node's device."""

    file: DesignFile
    names: Names
    devices: Devices
    of_node: Column
    port_names: tuple[str, ...]
    a: Ends
    b: Ends

    @property
    def fabric(self) -> Fabric:
        """The fabric of the design."""
        return self.file.fabric

    @cached_property
    def order(self) -> Column:
        """Links in the order of lists: to hosts before those between switches, by leaf (lower switch), then by port."""
        links = self.fabric.links
        host = self.fabric.link_class() == HOST
        device = np.where(host, self.b.device, self.a.device)
        cage, lane = np.where(host, links.b_cage, links.a_cage), np.where(host, links.b_lane, links.a_lane)
        return np.lexsort((lane, cage, device, self.fabric.link_class()))

    def rows(self, *columns: Column) -> Iterator[tuple[int, ...]]:
        """Columns of the links, row by row in the order of lists; a part at a time, as there may be a million."""
        for start in range(0, len(self.order), CHUNK):
            part = self.order[start : start + CHUNK]
            lists: list[list[int]] = [column[part].tolist() for column in columns]
            yield from zip(*lists, strict=True)

    @cached_property
    def ports_of_model(self) -> list[int]:
        """Ports of a switch of each model, as they are numbered."""
        switches = self.file.catalog.switches
        lanes = _lanes(self.file).tolist()
        return [switches[key].cages * per_cage for key, per_cage in zip(self.fabric.models, lanes, strict=True)]

    def nic_of(self, link: Column) -> Column:
        """For links to GPUs, the number of the NIC in its server, from 0."""
        gpu = self.fabric.links.a[link]
        return gpu - self.devices.node[self.of_node[gpu]]

    def cage_name(self, cage: int) -> str:
        """Name of the interface of a whole cage of a switch.

        Raises:
            ExportError: the pattern of ports has none for a cage with one port.
        """
        try:
            return _port_name(self.names.pattern("port"), cage, None)
        except PatternError as error:
            raise _unnamed(self.file, error) from None

    def lane_names(self, cage: int, lanes: int) -> list[str]:
        """Names of all ports of a cage of a switch that is split into `lanes`."""
        return [_port_name(self.names.pattern("port"), cage, lane) for lane in range(lanes)]

    def refuse(self, found: str, allowed: str) -> ExportError:
        """The error that says why the design cannot be expressed."""
        return ExportError([Problem(self.file.path, None, "fabric", found, allowed)])


def groups(*columns: NDArray[Any]) -> tuple[list[list[int]], Column]:
    """The different rows of equally long columns of whole numbers from 0 on, in order, and the number of each row."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code = np.unique(code * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    first = np.unique(code, return_index=True)[1]
    return [[int(column[row]) for column in columns] for row in first.tolist()], code


def make_plan(file: DesignFile, names: Names | None = None) -> Plan:
    """The plan of a design.

    Raises:
        ExportError: two devices or ports would have one name, a pattern does not fit, or a link ends at no port.
    """
    names = names or Names()
    _check_ends(file)
    try:
        devices, of_node = _devices(file, names)
        table = _Table()
        a = _lower_ends(file, names, of_node, devices, table)
        b = _switch_ends(file, names, of_node, table, upper=True)
    except PatternError as error:
        raise _unnamed(file, error) from None
    plan = Plan(file, names, devices, of_node, tuple(table.names), a, b)
    _check_ports(plan)
    return plan


def _unnamed(file: DesignFile, error: PatternError) -> ExportError:
    return ExportError([Problem(file.path, None, "--name", str(error), "a pattern that gives every port a name")])


def _port_name(pattern: Pattern, cage: int, lane: int | None) -> str:
    """Name of a lane of a cage of a switch; without a lane, of the cage."""
    split = {"lane": None, "split": None} if lane is None else {"lane": str(lane), "split": str(lane + 1)}
    return pattern.render({"cage": str(cage + 1), **split})


def _check_ends(file: DesignFile) -> None:
    kind, links = file.fabric.nodes.kind, file.fabric.links
    for link in np.flatnonzero((kind[links.b] < LEAF) | (links.a == links.b))[:1].tolist():
        ends = f"{node_name(file.fabric, int(links.a[link]))} and {node_name(file.fabric, int(links.b[link]))}"
        raise ExportError(
            [Problem(file.path, None, "fabric.links", f"link {link} between {ends}", "a switch at the upper end")]
        )


def _devices(file: DesignFile, names: Names) -> tuple[Devices, Column]:
    kind, cluster = file.fabric.nodes.kind, file.cluster
    first = np.concatenate(
        [
            np.arange(gpus.start, gpus.stop, servers.gpus)
            for servers, gpus in zip(cluster.kinds(), cluster.kind_ranges(), strict=True)
        ]
    )
    others = np.concatenate([np.flatnonzero(kind == MANAGEMENT), np.flatnonzero(kind >= LEAF)])
    node = np.concatenate([first, others])
    of_node = np.zeros(file.fabric.n_nodes, dtype=np.int64)
    of_node[: file.fabric.gpus] = np.searchsorted(first, np.arange(file.fabric.gpus), side="right") - 1
    of_node[others] = len(first) + np.arange(len(others))
    named = _numbered(names.pattern("server"), len(first)) + _numbered(
        names.pattern("management"), int((kind == MANAGEMENT).sum())
    )
    named += _switch_names(file, names)
    _check_names(file, named)
    return Devices(named, np.concatenate([np.full(len(first), SERVER), kind[others]]), node), of_node


def _numbered(pattern: Pattern, count: int) -> list[str]:
    width = _width(count)
    return [pattern.render({"index": f"{index:0{width}}"}) for index in range(count)]


def _width(count: int) -> int:
    return max(2, len(str(max(count - 1, 0))))


def _switch_names(file: DesignFile, names: Names) -> list[str]:
    """Names of all switches in the order of their nodes."""
    fabric = file.fabric
    switches = np.flatnonzero(fabric.nodes.kind >= LEAF).tolist()
    values = _switch_values(file)
    owned = {switch.node: switch.name for switch in fabric.owned}
    result = dict(owned)
    for role in range(LEAF, len(ROLES)):
        pattern = names.pattern(ROLES[role])
        mine = [node for node in switches if fabric.nodes.kind[node] == role and node not in owned]
        # Those whose names are equal but for the index are counted.
        stems = [pattern.render({**values[node], "index": "\0"}) for node in mine]
        width = _width(max(Counter(stems).values(), default=0))
        seen: Counter[str] = Counter()
        for node, stem in zip(mine, stems, strict=True):
            result[node] = stem.replace("\0", f"{seen[stem]:0{width}}")
            seen[stem] += 1
    return [result[node] for node in switches]


def _switch_values(file: DesignFile) -> dict[int, dict[str, str | None]]:
    nodes, rails = file.fabric.nodes, file.cluster.rails
    switches = np.flatnonzero(nodes.kind >= LEAF)
    numbers: dict[int, list[int]] = {}
    for plane, fabric in groups(nodes.plane[switches] + 1, nodes.fabric[switches])[0]:
        numbers.setdefault(plane - 1, []).append(fabric)
    rail_of_fabric = _rail_of_fabric(file)
    values: dict[int, dict[str, str | None]] = {}
    for node in switches.tolist():
        rail, plane, pod, fabric = (int(column[node]) for column in (nodes.rail, nodes.plane, nodes.pod, nodes.fabric))
        rail = rail_of_fabric.get(fabric, -1) if rail < 0 else rail
        one_rail, several = rail >= 0 and rails > 1, len(numbers[plane]) > 1
        values[node] = {
            "rail": str(rail) if one_rail else None,
            "plane": str(plane) if plane >= 0 else None,
            "pod": str(pod) if pod >= 0 else None,
            "fabric": str(numbers[plane].index(fabric)) if several and not one_rail else None,
        }
    return values


def _rail_of_fabric(file: DesignFile) -> dict[int, int]:
    """The rail of the networks that serve GPUs of one rail only."""
    links, nodes = file.fabric.links, file.fabric.nodes
    hosts = np.flatnonzero(nodes.kind[links.a] == GPU)
    rails: dict[int, list[int]] = {}
    for fabric, rail in groups(nodes.fabric[links.b[hosts]], links.a[hosts] % file.cluster.rails)[0]:
        rails.setdefault(fabric, []).append(rail)
    return {fabric: served[0] for fabric, served in rails.items() if len(served) == 1}


def _check_names(file: DesignFile, names: list[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            found = f"{times} devices named {name!r}"
            raise ExportError([Problem(file.path, None, "--name", found, "patterns of names that differ")])
        if not name.isprintable() or name != name.strip():
            found = f"a switch named {name!r}"
            raise ExportError([Problem(file.path, None, "fabric.owned", found, "a name of printable characters")])


class _Table:
    """Names of ports, each once."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index: dict[str, int] = {}

    def add(self, name: str) -> int:
        if name not in self._index:
            self._index[name] = len(self.names)
            self.names.append(name)
        return self._index[name]


def _lanes(file: DesignFile) -> Column:
    """Lanes of a cage of each model of switch: the most that any of its cages has."""
    fabric = file.fabric
    lanes = np.array([file.catalog.switches[key].native_mode.ports_per_cage for key in fabric.models], dtype=np.int64)
    for upper in (False, True):
        end, per_cage = _per_cage(file, upper=upper)
        node = fabric.links.b if upper else fabric.links.a
        np.maximum.at(lanes, fabric.nodes.model[node[end]], per_cage)
    return lanes


def _per_cage(file: DesignFile, *, upper: bool) -> tuple[Column, Column]:
    """Links with a switch at this end, and the ports that its cage has: equal on all switches of a tier and model.

    Raises:
        ExportError: the model has no such port.
    """
    fabric, links = file.fabric, file.fabric.links
    node, lane = (links.b, links.b_lane) if upper else (links.a, links.a_lane)
    end = np.flatnonzero(fabric.nodes.kind[node] >= LEAF)
    columns = (fabric.nodes.model[node], fabric.nodes.kind[node], fabric.link_class(), links.gbps)
    kinds, kind = groups(*(column[end] for column in columns))
    last = np.zeros(len(kinds), dtype=np.int64)
    np.maximum.at(last, kind, lane[end])
    ports = np.zeros(len(kinds), dtype=np.int64)
    for row, (model, _, _, gbps) in enumerate(kinds):
        switch = file.catalog.switches[fabric.models[model]]
        modes = fitting_modes(switch, gbps, int(last[row]))
        if not modes:
            found = f"lane {last[row]} of a cage of {switch.key} at {gbps} Gb/s"
            raise ExportError([Problem(file.path, None, "fabric.links", found, "a port that the model has")])
        ports[row] = min(mode.ports_per_cage for mode in modes)
    return end, ports[kind]


def _switch_ends(file: DesignFile, names: Names, of_node: Column, table: _Table, *, upper: bool) -> Ends:
    """Ends at switches; zero where there is something else."""
    links, pattern = file.fabric.links, names.pattern("port")
    node, cage, lane = (links.b, links.b_cage, links.b_lane) if upper else (links.a, links.a_cage, links.a_lane)
    end, per_cage = _per_cage(file, upper=upper)
    codes, code = groups(cage[end], lane[end], per_cage > 1)
    numbers = [table.add(_port_name(pattern, at, place if split else None)) for at, place, split in codes]
    lanes = _lanes(file)
    port, number, splits = np.zeros_like(links.a), np.zeros_like(links.a), np.ones_like(links.a)
    splits[end] = per_cage
    port[end] = np.array(numbers, dtype=np.int64)[code]
    number[end] = cage[end] * lanes[file.fabric.nodes.model[node[end]]] + lane[end] + 1
    return Ends(of_node[node], port, number, splits)


def _lower_ends(file: DesignFile, names: Names, of_node: Column, devices: Devices, table: _Table) -> Ends:
    fabric, links = file.fabric, file.fabric.links
    ends = _switch_ends(file, names, of_node, table, upper=False)
    management = fabric.nodes.kind[links.a] == MANAGEMENT
    if management.any():
        ends.port[management], ends.number[management] = table.add("port0"), 1
    nics, pattern = nic_ports(fabric, file.cluster), names.pattern("nic")
    lost = nics.link[nics.port < 0]
    if len(lost):
        gpu = int(links.a[lost[0]])
        found = f"link {lost[0]} at no port of the NIC of GPU {gpu}"
        raise ExportError([Problem(file.path, None, "fabric.links", found, "a port that the NIC has")])
    rails, gpu = file.cluster.rails, links.a[nics.link]
    nic = gpu - devices.node[of_node[gpu]]
    sizes = np.array([servers.gpus for servers in file.cluster.kinds()], dtype=np.int64)
    ports = np.array([mode.ports if mode else 1 for mode in nics.modes], dtype=np.int64)
    kind = np.searchsorted([gpus.stop for gpus in file.cluster.kind_ranges()], gpu, side="right")
    codes, code = groups(gpu % rails, nic, sizes[kind], nics.port, ports[kind])
    numbers = [
        table.add(
            pattern.render(
                {
                    "rail": str(rail),
                    "nic": str(place),
                    "twin": str(place // rails) if size > rails else None,
                    "port": str(port) if count > 1 else None,
                }
            )
        )
        for rail, place, size, port, count in codes
    ]
    ends.port[nics.link], ends.number[nics.link] = np.array(numbers, dtype=np.int64)[code], nics.port + 1
    return ends


def _check_ports(plan: Plan) -> None:
    """Every port holds one link."""
    device = np.concatenate([plan.a.device, plan.b.device])
    port = np.concatenate([plan.a.port, plan.b.port])
    packed = device * len(plan.port_names) + port
    used, first, times = np.unique(packed, return_index=True, return_counts=True)
    for row in np.flatnonzero(times > 1)[:1].tolist():
        end = int(first[row])
        name = f"{plan.devices.name[int(device[end])]}:{plan.port_names[int(port[end])]}"
        raise plan.refuse(f"{times[row]} links at {name}, of {len(used)} ports in use", "one link at each port")
