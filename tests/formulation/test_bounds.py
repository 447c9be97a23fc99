"""The bound over any network: against closed forms, against every network of tiny switches, and its order."""

import json
import math
from copy import deepcopy
from itertools import combinations, permutations
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from designer.catalog.media import link_media
from designer.comparison import best_templates
from designer.costing.pricing import MediaFinder, Pricing
from designer.formulation.bounds import AnyNetworkBound, any_network_bound, cover
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.crossing import least_need, least_out, least_out_of_cube
from designer.instance.instance import Instance
from designer.instance.load import load_instance
from designer.layout.fitting import any_network_on_floor
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Component, Phase, Step, Traffic
from tests.reference.any_network import Model, Parts, cheaper_network, demands_of
from tests.strategies import OPTICS, catalog, instance_of, nic, problems, switch

INSTANCES = Path(__file__).parents[2] / "instances"
SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def bound(instance: Instance) -> AnyNetworkBound:
    pricing = Pricing(instance.objective, instance.energy)
    return any_network_bound(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))


def cents(instance: Instance) -> float:
    found = bound(instance).cents
    return math.inf if found is None else found


FREE_LINKS = {
    "transceivers": {"module": OPTICS["transceivers"]["module"] | {"price": {"usd": 0, "assumed": True}}},
    "fibres": {"fibre": OPTICS["fibres"]["fibre"] | {"price": {"usd": 0, "assumed": True}, "usd_per_m": 0}},
}


def radix_32(gpus: int, demand: str = "all-to-all") -> AnyNetworkBound:
    """On switches of 32 ports at 1 USD, with links for nothing."""
    return bound(instance_of(catalog({"s": switch(32, 1)}, FREE_LINKS), {"gpus": gpus}, [{"demand": demand}]))


def test_64_endpoints_take_four_switches_of_32_ports():
    """All-to-all: 18 endpoints send 18 * 46 / 63 = 13.1 out, which 14 links carry; 19 do not fit, and 3 * 18 < 64."""
    found = radix_32(64)
    assert (found.per_switch_most, found.cents) == (18, 400)


def test_128_endpoints_take_eight_switches_of_32_ports():
    """All-to-all: 17 endpoints with their links fill a switch; 7 * 17 < 128."""
    found = radix_32(128)
    assert (found.per_switch_most, found.cents) == (17, 800)


def test_many_endpoints_take_more_than_two_ports_each():
    """Traffic beyond the direct reach of a switch takes two links or three, hence three ports or four."""
    per_endpoint = [(radix_32(gpus).cents or 0) / 100 * 32 / gpus for gpus in (64, 512, 8192, 1 << 17)]
    assert per_endpoint == sorted(per_endpoint)
    assert 2 <= per_endpoint[1] < 3.2
    assert 3 < per_endpoint[3] < 5


def test_what_stays_inside_groups_needs_no_links():
    """Groups that fit a switch cost switches and host links alone, however many groups there are."""
    instance = instance_of(catalog({"s": switch(32, 1)}, FREE_LINKS), {"gpus": 128}, [{"demand": "any", "group": 16}])
    assert bound(instance) == AnyNetworkBound(400, "a switch holds at most 32 NIC ports", 32)


def test_no_network_is_said():
    """Switches of one port join nothing."""
    assert bound(instance_of(catalog({"s": switch(1, 1)}, FREE_LINKS), {"gpus": 4})).cents is None


PARTS = [
    Component("all-to-all", 1, 4, 0, 1.0),
    Component("all-to-all", 2, 3, 0, 1.0),
    Component("any", 1, 4, 0, 1.0),
    Component("any", 1, 3, 0, 1.0),
    Component("shift", 1, 6, 1, 1.0),
    Component("shift", 1, 8, 2, 1.0),
    Component("shift", 2, 4, 3, 1.0),
    Component("exchange", 1, 4, 1, 1.0),
    Component("exchange", 1, 8, 4, 1.0),
]


def groups_of(part: Component, members: int) -> list[list[int]]:
    period = part.stride * part.size
    return [
        [start + offset + place * part.stride for place in range(part.size)]
        for start in range(0, members, period)
        for offset in range(part.stride)
    ]


