"""How much two leaves share: where bundles are uneven some pair of leaves reaches few common spines."""

import numpy as np

from designer.fabric.fabric import LEAF_SPINE, Fabric

MAX_PATTERNS = 4096


def worst_leaf_pair(fabric: Fabric) -> float:
    """The least part of a leaf's uplinks that leads to spines it shares with another leaf of its pod, as a fraction.

    For leaves l, m with c links to each spine s: min over pairs of sum over s of min(c_ls, c_ms), over the uplinks of
    a leaf. 1.0 where all bundles are equal or leaves have no uplinks.
    """
    links = fabric.links
    chosen = fabric.link_class() == LEAF_SPINE
    if not chosen.any():
        return 1.0
    leaf, spine = links.a[chosen], links.b[chosen]
    pod = fabric.nodes.fabric[leaf] * (int(fabric.nodes.pod.max(initial=0)) + 2) + fabric.nodes.pod[leaf] + 1
    worst = 1.0
    # Like fabrics are wired alike: one with each number of leaves and links speaks for the others.
    seen: set[tuple[int, int, int]] = set()
    order = np.argsort(pod, kind="stable")
    bounds = np.flatnonzero(np.diff(pod[order])) + 1
    for part in np.split(order, bounds):
        leaves, row = np.unique(leaf[part], return_inverse=True)
        spines, column = np.unique(spine[part], return_inverse=True)
        key = (len(leaves), len(spines), len(part))
        if key in seen:
            continue
        seen.add(key)
        table = np.zeros((len(leaves), len(spines)))
        np.add.at(table, (row, column), 1)
        patterns, times = np.unique(table, axis=0, return_counts=True)
        if len(patterns) == 1:
            continue
        worst = min(worst, _worst_of(patterns[:MAX_PATTERNS], times[:MAX_PATTERNS]))
    return worst


def _worst_of(patterns: np.ndarray, times: np.ndarray) -> float:
    uplinks = patterns.sum(axis=1)
    worst = 1.0
    for number, pattern in enumerate(patterns):
        shared = np.minimum(pattern, patterns).sum(axis=1) / np.minimum(uplinks[number], uplinks)
        if times[number] == 1:
            shared[number] = 1.0
        worst = min(worst, float(shared.min()))
    return worst
