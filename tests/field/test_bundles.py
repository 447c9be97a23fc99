"""How many spines, how many links from a leaf to each of them, and what uneven bundles take away (cases 1-3, 6, 7).

The expected numbers come from formulas in this file, not from the package.
"""

import math
from collections import Counter

import pytest
from field_instances import CATALOG, HERE, instance_of, links_by_pair, ports

from designer import design
from designer.catalog import load_catalog
from designer.catalog.components import NicMode, Price, Switch
from designer.catalog.media import LinkMedium
from designer.fabric.build import build_clos
from designer.fabric.fabric import LEAF_SPINE, Fabric
from designer.fabric.pairs import worst_leaf_pair
from designer.fabric.shape import ClosShape, Hosts, Media, Spines, Tier
from designer.workload.cuts import Layout

SWITCH_USD = {32: 18_000, 36: 19_000, 40: 20_000, 64: 30_000, 128: 70_000, 144: 82_000}
LINK_USD = 800


def divisor_at_least(number: int, least: int) -> int:
    return min((value for value in range(1, number + 1) if number % value == 0 and value >= least), default=0)


def spines_for(leaves: int, uplinks: int, radix: int, *, uniform: bool) -> int:
    """Spines that take all uplinks, each leaf reaching each of them; 0 where more would be needed than uplinks."""
    least = math.ceil(leaves * uplinks / radix)
    if uniform:
        return divisor_at_least(uplinks, least)
    return least if least <= uplinks else 0


def cheapest_usd(hosts: int, radices: list[int], *, uniform: bool = True) -> int:
    """The cheapest non-blocking network of at most two tiers, by trying all ports down and up on all switches."""
    costs = [SWITCH_USD[radix] + LINK_USD * hosts for radix in radices if hosts <= radix]
    for leaf in radices:
        for down in range(1, min(leaf, hosts)):
            leaves = math.ceil(hosts / down)
            for uplinks in range(min(down, hosts - down), leaf - down + 1):
                for spine in radices:
                    spines = spines_for(leaves, uplinks, spine, uniform=uniform)
                    if spines:
                        switches = leaves * SWITCH_USD[leaf] + spines * SWITCH_USD[spine]
                        costs.append(switches + LINK_USD * (hosts + leaves * uplinks))
    return min(costs)


# Cases 1 and 2: uplinks of a leaf are not a number of spines, and a pair of leaf and spine may have several links.