def out_of(part: Component, chosen: set[int], members: int) -> float:
    """Rate of the worst demand of the pattern out of a set, pair by pair."""
    total = 0.0
    for group in groups_of(part, members):
        if part.pattern == "any":
            total += max(
                sum(one in chosen and other not in chosen for one, other in zip(group, image, strict=True))
                for image in permutations(group)
            )
            continue
        for rates in demands_of(part.pattern, [group], members, part.by):
            inside = np.isin(np.arange(members), list(chosen))
            total += rates[inside][:, ~inside].sum()
    return total


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_least_out_against_every_set(part):
    """The closed form is the minimum over all sets of n endpoints, not a bound only."""
    members = part.stride * part.size * (2 if part.stride * part.size <= 4 else 1)
    formula = least_out(part, np.arange(members + 1))
    for size in range(members + 1):
        least = min(out_of(part, set(chosen), members) for chosen in combinations(range(members), size))
        assert formula[size] == pytest.approx(least), size


def test_cube_against_every_set():
    """The mean crossing under exchanges of distance 1, 2 and 4 is never below the bound, and meets it at subcubes."""
    exchanges = [Component("exchange", 1, 8, by, 1.0) for by in (1, 2, 4)]
    formula = least_out_of_cube(3, np.arange(9))
    for size in range(9):
        least = min(
            sum(out_of(part, set(chosen), 8) for part in exchanges) / 3 for chosen in combinations(range(8), size)
        )
        assert formula[size] <= least + 1e-9
        if size in (0, 1, 2, 4, 8):
            assert formula[size] == pytest.approx(least)


MIXES = [
    [("any", 1, 4, 0), ("shift", 4, 3, 1)],
    [("all-to-all", 1, 2, 0), ("all-to-all", 2, 6, 0)],
    [("shift", 1, 4, 1), ("any", 4, 3, 0)],
    [("exchange", 1, 4, 1), ("exchange", 1, 4, 2), ("any", 4, 3, 0)],
]


@pytest.mark.parametrize("mix", MIXES, ids=str)
@pytest.mark.parametrize("floors", [(1.0, 1.0), (1.0, 0.25), (0.3, 1.0)])
def test_several_phases_against_every_set(mix, floors):
    """What a set sends in its most demanding phase is never below the need, which exceeds that of each phase alone."""
    parts = [Component(*fields, 1.0) for fields in mix]
    factors = [floors[min(number, 1)] for number in range(len(parts))]
    phases = tuple(
        Phase(f"p{number}", "job", (Step("s", (part,), 1.0),), floor, 0.0, "cluster", 0, 12)
        for number, (part, floor) in enumerate(zip(parts, factors, strict=True))
    )
    need = least_need(Traffic(12, 1, 1, phases), 1, 12)
    for size in range(13):
        worst = [
            max(floor * out_of(part, set(chosen), 12) for part, floor in zip(parts, factors, strict=True))
            for chosen in combinations(range(12), size)
        ]
        assert need[size] <= min(worst) + 1e-9, size
    alone = [least_need(Traffic(12, 1, 1, (phase,)), 1, 12) for phase in phases]
    assert (need > np.max(alone, axis=0) + 1e-9).any()


def test_jobs_at_once_and_idle_gpus():
    """Ports may be split between two jobs and idle GPUs as suits best; both jobs send at the same time."""
    part = Component("all-to-all", 1, 4, 0, 1.0)
    steps = (Step("s", (part,), 1.0),)
    jobs = tuple(Phase("p", f"j{first}", steps, 1.0, 0.0, "cluster", first, 4) for first in (0, 4))
    need = least_need(Traffic(9, 1, 1, jobs), 1, 9)
    for size in range(10):
        least = min(
            sum(out_of(part, {gpu - first for gpu in chosen if first <= gpu < first + 4}, 4) for first in (0, 4))
            for chosen in combinations(range(9), size)
        )
        assert need[size] == pytest.approx(least), size


@SETTINGS
@given(st.lists(st.integers(1, 60) | st.none(), min_size=1, max_size=7), st.integers(1, 60))
def test_cover_by_recursion_and_by_remainders(costs, total):
    """Both ways to cover agree on large totals, and neither exceeds the other by more than what they leave out."""
    table = np.array([0.0, *(math.inf if cost is None else float(cost) for cost in costs)])
    assume(np.isfinite(table[1:]).any())
    exact = [0.0]
    for held in range(1, total + 1):
        options = [exact[held - size] + table[size] for size in range(1, min(held, len(table) - 1) + 1)]
        exact.append(min(options, default=math.inf))
    assert cover(table, total) == pytest.approx(exact[-1])
    from designer.formulation import bounds

    before, bounds.MOST_EXACT = bounds.MOST_EXACT, 0
    try:
        found = cover(table, total)
    finally:
        bounds.MOST_EXACT = before
    assert found <= exact[-1] + 1e-9
    if total > 49:
        assert found == pytest.approx(exact[-1])


