"""What GPUs send over the network in a step, intact or after a failure: groups, pairs, and detours over the HB domain.

GPUs pass no traffic on for others except over their HB domain, which the demand takes into account (`step_demand`),
not the graph: what a GPU without NIC sends and receives goes over peers' NICs.
"""

from dataclasses import dataclass, replace

import numpy as np

from designer.certify.problem import Floats, Ints
from designer.certify.view import Bools, FabricView
from designer.workload.traffic import Phase, Step, Traffic

MAX_PAIRS = 10_000_000


class TooManyPairsError(Exception):
    """Traffic that only single pairs would describe, too many of them."""


@dataclass(frozen=True)
class GroupDemand:
    """All-to-all inside groups of GPUs, `pair_rate` Gb/s from member to member; `any` where there is a `hose_rate`."""

    gpu: Ints
    group: Ints
    pair_rate: float
    hose_rate: float = 0.0

    def of(self, chosen: Bools) -> "GroupDemand":
        """The same among the chosen GPUs only (a mask over all GPUs)."""
        return self.of_rows(chosen[self.gpu])

    def of_rows(self, chosen: Bools) -> "GroupDemand":
        """The same among the chosen entries only."""
        return replace(self, gpu=self.gpu[chosen], group=self.group[chosen])


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
    says whether some traffic takes a way over peers. `cut` bounds the throughput whatever the routing.
    """

    groups: tuple[GroupDemand, ...]
    pairs: tuple[PairDemand, ...]
    cut_off: int
    scale_up_most: float
    detours: bool
    cut: float = np.inf


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
    domain has for (m', r'). Also returned is what a GPU sends inside its domain, Gb/s. Groups of whole domains
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
        # `any` is first spread over the rails, then handed to the receiver.
        rate = 2 * group.hose_rate if group.hose_rate else float((members * group.pair_rate).max())
        handed += rate * (domain - 1) / domain
        name = group.group * domain + group.gpu % domain
        result.append(replace(group, group=name, pair_rate=group.pair_rate * domain))
    return result, handed


def step_demand(
    view: FabricView, traffic: Traffic, phase: Phase, step: Step, nic_gbps: float, scale_up_gbps: float, policy: str
) -> Demand:
    """The step on what is left of a fabric.

    Raises:
        TooManyPairsError: groups over several units that only single pairs would describe.
    """
    groups, pairs = step_groups(traffic, phase, step, nic_gbps)
    return demand_left(view, groups, pairs, traffic.hb_domain, scale_up_gbps, policy)


def demand_left(
    view: FabricView,
    groups: list[GroupDemand],
    pairs: list[PairDemand],
    domain: int,
    scale_up_gbps: float,
    policy: str,
) -> Demand:
    """Groups and pairs on what is left of a fabric: what has no way of its own goes over peers of the domain.

    For GPU (m, r) without NIC and its peer (m', r'): (m, r) reaches (m, q) over the scale-up network, (m, q) sends to
    (m', q) on rail q, and that hands over to (m', r'). So does what GPUs on networks of their own send to each other.
    `policy` is "spread", evenly over all q with NICs at both ends, or "single-relay", all over one of them, as NCCL's
    PXN does. Traffic of GPUs that failed themselves is gone.

    Raises:
        TooManyPairsError: groups over several units that only single pairs would describe.
    """
    groups, handed = on_rails(groups, view, domain)
    cut = domain_cut(view, groups, pairs, domain)
    partial = view.gpus_alive & ~view.full
    moving: list[PairDemand] = []
    kept: list[GroupDemand] = []
    for group in groups:
        crossing = _crossing(view, group)
        moving += _pairs_of(group.of_rows(crossing), np.ones_like(partial), view.gpus_alive)
        moving += _pairs_of(group.of_rows(~crossing), partial, view.gpus_alive)
        kept.append(group.of_rows(~crossing).of(view.full))
    moving += [pair.of(view.gpus_alive[pair.source] & view.gpus_alive[pair.target]) for pair in pairs]
    none = np.zeros(0, dtype=np.int64)
    merged = PairDemand(
        np.concatenate([pair.source for pair in moving] or [none]),
        np.concatenate([pair.target for pair in moving] or [none]),
        np.concatenate([pair.rate for pair in moving] or [np.zeros(0)]),
    )
    direct: Bools = np.asarray(common_slots(view, merged).any(axis=1))
    detoured, cut_off, relayed = _detour(merged.of(~direct), view, domain, policy)
    handed += relayed
    most = scale_up_gbps / handed if handed else np.inf
    return Demand(tuple(kept), (merged.of(direct), *detoured), cut_off, most, detours=relayed > 0, cut=cut)


def _crossing(view: FabricView, group: GroupDemand) -> Bools:
    """The members of those groups whose GPUs are not all attached to the same units."""
    name = np.unique(group.group, return_inverse=True)[1].reshape(-1)
    first = np.unique(name, return_index=True)[1]
    units = view.attachment[0][group.gpu]
    strange = (units != units[first][name]).any(axis=1)
    return np.asarray(np.bincount(name, strange)[name] > 0)


def apart(view: FabricView, groups: list[GroupDemand], pairs: list[PairDemand]) -> bool:
    """Whether some of this traffic is between GPUs on networks of their own."""
    if any(_crossing(view, group).any() for group in groups):
        return True
    units = view.attachment[0]
    return any(bool((units[pair.source] != units[pair.target]).all(axis=1).any()) for pair in pairs)


def domain_cut(view: FabricView, groups: list[GroupDemand], pairs: list[PairDemand], domain: int) -> float:
    """An upper bound on the throughput, however traffic is routed: what a domain's ports carry of what leaves it.

    Domains without any port left take no part: their GPUs are told as cut off.
    """
    domains = len(view.gpus_alive) // domain
    left = (view.port_gbps * view.gpus_alive[:, None]).sum(axis=1).reshape(domains, domain).sum(axis=1)
    alive = view.gpus_alive & np.repeat(left > 0, domain)
    out, into = np.zeros(domains), np.zeros(domains)
    for group in (group.of(alive) for group in groups):
        name = np.unique(group.group, return_inverse=True)[1].reshape(-1)
        key, inside = np.unique(name * domains + group.gpu // domain, return_counts=True)
        others = np.bincount(name)[key // domains] - inside
        sent = group.hose_rate * np.minimum(inside, others) if group.hose_rate else group.pair_rate * inside * others
        np.add.at(out, key % domains, sent)
        np.add.at(into, key % domains, sent)
    for pair in pairs:
        home, away = pair.source // domain, pair.target // domain
        leaves = alive[pair.source] & alive[pair.target] & (home != away)
        np.add.at(out, home[leaves], pair.rate[leaves])
        np.add.at(into, away[leaves], pair.rate[leaves])
    busiest = np.maximum(out, into)
    counted = busiest > 0
    return float((left[counted] / busiest[counted]).min(initial=np.inf))


def common_slots(view: FabricView, pair: PairDemand) -> Bools:
    """For each pair and slot: whether both GPUs have a port left in the same unit."""
    table = view.attachment[0]
    alive = view.port_gbps > 0
    same = table[pair.source] == table[pair.target]
    return same & alive[pair.source] & alive[pair.target]


def _pairs_of(group: GroupDemand, partial: Bools, alive: Bools) -> list[PairDemand]:
    """Group traffic with a GPU that lost ports at either end, as pairs.

    Raises:
        TooManyPairsError: more of them than `MAX_PAIRS`.
    """
    name = np.unique(group.group, return_inverse=True)[1].reshape(-1)
    if float((np.bincount(name, partial[group.gpu]) * np.bincount(name)).sum()) > MAX_PAIRS:
        raise TooManyPairsError
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
    """Pairs on the relays' NICs, how many GPUs no relay serves, and the most that a GPU hands over in its domain.

    What stays in a domain needs no NIC.
    """
    if not len(moving.source):
        return [], 0, 0.0
    by_domain = view.has_nic.reshape(-1, domain)
    home, away = moving.source // domain, moving.target // domain
    inside = home == away
    over_slot = [PairDemand(home * domain + slot, away * domain + slot, moving.rate) for slot in range(domain)]
    usable: Bools = np.stack([common_slots(view, over).any(axis=1) for over in over_slot], axis=1)
    count = np.where(inside, 0, usable.sum(axis=1))
    served = count > 0
    without = ~served & ~inside
    both = view.has_nic[moving.source] & view.has_nic[moving.target]
    ends = np.concatenate([moving.source[without], moving.target[without]])
    cut_off = len(np.unique(ends[~view.has_nic[ends] | np.tile(both[without], 2)]))
    if (without & both).any():  # not lost with a GPU's NIC, and yet no way: nothing of the step is carried
        return [], cut_off, np.inf
    if policy == "single-relay":
        # The n-th loss of a domain takes the n-th NIC that is left after its first loss, counted round the domain.
        # Between GPUs that have NICs, on networks of their own, the receiver's rail.
        lost = np.where(view.has_nic[moving.source], moving.target, moving.source)
        slot = lost % domain
        nth = (np.cumsum(~by_domain, axis=1) - 1)[lost // domain, slot]
        start = np.where(nth < 0, slot, np.argmin(by_domain[lost // domain], axis=1))
        turn = (start[:, None] + 1 + np.arange(domain)) % domain
        free = np.take_along_axis(usable, turn, axis=1)
        wanted = nth % np.maximum(count, 1) + 1
        relay = (start + 1 + np.argmax(np.cumsum(free, axis=1) == wanted[:, None], axis=1)) % domain
        relay = np.where(both & np.take_along_axis(usable, slot[:, None], axis=1)[:, 0], slot, relay)
        over = PairDemand(home * domain + relay, away * domain + relay, moving.rate)
        detoured = [over.of(served)]
        legs = [(moving.of(served), detoured[0])]
    else:
        shared = replace(moving, rate=moving.rate / np.maximum(count, 1))
        by_slot = [served & usable[:, slot] for slot in range(domain)]
        detoured = [replace(over, rate=shared.rate).of(by_slot[slot]) for slot, over in enumerate(over_slot)]
        legs = [(shared.of(by_slot[slot]), over) for slot, over in enumerate(detoured)]
    legs.append((moving.of(inside), replace(moving.of(inside), source=moving.target[inside])))
    return detoured, cut_off, _handed_over(legs, len(view.has_nic))


def _handed_over(legs: list[tuple[PairDemand, PairDemand]], gpus: int) -> float:
    """The most that a GPU sends or receives inside its domain: from source to relay, and from relay to target."""
    sent, received = np.zeros(gpus), np.zeros(gpus)
    for asked, over in legs:
        for one, other in ((asked.source, over.source), (over.target, asked.target)):
            moved = one != other
            np.add.at(sent, one[moved], asked.rate[moved])
            np.add.at(received, other[moved], asked.rate[moved])
    return float(max(sent.max(initial=0.0), received.max(initial=0.0)))
