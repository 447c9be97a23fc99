"""The Clos search beside a network that is there: what is owned is not bought, what cannot have stayed is plugged.

Of every piece i a network needs n_i and o_i are owned, in whatever tier they were. With p_i its price the purchase is
the full price less the sum of p_i r_i, r_i <= n_i and r_i <= o_i, which is linear as it is to be as large as can be.
Of n links between switches of a kind (speed and cabling) at most the o that are there stay. Of links to
endpoints at most those stay that leaves and switches that are there have in common in the best assignment of the two.
All others are plugged anew.
"""

# OR-Tools types some arguments with bare generics.
# pyright: reportUnknownMemberType=false

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from ortools.sat.python import cp_model

from designer.catalog.components import Switch
from designer.catalog.media import LinkMedium
from designer.costing.pricing import MediaFinder, Pricing, shape_cents, shape_pieces
from designer.costing.stock import Piece, Stock, piece_of
from designer.fabric.build import leaf_places, nic_port
from designer.fabric.fabric import MANAGEMENT, MediumUse
from designer.fabric.shape import ClosShape, Media
from designer.formulation.clos import MOST_CENTS, Answer, ClosProgram, Hardware, LeafOption, Rules, Var
from designer.formulation.clos_parts import Attachment, Group, Need, Slice
from designer.formulation.clos_search import ClosSearch
from designer.formulation.step_budget import required
from designer.instance.existing import ExistingNetwork, LinkKind
from designer.instance.instance import Instance
from designer.instance.schema import CablingSection
from designer.rewiring.assignment import Weights, most_assigned
from designer.workload.cuts import Ints
from designer.workload.traffic import Traffic

FEWER_S = 5.0  # how long a network of the same cost with fewer links is sought
MOST_LINKS = 1 << 26
PLUGGED_WEIGHT = 64  # beside one link more
Terms = list[tuple[Var, int]]


def _sum(terms: Terms) -> cp_model.LinearExprT:
    return cp_model.LinearExpr.weighted_sum([var for var, _ in terms], [times for _, times in terms])


def kind_of(medium: LinkMedium, length_m: float, gbps: int, *, to_endpoint: bool) -> LinkKind:
    """The kind of the links of a class."""
    use = MediumUse(medium.per_lower_cage, medium.per_upper_cage, medium.per_link, length_m)
    return LinkKind(to_endpoint, use, gbps)


def links_between(shape: ClosShape) -> Counter[LinkKind]:
    """How many links between switches of each kind a shape with media has."""
    media, tally = shape.media, shape.tally()
    found: Counter[LinkKind] = Counter()
    if shape.spines is not None and media is not None and media.leaf_spine is not None:
        kind = kind_of(media.leaf_spine, media.leaf_spine_m, shape.spines.tier.down_mode.gbps, to_endpoint=False)
        found[kind] += tally["leaf_spine"].links
    if shape.cores is not None and media is not None and media.spine_core is not None:
        kind = kind_of(media.spine_core, media.spine_core_m, shape.cores.tier.down_mode.gbps, to_endpoint=False)
        found[kind] += tally["spine_core"].links
    return found


