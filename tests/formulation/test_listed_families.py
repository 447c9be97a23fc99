"""Meshes and grids against every one of them, with plain linear programs as judges; no cut takes one that carries."""

import math
from itertools import groupby
from typing import Any

import pytest

from designer.candidates import LISTED, MESH, Candidate, carries, listed_candidate
from designer.certify.throughput import Judge
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.grid import GridShape
from designer.fabric.mesh import MeshShape
from designer.formulation.clos_search import Limits
from designer.formulation.grid import GridSearch
from designer.formulation.mesh import MeshSearch
from designer.instance.instance import Instance
from designer.workload.phases import derive_traffic
from tests.reference.listed_families import Network, cheapest_cents, closed_forms_hold, grids, meshes
from tests.strategies import BREAKOUT, COPPER, HALVES, OPTICS, Document, catalog, instance_of, nic, switch

FAMILY = {family.name: family for family in LISTED}
TWO_PORTS = nic(((2, 200),), cages_per_nic=2)
ONE_SOCKET = nic(((1, 400), (2, 200)))


def case(
    gpus: int, demand: Document | list[Document], switches: Document, record: Document | None = None, **more: Any
) -> Document:
    media = more.pop("media", OPTICS)
    cluster = {"gpus": gpus, **more.pop("cluster", {})}
    workload = demand if isinstance(demand, list) else [demand]
    return {"catalog_document": catalog(switches, media, record), "cluster": cluster, "workload": workload, **more}


def server(gpus: int) -> Document:
    return {"hb_domain": gpus, "rails": gpus}


EVEN = {"demand": "all-to-all"}
HALVING = {"demand": "halving-doubling"}
SIX = {"s6": switch(6, 600), "s9": switch(9, 1000)}
TWIN = {"s4": switch(4, 600, BREAKOUT), "s8": switch(8, 1100, HALVES, power_w=300.0)}

MESHES: dict[str, Document] = {
    "all-to-all": case(12, EVEN, SIX),
    "all-to-all, last leaf short": case(11, EVEN, SIX),
    "halving-doubling": case(8, HALVING, SIX),
    "ring": case(12, {"demand": "ring"}, SIX),
    "any": case(5, {"demand": "any"}, {"s4": switch(4, 300), "s5": switch(5, 600)}),
    "any in groups": case(6, {"demand": "any", "group": 3}, {"s4": switch(4, 300), "s5": switch(5, 600)}),
    "shift beyond a leaf": case(10, {"demand": "shift", "by": 3}, {"s5": switch(5, 500), "s8": switch(8, 900)}),
    "groups": case(12, {"demand": "all-to-all", "group": 6}, {"s7": switch(7, 700)}),
    "rails": case(16, EVEN, SIX, cluster=server(2)),
    "rails that a mesh joins": case(12, EVEN, {"s7": switch(7, 500)}, cluster=server(3)),
    "planes and breakouts": case(12, EVEN, TWIN, ONE_SOCKET),
    "two sockets, copper": case(8, HALVING, TWIN, TWO_PORTS, media=COPPER),
    "low floor": case(12, HALVING | {"group": 4}, SIX, requirements={"throughput": {"halving-doubling": 0.4}}),
    "two demands": case(8, [EVEN, {"demand": "shift", "by": 3}], SIX),
    "energy": case(12, EVEN, TWIN, ONE_SOCKET, objective="tco"),
}
GRIDS: dict[str, Document] = {
    "all-to-all": case(9, EVEN, TWIN, ONE_SOCKET),
    "last row short": case(11, EVEN, TWIN, TWO_PORTS),
    "halving-doubling": case(8, HALVING, TWIN, ONE_SOCKET),
    "shift": case(10, {"demand": "shift", "by": 3}, TWIN, TWO_PORTS),
    "rails": case(16, HALVING, TWIN, TWO_PORTS, cluster=server(2)),
    "rails, all-to-all": case(12, EVEN, TWIN, ONE_SOCKET, cluster=server(3)),
    "low floor": case(12, EVEN, TWIN, TWO_PORTS, requirements={"throughput": {"all-to-all": 0.4}}),
    "two demands, copper": case(8, [EVEN, {"demand": "ring"}], TWIN, TWO_PORTS, media=COPPER),
    "any in groups": case(6, {"demand": "any", "group": 3}, TWIN, TWO_PORTS),
}
PROBLEMS = [("mesh", name) for name in MESHES] + [("grid", name) for name in GRIDS]


def problem(family: str, name: str) -> Instance:
    return instance_of(**(MESHES if family == MESH else GRIDS)[name])


