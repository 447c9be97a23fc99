"""What switches and all that is plugged into them draw, by node."""

import numpy as np
from numpy.typing import NDArray

from designer.catalog.components import Catalog
from designer.fabric.fabric import GPU, LEAF, Fabric

MOST_CAGES = 1 << 16  # cages of a device, in a packed number


def node_power_w(fabric: Fabric, catalog: Catalog) -> NDArray[np.float64]:
    """Power of every switch with its modules; of a cable with attached ends half counts at each end.

    Servers, and what is plugged into them, are 0: their power is the server's.
    """
    nodes, links = fabric.nodes, fabric.links
    power_w = np.zeros(fabric.n_nodes)
    switches = nodes.model >= 0
    power_w[switches] = np.array([catalog.switches[key].power_w for key in fabric.models])[nodes.model[switches]]
    lower = np.where(nodes.kind[links.a] == GPU, links.a - links.a % fabric.gpus_per_cage, links.a)
    cages = lower * MOST_CAGES + links.a_cage, links.b * MOST_CAGES + links.b_cage
    modules: dict[str, list[NDArray[np.int64]]] = {}
    for row, use in enumerate(fabric.media):
        mine = np.flatnonzero(links.medium == row)
        for key, cage in ((use.per_lower_cage, cages[0]), (use.per_upper_cage, cages[1])):
            if key is not None and key in catalog.transceivers:
                modules.setdefault(key, []).append(cage[mine])
        key = use.per_lower_cage or use.per_upper_cage or use.per_link
        if key is not None and key in catalog.cables:
            bought = cages[0] if use.per_lower_cage else cages[1] if use.per_upper_cage else np.arange(fabric.n_links)
            _, cable, times = np.unique(bought[mine], return_inverse=True, return_counts=True)
            half_w = catalog.cables[key].power_w / 2 / times[cable]
            np.add.at(power_w, links.a[mine], half_w)
            np.add.at(power_w, links.b[mine], half_w)
    for key, parts in modules.items():
        np.add.at(power_w, np.unique(np.concatenate(parts)) // MOST_CAGES, catalog.transceivers[key].power_w)
    power_w[nodes.kind < LEAF] = 0.0
    return power_w
