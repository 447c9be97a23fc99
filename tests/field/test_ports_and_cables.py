"""Ports, cages, cables and modules of hosts and uplinks (cases 4, 8, 9, 10).

The expected numbers come from formulas in this file, not from the package.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from field_instances import clos_of, instance_of, ports, quantity, template

from designer import design
from designer.catalog import load_catalog
from designer.catalog.media import link_media
from designer.costing.bill import bill_of_materials
from designer.costing.pricing import Pricing
from designer.errors import InfeasibleError
from designer.fabric.build import build_clos
from designer.fabric.fabric import HOST, LEAF, LEAF_SPINE

# Case 4: a cable needs a port at both ends, once; its speed is the lower of both and its optics fit both cages.


@pytest.mark.parametrize("radix", [140, 128, 64])
@pytest.mark.parametrize("management_ports", [0, 3])
def test_host_cables_are_as_many_as_nic_ports_however_many_leaf_ports_are_free(
    radix: int, management_ports: int
) -> None:
    rails, gpus = 4, 240
    instance = instance_of(
        gpus, ports(radix), rails=rails, across="rail", leaf_sharing="none", management_ports=management_ports
    )
    result = design(instance)
    wanted = gpus + rails * management_ports
    assert result.counts["leaf"] * radix > wanted
    assert result.counts["endpoint_links"] == wanted
    assert quantity(result.bill, "host", set(instance.catalog.fibres) | set(instance.catalog.cables)) == wanted


def test_256_nic_ports_and_560_leaf_ports_take_256_host_cables_with_no_port_used_twice() -> None:
    result = design(instance_of(256, ports(140), rails=4, across="rail", leaf_sharing="none"))
    assert 140 * result.counts["leaf"] == 560
    links = result.fabric.links
    assert result.fabric.n_links == 256
    for end, cage, lane in ((links.a, links.a_cage, links.a_lane), (links.b, links.b_cage, links.b_lane)):
        assert len(set(zip(end.tolist(), cage.tolist(), lane.tolist(), strict=True))) == 256


@pytest.mark.parametrize(
    ("nic", "switch"),
    [
        ("cx7-400", "sn5600"),
        ("cx7-200", "qm9700"),
        ("cx6-200", "qm8790"),
        ("bf3-400", "sn5600"),
        ("cx7-2x200", "sn5600"),
        ("thor2-400", "sn5400"),
        ("cx8-800", "q3400-ra"),
    ],
)
def test_a_host_link_runs_at_the_lower_speed_of_its_ends_and_fits_both_cages(nic: str, switch: str) -> None:
    instance = instance_of(128, [switch], nic=nic)
    result = design(instance)
    fabric, catalog = result.fabric, instance.catalog
    to_hosts = fabric.link_class() == HOST
    nic_gbps = catalog.nics[nic].modes[0].gbps
    fastest = max(mode.gbps for mode in catalog.switches[switch].modes)
    assert set(fabric.links.gbps[to_hosts].tolist()) == {min(nic_gbps, fastest)}
    for medium in set(fabric.links.medium[to_hosts].tolist()):
        use = fabric.media[medium]
        cages = [(catalog.nics[nic].cage, use.per_lower_cage), (catalog.switches[switch].cage, use.per_upper_cage)]
        modules = [(cage, catalog.transceivers[key]) for cage, key in cages if key in catalog.transceivers]
        if modules:
            assert all(cage in module.cages for cage, module in modules)
            assert len({(module.fibre, module.optics, module.lane_gbps) for _, module in modules}) == 1
        else:
            key = use.per_link or use.per_upper_cage or use.per_lower_cage
            ends = [catalog.cables[key or ""].wide.cages, catalog.cables[key or ""].narrow.cages]
            assert any(cages[0][0] in low and cages[1][0] in high for low, high in (ends, ends[::-1]))


def test_every_medium_that_the_builtin_catalog_finds_fits_the_cages_and_rate_of_both_its_ends() -> None:
    catalog = load_catalog("builtin")
    for nic in catalog.nics.values():
        for switch in catalog.switches.values():
            for gbps in {mode.gbps for mode in nic.modes} & {mode.gbps for mode in switch.modes}:
                low = next(mode for mode in nic.modes if mode.gbps == gbps)
                (high,) = switch.modes_at(gbps)
                per_cage = nic.ports_per_cage(low), high.ports_per_cage
                for medium in link_media(catalog, nic.cage, per_cage[0], switch.cage, per_cage[1], gbps, 3):
                    for cage, number, key in (
                        (nic.cage, per_cage[0], medium.per_lower_cage),
                        (switch.cage, per_cage[1], medium.per_upper_cage),
                    ):
                        module = catalog.transceivers.get(key or "")
                        if module:
                            assert cage in module.cages
                            assert module.gbps >= number * gbps


def test_a_nic_without_a_port_speed_in_common_with_any_switch_is_refused_by_name() -> None:
    with pytest.raises(InfeasibleError) as error:
        design(instance_of(64, ["sn5400"], nic="cx9-1600"))
    assert any("cluster.nic" in line and "800" in line for line in error.value.conflict)


# Case 8: links to hosts and managers, free ports, and cages that carry two links each.


@pytest.mark.parametrize("units", [1, 2, 4])
@pytest.mark.parametrize("search", [{}, {"leaf": {"down": 32, "up": 32}}], ids=["free", "pinned"])
def test_a_server_less_for_four_management_ports_leaves_four_ports_of_the_leaves_free(
    units: int, search: dict[str, Any]
) -> None:
    gpus = 8 * (32 * units - 1)
    instance = instance_of(gpus, ["qm9700"], rails=8, nic="cx7-400-dgx", management_ports=4, **search)
    counts = design(instance).counts
    assert (counts["leaf"], counts["spine"]) == (8 * units, 4 * units)
    assert counts["endpoint_links"] == gpus + 4
    assert counts["leaf_spine_links"] == 32 * 8 * units
    assert 64 * counts["leaf"] - counts["endpoint_links"] - counts["leaf_spine_links"] == 4


def test_twin_port_modules_are_counted_by_the_cage_as_the_bill_of_the_127_server_reference_design() -> None:
    instance = instance_of(1016, ["qm9700"], rails=8, nic="cx7-400-dgx", management_ports=4)
    fabric = build_clos(clos_of(template(instance, "rail-optimized")))
    bill = bill_of_materials(fabric, instance.catalog, Pricing(instance.objective, instance.energy))
    modules = {key for key, item in instance.catalog.transceivers.items() if "osfp" in item.cages}
    nic_modules = {key for key, item in instance.catalog.transceivers.items() if "osfp-rhs" in item.cages}
    assert quantity(bill, "host", modules) + quantity(bill, "leaf-spine", modules) == 1536
    assert quantity(bill, "host", nic_modules) == 508 + 4, "a module for two NICs, one for each management port"
    fibres = set(instance.catalog.fibres)
    assert quantity(bill, "host", fibres) + quantity(bill, "leaf-spine", fibres) == 127 * 8 + 4 + 1024


# Case 9: both ends of an uplink may be broken out.


@pytest.mark.parametrize("hosts", [128, 256, 512, 1024, 2048])
def test_a_switch_of_32_twin_cages_is_one_of_64_ports_on_both_sides_of_an_uplink(hosts: int) -> None:
    result = design(instance_of(hosts, ["qm9700"], nic="cx7-400"))
    leaves = hosts // 32
    assert (result.counts["leaf"], result.counts["spine"]) == (leaves, leaves // 2)
    links, uplinks = result.fabric.links, result.fabric.link_class() == LEAF_SPINE
    for end, cage in ((links.a, links.a_cage), (links.b, links.b_cage)):
        used = Counter(zip(end[uplinks].tolist(), cage[uplinks].tolist(), strict=True))
        assert set(used.values()) == {2}
        assert max(number for _, number in used) < 32


# Case 10: bandwidth counts, not ports.


@pytest.mark.parametrize(("nodes", "uplinks"), [(66, 7), (60, 10), (72, 4), (40, 20)])
def test_oversubscription_of_split_ports_is_a_ratio_of_bandwidths(nodes: int, uplinks: int) -> None:
    share = uplinks * 200 / (nodes * 100)
    instance = instance_of(
        2 * nodes,
        ["qm8790"],
        nic="nic-100",
        leaf={"down": nodes, "up": uplinks},
        requirements={"throughput": {"any": min(share, 1.0)}},
    )
    result = design(instance)
    links, classes = result.fabric.links, result.fabric.link_class()
    for leaf in np.flatnonzero(result.fabric.nodes.kind == LEAF).tolist():
        below = links.gbps[(classes == HOST) & (links.b == leaf)].sum()
        above = links.gbps[(classes == LEAF_SPINE) & (links.a == leaf)].sum()
        assert below / above == pytest.approx(1 / share)
    words = [row.why for row in result.comparison]
    assert any(f"oversubscribed {1 / share:.1f}:1" in why for why in words) == (share < 1)


def test_66_nodes_of_100g_over_7_uplinks_of_200g_are_oversubscribed_4_71_to_1() -> None:
    shape = design(
        instance_of(
            132,
            ["qm8790"],
            nic="nic-100",
            leaf={"down": 66, "up": 7},
            requirements={"throughput": {"any": 14 / 66}},
        )
    ).shape
    assert shape.leaf.up_mode is not None
    assert round(shape.down * shape.hosts.gbps / (shape.uplinks * shape.leaf.up_mode.gbps), 2) == 4.71
    assert shape.leaf.ports_problem(66, 7) is None
    assert shape.leaf.ports_problem(68, 7) is not None, "34 cages of two ports and 7 of one are more than 40"
