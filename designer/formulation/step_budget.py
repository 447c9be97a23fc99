"""Floors as decisions: how far each phase may slow down so that a training step takes at most a given part longer.

A leaf whose uplinks carry c Gb/s gives phase p the part min(1, c / X_p(n)) of line rate, X_p(n) what n endpoints send
out of it at line rate in its most demanding step; what the phase gets on the whole is the mean over its steps that the
certificate takes, harmonic and weighted by bytes. The time of a step falls with c (`workload/step_time.py`), so there
is a least c within the budget: the table that the Clos program reads in place of the needs of given floors. Pods carry
what the leaves give.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from designer.fabric.shape import ClosShape
from designer.formulation.demand import Needs
from designer.instance.instance import Instance, Job
from designer.instance.schema import RequirementsSection
from designer.workload.cuts import CutFunction, Floats, Layout
from designer.workload.step_time import step_time
from designer.workload.traffic import Phase, Traffic

HALVINGS = 40
LEAST = 1e-4  # part of line rate
SIGNIFICANT = 1e-6


SLACK = 1e-9  # of the step time: rates come with the certificate's rounding

Sent = tuple[tuple[float, ...], ...]
Rates = Sequence[Sequence[float]]  # of every step of every phase that loads the network, as a part of line rate
Enough = Callable[[Rates], bool]


def _part(sent: float, capacity: float) -> float:
    return max(LEAST, min(1.0, capacity / sent)) if sent > 0 else 1.0


class StepBudget:
    """The time of a step of the one job of an instance, as a function of what its phases get.

    `sent` keeps, for a layout and a number of endpoints, what a leaf sends at line rate; `known` the least capacities.
    """

    def __init__(self, instance: Instance, traffic: Traffic, share: float) -> None:
        self.instance, self.traffic, self.share = instance, traffic, share
        (self.job,) = [item for item in instance.workload if isinstance(item, Job)]
        self.names = [phase.name for phase in traffic.network_phases]
        self._bytes = [tuple(step.nic_bytes for step in phase.steps) for phase in traffic.network_phases]
        self.full_s = self.total_s(dict.fromkeys(self.names, 1.0))
        self.known: dict[Sent, float] = {}
        self.sent: dict[tuple[Layout, int], Sent] = {}

    def at(self, share: float) -> "StepBudget":
        """Another budget of the same job; what leaves send at line rate is worked out once for all."""
        other = copy(self)
        other.share, other.known = share, {}
        return other

    def total_s(self, throughput: dict[str, float]) -> float:
        """Seconds of a step when each phase gets this part of line rate."""
        gpu, gbps = self.instance.cluster.slowest(self.job.first_gpu, self.job.gpus)
        return step_time(self.job, gpu, gbps, self.traffic, throughput).total_s

    def overhead(self, throughput: dict[str, float]) -> float:
        """How much longer a step takes than with every phase at line rate, as a part of that."""
        return self.total_s(throughput) / self.full_s - 1

    def within(self, rates: Rates) -> bool:
        """Whether the budget holds when the steps of each phase get these parts of line rate."""
        return self.overhead(self.means(rates)) <= self.share + SLACK

    def means(self, rates: Rates) -> dict[str, float]:
        """What each phase gets on the whole of what its steps get: the harmonic mean, weighted by bytes."""
        found: dict[str, float] = {}
        for name, sizes, parts in zip(self.names, self._bytes, rates, strict=True):
            seconds = sum(size / max(LEAST, part) for size, part in zip(sizes, parts, strict=True))
            found[name] = sum(sizes) / seconds if seconds else 1.0
        return found

    def least_rates(self) -> dict[str, float]:
        """For each phase what none of its steps may fall below, all others at line rate."""
        found: dict[str, float] = {}
        full = [[1.0] * len(sizes) for sizes in self._bytes]
        for number, (name, sizes) in enumerate(zip(self.names, self._bytes, strict=True)):
            least: list[float] = []
            for place in range(len(sizes)):
                low, high = LEAST, 1.0
                rates = [list(row) for row in full]
                for _ in range(HALVINGS):
                    rates[number][place] = (low + high) / 2
                    low, high = (low, rates[number][place]) if self.within(rates) else (rates[number][place], high)
                least.append(low)
            found[name] = min(least, default=1.0)
        return found

    def given(self, sent: Sent, capacity: float) -> dict[str, float]:
        """What each phase gets on the whole when `capacity` carries its steps' `sent`, all in line rates."""
        found: dict[str, float] = {}
        for name, sizes, rates in zip(self.names, self._bytes, sent, strict=True):
            seconds = sum(size / _part(rate, capacity) for size, rate in zip(sizes, rates, strict=True))
            found[name] = sum(sizes) / seconds if seconds else 1.0
        return found

    def least_capacity(self, sent: Sent) -> float:
        """The least capacity within the budget, for what each phase sends at line rate."""
        if sent not in self.known:
            low, high = 0.0, max((rate for rates in sent for rate in rates), default=0.0)
            if self.overhead(self.given(sent, low)) <= self.share:
                high = low
            for _ in range(HALVINGS if high else 0):
                middle = (low + high) / 2
                if self.overhead(self.given(sent, middle)) > self.share:
                    low = middle
                else:
                    high = middle
            self.known[sent] = high
        return self.known[sent]


