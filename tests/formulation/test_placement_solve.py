"""The cheapest link placement of tiny problems against a list of all of them, with and without failures."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from designer.formulation.block_demand import Hose
from designer.formulation.blocks import with_alike
from designer.formulation.placement import End, LinkKind, PlacementProblem, Slot, Survival
from designer.formulation.placement_solve import PlacementReport, solve_placement
from designer.formulation.solvers import SolveLimits
from tests.formulation.placements import MEDIUM, blocks_of, demand, host_kind, link_kind, model
from tests.reference.placement import cheapest_cents, cost_cents, stands

MOST_LINKS = 4
SEEDS = 64
WIDE = Slot(model(5), 40_000, 0)
ONE_KIND = ((link_kind(),), (link_kind(),), (link_kind(200, 2, 2, 8, 50),))
TWO_KINDS = (link_kind(200, 2, 1, 6, 40), link_kind())


def solved(problem: PlacementProblem, **options: object) -> PlacementReport:
    return solve_placement(problem, SolveLimits(30.0), **options)


@lru_cache(maxsize=SEEDS)
def solved_random(seed: int) -> tuple[PlacementProblem, PlacementReport]:
    problem = random_problem(seed)
    return problem, solved(problem)


def random_slots(rng: np.random.Generator, count: int) -> tuple[Slot, ...]:
    """Switches to buy, and at times one that is there already, with some of its ports."""
    there = [Slot(model(5), 0, 1 + number, f"used-{number}", int(rng.integers(3, 6))) for number in range(count)]
    return tuple(WIDE if rng.random() < 0.75 else slot for slot in there)


def random_problem(seed: int) -> PlacementProblem:
    """Two or three switches, two to four blocks; demands all alike or all different; failures, sides, used switches."""
    rng = np.random.default_rng(seed)
    slots, blocks = random_slots(rng, int(rng.choice([2, 3]))), int(rng.integers(2, 5))
    even = rng.random() < 0.4
    sizes = [4] * blocks if even else rng.integers(3, 6, blocks).tolist()
    sides = 2 if rng.random() < 0.15 else 1
    made = blocks_of(*sizes, sides=rng.integers(0, sides, blocks).tolist())
    hosts = {
        (b, s): host_kind()
        for b in range(blocks)
        for s, slot in enumerate(slots)
        if not slot.owned or rng.random() < 0.9
    }
    chosen = int(rng.integers(4))
    kinds = TWO_KINDS if len(slots) == 2 and chosen == 3 else ONE_KIND[chosen % 3]
    pairs = [(one, other) for one in range(len(slots)) for other in range(one + 1, len(slots))]
    demands = []
    for _ in range(int(rng.integers(1, 3))):
        rate = float(rng.choice([100, 150, 300])) / max(1, blocks - 2)
        rates = {
            (b, h): rate if even else float(rng.choice([0, 0, 100, 100, 200]))
            for b in range(blocks)
            for h in range(blocks)
            if b != h
        }
        demands.append(demand(rates, blocks))
    survivals = [Survival(kind, float(rng.choice([0.5, 1.0]))) for kind in ("switch", "link") if rng.random() < 0.35]
    leaders = with_alike(made, tuple(demands))
    made = tuple(replace(block, alike=leader) for block, leader in zip(made, leaders, strict=True))
    links = dict.fromkeys(pairs, kinds)
    return PlacementProblem(slots, made, tuple(demands), hosts, links, tuple(survivals), sides)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_optimum_is_that_of_the_list_of_all_placements(seed: int) -> None:
    problem, report = solved_random(seed)
    best = cheapest_cents(problem, MOST_LINKS)
    assert report.cost_cents == best
    assert report.termination == ("infeasible" if best is None else "optimal")
    if report.placement is not None:
        assert cost_cents(problem, report.placement) == report.cost_cents == report.placement.cost(problem)
        assert stands(problem, report.placement)
        assert report.bound_cents == pytest.approx(report.cost_cents)


def test_the_random_problems_are_not_all_of_one_kind() -> None:
    """Networks with links and without, none at all, survived failures of both kinds, owned switches, two speeds."""
    found = [solved_random(seed) for seed in range(SEEDS)]
    standing = [(problem, report.placement) for problem, report in found if report.placement is not None]
    assert 30 <= len(standing) <= SEEDS - 5
    linked = [problem for problem, placement in standing if placement.links]
    assert len(linked) >= 15
    assert {item.kind for problem in linked for item in problem.survivals} == {"switch", "link"}
    assert any(slot.owned for problem in linked for slot in problem.slots)
    assert any(len(kinds) > 1 for problem in linked for kinds in problem.link_kinds.values())
    assert any(problem.sides == 2 for problem, _ in standing)


@pytest.mark.parametrize("seed", range(0, SEEDS, 5))
def test_only_what_is_cheaper_than_a_given_cost_counts(seed: int) -> None:
    problem, report = solved_random(seed)
    cost = report.cost_cents
    if cost is not None:
        assert solved(problem, below_cents=cost).termination == "infeasible"
        assert solved(problem, below_cents=cost + 1).cost_cents == cost


def part_taken(seed: int) -> PlacementProblem:
    """Blocks on a switch of two ports to a cage, an odd number of them free, and on bought ones of one to a cage."""
    rng = np.random.default_rng(seed)
    blocks, free = 3, int(rng.choice([1, 3, 3, 5, 5]))
    slots = (Slot(model(4, 2), 0, 1, "used", free), Slot(model(3), 40_000, 0))
    hosts = {(b, s): host_kind(4 if s == 0 else 2) for b in range(blocks) for s in range(2)}
    links = []
    for gbps, per_cage, usd in ((400, 1, 10), (200, 2, 6)):
        ends = End(f"up{gbps}", 2 * per_cage, 4000), End(f"up{gbps}", per_cage, 4000)
        links.append(LinkKind(gbps, MEDIUM, *ends, 1, 100 * usd))
    chosen = tuple(links[: rng.integers(1, 3)]) if rng.random() < 0.7 else (links[1],)
    rates = {(b, h): float(rng.choice([0, 100, 200])) for b in range(blocks) for h in range(blocks) if b != h}
    sizes = rng.integers(1, 4, blocks).tolist()
    return PlacementProblem(slots, blocks_of(*sizes), (demand(rates, blocks),), hosts, {(0, 1): chosen})


@pytest.mark.parametrize("seed", range(40))
def test_of_a_cage_that_is_taken_in_part_only_the_rest_is_used(seed: int) -> None:
    problem = part_taken(seed)
    report = solved(problem)
    assert report.cost_cents == cheapest_cents(problem, 5)


@pytest.mark.parametrize(("free", "fits"), [(3, False), (4, True)])
def test_three_ports_do_not_go_into_half_a_cage(free: int, fits: bool) -> None:
    """Three hosts and three links of 200 Gb/s want two cages of four; half of a cage is two of its ports."""
    slots = Slot(model(4, 2), 0, 1, "used", free), Slot(model(4), 40_000, 0)
    hosts = {(0, 0): host_kind(4), (1, 1): host_kind()}
    kind = LinkKind(200, MEDIUM, End("up", 4, 4000), End("up", 2, 4000), 1, 600)
    problem = PlacementProblem(slots, blocks_of(3, 3), (demand({(0, 1): 600.0}, 2),), hosts, {(0, 1): (kind,)})
    assert (solved(problem).placement is not None) == fits


@pytest.mark.parametrize(("share", "counts"), [(0.4, (1, 1)), (0.6, (3, 0))])
def test_of_links_of_two_speeds_one_is_lost(share: float, counts: tuple[int, int]) -> None:
    """500 Gb/s over 200 + 400; with the link of 400 lost 200 are left, 0.4 of them and not 0.6."""
    hosts = {(b, s): host_kind() for b in range(2) for s in range(2)}
    survivals, asked = (Survival("link", share),), demand({(0, 1): 500.0}, 2)
    problem = PlacementProblem((WIDE, WIDE), blocks_of(6, 6), (asked,), hosts, {(0, 1): TWO_KINDS}, survivals)
    report = solved(problem)
    assert report.placement is not None
    assert report.placement.links == {(0, 1): counts}
    assert report.cost_cents == cheapest_cents(problem, 3)


@pytest.mark.parametrize("seed", range(10))
def test_blocks_that_stand_already_keep_their_switches(seed: int) -> None:
    """A block on each of three switches, with the inequalities that hold there: the best links of all."""
    rng = np.random.default_rng(seed)
    rates = {(b, h): float(rng.choice([0, 100, 300, 500])) for b in range(3) for h in range(3) if b != h}
    survivals = (Survival("link", 0.5),) if seed % 2 else ()
    hosts = {(b, s): host_kind() for b in range(3) for s in range(3)}
    links = dict.fromkeys([(0, 1), (0, 2), (1, 2)], (link_kind(),))
    problem = PlacementProblem((WIDE,) * 3, blocks_of(2, 3, 4), (demand(rates, 3),), hosts, links, survivals)
    slots = np.array([1, 0, 2])
    report = solved(problem, standing=slots)
    assert report.cost_cents == cheapest_cents(problem, MOST_LINKS, slots.tolist())


def hose_problem(seed: int, switches: int) -> PlacementProblem:
    """Groups that mean `any`, at times two of them beside a fixed demand."""
    rng = np.random.default_rng(seed)
    blocks = 3
    hoses = [Hose(200.0, rng.integers(1, 3, blocks)), Hose(100.0, rng.integers(0, 2, blocks))][: rng.integers(1, 3)]
    fixed = {(0, 1): 200.0} if rng.random() < 0.5 else {}
    slots = (Slot(model(4 if switches == 3 else 7), 40_000, 0),) * switches
    hosts = {(b, s): host_kind() for b in range(blocks) for s in range(switches)}
    pairs = [(one, other) for one in range(switches) for other in range(one + 1, switches)]
    survivals = (Survival("link", 0.5),) if rng.random() < 0.3 else ()
    asked = demand(fixed, blocks, hoses)
    sizes = (4, 4, 4) if switches == 3 else (5, 5, 5)
    return PlacementProblem(slots, blocks_of(*sizes), (asked,), hosts, dict.fromkeys(pairs, (link_kind(),)), survivals)


@pytest.mark.parametrize("seed", range(10))
def test_any_on_two_switches_is_its_worst_permutation(seed: int) -> None:
    problem = hose_problem(seed, 2)
    report = solved(problem)
    assert report.cost_cents == cheapest_cents(problem, MOST_LINKS)


@pytest.mark.parametrize("seed", range(6))
def test_any_by_one_routing_carries_every_permutation(seed: int) -> None:
    """One routing for all permutations costs no less than a routing for each, and carries them all."""
    problem = hose_problem(seed, 3)
    best, report = cheapest_cents(problem, 3), solved(problem)
    if report.placement is None:
        return
    assert best is not None
    assert best <= report.cost_cents
    assert stands(problem, report.placement)
