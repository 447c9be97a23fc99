"""A network design problem as arrays: the modules that may be bought on each link, arcs, demands.

Capacities, demands and routing costs are scaled so that the smallest module has capacity 1; none has more than all
demands together.
"""

import math
from dataclasses import dataclass

import numpy as np

from designer.formulation.solvers import Floats, Ints, LinearModel, ModelBuilder
from designer.sndlib import NetworkDesign

TINY = 1e-9


@dataclass(frozen=True)
class DesignData:
    """What the formulations need of a `NetworkDesign`. Columns are the modules of all links, one after the other.

    Attributes:
        nodes: number of nodes.
        ends: (links, 2) the nodes of each link.
        pre_installed: (links,) capacity that is there already.
        column_link: (columns,) the link of each column.
        column_capacity: (columns,) capacity of one module.
        column_cost: (columns,) cost of one module.
        column_upper: (columns,) most modules that an optimal design needs.
        tail, head: (arcs,) the directions in which flow may use a link.
        arc_row: (arcs,) the capacity row that an arc counts in: both arcs of an undirected link share one.
        row_link: (capacity rows,) the link whose capacity bounds the row.
        arc_cost: (arcs,) routing cost of a unit of flow.
        demand: (nodes, nodes) demand from node to node.
        one_module: whether a link takes at most one module (explicit capacities).
        unit: capacity of the smallest module, before scaling.
        fixed_cost: cost that no decision changes.
    """

    nodes: int
    ends: Ints
    pre_installed: Floats
    column_link: Ints
    column_capacity: Floats
    column_cost: Floats
    column_upper: Floats
    tail: Ints
    head: Ints
    arc_row: Ints
    row_link: Ints
    arc_cost: Floats
    demand: Floats
    one_module: bool
    unit: float
    fixed_cost: float

    @property
    def links(self) -> int:
        """Number of candidate links."""
        return len(self.ends)

    @property
    def has_routing_costs(self) -> bool:
        """Whether the flow itself costs anything."""
        return bool((self.arc_cost > 0).any())

    def capacity(self, counts: Floats) -> Floats:
        """(links,) capacity of each link with these modules."""
        added = np.bincount(self.column_link, self.column_capacity * counts, self.links)
        return self.pre_installed + added


