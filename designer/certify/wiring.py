"""Wiring of a fabric: islands, uplinks, rails, planes and pods as the links have them, the order of hosts, bundles."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from designer.certify.certificate import Check
from designer.certify.ports import NicPorts, node_name, told
from designer.fabric.fabric import CORE, LEAF, LEAF_LEAF, LEAF_SPINE, MANAGEMENT, SPINE, SPINE_CORE, Column, Fabric


@dataclass(frozen=True)
class Wiring:
    """A fabric with the NIC port of each host link; `rails` are those of the cluster.

    `kind` is the kind of servers of each GPU: what is alike in a fabric is so among switches of one kind. With
    `any_port` a GPU may have any port of its leaf, as where links stayed where they were before.
    """

    fabric: Fabric
    rails: int
    ports: NicPorts
    symmetric: bool
    kind: Column
    any_port: bool = False

    @cached_property
    def classes(self) -> Column:
        """Class of each link."""
        return self.fabric.link_class()

    @cached_property
    def between(self) -> Column:
        """Links between switches."""
        return np.flatnonzero(self.fabric.nodes.kind[self.fabric.links.a] >= LEAF)

    @cached_property
    def switches(self) -> Column:
        """Nodes that are switches."""
        return np.flatnonzero(self.fabric.nodes.kind >= LEAF)

    @cached_property
    def kind_of_node(self) -> Column:
        """Kind of servers of GPUs, of what a leaf serves, and of a fabric for its spines and cores; the first one."""
        nodes, links = self.fabric.nodes, self.fabric.links
        none = int(self.kind.max(initial=0)) + 1
        found = np.full(self.fabric.n_nodes, none)
        found[: self.fabric.gpus] = self.kind
        np.minimum.at(found, links.b[self.ports.link], self.kind[links.a[self.ports.link]])
        first = np.full(int(nodes.fabric.max(initial=0)) + 1, none)
        leaf = np.flatnonzero(nodes.kind == LEAF)
        np.minimum.at(first, nodes.fabric[leaf], found[leaf])
        upper = nodes.kind > LEAF
        found[upper] = first[nodes.fabric[upper]]
        return np.where(found == none, 0, found)

    def of_class(self, link_class: int) -> Column:
        """Links of one class."""
        return np.flatnonzero(self.classes == link_class)

    def name(self, node: int) -> str:
        """A node in words."""
        return node_name(self.fabric, node)

    def checks(self) -> list[Check]:
        """All of them."""
        return [
            Check.of("connected", islands(self)),
            Check.of("uplinks", _uplinks(self)),
            Check.of("rails", _rails(self)),
            Check.of("planes", plane_findings(self)),
            Check.of("pods", _pods(self)),
            Check.of("endpoint order", _endpoint_order(self)),
            Check.of("one speed for a class", _class_speeds(self)),
            Check.of("bundles", [*_leaf_spine_bundles(self), *_spine_core_bundles(self)]),
        ]


def components(nodes: int, a: Column, b: Column) -> Column:
    """For every node the least node that links join it with."""
    label = np.arange(nodes)
    while True:
        one, other = label[a], label[b]
        if np.array_equal(one, other):
            return label
        np.minimum.at(label, np.maximum(one, other), np.minimum(one, other))
        while not np.array_equal(label, label[label]):
            label = label[label]


def islands(wiring: Wiring) -> list[str]:
    """Links that join two fabrics, and switches of a fabric that are not joined with the rest of it."""
    fabric, links = wiring.fabric, wiring.fabric.links
    number = fabric.nodes.fabric
    joined = wiring.between[number[links.a[wiring.between]] != number[links.b[wiring.between]]]
    found = told(
        joined,
        lambda link: (
            f"link {link} joins fabric {number[links.a[link]]} ({wiring.name(int(links.a[link]))}) "
            f"with fabric {number[links.b[link]]} ({wiring.name(int(links.b[link]))})"
        ),
    )
    label = components(fabric.n_nodes, links.a[wiring.between], links.b[wiring.between])[wiring.switches]
    roots, size = np.unique(label, return_counts=True)
    home = number[roots]
    largest = np.zeros(int(home.max(initial=0)) + 2, dtype=np.int64)
    np.maximum.at(largest, home, size)
    # Of parts equally large the first is the fabric, the others are islands.
    first: dict[int, int] = {}
    for root, part, many in zip(roots.tolist(), home.tolist(), size.tolist(), strict=True):
        if many == largest[part]:
            first.setdefault(part, root)
    island = np.array([first[part] for part in home.tolist()], dtype=np.int64) != roots
    return found + told(
        np.flatnonzero(island),
        lambda row: (
            f"an island in fabric {home[row]}: {size[row]} switches from {wiring.name(int(roots[row]))} on "
            "are not joined with the rest"
        ),
    )


def _uplinks(wiring: Wiring) -> list[str]:
    fabric, links = wiring.fabric, wiring.fabric.links
    kind, number = fabric.nodes.kind, fabric.nodes.fabric
    fabrics = int(number.max(initial=0)) + 1
    tiers = np.zeros((fabrics, CORE + 1), dtype=np.int64)
    np.add.at(tiers, (number[wiring.switches], kind[wiring.switches]), 1)
    up = np.bincount(links.a[wiring.between], minlength=fabric.n_nodes)
    down = np.bincount(links.b, minlength=fabric.n_nodes)
    leaf = wiring.switches[kind[wiring.switches] == LEAF]
    # A leaf joined to other leaves has those links as its uplinks, at whichever end.
    lateral = np.bincount(links.b[wiring.of_class(LEAF_LEAF)], minlength=fabric.n_nodes)
    lone = leaf[((up + lateral)[leaf] == 0) & (tiers[number[leaf]].sum(axis=1) > 1)]
    spine = wiring.switches[kind[wiring.switches] == SPINE]
    headless = spine[(up[spine] == 0) & (tiers[number[spine], CORE] > 0)]
    upper = wiring.switches[kind[wiring.switches] > LEAF]
    return [
        *told(lone, lambda node: f"{wiring.name(node)} has no uplink, its fabric has other leaves"),
        *told(headless, lambda node: f"{wiring.name(node)} has no uplink, its fabric has cores"),
        *told(upper[down[upper] == 0], lambda node: f"{wiring.name(node)} has no link downward"),
    ]


def _rails(wiring: Wiring) -> list[str]:
    fabric, links, rail = wiring.fabric, wiring.fabric.links, wiring.fabric.nodes.rail
    gpu = np.arange(fabric.gpus)
    found = told(
        np.flatnonzero(rail[: fabric.gpus] != gpu % wiring.rails),
        lambda node: f"GPU {node} is said to be on rail {rail[node]}, it is on rail {node % wiring.rails}",
    )
    link = wiring.ports.link
    claimed, held = rail[links.b[link]], links.a[link] % wiring.rails
    wrong = link[(claimed >= 0) & (claimed != held)]
    found += told(
        wrong,
        lambda row: (
            f"GPU {links.a[row]} of rail {links.a[row] % wiring.rails} is on {wiring.name(int(links.b[row]))} "
            f"of rail {rail[links.b[row]]} (link {row}): swapped between rails"
        ),
    )
    lower, upper = rail[links.a[wiring.between]], rail[links.b[wiring.between]]
    crossing = wiring.between[(lower >= 0) & (upper >= 0) & (lower != upper)]
    return found + told(
        crossing,
        lambda row: (
            f"link {row} joins {wiring.name(int(links.a[row]))} of rail {rail[links.a[row]]} with "
            f"{wiring.name(int(links.b[row]))} of rail {rail[links.b[row]]}"
        ),
    )


def plane_findings(wiring: Wiring) -> list[str]:
    """NIC ports on switches of another plane, and links from plane to plane where there are tiers."""
    fabric, links, plane = wiring.fabric, wiring.fabric.links, wiring.fabric.nodes.plane
    link, port = wiring.ports.link, wiring.ports.port
    wrong = np.flatnonzero((port >= 0) & (plane[links.b[link]] != port))
    found = told(
        wrong,
        lambda row: (
            f"NIC port {port[row]} of GPU {links.a[link[row]]} is on {wiring.name(int(links.b[link[row]]))} "
            f"of plane {plane[links.b[link[row]]]} (link {link[row]})"
        ),
    )
    management = np.flatnonzero(fabric.nodes.kind[links.a] == MANAGEMENT)
    # Leaves of a grid belong to different planes; everything else stays in its own.
    same = np.concatenate([management, wiring.of_class(LEAF_SPINE), wiring.of_class(SPINE_CORE)])
    return found + told(
        same[plane[links.a[same]] != plane[links.b[same]]],
        lambda row: (
            f"link {row} joins {wiring.name(int(links.a[row]))} of plane {plane[links.a[row]]} with "
            f"{wiring.name(int(links.b[row]))} of plane {plane[links.b[row]]}"
        ),
    )


def _pods(wiring: Wiring) -> list[str]:
    links, pod = wiring.fabric.links, wiring.fabric.nodes.pod
    row = wiring.of_class(LEAF_SPINE)
    return told(
        row[pod[links.a[row]] != pod[links.b[row]]],
        lambda link: (
            f"link {link} joins {wiring.name(int(links.a[link]))} of pod {pod[links.a[link]]} with "
            f"{wiring.name(int(links.b[link]))} of pod {pod[links.b[link]]}"
        ),
    )


def _grouped(key: Column) -> Iterator[Column]:
    """Positions with equal keys, together."""
    order = np.argsort(key, kind="stable")
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _endpoint_order(wiring: Wiring) -> list[str]:
    """GPUs whose port is not where the order of the others puts them.

    In the order of leaves and their ports the GPUs of a fabric and plane follow a stride s: g, g + s, g + 2 s, ...:
    1 where leaves serve whole servers, the number of rails where each rail is a run of its own, the row length of a
    grid on its column switches. What most of them follow is the order; the others sit in each other's places.
    """
    links, nodes = wiring.fabric.links, wiring.fabric.nodes
    link = wiring.ports.link
    if len(link) == 0:
        return []
    home = links.b[link]
    planes = int(nodes.plane.max(initial=0)) + 2
    found: list[str] = []
    kinds = int(wiring.kind.max(initial=0)) + 1
    key = (nodes.fabric[home] * planes + nodes.plane[home] + 1) * kinds + wiring.kind[links.a[link]]
    for part in _grouped(key):
        row = link[part]
        if wiring.any_port:
            row = row[np.lexsort((links.a[row], links.b[row]))]
        else:
            row = row[np.lexsort((links.b_lane[row], links.b_cage[row], links.b[row]))]
        gpu = links.a[row]
        expected = _expected_order(gpu, wiring.rails)
        wrong = np.flatnonzero(gpu != expected)
        if wiring.any_port:
            leaf = dict(zip(gpu.tolist(), links.b[row].tolist(), strict=True))
            wrong = wrong[[leaf[int(expected[at])] != leaf[int(gpu[at])] for at in wrong.tolist()]]

        def say(at: int, row: Column = row, expected: Column = expected) -> str:
            here = row[at]
            return (
                f"GPU {links.a[here]} is on {wiring.name(int(links.b[here]))} cage {links.b_cage[here]} "
                f"lane {links.b_lane[here]}, where the order of the hosts puts GPU {expected[at]}"
            )

        found += told(wrong, say)
    return found


def _expected_order(gpu: Column, rails: int) -> Column:
    steps, times = np.unique(np.diff(gpu), return_counts=True)
    forward = steps > 0
    strides = {1, rails}
    if forward.any():
        strides.add(int(steps[forward][times[forward].argmax()]))
    orders = [gpu[np.lexsort((gpu // stride, gpu % stride))] for stride in sorted(strides)]
    return min(orders, key=lambda order: int((order != gpu).sum()))


def _class_speeds(wiring: Wiring) -> list[str]:
    links, found = wiring.fabric.links, list[str]()
    for name, link_class in (("leaf-leaf", LEAF_LEAF), ("leaf-spine", LEAF_SPINE), ("spine-core", SPINE_CORE)):
        every = wiring.of_class(link_class)
        for part in _grouped(wiring.kind_of_node[links.a[every]]):
            row = every[part]
            speeds, times = np.unique(links.gbps[row], return_counts=True)
            usual = int(speeds[times.argmax()])
            found += told(
                row[links.gbps[row] != usual],
                lambda link, usual=usual, name=name: (
                    f"link {link} from {wiring.name(int(links.a[link]))} to {wiring.name(int(links.b[link]))} runs at "
                    f"{links.gbps[link]} Gb/s, {name} links at {usual}"
                ),
            )
    return found


Table = NDArray[np.int64]


def _tables(
    wiring: Wiring, link_class: int, lower_kind: int, lower_key: Column, upper_key: Column
) -> "Iterator[tuple[Column, Column, Table]]":
    """For nodes with equal keys: the lower ones, the upper ones, and the number of links of each pair."""
    fabric, links = wiring.fabric, wiring.fabric.links
    row = wiring.of_class(link_class)
    lower = np.flatnonzero(fabric.nodes.kind == lower_kind)
    upper = np.flatnonzero(fabric.nodes.kind == lower_kind + 1)
    uppers = {int(upper_key[upper[part[0]]]): upper[part] for part in _grouped(upper_key[upper])}
    linked = {int(lower_key[links.a[row[part[0]]]]): row[part] for part in _grouped(lower_key[links.a[row]])}
    for part in _grouped(lower_key[lower]):
        below = lower[part]
        key = int(lower_key[below[0]])
        above = uppers.get(key)
        if above is None:
            continue
        here = linked.get(key, row[:0])
        here = here[upper_key[links.b[here]] == key]
        table = np.zeros((len(below), len(above)), dtype=np.int64)
        np.add.at(table, (np.searchsorted(below, links.a[here]), np.searchsorted(above, links.b[here])), 1)
        yield below, above, table


def _leaf_spine_bundles(wiring: Wiring) -> list[str]:
    """Pairs of a leaf and a spine of its pod that have another number of links than the rest.

    With `symmetric_uplinks` all have as many; without, they differ by at most one, and so do the spines' totals.
    """
    nodes = wiring.fabric.nodes
    key = nodes.fabric * (int(nodes.pod.max(initial=0)) + 2) + nodes.pod + 1
    found: list[str] = []
    tables = (
        (every[part], spines, table[part])
        for every, spines, table in _tables(wiring, LEAF_SPINE, LEAF, key, key)
        for part in _grouped(wiring.kind_of_node[every])
    )
    for leaves, spines, table in tables:
        values, times = np.unique(table, return_counts=True)
        usual = int(values[times.argmax()])
        uneven = np.abs(table - usual) > (0 if wiring.symmetric else 1)
        if not wiring.symmetric and not uneven.any() and int(np.ptp(values)) > 1:
            uneven = table == (values[0] if times[0] < times[-1] else values[-1])
        pair = np.flatnonzero(uneven)

        def say(
            at: int, table: Table = table, leaves: Column = leaves, spines: Column = spines, usual: int = usual
        ) -> str:
            leaf, spine = divmod(at, table.shape[1])
            ends = f"{wiring.name(int(leaves[leaf]))} and {wiring.name(int(spines[spine]))}"
            return f"{ends}: {table[leaf, spine]} links, other pairs {usual}"

        found += told(pair, say)
        for nodes_here, total, spread in (
            (leaves, table.sum(axis=1), 0),
            (spines, table.sum(axis=0), 0 if wiring.symmetric else 1),
        ):
            found += _uneven_totals(wiring, nodes_here, total, spread)
    return found


def _uneven_totals(wiring: Wiring, nodes: Column, total: Column, spread: int) -> list[str]:
    values, times = np.unique(total, return_counts=True)
    usual = int(values[times.argmax()])
    odd = np.flatnonzero(np.abs(total - usual) > spread)
    if spread and not len(odd) and int(np.ptp(values)) > spread:
        odd = np.flatnonzero(total == (values[0] if times[0] < times[-1] else values[-1]))
    return told(
        odd, lambda at: f"{wiring.name(int(nodes[at]))}: {total[at]} links between tiers, others of its tier {usual}"
    )


def _spine_core_bundles(wiring: Wiring) -> list[str]:
    """Spines with another number of uplinks, and cores that do not reach all pods alike."""
    fabric, nodes, links = wiring.fabric, wiring.fabric.nodes, wiring.fabric.links
    row = wiring.of_class(SPINE_CORE)
    if len(row) == 0:
        return []
    uplinks = np.bincount(links.a[row], minlength=fabric.n_nodes)
    spine, core = np.flatnonzero(nodes.kind == SPINE), np.flatnonzero(nodes.kind == CORE)
    found: list[str] = []
    for part in _grouped(wiring.kind_of_node[spine]):
        found += _uneven_totals(wiring, spine[part], uplinks[spine[part]], 0)
    for part in _grouped(wiring.kind_of_node[core]):
        found += _core_bundles(wiring, core[part])
    return found


def _core_bundles(wiring: Wiring, core: Column) -> list[str]:
    """Cores of one kind of servers that have another number of links to some pod than usual."""
    nodes, links = wiring.fabric.nodes, wiring.fabric.links
    row = wiring.of_class(SPINE_CORE)
    row = row[np.isin(links.b[row], core)]
    pods = int(nodes.pod[links.a[row]].max(initial=0)) + 1
    table = np.zeros((len(core), pods), dtype=np.int64)
    np.add.at(table, (np.searchsorted(core, links.b[row]), nodes.pod[links.a[row]]), 1)
    values, times = np.unique(table, return_counts=True)
    usual = int(values[times.argmax()])

    def say(at: int) -> str:
        which, pod = divmod(at, pods)
        return f"{wiring.name(int(core[which]))}: {table[which, pod]} links to pod {pod}, usual are {usual}"

    return told(np.flatnonzero(table != usual), say)
