"""ATOP's tables of networks for 1,024, 4,096 and 16,384 GPUs: rail-optimized fat tree, rail-only, HPN and ZCube.

ATOP counts one optical module at each end of each fibre, whatever the cages carry; a bill of this package counts a
module for each cage. The tests therefore take twice the optical links of the drawn network.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from designer import instance_from_document, templates
from designer.comparison import TemplateDesign
from designer.fabric.build import build_clos
from designer.fabric.fabric import HOST, Fabric
from designer.fabric.grid import GridShape, build_grid
from designer.fabric.shape import ClosShape
from designer.instance.instance import Instance

HERE = Path(__file__).parent
PARTS = HERE.parents[1] / "instances" / "atop"
TABLE = json.loads((HERE / "atop_zcube.json").read_text(encoding="utf-8"))
ROWS = TABLE["rows"]
TEMPLATE_NAMES = {"ROFT": "rail-optimized", "Rail-only": "rail-only", "HPN": "hpn", "ZCube": "zcube"}
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['design'].split('(')[0]}-{row['n_gpus']}")


def template_name(row: dict[str, Any]) -> str:
    return TEMPLATE_NAMES[row["design"].split("(")[0]]


@cache
def instance_of(gpus: int, nic_ports: int) -> Instance:
    return instance_from_document(
        {
            "name": f"{gpus} GPUs",
            "cluster": {
                "gpus": gpus,
                "gpu": "gpu",
                "nic": f"nic-{nic_ports}x{400 // nic_ports}",
                "hb_domain": TABLE["hb_domain"],
            },
            "workload": [{"demand": "any", "group": "all", "across": "rail"}],
            "search": {"switches": [f"generic-{TABLE['switch_tbps'][str(gpus)]:g}t"]},
            "catalog": "catalog.yaml",
        },
        PARTS,
    )


@cache
def template(gpus: int, nic_ports: int, name: str) -> TemplateDesign:
    return next(item for item in templates(instance_of(gpus, nic_ports)) if item.name == name)


def template_of(row: dict[str, Any]) -> TemplateDesign:
    return template(row["n_gpus"], row["nic_ports_per_gpu"], template_name(row))


def drawn(item: TemplateDesign) -> Fabric:
    if isinstance(item.shape, ClosShape):
        return build_clos(item.shape)
    assert isinstance(item.shape, GridShape)
    assert item.media is not None
    return build_grid(item.shape, item.media)


def copper_and_fibre(fabric: Fabric, instance: Instance) -> tuple[int, int]:
    """Links over copper and over fibre, from what the bill buys for each."""
    cables = instance.catalog.cables
    is_copper = [
        any(key in cables for key in (use.per_lower_cage, use.per_upper_cage, use.per_link)) for use in fabric.media
    ]
    copper = sum(int((fabric.links.medium == index).sum()) for index, found in enumerate(is_copper) if found)
    return copper, fabric.n_links - copper


@every_row
def test_a_template_has_the_switches_of_the_table(row: dict[str, Any]) -> None:
    assert template_of(row).counts["switches"] == row["switches"]


@every_row
def test_a_template_has_the_links_of_the_table(row: dict[str, Any]) -> None:
    assert template_of(row).counts["links"] == row["copper"] + row["fibre"]


@every_row
def test_the_switches_have_the_radix_of_the_table(row: dict[str, Any]) -> None:
    switch = template_of(row).switch
    (mode,) = switch.modes_at(row["link_gbps"])
    assert switch.radix(mode) == row["radix"]


@every_row
def test_the_drawn_network_has_the_copper_fibre_and_modules_of_the_table(row: dict[str, Any]) -> None:
    copper, fibre = copper_and_fibre(drawn(template_of(row)), instance_of(row["n_gpus"], row["nic_ports_per_gpu"]))
    assert (copper, fibre, 2 * fibre) == (row["copper"], row["fibre"], row["optical_modules"])


@pytest.mark.parametrize("row", [row for row in ROWS if row["design"] == "ROFT"], ids=lambda row: row["n_gpus"])
def test_a_fat_tree_that_ignores_rails_has_the_counts_of_the_rail_optimized_one(row: dict[str, Any]) -> None:
    mixed = template(row["n_gpus"], row["nic_ports_per_gpu"], "fat-tree")
    assert (mixed.counts["switches"], mixed.counts["links"]) == (row["switches"], row["fibre"])


@pytest.mark.parametrize("row", [row for row in ROWS if row["design"].startswith("HPN")], ids=lambda row: row["n_gpus"])
def test_hpn_has_two_planes_with_host_links_of_200g_and_uplinks_of_400g(row: dict[str, Any]) -> None:
    item = template_of(row)
    fabric = drawn(item)
    to_hosts = fabric.link_class() == HOST
    assert item.counts["planes"] == 2
    assert set(fabric.links.gbps[to_hosts].tolist()) == {row["link_gbps"]}
    assert set(fabric.links.gbps[~to_hosts].tolist()) == {2 * row["link_gbps"]}


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["design"].startswith("ZCube")], ids=lambda row: row["n_gpus"]
)
def test_zcube_runs_copper_from_each_gpu_to_its_row_switch_and_fibre_elsewhere(row: dict[str, Any]) -> None:
    item = template_of(row)
    assert item.media is not None
    assert (item.media.row.kind, item.media.column.kind, item.media.between.kind) == ("dac", "optics", "optics")
    fabric = drawn(item)
    assert fabric.counts() == {name: item.counts[name] for name in fabric.counts()}
