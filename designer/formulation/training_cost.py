"""The best trade between the cost of a network and the time that the GPUs lose to it, with a proven bound.

N(e), the cost of the cheapest network whose step is within an overhead e, never grows with e. A network whose overhead
lies between a and b so costs at least N(b), with at least a·G of lost time, G what an overhead of 1 loses. From the
loosest budget b on: N(b) is found, and with it the a above which no overhead is worth a look, as N(b) + a·G reaches
the best found so far less the gap; a is the next budget. It ends where a is 0.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.shape import ClosShape
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.step_budget import StepBudget, WithinBudget, carried_by
from designer.instance.instance import Instance
from designer.workload.traffic import Traffic

DEFAULT_GAP = 0.01
SMALLEST_PART = 1e-6  # a budget falls by at least this part of itself, whatever the gap


@dataclass(frozen=True)
class Offer:
    """The cheapest network within a budget, its own overhead, and what no network within that budget costs less than.

    Without a network the bound is infinite where none exists. Money in cents.
    """

    shape: ClosShape | None
    overhead: float
    cost_cents: float
    bound_cents: float


@dataclass(frozen=True)
class Trade:
    """The best network found; no network of those searched costs less than the bound, time lost included, in cents."""

    shape: ClosShape
    overhead: float
    total_cents: float
    bound_cents: float


def best_trade(
    within: Callable[[float], Offer],
    highest: float,
    lost_cents: float,
    gap: float,
    should_stop: Callable[[], bool] = lambda: False,
) -> Trade | None:
    """The network of least cost and time lost, to a gap; None where there is none within the `highest` overhead.

    `within` finds the cheapest network within a budget, `lost_cents` is what an overhead of 1 loses. Stopped, the bound
    is what the overheads not looked at leave of it.
    """
    best = _better(None, within(0.0), lost_cents)  # something good to begin with leaves few budgets to look at
    bound, budget = math.inf, highest
    while True:
        offer = within(budget)
        best = _better(best, offer, lost_cents)
        if best is None or offer.shape is None or should_stop():
            bound = min(bound, offer.bound_cents)
            break
        good = best.total_cents * (1 - gap)
        if offer.bound_cents >= good or not lost_cents:
            bound = min(bound, offer.bound_cents)
            break
        budget = min((good - offer.bound_cents) / lost_cents, budget * (1 - SMALLEST_PART))
        bound = min(bound, offer.bound_cents + budget * lost_cents)
    return None if best is None else replace(best, bound_cents=min(bound, best.total_cents))


def _better(best: Trade | None, offer: Offer, lost_cents: float) -> Trade | None:
    if offer.shape is None:
        return best
    total = offer.cost_cents + offer.overhead * lost_cents
    return best if best is not None and best.total_cents <= total else Trade(offer.shape, offer.overhead, total, 0.0)


def clos_trade(
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    media: MediaFinder,
    lost_cents: float,
    limits: Limits,
) -> Trade | None:
    """The best trade over the instance's Clos networks; `lost_cents` is what an overhead of 1 loses.

    Of three tiers those count whose pods carry what the leaves of a budget give, at that budget.

    Raises:
        StepTimeError: the step of the job has no time.
    """
    share = instance.requirements.max_step_overhead
    budget = StepBudget(instance, traffic, math.inf if share is None else share)
    deadline = time.monotonic() + limits.time_limit_s

    def within(overhead: float) -> Offer:
        left = replace(limits, gap=0.0, time_limit_s=max(0.0, deadline - time.monotonic()))
        found = ClosSearch(instance, traffic, pricing, media, WithinBudget(budget.at(overhead))).run(left)
        if found.shape is None or found.cost_cents is None:
            bound = math.inf if found.termination == "infeasible" else float(found.bound_cents or 0)
            return Offer(None, 0.0, math.inf, bound)
        own = budget.overhead(carried_by(found.shape, traffic))
        return Offer(found.shape, max(0.0, own), found.cost_cents, found.bound_cents or 0)

    def stopped() -> bool:
        return limits.should_stop() or time.monotonic() >= deadline

    return best_trade(within, budget.share, lost_cents, limits.gap or DEFAULT_GAP, stopped)
