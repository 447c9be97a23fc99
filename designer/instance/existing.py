"""The network that a cluster has already, as an instance names it in `search.existing`."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designer.costing.stock import Stock
from designer.fabric.fabric import MANAGEMENT, Fabric, MediumUse


@dataclass(frozen=True)
class LinkKind:
    """Links of one speed that are cabled alike, to endpoints or between switches: what may stay as it is."""

    to_endpoint: bool
    use: MediumUse
    gbps: int


def link_kinds(fabric: Fabric) -> Counter[LinkKind]:
    """How many links a fabric has of each kind."""
    links = fabric.links
    ends = fabric.nodes.kind[links.a] <= MANAGEMENT
    (end, medium, gbps), counts = np.unique(np.stack([ends, links.medium, links.gbps]), axis=1, return_counts=True)
    found: Counter[LinkKind] = Counter()
    rows: list[list[int]] = np.stack([end, medium, gbps, counts], axis=1).tolist()
    for to_endpoint, row, rate, count in rows:
        found[LinkKind(bool(to_endpoint), fabric.media[row], rate)] += count
    return found


@dataclass(frozen=True)
class ExistingNetwork:
    """A network that is there: its switches, modules and cables are owned, its links can be re-plugged.

    Its GPUs are the first ones of the cluster, in the same order. `digest` is that of its design file; `file` and
    `wiring`, where its links come from a list, are as the instance names them. A link that is plugged anew costs
    `cents_per_link_moved`, and at most `most_links_moved` are.
    """

    file: str
    digest: str
    fabric: Fabric
    family: str
    stock: Stock
    most_links_moved: int | None
    cents_per_link_moved: int
    wiring: str | None = None

    @cached_property
    def kinds(self) -> Counter[LinkKind]:
        """Its links by kind."""
        return link_kinds(self.fabric)
