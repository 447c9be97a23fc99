"""Every mesh and every grid of a small instance, one by one: its cost socket by socket, what it carries by plain LPs.

Taken from the package: the instance, its traffic endpoint by endpoint, the media that join two ports, and unit prices.
How GPUs and switches are joined, how many ports and sockets that takes and what it costs is counted here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from designer.catalog.components import NicMode, PortMode, Switch
from designer.catalog.media import LinkMedium, link_media
from designer.costing.bill import bill_of_materials
from designer.costing.pricing import Pricing
from designer.instance.instance import Instance
from designer.workload.traffic import Phase, Step, Traffic
from tests.reference.explicit import step_flows
from tests.reference.flow_lp import Graph, throughput, worst_permutation

NEAR = 1e-6
Socket = tuple[object, ...]


@dataclass(frozen=True)
class Network:
    """A network of a family: its parameters by name, its cost, one of its planes (or both, for a grid) as a graph.

    `nic_gbps` is what the graph has to carry of a NIC.
    """

    parameters: tuple[object, ...]
    cents: int
    graph: Graph
    nic_gbps: float

    def carries(self, traffic: Traffic) -> bool:
        """Whether every step gets the floor of its phase, alone: phases of the instances here take turns."""
        return all(
            self.throughput(traffic, phase, step) >= phase.floor - NEAR
            for phase in traffic.network_phases
            for step in phase.steps
        )

    def throughput(self, traffic: Traffic, phase: Phase, step: Step) -> float:
        """The part of its full rate that a step gets."""
        fixed, worst = step_flows(traffic, phase, step)
        rates: dict[tuple[int, int], float] = {}
        for source, target, rate in fixed:
            if source != target:
                rates[source, target] = rates.get((source, target), 0.0) + rate * self.nic_gbps
        if worst:
            groups = [(rate * self.nic_gbps, gpus) for rate, gpus in worst]
            return worst_permutation(self.graph, groups, rates)
        return throughput(self.graph, rates)


def cheapest_cents(networks: Iterable[Network], traffic: Traffic) -> int | None:
    """Cost of the cheapest network that carries everything; None where none does."""
    listed = sorted(networks, key=lambda network: network.cents)
    return next((network.cents for network in listed if network.carries(traffic)), None)


def _up(number: int, per: int) -> int:
    return -(-number // per)


def _switches(instance: Instance) -> list[Switch]:
    chosen = instance.search.switches
    return [item for key, item in instance.catalog.switches.items() if chosen is None or key in chosen]


def _price(instance: Instance, sockets: int, cents: int, power_w: float) -> int:
    return sockets * Pricing(instance.objective, instance.energy).unit_cents(cents, power_w)


@dataclass(frozen=True)
class _Class:
    """Links of one kind, by the sockets at their two ends."""

    links: int
    lower: frozenset[Socket]
    upper: frozenset[Socket]

    def cents(self, instance: Instance, medium: LinkMedium, *, lower: bool = True) -> int:
        """What they cost; `lower` says whether the modules of the lower ends are bought for this class."""
        both = self.lower | self.upper if medium.per_lower_cage == medium.per_upper_cage else None
        total = _price(instance, self.links, medium.link_cents, medium.link_w)
        if both is not None and self.lower & self.upper:
            return total + _price(instance, len(both), medium.lower_cage_cents, medium.lower_cage_w)
        if lower:
            total += _price(instance, len(self.lower), medium.lower_cage_cents, medium.lower_cage_w)
        return total + _price(instance, len(self.upper), medium.upper_cage_cents, medium.upper_cage_w)


def _nic_socket(instance: Instance, gpu: int, plane: int, mode: NicMode) -> Socket:
    nic = instance.cluster.nic
    if nic.nics_per_cage > 1:
        return "nic", gpu // nic.nics_per_cage
    return "nic", gpu, plane // (mode.ports // min(nic.cages_per_nic, mode.ports))


def _media(instance: Instance, ends: Sequence[tuple[str, int]], gbps: int, length_m: float) -> list[LinkMedium]:
    found = link_media(instance.catalog, *ends[0], *ends[1], gbps, length_m)
    return [medium for medium in found if medium.bundle == 1]


def _nic_end(instance: Instance, mode: NicMode) -> tuple[str, int]:
    nic = instance.cluster.nic
    return nic.cage, mode.ports * nic.nics_per_cage // nic.cages_per_nic


# Meshes


def meshes(instance: Instance, *, mixed: bool = False) -> Iterator[Network]:
    """Every mesh of an instance whose phases stay on their rails; `mixed`: with leaves that take GPUs as they come."""
    cluster = instance.cluster
    orders = [(False, rails) for rails in range(1, cluster.rails + 1) if cluster.rails % rails == 0]
    orders += [(True, cluster.rails)] if mixed and cluster.rails > 1 else []
    for mode, (together, rails), switch in product(cluster.nic.modes, orders, _switches(instance)):
        for down in range(1, cluster.gpus):
            homes = _homes(instance, together, rails, down)
            if homes is None or max(homes.values()) < 1:
                continue
            for host_mode, up_mode in product(switch.modes_at(mode.gbps), switch.modes):
                yield from _of_leaves(instance, mode, (together, rails, down), homes, switch, host_mode, up_mode)


def _homes(instance: Instance, mixed: bool, rails: int, down: int) -> dict[int, int] | None:
    """The leaf of each GPU of the first fabric; None where `down` is no way of its own to fill leaves."""
    cluster = instance.cluster
    per_rail = cluster.gpus // cluster.rails
    if mixed:
        return {gpu: gpu // down for gpu in range(cluster.gpus)}
    if down > per_rail and down % per_rail:
        return None
    homes: dict[int, int] = {}
    for gpu in range(cluster.gpus):
        rail, place = gpu % cluster.rails, gpu // cluster.rails
        if rail < rails:
            homes[gpu] = rail * _up(per_rail, down) + place // down if down < per_rail else rail // (down // per_rail)
    return homes


def _of_leaves(
    instance: Instance,
    mode: NicMode,
    order: tuple[bool, int, int],
    homes: dict[int, int],
    switch: Switch,
    host_mode: PortMode,
    up_mode: PortMode,
) -> Iterator[Network]:
    cluster, cabling = instance.cluster, instance.cabling
    _, rails, down = order
    leaves, fabrics = max(homes.values()) + 1, cluster.rails // rails * mode.ports
    end = (switch.cage, up_mode.ports_per_cage)
    to_hosts = _media(
        instance, [_nic_end(instance, mode), (switch.cage, host_mode.ports_per_cage)], mode.gbps, cabling.host_m
    )
    between = [
        medium
        for medium in _media(instance, [end, end], up_mode.gbps, cabling.leaf_spine_m)
        if medium.per_lower_cage == medium.per_upper_cage
    ]
    if not to_hosts or not between:
        return
    hosts = _Class(
        cluster.gpus * mode.ports,
        frozenset(
            _nic_socket(instance, gpu, plane, mode) for gpu in range(cluster.gpus) for plane in range(mode.ports)
        ),
        frozenset(
            (number, leaf, port // host_mode.ports_per_cage)
            for number in range(fabrics)
            for leaf in range(leaves)
            for port in range(list(homes.values()).count(leaf))
        ),
    )
    for bundle in range(1, switch.max_ports):
        uplinks = (leaves - 1) * bundle
        cages = _up(down, host_mode.ports_per_cage) + _up(uplinks, up_mode.ports_per_cage)
        if cages > switch.cages or down + uplinks > switch.max_ports:
            return
        sockets = frozenset(
            (number, leaf, port // up_mode.ports_per_cage)
            for number in range(fabrics)
            for leaf in range(leaves)
            for port in range(uplinks)
        )
        joined = _Class(fabrics * leaves * uplinks // 2, sockets, sockets)
        cents = _price(instance, fabrics * leaves, switch.price.cents, switch.power_w)
        cents += min(hosts.cents(instance, medium) for medium in to_hosts)
        cents += min(joined.cents(instance, medium) for medium in between)
        gpus = cluster.gpus
        links = [(gpu, gpus + leaf, float(mode.gbps)) for gpu, leaf in homes.items()]
        for one, other in combinations(range(leaves), 2):
            links.append((gpus + one, gpus + other, float(bundle * up_mode.gbps)))
        rest = [gpu for gpu in range(gpus) if gpu not in homes]  # other fabrics are alike: here they share one switch
        links += [(gpu, gpus + leaves, float(mode.gbps)) for gpu in rest]
        graph = Graph(gpus + leaves + 1, tuple(links), frozenset(range(gpus, gpus + leaves + 1)))
        names = (*order, switch.key, host_mode, up_mode, mode.ports, bundle)
        yield Network(names, cents, graph, float(mode.gbps))


# Grids


def grids(instance: Instance) -> Iterator[Network]:
    """Every grid of an instance."""
    cluster = instance.cluster
    two = [mode for mode in cluster.nic.modes if mode.ports == 2]
    for mode, switch, by_rail in product(two, _switches(instance), (False, True)):
        for port_mode in switch.modes_at(mode.gbps):
            for columns, per_cell in product(range(1, cluster.gpus + 1), repeat=2):
                if not (by_rail and cluster.rails == 1) and (columns - 1) * per_cell < cluster.gpus:
                    yield from _of_cells(instance, mode, switch, port_mode, columns, per_cell, by_rail=by_rail)


def _of_cells(
    instance: Instance,
    mode: NicMode,
    switch: Switch,
    port_mode: PortMode,
    columns: int,
    per_cell: int,
    *,
    by_rail: bool,
) -> Iterator[Network]:
    cluster, cabling, gpus = instance.cluster, instance.cabling, instance.cluster.gpus
    order = sorted(range(gpus), key=lambda gpu: (gpu % cluster.rails if by_rail else 0, gpu))
    cell = {gpu: divmod(place // per_cell, columns) for place, gpu in enumerate(order)}
    rows, per_cage = _up(gpus, columns * per_cell), port_mode.ports_per_cage
    beside = not by_rail and columns * per_cell % cluster.rails == 0
    row_m = min(3.0, cabling.host_m) if beside else cabling.host_m
    end = (switch.cage, per_cage)
    host_ends = [_nic_end(instance, mode), end]
    rows_media = _media(instance, host_ends, mode.gbps, row_m)
    columns_media = _media(instance, host_ends, mode.gbps, cabling.host_m)
    between = _media(instance, [end, end], mode.gbps, cabling.leaf_spine_m)
    one_socket = cluster.nic.cages_per_nic == 1
    sides = [
        _side(instance, mode, [place[side] for _, place in sorted(cell.items())], side, per_cage) for side in (0, 1)
    ]
    pairs = [
        sides[0].cents(instance, one) + sides[1].cents(instance, other, lower=not one_socket)
        for one, other in product(rows_media, columns_media)
        if not one_socket or (one.kind == "optics" and one.per_lower_cage == other.per_lower_cage)
    ]
    if not pairs or not between:
        return
    for bundle in range(1, switch.max_ports):
        for others in (columns, rows):
            cages = _up(others * per_cell, per_cage) + _up(others * bundle, per_cage)
            if cages > switch.cages or others * (per_cell + bundle) > switch.max_ports:
                return
        joined = _Class(
            rows * columns * bundle,
            frozenset(("row", row, port // per_cage) for row in range(rows) for port in range(columns * bundle)),
            frozenset(("column", one, port // per_cage) for one in range(columns) for port in range(rows * bundle)),
        )
        cents = _price(instance, rows + columns, switch.price.cents, switch.power_w) + min(pairs)
        cents += min(joined.cents(instance, medium) for medium in between)
        links = [(gpu, gpus + row, float(mode.gbps)) for gpu, (row, _) in cell.items()]
        links += [(gpu, gpus + rows + column, float(mode.gbps)) for gpu, (_, column) in cell.items()]
        for row, column in product(range(rows), range(columns)):
            links.append((gpus + row, gpus + rows + column, float(bundle * mode.gbps)))
        graph = Graph(gpus + rows + columns, tuple(links), frozenset(range(gpus, gpus + rows + columns)))
        names = (by_rail, columns, per_cell, switch.key, port_mode, bundle)
        yield Network(names, cents, graph, 2.0 * mode.gbps)


def _side(instance: Instance, mode: NicMode, place: list[int], side: int, per_cage: int) -> _Class:
    """Links from the GPUs to the switches of one side."""
    taken: dict[int, int] = {}
    upper: set[Socket] = set()
    for switch in place:
        upper.add((side, switch, taken.get(switch, 0) // per_cage))
        taken[switch] = taken.get(switch, 0) + 1
    lower = {_nic_socket(instance, gpu, side, mode) for gpu in range(len(place))}
    return _Class(len(place), frozenset(lower), frozenset(upper))


def closed_forms_hold(search: Any, instance: Instance, most: int) -> int:
    """Holds cost, pieces and counts of the cheapest proposals to what is counted from their drawings; how many."""
    looked_at = 0
    while (priced := search.cheapest()) is not None and looked_at < most:
        fabric, bought = priced.draw(), Counter[str]()
        bill = bill_of_materials(fabric, instance.catalog, Pricing(instance.objective, instance.energy))
        for line in bill.lines:
            if line.section != "switches":
                bought[line.item] += line.quantity
        assert fabric.counts() == priced.shape.counts()
        assert (bill.total_cents, bought) == (priced.cents, priced.pieces())
        looked_at += 1
        search.refuse()
    return looked_at
