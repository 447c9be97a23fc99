"""The best static routing for `any` demands on a small graph of any shape: a lower bound on their throughput.

Every pair of nodes splits what it sends in fixed parts, whatever the permutation is. The best such parts are found by a
linear program of polynomial size (the robust routing program of Applegate and Cohen, SIGCOMM 2003, here with the hose
polytope, whose worst case per arc is dualised as in Altin et al., Networks 2007):

    min rho   over unit flows f^st for the pairs that send, and alpha, beta >= 0, such that
    alpha_gas + beta_gat >= f^st_a                                          for every group g, its pairs (s, t), arcs a
    sum over g, v of rate_g n_gv (alpha_gav + beta_gav) + sum of fixed D_st f^st_a <= rho cap_a          for every arc a

Links have the same capacity in both directions, and a group sends as it receives. So with f the routing that takes the
same paths backwards for (t, s) is as good on the reversed arcs, and so is the average of both: only flows of s < t are
variables, f^ts on an arc is f^st on the reversed one, and beta on an arc is alpha on the reversed one. (Beside fixed
demands that differ by direction this is a restriction; the bound holds all the same.)

What is claimed does not rest on the solver: the flows become paths whose weights add up to 1, and `static_throughput`
takes the worst demand for every arc.
"""

# OR-Tools ships no types for this solver.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp

from designer.certify.problem import Floats, FlowProblem, Ints
from designer.certify.static_routes import Hose, Routes, fixed_rates, hoses, sending_pairs, static_throughput
from designer.fabric.paths import Weighted, flow_paths

MAX_NODES = 64
MAX_ROWS = 12_000  # one for each pair s < t, arc and group
DETERMINISTIC_TIME = 4.0  # of the solver, for one program: a few seconds
DETOURS = (1, 2, MAX_NODES)
CLOSE = 1e-9


@dataclass(frozen=True)
class StaticRouting:
    """Routes by ordered pair of nodes, and the throughput that they carry of the worst demand."""

    routes: Routes
    throughput: float


def oblivious_routing(problem: FlowProblem, enough: float = np.inf) -> StaticRouting | None:
    """The best static routing that is found for a problem; None where its program is too large, or a pair has no way.

    Paths of at most one and two hops more than necessary are tried first, then all; `enough` is a throughput at which
    to stop. With all paths it is the best one there is, unless the program takes too long.
    """
    if problem.nodes > MAX_NODES:
        return None
    program = _Program(problem)
    best: StaticRouting | None = None
    size = 0
    for detour in DETOURS:
        arcs = program.usable(detour)
        if arcs is None or program.rows(arcs) > MAX_ROWS:
            break
        if program.rows(arcs) == size:
            continue
        size = program.rows(arcs)
        routes = program.solve(arcs)
        if routes is None:
            break
        found = StaticRouting(routes, static_throughput(problem, routes))
        if best is None or found.throughput > best.throughput:
            best = found
        if best.throughput >= enough * (1 - CLOSE):
            break
    return best


