"""Network design on a given graph: the least cost of whole modules that carry all demands, also after a link failure.

Two methods. `projected` has no flows: an integer master of modules, cut-set and metric inequalities, separated on the
points of its relaxation and on its solutions. `flow` has the flows of the intact network, of failure scenarios once
they are violated, and the same cuts. The rule: `flow` where the flow itself costs something, and for intact networks
with more than `DENSE` links per node or with more bonds than are listed; else `projected`.

Measured, one thread: on instances/network_design (at most 1.7 links per node, at most 414 bonds) the cut sets of all
bonds, rounded for every module size, leave a root gap of 0.4 to 15 %, and the projected master is 2 to 6 times faster.
On random graphs where not all bonds are listed (22 nodes and 36 links, 25 and 45, 24 and 50) the flows leave a gap of
1.3 to 2.3 % after 40 s and the master 5 to 7 %; with 3 and 4 links per node, all bonds listed, the flows win on the
intact network (9 against 15 s; 1.2 against 8 %) and lose on the survivable one (10 against 5 s; 8.2 against 7.1 %).
"""

import math
import time
from dataclasses import dataclass, field

import numpy as np

from designer.errors import DesignerError, VerificationError
from designer.formulation.cut_sets import RowPool, add_weighted_cut, cut_pool
from designer.formulation.metric import CARRIED, MetricSeparator, carried_share, unreachable
from designer.formulation.modules import (
    DesignData,
    add_flows,
    cheapest_modules,
    design_data,
    master_model,
    whole_counts,
)
from designer.formulation.solvers import (
    INF,
    Floats,
    HighsSolver,
    LinearModel,
    ModelBuilder,
    Progress,
    SolveLimits,
    Solver,
    Termination,
    relative_gap,
    solver_named,
)
from designer.sndlib import NetworkDesign

ROWS_A_ROUND = 40
ROUNDS = 60
REPAIRS = 60
CLOSED = 1e-6
DENSE = 2.0
REPAIR_SHARE = 0.1
REPAIR_SECONDS = 2.0


class UnverifiedError(VerificationError):
    """A solver's solution that the exact check of all scenarios refuses."""


@dataclass(frozen=True)
class NetworkDesignReport:
    """What was found and proved.

    Attributes:
        termination: as of `solvers.Report`.
        cost: of the modules, pre-installed capacity and routing; None without a design.
        bound: no design costs less.
        modules: per link the number of each module; empty without a design.
        reason: why there is no design, where that is known before any solve.
        method, solver: what was used; auto where no method was needed to see that there is no design.
        root_bound: bound of the relaxation with the cuts of the root.
        solves: integer programs solved.
        cuts: rows in the last of them that are cut-set or metric inequalities.
        scenarios: failures whose flows were in it.
        seconds: wall-clock time, exact check included.
    """

    termination: Termination
    cost: float | None
    bound: float
    modules: tuple[tuple[int, ...], ...]
    reason: str
    method: str
    solver: str
    root_bound: float
    solves: int
    cuts: int
    scenarios: int
    seconds: float

    @property
    def gap(self) -> float:
        """(cost - bound) / cost; infinite without a design."""
        return relative_gap(self.cost, self.bound)


def solve_network_design(
    problem: NetworkDesign,
    *,
    survivable: bool | None = None,
    solver: str = "highs",
    method: str = "auto",
    limits: SolveLimits | None = None,
    progress: Progress | None = None,
) -> NetworkDesignReport:
    """Designs the network.

    Args:
        problem: the graph with modules and demands.
        survivable: whether all demands are carried in full after the failure of any one link, everything rerouted
            freely; by default what the problem's model says.
        solver: a name of `solvers.available_solvers`.
        method: projected, flow, or auto (the rule of this module).
        limits: by default until optimality is proven.
        progress: told (cost or None, bound or None) as they improve.

    Raises:
        SolverError: the solver is not available, or cannot take the model.
        UnverifiedError: the result does not carry the demands in the exact check.
    """
    if survivable is None:
        survivable = problem.model.survivability_model == "UNRESTRICTED_FLOW_RECONFIGURATION"
    data = design_data(problem)
    if method not in {"auto", "flow", "projected"} or (method == "projected" and data.has_routing_costs):
        raise DesignerError(f"method {method}: found no such method for this problem; allowed: auto, flow")
    search = _Search(data, survivable, method, solver_named(solver), limits or SolveLimits(), progress)
    lost = unreachable(data, survivable=survivable)
    if lost is not None:
        return search.report("infeasible", _words(problem, lost))
    termination = search.run()
    if search.best is not None and carried_share(data, search.best, survivable=survivable) < 1.0 - CARRIED:
        raise UnverifiedError(f"{problem.name}: the design of solver {solver} does not carry all demands")
    return search.report(termination)


