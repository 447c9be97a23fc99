"""Tiled planes against every one of them, with plain linear programs as judges; budgets of step time; files."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from designer.candidates import CLOS, GRID, LISTED, TILES, carries, listed_candidate
from designer.certify.throughput import Judge
from designer.certify.verify import verify_design
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.shape import Hosts
from designer.fabric.tiles import TiledPlane, TilesShape
from designer.formulation.clos_search import Limits
from designer.formulation.step_budget import StepBudget
from designer.formulation.tiles import Part, TilesSearch, carried, digits, finest, most_rate, tiles
from designer.instance.instance import Instance
from designer.search import Options, design
from designer.workload.phases import derive_traffic
from tests.reference.listed_families import Network, closed_forms_hold
from tests.reference.tiled_planes import tiled_planes
from tests.strategies import BREAKOUT, COPPER, HALVES, LINK_AT_800, OPTICS, Document, catalog, instance_of, nic, switch

FAMILY = next(family for family in LISTED if family.name == TILES)
TWO_PORTS = nic(((2, 200),), cages_per_nic=2)
ONE_SOCKET = nic(((1, 400), (2, 200)))
PLAIN = ((1, 200),)
TWIN = {"s4": switch(4, 600, BREAKOUT), "s8": switch(8, 1100, HALVES, power_w=300.0)}
HALVING = {"demand": "halving-doubling"}


def case(gpus: int, demand: list[Document], switches: Document, record: Document, **more: Any) -> Document:
    media = more.pop("media", OPTICS)
    cluster = {"gpus": gpus, **more.pop("cluster", {})}
    return {"catalog_document": catalog(switches, media, record), "cluster": cluster, "workload": demand, **more}


def floor(demand: str, value: float) -> Document:
    return {"requirements": {"throughput": {demand: value}}}


CASES: dict[str, Document] = {
    "halving-doubling at half": case(
        8, [HALVING], {"s4": switch(4, 600, PLAIN)}, TWO_PORTS, **floor("halving-doubling", 0.5)
    ),
    "halving-doubling in full": case(8, [HALVING], TWIN, ONE_SOCKET),
    "groups of two strides": case(
        12,
        [{"demand": "all-to-all", "group": 3}, {"demand": "shift", "by": 3, "group": 12}],
        {"s6": switch(6, 600, PLAIN)},
        TWO_PORTS,
        requirements={"throughput": {"all-to-all": 0.6, "shift": 0.5}},
    ),
    "rails": case(
        16,
        [HALVING],
        {"s4": switch(4, 500, PLAIN), "s8": switch(8, 1100, PLAIN)},
        TWO_PORTS,
        cluster={"hb_domain": 2, "rails": 2},
        media=COPPER,
        **floor("halving-doubling", 0.7),
    ),
    "energy": case(8, [HALVING], TWIN, ONE_SOCKET, objective="tco", **floor("halving-doubling", 0.75)),
}


@cache
def problem(name: str) -> Instance:
    return instance_of(**CASES[name])


@cache
def networks(name: str) -> dict[tuple[object, ...], Network]:
    instance = problem(name)
    found = finest(derive_traffic(instance), 8)
    assert found is not None
    radices, _ = found
    return {network.parameters: network for network in tiled_planes(instance, radices)}


def parameters(shape: TilesShape) -> tuple[object, ...]:
    first, second = shape.planes
    uplinks = ((first.spines, first.bundle), (second.spines, second.bundle))
    return shape.switch.key, shape.mode, (first.sides, second.sides), uplinks


def search_of(instance: Instance) -> TilesSearch:
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    return TilesSearch(instance, derive_traffic(instance), pricing, media)


@pytest.mark.parametrize("name", CASES)
def test_the_cheapest_is_that_of_enumeration(name: str) -> None:
    """Every pair of tiled planes, priced socket by socket, tried from the cheapest on by a plain linear program."""
    instance = problem(name)
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    traffic = derive_traffic(instance)
    found = listed_candidate(FAMILY, instance, traffic, pricing, media, math.inf, Limits(), lambda *_: None)
    listed = sorted(networks(name).values(), key=lambda network: network.cents)
    best = next(network.cents for network in listed if network.carries(traffic))
    assert (found.termination, found.cost_cents, found.bound_cents) == ("optimal", best, best)


@pytest.mark.parametrize("name", CASES)
def test_no_cut_takes_out_a_network_that_carries(name: str) -> None:
    """Refused to the end, a search has proposed everything but what a plain linear program finds too weak."""
    instance = problem(name)
    search, proposed = search_of(instance), dict[tuple[object, ...], int]()
    while (priced := search.cheapest()) is not None:
        proposed[parameters(priced.shape)] = priced.cents
        search.refuse()
    assert list(proposed.values()) == sorted(proposed.values())
    every = networks(name)
    assert proposed.keys() <= every.keys()
    assert all(every[key].cents == cents for key, cents in proposed.items())
    traffic = derive_traffic(instance)
    for key, network in every.items():
        if key not in proposed and network.carries(traffic):
            # More uplinks over fewer spines, for no more money, have taken its place.
            assert any(better(other, key) and cents <= network.cents for other, cents in proposed.items())


def better(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether one has the other's leaves with as many uplinks or more."""
    same = one[:3] == other[:3]
    return same and all(math.prod(more) >= math.prod(less) for more, less in zip(one[3], other[3], strict=True))


