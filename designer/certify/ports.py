"""Ports of a fabric against what the switches and the NIC have: ends, cages, lanes, speeds, breakouts.

A port is a cage and a lane in it. NICs that share a socket are looked at under the first of their GPUs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designer.catalog.components import Catalog, Nic, NicMode, PortMode, Switch
from designer.certify.certificate import Check
from designer.fabric.fabric import CORE, GPU, HOST, KINDS, LEAF, MANAGEMENT, SPINE, Column, Fabric
from designer.instance.instance import Cluster

PORT_LIMIT = 1 << 12  # cages of a device, and lanes of a cage, in a packed number
JOINED = ((GPU, LEAF), (MANAGEMENT, LEAF), (LEAF, LEAF), (LEAF, SPINE), (SPINE, CORE))
Say = Callable[[int], str]


def node_name(fabric: Fabric, node: int) -> str:
    """A node as messages call it."""
    kind = KINDS[int(fabric.nodes.kind[node])]
    return f"GPU {node}" if kind == "gpu" else f"{kind} node {node}"


def told(rows: Column, say: Say) -> list[str]:
    """What is to be said about each of `rows`; the wording stops where nobody would read on."""
    worded = 100
    return [say(row) for row in rows[:worded].tolist()] + ["..."] * max(0, len(rows) - worded)


@dataclass(frozen=True)
class Ends:
    """Both ends of every link, lower ends first; `holder` is the device that has the cage."""

    fabric: Fabric

    @cached_property
    def node(self) -> Column:
        """Node at the end."""
        return np.concatenate([self.fabric.links.a, self.fabric.links.b])

    @cached_property
    def holder(self) -> Column:
        """The node under which the cage is counted."""
        gpu = self.fabric.nodes.kind[self.node] == GPU
        return np.where(gpu, self.node - self.node % self.fabric.gpus_per_cage, self.node)

    @cached_property
    def cage(self) -> Column:
        """Cage number."""
        return np.concatenate([self.fabric.links.a_cage, self.fabric.links.b_cage])

    @cached_property
    def lane(self) -> Column:
        """Lane in the cage."""
        return np.concatenate([self.fabric.links.a_lane, self.fabric.links.b_lane])

    @cached_property
    def gbps(self) -> Column:
        """Speed of the link."""
        return np.concatenate([self.fabric.links.gbps, self.fabric.links.gbps])

    @cached_property
    def model(self) -> Column:
        """Index of the switch model; -1 for endpoints."""
        return self.fabric.nodes.model[self.node]

    @cached_property
    def _cages(self) -> tuple[Column, Column]:
        packed = self.holder * PORT_LIMIT + self.cage
        first, number = np.unique(packed, return_index=True, return_inverse=True)[1:]
        return first, number

    @property
    def cage_number(self) -> Column:
        """Number of the cage among all occupied ones."""
        return self._cages[1]

    @property
    def cage_example(self) -> Column:
        """For every occupied cage an end that sits in it."""
        return self._cages[0]

    @cached_property
    def last_lane(self) -> Column:
        """For every end, the highest lane used in its cage."""
        highest = np.zeros(len(self.cage_example), dtype=np.int64)
        np.maximum.at(highest, self.cage_number, self.lane)
        return highest[self.cage_number]

    def place(self, end: int) -> str:
        """An end in words."""
        name = node_name(self.fabric, int(self.node[end]))
        return f"{name}, cage {self.cage[end]} lane {self.lane[end]} (link {end % self.fabric.n_links})"


def port_checks(fabric: Fabric, catalog: Catalog, ends: Ends) -> list[Check]:
    """Link ends, ports used once, cages, port limits and speeds of the switches."""
    switches = [catalog.switches[model] for model in fabric.models]
    return [
        Check.of("link ends", _link_ends(fabric)),
        Check.of("ports used once", _used_once(ends)),
        Check.of("cages", _cages(switches, ends)),
        Check.of("ports of a switch", _port_limits(fabric, switches, ends)),
        Check.of("speeds and breakouts", _speeds(switches, ends)),
    ]


def _link_ends(fabric: Fabric) -> list[str]:
    links, kind = fabric.links, fabric.nodes.kind
    lower, upper = kind[links.a], kind[links.b]
    allowed = np.zeros((len(KINDS), len(KINDS)), dtype=bool)
    for pair in JOINED:
        allowed[pair] = True

    def say(link: int) -> str:
        ends = f"{node_name(fabric, int(links.a[link]))} and {node_name(fabric, int(links.b[link]))}"
        return f"link {link} joins {ends}: no such link exists in any family of networks"

    loops = np.flatnonzero(links.a == links.b)
    found = told(loops, lambda link: f"link {link} has both ends at {node_name(fabric, int(links.a[link]))}")
    return found + told(np.flatnonzero(~allowed[lower, upper] & (links.a != links.b)), say)


def _used_once(ends: Ends) -> list[str]:
    port = ends.cage_number * PORT_LIMIT + ends.lane
    order = np.argsort(port, kind="stable")
    again = np.flatnonzero(np.diff(port[order]) == 0)

    def say(row: int) -> str:
        one, other = int(order[row]), int(order[row + 1])
        return f"{ends.place(one)}: the same port holds link {other % ends.fabric.n_links}"

    return told(again, say)


def _cages(switches: list[Switch], ends: Ends) -> list[str]:
    limit = np.array([switch.cages for switch in switches] + [PORT_LIMIT])[ends.model]
    beyond = np.flatnonzero(ends.cage >= limit)

    def say(end: int) -> str:
        switch = switches[int(ends.model[end])]
        return f"{ends.place(end)}: one cage too many, {switch.key} has {switch.cages} (0 to {switch.cages - 1})"

    return told(beyond, say)


def _port_limits(fabric: Fabric, switches: list[Switch], ends: Ends) -> list[str]:
    used = np.bincount(ends.node, minlength=fabric.n_nodes)
    limit = np.array([switch.max_ports for switch in switches] + [np.iinfo(np.int64).max])[fabric.nodes.model]

    def say(node: int) -> str:
        key = switches[int(fabric.nodes.model[node])].key
        return f"{node_name(fabric, node)}: {used[node]} ports in use, too many: {key} runs at most {limit[node]}"

    return told(np.flatnonzero(used > limit), say)


def _speeds(switches: list[Switch], ends: Ends) -> list[str]:
    example = ends.cage_example
    slowest = np.full(len(example), np.iinfo(np.int64).max)
    fastest = np.zeros(len(example), dtype=np.int64)
    np.minimum.at(slowest, ends.cage_number, ends.gbps)
    np.maximum.at(fastest, ends.cage_number, ends.gbps)
    found = told(
        np.flatnonzero(slowest != fastest),
        lambda cage: (
            f"{ends.place(int(example[cage]))}: one cage at two speeds, {slowest[cage]} and {fastest[cage]} Gb/s"
        ),
    )
    packed = ((ends.model + 1) * PORT_LIMIT + ends.lane) * (int(ends.gbps.max(initial=0)) + 1) + ends.gbps
    for end in np.unique(packed, return_index=True)[1].tolist():
        if ends.model[end] < 0:
            continue
        switch, gbps, lane = switches[int(ends.model[end])], int(ends.gbps[end]), int(ends.lane[end])
        modes = switch.modes_at(gbps)
        most = max((mode.ports_per_cage for mode in modes), default=0)
        if lane >= most:
            same = int((packed == packed[end]).sum())
            has = f"a cage gives at most {most} of them" if modes else "it has no mode of this speed"
            also = f" ({same} such ports)" if same > 1 else ""
            found.append(f"{ends.place(end)} at {gbps} Gb/s: a breakout that {switch.key} does not have, {has}{also}")
    return found


def fitting_modes(switch: Switch, gbps: int, last_lane: int) -> tuple[PortMode, ...]:
    """The modes in which a cage can have a port of `gbps` on every lane up to `last_lane`."""
    return tuple(mode for mode in switch.modes_at(gbps) if mode.ports_per_cage > last_lane)


@dataclass(frozen=True)
class NicPorts:
    """How the NICs are used: `link` are the links of GPUs and `port` the NIC port of each, -1 where it has none.

    `modes` are those of the cluster's kinds of servers, None where the NIC has no such mode.
    """

    modes: tuple[NicMode | None, ...]
    link: Column
    port: Column
    checks: tuple[Check, ...]


def nic_ports(fabric: Fabric, cluster: Cluster) -> NicPorts:
    """The port of every GPU's NIC that each link takes, and whether every port is connected exactly once."""
    links = fabric.links
    link = np.flatnonzero((fabric.link_class() == HOST) & (fabric.nodes.kind[links.a] == GPU))
    port = np.full(len(link), -1, dtype=np.int64)
    modes: list[NicMode | None] = []
    found: list[str] = []
    for kind, gpus in zip(cluster.kinds(), cluster.kind_ranges(), strict=True):
        own = np.flatnonzero((links.a[link] >= gpus.start) & (links.a[link] < gpus.stop))
        mode, port[own], problems = _nics_of(fabric, kind.nic, gpus, link[own])
        modes.append(mode)
        found += problems
    management = np.flatnonzero(fabric.nodes.kind == MANAGEMENT)
    times = np.bincount(links.a, minlength=fabric.n_nodes)[management]
    found += told(
        management[times != 1], lambda node: f"management node {node}: {int((links.a == node).sum())} links, not 1"
    )
    return NicPorts(tuple(modes), link, port, (Check.of("NIC ports", found),))


