"""Ports of a network laid onto one that is there: links that can stay stay in their ports, all others take free ones.

A cage holds links of one kind (class of links, module or cable, speed), and of every kind a switch keeps as many cages
as it was drawn with, so that the bill stays what it was. Where links of a kind could stay in more cages than that,
those with the most of them are chosen. Cables that carry several links between two cages stay where they were drawn.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from designer.catalog.components import Catalog
from designer.fabric.fabric import LEAF, Column, Fabric, MediumUse
from designer.rewiring.moves import nodes_as_old

Port = tuple[int, int]  # cage and lane
Kind = tuple[int, str | MediumUse, int]


@dataclass
class _Switch:
    """What is known of the cages of a switch while ports are given out."""

    drawn: dict[Kind, set[int]] = field(default_factory=lambda: defaultdict(set))
    asked: dict[Kind, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    chosen: dict[int, Kind] = field(default_factory=dict[int, Kind])
    used: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    of_kind: dict[Kind, list[int]] = field(default_factory=lambda: defaultdict(list))

    def choose(self) -> None:
        """Gives every cage that links want to stay in to one kind, and no kind more cages than it was drawn with."""
        wanted = [(-count, cage, kind) for kind, cages in self.asked.items() for cage, count in cages.items()]
        left = {kind: len(cages) for kind, cages in self.drawn.items()}
        for _, cage, kind in sorted(wanted, key=lambda item: item[:2]):
            if cage not in self.chosen and left[kind]:
                self.chosen[cage] = kind
                left[kind] -= 1

    def take(self, kind: Kind, port: Port) -> None:
        """Notes a port as used."""
        if port[0] not in self.used:
            self.of_kind[kind].append(port[0])
        self.used[port[0]].add(port[1])

    def free(self, kind: Kind, per_cage: int) -> Port:
        """The next free port of a kind: in a cage that has some of it, else in the first empty one."""
        for cage in self.of_kind[kind]:
            if len(self.used[cage]) < per_cage:
                return cage, min(set(range(per_cage)) - self.used[cage])
        cage = 0
        while cage in self.used:
            cage += 1
        return cage, 0


class _Layer:
    """Both fabrics link by link, and which links could stay."""

    def __init__(self, old: Fabric, new: Fabric, same_as: Column, catalog: Catalog) -> None:
        self.old, self.new = old, new
        self.name = nodes_as_old(old, new, same_as)
        self.is_switch = new.nodes.kind >= LEAF
        self.new_rows, self.old_rows = _rows(new), _rows(old)
        several = {key for key, cable in catalog.cables.items() if cable.narrow.ports > 1}
        self.fixed = [bool(several & {use.per_lower_cage, use.per_upper_cage, use.per_link}) for use in new.media]
        self.classes = new.link_class().tolist()
        self.switches: dict[int, _Switch] = defaultdict(_Switch)
        self.per_cage: dict[tuple[int, Kind], int] = defaultdict(int)

    def kind(self, row: int, side: int) -> Kind:
        """The kind of a link at its lower (0) or upper (1) end."""
        link = self.new_rows[row]
        use = self.new.media[link.medium]
        item = use.per_upper_cage if side else use.per_lower_cage
        return self.classes[row], item or use, link.gbps

    def ends(self, row: int) -> list[tuple[int, int, Port]]:
        """Side, switch and drawn port of the ends of a link at switches."""
        link = self.new_rows[row]
        found = [(0, link.a, (link.a_cage, link.a_lane)), (1, link.b, (link.b_cage, link.b_lane))]
        return [end for end in found if self.is_switch[end[1]]]

    def candidates(self) -> dict[int, dict[int, Port]]:
        """For links of the new fabric that could stay: the old port at each of their switches.

        Links to endpoints are known by the endpoint's port; between two switches any link is as good as another.
        """
        there: dict[object, list[tuple[Port, Port]]] = defaultdict(list)
        for link in self.old_rows:
            use = self.old.media[link.medium]
            straight = link.a, link.b, use, link.gbps
            lower, upper = (link.a_cage, link.a_lane), (link.b_cage, link.b_lane)
            if self.old.nodes.kind[link.a] < LEAF:
                there[straight, lower].append((lower, upper))
            else:
                there[straight].append((lower, upper))
        for ports in there.values():
            ports.sort(reverse=True)
        found: dict[int, dict[int, Port]] = {}
        names: list[int] = self.name.tolist()
        for row, link in enumerate(self.new_rows):
            a, b, use = names[link.a], names[link.b], self.new.media[link.medium]
            if a < 0 or b < 0 or self.fixed[link.medium]:
                continue
            if not self.is_switch[link.a]:
                ports = there.get(((a, b, use, link.gbps), (link.a_cage, link.a_lane)))
                if ports:
                    found[row] = {1: ports[-1][1]}
                continue
            turned = replace(use, per_lower_cage=use.per_upper_cage, per_upper_cage=use.per_lower_cage)
            if ports := there.get((a, b, use, link.gbps)):
                lower, upper = ports.pop()
                found[row] = {0: lower, 1: upper}
            elif ports := there.get((b, a, turned, link.gbps)):
                upper, lower = ports.pop()
                found[row] = {0: lower, 1: upper}
        return found


@dataclass(frozen=True)
class _Link:
    a: int
    a_cage: int
    a_lane: int
    b: int
    b_cage: int
    b_lane: int
    gbps: int
    medium: int


def _rows(fabric: Fabric) -> list[_Link]:
    links = fabric.links
    columns = (links.a, links.a_cage, links.a_lane, links.b, links.b_cage, links.b_lane, links.gbps, links.medium)
    return [_Link(*row) for row in np.stack(columns, axis=1).tolist()]


def with_ports_kept(old: Fabric, new: Fabric, same_as: Column, catalog: Catalog) -> Fabric:
    """The new fabric with ports such that links that could stay do; `same_as` says which old node a switch is."""
    layer = _Layer(old, new, same_as, catalog)
    candidates = layer.candidates()
    if not candidates:
        return new
    switches, rows = layer.switches, range(new.n_links)
    for row in rows:
        for side, node, port in layer.ends(row):
            kind = layer.kind(row, side)
            switches[node].drawn[kind].add(port[0])
            model = int(new.nodes.model[node])
            layer.per_cage[model, kind] = max(layer.per_cage[model, kind], port[1] + 1)
            if layer.fixed[layer.new_rows[row].medium]:
                switches[node].chosen[port[0]] = kind
                switches[node].take(kind, port)
            if row in candidates:
                old_port = candidates[row][side]
                switches[node].asked[kind][old_port[0]] += 1
                layer.per_cage[model, kind] = max(layer.per_cage[model, kind], old_port[1] + 1)
    for switch in switches.values():
        switch.choose()
    ports = _kept(layer, candidates)
    _others(layer, ports)
    columns = {name: getattr(new.links, name).copy() for name in ("a_cage", "a_lane", "b_cage", "b_lane")}
    for (row, side), (cage, lane) in ports.items():
        columns["b_cage" if side else "a_cage"][row] = cage
        columns["b_lane" if side else "a_lane"][row] = lane
    return replace(new, links=replace(new.links, **columns))


def _kept(layer: _Layer, candidates: dict[int, dict[int, Port]]) -> dict[tuple[int, int], Port]:
    """Ports of the links that stay at both of their switches."""
    ports: dict[tuple[int, int], Port] = {}
    for row, wanted in candidates.items():
        ends = [(side, node, layer.kind(row, side)) for side, node, _ in layer.ends(row)]
        if all(layer.switches[node].chosen.get(wanted[side][0]) == kind for side, node, kind in ends):
            for side, node, kind in ends:
                ports[row, side] = wanted[side]
                layer.switches[node].take(kind, wanted[side])
    return ports


def _others(layer: _Layer, ports: dict[tuple[int, int], Port]) -> None:
    """Gives all other links what is free."""
    for row in range(layer.new.n_links):
        if layer.fixed[layer.new_rows[row].medium]:
            continue
        for side, node, _ in layer.ends(row):
            if (row, side) not in ports:
                kind = layer.kind(row, side)
                per_cage = layer.per_cage[int(layer.new.nodes.model[node]), kind]
                ports[row, side] = layer.switches[node].free(kind, per_cage)
                layer.switches[node].take(kind, ports[row, side])