@pytest.mark.parametrize("name", CASES)
def test_the_certificate_decides_as_the_plain_program_does(name: str) -> None:
    """What the certificate accepts carries; what it rejects does not; it leaves little open."""
    instance, traffic = problem(name), derive_traffic(problem(name))
    search, verdicts = search_of(instance), []
    while (priced := search.cheapest()) is not None:
        verdict = carries(priced.draw(), instance, traffic, Judge())
        assert verdict in (None, networks(name)[parameters(priced.shape)].carries(traffic))
        verdicts.append(verdict)
        search.refuse()
    assert True in verdicts
    assert verdicts.count(None) == 0


@pytest.mark.parametrize("name", CASES)
def test_pieces_and_counts_are_those_of_the_drawing(name: str) -> None:
    assert closed_forms_hold(search_of(problem(name)), problem(name), 30) > 3


def test_tiles_by_hand() -> None:
    """Two rails, groups of three, of which there are two: GPU 7 is the first of rail 1 in the second."""
    model = problem("groups of two strides").catalog.switches["s6"]
    record = problem("groups of two strides").cluster.nic
    planes = (TiledPlane((1, 3, 1)), TiledPlane((1, 1, 2), spines=1, bundle=1))
    hosts = Hosts(12, 2, record, record.modes[0], 0)
    shape = TilesShape(hosts, model, model.modes_at(200)[0], (2, 3, 2), planes)
    assert shape.places(planes[0])[0].tolist() == [0, 2, 0, 2, 0, 2, 1, 3, 1, 3, 1, 3]
    assert shape.places(planes[1])[0].tolist() == [0, 3, 1, 4, 2, 5, 0, 3, 1, 4, 2, 5]
    assert shape.places(planes[1])[1].tolist() == [0] * 6 + [1] * 6
    assert (shape.leaves(planes[1]), shape.parts(planes[1]), shape.switches) == (6, 2, 4 + 6 + 2)
    assert shape.problems() == []
    assert replace(shape, radices=(2, 3, 4)).problems() == ["digits of 24 GPUs for 12"]


def test_digits_of_traffic_that_does_not_nest() -> None:
    """Groups of four and of six consecutive ones share no order of digits."""
    demands = [{"demand": "all-to-all", "group": 4}, {"demand": "all-to-all", "group": 6}]
    instance = instance_of(**case(24, demands, TWIN, TWO_PORTS))
    assert digits(derive_traffic(instance)) is None
    assert search_of(instance).cheapest() is None
    assert digits(derive_traffic(problem("rails"))) == (2, 8)
    assert digits(derive_traffic(problem("rails")), partners=True) == (2, 2, 2, 2)
    assert (1, 1, 2, 2) in tiles((2, 2, 2, 2), 4)
    assert (2, 2, 2, 2) not in tiles((2, 2, 2, 2), 8)


def test_rates_by_hand() -> None:
    """Half of all pairs share a leaf in the first plane only, and the other half in the second only."""
    halves = [Part((0.0, 0.5, 0.5, 0.0), pairs=True)]
    assert most_rate(halves, (0.0, 0.0)) == pytest.approx(0.5)
    assert most_rate(halves, (0.1, 0.1)) == pytest.approx(0.7)  # half of the GPUs share what all uplinks carry
    assert most_rate(halves, (0.25, 0.25)) == 1.0
    assert most_rate([Part((0.0, 0.0, 0.0, 1.0), pairs=True)], (0.2, 0.3)) == pytest.approx(0.5)
    assert most_rate([Part((0.25, 0.25, 0.25, 0.25), pairs=False)], (0.0, 0.0)) == pytest.approx(0.0, abs=1e-6)
    assert carried(0.5, [Part((1.0, 0.0, 0.0, 0.0), pairs=True)], (0.0, 0.0))


MODEL = {"layers": 8, "hidden": 2048, "heads": 16, "seq_length": 1024}


def budgeted(share: float) -> Instance:
    parts = catalog({"s16": switch(16, 3000, PLAIN)}, LINK_AT_800, TWO_PORTS)
    parts["gpus"]["gpu"]["memory_bytes_per_s"] = 3350 * 10**9
    job = {"model": MODEL, "parallelism": {"dp": 8, "pp": 8}, "global_batch": 64}
    requirements = {"collectives": {"dp": "halving-doubling"}, "max_step_overhead": share}
    return instance_of(parts, {"gpus": 64}, [job], requirements=requirements)


def test_budgets_and_families() -> None:
    """A looser budget never costs more, nor does a further family; some budget lets tiled planes be the cheapest."""
    shares = (0.001, 0.05, 0.3)
    families = ((CLOS,), (CLOS, GRID), (CLOS, GRID, TILES))
    costs = [
        [design(budgeted(share), Options(families=some, certify=False)).cost_cents for share in shares]
        for some in families
    ]
    for row in costs:
        assert row == sorted(row, reverse=True)
    assert all(alone >= two >= every for alone, two, every in zip(*costs, strict=True))
    assert costs[1] != costs[2]


def test_a_step_is_within_the_budget_at_what_is_certified() -> None:
    instance = budgeted(0.05)
    found = design(instance, Options(families=(CLOS, TILES)))
    assert found.certificate is not None
    assert found.certificate.met
    assert found.family == TILES
    rates = {phase.phase: phase.interval.lower for phase in found.certificate.phases}
    assert 0 < StepBudget(instance, derive_traffic(instance), 0.05).overhead(rates) <= 0.05 + 1e-9


def test_a_design_is_certified_and_comes_back_from_its_file(tmp_path: Any) -> None:
    result = design(problem("halving-doubling at half"), Options(families=(TILES,)))
    assert result.family == TILES
    assert result.certificate is not None
    assert result.certificate.met
    result.save(tmp_path / "design.json")
    verified = verify_design(tmp_path / "design.json")
    assert verified.ok, verified.findings
