"""Cabling of a fabric: whether what is to join two ports fits both cages, their speed and the length."""

from itertools import product

import numpy as np

from designer.catalog.components import Cable, Catalog, Nic, NicMode
from designer.catalog.media import carries, joins
from designer.certify.certificate import Check
from designer.certify.ports import Ends, NicPorts, fitting_modes, told
from designer.fabric.fabric import Column, Fabric, MediumUse
from designer.instance.instance import Cluster

Socket = tuple[str, int]


def medium_problem(catalog: Catalog, use: MediumUse, lower: Socket, upper: Socket, gbps: int) -> str | None:
    """Why this medium cannot carry links of `gbps` between cages (kind, ports per cage); None when it can.

    Unlike `link_media`, which offers only what no other medium beats, any medium that fits is right.
    """
    keys = (use.per_lower_cage, use.per_upper_cage, use.per_link)
    named = [key for key in keys if key is not None]
    unknown = [
        key for key in named if not (key in catalog.transceivers or key in catalog.fibres or key in catalog.cables)
    ]
    if unknown:
        return f"the catalog has no cable or module {', '.join(unknown)}"
    if len(named) == 1 and named[0] in catalog.cables:
        return _cable_problem(catalog.cables[named[0]], use, lower, upper, gbps)
    return _optics_problem(catalog, use, lower, upper, gbps)


def _cable_problem(cable: Cable, use: MediumUse, lower: Socket, upper: Socket, gbps: int) -> str | None:
    if cable.wide.ports == 1:
        place, ways = "link", [(cable.narrow, cable.wide), (cable.wide, cable.narrow)]
    elif use.per_lower_cage == cable.key:
        place, ways = "lower cage", [(cable.wide, cable.narrow)]
    else:
        place, ways = "upper cage", [(cable.narrow, cable.wide)]
        if cable.wide.ports == cable.narrow.ports:
            ways.append((cable.wide, cable.narrow))
    bought = "link" if use.per_link else "lower cage" if use.per_lower_cage else "upper cage"
    if bought != place:
        return f"{cable.key} is bought once a {place}, not once a {bought}"
    if not any(_fits(lower, one.cages, one.ports) and _fits(upper, other.cages, other.ports) for one, other in ways):
        return f"{cable.key} does not fit cages {_cage(lower)} and {_cage(upper)}"
    if gbps not in cable.port_gbps:
        return f"{cable.key} does not run at {gbps} Gb/s"
    return _too_long(cable.key, cable.reach_m, use.length_m)


def _fits(socket: Socket, cages: tuple[str, ...], ports: int) -> bool:
    return socket[0] in cages and socket[1] == ports


def _cage(socket: Socket) -> str:
    return f"{socket[0]} with {socket[1]} ports" if socket[1] > 1 else socket[0]


def _too_long(key: str, reach_m: float, length_m: float) -> str | None:
    return f"{key} reaches {reach_m:g} m, too short for {length_m:g} m" if reach_m < length_m else None


def _optics_problem(catalog: Catalog, use: MediumUse, lower: Socket, upper: Socket, gbps: int) -> str | None:
    one = catalog.transceivers.get(use.per_lower_cage or "")
    other = catalog.transceivers.get(use.per_upper_cage or "")
    fibre = catalog.fibres.get(use.per_link or "")
    if one is None or other is None or fibre is None:
        return "neither one cable nor a module at each end with a fibre between"
    for module, socket in ((one, lower), (other, upper)):
        if not carries(module, *socket, gbps):
            return f"{module.key} does not fit a cage {_cage(socket)} at {gbps} Gb/s a port"
    if (one.fibre, one.optics, one.lane_gbps) != (other.fibre, other.optics, other.lane_gbps):
        return f"{one.key} and {other.key} do not understand each other"
    if not joins(fibre, one, gbps):
        return f"fibre {fibre.key} does not carry {gbps} Gb/s of {one.key}"
    for part in (one, other, fibre):
        if problem := _too_long(part.key, part.reach_m, use.length_m):
            return problem
    return None


def cabling_checks(fabric: Fabric, catalog: Catalog, cluster: Cluster, ends: Ends, ports: NicPorts) -> list[Check]:
    """Media that fit, one kind of module in a cage, and lanes of a cable that stay together."""
    return [
        Check.of("media", _media(fabric, catalog, cluster, ends, ports)),
        Check.of("modules", _modules(fabric, ends)),
        Check.of("cables with several lanes", _bundles(fabric, catalog, ends)),
    ]


