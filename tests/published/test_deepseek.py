"""The network table of DeepSeek's hardware paper: fat trees of 64-port switches with two tiers, planes, three tiers."""

import json
from pathlib import Path
from typing import Any

import pytest
from generic_parts import clos_ports, hosts_of, switch_of

from designer.fabric.shape import ClosShape
from designer.fabric.templates import fat_tree, rail_only

TABLE = json.loads(Path(__file__).with_name("deepseek_network_table.json").read_text(encoding="utf-8"))
ROWS = {row["topology"]: row for row in TABLE["rows"]}
GBPS = 400


def shape_of(topology: str, *, planes: int = 1, rails: int = 1) -> ClosShape | None:
    """The topology with its endpoints shared by `planes`; where there are `rails`, each is a network of its own."""
    ports = clos_ports(switch_of(TABLE["radix"], GBPS), GBPS, TABLE["radix"] // 2, TABLE["radix"] // 2)
    hosts = hosts_of(ROWS[topology]["endpoints"] // planes, rails=rails, planes=planes, gbps=GBPS)
    return rail_only(hosts, ports) if rails > 1 else fat_tree(hosts, ports)


def published(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["endpoints"], row["switches"], row["links"]


def counted(shape: ClosShape | None) -> tuple[int, int, int]:
    assert shape is not None
    counts = shape.counts()
    return counts["endpoint_links"], counts["switches"], counts["leaf_spine_links"] + counts["spine_core_links"]


@pytest.mark.parametrize(("topology", "tiers"), [("FT2", 2), ("FT3", 3)])
def test_a_fat_tree_has_the_published_switches_and_links_at_the_fewest_tiers(topology: str, tiers: int) -> None:
    shape = shape_of(topology)
    assert counted(shape) == published(ROWS[topology])
    assert shape is not None
    assert shape.tiers == tiers


def test_the_multi_plane_fat_tree_has_the_published_switches_and_links() -> None:
    shape = shape_of("MPFT", planes=TABLE["mpft_planes"])
    assert counted(shape) == published(ROWS["MPFT"])
    assert shape is not None
    assert shape.fabrics == TABLE["mpft_planes"]


def test_planes_of_single_port_nics_are_rails_with_a_network_each() -> None:
    """There each of a server's 8 NICs is in its own plane, which is what rail-only means by a rail."""
    shape = shape_of("MPFT", rails=TABLE["mpft_planes"])
    assert counted(shape) == published(ROWS["MPFT"])
