"""How a row compares with what is known, and what rows come to."""

import math
from dataclasses import replace

import pytest

from designer.benchmark.records import Known
from designer.benchmark.row import BenchRow, Measured, Saving
from designer.benchmark.summary import mean_savings, summaries

KNOWN = Known(100.0, 90.0, "0.1.0")
FOUND = Measured("feasible", cost_usd=100.0, lower_bound_usd=90.0, gap=0.1, design_s=2.0, certificate_s=3.0, met=True)


def row(known: Known | None = KNOWN, **changes: object) -> BenchRow:
    return BenchRow("suite", "one", replace(FOUND, **changes), known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "verdict", "bound_verdict"),
    [
        ({}, "as known", "as known"),
        ({"cost_usd": 100.004}, "as known", "as known"),
        ({"cost_usd": 100.01}, "worse", "as known"),
        ({"cost_usd": 99.99}, "better", "as known"),
        ({"lower_bound_usd": 91.0}, "as known", "better"),
        ({"lower_bound_usd": 89.0}, "as known", "worse"),
        # A cheaper network that is proven has a bound below the old one, which spoke of other networks.
        ({"cost_usd": 80.0, "lower_bound_usd": 80.0, "status": "optimal"}, "better", "better"),
        ({"cost_usd": None, "lower_bound_usd": None, "status": "no_design"}, "no design", "no design"),
    ],
)
def test_cost_and_bound_are_compared_to_the_cent(changes: dict[str, object], verdict: str, bound_verdict: str) -> None:
    found = row(**changes)
    assert (found.verdict, found.bound_verdict) == (verdict, bound_verdict)
    assert (found.changes == ()) == (verdict == bound_verdict == "as known")


def test_nothing_changes_where_nothing_is_known() -> None:
    assert (row(None).verdict, row(None).changes, row(None).missed) == ("new", (), False)


def test_a_best_known_cost_is_missed_by_a_dearer_design_and_by_a_proof_that_there_is_none() -> None:
    assert not row().missed
    assert not row(cost_usd=99.0).missed
    assert row(cost_usd=101.0).missed
    assert row(cost_usd=None, status="infeasible").missed
    assert not row(None, cost_usd=None, status="infeasible").missed
    assert not row(cost_usd=None, status="no_design").missed, "a limit says nothing"


def test_changes_say_from_what_to_what() -> None:
    assert row(cost_usd=110.0).changes == ("cost worse: $110 for $100 (+10.00 %)",)
    assert row(lower_bound_usd=95.5).changes == ("bound better: $95.50 for $90",)


def test_savings_are_averaged_over_templates_that_meet() -> None:
    """Half and an eighth of the cost: a quarter on average."""
    rows = [
        row(savings=(Saving("fat-tree", 200.0, True, 0.5), Saving("hpn", 100.0, False, 0.9))),
        row(savings=(Saving("fat-tree", 800.0, True, 0.875), Saving("zcube", 100.0, None, 0.1))),
    ]
    (mean,) = mean_savings(rows)
    assert (mean.template, mean.rows) == ("fat-tree", 2)
    assert math.isclose(mean.saving, 0.75)


def test_a_summary_counts_and_adds_up_by_suite() -> None:
    rows = [
        row(status="optimal", gap=0.0, peak_mb=10.0),
        row(cost_usd=99.0, met=False, peak_mb=30.0),
        BenchRow("other", "two", Measured("failed", "why"), None),
        row(cost_usd=None, status="no_design", gap=None, design_s=None, certificate_s=None, met=None),
    ]
    suite, other = summaries(rows)
    assert (suite.suite, suite.instances, suite.designs, suite.proven, suite.certified) == ("suite", 3, 2, 1, 1)
    assert suite.verdicts == {"as known": 1, "better": 1, "no design": 1}
    assert (suite.mean_gap, suite.design_s, suite.certificate_s, suite.peak_mb) == (0.05, 4.0, 6.0, 30.0)
    assert (other.instances, other.designs, other.mean_gap) == (1, 0, None)
