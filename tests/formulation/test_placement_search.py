"""What must hold between link placements and everything they are compared with, and between related problems."""

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from designer import design
from designer.comparison import best_templates
from designer.costing.pricing import MediaFinder, Pricing
from designer.formulation.bounds import any_network_bound
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.placement_search import NoPlacementError, PlacementProposal, PlacementSearch
from designer.instance.instance import Instance
from designer.search import Options
from designer.workload.phases import derive_traffic
from tests.reference.placement import cheapest_cents
from tests.strategies import (
    BREAKOUT,
    LINK_AT_800,
    OPTICS,
    PLAIN,
    Document,
    catalog,
    demands,
    gpu,
    instance_of,
    nic,
    switch,
)

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None)
ENOUGH_S = 2.0  # problems that take longer are left out


def search_of(instance: Instance) -> PlacementSearch:
    pricing = Pricing(instance.objective, instance.energy)
    return PlacementSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))


def proposed(instance: Instance, limits: Limits | None = None, below_cents: float = math.inf) -> PlacementProposal:
    return search_of(instance).run(limits or Limits(time_limit_s=ENOUGH_S), below_cents, lambda *_: None)


def cost(instance: Instance) -> float:
    """The optimum, infinite where there is none; problems that take too long are not looked at."""
    found = proposed(instance)
    if found.termination not in ("optimal", "infeasible"):
        reject()
    return math.inf if found.cost_cents is None else found.cost_cents


