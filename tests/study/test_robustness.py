"""Uncertain prices: break-even prices and regrets are what designing anew at every price says."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer import design
from designer.catalog import item_unit
from designer.errors import StudyError
from designer.search import Options
from designer.study.base import Base
from designer.study.points import Point
from designer.study.robustness import Robustness, _Changes, _Networks, drawn_prices, robustness
from designer.study.schema import PriceSection, PricesSection, StudyOptions
from designer.study.table import Row, StudyResult
from designer.study.task import Outcome, Piece, Scalar
from tests.study.samples import BASE

# Two switches to choose from, so that the choice hangs on their prices.
CHOICE = {
    **BASE,
    "cluster": {**BASE["cluster"], "gpus": 128},
    "workload": [{"demand": "any", "across": "rail"}],
    "search": {"families": ["clos"], "switches": ["qm9700", "sn5600"]},
}
ONE, OTHER = "catalog.switches.qm9700.price.usd", "catalog.switches.sn5600.price.usd"
MODULE = "catalog.transceivers.mms4x00-nm.price.usd"


def prices(**changes: Any) -> PricesSection:
    return PricesSection.model_validate({"samples": 12, "seed": 3, **changes})


def least_cents(base: Base, settings: dict[str, Any]) -> int:
    return design(base.instance(Point(settings, {})), Options(certify=False)).cost_cents


@pytest.fixture(scope="module")
def base() -> Base:
    return Base.of(CHOICE)


VARY = {ONE: {"from": 20_000, "to": 60_000}, OTHER: {"mean": 40_000, "deviation": 10_000}, MODULE: {"from": 1, "to": 3}}


@pytest.fixture(scope="module")
def found(base: Base) -> Robustness:
    result = robustness(base, prices(vary=VARY), StudyOptions(), "serial")
    assert result is not None
    return result


def test_shares_and_regrets_are_those_of_designing_anew(base: Base, found: Robustness) -> None:
    lists = drawn_prices(prices(vary=VARY))
    proven = [least_cents(base, drawn) for drawn in lists]
    assert len(found.choices) > 1
    assert found.choices[0].base_cost_usd == least_cents(base, {}) / 100
    assert sum(choice.cheapest for choice in found.choices) >= 1
    best = min(choice.mean_regret_usd for choice in found.choices)
    assert 0 <= best <= found.choices[0].mean_regret_usd
    for choice in found.choices:
        assert (choice.worst_regret_usd == 0) is (choice.cheapest == 1)
        assert 0 <= choice.mean_regret_usd <= choice.worst_regret_usd
    assert found.samples == len(proven) == 12
    # The first design under every list, from its bill: what it costs above the proven least.
    bill = design(base.instance(Point({}, {})), Options(certify=False)).bill
    keys = {path.split(".")[2]: path for path in VARY}
    regrets = []
    for drawn, least in zip(lists, proven, strict=True):
        cost = sum(
            line.quantity * (round(drawn[keys[line.item]] * 100) if line.item in keys else line.unit_cents)
            for line in bill.lines
        )
        regrets.append(cost - least)
    assert found.choices[0].mean_regret_usd == pytest.approx(sum(regrets) / 1200)
    assert found.choices[0].worst_regret_usd == max(regrets) / 100
    assert found.choices[0].cheapest == regrets.count(0) / 12


def test_the_choice_changes_at_the_break_even_price_to_the_cent(base: Base, found: Robustness) -> None:
    changes = [change for change in found.break_evens if change.path == ONE]
    assert changes, "somewhere the other switch is cheaper"
    for change in changes:

        def bought(usd: float) -> list[tuple[str, str, int]]:
            lines = design(base.instance(Point({ONE: usd}, {})), Options(certify=False)).bill.lines
            return sorted((line.item, line.used_for, line.quantity) for line in lines)

        assert bought(change.value_usd - 0.02) != bought(change.value_usd + 0.01)
        assert change.below != change.above
    assert all(change.path in VARY for change in found.break_evens)
    assert {change.path for change in found.break_evens}.isdisjoint(found.unchanged)
    assert {*found.unchanged, *(change.path for change in found.break_evens)} == set(VARY)


def test_no_change_of_the_choice_is_missed(base: Base, found: Robustness) -> None:
    """The least cost is a straight line between two neighbouring changes, at random prices between them."""
    source = random.Random(1)  # noqa: S311 - prices, no secrets
    ends = [20_000.0, *(change.value_usd for change in found.break_evens if change.path == ONE), 60_000.0]
    for low, high in pairwise(ends):
        one, other = low, high - 0.01 if high < 60_000 else high
        left, right = least_cents(base, {ONE: one}), least_cents(base, {ONE: other})
        for _ in range(3):
            price = round(source.uniform(one, other), 2)
            between = left + (right - left) * (price - one) / (other - one)
            assert least_cents(base, {ONE: price}) == pytest.approx(between, abs=1)


# A network of the property below: so many switches, whose price varies, and so many fibres of 55 dollars.
LINES = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 9)), min_size=2, max_size=7, unique=True)


@settings(max_examples=30, deadline=None)
@given(
    LINES, st.sampled_from([0, 1, 275, 500]), st.sampled_from([7000, 3000, 50, 1]), st.randoms(use_true_random=False)
)
def test_changes_are_those_of_going_through_every_cent(
    lines: list[tuple[int, int]], low: int, width: int, source: random.Random
) -> None:
    base = Base.of(BASE)
    fibre_cents = item_unit(base.instance(Point({}, {})).catalog, "mfp7e30", 0).price_cents

    def cost(line: tuple[int, int], price: int) -> int:
        return line[0] * price + line[1] * fibre_cents

    def cheapest(price: int) -> list[tuple[int, int]]:
        least = min(cost(line, price) for line in lines)
        return [line for line in lines if cost(line, price) == least]

    def designed(points: Sequence[Point]) -> StudyResult:
        rows: list[Row] = []
        for point in points:
            price = round(point.settings[ONE] * 100)
            line = source.choice(cheapest(price))
            pieces = (Piece("qm9700", "leaf", line[0], 0.0), Piece("mfp7e30", "host", line[1], 0.0))
            values: dict[str, Scalar] = {"cost_usd": cost(line, price) / 100, "leaf_radix": 64}
            rows.append(Row(point.settings, {}, Outcome("optimal", "", values, pieces)))
        return StudyResult("lines", tuple(rows))

    changes = _Changes(base, _Networks(base), designed)
    section = PriceSection.model_validate({"from": low / 100, "to": (low + width) / 100})
    assert changes.search({ONE: section})
    # A choice holds for as long as nothing is cheaper; which of several equals is taken next is open.
    paths: list[tuple[tuple[int, int], tuple[int, ...]]] = [(line, ()) for line in cheapest(low)]
    for price in range(low, low + width + 1):
        best = cheapest(price)
        paths = [
            step
            for line, told in paths
            for step in ([(line, told)] if line in best else [(other, (*told, price)) for other in best])
        ]
        paths = list(dict.fromkeys(paths))
    assert tuple(round(change.value_usd * 100) for change in changes.found) in {told for _, told in paths}


def test_price_lists_are_drawn_as_asked() -> None:
    section = prices(
        vary={
            ONE: {"from": 10, "to": 20},
            OTHER: {"from": 10, "to": 20, "mode": 19},
            MODULE: {"mean": 5, "deviation": 4},
        },
        samples=2000,
    )
    lists = drawn_prices(section)
    assert lists == drawn_prices(section)
    assert lists != drawn_prices(section.model_copy(update={"seed": 4}))
    even, leaning, normal = ([drawn[path] for drawn in lists] for path in (ONE, OTHER, MODULE))
    assert 10 <= min(even) < 10.1
    assert 19.9 < max(even) <= 20
    assert sum(even) / 2000 == pytest.approx(15, abs=0.3)
    assert sum(leaning) / 2000 == pytest.approx((10 + 20 + 19) / 3, abs=0.3)
    assert min(normal) == 0, "no price is below zero"
    assert all(round(price * 100) == pytest.approx(price * 100) for price in even)


def test_without_a_proven_optimum_there_is_nothing_to_compare_with() -> None:
    impossible = Base.of({**CHOICE, "search": {**CHOICE["search"], "leaf": {"down": 1, "up": 0}}})
    with pytest.raises(StudyError, match="found infeasible at the base's prices"):
        robustness(impossible, prices(vary={ONE: {"from": 1, "to": 2}}), StudyOptions(), "serial")


def test_it_stops_when_told(base: Base) -> None:
    section = prices(vary={ONE: {"from": 1, "to": 2}})
    assert robustness(base, section, StudyOptions(), "serial", should_stop=lambda: True) is None
