"""Draws the Fabric of a network without a shape: switches, the endpoints on each, links between any two.

Ports to hosts and to switches share no cage, nor do ports of different modules. A switch that is there already has its
free ports in its last cages; where the first of those is half taken, it gets the cage with the fewest lanes in use.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from designer.catalog.components import Nic, NicMode, Switch
from designer.catalog.media import LinkMedium
from designer.fabric.build import Drawing, nic_port
from designer.fabric.fabric import LEAF, Column, Fabric, OwnedSwitch


@dataclass(frozen=True)
class PlacedSwitch:
    """A switch; with `free_ports` it is there already under `name`."""

    switch: Switch
    name: str = ""
    free_ports: int | None = None


@dataclass(frozen=True)
class PlacedHosts:
    """GPUs on a switch, in order: their NIC and its mode, ports of a switch cage, medium and length."""

    switch: int
    gpus: tuple[int, ...]
    nic: Nic
    mode: NicMode
    per_cage: int
    medium: LinkMedium
    length_m: float


@dataclass(frozen=True)
class PlacedLinks:
    """`count` links from switch `lower` to switch `upper`, with the ports that share a cage at each end."""

    lower: int
    upper: int
    count: int
    gbps: int
    lower_per_cage: int
    upper_per_cage: int
    medium: LinkMedium
    length_m: float


@dataclass(frozen=True)
class PlacedNetwork:
    """One plane of a network without a shape; `planes` of them, all alike."""

    gpus: int
    rails: int
    planes: int
    switches: tuple[PlacedSwitch, ...]
    hosts: tuple[PlacedHosts, ...]
    links: tuple[PlacedLinks, ...]


@dataclass(frozen=True)
class _Ports:
    """Ports of one kind on a switch: a row of the drawing, its side, and how many of a cage it takes."""

    switch: int
    kind: tuple[bool, str]
    per_cage: int
    count: int


def build_placement(network: PlacedNetwork) -> Fabric:
    """The fabric of a placed network."""
    drawing = Drawing(network.gpus, network.rails, network.hosts[0].nic)
    components = _components(network)
    owned: list[OwnedSwitch] = []
    asked = _asked(network)
    cage, lane = _cages(network, asked)
    ends = np.concatenate([[0], np.cumsum([ports.count for ports in asked])])
    for plane in range(network.planes):
        first = drawing.size
        for number, item in enumerate(network.switches):
            label = plane * (max(components) + 1) + components[number]
            node = drawing.add_nodes(1, LEAF, plane=plane, fabric=label, model=item.switch.key)
            if item.free_ports is not None:
                owned.append(OwnedSwitch(node, item.name, item.free_ports))

        def end(row: int, first: int = first) -> tuple[Column, Column, Column]:
            rows = slice(ends[row], ends[row + 1])
            return np.full(asked[row].count, first + asked[row].switch), cage[rows], lane[rows]

        for row, hosts in enumerate(network.hosts):
            port = nic_port(hosts.nic, hosts.mode, plane, np.array(hosts.gpus, dtype=np.int64))
            drawing.add_links(port, end(row), hosts.mode.gbps, hosts.medium, hosts.length_m)
        for number, links in enumerate(network.links):
            row = len(network.hosts) + 2 * number
            drawing.add_links(end(row), end(row + 1), links.gbps, links.medium, links.length_m)
    return replace(drawing.finish(), owned=tuple(owned))


def _asked(network: PlacedNetwork) -> list[_Ports]:
    """Ports that hosts, and both ends of links, take: a row each, in the order of the network."""
    rows = [
        _Ports(item.switch, (True, item.medium.per_upper_cage or item.medium.key), item.per_cage, len(item.gpus))
        for item in network.hosts
    ]
    for item in network.links:
        lower = False, item.medium.per_lower_cage or item.medium.key
        upper = False, item.medium.per_upper_cage or item.medium.key
        rows.append(_Ports(item.lower, lower, item.lower_per_cage, item.count))
        rows.append(_Ports(item.upper, upper, item.upper_per_cage, item.count))
    return rows


def _cages(network: PlacedNetwork, asked: list[_Ports]) -> tuple[Column, Column]:
    """Cage and lane of every port of every row: ports of one kind fill cages one after the other."""
    taken: dict[tuple[int, tuple[bool, str], int], int] = {}
    heads: list[tuple[int, tuple[bool, str], int, int]] = []
    lanes: list[int] = []
    for ports in asked:
        key = ports.switch, ports.kind, ports.per_cage
        start = taken.get(key, 0)
        taken[key] = start + ports.count
        for port in range(start, start + ports.count):
            heads.append((*key, port // ports.per_cage))
            lanes.append(port % ports.per_cage)
    used = Counter(heads)
    number: dict[tuple[int, tuple[bool, str], int, int], int] = {}
    shift: dict[tuple[int, tuple[bool, str], int, int], int] = {}
    for switch, item in enumerate(network.switches):
        mine = [head for head in used if head[0] == switch]
        mine.sort(key=lambda head: (not head[1][0], head[1][1], head[2], head[3]))
        first, native = 0, item.switch.native_mode.ports_per_cage
        half = 0
        if item.free_ports is not None:
            first, half = item.switch.cages - -(-item.free_ports // native), item.free_ports % native
        if half and first + len(mine) == item.switch.cages:
            least = min(mine, key=lambda head: used[head] / head[2])
            mine.remove(least)
            mine.insert(0, least)
            shift[least] = least[2] - used[least]
        elif half:
            first += 1
        number.update({head: first + place for place, head in enumerate(mine)})
    cage = np.array([number[head] for head in heads], dtype=np.int64)
    lane = np.array([shift.get(head, 0) + place for head, place in zip(heads, lanes, strict=True)], dtype=np.int64)
    return cage, lane


def _components(network: PlacedNetwork) -> list[int]:
    """The number of the connected part that each switch belongs to."""
    home = list(range(len(network.switches)))

    def root(switch: int) -> int:
        while home[switch] != switch:
            switch = home[switch]
        return switch

    for links in network.links:
        home[root(links.lower)] = root(links.upper)
    names = {part: number for number, part in enumerate(dict.fromkeys(map(root, home)))}
    return [names[root(switch)] for switch in range(len(home))]
