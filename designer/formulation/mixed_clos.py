"""The cheapest networks of kinds of servers that meet on shared switches: one switch to a fabric, or leaves and spines.

For every order of the endpoints, model of the spines and number of them, each kind has a table: what its leaves and
uplinks cost at least, by the ports that they take of a spine. The kinds' tables are put together so that the ports fit
a spine, from the choice with the least bound on; a choice whose bound reaches the best network is closed unseen.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from designer.catalog.components import Switch
from designer.costing.mixed import PricedMixed, priced_mixed
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.fabric import Fabric
from designer.fabric.mixed import MixedShape
from designer.fabric.shape import ClosShape, Hosts, Media
from designer.formulation.blocks import one_port
from designer.formulation.demand import EPSILON, Needs, links_for
from designer.formulation.hardware import LeafKind, TierKind, leaf_kinds, tiers_above, usable_switches
from designer.formulation.mixed_cuts import KindCuts
from designer.formulation.mixed_leaves import NEVER, KindSide, Way
from designer.instance.instance import Instance
from designer.workload.cuts import Ints, Layout, layouts
from designer.workload.traffic import Traffic

BIG = np.int64(1) << 52
Pool = tuple[int, int, str]
Stands = Callable[[Fabric, Instance, Traffic], bool]


@dataclass(frozen=True)
class _Pick:
    """What a kind takes of every spine: ports of a pool of cages; and what its leaves and uplinks cost in all."""

    cents: int
    pool: Pool
    ports: int


@dataclass
class _Table:
    """The ways of one kind onto one model of spines; `cents[pool][s, p]` at number s of spines with p ports of each."""

    side: KindSide
    ways: list[Way]
    cents: dict[Pool, Ints]
    upper_cents: dict[Pool, int]

    def picks(self, row: int) -> list[_Pick]:
        """Those that no other one of the same pool beats, cheapest first."""
        found: list[_Pick] = []
        for pool, table in self.cents.items():
            column = table[row]
            least = np.minimum.accumulate(column)
            better = np.append(True, least[1:] < least[:-1]) & (column < BIG)
            found += [_Pick(int(column[ports]), pool, ports) for ports in np.flatnonzero(better).tolist()]
        return sorted(found, key=lambda pick: (pick.cents, pick.ports, pick.pool))

    def bounds(self, spines: Ints) -> Ints:
        """The least cost for each number of spines, their cages of this kind counted as parts of full ones."""
        best = np.full(len(spines), BIG)
        for pool, table in self.cents.items():
            ports: Ints = np.arange(int(table.shape[1]), dtype=np.int64)
            each: Ints = self.side.fabrics * self.upper_cents[pool] * ports // pool[0]
            best = np.minimum(best, (table + spines[:, None] * each).min(axis=1))
        return np.minimum(best, BIG)

    def shape(self, spines: int, pick: _Pick) -> ClosShape:
        """The leaves and spines of a pick."""
        count = np.array([spines])
        for way in self.ways:
            if way.pool == pick.pool:
                bundle = self.side.bundles(way, count)
                cents = self.side.cents(way, count, bundle)
                fits = (bundle < NEVER) & (way.leaves[:, None] * bundle == pick.ports) & (cents == pick.cents)
                for row in np.flatnonzero(fits[:, 0]).tolist():
                    return self.side.shape(way, row, spines, int(bundle[row, 0]))
        raise ValueError("a pick of no way")


@dataclass(frozen=True)
class _Choice:
    """An order of the endpoints, a model and a number of spines (row of the tables); no network costs less."""

    bound_cents: int
    tables: tuple[_Table, ...]
    spine: Switch
    row: int


@dataclass
class JoinedSearch:
    """The search over the networks that join all kinds of a cluster; `should_end` is asked between its parts.

    `stands` says of a network whether it carries all that is asked after failures, where arithmetic leaves that open.
    `open_cents` is the least that networks not looked at can cost.
    """

    instance: Instance
    traffic: Traffic
    pricing: Pricing
    media: MediaFinder
    should_end: Callable[[], bool]
    stands: Stands | None = None
    best: PricedMixed | None = None
    below_cents: float = math.inf
    open_cents: float = math.inf
    _leaf_rates: list[dict[tuple[bool, int], float]] = field(default_factory=list[dict[tuple[bool, int], float]])

    def __post_init__(self) -> None:
        self._leaf_rates = [{} for _ in self.instance.cluster.kinds()]
        self.spoken = list(self._switches())

    def run(self) -> None:
        """Search until proven or ended; `best` stays None where nothing costs less than `below_cents`.

        What every leaf needs by itself bounds the cost. Where a network found so does not carry all failures of
        others, it gives way to the cheapest one that does for certain.
        """
        self._single_switches()
        if self.instance.search.max_tiers < 2:
            return
        outer = self.best, self.below_cents
        self._spines(wary=False, factors=[None])
        if self.best is None or self.best is outer[0] or self._holds(self.best.shape):
            return
        if self.stands is not None and self.stands(self.best.draw(), self.instance, self.traffic):
            return
        least = min(float(self.best.cents), self.open_cents)
        self.best, self.below_cents = outer
        self.open_cents = math.inf
        self._spines(wary=True, factors=self._factors())
        self.open_cents = min(self.open_cents, least)

    def _take(self, shape: MixedShape) -> None:
        priced = priced_mixed(shape, self.pricing)
        if priced.cents < self.below_cents:
            self.best, self.below_cents = priced, priced.cents

    def _switches(self) -> Iterator[list[Switch]]:
        """For each protocol that all NICs speak the switches that may be used."""
        search, nics = self.instance.search, [kind.nic for kind in self.instance.cluster.kinds()]
        usable: dict[str, Switch] = {}
        for nic in nics:
            usable |= {item.key: item for item in usable_switches(self.instance.catalog, nic, search, self.pricing)}
        for protocol in nics[0].protocols:
            if all(protocol in nic.protocols for nic in nics) and (
                search.protocols is None or protocol in search.protocols
            ):
                yield [switch for switch in usable.values() if protocol in switch.protocols]

    def _hosts(self) -> list[Hosts]:
        cluster = self.instance.cluster
        return [
            Hosts(kind.count * kind.gpus, cluster.rails, kind.nic, one_port(kind.nic.modes), 0)
            for kind in cluster.kinds()
        ]

    def _needs(self, layout: Layout, number: int, hosts: Hosts) -> Needs:
        known = self._leaf_rates[number]
        cuts = KindCuts(self.instance.cluster, self.traffic, layout, number, hosts.gbps, known)
        return Needs(cuts, self.instance.requirements, 1, hosts.gbps)

    def _leaf_kinds(self, switches: list[Switch], hosts: Hosts) -> list[LeafKind]:
        return list(leaf_kinds(switches, hosts.nic, 1, hosts.gbps, self.media, self.instance.cabling))

    def _single_switches(self) -> None:
        """One switch to a fabric, as many whole rails as fit on it."""
        cluster, search = self.instance.cluster, self.instance.search
        if search.leaf.up:
            return
        most = cluster.rails if search.leaf_sharing != "none" or self.traffic.needs_joined_rails() else 1
        least = cluster.rails if self.traffic.needs_joined_rails() else 1
        for switches, rails in product(self.spoken, range(least, most + 1)):
            down = rails * cluster.gpus_per_rail
            if search.leaf.down not in (None, down):
                continue
            for switch in switches:
                if down <= switch.max_ports:
                    self._single_switch(switch, rails)

    def _single_switch(self, switch: Switch, rails: int) -> None:
        choices: list[list[ClosShape]] = []
        for number, hosts in enumerate(self._hosts()):
            layout = Layout(mixed=False, rails=rails, per_rail=hosts.gpus // hosts.rails)
            if math.isinf(self._needs(layout, number, hosts).detour(layout.endpoints)):
                return
            shapes = [
                ClosShape(hosts, layout, leaf.tier, layout.endpoints, media=Media(leaf.medium, self._host_m))
                for leaf in self._leaf_kinds([switch], hosts)
                if layout.endpoints <= switch.radix(leaf.tier.down_mode)
            ]
            choices.append(shapes)
        for parts in product(*choices):
            shape = MixedShape(parts)
            if not shape.problems():
                self._take(shape)

    @property
    def _host_m(self) -> float:
        return self.instance.cabling.host_m

    def _sides(self, layout: Layout, *, wary: bool) -> list[KindSide]:
        sides: list[KindSide] = []
        for number, hosts in enumerate(self._hosts()):
            own = replace(layout, per_rail=hosts.gpus // hosts.rails)
            sides.append(KindSide(self.instance, self.pricing, hosts, own, self._needs(own, number, hosts), wary))
        return sides

    def _factors(self) -> Sequence[float | None]:
        """What the loss of a leaf may ask of all: every factor that some leaf has."""
        found: set[float] = set()
        for layout in layouts(self.traffic, self.instance.search.leaf_sharing):
            for side in self._sides(layout, wary=True):
                for switches in self.spoken:
                    for leaf in self._leaf_kinds(switches, side.hosts):
                        found |= set(side.attachments(leaf).detour.tolist())
        return sorted(found)

    def _spines(self, *, wary: bool, factors: Sequence[float | None]) -> None:
        """Leaves under spines: tables for every choice, then from the least bound on."""
        choices: list[_Choice] = []
        for layout, switches in product(layouts(self.traffic, self.instance.search.leaf_sharing), self.spoken):
            sides = self._sides(layout, wary=wary)
            above = [self._above(side, switches) for side in sides]
            for spine, factor in product(switches, factors):
                if self.should_end():
                    self.open_cents = 0.0
                    return
                choices += self._choices(sides, [tiers.get(spine.key, []) for tiers in above], spine, factor)
        choices.sort(key=lambda choice: choice.bound_cents)
        for choice in choices:
            if choice.bound_cents >= self.below_cents:
                break
            if self.should_end():
                self.open_cents = min(self.open_cents, choice.bound_cents)
                break
            self._combine(choice)

    def _above(self, side: KindSide, switches: list[Switch]) -> dict[str, list[tuple[LeafKind, TierKind]]]:
        """The leaves of a kind with each tier that may be above them, by the model of the spines."""
        found: dict[str, list[tuple[LeafKind, TierKind]]] = {}
        for leaf in self._leaf_kinds(switches, side.hosts):
            for spine in tiers_above(leaf.tier, switches, self.media, self.instance.cabling.leaf_spine_m):
                found.setdefault(spine.tier.switch.key, []).append((leaf, spine))
        return found

    def _choices(
        self,
        sides: list[KindSide],
        above: list[list[tuple[LeafKind, TierKind]]],
        spine: Switch,
        factor: float | None,
    ) -> Iterator[_Choice]:
        ways = [
            [side.way(leaf, tier, factor) for leaf, tier in pairs] for side, pairs in zip(sides, above, strict=True)
        ]
        most = min((max((int(way.room.max(initial=0)) for way in mine), default=0) for mine in ways), default=0)
        if most < 1:
            return
        spines = np.arange(1, most + 1)
        tables = tuple(self._table(side, mine, spine, spines) for side, mine in zip(sides, ways, strict=True))
        bounds = [table.bounds(spines) for table in tables]
        switch_cents = sides[0].fabrics * self.pricing.switch_cents(spine)
        total = np.sum(bounds, axis=0) + switch_cents * spines
        open_ = np.all([bound < BIG for bound in bounds], axis=0) & (total < self.below_cents)
        for row in np.flatnonzero(open_).tolist():
            yield _Choice(int(total[row]), tables, spine, row)

    def _table(self, side: KindSide, ways: list[Way], spine: Switch, spines: Ints) -> _Table:
        cents: dict[Pool, Ints] = {}
        upper: dict[Pool, int] = {}
        rows = np.broadcast_to(np.arange(len(spines)), (0, len(spines)))
        for way in ways:
            radix = spine.radix(way.spine.tier.down_mode)
            table = cents.setdefault(way.pool, np.full((len(spines), radix + 1), BIG))
            upper[way.pool] = self.pricing.medium_cents(way.spine.medium)[1]
            bundle = side.bundles(way, spines)
            ports = way.leaves[:, None] * bundle
            cost = side.cents(way, spines, bundle)
            fits = (bundle < NEVER) & (ports <= radix) & (cost < self.below_cents)
            rows = np.broadcast_to(np.arange(len(spines)), fits.shape)
            np.minimum.at(table, (rows[fits], ports[fits]), cost[fits])
        return _Table(side, ways, cents, upper)

    def _combine(self, choice: _Choice) -> None:
        """The cheapest choice of one pick for each kind whose ports fit a spine together."""
        spines, fabrics = choice.row + 1, choice.tables[0].side.fabrics
        picks = [table.picks(choice.row) for table in choice.tables]
        fixed = fabrics * spines * self.pricing.switch_cents(choice.spine)
        # The least that the kinds from each one on cost.
        rest = [sum(mine[0].cents for mine in picks[number:]) for number in range(len(picks) + 1)]
        upper = {pool: cents for table in choice.tables for pool, cents in table.upper_cents.items()}

        def total(chosen: tuple[_Pick, ...]) -> float:
            """Cost with the cages of the spines; infinite where they do not fit."""
            held: dict[Pool, int] = {}
            for pick in chosen:
                held[pick.pool] = held.get(pick.pool, 0) + pick.ports
            cages = {pool: -(-ports // pool[0]) for pool, ports in held.items()}
            if sum(cages.values()) > choice.spine.cages or sum(held.values()) > choice.spine.max_ports:
                return math.inf
            own = sum(pick.cents for pick in chosen)
            return fixed + own + fabrics * spines * sum(upper[pool] * count for pool, count in cages.items())

        best: tuple[_Pick, ...] | None = None
        best_cents = self.below_cents
        stack: list[tuple[_Pick, ...]] = [()]
        while stack:
            chosen = stack.pop()
            if total(chosen) + rest[len(chosen)] >= best_cents:
                continue
            if len(chosen) == len(picks):
                best, best_cents = chosen, total(chosen)
                continue
            stack += [(*chosen, pick) for pick in reversed(picks[len(chosen)])]
        if best is not None:
            shapes = [table.shape(spines, pick) for table, pick in zip(choice.tables, best, strict=True)]
            self._take(MixedShape(tuple(shapes)))

    def _holds(self, shape: MixedShape) -> bool:
        """Whether what leaves have by themselves carries what is asked after every failure.

        Of leaves with bundles of their own each may have enough links, and yet not where the others have theirs. Leaf l
        with b_l links of c_l Gb/s to each of S spines sends X_l; without one of its links it puts up to the part p_l of
        that on any other spine, where leaf m is to get it:
        min(X_l, X_m) (p_l - 1/S) + X_m / S <= b_m c_m  for all pairs is enough. By ECMP p_l = b_l / (S b_l - 1).
        """
        if shape.one_tier:
            return True
        needs = [side.needs for side in self._sides(shape.parts[0].layout, wary=False)]
        factor = max(need.detour(part.down) for need, part in zip(needs, shape.parts, strict=True))
        ends: list[_LeafLinks] = []
        for need, part in zip(needs, shape.parts, strict=True):
            sent, gbps = need.leaf_gbps(part.down), part.leaf.up_mode.gbps if part.leaf.up_mode else 1
            if part.uplinks < links_for(sent * factor, gbps):
                return False
            if sent > 0:
                ends.append(_LeafLinks(sent, part.uplinks // shape.spines, gbps, part.leaves))
        ecmp = self.instance.requirements.routing == "ecmp"
        lost = [item for item in needs[0].lost_links if item.kind == "link" and shape.spines > 1]
        return all(_carried(ends, shape.spines, item.count, item.share, ecmp=ecmp) for item in lost)


@dataclass(frozen=True)
class _LeafLinks:
    """What a leaf of some kind sends, its `bundle` of links of `gbps` to each spine, and leaves like it in a fabric."""

    sent_gbps: float
    bundle: int
    gbps: int
    leaves: int


def _carried(ends: list[_LeafLinks], spines: int, count: int, share: float, *, ecmp: bool) -> bool:
    """Whether all leaves get `share` of what they send when one of them has lost so many links."""
    if count > 1:
        if len({(end.bundle, end.gbps) for end in ends}) == 1:
            return True  # as on a Clos with these bundles
        return all((spines - count) * end.bundle * end.gbps >= share * end.sent_gbps - EPSILON for end in ends)
    for one, other in product(ends, repeat=2):
        if one is other and one.leaves == 1:
            continue
        if ecmp:
            part = one.bundle / (spines * one.bundle - 1)
        else:
            there = min(1 / spines, (one.bundle - 1) * one.gbps / (share * one.sent_gbps))
            part = (1 - there) / (spines - 1)
        between = min(one.sent_gbps, other.sent_gbps)
        on_spine = between * (part - 1 / spines) + other.sent_gbps / spines
        if share * on_spine > other.bundle * other.gbps + EPSILON:
            return False
    return True
