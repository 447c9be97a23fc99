"""Cables of every link against all ways to cable small parts, told valid or not by the certificate's own rules."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from floors import on_floor

from designer import Instance, design
from designer.catalog.components import Catalog
from designer.certify.cabling import cabling_checks, medium_problem
from designer.certify.ports import Ends, nic_ports
from designer.costing.bill import bill_of_materials
from designer.costing.pricing import Pricing
from designer.errors import NoDesignError
from designer.fabric.fabric import HOST, Fabric, MediumUse
from designer.layout.floor import LENGTHS_M, length_classes
from designer.layout.recabling import NoCableError, recabled
from designer.layout.sockets import Sockets, sockets_of
from designer.search import Options

CLUSTERS: dict[str, dict[str, Any]] = {
    "one socket each": {"gpus": 32, "gpu": "h100-sxm", "nic": "cx7-400", "rails": 1},
    "two to a socket": {"gpus": 32, "gpu": "h100-sxm", "nic": "cx7-400-dgx", "rails": 1},
    "two planes": {"gpus": 32, "gpu": "h100-sxm", "nic": "bf3-2x200", "rails": 1},
    "odd bundles": {"gpus": 64, "gpu": "h100-sxm", "nic": "cx7-400", "rails": 1},  # cages lead to two switches
}
LEAVES: dict[str, dict[str, Any]] = {
    "one socket each": {"down": 16, "up": 16},
    "two to a socket": {"down": 16, "up": 4},
    "two planes": {"down": 16, "up": 8},
    "odd bundles": {"down": 32, "up": 3},
}
SWITCHES = {"one socket each": "qm9700", "two to a socket": "qm9700", "two planes": "sn5600", "odd bundles": "qm9700"}
MOST_LINKS = 4


@cache
def _network(name: str) -> tuple[Instance, Fabric]:
    search = {"families": ["clos"], "switches": [SWITCHES[name]], "leaf": LEAVES[name], "max_tiers": 2}
    workload = [{"demand": "any", "across": "cluster"}]
    floors = {"throughput": {"any": 0.09}}
    instance = on_floor(0, cluster=CLUSTERS[name], workload=workload, search=search, requirements=floors)
    return instance, design(instance, Options(certify=False)).fabric


def _parts(sockets: Sockets) -> list[list[int]]:
    """Links that share cages, directly or over others."""
    home = list(range(sockets.cages))

    def root(cage: int) -> int:
        while home[cage] != cage:
            cage = home[cage]
        return cage

    for lower, upper in zip(sockets.lower.tolist(), sockets.upper.tolist(), strict=True):
        home[root(lower)] = root(upper)
    parts: dict[int, list[int]] = defaultdict(list)
    for link, lower in enumerate(sockets.lower.tolist()):
        parts[root(lower)].append(link)
    return list(parts.values())


def _uses(catalog: Catalog, length_m: float) -> Iterator[MediumUse]:
    for one, other, fibre in product(catalog.transceivers, catalog.transceivers, catalog.fibres):
        yield MediumUse(one, other, fibre, length_m)
    for key in catalog.cables:
        yield MediumUse(key, None, None, length_m)
        yield MediumUse(None, key, None, length_m)
        yield MediumUse(None, None, key, length_m)


def _least_cents(instance: Instance, fabric: Fabric, sockets: Sockets, part: list[int], length_m: np.ndarray) -> float:
    """The cheapest way to cable a part: every medium that fits for each of its links, all combined."""
    catalog = instance.catalog
    options: list[list[MediumUse]] = []
    for link in part:
        ends = [sockets.kinds[int(sockets.kind[cage[link]])] for cage in (sockets.lower, sockets.upper)]
        lengths = {float(length_m[link]), float(max(length_m[part]))}
        options.append(
            [
                use
                for each in lengths
                for use in _uses(catalog, each)
                if medium_problem(catalog, use, *ends, int(fabric.links.gbps[link])) is None
            ]
        )
    costs = [_cents(catalog, sockets, part, way) for way in product(*options)]
    return min(costs)


def _cents(catalog: Catalog, sockets: Sockets, part: list[int], way: tuple[MediumUse, ...]) -> float:
    """What a part costs cabled this way; infinite where a cage holds two things or a cable leads to too many."""
    heads: dict[int, set[str | None]] = defaultdict(set)
    far: dict[int, set[int]] = defaultdict(set)
    lengths: dict[int, set[float]] = defaultdict(set)
    bought: dict[object, int] = {}
    wide: dict[int, str] = {}
    for link, use in zip(part, way, strict=True):
        lower, upper = int(sockets.lower[link]), int(sockets.upper[link])
        far[lower].add(upper)
        far[upper].add(lower)
        keys = (use.per_lower_cage, use.per_upper_cage, use.per_link)
        cable = next((key for key in keys if key in catalog.cables), None)
        heads[lower].add(cable or use.per_lower_cage)
        heads[upper].add(cable or use.per_upper_cage)
        if cable is None:
            bought[lower] = catalog.transceivers[use.per_lower_cage or ""].price.cents
            bought[upper] = catalog.transceivers[use.per_upper_cage or ""].price.cents
            bought["fibre", link] = catalog.fibres[use.per_link or ""].price_cents(use.length_m)
        elif use.per_link == cable:
            bought["cable", link] = catalog.cables[cable].price.cents
        else:
            cage = lower if use.per_lower_cage else upper
            bought[cage], wide[cage] = catalog.cables[cable].price.cents, cable
            lengths[cage].add(use.length_m)
    for cage, key in wide.items():
        cable_of = catalog.cables[key]
        if len(far[cage]) > cable_of.wide.ports // cable_of.narrow.ports or len(lengths[cage]) > 1:
            return np.inf
        if cable_of.narrow.ports > 1 and any(len(far[other]) > 1 for other in far[cage]):
            return np.inf
    return np.inf if any(len(kinds) > 1 for kinds in heads.values()) else sum(bought.values())


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("seed", range(4))
def test_no_way_to_cable_the_same_ports_costs_less(name: str, seed: int) -> None:
    instance, fabric = _network(name)
    lengths_m = [0.9, 2, 3, 4, 5, 9, 45, 60] if seed % 2 else [0.9, 2, 4]
    need_m = np.random.default_rng(seed).choice(lengths_m, fabric.n_links)
    sockets = sockets_of(fabric, instance.catalog, instance.cluster)
    small = sorted((part for part in _parts(sockets) if len(part) <= MOST_LINKS), key=len)[-8:]
    assert small
    pricing = Pricing("capex", instance.energy)
    cabled = recabled(fabric, instance.catalog, instance.cluster, pricing, need_m)
    length_m = length_classes(need_m)
    for part in small:
        alone = _alone(cabled, part)
        bill = bill_of_materials(alone, instance.catalog, pricing)
        cables = sum(line.total_cents for line in bill.lines if line.section != "switches")
        assert cables == _least_cents(instance, fabric, sockets, part, length_m)


def _alone(fabric: Fabric, links: list[int]) -> Fabric:
    columns = {name: column[links] for name, column in vars(fabric.links).items()}
    return replace(fabric, links=replace(fabric.links, **columns))


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_lengths_the_certificate_takes_the_cabling(name: str, seed: int) -> None:
    """Media fit, a cage has one kind of module, lanes of a cable stay together; cables are long enough."""
    instance, fabric = _network(name)
    need_m = np.random.default_rng(seed).uniform(0.5, (4, 20, 80)[seed], fabric.n_links).round(2)
    cabled = recabled(fabric, instance.catalog, instance.cluster, Pricing("capex", instance.energy), need_m)
    ends, ports = Ends(cabled), nic_ports(cabled, instance.cluster)
    checks = cabling_checks(cabled, instance.catalog, instance.cluster, ends, ports)
    assert all(check.met for check in checks), checks
    length_m = np.array([use.length_m for use in cabled.media])[cabled.links.medium]
    assert (length_m >= need_m).all()
    assert set(length_m.tolist()) <= {float(each) for each in LENGTHS_M}


def test_short_links_get_copper_and_long_ones_light() -> None:
    """Direct copper to 3 m, active copper to 5 m, then multimode and single mode, by what fibres cost a metre."""
    instance, fabric = _network("one socket each")
    hosts = fabric.link_class() == HOST
    expected = {
        3: {"mcp7y00"},
        5: {"mca7j60"},
        7: {"mma4z00-ns400", "mma4z00-ns", "mfp7e10"},
        10: {"mms4x00-ns400", "mms4x00-nm", "mfp7e30"},
    }
    for length_m, keys in expected.items():
        need_m = np.where(hosts, float(length_m), 30.0)
        cabled = recabled(fabric, instance.catalog, instance.cluster, Pricing("capex", instance.energy), need_m)
        used = {cabled.media[row] for row in np.unique(cabled.links.medium[hosts]).tolist()}
        assert {key for use in used for key in (use.per_lower_cage, use.per_upper_cage, use.per_link) if key} == keys


def test_with_energy_the_objective_decides_not_the_purchase() -> None:
    """For fifty years of dear energy a module of 17 W gives way to one that draws less wherever both reach."""
    instance, fabric = _network("one socket each")
    need_m = np.full(fabric.n_links, 8.0)
    energy = instance.energy.model_copy(update={"years": 50, "usd_per_kwh": 2.0})
    costs = {}
    for objective in ("capex", "tco"):
        pricing = Pricing(objective, energy)
        cabled = recabled(fabric, instance.catalog, instance.cluster, pricing, need_m)
        costs[objective] = bill_of_materials(cabled, instance.catalog, Pricing("tco", energy)).total_cents
    assert costs["tco"] < costs["capex"]


def test_a_way_that_no_cable_reaches_is_told_with_its_length() -> None:
    instance, fabric = _network("one socket each")
    need_m = np.full(fabric.n_links, 3000.0)
    with pytest.raises(NoCableError, match=r"osfp-rhs and osfp at 400 Gb/s over 3000 m") as raised:
        recabled(fabric, instance.catalog, instance.cluster, Pricing("capex", instance.energy), need_m)
    assert isinstance(raised.value, NoDesignError)
