"""Endpoints that are all alike: what they send out of a switch, bounds of profiles, known optima, transit switches."""

import math
from dataclasses import replace
from itertools import combinations, islice

import numpy as np
import pytest

from designer.costing.pricing import MediaFinder, Pricing
from designer.formulation.clos_search import Limits
from designer.formulation.placement import KindFinder
from designer.formulation.placement_search import PlacementProposal, PlacementSearch
from designer.formulation.profiles import AlikeEndpoints, ProfileResult, ProfileSearch
from designer.formulation.solvers import INF, SolveLimits
from designer.instance.instance import Instance
from designer.workload.phases import derive_traffic
from tests.reference.any_network import demands_of
from tests.reference.placement import cheapest_cents
from tests.strategies import catalog, instance_of, switch


def alike(
    ports: int, gpus: int, pattern: str, floor: float = 1.0, usd: int | None = None
) -> tuple[Instance, AlikeEndpoints]:
    """Endpoints with one port of 400 Gb/s each, on switches of so many ports; a link costs 800 USD."""
    instance = instance_of(
        catalog({"s": switch(ports, 1000 * ports if usd is None else usd)}),
        {"gpus": gpus},
        [{"demand": pattern}],
        requirements={"throughput": {pattern: floor}},
    )
    pricing = Pricing(instance.objective, instance.energy)
    finder = KindFinder(instance.catalog, instance.cabling, pricing, MediaFinder(instance.catalog))
    nic = instance.cluster.nic
    model = instance.catalog.switches["s"]
    return instance, AlikeEndpoints(derive_traffic(instance), nic, nic.modes[0], model, finder, (), 1.0)


def nobody(*_: object) -> None:
    """Listens to no progress."""


def found(instance: Instance) -> PlacementProposal:
    pricing = Pricing(instance.objective, instance.energy)
    search = PlacementSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    return search.run(Limits(time_limit_s=60.0), math.inf, nobody)


@pytest.mark.parametrize(("gpus", "switches", "links"), [(64, 4, 26), (128, 8, 60)])
def test_all_to_all_on_switches_of_32_ports(gpus: int, switches: int, links: int) -> None:
    """Switches joined directly; a Clos of two tiers needs 6 and 12 switches, and 64 and 128 links."""
    proposal = found(alike(32, gpus, "all-to-all")[0])
    assert proposal.termination == "optimal"
    assert proposal.network is not None
    assert len(proposal.network.switches) == switches
    assert sum(item.count for item in proposal.network.links) == links
    assert proposal.cost_cents == proposal.bound_cents == 100 * (32_000 * switches + 800 * (gpus + links))


@pytest.mark.parametrize("pattern", ["any", "all-to-all"])
@pytest.mark.parametrize("gpus", [5, 6])
@pytest.mark.parametrize("floor", [1.0, 0.5])
def test_what_any_n_endpoints_send_out(pattern: str, gpus: int, floor: float) -> None:
    """B(n): the worst demand of the pattern, the same for every set of n endpoints."""
    need = alike(8, gpus, pattern, floor)[1].need_gbps(gpus)
    demands = list(demands_of(pattern, [range(gpus)], gpus))
    for n in range(gpus + 1):
        for chosen in combinations(range(gpus), n):
            inside = np.isin(np.arange(gpus), chosen)
            worst = max(rates[inside][:, ~inside].sum() for rates in demands)
            assert need[n] == pytest.approx(400 * floor * worst), (n, chosen)


def partitions(total: int, most: int) -> list[tuple[int, ...]]:
    """Ways to write a number as a sum of numbers up to `most`, largest first."""
    if total == 0:
        return [()]
    return [(n, *rest) for n in range(min(total, most), 0, -1) for rest in partitions(total - n, n)]


@pytest.mark.parametrize(("ports", "gpus"), [(4, 6), (5, 9), (8, 20)])
@pytest.mark.parametrize("usd", [100, 5000])
def test_profiles_come_in_the_order_of_their_bounds_and_none_is_left_out(ports: int, gpus: int, usd: int) -> None:
    """All partitions that have the ports, each also with switches that only pass traffic on."""
    search = ProfileSearch(alike(ports, gpus, "all-to-all", usd=usd)[1])
    dear = 14 * search.cents[0] + search.least_cents
    seen: list[tuple[float, tuple[int, ...]]] = []
    for bound, counts in search.profiles():
        if bound > dear:
            break
        seen.append((bound, counts))
    bounds = [bound for bound, _ in seen]
    assert bounds == sorted(bounds)
    assert bounds[0] == pytest.approx(search.least_cents)
    assert len({counts for _, counts in seen}) == len(seen)
    expected = set()
    for counts in partitions(gpus, ports):
        alone = float(sum(search.cents[n] for n in counts))
        for more in range(15 if len(counts) > 1 else 1):
            if alone + more * search.cents[0] < dear - 1:
                expected.add((*counts, *(0,) * more))
    assert expected <= {counts for _, counts in seen}
    for bound, counts in seen:
        assert bound == pytest.approx(sum(search.cents[n] for n in counts))


