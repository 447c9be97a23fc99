"""Cut-set inequalities: what crosses a cut needs capacity on it, rounded to whole modules of every size.

Only bonds count (cuts with both sides connected): the inequality of any other cut is a sum of those of bonds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from designer.formulation.modules import TINY, DesignData
from designer.formulation.solvers import Bools, Floats, Ints

MOST_SETS = 60_000
MOST_BONDS = 1_500
SMALL_SET = 3
MOST_SIZES = 8
LEAST_FRACTION = 1e-6
LEAST_VIOLATION = 1e-6


def mixed_integer_rounding(coefficients: Floats, rhs: float, base: float) -> tuple[Floats, float]:
    """MIR of a·y >= b for whole y >= 0, divided by `base` before it is rounded.

    With a' = a/base, b' = b/base and f = b' - floor(b') > 0:
        sum_j (floor(a'_j) + min(1, frac(a'_j) / f)) y_j >= ceil(b');
    with f = 0 the plain rounding of the coefficients: sum_j ceil(a'_j) y_j >= b'.
    Source: Nemhauser, Wolsey, "A recursive procedure to generate all cuts for 0-1 mixed integer programs",
    Mathematical Programming 46 (1990); on cut sets of several module sizes Bienstock, Günlük (1996).
    """
    scaled, bound = coefficients / base, rhs / base
    whole = math.floor(bound * (1 + TINY))
    fraction = bound - whole
    if fraction < LEAST_FRACTION * min(bound, 1.0):
        return np.ceil(scaled - TINY), float(whole)
    floors = np.floor(scaled + TINY)
    return floors + np.minimum(np.maximum(scaled - floors, 0.0) / fraction, 1.0), whole + 1.0


def rounded(coefficients: Floats, rhs: float) -> list[tuple[Floats, float]]:
    """A row a·y >= b and its MIR rows: for every size among a, on the row itself and on rows rounded before.

    Rounding first to the smallest size and then to a larger one dominates the larger alone where sizes divide each
    other: a demand of 50 on modules of 12 and 48 is 5 small ones, so one large and 1 small, or 2 large ones.
    Source: Pochet, Wolsey, "Integer knapsack and flow covers with divisible coefficients", Discrete Applied
    Mathematics 59 (1995).
    """
    rows = [(coefficients, rhs)]
    sizes = np.unique(np.round(coefficients[coefficients > TINY], 9))[:MOST_SIZES].tolist()
    if not sizes:
        return rows
    least = sizes[0]
    first = mixed_integer_rounding(coefficients, rhs, least)
    rows.append(first)
    for size in sizes[1:]:
        rows += [mixed_integer_rounding(coefficients, rhs, size), mixed_integer_rounding(*first, size / least)]
    if len(sizes) > 2:
        second = mixed_integer_rounding(*first, sizes[1] / least)
        inner = np.unique(np.round(second[0][second[0] > TINY], 9)).tolist()[1:MOST_SIZES]
        rows += [mixed_integer_rounding(*second, size) for size in inner]
    return rows


@dataclass
class RowPool:
    """Rows a·y >= b over the module columns, none twice, and which of them are in the model (`chosen`)."""

    columns: int
    chosen: list[int] = field(default_factory=list[int])
    rows: list[tuple[Ints, Floats, float]] = field(default_factory=list[tuple[Ints, Floats, float]])
    _seen: set[bytes] = field(default_factory=set[bytes])
    _taken: set[int] = field(default_factory=set[int])
    _dense: tuple[Floats, Floats] | None = None

    def add(self, columns: Ints, coefficients: Floats, rhs: float) -> int | None:
        """Adds a row; its number, or None where it says nothing new.

        A row without columns and with rhs > 0 stays: it proves that nothing can be built.
        """
        used = coefficients > TINY
        if rhs <= TINY:
            return None
        columns, scaled = columns[used], coefficients[used] / rhs
        key = columns.astype(np.int32).tobytes() + np.round(scaled, 7).tobytes()
        if key in self._seen:
            return None
        self._seen.add(key)
        self.rows.append((columns, coefficients[used], rhs))
        self._dense = None
        return len(self.rows) - 1

    def choose(self, numbers: Sequence[int]) -> int:
        """Takes rows into the model; how many were not in it."""
        new = [number for number in numbers if number not in self._taken]
        self._taken.update(new)
        self.chosen += new
        return len(new)

    def violated(self, counts: Floats, most: int) -> list[int]:
        """Rows that `counts` violate and that are not chosen, the deepest first by Euclidean distance."""
        matrix, rhs = self._arrays()
        depth = rhs - matrix @ counts
        order = np.argsort(-depth, kind="stable")[: most + len(self._taken)].tolist()
        found = [number for number in order if depth[number] > LEAST_VIOLATION and number not in self._taken]
        return found[:most]

    def _arrays(self) -> tuple[Floats, Floats]:
        if self._dense is None:
            matrix = np.zeros((len(self.rows), self.columns))
            for number, (columns, coefficients, _) in enumerate(self.rows):
                matrix[number, columns] = coefficients
            rhs = np.array([rhs for _, _, rhs in self.rows], float)
            norm = np.maximum(np.linalg.norm(matrix, axis=1), TINY)
            self._dense = matrix / norm[:, None], rhs / norm
        return self._dense


def add_weighted_cut(pool: RowPool, data: DesignData, weights: Floats, rhs: float) -> list[int]:
    """Rows of sum_l w_l (p_l + sum_m c_lm y_lm) >= D with all their MIR rows; the numbers of the new ones.

    Cut-set inequality of a node set S in a scenario: w_l = 1 on the links of the cut that are up, D the demand that
    crosses it (of the larger direction, where each direction has the capacity). Metric inequality: w_l the lengths, D
    the demands times distances.
    """
    rhs -= float(weights @ data.pre_installed)
    columns = np.flatnonzero(weights[data.column_link] > TINY)
    coefficients = (weights[data.column_link] * data.column_capacity)[columns]
    rows = rounded(coefficients, rhs) if rhs > TINY else []
    numbers = [pool.add(columns, row, bound) for row, bound in rows]
    return [number for number in numbers if number is not None]


def add_survivable_cut(pool: RowPool, data: DesignData, cut: Bools, rhs: float) -> None:
    """Cut-set inequalities of a node set after the failure of each link of its cut C, and their sum.

    For every failed link g in C: sum_(l in C, l != g) a_l·y_l >= r, for a row (a, r) of `rounded`. Adding them up,
    every link stands in |C| - 1 of them:
        sum_(l in C) a_l·y_l >= r |C| / (|C| - 1), rounded again.
    Source: Dahl, Stoer, "A cutting plane algorithm for multicommodity survivable network design problems", INFORMS J.
    Computing 10 (1998), for the inequalities of each failure; the sum is a Chvátal-Gomory step.
    """
    links = np.flatnonzero(cut)
    weights = cut.astype(float)
    for failed in links.tolist():
        weights[failed] = 0.0
        add_weighted_cut(pool, data, weights, rhs)
        weights[failed] = 1.0
    if len(links) < 2 or bool((data.pre_installed[links] > 0).any()):
        return  # with pre-installed capacity every failure leaves another need
    columns = np.flatnonzero(cut[data.column_link])
    for row, bound in rounded(data.column_capacity[columns], rhs):
        for again, raised in rounded(row, bound * len(links) / (len(links) - 1)):
            pool.add(columns, again, raised)


def cut_pool(data: DesignData, *, survivable: bool) -> tuple[RowPool, bool]:
    """Cut-set rows of the bonds of the graph, those with the fewest links first where there are too many.

    Returns the pool, and whether it holds every bond.
    """
    pool = RowPool(len(data.column_link))
    inside, complete = bonds(data)
    sides = inside[:, data.ends]
    crossing = sides[:, :, 0] != sides[:, :, 1]
    if len(inside) > MOST_BONDS:
        order = np.argsort(crossing.sum(axis=1), kind="stable")[:MOST_BONDS]
        inside, crossing, complete = inside[order], crossing[order], False
    shared, directed = len(data.row_link) == data.links, len(data.tail) == data.links
    for side, cut in zip(inside, crossing, strict=True):
        there = float(data.demand[np.ix_(side, ~side)].sum())
        back = float(data.demand[np.ix_(~side, side)].sum())
        if directed:
            leaves = cut & side[data.ends[:, 0]]
            wanted = [(leaves, there), (cut & ~leaves, back)]
        else:
            wanted = [(cut, there + back if shared else max(there, back))]
        for links, rhs in wanted:
            if rhs <= TINY:
                continue
            if survivable:
                add_survivable_cut(pool, data, links, rhs)
            else:
                add_weighted_cut(pool, data, links.astype(float), rhs)
    return pool, complete


def bonds(data: DesignData) -> tuple[Bools, bool]:
    """(bonds, nodes) one side of each cut with both sides connected; whether these are all of them.

    All connected sets with node 0 are listed; where there are more than `MOST_SETS`, sets of at most `SMALL_SET` nodes.
    """
    adjacent = [0] * data.nodes
    for one, other in data.ends.tolist():
        adjacent[one] |= 1 << other
        adjacent[other] |= 1 << one
    everything = (1 << data.nodes) - 1
    found: list[int] = []
    complete = True
    for listed, nodes in enumerate(_connected_sets(adjacent, 0, 0, data.nodes)):
        if listed >= MOST_SETS:
            complete = False
            break
        found.append(nodes)
    if not complete:
        found = [
            nodes
            for start in range(data.nodes)
            for nodes in _connected_sets(adjacent, start, (1 << start) - 1, SMALL_SET)
        ]
    sides = [nodes for nodes in found if nodes != everything and _connected(adjacent, everything & ~nodes)]
    table = np.array([[nodes >> node & 1 for node in range(data.nodes)] for nodes in sides], bool)
    return table.reshape(-1, data.nodes), complete


def _connected_sets(adjacent: list[int], start: int, excluded: int, largest: int) -> Iterator[int]:
    """Every connected node set with `start` and without `excluded`, once, as bits."""
    stack = [(1 << start, excluded, adjacent[start])]
    while stack:
        nodes, without, around = stack.pop()
        yield nodes
        if nodes.bit_count() >= largest:
            continue
        free = around & ~nodes & ~without
        while free:
            bit = free & -free
            free ^= bit
            stack.append((nodes | bit, without, around | adjacent[bit.bit_length() - 1]))
            without |= bit


def _connected(adjacent: list[int], nodes: int) -> bool:
    reached = fresh = nodes & -nodes
    while fresh:
        bit = fresh & -fresh
        fresh ^= bit
        new = adjacent[bit.bit_length() - 1] & nodes & ~reached
        reached |= new
        fresh |= new
    return reached == nodes
