"""A network in few words: switches, pods and fabrics that are alike, from the fabric link by link.

Alike are switches with the same model in the same tier, as many links of each speed to as many nodes of each tier, and
the same fewest and most links to one of them; pods and fabrics with as many switches of each kind. That says nothing
about which switch is joined to which: it is how a page of a few screens can show half a million links.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designer.fabric.fabric import GPU, KINDS, LEAF, MANAGEMENT, Column, Fabric

TIERS = ("core", "spine", "leaf")


@dataclass(frozen=True)
class Bundles:
    """Links of one switch, of one speed, to nodes of one tier: `links` to `nodes`, `fewest` to `most` to each."""

    tier: str
    gbps: int
    links: int
    nodes: int
    fewest: int
    most: int


@dataclass(frozen=True)
class Alike:
    """Switches that are alike, as nodes of the fabric in order, and the links of each."""

    tier: str
    model: str
    owned: bool
    bundles: tuple[Bundles, ...]
    nodes: tuple[int, ...]

    @property
    def endpoints(self) -> int:
        """Links of each to GPUs."""
        return sum(item.links for item in self.bundles if item.tier == KINDS[GPU])


@dataclass(frozen=True)
class PodKind:
    """Pods of a fabric that are alike, and the switches of the first; `pods` is (-1,) for what is in none."""

    pods: tuple[int, ...]
    switches: tuple[Alike, ...]


@dataclass(frozen=True)
class FabricKind:
    """Fabrics that are alike, and the pods of the first."""

    fabrics: tuple[int, ...]
    pods: tuple[PodKind, ...]

    def switches(self, tier: str) -> int:
        """Switches of a tier in one fabric."""
        return sum(
            len(kind.pods) * len(alike.nodes) for kind in self.pods for alike in kind.switches if alike.tier == tier
        )


class Anatomy:
    """What is alike in a fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        nodes, links = fabric.nodes, fabric.links
        self.switches: Column = np.flatnonzero(nodes.kind >= LEAF)
        self.owned = {switch.node: switch for switch in fabric.owned}
        speeds, speed = np.unique(links.gbps, return_inverse=True)
        self._speeds: list[int] = speeds.tolist()
        width = max(1, len(self._speeds))
        node, other = np.concatenate([links.b, links.a]), np.concatenate([links.a, links.b])
        self._codes = len(KINDS) * width
        code = nodes.kind[other] * width + np.concatenate([speed, speed])
        own = nodes.kind[node] >= LEAF
        keys = (node[own] * self._codes + code[own]) * fabric.n_nodes + other[own]
        pairs, self._count = np.unique(keys, return_counts=True)
        row, self._other = np.divmod(pairs, fabric.n_nodes)
        self._node, self._code = np.divmod(row, self._codes)

    def bundle(self, node: int, tier: str) -> list[tuple[int, int, int]]:
        """Nodes of a tier that a switch is joined to: (node, Gb/s, links) each."""
        first, last = np.searchsorted(self._node, [node, node + 1])
        found: list[tuple[int, int, int]] = []
        for place in range(int(first), int(last)):
            kind, gbps = self._end(int(self._code[place]))
            if kind == tier:
                found.append((int(self._other[place]), gbps, int(self._count[place])))
        return found

    @cached_property
    def _classes(self) -> tuple[Column, Column]:
        """A signature a class, and the class of each switch."""
        slot = (np.searchsorted(self.switches, self._node), self._code)
        shape = (len(self.switches), self._codes)
        total, nodes, most = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        fewest = np.full(shape, np.iinfo(np.int64).max)
        np.add.at(total, slot, self._count)
        np.add.at(nodes, slot, 1)
        np.maximum.at(most, slot, self._count)
        np.minimum.at(fewest, slot, self._count)
        columns = self.fabric.nodes
        bought = np.array([node not in self.owned for node in self.switches.tolist()], dtype=np.int64)
        head = np.stack([columns.kind[self.switches], columns.model[self.switches], bought], axis=1)
        signature = np.concatenate([head, total, nodes, fewest, most], axis=1)
        found, of_switch = np.unique(signature, axis=0, return_inverse=True)
        return found, of_switch.reshape(-1)

    def alike(self, switches: Column) -> tuple[Alike, ...]:
        """The switches by what is alike, in the order of their first; `switches` are nodes."""
        signatures, of_switch = self._classes
        classes = of_switch[np.searchsorted(self.switches, switches)]
        order = [int(name) for name in dict.fromkeys(classes.tolist())]
        return tuple(self._described(signatures[name], switches[classes == name]) for name in order)

    def _described(self, signature: Column, nodes: Column) -> Alike:
        kind, model, bought = (int(value) for value in signature[:3])
        columns = signature[3:].reshape(4, self._codes)  # links, nodes, fewest, most
        bundles = tuple(
            Bundles(*self._end(code), *(int(value) for value in columns[:, code]))
            for code in np.flatnonzero(columns[0]).tolist()
        )
        return Alike(KINDS[kind], self.fabric.models[model], not bought, bundles, tuple(nodes.tolist()))

    def _end(self, code: int) -> tuple[str, int]:
        """Tier and speed that a code stands for."""
        kind, speed = divmod(code, max(1, len(self._speeds)))
        return KINDS[kind], self._speeds[speed]

    @cached_property
    def kinds(self) -> tuple[FabricKind, ...]:
        """All fabrics by what is alike, in the order of their first."""
        nodes = self.fabric.nodes
        place = np.stack([nodes.fabric[self.switches], nodes.pod[self.switches], self._classes[1]], axis=1)
        rows, count = np.unique(place, axis=0, return_counts=True)
        inside: dict[int, dict[int, list[tuple[int, int]]]] = {}
        for (fabric, pod, name), switches in zip(rows.tolist(), count.tolist(), strict=True):
            inside.setdefault(fabric, {}).setdefault(pod, []).append((name, switches))
        alike: dict[tuple[object, ...], list[int]] = {}
        for fabric, pods in inside.items():
            # What lies in no pod is no pod like another.
            content = sorted((pod == -1, tuple(switches)) for pod, switches in pods.items())
            alike.setdefault(tuple(content), []).append(fabric)
        return tuple(
            FabricKind(tuple(fabrics), tuple(self._pods(fabrics[0], inside[fabrics[0]]))) for fabrics in alike.values()
        )

    def _pods(self, fabric: int, inside: dict[int, list[tuple[int, int]]]) -> Iterator[PodKind]:
        nodes = self.fabric.nodes
        kinds: dict[tuple[object, ...], list[int]] = {}
        for pod, switches in sorted(inside.items()):
            kinds.setdefault((pod == -1, tuple(switches)), []).append(pod)
        mine = self.switches[nodes.fabric[self.switches] == fabric]
        for pods in kinds.values():
            yield PodKind(tuple(pods), self.alike(mine[nodes.pod[mine] == pods[0]]))

    def members(self, fabric: int, tier: str, pod: int | None = None) -> list[int]:
        """Switches of a tier of a fabric, or of one of its pods, in order."""
        nodes = self.fabric.nodes
        chosen = (nodes.fabric[self.switches] == fabric) & (nodes.kind[self.switches] == KINDS.index(tier))
        if pod is not None:
            chosen &= nodes.pod[self.switches] == pod
        return self.switches[chosen].tolist()

    @cached_property
    def _hosts(self) -> tuple[Column, Column]:
        """Switch and GPU of every link of a GPU, by switch."""
        links = self.fabric.links
        rows = np.flatnonzero(self.fabric.nodes.kind[links.a] == GPU)
        rows = rows[np.argsort(links.b[rows], kind="stable")]
        return links.b[rows], links.a[rows]

    def gpus(self, nodes: list[int]) -> Column:
        """The GPUs on these switches, each once, in order."""
        switch, gpu = self._hosts
        ends = np.searchsorted(switch, [[node, node + 1] for node in nodes]).reshape(-1, 2)
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(gpu[first:last] for first, last in ends)]))

    @property
    def management_ports(self) -> int:
        """Management ports of all fabrics."""
        return int((self.fabric.nodes.kind == MANAGEMENT).sum())
