"""What the switches of an intact fabric send each other in a step of its traffic, where every GPU has one port a plane.

GPUs pass no traffic on except over their HB domain. What a GPU sends to one on a network of its own leaves on the rail
of the receiver where whole domains take part (NCCL's PXN); else it is spread over all rails that join both domains.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from designer.errors import DesignerError
from designer.fabric.fabric import LEAF, Fabric
from designer.formulation.solvers import Bools, Floats, Ints
from designer.workload.traffic import Component, Phase, Step, Traffic

MAX_PAIRS = 10_000_000
NO_WAY_FOR_ANY = "a step with any, and traffic between GPUs on networks of their own: no routes are made for both"
Ends = tuple[int, int]


class RoutingError(DesignerError):
    """A fabric or traffic that no routes are made for."""


@dataclass(frozen=True)
class Unit:
    """Switches joined by links, and no other. `a`, `b`, `gbps`: pairs of switches with their links added up."""

    switches: tuple[int, ...]
    a: Ints
    b: Ints
    gbps: Floats


@dataclass(frozen=True)
class Hose:
    """`any` inside a group: each of `members[v]` endpoints at switch v sends and receives at most `gbps`."""

    members: tuple[tuple[int, int], ...]
    gbps: float


@dataclass(frozen=True)
class UnitDemand:
    """What the switches of one unit send each other in a step: fixed rates in Gb/s by pair, and `any` groups.

    `most` is the part of the demand that the ports of the endpoints carry.
    """

    rates: dict[Ends, float]
    hoses: tuple[Hose, ...]
    most: float


@dataclass
class _Sum:
    """A demand in the making. `sent` and `received` are what each GPU has at its port of the unit."""

    rates: dict[Ends, float]
    hoses: dict[tuple[tuple[int, int], ...], float]
    sent: Floats
    received: Floats


@dataclass(frozen=True)
class _Group:
    """Groups of GPUs: all-to-all at `pair_gbps` from member to member, or `any` at `hose_gbps` a member."""

    gpu: Ints
    name: Ints
    pair_gbps: float
    hose_gbps: float


class Attachment:
    """Where the GPUs of a fabric are attached: `switch[g, p]` and `gbps[g, p]` for port p of GPU g, -1 for none.

    `unit_of[v]` is the unit of switch v; ports are in the order of their units, which are the planes of a GPU.
    `share[u]` is the part of its group traffic that a GPU sends on unit u, by the speed of its port there.

    Raises:
        RoutingError: a GPU has no port, or several in one unit, or planes are unlike.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.units, self.unit_of = _units(fabric)
        links = fabric.links
        hosts = np.flatnonzero(links.a < fabric.gpus)
        gpu, leaf = links.a[hosts], links.b[hosts]
        order = np.lexsort((self.unit_of[leaf], gpu))
        gpu, leaf, gbps = gpu[order], leaf[order], links.gbps[hosts][order]
        port = np.arange(len(gpu)) - np.searchsorted(gpu, gpu)
        ports = int(port.max(initial=0)) + 1
        self.switch = np.full((fabric.gpus, ports), -1, dtype=np.int64)
        self.gbps = np.zeros((fabric.gpus, ports))
        self.switch[gpu, port], self.gbps[gpu, port] = leaf, gbps
        self.unit: Ints = np.where(self.switch >= 0, self.unit_of[self.switch], -1)
        same = (self.unit[:, 1:] == self.unit[:, :-1]) & (self.unit[:, 1:] >= 0)
        if same.any():
            raise RoutingError(
                f"GPU {int(np.argwhere(same)[0, 0])} has several ports in one network; "
                "routes are made where it has one in each plane"
            )
        total = self.gbps.sum(axis=1)
        if (total == 0).any():
            raise RoutingError(f"GPU {int(np.argmin(total))} is attached nowhere")
        part = (self.gbps / total[:, None]).ravel()
        self.share: Floats = np.zeros(len(self.units))
        np.maximum.at(self.share, self.unit.ravel()[part > 0], part[part > 0])
        planes = [set(self.unit[:, port].tolist()) - {-1} for port in range(ports)]
        if sum(map(len, planes)) > len(set[int]().union(*planes)):
            raise RoutingError("GPUs have some planes in common and others not; routes are made where planes are alike")

    def line_rate_gbps(self, phase: Phase) -> float:
        """The rate that the demands of a phase are parts of: all ports of its slowest NIC."""
        return float(self.gbps[phase.first_gpu : phase.first_gpu + phase.gpus].sum(axis=1).min())


