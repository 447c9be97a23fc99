"""The Clos search beside what is owned: against enumeration of the whole family, and its bound on links plugged."""

import math
from dataclasses import replace
from itertools import pairwise

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.build import build_clos
from designer.formulation.clos_search import Limits, Proposal
from designer.formulation.existing_search import ExistingSearch
from designer.instance.existing import ExistingNetwork
from designer.instance.instance import Instance
from designer.rewiring.offers import lay_onto
from designer.workload.phases import derive_traffic
from tests.formulation.test_optimum import propose
from tests.reference.brute_stock import BruteStock
from tests.rewiring.beside import existing_of, pairs
from tests.strategies import COPPER, OPTICS, catalog, instance_of, problems, switch

QUIET = {"derandomize": True, "deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


def search_of(instance: Instance, existing: ExistingNetwork, **options) -> ExistingSearch:
    pricing = Pricing(instance.objective, instance.energy, stock=existing.stock)
    media = MediaFinder(instance.catalog, keep=existing.stock.keys)
    return ExistingSearch(instance, derive_traffic(instance), pricing, media, existing, **options)


def beside(instance: Instance, existing: ExistingNetwork, **options) -> Proposal:
    return search_of(instance, existing, **options).run(Limits())


@st.composite
def stocks(draw: st.DrawFn, instance: Instance) -> dict[tuple[str, float], int]:
    """Owned pieces of a catalog, some of each kind."""
    parts = instance.catalog
    owned = {(key, 0.0): draw(st.sampled_from([0, 1, 3, 6, 20])) for key in parts.switches}
    owned |= {(key, 0.0): draw(st.sampled_from([0, 5, 40])) for key in (*parts.transceivers, *parts.cables)}
    owned |= {(key, float(m)): draw(st.sampled_from([0, 7, 30])) for key in parts.fibres for m in (15, 30, 50)}
    return {piece: count for piece, count in owned.items() if count}


@settings(max_examples=60, **QUIET)
@given(problems(most_per_rail=14), st.data())
def test_what_is_bought_is_what_enumeration_finds(problem, data):
    """Any pieces may be owned; at times no others may be bought of the switches."""
    instance = instance_of(**problem)
    network = propose(instance).shape
    assume(network is not None)
    owned, new_switches = data.draw(stocks(instance)), data.draw(st.sampled_from([True, True, False]))
    existing = existing_of(instance, build_clos(network), owned=owned, new_switches=new_switches)
    force = BruteStock(instance, derive_traffic(instance), existing.stock)
    optimum = force.cheapest_cents()
    proposal = beside(instance, existing)
    assert proposal.cost_cents == optimum, force.best_words
    assert proposal.bound_cents == optimum
    assert proposal.termination == ("infeasible" if optimum is None else "optimal")


@settings(max_examples=40, **QUIET)
@given(problems(most_per_rail=14))
def test_nothing_owned_is_the_search_without_a_stock(problem):
    """An empty stock changes no cost; owning all of the optimum leaves its energy to be paid."""
    instance = instance_of(**problem)
    fresh = propose(instance)
    assume(fresh.shape is not None)
    fabric = build_clos(fresh.shape)
    assert beside(instance, existing_of(instance, fabric, owned={})).cost_cents == fresh.cost_cents
    all_of_it = beside(instance, existing_of(instance, fabric))
    assert all_of_it.cost_cents <= fresh.cost_cents
    if instance.objective == "capex":
        assert all_of_it.cost_cents == 0


@settings(max_examples=60, **QUIET)
@given(pairs())
def test_no_network_plugs_fewer_links_than_its_shape_says(pair):
    """The bound that is priced in the program is below what is plugged when the network is laid out."""
    instance, old, new = pair
    existing = existing_of(instance, build_clos(old), cents=1)
    instance = replace(instance, existing=existing)
    pricing = Pricing(instance.objective, instance.energy, stock=existing.stock)
    least = search_of(instance, existing).least_plugged(new)
    fabric = build_clos(new)
    _, rewired, bill = lay_onto(existing, fabric, instance, pricing)
    assert least <= rewired.moves.plugged
    search = search_of(instance, existing)
    assert search.paid_cents(new) <= bill.total_cents
    free = search_of(instance, existing_of(instance, existing.fabric))
    assert bill.total_cents - rewired.moves.plugged == free.paid_cents(new)


def test_a_price_on_links_is_traded_against_switches():
    """Links that cost more than switches are not plugged: the optimum with a price is one of the sums without."""
    parts = catalog({"s8": switch(8, 1000), "s16": switch(16, 3000)}, OPTICS)
    small = instance_of(parts, {"gpus": 12}, workload=[{"demand": "ring"}])
    old = build_clos(propose(small).shape)
    grown = instance_of(parts, {"gpus": 24}, workload=[{"demand": "ring"}])
    sums = []
    for cents in (0, 100, 10_000, 1_000_000):
        found = beside(grown, existing_of(grown, old, cents=cents))
        assert found.termination == "optimal"
        assert found.bound_cents == found.cost_cents
        search = search_of(grown, existing_of(grown, old, cents=cents))
        plugged, bought = search.least_plugged(found.shape), search._bought_cents(found.shape)
        assert bought + cents * plugged == found.cost_cents
        sums.append((bought, plugged))
    for one, other in pairwise(sums):
        assert one[0] <= other[0], "with dearer links no less is bought"
        assert one[1] >= other[1], "and no more is plugged"


def test_what_may_be_bought_bounds_the_search_for_few_links():
    """With the least purchase given, the fewest links of all networks of that purchase are found."""
    parts = catalog({"s8": switch(8, 1000)}, COPPER)
    instance = instance_of(parts, {"gpus": 20}, workload=[{"demand": "ring"}])
    old = build_clos(propose(instance_of(parts, {"gpus": 8}, workload=[{"demand": "any"}])).shape)
    cheapest = beside(instance, existing_of(instance, old))
    dear = existing_of(instance, old, cents=1_000_000)
    few = beside(instance, dear, most_bought_cents=cheapest.cost_cents)
    search = search_of(instance, dear)
    assert search._bought_cents(few.shape) == cheapest.cost_cents
    assert search.least_plugged(few.shape) <= search.least_plugged(cheapest.shape)
    none = beside(instance, dear, most_bought_cents=cheapest.cost_cents - 1)
    assert none.shape is None
    assert math.isfinite(cheapest.cost_cents)
