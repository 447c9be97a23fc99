"""What must hold between the optima of related problems, and between an optimum and everything it is compared with."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.comparison import best_templates
from designer.costing.pricing import MediaFinder, Pricing, shape_cents
from designer.fabric.shape import ClosShape
from designer.formulation.clos_search import ClosSearch, Limits, Proposal
from designer.formulation.demand import Needs, unmet
from designer.instance.instance import Instance
from designer.workload.cuts import CutFunction
from designer.workload.phases import derive_traffic
from tests.strategies import (
    LINK_AT_800,
    OPTICS,
    Document,
    catalog,
    catalogs,
    clusters,
    instance_of,
    problems,
    requirements,
    switch,
)

SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
UNIFORM = ["any", "all-to-all"]


def propose(instance: Instance, limits: Limits | None = None, start: ClosShape | None = None) -> Proposal:
    pricing = Pricing(instance.objective, instance.energy)
    search = ClosSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    return search.run(limits or Limits(), start)


def cost(instance: Instance) -> float:
    """The optimum; infinite where there is none."""
    found = propose(instance).cost_cents
    return float("inf") if found is None else found


@st.composite
def uniform_problems(draw: st.DrawFn) -> Document:
    """Demands over all endpoints alike, so that more endpoints or rate is more demand everywhere."""
    section = draw(requirements())
    section["survive"] = section["survive"][:1]
    return {
        "catalog_document": draw(catalogs()),
        "cluster": draw(clusters(16)),
        "workload": [{"demand": draw(st.sampled_from(UNIFORM)), "name": "all"}],
        "requirements": section,
        "search": {"leaf_sharing": draw(st.sampled_from(["none", "whole-rails", "any"]))},
    }


def with_requirements(problem: Document, **changes: Any) -> Document:
    return problem | {"requirements": problem["requirements"] | changes}


@SETTINGS
@given(uniform_problems(), st.integers(1, 2))
def test_cost_never_falls_with_endpoints(problem, domains):
    """More whole domains never make the network cheaper."""
    cluster = problem["cluster"]
    more = cluster | {"gpus": cluster["gpus"] + 2 * domains * cluster["hb_domain"]}
    assert cost(instance_of(**problem)) <= cost(instance_of(**problem | {"cluster": more}))


@SETTINGS
@given(uniform_problems(), st.sampled_from([(0.2, 0.5), (0.5, 1.0), (0.7, 0.8)]))
def test_cost_never_falls_with_rate(problem, floors):
    """A higher floor never makes the network cheaper."""
    low, high = (cost(instance_of(**with_requirements(problem, throughput={"all": floor}))) for floor in floors)
    assert low <= high


@SETTINGS
@given(
    problems(most_per_rail=14),
    st.sampled_from(["switch", "link", "nic"]),
    st.integers(1, 2),
    st.sampled_from([0.25, 0.5]),
)
def test_cost_never_falls_with_survivability(problem, failure, count, throughput):
    """No failure, a failure, the same with more left, more of them: never cheaper in this order."""
    item = {"failure": failure, "count": count, "throughput": throughput}
    series = [[], [item], [item | {"throughput": throughput + 0.25}], [item | {"count": count + 1}]]
    none, one, better, more = (cost(instance_of(**with_requirements(problem, survive=items))) for items in series)
    assert none <= one <= better
    assert one <= more


@SETTINGS
@given(problems(most_per_rail=14), st.integers(3, 9), st.integers(50, 250))
def test_a_larger_catalog_never_costs_more(problem, cages, usd):
    """One more switch model is one more choice."""
    larger = deepcopy(problem)
    modes = problem["catalog_document"]["switches"]["a"]["modes"]
    pairs = [(mode["ports_per_cage"], mode["gbps"]) for mode in modes]
    larger["catalog_document"]["switches"]["more"] = switch(cages, usd * cages, pairs)
    assert cost(instance_of(**larger)) <= cost(instance_of(**problem))


@SETTINGS
@given(problems(most_per_rail=18))
def test_no_template_is_cheaper(problem):
    """A template that meets the instance, and that the search could have found, costs no less."""
    instance = instance_of(**problem)
    pricing = Pricing(instance.objective, instance.energy)
    best = cost(instance)
    for item in best_templates(instance, derive_traffic(instance), pricing):
        if item.meets and item.in_family:
            assert best <= item.cost_cents, item.name


def test_templates_are_compared_at_all():
    """Where a rail-only network and a fat tree meet the demand, both are there and cost no less than the optimum."""
    switches = {"s8": switch(8, 1000), "s6": switch(6, 800)}
    instance = instance_of(catalog(switches, OPTICS), {"gpus": 64, "hb_domain": 4}, search={"leaf_sharing": "any"})
    pricing = Pricing(instance.objective, instance.energy)
    meeting = {
        item.name: item.cost_cents
        for item in best_templates(instance, derive_traffic(instance), pricing)
        if item.meets and item.in_family
    }
    assert {"rail-only", "rail-optimized", "fat-tree"} <= set(meeting)
    assert cost(instance) <= min(meeting.values())


@SETTINGS
@given(problems(most_per_rail=18))
def test_a_proposal_meets_what_was_asked(problem):
    """The shape has no port problem and no unmet requirement, costs what the solver said, and bounds stay below it."""
    instance = instance_of(**problem)
    proposal = propose(instance)
    if proposal.shape is None:
        return
    shape, asked = proposal.shape, instance.requirements
    cuts = CutFunction(derive_traffic(instance), shape.layout)
    needs = Needs(cuts, asked, shape.hosts.planes, shape.hosts.gbps)
    assert shape.problems() == []
    assert unmet(shape, needs, ecmp=asked.routing == "ecmp") == []
    assert shape_cents(shape, Pricing(instance.objective, instance.energy)) == proposal.cost_cents
    assert proposal.bound_cents == proposal.cost_cents


@SETTINGS
@given(problems(most_per_rail=18), st.sampled_from([0.05, 0.2, 0.5]))
def test_bounds_under_a_gap(problem, gap):
    """Stopped at a gap, the bound lies below the optimum and the cost above it, no farther apart than asked."""
    instance = instance_of(**problem)
    exact, loose = propose(instance), propose(instance, Limits(gap=gap))
    assert (exact.cost_cents is None) == (loose.cost_cents is None)
    if exact.cost_cents is not None:
        assert loose.bound_cents <= exact.cost_cents <= loose.cost_cents
        assert loose.bound_cents >= (1 - gap) * loose.cost_cents - 1


@SETTINGS
@given(problems(most_per_rail=14))
def test_stopped_at_once_nothing_false_is_said(problem):
    """With no time at all the bound still lies below the optimum, and infeasible is not claimed unproven."""
    instance = instance_of(**problem)
    exact, stopped = propose(instance), propose(instance, Limits(should_stop=lambda: True))
    if exact.cost_cents is not None:
        assert stopped.termination != "infeasible"
        assert stopped.bound_cents is None or stopped.bound_cents <= exact.cost_cents
    if stopped.cost_cents is not None:
        assert stopped.cost_cents >= exact.cost_cents


@SETTINGS
@given(problems(most_per_rail=14))
def test_a_start_changes_nothing(problem):
    """Started from its own optimum the search ends there."""
    instance = instance_of(**problem)
    exact = propose(instance)
    if exact.shape is not None:
        again = propose(instance, start=exact.shape)
        assert (again.cost_cents, again.bound_cents) == (exact.cost_cents, exact.bound_cents)


@SETTINGS
@given(problems(most_per_rail=14))
def test_freedom_never_costs(problem):
    """Sharing leaves in any mix <= whole rails <= not at all; uneven bundles <= even ones; more tiers <= fewer."""
    search = problem["search"]
    shared, whole, alone = (
        cost(instance_of(**problem | {"search": search | {"leaf_sharing": sharing}}))
        for sharing in ("any", "whole-rails", "none")
    )
    assert shared <= whole <= alone
    free, even = (
        cost(instance_of(**with_requirements(problem, symmetric_uplinks=symmetric))) for symmetric in (False, True)
    )
    assert free <= even
    tiers = [cost(instance_of(**problem | {"search": search | {"max_tiers": most}})) for most in (1, 2, 3)]
    assert tiers == sorted(tiers, reverse=True)


@SETTINGS
@given(problems(most_per_rail=14), st.randoms(use_true_random=False))
def test_names_change_nothing(problem, random):
    """The order and the keys of switches, and the order of demands, are of no consequence."""
    switches = list(problem["catalog_document"]["switches"].items())
    random.shuffle(switches)
    renamed = {f"z{number}": record for number, (_, record) in enumerate(switches)}
    other = problem | {
        "catalog_document": problem["catalog_document"] | {"switches": renamed},
        "workload": problem["workload"][::-1],
    }
    assert cost(instance_of(**other)) == cost(instance_of(**problem))


@SETTINGS
@given(clusters(12, 4), st.sampled_from(["any", "ring", "all-to-all"]), st.sampled_from(["link", "optics"]))
def test_rails_are_alike(cluster, demand, media):
    """A cluster of R rails costs no more than R clusters of one rail, and no more where rails may share leaves."""
    switches = {"s4": switch(4, 500), "s6": switch(6, 800)}
    document = catalog(switches, OPTICS if media == "optics" else LINK_AT_800)
    cluster = cluster | {"management_ports": 0, "hb_domain": cluster["rails"]}
    single = cluster | {"gpus": cluster["gpus"] // cluster["rails"], "hb_domain": 1, "rails": 1}
    rest = {"workload": [{"demand": demand}], "search": {"leaf_sharing": "none"}}
    together = cost(instance_of(document, cluster, **rest))
    assert together <= cluster["rails"] * cost(instance_of(document, single, **rest))
    sharing = rest | {"search": {"leaf_sharing": "whole-rails"}}
    assert cost(instance_of(document, cluster, **sharing)) <= together


@SETTINGS
@given(problems(most_per_rail=14))
def test_a_relabelled_layout_needs_the_same(problem):
    """A fabric of any set of rails has the same needs: traffic on each rail is the same."""
    instance = instance_of(**problem)
    traffic = derive_traffic(instance)
    proposal = propose(instance)
    if proposal.shape is None or traffic.needs_joined_rails() or proposal.shape.layout.mixed:
        return
    layout = proposal.shape.layout
    alone, together = CutFunction(traffic, replace(layout, rails=1)), CutFunction(traffic, layout)
    down = proposal.shape.down
    assert alone.leaf(down) == together.leaf(down)
