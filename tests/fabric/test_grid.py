"""Grids link by link: ZCube is one of them; GPUs fill rows in their order or rail by rail; a last row may be short."""

from dataclasses import fields

import numpy as np
import pytest

from designer.costing.grids import PricedGrid, priced_grid
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.fabric import GPU, LEAF, Fabric
from designer.fabric.grid import GridShape, zcube
from designer.fabric.shape import Hosts
from designer.formulation.grid import GridSearch
from designer.instance.instance import Instance
from designer.workload.phases import derive_traffic
from tests.strategies import HALVES, OPTICS, catalog, instance_of, nic, switch

PARTS = catalog({"s": switch(16, 1000, HALVES)}, OPTICS, nic(((2, 200),), cages_per_nic=2))


def cluster(gpus: int, rails: int = 1) -> tuple[Instance, Hosts]:
    instance = instance_of(PARTS, {"gpus": gpus, "hb_domain": rails, "rails": rails}, [{"demand": "all-to-all"}])
    return instance, Hosts(gpus, rails, instance.cluster.nic, instance.cluster.nic.modes[0], 0)


def priced(instance: Instance, shape: GridShape) -> PricedGrid:
    pricing = Pricing(instance.objective, instance.energy)
    found = priced_grid(shape, instance.cabling, pricing, MediaFinder(instance.catalog))
    assert found is not None
    return found


def columns_of(fabric: Fabric) -> dict[str, list[object]]:
    tables = (("nodes", fabric.nodes), ("links", fabric.links))
    return {f"{name}.{item.name}": getattr(part, item.name).tolist() for name, part in tables for item in fields(part)}


@pytest.mark.parametrize("gpus", [16, 36, 49, 90])
def test_zcube_is_one_of_the_grids_that_are_searched(gpus: int) -> None:
    """The search comes by the grid with ZCube's sides, and draws the same links in the same ports."""
    instance, hosts = cluster(gpus)
    model = instance.catalog.switches["s"]
    template = zcube(hosts, model, model.modes_at(200)[0])
    pricing, media = Pricing(instance.objective, instance.energy), MediaFinder(instance.catalog)
    search, found = GridSearch(instance, derive_traffic(instance), pricing, media), None
    while found is None and (item := search.cheapest()) is not None:
        found = item if item.shape == template else None
        search.refuse()
    assert found is not None
    assert columns_of(found.draw()) == columns_of(priced(instance, template).draw())


def homes(fabric: Fabric) -> dict[int, tuple[int, int]]:
    """Row and column of each GPU, counted from the first row and the first column switch."""
    nodes, links = fabric.nodes, fabric.links
    first = [int(np.flatnonzero((nodes.kind == LEAF) & (nodes.plane == plane))[0]) for plane in (0, 1)]
    found: dict[int, list[int]] = {}
    for gpu, leaf in zip(links.a.tolist(), links.b.tolist(), strict=True):
        if nodes.kind[gpu] == GPU:
            found.setdefault(gpu, [-1, -1])[nodes.plane[leaf]] = leaf - first[nodes.plane[leaf]]
    return {gpu: (place[0], place[1]) for gpu, place in found.items()}


@pytest.mark.parametrize(
    ("gpus", "columns", "per_cell", "bundle", "by_rail"),
    [(12, 4, 1, 1, False), (14, 4, 1, 2, False), (20, 3, 2, 2, False), (16, 4, 1, 1, True), (22, 3, 2, 3, True)],
)
def test_gpus_fill_the_cells_in_their_order(gpus: int, columns: int, per_cell: int, bundle: int, by_rail: bool) -> None:
    """Row by row, `per_cell` to a cell; rail by rail where asked; equal bundles between rows and columns."""
    instance, hosts = cluster(gpus, 2)
    model = instance.catalog.switches["s"]
    shape = GridShape(hosts, model, model.modes_at(200)[0], columns, per_cell, bundle, by_rail)
    fabric = priced(instance, shape).draw()
    order = [*range(0, gpus, 2), *range(1, gpus, 2)] if by_rail else [*range(gpus)]
    expected = {gpu: divmod(place // per_cell, columns) for place, gpu in enumerate(order)}
    assert homes(fabric) == expected
    assert fabric.counts() == shape.counts()
    nodes, links = fabric.nodes, fabric.links
    rows = max(row for row, _ in expected.values()) + 1
    table = np.zeros((rows, columns), dtype=np.int64)
    first_row = int(np.flatnonzero(nodes.kind == LEAF)[0])
    between = nodes.kind[links.a] == LEAF
    np.add.at(table, (links.a[between] - first_row, links.b[between] - first_row - rows), 1)
    assert (table == bundle).all()


def test_rows_stand_beside_servers_only_where_no_server_is_split() -> None:
    """Four columns hold servers of two whole, three do not; rail by rail every server is split."""
    instance, hosts = cluster(24, 2)
    model = instance.catalog.switches["s"]
    mode = model.modes_at(200)[0]
    shapes = [GridShape(hosts, model, mode, columns, by_rail=by_rail) for columns, by_rail in ((4, 0), (3, 0), (4, 1))]
    lengths = [priced(instance, shape).media.row_m for shape in shapes]
    assert lengths == [3.0, 15.0, 15.0]