def tiny(seed: int):
    """A tiny instance with everything that a listing of its networks needs."""
    random = Random(seed)  # noqa: S311
    ports_per_gpu = random.choice([1, 1, 1, 2])
    gpus = random.choice([4, 5, 6]) if ports_per_gpu == 1 else 4
    speeds = random.choice([(200,), (200, 400)])
    models: dict[str, tuple[int, int]] = {}
    for name in "ab"[: random.choice([1, 1, 2])]:
        ports = random.choice([3, 4, 5] if ports_per_gpu == 1 else [4, 5])
        models[name] = (ports, random.choice([60, 100, 150]) * ports)
    modes = [(1, speed) for speed in speeds]
    record = nic(((ports_per_gpu, 200),), cages_per_nic=ports_per_gpu)
    document = catalog({name: switch(ports, usd, modes) for name, (ports, usd) in models.items()}, OPTICS, record)
    sizes = [size for size in range(2, gpus + 1) if gpus % size == 0]
    pattern = random.choice(["any", "all-to-all", "shift", "any"])
    size = random.choice([*sizes, gpus])
    by = random.randint(1, size - 1) if pattern == "shift" else 1
    floor = random.choice([1.0, 1.0, 0.5])
    demand = {"demand": pattern, "group": size, "name": "all"} | ({"by": by} if pattern == "shift" else {})
    instance = instance_of(document, {"gpus": gpus}, [demand], requirements={"throughput": {"all": floor}})
    pricing = Pricing("capex", instance.energy)

    def link(gbps: int, length_m: float) -> int:
        return min(
            sum(pricing.medium_cents(item))
            for item in link_media(instance.catalog, "port", 1, "port", 1, gbps, length_m)
        )

    parts = Parts(
        tuple(Model(ports, usd * 100, speeds) for ports, usd in models.values()),
        {speed: link(speed, 30) for speed in speeds},
        link(200, 15 if ports_per_gpu == 1 else 3),
        ports_per_gpu,
        200,
    )
    groups = [list(range(first, first + size)) for first in range(0, gpus, size)]
    rates = [matrix * floor * 200 * ports_per_gpu for matrix in demands_of(pattern, groups, gpus, by)]
    random.shuffle(rates)
    return instance, parts, gpus, rates


@pytest.mark.parametrize("seed", [seed for seed in range(41) if seed != 28])  # 28 alone takes half a minute
def test_no_network_at_all_is_cheaper(seed):
    """Of all attachments and wirings that cost less than the bound, none carries the demand."""
    instance, parts, gpus, rates = tiny(seed)
    limit = bound(instance).cents
    if limit is None:
        limit = 10**6 if parts.ports_per_gpu == 1 else 0
    assert cheaper_network(parts, gpus, rates, limit) is None


