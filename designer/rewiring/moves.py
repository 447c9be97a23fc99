"""Which links of a network are there already, counted port by port from two fabrics and which switch is which.

A link is kept where both its ports are those of a link that is there, with the same cable, modules and speed: nobody
touches it. All other links of the new network are plugged, all others of the old one are pulled.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from designer.fabric.fabric import GPU, LEAF, LINK_CLASSES, MANAGEMENT, Column, Fabric, MediumUse

PORTS = 1 << 12  # cages of a device, and lanes of a cage, in a packed number
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class ClassMoves:
    """Links of a class: kept and plugged ones of the new network, pulled ones of the old network."""

    link_class: str
    kept: int
    plugged: int
    pulled: int

    def to_document(self) -> dict[str, object]:
        """The counts as plain data."""
        return {"class": self.link_class, "kept": self.kept, "plugged": self.plugged, "pulled": self.pulled}


@dataclass(frozen=True)
class Moves:
    """Links that stay, are plugged and are pulled, by class and in all."""

    classes: tuple[ClassMoves, ...]

    @property
    def kept(self) -> int:
        """Links that nobody touches."""
        return sum(item.kept for item in self.classes)

    @property
    def plugged(self) -> int:
        """Links of the new network that are not there yet."""
        return sum(item.plugged for item in self.classes)

    @property
    def pulled(self) -> int:
        """Links of the old network that go."""
        return sum(item.pulled for item in self.classes)


def count_moves(old: Fabric, new: Fabric, same_as: Column) -> Moves:
    """What stays of `old` in `new`, whose switch i, in the order of nodes, is the old node `same_as[i]` (-1: none)."""
    stays, stayed = kept_links(old, new, same_as)
    before, after = old.link_class(), new.link_class()
    return Moves(
        tuple(
            ClassMoves(
                name,
                int((stays & (after == number)).sum()),
                int((~stays & (after == number)).sum()),
                int((~stayed & (before == number)).sum()),
            )
            for number, name in enumerate(LINK_CLASSES)
            if (after == number).any() or (before == number).any()
        )
    )


def kept_links(old: Fabric, new: Fabric, same_as: Column) -> tuple[Bools, Bools]:
    """Which links of the new fabric are there already, and which of the old one stay."""
    old_first, old_second, old_code, new_first, new_second, new_code = _keys(old, new, same_as)
    # A port holds one link, so the first end tells the link.
    order = np.argsort(old_first, kind="stable")
    at = np.minimum(np.searchsorted(old_first[order], new_first), len(order) - 1)
    row: Column = order[at]
    stays = (old_first[row] == new_first) & (old_second[row] == new_second) & (old_code[row] == new_code)
    stays &= (new_first >= 0) & (new_second >= 0)
    stayed = np.zeros(old.n_links, dtype=np.bool_)
    stayed[row[stays]] = True
    return stays, stayed


def nodes_as_old(old: Fabric, new: Fabric, same_as: Column) -> Column:
    """For every node of the new fabric the old one that it is, -1 where it is new.

    GPUs keep their numbers; management ports of a plane are the same in their order.
    """
    result = np.full(new.n_nodes, -1, dtype=np.int64)
    gpus = min(old.gpus, new.gpus)
    result[:gpus] = np.arange(gpus)
    for plane in np.unique(new.nodes.plane[new.nodes.kind == MANAGEMENT]).tolist():
        here, there = (
            np.flatnonzero((fabric.nodes.kind == MANAGEMENT) & (fabric.nodes.plane == plane)) for fabric in (new, old)
        )
        both = min(len(here), len(there))
        result[here[:both]] = there[:both]
    result[new.nodes.kind >= LEAF] = same_as
    return result


def medium_codes(*fabrics: Fabric) -> tuple[list[Column], list[Column]]:
    """For each fabric and row of its media a number for how such links are cabled, and the one for them turned round.

    Equal cabling has equal numbers, whatever the fabric.
    """
    known: dict[MediumUse, int] = {}
    straight: list[Column] = []
    turned: list[Column] = []
    for fabric in fabrics:
        straight.append(np.array([known.setdefault(use, len(known)) for use in fabric.media], dtype=np.int64))
        other_way = [_turned(use) for use in fabric.media]
        turned.append(np.array([known.setdefault(use, len(known)) for use in other_way], dtype=np.int64))
    return straight, turned


def _turned(use: MediumUse) -> MediumUse:
    return replace(use, per_lower_cage=use.per_upper_cage, per_upper_cage=use.per_lower_cage)


def _keys(old: Fabric, new: Fabric, same_as: Column) -> tuple[Column, Column, Column, Column, Column, Column]:
    """For both fabrics: the lower and the higher of a link's ports, with nodes of the old one, and its cabling."""
    straight, turned = medium_codes(old, new)
    result: list[Column] = []
    names = np.arange(old.n_nodes), nodes_as_old(old, new, same_as)
    for number, (fabric, name) in enumerate(zip((old, new), names, strict=True)):
        links = fabric.links
        one = _port(name[links.a], links.a_cage, links.a_lane)
        other = _port(name[links.b], links.b_cage, links.b_lane)
        swap = (one > other) & (fabric.nodes.kind[links.a] > GPU)
        code = np.where(swap, turned[number][links.medium], straight[number][links.medium])
        result += [np.where(swap, other, one), np.where(swap, one, other), code * (1 << 20) + links.gbps]
    return result[0], result[1], result[2], result[3], result[4], result[5]


def _port(node: Column, cage: Column, lane: Column) -> Column:
    """A port as one number; -1 at a node that is not there."""
    return np.where(node < 0, -1, (node * PORTS + cage) * PORTS + lane)
