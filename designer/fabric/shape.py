"""A Clos network in a few numbers, and what follows from them: ports, counts, cages.

All fabrics of a cluster are alike: one per plane and per set of `layout.rails` rails (with one tier the last set may
have fewer). A fabric has one, two or three tiers; with three, leaves and spines are grouped in pods.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from designer.catalog.components import Nic, NicMode, PortMode, Switch
from designer.catalog.media import LinkMedium
from designer.workload.cuts import Ints, Layout


@dataclass(frozen=True)
class Hosts:
    """The endpoints' side: GPUs, their rails, their NIC and the mode it runs in; `nic_mode.ports` are the planes."""

    gpus: int
    rails: int
    nic: Nic
    nic_mode: NicMode
    management_ports: int

    @property
    def planes(self) -> int:
        """Number of planes."""
        return self.nic_mode.ports

    @property
    def gbps(self) -> int:
        """Rate of one endpoint."""
        return self.nic_mode.gbps


@dataclass(frozen=True)
class Tier:
    """The switches of a tier: model, and the port modes toward the endpoints and away from them."""

    switch: Switch
    down_mode: PortMode
    up_mode: PortMode | None = None

    def ports_problem(self, down: int, up: int) -> str | None:
        """Why a switch cannot have `down` and `up` ports in its modes; None when it can."""
        up_per_cage = self.up_mode.ports_per_cage if self.up_mode else 1
        cages = -(-down // self.down_mode.ports_per_cage) + -(-up // up_per_cage)
        if cages > self.switch.cages:
            return f"{self.switch.key}: {down} ports down and {up} up take {cages} of {self.switch.cages} cages"
        if down + up > self.switch.max_ports:
            return f"{self.switch.key}: {down} + {up} ports, at most {self.switch.max_ports}"
        return None


@dataclass(frozen=True)
class Spines:
    """The second tier of a pod: `count` spines, each joined to every leaf by `bundle` links.

    None where bundles differ by one link.
    """

    tier: Tier
    count: int
    bundle: int | None


@dataclass(frozen=True)
class Cores:
    """The third tier. Every spine has `uplinks` links, `bundle` to each core of its group.

    A group serves `positions` spines of each pod, those with neighbouring numbers.
    """

    tier: Tier
    leaves_per_pod: int
    uplinks: int
    bundle: int
    positions: int


@dataclass(frozen=True)
class Media:
    """How each class of links is cabled, with lengths in metres."""

    host: LinkMedium
    host_m: float
    leaf_spine: LinkMedium | None = None
    leaf_spine_m: float = 0
    spine_core: LinkMedium | None = None
    spine_core_m: float = 0


@dataclass(frozen=True)
class ClassTally:
    """Links of a class, and the cages that they occupy at their lower and upper ends."""

    links: int = 0
    lower_cages: int = 0
    upper_cages: int = 0

    def __add__(self, other: "ClassTally") -> "ClassTally":
        return ClassTally(
            self.links + other.links, self.lower_cages + other.lower_cages, self.upper_cages + other.upper_cages
        )

    def times(self, factor: int) -> "ClassTally":
        """The tally of `factor` equal parts."""
        return ClassTally(self.links * factor, self.lower_cages * factor, self.upper_cages * factor)

    def cost_cents(self, lower_cents: int, upper_cents: int, link_cents: int) -> int:
        """What the class costs, given the price at each end's cage and of each link."""
        return self.lower_cages * lower_cents + self.upper_cages * upper_cents + self.links * link_cents


def leaf_sizes(layout: Layout, down: int, management_ports: int) -> Ints:
    """Used ports of each leaf with `down` ports to endpoints; management ports go where ports are free."""
    sizes = layout.leaf_sizes(down)
    left = management_ports
    spare = int((down - sizes).sum())
    if left > spare:
        sizes = np.concatenate([sizes, np.zeros(-(-(left - spare) // down), dtype=np.int64)])
    while left:
        open_leaves = np.flatnonzero(sizes < down)[:left]
        sizes[open_leaves] += 1
        left -= len(open_leaves)
    return sizes


@dataclass(frozen=True)
class ClosShape:
    """A Clos network: hosts, order of the endpoints, leaves with `down` ports, and the tiers above them.

    `uplinks` of a leaf are spines.count * spines.bundle, or any number where bundles are uneven.
    """

    hosts: Hosts
    layout: Layout
    leaf: Tier
    down: int
    uplinks: int = 0
    spines: Spines | None = None
    cores: Cores | None = None
    media: Media | None = None

    @property
    def tiers(self) -> int:
        """Number of tiers of switches."""
        return 1 + (self.spines is not None) + (self.cores is not None)

    @property
    def rail_sets(self) -> int:
        """Fabrics of one plane."""
        return -(-self.hosts.rails // self.layout.rails)

    @property
    def fabrics(self) -> int:
        """Separate networks."""
        return self.rail_sets * self.hosts.planes

    def set_rails(self, index: int) -> int:
        """Rails of the set with this index; only the last one of a one-tier network may have fewer."""
        return min(self.layout.rails, self.hosts.rails - index * self.layout.rails)

    @cached_property
    def leaf_sizes(self) -> Ints:
        """Endpoints of each leaf of a full fabric, management ports included."""
        return self.leaf_sizes_of(self.layout.rails)

    def leaf_sizes_of(self, rails: int) -> Ints:
        """Endpoints of each leaf of a fabric with `rails` rails, management ports included."""
        return leaf_sizes(replace(self.layout, rails=rails), self.down, self.hosts.management_ports)

    @property
    def leaves(self) -> int:
        """Leaves of one fabric."""
        return len(self.leaf_sizes)

    @property
    def pods(self) -> int:
        """Pods of one fabric."""
        return -(-self.leaves // self.cores.leaves_per_pod) if self.cores else 1

    @property
    def spines_per_fabric(self) -> int:
        """Spines of one fabric."""
        return self.pods * self.spines.count if self.spines else 0

    @property
    def cores_per_group(self) -> int:
        """Cores that one spine reaches."""
        return self.cores.uplinks // self.cores.bundle if self.cores else 0

    @property
    def cores_per_fabric(self) -> int:
        """Cores of one fabric."""
        if not (self.cores and self.spines):
            return 0
        return self.spines.count // self.cores.positions * self.cores_per_group

    @property
    def all_leaves(self) -> int:
        """Leaves of the whole network."""
        sets = (times * len(self.leaf_sizes_of(rails)) for rails, times in self._kinds_of_sets())
        return self.hosts.planes * sum(sets)

    def _kinds_of_sets(self) -> list[tuple[int, int]]:
        """Sets of rails as (rails, how many sets of so many): full ones, and the last one where it has fewer."""
        last = self.set_rails(self.rail_sets - 1)
        if last == self.layout.rails:
            return [(last, self.rail_sets)]
        return [(self.layout.rails, self.rail_sets - 1), (last, 1)] if self.rail_sets > 1 else [(last, 1)]

    def counts(self) -> dict[str, int]:
        """Totals over all fabrics, by closed form; the same keys as `Fabric.counts`."""
        tally = self.tally()
        spines, cores = (self.fabrics * count for count in (self.spines_per_fabric, self.cores_per_fabric))
        return {
            "switches": self.all_leaves + spines + cores,
            "leaf": self.all_leaves,
            "spine": spines,
            "core": cores,
            "fabrics": self.fabrics,
            "planes": self.hosts.planes,
            "links": sum(part.links for part in tally.values()),
            "endpoint_links": tally["host"].links,
            "leaf_leaf_links": 0,
            "leaf_spine_links": tally["leaf_spine"].links,
            "spine_core_links": tally["spine_core"].links,
        }

    def problems(self) -> list[str]:
        """What is wrong with ports and divisions, in words; empty when the network can be built."""
        found: list[str | None] = [self.leaf.ports_problem(self.down, self.uplinks)]
        if self.leaf.down_mode.gbps != self.hosts.gbps:
            found.append(f"leaf ports of {self.leaf.down_mode.gbps} Gb/s for endpoints of {self.hosts.gbps}")
        if self.tiers == 1 and self.leaves > 1:
            found.append(f"{self.leaves} leaves and no spine")
        if self.hosts.rails % self.layout.rails and self.tiers > 1:
            found.append(f"sets of {self.layout.rails} rails do not divide {self.hosts.rails}")
        found += self._spine_problems()
        return [problem for problem in found if problem]

    def _spine_problems(self) -> list[str | None]:
        if self.spines is None:
            return []
        found: list[str | None] = []
        if self.spines.bundle is not None and self.uplinks != self.spines.count * self.spines.bundle:
            found.append(f"{self.uplinks} uplinks are not {self.spines.count} x {self.spines.bundle}")
        if self.leaf.up_mode is None or self.leaf.up_mode.gbps != self.spines.tier.down_mode.gbps:
            found.append("leaf uplinks and spine downlinks differ in speed")
        if self.cores is None:
            most = -(-self.leaves * self.uplinks // self.spines.count)
            return [*found, self.spines.tier.ports_problem(most, 0)]
        if self.spines.bundle is None:
            return [*found, "uneven bundles with three tiers"]
        down = min(self.cores.leaves_per_pod, self.leaves) * self.spines.bundle
        found.append(self.spines.tier.ports_problem(down, self.cores.uplinks))
        if self.spines.tier.up_mode is None or self.spines.tier.up_mode.gbps != self.cores.tier.down_mode.gbps:
            found.append("spine uplinks and core downlinks differ in speed")
        if self.cores.uplinks % self.cores.bundle or self.spines.count % self.cores.positions:
            found.append("core groups do not divide the spines or their uplinks")
        found.append(self.cores.tier.ports_problem(self.pods * self.cores.positions * self.cores.bundle, 0))
        return found

    def tally(self) -> dict[str, ClassTally]:
        """Links and cages of each class over the whole network."""
        return {
            "host": self._host_tally(),
            "leaf_spine": self._leaf_spine_tally().times(self.fabrics),
            "spine_core": self._spine_core_tally().times(self.fabrics),
        }

    def _host_tally(self) -> ClassTally:
        nic, mode, hosts = self.hosts.nic, self.hosts.nic_mode, self.hosts
        per_cage = self.leaf.down_mode.ports_per_cage
        links = upper = 0
        for rails, times in self._kinds_of_sets():
            sizes = self.leaf_sizes_of(rails)
            links += times * int(sizes.sum())
            upper += times * int((-(-sizes // per_cage)).sum())
        management = hosts.management_ports * self.fabrics
        lower = -(-hosts.gpus // nic.nics_per_cage) * min(nic.cages_per_nic, mode.ports) + management
        return ClassTally(links * hosts.planes, lower, upper * hosts.planes)

    def _leaf_spine_tally(self) -> ClassTally:
        if self.spines is None or self.leaf.up_mode is None:
            return ClassTally()
        links = self.leaves * self.uplinks
        lower = self.leaves * -(-self.uplinks // self.leaf.up_mode.ports_per_cage)
        per_cage = self.spines.tier.down_mode.ports_per_cage
        if self.spines.bundle is None:
            few, more = divmod(links, self.spines.count)
            upper = more * -(-(few + 1) // per_cage) + (self.spines.count - more) * -(-few // per_cage)
        else:
            full = self.cores.leaves_per_pod if self.cores else self.leaves
            last = self.leaves - (self.pods - 1) * full
            cages = [-(-leaves * self.spines.bundle // per_cage) for leaves in (full, last)]
            upper = self.spines.count * ((self.pods - 1) * cages[0] + cages[1])
        return ClassTally(links, lower, upper)

    def _spine_core_tally(self) -> ClassTally:
        if self.cores is None or self.spines is None or self.spines.tier.up_mode is None:
            return ClassTally()
        spines, cores = self.spines_per_fabric, self.cores
        lower = spines * -(-cores.uplinks // self.spines.tier.up_mode.ports_per_cage)
        ports = self.pods * cores.positions * cores.bundle
        upper = self.cores_per_fabric * -(-ports // cores.tier.down_mode.ports_per_cage)
        return ClassTally(spines * cores.uplinks, lower, upper)
