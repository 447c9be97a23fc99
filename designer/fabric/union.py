"""Several fabrics, each for some of the GPUs of a cluster, as one."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from designer.fabric.fabric import GPU, Column, Fabric, Links, Nodes

_Table = TypeVar("_Table", Nodes, Links)


@dataclass(frozen=True)
class Part:
    """A fabric of its own; `gpus[i]` is the number that its GPU i has in the whole cluster."""

    fabric: Fabric
    gpus: Column


def united(parts: Sequence[Part], gpus: int, rails: int) -> Fabric:
    """The fabric of a cluster of `gpus` GPUs on `rails` rails, of which every one belongs to one of the parts.

    Raises:
        ValueError: a part has management ports or owned switches, or GPUs are missing or there twice.
    """
    every = np.sort(np.concatenate([part.gpus for part in parts]))
    if not np.array_equal(every, np.arange(gpus)):
        raise ValueError("parts that do not cover every GPU once")
    models = tuple(dict.fromkeys(model for part in parts for model in part.fabric.models))
    media = tuple(dict.fromkeys(use for part in parts for use in part.fabric.media))
    number = np.arange(gpus)
    none = np.full(gpus, -1)
    nodes = [Nodes(np.full(gpus, GPU), number % rails, none, none, none, none)]
    links: list[Links] = []
    size = gpus
    fabrics = 0
    for part in parts:
        fabric, own = part.fabric, part.fabric.nodes
        switches = own.kind != GPU
        if fabric.owned or int((~switches).sum()) != fabric.gpus or (own.fabric[switches] < 0).any():
            raise ValueError("a part with management ports or owned switches")
        new = np.full(fabric.n_nodes, -1)
        new[: fabric.gpus] = part.gpus
        new[switches] = size + np.arange(int(switches.sum()))
        size += int(switches.sum())
        model = np.array([models.index(key) for key in fabric.models], dtype=np.int64)
        nodes.append(
            Nodes(
                own.kind[switches],
                own.rail[switches],
                own.plane[switches],
                own.pod[switches],
                own.fabric[switches] + fabrics,
                model[own.model[switches]],
            )
        )
        fabrics += int(own.fabric.max(initial=-1)) + 1
        medium = np.array([media.index(use) for use in fabric.media], dtype=np.int64)
        rows = fabric.links
        links.append(replace(rows, a=new[rows.a], b=new[rows.b], medium=medium[rows.medium]))
    return Fabric(gpus, parts[0].fabric.gpus_per_cage, models, media, _stacked(Nodes, nodes), _stacked(Links, links))


def _stacked(kind: type[_Table], tables: Sequence[_Table]) -> _Table:
    names = [field.name for field in fields(kind)]
    return kind(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in names})
