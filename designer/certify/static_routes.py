"""Throughput of a given static routing: every pair of nodes splits whatever it sends in fixed parts over given paths.

The load of an arc is linear in the demand. Of an `any` group with n_v members at node v the worst demand for an arc is

    max  sum over s, t of D_st f_st    with   sum over t of D_st <= n_s,   sum over s of D_st <= n_t,   D >= 0,

f_st being the part of the pair (s, t) that crosses the arc: the hose model of Duffield et al. (SIGCOMM 1999). Any
alpha, beta >= 0 with alpha_s + beta_t >= f_st bound it by sum of n_s alpha_s + sum of n_t beta_t (weak duality), so
what is told here holds whatever the tolerances of a solver are.
"""

# OR-Tools ships no types for this solver.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from ortools.linear_solver import pywraplp

from designer.certify.ecmp import even_share
from designer.certify.problem import Floats, FlowProblem, Ints
from designer.fabric.paths import Weighted

Routes = Mapping[tuple[int, int], Weighted]


@dataclass(frozen=True)
class Hose:
    """`any` groups with the same members: `node` in ascending order, how many at each, and their rates added up."""

    node: Ints
    members: Ints
    rate: float


def hoses(problem: FlowProblem) -> tuple[Hose, ...]:
    """The `any` groups of a problem; those with the same members at the same nodes count as one."""
    rates: dict[tuple[tuple[int, int], ...], float] = {}
    for hub in problem.hubs:
        if not hub.hose_rate:
            continue
        for group in range(hub.groups):
            chosen = hub.group == group
            rows = zip(hub.node[chosen].tolist(), hub.members[chosen].tolist(), strict=True)
            members = tuple(sorted(rows))
            rates[members] = rates.get(members, 0.0) + hub.hose_rate
    return tuple(
        Hose(np.array([node for node, _ in members]), np.array([many for _, many in members]), rate)
        for members, rate in rates.items()
    )


def fixed_rates(problem: FlowProblem) -> dict[tuple[int, int], float]:
    """What nodes send to each other beside the `any` groups."""
    fixed = replace(problem, hubs=tuple(hub for hub in problem.hubs if not hub.hose_rate))
    rates: dict[tuple[int, int], float] = {}
    for source in fixed.sources.tolist():
        target, rate = fixed.row(source)
        rates |= {(source, other): value for other, value in zip(target.tolist(), rate.tolist(), strict=True) if value}
    return rates


def sending_pairs(problem: FlowProblem) -> set[tuple[int, int]]:
    """The ordered pairs of nodes that have, or may have, something to send."""
    pairs = set(fixed_rates(problem))
    for hose in hoses(problem):
        nodes = hose.node.tolist()
        pairs |= {(one, other) for one in nodes for other in nodes if one != other}
    return pairs


def static_throughput(problem: FlowProblem, routes: Routes) -> float:
    """The part of all demands that these routes carry at once, whatever the `any` groups send.

    Raises:
        KeyError: a pair that sends has no route, or a path follows no link.
    """
    return _throughput(problem, _entries(problem, {pair: routes[pair] for pair in sending_pairs(problem)}))


def even_throughput(problem: FlowProblem) -> float:
    """The part of all demands that ECMP carries at once, whatever the `any` groups send; for small problems.

    ECMP is a static routing, too: its parts follow from the graph alone.
    """
    none = np.zeros(0, dtype=np.int64)
    parts = [_Entries(none, none, none, np.zeros(0))]
    for source, target in sorted(sending_pairs(problem)):
        share = even_share(problem, source, target)
        if share is None:
            return 0.0
        arc = np.flatnonzero(share)
        parts.append(_Entries(arc, np.full(len(arc), source), np.full(len(arc), target), share[arc]))
    arc = np.concatenate([part.arc for part in parts])
    order = np.argsort(arc, kind="stable")
    source, target = (np.concatenate([getattr(part, end) for part in parts])[order] for end in ("source", "target"))
    share = np.concatenate([part.share for part in parts])[order]
    return _throughput(problem, _Entries(arc[order], source, target, share))


def _throughput(problem: FlowProblem, entries: "_Entries") -> float:
    load = _fixed_load(problem, entries)
    for hose in hoses(problem):
        load += hose.rate * _hose_load(entries, hose, len(load))
    used = load > 0
    return min(problem.most, float((problem.arc_capacity[used] / load[used]).min(initial=np.inf)))


