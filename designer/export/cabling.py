"""Physical cables of a plan: which links share one, and what is plugged in at each end.

A splitter and a cable with several lanes are one cable for all links in the cage that they are bought for; a fibre, and
a cable of one link, are one for each link.
"""

from dataclasses import dataclass

import numpy as np

from designer.catalog.components import Cable, Catalog
from designer.export.plan import Plan
from designer.fabric.fabric import GPU, Column, MediumUse


@dataclass(frozen=True)
class Medium:
    """What links of one medium are cabled with: catalog keys of cable or fibre, and of the modules at both ends.

    `kind` is dac, acc, aec, aoc, or the kind of fibre. `cable` is the cable's record, None where the link is a fibre.
    """

    part: str
    kind: str
    lower_module: str
    upper_module: str
    length_m: float
    cable: Cable | None


@dataclass(frozen=True)
class Cabling:
    """`cable` is the number of the cable of each link, from 1 in the order of lists; `media` as in the fabric."""

    cable: Column
    media: tuple[Medium, ...]


def cable_id(number: int) -> str:
    """What a cable is called."""
    return f"C{number:06d}"


def cabling_of(plan: Plan) -> Cabling:
    """The cables of a plan."""
    catalog, fabric, links = plan.file.catalog, plan.fabric, plan.fabric.links
    lower = np.where(
        fabric.nodes.kind[links.a] == GPU, links.a - links.a % fabric.gpus_per_cage, links.a
    )  # NICs that share a socket share what is plugged into it
    most = int(max(links.a_cage.max(initial=0), links.b_cage.max(initial=0))) + 1
    per_lower, per_upper = lower * most + links.a_cage, links.b * most + links.b_cage
    bought = np.array([_bought(catalog, use) for use in fabric.media], dtype=np.int64)[links.medium]
    place = np.select([bought == 1, bought == 2], [per_lower, per_upper], default=np.arange(fabric.n_links))
    size = max(int(place.max(initial=0)) + 1, fabric.n_links)
    key = bought * size + place
    _, first, cable = np.unique(key[plan.order], return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(1, len(first) + 1)
    result = np.empty(fabric.n_links, dtype=np.int64)
    result[plan.order] = number[cable]
    return Cabling(result, tuple(_medium(catalog, use) for use in fabric.media))


def _bought(catalog: Catalog, use: MediumUse) -> int:
    """0: one for each link; 1 and 2: one for each lower or upper cage."""
    if use.per_lower_cage in catalog.cables:
        return 1
    return 2 if use.per_upper_cage in catalog.cables else 0


def _medium(catalog: Catalog, use: MediumUse) -> Medium:
    for key in (use.per_link, use.per_lower_cage, use.per_upper_cage):
        if key is not None and key in catalog.cables:
            cable = catalog.cables[key]
            return Medium(key, cable.kind, "", "", use.length_m, cable)
    fibre = catalog.fibres.get(use.per_link or "")
    kind = fibre.fibre if fibre else ""
    return Medium(use.per_link or "", kind, use.per_lower_cage or "", use.per_upper_cage or "", use.length_m, None)
