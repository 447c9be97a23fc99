"""Pareto fronts: the points that no other point beats."""

from collections.abc import Sequence

import numpy as np


def front(points: Sequence[Sequence[float] | None]) -> tuple[bool, ...]:
    """For each point whether it is on the front, less being better in every coordinate; None is never on it.

    A point is on the front if no other is at most as large in every coordinate and smaller in one. Equal points are on
    it together.
    """
    chosen = [number for number, point in enumerate(points) if point is not None]
    marks = [False] * len(points)
    if not chosen:
        return tuple(marks)
    table = np.array([points[number] for number in chosen], dtype=float)
    # A point that beats another comes before it in lexicographic order, so it is enough to look at the front so far.
    order = np.lexsort(table.T[::-1])
    best = np.empty((0, table.shape[1]))
    for row in order:
        point = table[row]
        beaten = ((best <= point).all(axis=1) & (best < point).any(axis=1)).any()
        if not beaten:
            best = np.vstack([best, point])
            marks[chosen[row]] = True
    return tuple(marks)
