"""Whether capacities carry the demands, by flow LPs; where they do not, the metric inequality that says why."""

# HiGHS and OR-Tools are typed in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from typing import Any

import numpy as np

from designer.formulation.modules import TINY, DesignData
from designer.formulation.solvers import INF, Floats, Ints, quiet_highs

CARRIED = 1e-6
FINE = 840.0  # lengths are rounded to this fraction: halves, thirds, ..., eighths of a link


class MetricSeparator:
    """One flow LP for all scenarios, restarted from its last basis.

    Least missing capacity: min sum_l s_l over flows of all demands with load of row r <= capacity of its link l + s_l.
    """

    def __init__(self, data: DesignData) -> None:
        self.data = data
        self.sources: Ints = np.flatnonzero(data.demand.sum(axis=1))
        self.failed: int | None = None
        self._highs = quiet_highs()
        for option, value in {"threads": 1, "solver": "simplex", "presolve": "off"}.items():
            self._highs.setOptionValue(option, value)
        self._load()

    def _load(self) -> None:
        data, arcs, sources = self.data, len(self.data.tail), len(self.sources)
        links, rows = data.links, len(data.row_link)
        flows = arcs * sources
        highs: Any = self._highs
        highs.addVars(flows + links, np.zeros(flows + links), np.full(flows + links, INF))
        highs.changeColsCost(links, np.arange(flows, flows + links, dtype=np.int32), np.ones(links))
        for row in range(rows):
            used = np.flatnonzero(data.arc_row == row)
            columns = (np.arange(sources)[:, None] * arcs + used).ravel()
            columns = np.append(columns, flows + data.row_link[row]).astype(np.int32)
            values = np.append(np.ones(len(columns) - 1), -1.0)
            highs.addRow(-INF, 0.0, len(columns), columns, values)
        for number, source in enumerate(self.sources.tolist()):
            for node in range(data.nodes):
                if node == source:
                    continue
                into, out = np.flatnonzero(data.head == node), np.flatnonzero(data.tail == node)
                columns = (np.concatenate([into, out]) + number * arcs).astype(np.int32)
                values = np.concatenate([np.ones(len(into)), -np.ones(len(out))])
                wanted = float(data.demand[source, node])
                highs.addRow(wanted, wanted, len(columns), columns, values)

    def separate(self, capacity: Floats, failed: int | None) -> tuple[Floats, float, Floats] | None:
        """Where `capacity` without the link `failed` does not carry the demands: weights, rhs, missing capacity.

        The inequality weights·capacity >= rhs holds for every capacity that carries the demands in this scenario. None
        where they are carried. The scenario must be connected.
        """
        highs, data = self._highs, self.data
        self._set_failed(failed)
        rows = len(data.row_link)
        highs.changeRowsBounds(rows, np.arange(rows, dtype=np.int32), np.full(rows, -INF), capacity[data.row_link])
        highs.run()
        if highs.getInfo().objective_function_value <= CARRIED:
            return None
        solution = highs.getSolution()
        lengths = np.clip(-np.array(solution.row_dual[:rows], float), 0.0, None)
        missing = np.array(solution.col_value, float)[-data.links :]
        for chosen in (np.rint(lengths * FINE) / FINE, lengths):
            weights, rhs = metric_inequality(data, chosen, failed)
            if weights @ capacity < rhs - CARRIED / 10:
                return weights, rhs, missing
        return lengths[:0], 0.0, missing

    def _set_failed(self, failed: int | None) -> None:
        if failed == self.failed:
            return
        for link, upper in ((self.failed, INF), (failed, 0.0)):
            if link is None:
                continue
            arcs = np.flatnonzero(self.data.row_link[self.data.arc_row] == link)
            count = len(self.data.tail)
            columns = (np.arange(len(self.sources))[:, None] * count + arcs).ravel()
            columns = np.append(columns, count * len(self.sources) + link).astype(np.int32)
            self._highs.changeColsBounds(len(columns), columns, np.zeros(len(columns)), np.full(len(columns), upper))
        self.failed = failed


