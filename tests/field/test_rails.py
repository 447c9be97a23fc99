"""Rails on leaves, a lost spine, and rail-only as a network for each rail (cases 11, 12, 15).

The expected numbers come from formulas in this file, not from the package.
"""

import math

import pytest
from field_instances import clos_of, instance_of, ports, template

from designer import Instance, design
from designer.fabric.build import build_clos

# Case 11: whether rails share a leaf is an option with a default.


def leaves_of_rails(servers: int, rails: int, radix: int, sharing: str) -> int:
    whole = radix // servers if sharing == "whole-rails" else 1
    return math.ceil(rails / min(whole, rails))


@pytest.mark.parametrize("servers", [8, 16, 21, 22, 32, 33, 40, 64])
@pytest.mark.parametrize("sharing", ["none", "whole-rails"])
def test_rails_share_a_leaf_whole_or_not_at_all(servers: int, sharing: str) -> None:
    result = design(instance_of(8 * servers, ports(64), rails=8, across="rail", leaf_sharing=sharing))
    assert (result.counts["leaf"], result.counts["spine"]) == (leaves_of_rails(servers, 8, 64, sharing), 0)


@pytest.mark.parametrize(("servers", "leaves"), [(32, 4), (40, 8)])
def test_without_the_option_32_servers_take_4_leaves_and_40_take_8(servers: int, leaves: int) -> None:
    instance = instance_of(8 * servers, ports(64), rails=8, across="rail")
    assert instance.search.leaf_sharing == "whole-rails"
    assert design(instance).counts["leaf"] == leaves
    assert template(instance, "rail-only").counts["leaf"] == leaves


# Case 12: one of S spines takes 1/S of the uplinks with it.


def surviving(servers: int, throughput: float) -> Instance:
    """Rails of `servers` GPUs on 64-port switches, 16 GPUs to a domain; any one switch may fail."""
    return instance_of(
        16 * servers,
        ports(64),
        rails=16,
        across="rail",
        requirements={
            "survive": [{"failure": "switch", "count": 1, "throughput": throughput}],
            "detour": "spread",
        },
    )


@pytest.mark.parametrize(("servers", "spines"), [(128, 2), (256, 4), (512, 8)])
def test_a_lost_spine_leaves_the_others_share_and_no_more(servers: int, spines: int) -> None:
    left = (spines - 1) / spines
    kept, lost = (template(surviving(servers, share), "rail-only") for share in (left, left + 1 / 64))
    assert kept.counts["spine"] == 16 * spines
    assert kept.meets
    assert not lost.meets
    assert any("switch lost" in reason for reason in lost.unmet)


@pytest.mark.parametrize("throughput", [0.5, 0.6, 0.75, 0.8])
def test_a_design_that_must_stand_a_lost_switch_has_the_uplinks_for_it(throughput: float) -> None:
    result = design(surviving(128, throughput))
    shape = result.shape
    assert shape.spines is not None
    assert shape.spines.bundle is not None
    left_gbps = (shape.spines.count - 1) * shape.spines.bundle * 400
    assert left_gbps >= throughput * shape.down * 400


# Case 15: rail-only is a Clos inside each rail, not a fat tree without its spines.


@pytest.mark.parametrize(("gpus", "radix"), [(1024, 32), (2048, 64), (4096, 64), (8192, 64), (16384, 128)])
def test_rail_only_has_a_tree_for_each_rail_and_the_fat_tree_one_tier_more(gpus: int, radix: int) -> None:
    instance = instance_of(gpus, ports(radix), rails=8, across="rail", max_tiers=3)
    for name, endpoints, trees in (("rail-only", gpus // 8, 8), ("fat-tree", gpus, 1)):
        assert template(instance, name).counts["switches"] == trees * full_tree_switches(endpoints, radix)


def full_tree_switches(endpoints: int, radix: int) -> int:
    tiers = 1
    while (radix if tiers == 1 else 2 * (radix // 2) ** tiers) < endpoints:
        tiers += 1
    return (2 * tiers - 1) * endpoints // radix


def test_4096_gpus_take_192_switches_rail_only_and_320_with_rails_joined() -> None:
    instance = instance_of(4096, ports(64), rails=8, across="rail", max_tiers=3)
    counts = template(instance, "rail-only").counts
    assert (counts["leaf"], counts["spine"], counts["switches"]) == (8 * 16, 8 * 8, 192)
    assert template(instance, "fat-tree").counts["switches"] == 320
    assert design(instance).counts["switches"] <= 192


@pytest.mark.parametrize(("gpus", "radix"), [(1024, 32), (1024, 64), (4096, 64)])
def test_the_islands_of_rail_only_are_the_rails_each_of_them_whole(gpus: int, radix: int) -> None:
    import networkx as nx

    instance = instance_of(gpus, ports(radix), rails=8, across="rail", max_tiers=3)
    graph = build_clos(clos_of(template(instance, "rail-only"))).to_networkx()
    islands = [{node for node in island if node < gpus} for island in nx.connected_components(graph)]
    assert sorted(map(sorted, islands)) == [list(range(rail, gpus, 8)) for rail in range(8)]
