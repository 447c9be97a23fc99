"""What any network of the catalog's switches costs at least, whatever its shape.

Switches may be joined in any way, leaves directly, models mixed, the ports of a NIC on different switches. Three
arguments hold for all of them, given that GPUs pass on nothing that is not theirs:

1. Cut. A switch with n endpoint ports sends at least B(n) to other switches (`crossing.py`), so it needs links for it,
   and those take ports and cages that endpoints cannot have.
2. Distance. Traffic that is spread over many partners takes few hops only to those near by, and a switch with m links
   has few of them. The links of all switches carry every rate times its hops.
3. Cover. The switches hold all endpoints. A link is shared by two switches; each pays its own end and half of the rest.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from designer.catalog.components import Nic, NicMode, Switch
from designer.catalog.media import LinkMedium
from designer.costing.pricing import MediaFinder, Pricing
from designer.fabric.grid import ROW_HOST_M
from designer.formulation.crossing import SpreadDemand, least_need, spread_demand
from designer.formulation.demand import EPSILON
from designer.formulation.hardware import joinable, usable_switches
from designer.instance.instance import Instance
from designer.workload.cuts import Floats, Ints
from designer.workload.traffic import Traffic

MOST_HOPS = 5
PRICE_STEPS = 30
MOST_EXACT = 4096  # endpoints up to which the cover is solved one by one
SLACK = 1e-11


@dataclass(frozen=True)
class AnyNetworkBound:
    """A lower bound in cents over all networks of the catalog's switches; None where none of them can carry the floors.

    `per_switch_most` is the largest number of NIC ports that one switch can hold, `words` what the bound rests on.
    """

    cents: int | None
    words: str
    per_switch_most: int


@dataclass(frozen=True)
class _LinkKind:
    """Links of one port mode: rate, ports of a cage, and what a switch pays for its half of one."""

    gbps: int
    per_cage: int
    cents: float


@dataclass(frozen=True)
class _Model:
    """A switch model with its price, what a NIC's link costs on it, and the links that it can have to others."""

    cages: int
    max_ports: int
    cents: int
    hosts_per_cage: int
    host_cents: float
    links: tuple[_LinkKind, ...]

    @property
    def most_hosts(self) -> int:
        """NIC ports that fit."""
        return min(self.cages * self.hosts_per_cage, self.max_ports)


def any_network_bound(instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder) -> AnyNetworkBound:
    """The largest proven lower bound on the cost of a network that carries the floors of all phases, nothing lost.

    It speaks of the switches, protocols and NIC modes that the search may use, all NICs in one mode and every port of
    theirs connected, and of the cable lengths of the instance, the shorter one of its two for links between switches.
    Failures to survive, tiers and fixed leaves only make networks dearer and are left out. Switches that are there
    already could be bought as well: what they would cost is taken off, and so is all that is owned (`pricing.stock`).
    For those switches, and for clusters with several kinds
    of servers, ports and cables to the hosts are counted by themselves.
    """
    cluster, search = instance.cluster, instance.search
    if cluster.irregular:
        return _mixed_bound(instance, pricing, media)
    switches = usable_switches(instance.catalog, cluster.nic, search, pricing)
    switches += [
        item for item in {owned.switch.key: owned.switch for owned in cluster.existing}.values() if item not in switches
    ]
    found: list[AnyNetworkBound] = []
    for mode in cluster.nic.modes:
        if search.planes is None or mode.ports in search.planes:
            models = [_model(instance, switch, switches, mode, pricing, media) for switch in switches]
            found.append(_bound_of_mode(traffic, models, mode))
    none = AnyNetworkBound(None, "no switch of the catalog can hold an endpoint and carry its traffic", 0)
    best = min((item for item in found if item.cents is not None), key=lambda item: item.cents or 0, default=none)
    if best.cents is not None and pricing.stock is not None:
        best = replace(best, cents=max(0, best.cents - pricing.stock.value_cents))
    if best.cents is None or not cluster.existing:
        return best
    given = sum(pricing.switch_cents(owned.switch) for owned in cluster.existing)
    ports = _mixed_bound(instance, pricing, media)
    return max(replace(best, cents=max(0, best.cents - given)), ports, key=lambda item: item.cents or 0)


