"""What differs between a plan and the wiring that was found: cables missing, extra, swapped, or on another rail.

Links of the plan that were not found and links that were found unplanned meet at ports. Where they close a ring, the
cables in it are swapped among each other; elsewhere a found link stands for the planned one with which it shares an
end, and what is left over is missing or extra.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from designer.export.as_built import End, WiringList
from designer.export.plan import Plan
from designer.fabric.fabric import GPU

KINDS = ("missing", "extra", "swapped", "wrong rail", "wrong plane", "wrong port")
MAX_IN_WORDS = 8
Link = tuple[End, End]
Place = tuple[int, int]
"""Rail and plane."""


@dataclass(frozen=True)
class Difference:
    """One finding: its kind, the planned links that are not there, the found ones that should not be, and in words."""

    kind: str
    planned: tuple[Link, ...]
    found: tuple[Link, ...]
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"

    def to_document(self) -> dict[str, object]:
        """The finding as plain data; ends as device:port."""
        return {
            "kind": self.kind,
            "planned": [[shown(end) for end in link] for link in self.planned],
            "found": [[shown(end) for end in link] for link in self.found],
            "words": self.words,
        }


@dataclass(frozen=True)
class WiringCheck:
    """A wiring list against a plan: links as planned, and what differs."""

    wiring: WiringList
    planned: int
    right: int
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether every link is as planned."""
        return not self.differences

    def counts(self) -> dict[str, int]:
        """How many findings of each kind."""
        found = Counter(difference.kind for difference in self.differences)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    def to_document(self) -> dict[str, object]:
        """The check as plain data."""
        return {
            "wiring": self.wiring.path,
            "format": self.wiring.kind,
            "planned_links": self.planned,
            "found_links": len(self.wiring.links),
            "right_links": self.right,
            "met": self.ok,
            "counts": self.counts(),
            "differences": [difference.to_document() for difference in self.differences],
        }


def shown(end: End) -> str:
    """An end in words."""
    return f"{end[0]}:{end[1]}"


def check_wiring(plan: Plan, wiring: WiringList) -> WiringCheck:
    """Compares a wiring list with a plan."""
    planned = dict(_planned(plan))
    found: dict[Link, None] = {}
    for link in wiring.links:  # a cable that both of its ends report is listed twice
        turned = (link[1], link[0])
        if turned not in found:
            found[turned if turned in planned else link] = None
    wrong = [link for link in found if link not in planned]
    missing = [link for link in planned if link not in found]
    places = _Places(planned)
    differences: list[Difference] = []
    for lost, stray in _groups(missing, wrong):
        differences += _explain(lost, stray, places)
    differences.sort(key=lambda difference: KINDS.index(difference.kind))
    return WiringCheck(wiring, len(planned), len(planned) - len(missing), tuple(differences))


def _planned(plan: Plan) -> Iterator[tuple[Link, Place]]:
    """Links of the plan, the end toward the GPUs first, with rail and plane of those to GPUs, else -1."""
    names, ports, nodes, links = plan.devices.name, plan.port_names, plan.fabric.nodes, plan.fabric.links
    rail = np.where(nodes.kind[links.a] == GPU, links.a % plan.file.cluster.rails, -1)
    columns = (plan.a.device, plan.a.port, plan.b.device, plan.b.port, rail, nodes.plane[links.b])
    for a, a_port, b, b_port, of_rail, of_plane in plan.rows(*columns):
        yield ((names[a], ports[a_port]), (names[b], ports[b_port])), (of_rail, of_plane)


class _Places:
    """Rail and plane of the ports of GPUs, and rails and planes that each switch serves."""

    def __init__(self, planned: Mapping[Link, Place]) -> None:
        self._of_end: dict[End, Place] = {}
        self._served: dict[str, set[Place]] = {}
        for (near, far), place in planned.items():
            if place[0] >= 0:
                self._of_end[near] = place
                self._served.setdefault(far[0], set()).add(place)

    def fault(self, link: Link) -> tuple[str, str] | None:
        """What is wrong with the place of a link to a GPU: kind and words; None where its rail and plane are right."""
        for near, far in (link, (link[1], link[0])):
            place, served = self._of_end.get(near), self._served.get(far[0])
            if place is None or served is None or place in served:
                continue
            rails, planes = sorted({rail for rail, _ in served}), sorted({plane for _, plane in served})
            if place[0] not in rails:
                return "wrong rail", f"{shown(near)} is of rail {place[0]}, {far[0]} of {_of('rail', rails)}"
            return "wrong plane", f"{shown(near)} is of plane {place[1]}, {far[0]} of {_of('plane', planes)}"
        return None


def _of(word: str, numbers: Sequence[int]) -> str:
    return f"{word}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _groups(missing: list[Link], wrong: list[Link]) -> Iterator[tuple[list[Link], list[Link]]]:
    """Missing and wrong links that hang together by ports."""
    home: dict[End, End] = {}

    def root(end: End) -> End:
        home.setdefault(end, end)
        while home[end] != end:
            home[end] = home[home[end]]
            end = home[end]
        return end

    for one, other in (*missing, *wrong):
        home[root(one)] = root(other)
    parts: dict[End, tuple[list[Link], list[Link]]] = {}
    for number, links in enumerate((missing, wrong)):
        for link in links:
            parts.setdefault(root(link[0]), ([], []))[number].append(link)
    yield from parts.values()


def _explain(lost: list[Link], stray: list[Link], places: _Places) -> Iterator[Difference]:
    ends = {end for link in lost for end in link}
    ring = [link for link in stray if set(link) <= ends]
    if _is_ring(lost, ring):
        yield _swapped(lost, ring, places)
        stray, lost = [link for link in stray if link not in ring], []
    left = list(lost)
    for link in stray:
        planned = next((other for other in left if set(other) & set(link)), None)
        if planned is not None:
            left.remove(planned)
        fault = places.fault(link)
        kind = fault[0] if fault else "wrong port" if planned else "extra"
        words = [_joined(link), *([fault[1]] if fault else []), *([f"planned: {_joined(planned)}"] if planned else [])]
        yield Difference(kind, (planned,) if planned else (), (link,), "; ".join(words))
    for link in left:
        yield Difference("missing", (link,), (), _joined(link))


def _swapped(lost: list[Link], ring: list[Link], places: _Places) -> Difference:
    faults = [fault for link in ring if (fault := places.fault(link))]
    number = "two" if len(ring) == 2 else str(len(ring))
    more = [f"and {len(ring) - MAX_IN_WORDS} more"] if len(ring) > MAX_IN_WORDS else []
    words = f"{number} cables: {'; '.join([*map(_joined, ring[:MAX_IN_WORDS]), *more])}"
    if faults:
        words += f"; {faults[0][0]}: {'; '.join(said for _, said in faults[:MAX_IN_WORDS])}"
    return Difference("swapped", tuple(lost), tuple(ring), words)


def _is_ring(lost: list[Link], stray: list[Link]) -> bool:
    """Whether there are links, and every port of them has one planned and one found."""
    planned, found = (Counter(end for link in links for end in link) for links in (lost, stray))
    return planned == found and set(planned.values()) == {1}


def _joined(link: Link) -> str:
    return f"{shown(link[0])} to {shown(link[1])}"
