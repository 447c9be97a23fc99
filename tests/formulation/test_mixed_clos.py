"""Networks of several kinds of servers against all of them, one by one, and against what else is known of them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer import design
from designer.candidates import MIXED, PLACEMENT, mixed_candidate
from designer.certify.failures import FailureStudy
from designer.certify.throughput import TOGETHER, Judge
from designer.costing.pricing import MediaFinder, Pricing
from designer.errors import InfeasibleError
from designer.fabric.fabric import Fabric
from designer.formulation.bounds import any_network_bound
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.mixed_clos import JoinedSearch
from designer.formulation.mixed_cuts import KindCuts, line_gbps
from designer.formulation.mixed_search import MixedProposal, MixedSearch, cheapest_parting, joined_kinds
from designer.formulation.step_budget import StepBudget
from designer.instance.instance import Instance
from designer.search import Options
from designer.workload.cuts import Layout
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Traffic
from tests.reference.explicit import step_rates
from tests.reference.flow_lp import graph_of, line_rate_gbps, rates_of, throughput
from tests.reference.mixed_clos import cheapest_cents
from tests.strategies import BREAKOUT, COPPER, HALVES, OPTICS, Document, catalog, gpu, instance_of, nic, switch

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None)
REGULAR = dict.fromkeys(("gpu", "nic", "hb_domain"))
FAST, SLOW = {"fast": nic(), "slow": nic(((1, 200),))}, 200


def mixed(
    counts: tuple[int, ...],
    switches: Document,
    workload: list[Document],
    *,
    nics: tuple[str, ...] = ("fast", "slow"),
    gpus: int = 1,
    media: Document = OPTICS,
    memory: int | None = None,
    **sections: Any,
) -> Instance:
    """Kinds of servers of `gpus` GPUs each, NICs of 400 and 200 Gb/s; steps have a time with a rate of the `memory`."""
    parts = catalog(switches, media)
    parts["nics"] = FAST
    parts["gpus"] = {"gpu": gpu() | {"gpus_per_server": gpus, "hb_domain": gpus, "memory_bytes_per_s": memory}}
    kinds = [{"count": count, "gpu": "gpu", "nic": name} for count, name in zip(counts, nics, strict=True)]
    return instance_of(parts, REGULAR | {"servers": kinds}, workload, **sections)


def proposed(instance: Instance) -> MixedProposal:
    pricing = Pricing(instance.objective, instance.energy)
    search = MixedSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    return search.run(Limits())


def cost(instance: Instance) -> float:
    """The optimum, infinite where there is none."""
    found = proposed(instance)
    assert found.termination in ("optimal", "infeasible")
    return math.inf if found.network is None else found.network.cents


EVEN = [{"demand": "all-to-all"}]
RING = [{"demand": "ring"}]
HALVING = [{"demand": "halving-doubling"}]
TWO = {"s4": switch(4, 500, BREAKOUT), "s6": switch(6, 900)}
BOTH = {"s4": switch(4, 500, BREAKOUT)}
LINK = {"survive": [{"failure": "link", "throughput": 0.75}]}

CASES: dict[str, Instance] = {
    "all-to-all": mixed((4, 4), TWO, EVEN),
    "last leaves short": mixed((3, 4), TWO, EVEN),
    "one switch": mixed((2, 4), TWO, EVEN),
    "ring": mixed((4, 6), BOTH, RING),
    "halving": mixed((4, 4), BOTH, HALVING),
    "slow ones alone talk far": mixed(
        (4, 6), BOTH, [*RING, {"demand": "shift", "by": 3, "first_gpu": 4, "name": "far"}]
    ),
    "fast ones at their own rate": mixed((6, 2), BOTH, [{"demand": "shift", "by": 3, "gpus": 6}, *RING]),
    "splitters": mixed((4, 4), {"s4": switch(4, 500, BREAKOUT)}, EVEN, media=COPPER),
    "low floor": mixed((4, 4), BOTH, EVEN, requirements={"throughput": {"all-to-all": 0.4}}),
    "two rails": mixed((3, 3), BOTH, RING, gpus=2),
    "two rails that meet": mixed((2, 3), BOTH, [{"demand": "ring", "across": "cluster"}], gpus=2),
    "two rails and both ways": mixed((2, 2), BOTH, [*RING, {"demand": "all-to-all", "across": "cluster"}], gpus=2),
    "two rails kept apart": mixed((3, 3), BOTH, EVEN, gpus=2, search={"leaf_sharing": "none"}),
    "two rails mixed": mixed((3, 3), BOTH, EVEN, gpus=2, search={"leaf_sharing": "any"}),
    "eight ports": mixed((6, 6), {"s8": switch(8, 1000, BREAKOUT)}, EVEN),
    "eight ports, a link lost": mixed((6, 6), {"s8": switch(8, 1000, BREAKOUT)}, EVEN, requirements=LINK),
    "three kinds": mixed((2, 2, 2), BOTH, RING, nics=("fast", "slow", "fast")),
    "any": mixed((2, 3), {"s3": switch(3, 400, BREAKOUT)}, [{"demand": "any"}]),
    "a link lost": mixed((4, 4), BOTH, RING, requirements=LINK),
    "energy": mixed((4, 4), {"s4": switch(4, 500, BREAKOUT, power_w=300.0)}, EVEN, objective="tco"),
    "few ports": mixed((3, 4), {"s4": switch(4, 500, BREAKOUT, max_ports=6)}, RING),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cheapest_is_that_of_enumeration(name: str) -> None:
    """Leaves, modes, cables, uplinks and spines one by one, judged by plain linear programs from the cheapest on."""
    instance = CASES[name]
    best = cheapest_cents(instance, derive_traffic(instance))
    found = proposed(instance)
    assert found.termination == "optimal"
    assert found.network is not None
    assert found.network.cents == found.bound_cents == best


@st.composite
def problems(draw: st.DrawFn) -> Instance:
    """Two kinds of up to six GPUs on a rail, on one model of few ports."""
    cages, modes = draw(st.sampled_from([(4, BREAKOUT), (5, BREAKOUT), (6, HALVES), (3, BREAKOUT)]))
    nics = draw(st.sampled_from([("fast", "slow"), ("slow", "fast")])) if modes == BREAKOUT else ("slow", "slow")
    counts = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    pattern = draw(st.sampled_from(["all-to-all", "ring", "shift"]))
    demand: Document = {"demand": pattern} | ({"by": draw(st.integers(2, 3))} if pattern == "shift" else {})
    alone = {"demand": "ring", "name": "alone", "gpus": counts[0]}
    requirements = {
        "throughput": {pattern: draw(st.sampled_from([1.0, 0.5])), "alone": 0.5},
        "survive": draw(st.sampled_from([[], LINK["survive"]])),
    }
    most = draw(st.sampled_from([None, None, cages * modes[-1][0] - 1]))
    switches = {"s": switch(cages, 100 * cages, modes, max_ports=most)}
    workload = [demand, alone] if draw(st.booleans()) else [demand]
    names = {item.get("name", item["demand"]) for item in workload}
    requirements["throughput"] = {k: v for k, v in requirements["throughput"].items() if k in names}
    media = draw(st.sampled_from([OPTICS, COPPER]))
    return mixed(counts, switches, workload, nics=nics, media=media, requirements=requirements)


@settings(SETTINGS, max_examples=30)
@given(problems())
def test_random_clusters_have_the_optimum_of_enumeration(instance: Instance) -> None:
    """The least of all networks lies between bound and cost, which are one but for bundles that differ by kind."""
    best = cheapest_cents(instance, derive_traffic(instance))
    found = proposed(instance)
    if found.network is None:
        assert (best, found.termination) == (None, "infeasible")
        return
    assert best is not None
    assert found.bound_cents <= best <= found.network.cents
    if not instance.requirements.survive:
        assert found.bound_cents == found.network.cents


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Instance, bool, int]:
    """A cluster of three kinds in domains of two, a demand on some of it, and an order of the endpoints on leaves."""
    counts = tuple(draw(st.lists(st.integers(1, 6), min_size=3, max_size=3)))
    total = sum(counts)
    across = draw(st.sampled_from(["rail", "cluster"]))
    unit = 2 if across == "rail" else 1
    members = [draw(st.integers(2, total)) for _ in range(2)]
    workload: list[Document] = []
    for number, count in enumerate(members):
        pattern = draw(st.sampled_from(["any", "all-to-all", "ring", "shift"]))
        gpus = 2 * count
        taking_part = gpus // unit
        sizes = [size for size in range(2, taking_part + 1) if taking_part % size == 0]
        item: Document = {"demand": pattern, "group": draw(st.sampled_from(sizes)), "across": across, "gpus": gpus}
        item |= {"first_gpu": 2 * draw(st.integers(0, total - count)), "name": f"job {number}"}
        workload.append(item | ({"by": 2} if pattern == "shift" else {}))
    nics = tuple(draw(st.sampled_from(["fast", "slow"])) for _ in counts)
    floors = {"job 0": draw(st.sampled_from([1.0, 0.5]))}
    instance = mixed(counts, BOTH, workload, nics=nics, gpus=2, requirements={"throughput": floors})
    return instance, draw(st.booleans()), draw(st.integers(1, 6))


@settings(SETTINGS, max_examples=150)
@given(cuts())
def test_what_leaves_send_is_what_their_endpoints_send(case: tuple[Instance, bool, int]) -> None:
    """Cut functions of each kind against all flows, GPU by GPU; jobs with GPUs in common take turns."""
    instance, in_order, down = case
    cluster, traffic = instance.cluster, derive_traffic(instance)
    for kind, gpus in enumerate(cluster.kind_ranges()):
        endpoint_gbps = cluster.kinds()[kind].nic.modes[0].gbps
        per_rail = len(gpus) // 2
        layout = Layout(mixed=in_order, rails=2, per_rail=per_rail)
        size = min(down, len(gpus)) if in_order or down < per_rail else per_rail * min(2, down // per_rail)
        place = {
            gpu: (gpu - gpus.start) // size if in_order else _aligned(gpu, gpus.start // 2, per_rail, size)
            for gpu in gpus
        }
        expected = 0.0
        for leaf in set(place.values()):
            sets = [
                max(
                    phase.floor * line_gbps(cluster, phase) * step_rates(traffic, phase, step, place)[leaf]
                    for phase in phases
                    for step in phase.steps
                )
                for phases in traffic.concurrent()
            ]
            expected = max(expected, sum(sets))
        found = KindCuts(cluster, traffic, layout, kind, endpoint_gbps).leaf(size) * endpoint_gbps
        assert found == pytest.approx(expected)


def _aligned(gpu: int, first: int, per_rail: int, down: int) -> int:
    rail, position = gpu % 2, gpu // 2 - first
    if down >= per_rail:
        return rail // (down // per_rail)
    return rail * 100 + position // down


HOMOGENEOUS = [
    (EVEN, {}),
    (RING, {}),
    ([{"demand": "any"}], {}),
    (EVEN, {"throughput": {"all-to-all": 0.5}}),
    (EVEN, {"survive": [{"failure": "link", "throughput": 0.75}]}),
    (EVEN, {"survive": [{"failure": "link", "throughput": 0.5}], "routing": "ecmp"}),
    (EVEN, {"survive": [{"failure": "switch", "throughput": 0.5}]}),
    ([{"demand": "ring", "across": "cluster"}], {}),
]


@pytest.mark.parametrize(("workload", "requirements"), HOMOGENEOUS)
def test_two_kinds_of_the_same_servers_have_the_clos_of_one(workload: list[Document], requirements: Document) -> None:
    """32 servers of 2 GPUs are as many as 16 and 16 of them, where no leaf has both; networks of two tiers."""
    switches = {"s8": switch(8, 1000), "s16": switch(16, 2500)}
    search = {"max_tiers": 2, "leaf": {"down": 8}}
    two = mixed((16, 16), switches, workload, nics=("fast", "fast"), gpus=2, requirements=requirements, search=search)
    parts = catalog(switches, OPTICS)
    cluster = {"gpus": 64, "hb_domain": 2}
    one = instance_of(parts, cluster, workload, requirements=requirements, search=search)
    pricing = Pricing(one.objective, one.energy)
    clos = ClosSearch(one, derive_traffic(one), pricing, MediaFinder(one.catalog)).run(Limits())
    assert clos.termination == "optimal"
    assert clos.shape is not None
    assert clos.shape.spines is not None
    assert cost(two) == clos.cost_cents


def test_kinds_that_no_phase_joins_cost_what_each_costs_alone() -> None:
    """The sum of two Clos networks where no spine has room for both; their phases run at once."""
    switches = {"s4": switch(4, 500, BREAKOUT)}
    fast, slow = [{"demand": "all-to-all", "gpus": 8}], [{"demand": "all-to-all", "first_gpu": 8, "name": "slow"}]
    whole = mixed((8, 8), switches, [*fast, *slow])
    assert joined_kinds(whole.cluster, derive_traffic(whole)) == [(0,), (1,)]
    parts, costs = catalog(switches, OPTICS), []
    for name in ("fast", "slow"):
        parts["nics"] = {"nic": FAST[name]}
        one = instance_of(parts, {"gpus": 8}, EVEN)
        pricing = Pricing(one.objective, one.energy)
        found = ClosSearch(one, derive_traffic(one), pricing, MediaFinder(one.catalog)).run(Limits())
        costs.append(found.cost_cents or 0)
    proposal = proposed(whole)
    assert proposal.network is not None
    assert (len(proposal.network.networks), proposal.network.cents) == (2, sum(costs))
    assert proposal.network.cents < cost(mixed((8, 8), switches, EVEN))


def test_the_cheapest_way_to_part_three_sets() -> None:
    """One alone and two together; all together where no two may be; nothing where some set is in none."""
    alone, pairs = {(0,): 5.0, (1,): 5.0, (2,): 6.0}, {(0, 1): 8.0, (1, 2): 7.0, (0, 2): 20.0}
    assert cheapest_parting((0, 1, 2), alone | pairs | {(0, 1, 2): 14.0}) == (12.0, [(0,), (1, 2)])
    assert cheapest_parting((0, 1, 2), alone | {(0, 1, 2): 14.0}) == (14.0, [(0, 1, 2)])
    assert cheapest_parting((0, 1, 2), pairs)[0] == math.inf


def test_a_phase_joins_kinds_directly_or_through_others() -> None:
    """Of four kinds the first two share a job; the third works alone, so does the fourth, which has none."""
    workload = [{"demand": "ring", "gpus": 3}, {"demand": "ring", "first_gpu": 3, "gpus": 3, "name": "three"}]
    instance = mixed((2, 2, 2, 2), BOTH, workload, nics=("fast", "slow", "fast", "slow"))
    assert joined_kinds(instance.cluster, derive_traffic(instance)) == [(0, 1, 2), (3,)]


@pytest.mark.parametrize(
    "name", ["all-to-all", "ring", "halving", "fast ones at their own rate", "two rails that meet"]
)
def test_the_certificate_is_that_of_a_plain_program(name: str) -> None:
    """Every phase of a design, and nothing short of its floor, by one linear program over all GPUs."""
    result = design(CASES[name], Options(families=(MIXED,)))
    assert result.certificate is not None
    assert result.certificate.met
    graph = graph_of(result.fabric)
    for phase, found in zip(result.traffic.network_phases, result.certificate.phases, strict=False):
        (step,) = phase.steps[:1] if len(phase.steps) == 1 else (None,)
        if step is None:
            continue
        rates = rates_of(result.traffic, phase, step, line_rate_gbps(result.fabric, phase))
        expected = min(1.0, throughput(graph, rates))
        assert found.interval.lower == pytest.approx(expected, abs=1e-6)
        assert found.interval.upper == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["all-to-all", "one switch", "ring", "low floor", "a link lost"])
def test_no_mixed_network_is_cheaper_than_the_best_link_placement(name: str) -> None:
    """Link placements are more than these; with both searched the cost is that of placement, where it is proven."""
    instance = CASES[name]
    alone = design(instance, Options(families=(MIXED,), certify=False))
    both = design(instance, Options(families=(MIXED, PLACEMENT), certify=False, time_limit_s=20.0))
    assert both.cost_cents <= alone.cost_cents == alone.bound_cents
    bound = any_network_bound(
        instance, derive_traffic(instance), Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    )
    assert (bound.cents or 0) <= both.bound_cents <= both.cost_cents


def test_a_cluster_that_no_spine_can_join_has_none() -> None:
    """Twelve GPUs of each kind at full rate take more links than spines of four ports have; at 30 % less will do."""
    assert math.isfinite(cost(mixed((12, 12), BOTH, EVEN, requirements={"throughput": {"all-to-all": 0.3}})))
    instance = mixed((12, 12), BOTH, EVEN)
    assert proposed(instance).termination == "infeasible"
    with pytest.raises(InfeasibleError, match=r"requirements\.throughput\.all-to-all: 1"):
        design(instance, Options(families=(MIXED,)))


def test_what_is_asked_after_a_failure_is_left() -> None:
    """A switch, a link or a NIC lost, one and two at once, adaptive and ECMP: the certificate agrees with the plan."""
    switches = {"s16": switch(16, 2500, BREAKOUT)}
    for routing in ("adaptive", "ecmp"):
        for survive in (
            [{"failure": "switch", "throughput": 0.5}],
            [{"failure": "link", "throughput": 0.75}],
            [{"failure": "nic", "throughput": 0.5}],
            [{"failure": "link", "count": 2, "throughput": 0.5}, {"failure": "switch", "throughput": 0.4}],
        ):
            requirements = {"survive": survive, "routing": routing}
            instance = mixed((12, 12), switches, [{"demand": "any"}], gpus=2, requirements=requirements)
            result = design(instance, Options(families=(MIXED,)))
            assert result.certificate is not None
            assert result.certificate.met, (survive, routing)
            assert result.counts["spine"]


def test_a_lost_link_may_ask_more_than_each_leaf_has_left() -> None:
    """Leaves with one link of 400 Gb/s to each of three spines, and leaves with two of 200.

    Each alone could do without one of its own. A leaf of the first kind that lost one has two spines left, where leaves
    of the other kind get 400 Gb/s less than any permutation may ask: the network gives way, and its cost is the bound.
    Of an all-to-all they get less from each other than that, as the certificate finds; then it stays.
    """
    switches = {"a": switch(8, 1000, BREAKOUT)}
    for workload, stays in (([{"demand": "any"}], False), (EVEN, True)):
        instance = mixed((12, 20), switches, workload, requirements=LINK_AT_ALL)
        traffic, pricing = derive_traffic(instance), Pricing(instance.objective, instance.energy)
        search = JoinedSearch(instance, traffic, pricing, MediaFinder(instance.catalog), lambda: False, stands)
        search.run()
        assert search.best is not None
        assert (search.open_cents >= search.best.cents) is stays
        assert stands(search.best.draw(), instance, traffic)


LINK_AT_ALL = {"survive": [{"failure": "link", "throughput": 1.0}]}


def stands(fabric: Fabric, instance: Instance, traffic: Traffic) -> bool:
    """Whether a network carries what is asked after every link that is lost, by the certificate."""
    study = FailureStudy(fabric, traffic, instance.requirements, instance.cluster.scale_up_gbps, Judge())
    links = [found for found in study.singles() if found.element.kind == "link"]
    return all(study.judged((found.element,), found.stands_for).met for found in links)


def test_ports_of_two_kinds_share_cages_of_a_spine() -> None:
    """Three links from each kind to the one spine: six ports of 200 Gb/s are three cages of two, not two and two."""
    instance = mixed((3, 3), {"s6": switch(6, 900, HALVES)}, RING, nics=("slow", "slow"), search={"leaf": {"up": 3}})
    found = proposed(instance)
    assert found.network is not None
    fabric = found.network.draw()
    spine = np.flatnonzero(fabric.nodes.kind == 3)
    rows = np.isin(fabric.links.b, spine)
    assert (len(spine), int(rows.sum())) == (1, 6)
    assert len(np.unique(fabric.links.b_cage[rows])) == 3


def test_a_candidate_tells_of_itself() -> None:
    """Words name the family and what restricts it; the bill from the drawing is the cost."""
    instance = CASES["two rails mixed"]
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    traffic = derive_traffic(instance)
    found = mixed_candidate(instance, traffic, pricing, media, Limits(), lambda *_: None)
    assert found.drawn is not None
    assert "rails mixed on leaves" in found.words
    assert found.drawn.bill.total_cents == sum(found.drawn.compared.parts.values()) == found.cost_cents


def test_a_step_of_a_job_on_both_takes_as_long_as_on_the_slower_ones() -> None:
    """A budget of step time for one job on GPUs of both kinds, whichever comes first: the design is within it."""
    model = {"layers": 8, "hidden": 8192, "heads": 64, "seq_length": 1024}
    job = {"model": model, "parallelism": {"tp": 2, "dp": 24}, "global_batch": 24}
    switches = {"s8": switch(8, 1000, BREAKOUT)}
    times: list[float] = []
    for nics in (("fast", "slow"), ("slow", "fast"), ("slow", "slow"), ("fast", "fast")):
        parts: Document = {"max_step_overhead": 0.3}
        instance = mixed((12, 12), switches, [job], nics=nics, gpus=2, requirements=parts, memory=3350 * 10**9)
        budget = StepBudget(instance, derive_traffic(instance), 0.3)
        times.append(budget.full_s)
        if nics == ("fast", "slow"):
            result = design(instance, Options(families=(MIXED,)))
            assert result.certificate is not None
            assert result.certificate.met
            carried = {phase.phase: phase.interval.lower for phase in result.certificate.phases}
            assert budget.overhead(carried) <= 0.3 + 1e-6
    assert times[0] == times[1] == times[2] > times[3]


@st.composite
def whole_problems(draw: st.DrawFn) -> Instance:
    """Two or three kinds on one or two switch models, jobs on parts of them, failures, every option of the search."""
    gpus = draw(st.sampled_from([1, 2, 2]))
    counts = tuple(draw(st.lists(st.integers(2, 8), min_size=2, max_size=3)))
    total = sum(counts)
    nics = tuple(draw(st.sampled_from(["fast", "slow"])) for _ in counts)
    switches = {
        name: switch(draw(st.sampled_from([4, 6, 8, 12])), usd, BREAKOUT, max_ports=draw(st.sampled_from([None, 9])))
        for name, usd in (("a", 900), ("b", 1500))
    }
    workload: list[Document] = []
    for number in range(draw(st.integers(1, 3))):
        across = draw(st.sampled_from(["rail", "rail", "cluster"]))
        first = draw(st.integers(0, total - 2))
        count = draw(st.integers(2, total - first))
        pattern = draw(st.sampled_from(["any", "all-to-all", "ring"]))
        part = {"first_gpu": first * gpus, "gpus": count * gpus, "name": f"job {number}"}
        workload.append({"demand": pattern, "across": across, **part})
    floors = {str(item["name"]): draw(st.sampled_from([1.0, 0.5, 0.25])) for item in workload}
    kinds = ["link", "link"] if gpus == 1 else ["link", "switch", "nic"]
    survive = [
        {"failure": draw(st.sampled_from(kinds)), "throughput": draw(st.sampled_from([0.25, 0.5, 0.75]))}
        for _ in range(draw(st.integers(0, 2)))
    ]
    requirements = {
        "throughput": floors,
        "survive": survive,
        "routing": draw(st.sampled_from(["adaptive", "ecmp"])),
        "detour": draw(st.sampled_from(["single-relay", "spread"])),
    }
    search = {
        "max_tiers": draw(st.sampled_from([1, 2, 3, 3])),
        "leaf_sharing": draw(st.sampled_from(["whole-rails", "any", "none"])),
    }
    media = draw(st.sampled_from([OPTICS, COPPER]))
    return mixed(
        counts, switches, workload, nics=nics, gpus=gpus, media=media, requirements=requirements, search=search
    )


@settings(SETTINGS, max_examples=60)
@given(whole_problems())
def test_what_is_proposed_holds(instance: Instance) -> None:
    """Structure, bill, phases, jobs at once and failures of whatever is proposed, by the certificate."""
    try:
        result = design(instance, Options(families=(MIXED,)))
    except InfeasibleError:
        return
    assert result.certificate is not None
    assert result.certificate.met, result.certificate
    assert result.bound_cents <= result.cost_cents


def test_tenants_have_their_rates_while_the_others_send() -> None:
    """Three tenants over two kinds, one of them on both: all at once, against one linear program of all their flows."""
    workload = [
        {"demand": "shift", "by": 2, "gpus": 4, "name": "one"},
        {"demand": "all-to-all", "first_gpu": 4, "gpus": 6, "name": "both"},
        {"demand": "ring", "first_gpu": 10, "name": "three"},
    ]
    instance = mixed((7, 7), BOTH, workload, requirements={"throughput": {"one": 0.5, "both": 1.0, "three": 0.75}})
    result = design(instance, Options(families=(MIXED,)))
    assert result.certificate is not None
    together = result.certificate.phases[-1]
    assert together.job == TOGETHER
    assert result.counts["spine"]
    rates: dict[tuple[int, int], float] = {}
    for phase in result.traffic.network_phases:
        line = line_rate_gbps(result.fabric, phase)
        assert line == (400 if phase.name == "one" else 200)
        for pair, gbps in rates_of(result.traffic, phase, phase.steps[0], line * phase.floor).items():
            rates[pair] = rates.get(pair, 0.0) + gbps
    expected = min(1.0, throughput(graph_of(result.fabric), rates))
    assert expected == 1.0
    assert together.interval.lower == pytest.approx(expected, abs=1e-6)


def test_a_switch_is_shared_by_cages() -> None:
    """Four cages of one port of 400 Gb/s or two of 200: six fast GPUs and five slow ones take 8.5 of them.

    That is 2.125 switches. A link has a module at its NIC, of 100 USD or 60, one in the cage, for one link or two, and
    a fibre of 10 USD and half a dollar a metre.
    """
    instance = mixed((6, 5), {"s4": switch(4, 1000, BREAKOUT)}, EVEN, requirements={"throughput": {"all-to-all": 0.3}})
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    bound = any_network_bound(instance, derive_traffic(instance), pricing, media)
    fibre_usd = 10 + 0.5 * 15
    hosts_usd = 6 * (100 + 100 + fibre_usd) + 5 * (60 + 100 / 2 + fibre_usd)
    assert bound.cents == math.floor(100 * (hosts_usd + (6 + 5 / 2) / 4 * 1000))
    assert bound.cents <= cost(instance)
