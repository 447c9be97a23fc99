"""Assignments of largest weight between switches that are to be and switches that are there."""

# OR-Tools types its arrays loosely.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

from designer.certify.problem import joined
from designer.fabric.fabric import Column

MOST_SOLVED = 2048  # switches of a part up to which its assignment problem is solved


@dataclass(frozen=True)
class Weights:
    """What a switch of the new network keeps as one that is there, for pairs that keep anything."""

    new: Column
    old: Column
    links: Column


def assigned(weights: Weights, new_nodes: int, old_nodes: int) -> list[tuple[int, int]]:
    """Pairs of an assignment of largest weight; very large parts take the largest weights first."""
    return [pair for part in _parts(weights, new_nodes, old_nodes) for pair in _assigned_part(part)]


def most_assigned(weights: Weights, new_nodes: int, old_nodes: int) -> int:
    """What no assignment exceeds: the best one, or for large parts the most that each new switch could have."""
    total = 0
    for part in _parts(weights, new_nodes, old_nodes):
        if max(len(np.unique(part.new)), len(np.unique(part.old))) > MOST_SOLVED:
            most = np.zeros(new_nodes, dtype=np.int64)
            np.maximum.at(most, part.new, part.links)
            total += int(most.sum())
            continue
        links = dict(zip(zip(part.new.tolist(), part.old.tolist(), strict=True), part.links.tolist(), strict=True))
        total += sum(links[pair] for pair in _assigned_part(part))
    return total


def _parts(weights: Weights, new_nodes: int, old_nodes: int) -> Iterator[Weights]:
    """Parts that share no switch."""
    if not len(weights.new):
        return
    label = joined(new_nodes + old_nodes, weights.new, weights.old + new_nodes)
    part = label[weights.new]
    order = np.argsort(part, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        yield Weights(weights.new[rows], weights.old[rows], weights.links[rows])


def _assigned_part(weights: Weights) -> list[tuple[int, int]]:
    new, row = np.unique(weights.new, return_inverse=True)
    old, column = np.unique(weights.old, return_inverse=True)
    size = max(len(new), len(old))
    if size > MOST_SOLVED:
        return _largest_first(weights)
    table = np.zeros((size, size), dtype=np.int64)
    table[row.reshape(-1), column.reshape(-1)] = weights.links
    solver = SimpleLinearSumAssignment()
    ends: tuple[Any, Any] = np.divmod(np.arange(size * size, dtype=np.int32), np.int32(size))
    cost: Any = int(table.max()) - table.reshape(-1)
    solver.add_arcs_with_cost(*ends, cost)
    if solver.solve() != solver.OPTIMAL:
        raise ValueError("an assignment without a solution")
    found = [(at, solver.right_mate(at)) for at in range(len(new))]
    return [(int(new[at]), int(old[to])) for at, to in found if to < len(old) and table[at, to] > 0]


def _largest_first(weights: Weights) -> list[tuple[int, int]]:
    used_new: set[int] = set()
    used_old: set[int] = set()
    found: list[tuple[int, int]] = []
    order = np.argsort(-weights.links, kind="stable")
    for new, old in zip(weights.new[order].tolist(), weights.old[order].tolist(), strict=True):
        if new not in used_new and old not in used_old:
            used_new.add(new)
            used_old.add(old)
            found.append((new, old))
    return found
