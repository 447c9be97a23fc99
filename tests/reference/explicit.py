"""Traffic endpoint by endpoint: who sends to whom, written out as pairs of GPUs, and what leaves a set of GPUs.

The slow and obvious counterpart of `designer.workload.cuts`.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from designer.workload.traffic import Component, Phase, Step, Traffic

Flow = tuple[int, int, float]


def groups(part: Component, members: list[list[int]]) -> list[list[list[int]]]:
    """The groups of a component. `members` are what takes part in order (domains or GPUs), each a list of GPUs."""
    period = part.stride * part.size
    return [
        [members[base + residue + part.stride * digit] for digit in range(part.size)]
        for base in range(0, len(members), period)
        for residue in range(part.stride)
    ]


def members_of(phase: Phase, traffic: Traffic) -> list[list[int]]:
    """Domains of the phase as lists of GPUs; for traffic across the cluster each GPU by itself."""
    unit = traffic.hb_domain if phase.across == "rail" else 1
    gpus = range(phase.first_gpu, phase.first_gpu + phase.gpus)
    return [list(gpus[start : start + unit]) for start in range(0, len(gpus), unit)]


def flows(part: Component, members: list[list[int]]) -> Iterator[Flow]:
    """(source, target, rate) of a component that is not `any`; GPU i of a domain talks to GPU i of its peer."""
    for group in groups(part, members):
        for digit, source in enumerate(group):
            if part.pattern == "all-to-all":
                targets = [(peer, part.rate / (part.size - 1)) for peer in group if peer is not source]
            elif part.pattern == "shift":
                targets = [(group[(digit + part.by) % part.size], part.rate)]
            elif part.pattern == "exchange":
                targets = [(group[digit ^ part.by], part.rate)]
            else:
                raise ValueError(part.pattern)
            for target, rate in targets:
                yield from ((one, other, rate) for one, other in zip(source, target, strict=True))


@lru_cache(maxsize=512)
def step_flows(
    traffic: Traffic, phase: Phase, step: Step
) -> tuple[tuple[Flow, ...], tuple[tuple[float, tuple[int, ...]], ...]]:
    """All flows of a step, and the groups of its `any` parts with their rates."""
    members = members_of(phase, traffic)
    fixed: list[Flow] = []
    worst: list[tuple[float, tuple[int, ...]]] = []
    for part in step.components:
        if part.pattern != "any":
            fixed += flows(part, members)
            continue
        for group in groups(part, members):
            worst += [(part.rate, tuple(gpus)) for gpus in zip(*group, strict=True)]
    return tuple(fixed), tuple(worst)


def step_rates(traffic: Traffic, phase: Phase, step: Step, block_of: Mapping[int, int]) -> dict[int, float]:
    """What a step sends out of each block, in NIC line rates; GPUs that `block_of` does not know are elsewhere."""
    rates = dict.fromkeys(block_of.values(), 0.0)
    fixed, worst = step_flows(traffic, phase, step)
    for source, target, rate in fixed:
        if source in block_of and block_of[source] != block_of.get(target, -1):
            rates[block_of[source]] += rate
    for rate, gpus in worst:
        homes = [block_of[gpu] for gpu in gpus if gpu in block_of]
        for block in set(homes):
            inside = homes.count(block)
            # The worst permutation sends as many as possible out: one to each member outside.
            rates[block] += rate * min(inside, len(gpus) - inside)
    return rates


def turns(traffic: Traffic) -> list[list[Phase]]:
    """Phases in sets that share GPUs, directly or through others, and so take turns."""
    sets: list[list[Phase]] = []
    for phase in traffic.phases:
        if not phase.steps:
            continue
        mine = set(range(phase.first_gpu, phase.first_gpu + phase.gpus))
        touching = [
            group
            for group in sets
            if any(mine & set(range(other.first_gpu, other.first_gpu + other.gpus)) for other in group)
        ]
        sets = [group for group in sets if group not in touching]
        sets.append([phase, *(other for group in touching for other in group)])
    return sets


def block_rates(traffic: Traffic, block_of: Mapping[int, int]) -> dict[int, float]:
    """The most that each block sends out, floors included: the worst step of those that take turns, sets added up."""
    total = dict.fromkeys(block_of.values(), 0.0)
    for phases in turns(traffic):
        worst = dict.fromkeys(total, 0.0)
        for phase in phases:
            for step in phase.steps:
                for block, rate in step_rates(traffic, phase, step, block_of).items():
                    worst[block] = max(worst[block], phase.floor * rate)
        for block, rate in worst.items():
            total[block] += rate
    return total
