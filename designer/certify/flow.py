"""Maximum concurrent flow of a problem: a value with proof where symmetry makes it small, an upper bound always.

Exact by symmetry. Let G be a group of verified automorphisms, and take one source s of each of its orbits. Make s
unique and refine, starting from the orbits of nodes and arcs: the classes of arcs seen from s are such that a flow of s
spread evenly inside each class is conserved at every node when it is on the whole. The program has one variable for
each source and class; a capacity row adds up an orbit of arcs, every source as often as its orbit is large.
  Upper bound: the average of a best flow over G is invariant, and its class totals satisfy every row.
  Lower bound: spread the solution evenly, move it to every source of the orbit by G, average: each arc of an orbit has
  the same load, the row divided by the size of the orbit.
So the value is exact, whatever G is; a larger G makes the program smaller. With colours in place of orbits only the
upper bound holds, and only where one source stands for those that see the same colours: two of one colour may be near
to their peers and far from them.
"""

# OR-Tools ships no types for this solver.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from dataclasses import dataclass

import numpy as np
from ortools.linear_solver import pywraplp

from designer.certify.problem import Floats, FlowProblem, Ints, weigh
from designer.certify.symmetry import Orbits, Refiner, joint_classes, joint_keys

MAX_COLUMNS = 60_000
MAX_VIEWS = 30_000_000  # sources times arcs
TINY = 1e-12


@dataclass(frozen=True)
class ClassFlow:
    """Value of the class program, and the throughput that its flow reaches when every arc is checked."""

    value: float
    checked: float


@dataclass(frozen=True)
class _Part:
    """One source's share of the program: columns are classes of arcs seen from it."""

    size: int
    tail: Ints
    head: Ints
    orbit: Ints
    wanted: Floats


class TooLargeError(Exception):
    """The class program would have more columns than is reasonable."""


def class_flow(
    problem: FlowProblem,
    node_class: Ints,
    arc_class: Ints,
    *,
    colours: bool = False,
    alike: Ints | None = None,
    most_columns: int = MAX_COLUMNS,
) -> ClassFlow:
    """Solves the class program for the given classes of nodes and arcs, of at most so many columns.

    With the orbits of `symmetry.SymmetryFinder` the value is exact; with colours it is an upper bound. `alike` are
    orbits of nodes: sources of one see the same, and are looked at once.

    Raises:
        TooLargeError: too many classes.
    """
    sources = problem.sources
    if not len(sources):
        return ClassFlow(problem.most, problem.most)
    refiner = Refiner(problem, arc_class, node_class)
    kinds = _views(refiner, sources, alike) if colours else node_class[sources]
    _, first, sizes = np.unique(kinds, return_index=True, return_counts=True)
    parts: list[_Part] = []
    columns = 0
    for source, size in zip(sources[first].tolist(), sizes.tolist(), strict=True):
        part = _seen(problem, refiner, arc_class, source, size)
        columns += len(part.tail)
        if columns > most_columns:
            raise TooLargeError
        parts.append(part)
    capacity = weigh(arc_class, problem.arc_capacity, int(arc_class.max(initial=-1)) + 1)
    value, loads = _solve(parts, capacity)
    used = loads > TINY
    worst = float((capacity[used] / loads[used]).min(initial=np.inf)) if used.any() else np.inf
    checked = value * min(1.0, worst)
    return ClassFlow(min(value, problem.most), min(checked, problem.most))


def _views(refiner: Refiner, sources: Ints, alike: Ints | None) -> Ints:
    """Numbers for what each source sees: the same for sources that see equally many nodes of each colour."""
    orbit = np.arange(len(sources)) if alike is None else alike[sources]
    _, first, member = np.unique(orbit, return_index=True, return_inverse=True)
    if len(first) * len(refiner.heads) > MAX_VIEWS:
        raise TooLargeError
    known: dict[bytes, int] = {}
    views = [np.sort(refiner.seen_from(source)).tobytes() for source in sources[first].tolist()]
    return np.array([known.setdefault(view, len(known)) for view in views], dtype=np.int64)[member.reshape(-1)]


