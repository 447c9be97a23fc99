"""Tiers and leaves of a network of several kinds of servers, kind by kind, counted from its nodes and links."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from designer.cli.console import printable, table
from designer.fabric.fabric import CORE, LEAF, SPINE, Column, Fabric
from designer.result import Design


def tier_words(design: Design) -> Iterator[tuple[str, str]]:
    """Switches, links and fabrics in words."""
    counts = design.counts
    switches = ", ".join(f"{counts[tier]:,} {tier}" for tier in ("leaf", "spine", "core") if counts[tier])
    tiers = {1: "one tier", 2: "two tiers", 3: "three tiers"}[1 + (counts["spine"] > 0) + (counts["core"] > 0)]
    yield "tiers", f"{tiers}: {switches}; {counts['switches']:,} switches, {counts['links']:,} links"
    yield "fabrics", f"{counts['fabrics']} separate" if counts["fabrics"] > 1 else "1 fabric"


def kinds_table(design: Design) -> Any:
    """For each kind of servers its leaves, their ports to hosts and uplinks, and the spines above them."""
    result = table("servers", "fabrics", "leaf", "leaves", "hosts", "uplinks", "above them", right=(1, 3))
    cluster, fabric = design.instance.cluster, design.fabric
    for kind, gpus in zip(cluster.kinds(), cluster.kind_ranges(), strict=True):
        leaves, hosts = _leaves(fabric, gpus)
        used: list[int] = np.unique(fabric.nodes.model[leaves]).tolist()
        fabrics = np.unique(fabric.nodes.fabric[leaves])
        result.add_row(
            printable(f"{kind.count} x {kind.gpus} {kind.gpu.key}, {kind.nic.key}"),
            f"{len(fabrics)}",
            printable(", ".join(fabric.models[model] for model in used)),
            f"{len(leaves):,}",
            hosts,
            _uplinks(fabric, leaves),
            printable(_above(fabric, fabrics)),
        )
    return result


def _leaves(fabric: Fabric, gpus: range) -> tuple[Column, str]:
    """The leaves of a range of GPUs, and the ports of the fullest one to them."""
    links = fabric.links
    own = (links.a >= gpus.start) & (links.a < gpus.stop)
    leaves, ports = np.unique(links.b[own], return_counts=True)
    speeds: list[int] = np.unique(links.gbps[own]).tolist()
    return leaves, f"{ports.max(initial=0)} x {'/'.join(map(str, speeds))}G"


def _uplinks(fabric: Fabric, leaves: Column) -> str:
    """The uplinks of a leaf by speed; all leaves of a kind have the same."""
    links = fabric.links
    rows = np.flatnonzero(np.isin(links.a, leaves))
    pairs, counts = np.unique(np.stack([links.a[rows], links.gbps[rows]]), axis=1, return_counts=True)
    speeds: list[int] = pairs[1].tolist()
    words = sorted({f"{count} x {gbps}G" for gbps, count in zip(speeds, map(int, counts), strict=True)})
    return " or ".join(words) or "none"


def _above(fabric: Fabric, fabrics: Column) -> str:
    """Spines and cores of one of the fabrics by model."""
    nodes = fabric.nodes
    words: list[str] = []
    models: Column
    counts: Column
    for kind, name in ((SPINE, "spines"), (CORE, "cores")):
        here = np.flatnonzero((nodes.kind == kind) & (nodes.fabric == fabrics[0])) if len(fabrics) else fabrics
        models, counts = np.unique(nodes.model[here], return_counts=True)
        for model, count in zip(models.tolist(), counts.tolist(), strict=True):
            words.append(f"{count} {fabric.models[model]} {name if count > 1 else name[:-1]}")
    return ", ".join(words) or "nothing"


def has_tiers(design: Design) -> bool:
    """Whether a network without the shape of a plain Clos has switches above its leaves."""
    return design.shape is None and bool((design.fabric.nodes.kind > LEAF).any())
