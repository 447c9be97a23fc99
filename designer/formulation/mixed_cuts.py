"""Cut functions of a cluster of several kinds of servers: what the endpoints of one kind on a leaf send out of it.

A phase runs at the line rate of the slowest NIC among its GPUs. Rates are in units of the NICs of the leaf's own kind.
"""

from dataclasses import replace

import numpy as np

from designer.instance.instance import Cluster
from designer.workload.cuts import CutFunction, Floats, Ints, Layout, explicit_out, interval_out, members_out
from designer.workload.traffic import Phase, Step, Traffic


def line_gbps(cluster: Cluster, phase: Phase) -> float:
    """The line rate of a phase, Gb/s: that of the slowest NIC among its GPUs."""
    return cluster.slowest(phase.first_gpu, phase.gpus)[1]


class KindCuts(CutFunction):
    """X of the leaves of one kind of servers, which hold consecutive endpoints of it."""

    def __init__(
        self,
        cluster: Cluster,
        traffic: Traffic,
        layout: Layout,
        kind: int,
        endpoint_gbps: int,
        known: dict[tuple[bool, int], float] | None = None,
    ) -> None:
        """`layout` is that of the kind's own endpoints; GPUs of `traffic` are those of the whole `cluster`.

        `known` may be shared by the cut functions of one kind, in whichever layout.
        """
        self.gpus = cluster.kind_ranges()[kind]
        phases = tuple(
            replace(phase, floor=phase.floor * line_gbps(cluster, phase) / endpoint_gbps)
            for phase in traffic.network_phases
            if phase.first_gpu < self.gpus.stop and self.gpus.start < phase.first_gpu + phase.gpus
        )
        super().__init__(replace(traffic, phases=phases), layout, known)

    def leaf(self, down: int) -> float:
        """The largest rate out of one leaf with `down` endpoints."""
        layout = self.layout
        single = layout.mixed or (down < layout.per_rail and not self.traffic.needs_joined_rails())
        key = (layout.mixed, down)
        if not single or key not in self._known:
            value = self._leaf(down)
            if not single:
                return value
            self._known[key] = value
        return self._known[key]

    def _leaf(self, down: int) -> float:
        total = np.zeros(self.layout.leaves(down))
        for phases in self._sets:
            total += np.max(
                [phase.floor * self._out(phase, step, down) for phase in phases for step in phase.steps], axis=0
            )
        return float(total.max())

    def _out(self, phase: Phase, step: Step, down: int) -> Floats:
        """Rate of a step out of every leaf of a fabric."""
        layout, traffic, gpus = self.layout, self.traffic, self.gpus
        if phase.across == "cluster" and traffic.rails > 1 and not layout.mixed:
            return self._counted(phase, step, down)
        shrink = 1 if layout.mixed else traffic.rails
        length = layout.endpoints if layout.mixed else layout.per_rail
        scale = traffic.hb_domain // shrink if phase.across == "rail" else 1
        start = gpus.start // shrink + np.arange(0, length, down)
        end = np.minimum(start + down, gpus.start // shrink + length)
        first, members = phase.first_gpu // shrink, phase.gpus // shrink
        low, high = np.clip(start - first, 0, members), np.clip(end - first, 0, members)
        total = np.zeros(len(start))
        for part in step.components:
            total += interval_out(part, part.stride * scale, low, high)
        if layout.mixed:
            return total
        if down < length:
            return np.tile(total, layout.rails)
        return total * (layout.leaf_sizes(down) // length)  # whole rails on a leaf, each like the others

    def _counted(self, phase: Phase, step: Step, down: int) -> Floats:
        """Traffic across the rails of an aligned fabric, counted GPU by GPU."""
        leaves = self.layout.leaves(down)
        block = leaf_of(self.layout, self.traffic.rails, self.gpus, down, phase)
        inside: Ints = np.bincount(block, minlength=leaves + 1)[:leaves].astype(np.int64)
        total = np.zeros(leaves)
        for part in step.components:
            if part.size == phase.gpus and part.pattern in ("any", "all-to-all"):
                total += members_out(part.pattern, np.zeros_like(inside), inside, part.size, 0) * part.rate
            else:
                total += explicit_out(part, block, leaves + 1)[:leaves]
        return total


def leaf_of(layout: Layout, rails: int, gpus: range, down: int, phase: Phase) -> Ints:
    """For every GPU of a phase its leaf among those of one kind, in an aligned fabric; beyond the last for others."""
    gpu = np.arange(phase.first_gpu, phase.first_gpu + phase.gpus)
    rail, position = gpu % rails, gpu // rails - gpus.start // rails
    if down >= layout.per_rail:
        leaf = rail // (down // layout.per_rail)
    else:
        leaf = rail * -(-layout.per_rail // down) + position // down
    own = (gpu >= gpus.start) & (gpu < gpus.stop)
    return np.where(own, leaf, layout.leaves(down))
