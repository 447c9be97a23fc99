"""Every network of leaves for each kind of servers under shared spines, one by one, for clusters of few GPUs.

Taken from the package: the instance, its traffic endpoint by endpoint, the media that join two ports, and unit prices.
How GPUs and switches are joined, how many ports and sockets that takes and what it costs is counted here; plain linear
programs say what a network carries, and what is left of it after the loss of any link or switch above the leaves.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from designer.catalog.components import PortMode, Switch
from designer.catalog.media import LinkMedium, link_media
from designer.costing.pricing import Pricing
from designer.instance.instance import Instance
from designer.workload.traffic import Phase, Step, Traffic
from tests.reference.explicit import step_flows
from tests.reference.flow_lp import Graph, throughput, worst_permutation

NEAR = 1e-6


@dataclass(frozen=True)
class Leaf:
    """Leaves of one kind: its number, ports to hosts and up, spines, links to each, ways to run and cable the ports."""

    kind: int
    switch: Switch
    down: int
    host_mode: PortMode
    host: LinkMedium
    spines: int
    bundle: int
    up_mode: PortMode
    spine_mode: PortMode
    up: LinkMedium


@dataclass(frozen=True)
class Network:
    """Leaves of every kind under `spine`, or all hosts of a set of rails on one `spine` where there are no leaves."""

    instance: Instance
    spine: Switch
    leaves: tuple[Leaf, ...]
    rails: int
    hosts: tuple[tuple[PortMode, LinkMedium], ...] = ()
    in_order: bool = False  # GPUs on leaves as they come, whatever their rail

    def homes(self) -> dict[int, tuple[int, int, int]]:
        """The leaf of every GPU of the first fabric: kind, rail in the fabric, number."""
        cluster = self.instance.cluster
        found: dict[int, tuple[int, int, int]] = {}
        for kind, gpus in enumerate(cluster.kind_ranges()):
            for gpu in gpus:
                if self.in_order:
                    found[gpu] = kind, 0, (gpu - gpus.start) // self.leaves[kind].down
                    continue
                rail, place = gpu % cluster.rails, (gpu - gpus.start) // cluster.rails
                if rail >= self.rails:
                    continue
                down, per_rail = self.leaves[kind].down, len(gpus) // cluster.rails
                whole = down // per_rail
                found[gpu] = (kind, rail // whole, 0) if whole else (kind, rail, place // down)
        return found

    @property
    def fabrics(self) -> int:
        """Fabrics, all alike."""
        return -(-self.instance.cluster.rails // self.rails)

    def cents(self) -> int | None:
        """The cost, socket by socket; None where some ports do not fit."""
        pricing = Pricing(self.instance.objective, self.instance.energy)
        if not self.leaves:
            return self._one_tier_cents(pricing)
        held = Counter(self.homes().values())
        total = self.leaves[0].spines * pricing.switch_cents(self.spine)
        ports: Counter[tuple[int, int, str]] = Counter()
        prices: dict[tuple[int, int, str], int] = {}
        for (kind, _, _), hosts in held.items():
            leaf = self.leaves[kind]
            uplinks = leaf.spines * leaf.bundle
            cages = -(-hosts // leaf.host_mode.ports_per_cage), -(-uplinks // leaf.up_mode.ports_per_cage)
            full = -(-leaf.down // leaf.host_mode.ports_per_cage)
            if full + cages[1] > leaf.switch.cages or leaf.down + uplinks > leaf.switch.max_ports:
                return None
            host, up = pricing.medium_cents(leaf.host), pricing.medium_cents(leaf.up)
            total += pricing.switch_cents(leaf.switch) + hosts * (host[0] + host[2]) + cages[0] * host[1]
            total += cages[1] * up[0] + uplinks * up[2]
            pool = leaf.spine_mode.ports_per_cage, leaf.spine_mode.gbps, leaf.up.per_upper_cage or leaf.up.key
            ports[pool] += leaf.bundle
            prices[pool] = up[1]
        sockets = {pool: -(-count // pool[0]) for pool, count in ports.items()}
        if sum(sockets.values()) > self.spine.cages or sum(ports.values()) > self.spine.max_ports:
            return None
        total += self.leaves[0].spines * sum(prices[pool] * count for pool, count in sockets.items())
        return self.fabrics * total

    def _one_tier_cents(self, pricing: Pricing) -> int | None:
        cluster, total = self.instance.cluster, 0
        for first in range(0, cluster.rails, self.rails):
            rails = min(self.rails, cluster.rails - first)
            ports: Counter[tuple[int, int, str]] = Counter()
            prices: dict[tuple[int, int, str], int] = {}
            for gpus, (mode, medium) in zip(cluster.kind_ranges(), self.hosts, strict=True):
                hosts = rails * len(gpus) // cluster.rails
                lower, upper, link = pricing.medium_cents(medium)
                pool = mode.ports_per_cage, mode.gbps, medium.per_upper_cage or medium.key
                ports[pool] += hosts
                prices[pool] = upper
                total += hosts * (lower + link)
            sockets = {pool: -(-count // pool[0]) for pool, count in ports.items()}
            if sum(sockets.values()) > self.spine.cages or sum(ports.values()) > self.spine.max_ports:
                return None
            total += pricing.switch_cents(self.spine) + sum(prices[pool] * count for pool, count in sockets.items())
        return total

    def links(self) -> list[tuple[int, int, float]]:
        """Links of the first fabric: hosts first; nodes are GPUs of the cluster, then leaves, then spines."""
        cluster = self.instance.cluster
        homes = self.homes()
        names = {home: cluster.gpus + number for number, home in enumerate(dict.fromkeys(homes.values()))}
        found = [(gpu, names[home], float(cluster.kinds()[home[0]].nic.modes[0].gbps)) for gpu, home in homes.items()]
        first = cluster.gpus + len(names)
        for home, node in names.items():
            leaf = self.leaves[home[0]]
            for spine, _ in product(range(leaf.spines), range(leaf.bundle)):
                found.append((node, first + spine, float(leaf.up_mode.gbps)))
        return found

    def carries(self, traffic: Traffic) -> bool:
        """Whether every step gets its floor, and after the loss of a link or a spine what the instance asks."""
        if not self.leaves:
            return True
        gpus, links = self.instance.cluster.gpus, self.links()
        above = [row for row, (a, _, _) in enumerate(links) if a >= gpus]
        lost: list[tuple[float, set[int]]] = [(1.0, set())]
        for item in self.instance.requirements.survive:
            if item.failure == "link":
                lost += [(item.throughput, {row}) for row in above]
            else:
                spines = {links[row][1] for row in above}
                lost += [(item.throughput, {row for row in above if links[row][1] == spine}) for spine in spines]
        return all(self._left(traffic, rows) >= share - NEAR for share, rows in lost)

    def _left(self, traffic: Traffic, lost: set[int]) -> float:
        gpus = self.instance.cluster.gpus
        links = tuple(link for row, link in enumerate(self.links()) if row not in lost)
        nodes = max(max(a, b) for a, b, _ in self.links()) + 1
        graph = Graph(nodes, links, frozenset(range(gpus, nodes)))
        inside = set(self.homes())
        return min(
            self._throughput(graph, traffic, phase, step, inside) / phase.floor
            for phase in traffic.network_phases
            for step in phase.steps
        )

    def _throughput(self, graph: Graph, traffic: Traffic, phase: Phase, step: Step, inside: set[int]) -> float:
        line = line_gbps(self.instance, phase)
        fixed, worst = step_flows(traffic, phase, step)
        rates: dict[tuple[int, int], float] = {}
        for source, target, rate in fixed:
            if source != target and source in inside:
                rates[source, target] = rates.get((source, target), 0.0) + rate * line
        groups = [(rate * line, gpus) for rate, gpus in worst if set(gpus) <= inside]
        return worst_permutation(graph, groups, rates) if groups else throughput(graph, rates)

    def clearly_short(self, traffic: Traffic) -> bool:
        """Whether some leaf has fewer uplinks than one of the steps sends out of it."""
        if not self.leaves:
            return False
        homes = self.homes()
        for phase in traffic.network_phases:
            line = line_gbps(self.instance, phase) * phase.floor
            for step in phase.steps:
                fixed, _ = step_flows(traffic, phase, step)
                out: dict[tuple[int, int, int], float] = {}
                for source, target, rate in fixed:
                    if source in homes and homes[source] != homes[target]:
                        out[homes[source]] = out.get(homes[source], 0.0) + rate * line
                for home, gbps in out.items():
                    leaf = self.leaves[home[0]]
                    if gbps > leaf.spines * leaf.bundle * leaf.up_mode.gbps + NEAR:
                        return True
        return False


def line_gbps(instance: Instance, phase: Phase) -> float:
    """The rate of the slowest NIC among the GPUs of a phase."""
    gpus = range(phase.first_gpu, phase.first_gpu + phase.gpus)
    ranges = zip(instance.cluster.kinds(), instance.cluster.kind_ranges(), strict=True)
    return min(float(kind.nic.modes[0].gbps) for kind, own in ranges if set(own) & set(gpus))


def _media(
    instance: Instance, lower: tuple[str, int], upper: tuple[str, int], gbps: int, length_m: float
) -> list[LinkMedium]:
    return list(link_media(instance.catalog, *lower, *upper, gbps, length_m))


def _leaves(instance: Instance, kind: int, spine: Switch, spines: int, rails: int, *, in_order: bool) -> Iterator[Leaf]:
    """Every leaf of a kind under so many spines of a model."""
    cluster = instance.cluster
    nic, gpus = cluster.kinds()[kind].nic, len(cluster.kind_ranges()[kind])
    (mode,) = nic.modes
    per_rail = gpus // cluster.rails
    several = range(2, rails + 1) if instance.search.leaf_sharing != "none" else ()
    downs = [*range(1, per_rail + 1), *(whole * per_rail for whole in several)]
    downs = list(range(1, gpus + 1)) if in_order else downs
    for switch, down in product(instance.catalog.switches.values(), downs):
        for host_mode in switch.modes_at(mode.gbps):
            ends = (nic.cage, 1), (switch.cage, host_mode.ports_per_cage)
            for host in _media(instance, *ends, mode.gbps, instance.cabling.host_m):
                if host.bundle != 1:
                    continue
                for up_mode in switch.modes:
                    for spine_mode in spine.modes_at(up_mode.gbps):
                        ends = (switch.cage, up_mode.ports_per_cage), (spine.cage, spine_mode.ports_per_cage)
                        for up in _media(instance, *ends, up_mode.gbps, instance.cabling.leaf_spine_m):
                            for bundle in range(1, switch.max_ports // spines + 1):
                                if bundle % up.bundle == 0:
                                    yield Leaf(
                                        kind, switch, down, host_mode, host, spines, bundle, up_mode, spine_mode, up
                                    )


def networks(instance: Instance) -> Iterator[tuple[int, Network]]:
    """Every network that joins all kinds and whose ports fit, with its cost."""
    cluster = instance.cluster
    kinds = range(len(cluster.kinds()))
    across = any(getattr(item, "across", "rail") == "cluster" for item in instance.workload) and cluster.rails > 1
    orders = [(rails, False) for rails in range(cluster.rails if across else 1, cluster.rails + 1)]
    orders += [(cluster.rails, True)] if across or (instance.search.leaf_sharing == "any" and cluster.rails > 1) else []
    for spine in instance.catalog.switches.values():
        for rails, in_order in orders:
            if instance.search.leaf_sharing != "none" or rails == 1 or across:
                yield from _one_tier(instance, spine, rails)
            if cluster.rails % rails:
                continue
            for spines in range(1, max(item.max_ports for item in instance.catalog.switches.values()) + 1):
                choices = [list(_leaves(instance, kind, spine, spines, rails, in_order=in_order)) for kind in kinds]
                for leaves in product(*choices):
                    network = Network(instance, spine, leaves, rails, (), in_order)
                    cents = network.cents()
                    if cents is not None:
                        yield cents, network


def _one_tier(instance: Instance, switch: Switch, rails: int) -> Iterator[tuple[int, Network]]:
    choices: list[list[tuple[PortMode, LinkMedium]]] = []
    for kind in instance.cluster.kinds():
        (mode,) = kind.nic.modes
        found: list[tuple[PortMode, LinkMedium]] = []
        for port in switch.modes_at(mode.gbps):
            ends = (kind.nic.cage, 1), (switch.cage, port.ports_per_cage)
            media = _media(instance, *ends, mode.gbps, instance.cabling.host_m)
            found += [(port, medium) for medium in media if medium.bundle == 1]
        choices.append(found)
    for hosts in product(*choices):
        network = Network(instance, switch, (), rails, hosts)
        cents = network.cents()
        if cents is not None:
            yield cents, network


def cheapest_cents(instance: Instance, traffic: Traffic) -> int | None:
    """Cost of the cheapest network that carries everything; None where none does."""
    seen: set[tuple[object, ...]] = set()
    for cents, network in sorted(networks(instance), key=lambda item: item[0]):
        # What it carries depends on sizes and rates alone.
        key = (
            network.rails,
            network.in_order,
            bool(network.leaves),
            *((leaf.down, leaf.spines, leaf.bundle, leaf.up_mode.gbps) for leaf in network.leaves),
        )
        if key in seen:
            continue
        seen.add(key)
        if not network.clearly_short(traffic) and network.carries(traffic):
            return cents
    return None