def _mixed_bound(instance: Instance, pricing: Pricing, media: MediaFinder) -> AnyNetworkBound:
    """Every NIC's cheapest cable, and the cheapest switches for the ports that those which are there cannot hold.

    Where none is there, also every NIC's cable and its part of a switch: the cage that it shares with others like it.
    """
    cluster, total, shares = instance.cluster, 0.0, 0.0
    models: dict[str, Switch] = {}
    for kind in cluster.kinds():
        usable = usable_switches(instance.catalog, kind.nic, instance.search, pricing)
        models |= {switch.key: switch for switch in usable}
        places = [*usable, *(owned.switch for owned in cluster.existing)]
        total += kind.count * kind.gpus * min(_host_cents(instance, kind.nic, item, pricing, media) for item in places)
        if not cluster.existing:
            parts = [(item, pricing.switch_cents(item) / item.cages) for item in usable]
            own = [_host_cents(instance, kind.nic, item, pricing, media, of_cage) for item, of_cage in parts]
            shares += kind.count * kind.gpus * min(own, default=0.0)
    if total == math.inf:
        return AnyNetworkBound(None, "no switch of the catalog can hold some of the NICs", 0)
    held = sum(
        owned.free_ports
        * max(mode.ports_per_cage for mode in owned.switch.modes)
        // owned.switch.native_mode.ports_per_cage
        for owned in cluster.existing
    )
    most = max(
        (min(item.max_ports, item.cages * max(m.ports_per_cage for m in item.modes)) for item in models.values()),
        default=1,
    )
    new = -(-max(0, cluster.gpus - held) // most)
    total += new * min((pricing.switch_cents(item) for item in models.values()), default=0)
    return AnyNetworkBound(math.floor(max(total, shares)), f"a switch holds at most {most} NIC ports", most)


def _host_cents(
    instance: Instance, nic: Nic, switch: Switch, pricing: Pricing, media: MediaFinder, of_cage: float = 0.0
) -> float:
    """The least that a NIC of one port costs on a switch, cages shared by full ones; infinite where nothing fits.

    A cage costs `of_cage` beside what is plugged into it.
    """
    best = math.inf
    for mode in nic.modes:
        for port in (
            switch.modes_at(mode.gbps) if mode.ports == 1 and set(nic.protocols) & set(switch.protocols) else ()
        ):
            ends = (nic.cage, nic.ports_per_cage(mode)), (switch.cage, port.ports_per_cage)
            for medium in media.between(*ends, mode.gbps, instance.cabling.host_m):
                lower, upper, link = pricing.medium_cents(medium)
                best = min(best, lower + (upper + of_cage) / port.ports_per_cage + link)
    return best


def _model(
    instance: Instance, switch: Switch, switches: list[Switch], mode: NicMode, pricing: Pricing, media: MediaFinder
) -> _Model:
    nic, cabling = instance.cluster.nic, instance.cabling
    # The second port of a NIC allows switches beside the servers, as ZCube has them.
    host_m = cabling.host_m if mode.ports == 1 else min(cabling.host_m, ROW_HOST_M)
    nic_share = min(nic.cages_per_nic, mode.ports) / (mode.ports * nic.nics_per_cage)
    hosts = switch.modes_at(mode.gbps)
    host_cents = math.inf
    for port in hosts:
        ends = (nic.cage, nic.ports_per_cage(mode)), (switch.cage, port.ports_per_cage)
        for medium in media.between(*ends, mode.gbps, host_m):
            lower, upper, link = pricing.medium_cents(medium)
            host_cents = min(host_cents, lower * nic_share + upper / port.ports_per_cage + link)
    links: list[_LinkKind] = []
    for port in switch.modes:
        shares = _shares(
            switch,
            port.ports_per_cage,
            port.gbps,
            switches,
            min(cabling.leaf_spine_m, cabling.spine_core_m),
            pricing,
            media,
        )
        if shares:
            links.append(_LinkKind(port.gbps, port.ports_per_cage, min(shares)))
    per_cage = max((port.ports_per_cage for port in hosts), default=0) if host_cents < math.inf else 0
    return _Model(switch.cages, switch.max_ports, pricing.switch_cents(switch), per_cage, host_cents, tuple(links))


def _shares(
    switch: Switch,
    per_cage: int,
    gbps: int,
    switches: list[Switch],
    length_m: float,
    pricing: Pricing,
    media: MediaFinder,
) -> list[float]:
    """What `switch` pays of a link, over all partners and media.

    Optics: its own module's part and half the fibre. Cables: half of the whole, as one end may be priced for both.
    """
    found: list[float] = []
    end = (switch.cage, per_cage)
    for other in switches:
        if not joinable(switch, other):
            continue
        for port in other.modes_at(gbps):
            far = (other.cage, port.ports_per_cage)
            for lower_end, upper_end in ((end, far), (far, end)):
                found += [
                    _share(medium, pricing, lower_end[1], upper_end[1], own_is_lower=lower_end is end)
                    for medium in media.between(lower_end, upper_end, gbps, length_m)
                ]
    return found


def _share(medium: LinkMedium, pricing: Pricing, lower_ports: int, upper_ports: int, *, own_is_lower: bool) -> float:
    lower, upper, link = pricing.medium_cents(medium)
    if medium.kind == "optics":
        return (lower / lower_ports if own_is_lower else upper / upper_ports) + link / 2
    return (lower / lower_ports + upper / upper_ports + link) / 2


class _Prices:
    """Least costs of a switch by its endpoint ports, with the hops of all traffic priced in.

    With E the spread traffic, of which f_d goes over d hops, the links carry the sum of d f_d, which for every h is at
    least h (E - f_0) - sum over 1 <= d < h of (h-d) f_d. f_0 is at most what n endpoints send to each other. A switch
    with m links begins at most m (R-1)^(d-1) paths of d hops, R the most ports of any switch. Two switches s, t
    exchange at most pair n_s n_t each way, at most half of pair (n_s^2 + n_t^2); or over a path of links of rate c,
    permutation by permutation, on average share (n_s + n_t) c each way. Either sum has a part for each end. So over all
    switches, each owning one direction of its links,

        sum of [c m + m K (pair n^2 + 2 share n c) + h inside(n) - h n E / endpoints] >= 0,
        K = sum over d < h of (h-d) (R-1)^(d-1).

    A multiple of this, taken off the cost, leaves a lower bound whatever the multiple is: the switches are then priced
    one by one (Lagrange). The multiple must leave switches without endpoints a cost of 0 or more, as there may be any
    number of them.
    """

    def __init__(
        self, models: list[_Model], need_gbps: Floats, spread: SpreadDemand, line_gbps: int, ends: int
    ) -> None:
        self.models = models
        self.need = need_gbps
        self.ports = np.arange(len(need_gbps))
        self.inside = spread.inside * line_gbps
        self.total = self.ports * (spread.total * line_gbps / ends)
        self.pair = spread.pair * line_gbps * self.ports.astype(np.float64) ** 2
        self.share = 2 * spread.share * self.ports
        self.radix = max(min(m.max_ports, m.cages * max((k.per_cage for k in m.links), default=0)) for m in models)

    def highest(self) -> float:
        """The largest price of a Gb/s at which no switch without endpoints costs less than nothing."""
        prices: list[float] = []
        for model in self.models:
            if model.links:
                by_cage = min((model.cents / model.cages / k.per_cage + k.cents) / k.gbps for k in model.links)
                by_port = min((model.cents / model.max_ports + k.cents) / k.gbps for k in model.links)
                prices.append(max(by_cage, by_port))
        return min(prices, default=0.0)

    def switch_cents(self, price: float = 0.0, hops: int = 1) -> Floats:
        """The least cost of a switch with n endpoint ports, infinite where none can have them."""
        paths = sum((hops - d) * float(self.radix - 1) ** (d - 1) for d in range(1, hops))
        best = np.full(len(self.ports), np.inf)
        for model in self.models:
            if model.hosts_per_cage:
                np.minimum(best, self._of_model(model, price, paths), out=best)
        return best + price * hops * (self.total - self.inside)

    def _of_model(self, model: _Model, price: float, paths: float) -> Floats:
        ports, need = self.ports, self.need
        cents = model.cents + model.host_cents * ports
        if not model.links:
            return np.where((need <= EPSILON) & (ports <= model.most_hosts), cents, np.inf)
        unit = math.gcd(*(kind.gbps for kind in model.links))
        need = np.ceil(need / unit - EPSILON) * unit
        free_cages: Floats = model.cages - ports / model.hosts_per_cage
        free_ports: Floats = (model.max_ports - ports).astype(np.float64)
        fits = (ports <= model.most_hosts) & (need <= _most_gbps(model.links, free_cages, free_ports) + EPSILON)
        each: Floats = np.array(
            [kind.cents - price * (kind.gbps + paths * (self.pair + self.share * kind.gbps)) for kind in model.links]
        )
        rate = np.array([[kind.gbps] for kind in model.links])
        per_cage = np.array([[kind.per_cage] for kind in model.links])
        least: Floats = each.min(axis=0)
        by_need: Floats = need * np.maximum(0.0, (each / rate).min(axis=0))
        by_room: Floats = np.maximum(free_cages * np.minimum(0.0, (each * per_cage).min(axis=0)), free_ports * least)
        return np.where(fits, cents + np.where(least >= 0, by_need, by_room), np.inf)


def _most_gbps(links: tuple[_LinkKind, ...], cages: Floats, ports: Floats) -> Floats:
    """The largest rate of links in so many cages and ports, to whole multiples of what all rates are multiples of.

    A linear program of two rows, so at most two modes: one alone, or two that use up cages and ports.
    """
    best = np.zeros(len(cages))
    for one in links:
        alone = np.floor(np.minimum(cages * one.per_cage, ports) + EPSILON) if len(links) == 1 else None
        count = np.minimum(cages * one.per_cage, ports) if alone is None else alone
        np.maximum(best, count * one.gbps, out=best)
        for other in links:
            if one.per_cage > other.per_cage:
                # one + other = ports, one / one.per_cage + other / other.per_cage = cages
                of_one = (ports / other.per_cage - cages) / (1 / other.per_cage - 1 / one.per_cage)
                inside = (of_one >= 0) & (of_one <= ports)
                np.maximum(best, np.where(inside, of_one * one.gbps + (ports - of_one) * other.gbps, 0), out=best)
    unit = math.gcd(*(kind.gbps for kind in links))
    return np.floor(np.maximum(best, 0.0) / unit + EPSILON) * unit


def _bound_of_mode(traffic: Traffic, models: list[_Model], mode: NicMode) -> AnyNetworkBound:
    ends = traffic.gpus * mode.ports
    line_gbps = mode.ports * mode.gbps
    most = min(ends, max((model.most_hosts for model in models), default=0))
    if most == 0:
        return AnyNetworkBound(None, "", 0)
    need_gbps = least_need(traffic, mode.ports, most) * line_gbps
    spreads = [
        spread_demand(traffic, most, permutations=kind) for kind in ((False, True) if mode.ports == 1 else (False,))
    ]
    tables = [_Prices(models, need_gbps, spread, line_gbps, ends) for spread in spreads]
    plain = tables[0].switch_cents()
    holding = np.flatnonzero(np.isfinite(plain[1:])) + 1
    if not len(holding):
        return AnyNetworkBound(None, "", 0)
    priced = [(_rate(plain), 0, plain)]
    for spread, table in zip(spreads, tables, strict=True):
        if spread.total:
            for hops in range(1, MOST_HOPS + 1):
                cents = table.switch_cents(_best_price(table, hops), hops)
                priced.append((_rate(cents), hops, cents))
    _, hops, cents = max(priced, key=lambda item: item[0])
    best = max(cover(plain, ends), cover(cents, ends))
    if best == math.inf:
        return AnyNetworkBound(None, "", 0)
    largest = int(holding[-1])
    reason = f"a switch holds at most {largest} NIC ports"
    if hops > 1:
        reason += f", and most traffic takes {hops} links between switches"
    return AnyNetworkBound(max(0, math.ceil(best * (1 - SLACK) - 1e-3)), reason, largest)


def _rate(cents: Floats) -> float:
    """The least cost of an endpoint."""
    return float((cents[1:] / np.arange(1, len(cents))).min())


def _best_price(prices: _Prices, hops: int) -> float:
    """The price of a Gb/s that makes the cost of an endpoint highest, to within a few percent of the range."""
    low, high = 0.0, prices.highest()
    golden = (math.sqrt(5) - 1) / 2

    def worth(price: float) -> float:
        return _rate(prices.switch_cents(price, hops))

    if worth(high) >= worth(high * (1 - 1e-6)):
        return high
    inner, outer = high * (1 - golden), high * golden
    at_inner, at_outer = worth(inner), worth(outer)
    for _ in range(PRICE_STEPS):
        if at_inner < at_outer:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + golden * (high - low)
            at_outer = worth(outer)
        else:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - golden * (high - low)
            at_inner = worth(inner)
    return (low + high) / 2


def cover(cents: Floats, total: int) -> float:
    """The least cost of items that hold exactly `total`, when one that holds n costs `cents[n]`; a lower bound of it.

    Up to `MOST_EXACT` by the recursion over the total. Above, let n* be the item of least cost per endpoint: of any n*
    other items some hold a multiple of n* together (pigeonhole) and can give way to items n*. So it is enough to know
    what the remainder of the total modulo n* costs on top of that rate: a shortest path over n* remainders. That leaves
    out that the others must not hold more than the total, which can only make the bound lower.
    """
    sizes = np.flatnonzero(np.isfinite(cents[1:])) + 1
    if not len(sizes):
        return math.inf
    if total <= MOST_EXACT:
        reversed_cents = cents[:0:-1]
        most = len(reversed_cents)
        least = np.full(most + total + 1, np.inf)
        least[most] = 0.0
        for held in range(1, total + 1):
            least[most + held] = (least[held : held + most] + reversed_cents).min()
        return float(least[-1])
    each = cents[sizes] / sizes
    chosen = int(each.argmin())
    rate, modulus = float(each[chosen]), int(sizes[chosen])
    extra = cents[sizes] - rate * sizes
    return rate * total + float(_remainders(sizes, np.maximum(extra, 0.0), modulus)[total % modulus])


def _remainders(sizes: Ints, extra: Floats, modulus: int) -> Floats:
    """The least sum of `extra` of items whose sizes add up to each remainder (Dijkstra)."""
    least = np.full(modulus, np.inf)
    least[0] = 0.0
    open_ = np.ones(modulus, dtype=np.bool_)
    for _ in range(modulus):
        nearest = int(np.where(open_, least, np.inf).argmin())
        if not open_[nearest] or least[nearest] == np.inf:
            break
        open_[nearest] = False
        np.minimum.at(least, (nearest + sizes) % modulus, least[nearest] + extra)
    return least
