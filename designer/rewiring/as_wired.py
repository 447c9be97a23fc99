"""A designed network as it is wired in fact: the links that a wiring list found, between ports of the design.

The list names devices and ports as `designer export` does; models, modules and cables are those of the design.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from designer.certify.read_design import DesignFile
from designer.errors import InputError, Problem
from designer.export.as_built import MAX_PROBLEMS, End, read_wiring
from designer.export.plan import make_plan
from designer.fabric.fabric import Fabric, MediumUse

Place = tuple[int, int]  # a link of the design, and which of its ends: 0 the lower, 1 the upper one


def as_wired(file: DesignFile, wiring: Path, shown: str) -> Fabric:
    """The fabric of a design with the links of a wiring list in place of its own; `shown` is what messages call it.

    Links of the design that are not in the list are not there.

    Raises:
        InputError: the list cannot be read, or names ports that the design does not use, or that do not go together.
        ExportError: the design has devices without a name.
    """
    plan = make_plan(file)
    fabric, links = file.fabric, file.fabric.links
    places: dict[End, Place] = {}
    for side, end in enumerate((plan.a, plan.b)):
        for row, (device, port) in enumerate(zip(end.device.tolist(), end.port.tolist(), strict=True)):
            places[plan.devices.name[device], plan.port_names[port]] = row, side
    problems: list[Problem] = []
    media, found = list(fabric.media), list[list[int]]()
    used: set[Place] = set()

    def refuse(what: str, allowed: str) -> None:
        problems.append(Problem(shown, None, "", what, allowed))

    for one, other in read_wiring(wiring, plan).links:
        ends = [places.get(one), places.get(other)]
        words = f"{one[0]}:{one[1]} to {other[0]}:{other[1]}"
        if ends[0] is None or ends[1] is None:
            refuse(words, f"ports that links of {file.record.name} use")
            continue
        if ends[0] in used or ends[1] in used or ends[0] == ends[1]:
            refuse(words, "every port once")
            continue
        used |= {ends[0], ends[1]}
        lower, upper = sorted((ends[0], ends[1]), key=lambda place: _rank(fabric, place))
        use = _medium(fabric, lower, upper)
        if use is None or links.gbps[lower[0]] != links.gbps[upper[0]]:
            refuse(words, "ports of one speed, with cables of one kind")
            continue
        if use not in media:
            media.append(use)
        ports = [*_port(fabric, lower), *_port(fabric, upper)]
        found.append([*ports, int(links.gbps[lower[0]]), media.index(use)])
    if problems or not found:
        if not problems:
            refuse("no links", "the links of a network")
        raise InputError(problems[:MAX_PROBLEMS])
    names = ("a", "a_cage", "a_lane", "b", "b_cage", "b_lane", "gbps", "medium")
    columns = dict(zip(names, np.array(found, dtype=np.int64).T, strict=True))
    return replace(fabric, media=tuple(media), links=replace(links, **columns))


def _port(fabric: Fabric, place: Place) -> tuple[int, int, int]:
    row, side = place
    links = fabric.links
    columns = (links.b, links.b_cage, links.b_lane) if side else (links.a, links.a_cage, links.a_lane)
    node, cage, lane = (int(column[row]) for column in columns)
    return node, cage, lane


def _rank(fabric: Fabric, place: Place) -> tuple[int, int]:
    """The kind of the device at an end, and the end: what is lower comes first."""
    return int(fabric.nodes.kind[_port(fabric, place)[0]]), place[1]


def _medium(fabric: Fabric, lower: Place, upper: Place) -> MediumUse | None:
    """How a link between two ends is cabled, each with its own module; None where their cables differ."""
    one, other = (fabric.media[int(fabric.links.medium[row])] for row, _ in (lower, upper))
    if (one.per_link, one.length_m) != (other.per_link, other.length_m):
        return None
    below = one.per_upper_cage if lower[1] else one.per_lower_cage
    above = other.per_upper_cage if upper[1] else other.per_lower_cage
    return MediumUse(below, above, one.per_link, one.length_m)
