"""Designs of meshes and grids: judged by the certificate, kept in files, set beside the other families."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.candidates import CLOS, GRID, MESH, carries
from designer.certify.read_design import read_design
from designer.certify.throughput import Judge
from designer.certify.verify import verify_design
from designer.costing.grids import priced_grid
from designer.costing.meshes import priced_mesh
from designer.costing.pricing import MediaFinder, Pricing
from designer.errors import InfeasibleError, NoDesignError
from designer.fabric.fabric import Fabric
from designer.fabric.grid import zcube
from designer.fabric.mesh import MeshShape
from designer.fabric.shape import Hosts, Tier
from designer.instance.instance import Instance
from designer.result import Design
from designer.search import Options, design
from designer.workload.cuts import Layout
from designer.workload.phases import derive_traffic
from tests.strategies import BREAKOUT, HALVES, OPTICS, catalog, instance_of, nic, switch

TWO_PORTS = nic(((2, 200),), cages_per_nic=2)


def sixteen(demand: str, floor: float) -> Instance:
    parts = catalog({"s": switch(8, 1000, HALVES)}, OPTICS, TWO_PORTS)
    return instance_of(parts, {"gpus": 16}, [{"demand": demand}], requirements={"throughput": {demand: floor}})


def mesh_and_grid(instance: Instance) -> tuple[Fabric, Fabric]:
    """Two planes of four leaves of four GPUs with single links, and ZCube of four by four; eight switches each."""
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    model, nic_mode = instance.catalog.switches["s"], instance.cluster.nic.modes[0]
    hosts, mode = Hosts(16, 1, instance.cluster.nic, nic_mode, 0), model.modes_at(200)[0]
    layout = Layout(mixed=False, rails=1, per_rail=16)
    mesh = priced_mesh(MeshShape(hosts, layout, Tier(model, mode, mode), 4), instance.cabling, pricing, media)
    grid = priced_grid(zcube(hosts, model, mode), instance.cabling, pricing, media)
    assert mesh is not None
    assert grid is not None
    return mesh.draw(), grid.draw()


def test_a_mesh_is_refused_for_halving_doubling_and_a_grid_is_not() -> None:
    """All-to-all suits both; partners that all sit on one other leaf need links that a mesh has elsewhere.

    Four ports send to one leaf: one over the direct link, three over two links each. At 0.9 of line rate that is
    4 x (3.6 + 2.6) on 12 links.
    """
    verdicts: dict[str, tuple[bool | None, bool | None]] = {}
    for demand in ("all-to-all", "halving-doubling"):
        instance = sixteen(demand, 0.9)
        traffic = derive_traffic(instance)
        mesh, grid = mesh_and_grid(instance)
        verdicts[demand] = carries(mesh, instance, traffic, Judge()), carries(grid, instance, traffic, Judge())
    assert verdicts == {"all-to-all": (True, True), "halving-doubling": (False, True)}


def test_a_floor_is_meant_for_each_step() -> None:
    """The steps of halving-doubling inside a leaf run at line rate, and make up for none between leaves."""
    instance = sixteen("halving-doubling", 0.6)
    traffic = derive_traffic(instance)
    mesh, _ = mesh_and_grid(instance)
    (phase,) = traffic.network_phases
    assert len(phase.steps) == 4
    assert carries(mesh, instance, traffic, Judge()) is False
    assert carries(mesh, sixteen("halving-doubling", 0.5), derive_traffic(sixteen("halving-doubling", 0.5)), Judge())


ROUND_TRIPS: dict[str, dict[str, Any]] = {
    "mesh": {"cluster": {"gpus": 40, "hb_domain": 2, "rails": 2}, "workload": [{"demand": "all-to-all"}]},
    "mesh, any": {"cluster": {"gpus": 20}, "workload": [{"demand": "any"}]},
    "mesh, failures": {
        "cluster": {"gpus": 20},
        "workload": [{"demand": "all-to-all"}],
        "requirements": {"survive": [{"failure": "link", "throughput": 0.8}, {"failure": "switch", "throughput": 0.5}]},
    },
    "grid": {"cluster": {"gpus": 22}, "workload": [{"demand": "all-to-all"}]},
    "grid, from rail to rail": {
        "cluster": {"gpus": 32, "hb_domain": 2, "rails": 2},
        "workload": [{"demand": "all-to-all", "across": "cluster"}],
    },
    "grid, failures": {
        "cluster": {"gpus": 22},
        "workload": [{"demand": "all-to-all"}],
        "requirements": {"survive": [{"failure": "link", "throughput": 0.6}, {"failure": "switch", "throughput": 0.3}]},
    },
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_a_design_is_certified_and_comes_back_from_its_file(name: str, tmp_path: Any) -> None:
    family = name.split(",", maxsplit=1)[0]
    parts = catalog({"s": switch(4, 1000, HALVES), "t": switch(6, 1600, HALVES)}, OPTICS, TWO_PORTS)
    instance = instance_of(parts, **ROUND_TRIPS[name])
    result = design(instance, Options(families=(CLOS, family)))
    assert result.family == family
    assert result.certificate is not None
    assert [check for check in result.certificate.structure.checks if not check.met] == []
    assert result.certificate.met
    result.save(tmp_path / "design.json")
    file = read_design(tmp_path / "design.json")
    assert file.family == family
    assert file.fabric.to_document() == result.fabric.to_document()
    verified = verify_design(tmp_path / "design.json")
    assert verified.ok, verified.findings


@pytest.mark.parametrize("family", [MESH, GRID])
def test_where_no_network_of_a_family_carries_the_demand_it_is_said(family: str) -> None:
    """Three ports to a switch hold no mesh and no grid of 24 GPUs."""
    parts = catalog({"s": switch(3, 1000, ((1, 200),))}, OPTICS, TWO_PORTS)
    instance = instance_of(parts, {"gpus": 24}, [{"demand": "all-to-all"}])
    with pytest.raises(InfeasibleError):
        design(instance, Options(families=(family,)))


@st.composite
def small_instances(draw: st.DrawFn) -> Instance:
    rails = draw(st.sampled_from([1, 2]))
    gpus = rails * draw(st.integers(4, 12 // rails))
    demand: dict[str, Any] = {"demand": draw(st.sampled_from(["all-to-all", "ring", "shift"])), "across": "rail"}
    if demand["demand"] == "shift":
        demand["by"] = draw(st.integers(1, 3))
    parts = catalog(
        {
            "s": switch(draw(st.sampled_from([3, 4, 6])), 1000, draw(st.sampled_from([HALVES, BREAKOUT]))),
            "t": switch(8, draw(st.sampled_from([1500, 2500])), HALVES),
        },
        OPTICS,
        draw(st.sampled_from([TWO_PORTS, nic(((1, 400), (2, 200)))])),
    )
    floor = draw(st.sampled_from([1.0, 0.6, 0.3]))
    return instance_of(
        parts,
        {"gpus": gpus, "hb_domain": rails, "rails": rails},
        [demand],
        requirements={"throughput": {demand["demand"]: floor}},
    )


def designed(instance: Instance, *families: str) -> Design | None:
    try:
        return design(instance, Options(families=families, certify=False))
    except (InfeasibleError, NoDesignError):
        return None


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(small_instances())
def test_a_further_family_never_raises_the_cost(instance: Instance) -> None:
    """The best of several families is the cheapest of each alone; the bound for any network is below them all."""
    alone = {family: designed(instance, family) for family in (CLOS, GRID, MESH)}
    together = designed(instance, CLOS, GRID, MESH)
    costs = [found.cost_cents for found in alone.values() if found is not None]
    assert (math.inf if together is None else together.cost_cents) == min(costs, default=math.inf)
    pair = designed(instance, CLOS, MESH)
    if pair is not None:
        assert together is not None
        assert together.cost_cents <= pair.cost_cents
    for found in (*alone.values(), together):
        if found is not None:
            assert found.any_topology_bound_cents is not None
            assert found.any_topology_bound_cents <= found.bound_cents <= found.cost_cents
