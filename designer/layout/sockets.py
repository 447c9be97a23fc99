"""The cages that the links of a fabric end in: which links share one, its kind, and how many ports it is split into.

NICs that share a socket are one cage; a cage of a switch may hold lower ends of some links and upper ends of others.
"""

from dataclasses import dataclass

import numpy as np

from designer.catalog.components import Catalog, Nic, Switch
from designer.errors import DesignerError
from designer.fabric.fabric import GPU, HOST, LEAF, Column, Fabric
from designer.instance.instance import Cluster

MOST_CAGES = 1 << 16  # cages of a device, in a packed number
Socket = tuple[str, int]


class SocketError(DesignerError):
    """A fabric with ports that its devices do not have: a bug of this package."""


@dataclass(frozen=True)
class Sockets:
    """`lower` and `upper` are the cages of each link's ends; `kind` indexes `kinds` for each cage.

    A kind is the kind of cage and the ports it is split into.
    """

    lower: Column
    upper: Column
    kind: Column
    kinds: tuple[Socket, ...]

    @property
    def cages(self) -> int:
        """Cages in use."""
        return len(self.kind)


def sockets_of(fabric: Fabric, catalog: Catalog, cluster: Cluster) -> Sockets:
    """The cages of a fabric.

    Raises:
        SocketError: a switch or NIC has no ports like those in use.
    """
    nodes, links, count = fabric.nodes, fabric.links, fabric.n_links
    node = np.concatenate([links.a, links.b])
    cage = np.concatenate([links.a_cage, links.b_cage])
    holder = np.where(nodes.kind[node] == GPU, node - node % fabric.gpus_per_cage, node)
    first, number = np.unique(holder * MOST_CAGES + cage, return_index=True, return_inverse=True)[1:]
    of_end, kinds = _kinds(fabric, catalog, cluster, node)
    return Sockets(number[:count], number[count:], of_end[first], kinds)


def _kinds(fabric: Fabric, catalog: Catalog, cluster: Cluster, node: Column) -> tuple[Column, tuple[Socket, ...]]:
    """The kind of socket of each end, lower ends first."""
    nodes, links, count = fabric.nodes, fabric.links, fabric.n_links
    gbps = np.concatenate([links.gbps, links.gbps])
    lane = np.concatenate([links.a_lane, links.b_lane])
    to_host = np.tile(fabric.link_class() == HOST, 2)
    kind_of_server = np.searchsorted([part.stop for part in cluster.kind_ranges()], links.a, side="right")
    host = np.concatenate([np.where(nodes.kind[links.a] < LEAF, kind_of_server, -1), np.full(count, -1)])
    host[:count][(nodes.kind[links.a] > GPU) & (nodes.kind[links.a] < LEAF)] = 0  # management is cabled as NICs are
    keys = np.stack([nodes.model[node], host, gbps, to_host], axis=1)
    groups, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    last = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(last, group, lane)
    ports = np.bincount(links.a[nodes.kind[links.a] == GPU], minlength=max(fabric.gpus, 1))
    servers, ranges = cluster.kinds(), cluster.kind_ranges()
    found: list[Socket] = []
    rows: list[list[int]] = groups.tolist()
    for (model, of_host, speed, _), most in zip(rows, last.tolist(), strict=True):
        if model >= 0:
            found.append(_of_switch(catalog.switches[fabric.models[model]], speed, most))
        else:
            found.append(_of_nic(servers[of_host].nic, speed, int(ports[ranges[of_host].start])))
    kinds = tuple(dict.fromkeys(found))
    index = np.array([kinds.index(item) for item in found], dtype=np.int64)
    return index[group], kinds


def _of_switch(switch: Switch, gbps: int, last_lane: int) -> Socket:
    """Ports of one speed and use are split alike on all switches of a model: as little as their lanes allow."""
    fitting = [mode.ports_per_cage for mode in switch.modes_at(gbps) if mode.ports_per_cage > last_lane]
    if not fitting:
        raise SocketError(f"{switch.key} has no lane {last_lane} of {gbps} Gb/s")
    return switch.cage, min(fitting)


def _of_nic(nic: Nic, gbps: int, ports: int) -> Socket:
    for mode in nic.modes:
        if (mode.ports, mode.gbps) == (ports, gbps):
            return nic.cage, nic.ports_per_cage(mode)
    raise SocketError(f"{nic.key} has no mode of {ports} ports of {gbps} Gb/s")
