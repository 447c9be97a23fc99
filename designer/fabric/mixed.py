"""Clos networks for servers of several kinds: leaves that serve one kind each, under spines that all of them share.

Every kind has leaves of its own model, mode and number of ports. All leaves of a kind reach every spine by the same
bundle. Where one switch can hold a whole fabric there are no spines, and it serves all kinds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from designer.catalog.components import PortMode
from designer.catalog.media import LinkMedium
from designer.fabric.build import Drawing, leaf_places, nic_port, port_of, rail_of_leaf
from designer.fabric.fabric import LEAF, SPINE, Fabric
from designer.fabric.shape import ClassTally, ClosShape

PLANE = 0  # NICs of several kinds run as one port each


@dataclass(frozen=True)
class SharedPorts:
    """Ports of one switch that links of one kind take: `count` in `mode`; links of the same `key` share cages."""

    mode: PortMode
    key: str
    count: int

    @staticmethod
    def of(mode: PortMode, medium: LinkMedium, count: int) -> "SharedPorts":
        """Ports whose links are the upper ends of a medium."""
        return SharedPorts(mode, medium.per_upper_cage or medium.key, count)


def cages_of(ports: Sequence[SharedPorts]) -> int:
    """Cages that all the ports take."""
    return sum(cages for _, cages in _pools(ports).values())


def places_of(ports: Sequence[SharedPorts]) -> list[tuple[int, int]]:
    """For each entry the first cage of those that it shares, and the number of its first port among theirs."""
    pools, found, taken = _pools(ports), list[tuple[int, int]](), dict[tuple[PortMode, str], int]()
    for item in ports:
        pool = item.mode, item.key
        found.append((pools[pool][0], taken.get(pool, 0)))
        taken[pool] = taken.get(pool, 0) + item.count
    return found


def _pools(ports: Sequence[SharedPorts]) -> dict[tuple[PortMode, str], tuple[int, int]]:
    """First cage and number of cages of each set of ports that share them."""
    counts: dict[tuple[PortMode, str], int] = {}
    for item in ports:
        counts[item.mode, item.key] = counts.get((item.mode, item.key), 0) + item.count
    result: dict[tuple[PortMode, str], tuple[int, int]] = {}
    first = 0
    for pool, count in counts.items():
        cages = -(-count // pool[0].ports_per_cage)
        result[pool] = first, cages
        first += cages
    return result


@dataclass(frozen=True)
class MixedShape:
    """A network of several kinds of servers, kind by kind in the order of their GPUs.

    A part is the network that its kind would have alone, with all its media, and as many spines as the others. Without
    spines a part has one leaf to a fabric, which is the same switch for all parts.
    """

    parts: tuple[ClosShape, ...]

    @property
    def one_tier(self) -> bool:
        """Whether one switch serves a whole fabric."""
        return self.parts[0].spines is None

    @property
    def gpus(self) -> int:
        """GPUs of all kinds."""
        return sum(part.hosts.gpus for part in self.parts)

    @property
    def fabrics(self) -> int:
        """Separate networks."""
        return self.parts[0].rail_sets

    @property
    def spines(self) -> int:
        """Spines of one fabric."""
        return self.parts[0].spines_per_fabric

    def counts(self) -> dict[str, int]:
        """Totals over all fabrics, by closed form; the same keys as `Fabric.counts`."""
        tallies = [part.tally() for part in self.parts]
        hosts, between = (sum(tally[name].links for tally in tallies) for name in ("host", "leaf_spine"))
        leaves = self.fabrics if self.one_tier else sum(part.all_leaves for part in self.parts)
        spines = self.fabrics * self.spines
        return {
            "switches": leaves + spines,
            "leaf": leaves,
            "spine": spines,
            "core": 0,
            "fabrics": self.fabrics,
            "planes": 1,
            "links": hosts + between,
            "endpoint_links": hosts,
            "leaf_leaf_links": 0,
            "leaf_spine_links": between,
            "spine_core_links": 0,
        }

    def problems(self) -> list[str]:
        """Why it cannot be built; empty when it can."""
        found = [problem for part in self.parts for problem in part.problems()]
        first = self.parts[0]
        if any((part.rail_sets, part.spines_per_fabric) != (self.fabrics, self.spines) for part in self.parts):
            found.append("parts with different fabrics or numbers of spines")
        if any(part.hosts.planes != 1 or part.hosts.management_ports or part.cores for part in self.parts):
            found.append("NICs of several ports, management ports or cores")
        shared = first.leaf.switch if first.spines is None else first.spines.tier.switch
        for part in self.parts:
            own = part.leaf.switch if part.spines is None else part.spines.tier.switch
            if own != shared or part.media is None or (part.spines is not None and part.media.leaf_spine is None):
                found.append("parts without media, or with different switches where they meet")
        if found:
            return found
        ports = self.shared_ports(first.layout.rails)
        cages, count = cages_of(ports), sum(item.count for item in ports)
        if cages > shared.cages or count > shared.max_ports:
            found.append(f"{shared.key}: {count} ports take {cages} of {shared.cages} cages")
        return found

    def shared_ports(self, rails: int) -> list[SharedPorts]:
        """Ports of the switch where the kinds meet, in a fabric of `rails` rails: a spine, or the only switch."""
        found: list[SharedPorts] = []
        for part in self.parts:
            if part.media is None:
                raise ValueError("a shape without media")
            if part.spines is None or part.media.leaf_spine is None:
                ports = rails * part.layout.per_rail
                found.append(SharedPorts.of(part.leaf.down_mode, part.media.host, ports))
            else:
                ports = part.leaves * (part.spines.bundle or 0)
                found.append(SharedPorts.of(part.spines.tier.down_mode, part.media.leaf_spine, ports))
        return found

    def tallies(self) -> list[dict[str, ClassTally]]:
        """Links and cages of each part, less the cages of the switch where they meet."""
        name = "host" if self.one_tier else "leaf_spine"
        found: list[dict[str, ClassTally]] = []
        for part in self.parts:
            tally = part.tally()
            of = tally[name]
            found.append({**tally, name: ClassTally(of.links, of.lower_cages, 0)})
        return found


def build_mixed(shape: MixedShape) -> Fabric:
    """The fabric of a mixed shape, its GPUs numbered kind by kind.

    Raises:
        ValueError: the shape has problems.
    """
    if problems := shape.problems():
        raise ValueError("; ".join(problems))
    first = shape.parts[0]
    drawing = Drawing(shape.gpus, first.hosts.rails, first.hosts.nic)
    for rail_set in range(shape.fabrics):
        if shape.one_tier:
            _draw_switch(drawing, shape, rail_set)
        else:
            _draw_tiers(drawing, shape, rail_set)
    return drawing.finish()


def _draw_switch(drawing: Drawing, shape: MixedShape, rail_set: int) -> None:
    first, rails = shape.parts[0], shape.parts[0].set_rails(rail_set)
    rail = int(rail_of_leaf(first, rails, rail_set, 1)[0])
    node = drawing.add_nodes(1, LEAF, rail=rail, plane=PLANE, fabric=rail_set, model=first.leaf.switch.key)
    gpus = 0
    for part, (cage, port) in zip(shape.parts, places_of(shape.shared_ports(rails)), strict=True):
        _draw_hosts(drawing, part, rail_set, gpus, node, cage, port)
        gpus += part.hosts.gpus


def _draw_tiers(drawing: Drawing, shape: MixedShape, rail_set: int) -> None:
    first_leaf: list[int] = []
    rail_of: list[int] = []
    gpus = 0
    for part in shape.parts:
        rail = rail_of_leaf(part, part.layout.rails, rail_set, part.leaves)
        rail_of += rail.tolist()
        node = drawing.add_nodes(part.leaves, LEAF, rail=rail, plane=PLANE, fabric=rail_set, model=part.leaf.switch.key)
        _draw_hosts(drawing, part, rail_set, gpus, node)
        first_leaf.append(node)
        gpus += part.hosts.gpus
    same = rail_of[0] if len(set(rail_of)) == 1 else -1
    above = shape.parts[0].spines
    if above is None:
        raise ValueError("tiers without spines")
    model = above.tier.switch.key
    spine = drawing.add_nodes(above.count, SPINE, rail=same, plane=PLANE, fabric=rail_set, model=model)
    places = places_of(shape.shared_ports(shape.parts[0].layout.rails))
    for part, leaf, (cage, port) in zip(shape.parts, first_leaf, places, strict=True):
        _draw_uplinks(drawing, part, leaf, spine, cage, port)


def _draw_hosts(
    drawing: Drawing, part: ClosShape, rail_set: int, first_gpu: int, first_leaf: int, cage: int = 0, port: int = 0
) -> None:
    gpu, leaf, slot = leaf_places(part, rail_set)
    if part.media is None:
        raise ValueError("a shape without media")
    drawing.add_links(
        nic_port(part.hosts.nic, part.hosts.nic_mode, PLANE, gpu + first_gpu),
        port_of(first_leaf + leaf, port + slot, part.leaf.down_mode.ports_per_cage, cage),
        part.hosts.gbps,
        part.media.host,
        part.media.host_m,
    )


def _draw_uplinks(drawing: Drawing, part: ClosShape, first_leaf: int, first_spine: int, cage: int, port: int) -> None:
    spines, media, up_mode = part.spines, part.media, part.leaf.up_mode
    if spines is None or spines.bundle is None or media is None or media.leaf_spine is None or up_mode is None:
        raise ValueError("a shape without its second tier")
    leaf = np.repeat(np.arange(part.leaves), part.uplinks)
    uplink = np.tile(np.arange(part.uplinks), part.leaves)
    down_cages = -(-part.down // part.leaf.down_mode.ports_per_cage)
    on_spine = port + leaf * spines.bundle + uplink % spines.bundle
    drawing.add_links(
        port_of(first_leaf + leaf, uplink, up_mode.ports_per_cage, down_cages),
        port_of(first_spine + uplink // spines.bundle, on_spine, spines.tier.down_mode.ports_per_cage, cage),
        up_mode.gbps,
        media.leaf_spine,
        media.leaf_spine_m,
    )
