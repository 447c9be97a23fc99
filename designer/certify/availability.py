"""Availability: how probable it is that a network carries what it must, from failure rates and what failures leave.

Elements fail independently. States with up to two elements down are added up one class at a time; what is left of the
probability is between "nothing holds" and "all holds", so every answer is an interval.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from designer.certify.certificate import EXACT, FailureResult

HOURS_PER_MONTH = 730.0


@dataclass(frozen=True)
class FailureRates:
    """Part of the elements of each kind that fail in a month, and hours until one is repaired.

    Defaults: 0.057 % of NIC-ToR links and 0.051 % of ToR switches a month (Qian et al., Alibaba HPN, SIGCOMM 2024,
    section 2). Links between switches are assumed to fail like NIC-ToR links, spines and cores like ToRs, and a repair
    is assumed to take 24 h.
    """

    nic_link_per_month: float = 0.00057
    switch_link_per_month: float = 0.00057
    switch_per_month: float = 0.00051
    repair_h: float = 24.0


@dataclass(frozen=True)
class Elements:
    """`count` like elements, each down with probability `down` at any moment."""

    count: int
    down: float


@dataclass(frozen=True)
class Availability:
    """Probabilities at a random moment, and the expected throughput as a fraction of the floors, as intervals.

    `not_looked_at` is the probability of states that no failure class covers: three and more elements down, and pairs
    of a switch with a link, of which nothing is known.
    """

    no_failure: float
    no_failed_switch: float
    met_lower: float
    met_upper: float
    throughput_lower: float
    throughput_upper: float
    not_looked_at: float


def down_probability(per_month: float, repair_h: float) -> float:
    """Long-run part of the time that an element is down: x / (1 + x), x = failures an hour times repair hours."""
    x = per_month / HOURS_PER_MONTH * repair_h
    return x / (1 + x)


def elements_of(counts: Mapping[str, int], rates: FailureRates | None = None) -> dict[str, Elements]:
    """The elements of a network with these counts, by the names that `FailureResult.removed` uses.

    A NIC and its links to the leaves count as one element, `nic`, for each endpoint link.
    """
    rates = rates or FailureRates()
    switch = down_probability(rates.switch_per_month, rates.repair_h)
    link = down_probability(rates.switch_link_per_month, rates.repair_h)
    nic = down_probability(rates.nic_link_per_month, rates.repair_h)
    elements = {f"switch:{tier}": Elements(counts.get(tier, 0), switch) for tier in ("leaf", "spine", "core")}
    for pair in ("leaf-leaf", "leaf-spine", "spine-core"):
        elements[f"link:{pair}"] = Elements(counts.get(f"{pair.replace('-', '_')}_links", 0), link)
    return elements | {"nic": Elements(counts.get("endpoint_links", 0), nic)}


def no_failure(elements: Iterable[Elements]) -> float:
    """Probability that all of these are up: the product of (1 - down)^count."""
    return math.exp(sum(each.count * math.log1p(-each.down) for each in elements if each.count))


def availability(
    elements: Mapping[str, Elements],
    failures: Iterable[FailureResult],
    *,
    routing: str = "adaptive",
    intact_throughput: float = 1.0,
    intact_met: bool = True,
) -> Availability:
    """The availability of a network whose failures of one and two elements are known by classes.

    A class of k elements of probabilities q stands for s states, each of probability P0 * product q / (1 - q), with P0
    the probability that nothing fails. The requirement holds in a class when what is asked of that failure is met, or,
    where nothing is asked, when the whole floors are still carried under `routing` and no GPU is cut off. Classes with
    an element that is not in `elements` are left out: such elements are taken never to fail.

    Raises:
        ValueError: classes stand for more states than the elements have.
    """
    up = no_failure(elements.values())
    met = up if intact_met else 0.0
    expected_lower = expected_upper = up * min(1.0, intact_throughput)
    states: dict[tuple[str, ...], int] = {}
    covered = up
    for failure in failures:
        names = tuple(sorted(part.strip() for part in failure.removed.split("+")))
        if not all(name in elements for name in names):
            continue
        states[names] = states.get(names, 0) + failure.stands_for
        odds = math.prod(elements[name].down / (1 - elements[name].down) for name in names)
        part = up * odds * failure.stands_for
        covered += part
        least, most = (failure.lower, failure.upper) if routing == "adaptive" else (failure.ecmp or 0.0,) * 2
        whole = least >= 1.0 - EXACT and failure.gpus_cut_off == 0
        met += part if (whole if failure.required is None else failure.met) else 0.0
        expected_lower += part * min(1.0, least)
        expected_upper += part * min(1.0, most)
    for names, count in states.items():
        if count > (most := _states(elements, names)):
            raise ValueError(f"{' + '.join(names)}: classes stand for {count} failures, there are {most}")
    rest = max(0.0, 1.0 - covered)
    switches = no_failure(each for name, each in elements.items() if name.startswith("switch"))
    return Availability(up, switches, met, met + rest, expected_lower, expected_upper + rest, rest)


def _states(elements: Mapping[str, Elements], names: tuple[str, ...]) -> int:
    """Ways to choose elements of these kinds."""
    return math.prod(math.comb(elements[name].count, names.count(name)) for name in set(names))
