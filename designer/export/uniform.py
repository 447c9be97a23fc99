"""The numbers of a Clos network that is the same everywhere, for formats that know no other.

Management ports do not count.
"""

from dataclasses import dataclass

import numpy as np

from designer.export.plan import Plan
from designer.fabric.fabric import CORE, GPU, LEAF, LEAF_LEAF, SPINE, Column

LABELS = {LEAF: "leaves", SPINE: "spines", CORE: "cores"}
ALLOWED = "a uniform Clos network: like leaves, like spines, like cores, and as many links between any two that meet"


@dataclass(frozen=True)
class Tier:
    """Switches of a tier in one fabric: `count` of them, each with `down` links of `gbps` in bundles of `bundle`."""

    count: int
    down: int
    gbps: int
    bundle: int


@dataclass(frozen=True)
class UniformClos:
    """One of `fabrics` equal networks of `pods` pods: `tiers` are leaves, spines and cores, as far as there are any."""

    fabrics: int
    pods: int
    tiers: tuple[Tier, ...]

    def up(self, tier: int) -> int:
        """Links up of each switch of a tier."""
        if tier + 1 == len(self.tiers):
            return 0
        above = self.tiers[tier + 1]
        return above.count * above.down // self.tiers[tier].count


def uniform_clos(plan: Plan) -> UniformClos:
    """The numbers of the network.

    Raises:
        ExportError: it is not uniform; says what differs.
    """
    nodes = plan.fabric.nodes
    if (plan.fabric.link_class() == LEAF_LEAF).any():
        raise plan.refuse("leaves that are joined with leaves", ALLOWED)
    kinds = [kind for kind in (LEAF, SPINE, CORE) if (nodes.kind == kind).any()]
    fabrics = len(np.unique(nodes.fabric[nodes.kind >= LEAF]))
    pods = 1
    if CORE in kinds:
        pods = _same(plan, "pods of a network", _pods_of_fabrics(plan))
    tiers = tuple(_tier(plan, kind, below) for below, kind in zip([GPU, *kinds[:-1]], kinds, strict=True))
    result = UniformClos(fabrics, pods, tiers)
    _check_reach(plan, result)
    return result


def _tier(plan: Plan, kind: int, below: int) -> Tier:
    nodes, links, label = plan.fabric.nodes, plan.fabric.links, LABELS[kind]
    switches = np.flatnonzero(nodes.kind == kind)
    chosen = np.flatnonzero((nodes.kind[links.b] == kind) & (nodes.kind[links.a] == below))
    a, b = links.a[chosen], links.b[chosen]
    if below >= LEAF:
        ups = np.bincount(a, minlength=plan.fabric.n_nodes)[nodes.kind == below]
        _same(plan, f"links up of {LABELS[below]}", ups)
    return Tier(
        _same(plan, f"{label} in a network", np.unique(nodes.fabric[switches], return_counts=True)[1]),
        _same(plan, f"links down of {label}", np.bincount(b, minlength=plan.fabric.n_nodes)[switches]),
        _same(plan, f"speeds below {label}", links.gbps[chosen]),
        _same(plan, f"links of {label} to one device", np.unique(a * plan.fabric.n_nodes + b, return_counts=True)[1]),
    )


def _pods_of_fabrics(plan: Plan) -> Column:
    nodes = plan.fabric.nodes
    leaves = np.flatnonzero(nodes.kind == LEAF)
    pairs = np.unique(np.stack([nodes.fabric[leaves], nodes.pod[leaves]]), axis=1)
    return np.unique(pairs[0], return_counts=True)[1]


def _same(plan: Plan, what: str, values: Column) -> int:
    """The one value that all have."""
    if len(values) == 0:
        raise plan.refuse(f"no {what}", ALLOWED)
    least, most = int(values.min()), int(values.max())
    if least != most:
        raise plan.refuse(f"{what}: {least} to {most}", ALLOWED)
    return least


def _check_reach(plan: Plan, clos: UniformClos) -> None:
    """Every leaf reaches every spine of its pod, and only those."""
    if len(clos.tiers) < 2:
        return
    nodes, links = plan.fabric.nodes, plan.fabric.links
    chosen = np.flatnonzero(nodes.kind[links.b] == SPINE)
    a, b = links.a[chosen], links.b[chosen]
    if (nodes.fabric[a] != nodes.fabric[b]).any() or (nodes.pod[a] != nodes.pod[b]).any():
        raise plan.refuse("links between leaves and spines of different pods", ALLOWED)
    spines = clos.tiers[1]
    reached, due = clos.up(0) // spines.bundle, spines.count // clos.pods
    if reached != due:
        raise plan.refuse(f"leaves that reach {reached} of {due} spines of their pod", ALLOWED)
