"""What any single failure leaves of a network of leaves and spines, without looking at single elements.

Networks of little symmetry have as many classes of failures as elements. Where every leaf reaches every spine by the
same bundle of k of its u links, arithmetic bounds them all from below. Let X be what a leaf sends, or gets, at most.

Spine lost: an even split over the others loads each link by X / (u - k). Link lost: its leaf splits in proportion to
what is left of each bundle, k / (u - 1) or less over each, so that no link of another leaf carries more than
X / (u - 1), either. So (u - k) / X and (u - 1) / X are left, at most line rate.

NIC or leaf lost: what a GPU without NIC sends goes to a peer of its domain, over that peer's rail to the domain of the
receiver, and on inside it. A peer that takes over all sends twice its own, one of n that share it 1 + 1/n times.
Leaves of all rails serve the same domains, so each leaf of the other rail gets at most what the lost one's peers sent
on their own rail: X again, for a single NIC one line rate.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from designer.certify.certificate import EXACT, FailureResult
from designer.certify.demand import GroupDemand, PairDemand, apart, step_groups
from designer.certify.problem import Floats, Ints
from designer.certify.view import FabricView
from designer.fabric.fabric import CORE, LEAF, LEAF_LEAF, LEAF_SPINE, SPINE, Fabric
from designer.instance.schema import RequirementsSection
from designer.workload.traffic import Phase, Step, Traffic


@dataclass(frozen=True)
class Spread:
    """Leaves under spines by even bundles: rates in Gb/s of all uplinks of a leaf, of a bundle, of a link, of a port.

    `home` is the leaf of each GPU in the first plane; planes are alike.
    """

    uplinks: float
    bundle: float
    link: float
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
    """The fabric as leaves under spines by even bundles, the same on all rails and planes; None where it is not."""
    bundles = _even_bundles(view)
    home = _homes(view, traffic)
    table, ports = view.attachment
    if bundles is None or home is None or not view.planes_match or len(np.unique(ports)) != 1:
        return None
    spines, links, gbps = bundles
    numbers = _numbers(view.fabric, traffic.hb_domain)
    uplinks, bundle = spines * links * gbps, links * gbps
    return Spread(uplinks, bundle, gbps, float(ports[0, 0]), table.shape[1], home, numbers)


def _even_bundles(view: FabricView) -> tuple[int, int, float] | None:
    """Spines of a unit, links of a bundle and their speed, where every leaf reaches all spines alike."""
    fabric, unit = view.fabric, view.unit_of_node
    kind, links, classes = fabric.nodes.kind, fabric.links, fabric.link_class()
    between = np.flatnonzero(classes == LEAF_SPINE)
    if (kind == CORE).any() or (classes == LEAF_LEAF).any() or len(np.unique(links.gbps[between])) != 1:
        return None
    units = int(unit.max(initial=-1)) + 1
    leaves, spines = (np.bincount(unit[kind == tier], minlength=units) for tier in (LEAF, SPINE))
    pair, bundle = np.unique(links.a[between] * fabric.n_nodes + links.b[between], return_counts=True)
    alike = len(np.unique(spines)) == 1 and len(np.unique(bundle)) == 1
    if not alike or len(pair) != int((leaves * spines).sum()):
        return None
    return int(spines[0]), int(bundle[0]), float(links.gbps[between[0]])


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
) -> list[FailureResult] | None:
    """A result for every kind of single failure, from below; None where the network is another.

    Where a kind falls short by this arithmetic, single elements of it may still do.
    """
    spread = spread_of(view, traffic)
    if spread is None or requirements.routing != "adaptive":
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
    return list(_results(spread, loads, requirements, traffic.hb_domain, scale_up))


def _results(
    spread: Spread,
    loads: list[tuple[Phase, list[tuple[Step, float]]]],
    requirements: RequirementsSection,
    domain: int,
    scale_up: float,
) -> Iterator[FailureResult]:
    asked = {item.failure: item.throughput for item in sorted(requirements.survive, key=lambda item: item.throughput)}
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
        if stranded and alone and domain == 1:
            continue  # nothing takes over: GPUs are cut off
        left = {
            policy: _left(spread, loads, replace(loss, moved=part if stranded else 0.0), scale_up)
            for policy, part in moved.items()
        }
        phase, lower = left[requirements.detour]
        required = asked.get(loss.kind)
        met = required is None or lower >= required - EXACT
        policies = (left["spread"][1], left["single-relay"][1]) if stranded and alone else (None, None)
        # What is left of a leaf's uplinks is a cut, too, where no other plane takes over.
        upper = lower if alone and loss.uplinks_lost else 1.0
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
            rate = min(1.0, (spread.uplinks - loss.uplinks_lost) / need) if need else 1.0
            if loss.uplinks_lost and spread.planes > 1:
                others = 1 - 1 / spread.planes  # what ports and uplinks of the other planes carry alone
                rate = max(rate, min(others, spread.uplinks * others / need) if need else 1.0)
            if loss.moved:
                rate = min(rate, 1 / (1 + loss.moved), scale_up if spread.planes == 1 else 1.0)
            total += step.nic_bytes
            slow += step.nic_bytes / rate if rate > 0 else np.inf
        part = min(1.0, total / slow / phase.floor) if slow else 1.0
        if worst[0] == "" or part < worst[1]:
            worst = (phase.name, part)
    return worst
