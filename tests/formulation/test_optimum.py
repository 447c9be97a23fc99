"""The program's optimum against enumeration of the whole family, and against known optima of hypothetical switches."""

import json
import math
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from designer.benchmark.suites import instance_files
from designer.comparison import best_templates
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.shape import ClosShape
from designer.formulation.clos_search import ClosSearch, Limits, Proposal
from designer.instance.instance import Instance
from designer.instance.load import load_instance
from designer.workload.phases import derive_traffic
from tests.reference.brute_force import BruteForce
from tests.strategies import (
    BREAKOUT,
    COPPER,
    HALVES,
    LINK_AT_800,
    OPTICS,
    TWIN_BREAKOUT,
    Document,
    catalog,
    instance_of,
    nic,
    problems,
    switch,
)

INSTANCES = Path(__file__).parents[2] / "instances"


def propose(instance: Instance, start: ClosShape | None = None) -> Proposal:
    pricing = Pricing(instance.objective, instance.energy)
    search = ClosSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    return search.run(Limits(), start)


def check(instance: Instance) -> BruteForce:
    """Program and enumeration agree on cost and on whether there is any network."""
    force = BruteForce(instance, derive_traffic(instance))
    optimum = force.cheapest_cents()
    proposal = propose(instance)
    assert proposal.cost_cents == optimum, force.best_words
    assert proposal.bound_cents == optimum
    assert proposal.termination == ("infeasible" if optimum is None else "optimal")
    return force