class _Program:
    """The linear program of one problem. `pairs` are those that send in either direction, lower node first."""

    def __init__(self, problem: FlowProblem) -> None:
        self.problem = problem
        self.fixed = fixed_rates(problem)
        self.hoses = hoses(problem)
        self.pairs = sorted({(min(pair), max(pair)) for pair in sending_pairs(problem)})

    @cached_property
    def hops(self) -> Floats:
        """Fewest hops from node to node, over nodes that relay."""
        problem = self.problem
        hops = np.full((problem.nodes, problem.nodes), np.inf)
        np.fill_diagonal(hops, 0.0)
        hops[problem.tail, problem.head] = 1.0
        for node in np.flatnonzero(problem.relays).tolist():
            hops = np.minimum(hops, hops[:, [node]] + hops[[node]])
        return hops

    def usable(self, detour: int) -> list[Ints] | None:
        """For every pair the arcs on its paths with at most `detour` hops more than necessary; None: no way."""
        problem, hops = self.problem, self.hops
        tail, head = problem.tail, problem.head
        result: list[Ints] = []
        for source, target in self.pairs:
            least = hops[source, target]
            if not np.isfinite(least):
                return None
            passed: NDArray[np.bool_] = hops[source, tail] + 1 + hops[head, target] <= least + detour
            passed &= (problem.relays[tail] & (tail != target)) | (tail == source)
            passed &= (problem.relays[head] & (head != source)) | (head == target)
            result.append(np.flatnonzero(passed))
        return result

    def rows(self, arcs: list[Ints]) -> int:
        """Rows of the program, balances aside."""
        members = [set(hose.node.tolist()) for hose in self.hoses]
        return sum(
            len(own) * max(1, sum(source in nodes and target in nodes for nodes in members))
            for own, (source, target) in zip(arcs, self.pairs, strict=True)
        )

    def solve(self, arcs: list[Ints]) -> dict[tuple[int, int], Weighted] | None:
        """Routes of a best flow over the given arcs of each pair; None where the solver takes too long."""
        solver = pywraplp.Solver.CreateSolver("GLOP")
        if solver is None:
            raise RuntimeError("the linear solver GLOP is not available")
        # The time that is counted here is work done, the same on every machine.
        solver.SetSolverSpecificParametersAsString(
            f"use_dual_simplex: true max_deterministic_time: {DETERMINISTIC_TIME}"
        )
        rho = solver.NumVar(0, solver.infinity(), "rho")
        loads = self._add_capacities(solver, rho)
        flows = [self._add_flow(solver, pair, own, loads) for pair, own in zip(self.pairs, arcs, strict=True)]
        for hose in self.hoses:
            self._add_worst_case(solver, hose, arcs, flows, loads)
        solver.Minimize(rho)
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            return None
        return self._routes(arcs, flows)

    def _add_capacities(self, solver: pywraplp.Solver, rho: pywraplp.Variable) -> list[pywraplp.Constraint]:
        """Load of an arc <= rho times its capacity; the loads are filled in by what causes them.

        Where all demands are groups a link carries the same both ways, and one row is enough for it.
        """
        capacity = self.problem.arc_capacity if self.fixed else self.problem.capacity
        rows = [solver.Constraint(-solver.infinity(), 0.0) for _ in capacity]
        for row, limit in zip(rows, capacity.tolist(), strict=True):
            row.SetCoefficient(rho, -limit)
        return rows

    def _add_flow(
        self, solver: pywraplp.Solver, pair: tuple[int, int], arcs: Ints, loads: list[pywraplp.Constraint]
    ) -> list[pywraplp.Variable]:
        """One unit from s to t, balanced at every node, and the load of the fixed demands in both directions."""
        source, target = pair
        there, back = self.fixed.get(pair, 0.0), self.fixed.get((target, source), 0.0)
        balance: dict[int, pywraplp.Constraint] = {}
        flows: list[pywraplp.Variable] = []
        for arc in arcs.tolist():
            flow = solver.NumVar(0, solver.infinity(), "")
            for node, sign in ((int(self.problem.tail[arc]), -1.0), (int(self.problem.head[arc]), 1.0)):
                if node not in balance:
                    due = float(node == target) - float(node == source)
                    balance[node] = solver.Constraint(due, due)
                balance[node].SetCoefficient(flow, sign)
            if there:
                loads[arc].SetCoefficient(flow, there)
            if back:
                loads[self._reversed(arc)].SetCoefficient(flow, back)
            flows.append(flow)
        return flows

    def _add_worst_case(
        self,
        solver: pywraplp.Solver,
        hose: Hose,
        arcs: list[Ints],
        flows: list[list[pywraplp.Variable]],
        loads: list[pywraplp.Constraint],
    ) -> None:
        """alpha_as + beta_at >= f^st_a, the load of arc a being sum of n_v (alpha_av + beta_av) times the rate."""
        alphas: dict[tuple[int, int], pywraplp.Variable] = {}
        weight = dict(zip(hose.node.tolist(), (hose.members * hose.rate).tolist(), strict=True))

        def alpha(arc: int, node: int) -> pywraplp.Variable:
            if (arc, node) not in alphas:
                alphas[arc, node] = solver.NumVar(0, solver.infinity(), "")
                for loaded in (arc, self._reversed(arc)):  # it is beta of the reversed arc
                    if loaded < len(loads):
                        loads[loaded].SetCoefficient(alphas[arc, node], weight[node])
            return alphas[arc, node]

        for (source, target), own, flow in zip(self.pairs, arcs, flows, strict=True):
            if source not in weight or target not in weight:
                continue
            for arc, variable in zip(own.tolist(), flow, strict=True):
                row = solver.Constraint(0.0, solver.infinity())
                row.SetCoefficient(alpha(arc, source), 1.0)
                row.SetCoefficient(alpha(self._reversed(arc), target), 1.0)
                row.SetCoefficient(variable, -1.0)

    def _reversed(self, arc: int) -> int:
        links = len(self.problem.a)
        return arc - links if arc >= links else arc + links

    def _routes(self, arcs: list[Ints], flows: list[list[pywraplp.Variable]]) -> dict[tuple[int, int], Weighted] | None:
        routes: dict[tuple[int, int], Weighted] = {}
        for (source, target), own, flow in zip(self.pairs, arcs, flows, strict=True):
            values = [variable.solution_value() for variable in flow]
            paths = flow_paths(self.problem.tail[own], self.problem.head[own], values, source, {target: 1.0})
            if target not in paths:
                return None
            routes[source, target] = paths[target]
            routes[target, source] = tuple((path[::-1], weight) for path, weight in paths[target])
        return routes