class HomesThere:
    """Which switch that is there every port of a NIC goes to, for links of one kind to switches of one model."""

    def __init__(self, existing: ExistingNetwork, kind: LinkKind, model: str) -> None:
        self.fabric = fabric = existing.fabric
        links = fabric.links
        alike = np.array([use == kind.use for use in fabric.media])[links.medium] & (links.gbps == kind.gbps)
        alike &= np.array([key == model for key in fabric.models] + [False])[fabric.nodes.model[links.b]]
        self.hosts = np.flatnonzero(alike & (links.a < fabric.gpus))
        self.management = int((alike & (fabric.nodes.kind[links.a] == MANAGEMENT)).sum())

    def of_plane(self, shape: ClosShape, plane: int) -> Ints:
        """The switch of the port of `plane` of every GPU of a shape, -1 where none is."""
        links = self.fabric.links
        _, cage, lane = nic_port(shape.hosts.nic, shape.hosts.nic_mode, plane, links.a[self.hosts])
        chosen = self.hosts[(links.a_cage[self.hosts] == cage) & (links.a_lane[self.hosts] == lane)]
        home = np.full(shape.hosts.gpus, -1, dtype=np.int64)
        home[links.a[chosen]] = links.b[chosen]
        return home

    def most_kept(self, shape: ClosShape) -> int:
        """No network with the leaves of a shape keeps more links to endpoints: each leaf is one switch at most."""
        parts: list[Ints] = []
        first, switches = 0, self.fabric.n_nodes
        for plane in range(shape.hosts.planes):
            home = self.of_plane(shape, plane)
            for rail_set in range(shape.rail_sets):
                gpu, leaf, _ = leaf_places(shape, rail_set)
                there = home[gpu] >= 0
                pairs, common = np.unique((first + leaf[there]) * switches + home[gpu][there], return_counts=True)
                parts.append(np.stack([pairs // switches, pairs % switches, common]))
                first += int(leaf.max(initial=0)) + 1
        management = min(self.management, shape.hosts.management_ports * shape.fabrics)
        return management + most_assigned(Weights(*np.concatenate(parts, axis=1)), first, switches)


@dataclass(frozen=True)
class Base:
    """What an option takes at leaves and hosts, and how many links to endpoints are plugged at least."""

    pieces: Counter[Piece]
    plugged: int


class StockProgram(ClosProgram):
    """The Clos program with what is owned; `bases` are in the order of the options."""

    def __init__(
        self,
        options: list[LeafOption],
        hardware: Hardware,
        rules: Rules,
        existing: ExistingNetwork,
        bases: Sequence[Base],
        cabling: CablingSection,
        most_bought_cents: int | None = None,
    ) -> None:
        self.existing, self.bases, self.cabling = existing, bases, cabling
        self.most_bought_cents = most_bought_cents
        super().__init__(options, hardware, rules)

    def _charged(self, full: Var) -> Var:
        """What is bought, and the links that are plugged at least: full price - sum of p_i r_i + links at their price.

        r_i <= n_i and 0 <= r_i <= o_i for every owned piece i; x_k >= n_k - o_k for every kind of links k.
        """
        stock = self.existing.stock
        saved: Terms = []
        for piece, need in self._needed().items():
            owned = stock.owned.get(piece, 0)
            if not stock.new_switches and piece[0] in stock.catalog.switches:
                self.model.add(_sum(need) <= owned)
            if owned and stock.prices_cents[piece]:
                reused = self._var(owned, f"reused_{piece[0]}_{piece[1]:g}")
                self.model.add(_sum([*need, (reused, -1)]) >= 0)
                saved.append((reused, -stock.prices_cents[piece]))
        self._add_links()
        if self.most_bought_cents is not None:
            self.model.add(_sum([(full, 1), *saved]) <= self.most_bought_cents)
        paid = self._var(MOST_CENTS, "paid")
        plugging = self.plugged, self.existing.cents_per_link_moved
        self.model.add(paid == _sum([(full, 1), plugging, *saved]))
        return paid

    def _options(self, values: list[int]) -> Terms:
        return list(zip(self.take, values, strict=True))

    def _needed(self) -> dict[Piece, Terms]:
        """How many the network needs of each piece."""
        hardware, catalog, times = self.hardware, self.existing.stock.catalog, self.rules.fabrics
        found: dict[Piece, Terms] = {}
        for piece in sorted({piece for base in self.bases for piece in base.pieces}):
            found[piece] = self._options([base.pieces[piece] for base in self.bases])
        counts = [(hardware.spine.tier.switch.key, 0.0, self.spine_count)]
        if hardware.core is not None:
            counts.append((hardware.core.tier.switch.key, 0.0, self.cores))
        for medium, length_m, tally in self._classes():
            keyed = zip(_keys(medium), tally, strict=True)
            counts += [(key, length_m, count) for key, count in keyed if key is not None]
        for key, length_m, count in counts:
            found.setdefault(piece_of(catalog, key, length_m), []).append((count, times))
        return found

    def _classes(self) -> list[tuple[LinkMedium, float, tuple[Var, Var, Var]]]:
        hardware, cabling = self.hardware, self.cabling
        found = [(hardware.spine.medium, cabling.leaf_spine_m, self.leaf_spine_tally)]
        if hardware.core is not None:
            found.append((hardware.core.medium, cabling.spine_core_m, self.spine_core_tally))
        return found

    def _add_links(self) -> None:
        """Links between switches, and those links that are plugged at least."""
        there = self.existing.kinds
        gbps = [self.hardware.spine.gbps, *([self.hardware.core.gbps] if self.hardware.core else [])]
        between: dict[LinkKind, Terms] = {}
        for (medium, length_m, tally), rate in zip(self._classes(), gbps, strict=True):
            kind = kind_of(medium, length_m, rate, to_endpoint=False)
            between.setdefault(kind, []).append((tally[2], self.rules.fabrics))
        beyond: Terms = self._options([base.plugged for base in self.bases])
        for number, (kind, count) in enumerate(between.items()):
            more = self._var(MOST_LINKS, f"plugged_{number}")
            self.model.add(_sum([(more, 1), *((var, -times) for var, times in count)]) >= -there[kind])
            beyond.append((more, 1))
        self.plugged = self._var(MOST_LINKS, "plugged")
        self.model.add(self.plugged == _sum(beyond))
        self.links_between = self._var(MOST_LINKS, "links_between")
        self.model.add(self.links_between == _sum([term for count in between.values() for term in count]))

    def solve(
        self,
        below_cents: int | None,
        time_limit_s: float,
        threads: int,
        seed: int,
        should_stop: Callable[[], bool] | None = None,
    ) -> Answer:
        """As without a stock; of the solutions of this cost one that plugs few links and has few."""
        answer = super().solve(below_cents, time_limit_s, threads, seed, should_stop)
        if answer.cost_cents is None:
            return answer
        self.model.add(self.total == answer.cost_cents)
        self.model.minimize(_sum([(self.plugged, PLUGGED_WEIGHT), (self.links_between, 1)]))
        fewer = super().solve(None, min(time_limit_s, FEWER_S), threads, seed, should_stop)
        if fewer.option is None:
            return answer
        return replace(fewer, status=answer.status, cost_cents=answer.cost_cents, bound_cents=answer.bound_cents)


class ExistingSearch(ClosSearch):
    """The Clos search for an instance with an existing network; costs are purchases, and links that must be plugged.

    It speaks of networks that cost less than `below_cents`, and for which at most `most_bought_cents` is bought.
    """

    def __init__(
        self,
        instance: Instance,
        traffic: Traffic,
        pricing: Pricing,
        media: MediaFinder,
        existing: ExistingNetwork,
        below_cents: float = math.inf,
        most_bought_cents: int | None = None,
    ) -> None:
        super().__init__(instance, traffic, pricing, media, required(instance, traffic))
        self.existing, self.most_bought_cents = existing, most_bought_cents
        self.stock: Stock = existing.stock
        if math.isfinite(below_cents):
            self.best_cents = int(below_cents)
        self._bases: dict[object, Base] = {}
        self._homes: dict[object, HomesThere] = {}

    def paid_cents(self, shape: ClosShape) -> int:
        """What is bought for a shape with media, and the links that it plugs at least."""
        cents = self.existing.cents_per_link_moved
        return self._bought_cents(shape) + (cents * self.least_plugged(shape) if cents else 0)

    def _bought_cents(self, shape: ClosShape) -> int:
        return shape_cents(shape, self.pricing) - self.stock.saved_cents(shape_pieces(shape, self.stock.catalog))

    def least_plugged(self, shape: ClosShape) -> int:
        """No choice of which switch becomes which plugs fewer links of a shape with media."""
        there = self.existing.kinds
        between = sum(max(0, count - there[kind]) for kind, count in links_between(shape).items())
        return between + shape.tally()["host"].links - self._most_kept(shape)

    def _most_kept(self, shape: ClosShape) -> int:
        if shape.media is None:
            return 0
        kind = kind_of(shape.media.host, shape.media.host_m, shape.hosts.gbps, to_endpoint=True)
        key = kind, shape.leaf.switch.key
        if key not in self._homes:
            self._homes[key] = HomesThere(self.existing, *key)
        return self._homes[key].most_kept(shape)

    def permits(self, shape: ClosShape) -> bool:
        """Whether no switch is needed that may not be bought, and no more is bought than may be."""
        most = self.most_bought_cents
        enough = most is None or self._bought_cents(shape) <= most
        return enough and self.stock.permits(shape_pieces(shape, self.stock.catalog))

    def _switches_cents(self, switch: Switch, count: int) -> int:
        return super()._switches_cents(switch, count) - self.stock.saved_cents({(switch.key, 0.0): count})

    def _least_base_cents(self, slices: list[Slice]) -> float:
        del slices
        return 0.0  # leaves and host links may all be owned

    def _closed_bounds(
        self, part: Slice, hardware: Hardware, attachment: Attachment, uplinks: int, pods: Ints, spine_core: Ints
    ) -> Ints:
        """As without a stock, less what is owned of the least needs: with larger needs no less is bought."""
        full = np.full(len(pods), attachment.base_cents, dtype=np.int64)
        base = self._base(part, hardware, attachment.down)
        needed: dict[Piece, Ints] = {
            piece: np.full(len(pods), count, dtype=np.int64) for piece, count in base.pieces.items()
        }
        for need in self._least_needs(hardware, attachment, uplinks, pods, spine_core):
            count = part.fabrics * need.count
            full += need.cents * count
            piece = self._piece(need)
            needed[piece] = needed.get(piece, np.zeros(len(pods), dtype=np.int64)) + count
        for piece, owned in self.stock.owned.items():
            if piece in needed:
                full -= self.stock.prices_cents[piece] * np.minimum(needed[piece], owned)
        if self.existing.cents_per_link_moved:
            leaf_spine = np.full(len(pods), part.fabrics * attachment.leaves * uplinks, dtype=np.int64)
            between = self._least_between(hardware, leaf_spine, part.fabrics * spine_core)
            full += self.existing.cents_per_link_moved * (base.plugged + between)
        return full

    def _least_between(self, hardware: Hardware, leaf_spine: Ints, spine_core: Ints) -> Ints:
        """Links between switches that are plugged at least, given the fewest of each class."""
        cabling = self.instance.cabling
        kind = kind_of(hardware.spine.medium, cabling.leaf_spine_m, hardware.spine.gbps, to_endpoint=False)
        counts = {kind: leaf_spine}
        if hardware.core is not None:
            kind = kind_of(hardware.core.medium, cabling.spine_core_m, hardware.core.gbps, to_endpoint=False)
            counts[kind] = counts.get(kind, np.zeros_like(spine_core)) + spine_core
        plugged = np.zeros_like(leaf_spine)
        for kind, count in counts.items():
            plugged += np.maximum(0, count - self.existing.kinds[kind])
        return plugged

    def _piece(self, need: Need) -> Piece:
        return piece_of(self.stock.catalog, need.key, need.length_m)

    def _pod_bounds(
        self,
        part: Slice,
        hardware: Hardware,
        attachment: Attachment,
        uplinks: int,
        sizes: Ints,
        links: Ints,
        loose_cents: Ints,
    ) -> Ints:
        """The bound without a stock less all of it that the hardware can use, where that is more than the other."""
        full = super()._pod_bounds(part, hardware, attachment, uplinks, sizes, links, loose_cents)
        used = {hardware.leaf.tier.switch.key, hardware.spine.tier.switch.key, *_keys(hardware.leaf.medium)}
        used |= set(_keys(hardware.spine.medium))
        if hardware.core is not None:
            used |= {hardware.core.tier.switch.key, *_keys(hardware.core.medium)}
        worth = self.stock.saved_cents({piece: count for piece, count in self.stock.owned.items() if piece[0] in used})
        fits = full < np.iinfo(np.int64).max
        return np.where(fits, np.maximum(loose_cents, full - worth), full)

    def _base(self, part: Slice, hardware: Hardware, down: int) -> Base:
        key = part.hosts.nic_mode, part.layout, hardware.leaf.tier, hardware.leaf.medium, down
        if key not in self._bases:
            media = Media(hardware.leaf.medium, self.instance.cabling.host_m)
            shape = ClosShape(part.hosts, part.layout, hardware.leaf.tier, down, media=media)
            plugged = shape.tally()["host"].links - self._most_kept(shape)
            self._bases[key] = Base(shape_pieces(shape, self.stock.catalog), plugged)
        return self._bases[key]

    def _program(self, group: Group, rules: Rules) -> ClosProgram:
        bases = [self._base(group.part, group.hardware, option.down) for option in group.options]
        return StockProgram(
            group.options,
            group.hardware,
            rules,
            self.existing,
            bases,
            self.instance.cabling,
            self.most_bought_cents,
        )


def _keys(medium: LinkMedium) -> tuple[str | None, str | None, str | None]:
    return medium.per_lower_cage, medium.per_upper_cage, medium.per_link