def _words(problem: NetworkDesign, lost: tuple[int | None, int, int]) -> str:
    failed, source, target = lost
    after = "" if failed is None else f" after the failure of link {problem.links[failed].name}"
    return f"no links lead from node {problem.nodes[source]} to node {problem.nodes[target]}{after}"


@dataclass
class _Search:
    """The state of one run: rows, scenarios, the best design and the best bound."""

    data: DesignData
    survivable: bool
    method: str
    solver: Solver
    limits: SolveLimits
    progress: Progress | None
    began: float = field(default_factory=time.perf_counter)
    pool: RowPool = field(default_factory=lambda: RowPool(0))
    scenarios: list[int] = field(default_factory=list[int])
    best: Floats | None = None
    cost: float = INF
    bound: float = -INF
    root_bound: float = -INF
    solves: int = 0

    def run(self) -> Termination:
        data = self.data
        self.pool, complete = cut_pool(data, survivable=self.survivable)
        if self.method == "auto":
            many = data.links > DENSE * data.nodes or not complete
            self.method = "flow" if data.has_routing_costs or (many and not self.survivable) else "projected"
        self.separator = MetricSeparator(data)
        infeasible = self._root(metric=not complete)
        if infeasible:
            return "infeasible"
        while True:
            if self._left() <= 0:
                return "time_limit"
            if self.limits.should_stop():
                return "interrupted"
            end = self._solve()
            if end is not None:
                return end

    def report(self, termination: Termination, reason: str = "") -> NetworkDesignReport:
        modules: tuple[tuple[int, ...], ...] = ()
        if self.best is not None:
            counts = self.best.astype(int)
            modules = tuple(tuple(counts[self.data.column_link == link].tolist()) for link in range(self.data.links))
        return NetworkDesignReport(
            termination,
            None if self.best is None else self.cost,
            INF if termination == "infeasible" else self.bound,
            modules,
            reason,
            self.method,
            self.solver.name,
            self.root_bound,
            self.solves,
            len(self.pool.chosen),
            len(self.scenarios),
            time.perf_counter() - self.began,
        )

    def _left(self) -> float:
        return self.limits.time_limit_s - (time.perf_counter() - self.began)

    def _failures(self) -> list[int | None]:
        return [None, *range(self.data.links)] if self.survivable else [None]

    def _root(self, *, metric: bool) -> bool:
        """Cuts for the relaxation; whether it is infeasible. Metric inequalities only where bonds are missing."""
        solver = HighsSolver()  # the relaxation is the same for every solver, and HiGHS is fast on it
        counts = np.zeros(len(self.data.column_link))
        for _ in range(ROUNDS):
            new = self.pool.choose(self.pool.violated(counts, ROWS_A_ROUND))
            if not new and metric:
                new = self.pool.choose(self._separate(counts, only_violated=True)[0])
            if not new or self._left() <= 0:
                break
            builder = self._model(flows=False)
            report = solver.solve(builder.build(relaxed=True), SolveLimits(max(self._left(), 0.01)))
            if report.termination == "infeasible":
                return True
            if report.values is None or report.termination != "optimal":
                break
            counts, self.bound = report.values, max(self.bound, report.bound)
        self.root_bound = self.bound
        self._repair(counts)
        return False

    def _model(self, *, flows: bool) -> ModelBuilder:
        builder = master_model(self.data)
        for number in self.pool.chosen:
            columns, coefficients, rhs = self.pool.rows[number]
            builder.add_row(rhs, INF, columns.tolist(), coefficients.tolist())
        if flows:
            for failed in [None, *self.scenarios]:
                add_flows(builder, self.data, failed)
        return builder

    def _solve(self) -> Termination | None:
        """One integer program; how the search ends, or None where inequalities were missing from it."""
        flows = self.method == "flow"
        model = self._model(flows=flows).build()
        start = self.best if not flows else None
        seconds = (1.0 - REPAIR_SHARE) * self._left()  # the rest is for making a design of what was found
        limits = SolveLimits(seconds, self.limits.gap, self.limits.seed, self.limits.should_stop)
        report = self.solver.solve(model, limits, start, self._tell if self.progress else None)
        self.solves += 1
        if report.termination in {"infeasible", "unbounded", "error"}:
            return report.termination
        self.bound = max(self.bound, self._raised(report.bound))
        if report.values is None:
            return report.termination
        counts = whole_counts(model, report.values, self.data)
        numbers, failed = self._separate(counts, only_violated=False)
        if not failed and not numbers:
            self._take(counts, report.objective if flows else None)
        else:
            self._repair(counts)
        self._tell(None, None)
        end = self._closed()
        if end is None and report.termination not in {"optimal", "gap"}:
            end = report.termination
        return end or self._extend(numbers, failed)

    def _closed(self) -> Termination | None:
        gap = relative_gap(None if self.best is None else self.cost, self.bound)
        if gap <= CLOSED:
            return "optimal"
        return "gap" if gap <= self.limits.gap else None

    def _extend(self, numbers: list[int], failed: list[int | None]) -> Termination | None:
        """Takes violated rows, and the flows of one violated scenario, into the program; "error" if there are none."""
        new = self.pool.choose(numbers)
        scenarios: list[int] = []
        if self.method == "flow":
            scenarios = [link for link in failed if link is not None and link not in self.scenarios][:1]
        self.scenarios += scenarios
        return None if new or scenarios else "error"

    def _raised(self, bound: float) -> float:
        """With whole costs of modules and none of routing every cost is whole."""
        costs, fixed = self.data.column_cost, self.data.fixed_cost
        whole = bool((costs == np.rint(costs)).all()) and fixed == round(fixed) and not self.data.has_routing_costs
        return float(math.ceil(bound - CLOSED * max(1.0, abs(bound)))) if whole and math.isfinite(bound) else bound

    def _separate(self, counts: Floats, *, only_violated: bool) -> tuple[list[int], list[int | None]]:
        """Violated rows, and the scenarios that the modules do not carry (asked only when no pool row is violated)."""
        numbers = self.pool.violated(counts, 100)
        if numbers:
            return numbers, []
        capacity = self.data.capacity(counts)
        failed: list[int | None] = []
        for scenario in self._failures():
            found = self.separator.separate(capacity, scenario)
            if found is None:
                continue
            failed.append(scenario)
            weights, rhs, _ = found
            if len(weights):
                numbers += add_weighted_cut(self.pool, self.data, weights, rhs)
        if only_violated:
            violated = set(self.pool.violated(counts, ROWS_A_ROUND))
            numbers = [number for number in numbers if number in violated]
        return numbers, failed

    def _repair(self, counts: Floats) -> None:
        """Adds modules where capacity is missing until every scenario is carried; keeps the design if it is better."""
        needed = self.data.capacity(counts)
        repaired: Floats | None = counts
        if bool((counts != np.rint(counts)).any()):
            repaired = cheapest_modules(self.data, needed)
        for _ in range(REPAIRS):
            if repaired is None or self._left() <= 0:
                return
            capacity, carried = self.data.capacity(repaired), True
            needed = np.maximum(needed, capacity)
            for failed in self._failures():
                found = self.separator.separate(needed, failed)
                if found is not None:
                    needed, carried = needed + found[2], False
            if carried:
                self._take(self._reduced(repaired), None)
                return
            repaired = cheapest_modules(self.data, needed)

    def _reduced(self, counts: Floats) -> Floats:
        """Takes out modules, the dearest first, as long as every scenario is still carried and there is time."""
        counts, until = counts.copy(), time.perf_counter() + min(REPAIR_SECONDS, REPAIR_SHARE / 2 * self._left())
        order = np.argsort(-self.data.column_cost, kind="stable").tolist()
        last: int | None = None  # the scenario that refused the last step refuses most of the next
        for column in order:
            while counts[column] > 0 and time.perf_counter() < until:
                counts[column] -= 1
                capacity = self.data.capacity(counts)
                scenarios = sorted(self._failures(), key=lambda failed: failed != last)
                refused = (f for f in scenarios if self.separator.separate(capacity, f) is not None)
                first = next(((f,) for f in refused), None)
                if first is not None:
                    last = first[0]
                    counts[column] += 1
                    break
        return counts

    def _take(self, counts: Floats, objective: float | None) -> None:
        cost = float(self.data.column_cost @ counts) + self.data.fixed_cost
        if self.data.has_routing_costs:
            cost = self._routed(counts) if objective is None else objective
        if cost < self.cost:
            self.best, self.cost = counts, cost

    def _routed(self, counts: Floats) -> float:
        """Cost of these modules with the cheapest flows on them."""
        builder = master_model(self.data)
        add_flows(builder, self.data)
        model: LinearModel = builder.build(relaxed=True)
        model.lower[: len(counts)] = model.upper[: len(counts)] = counts
        report = HighsSolver().solve(model, SolveLimits(max(self._left(), 0.01)))
        return report.objective if report.objective is not None and report.termination == "optimal" else INF

    def _tell(self, cost: float | None, bound: float | None) -> None:
        """Progress of a solve: its solutions may lack inequalities, so only the bound counts before the check."""
        del cost
        if bound is not None:
            self.bound = max(self.bound, min(bound, self.cost))
        if self.progress is not None:
            self.progress(None if self.best is None else self.cost, self.bound if self.bound > -INF else None)
