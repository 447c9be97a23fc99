"""Availability against enumeration of every state of tiny systems, and against the published chances of no failure."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.certify.availability import (
    Elements,
    FailureRates,
    availability,
    down_probability,
    elements_of,
    no_failure,
)
from designer.certify.certificate import FailureResult

# Switches of each design for 16,384 GPUs, and the chance in percent that none of them is down when each is with 0.03 %:
# Yan et al. (ATOP), SIGCOMM 2025.
NONE_DOWN = {"ZCube": (256, 93), "HPN": (384, 89), "rail-only": (384, 89), "rail-optimized": (640, 83)}


def result(removed: str, stands_for: int, left: float, required: float | None = None) -> FailureResult:
    met = left >= (1.0 if required is None else required)
    return FailureResult(removed, stands_for, "dp", left, left, None, 0, required, met)


@pytest.mark.parametrize(("switches", "percent"), NONE_DOWN.values(), ids=NONE_DOWN)
def test_the_chance_of_no_failed_switch_is_the_published_one(switches: int, percent: int) -> None:
    chance = availability({"switch:leaf": Elements(switches, 0.0003)}, []).no_failed_switch
    assert round(100 * chance) == percent


def enumerated(downs: dict[str, list[float]], weight: dict[str, float], floor: float) -> tuple[float, float]:
    """Chance that at least `floor` is left and expected rest, over all states; each loss takes its weight off."""
    elements = [(name, down) for name, each in downs.items() for down in each]
    met = expected = 0.0
    for state in itertools.product((False, True), repeat=len(elements)):
        chance = math.prod(down if lost else 1 - down for lost, (_, down) in zip(state, elements, strict=True))
        left = max(0.0, 1 - sum(weight[name] for lost, (name, _) in zip(state, elements, strict=True) if lost))
        met += chance * (left >= floor - 1e-9)
        expected += chance * left
    return met, expected


def classes(count: dict[str, int], weight: dict[str, float], floor: float) -> list[FailureResult]:
    """Every single failure and every pair, by classes."""
    found = [result(name, number, max(0.0, 1 - weight[name]), floor) for name, number in count.items() if number]
    for one, other in itertools.combinations_with_replacement(sorted(count), 2):
        pairs = math.comb(count[one], 2) if one == other else count[one] * count[other]
        if pairs:
            left = max(0.0, 1 - weight[one] - weight[other])
            found.append(result(f"{one} + {other}", pairs, left, floor))
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.floats(0, 0.4), st.floats(0, 0.4)),
    st.tuples(st.floats(0, 0.6), st.floats(0, 0.6)),
    st.floats(0.1, 1.0),
)
def test_the_interval_holds_the_truth_of_all_states(
    count: tuple[int, int], down: tuple[float, float], weight: tuple[float, float], floor: float
) -> None:
    names = ("link:leaf-spine", "switch:spine")
    counts, weights = dict(zip(names, count, strict=True)), dict(zip(names, weight, strict=True))
    elements = {name: Elements(number, chance) for name, number, chance in zip(names, count, down, strict=True)}
    met, expected = enumerated({name: [each.down] * each.count for name, each in elements.items()}, weights, floor)
    found = availability(elements, classes(counts, weights, floor))
    assert found.met_lower - 1e-9 <= met <= found.met_upper + 1e-9
    assert found.throughput_lower - 1e-9 <= expected <= found.throughput_upper + 1e-9
    if sum(count) <= 2:  # no state has more than two elements down
        assert found.not_looked_at == pytest.approx(0, abs=1e-9)
        assert found.met_lower == pytest.approx(met, abs=1e-9)
        assert found.throughput_upper == pytest.approx(expected, abs=1e-9)


def test_without_failure_classes_only_the_intact_network_is_known() -> None:
    found = availability({"switch:spine": Elements(2, 0.1)}, [])
    assert found.met_lower == pytest.approx(0.81)
    assert found.met_upper == pytest.approx(1.0)


def test_a_network_that_falls_short_intact_meets_nothing_by_having_no_failure() -> None:
    found = availability({"switch:spine": Elements(2, 0.1)}, [], intact_throughput=0.5, intact_met=False)
    assert found.met_lower == 0
    assert found.throughput_lower == pytest.approx(0.405)


def test_classes_of_one_kind_add_up_and_too_many_are_refused() -> None:
    elements = {"link:leaf-spine": Elements(4, 0.01)}
    half = [result("link:leaf-spine", 2, 1.0), result("link:leaf-spine", 2, 0.5)]
    found = availability(elements, half)
    assert found.met_lower == pytest.approx(0.99**4 + 2 * 0.01 * 0.99**3)
    with pytest.raises(ValueError, match="stand for 5 failures, there are 4"):
        availability(elements, [*half, result("link:leaf-spine", 1, 1.0)])


def test_under_ecmp_what_ecmp_carries_counts_and_a_gpu_cut_off_is_no_whole_network() -> None:
    elements = {"switch:spine": Elements(1, 0.1)}
    lost = FailureResult("switch:spine", 1, "dp", 1.0, 1.0, 0.5, 0, None, True)
    assert availability(elements, [lost]).met_lower == pytest.approx(1.0)
    even = availability(elements, [lost], routing="ecmp")
    assert even.met_lower == pytest.approx(0.9)
    assert even.throughput_upper == pytest.approx(0.95)
    cut = FailureResult("switch:spine", 1, "dp", 1.0, 1.0, 1.0, 8, None, True)
    assert availability(elements, [cut]).met_lower == pytest.approx(0.9)


def test_a_month_of_failures_and_a_day_of_repair() -> None:
    """0.051 % a month, 24 h each: an hour's rate of 7.0e-7, down for 1.68e-5 of the time."""
    assert down_probability(0.00051, 24) == pytest.approx(0.00051 / 730 * 24, rel=1e-4)
    assert down_probability(0.00051, 0) == 0
    elements = elements_of({"leaf": 16, "spine": 8, "leaf_spine_links": 512, "endpoint_links": 1024})
    assert elements["nic"].count == 1024
    assert no_failure(elements.values()) == pytest.approx(
        math.exp(-(24 * down_probability(0.00051, 24) + 1536 * down_probability(0.00057, 24))), rel=1e-4
    )
    worse = elements_of({"leaf": 16}, FailureRates(repair_h=240.0))
    assert worse["switch:leaf"].down > elements["switch:leaf"].down
