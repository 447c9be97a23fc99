"""Network design the plain way: one flow per source and scenario, whole modules, nothing else; solved by HiGHS.

Every link model, modular or explicit capacities. No cuts, no bounds on modules, no code in common with the solver.
"""

from dataclasses import dataclass

import highspy
import numpy as np

from designer.sndlib import NetworkDesign


@dataclass(frozen=True)
class PlainResult:
    """What HiGHS says of the plain model; `optimal` only where it proved it."""

    optimal: bool
    infeasible: bool
    objective: float
    bound: float
    seconds: float


def compact_optimum(problem: NetworkDesign, survivable: bool, time_limit_s: float = 300.0) -> PlainResult:
    """Minimise module costs (and routing costs of the intact network) over the source-aggregated flow model."""
    model = problem.model
    highs = highspy.Highs()
    highs.silent()
    inf = highspy.kHighsInf
    offset = 0.0
    modules: list[list[tuple[int, float]]] = []
    columns = 0

    def column(cost: float, upper: float, integer: bool) -> int:
        nonlocal columns
        highs.addVar(0.0, upper)
        highs.changeColCost(columns, cost)
        if integer:
            highs.changeColIntegrality(columns, highspy.HighsVarType.kInteger)
        columns += 1
        return columns - 1

    def row(lower: float, upper: float, terms: list[tuple[int, float]]) -> None:
        highs.addRow(
            lower,
            upper,
            len(terms),
            np.array([index for index, _ in terms], dtype=np.int32),
            np.array([value for _, value in terms], dtype=float),
        )

    explicit = model.capacity_model == "EXPLICIT_LINK_CAPACITIES"
    for link in problem.links:
        offset += link.pre_installed_cost
        modules.append([(column(each.cost, 1.0 if explicit else inf, True), each.capacity) for each in link.modules])
        if explicit and link.modules:
            row(-inf, 1.0, [(index, 1.0) for index, _ in modules[-1]])
    sources = sorted({demand.source for demand in problem.demands})
    failures = [None, *range(len(problem.links))] if survivable else [None]
    for failed in failures:
        used = [number for number in range(len(problem.links)) if number != failed]
        loads: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for source in sources:
            balance: list[list[tuple[int, float]]] = [[] for _ in problem.nodes]
            for number in used:
                link = problem.links[number]
                ways = ((link.source, link.target), (link.target, link.source))
                for way, (tail, head) in enumerate(ways[:1] if model.link_model == "DIRECTED" else ways):
                    flow = column(link.routing_cost if failed is None else 0.0, inf, False)
                    balance[tail].append((flow, -1.0))
                    balance[head].append((flow, 1.0))
                    side = way if model.link_model == "BIDIRECTED" else 0
                    loads.setdefault((number, side), []).append((flow, -1.0))
            wanted = np.zeros(len(problem.nodes))
            for demand in problem.demands:
                if demand.source == source:
                    wanted[demand.target] += demand.value
                    wanted[source] -= demand.value
            for node, terms in enumerate(balance):
                row(wanted[node], wanted[node], terms)
        for (number, _), terms in loads.items():
            row(-problem.links[number].pre_installed, inf, terms + modules[number])
    highs.changeObjectiveOffset(offset)
    highs.setOptionValue("time_limit", time_limit_s)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 1e-6)
    highs.run()
    status, info = highs.getModelStatus(), highs.getInfo()
    return PlainResult(
        status == highspy.HighsModelStatus.kOptimal,
        status == highspy.HighsModelStatus.kInfeasible,
        info.objective_function_value,
        info.mip_dual_bound,
        highs.getRunTime(),
    )