class BudgetNeeds(Needs):
    """Uplink needs within a budget: the least capacity of a leaf, and of pods what their leaves then give.

    With `floors` the floors of the traffic are needed, too.
    """

    def __init__(
        self,
        cuts: CutFunction,
        requirements: RequirementsSection,
        planes: int,
        endpoint_gbps: int,
        budget: StepBudget,
        *,
        floors: bool,
    ) -> None:
        super().__init__(cuts, requirements, planes, endpoint_gbps)
        self.budget, self.floors = budget, floors
        self._least: dict[int, float] = {}
        self._of_pods: dict[int, Floats] = {}

    def leaf_gbps(self, down: int) -> float:
        """The least that the uplinks of a leaf must carry."""
        least = self._capacity(down) * self.endpoint_gbps
        return max(least, super().leaf_gbps(down)) if self.floors else least

    def _capacity(self, down: int) -> float:
        if down not in self._least:
            self._least[down] = self.budget.least_capacity(self._sent(down))
        return self._least[down]

    def _sent(self, down: int) -> Sent:
        """X of every step of every phase out of a leaf."""
        key = (self.cuts.layout, down)
        if key not in self.budget.sent:
            phases, of_leaf = self.cuts.traffic.network_phases, self.cuts.phase_leaf
            self.budget.sent[key] = tuple(tuple(of_leaf(phase, step, down) for step in phase.steps) for phase in phases)
        return self.budget.sent[key]

    def pods_gbps(self, down: int, most_leaves: int) -> Floats:
        """The same for pods of 1, 2 .. `most_leaves` leaves: every step at what a leaf gives it."""
        known = self._of_pods.get(down)
        if known is None or len(known) < most_leaves:
            known = self._of_pods[down] = self._pods_within(down, most_leaves)
        least = known[:most_leaves]
        return np.maximum(least, super().pods_gbps(down, most_leaves)) if self.floors else least

    def _pods_within(self, down: int, most_leaves: int) -> Floats:
        capacity = self._capacity(down)
        need, sizes = np.zeros(most_leaves), np.arange(1, most_leaves + 1)
        for phase, rates in zip(self.cuts.traffic.network_phases, self._sent(down), strict=True):
            for step, rate in zip(phase.steps, rates, strict=True):
                alone = replace(phase, steps=(step,), floor=_part(rate, capacity))
                cuts = CutFunction(replace(self.cuts.traffic, phases=(alone,)), self.cuts.layout)
                need = np.maximum(need, cuts.pods(down, sizes))
        return need * self.endpoint_gbps