def _media(fabric: Fabric, catalog: Catalog, cluster: Cluster, ends: Ends, ports: NicPorts) -> list[str]:
    links, count = fabric.links, fabric.n_links
    models, kinds = len(fabric.models) + 1, len(cluster.kinds())
    hosts = [_nic_sockets(kind.nic, mode) for kind, mode in zip(cluster.kinds(), ports.modes, strict=True)]
    kind = kinds_of(cluster, ends.node)
    speeds, speed = np.unique(links.gbps, return_inverse=True)
    code: Column = links.medium.copy()
    for column, size in (
        (kind[:count], kinds),
        (kind[count:], kinds),
        (ends.model[:count] + 1, models),
        (ends.model[count:] + 1, models),
        (ends.last_lane[:count], int(ends.last_lane.max(initial=0)) + 1),
        (ends.last_lane[count:], int(ends.last_lane.max(initial=0)) + 1),
        (speed, len(speeds)),
    ):
        code = np.unique(code * size + column, return_inverse=True)[1]
    found: list[str] = []
    seen, first, times = np.unique(code, return_index=True, return_counts=True)
    for _, link, many in zip(seen.tolist(), first.tolist(), times.tolist(), strict=True):
        gbps, use = int(links.gbps[link]), fabric.media[int(links.medium[link])]
        sockets = [
            hosts[int(kind[end])] if ends.model[end] < 0 else _switch_sockets(fabric, catalog, ends, end, gbps)
            for end in (link, link + count)
        ]
        if not all(sockets):
            continue  # a speed or breakout that the device does not have; told elsewhere
        problems = [medium_problem(catalog, use, lower, upper, gbps) for lower, upper in product(*sockets)]
        if None not in problems:
            found.append(f"link {link}{f' and {many - 1} more' if many > 1 else ''}: {problems[0]}")
    return found


def kinds_of(cluster: Cluster, node: Column) -> Column:
    """The kind of servers of each GPU; 0 for other nodes, as management ports are cabled as the first NICs are."""
    stops = [gpus.stop for gpus in cluster.kind_ranges()]
    return np.where(node < cluster.gpus, np.searchsorted(stops, node, side="right"), 0)


def _nic_sockets(nic: Nic, mode: NicMode | None) -> list[Socket]:
    return [(nic.cage, max(nic.ports_per_cage(mode), 1))] if mode else []


def _switch_sockets(fabric: Fabric, catalog: Catalog, ends: Ends, end: int, gbps: int) -> list[Socket]:
    switch = catalog.switches[fabric.models[int(ends.model[end])]]
    return [(switch.cage, mode.ports_per_cage) for mode in fitting_modes(switch, gbps, int(ends.last_lane[end]))]


def _modules(fabric: Fabric, ends: Ends) -> list[str]:
    """Ends in one cage whose links ask for different modules."""
    kinds: dict[object, int] = {}
    table = np.zeros((2, max(len(fabric.media), 1)), dtype=np.int64)
    for row, use in enumerate(fabric.media):
        whole = (use.per_lower_cage, use.per_upper_cage, use.per_link)
        for side, module in enumerate((use.per_lower_cage, use.per_upper_cage)):
            table[side, row] = kinds.setdefault(module or whole, len(kinds))
    module = np.concatenate([table[0][fabric.links.medium], table[1][fabric.links.medium]])
    mixed = np.flatnonzero(module != module[ends.cage_example][ends.cage_number])
    return told(mixed, lambda end: f"{ends.place(end)}: another kind of module than the rest of its cage")


def _bundles(fabric: Fabric, catalog: Catalog, ends: Ends) -> list[str]:
    """Links of one several-lane cable head that do not lead to one cage."""
    links, count = fabric.links, fabric.n_links
    found: list[str] = []
    for row, use in enumerate(fabric.media):
        key = use.per_lower_cage or use.per_upper_cage or use.per_link or ""
        cable = catalog.cables.get(key)
        if cable is None or cable.narrow.ports == 1:
            continue
        link = np.flatnonzero(links.medium == row)
        near, far = (link + count, link) if use.per_lower_cage else (link, link + count)
        lead = np.full(len(ends.cage_example), -1)
        lead[ends.cage_number[near]] = ends.cage_number[far]
        apart = near[lead[ends.cage_number[near]] != ends.cage_number[far]]
        found += told(
            apart, lambda end, key=key: f"{ends.place(end)}: the links of a {key} here lead to different cages"
        )
    return found