def test_the_listing_finds_networks():
    """At some price the listing finds one for most tiny instances, and the bound is that price at times."""
    found = exact = 0
    for seed in range(12):
        instance, parts, gpus, rates = tiny(seed)
        limit = bound(instance).cents
        if limit is None or parts.ports_per_gpu > 1:
            continue
        exact += cheaper_network(parts, gpus, rates, limit + 1) is not None
        found += cheaper_network(parts, gpus, rates, limit * 13 // 10) is not None
    assert exact >= 2
    assert found > exact


def known_bounds() -> list[tuple[Path, float]]:
    """Shipped instances with the proven bound of their family in USD."""
    return [
        (path.with_name(f"{name}.yaml"), known["lower_bound_usd"])
        for path in sorted(INSTANCES.glob("*/best_known.json"))
        for name, known in json.loads(path.read_text(encoding="utf-8")).items()
        if path.with_name(f"{name}.yaml").exists() and "lower_bound_usd" in known
    ]


@pytest.mark.parametrize(("path", "family_usd"), known_bounds(), ids=lambda value: getattr(value, "stem", ""))
def test_below_the_best_known(path, family_usd):
    """On every shipped instance the bound is below the proven one of the family, hence below the best known cost."""
    instance = load_instance(path)
    owned = None if instance.existing is None else instance.existing.stock
    pricing = Pricing(instance.objective, instance.energy, stock=owned)
    found = any_network_on_floor(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    assert found is not None
    assert found > 0 or owned is not None
    assert found <= 100 * family_usd + 0.5


def test_below_zcube():
    """64 GPUs with two ports on 16-port switches: ZCube carries an all-to-all, and no bound may exceed its cost."""
    two_ports = nic(((2, 200),), cages_per_nic=2)
    switches = {"s": switch(16, 1000, ((1, 200),))}
    workload = [{"demand": "all-to-all"}]
    instance = instance_of(catalog(switches, OPTICS, two_ports), {"gpus": 64, "hb_domain": 8, "rails": 1}, workload)
    joined = instance_of(
        catalog(switches, OPTICS, two_ports),
        {"gpus": 64, "hb_domain": 8, "rails": 8},
        [workload[0] | {"across": "cluster"}],
    )
    traffic, pricing = derive_traffic(joined), Pricing(joined.objective, joined.energy)
    zcube = next(item for item in best_templates(joined, traffic, pricing) if item.name == "zcube")
    assert zcube.counts["switches"] == 16
    assert cents(instance) <= cents(joined) <= zcube.cost_cents
    assert cents(joined) > 0.7 * zcube.cost_cents


@pytest.mark.parametrize(("gpus", "ports"), [(512, 3), (8192, 5)])
def test_below_a_clos_and_not_far(gpus, ports):
    """A Clos that carries `any` has 3 ports an endpoint on 512 and 5 on 8,192 endpoints of 32-port switches."""
    found = radix_32(gpus, "any").cents or 0
    assert 0.6 < found / (100 * gpus * ports / 32) <= 1


def test_spines_that_hold_no_endpoints():
    """Leaves at 16 USD, and spines for other speeds at 16 USD: hops are worth no more than links of spines cost."""
    switches = {"leaf": switch(16, 16, ((1, 200), (1, 400))), "spine": switch(64, 16)}
    instance = instance_of(catalog(switches, FREE_LINKS, nic(((1, 200),))), {"gpus": 512})
    pricing = Pricing(instance.objective, instance.energy)
    search = ClosSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    optimum = search.run(Limits()).cost_cents or 0
    assert 52 * 1600 < cents(instance) <= optimum


@SETTINGS
@given(problems(most_per_rail=16))
def test_below_every_design_and_template(problem):
    """The bound is no higher than the optimum of the Clos program and than any template that meets the instance."""
    instance = instance_of(**problem)
    traffic, pricing = derive_traffic(instance), Pricing(instance.objective, instance.energy)
    media = MediaFinder(instance.catalog)
    least = cents(instance)
    proposal = ClosSearch(instance, traffic, pricing, media).run(Limits())
    if proposal.cost_cents is not None:
        assert least <= proposal.cost_cents
    for item in best_templates(instance, traffic, pricing, media):
        if item.meets:
            assert least <= item.cost_cents, item.name


@SETTINGS
@given(problems(most_per_rail=40), st.sampled_from([(0.2, 0.5), (0.5, 1.0), (0.7, 0.8)]))
def test_never_falls_with_rate(problem, floors):
    """A higher floor never lowers the bound."""
    names = {item["demand"] for item in problem["workload"]}
    values = []
    for floor in floors:
        requirements = problem["requirements"] | {"throughput": dict.fromkeys(names, floor)}
        values.append(cents(instance_of(**problem | {"requirements": requirements})))
    assert values[0] <= values[1] * (1 + 1e-3)


@SETTINGS
@given(problems(most_per_rail=40), st.integers(3, 9), st.integers(50, 250))
def test_a_larger_catalog_never_raises_it(problem, cages, usd):
    """One more switch model is one more choice."""
    larger = deepcopy(problem)
    modes = problem["catalog_document"]["switches"]["a"]["modes"]
    pairs = [(mode["ports_per_cage"], mode["gbps"]) for mode in modes]
    larger["catalog_document"]["switches"]["more"] = switch(cages, usd * cages, pairs)
    assert cents(instance_of(**larger)) <= cents(instance_of(**problem)) * (1 + 1e-3)


@pytest.mark.parametrize("demand", ["any", "all-to-all"])
def test_never_falls_with_endpoints(demand):
    """More endpoints of one group never lower the bound."""
    values = [
        cents(instance_of(catalog({"s": switch(8, 1000)}, OPTICS), {"gpus": gpus}, [{"demand": demand}]))
        for gpus in range(2, 60)
    ]
    assert values == sorted(values)
