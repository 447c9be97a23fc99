"""Small networks drawn by hand, their traffic, and Hypothesis strategies of both. Endpoints run at 400 Gb/s."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from designer.certify.problem import FlowProblem, Hubs, Pairs
from designer.fabric.fabric import CORE, GPU, LEAF, SPINE, Fabric, Links, Nodes
from designer.instance.schema import RequirementsSection
from designer.workload.traffic import Component, Phase, Step, Traffic

GBPS = 400
SCALE_UP_GBPS = 3600.0


@dataclass
class Sketch:
    """Nodes and links as lists; ports are not told apart. GPUs are nodes 0 .. gpus-1."""

    gpus: int
    kind: list[int] = field(default_factory=list)
    ends: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kind = [GPU] * self.gpus

    def switches(self, count: int, kind: int = LEAF) -> int:
        """Adds switches; the number of the first."""
        self.kind += [kind] * count
        return len(self.kind) - count

    def links(self, a: Sequence[int] | int, b: Sequence[int] | int, gbps: int = GBPS, times: int = 1) -> None:
        """Adds `times` parallel links between a[i] and b[i]."""
        one, other = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        row = np.stack([one.ravel(), other.ravel(), np.full(one.size, gbps)])
        self.ends += [row] * times

    def fabric(self) -> Fabric:
        """The fabric."""
        a, b, gbps = np.concatenate(self.ends, axis=1).astype(np.int64)
        none = np.full(len(self.kind), -1)
        zero = np.zeros(len(a), dtype=np.int64)
        nodes = Nodes(np.array(self.kind, dtype=np.int64), none, none, none, none, none)
        return Fabric(self.gpus, 1, (), (), nodes, Links(a, b, zero, zero, zero, zero, gbps, zero))


@dataclass(frozen=True)
class Tree:
    """A Clos of two tiers (pods = 1, cores = 0) or three: spine j of each pod joins `up` cores of group j.

    `bundle` parallel links join a leaf and a spine, at `up_gbps`.
    """

    leaves: int
    down: int
    spines: int
    bundle: int = 1
    pods: int = 1
    up: int = 0
    up_gbps: int = GBPS

    @property
    def endpoints(self) -> int:
        """Endpoints when every leaf is full."""
        return self.pods * self.leaves * self.down


def draw_tree(sketch: Sketch, tree: Tree, gpus: Sequence[int], host_gbps: int = GBPS) -> None:
    """Adds a Clos over the given GPUs, in their order, leaf by leaf."""
    leaf0 = sketch.switches(tree.pods * tree.leaves)
    place = np.arange(len(gpus))
    sketch.links(gpus, leaf0 + place // tree.down, host_gbps)
    if not tree.spines:
        return
    spine0 = sketch.switches(tree.pods * tree.spines, SPINE)
    leaf, spine = (grid.ravel() for grid in np.divmod(np.arange(tree.pods * tree.leaves * tree.spines), tree.spines))
    sketch.links(leaf0 + leaf, spine0 + leaf // tree.leaves * tree.spines + spine, tree.up_gbps, tree.bundle)
    if tree.up:
        core0 = sketch.switches(tree.spines * tree.up, CORE)
        at, number = np.divmod(np.arange(tree.pods * tree.spines * tree.up), tree.up)
        sketch.links(spine0 + at, core0 + at % tree.spines * tree.up + number, tree.up_gbps)


def clos(tree: Tree, *, rails: int = 1, planes: int = 1, joined: bool = False, nic_gbps: int = GBPS) -> Fabric:
    """A Clos for each rail and plane; `joined` puts all rails in one, rail by rail."""
    each = tree.endpoints // rails if joined else tree.endpoints
    sketch = Sketch(each * rails)
    for _ in range(planes):
        by_rail = [np.arange(each) * rails + rail for rail in range(rails)]
        for gpus in [np.concatenate(by_rail)] if joined else by_rail:
            draw_tree(sketch, tree, gpus, nic_gbps // planes)
    return sketch.fabric()


def mesh(leaves: int, down: int, gbps: int = GBPS, times: int = 1) -> Fabric:
    """Leaves joined each to each."""
    sketch = Sketch(leaves * down)
    first = sketch.switches(leaves)
    sketch.links(np.arange(leaves * down), first + np.arange(leaves * down) // down)
    one, other = np.triu_indices(leaves, 1)
    sketch.links(first + one, first + other, gbps, times)
    return sketch.fabric()


def zcube(columns: int, gpus: int, gbps: int = GBPS // 2) -> Fabric:
    """Row and column switches joined each to each; the last row may be short."""
    sketch = Sketch(gpus)
    rows = -(-gpus // columns)
    row0, column0 = sketch.switches(rows), sketch.switches(columns)
    row, column = np.divmod(np.arange(gpus), columns)
    sketch.links(np.arange(gpus), row0 + row, gbps)
    sketch.links(np.arange(gpus), column0 + column, gbps)
    row, column = np.divmod(np.arange(rows * columns), columns)
    sketch.links(row0 + row, column0 + column, gbps)
    return sketch.fabric()


def phase(
    name: str, gpus: int, *components: Component, across: str = "rail", floor: float = 1.0, nic_bytes: float = 1.0
) -> Phase:
    """A phase of one step on the first `gpus` GPUs."""
    return Phase(name, "job", (Step(name, components, nic_bytes),), floor, 0.0, across, 0, gpus)


def all_to_all(size: int, stride: int = 1, rate: float = 1.0) -> Component:
    """All-to-all in groups."""
    return Component("all-to-all", stride, size, 1, rate)


def shift(size: int, by: int = 1, stride: int = 1, rate: float = 1.0) -> Component:
    """A shift in groups."""
    return Component("shift", stride, size, by, rate)


def worst(size: int, stride: int = 1, rate: float = 1.0) -> Component:
    """The worst permutation in groups."""
    return Component("any", stride, size, 1, rate)


def traffic(gpus: int, domain: int, *phases: Phase) -> Traffic:
    """Traffic with as many rails as a domain has GPUs."""
    return Traffic(gpus, domain, domain, phases)


def requirements(**fields: object) -> RequirementsSection:
    """Requirements with defaults."""
    return RequirementsSection.model_validate(fields)


@st.composite
def components(draw: st.DrawFn, members: int, patterns: Sequence[str] = ("all-to-all", "shift", "exchange")) -> tuple:
    """One or two components that split the line rate, with groups that divide the members."""
    count = draw(st.sampled_from([1, 1, 2]))
    parts = []
    for _ in range(count):
        pattern = draw(st.sampled_from(list(patterns)))
        sizes = [size for size in range(2, members + 1) if members % size == 0]
        if pattern == "exchange":
            sizes = [size for size in sizes if size & (size - 1) == 0]
        if not sizes:
            pattern, sizes = "all-to-all", [members]
        size = draw(st.sampled_from(sizes[::-1]))
        strides = [stride for stride in range(1, members // size + 1) if members // size % stride == 0]
        by = draw(st.integers(1, size - 1))
        by = by if pattern == "shift" else 1 << (by.bit_length() - 1)
        parts.append(Component(pattern, draw(st.sampled_from(strides)), size, by, 1 / count))
    return tuple(parts)


@st.composite
def irregular(draw: st.DrawFn, most_gpus: int = 9) -> Fabric:
    """Any connected graph of leaves, with parallel links and unequal speeds; GPUs with one port, of two speeds, or two.

    GPUs 2 i and 2 i + 1 have NICs of one speed.
    """
    gpus = draw(st.integers(3, most_gpus))
    count = draw(st.integers(2, 5))
    sketch = Sketch(gpus)
    first = sketch.switches(count)
    twice = draw(st.booleans())
    speeds = draw(st.lists(st.sampled_from([GBPS, GBPS, GBPS // 2]), min_size=gpus, max_size=gpus))
    for gpu in range(gpus):
        for _ in range(2 if twice else 1):
            gbps = GBPS // 2 if twice else speeds[gpu // 2]
            sketch.links(gpu, first + draw(st.integers(0, count - 1)), gbps)
    for switch in range(1, count):
        sketch.links(
            first + draw(st.integers(0, switch - 1)),
            first + switch,
            draw(st.sampled_from([400, 200, 800])),
            draw(st.sampled_from([1, 1, 2])),
        )
    for _ in range(draw(st.integers(0, 4))):
        one, other = draw(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)))
        if one != other:
            sketch.links(first + min(one, other), first + max(one, other), draw(st.sampled_from([400, 200])))
    return sketch.fabric()


@st.composite
def regular(draw: st.DrawFn) -> Fabric:
    """A Clos of two or three tiers, a mesh or a ZCube (the last row at times short)."""
    build: Callable[[], Fabric] = draw(
        st.sampled_from(
            [
                lambda: clos(Tree(3, 3, 2)),
                lambda: clos(Tree(4, 2, 2, bundle=2, up_gbps=200)),
                lambda: clos(Tree(2, 4, 3, up_gbps=800)),
                lambda: clos(Tree(2, 2, 2, pods=2, up=1)),
                lambda: clos(Tree(2, 3, 2, pods=2, up=2, up_gbps=200)),
                lambda: clos(Tree(3, 2, 2), planes=2),
                lambda: mesh(4, 2, 200),
                lambda: mesh(3, 3, 400, 2),
                lambda: zcube(3, 9),
                lambda: zcube(3, 7),
                lambda: zcube(4, 8),
            ]
        )
    )
    return build()


def problem_of(
    nodes: int,
    links: Sequence[tuple[int, int, float]],
    *,
    hubs: Sequence[Hubs] = (),
    pairs: Sequence[tuple[int, int, float]] = (),
    ends: Sequence[int] = (),
    links_of: Sequence[int] | None = None,
) -> FlowProblem:
    """A flow problem from lists; `ends` are the nodes that do not relay."""
    relays = np.ones(nodes, dtype=bool)
    relays[list(ends)] = False
    a, b, capacity = (np.array(column) for column in zip(*links, strict=True)) if links else (np.zeros(0, int),) * 3
    flows = []
    if pairs:
        source, target, rate = (np.array(column) for column in zip(*sorted(pairs), strict=True))
        flows = [Pairs(source, target, rate.astype(float))]
    many = np.ones(len(links), dtype=np.int64) if links_of is None else np.array(links_of, dtype=np.int64)
    label = relays.astype(np.int64)
    return FlowProblem(nodes, label, relays, a, b, capacity.astype(float), many, tuple(hubs), tuple(flows))


def hub(*groups: Sequence[tuple[int, int]], pair_rate: float = 1.0, hose_rate: float = 0.0) -> Hubs:
    """Groups as lists of (node, endpoints there)."""
    entries = [(node, number, many) for number, group in enumerate(groups) for node, many in group]
    node, group, members = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    return Hubs(node, group, members, pair_rate, hose_rate)


@st.composite
def flow_problems(draw: st.DrawFn, most_nodes: int = 8) -> FlowProblem:
    """Any small graph with any demand; nodes may stand for several endpoints, in several groups."""
    nodes = draw(st.integers(2, most_nodes))
    links: dict[tuple[int, int], tuple[float, int]] = {}
    for node in range(1, nodes):
        links[draw(st.integers(0, node - 1)), node] = draw(st.tuples(st.sampled_from([1.0, 2.0, 0.5]), _MANY))
    for _ in range(draw(st.integers(0, 6))):
        one, other = draw(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)))
        if one != other:
            links[min(one, other), max(one, other)] = draw(st.tuples(st.sampled_from([1.0, 2.0]), _MANY))
    hubs = []
    for _ in range(draw(st.integers(0, 2))):
        groups = []
        for _ in range(draw(st.integers(1, 3))):
            chosen = draw(st.lists(st.integers(0, nodes - 1), min_size=2, max_size=4, unique=True))
            groups.append([(node, draw(st.integers(1, 3))) for node in sorted(chosen)])
        hubs.append(hub(*groups, pair_rate=draw(st.sampled_from([1.0, 0.25]))))
    pairs = draw(
        st.dictionaries(
            st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] != pair[1]),
            st.sampled_from([1.0, 0.5]),
            min_size=0 if hubs else 1,
            max_size=5,
        )
    )
    ends = draw(st.sets(st.integers(0, nodes - 1), max_size=2))
    rows = [(*ends_of, capacity) for ends_of, (capacity, _) in sorted(links.items())]
    many = [count for _, (_, count) in sorted(links.items())]
    flows = [(*pair, rate) for pair, rate in pairs.items()]
    return problem_of(nodes, rows, hubs=hubs, pairs=flows, ends=sorted(ends), links_of=many)


_MANY = st.sampled_from([1, 1, 2, 3])


@st.composite
def symmetric_problems(draw: st.DrawFn) -> FlowProblem:
    """Rings, stars, complete and complete bipartite graphs under rotations or all-to-all: many automorphisms."""
    n = draw(st.integers(3, 7))
    shape = draw(st.sampled_from(["ring", "complete", "star", "bipartite"]))
    if shape == "ring":
        links, nodes = [(i, (i + 1) % n, 1.0) for i in range(n)], n
    elif shape == "complete":
        links, nodes = [(i, j, 1.0) for i in range(n) for j in range(i + 1, n)], n
    elif shape == "star":
        links, nodes = [(i, n, 1.0) for i in range(n)], n + 1
    else:
        links, nodes = [(i, n + j, 1.0) for i in range(n) for j in range(2)], n + 2
    links = sorted({(min(a, b), max(a, b)): c for a, b, c in links}.items())
    rows = [(a, b, c) for (a, b), c in links]
    demand = draw(st.sampled_from(["shift", "all", "halves"]))
    if demand == "shift":
        by = draw(st.integers(1, n - 1))
        return problem_of(nodes, rows, pairs=[(i, (i + by) % n, 1.0) for i in range(n)])
    if demand == "all" or n < 4:
        return problem_of(nodes, rows, hubs=[hub([(i, 1) for i in range(n)])])
    half = n // 2
    groups = [[(i, 1) for i in range(half)], [(i, 1) for i in range(half, n)]]
    return problem_of(nodes, rows, hubs=[hub(*groups)])


def relabelled(problem: FlowProblem, image: np.ndarray) -> FlowProblem:
    """The same problem with node v called image[v], its links and demands in another order."""
    back = np.argsort(image)
    order = np.arange(len(problem.a))[::-1]
    hubs = tuple(replace(each, node=image[each.node]) for each in problem.hubs)
    pairs = tuple(Pairs(image[each.source], image[each.target], each.rate) for each in problem.pairs)
    return FlowProblem(
        problem.nodes,
        problem.label[back],
        problem.relays[back],
        image[problem.b][order],
        image[problem.a][order],
        problem.capacity[order],
        problem.links_of[order],
        hubs,
        pairs,
        problem.most,
    )