def _seen(problem: FlowProblem, refiner: Refiner, arc_class: Ints, source: int, size: int) -> _Part:
    """The classes of arcs as `source` sees them; arcs out of other nodes that do not relay are left out."""
    seen = np.unique(refiner.seen_from(source)[: problem.nodes], return_inverse=True)[1].reshape(-1)
    usable = problem.relays[problem.tail] | (problem.tail == source)
    usable &= problem.head != source
    tail, head, label = seen[problem.tail[usable]], seen[problem.head[usable]], arc_class[usable]
    first = np.unique(joint_keys(tail, head, label), return_index=True)[1]
    wanted = np.zeros(int(seen.max(initial=-1)) + 1)
    target, rate = problem.row(source)
    np.add.at(wanted, seen[target], rate)
    wanted[seen[source]] -= rate.sum()
    return _Part(size, tail[first], head[first], label[first], wanted)


def _solve(parts: list[_Part], capacity: Floats) -> tuple[float, Floats]:
    """Maximize throughput; returns it with the load of each arc class."""
    solver = pywraplp.Solver.CreateSolver("GLOP")
    if solver is None:
        raise RuntimeError("the linear solver GLOP is not available")
    infinity = solver.infinity()
    scale = float(max((np.abs(part.wanted).max(initial=0.0) for part in parts), default=1.0)) or 1.0
    throughput = solver.NumVar(0, infinity, "throughput")
    capacity_rows = [solver.Constraint(-infinity, float(limit) / scale) for limit in capacity]
    flows: list[tuple[_Part, list[pywraplp.Variable]]] = []
    bounded = False
    for part in parts:
        balance = [solver.Constraint(0, 0) for _ in part.wanted]
        for row, wanted in zip(balance, part.wanted.tolist(), strict=True):
            if wanted:
                row.SetCoefficient(throughput, -wanted / scale)
                bounded = True
        variables: list[pywraplp.Variable] = []
        for tail, head, orbit in zip(part.tail.tolist(), part.head.tolist(), part.orbit.tolist(), strict=True):
            flow = solver.NumVar(0, infinity, "")
            if tail != head:
                balance[head].SetCoefficient(flow, 1)
                balance[tail].SetCoefficient(flow, -1)
            capacity_rows[orbit].SetCoefficient(flow, part.size)
            variables.append(flow)
        flows.append((part, variables))
    if not bounded:
        return float("inf"), np.zeros(len(capacity))
    solver.Maximize(throughput)
    status = solver.Solve()
    if status == pywraplp.Solver.UNBOUNDED:
        return float("inf"), np.zeros(len(capacity))
    if status != pywraplp.Solver.OPTIMAL:
        raise RuntimeError(f"the linear solver ended with status {status}")
    loads = np.zeros(len(capacity))
    for part, variables in flows:
        values = np.array([variable.solution_value() for variable in variables])
        np.add.at(loads, part.orbit, part.size * values * scale)
    return throughput.solution_value(), loads


def exact_throughput(problem: FlowProblem, orbits: Orbits, most_columns: int = MAX_COLUMNS) -> ClassFlow:
    """The throughput of the problem, exact: see the head of this module.

    Raises:
        TooLargeError: too few symmetries for the problem's size.
    """
    return class_flow(problem, orbits.node, orbits.arc, most_columns=most_columns)


def upper_bound(problem: FlowProblem, orbits: Orbits | None = None) -> float:
    """An upper bound on the throughput from colours alone; `orbits` spare looking at sources that are alike.

    Raises:
        TooLargeError: too many colours.
    """
    refiner = Refiner(problem)
    colour = np.unique(refiner.base[: problem.nodes], return_inverse=True)[1].reshape(-1)
    capacity = np.unique(problem.arc_capacity, return_inverse=True)[1].reshape(-1)
    arc = joint_classes(colour[problem.tail], colour[problem.head], capacity)
    alike = None if orbits is None else orbits.node
    return class_flow(problem, colour, arc, colours=True, alike=alike).value
