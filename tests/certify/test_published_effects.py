"""Effects that others published, on networks of their kind: what the certificate says of them, and what it does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.certify.certificate import EXACT
from designer.certify.demand import domain_cut, step_groups
from designer.certify.relays import relay_overhead
from designer.certify.throughput import Bounds, Judge, step_bounds
from designer.certify.view import FabricView, Failure
from designer.fabric.fabric import LEAF, Fabric
from designer.workload.traffic import Component, Traffic
from tests.certify.fabrics import GBPS, SCALE_UP_GBPS, Tree, all_to_all, clos, phase, shift, traffic, worst, zcube
from tests.reference.flow_lp import graph_of, rates_of, throughput

A100 = {"nic_gbps": 200, "scale_up_gbps": 2400.0}  # DGX A100: HDR NICs, 300 GB/s of NVLink each way
H100 = {"nic_gbps": 400, "scale_up_gbps": 3600.0}
# Loss of training throughput with one ToR lost, GPT-3 175B on 4,096 GPUs: Yan et al. (ATOP), SIGCOMM 2025, figure 3.
ONE_TOR_LOST = {"rail-optimized": 0.469, "rail-only": 0.462, "hpn": 0.090, "zcube": 0.028}


def bounds_of(
    fabric: Fabric,
    demands: Traffic,
    lost: Failure | None = None,
    policy: str = "spread",
    scale_up: float = SCALE_UP_GBPS,
) -> Bounds:
    """Bounds of the only step."""
    (demanded,) = demands.phases
    view = FabricView(fabric, lost, FabricView(fabric))
    return step_bounds(Judge(), view, demands, demanded, demanded.steps[0], scale_up, policy)


def dp(fabric: Fabric, domain: int, part: Component, across: str = "rail") -> Traffic:
    """One phase on all GPUs."""
    return traffic(fabric.gpus, domain, phase("dp", fabric.gpus, part, across=across))


@pytest.mark.parametrize("domains", [2, 4, 8, 16])
@pytest.mark.parametrize("part", ["all-gather", "ring", "any"])
def test_the_spine_carries_nothing_of_a_rail_aligned_all_gather(domains: int, part: str) -> None:
    """ForestColl: 16 to 128 GPUs, 300 GB/s scale-up, 25 GB/s NICs: rail-only carries what rails with a spine do."""
    tree = Tree(1, domains, 0)
    joined = Tree(8, domains, domains, up_gbps=A100["nic_gbps"])
    component = {"all-gather": all_to_all(domains), "ring": shift(domains), "any": worst(domains)}[part]
    found = []
    for fabric in (
        clos(tree, rails=8, nic_gbps=A100["nic_gbps"]),
        clos(joined, rails=8, joined=True, nic_gbps=A100["nic_gbps"]),
    ):
        demands = dp(fabric, 8, component)
        bounds = bounds_of(fabric, demands, scale_up=A100["scale_up_gbps"])
        assert bounds.upper - bounds.lower <= EXACT
        found.append(bounds.lower)
        if domains <= 4 and part != "any":
            (demanded,) = demands.phases
            rates = rates_of(demands, demanded, demanded.steps[0], A100["nic_gbps"])
            graph = graph_of(fabric, domain=8, scale_up_gbps=A100["scale_up_gbps"])
            assert throughput(graph, rates) == pytest.approx(bounds.lower, abs=EXACT)
    assert found == pytest.approx([1.0, 1.0], abs=EXACT)


def test_all_to_all_of_all_gpus_on_rail_only() -> None:
    """From rail to rail over the domains: NICs carry what leaves the domain, no less than a spine would."""
    rail_only = clos(Tree(1, 4, 0), rails=8, nic_gbps=A100["nic_gbps"])
    joined = clos(Tree(8, 4, 4, up_gbps=A100["nic_gbps"]), rails=8, joined=True, nic_gbps=A100["nic_gbps"])
    left = [
        bounds_of(fabric, dp(fabric, 8, all_to_all(32), across="cluster"), scale_up=A100["scale_up_gbps"]).lower
        for fabric in (rail_only, joined)
    ]
    assert left == pytest.approx([31 / 24, 1.0], abs=EXACT)  # of 31 peers 24 are in other domains


@pytest.mark.parametrize(("system", "bound"), [(A100, 0.0833), (H100, 0.1111)], ids=["DGX A100", "DGX H100"])
def test_overhead_of_mixture_of_experts_on_rail_only(system: dict[str, float], bound: float) -> None:
    """8.3 % for DGX A100 and 11.1 % for DGX H100 bound the extra time of the hop inside; none where hops overlap."""
    found = relay_overhead(8, **system)
    assert found.bound == pytest.approx(bound, abs=5e-5)
    assert found.serial == pytest.approx(7 / 8 * found.bound)
    assert found.overlapped == 0


@settings(derandomize=True, max_examples=30, database=None)
@given(st.integers(1, 1024), st.floats(1, 3600), st.floats(1, 1e5))
def test_the_overhead_nears_its_bound(domain: int, nic_gbps: float, scale_up_gbps: float) -> None:
    """It grows with the domain and stays below the bound; a domain of one hands nothing over."""
    found, larger = (relay_overhead(size, nic_gbps, scale_up_gbps) for size in (domain, domain + 1))
    assert 0 <= found.serial <= larger.serial < larger.bound == found.bound
    assert relay_overhead(1, nic_gbps, scale_up_gbps).serial == 0
    assert (found.overlapped == 0) == (found.serial <= 1)


@pytest.mark.parametrize("wrong", [(0, 400, 3600), (8, 0, 3600), (8, 400, -1)])
def test_no_overhead_of_nonsense(wrong: tuple[int, float, float]) -> None:
    """Sizes and rates are positive."""
    with pytest.raises(ValueError, match="a domain of"):
        relay_overhead(*wrong)


def networks() -> dict[str, tuple[Fabric, int]]:
    """Four designs for 4,096 GPUs in domains of 8, and a switch of GPUs that is lost.

    Of ZCube's two kinds of switches the column switch, to which servers are spread; a row holds whole servers.
    """
    four = {
        "rail-optimized": clos(Tree(128, 32, 32), rails=8, joined=True),
        "rail-only": clos(Tree(16, 32, 32), rails=8),
        "hpn": clos(Tree(64, 64, 32, up_gbps=400), rails=8, planes=2, joined=True),
        "zcube": zcube(64, 4096),
    }
    leaf = {name: int(np.flatnonzero(fabric.nodes.kind == LEAF)[0]) for name, fabric in four.items()}
    leaf["zcube"] += 64
    return {name: (fabric, leaf[name]) for name, fabric in four.items()}


def test_one_tor_lost_at_4096_gpus() -> None:
    """The order of ATOP's figure: rail-optimized as rail-only, both far behind HPN, ZCube no worse than that.

    Explained: where a GPU has one NIC port, its loss puts two NICs' traffic on one peer's: 1/2 of data parallel
    traffic is left, and published is a loss of 46 % to 47 % of training; nothing but more peers (7/8) would help. Where
    it has two, a domain keeps 15 of 16 ports, and no peer is needed.
    Not explained without a model of the step: that HPN loses 9 % and ZCube 3 %. The GPUs that were hit send at half
    their rate, so the throughput of every rate at once is 1/2 for them as well unless others send for them; how much of
    that shows depends on what else the step waits for.
    """
    cut, floor = {}, {}
    for name, (fabric, leaf) in networks().items():
        demands = dp(fabric, 8, all_to_all(64))
        lost = Failure(nodes=(leaf,))
        bounds = bounds_of(fabric, demands, lost, "single-relay")
        assert bounds.cut_off == 0
        assert ("detour" in bounds.how) == (name in ("rail-optimized", "rail-only"))
        floor[name] = bounds.lower
        (demanded,) = demands.phases
        groups, pairs = step_groups(demands, demanded, demanded.steps[0], GBPS)
        cut[name] = domain_cut(FabricView(fabric, lost), groups, pairs, 8)
        if name in ("rail-optimized", "rail-only"):
            assert bounds.upper == pytest.approx(1 / 2, abs=EXACT)
            assert floor[name] == pytest.approx(1 - ONE_TOR_LOST[name], abs=0.04)
    assert floor == pytest.approx(dict.fromkeys(floor, 1 / 2), abs=EXACT)
    assert cut == pytest.approx({"rail-optimized": 7 / 8, "rail-only": 7 / 8, "hpn": 15 / 16, "zcube": 15 / 16})
    assert ONE_TOR_LOST["rail-optimized"] > ONE_TOR_LOST["rail-only"] > ONE_TOR_LOST["hpn"] > ONE_TOR_LOST["zcube"]
    assert 1 - cut["hpn"] < ONE_TOR_LOST["hpn"] < 1 - floor["hpn"]  # the published loss lies between the bounds
    assert 1 - ONE_TOR_LOST["zcube"] > cut["zcube"]  # so little is lost that not all of the step can be this traffic


def test_one_of_two_tors_lost_costs_a_sixteenth() -> None:
    """Alibaba HPN, SIGCOMM 2024: with two planes and 8 GPUs to a server a lost ToR or link takes 6.25 % of its rate."""
    fabric = clos(Tree(4, 4, 4), rails=8, planes=2)
    demands = dp(fabric, 8, Component("any", 1, fabric.gpus // 8, 0, 1.0))
    leaf = int(np.flatnonzero(fabric.nodes.kind == LEAF)[0])
    for lost in (Failure(nodes=(leaf,)), Failure(links=(0,))):
        bounds = bounds_of(fabric, demands, lost)
        assert bounds.lower == pytest.approx(1 - 0.0625)
        assert bounds.upper == pytest.approx(1 - 0.0625)


def test_the_whole_cluster_of_131072_gpus() -> None:
    """131,072 GPUs, 8 rails of three tiers: groups of 256 in full; a rail leaf lost, 7/8 spread, 1/2 by one relay."""
    fabric = clos(Tree(leaves=32, down=32, spines=32, pods=16, up=32), rails=8)
    assert fabric.gpus == 131072
    assert fabric.n_links + fabric.gpus == 524288  # with the links into the domains
    demands = dp(fabric, 8, all_to_all(256))
    intact = bounds_of(fabric, demands)
    assert (intact.lower, intact.upper, intact.ecmp) == pytest.approx((1.0, 1.0, 1.0), abs=EXACT)
    lost = Failure(nodes=(int(fabric.links.b[0]),))
    for policy, left in (("spread", 7 / 8), ("single-relay", 1 / 2)):
        found = bounds_of(fabric, demands, lost, policy)
        assert (found.lower, found.upper) == pytest.approx((left, left), abs=EXACT)
        assert found.cut_off == 0