def metric_inequality(data: DesignData, lengths: Floats, failed: int | None) -> tuple[Floats, float]:
    """For lengths mu_r >= 0 of the capacity rows: sum_l (sum_(r of l) mu_r) capacity_l >= sum_st d_st dist_mu(s, t).

    Valid for any lengths, whatever LP they come from; a failed link has neither capacity nor a place on a path.
    Source: Iri, "On an extension of the maximum-flow minimum-cut theorem to multicommodity flows", J. Operations
    Research Society of Japan 13 (1971); Onaga, Kakusho, "On feasibility conditions of multicommodity flows in
    networks", IEEE Trans. Circuit Theory 18 (1971).
    """
    distance = np.full((data.nodes, data.nodes), INF)
    np.fill_diagonal(distance, 0.0)
    up = data.row_link[data.arc_row] != (-1 if failed is None else failed)
    np.minimum.at(distance, (data.tail[up], data.head[up]), lengths[data.arc_row[up]])
    for middle in range(data.nodes):
        np.minimum(distance, distance[:, middle, None] + distance[None, middle, :], out=distance)
    wanted = data.demand > 0
    weights: Floats = np.bincount(data.row_link, lengths, data.links).astype(float)
    if failed is not None:
        weights[failed] = 0.0
    return weights, float((data.demand[wanted] * distance[wanted]).sum())


def unreachable(data: DesignData, *, survivable: bool) -> tuple[int | None, int, int] | None:
    """A scenario and a demand (failed link, source, target) that no capacity could carry, or None.

    Links that have no capacity and can get none do not count.
    """
    usable = data.pre_installed > 0
    usable[data.column_link[data.column_upper > 0]] = True
    for failed in [None, *range(data.links)] if survivable else [None]:
        up = usable.copy()
        if failed is not None:
            up[failed] = False
        arcs = up[data.row_link[data.arc_row]]
        following: list[list[int]] = [[] for _ in range(data.nodes)]
        for tail, head in zip(data.tail[arcs].tolist(), data.head[arcs].tolist(), strict=True):
            following[tail].append(head)
        if failed is not None and _reached(following, int(data.ends[failed, 0]))[data.ends[failed, 1]]:
            continue  # a way around the failed link: all that was reachable still is
        for source in np.flatnonzero(data.demand.sum(axis=1)).tolist():
            lost = (data.demand[source] > 0) & ~_reached(following, source)
            if lost.any():
                return failed, source, int(np.flatnonzero(lost)[0])
    return None


def _reached(following: list[list[int]], source: int) -> Any:
    reached = np.zeros(len(following), bool)
    reached[source] = True
    stack = [source]
    while stack:
        for node in following[stack.pop()]:
            if not reached[node]:
                reached[node] = True
                stack.append(node)
    return reached


def carried_share(data: DesignData, counts: Floats, *, survivable: bool) -> float:
    """The part of all demands, at most 1, that these modules carry at once in the worst scenario.

    An independent check of the result by plain flow LPs (GLOP): the largest theta <= 1 such that flows of theta times
    the demands respect the capacities; shares nothing with the programs that found the modules but the data.

    Raises:
        RuntimeError: GLOP did not solve a scenario.
    """
    from ortools.linear_solver import pywraplp

    solver: Any = pywraplp.Solver.CreateSolver("GLOP")
    theta = solver.NumVar(0.0, 1.0, "")
    capacity = data.capacity(counts)
    rows = [solver.Constraint(0.0, float(capacity[link])) for link in data.row_link.tolist()]
    arcs = list(zip(data.tail.tolist(), data.head.tolist(), data.arc_row.tolist(), strict=True))
    for source in np.flatnonzero(data.demand.sum(axis=1)).tolist():
        nodes = [solver.Constraint(0.0, 0.0) for _ in range(data.nodes)]
        for tail, head, row in arcs:
            flow = solver.NumVar(0.0, solver.infinity(), "")
            nodes[tail].SetCoefficient(flow, -1.0)
            nodes[head].SetCoefficient(flow, 1.0)
            rows[row].SetCoefficient(flow, 1.0)
        for node in range(data.nodes):
            wanted = float(data.demand[source, node])
            nodes[node].SetCoefficient(theta, float(data.demand[source].sum()) if node == source else -wanted)
    solver.Maximize(theta)
    worst = 1.0
    for failed in [None, *range(data.links)] if survivable else [None]:
        for row, link in zip(rows, data.row_link.tolist(), strict=True):
            row.SetUb(0.0 if link == failed else float(capacity[link]))
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            raise RuntimeError(f"flow LP of the scenario {failed} was not solved")
        worst = min(worst, float(theta.solution_value()))
        if worst < TINY:
            break
    return worst