@st.composite
def problems(draw: st.DrawFn) -> Document:
    """Up to eight endpoints on switches of one model, so that a Clos network is a link placement as well."""
    cages, modes = draw(st.sampled_from([(4, PLAIN), (6, PLAIN), (8, PLAIN), (5, PLAIN), (3, BREAKOUT), (4, BREAKOUT)]))
    rails = draw(st.sampled_from([1, 1, 2]))
    cluster: Document = {"gpus": rails * draw(st.integers(3, 8 // rails)), "hb_domain": rails, "rails": rails}
    item = draw(demands(cluster, across=("rail", "rail", "cluster")))
    nics = [nic(), nic(((1, 200),)), nic(((1, 400), (2, 200)))] if modes == BREAKOUT else [nic()]
    usd = draw(st.sampled_from([500, 2000, 5000]))
    media = draw(st.sampled_from([LINK_AT_800, OPTICS]))
    return {
        "catalog_document": catalog({"s": switch(cages, usd, modes)}, media, draw(st.sampled_from(nics))),
        "cluster": cluster,
        "workload": [item | {"name": "all"}],
        "requirements": {
            "throughput": {"all": draw(st.sampled_from([1.0, 1.0, 0.5]))},
            "survive": draw(st.sampled_from([[], [], [{"failure": "link", "throughput": 0.5}]])),
            "symmetric_uplinks": draw(st.booleans()),
        },
        "search": {"leaf_sharing": draw(st.sampled_from(["whole-rails", "any", "none"]))},
    }


@settings(SETTINGS, max_examples=50)
@given(problems())
def test_the_order_of_bounds_and_costs(problem: Document) -> None:
    """Bound of any network <= bound <= cost <= optimal Clos network <= template; the bound of a cut search, too."""
    instance = instance_of(**problem)
    traffic, pricing = derive_traffic(instance), Pricing(instance.objective, instance.energy)
    found, media = proposed(instance), MediaFinder(instance.catalog)
    clos = ClosSearch(instance, traffic, pricing, media).run(Limits()).cost_cents
    meeting = [item.cost_cents for item in best_templates(instance, traffic, pricing) if item.meets and item.in_family]
    assert found.bound_cents <= min([*meeting, math.inf if clos is None else clos])
    assume(found.termination in ("optimal", "infeasible"))
    best = math.inf if found.cost_cents is None else found.cost_cents
    assert found.bound_cents == best
    assert (any_network_bound(instance, traffic, pricing, media).cents or 0) <= best
    assert best <= (math.inf if clos is None else clos) <= min(meeting, default=math.inf)


@st.composite
def with_used_switches(draw: st.DrawFn) -> Document:
    """A problem with one or two switches that are there already."""
    problem = draw(problems())
    model = problem["catalog_document"]["switches"]["s"]
    native = max(model["modes"], key=lambda mode: mode["gbps"])["ports_per_cage"]
    free = st.integers(1, model["cages"] * native - 1)
    existing = [
        {"name": f"used-{number}", "switch": "s", "free_ports": draw(free)} for number in range(draw(st.integers(1, 2)))
    ]
    problem["cluster"]["existing"] = existing
    problem["search"]["planes"] = [1]  # beside switches that are there there is one plane
    return problem


def changed(problem: Document, *path: str | int, value: Any) -> Instance:
    """The instance with one value changed."""
    other = deepcopy(problem)
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return instance_of(**other)


@settings(SETTINGS, max_examples=25)
@given(with_used_switches())
def test_what_is_there_never_costs_and_what_is_dearer_never_saves(problem: Document) -> None:
    """One used switch less: no cheaper. One free port more: no dearer. A dearer model: no cheaper."""
    best, existing = cost(instance_of(**problem)), problem["cluster"]["existing"]
    assert cost(changed(problem, "cluster", "existing", value=existing[:-1])) >= best
    free = existing[0]["free_ports"] + 1
    assert cost(changed(problem, "cluster", "existing", 0, "free_ports", value=free)) <= best
    usd = problem["catalog_document"]["switches"]["s"]["price"]["usd"] + 700
    assert cost(changed(problem, "catalog_document", "switches", "s", "price", "usd", value=usd)) >= best


OLD = {"name": "old", "switch": "double", "free_ports": 3}
MIXED_SERVERS = [
    {"count": 1, "gpu": "gpu", "gpus": 3, "nic": "fast"},
    {"count": 1, "gpu": "gpu", "gpus": 2, "nic": "slow"},
]
TURNS = [{"name": "all", "demand": "ring"}, {"name": "fast", "demand": "all-to-all", "gpus": 3}]


def mixed(existing: list[Document], **sections: Any) -> Instance:
    """Three GPUs at 400 Gb/s and two at 200, on switches of 3 ports of 400 Gb/s, or of 4 in two cages."""
    parts = catalog(
        {"three": switch(3, 1000, ((1, 400), (2, 200))), "double": switch(2, 1400, ((2, 400), (4, 200)))}, OPTICS
    )
    parts["nics"] = {"fast": nic(), "slow": nic(((1, 200),))}
    parts["gpus"] = {"gpu": gpu() | {"gpus_per_server": 4, "hb_domain": 4}}
    regular = dict.fromkeys(("gpu", "nic", "hb_domain"))
    return instance_of(parts, regular | {"servers": MIXED_SERVERS, "existing": existing}, TURNS, **sections)


@pytest.mark.parametrize("existing", [[], [OLD]])
@pytest.mark.parametrize("survive", [[], [{"failure": "link", "throughput": 0.5}]])
def test_models_and_numbers_of_switches_are_all_looked_at(existing: list[Document], survive: list[Document]) -> None:
    """The optimum, which has two switches here, is the least over lists of all placements on two, model by model."""
    instance = mixed(existing, requirements={"survive": survive})
    search, costs = search_of(instance), []
    for choice in search._choices():
        problem = search._problem(choice) if choice.count <= 2 else None
        if problem is not None and len(problem.slots) == 2:
            whole = replace(problem, blocks=tuple(replace(block, alike=-1) for block in problem.blocks))
            costs.append(cheapest_cents(whole, 2))
    found = proposed(instance, Limits(time_limit_s=60.0))
    assert found.termination == "optimal"
    assert found.network is not None
    assert len(found.network.switches) == 2
    assert found.network.links
    assert found.cost_cents == found.bound_cents == min(cents for cents in costs if cents is not None)


def test_a_cost_that_is_known_cuts_the_search() -> None:
    """Nothing is found at the optimum, the optimum just above it."""
    instance = mixed([OLD])
    best = cost(instance)
    none = proposed(instance, below_cents=best)
    assert (none.network, none.bound_cents, none.termination) == (None, best, "infeasible")
    assert proposed(instance, below_cents=best + 1).cost_cents == best


def test_stopped_at_once_nothing_false_is_said() -> None:
    """No time, or told to stop: no network, a bound below the optimum."""
    instance = mixed([OLD])
    best = cost(instance)
    for limits, end in ((Limits(time_limit_s=0.0), "time_limit"), (Limits(should_stop=lambda: True), "interrupted")):
        found = proposed(instance, limits)
        assert found.termination == end
        assert found.network is None
        assert 0 <= found.bound_cents <= best


WIDE = {"catalog_document": catalog({"s8": switch(8, 1000)}), "cluster": {"gpus": 8, "hb_domain": 2, "rails": 2}}
LOST = {"failure": "switch", "throughput": 0.5}
REFUSED = [
    ({"cluster": {"gpus": 520}}, "520 GPUs are more than the 512"),
    ({"cluster": {"gpus": 8, "management_ports": 1}}, "management ports"),
    ({"requirements": {"survive": [LOST | {"count": 2}]}}, "one at a time"),
    ({"workload": [{"demand": "any", "across": "cluster"}], "requirements": {"survive": [LOST]}}, "across the cluster"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_it_does_not_know_is_refused(changes: Document, words: str) -> None:
    with pytest.raises(NoPlacementError, match=words):
        proposed(instance_of(**WIDE | changes))


@pytest.mark.parametrize("failure", ["switch", "nic"])
def test_a_domain_of_one_gpu_survives_no_switch(failure: str) -> None:
    """Nobody in the domain could carry what is lost: proven infeasible at once."""
    survive = [{"failure": failure, "throughput": 0.5}]
    found = proposed(instance_of(**WIDE | {"cluster": {"gpus": 8}, "requirements": {"survive": survive}}))
    assert (found.network, found.termination, found.bound_cents) == (None, "infeasible", math.inf)


def test_sides_of_domains_keep_apart_where_a_switch_may_be_lost() -> None:
    """Two rails on two switches without a link between them, certified at half the rate without either."""
    instance = instance_of(**WIDE, workload=[{"demand": "ring"}], requirements={"survive": [LOST]})
    result = design(instance, Options(families=("link-placement",)))
    assert result.counts["leaf"] == 2
    assert result.counts["leaf_spine_links"] == 0
    assert result.certificate is not None
    assert result.certificate.met


def test_two_ports_of_a_nic_on_different_switches() -> None:
    """16 GPUs of two ports of 400 Gb/s on switches of 8 ports: no dearer than ZCube, and certified."""
    instance = instance_of(
        catalog({"s8": switch(8, 1000)}, LINK_AT_800, nic(((2, 400),), cages_per_nic=2)),
        {"gpus": 16},
        [{"demand": "all-to-all"}],
    )
    result = design(instance)
    assert result.to_document()["cost_usd"] <= 46_400
    assert result.certificate is not None
    assert result.certificate.met
