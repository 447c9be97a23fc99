"""Each family of constraints matters: relaxed in the program alone, the optimum of a tiny problem is too cheap."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from designer.costing.pricing import MediaFinder, Pricing
from designer.formulation.clos import ClosProgram, Hardware, LeafOption, Rules
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.hardware import TierKind
from designer.instance.instance import Instance
from designer.workload.phases import derive_traffic
from tests.strategies import COPPER, HALVES, OPTICS, Document, catalog, instance_of, nic, switch

Relaxation = Callable[[list[LeafOption], Hardware, Rules], tuple[list[LeafOption], Hardware, Rules]]


def cost(instance: Instance) -> int | None:
    pricing = Pricing(instance.objective, instance.energy)
    search = ClosSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    return search.run(Limits()).cost_cents


def relaxed_cost(instance: Instance, monkeypatch: pytest.MonkeyPatch, change: Relaxation) -> int | None:
    """The optimum when every program sees changed data, and the closed bounds say nothing."""

    def program(options: list[LeafOption], hardware: Hardware, rules: Rules) -> ClosProgram:
        return ClosProgram(*change([replace(option, bound_cents=0) for option in options], hardware, rules))

    monkeypatch.setattr(ClosSearch, "program", staticmethod(program))
    return cost(instance)


def options_with(**changes: Any) -> Relaxation:
    return lambda options, hardware, rules: ([replace(option, **changes) for option in options], hardware, rules)


def rules_with(**changes: Any) -> Relaxation:
    return lambda options, hardware, rules: (options, hardware, replace(rules, **changes))


def wider(tier: str) -> Relaxation:
    """Switches of a tier with four times the sockets."""

    def widen(kind: TierKind | None) -> TierKind | None:
        if kind is None:
            return None
        model = kind.tier.switch
        model = replace(model, cages=4 * model.cages, max_ports=4 * model.max_ports)
        return replace(kind, tier=replace(kind.tier, switch=model))

    return lambda options, hardware, rules: (
        options,
        replace(hardware, **{tier: widen(getattr(hardware, tier))}),
        rules,
    )


def nothing_lost(options: list[LeafOption], hardware: Hardware, rules: Rules) -> Any:
    return [replace(option, lost=()) for option in options], hardware, rules


FOURS = {"s4": switch(4, 500)}
EIGHTS = {"s8": switch(8, 1000)}
LARGE: Document = {"catalog_document": catalog(FOURS), "cluster": {"gpus": 16}}
FLAT: Document = {"catalog_document": catalog(EIGHTS), "cluster": {"gpus": 20}, "search": {"max_tiers": 2}}
SURVIVING = FLAT | {"workload": [{"demand": "ring"}], "cluster": {"gpus": 8, "hb_domain": 4, "rails": 1}}

# Five hosts leave one port, and cables of two links need two.
TIGHT: Document = {
    "catalog_document": catalog(
        {"s4": switch(4, 500, HALVES, max_ports=6)}, {"cables": COPPER["cables"]}, nic(((1, 200),))
    ),
    "cluster": {"gpus": 15},
    "workload": [{"demand": "ring"}],
    "cabling": {"host_m": 2.0, "leaf_spine_m": 25.0},
}


def surviving(failure: str, throughput: float) -> Document:
    item = {"failure": failure, "throughput": throughput}
    return SURVIVING | {"requirements": {"detour": "spread", "survive": [item]}}


CASES: dict[str, tuple[Document, Relaxation]] = {
    "uplinks carry the leaf's need": (FLAT, options_with(leaf_links=1)),
    "uplinks fit the leaf": (TIGHT, options_with(free_ports=8, free_cages=8)),
    "bundles are even": (FLAT, rules_with(symmetric=False)),
    "links fit the spines": (FLAT, wider("spine")),
    "uplinks carry the pod's need": (LARGE, options_with(pod_links=1)),
    "links fit the spines of pods": (LARGE, wider("spine")),
    "links fit the cores": (LARGE, wider("core")),
    "a switch may be lost": (surviving("switch", 0.5), nothing_lost),
    "a link may be lost": (surviving("link", 1.0) | {"cluster": {"gpus": 20}}, nothing_lost),
}


@pytest.mark.parametrize("family", CASES)
def test_families_matter(family, monkeypatch):
    """Relaxed in the program, the family lets networks through that cannot be built or carry too little."""
    problem, change = CASES[family]
    instance = instance_of(**problem)
    whole = cost(instance)
    relaxed = relaxed_cost(instance, monkeypatch, change)
    assert relaxed is not None
    assert whole is None or relaxed < whole


@pytest.mark.parametrize("field", ["spine_cents", "core_cents", "leaf_spine_cents", "spine_core_cents"])
def test_every_part_of_the_cost_matters(field, monkeypatch):
    """With one price forgotten the objective of a three-tier network falls below its bill."""
    instance = instance_of(catalog(FOURS, OPTICS), {"gpus": 16})
    whole = cost(instance)
    nothing = 0 if field in ("spine_cents", "core_cents") else (0, 0, 0)
    relaxed = relaxed_cost(
        instance,
        monkeypatch,
        lambda options, hardware, rules: (options, replace(hardware, **{field: nothing}), rules),
    )
    assert relaxed < whole
