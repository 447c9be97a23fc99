"""The trade between network and lost time: against every network of small problems, and the branching by itself."""

import json
import math
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer import design
from designer.certify.read_design import design_from_document
from designer.certify.verify import verify_file
from designer.cli.design_report import summary
from designer.digest import with_digest
from designer.errors import InstanceError
from designer.fabric.shape import ClosShape
from designer.formulation.training_cost import Offer, best_trade
from designer.report.page import report_page
from designer.report.words import money
from designer.result import Design
from designer.search import Options
from designer.units import cents
from tests.formulation.test_step_budget import SPLIT, SWITCHES, Budgeted, one_job, parts, problem
from tests.strategies import Document, instance_of

CLOS = Options(families=("clos",), certify=False)
SHAPE: Any = object()  # a network to the branching


class Frontier(Budgeted):
    """All Clos networks of up to two tiers: the least of each one's cost with the time lost to it."""

    def __init__(self, degrees: dict[str, int], switches: Document) -> None:
        super().__init__(problem(degrees, 1e6, parts(switches), search={"max_tiers": 2}))
        self.offers: dict[float, float] = {}
        self.overhead_now = 0.0

    def take(self, cents: float, *words: object) -> None:
        overhead = self.overhead_now if words[0] == "two tiers" else 0.0
        self.offers[overhead] = min(cents, self.offers.get(overhead, math.inf))

    def two_tiers(self, base, fabrics, leaves, leaf_cages, uplinks, spines, bundle, *rest) -> None:
        need = rest[-1]
        self.overhead_now = max(0.0, self.overhead((need, uplinks)))
        super().two_tiers(base, fabrics, leaves, leaf_cages, uplinks, spines, bundle, *rest)

    def least_total(self, lost_cents: float) -> float:
        if not self.offers:
            self.cheapest_cents()
        return min(cents + overhead * lost_cents for overhead, cents in self.offers.items())


def costed(degrees: dict[str, int], switches: Document, gpu_usd: float, tiers: int = 2, **more: Any) -> Design:
    gpus = math.prod(degree for name, degree in degrees.items() if name != "ep")
    instance = instance_of(
        parts(switches),
        {"gpus": gpus},
        [one_job(degrees)],
        objective="cost_of_training",
        training={"gpu_usd": gpu_usd},
        search={"max_tiers": tiers},
    )
    return design(instance, replace(CLOS, **more))


JOBS = ({"dp": 4, "pp": 4}, {"tp": 4, "dp": 4}, {"cp": 4, "dp": 3}, {"dp": 12, "ep": 4})


@pytest.mark.parametrize("degrees", JOBS, ids=str)
@pytest.mark.parametrize("switches", [SWITCHES, SPLIT], ids=["whole", "split"])
def test_the_trade_is_within_its_gap_of_the_best_of_all_networks(degrees, switches):
    """At every price of a GPU the bound is below the best total of enumeration, and the design within 1 % of it."""
    force = Frontier(degrees, switches)
    for gpu_usd in (0, 10, 200, 1000, 5000, 30_000, 10**6):
        training = costed(degrees, switches, gpu_usd).training
        assert training is not None
        optimum = force.least_total(100 * gpu_usd * force.instance.cluster.gpus)
        assert training.bound_cents <= optimum + 1
        assert optimum - 1 <= training.total_cents <= training.bound_cents / 0.99 + 1
        assert training.gap <= 0.01 + 1e-6  # whole cents


def test_a_free_gpu_leaves_the_cheapest_network_and_a_dear_one_the_full_rate():
    """With GPUs for nothing the cheapest network of all is bought; with dear ones that of no overhead."""
    free, dear = (costed({"dp": 4, "pp": 4}, SWITCHES, gpu_usd) for gpu_usd in (0, 10**7))
    cheapest = design(problem({"dp": 4, "pp": 4}, 1e6, search={"max_tiers": 2}), CLOS)
    fastest = design(problem({"dp": 4, "pp": 4}, 0.0, search={"max_tiers": 2}), CLOS)
    assert free.training is not None
    assert dear.training is not None
    assert (free.cost_cents, free.training.lost_cents) == (cheapest.cost_cents, 0)
    assert (dear.cost_cents, dear.training.step_overhead) == (fastest.cost_cents, 0)
    assert free.cost_cents < dear.cost_cents


def test_a_dearer_gpu_never_buys_a_cheaper_network_nor_a_slower_step():
    """To within the gap of 1 % of each total: the network grows, the overhead falls."""
    found = [costed({"tp": 4, "dp": 4}, SWITCHES, gpu_usd, gap=1e-4) for gpu_usd in (0, 100, 1000, 10_000, 10**6)]
    assert [item.cost_cents for item in found] == sorted(item.cost_cents for item in found)
    overheads = [item.training.step_overhead for item in found if item.training is not None]
    assert overheads == sorted(overheads, reverse=True)


@st.composite
def staircases(draw: st.DrawFn) -> list[tuple[float, int]]:
    """Overheads with falling costs, the last of them the loosest; costs in cents."""
    overheads = sorted(draw(st.lists(st.floats(0, 60), min_size=1, max_size=12, unique=True)))
    costs = sorted(
        draw(st.lists(st.integers(1, 10**7), min_size=len(overheads), max_size=len(overheads))), reverse=True
    )
    return list(zip(overheads, costs, strict=True))


