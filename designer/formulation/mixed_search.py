"""Which kinds of servers share a network: kinds that some phase joins must, others may, and what each way costs.

Kinds on a network of their own have the cheapest Clos (`clos_search.py`), kinds that meet the cheapest network of
`mixed_clos.py`; the cheapest way to part the kinds is then chosen.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from designer.costing.mixed import PricedMixed
from designer.costing.pricing import MediaFinder, Pricing, cost_parts
from designer.fabric.build import build_clos
from designer.fabric.fabric import Column, Fabric
from designer.fabric.shape import ClosShape
from designer.fabric.union import Part, united
from designer.formulation.clos_search import ClosSearch, Limits, Report
from designer.formulation.mixed_clos import JoinedSearch, Stands
from designer.instance.instance import Cluster, Instance
from designer.workload.traffic import Traffic

MOST_PARTED = 4  # sets of kinds up to which every way to part them is tried; beyond, all apart or all together
Kinds = tuple[int, ...]


@dataclass(frozen=True)
class MixedPart:
    """The network of some kinds: a Clos for a single one, else a mixed shape; its GPUs in the whole cluster."""

    shape: ClosShape | PricedMixed
    gpus: Column
    parts: dict[str, int]

    def draw(self) -> Fabric:
        """The network link by link, its GPUs numbered from 0."""
        return build_clos(self.shape) if isinstance(self.shape, ClosShape) else self.shape.draw()


@dataclass(frozen=True)
class MixedNetwork:
    """The networks of all kinds of a cluster."""

    cluster: Cluster
    networks: tuple[MixedPart, ...]

    @property
    def parts(self) -> dict[str, int]:
        """The objective by what it is for."""
        names = dict.fromkeys(name for network in self.networks for name in network.parts)
        return {name: sum(network.parts.get(name, 0) for network in self.networks) for name in names}

    @property
    def cents(self) -> int:
        """The objective."""
        return sum(self.parts.values())

    def draw(self) -> Fabric:
        """The network of the whole cluster link by link."""
        parts = [Part(network.draw(), network.gpus) for network in self.networks]
        return united(parts, self.cluster.gpus, self.cluster.rails)


@dataclass(frozen=True)
class MixedProposal:
    """The best network found and what is proven, as `clos_search.Proposal` tells of a Clos.

    The search also ends "open" where a cheaper network may or may not carry what is asked after failures.
    """

    network: MixedNetwork | None
    bound_cents: float
    termination: str


@dataclass(frozen=True)
class _Found:
    """What is known of the networks of some kinds: the best one, and what none costs less than."""

    part: MixedPart | None
    cents: float
    bound_cents: float


@dataclass
class MixedSearch:
    """The search for one instance whose servers differ; `stands` is as of `JoinedSearch`."""

    instance: Instance
    traffic: Traffic
    pricing: Pricing
    media: MediaFinder
    stands: Stands | None = None
    _known: dict[Kinds, _Found] = field(default_factory=dict[Kinds, _Found])

    def run(self, limits: Limits, report: Report | None = None) -> MixedProposal:
        """Search until proven, or until a limit."""
        began = time.monotonic()
        joined = joined_kinds(self.instance.cluster, self.traffic)
        for sets in _sets(len(joined)):
            kinds = tuple(sorted(kind for number in sets for kind in joined[number]))
            left_s = max(0.0, limits.time_limit_s - (time.monotonic() - began))
            self._known[sets] = self._network(kinds, replace(limits, time_limit_s=left_s))
        every = tuple(range(len(joined)))
        chosen = cheapest_parting(every, {key: found.cents for key, found in self._known.items()})
        bound = cheapest_parting(every, {key: found.bound_cents for key, found in self._known.items()})[0]
        if math.isinf(chosen[0]):
            ended = self._ended(limits, began) or "infeasible"
            return MixedProposal(None, math.inf if ended == "infeasible" else bound, ended)
        parts = tuple(found.part for found in (self._known[key] for key in chosen[1]) if found.part is not None)
        network = MixedNetwork(self.instance.cluster, parts)
        left = "gap" if limits.gap else "open"
        ended = "optimal" if bound >= network.cents else self._ended(limits, began) or left
        if report:
            report(network.cents, int(min(bound, network.cents)))
        return MixedProposal(network, min(bound, network.cents), ended)

    @staticmethod
    def _ended(limits: Limits, began: float) -> str | None:
        if limits.should_stop():
            return "interrupted"
        return "time_limit" if time.monotonic() - began >= limits.time_limit_s else None

    def _network(self, kinds: Kinds, limits: Limits) -> _Found:
        """The cheapest network that joins these kinds."""
        instance, traffic, gpus = alone(self.instance, self.traffic, kinds)
        if len(kinds) == 1:
            found = ClosSearch(instance, traffic, self.pricing, self.media).run(limits)
            if found.shape is None or found.cost_cents is None:
                bound = math.inf if found.termination == "infeasible" else float(found.bound_cents or 0)
                return _Found(None, math.inf, bound)
            part = MixedPart(found.shape, gpus, cost_parts(found.shape, self.pricing))
            return _Found(part, found.cost_cents, float(found.bound_cents or 0))
        deadline = time.monotonic() + limits.time_limit_s
        search = JoinedSearch(
            instance,
            traffic,
            self.pricing,
            self.media,
            lambda: limits.should_stop() or time.monotonic() >= deadline,
            self.stands,
        )
        search.run()
        if search.best is None:
            return _Found(None, math.inf, search.open_cents)
        part = MixedPart(search.best, gpus, search.best.parts)
        return _Found(part, search.best.cents, min(search.open_cents, float(search.best.cents)))


def joined_kinds(cluster: Cluster, traffic: Traffic) -> list[Kinds]:
    """Kinds of servers in sets that share a phase, directly or through others; its GPUs say so, not its groups."""
    ranges = cluster.kind_ranges()
    home = list(range(len(ranges)))
    for phase in traffic.network_phases:
        last = phase.first_gpu + phase.gpus
        met = [kind for kind, gpus in enumerate(ranges) if gpus.start < last and phase.first_gpu < gpus.stop]
        targets = {home[kind] for kind in met}
        home = [min(targets) if root in targets else root for root in home]
    return [tuple(kind for kind, root in enumerate(home) if root == first) for first in dict.fromkeys(home)]


def _sets(count: int) -> Iterator[Kinds]:
    """Sets of numbers below `count` that may share a network; single ones first."""
    sizes = range(1, count + 1) if count <= MOST_PARTED else (1, count)
    for size in dict.fromkeys(sizes):
        yield from combinations(range(count), size)


def cheapest_parting(every: Kinds, cents: dict[Kinds, float]) -> tuple[float, list[Kinds]]:
    """The least sum over the sets of a partition of `every`, and its sets."""
    best: dict[Kinds, tuple[float, list[Kinds]]] = {(): (0.0, [])}

    def of(left: Kinds) -> tuple[float, list[Kinds]]:
        if left not in best:
            options: list[tuple[float, list[Kinds]]] = []
            for sets, cost in cents.items():
                if left[0] in sets and set(sets) <= set(left):
                    more, others = of(tuple(number for number in left if number not in sets))
                    options.append((cost + more, [sets, *others]))
            nothing: tuple[float, list[Kinds]] = (math.inf, [])
            best[left] = min(options, key=lambda item: item[0], default=nothing)
        return best[left]

    return of(every)


def alone(instance: Instance, traffic: Traffic, kinds: Kinds) -> tuple[Instance, Traffic, Column]:
    """The instance and its traffic with these kinds of servers alone, and their GPUs' numbers in the whole cluster.

    HB domains and rails are those of the whole cluster, and NICs run as one port each.
    """
    cluster = instance.cluster
    servers = tuple(cluster.kinds()[kind] for kind in kinds)
    ranges = [cluster.kind_ranges()[kind] for kind in kinds]
    gpus = np.concatenate([np.arange(own.start, own.stop) for own in ranges])
    first = servers[0]
    smaller = Cluster(
        len(gpus), first.gpu, first.nic, cluster.hb_domain, cluster.rails, 0, servers if len(kinds) > 1 else ()
    )
    search = instance.search.model_copy(update={"planes": [1]})
    phases = tuple(
        replace(phase, first_gpu=int(np.searchsorted(gpus, phase.first_gpu)))
        for phase in traffic.network_phases
        if any(phase.first_gpu in own for own in ranges)
    )
    own = Traffic(len(gpus), traffic.hb_domain, traffic.rails, phases)
    return replace(instance, cluster=smaller, search=search, layout=None), own, gpus
