"""From a fabric, a step and a failure to flow problems: which graph, which demand, which traffic takes a detour.

A unit is a part of the fabric that shares no switch with the rest: a rail of a rail-only network with all its planes,
or all rails where spines join them. GPUs pass no traffic on for others except over their HB domain, which the demand
takes into account (`step_demand`), not the graph: what a GPU without NIC sends and receives goes over peers' NICs.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from designer.certify.problem import Floats, FlowProblem, Hubs, Ints, Pairs, weigh
from designer.certify.symmetry import joint_classes
from designer.fabric.fabric import LEAF, Fabric
from designer.workload.traffic import Phase, Step, Traffic

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Failure:
    """What is removed from a fabric: rows of links, numbers of nodes (switches, or GPUs with their NICs)."""

    links: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True)
class GroupDemand:
    """All-to-all inside groups of GPUs, `pair_rate` Gb/s from member to member; `any` where there is a `hose_rate`."""

    gpu: Ints
    group: Ints
    pair_rate: float
    hose_rate: float = 0.0

    def of(self, chosen: Bools) -> "GroupDemand":
        """The same among the chosen GPUs only (a mask over all GPUs)."""
        keep = chosen[self.gpu]
        return replace(self, gpu=self.gpu[keep], group=self.group[keep])


@dataclass(frozen=True)
class PairDemand:
    """Rates in Gb/s from GPU to GPU."""

    source: Ints
    target: Ints
    rate: Floats

    def of(self, chosen: Bools) -> "PairDemand":
        """The chosen ones (a mask over the pairs)."""
        return PairDemand(self.source[chosen], self.target[chosen], self.rate[chosen])


@dataclass(frozen=True)
class Demand:
    """What GPUs send over the network in one step: groups among GPUs whose NIC is whole, and pairs.

    `cut_off` GPUs have no way to their peers; `scale_up_most` bounds the throughput by the scale-up network; `detours`
    says whether some traffic takes a way around a lost NIC.
    """

    groups: tuple[GroupDemand, ...]
    pairs: tuple[PairDemand, ...]
    cut_off: int
    scale_up_most: float
    detours: bool


class FabricView:
    """A fabric less what failed, cut into units: switches that are joined by links.

    A GPU is attached to one unit by its only port (or to one for each plane), or by several ports to one unit, as in
    ZCube. `slot` numbers the units of a GPU: planes. GPUs pass no traffic on from unit to unit.
    """

    def __init__(self, fabric: Fabric, failure: Failure | None = None, intact: "FabricView | None" = None) -> None:
        failure = failure or Failure()
        self.fabric = fabric
        self._intact = intact
        self.nodes_alive = np.ones(fabric.n_nodes, dtype=bool)
        self.nodes_alive[list(failure.nodes)] = False
        alive = np.ones(fabric.n_links, dtype=bool)
        alive[list(failure.links)] = False
        self.alive = alive & self.nodes_alive[fabric.links.a] & self.nodes_alive[fabric.links.b]
        self.whole = bool(self.alive.all()) and bool(self.nodes_alive.all())

    @cached_property
    def unit_of_node(self) -> Ints:
        """The unit of every switch of the intact fabric; -1 for other nodes."""
        if self._intact is not None:
            return self._intact.unit_of_node
        links, kind = self.fabric.links, self.fabric.nodes.kind
        between = np.flatnonzero(kind[links.a] >= LEAF)
        label = joined(self.fabric.n_nodes, links.a[between], links.b[between])
        unit = np.full(self.fabric.n_nodes, -1, dtype=np.int64)
        switches = kind >= LEAF
        unit[switches] = np.unique(label[switches], return_inverse=True)[1].reshape(-1)
        return unit

    @cached_property
    def attachment(self) -> tuple[Ints, Floats]:
        """For every GPU and slot of the intact fabric: the unit (-1 none), and the rate of its ports there."""
        if self._intact is not None:
            return self._intact.attachment
        return self._attached(self.fabric.links.a < self.fabric.gpus, None)

    def _attached(self, hosts: Bools, like: Ints | None) -> tuple[Ints, Floats]:
        links, gpus = self.fabric.links, self.fabric.gpus
        gpu, unit = links.a[hosts], self.unit_of_node[links.b[hosts]]
        units = int(self.unit_of_node.max(initial=0)) + 1
        key, index = np.unique(gpu * units + unit, return_inverse=True)
        gbps = weigh(index, links.gbps[hosts], len(key))
        owner, of = key // units, key % units
        if like is None:
            slot = np.arange(len(key)) - np.searchsorted(owner, owner)
            slots = int(slot.max(initial=0)) + 1
        else:
            slots = like.shape[1]
            slot = np.argmax(like[owner] == of[:, None], axis=1)
        table, rate = np.full((gpus, slots), -1, dtype=np.int64), np.zeros((gpus, slots))
        table[owner, slot], rate[owner, slot] = of, gbps
        return table, rate

    @cached_property
    def port_gbps(self) -> Floats:
        """What is left of each GPU's ports, by slot."""
        hosts = self.alive & (self.fabric.links.a < self.fabric.gpus)
        return self._attached(hosts, self.attachment[0])[1]

    @cached_property
    def full(self) -> Bools:
        """GPUs that are alive with all their ports."""
        return self.gpus_alive & (self.port_gbps >= self.attachment[1]).all(axis=1)

    @cached_property
    def has_nic(self) -> Bools:
        """GPUs that are alive with a port left."""
        return self.gpus_alive & (self.port_gbps > 0).any(axis=1)

    @cached_property
    def gpus_alive(self) -> Bools:
        """GPUs that have not failed themselves."""
        return self.nodes_alive[: self.fabric.gpus]


