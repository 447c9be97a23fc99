"""Uncertain prices: how often a design stays the cheapest, what a wrong choice costs, and where the choice changes.

Every drawn price list is designed anew, so the cheapest network under each is known with its proof. The networks found
are then priced under all lists from their bills alone, and none may beat the one that was proven cheapest.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from designer.catalog.media import item_unit
from designer.costing.pricing import Pricing
from designer.errors import DesignerError, Problem, StudyError
from designer.instance.instance import Instance
from designer.study.base import Base
from designer.study.executors import engine_of
from designer.study.points import Point
from designer.study.run import Plan, Progress, run_plan
from designer.study.schema import PriceSection, PricesSection, StudyOptions
from designer.study.table import Row, StudyResult
from designer.study.task import OPTIMAL, Piece
from designer.units import cents, usd

DEVIATIONS = 3  # a normal price is looked at this far from its mean on either side
BASE = Point({}, {})
Network = tuple[Piece, ...]


class RepricingError(DesignerError):
    """A network costs less under some prices than the proven optimum: a bug of this package."""


@dataclass(frozen=True)
class Choice:
    """A network that is the cheapest under some of the prices.

    `base_cost_usd` is what it costs at the base's prices, `cheapest` the share of price lists under which nothing costs
    less, and the regrets are what it costs above the cheapest, on average over all lists and at worst.
    """

    name: str
    words: str
    base_cost_usd: float
    cheapest: float
    mean_regret_usd: float
    worst_regret_usd: float


@dataclass(frozen=True)
class BreakEven:
    """From this price on, all others as in the base, the network `above` is cheaper than `below`."""

    path: str
    value_usd: float
    below: str
    above: str


@dataclass(frozen=True)
class Robustness:
    """What uncertain prices mean for the choice; the first choice is that of the base's prices.

    `unchanged` are the prices that change nothing by themselves, anywhere in their range.
    """

    samples: int
    choices: tuple[Choice, ...]
    break_evens: tuple[BreakEven, ...]
    unchanged: tuple[str, ...]

    def to_document(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)


def robustness(
    base: Base,
    prices: PricesSection,
    options: StudyOptions,
    executor: str | Executor = "processes",
    *,
    workers: int | None = None,
    folder: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Robustness | None:
    """What the uncertain prices of a base mean; None where it was told to stop.

    Raises:
        StudyError: under some prices there is no proven optimum to compare with, or the base has a network already.
        RepricingError: bills and proofs contradict each other.
    """
    if base.instance(BASE).existing is not None:
        found, allowed = "search.existing in the base", "a base whose network is bought anew"
        raise StudyError([Problem("prices", None, "", found, allowed)])
    plain = options.model_copy(update={"certify": False, "pairs": False})
    with engine_of(executor, workers) as engine:

        def designed(points: Sequence[Point]) -> StudyResult | None:
            plan = Plan(base, tuple(points), plain, base.name)
            result = run_plan(
                plan, engine.executor, workers=workers, folder=folder, progress=progress, should_stop=should_stop
            )
            if not result.finished:
                engine.drop()
                return None
            _check_proven(result)
            return result

        lists = [Point(drawn, {}) for drawn in drawn_prices(prices)]
        result = designed([BASE, *lists])
        if result is None:
            return None
        found = _Networks(base)
        for row in result:
            found.number(row)
        changes = _Changes(base, found, designed)
        if prices.break_even and not changes.search(prices.vary):
            return None
    choices = _choices(found, result, [base.instance(row_point) for row_point in lists])
    return Robustness(len(lists), choices, tuple(changes.found), tuple(changes.unchanged))


def drawn_prices(prices: PricesSection) -> list[dict[str, float]]:
    """The price lists, in whole cents: the same for the same seed."""
    source = random.Random(prices.seed)  # noqa: S311 - a sample, no secret
    return [{path: _drawn(source, price) for path, price in prices.vary.items()} for _ in range(prices.samples)]


def _drawn(source: random.Random, price: PriceSection) -> float:
    if price.mean is not None and price.deviation is not None:
        value = max(0.0, source.gauss(price.mean, price.deviation))
    elif price.mode is not None:
        value = source.triangular(price.low or 0.0, price.high or 0.0, price.mode)
    else:
        value = source.uniform(price.low or 0.0, price.high or 0.0)
    return usd(cents(value))


def _ends_cents(price: PriceSection) -> tuple[int, int]:
    if price.mean is not None and price.deviation is not None:
        low, high = price.mean - DEVIATIONS * price.deviation, price.mean + DEVIATIONS * price.deviation
        return cents(max(0.0, low)), cents(high)
    return cents(price.low or 0.0), cents(price.high or 0.0)


def _check_proven(result: StudyResult) -> None:
    for row in result:
        outcome = row.outcome
        if outcome.status != OPTIMAL:
            where = ", ".join(f"{path} = {value}" for path, value in row.settings.items()) or "the base's prices"
            found = f"{outcome.status} at {where}" + (f": {outcome.reason}" if outcome.reason else "")
            raise StudyError([Problem("prices", None, "", found, "a proven optimum under every price list")])


def network_cents(network: Network, instance: Instance) -> int:
    """The objective of what a network buys at the prices of an instance, in cents."""
    pricing = Pricing(instance.objective, instance.energy)
    total = 0
    for piece in network:
        unit = item_unit(instance.catalog, piece.item, piece.length_m)
        total += piece.quantity * pricing.unit_cents(unit.price_cents, unit.power_w)
    return total


class _Networks:
    """Networks met so far, numbered from 0 in the order they were met, each with a row of it."""

    def __init__(self, base: Base) -> None:
        self.base_instance = base.instance(BASE)
        self.known: dict[Network, int] = {}
        self.rows: list[Row] = []

    def number(self, row: Row) -> int:
        """The number of a row's network: of all that buy the same."""
        number = self.known.setdefault(_same(row.pieces), len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number

    def name(self, network: Network) -> str:
        """What a network is called in reports."""
        return f"design {self.known[_same(network)] + 1}"

    def words(self, number: int) -> str:
        """Switches with their radix, then what joins them."""
        row, tiers, cabling = self.rows[number], list[str](), dict[str, list[str]]()
        for piece in row.pieces:
            if piece.item in self.base_instance.catalog.switches:
                radix = row[f"{piece.used_for}_radix"]
                tiers.append(f"{piece.quantity:,} {piece.used_for} {piece.item} of {radix} ports")
            else:
                cabling.setdefault(piece.used_for, []).append(piece.item)
        return "; ".join([", ".join(tiers), *(f"{use} {', '.join(items)}" for use, items in cabling.items())])


def _same(network: Network) -> Network:
    return tuple(sorted(network, key=lambda piece: (piece.used_for, piece.item, piece.length_m)))


def _choices(found: _Networks, result: StudyResult, lists: Sequence[Instance]) -> tuple[Choice, ...]:
    """Every network under every list; what was proven the cheapest must be."""
    networks = list(found.known)
    proven = [cents(row["cost_usd"]) for row in result][1:]
    costs = [[network_cents(network, instance) for instance in lists] for network in networks]
    for sample, (row, least) in enumerate(zip(result.rows[1:], proven, strict=True)):
        own, cheapest = costs[found.number(row)][sample], min(column[sample] for column in costs)
        if not own == least == cheapest:
            raise RepricingError(
                f"price list {sample}: proven {least} cents, the same network priced anew {own}, another {cheapest}"
            )
    choices: list[Choice] = []
    for number, (network, column) in enumerate(zip(networks, costs, strict=True)):
        regrets = [cost - least for cost, least in zip(column, proven, strict=True)]
        choices.append(
            Choice(
                found.name(network),
                found.words(number),
                usd(network_cents(network, found.base_instance)),
                regrets.count(0) / len(regrets),
                usd(sum(regrets)) / len(regrets),
                usd(max(regrets)),
            )
        )
    return tuple(choices)


class _Changes:
    """The search for prices at which the choice changes.

    The least cost over one price is the lower envelope of straight lines, one a network, so it is concave: a network
    that is the cheapest at both ends of an interval is the cheapest inside. Where two networks are, their lines cross,
    and there the search looks for a third below (Eisner and Severance, Journal of the ACM 23(4), 1976).
    """

    def __init__(
        self, base: Base, networks: _Networks, designed: Callable[[Sequence[Point]], StudyResult | None]
    ) -> None:
        self.base, self.networks, self.designed = base, networks, designed
        self.found: list[BreakEven] = []
        self.unchanged: list[str] = []
        self._at: dict[tuple[str, int], tuple[Network, int]] = {}

    def search(self, prices: Mapping[str, PriceSection]) -> bool:
        """Find all changes between the ends of each price; False where it was told to stop."""
        intervals = [(path, *_ends_cents(price)) for path, price in prices.items()]
        while intervals:
            wanted = {(path, value) for path, *ends in intervals for value in ends} - self._at.keys()
            if not self._look_at(sorted(wanted)):
                return False
            intervals = [part for interval in intervals for part in self._parts(*interval)]
        for path in prices:
            self._tell(path)
        return True

    def _tell(self, path: str) -> None:
        """Go along the prices looked at: a network is kept for as long as none is cheaper."""
        values = sorted(value for at, value in self._at if at == path)
        held, _ = self._at[path, values[0]]
        told = len(self.found)
        for before, value in pairwise(values):
            network, least = self._at[path, value]
            if self._cost(held, path, value) > least:
                names = self.networks.name(held), self.networks.name(network)
                self.found.append(BreakEven(path, usd(before + 1), *names))
                held = network
        if len(self.found) == told:
            self.unchanged.append(path)

    def _point(self, path: str, value: int) -> Point:
        return Point({path: usd(value)}, {})

    def _look_at(self, wanted: Sequence[tuple[str, int]]) -> bool:
        result = self.designed([self._point(path, value) for path, value in wanted]) if wanted else None
        if result is None:
            return not wanted
        for (path, value), row in zip(wanted, result, strict=True):
            self._at[path, value] = (row.pieces, cents(row["cost_usd"]))
            self.networks.number(row)
        return True

    def _cost(self, network: Network, path: str, value: int) -> int:
        return network_cents(network, self.base.instance(self._point(path, value)))

    def _parts(self, path: str, low: int, high: int) -> list[tuple[str, int, int]]:
        """The intervals inside of one that are still to be looked at."""
        (left, left_cost), (right, right_cost) = self._at[path, low], self._at[path, high]
        same = self._cost(left, path, high) == right_cost or self._cost(right, path, low) == left_cost
        if same or high - low == 1:
            return []
        before, after = low, high  # the left network is cheaper at `before`, the right one at `after`
        while after - before > 1:
            middle = (before + after) // 2
            cheaper = self._cost(left, path, middle) <= self._cost(right, path, middle)
            before, after = (middle, after) if cheaper else (before, middle)
        return [(path, one, other) for one, other in pairwise((low, before, after, high)) if one < other]
