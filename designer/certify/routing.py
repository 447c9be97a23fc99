"""Judges a routing document: every path link by link, and what its weights carry of each step of the traffic.

Nothing of it is taken on trust. The demand is what the certificate takes it to be; the load of every arc follows from
the weights, for `any` by the demand that is worst for it. Beside it stand what ECMP carries of the same step, and the
upper bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from designer.certify.certificate import EXACT, RoutingResult
from designer.certify.demand import Demand, TooManyPairsError, apart, on_rails, step_demand, step_groups
from designer.certify.network import unit_problems
from designer.certify.problem import FlowProblem
from designer.certify.static_routes import sending_pairs, static_throughput
from designer.certify.throughput import Judge, step_bounds
from designer.certify.view import FabricView
from designer.errors import InputError, Problem
from designer.fabric.fabric import LEAF, Fabric
from designer.fabric.paths import Weighted
from designer.fabric.routes import StepRouting, routing_from_document
from designer.workload.traffic import Phase, Step, Traffic

MAX_TOLD = 20


def judge_routing(
    fabric: Fabric, traffic: Traffic, document: object, path: str = "routing"
) -> tuple[RoutingResult, ...]:
    """What the routes of a document carry of each step on the intact fabric; `path` is what messages call it.

    Raises:
        InputError: the document is none, or not of this fabric and traffic: paths over links that are not there,
            switches that exchange traffic without a path, another throughput than its weights give.
    """
    steps = routing_from_document(document, path)
    demanded = [(phase, step) for phase in traffic.network_phases for step in phase.steps]
    names = [f"{phase.job} {phase.name} {step.name}" for phase, step in demanded]
    found = [f"{step.job} {step.phase} {step.step}" for step in steps]
    if found != names:
        at = next((n for n, (one, other) in enumerate(zip(found, names, strict=False)) if one != other), None)
        if at is None:
            raise InputError([Problem(path, None, "steps", f"{len(found)} steps", f"the {len(names)} of the traffic")])
        raise InputError([Problem(path, None, f"steps[{at}]", found[at], names[at])])
    judged = _Judged(fabric, traffic, path)
    results = [
        judged.step(number, phase, step, routing)
        for number, ((phase, step), routing) in enumerate(zip(demanded, steps, strict=True))
    ]
    if judged.problems:
        raise InputError(judged.problems[:MAX_TOLD])
    return tuple(results)


@dataclass
class _Judged:
    """One document under judgement, and what is wrong with it."""

    fabric: Fabric
    traffic: Traffic
    path: str
    judge: Judge = field(default_factory=Judge)
    problems: list[Problem] = field(default_factory=list[Problem])

    def __post_init__(self) -> None:
        self.view = FabricView(self.fabric)
        links, kind = self.fabric.links, self.fabric.nodes.kind
        inner = kind[links.a] >= LEAF
        ends = set(zip(links.a[inner].tolist(), links.b[inner].tolist(), strict=True))
        self.joined = ends | {(b, a) for a, b in ends}

    def refuse(self, at: str, found: str, allowed: str) -> None:
        self.problems.append(Problem(self.path, None, at, found, allowed))

    def step(self, number: int, phase: Phase, step: Step, routing: StepRouting) -> RoutingResult:
        """The result of one step; meaningless where it has problems."""
        at, before = f"steps[{number}]", len(self.problems)
        self._check_links(at, routing)
        weighted = 1.0
        for problem, switches in self._problems(at, phase, step):
            routes = self._local(at, problem, switches, routing)
            if len(self.problems) == before:
                weighted = min(weighted, static_throughput(problem, routes))
        if len(self.problems) > before:
            return RoutingResult(phase.job, phase.name, step.name, 0.0, None, 1.0)
        if abs(routing.throughput - weighted) > EXACT:
            self.refuse(f"{at}.throughput", f"{routing.throughput:.9g}", f"{weighted:.9g}, what the weights carry")
        bounds = step_bounds(self.judge, self.view, self.traffic, phase, step, np.inf, "spread")
        ecmp = None if bounds.ecmp is None else min(1.0, bounds.ecmp)
        return RoutingResult(phase.job, phase.name, step.name, weighted, ecmp, min(1.0, bounds.upper))

    def _check_links(self, at: str, routing: StepRouting) -> None:
        for (source, target), paths in routing.paths.items():
            for one in paths:
                missing = next((hop for hop in pairwise(one.switches) if hop not in self.joined), None)
                if missing is not None:
                    where = f"{at}, paths from {source} to {target}"
                    self.refuse(where, f"a hop from {missing[0]} to {missing[1]}", "two switches that a link joins")

    def _problems(self, at: str, phase: Phase, step: Step) -> Iterator[tuple[FlowProblem, list[int]]]:
        """The flow problem of every unit, with the switches that its nodes are."""
        demand = self._demand(at, phase, step)
        if demand is None:
            return
        table, _ = self.view.attachment
        seen: set[int] = set()
        for slot, problems in enumerate(unit_problems(self.view, demand)):
            units = np.unique(table[:, slot][table[:, slot] >= 0]).tolist()
            for unit, problem in zip(units, problems, strict=True):
                switches = np.flatnonzero(self.view.unit_of_node == unit).tolist()
                if problem.nodes != len(switches) or unit in seen:
                    self.refuse(at, "GPUs with several ports in one network", "one port of a GPU in each plane")
                    return
                seen.add(unit)
                yield problem, switches

    def _demand(self, at: str, phase: Phase, step: Step) -> Demand | None:
        """What the step asks of the units; None where no routes can be judged."""
        view, domain, line_gbps = self.view, self.traffic.hb_domain, self.view.line_rate_gbps(phase)
        if not any(part.pattern == "any" for part in step.components):
            try:
                return step_demand(view, self.traffic, phase, step, line_gbps, np.inf, "spread")
            except TooManyPairsError:
                self.refuse(at, "an all-to-all over several networks", "traffic that is not told pair by pair")
                return None
        groups, pairs = step_groups(self.traffic, phase, step, line_gbps)
        groups, _ = on_rails(groups, view, domain)
        if apart(view, groups, pairs):
            self.refuse(at, "any, and traffic between networks of their own", "any within each network")
            return None
        return Demand(tuple(groups), tuple(pairs), 0, np.inf, detours=False)

    def _local(
        self, at: str, problem: FlowProblem, switches: list[int], routing: StepRouting
    ) -> dict[tuple[int, int], Weighted]:
        """The routes of the pairs of a unit that send, by its nodes."""
        place = {switch: node for node, switch in enumerate(switches)}
        routes: dict[tuple[int, int], Weighted] = {}
        for source, target in sorted(sending_pairs(problem)):
            paths = routing.paths.get((switches[source], switches[target]))
            if paths is None:
                found = f"no path from switch {switches[source]} to {switches[target]}"
                self.refuse(f"{at}.pairs", found, "paths for every pair of switches that exchanges traffic")
                continue
            routes[source, target] = tuple(
                (tuple(place.get(switch, -1) for switch in one.switches), one.weight) for one in paths
            )
        return routes
