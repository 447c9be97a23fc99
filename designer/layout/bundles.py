"""Cables by where they run: a bundle is all cables of one kind and length from one rack to another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designer.catalog.components import Catalog
from designer.fabric.fabric import GPU, Column, Fabric
from designer.layout.floor import Floor, Places
from designer.layout.power import MOST_CAGES

ROUTES = ("in a rack", "along a row", "between rows")


@dataclass(frozen=True)
class Bundles:
    """All bundles of a class of links on one kind of route (index in ROUTES) and of one length.

    `cables` in all, in `bundles` between two racks each, of at least `fewest` and at most `most` cables.
    """

    link_class: int
    route: int
    length_m: float
    cables: int
    bundles: int
    fewest: int
    most: int


def one_link_a_cable(fabric: Fabric, catalog: Catalog) -> NDArray[np.bool_]:
    """Marks one link of every cable: cables with several lanes carry several links."""
    nodes, links = fabric.nodes, fabric.links
    lower = np.where(nodes.kind[links.a] == GPU, links.a - links.a % fabric.gpus_per_cage, links.a)
    cable = np.arange(fabric.n_links)
    for row, use in enumerate(fabric.media):
        for key, node, cage in ((use.per_lower_cage, lower, links.a_cage), (use.per_upper_cage, links.b, links.b_cage)):
            if key is not None and key in catalog.cables:
                mine = np.flatnonzero(links.medium == row)
                _, first, number = np.unique(
                    node[mine] * MOST_CAGES + cage[mine], return_index=True, return_inverse=True
                )
                cable[mine] = mine[first[number]]
    return cable == np.arange(fabric.n_links)


def bundles_of(fabric: Fabric, catalog: Catalog, floor: Floor, places: Places) -> list[Bundles]:
    """The bundles of a fabric, by class of links, route and length."""
    cable = np.flatnonzero(one_link_a_cable(fabric, catalog))
    rack = floor.rack_of_node(fabric, places)
    one, other = rack[fabric.links.a[cable]], rack[fabric.links.b[cable]]
    lengths_m, length = np.unique(
        np.array([use.length_m for use in fabric.media])[fabric.links.medium[cable]], return_inverse=True
    )
    route = np.where(one == other, 0, np.where(floor.row[one] == floor.row[other], 1, 2))
    ends = np.minimum(one, other) * floor.racks + np.maximum(one, other)
    columns = np.stack([fabric.link_class()[cable], route, length, ends], axis=1)
    kinds, size = np.unique(columns, axis=0, return_counts=True)
    groups, group = np.unique(kinds[:, :3], axis=0, return_inverse=True)
    group = group.reshape(-1)
    found: list[Bundles] = []
    rows: list[list[int]] = groups.tolist()
    for number, (class_, way, index) in enumerate(rows):
        sizes: Column = size[group == number]
        cables, fewest, most = int(sizes.sum()), int(sizes.min()), int(sizes.max())
        found.append(Bundles(class_, way, float(lengths_m[index]), cables, len(sizes), fewest, most))
    return found
