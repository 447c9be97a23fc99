"""Bills of materials: counted from the drawing they equal the closed form and the program's objective to the cent."""

import json
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given, settings

from designer.costing.bill import bill_of_materials
from designer.costing.pricing import MediaFinder, Pricing, cost_parts, shape_cents
from designer.fabric.build import build_clos
from designer.formulation.clos_search import ClosSearch, Limits
from designer.workload.phases import derive_traffic
from tests.strategies import COPPER, HALVES, OPTICS, TWIN_BREAKOUT, catalog, instance_of, nic, problems, shapes, switch

SETTINGS = settings(
    derandomize=True, max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def proposed(instance):
    pricing = Pricing(instance.objective, instance.energy)
    search = ClosSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    return search.run(Limits()), pricing


def bill_of(instance, shape):
    pricing = Pricing(instance.objective, instance.energy)
    return bill_of_materials(build_clos(shape), instance.catalog, pricing)


@SETTINGS
@given(shapes())
def test_bill_equals_closed_form(drawn):
    """Breakouts, splitters, twin sockets, management ports, energy: port by port and by formula to the cent."""
    instance, shape = drawn
    assert bill_of(instance, shape).total_cents == shape_cents(shape, Pricing(instance.objective, instance.energy))


@SETTINGS
@given(problems())
def test_bill_equals_objective(problem):
    """What the program minimized is what the bill says."""
    instance = instance_of(**problem)
    proposal, _ = proposed(instance)
    if proposal.shape is not None:
        assert bill_of(instance, proposal.shape).total_cents == proposal.cost_cents


@SETTINGS
@given(shapes())
def test_bill_lines_add_up(drawn):
    """Purchase and energy make up the total; without tco there is no energy; every piece has a positive count."""
    instance, shape = drawn
    bill = bill_of(instance, shape)
    assert bill.capex_cents + bill.energy_cents == bill.total_cents
    assert instance.objective == "tco" or bill.energy_cents == 0
    assert all(line.quantity > 0 for line in bill.lines)
    assert bill.assumed_cents == bill.capex_cents  # every price of the test catalogs is assumed
    counts = shape.counts()
    assert bill.pieces("switches") == counts["switches"]
    if not bill.pieces("cables"):
        assert bill.pieces("fibres") == counts["links"]
    assert json.dumps([line.to_document() for line in bill.lines])


@SETTINGS
@given(problems(most_per_rail=8))
def test_doubled_prices_double_the_cost(problem):
    """Every price times two: the optimum, too, under capex."""
    problem = deepcopy(problem) | {"objective": "capex"}
    instance = instance_of(**problem)
    dear = deepcopy(problem)
    for section in dear["catalog_document"].values():
        for record in section.values():
            if "price" in record:
                record["price"]["usd"] *= 2
            if "usd_per_m" in record:
                record["usd_per_m"] *= 2
    once, twice = proposed(instance)[0].cost_cents, proposed(instance_of(**dear))[0].cost_cents
    assert twice == (None if once is None else 2 * once)


def test_a_bill_by_hand():
    """Twin sockets, breakouts and optics counted with a pencil.

    20 GPUs in pairs to a socket: 10 modules of 800G, 20 fibres of 10 USD + 15 m x 0.5 USD; one switch of 12 cages of
    2 x 400G takes 10 of them for 20 GPUs, hence 10 modules, and one cage for a management port at both ends.
    """
    instance = instance_of(
        catalog({"s12": switch(12, 5000, TWIN_BREAKOUT)}, OPTICS, nic(nics_per_cage=2)),
        {"gpus": 20, "hb_domain": 2, "rails": 1, "management_ports": 1},
    )
    proposal, _ = proposed(instance)
    bill = bill_of(instance, proposal.shape)
    lines = {line.item: (line.quantity, line.unit_cents) for line in bill.lines}
    assert lines["s12"] == (1, 500_000)
    assert lines["fibre"] == (21, 1_750)
    modules = sum(quantity for item, (quantity, _) in lines.items() if item in ("twin", "module", "half"))
    assert modules == 11 + 11
    assert bill.total_cents == 500_000 + 21 * 1_750 + modules * 17_000


def test_splitters_by_hand():
    """Leaf uplinks of 2 x 200G in one cage to a spine: a cable per occupied cage, not per link."""
    instance = instance_of(
        catalog({"s8": switch(8, 900, HALVES)}, {"cables": COPPER["cables"]}, nic(((1, 200),))),
        {"gpus": 20},
        [{"demand": "ring"}],
        cabling={"host_m": 2.0, "leaf_spine_m": 25.0},
    )
    proposal, pricing = proposed(instance)
    bill = bill_of(instance, proposal.shape)
    parts = cost_parts(proposal.shape, pricing)
    by_use = {line.used_for: line for line in bill.lines if line.section == "cables"}
    assert by_use["host"].item == "splitter"
    assert by_use["host"].quantity == sum(-(-size // 2) for size in proposal.shape.leaf_sizes.tolist())
    assert by_use["leaf-spine"].item == "pair"
    assert by_use["leaf-spine"].quantity * 2 == proposal.shape.counts()["leaf_spine_links"]
    assert sum(parts.values()) == bill.total_cents == proposal.cost_cents


@pytest.mark.parametrize("years", [1, 4])
def test_energy_by_hand(years):
    """Watts x hours x price x PUE of each piece, rounded to cents a piece."""
    instance = instance_of(
        catalog({"s8": switch(8, 1000, power_w=500.0)}, OPTICS),
        {"gpus": 8},
        objective="tco",
        energy={"years": years, "usd_per_kwh": 0.2, "pue": 1.25},
    )
    proposal, _ = proposed(instance)
    bill = bill_of(instance, proposal.shape)

    def cents(watts: float) -> int:
        return round(watts / 1000 * 8760 * years * 0.2 * 1.25 * 100 + 1e-6)

    assert bill.energy_cents == cents(500) + 16 * cents(8)
    assert bill.power_w == 500 + 16 * 8