def _units(fabric: Fabric) -> tuple[tuple[Unit, ...], Ints]:
    links, switches = fabric.links, np.flatnonzero(fabric.nodes.kind >= LEAF)
    inner = fabric.nodes.kind[links.a] >= LEAF
    low = np.minimum(links.a[inner], links.b[inner])
    high = np.maximum(links.a[inner], links.b[inner])
    key, index = np.unique(low * fabric.n_nodes + high, return_inverse=True)
    a, b = key // fabric.n_nodes, key % fabric.n_nodes
    gbps = np.asarray(np.bincount(index.reshape(-1), links.gbps[inner], len(key)), dtype=np.float64)
    neighbours: dict[int, list[int]] = {switch: [] for switch in switches.tolist()}
    for one, other in zip(a.tolist(), b.tolist(), strict=True):
        neighbours[one].append(other)
        neighbours[other].append(one)
    unit_of = np.full(fabric.n_nodes, -1, dtype=np.int64)
    count = 0
    for start in switches.tolist():
        if unit_of[start] >= 0:
            continue
        unit_of[start], front = count, [start]
        while front:
            for other in neighbours[front.pop()]:
                if unit_of[other] < 0:
                    unit_of[other] = count
                    front.append(other)
        count += 1
    units: list[Unit] = []
    for number in range(count):
        own = unit_of[a] == number
        units.append(Unit(tuple(np.flatnonzero(unit_of == number).tolist()), a[own], b[own], gbps[own]))
    return tuple(units), unit_of


def step_demand(at: Attachment, traffic: Traffic, phase: Phase, step: Step) -> dict[int, UnitDemand]:
    """What a step asks of each unit that has to carry something, by the number of the unit.

    Raises:
        RoutingError: traffic that has no way, or `any` beside or between GPUs on networks of their own.
    """
    line = at.line_rate_gbps(phase)
    asked = _Asked(at, traffic.hb_domain, detours=all(part.pattern != "any" for part in step.components))
    for part in step.components:
        if part.pattern in ("any", "all-to-all"):
            asked.add_group(_group(part, phase, traffic.hb_domain, line))
        else:
            asked.add_pairs(*_pairs(part, phase, traffic.hb_domain, line))
    return {unit: asked.of_unit(unit) for unit in sorted(asked.sums)}


