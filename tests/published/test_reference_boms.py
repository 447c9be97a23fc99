"""Vendors' reference designs and built clusters: switches of each tier and links of each class, as published."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generic_parts import CABLED, clos_ports, hosts_of, switch_of

from designer.catalog import load_catalog
from designer.fabric.build import build_clos
from designer.fabric.fabric import Fabric
from designer.fabric.pairs import worst_leaf_pair
from designer.fabric.shape import ClosShape, Hosts, Spines, Tier
from designer.fabric.templates import Ports, clos_of, fat_tree, rail_only, rail_optimized
from designer.workload.cuts import Layout

ROWS = json.loads(Path(__file__).with_name("reference_boms.json").read_text(encoding="utf-8"))["rows"]
DEFAULT_GBPS = 400
MOST_DRAWN = 20_000
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["system"].replace(" ", "-"))


@cache
def builtin() -> Any:
    return load_catalog("builtin", Path())


def endpoint_gbps(row: dict[str, Any]) -> int:
    return (row["nic_gbps"] or DEFAULT_GBPS) // row["planes"]


def hosts(row: dict[str, Any]) -> Hosts:
    """The row's GPUs; links to its fabric manager come on top of the NICs."""
    ufm = row.get("ufm_links", 0)
    return hosts_of(
        row["inputs"]["E"] - ufm,
        rails=row["rails"] or 1,
        planes=row["planes"],
        gbps=endpoint_gbps(row),
        management_ports=ufm,
    )


def ports(row: dict[str, Any], *, real: bool = False) -> Ports:
    """Ports of its leaves, on a switch of its radix or on the catalog's own model; uplinks at the row's speed."""
    gbps, inputs = endpoint_gbps(row), row["inputs"]
    switch = builtin().switches[row["catalog_switch"]] if real else switch_of(row["radix"], gbps)
    factor = inputs.get("uplink_factor", 1)
    down = inputs.get("D", row["radix"])
    up = round(inputs.get("U", 0) * factor)
    return clos_ports(switch, gbps, down, up, uplink_gbps=round(gbps / factor))


def shape_of(row: dict[str, Any], *, real: bool = False, by_rail: bool = False) -> ClosShape:
    """The template that the row's inputs ask for; `by_rail` keeps every leaf to whole rails."""
    of, with_ports, tiers = hosts(row), ports(row, real=real), row["inputs"]["tiers"]
    if tiers == "rail-only":
        shape = rail_only(of, with_ports)
    elif tiers == "leaf-only":
        layout = Layout(mixed=False, rails=of.rails, per_rail=of.gpus // of.rails)
        spines = Spines(Tier(with_ports.switch, with_ports.up_mode), with_ports.up, 1)
        shape = ClosShape(of, layout, with_ports.leaf, with_ports.down, with_ports.up, spines)
    else:
        template = rail_optimized if by_rail else fat_tree
        shape = template(of, with_ports, tiers)
    assert shape is not None
    assert shape.problems() == []
    return shape


def expected_and_found(row: dict[str, Any], counts: dict[str, int]) -> tuple[dict[str, float], dict[str, float]]:
    """What the row publishes, and the same from `counts`; its links count cables where one carries several."""
    cables = row["inputs"].get("cable_factor", 1)
    found = {
        "leaf": counts["leaf"],
        "spine": counts["spine"],
        "core": counts["core"],
        "total_switches": counts["switches"],
        "node_leaf_links": counts["endpoint_links"] * cables,
        "leaf_spine_links": counts["leaf_spine_links"] * cables,
        "spine_core_links": counts["spine_core_links"] * cables,
    }
    published = row["published"]
    return published, {name: found[name] for name in published}


@every_row
def test_a_template_has_the_published_switches_and_links(row: dict[str, Any]) -> None:
    published, found = expected_and_found(row, shape_of(row).counts())
    assert found == published


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if (row["rails"] or 1) > 1 and isinstance(row["inputs"]["tiers"], int)],
    ids=lambda row: row["system"].replace(" ", "-"),
)
def test_a_design_with_rails_has_the_same_counts_when_its_leaves_keep_to_rails(row: dict[str, Any]) -> None:
    published, found = expected_and_found(row, shape_of(row, by_rail=True).counts())
    assert found == published


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["catalog_switch"]], ids=lambda row: row["system"].replace(" ", "-")
)
def test_the_catalogs_own_switch_model_gives_the_published_counts(row: dict[str, Any]) -> None:
    published, found = expected_and_found(row, shape_of(row, real=True).counts())
    assert found == published


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row["inputs"]["E"] * row["planes"] <= MOST_DRAWN],
    ids=lambda row: row["system"].replace(" ", "-"),
)
@pytest.mark.parametrize("by_rail", [False, True], ids=["mixed", "by-rail"])
def test_the_drawn_network_has_the_counts_of_the_shape_and_no_port_twice(row: dict[str, Any], *, by_rail: bool) -> None:
    shape = shape_of(row, by_rail=by_rail)
    fabric = build_clos(replace(shape, media=CABLED))
    assert fabric.counts() == shape.counts()
    assert_each_port_is_used_once(fabric, shape.leaf.switch.cages)
    assert worst_leaf_pair(fabric) == 1.0


def assert_each_port_is_used_once(fabric: Fabric, cages: int) -> None:
    links, nodes = fabric.links, fabric.nodes
    ends = np.concatenate(
        [
            np.stack([links.a, links.a_cage, links.a_lane], axis=1),
            np.stack([links.b, links.b_cage, links.b_lane], axis=1),
        ]
    )
    assert len(np.unique(ends, axis=0)) == 2 * fabric.n_links
    assert ends[nodes.model[ends[:, 0]] >= 0, 1].max() < cages


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["verdict"] == "symmetry"], ids=lambda row: row["system"].replace(" ", "-")
)
def test_port_counting_alone_would_buy_fewer_spines_with_uneven_bundles(row: dict[str, Any]) -> None:
    shape, with_ports = shape_of(row), ports(row)
    uneven = clos_of(hosts(row), shape.layout, with_ports, 2, uneven=True)
    assert uneven is not None
    assert uneven.spines_per_fabric == -(-shape.leaves * with_ports.up // with_ports.spine_radix)
    assert uneven.spines_per_fabric < shape.spines_per_fabric
    assert worst_leaf_pair(build_clos(replace(uneven, media=CABLED))) < 1.0