# Few enough endpoints that five switches never pay.
TINY = [
    (4, 5, "any", 1.0),
    (4, 5, "all-to-all", 1.0),
    (4, 6, "all-to-all", 1.0),
    (4, 7, "all-to-all", 1.0),
    (4, 8, "all-to-all", 0.5),
    (5, 7, "all-to-all", 1.0),
    (4, 5, "any", 0.5),
]


@pytest.mark.parametrize(("ports", "gpus", "pattern", "floor"), TINY)
def test_no_network_of_a_profile_costs_less_than_its_bound(ports: int, gpus: int, pattern: str, floor: float) -> None:
    """Every multigraph of up to four switches; and the cheapest of all is what the search finds and proves.

    Here permutations may each be routed by themselves; the search, which has one routing for all, costs no less.
    """
    _, ends = alike(ports, gpus, pattern, floor)
    search, best = ProfileSearch(ends), math.inf
    profiles = [counts for alone in partitions(gpus, ports) for counts in (alone, (*alone, 0))]
    for counts in profiles:
        if len(counts) <= 4:
            problem, standing = ends.problem(counts)
            most_links = 2 if len(counts) == 4 else 4
            cost = cheapest_cents(replace(problem, all_bought=True), most_links, standing.tolist())
            if cost is not None:
                assert sum(search.cents[n] for n in counts) <= cost
                best = min(best, float(cost))
    assert all(sum(search.cents[n] for n in counts) >= best for counts in profiles if len(counts) > 4)
    result = search.run(SolveLimits(60.0), INF, nobody)
    assert result.termination == "optimal"
    assert result.bound_cents == cost_of(result)
    assert best <= cost_of(result) if pattern == "any" else best == cost_of(result)


def cost_of(result: ProfileResult) -> float:
    assert result.problem is not None
    assert result.placement is not None
    return float(result.placement.cost(result.problem))


def test_switches_that_only_pass_traffic_on_are_bought_where_they_pay() -> None:
    """15 endpoints on switches of 6 ports: three on each of five, and one that joins them, with 9 links.

    Without such a switch no network of six switches and 9 links carries it.
    """
    instance, _ = alike(6, 15, "all-to-all")
    proposal = found(instance)
    assert proposal.termination == "optimal"
    assert proposal.network is not None
    assert len(proposal.network.switches) == 6
    assert sorted(len(item.gpus) for item in proposal.network.hosts) == [3] * 5
    assert proposal.cost_cents == 100 * (6 * 6000 + 800 * (15 + 9))
    assert proposal.cost_cents == proposal.bound_cents


def test_a_search_that_is_cut_short_says_what_it_knows() -> None:
    """Any permutation of 64 endpoints in no time: no network, and a bound below the cost of one that is known."""
    search = ProfileSearch(alike(32, 64, "any")[1])
    result = search.run(SolveLimits(0.0), INF, nobody)
    assert result.termination == "time_limit"
    assert result.placement is None
    assert result.bound_cents == pytest.approx(search.least_cents)
    clos = 100 * (6 * 32_000 + 800 * (64 + 64))
    assert 0 < result.bound_cents <= clos


def test_only_what_is_cheaper_is_looked_for() -> None:
    """With the optimum known beforehand there is nothing to find, and the bound says so."""
    search = ProfileSearch(alike(8, 14, "all-to-all")[1])
    best = cost_of(search.run(SolveLimits(60.0), INF, nobody))
    again = search.run(SolveLimits(60.0), best, nobody)
    assert (again.termination, again.placement, again.bound_cents) == ("optimal", None, best)
    assert cost_of(search.run(SolveLimits(60.0), best + 1, nobody)) == best


def test_profiles_that_no_ports_suffice_for_have_no_bound() -> None:
    """Four endpoints fill a switch of four ports; three send 9/5 of a line, two links where one port is left."""
    search = ProfileSearch(alike(4, 6, "all-to-all")[1])
    assert np.isinf(search.cents[[3, 4]]).all()
    assert np.isfinite(search.cents[:3]).all()
    assert {counts for _, counts in islice(search.profiles(), 50)} >= {(2, 2, 2), (2, 2, 1, 1), (2, 2, 2, 0)}