def joined(n: int, one: Ints, other: Ints) -> Ints:
    """The least node that each of n nodes is connected to by the given links."""
    label = np.arange(n)
    while True:
        low = np.minimum(label[one], label[other])
        finer = label.copy()
        np.minimum.at(finer, label[one], low)
        np.minimum.at(finer, label[other], low)
        while not np.array_equal(finer, finer[finer]):
            finer = finer[finer]
        if np.array_equal(finer, label):
            return label
        label = finer


def step_groups(
    traffic: Traffic, phase: Phase, step: Step, nic_gbps: float
) -> tuple[list[GroupDemand], list[PairDemand]]:
    """The step with nothing lost: groups (for all-to-all and any) and pairs (for shift and exchange).

    `any` is returned as its groups, with their `hose_rate`.
    """
    unit = traffic.hb_domain if phase.across == "rail" else 1
    gpu = np.arange(phase.first_gpu, phase.first_gpu + phase.gpus)
    place, inside = (gpu - phase.first_gpu) // unit, gpu % unit
    groups: list[GroupDemand] = []
    pairs: list[PairDemand] = []
    for part in step.components:
        period = part.stride * part.size
        digit = place // part.stride % part.size
        rate = part.rate * nic_gbps
        if part.pattern in ("any", "all-to-all"):
            group = (place // period * part.stride + place % part.stride) * unit + inside
            hose_rate = rate if part.pattern == "any" else 0.0
            groups.append(GroupDemand(gpu, group, rate / (part.size - 1), hose_rate))
            continue
        target = (digit + part.by) % part.size if part.pattern == "shift" else digit ^ part.by
        peer = gpu + (target - digit) * part.stride * unit
        chosen = peer != gpu
        pairs.append(PairDemand(gpu[chosen], peer[chosen], np.full(int(chosen.sum()), rate)))
    return groups, pairs


def on_rails(groups: list[GroupDemand], view: FabricView, domain: int) -> tuple[list[GroupDemand], float]:
    """Groups over several units as groups on each: what a GPU sends travels on the receiver's rail.

    GPU (m, r) hands what it has for (m', r') to (m, r'), which sends it on (PXN), so (m, r') carries what its whole
    domain has for (m', r'). Also returned is what a GPU hands over inside its domain, Gb/s. Groups of whole domains
    only; others are returned as they are.
    """
    result: list[GroupDemand] = []
    handed = 0.0
    for group in groups:
        units = view.attachment[0][group.gpu, 0]
        pure = np.unique(np.stack([group.group, units]), axis=1).shape[1] == len(np.unique(group.group))
        by_domain = np.unique(np.stack([group.group, group.gpu // domain]), axis=1, return_counts=True)[1]
        if pure or domain == 1 or (by_domain != domain).any():
            result.append(group)
            continue
        members = np.bincount(group.group)[group.group]
        handed += float(((members - domain) * group.pair_rate).max()) * (domain - 1) / domain
        name = group.group * domain + group.gpu % domain
        result.append(replace(group, group=name, pair_rate=group.pair_rate * domain))
    return result, handed


def step_demand(
    view: FabricView, traffic: Traffic, phase: Phase, step: Step, nic_gbps: float, scale_up_gbps: float, policy: str
) -> Demand:
    """The step on what is left of a fabric: traffic of GPUs that lost their NIC goes over peers of their domain.

    For GPU (m, r) without NIC and its peer (m', r): (m, r) reaches (m, r') over the scale-up network, (m, r') sends to
    (m', r') on rail r', and that hands over to (m', r). `policy` is "spread", evenly over all r' with NICs at both
    ends, or "single-relay", all over one of them, as NCCL's PXN does. Traffic of GPUs that failed themselves is gone.
    """
    groups, pairs = step_groups(traffic, phase, step, nic_gbps)
    groups, handed = on_rails(groups, view, traffic.hb_domain)
    if view.whole:
        most = scale_up_gbps / handed if handed else np.inf
        return Demand(tuple(groups), tuple(pairs), 0, most, detours=False)
    partial = view.gpus_alive & ~view.full
    moving = [part for group in groups for part in _pairs_of(group, partial, view.gpus_alive)]
    for pair in pairs:
        alive = view.gpus_alive[pair.source] & view.gpus_alive[pair.target]
        moving.append(pair.of(alive))
    merged = PairDemand(
        np.concatenate([pair.source for pair in moving] or [np.zeros(0, dtype=np.int64)]),
        np.concatenate([pair.target for pair in moving] or [np.zeros(0, dtype=np.int64)]),
        np.concatenate([pair.rate for pair in moving] or [np.zeros(0)]),
    )
    direct: Bools = np.asarray(_common(view, merged).any(axis=1))
    detoured, cut_off, relayed = _detour(merged.of(~direct), view, traffic.hb_domain, policy)
    handed += relayed
    most = scale_up_gbps / handed if handed else np.inf
    kept = tuple(group.of(view.full) for group in groups)
    return Demand(kept, (merged.of(direct), *detoured), cut_off, most, detours=relayed > 0)


def _common(view: FabricView, pair: PairDemand) -> Bools:
    """For each pair and slot: whether both GPUs have a port left in the same unit."""
    table = view.attachment[0]
    alive = view.port_gbps > 0
    same = table[pair.source] == table[pair.target]
    return same & alive[pair.source] & alive[pair.target]


def _pairs_of(group: GroupDemand, partial: Bools, alive: Bools) -> list[PairDemand]:
    """Group traffic with a GPU that lost ports at either end, as pairs."""
    order = np.argsort(group.group, kind="stable")
    gpu, name = group.gpu[order], group.group[order]
    result: list[PairDemand] = []
    for number in np.unique(name[partial[gpu]]).tolist():
        first, last = np.searchsorted(name, [number, number + 1])
        members = gpu[first:last]
        members = members[alive[members]]
        without = members[partial[members]]
        one = np.repeat(without, len(members))
        other = np.tile(members, len(without))
        keep = one != other
        one, other = one[keep], other[keep]
        backward = ~partial[other]  # pairs of two such GPUs stand in `one` from both sides already
        source = np.concatenate([one, other[backward]])
        target = np.concatenate([other, one[backward]])
        result.append(PairDemand(source, target, np.full(len(source), group.pair_rate)))
    return result


def _detour(moving: PairDemand, view: FabricView, domain: int, policy: str) -> tuple[list[PairDemand], int, float]:
    """Pairs on the relays' NICs, how many GPUs no relay serves, and the most that one GPU hands over in its domain."""
    if not len(moving.source):
        return [], 0, 0.0
    by_domain = view.has_nic.reshape(-1, domain)
    home, away = moving.source // domain, moving.target // domain
    usable = by_domain[home] & by_domain[away]
    count = usable.sum(axis=1)
    served = count > 0
    unserved = np.concatenate([moving.source[~served], moving.target[~served]])
    cut_off = len(np.unique(unserved[~view.has_nic[unserved]]))
    handed = float(np.bincount(moving.source[served], moving.rate[served], len(view.has_nic)).max(initial=0.0))
    if policy == "single-relay":
        # The next NIC after the lost one, counted round the domain; the n-th loss of a domain takes the n-th of them.
        lost = np.where(view.has_nic[moving.source], moving.target, moving.source)
        slot = lost % domain
        nth = (np.cumsum(~by_domain, axis=1) - 1)[lost // domain, slot]
        turn = (slot[:, None] + 1 + np.arange(domain)) % domain
        free = np.take_along_axis(usable, turn, axis=1)
        wanted = nth % np.maximum(count, 1) + 1
        relay = (slot + 1 + np.argmax(np.cumsum(free, axis=1) == wanted[:, None], axis=1)) % domain
        over = PairDemand(home * domain + relay, away * domain + relay, moving.rate)
        return [over.of(served)], cut_off, handed
    detoured: list[PairDemand] = []
    for slot in range(domain):
        over = served & usable[:, slot]
        share = moving.rate[over] / count[over]
        detoured.append(PairDemand(home[over] * domain + slot, away[over] * domain + slot, share))
    return detoured, cut_off, handed


def unit_problems(view: FabricView, demand: Demand) -> list[list[FlowProblem]]:
    """The flow problems of each slot's units: traffic of a pair is split over the units that both GPUs reach.

    Groups are split in proportion to the ports; pairs evenly over what is left.
    """
    table, ports = view.attachment
    total = ports.sum(axis=1)
    parts: list[list[PairDemand]] = [[] for _ in range(table.shape[1])]
    for pair in demand.pairs:
        common = _common(view, pair)
        count = np.maximum(common.sum(axis=1), 1)
        for slot, share in enumerate(parts):
            chosen = common[:, slot]
            share.append(PairDemand(pair.source[chosen], pair.target[chosen], pair.rate[chosen] / count[chosen]))
    problems: list[list[FlowProblem]] = [[] for _ in range(table.shape[1])]
    for slot in range(table.shape[1]):
        share = np.divide(ports[:, slot], total, out=np.zeros(len(total)), where=total > 0)
        for unit in np.unique(table[:, slot][table[:, slot] >= 0]).tolist():
            members = table[:, slot] == unit
            typical = float(share[members].max())
            groups = [
                replace(group, pair_rate=group.pair_rate * typical, hose_rate=group.hose_rate * typical)
                for group in demand.groups
            ]
            problems[slot].append(_unit_problem(view, unit, slot, members, groups, parts[slot], demand.scale_up_most))
    return problems


def _unit_problem(
    view: FabricView,
    unit: int,
    slot: int,
    members: Bools,
    groups: list[GroupDemand],
    pairs: list[PairDemand],
    scale_up_most: float,
) -> FlowProblem:
    fabric = view.fabric
    gpus, links = fabric.gpus, fabric.links
    inside = view.unit_of_node == unit
    hosts = np.flatnonzero(view.alive & (links.a < gpus) & inside[links.b])
    every = np.flatnonzero((links.a < gpus) & inside[links.b])
    absorb = len(np.unique(links.a[every])) == len(every)
    switches = np.flatnonzero(inside)
    sites = switches if absorb else np.concatenate([np.flatnonzero(members), switches])
    local = np.full(fabric.n_nodes, -1, dtype=np.int64)
    local[sites] = np.arange(len(sites))
    place = np.full(gpus, -1, dtype=np.int64)
    place[links.a[hosts]] = local[links.b[hosts]] if absorb else local[links.a[hosts]]
    rows = np.flatnonzero(view.alive & (local[links.a] >= 0) & (local[links.b] >= 0))
    a, b, n = local[links.a[rows]], local[links.b[rows]], len(sites)
    key = np.minimum(a, b) * n + np.maximum(a, b)
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    capacity = weigh(index, links.gbps[rows], len(first))
    together = np.bincount(index.reshape(-1), minlength=len(first))
    kind = fabric.nodes.kind[sites]
    sent, received = np.zeros(gpus), np.zeros(gpus)
    hubs = tuple(_hubs(group, members, place, sent, received) for group in groups)
    flows = tuple(_pairs(pair, members, place, n, sent, received) for pair in pairs)
    busiest, nic = np.maximum(sent, received), view.port_gbps[:, slot]
    busy = busiest > 0
    most = float((nic[busy] / busiest[busy]).min(initial=np.inf))
    return FlowProblem(
        n,
        np.where(kind >= LEAF, 1, 0),
        kind >= LEAF,
        a[first],
        b[first],
        capacity,
        together,
        tuple(hub for hub in hubs if len(hub.node)),
        tuple(flow for flow in flows if len(flow.source)),
        min(most, scale_up_most),
    )


def _hubs(group: GroupDemand, members: Bools, place: Ints, sent: Floats, received: Floats) -> Hubs:
    chosen = members[group.gpu] & (place[group.gpu] >= 0)
    gpu = group.gpu[chosen]
    name = np.unique(group.group[chosen], return_inverse=True)[1].reshape(-1)
    others = np.bincount(name)[name] - 1
    rate = np.where(others > 0, group.hose_rate, 0.0) if group.hose_rate else group.pair_rate * others
    sent[gpu] += rate
    received[gpu] += rate
    entry = joint_classes(name, place[gpu])
    _, first, count = np.unique(entry, return_index=True, return_counts=True)
    node, at = place[gpu][first], name[first]
    several = np.bincount(at)[at] > 1 if len(at) else np.zeros(0, dtype=bool)
    names = np.unique(at[several], return_inverse=True)[1].reshape(-1)  # groups within one node need no network
    return Hubs(node[several], names, count[several], group.pair_rate, group.hose_rate)


def _pairs(pair: PairDemand, members: Bools, place: Ints, n: int, sent: Floats, received: Floats) -> Pairs:
    pair = pair.of(members[pair.source] & members[pair.target])
    np.add.at(sent, pair.source, pair.rate)
    np.add.at(received, pair.target, pair.rate)
    one, other = place[pair.source], place[pair.target]
    apart = one != other
    key, index = np.unique(one[apart] * n + other[apart], return_inverse=True)
    return Pairs(key // max(n, 1), key % max(n, 1), weigh(index, pair.rate[apart], len(key)))


def digest(problem: FlowProblem) -> str:
    """A name that equal problems share, and (by SHA-256) no others."""
    summary = sha256()
    for part in (
        problem.label,
        problem.relays,
        problem.a,
        problem.b,
        problem.capacity,
        problem.links_of,
        np.array([problem.nodes, problem.most]),
    ):
        summary.update(np.ascontiguousarray(part).tobytes() + b"|")
    for hub in problem.hubs:
        for part in (hub.node, hub.group, hub.members, np.array([hub.pair_rate, hub.hose_rate])):
            summary.update(np.ascontiguousarray(part).tobytes() + b"|")
    for pair in problem.pairs:
        for part in (pair.source, pair.target, pair.rate):
            summary.update(np.ascontiguousarray(part).tobytes() + b"|")
    return summary.hexdigest()
