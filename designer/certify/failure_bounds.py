"""What any single failure leaves of a network of leaves and spines, without looking at single elements.

Networks of little symmetry have as many classes of failures as elements. In networks of leaves and spines arithmetic
bounds them all from below. Any two leaves share at least m links: over all spines, the smaller of their bundles added
up; where all bundles are alike that is all u uplinks of a leaf. Let X be what a leaf sends, or gets, at most, and let
traffic of two leaves take each spine in proportion to the smaller bundle. Then a bundle of k links carries k X / m at
most. A lost link takes one off what pairs share, a lost spine k: (m - 1) / X and (m - k) / X are left, or line rate.

NIC or leaf lost: what a GPU without NIC sends goes to a peer of its domain, over that peer's rail to the domain of the
receiver, and on inside it. A peer that takes over all sends twice its own, one of n that share it 1 + 1/n times.
Leaves of all rails serve the same domains, so each leaf of the other rail gets at most what the lost one's peers sent
on their own rail: X again, for a single NIC one line rate.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from designer.certify.certificate import EXACT, FailureResult
from designer.certify.demand import GroupDemand, PairDemand, apart, step_groups
from designer.certify.problem import Floats, Ints
from designer.certify.view import FabricView
from designer.fabric.fabric import CORE, LEAF, LEAF_LEAF, LEAF_SPINE, SPINE, Fabric
from designer.fabric.pairs import MAX_PATTERNS, worst_leaf_pair
from designer.instance.schema import RequirementsSection
from designer.workload.traffic import Phase, Step, Traffic


@dataclass(frozen=True)
class Spread:
    """Leaves under spines: rates in Gb/s of what any two leaves share, of the largest bundle, of a link, of a port.

    `even` says that all bundles are alike. `home` is the leaf of each GPU in the first plane; planes are alike.
    """

    shared: float
    bundle: float
    link: float
    even: bool
    port: float
    planes: int
    home: Ints
    numbers: dict[str, int]


@dataclass(frozen=True)
class Loss:
    """A kind of failure: its name, what requirements call it, and what it does to uplinks, ports and leaves."""

    name: str
    kind: str
    uplinks_lost: float = 0.0
    moved: float = 0.0  # part of its own traffic that a peer's NIC gets on top
    leaf: bool = False  # a whole leaf's traffic moves, not only that of one NIC


def spread_of(view: FabricView, traffic: Traffic) -> Spread | None:
    """The fabric as leaves under spines, the same on all rails and planes; None where it is something else."""
    links = _bundles(view)
    home = _homes(view, traffic)
    table, ports = view.attachment
    if links is None or home is None or not view.planes_match or len(np.unique(ports)) != 1:
        return None
    return Spread(*links, float(ports[0, 0]), table.shape[1], home, _numbers(view.fabric, traffic.hb_domain))


def _bundles(view: FabricView) -> tuple[float, float, float, bool] | None:
    """What two leaves share at least, the largest bundle, a link, all in Gb/s; whether all bundles are alike.

    None where it is not leaves with equally many uplinks to spines of their unit.
    """
    fabric, unit = view.fabric, view.unit_of_node
    kind, links, classes = fabric.nodes.kind, fabric.links, fabric.link_class()
    between = np.flatnonzero(classes == LEAF_SPINE)
    if (kind == CORE).any() or (classes == LEAF_LEAF).any() or len(np.unique(links.gbps[between])) != 1:
        return None
    uplinks = np.bincount(links.a[between], minlength=fabric.n_nodes)[kind == LEAF]
    if len(np.unique(uplinks)) != 1:
        return None
    units = int(unit.max(initial=-1)) + 1
    leaves, spines = (np.bincount(unit[kind == tier], minlength=units) for tier in (LEAF, SPINE))
    pair, bundle = np.unique(links.a[between] * fabric.n_nodes + links.b[between], return_counts=True)
    even = len(np.unique(bundle)) == 1 and len(pair) == int((leaves * spines).sum())
    if not even and len(uplinks) > MAX_PATTERNS:
        return None
    shared = 1.0 if even else worst_leaf_pair(fabric)
    gbps = float(links.gbps[between[0]])
    return shared * int(uplinks[0]) * gbps, int(bundle.max()) * gbps, gbps, even


def _homes(view: FabricView, traffic: Traffic) -> Ints | None:
    """The leaf of each GPU in the first plane, where every rail has its own leaves and all serve the same domains."""
    fabric, domain = view.fabric, traffic.hb_domain
    links, table = fabric.links, view.attachment[0]
    hosts = np.flatnonzero((links.a < fabric.gpus) & (view.unit_of_node[links.b] >= 0))
    home = np.full(fabric.gpus, -1, dtype=np.int64)
    first = view.unit_of_node[links.b[hosts]] == table[links.a[hosts], 0]
    home[links.a[hosts[first]]] = links.b[hosts[first]]
    if (home < 0).any() or traffic.rails != domain:
        return None
    by_rail = home.reshape(-1, domain).T
    names = [np.unique(row, return_index=True, return_inverse=True)[1:] for row in by_rail]
    groups = [np.argsort(np.argsort(first))[inverse.reshape(-1)] for first, inverse in names]
    apart_rails = len(np.unique(home)) == sum(len(first) for first, _ in names)
    return home if apart_rails and all(np.array_equal(group, groups[0]) for group in groups) else None


def _numbers(fabric: Fabric, domain: int) -> dict[str, int]:
    counts = fabric.counts()
    return {
        "switch:leaf": counts["leaf"],
        "switch:spine": counts["spine"],
        "link:leaf-spine": counts["leaf_spine_links"],
        "nic": int((fabric.links.a < fabric.gpus).sum()),
        "gpu": fabric.gpus,
        "domain": fabric.gpus // domain,
    }


def leaf_rates(groups: list[GroupDemand], pairs: list[PairDemand], home: Ints) -> Floats:
    """What each leaf sends out, or gets, whichever is more, in Gb/s; of `any` what its members may send out at most."""
    leaves = int(home.max(initial=-1)) + 1
    out, into = np.zeros(leaves), np.zeros(leaves)
    for group in groups:
        name = np.unique(group.group, return_inverse=True)[1].reshape(-1)
        key, here = np.unique(name * leaves + home[group.gpu], return_counts=True)
        others = np.bincount(name)[key // leaves] - here
        sent = group.hose_rate * np.minimum(here, others) if group.hose_rate else group.pair_rate * here * others
        np.add.at(out, key % leaves, sent)
        np.add.at(into, key % leaves, sent)
    for pair in pairs:
        crossing = home[pair.source] != home[pair.target]
        np.add.at(out, home[pair.source[crossing]], pair.rate[crossing])
        np.add.at(into, home[pair.target[crossing]], pair.rate[crossing])
    return np.maximum(out, into)


def bounded_failures(
    view: FabricView,
    traffic: Traffic,
    requirements: RequirementsSection,
    scale_up_gbps: float,
    share: float = 1.0,
) -> list[FailureResult] | None:
    """A result for every kind of single failure, from below; None where the network is another.

    `share` is the part of a floor that a pair of leaves is meant to keep (`throughput.pair_share`). Where a kind
    falls short by this arithmetic, single elements of it may still do.
    """
    spread = spread_of(view, traffic)
    if spread is None or (not spread.even and requirements.symmetric_uplinks) or requirements.routing != "adaptive":
        return None
    loads: list[tuple[Phase, list[tuple[Step, float]]]] = []
    for phase in traffic.network_phases:
        steps: list[tuple[Step, float]] = []
        for step in phase.steps:
            groups, pairs = step_groups(traffic, phase, step, view.line_rate_gbps(phase))
            if apart(view, groups, pairs):
                return None
            steps.append((step, float(leaf_rates(groups, pairs, spread.home).max(initial=0.0)) / spread.planes))
        loads.append((phase, steps))
    scale_up = scale_up_gbps / (2 * spread.planes * spread.port)
    asked = {
        item.failure: item.throughput * share for item in sorted(requirements.survive, key=lambda item: item.throughput)
    }
    return list(_results(spread, loads, asked, requirements.detour, traffic.hb_domain, scale_up))


def _results(
    spread: Spread,
    loads: list[tuple[Phase, list[tuple[Step, float]]]],
    asked: Mapping[str, float],
    detour: str,
    domain: int,
    scale_up: float,
) -> Iterator[FailureResult]:
    alone = spread.planes == 1
    # With further planes left they take over, and no peer has to.
    moved = {"single-relay": 1.0 if alone else 1 / (spread.planes - 1)}
    moved["spread"] = 1 / max(domain - 1, 1) if alone else moved["single-relay"]
    for loss in (
        Loss("switch:leaf", "switch", leaf=True),
        Loss("switch:spine", "switch", uplinks_lost=spread.bundle),
        Loss("link:leaf-spine", "link", uplinks_lost=spread.link),
        Loss("nic", "nic"),
        Loss("gpu", "gpu"),
        Loss("domain", "domain"),
    ):
        stranded = loss.name in ("switch:leaf", "nic")
        if domain == 1 and (loss.kind == "domain" or (stranded and alone)):
            continue  # GPUs are their own domains; nothing takes over, they are cut off
        left = {
            policy: _left(spread, loads, replace(loss, moved=part if stranded else 0.0), scale_up)
            for policy, part in moved.items()
        }
        phase, lower = left[detour]
        required = asked.get(loss.kind)
        met = required is None or lower >= required - EXACT
        policies = (left["spread"][1], left["single-relay"][1]) if stranded and alone else (None, None)
        # What is left of a leaf's uplinks is a cut, too, where no other plane takes over.
        upper = lower if alone and spread.even and loss.uplinks_lost else 1.0
        number = spread.numbers[loss.name]
        yield FailureResult(loss.name, number, phase, lower, upper, None, 0, required, met, *policies)


def _left(
    spread: Spread, loads: list[tuple[Phase, list[tuple[Step, float]]]], loss: Loss, scale_up: float
) -> tuple[str, float]:
    """The phase that keeps the least of its floor, and that part of it."""
    worst = ("", 1.0)
    for phase, steps in loads:
        slow = total = 0.0
        for step, sent in steps:
            need = sent + loss.moved * (sent if loss.leaf else spread.port)
            rate = min(1.0, (spread.shared - loss.uplinks_lost) / need) if need else 1.0
            if loss.uplinks_lost and spread.planes > 1:
                others = 1 - 1 / spread.planes  # what ports and uplinks of the other planes carry alone
                rate = max(rate, min(others, spread.shared * others / need) if need else 1.0)
            if loss.moved:
                rate = min(rate, 1 / (1 + loss.moved), scale_up if spread.planes == 1 else 1.0)
            total += step.nic_bytes
            slow += step.nic_bytes / rate if rate > 0 else np.inf
        part = min(1.0, total / slow / phase.floor) if slow else 1.0
        if worst[0] == "" or part < worst[1]:
            worst = (phase.name, part)
    return worst