def found(family: str, instance: Instance, below_cents: float = math.inf) -> Candidate:
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    traffic = derive_traffic(instance)
    told: list[tuple[int | None, int | None]] = []

    def tell(cost: int | None, bound: int | None) -> None:
        told.append((cost, bound))

    candidate = listed_candidate(FAMILY[family], instance, traffic, pricing, media, below_cents, Limits(), tell)
    bounds = [bound for _, bound in told if bound is not None]
    assert bounds == sorted(bounds)  # a bound that is shown never falls
    return candidate


def every(family: str, instance: Instance) -> list[Network]:
    return list(meshes(instance) if family == MESH else grids(instance))


@pytest.mark.parametrize(("family", "name"), PROBLEMS)
def test_the_cheapest_is_that_of_enumeration(family: str, name: str) -> None:
    """Every network of the family, priced socket by socket, tried from the cheapest on by a plain linear program."""
    instance = problem(family, name)
    candidate = found(family, instance)
    best = cheapest_cents(every(family, instance), derive_traffic(instance))
    assert candidate.termination == "optimal"
    assert candidate.cost_cents == (math.inf if best is None else best)
    assert candidate.bound_cents == candidate.cost_cents
    assert best is not None


def parameters(shape: MeshShape | GridShape) -> tuple[object, ...]:
    if isinstance(shape, GridShape):
        return shape.by_rail, shape.columns, shape.per_cell, shape.switch.key, shape.mode, shape.bundle
    leaf, layout = shape.leaf, shape.layout
    order = layout.mixed, layout.rails, shape.down
    return *order, leaf.switch.key, leaf.down_mode, leaf.up_mode, shape.hosts.planes, shape.bundle


def proposals(family: str, instance: Instance) -> list[tuple[tuple[object, ...], int]]:
    """All that a search proposes when everything is refused."""
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    kind = MeshSearch if family == MESH else GridSearch
    search = kind(instance, derive_traffic(instance), pricing, media)
    listed: list[tuple[tuple[object, ...], int]] = []
    while (priced := search.cheapest()) is not None:
        listed.append((parameters(priced.shape), priced.cents))
        search.refuse()
    return listed


@pytest.mark.parametrize(("family", "name"), PROBLEMS)
def test_no_cut_takes_out_a_network_that_carries(family: str, name: str) -> None:
    """Refused to the end, a search has proposed everything but bundles that a plain linear program finds too small."""
    instance = problem(family, name)
    traffic = derive_traffic(instance)
    proposed = dict(proposals(family, instance))
    assert list(proposed.values()) == sorted(proposed.values())
    networks = {network.parameters: network for network in every(family, instance)}
    assert proposed.keys() <= networks.keys()
    assert all(networks[key].cents == cents for key, cents in proposed.items())
    cut = sorted((key for key in networks if key not in proposed), key=repr)
    for _, bundles in groupby(cut, key=lambda key: key[:-1]):
        largest = max(bundles, key=lambda key: int(str(key[-1])))  # with fewer links it carries less
        assert not networks[largest].carries(traffic), largest


@pytest.mark.parametrize(("family", "name"), [("mesh", "shift beyond a leaf"), ("mesh", "rails"), ("grid", "shift")])
def test_the_certificate_decides_as_the_plain_program_does(family: str, name: str) -> None:
    """What the certificate accepts of a family carries; what it rejects does not."""
    instance = problem(family, name)
    traffic, networks = derive_traffic(instance), {network.parameters: network for network in every(family, instance)}
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    kind = MeshSearch if family == MESH else GridSearch
    search, verdicts = kind(instance, traffic, pricing, media), []
    while (priced := search.cheapest()) is not None:
        verdict = carries(priced.draw(), instance, traffic, Judge())
        assert verdict in (None, networks[parameters(priced.shape)].carries(traffic))
        verdicts.append(verdict)
        search.refuse()
    assert True in verdicts
    assert None not in verdicts


def test_a_search_below_a_cost_says_that_nothing_is_cheaper() -> None:
    instance = problem("mesh", "all-to-all")
    cost = found("mesh", instance).cost_cents
    below = found("mesh", instance, cost)
    assert (below.drawn, below.termination) == (None, "optimal")
    assert below.bound_cents >= cost
    assert found("mesh", instance, cost + 1).cost_cents == cost


@pytest.mark.parametrize(
    ("family", "name"),
    [("mesh", "planes and breakouts"), ("mesh", "two sockets, copper"), ("grid", "last row short"), ("grid", "rails")],
)
def test_pieces_and_counts_are_those_of_the_drawing(family: str, name: str) -> None:
    """Closed forms of what a network buys, and of its links, against what is counted from the drawing."""
    instance = problem(family, name)
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    search = (MeshSearch if family == MESH else GridSearch)(instance, derive_traffic(instance), pricing, media)
    assert closed_forms_hold(search, instance, 40) > 5