@settings(derandomize=True, max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(problems(most_per_rail=18))
def test_random_problems(problem):
    """On random small problems the program finds what enumeration finds, or as it does, that there is none."""
    check(instance_of(**problem))


@pytest.mark.parametrize("path", instance_files(INSTANCES / "small"), ids=lambda path: path.stem)
def test_the_small_instances(path):
    """On each instance of `small` the Clos optimum is that of enumeration; the record, of any family, is no dearer."""
    optimum = check(load_instance(path)).cheapest_cents()
    record = json.loads((path.parent / "best_known.json").read_text(encoding="utf-8"))[path.stem]
    assert record["status"] == "optimal"
    assert optimum is not None
    assert 100 * record["cost_usd"] <= optimum + 0.5


SMALL = {"s4": switch(4, 500), "s6": switch(6, 700), "s8": switch(8, 1000)}
SPLIT = {"s4": switch(4, 500, BREAKOUT), "s6": switch(6, 700, BREAKOUT, power_w=400.0), "s8": switch(8, 1000, HALVES)}
FOURS = {"s4": switch(4, 500)}
EIGHTS = {"s8": switch(8, 1000)}
HALF_NIC = nic(((1, 200),))
TWO_PLANES = nic(((1, 400), (2, 200)))
SWITCH_LOST = {"failure": "switch", "throughput": 0.5}
LINK_LOST = {"failure": "link", "throughput": 0.75}

# name: (tiers of the optimum or None, arguments of instance_of)
EXPLICIT: dict[str, tuple[int | None, Document]] = {
    "one switch": (1, {"catalog_document": catalog(SMALL), "cluster": {"gpus": 8}}),
    "two tiers, any": (2, {"catalog_document": catalog(SMALL), "cluster": {"gpus": 12}}),
    "two tiers, uneven": (
        2,
        {"catalog_document": catalog(EIGHTS), "cluster": {"gpus": 20}, "requirements": {"symmetric_uplinks": False}},
    ),
    "uneven and ecmp": (
        2,
        {
            "catalog_document": catalog(EIGHTS),
            "cluster": {"gpus": 10},
            "requirements": {"symmetric_uplinks": False, "routing": "ecmp", "survive": [LINK_LOST]},
        },
    ),
    "more leaves than spine ports": (
        None,
        {
            "catalog_document": catalog(EIGHTS),
            "cluster": {"gpus": 36},
            "requirements": {"symmetric_uplinks": False},
            "search": {"max_tiers": 2},
        },
    ),
    "three tiers, any": (3, {"catalog_document": catalog(FOURS), "cluster": {"gpus": 16}}),
    "three tiers, last pod short": (3, {"catalog_document": catalog(FOURS), "cluster": {"gpus": 14}}),
    "three tiers, split": (
        3,
        {
            "catalog_document": catalog({"s4": switch(4, 500, BREAKOUT)}, COPPER, HALF_NIC),
            "cluster": {"gpus": 36},
        },
    ),
    "three tiers, lost spine": (
        3,
        {
            "catalog_document": catalog({"s6": switch(6, 700)}),
            "cluster": {"gpus": 24, "hb_domain": 2, "rails": 1},
            "workload": [{"demand": "ring", "group": 12}],
            "requirements": {"survive": [{"failure": "switch", "throughput": 0.5}]},
        },
    ),
    "three tiers, ecmp": (
        3,
        {
            "catalog_document": catalog({"s4": switch(4, 700)}),
            "cluster": {"gpus": 15},
            "workload": [{"demand": "ring"}],
            "requirements": {"routing": "ecmp", "survive": [LINK_LOST]},
        },
    ),
    "three tiers, two links lost, ecmp": (
        3,
        {
            "catalog_document": catalog({"s6": switch(6, 700)}),
            "cluster": {"gpus": 22},
            "workload": [{"demand": "ring"}],
            "requirements": {"routing": "ecmp", "survive": [LINK_LOST | {"count": 2}]},
        },
    ),
    "too large": (None, {"catalog_document": catalog(FOURS), "cluster": {"gpus": 24}}),
    "ring": (2, {"catalog_document": catalog(SMALL), "cluster": {"gpus": 20}, "workload": [{"demand": "ring"}]}),
    "ring of groups": (
        2,
        {"catalog_document": catalog(SMALL), "cluster": {"gpus": 20}, "workload": [{"demand": "ring", "group": 5}]},
    ),
    "all-to-all groups": (
        2,
        {
            "catalog_document": catalog(SPLIT, OPTICS),
            "cluster": {"gpus": 18},
            "workload": [{"demand": "all-to-all", "group": 6}],
        },
    ),
    "halving-doubling": (
        2,
        {
            "catalog_document": catalog(SMALL),
            "cluster": {"gpus": 16},
            "workload": [{"demand": "halving-doubling", "group": 16}],
        },
    ),
    "shift": (
        2,
        {"catalog_document": catalog(SMALL), "cluster": {"gpus": 21}, "workload": [{"demand": "shift", "by": 3}]},
    ),
    "rail-only": (2, {"catalog_document": catalog(SMALL), "cluster": {"gpus": 48, "hb_domain": 4}}),
    "rails share switches": (1, {"catalog_document": catalog(SMALL), "cluster": {"gpus": 12, "hb_domain": 4}}),
    "three rails to a switch of four": (
        1,
        {"catalog_document": catalog(EIGHTS), "cluster": {"gpus": 8, "hb_domain": 4}},
    ),
    "rails may not share": (
        1,
        {
            "catalog_document": catalog(EIGHTS),
            "cluster": {"gpus": 12, "hb_domain": 4},
            "search": {"leaf_sharing": "none"},
        },
    ),
    "rails may not share, more management ports than endpoints": (
        1,
        {
            "catalog_document": catalog(EIGHTS),
            "cluster": {"gpus": 8, "hb_domain": 8, "management_ports": 2},
            "search": {"leaf_sharing": "none"},
        },
    ),
    "management ports beside whole rails": (
        2,
        {
            "catalog_document": catalog({"leaf": switch(12, 1000), "spine": switch(8, 10)}),
            "cluster": {"gpus": 16, "hb_domain": 4, "management_ports": 1},
            "workload": [{"demand": "any", "group": 4, "across": "rail"}, {"demand": "ring", "across": "cluster"}],
        },
    ),
    "whole rails side by side under spines": (
        2,
        {
            "catalog_document": catalog({"leaf": switch(12, 1000), "spine": switch(8, 10)}),
            "cluster": {"gpus": 16, "hb_domain": 4, "management_ports": 1},
            "search": {"leaf": {"down": 9, "up": 1}},
        },
    ),
    "mixed leaves": (
        2,
        {
            "catalog_document": catalog(SMALL),
            "cluster": {"gpus": 24, "hb_domain": 2},
            "workload": [{"demand": "all-to-all", "group": 3}],
            "search": {"leaf_sharing": "any"},
        },
    ),
    "from rail to rail": (
        2,
        {
            "catalog_document": catalog(SMALL),
            "cluster": {"gpus": 12, "hb_domain": 2},
            "workload": [{"demand": "any", "group": 6, "across": "cluster"}],
        },
    ),
    "two NICs of a domain on a rail": (
        2,
        {
            "catalog_document": catalog(SMALL),
            "cluster": {"gpus": 24, "hb_domain": 4, "rails": 2},
            "requirements": {"survive": [{"failure": "nic", "throughput": 0.5}]},
        },
    ),
    "one NIC lost, its traffic on another": (
        2,
        {
            "catalog_document": catalog(EIGHTS),
            "cluster": {"gpus": 20, "hb_domain": 4, "rails": 1},
            "requirements": {"throughput": {"any": 0.5}, "survive": [{"failure": "nic", "throughput": 0.75}]},
        },
    ),
    "leaves of one port": (
        2,
        {
            "catalog_document": catalog({"s2": switch(2, 100), "s8": switch(8, 9000)}),
            "cluster": {"gpus": 8, "hb_domain": 4, "rails": 1},
            "workload": [{"demand": "ring"}],
            "requirements": {"survive": [SWITCH_LOST]},
        },
    ),
    "planes": (1, {"catalog_document": catalog(SPLIT, OPTICS, TWO_PLANES), "cluster": {"gpus": 12}}),
    "planes, a switch lost": (
        2,
        {
            "catalog_document": catalog(SPLIT, COPPER, TWO_PLANES),
            "cluster": {"gpus": 22},
            "requirements": {"survive": [SWITCH_LOST]},
        },
    ),
    "sockets of their own": (
        2,
        {
            "catalog_document": catalog(SPLIT, COPPER, nic(((2, 200),), cages_per_nic=2)),
            "cluster": {"gpus": 20},
        },
    ),
    "twin sockets": (
        2,
        {
            "catalog_document": catalog(
                {"s4": switch(4, 800, TWIN_BREAKOUT), "s6": switch(6, 900, TWIN_BREAKOUT)}, OPTICS, nic(nics_per_cage=2)
            ),
            "cluster": {"gpus": 20, "hb_domain": 2, "rails": 1, "management_ports": 1},
        },
    ),
    "splitters": (
        2,
        {
            "catalog_document": catalog(
                {"s5": switch(5, 600, BREAKOUT), "s8": switch(8, 950, HALVES)}, COPPER, HALF_NIC
            ),
            "cluster": {"gpus": 22},
            "requirements": {"symmetric_uplinks": False},
        },
    ),
    "tco": (
        2,
        {
            "catalog_document": catalog(SPLIT, COPPER, HALF_NIC),
            "cluster": {"gpus": 20},
            "objective": "tco",
            "energy": {"years": 6, "usd_per_kwh": 0.31, "pue": 1.5},
        },
    ),
    "two switches lost": (
        3,
        {
            "catalog_document": catalog({"s8": switch(8, 900), "s4": switch(4, 300)}),
            "cluster": {"gpus": 16, "hb_domain": 4, "rails": 1},
            "workload": [{"demand": "all-to-all"}],
            "requirements": {"detour": "spread", "survive": [{"failure": "switch", "count": 2, "throughput": 0.25}]},
        },
    ),
    "floors": (
        2,
        {
            "catalog_document": catalog(SMALL),
            "cluster": {"gpus": 24},
            "workload": [{"demand": "any"}, {"demand": "all-to-all", "group": 4}],
            "requirements": {"throughput": {"any": 0.3}},
        },
    ),
    "two jobs": (
        2,
        {
            "catalog_document": catalog(SMALL),
            "cluster": {"gpus": 21},
            "workload": [
                {"demand": "any", "gpus": 9, "name": "first"},
                {"demand": "ring", "first_gpu": 9, "gpus": 12, "name": "second"},
            ],
        },
    ),
    "fixed leaf": (
        2,
        {
            "catalog_document": catalog(SMALL),
            "cluster": {"gpus": 18},
            "search": {"leaf": {"down": 3, "up": 3}},
        },
    ),
    "max ports below the cages": (
        2,
        {
            "catalog_document": catalog({"s6": switch(6, 700, BREAKOUT, max_ports=9)}, OPTICS, HALF_NIC),
            "cluster": {"gpus": 20},
        },
    ),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_explicit_problems(name):
    """Problems that each need some part of the family; the optimum has the tiers that make the part matter."""
    tiers, problem = EXPLICIT[name]
    force = check(instance_of(**problem))
    found = {"one": 1, "two": 2, "thr": 3}.get(force.best_words[:3])
    assert found == tiers, force.best_words


# ---- the issue's table ----

PRICES = {32: 18_000, 36: 19_000, 40: 20_000, 64: 30_000, 128: 70_000, 144: 82_000}
HYPOTHETICAL = catalog({f"x{radix}": switch(radix, usd) for radix, usd in PRICES.items()}, LINK_AT_800)


def hypothetical(endpoints: int) -> Instance:
    return instance_of(HYPOTHETICAL, {"gpus": endpoints}, search={"planes": [1]})


def propose_from_templates(instance: Instance) -> Proposal:
    """As `designer.design` does it: started from the cheapest template."""
    templates = best_templates(instance, derive_traffic(instance), Pricing(instance.objective, instance.energy))
    start = min((item for item in templates if item.meets), key=lambda item: item.cost_cents)
    assert isinstance(start.shape, ClosShape)
    return propose(instance, start.shape)


@pytest.mark.parametrize(
    ("endpoints", "at_most_usd"),
    [(700, 2_200_000), (1056, 3_287_600), (2304, 7_158_400), (4608, 14_316_800), (16_384, 77_721_600)],
)
def test_known_costs(endpoints, at_most_usd):
    """Non-blocking any-to-any networks of hypothetical switches are proven optimal at no more than the known cost."""
    proposal = propose_from_templates(hypothetical(endpoints))
    assert proposal.termination == "optimal"
    assert proposal.bound_cents == proposal.cost_cents
    assert proposal.cost_cents <= at_most_usd * 100


def two_tier_usd(endpoints: int) -> float:
    """The cheapest network of one or two tiers: every leaf and spine model, ports down, and divisor of the uplinks."""
    best = min((usd + 800 * endpoints for radix, usd in PRICES.items() if radix >= endpoints), default=math.inf)
    for (radix, leaf_usd), (spine_radix, spine_usd) in product(PRICES.items(), PRICES.items()):
        for down in range(1, radix):
            leaves = -(-endpoints // down)
            least = min(down, endpoints - down) if leaves > 1 else 1
            for uplinks in range(max(1, least), radix - down + 1):
                for spines in range(1, uplinks + 1):
                    if uplinks % spines == 0 and leaves * uplinks <= spines * spine_radix:
                        usd = leaves * leaf_usd + spines * spine_usd + 800 * (endpoints + leaves * uplinks)
                        best = min(best, usd)
                        break
    return best


@pytest.mark.parametrize("endpoints", [700, 1056])
def test_two_tiers_in_closed_form(endpoints):
    """The two-tier optimum is that of plain loops over models, ports and spines."""
    proposal = propose(hypothetical(endpoints))
    assert proposal.cost_cents == 100 * two_tier_usd(endpoints)


def test_known_cost_of_the_largest():
    """The same for 65,536 endpoints, where only three tiers reach."""
    proposal = propose_from_templates(hypothetical(65_536))
    assert proposal.termination == "optimal"
    assert proposal.cost_cents <= 310_886_400 * 100
