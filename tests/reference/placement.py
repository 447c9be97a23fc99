"""Every link placement of a tiny problem, one by one: which switch each block is on, and how many links join any two.

Taken from the package: the problem's data. Ports, cages and cost are counted here from their definitions, and whether a
network carries a demand is a plain linear program on it, one for each permutation where a group means `any`.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np

from designer.formulation.block_demand import BlockDemand
from designer.formulation.placement import Placement, PlacementProblem
from tests.reference.flow_lp import Graph, throughput

Rates = np.ndarray


def matrices(demand: BlockDemand) -> list[Rates]:
    """The demand as rates from block to block: one matrix, or one for each permutation of the members of its hoses."""
    found: dict[bytes, Rates] = {}
    for rates in _permuted(demand):
        np.fill_diagonal(rates, 0.0)
        found[rates.tobytes()] = rates
    return list(found.values())


def _permuted(demand: BlockDemand) -> Iterator[Rates]:
    members = [np.repeat(np.arange(len(hose.members)), hose.members).tolist() for hose in demand.hoses]
    for images in product(*(sorted(set(permutations(group))) for group in members)):
        rates = demand.gbps.copy()
        for hose, group, image in zip(demand.hoses, members, images, strict=True):
            for source, target in zip(group, image, strict=True):
                rates[source, target] += hose.gbps
        yield rates


def cost_cents(problem: PlacementProblem, placement: Placement) -> Fraction | None:
    """What a placement costs; None where ports or cages do not suffice, or a switch serves both sides."""
    homes = placement.slot_of_block.tolist()
    ports: list[dict[object, int]] = [{} for _ in problem.slots]
    total = Fraction(0)
    for block, slot in enumerate(homes):
        kind = problem.host_kinds.get((block, slot))
        if kind is None:
            return None
        total += kind.cents * problem.blocks[block].ports
        key = "host", kind.end
        ports[slot][key] = ports[slot].get(key, 0) + problem.blocks[block].ports
    for (one, other), counts in placement.links.items():
        for kind, count in zip(problem.link_kinds[one, other], counts, strict=True):
            total += kind.cents * count
            for slot, end in ((one, kind.lower), (other, kind.upper)):
                ports[slot]["up", end] = ports[slot].get(("up", end), 0) + count
    for slot, taken in zip(problem.slots, ports, strict=True):
        cages = {key: math.ceil(count / key[1].per_cage) for key, count in taken.items()}
        native = slot.switch.native_mode.ports_per_cage
        room, most = slot.switch.cages, slot.switch.max_ports
        used = sum(taken.values())
        if slot.free_ports is not None:
            room, most = slot.free_ports // native, slot.free_ports
            used = sum(Fraction(count * native, key[1].per_cage) for key, count in taken.items())
            rest = Fraction(slot.free_ports % native, native)  # free in the cage that is taken in part
            fits = [key for key in taken if rest and 0 < (taken[key] % key[1].per_cage) <= rest * key[1].per_cage]
            room += 1 if fits else 0
        if sum(cages.values()) > room or used > most:
            return None
        total += sum(key[1].cage_cents * count for key, count in cages.items())
        total += slot.cents if used or problem.all_bought else 0
    return None if _sides_meet(problem, placement) else total


def _sides_meet(problem: PlacementProblem, placement: Placement) -> bool:
    """Whether blocks of different sides share a switch, or a part that is joined, where they must not."""
    if problem.sides == 1:
        return False
    part = list(range(len(problem.slots)))
    for (one, other), counts in placement.links.items():
        if any(counts):
            part = [part[one] if name == part[other] else name for name in part]
    sides: dict[int, set[int]] = {}
    for block, slot in zip(problem.blocks, placement.slot_of_block.tolist(), strict=True):
        sides.setdefault(part[slot], set()).add(block.side)
    return any(len(found) > 1 for found in sides.values())


def carries(
    problem: PlacementProblem,
    placement: Placement,
    rates: Rates,
    lost_switch: int | None = None,
    lost_link: tuple[int, int, int] | None = None,
) -> bool:
    """Whether a placement carries rates between blocks after the loss of a switch, or of a link (pair and kind)."""
    homes = placement.slot_of_block.tolist()
    between: dict[tuple[int, int], float] = {}
    for source, target in zip(*np.nonzero(rates), strict=True):
        pair = homes[source], homes[target]
        if pair[0] != pair[1] and lost_switch not in pair:
            between[pair] = between.get(pair, 0.0) + float(rates[source, target])
    links: list[tuple[int, int, float]] = []
    for (one, other), counts in placement.links.items():
        for number, (kind, count) in enumerate(zip(problem.link_kinds[one, other], counts, strict=True)):
            left = count - (lost_link == (one, other, number))
            if lost_switch not in (one, other) and left:
                links.append((one, other, float(kind.gbps * left)))
    for slot in range(len(problem.slots)):
        room = sum(rate for one, other, rate in links if slot in (one, other)) + 1e-7
        out = sum(rate for (source, _), rate in between.items() if source == slot)
        into = sum(rate for (_, target), rate in between.items() if target == slot)
        if max(out, into) > room:
            return False
    slots = len(problem.slots)
    return throughput(Graph(slots, tuple(links), frozenset(range(slots))), between) >= 1 - 1e-7


def stands(problem: PlacementProblem, placement: Placement) -> bool:
    """Whether a placement carries every demand, intact and after every failure that it is to survive."""
    demands = [rates for demand in problem.demands for rates in matrices(demand)]
    if not all(carries(problem, placement, rates) for rates in demands):
        return False
    for item in problem.survivals:
        for rates in demands:
            if item.kind == "switch":
                lost = range(len(problem.slots))
                if not all(carries(problem, placement, item.share * rates, lost_switch=slot) for slot in lost):
                    return False
                continue
            there = [(*pair, kind) for pair, counts in placement.links.items() for kind, n in enumerate(counts) if n]
            if not all(carries(problem, placement, item.share * rates, lost_link=link) for link in there):
                return False
    return True


def placements(
    problem: PlacementProblem, most_links: int, standing: Sequence[int] | None = None
) -> Iterator[Placement]:
    """Every placement with at most so many links of each kind between two switches, or those of blocks that stand."""
    pairs = [(pair, kinds) for pair, kinds in problem.link_kinds.items() if kinds]
    choices = [list(product(*(range(0, most_links + 1, kind.bundle) for kind in kinds))) for _, kinds in pairs]
    wirings = [
        {pair: counts for (pair, _), counts in zip(pairs, chosen, strict=True) if any(counts)}
        for chosen in product(*choices)
    ]
    everywhere = product(range(len(problem.slots)), repeat=len(problem.blocks))
    for homes in everywhere if standing is None else [tuple(standing)]:
        for links in wirings:
            yield Placement(np.array(homes), links)


def cheapest_cents(
    problem: PlacementProblem, most_links: int, standing: Sequence[int] | None = None
) -> Fraction | None:
    """The least cost of a placement that carries everything; None where there is none."""
    priced = [
        (cost, number, placement)
        for number, placement in enumerate(placements(problem, most_links, standing))
        if (cost := cost_cents(problem, placement)) is not None
    ]
    cheapest_first = sorted(priced, key=lambda item: item[:2])
    return next((cost for cost, _, placement in cheapest_first if stands(problem, placement)), None)