@dataclass
class _Asked:
    """Adds up what a step asks of each unit; `detours` over the HB domain are allowed or not."""

    at: Attachment
    domain: int
    detours: bool
    sums: dict[int, _Sum] = field(default_factory=dict[int, _Sum])

    def _sum(self, unit: int) -> _Sum:
        if unit not in self.sums:
            gpus = len(self.at.switch)
            self.sums[unit] = _Sum({}, {}, np.zeros(gpus), np.zeros(gpus))
        return self.sums[unit]

    def of_unit(self, unit: int) -> UnitDemand:
        total = self.sums[unit]
        port = np.where(self.at.unit == unit, self.at.gbps, 0.0).sum(axis=1)
        busiest = np.maximum(total.sent, total.received)
        busy = busiest > 0
        most = float((port[busy] / busiest[busy]).min(initial=np.inf))
        hoses = tuple(Hose(members, gbps) for members, gbps in total.hoses.items())
        return UnitDemand(total.rates, hoses, most)

    def add_group(self, group: _Group) -> None:
        """Groups, each on the units of its members; members on several units are pairs."""
        for own in self._on_rails(group):
            if len(np.unique(self.at.unit[own.gpu], axis=0)) > 1:
                if own.hose_gbps:
                    raise RoutingError(NO_WAY_FOR_ANY)
                self.add_pairs(*_all_pairs(own.gpu, own.pair_gbps))
                continue
            for port in np.flatnonzero(self.at.unit[own.gpu[0]] >= 0).tolist():
                self._add_on_unit(own, int(self.at.unit[own.gpu[0], port]), port)

    def _on_rails(self, group: _Group) -> Iterator[_Group]:
        """Each group by itself; one of whole domains on several units as one on the rail of each GPU of a domain."""
        split = [group.gpu[group.name == name] for name in np.unique(group.name).tolist()]
        crossing = any(len(np.unique(self.at.unit[own, 0])) > 1 for own in split)
        whole = all(
            bool((np.bincount(own // self.domain)[np.unique(own // self.domain)] == self.domain).all()) for own in split
        )
        for own in split:
            if crossing and whole and self.domain > 1:
                for rail in range(self.domain):
                    railed = own[own % self.domain == rail]
                    yield _Group(railed, railed, group.pair_gbps * self.domain, group.hose_gbps)
            else:
                yield _Group(own, own, group.pair_gbps, group.hose_gbps)

    def _add_on_unit(self, group: _Group, unit: int, port: int) -> None:
        if len(group.gpu) < 2:
            return
        total, share = self._sum(unit), float(self.at.share[unit])
        rate = (group.hose_gbps or group.pair_gbps * (len(group.gpu) - 1)) * share
        total.sent[group.gpu] += rate
        total.received[group.gpu] += rate
        switches, counts = np.unique(self.at.switch[group.gpu, port], return_counts=True)
        members = tuple(zip(switches.tolist(), counts.tolist(), strict=True))
        if len(members) < 2:
            return
        if group.hose_gbps:
            total.hoses[members] = total.hoses.get(members, 0.0) + group.hose_gbps * share
            return
        for one, many in members:
            for other, more in members:
                if one != other:
                    rate = group.pair_gbps * share * many * more
                    total.rates[one, other] = total.rates.get((one, other), 0.0) + rate

    def add_pairs(self, source: Ints, target: Ints, gbps: Floats) -> None:
        """What GPUs send each other, evenly over the planes they share; else over the rails that join their domains."""
        direct = self._shared(source, target)
        joined: Bools = np.asarray(direct.any(axis=1))
        if not self.detours and not joined.all():
            raise RoutingError(NO_WAY_FOR_ANY)
        self._add_shared(source[joined], target[joined], gbps[joined], direct[joined])
        domain = self.domain
        home, away, rest = source[~joined] // domain, target[~joined] // domain, gbps[~joined]
        home, away, rest = home[home != away], away[home != away], rest[home != away]
        over = [self._shared(home * domain + rail, away * domain + rail) for rail in range(domain)]
        ways = np.sum([shared.any(axis=1) for shared in over], axis=0)
        if len(home) and (ways == 0).any():
            lost = int(np.argmax(ways == 0))
            raise RoutingError(
                f"no network joins HB domains {int(home[lost])} and {int(away[lost])}, which exchange data"
            )
        for rail, shared in enumerate(over):
            chosen = shared.any(axis=1)
            one, other = home[chosen] * domain + rail, away[chosen] * domain + rail
            self._add_shared(one, other, rest[chosen] / ways[chosen], shared[chosen])

    def _shared(self, source: Ints, target: Ints) -> Bools:
        """For each pair and port whether both GPUs have it in the same unit."""
        own = self.at.unit[source]
        return (own == self.at.unit[target]) & (own >= 0)

    def _add_shared(self, source: Ints, target: Ints, gbps: Floats, shared: Bools) -> None:
        each = gbps / np.maximum(shared.sum(axis=1), 1)
        for port in range(shared.shape[1]):
            for unit in np.unique(self.at.unit[source[shared[:, port]], port]).tolist():
                chosen = shared[:, port] & (self.at.unit[source, port] == unit)
                self._add_single(self._sum(unit), source[chosen], target[chosen], each[chosen], port)

    def _add_single(self, total: _Sum, source: Ints, target: Ints, gbps: Floats, port: int) -> None:
        np.add.at(total.sent, source, gbps)
        np.add.at(total.received, target, gbps)
        one, other = self.at.switch[source, port], self.at.switch[target, port]
        apart, nodes = one != other, self.at.fabric.n_nodes
        key, index = np.unique(one[apart] * nodes + other[apart], return_inverse=True)
        for number, rate in zip(key.tolist(), np.bincount(index, gbps[apart], len(key)).tolist(), strict=True):
            ends = divmod(number, nodes)
            total.rates[ends] = total.rates.get(ends, 0.0) + rate


def _places(part: Component, phase: Phase, domain: int) -> tuple[Ints, Ints, Ints, int]:
    """GPUs of a phase, their digit in their group, the group, and the GPUs from one digit to the next."""
    unit = domain if phase.across == "rail" else 1
    gpu = np.arange(phase.first_gpu, phase.first_gpu + phase.gpus)
    member, inside = np.divmod(gpu - phase.first_gpu, unit)
    digit = member // part.stride % part.size
    return gpu, digit, (member - digit * part.stride) * unit + inside, part.stride * unit


def _group(part: Component, phase: Phase, domain: int, line_gbps: float) -> _Group:
    gpu, _, name, _ = _places(part, phase, domain)
    rate = part.rate * line_gbps
    return _Group(gpu, name, rate / (part.size - 1), rate if part.pattern == "any" else 0.0)


def _pairs(part: Component, phase: Phase, domain: int, line_gbps: float) -> tuple[Ints, Ints, Floats]:
    gpu, digit, _, step = _places(part, phase, domain)
    peer: NDArray[np.int64] = (digit + part.by) % part.size if part.pattern == "shift" else digit ^ part.by
    target = gpu + (peer - digit) * step
    moved = target != gpu
    return gpu[moved], target[moved], np.full(int(moved.sum()), part.rate * line_gbps)


def _all_pairs(gpu: Ints, gbps: float) -> tuple[Ints, Ints, Floats]:
    if len(gpu) ** 2 > MAX_PAIRS:
        raise RoutingError(
            f"an all-to-all of {len(gpu)} GPUs over several networks: too many pairs to route one by one"
        )
    source, target = np.repeat(gpu, len(gpu)), np.tile(gpu, len(gpu))
    apart = source != target
    return source[apart], target[apart], np.full(int(apart.sum()), gbps)