@dataclass(frozen=True)
class _Entries:
    """The part `share[i]` of what goes from `source[i]` to `target[i]` crosses `arc[i]`; in the order of arcs."""

    arc: Ints
    source: Ints
    target: Ints
    share: Floats


def _entries(problem: FlowProblem, routes: Routes) -> _Entries:
    number = {ends: arc for arc, ends in enumerate(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))}
    shares: dict[tuple[int, int, int], float] = {}
    for (source, target), paths in routes.items():
        for path, weight in paths:
            for ends in pairwise(path):
                key = number[ends], source, target
                shares[key] = shares.get(key, 0.0) + weight
    rows = np.array(sorted(shares), dtype=np.int64).reshape(-1, 3)
    share = np.array([shares[key] for key in sorted(shares)])
    return _Entries(rows[:, 0], rows[:, 1], rows[:, 2], share)


def _fixed_load(problem: FlowProblem, entries: _Entries) -> Floats:
    rates = fixed_rates(problem)
    pairs = zip(entries.source.tolist(), entries.target.tolist(), strict=True)
    rate = np.array([rates.get(pair, 0.0) for pair in pairs])
    return np.asarray(np.bincount(entries.arc, rate * entries.share, len(problem.tail)), dtype=np.float64)


def _hose_load(entries: _Entries, hose: Hose, arcs: int) -> Floats:
    """The load of each arc by the traffic of the group that is worst for it, in units of a member's rate."""
    load = np.zeros(arcs)
    size = len(hose.node)
    inside = np.isin(entries.source, hose.node) & np.isin(entries.target, hose.node)
    rows = np.flatnonzero(inside)
    known: dict[bytes, float] = {}
    for part in np.split(rows, np.flatnonzero(np.diff(entries.arc[rows])) + 1):
        if not len(part):
            continue
        table = np.zeros((size, size))
        at = np.searchsorted(hose.node, entries.source[part]), np.searchsorted(hose.node, entries.target[part])
        table[at] = entries.share[part]
        name = table.tobytes()
        if name not in known:
            known[name] = worst_load(table, hose.members)
        load[entries.arc[part[0]]] = known[name]
    return load


def worst_load(share: Floats, members: Ints) -> float:
    """The most that an arc carries of a group: `share[s, t]` of what goes from place s to place t crosses it.

    Place v sends and receives at most `members[v]`. The value is an upper bound by a feasible dual solution, the best
    one up to the solver's tolerance.
    """
    rows, columns = np.flatnonzero(share.any(axis=1)), np.flatnonzero(share.any(axis=0))
    if not len(rows):
        return 0.0
    small = share[np.ix_(rows, columns)]
    out, into = members[rows].astype(np.float64), members[columns].astype(np.float64)
    if len(rows) == 1:
        alpha = np.array([_price(small[0], into, float(out[0]))])
    elif len(columns) == 1:
        beta = _price(small[:, 0], out, float(into[0]))
        alpha = np.maximum(small[:, 0] - beta, 0.0)
    else:
        alpha = _row_prices(small, out, into)
    beta = np.maximum((small - alpha[:, None]).max(axis=0), 0.0)
    return float(alpha @ out + beta @ into)


def _price(share: Floats, room: Floats, most: float) -> float:
    """Dual value of `most` where it is handed out to the largest shares first, each no more than its room."""
    order = np.argsort(-share, kind="stable")
    full = np.flatnonzero(np.cumsum(room[order]) >= most)
    return float(share[order][full[0]]) if len(full) else 0.0


def _row_prices(share: Floats, out: Floats, into: Floats) -> Floats:
    solver = pywraplp.Solver.CreateSolver("GLOP")
    if solver is None:
        raise RuntimeError("the linear solver GLOP is not available")
    infinity = solver.infinity()
    rows = [solver.Constraint(-infinity, limit) for limit in out.tolist()]
    columns = [solver.Constraint(-infinity, limit) for limit in into.tolist()]
    objective = solver.Objective()
    objective.SetMaximization()
    for row, column in np.argwhere(share > 0).tolist():
        sent = solver.NumVar(0, infinity, "")
        objective.SetCoefficient(sent, float(share[row, column]))
        rows[row].SetCoefficient(sent, 1)
        columns[column].SetCoefficient(sent, 1)
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return share.max(axis=1)  # feasible with beta = 0
    return np.maximum([row.dual_value() for row in rows], 0.0)