@settings(derandomize=True, max_examples=300, deadline=None, database=None)
@given(staircases(), st.floats(0, 1e6), st.sampled_from([0.001, 0.01, 0.1]), st.integers(0, 3))
def test_the_branching_finds_the_best_step_of_a_staircase(steps, lost, gap, most):
    """Bound <= least total <= total, the gap is closed unless stopped, and a stopped bound still holds."""
    least = min(cost + overhead * lost for overhead, cost in steps)
    asked = []

    def within(budget: float) -> Offer:
        asked.append(budget)
        fitting = [(overhead, cost) for overhead, cost in steps if overhead <= budget]
        if not fitting:
            return Offer(None, 0.0, math.inf, math.inf)
        overhead, cost = fitting[-1]
        return Offer(SHAPE, overhead, cost, cost)

    trade = best_trade(within, math.inf, lost, gap)
    assert trade is not None
    assert trade.bound_cents <= least * (1 + 1e-9)
    assert least <= trade.total_cents * (1 + 1e-9)
    assert trade.total_cents * (1 - gap) <= trade.bound_cents * (1 + 1e-9)
    assert asked[1:] == sorted(asked[1:], reverse=True)
    asked.clear()
    stopped = best_trade(within, math.inf, lost, gap, lambda: len(asked) > most)
    assert stopped is not None
    assert stopped.bound_cents <= least * (1 + 1e-9) <= stopped.total_cents * (1 + 2e-9)


def test_nothing_within_the_loosest_budget_is_no_trade():
    assert best_trade(lambda _: Offer(None, 0.0, math.inf, math.inf), math.inf, 1.0, 0.01) is None


def test_a_search_that_a_limit_ends_leaves_its_bound():
    """The first network is found with a bound below its cost: what is left open stays in the bound."""
    shape: ClosShape = SHAPE
    trade = best_trade(lambda _: Offer(shape, 0.5, 1000, 700), math.inf, 100.0, 0.01, lambda: True)
    assert trade is not None
    assert (trade.total_cents, trade.bound_cents) == (1050, 700)


@cache
def _certified() -> Design:
    return costed({"dp": 4, "pp": 4}, SWITCHES, 1000, tiers=3, certify=True)


def test_the_file_holds_and_its_total_is_checked():
    """Lost time, total, overhead, price and bound are each recounted from the file."""
    result = _certified()
    document: dict[str, Any] = json.loads(json.dumps(result.to_document()))

    def told(**changes: object) -> list[str]:
        edited = {**document, "training": {**document["training"], **changes}}
        findings = verify_file(design_from_document(with_digest(edited))).findings
        return [f"{finding.kind}: {finding.message}" for finding in findings]

    said = document["training"]
    assert told() == []
    assert said["step_overhead"] > 0
    assert said["total_usd"] == pytest.approx(document["cost_usd"] + said["lost_usd"])
    assert said["lost_usd"] == pytest.approx(said["step_overhead"] * 16 * 1000, abs=0.005)
    assert any("step_overhead: the file says" in text for text in told(step_overhead=0.5 * said["step_overhead"]))
    assert any("total_usd: the file says" in text for text in told(total_usd=said["total_usd"] - 1))
    assert any("lost_usd: the file says" in text for text in told(lost_usd=said["lost_usd"] - 1))
    assert any("gpu_usd: 900 is not the price" in text for text in told(gpu_usd=900))
    assert any("is above the total" in text for text in told(lower_bound_usd=said["total_usd"] + 1, gap=0))
    assert any("training: gap" in text for text in told(gap=0.5))


def test_the_report_says_network_lost_time_total_and_gap():
    """A price without a source is marked."""
    result = _certified()
    assert result.training is not None
    words = dict(summary(result))["training"]
    assert "of 16 GPUs at $1,000*; no Clos network comes to less than $" in words
    assert f"gap {100 * result.training.gap:.2f} %" in words


def test_the_page_says_lost_time_and_total():
    document = _certified().to_document()
    page = report_page(design_from_document(document))
    assert money(cents(document["training"]["lost_usd"])) + ", a step takes " in page
    assert money(cents(document["training"]["total_usd"])) in page


def test_a_gpu_without_a_price_is_refused():
    unpriced = parts()
    del unpriced["gpus"]["gpu"]["price"]
    with pytest.raises(InstanceError, match=r"training\.gpu_usd: found nothing; allowed: the price of one GPU"):
        instance_of(unpriced, {"gpus": 4}, [one_job({"dp": 4})], objective="cost_of_training")


@pytest.mark.parametrize("workload", [[{"demand": "ring"}], [one_job({"dp": 4}), one_job({"dp": 4}, name="again")]])
def test_only_one_job_with_a_model_has_a_cost_of_training(workload):
    with pytest.raises(InstanceError, match="objective: found cost_of_training; allowed: a workload of one job"):
        instance_of(parts(), {"gpus": 4}, workload, objective="cost_of_training")


def test_another_family_may_come_to_less_than_the_best_clos():
    """Leaves joined directly need no spine: the total is below the bound over Clos networks, and the file holds."""
    degrees = {"dp": 4, "pp": 4}
    clos = costed(degrees, SWITCHES, 100).training
    result = costed(degrees, SWITCHES, 100, families=("clos", "mesh"), certify=True)
    found = result.training
    assert clos is not None
    assert found is not None
    assert result.family == "mesh"
    assert found.bound_cents == clos.bound_cents
    assert (found.total_cents < clos.bound_cents, found.gap) == (True, 0)
    assert "gap" not in dict(summary(result))["training"]
    assert not verify_file(design_from_document(result.to_document())).findings


def test_the_catalogs_price_of_a_gpu_is_taken_with_its_mark():
    """Without one in the instance; the catalog of these tests has GPUs for nothing, assumed."""
    instance = instance_of(parts(), {"gpus": 4}, [one_job({"dp": 4})], objective="cost_of_training")
    training = design(instance, CLOS).training
    assert training is not None
    assert (training.gpu_cents, training.gpu_assumed) == (0, True)
