"""The best paths and weights for what switches send each other: linear programs on the graph of one unit.

Two programs, each solved twice: for the largest throughput, then for the fewest hops at that throughput.

Fixed rates: maximum concurrent flow, one commodity a source (its paths are taken apart afterwards):

    max lambda   flow of source s out of v - into v = lambda D_sv at every v,   sum over s of flow_sa <= cap_a

`any`: the best static routing, the same weights whatever permutation is sent (Applegate and Cohen, SIGCOMM 2003, with
the hose polytope of Duffield et al., SIGCOMM 1999; the worst case of each arc is dualised as in Altin et al., 2007):

    min rho   unit flows f^st,   alpha_gas + beta_gat >= f^st_a for groups g, pairs (s, t) of it, arcs a,
    sum over g, v of rate_g n_gv (alpha_gav + beta_gav) + sum of D_st f^st_a <= rho cap_a

where the flow of (t, s) is that of (s, t) backwards: links are the same in both directions, so nothing is lost for
`any`. Both are solved over the arcs that lie on paths of some few hops more than necessary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designer.fabric.paths import Weighted, flow_paths
from designer.formulation.solvers import INF, Bools, Floats, HighsSolver, Ints, LinearModel, ModelBuilder, SolveLimits

CLOSE = 1e-7  # what the second program may lose: the solver's own tolerance
Ends = tuple[int, int]
Routes = dict[Ends, Weighted]
Members = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RouteProblem:
    """A connected graph and what its nodes send: `rates` by pair, `hoses` of `any` with the rate of each member.

    Link i joins a[i] and b[i] with `gbps[i]` in each direction; arc i + links is link i backwards. `most` is the part
    of the demand that the endpoints' own ports carry.
    """

    nodes: int
    a: Ints
    b: Ints
    gbps: Floats
    rates: Mapping[Ends, float]
    hoses: tuple[tuple[Members, float], ...]
    most: float

    @cached_property
    def tail(self) -> Ints:
        """Where each arc begins."""
        return np.concatenate([self.a, self.b])

    @cached_property
    def head(self) -> Ints:
        """Where each arc ends."""
        return np.concatenate([self.b, self.a])

    @cached_property
    def capacity(self) -> Floats:
        """Gb/s of each arc."""
        return np.concatenate([self.gbps, self.gbps])

    @cached_property
    def pairs(self) -> list[Ends]:
        """The ordered pairs that send, or may."""
        found = {ends for ends, rate in self.rates.items() if rate > 0}
        for members, _ in self.hoses:
            found |= {(one, other) for one, _ in members for other, _ in members if one != other}
        return sorted(found)

    @cached_property
    def hops(self) -> Floats:
        """Fewest hops from node to node."""
        hops = np.full((self.nodes, self.nodes), np.inf)
        np.fill_diagonal(hops, 0.0)
        hops[self.tail, self.head] = 1.0
        for node in range(self.nodes):
            hops = np.minimum(hops, hops[:, [node]] + hops[[node]])
        return hops

    def usable(self, source: int, targets: list[int], detour: int) -> Bools:
        """The arcs on paths of at most `detour` hops more than necessary, to any of the targets."""
        beyond = (self.hops[:, targets] - self.hops[source, targets]).min(axis=1)
        chosen = self.hops[source, self.tail] + 1 + beyond[self.head] <= detour
        return np.asarray(chosen & (self.head != source))


class ConcurrentFlow:
    """The program of fixed rates, over the arcs that a detour allows."""

    def __init__(self, problem: RouteProblem, detour: int, enough: float) -> None:
        self.problem, self.enough = problem, enough
        self.wanted: dict[int, dict[int, float]] = {}
        for source, target in problem.pairs:
            self.wanted.setdefault(source, {})[target] = problem.rates[source, target]
        self.arcs = {
            source: np.flatnonzero(problem.usable(source, list(targets), detour))
            for source, targets in self.wanted.items()
        }

    @property
    def size(self) -> int:
        """Flow variables."""
        return sum(map(len, self.arcs.values()))

    def routes(self) -> Routes | None:
        """Routes at the largest throughput, at most `enough`; None where the solver found none."""
        scale = float(self.problem.capacity.max())
        first = _solution(self._model(scale, None))
        if first is None or first[0] <= 0:
            return None
        second = _solution(self._model(scale, float(first[0]) * (1 - CLOSE)))
        values = first if second is None else second
        result: Routes = {}
        start = 1
        for source, arcs in self.arcs.items():
            flow = values[start : start + len(arcs)] * scale
            due = {target: rate * float(values[0]) for target, rate in self.wanted[source].items()}
            paths = flow_paths(self.problem.tail[arcs], self.problem.head[arcs], flow.tolist(), source, due)
            result |= {(source, target): paths[target] for target in paths}
            start += len(arcs)
        return result if len(result) == len(self.problem.pairs) else None

    def _model(self, scale: float, throughput: float | None) -> LinearModel:
        """Throughput is maximised, or given and hops are minimised; flows in units of `scale` Gb/s."""
        model, problem = ModelBuilder(), self.problem
        if throughput is None:
            model.add_column(-1.0, 0.0, self.enough)
        else:
            model.add_column(0.0, throughput, throughput)
        through: dict[int, list[int]] = {}
        for source, arcs in self.arcs.items():
            into: dict[int, tuple[list[int], list[float]]] = {}
            for arc in arcs.tolist():
                column = model.add_column(0.0 if throughput is None else 1.0)
                through.setdefault(arc, []).append(column)
                for node, sign in ((int(problem.head[arc]), 1.0), (int(problem.tail[arc]), -1.0)):
                    indices, values = into.setdefault(node, ([], []))
                    indices.append(column)
                    values.append(sign)
            for node, (indices, values) in into.items():
                if node != source:  # what all others take in, the source sends
                    rate = self.wanted[source].get(node, 0.0)
                    model.add_row(0.0, 0.0, [0, *indices], [-rate / scale, *values])
        for arc, columns in through.items():
            model.add_row(-INF, float(problem.capacity[arc]) / scale, columns, [1.0] * len(columns))
        return model.build()


class StaticFlow:
    """The program of `any`, fixed rates beside it, over the arcs that a detour allows. Flows of s < t are variables."""

    def __init__(self, problem: RouteProblem, detour: int, enough: float) -> None:
        self.problem, self.enough = problem, enough
        self.pairs = sorted({(min(ends), max(ends)) for ends in problem.pairs})
        self.arcs = [
            np.flatnonzero(problem.usable(source, [target], detour) & (problem.tail != target))
            for source, target in self.pairs
        ]

    @property
    def size(self) -> int:
        """Flow variables, with the rows of the worst cases."""
        inside = [{node for node, _ in members} for members, _ in self.problem.hoses]
        return sum(
            len(arcs) * (1 + sum(source in nodes and target in nodes for nodes in inside))
            for arcs, (source, target) in zip(self.arcs, self.pairs, strict=True)
        )

    def routes(self) -> Routes | None:
        """Routes at the largest throughput, at most `enough`; None where the solver found none."""
        first = _solution(self._model(None))
        if first is None:
            return None
        second = _solution(self._model(float(first[0]) * (1 + CLOSE)))
        values = first if second is None else second
        result: Routes = {}
        start = 1
        for (source, target), arcs in zip(self.pairs, self.arcs, strict=True):
            flow = values[start : start + len(arcs)]
            start += len(arcs)
            paths = flow_paths(self.problem.tail[arcs], self.problem.head[arcs], flow.tolist(), source, {target: 1.0})
            if target not in paths:
                return None
            result[source, target] = paths[target]
            result[target, source] = tuple((path[::-1], weight) for path, weight in paths[target])
        return {ends: result[ends] for ends in self.problem.pairs}

    def _model(self, rho: float | None) -> LinearModel:
        """The worst relative load rho is minimised, or given and hops are minimised."""
        model, problem = ModelBuilder(), self.problem
        if rho is None:
            model.add_column(1.0, 1.0 / self.enough)
        else:
            model.add_column(0.0, rho, rho)
        loads: list[tuple[list[int], list[float]]] = [([0], [-limit]) for limit in problem.capacity.tolist()]
        flows = [
            self._add_flow(model, ends, arcs, loads, 0.0 if rho is None else 1.0)
            for ends, arcs in zip(self.pairs, self.arcs, strict=True)
        ]
        for members, gbps in problem.hoses:
            self._add_worst_case(model, members, gbps, flows, loads)
        for indices, values in loads:
            model.add_row(-INF, 0.0, indices, values)
        return model.build()

    def _add_flow(
        self, model: ModelBuilder, ends: Ends, arcs: Ints, loads: list[tuple[list[int], list[float]]], cost: float
    ) -> list[int]:
        """One unit from s to t, and the load of fixed rates in both directions."""
        source, target = ends
        rates = self.problem.rates.get(ends, 0.0), self.problem.rates.get((target, source), 0.0)
        into: dict[int, tuple[list[int], list[float]]] = {}
        columns: list[int] = []
        for arc in arcs.tolist():
            column = model.add_column(cost)
            columns.append(column)
            for node, sign in ((int(self.problem.head[arc]), 1.0), (int(self.problem.tail[arc]), -1.0)):
                indices, values = into.setdefault(node, ([], []))
                indices.append(column)
                values.append(sign)
            for loaded, rate in zip((arc, self._reversed(arc)), rates, strict=True):
                if rate:
                    loads[loaded][0].append(column)
                    loads[loaded][1].append(rate)
        for node, (indices, values) in into.items():
            due = float(node == target) - float(node == source)
            model.add_row(due, due, indices, values)
        return columns

    def _add_worst_case(
        self,
        model: ModelBuilder,
        members: Members,
        gbps: float,
        flows: list[list[int]],
        loads: list[tuple[list[int], list[float]]],
    ) -> None:
        """alpha_as + beta_at >= f^st_a with the load that they stand for; beta of an arc is alpha of the reversed."""
        count = dict(members)
        alphas: dict[tuple[int, int], int] = {}

        def alpha(arc: int, node: int) -> int:
            if (arc, node) not in alphas:
                alphas[arc, node] = model.add_column(0.0)
                for loaded in (arc, self._reversed(arc)):
                    loads[loaded][0].append(alphas[arc, node])
                    loads[loaded][1].append(gbps * count[node])
            return alphas[arc, node]

        for (source, target), arcs, columns in zip(self.pairs, self.arcs, flows, strict=True):
            if source in count and target in count:
                for arc, column in zip(arcs.tolist(), columns, strict=True):
                    bounds = [alpha(arc, source), alpha(self._reversed(arc), target)]
                    model.add_row(0.0, INF, [*bounds, column], [1.0, 1.0, -1.0])

    def _reversed(self, arc: int) -> int:
        links = len(self.problem.a)
        return arc - links if arc >= links else arc + links


def worst_loads(members: Members, shares: Mapping[int, Mapping[Ends, float]]) -> dict[int, float]:
    """What each arc carries of the demand of a group that is worst for it, in units of a member's rate.

    `shares[arc][s, t]` is the part of what goes from s to t that crosses the arc. One program for all arcs: the dual of
    the worst demand's, min sum of n_s alpha_s + sum of n_t beta_t with alpha_s + beta_t >= share.
    """
    model, count = ModelBuilder(), dict(members)
    bounds: dict[int, list[int]] = {}
    for arc, crossing in shares.items():
        sides: tuple[dict[int, int], dict[int, int]] = {}, {}
        for ends, share in crossing.items():
            for node, side in zip(ends, sides, strict=True):
                if node not in side:
                    side[node] = model.add_column(float(count[node]))
            model.add_row(share, INF, [sides[0][ends[0]], sides[1][ends[1]]], [1.0, 1.0])
        bounds[arc] = [*sides[0].values(), *sides[1].values()]
    built = model.build()
    values = _solution(built)
    if values is None:
        raise RuntimeError("the linear solver HiGHS found no worst demand")
    return {arc: float(built.cost[columns] @ values[columns]) for arc, columns in bounds.items()}


def _solution(model: LinearModel) -> Floats | None:
    report = HighsSolver(linear="ipm").solve(model, SolveLimits())
    return report.values if report.termination == "optimal" else None
