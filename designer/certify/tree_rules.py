"""OpenSM's rules for its `ftree` routing engine, as properties that are told of a fabric, not required of it.

Source: opensm(8), "Fat-tree Routing Algorithm": rank from two to eight; switches of a rank have as many up-going port
groups, and as many ports in each, likewise downward; all hosts at one level. A port group are the ports that lead to
one other switch. Fabrics whose constant bisectional bandwidth ratio is no whole number are routed less evenly.
"""

from math import gcd

import numpy as np
from numpy.typing import NDArray

from designer.certify.certificate import Check
from designer.certify.ports import node_name
from designer.fabric.fabric import HOST, KINDS, LEAF, LEAF_LEAF, Column, Fabric

Mask = NDArray[np.bool_]
LEAST_RANK, MOST_RANK = 2, 8


def tree_rules(fabric: Fabric) -> Check:
    """Whether OpenSM takes the fabric for a pure fat tree; the exceptions are named."""
    links, kind = fabric.links, fabric.nodes.kind
    classes = fabric.link_class()
    if (classes == LEAF_LEAF).any():
        return Check.of("OpenSM ftree", ["leaves are joined to leaves: not a tree"])
    rank = len(np.unique(kind[kind >= LEAF]))
    found: list[str] = []
    if not LEAST_RANK <= rank <= MOST_RANK:
        found.append(f"rank {rank}, ftree takes {LEAST_RANK} to {MOST_RANK}")
    between = kind[links.a] >= LEAF
    pairs, ports = np.unique(links.a[between] * fabric.n_nodes + links.b[between], return_counts=True)
    lower, upper = np.divmod(pairs, fabric.n_nodes)
    for tier in range(LEAF, LEAF + rank):
        nodes = np.flatnonzero(kind == tier)
        for end, way in ((lower, "up"), (upper, "down")):
            here = kind[end] == tier
            if not here.any():
                continue
            groups = np.bincount(end[here], minlength=fabric.n_nodes)[nodes]
            found += _unequal(fabric, nodes, groups, f"{way}-going port groups")
            found += _unequal(fabric, end[here], ports[here], f"ports in a {way}-going group")
    levels: list[int] = np.unique(kind[links.b[classes == HOST]]).tolist()
    if len(levels) > 1:
        found.append(f"hosts at {len(levels)} levels: {', '.join(KINDS[level] for level in levels)}")
    found += _ratio(fabric, between)
    return Check.of("OpenSM ftree", found)


def _unequal(fabric: Fabric, nodes: Column, count: Column, what: str) -> list[str]:
    values, times = np.unique(count, return_counts=True)
    if len(values) < 2:
        return []
    usual = values[times.argmax()]
    odd = int(np.flatnonzero(count != usual)[0])
    differ = int((count != usual).sum())
    tier = KINDS[int(fabric.nodes.kind[nodes[odd]])]
    first = node_name(fabric, int(nodes[odd]))
    span = f"{values[0]} to {values[-1]}"
    return [f"{tier}: {what} are {span}, {differ} differ from the usual {usual}, the first at {first}"]


def _ratio(fabric: Fabric, between: Mask) -> list[str]:
    """Ports down over ports up of the fullest leaf, where more lead down than up."""
    links, kind = fabric.links, fabric.nodes.kind
    down = np.bincount(links.b[~between], minlength=fabric.n_nodes)
    fullest = int(down.argmax())
    hosts, up = int(down[fullest]), int((links.a[between] == fullest).sum())
    if kind[fullest] != LEAF or up == 0 or hosts <= up or hosts % up == 0:
        return []
    common = gcd(hosts, up)
    return [f"CBB ratio {hosts // common}:{up // common} is no whole number"]
