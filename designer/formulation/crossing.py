"""The least traffic that crosses any set of n endpoints, and the most that stays inside one: what no network escapes.

`cuts.py` looks at blocks of neighbours, because a Clos fills its leaves in order. A network of any shape may put any n
endpoints on a switch, so here the minimum is taken over all sets. Endpoints are NIC ports; with several to a GPU, its
traffic may be split over them at will.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from designer.workload.cuts import Floats, Ints
from designer.workload.traffic import Component, Phase, Traffic

UNIFORM = ("any", "all-to-all")
MOST_DIGITS = 8


def cycle_length(part: Component) -> int:
    """Members of a cycle of a permutation: g / gcd(by, g) for a shift, 2 for an exchange, 1 where nobody sends."""
    return 2 if part.pattern == "exchange" else part.size // math.gcd(part.by, part.size)


def sends(part: Component) -> bool:
    """Whether the members send to anyone but themselves."""
    return part.size > 1 and (part.pattern in UNIFORM or cycle_length(part) > 1)


def least_out(part: Component, count: Ints) -> Floats:
    """The least rate out of any set of `count` members of any of the groups, in line rates; `part.rate` left out.

    all-to-all: r(g-r)/(g-1), any: min(r, g-r), with r = n mod g. A set with q_i members in group i sends the sum of
    f(q_i), f concave with f(0) = f(g) = 0; such a sum over q_i in 0..g with a given total is least at a corner, where
    at most one group is split. `any` may choose its permutation knowing the set: in a group with q members inside,
    min(q, g-q) of them can be made to send out, without anyone sending to itself.

    Permutations: what goes out of a set is the number of members whose target is outside. Whole cycles give 0; a set
    whose size is no multiple of the cycle length splits one, and a split cycle is left at least once.
    """
    if part.pattern in UNIFORM:
        rest = count % part.size
        if part.pattern == "any":
            return np.minimum(rest, part.size - rest).astype(np.float64)
        return rest * (part.size - rest) / (part.size - 1)
    return (count % cycle_length(part) != 0).astype(np.float64)


def least_out_of_cube(bits: int, count: Ints) -> Floats:
    """The least mean rate out of `count` members of groups of 2^bits under the exchanges of all `bits` distances.

    r(1 - log2(r)/bits) with r = n mod 2^bits: n corners of a cube have at most n log2(n)/2 edges among them (Harper
    1964), and the bound is concave in n and 0 at both ends, so that again one split group is best. The worst of the
    steps is no less than their mean.
    """
    rest = (count % (1 << bits)).astype(np.float64)
    return rest * (1 - np.log2(np.maximum(rest, 1)) / bits)


@dataclass(frozen=True)
class _Digit:
    """One component as a digit of the position of a GPU, with how strongly it ties the members of a group together.

    `length` members hang together; `tie` is the second Laplacian eigenvalue: g/(g-1) all-to-all, 1 - cos(2 pi/L) on a
    cycle of L. An exchange is an all-to-all of pairs. `weight` is floor times rate.
    """

    stride: int
    size: int
    length: int
    tie: float
    weight: float


def _digit(part: Component, floor: float) -> _Digit:
    weight = floor * part.rate
    if part.pattern == "exchange":
        return _Digit(part.stride * part.by, 2, 2, 2.0, weight)
    if part.pattern == "shift":
        length = cycle_length(part)
        return _Digit(part.stride, part.size, length, 1 - math.cos(2 * math.pi / length), weight)
    return _Digit(part.stride, part.size, part.size, part.size / (part.size - 1), weight)


def _joint_need(digits: Sequence[_Digit], ports: int, count: Ints, members: int) -> Floats | None:
    """Need under several components at different digits, of which the most demanding is no less than any mean.

    With weights in inverse proportion to weight times tie every digit ties equally, with 1 / sum of 1/(weight tie); the
    components together join GPUs in products of G = product of the lengths, whose second eigenvalue that is, so r of
    them send at least that times r(G-r)/G (Fiedler 1973), and one split product is best. None where digits overlap.
    """
    ordered = sorted(digits, key=lambda digit: digit.stride)
    if any(high.stride % (low.stride * low.size) for low, high in pairwise(ordered)):
        return None
    strength = 1 / sum(1 / (digit.weight * digit.tie) for digit in digits)
    sent = strength * sum(1 / digit.tie for digit in digits)
    joined = math.prod(digit.length for digit in digits)
    at_hand = np.minimum(count, members)
    rest = at_hand % joined
    inside = sent * at_hand - strength * rest * (joined - rest) / joined
    return _port_need(sent, inside, ports, count)


def _port_need(sent: float, inside: Floats, ports: int, count: Ints) -> Floats:
    """Rate out of a switch with `count` ports of GPUs that send `sent` each and at most `inside` to each other.

    A port carries at most 1/P, so each port of a GPU must take what its P - 1 others cannot: sent - (P-1)/P. What the
    switch delivers itself comes from and goes to its own GPUs, of which there are at most `count`. The rest goes out.
    With one port to a GPU that is the least rate out.
    """
    return np.maximum(0.0, count * max(0.0, sent - (ports - 1) / ports) - inside)


def _phase_need(phase: Phase, ports: int, count: Ints) -> Floats:
    """The most that any step of the phase asks of a switch with `count` ports of its GPUs, in line rates."""
    need = np.zeros(len(count))
    at_hand = np.minimum(count, phase.gpus)
    distances: dict[tuple[int, int], set[int]] = {}
    for step in phase.steps:
        parts = [part for part in step.components if sends(part)]
        sent = phase.floor * sum(part.rate for part in parts)
        inside = np.zeros(len(count))
        for part in parts:
            inside += phase.floor * part.rate * (at_hand - least_out(part, at_hand))
            if len(step.components) == 1 and part.pattern == "exchange" and part.rate == 1:
                distances.setdefault((part.stride, part.size), set()).add(part.by)
        np.maximum(need, _port_need(sent, inside, ports, count), out=need)
    for (_, size), seen in distances.items():
        bits = size.bit_length() - 1
        if size == 1 << bits and seen == {1 << bit for bit in range(bits)}:
            inside = phase.floor * (at_hand - least_out_of_cube(bits, at_hand))
            np.maximum(need, _port_need(phase.floor, inside, ports, count), out=need)
    return need


def _set_need(phases: tuple[Phase, ...], ports: int, count: Ints, extent: int) -> Floats:
    """The most that the phases on one range of GPUs ask, which take turns."""
    worst = np.zeros(len(count))
    digits: dict[tuple[int, int, str], dict[tuple[int, int, int, float], _Digit]] = {}
    for phase in phases:
        outside = (extent - phase.gpus) * ports
        np.maximum(worst, _with_others(_phase_need(phase, ports, count), outside, phase.gpus * ports), out=worst)
        same = digits.setdefault((phase.first_gpu, phase.gpus, phase.across), {})
        for digit in (_digit(part, phase.floor) for step in phase.steps for part in step.components if sends(part)):
            key = digit.stride, digit.size, digit.length, digit.tie
            if key not in same or same[key].weight < digit.weight:
                same[key] = digit
    for (_, gpus, _), found in digits.items():
        strongest = sorted(found.values(), key=lambda digit: -digit.weight * digit.tie)[:MOST_DIGITS]
        for several in range(2, len(strongest) + 1):
            for chosen in combinations(strongest, several):
                need = _joint_need(chosen, ports, count, gpus)
                if need is not None:
                    np.maximum(worst, _with_others(need, (extent - gpus) * ports, gpus * ports), out=worst)
    return worst


def _with_others(need: Floats, outside: int, most: int) -> Floats:
    """The least need of a switch of which up to `outside` ports may be others, and at most `most` are not."""
    usable = np.where(np.arange(len(need)) <= most, need, np.inf)
    least = usable.copy()
    for others in range(1, min(outside, len(need) - 1) + 1):
        np.minimum(least[others:], usable[:-others], out=least[others:])
    return least


def _together(one: Floats, other: Floats) -> Floats:
    """The least sum over all ways to split n ports between two sets of GPUs."""
    total = np.full(len(one), np.inf)
    for count in np.flatnonzero(np.isfinite(one)).tolist():
        np.minimum(total[count:], one[count] + other[: len(other) - count], out=total[count:])
    return total


def _extent(phases: tuple[Phase, ...]) -> int:
    """GPUs of phases that overlap, directly or through others: one range."""
    return max(phase.first_gpu + phase.gpus for phase in phases) - phases[0].first_gpu


def least_need(traffic: Traffic, ports: int, most: int) -> Floats:
    """Rate that a switch with n = 0 .. `most` ports of NICs must send to other switches, in NIC line rates.

    The floors are counted in. Phases on the same GPUs take turns, so the most demanding one decides; jobs on separate
    GPUs run at once, and the ports may be split between them and idle GPUs in whatever way needs least. Entries beyond
    the number of ports there are say nothing.
    """
    count = np.arange(most + 1)
    total: Floats | None = None
    used = 0
    for phases in traffic.concurrent():
        extent = _extent(phases)
        used += extent
        worst = _set_need(phases, ports, count, extent)
        total = worst if total is None else _together(total, worst)
    if total is None:
        return np.zeros(most + 1)
    return _with_others(total, (traffic.gpus - used) * ports, most)


@dataclass(frozen=True)
class SpreadDemand:
    """All-to-all traffic that every network must carry, on average over a few demands, in NIC line rates.

    `total` is all of it, `inside` the most among n GPUs, n = 0, 1, 2 ... Between two switches with n and n' GPUs go at
    most pair * n * n', and, where it stems from permutations, at most the part share * (n + n') of the time anything.
    """

    total: float
    pair: float
    share: float
    inside: Floats


def spread_demand(traffic: Traffic, most: int, *, permutations: bool) -> SpreadDemand:
    """Of each set of jobs at the same time the all-to-all traffic that is spread widest; for `any`, its permutations.

    `any` asks for every permutation, so for each shift by t = 1 .. g-1 of the members in a circle; their mean is an
    all-to-all. With `permutations` (a port to a GPU) the circle goes from switch to switch: members x of one switch
    and x + t of another are in two runs of q and q', which meet for q + q' - 1 of the g - 1 shifts.
    """
    count = np.arange(most + 1)
    total = pair = share = 0.0
    inside = np.zeros(most + 1)
    for phases in traffic.concurrent():
        chosen = max(
            (
                (
                    phase.floor * part.rate * max(0.0, 1 - most / part.size),
                    phase.floor * part.rate,
                    part.size,
                    part,
                    phase,
                )
                for phase in phases
                for step in phase.steps
                for part in step.components
                if part.pattern in UNIFORM and part.size > 1
            ),
            key=lambda item: item[:3],
            default=None,
        )
        if chosen is None or chosen[0] == 0:
            continue
        _, rate, size, part, phase = chosen
        if permutations and part.pattern == "any":
            share = max(share, 1 / (size - 1))
        else:
            pair = max(pair, rate / (size - 1))
        members = np.minimum(count, phase.gpus)
        own = rate * (members - members % size * (size - members % size) / (size - 1))
        inside = own if total == 0 else -_together(-inside, -own)
        total += phase.gpus * rate
    return SpreadDemand(total, pair, share, inside)
