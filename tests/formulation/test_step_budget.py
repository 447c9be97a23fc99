"""Floors chosen within a budget of step time: least capacities by plain search, networks by looking at all of them."""

import math
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.shape import ClosShape
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.step_budget import StepBudget, WithinBudget, carried_by, given_by
from designer.instance.instance import Instance, Job
from designer.workload.phases import derive_traffic
from designer.workload.step_time import step_time
from tests.reference.brute_force import BruteForce, Level, Placing
from tests.reference.explicit import step_rates
from tests.strategies import BREAKOUT, LINK_AT_800, Document, catalog, instance_of, nic, switch

SWITCHES = {"s4": switch(4, 500), "s6": switch(6, 700), "s8": switch(8, 1000)}
SPLIT = {"s4": switch(4, 500, BREAKOUT), "s6": switch(6, 650, BREAKOUT)}
SMALL_ONES = {"s4": SWITCHES["s4"]}
TWO_PLANES = nic(((1, 400), (2, 200)))
MODEL = {"layers": 4, "hidden": 2048, "heads": 16, "seq_length": 1024}
EXPERTS = {"experts": 8, "experts_per_token": 2}


def parts(switches: Document = SWITCHES, nic_record: Document | None = None) -> Document:
    """A catalog whose GPU has a memory rate, without which a step has no time."""
    document = catalog(switches, LINK_AT_800, nic_record)
    document["gpus"]["gpu"]["memory_bytes_per_s"] = 3350 * 10**9
    return document


def one_job(degrees: dict[str, int], **fields: object) -> Document:
    """A small transformer, with experts where they are spread."""
    model = MODEL | (EXPERTS if "ep" in degrees else {})
    return {"model": model, "parallelism": degrees, "global_batch": 4 * degrees.get("dp", 1), **fields}


def problem(degrees: dict[str, int], share: float, catalog_document: Document | None = None, **more: Document):
    gpus = math.prod(degree for name, degree in degrees.items() if name != "ep")
    cluster: Document = {"gpus": gpus, **more.pop("cluster", {})}
    requirements = {"max_step_overhead": share, **more.pop("requirements", {})}
    workload = [one_job(degrees, **more.pop("job", {}))]
    return instance_of(catalog_document or parts(), cluster, workload, requirements=requirements, **more)


def budget_of(instance: Instance) -> StepBudget:
    share = instance.requirements.max_step_overhead
    assert share is not None
    return StepBudget(instance, derive_traffic(instance), share)


def propose(instance: Instance) -> tuple[ClosShape | None, int | None]:
    """The cheapest Clos network within the budget, and its cost in cents."""
    pricing, traffic = Pricing(instance.objective, instance.energy), derive_traffic(instance)
    needs = WithinBudget(budget_of(instance))
    found = ClosSearch(instance, traffic, pricing, MediaFinder(instance.catalog), needs).run(Limits())
    return found.shape, found.cost_cents


@dataclass(frozen=True)
class Rated(Level):
    """Uplinks out of blocks, with what each step of each phase sends out of one, as parts of what a link carries."""

    links: tuple[tuple[float, ...], ...]


