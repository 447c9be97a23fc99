"""A link placement problem: switches that may be used, blocks of endpoints, ways to join them; and its solutions.

One plane of a network. Blocks sit whole on one switch; any two switches may be joined by whole links.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from designer.catalog.components import Catalog, Nic, NicMode, Switch
from designer.catalog.media import LinkMedium
from designer.costing.pricing import MediaFinder, Pricing
from designer.formulation.block_demand import BlockDemand
from designer.formulation.hardware import joinable
from designer.instance.schema import CablingSection
from designer.workload.cuts import Ints


@dataclass(frozen=True)
class Slot:
    """A switch that may be used: one to be bought at `cents`, or one that is there already, with `free_ports`.

    Slots of the same `alike` can be swapped.
    """

    switch: Switch
    cents: int
    alike: int
    name: str = ""
    free_ports: int | None = None

    @property
    def owned(self) -> bool:
        """Whether it is there already."""
        return self.free_ports is not None

    @property
    def cages(self) -> int:
        """Cages that links may use."""
        if self.free_ports is None:
            return self.switch.cages
        return -(-self.free_ports // self.switch.native_mode.ports_per_cage)

    def lost_in_part(self, ports_per_cage: int) -> int | None:
        """Ports that are missing in the one cage of a used switch that is taken in part, None where none is."""
        native = self.switch.native_mode.ports_per_cage
        left = 0 if self.free_ports is None else self.free_ports % native
        return ports_per_cage - left * ports_per_cage // native if left else None

    def port_weight(self, ports_per_cage: int) -> Fraction:
        """What a port of such a cage takes of `port_room`."""
        if self.free_ports is None:
            return Fraction(1)
        return Fraction(self.switch.native_mode.ports_per_cage, ports_per_cage)

    @property
    def port_room(self) -> int:
        """Ports at most, weighted."""
        return self.switch.max_ports if self.free_ports is None else self.free_ports


@dataclass(frozen=True)
class End:
    """One end of a kind of links at a switch: what shares a cage, ports of the cage, price of the occupied cage."""

    key: str
    per_cage: int
    cage_cents: int


@dataclass(frozen=True)
class HostKind:
    """How NICs of one kind are joined to a switch model; `cents` are what one endpoint costs beside the cage."""

    gbps: int
    medium: LinkMedium
    end: End
    cents: Fraction


@dataclass(frozen=True)
class LinkKind:
    """A way to join two switch models: links of `gbps`, placed `bundle` at a time, `cents` a link beside the cages."""

    gbps: int
    medium: LinkMedium
    lower: End
    upper: End
    bundle: int
    cents: int

    @property
    def half_cents(self) -> Fraction:
        """What one of its two switches pays for a link at least, when cages are full."""
        ends = [Fraction(end.cage_cents, end.per_cage) for end in (self.lower, self.upper)]
        own = min(ends) if self.medium.kind == "optics" else sum(ends, Fraction()) / 2
        return own + Fraction(self.cents, 2)


@dataclass(frozen=True)
class Block:
    """GPUs whose ports share a switch; `side` tells the parts of an HB domain apart that must not share one."""

    gpus: tuple[int, ...]
    nic: Nic
    mode: NicMode
    side: int = 0
    alike: int = -1

    @property
    def ports(self) -> int:
        """Ports of the block."""
        return len(self.gpus)


@dataclass(frozen=True)
class Survival:
    """A failure to survive: after it `share` of every demand is still carried."""

    kind: str
    share: float


@dataclass(frozen=True)
class PlacementProblem:
    """Everything that a placement is decided from.

    `host_kinds[b, s]` and `link_kinds[s, t]` (s < t) are what the catalog offers for block b and slots s, t; missing
    where nothing fits. `crossing` is the least Gb/s that leaves any switch for each of its ports, and `least_cents` a
    proven bound on the cost. Two `sides` mean that a switch serves parts of one side only. With `all_bought` no slot
    that costs anything may stay empty.
    """

    slots: tuple[Slot, ...]
    blocks: tuple[Block, ...]
    demands: tuple[BlockDemand, ...]
    host_kinds: dict[tuple[int, int], HostKind]
    link_kinds: dict[tuple[int, int], tuple[LinkKind, ...]]
    survivals: tuple[Survival, ...] = ()
    sides: int = 1
    crossing: float = 0.0
    least_cents: int = 0
    all_bought: bool = False

    @cached_property
    def unit_gbps(self) -> int:
        """The rate that the programs count in."""
        speeds = {kind.gbps for kinds in self.link_kinds.values() for kind in kinds}
        return min(speeds, default=1)


@dataclass(frozen=True)
class Placement:
    """A solution: the slot of each block, and of each pair of slots (s < t) the links by kind."""

    slot_of_block: Ints
    links: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict[tuple[int, int], tuple[int, ...]])

    def used(self, problem: PlacementProblem) -> list[int]:
        """Slots that hold a block or a link."""
        joined = {slot for pair, counts in self.links.items() if any(counts) for slot in pair}
        return sorted(joined | set(self.slot_of_block.tolist()) & set(range(len(problem.slots))))

    def cage_counts(self, problem: PlacementProblem) -> dict[tuple[int, End, bool], int]:
        """Occupied cages by slot, end, and whether it leads to hosts."""
        ports: dict[tuple[int, End, bool], int] = {}
        for block, slot in enumerate(self.slot_of_block.tolist()):
            key = slot, problem.host_kinds[block, slot].end, True
            ports[key] = ports.get(key, 0) + problem.blocks[block].ports
        for (one, other), counts in self.links.items():
            for kind, count in zip(problem.link_kinds[one, other], counts, strict=True):
                for key in ((one, kind.lower, False), (other, kind.upper, False)):
                    if count:
                        ports[key] = ports.get(key, 0) + count
        return {key: -(-count // key[1].per_cage) for key, count in ports.items()}

    def cost(self, problem: PlacementProblem) -> Fraction:
        """What it costs in cents: switches to buy, modules, cables and fibres; NICs of one socket share its module."""
        total = Fraction(sum(problem.slots[slot].cents for slot in self.used(problem)))
        total += sum(end.cage_cents * count for (_, end, _), count in self.cage_counts(problem).items())
        for block, slot in enumerate(self.slot_of_block.tolist()):
            total += problem.host_kinds[block, slot].cents * problem.blocks[block].ports
        for pair, counts in self.links.items():
            total += sum(kind.cents * n for kind, n in zip(problem.link_kinds[pair], counts, strict=True))
        return total


@dataclass
class KindFinder:
    """The cheapest ways to join blocks and switches, remembered by model."""

    catalog: Catalog
    cabling: CablingSection
    pricing: Pricing
    media: MediaFinder
    _hosts: dict[tuple[str, int, int, str], HostKind | None] = field(
        default_factory=dict[tuple[str, int, int, str], HostKind | None]
    )
    _links: dict[tuple[str, str], tuple[LinkKind, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[LinkKind, ...]]
    )

    def host(self, nic: Nic, mode: NicMode, switch: Switch) -> HostKind | None:
        """The cheapest way to join a NIC port to a switch, cages full; None where nothing fits."""
        key = nic.key, mode.ports, mode.gbps, switch.key
        if key not in self._hosts:
            options = list(self._host_options(nic, mode, switch))
            self._hosts[key] = min(options, key=_per_host, default=None)
        return self._hosts[key]

    def _host_options(self, nic: Nic, mode: NicMode, switch: Switch) -> list[HostKind]:
        if not set(nic.protocols) & set(switch.protocols):
            return []
        share = Fraction(min(nic.cages_per_nic, mode.ports), mode.ports * nic.nics_per_cage)
        found: list[HostKind] = []
        for port in switch.modes_at(mode.gbps):
            ends = (nic.cage, nic.ports_per_cage(mode)), (switch.cage, port.ports_per_cage)
            for medium in self.media.between(*ends, mode.gbps, self.cabling.host_m):
                if medium.bundle == 1:
                    lower, upper, link = self.pricing.medium_cents(medium)
                    end = End(medium.per_upper_cage or medium.key, port.ports_per_cage, upper)
                    found.append(HostKind(mode.gbps, medium, end, lower * share + link))
        return found

    def between(self, lower: Switch, upper: Switch) -> tuple[LinkKind, ...]:
        """For each speed that both have: the cheapest way that places single links, and the cheapest of all.

        Optics, and straight cables, whose two cages hold nothing else.
        """
        key = lower.key, upper.key
        if key not in self._links:
            found: list[LinkKind] = []
            for gbps in sorted({mode.gbps for mode in lower.modes}):
                options = sorted(self._link_options(lower, upper, gbps), key=_per_link)
                single = [kind for kind in options if kind.bundle == 1][:1]
                found += options[:1] + [kind for kind in single if kind not in options[:1]]
            self._links[key] = tuple(found)
        return self._links[key]

    def _link_options(self, lower: Switch, upper: Switch, gbps: int) -> list[LinkKind]:
        found: list[LinkKind] = []
        if not joinable(lower, upper):
            return found
        for low in lower.modes_at(gbps):
            for high in upper.modes_at(gbps):
                ends = (lower.cage, low.ports_per_cage), (upper.cage, high.ports_per_cage)
                for medium in self.media.between(*ends, gbps, self.cabling.leaf_spine_m):
                    cents = self.pricing.medium_cents(medium)
                    straight = low.ports_per_cage == high.ports_per_cage == medium.bundle
                    if medium.kind == "optics" or straight:
                        lower_key = medium.per_lower_cage or medium.key
                        upper_key = medium.per_upper_cage or medium.key
                        one = End(lower_key, low.ports_per_cage, cents[0])
                        other = End(upper_key, high.ports_per_cage, cents[1])
                        found.append(LinkKind(gbps, medium, one, other, medium.bundle, cents[2]))
        return found


def _per_host(kind: HostKind) -> tuple[Fraction, str]:
    return kind.cents + Fraction(kind.end.cage_cents, kind.end.per_cage), kind.medium.key


def _per_link(kind: LinkKind) -> tuple[Fraction, int, str]:
    ends = Fraction(kind.lower.cage_cents, kind.lower.per_cage) + Fraction(kind.upper.cage_cents, kind.upper.per_cage)
    return kind.cents + ends, kind.bundle, kind.medium.key


def offered(
    finder: KindFinder, slots: tuple[Slot, ...], blocks: tuple[Block, ...]
) -> tuple[dict[tuple[int, int], HostKind], dict[tuple[int, int], tuple[LinkKind, ...]]]:
    """The kinds of host links by block and slot, and of links between slots."""
    hosts: dict[tuple[int, int], HostKind] = {}
    for block, item in enumerate(blocks):
        for slot, place in enumerate(slots):
            kind = finder.host(item.nic, item.mode, place.switch)
            if kind is not None:
                hosts[block, slot] = kind
    links: dict[tuple[int, int], tuple[LinkKind, ...]] = {}
    for one in range(len(slots)):
        for other in range(one + 1, len(slots)):
            links[one, other] = finder.between(slots[one].switch, slots[other].switch)
    return hosts, links


def load(problem: PlacementProblem, slot_of_block: Ints) -> Ints:
    """(slots,) endpoint ports on each slot."""
    ports = np.array([block.ports for block in problem.blocks], dtype=np.int64)
    return np.asarray(np.bincount(slot_of_block, ports, len(problem.slots)), dtype=np.int64)
