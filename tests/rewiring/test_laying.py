"""Networks laid onto one that is there: against every choice of the switches, and with all of their ports in order."""

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from designer.certify.structure import check_structure
from designer.costing.bill import bill_of_materials
from designer.costing.pricing import Pricing
from designer.fabric.fabric import LEAF, Fabric
from designer.rewiring.matching import Matcher
from designer.rewiring.moves import count_moves
from designer.rewiring.ports import with_ports_kept
from tests.rewiring.beside import drawn, pairs
from tests.rewiring.test_moves import names_of

QUIET = settings(
    derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def bundles(fabric: Fabric, switches: dict[int, object]) -> Counter[object]:
    """Links by their ends, an endpoint with its port, speed and cabling; ports of switches do not matter."""
    names, links, found = names_of(fabric, switches), fabric.links, Counter()
    for row in range(fabric.n_links):
        a, b, use = int(links.a[row]), int(links.b[row]), fabric.media[int(links.medium[row])]
        port = (int(links.a_cage[row]), int(links.a_lane[row])) if fabric.nodes.kind[a] < LEAF else None
        ends = frozenset([(names[a], port, use.per_lower_cage), (names[b], None, use.per_upper_cage)])
        found[ends, use.per_link, use.length_m, int(links.gbps[row])] += 1
    return found


def in_common(old: Fabric, new: Fabric, same_as: dict[int, int]) -> int:
    """Links that stay bundle by bundle."""
    there = bundles(old, {int(node): ("old", int(node)) for node in np.flatnonzero(old.nodes.kind >= LEAF)})
    names = {
        int(node): ("old", same_as[int(node)]) if same_as.get(int(node), -1) >= 0 else ("new", int(node))
        for node in np.flatnonzero(new.nodes.kind >= LEAF)
    }
    return sum((there & bundles(new, names)).values())


def every_choice(old: Fabric, new: Fabric):
    """All ways to say which switch is which old one of its model."""
    here = np.flatnonzero(new.nodes.kind >= LEAF).tolist()
    there = np.flatnonzero(old.nodes.kind >= LEAF).tolist()
    padded = [*there, *[-1] * len(here)]
    for chosen in set(permutations(padded, len(here))):
        models = (
            other < 0 or new.models[new.nodes.model[node]] == old.models[old.nodes.model[other]]
            for node, other in zip(here, chosen, strict=True)
        )
        if all(models):
            yield dict(zip(here, chosen, strict=True))


@QUIET
@given(pairs(most_links=60))
def test_no_choice_of_switches_keeps_more_than_the_bound_says(pair):
    """The matching is one of all, at most the best one; the bound is above all of them."""
    _, *parts = pair
    old, new = drawn(*parts)
    counts = [int((fabric.nodes.kind >= LEAF).sum()) for fabric in (old, new)]
    assume(max(counts) <= 4)
    best = max(in_common(old, new, choice) for choice in every_choice(old, new))
    matching = Matcher(old, new).run()
    nodes = np.flatnonzero(new.nodes.kind >= LEAF).tolist()
    mine = in_common(old, new, dict(zip(nodes, matching.same_as.tolist(), strict=True)))
    assert mine <= best <= matching.kept_at_most
    assert mine >= best - 2, "what is found may fall short of the best by little"


@QUIET
@given(pairs())
def test_what_is_laid_is_the_same_network_in_other_ports(pair):
    """Ends of links, bill and structure stay; what is kept port by port is no more than bundle by bundle."""
    instance, *parts = pair
    old, new = drawn(*parts)
    matching = Matcher(old, new).run()
    laid = with_ports_kept(old, new, matching.same_as, instance.catalog)
    pricing = Pricing(instance.objective, instance.energy)
    nodes = {int(node): int(node) for node in np.flatnonzero(new.nodes.kind >= LEAF)}
    assert bundles(laid, nodes) == bundles(new, nodes)
    assert bill_of_materials(laid, instance.catalog, pricing) == bill_of_materials(new, instance.catalog, pricing)
    before, after = (
        check_structure(
            fabric,
            instance.catalog,
            instance.cluster,
            {},
            symmetric_uplinks=parts[1].spines is None or parts[1].spines.bundle is not None,
            any_port=True,
        )
        for fabric in (new, laid)
    )
    assert [check.name for check in after.checks if not check.met] == [
        check.name for check in before.checks if not check.met
    ]
    kept = count_moves(old, laid, matching.same_as).kept
    assert count_moves(old, new, matching.same_as).kept <= kept <= matching.kept_at_most
    choice = dict(zip(nodes, matching.same_as.tolist(), strict=True))
    assert kept <= in_common(old, new, choice)


@QUIET
@given(pairs(), st.randoms(use_true_random=False))
def test_a_network_under_other_names_and_ports_stays_whole(pair, rng):
    """Switches are renumbered inside their tier: nothing is plugged, and the bound says that all can stay."""
    instance, shape, _ = pair
    (old,) = drawn(shape)
    order = np.arange(old.n_nodes)
    for kind in range(LEAF, 5):
        nodes = np.flatnonzero(old.nodes.kind == kind)
        mixed = nodes.tolist()
        rng.shuffle(mixed)
        order[nodes] = mixed
    columns = {name: getattr(old.nodes, name).copy() for name in ("kind", "rail", "plane", "pod", "fabric", "model")}
    for column in columns.values():
        column[order] = column.copy()
    links = replace(old.links, a=order[old.links.a], b=order[old.links.b])
    new = replace(old, nodes=replace(old.nodes, **columns), links=links)
    matching = Matcher(old, new).run()
    assert matching.kept_at_most == old.n_links
    laid = with_ports_kept(old, new, matching.same_as, instance.catalog)
    assert count_moves(old, laid, matching.same_as).plugged == 0


@pytest.mark.parametrize("links", [0, 5])
def test_large_parts_are_assigned_by_the_largest_first_and_bounded_by_rows(links, monkeypatch):
    """Beyond the size that is solved exactly the bound is what each row could have, and never below the assignment."""
    from designer.rewiring import assignment
    from designer.rewiring.assignment import Weights, assigned, most_assigned

    new, old = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    weights = Weights(new, old, np.array([9, 8, 9, links]))
    exact = most_assigned(weights, 2, 2)
    assert exact == 17
    monkeypatch.setattr(assignment, "MOST_SOLVED", 1)
    table = {
        (one, other): count
        for one, other, count in zip(new.tolist(), old.tolist(), weights.links.tolist(), strict=True)
    }
    greedy = sum(table[pair] for pair in assigned(weights, 2, 2))
    assert greedy <= exact <= most_assigned(weights, 2, 2) == 18