def design_data(problem: NetworkDesign) -> DesignData:
    """The arrays of a problem."""
    model, links = problem.model, problem.links
    total = sum(each.value for each in problem.demands)
    # Capacity beyond all demands is of no use; kept, it would let a solver's tolerance on y carry a small demand.
    sizes = [min(module.capacity, total) if total else module.capacity for link in links for module in link.modules]
    unit = min(sizes, default=1.0)
    ends = np.array([(link.source, link.target) for link in links], np.int64).reshape(-1, 2)
    numbers = np.arange(len(links))
    demand = np.zeros((len(problem.nodes), len(problem.nodes)))
    for each in problem.demands:
        demand[each.source, each.target] += each.value / unit
    if model.link_model == "DIRECTED":
        tail, head, arc_row, row_link = ends[:, 0], ends[:, 1], numbers, numbers
    else:
        tail, head = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])
        shared = model.link_model == "UNDIRECTED"
        arc_row = np.concatenate([numbers, numbers if shared else numbers + len(links)])
        row_link = numbers if shared else np.concatenate([numbers, numbers])
    routing = np.array([link.routing_cost * unit for link in links], float)
    return DesignData(
        nodes=len(problem.nodes),
        ends=ends,
        pre_installed=np.array([link.pre_installed / unit for link in links], float),
        column_link=np.array([at for at, link in enumerate(links) for _ in link.modules], np.int64),
        column_capacity=np.array(sizes, float) / unit,
        column_cost=np.array([module.cost for link in links for module in link.modules], float),
        column_upper=_most_needed(problem, total),
        tail=tail,
        head=head,
        arc_row=arc_row,
        row_link=row_link,
        arc_cost=np.tile(routing, len(tail) // max(len(links), 1)),
        demand=demand,
        one_module=model.capacity_model == "EXPLICIT_LINK_CAPACITIES",
        unit=unit,
        fixed_cost=problem.fixed_cost,
    )


def _most_needed(problem: NetworkDesign, total: float) -> Floats:
    """Some optimal design has no more of a module than carries all demands, and no k of one for which another does.

    If k modules of size c cost at least as much as one of size c' >= k c, c' > c, swapping them loses nothing; as
    every swap adds capacity and there are finitely many designs within the first bound, swapping ends.
    """
    if problem.model.capacity_model == "EXPLICIT_LINK_CAPACITIES":
        return np.ones(sum(len(link.modules) for link in problem.links))
    most: list[float] = []
    for link in problem.links:
        for module in link.modules:
            upper = float(math.ceil(total / module.capacity * (1 - TINY)))
            for other in link.modules:
                if other.capacity <= module.capacity or module.cost <= 0:
                    continue
                swapped = max(math.ceil(other.cost / module.cost - TINY), 1)
                if swapped * module.cost >= other.cost and swapped * module.capacity <= other.capacity:
                    upper = min(upper, swapped - 1.0)
            most.append(upper)
    return np.array(most, float)


def add_modules(builder: ModelBuilder, data: DesignData) -> None:
    """Whole modules: y_lm in {0, 1, ..., u_lm} for module m of link l, at cost k_lm each; columns come first.

    Source: modular link capacities of Bienstock, Günlük, "Capacitated network design: polyhedral structure and
    computation", INFORMS J. Computing 8 (1996).
    """
    builder.offset += data.fixed_cost
    for cost, upper in zip(data.column_cost.tolist(), data.column_upper.tolist(), strict=True):
        builder.add_column(cost, 0.0, upper, integer=True)


def add_one_module_per_link(builder: ModelBuilder, data: DesignData) -> None:
    """Explicit capacities: sum_m y_lm <= 1 for each link l (SNDlib's EXPLICIT_LINK_CAPACITIES); else nothing."""
    if data.one_module:
        for link in range(data.links):
            columns = np.flatnonzero(data.column_link == link).tolist()
            builder.add_row(-math.inf, 1.0, columns, [1.0] * len(columns))


def add_flows(builder: ModelBuilder, data: DesignData, failed: int | None = None) -> None:
    """Source-aggregated flow of one scenario: f_sa >= 0 for source s and arc a.

    Conservation, for each source s and node v other than s (the row of s follows from the others):
        sum_(a into v) f_sa - sum_(a out of v) f_sa = d_sv.
    Capacity, for each capacity row r of link l, left out with the flows of l when l has failed:
        sum_s sum_(a in r) f_sa <= p_l + sum_m c_lm y_lm.
    Aggregation by source keeps the bound of the relaxation: a flow of several targets splits into one for each.
    Source: Bienstock, Chopra, Günlük, Tsai, "Minimum cost capacity installation for multicommodity network flows",
    Mathematical Programming 81 (1998).
    """
    arcs = [arc for arc in range(len(data.tail)) if data.row_link[data.arc_row[arc]] != failed]
    rows: dict[int, list[int]] = {int(data.arc_row[arc]): [] for arc in arcs}
    for source in np.flatnonzero(data.demand.sum(axis=1)).tolist():
        into: list[list[int]] = [[] for _ in range(data.nodes)]
        out: list[list[int]] = [[] for _ in range(data.nodes)]
        for arc in arcs:
            if data.head[arc] == source:
                continue  # flow that returns to its source does nothing
            flow = builder.add_column(float(data.arc_cost[arc]) if failed is None else 0.0)
            into[int(data.head[arc])].append(flow)
            out[int(data.tail[arc])].append(flow)
            rows[int(data.arc_row[arc])].append(flow)
        for node in range(data.nodes):
            if node != source:
                wanted = float(data.demand[source, node])
                terms = into[node] + out[node]
                builder.add_row(wanted, wanted, terms, [1.0] * len(into[node]) + [-1.0] * len(out[node]))
    for row, flows in rows.items():
        link = int(data.row_link[row])
        columns = np.flatnonzero(data.column_link == link)
        values = [-1.0] * len(flows) + data.column_capacity[columns].tolist()
        builder.add_row(-float(data.pre_installed[link]), math.inf, flows + columns.tolist(), values)


def cheapest_modules(data: DesignData, needed: Floats) -> Floats | None:
    """Modules that give each link at least the `needed` capacity, cheap though not always cheapest; None if none do."""
    counts = np.zeros(len(data.column_link))
    for link in range(data.links):
        missing = float(needed[link] - data.pre_installed[link])
        if missing <= TINY:
            continue
        columns = np.flatnonzero(data.column_link == link)
        order = columns[np.argsort(-data.column_capacity[columns])].tolist()
        best = _one_module(data, order, missing) if data.one_module else _cover(data, order, missing)
        if best is None:
            return None
        for column, count in best[1].items():
            counts[column] = count
    return counts


def _one_module(data: DesignData, columns: list[int], missing: float) -> tuple[float, dict[int, int]] | None:
    fits = [column for column in columns if data.column_capacity[column] >= missing - TINY]
    if not fits:
        return None
    best = min(fits, key=lambda column: (float(data.column_cost[column]), column))
    return float(data.column_cost[best]), {best: 1}


def _cover(data: DesignData, columns: list[int], missing: float) -> tuple[float, dict[int, int]] | None:
    """Largest module first: as many as fit, or one more; the rest goes on to the smaller ones."""
    if missing <= TINY:
        return 0.0, {}
    if not columns:
        return None
    column, rest = columns[0], columns[1:]
    size, cost, upper = (float(a[column]) for a in (data.column_capacity, data.column_cost, data.column_upper))
    fits = math.floor(missing / size + TINY)
    best: tuple[float, dict[int, int]] | None = None
    for count in sorted({min(fits, int(upper)), min(fits + 1, int(upper))}):
        inner = _cover(data, rest[:12], missing - count * size)
        if inner is not None and (best is None or count * cost + inner[0] < best[0]):
            best = count * cost + inner[0], {**inner[1], column: count}
    return best


def master_model(data: DesignData) -> ModelBuilder:
    """The modules alone; cuts and flows are added to it."""
    builder = ModelBuilder()
    add_modules(builder, data)
    add_one_module_per_link(builder, data)
    return builder


def whole_counts(model: LinearModel, values: Floats, data: DesignData) -> Floats:
    """The numbers of modules in a solution, rounded to whole ones."""
    columns = len(data.column_link)
    return np.clip(np.rint(values[:columns]), model.lower[:columns], model.upper[:columns]) + 0.0
