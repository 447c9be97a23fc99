"""The cheapest cable of every link, given its length and the cages it joins.

All modules of a cage are of one kind, and the modules at both ends of a fibre understand each other; so cages that
links join are of one kind of optics together, or are joined by one cable with attached ends. For each such part the
cheapest way is taken: any module that reaches as far as its cage needs, any fibre that is long enough. Ports stay where
they are; for them no cabling costs less.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from designer.catalog.components import Catalog, Transceiver
from designer.catalog.media import LinkMedium, carries, joins, link_media
from designer.costing.pricing import Pricing
from designer.errors import NoDesignError
from designer.fabric.fabric import Column, Fabric, MediumUse
from designer.instance.instance import Cluster
from designer.layout.floor import Metres, length_classes
from designer.layout.sockets import Socket, Sockets, sockets_of

Cents = NDArray[np.float64]
Optics = tuple[str, str, int]
NONE = -1


class NoCableError(NoDesignError):
    """The catalog has no cable that joins two ports over the length that the floor asks for."""


@dataclass(frozen=True)
class _Parts:
    """Cages that links join, and how they are used: `of_link` numbers the part of each link, `of_cage` that of a cage.

    `length` indexes `lengths_m` for each link, `cage_length` the longest of a cage, `longest` the longest of a part.
    """

    of_link: Column
    of_cage: Column
    count: int
    lengths_m: Metres
    length: Column
    cage_length: Column
    longest: Column


@dataclass(frozen=True)
class _Choice:
    """A way to cable parts: its cost in cents for each part (infinite where it does not fit), and its keys.

    `lower`, `upper` and `link` index `keys` for every link, NONE where nothing is bought there; `whole` says that all
    links of a part have the length of the longest.
    """

    cents: Cents
    lower: Column
    upper: Column
    link: Column
    whole: bool


def recabled(fabric: Fabric, catalog: Catalog, cluster: Cluster, pricing: Pricing, need_m: Metres) -> Fabric:
    """The fabric with the cheapest cables for links that need these lengths.

    Raises:
        NoCableError: nothing in the catalog reaches far enough.
    """
    sockets = sockets_of(fabric, catalog, cluster)
    parts = _parts(sockets, need_m)
    keys = [*catalog.transceivers, *catalog.fibres, *catalog.cables]
    number = {key: index for index, key in enumerate(keys)}
    choices = [
        *_cable_choices(fabric, catalog, pricing, sockets, parts, number),
        *_optics_choices(fabric, catalog, pricing, sockets, parts, number),
    ]
    cents = np.full((max(1, len(choices)), parts.count), np.inf)
    for row, choice in enumerate(choices):
        cents[row] = choice.cents
    best = cents.argmin(axis=0)
    lost = np.flatnonzero(np.isinf(cents.min(axis=0)))
    if len(lost):
        raise _no_cable(fabric, sockets, parts, int(lost[0]))
    columns = np.full((4, fabric.n_links), NONE, dtype=np.int64)
    for row, choice in enumerate(choices):
        mine = np.flatnonzero(best[parts.of_link] == row)
        length = parts.longest[parts.of_link[mine]] if choice.whole else parts.length[mine]
        columns[:, mine] = choice.lower[mine], choice.upper[mine], choice.link[mine], length
    return _with_media(fabric, columns, keys, parts.lengths_m)


def _with_media(fabric: Fabric, columns: Column, keys: list[str], lengths_m: Metres) -> Fabric:
    rows, medium = np.unique(columns.T, axis=0, return_inverse=True)
    named: list[str | None] = [*keys, None]  # the last one stands for NONE
    used: list[list[int]] = rows.tolist()
    media = tuple(
        MediumUse(named[lower], named[upper], named[link], float(lengths_m[length]))
        for lower, upper, link, length in used
    )
    return replace(fabric, media=media, links=replace(fabric.links, medium=medium.reshape(-1).astype(np.int64)))


def _no_cable(fabric: Fabric, sockets: Sockets, parts: _Parts, part: int) -> NoCableError:
    links = np.flatnonzero(parts.of_link == part)
    link = int(links[parts.length[links].argmax()])
    lower, upper = (sockets.kinds[int(sockets.kind[end[link]])][0] for end in (sockets.lower, sockets.upper))
    length_m, gbps = parts.lengths_m[parts.longest[part]], int(fabric.links.gbps[link])
    return NoCableError(f"no cable of the catalog joins {lower} and {upper} at {gbps} Gb/s over {length_m:g} m")


def _parts(sockets: Sockets, need_m: Metres) -> _Parts:
    label = np.arange(sockets.cages)
    while True:  # the lowest number of a cage spreads over all that links join
        low = np.minimum(label[sockets.lower], label[sockets.upper])
        spread = label.copy()
        np.minimum.at(spread, sockets.lower, low)
        np.minimum.at(spread, sockets.upper, low)
        spread = spread[spread]
        if (spread == label).all():
            break
        label = spread
    found, of_cage = np.unique(label, return_inverse=True)
    lengths_m, length = np.unique(length_classes(need_m), return_inverse=True)
    cage_length = np.zeros(sockets.cages, dtype=np.int64)
    np.maximum.at(cage_length, sockets.lower, length)
    np.maximum.at(cage_length, sockets.upper, length)
    longest = np.zeros(len(found), dtype=np.int64)
    np.maximum.at(longest, of_cage, cage_length)
    return _Parts(of_cage[sockets.lower], of_cage, len(found), lengths_m, length, cage_length, longest)


def _cable_choices(
    fabric: Fabric,
    catalog: Catalog,
    pricing: Pricing,
    sockets: Sockets,
    parts: _Parts,
    number: dict[str, int],
) -> list[_Choice]:
    """Cables with attached ends: one for a part whose links all leave one cage at its wide end."""
    kinds = np.stack([sockets.kind[sockets.lower], sockets.kind[sockets.upper], fabric.links.gbps], axis=1)
    rows, kind = np.unique(kinds, axis=0, return_inverse=True)
    of_part = np.full(parts.count, NONE, dtype=np.int64)
    of_part[parts.of_link] = kind.reshape(-1)
    mixed = np.zeros(parts.count, dtype=bool)
    mixed[parts.of_link[of_part[parts.of_link] != kind.reshape(-1)]] = True
    ends = [_distinct(end, parts) for end in (sockets.lower, sockets.upper)]
    apart = ends[0] + ends[1] == np.bincount(parts.of_cage, minlength=parts.count)
    links = np.bincount(parts.of_link, minlength=parts.count)
    found: dict[LinkMedium, Cents] = {}
    joined: list[list[int]] = rows.tolist()
    for row, (lower, upper, gbps) in enumerate(joined):
        mine = (of_part == row) & ~mixed & apart
        for medium, longest in _cables(catalog, sockets.kinds[lower], sockets.kinds[upper], gbps, parts).items():
            cable = catalog.cables[medium.per_lower_cage or medium.per_upper_cage or medium.per_link or ""]
            wide, narrow = ends if medium.per_lower_cage else ends[::-1]
            heads = cable.wide.ports // cable.narrow.ports
            fits = mine & (wide == 1) & (narrow <= heads) & (parts.longest <= longest)
            of_lower, of_upper, of_link = pricing.medium_cents(medium)
            cents = of_lower * ends[0] + of_upper * ends[1] + of_link * links
            held = found.setdefault(medium, np.full(parts.count, np.inf))
            held[fits] = cents[fits]

    def everywhere(key: str | None) -> Column:
        return np.full(fabric.n_links, NONE if key is None else number[key], dtype=np.int64)

    return [
        _Choice(
            cents,
            everywhere(medium.per_lower_cage),
            everywhere(medium.per_upper_cage),
            everywhere(medium.per_link),
            whole=True,
        )
        for medium, cents in found.items()
    ]


def _distinct(cage: Column, parts: _Parts) -> Column:
    """How many different cages of each part are in this column of the links."""
    return np.bincount(parts.of_cage[np.unique(cage)], minlength=parts.count)


def _cables(catalog: Catalog, lower: Socket, upper: Socket, gbps: int, parts: _Parts) -> dict[LinkMedium, int]:
    """The cables that fit, each with the longest of the lengths that it reaches."""
    found: dict[LinkMedium, int] = {}
    for index, length_m in enumerate(parts.lengths_m.tolist()):
        for medium in link_media(catalog, *lower, *upper, gbps, length_m):
            if medium.kind != "optics":
                found[medium] = index
    return found


def _optics_choices(
    fabric: Fabric,
    catalog: Catalog,
    pricing: Pricing,
    sockets: Sockets,
    parts: _Parts,
    number: dict[str, int],
) -> list[_Choice]:
    """One kind of optics in all cages of a part, each cage with its cheapest module, each link with its fibre."""
    speeds, speed = np.unique(fabric.links.gbps, return_inverse=True)
    cage_speed = np.zeros(sockets.cages, dtype=np.int64)
    cage_speed[sockets.lower] = speed
    cage_speed[sockets.upper] = speed
    kinds = {(item.fibre, item.optics, item.lane_gbps): None for item in catalog.transceivers.values()}
    found: list[_Choice] = []
    for optics in kinds:
        modules = [item for item in catalog.transceivers.values() if _optics_of(item) == optics]
        module_cents, module = _module_table(modules, pricing, sockets.kinds, speeds.tolist(), parts, number)
        fibre_cents, fibre = _fibre_table(catalog, modules[0], speeds.tolist(), parts, number)
        of_cage = sockets.kind, cage_speed, parts.cage_length
        of_link = speed, parts.length
        cents = np.zeros(parts.count)
        cents += np.bincount(parts.of_cage, weights=module_cents[of_cage], minlength=parts.count)
        cents += np.bincount(parts.of_link, weights=fibre_cents[of_link], minlength=parts.count)
        chosen = module[of_cage]
        found.append(_Choice(cents, chosen[sockets.lower], chosen[sockets.upper], fibre[of_link], whole=False))
    return found


def _optics_of(module: Transceiver) -> Optics:
    return module.fibre, module.optics, module.lane_gbps


def _module_table(
    modules: list[Transceiver],
    pricing: Pricing,
    kinds: tuple[Socket, ...],
    speeds: list[int],
    parts: _Parts,
    number: dict[str, int],
) -> tuple[Cents, Column]:
    """Cost and number of the cheapest module by kind of socket, speed and length; infinite where none fits."""
    shape = len(kinds), len(speeds), len(parts.lengths_m)
    cents, key = np.full(shape, np.inf), np.full(shape, NONE, dtype=np.int64)
    lengths_m: list[float] = parts.lengths_m.tolist()
    for place in product(*map(range, shape)):
        (cage, per_cage), gbps, length_m = kinds[place[0]], speeds[place[1]], lengths_m[place[2]]
        fitting = [item for item in modules if carries(item, cage, per_cage, gbps) and item.reach_m >= length_m]
        best = min(fitting, key=lambda item: pricing.unit_cents(item.price.cents, item.power_w), default=None)
        if best is not None:
            cents[place], key[place] = pricing.unit_cents(best.price.cents, best.power_w), number[best.key]
    return cents, key


def _fibre_table(
    catalog: Catalog, module: Transceiver, speeds: list[int], parts: _Parts, number: dict[str, int]
) -> tuple[Cents, Column]:
    """Cost and number of the cheapest fibre by speed and length; infinite where none is long enough."""
    shape = len(speeds), len(parts.lengths_m)
    cents, key = np.full(shape, np.inf), np.full(shape, NONE, dtype=np.int64)
    lengths_m: list[float] = parts.lengths_m.tolist()
    for place in product(*map(range, shape)):
        gbps, length_m = speeds[place[0]], lengths_m[place[1]]
        fitting = [item for item in catalog.fibres.values() if joins(item, module, gbps) and item.reach_m >= length_m]
        best = min(fitting, key=lambda item: item.price_cents(length_m), default=None)
        if best is not None:
            cents[place], key[place] = best.price_cents(length_m), number[best.key]
    return cents, key
