"""Every pair of tiled planes of a small instance, one by one, counted and joined here; see `listed_families`."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from math import prod

from designer.catalog.components import NicMode, PortMode, Switch
from designer.instance.instance import Instance
from tests.reference.flow_lp import Graph
from tests.reference.listed_families import Network, _Class, _media, _nic_end, _nic_socket, _price, _switches, _up

Sides = tuple[int, ...]
Uplinks = tuple[int, int]  # spines of a part, links of a leaf to each of them


def tiled_planes(instance: Instance, radices: tuple[int, ...]) -> Iterator[Network]:
    """All of them, GPUs numbered by `radices`, the rail first; traffic stays on its rail."""
    for mode in instance.cluster.nic.modes:
        for switch in _switches(instance):
            for port_mode in switch.modes_at(mode.gbps) if mode.ports == 2 else ():
                yield from _of_switch(instance, radices, mode, switch, port_mode)


def _of_switch(
    instance: Instance, radices: tuple[int, ...], mode: NicMode, switch: Switch, port_mode: PortMode
) -> Iterator[Network]:
    sides = [
        choice
        for choice in product(*([side for side in range(1, radix + 1) if radix % side == 0] for radix in radices))
        if choice[0] in (1, radices[0])
    ]
    for first, second in combinations_with_replacement(sides, 2):
        ways = [list(_ways(instance, radices, tile, switch, port_mode)) for tile in (first, second)]
        for uplinks in product(*ways):
            yield from _network(instance, radices, mode, switch, port_mode, (first, second), uplinks)


def _fits(switch: Switch, per_cage: int, down: int, up: int) -> bool:
    return _up(down, per_cage) + _up(up, per_cage) <= switch.cages and down + up <= switch.max_ports


def _ways(
    instance: Instance, radices: tuple[int, ...], tile: Sides, switch: Switch, mode: PortMode
) -> Iterator[Uplinks]:
    """No uplinks, and every number of them over the fewest spines that have the ports."""
    down = prod(tile)
    if not _fits(switch, mode.ports_per_cage, down, 0):
        return
    yield 0, 0
    leaves = instance.cluster.gpus // down // (radices[0] if tile[0] == 1 else 1)
    for uplinks in range(1, down + 1):
        if leaves == 1 or not _fits(switch, mode.ports_per_cage, down, uplinks):
            return
        spines = [
            count
            for count in range(1, uplinks + 1)
            if uplinks % count == 0 and _fits(switch, mode.ports_per_cage, leaves * uplinks // count, 0)
        ]
        if spines:
            yield spines[0], uplinks // spines[0]


def _leaf(gpu: int, radices: tuple[int, ...], tile: Sides) -> tuple[int, ...]:
    numbers: list[int] = []
    for radix, side in zip(radices, tile, strict=True):
        gpu, digit = divmod(gpu, radix)
        numbers.append(digit // side)
    return tuple(numbers)


def _network(
    instance: Instance,
    radices: tuple[int, ...],
    mode: NicMode,
    switch: Switch,
    port_mode: PortMode,
    tiles: tuple[Sides, Sides],
    uplinks: tuple[Uplinks, ...],
) -> Iterator[Network]:
    cluster, cabling, per_cage = instance.cluster, instance.cabling, port_mode.ports_per_cage
    gpus, end = cluster.gpus, (switch.cage, port_mode.ports_per_cage)
    names: dict[tuple[object, ...], int] = {}
    links: list[tuple[int, int, float]] = []
    hosts: list[_Class] = []
    lower_sockets: set[tuple[object, ...]] = set()
    upper_sockets: set[tuple[object, ...]] = set()
    count = 0
    for plane, (tile, (spines, bundle)) in enumerate(zip(tiles, uplinks, strict=True)):
        members: dict[tuple[object, ...], list[int]] = {}
        for gpu in range(gpus):
            members.setdefault((plane, *_leaf(gpu, radices, tile)), []).append(gpu)
        sockets: set[tuple[object, ...]] = set()
        for leaf, here in members.items():
            names[leaf] = gpus + len(names)
            for port, gpu in enumerate(here):
                links.append((gpu, names[leaf], float(mode.gbps)))
                sockets.add((leaf, "down", port // per_cage))
            for port in range(spines * bundle):
                lower_sockets.add((leaf, "up", port // per_cage))
        taken: dict[tuple[object, ...], int] = {}
        for leaf in members:
            part = leaf[1] if tile[0] == 1 else 0
            for number in range(spines):
                spine = ("spine", plane, part, number)
                names.setdefault(spine, gpus + len(names))
                links.append((names[leaf], names[spine], float(bundle * mode.gbps)))
                for _ in range(bundle):
                    upper_sockets.add((*spine, taken.get(spine, 0) // per_cage))
                    taken[spine] = taken.get(spine, 0) + 1
        count += len(members) * spines * bundle
        ends = frozenset(_nic_socket(instance, gpu, plane, mode) for gpu in range(gpus))
        hosts.append(_Class(gpus, ends, frozenset(sockets)))
    one_socket = cluster.nic.cages_per_nic == 1
    lengths = [cabling.host_m, cabling.host_m]
    whole = [plane for plane, tile in enumerate(tiles) if 1 < tile[0] == radices[0]]
    if whole:
        lengths[whole[0]] = min(3.0, cabling.host_m)
    media = [_media(instance, [_nic_end(instance, mode), end], mode.gbps, length_m) for length_m in lengths]
    pairs = [
        hosts[0].cents(instance, one) + hosts[1].cents(instance, other, lower=not one_socket)
        for one, other in product(*media)
        if not one_socket or (one.kind == "optics" and one.per_lower_cage == other.per_lower_cage)
    ]
    between = _media(instance, [end, end], mode.gbps, cabling.leaf_spine_m)
    if not pairs or not between:
        return
    joined = _Class(count, frozenset(lower_sockets), frozenset(upper_sockets))
    cents = _price(instance, len(names), switch.price.cents, switch.power_w) + min(pairs)
    cents += min(joined.cents(instance, medium) for medium in between)
    graph = Graph(gpus + len(names), tuple(links), frozenset(range(gpus, gpus + len(names))))
    yield Network((switch.key, port_mode, tiles, uplinks), cents, graph, 2.0 * mode.gbps)