def _nics_of(fabric: Fabric, nic: Nic, gpus: range, link: Column) -> tuple[NicMode | None, Column, list[str]]:
    """Mode of the equal NICs of a range of GPUs, the port that each of their links takes, and what is wrong."""
    links = fabric.links
    gpu, gbps = links.a[link], links.gbps[link]
    per_gpu = np.bincount(gpu - gpus.start, minlength=len(gpus))
    ports, speed = _most_common(per_gpu), _most_common(gbps)
    mode = next((mode for mode in nic.modes if (mode.ports, mode.gbps) == (ports, speed)), None)
    found: list[str] = []
    if fabric.gpus_per_cage != nic.nics_per_cage:
        found.append(f"{fabric.gpus_per_cage} NICs to a cage, {nic.key} has {nic.nics_per_cage}")
    if mode is None:
        found.append(f"{nic.key} has no mode of {ports} ports at {speed} Gb/s")
        return None, np.full(len(link), -1), found
    cage, lane = links.a_cage[link], links.a_lane[link]
    if nic.nics_per_cage > 1:
        port = np.where(cage == 0, lane - gpu % nic.nics_per_cage * mode.ports, -1)
    else:
        per_cage = max(nic.ports_per_cage(mode), 1)
        port = np.where(lane < per_cage, cage * per_cage + lane, -1)
    port = np.where((port >= 0) & (port < mode.ports), port, -1)
    found += told(
        np.flatnonzero(port < 0),
        lambda row: f"GPU {gpu[row]}: cage {cage[row]} lane {lane[row]} is no port of its {nic.key} (link {link[row]})",
    )
    found += told(
        np.flatnonzero(gbps != speed),
        lambda row: f"GPU {gpu[row]}: a link at {gbps[row]} Gb/s, its NIC runs at {speed} (link {link[row]})",
    )
    valid = port >= 0
    place = (gpu[valid] - gpus.start) * mode.ports + port[valid]
    uses = np.bincount(place, minlength=len(gpus) * mode.ports)

    def say(row: int) -> str:
        name = f"GPU {gpus.start + row // mode.ports}: NIC port {row % mode.ports}"
        return f"{name} is connected {uses[row]} times" if uses[row] else f"{name} is not connected"

    return mode, port, found + told(np.flatnonzero(uses != 1), say)


def _most_common(values: Column) -> int:
    found, times = np.unique(values, return_counts=True)
    return int(found[times.argmax()]) if len(found) else 0