@pytest.mark.parametrize(
    ("hosts", "radix"), [(512, 64), (1024, 64), (2048, 64), (128, 64), (256, 32), (512, 32), (2048, 128), (1296, 144)]
)
def test_full_trees_have_half_as_many_spines_as_leaves_and_equal_bundles(hosts: int, radix: int) -> None:
    leaves = 2 * hosts // radix
    spines = divisor_at_least(radix // 2, leaves // 2)
    result = design(instance_of(hosts, ports(radix)))
    assert (result.counts["leaf"], result.counts["spine"]) == (leaves, spines)
    pairs = links_by_pair(result.fabric, LEAF_SPINE)
    assert len(pairs) == leaves * spines
    assert set(pairs.values()) == {radix // 2 // spines}


def test_512_gpus_take_16_leaves_and_8_spines_with_4_links_a_pair_and_1024_take_32_and_16_with_2() -> None:
    for hosts, expected in ((512, (16, 8, {4})), (1024, (32, 16, {2}))):
        result = design(instance_of(hosts, ports(64)))
        bundles = set(links_by_pair(result.fabric, LEAF_SPINE).values())
        assert (result.counts["leaf"], result.counts["spine"], bundles) == expected


# Case 3: port sums do not show that two leaves may share few spines.


def uneven_fabric(leaves: int, uplinks: int, spines: int, down: int) -> Fabric:
    catalog = load_catalog(CATALOG, HERE)
    nic = catalog.nics["nic-400"]
    cable = LinkMedium("cable", "aoc", None, None, "cable", 1, 100)
    switch = wide_switch(max(down + uplinks, math.ceil(leaves * uplinks / spines)), catalog.switches["ports-64"])
    mode = switch.modes[0]
    hosts = Hosts(leaves * down, 1, nic, NicMode(1, 400), 0)
    layout = Layout(mixed=False, rails=1, per_rail=hosts.gpus)
    shape = ClosShape(
        hosts,
        layout,
        Tier(switch, mode, mode),
        down,
        uplinks,
        Spines(Tier(switch, mode), spines, None),
        media=Media(cable, 15, cable, 30),
    )
    return build_clos(shape)


def wide_switch(radix: int, like: Switch) -> Switch:
    price = Price(0, "a test", "2025", assumed=True)
    return Switch(
        **{**vars(like), "key": f"wide-{radix}", "cages": radix, "max_ports": radix, "price": price},
    )


def least_overlap(uplinks: int, spines: int) -> float:
    """Leaves take turns at the spines: the overlap of two runs of `uplinks` around a ring, whole rounds aside.

    Leaf l begins at l * uplinks mod spines, so that two of them are a multiple of gcd(uplinks, spines) apart.
    """
    rounds, run = divmod(uplinks, spines)
    step = math.gcd(uplinks, spines)
    overlap = min(max(0, run - d) + max(0, run - (spines - d)) for d in range(0, spines, step))
    return (rounds * spines + overlap) / uplinks


@pytest.mark.parametrize(
    ("leaves", "uplinks", "spines"),
    [(50, 4, 6), (50, 4, 8), (50, 5, 6), (16, 18, 8), (33, 32, 17), (22, 32, 11), (20, 3, 7), (24, 6, 9), (40, 16, 10)],
)
def test_the_worst_pair_of_leaves_shares_the_least_overlap_of_two_runs_of_uplinks(
    leaves: int, uplinks: int, spines: int
) -> None:
    fabric = uneven_fabric(leaves, uplinks, spines, down=4)
    links = links_by_pair(fabric, LEAF_SPINE)
    per_spine = Counter(fabric.links.b[fabric.link_class() == LEAF_SPINE].tolist())
    assert max(per_spine.values()) - min(per_spine.values()) <= 1, "ports are used evenly: their sum shows nothing"
    assert sum(links.values()) == leaves * uplinks
    assert worst_leaf_pair(fabric) == pytest.approx(least_overlap(uplinks, spines))


def test_50_leaves_of_4_uplinks_over_6_spines_leave_a_pair_half_of_its_uplinks() -> None:
    assert worst_leaf_pair(uneven_fabric(50, 4, 6, down=4)) == 0.5


# Cases 6 and 7: port counting passes networks that are not uniform; the choice between the two is the user's.


@pytest.mark.parametrize(
    ("hosts", "radices"),
    [(276, [36]), (700, [64]), (1056, [64]), (1056, [64, 128]), (1056, list(SWITCH_USD)), (130, [36]), (300, [40, 32])],
)
@pytest.mark.parametrize("uniform", [True, False], ids=["uniform", "uneven"])
def test_the_cheapest_network_of_two_tiers_is_that_of_trying_all_ports(
    hosts: int, radices: list[int], *, uniform: bool
) -> None:
    result = design(instance_of(hosts, ports(*radices), requirements={"symmetric_uplinks": uniform}))
    assert result.status == "optimal"
    assert result.cost_cents == 100 * cheapest_usd(hosts, radices, uniform=uniform)
    assert (result.worst_leaf_pair == 1.0) or not uniform


@pytest.mark.parametrize(
    ("hosts", "radix", "leaves", "uniform_spines", "uneven_spines", "worst"),
    [(276, 36, 16, 9, 8, 16 / 18), (1056, 64, 33, 32, 17, 15 / 16), (704, 64, 22, 16, 11, 31 / 32)],
)
def test_uneven_bundles_save_spines_and_the_worst_leaf_pair_says_what_that_takes(
    hosts: int, radix: int, leaves: int, uniform_spines: int, uneven_spines: int, worst: float
) -> None:
    uniform = design(instance_of(hosts, ports(radix)))
    uneven = design(instance_of(hosts, ports(radix), requirements={"symmetric_uplinks": False}))
    assert (uniform.counts["leaf"], uniform.counts["spine"]) == (leaves, uniform_spines)
    assert (uneven.counts["leaf"], uneven.counts["spine"]) == (leaves, uneven_spines)
    assert (uniform.worst_leaf_pair, uneven.worst_leaf_pair) == (1.0, pytest.approx(worst))
    assert uneven.cost_cents < uniform.cost_cents


def test_276_nodes_take_pairs_of_links_from_each_leaf_to_each_spine() -> None:
    pairs = links_by_pair(design(instance_of(276, ports(36))).fabric, LEAF_SPINE)
    assert len(pairs) == 16 * 9
    assert set(pairs.values()) == {2}


def test_a_spine_of_128_ports_in_the_catalog_makes_1056_hosts_cheaper_with_uniform_bundles() -> None:
    small, both = (design(instance_of(1056, ports(*radices))) for radices in ((64,), (64, 128)))
    assert both.cost_cents < small.cost_cents
    assert both.shape.spines is not None
    assert both.shape.spines.tier.switch.key == "ports-128"
    assert both.worst_leaf_pair == 1.0
