"""`Fabric`: nodes and links of the whole cluster's network as numpy columns, half a million links and more.

Nodes are numbered GPUs first (0 .. gpus-1), then management ports, then switches. Every physical link is one row;
`a` is its lower end (GPU side), `b` its upper end. A port is a cage and a lane in it, both counted from 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import networkx as nx

KINDS = ("gpu", "management", "leaf", "spine", "core")
GPU, MANAGEMENT, LEAF, SPINE, CORE = range(len(KINDS))
LINK_CLASSES = ("host", "leaf-leaf", "leaf-spine", "spine-core")
HOST, LEAF_LEAF, LEAF_SPINE, SPINE_CORE = range(len(LINK_CLASSES))

Column = NDArray[np.int64]


@dataclass(frozen=True)
class MediumUse:
    """How the links of one class are cabled: catalog keys of what each occupied cage, and each link, takes."""

    per_lower_cage: str | None
    per_upper_cage: str | None
    per_link: str | None
    length_m: float


@dataclass(frozen=True)
class Nodes:
    """Columns of the nodes, one entry each: kind (index in KINDS), rail, plane, pod, fabric, model; -1 is none."""

    kind: Column
    rail: Column
    plane: Column
    pod: Column
    fabric: Column
    model: Column


@dataclass(frozen=True)
class Links:
    """Columns of the links: ends, their ports, `gbps` in each direction, and the row of `media` that cables them."""

    a: Column
    b: Column
    a_cage: Column
    a_lane: Column
    b_cage: Column
    b_lane: Column
    gbps: Column
    medium: Column


def flat_counts(switches: int, fabrics: int, planes: int, host_links: int, links_between: int) -> dict[str, int]:
    """What `Fabric.counts` gives where all switches are leaves."""
    return {
        "switches": switches,
        "leaf": switches,
        "spine": 0,
        "core": 0,
        "fabrics": fabrics,
        "planes": planes,
        "links": host_links + links_between,
        "endpoint_links": host_links,
        "leaf_leaf_links": links_between,
        "leaf_spine_links": 0,
        "spine_core_links": 0,
    }


@dataclass(frozen=True)
class OwnedSwitch:
    """A switch of the fabric that was there before: its node, its name, and the ports it had left, of native speed."""

    node: int
    name: str
    free_ports: int


@dataclass(frozen=True)
class Fabric:
    """The network of a cluster.

    `models` are catalog keys of switches; `gpus_per_cage` NICs share one socket; `owned` switches are not bought.
    """

    gpus: int
    gpus_per_cage: int
    models: tuple[str, ...]
    media: tuple[MediumUse, ...]
    nodes: Nodes
    links: Links
    owned: tuple[OwnedSwitch, ...] = ()

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes.kind)

    @property
    def n_links(self) -> int:
        """Number of physical links."""
        return len(self.links.a)

    def link_class(self) -> Column:
        """Class of each link, an index in LINK_CLASSES, from the kinds of its ends."""
        lower, upper = self.nodes.kind[self.links.a], self.nodes.kind[self.links.b]
        return np.select(
            [lower <= MANAGEMENT, upper == LEAF, upper == SPINE], [HOST, LEAF_LEAF, LEAF_SPINE], default=SPINE_CORE
        )

    def counts(self) -> dict[str, int]:
        """Totals over all fabrics: switches by tier, fabrics, planes, links by class."""
        kind, classes = self.nodes.kind, self.link_class()
        by_kind = np.bincount(kind, minlength=len(KINDS))
        by_class = np.bincount(classes, minlength=len(LINK_CLASSES))
        switches = kind >= LEAF
        return {
            "switches": int(switches.sum()),
            "leaf": int(by_kind[LEAF]),
            "spine": int(by_kind[SPINE]),
            "core": int(by_kind[CORE]),
            "fabrics": len(np.unique(self.nodes.fabric[switches])),
            "planes": len(np.unique(self.nodes.plane[switches])),
            "links": self.n_links,
            "endpoint_links": int(by_class[HOST]),
            "leaf_leaf_links": int(by_class[LEAF_LEAF]),
            "leaf_spine_links": int(by_class[LEAF_SPINE]),
            "spine_core_links": int(by_class[SPINE_CORE]),
        }

    def to_networkx(self) -> "nx.MultiGraph[int]":
        """The fabric as a networkx multigraph; meant for small fabrics and exports."""
        import networkx as nx

        graph: nx.MultiGraph[int] = nx.MultiGraph()
        nodes, links = self.nodes, self.links
        for index, kind in enumerate(nodes.kind.tolist()):
            graph.add_node(index, kind=KINDS[kind], rail=int(nodes.rail[index]), pod=int(nodes.pod[index]))
        for a, b, gbps in zip(links.a.tolist(), links.b.tolist(), links.gbps.tolist(), strict=True):
            graph.add_edge(a, b, gbps=gbps)
        return graph

    def to_document(self) -> dict[str, Any]:
        """Plain data for JSON: columns that change seldom as runs [value, length], the others as lists."""
        return {
            "gpus": self.gpus,
            "gpus_per_cage": self.gpus_per_cage,
            "models": list(self.models),
            "media": [
                {name: getattr(medium, name) for name in ("per_lower_cage", "per_upper_cage", "per_link", "length_m")}
                for medium in self.media
            ],
            "nodes": _columns_document(self.nodes),
            "links": _columns_document(self.links),
            "owned": [asdict(switch) for switch in self.owned],
        }

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "Fabric":
        """The fabric that `to_document` wrote.

        Raises:
            KeyError, TypeError, ValueError: the document is not one.
        """
        media = tuple(MediumUse(**medium) for medium in document["media"])
        nodes = Nodes(**_columns(document["nodes"], [field.name for field in fields(Nodes)]))
        links = Links(**_columns(document["links"], [field.name for field in fields(Links)]))
        owned = tuple(OwnedSwitch(**switch) for switch in document.get("owned", ()))
        gpus, per_cage = int(document["gpus"]), int(document["gpus_per_cage"])
        return Fabric(gpus, per_cage, tuple(document["models"]), media, nodes, links, owned)


def _columns_document(table: Nodes | Links) -> dict[str, Any]:
    return {field.name: _packed(getattr(table, field.name)) for field in fields(table)}


def _packed(column: Column) -> list[int] | dict[str, list[list[int]]]:
    changes = np.flatnonzero(np.diff(column)) + 1
    if len(changes) * 3 >= len(column):
        return column.tolist()
    starts = np.concatenate([[0], changes]) if len(column) else changes
    lengths = np.diff(np.concatenate([starts, [len(column)]]))
    return {"runs": [[int(value), int(length)] for value, length in zip(column[starts], lengths, strict=True)]}


def _columns(document: Mapping[str, Any], names: Sequence[str]) -> dict[str, Column]:
    columns = {name: _unpacked(document[name]) for name in names}
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("columns of different lengths")
    return columns


def _unpacked(column: Any) -> Column:
    if isinstance(column, Mapping):
        runs = np.asarray(column["runs"], dtype=np.int64).reshape(-1, 2)  # pyright: ignore[reportUnknownArgumentType]
        if (runs[:, 1] < 0).any() or int(runs[:, 1].sum()) > MAX_ROWS:
            raise ValueError("runs of impossible length")
        return np.repeat(runs[:, 0], runs[:, 1])
    return np.asarray(column, dtype=np.int64).reshape(-1)


MAX_ROWS = 1 << 26
