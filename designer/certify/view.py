"""A fabric less what failed, cut into units, and the ports that its GPUs have left.

A unit is a part of the fabric that shares no switch with the rest: a rail of a rail-only network in one plane, or all
rails where spines join them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from designer.certify.problem import Floats, Ints, joined, weigh
from designer.fabric.fabric import LEAF, Fabric
from designer.workload.traffic import Phase

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Failure:
    """What is removed from a fabric: rows of links, numbers of nodes (switches, or GPUs with their NICs)."""

    links: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()


class FabricView:
    """A fabric less what failed, cut into units: switches that are joined by links.

    A GPU is attached to one unit by its only port (or to one for each plane), or by several ports to one unit, as in
    ZCube. `slot` numbers the units of a GPU: planes. GPUs pass no traffic on from unit to unit.
    """

    def __init__(self, fabric: Fabric, failure: Failure | None = None, intact: "FabricView | None" = None) -> None:
        failure = failure or Failure()
        self.fabric = fabric
        self._intact = intact
        self.nodes_alive = np.ones(fabric.n_nodes, dtype=bool)
        self.nodes_alive[list(failure.nodes)] = False
        alive = np.ones(fabric.n_links, dtype=bool)
        alive[list(failure.links)] = False
        self.alive = alive & self.nodes_alive[fabric.links.a] & self.nodes_alive[fabric.links.b]
        self.whole = bool(self.alive.all()) and bool(self.nodes_alive.all())

    @cached_property
    def unit_of_node(self) -> Ints:
        """The unit of every switch of the intact fabric; -1 for other nodes."""
        if self._intact is not None:
            return self._intact.unit_of_node
        links, kind = self.fabric.links, self.fabric.nodes.kind
        between = np.flatnonzero(kind[links.a] >= LEAF)
        label = joined(self.fabric.n_nodes, links.a[between], links.b[between])
        unit = np.full(self.fabric.n_nodes, -1, dtype=np.int64)
        switches = kind >= LEAF
        unit[switches] = np.unique(label[switches], return_inverse=True)[1].reshape(-1)
        return unit

    @cached_property
    def attachment(self) -> tuple[Ints, Floats]:
        """For every GPU and slot of the intact fabric: the unit (-1 none), and the rate of its ports there."""
        if self._intact is not None:
            return self._intact.attachment
        return self._attached(self.fabric.links.a < self.fabric.gpus, None)

    def _attached(self, hosts: Bools, like: Ints | None) -> tuple[Ints, Floats]:
        links, gpus = self.fabric.links, self.fabric.gpus
        gpu, unit = links.a[hosts], self.unit_of_node[links.b[hosts]]
        units = int(self.unit_of_node.max(initial=0)) + 1
        key, index = np.unique(gpu * units + unit, return_inverse=True)
        gbps = weigh(index, links.gbps[hosts], len(key))
        owner, of = key // units, key % units
        if like is None:
            slot = np.arange(len(key)) - np.searchsorted(owner, owner)
            slots = int(slot.max(initial=0)) + 1
        else:
            slots = like.shape[1]
            slot = np.argmax(like[owner] == of[:, None], axis=1)
        table, rate = np.full((gpus, slots), -1, dtype=np.int64), np.zeros((gpus, slots))
        table[owner, slot], rate[owner, slot] = of, gbps
        return table, rate

    def line_rate_gbps(self, phase: Phase) -> float:
        """The rate that the demands of a phase are parts of: all ports of the slowest NIC among its GPUs, intact.

        GPUs that are attached nowhere do not count.

        Raises:
            ValueError: none of its GPUs is attached.
        """
        total = self.attachment[1][phase.first_gpu : phase.first_gpu + phase.gpus].sum(axis=1)
        if not total.any():
            raise ValueError(f"phase {phase.name} of {phase.job}: none of its GPUs is attached")
        return float(total[total > 0].min())

    @cached_property
    def port_gbps(self) -> Floats:
        """What is left of each GPU's ports, by slot."""
        hosts = self.alive & (self.fabric.links.a < self.fabric.gpus)
        return self._attached(hosts, self.attachment[0])[1]

    @cached_property
    def planes_match(self) -> bool:
        """Whether GPUs sit on the planes alike: those of a leaf in one plane share one in each, with the same ports."""
        table, ports, links = self.attachment[0], self.port_gbps, self.fabric.links
        if (ports != ports[:, :1]).any():
            return False
        hosts = np.flatnonzero(self.alive & (links.a < self.fabric.gpus))
        gpu, leaf = links.a[hosts], links.b[hosts]
        slot = np.argmax(table[gpu] == self.unit_of_node[leaf][:, None], axis=1)
        homes: list[Ints] = []
        for number in range(table.shape[1]):
            chosen = slot == number
            place = np.unique(leaf[chosen], return_inverse=True)[1].reshape(-1)
            unit = np.unique(self.unit_of_node[leaf[chosen]], return_inverse=True)[1].reshape(-1)
            rows = np.stack([gpu[chosen], place, unit])
            homes.append(rows[:, np.lexsort(rows[::-1])])
        return all(np.array_equal(home, homes[0]) for home in homes)

    @cached_property
    def full(self) -> Bools:
        """GPUs that are alive with all their ports."""
        return self.gpus_alive & (self.port_gbps >= self.attachment[1]).all(axis=1)

    @cached_property
    def has_nic(self) -> Bools:
        """GPUs that are alive with a port left."""
        return self.gpus_alive & (self.port_gbps > 0).any(axis=1)

    @cached_property
    def gpus_alive(self) -> Bools:
        """GPUs that have not failed themselves."""
        return self.nodes_alive[: self.fabric.gpus]


class JoinedView(FabricView):
    """The same with all switches in one unit: planes are taken together, and what a GPU sends may split over them."""

    @cached_property
    def unit_of_node(self) -> Ints:
        """One unit for every switch; -1 for other nodes."""
        return np.where(self.fabric.nodes.kind >= LEAF, 0, -1)
