"""A flow through a graph as paths with weights, destination by destination."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from designer.fabric.fabric import Column

Path = tuple[int, ...]
Weighted = tuple[tuple[Path, float], ...]
LEAST_WEIGHT = 1e-9
_Residual = dict[int, dict[int, float]]


def flow_paths(
    tail: Column, head: Column, flow: Iterable[float], source: int, wanted: Mapping[int, float]
) -> dict[int, Weighted]:
    """The flow of one source as paths to each destination; the weights of a destination add up to 1.

    Arc i from `tail[i]` to `head[i]` carries `flow[i]`; `wanted` are what the destinations take in. Taken are the
    shortest paths first, of these the widest, so cycles of the flow are left. Weights below 1e-9 are dropped. A
    destination that the flow does not reach is missing from the result.
    """
    residual: _Residual = {}
    for one, other, amount in zip(tail.tolist(), head.tolist(), flow, strict=True):
        if amount > 0:
            onward = residual.setdefault(one, {})
            onward[other] = onward.get(other, 0.0) + float(amount)
    result: dict[int, Weighted] = {}
    for target, amount in wanted.items():
        taken = _taken(residual, source, target, amount)
        total = sum(taken.values())
        if total > 0:
            result[target] = tuple((path, part / total) for path, part in taken.items())
    return result


def _taken(residual: _Residual, source: int, target: int, amount: float) -> dict[Path, float]:
    taken: dict[Path, float] = {}
    least = amount * LEAST_WEIGHT
    left = amount
    while left > least:
        path, width = _widest(residual, source, target)
        if not path:
            break
        part = min(left, width)
        for one, other in pairwise(path):
            residual[one][other] -= part
            if residual[one][other] <= 0:
                del residual[one][other]
        left -= part
        taken[path] = part
    return {path: part for path, part in taken.items() if part >= least}


def _widest(residual: _Residual, source: int, target: int) -> tuple[Path, float]:
    """Of the paths with fewest hops the one that carries most, and how much; no path: empty."""
    reached: dict[int, tuple[float, int]] = {source: (float("inf"), source)}
    front = [source]
    while front and target not in reached:
        found: dict[int, tuple[float, int]] = {}
        for node in front:
            for other, amount in residual.get(node, {}).items():
                if other not in reached:
                    width = min(reached[node][0], amount)
                    if width > found.get(other, (0.0, 0))[0]:
                        found[other] = width, node
        reached |= found
        front = list(found)
    if target not in reached:
        return (), 0.0
    path = [target]
    while path[-1] != source:
        path.append(reached[path[-1]][1])
    return tuple(reversed(path)), reached[target][0]