class Budgeted(BruteForce):
    """All Clos networks whose step is within the budget, its time taken from the harmonic means of their steps."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance, derive_traffic(instance))
        self.share = instance.requirements.max_step_overhead
        (self.job,) = (item for item in instance.workload if isinstance(item, Job))
        self.times: dict[tuple[float, ...], float] = {}

    def step_s(self, throughput: tuple[float, ...]) -> float:
        if throughput not in self.times:
            cluster = self.instance.cluster
            gbps = max(mode.ports * mode.gbps for mode in cluster.nic.modes)
            names = [phase.name for phase in self.traffic.network_phases]
            given_rates = dict(zip(names, throughput, strict=True))
            self.times[throughput] = step_time(self.job, cluster.gpu, gbps, self.traffic, given_rates).total_s
        return self.times[throughput]

    def overhead(self, *levels: tuple[Rated, int]) -> float:
        """How much longer a step takes than at line rate, with so many uplinks at each level."""
        means = []
        for number, phase in enumerate(self.traffic.network_phases):
            size = sum(step.nic_bytes for step in phase.steps)
            slow = 0.0
            for place, step in enumerate(phase.steps):
                part = min([1.0, *(links / need for level, links in levels if (need := level.links[number][place]))])
                slow += step.nic_bytes / part
            means.append(size / slow)
        full_s = self.step_s((1.0,) * len(means))
        return self.step_s(tuple(means)) / full_s - 1

    def within(self, *levels: tuple[Rated, int]) -> bool:
        return self.overhead(*levels) <= self.share + 1e-12

    def level(self, place: Placing, leaves_per_pod: int, detour: float, endpoint_gbps: int, gbps: int) -> Level:
        del detour  # nothing fails here
        phases = self.traffic.network_phases
        worst = [[0.0] * len(phase.steps) for phase in phases]
        for leaf_of in place.leaf_of:
            block_of = {gpu: leaf // leaves_per_pod for gpu, leaf in leaf_of.items()}
            for row, phase in zip(worst, phases, strict=True):
                for number, step in enumerate(phase.steps):
                    rates = step_rates(self.traffic, phase, step, block_of)
                    row[number] = max(row[number], *rates.values())
        links = tuple(tuple(rate * endpoint_gbps / gbps for rate in row) for row in worst)
        alone = Rated(1, (), links)
        return Rated(next(number for number in count(1) if self.within((alone, number))), (), links)

    def pods_survive(self, spines, bundle, cores, links, positions, leaf_need, pod_need) -> bool:
        del positions
        return self.within((leaf_need, spines * bundle), (pod_need, spines * cores * links))


DEGREES = (
    {"dp": 4, "pp": 4},
    {"dp": 8, "pp": 2},
    {"dp": 10},
    {"tp": 4, "dp": 4},
    {"cp": 4, "dp": 3},
    {"dp": 12, "ep": 4},
    {"dp": 4, "ep": 2, "pp": 3},
    {"tp": 2, "pp": 3, "dp": 3},
)


@st.composite
def budgets(draw: st.DrawFn, tiers: int):
    """A job on a few switches, with a budget."""
    degrees = draw(st.sampled_from(DEGREES))
    nic_record = draw(st.sampled_from([None, TWO_PLANES]))
    switches = SPLIT if nic_record else draw(st.sampled_from([SWITCHES, SMALL_ONES, SPLIT]))
    dp = draw(st.sampled_from(["any", "ring", "all-to-all"]))
    mixed = [["dp", "pp"]] if "pp" in degrees and "dp" in degrees and draw(st.booleans()) else []
    share = draw(st.one_of(st.sampled_from([0.0, 10.0]), st.floats(0.001, 3.0)))
    return problem(
        degrees,
        share,
        parts(switches, nic_record),
        requirements={"collectives": {"dp": dp}},
        job={"mixes": mixed},
        search={"max_tiers": tiers},
    )


@pytest.mark.parametrize("degrees", DEGREES, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.03, 0.4, 10.0])
def test_the_least_capacity_is_that_of_a_plain_search(degrees, share):
    """No capacity a thousandth below the least is within the budget, the least is, and a scan finds the same."""
    budget = budget_of(problem(degrees, share))
    sent = tuple(tuple(2.0 + number for number, _ in enumerate(phase.steps)) for phase in budget.traffic.network_phases)
    least, most = budget.least_capacity(sent), max(max(rates) for rates in sent)
    scan = [most * number / 2000 for number in range(2001)]
    within = [value for value in scan if budget.overhead(budget.given(sent, value)) <= share + 1e-12]
    assert within == scan[scan.index(within[0]) :]
    assert within[0] - most / 2000 <= least <= within[0] + 1e-9
    assert budget.overhead(budget.given(sent, least)) <= share + 1e-9


def test_what_sends_nothing_needs_no_capacity():
    budget = budget_of(problem({"dp": 4, "pp": 4}, 0.0))
    assert budget.least_capacity(tuple((0.0,) * len(phase.steps) for phase in budget.traffic.network_phases)) == 0


@settings(derandomize=True, max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(budgets(tiers=2))
def test_up_to_two_tiers_the_cheapest_network_is_found(instance):
    """On random small problems the program finds the cost that enumeration finds."""
    force = Budgeted(instance)
    assert propose(instance)[1] == force.cheapest_cents(), force.best_words


@settings(derandomize=True, max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(budgets(tiers=3))
def test_with_three_tiers_never_below_the_cheapest_network(instance):
    """Pods that carry what leaves need are within the budget, so that enumeration finds nothing dearer."""
    cents, optimum = propose(instance)[1], Budgeted(instance).cheapest_cents()
    if cents is not None:
        assert optimum is not None
        assert cents >= optimum


@settings(derandomize=True, max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(budgets(tiers=3))
def test_what_a_network_carries_is_within_the_budget_and_not_below_its_floors(instance):
    """The means over the steps are within the budget; the floors, of the most demanding step, are below them."""
    shape, _ = propose(instance)
    if shape is None:
        return
    traffic, budget = derive_traffic(instance), budget_of(instance)
    carried, floors = carried_by(shape, traffic), given_by(shape, traffic)
    assert budget.overhead(carried) <= budget.share + 1e-9
    assert all(0 < floors[name] <= carried[name] + 1e-9 <= 1 + 2e-9 for name in floors)


@pytest.mark.parametrize("degrees", DEGREES, ids=str)
def test_a_looser_budget_never_raises_the_cost(degrees):
    costs = [propose(problem(degrees, share))[1] for share in (0.0, 0.01, 0.05, 0.2, 1.0, 10.0)]
    assert all(cost is not None for cost in costs)
    assert costs == sorted(costs, reverse=True)


def test_without_slack_waiting_phases_get_the_full_rate():
    """Pipeline transfers are waited for, so that no network below the full rate's is within a budget of nothing."""
    instance = problem({"dp": 4, "pp": 4}, 0.0)
    free = instance_of(parts(), {"gpus": 16}, [one_job({"dp": 4, "pp": 4})])
    force = BruteForce(free, derive_traffic(free))
    shape, cents = propose(instance)
    assert cents == force.cheapest_cents()
    assert shape is not None
    assert given_by(shape, derive_traffic(instance))["pp"] == 1.0