def at_floors(traffic: Traffic) -> Enough:
    """Whether each step of every phase is at its floor."""
    floors = [phase.floor for phase in traffic.network_phases]

    def enough(rates: Rates) -> bool:
        return all(part >= floor - SLACK for floor, row in zip(floors, rates, strict=True) for part in row)

    return enough


def rounded_down(part: float) -> float:
    """A part of line rate as a floor that it meets."""
    return max(LEAST, math.floor(part / SIGNIFICANT) * SIGNIFICANT)


def given_by(shape: ClosShape, traffic: Traffic) -> dict[str, float]:
    """The part of line rate that the uplinks of a Clos leave of each phase in its most demanding step, rounded down."""
    return {phase.name: rounded_down(min(parts)) for phase, parts in _step_parts(shape, traffic)}


def carried_by(shape: ClosShape, traffic: Traffic) -> dict[str, float]:
    """The part of line rate that the uplinks of a Clos leave of each phase on the whole: the mean over its steps."""
    found: dict[str, float] = {}
    for phase, parts in _step_parts(shape, traffic):
        sizes = [step.nic_bytes for step in phase.steps]
        slow = sum(size / part for size, part in zip(sizes, parts, strict=True))
        found[phase.name] = sum(sizes) / slow if slow else 1.0
    return found


def _step_parts(shape: ClosShape, traffic: Traffic) -> Iterator[tuple[Phase, list[float]]]:
    """Each phase with the part of line rate that each of its steps gets of the uplinks of leaves and pods."""
    for phase in traffic.network_phases:
        parts: list[float] = []
        for step in phase.steps:
            alone = replace(traffic, phases=(replace(phase, steps=(step,), floor=1.0),))
            parts.append(_step_part(shape, CutFunction(alone, shape.layout)))
        yield phase, parts


def _step_part(shape: ClosShape, cuts: CutFunction) -> float:
    if shape.spines is None or shape.leaf.up_mode is None:
        return 1.0
    value = _part(cuts.leaf(shape.down) * shape.hosts.gbps, shape.uplinks * shape.leaf.up_mode.gbps)
    if shape.cores is not None and shape.spines.tier.up_mode is not None:
        sent = float(cuts.pods(shape.down, np.array([shape.cores.leaves_per_pod]))[0]) * shape.hosts.gbps
        links = shape.spines.count * shape.cores.uplinks
        value = min(value, _part(sent, links * shape.spines.tier.up_mode.gbps))
    return value


@dataclass(frozen=True)
class WithinBudget:
    """Makes the needs of every layout from one budget; with `floors` those of the floors, too."""

    budget: StepBudget
    floors: bool = False

    def __call__(self, cuts: CutFunction, requirements: RequirementsSection, planes: int, gbps: int) -> Needs:
        """The needs of a layout."""
        return BudgetNeeds(cuts, requirements, planes, gbps, self.budget, floors=self.floors)


def required(instance: Instance, traffic: Traffic) -> Callable[[CutFunction, RequirementsSection, int, int], Needs]:
    """Makes the needs of the instance's requirements: of the floors, and of a budget where there is one.

    Floors alone would not do: they speak of the most demanding step of a phase, time of all its steps.
    """
    share = instance.requirements.max_step_overhead
    return Needs if share is None else WithinBudget(StepBudget(instance, traffic, share), floors=True)


def with_floors(instance: Instance, floors: dict[str, float], share: float) -> Instance:
    """The instance with these floors and this budget in its requirements."""
    chosen: dict[str, Any] = {"throughput": floors, "max_step_overhead": share}
    document = {**instance.document}
    document["requirements"] = {**cast("dict[str, object]", document.get("requirements", {})), **chosen}
    return replace(instance, requirements=instance.requirements.model_copy(update=chosen), document=document)
