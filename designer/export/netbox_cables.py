"""Cables of a plan as NetBox has them: which interfaces each joins, and its profile.

A port is an interface of its own where it has a cable of its own, and where a cable of several links ends at several
NICs or at one that has them in one socket. Otherwise the cage of a switch is the interface: of a breakout cable at its
wide end, of a straight cable of several links at both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from designer.catalog.components import Cable
from designer.export.cabling import Cabling, cabling_of
from designer.export.plan import Plan, groups
from designer.fabric.fabric import LEAF

Mask = NDArray[np.bool_]
Side = tuple[tuple[int, str], ...]
ONE_LINK = "single-1c1p"
STRAIGHT = {links: f"single-1c{links}p" for links in (2, 4, 6, 8, 12, 16)}
BREAKOUT = {2: "breakout-1c2p-2c1p", 4: "breakout-1c4p-4c1p", 6: "breakout-1c6p-6c1p"}
TRUNK = {2: "trunk-2c1p", 4: "trunk-4c1p"}
"""Choices of `CableProfileChoices` by the links of a cable."""


@dataclass(frozen=True)
class NetboxCable:
    """A cable: its number, medium (row of the fabric's media), profile, and (device, interface) on both sides.

    Side a is the wide end of a breakout.
    """

    number: int
    medium: int
    profile: str
    a: Side
    b: Side


@dataclass(frozen=True)
class _Joint:
    """How cables of a medium are modelled: their profile, and on which sides one interface stands for the cage."""

    profile: str
    whole: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class NetboxCabling:
    """The cables of a plan, and which of its ends are at the interface of a whole cage."""

    plan: Plan
    cabling: Cabling
    joints: tuple[_Joint, ...]
    joint: NDArray[np.int64]

    @cached_property
    def whole(self) -> tuple[Mask, Mask]:
        """For the lower and the upper end of each link, whether it is at the interface of a whole cage."""
        lower, upper = (np.array([joint.whole[side] for joint in self.joints])[self.joint] for side in (0, 1))
        return lower, upper

    def cables(self) -> Iterator[NetboxCable]:
        """All cables, by number."""
        order = np.argsort(self.cabling.cable, kind="stable")
        first = np.flatnonzero(np.diff(self.cabling.cable[order], prepend=0))
        media = self.plan.fabric.links.medium
        for start, end in zip(first.tolist(), [*first[1:].tolist(), len(order)], strict=True):
            links: list[int] = order[start:end].tolist()
            joint = self.joints[int(self.joint[links[0]])]
            lower, upper = self._side(links, 0), self._side(links, 1)
            a, b = (upper, lower) if joint.whole == (False, True) else (lower, upper)
            number, medium = int(self.cabling.cable[links[0]]), int(media[links[0]])
            yield NetboxCable(number, medium, joint.profile, a, b)

    def _side(self, links: list[int], side: int) -> Side:
        ends, columns = (self.plan.a, self.plan.b)[side], self.plan.fabric.links
        cages = (columns.a_cage, columns.b_cage)[side]
        return tuple(
            dict.fromkeys(
                (
                    int(ends.device[link]),
                    self.plan.cage_name(int(cages[link]))
                    if self.whole[side][link]
                    else self.plan.port_names[int(ends.port[link])],
                )
                for link in links
            )
        )


def netbox_cabling(plan: Plan) -> NetboxCabling:
    """The cables of a plan."""
    cabling, links = cabling_of(plan), plan.fabric.links
    kinds, joint = groups(links.medium, plan.fabric.nodes.kind[links.a] >= LEAF)
    joints: list[_Joint] = []
    for row, at_switch in kinds:
        cable, below = cabling.media[row].cable, plan.fabric.media[row].per_lower_cage is not None
        joints.append(_joint(cable, wide_below=below, at_switch=bool(at_switch)))
    return NetboxCabling(plan, cabling, tuple(joints), joint)


def _joint(cable: Cable | None, *, wide_below: bool, at_switch: bool) -> _Joint:
    links = 1 if cable is None else cable.wide.ports
    if cable is None or links == 1:
        return _Joint(ONE_LINK)
    if cable.narrow.ports == links and links in STRAIGHT and at_switch:
        return _Joint(STRAIGHT[links], (True, True))
    if cable.narrow.ports == 1 and links in BREAKOUT and (at_switch or not wide_below):
        return _Joint(BREAKOUT[links], (wide_below, not wide_below))
    return _Joint(TRUNK.get(links, ""))
