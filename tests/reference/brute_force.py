"""The cheapest Clos network by looking at every one of them: slow, plain, and without the package's formulation.

Taken from the package: the phases of the traffic, the catalog's media between two ports, and unit prices. Everything
else, needs, ports, cages and cost, is counted here from its definition.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from designer.catalog.media import LinkMedium, link_media
from designer.costing.pricing import Pricing
from designer.instance.instance import Instance
from designer.workload.traffic import Traffic
from tests.reference.explicit import block_rates

NEVER = math.inf


def up(number: float, per: float = 1) -> int:
    """Number / per, rounded up."""
    return math.ceil(number / per - 1e-9)


@dataclass(frozen=True)
class Placing:
    """Where GPUs attach in each fabric: `leaf_of[f][gpu]`, and the used ports of each leaf, management included."""

    leaf_of: tuple[dict[int, int], ...]
    used: tuple[tuple[int, ...], ...]

    @property
    def leaves(self) -> int:
        return len(self.used[0])


def placing(instance: Instance, mixed: bool, rails_of_fabric: int, down: int, sharing: str) -> Placing:
    """GPU by GPU onto leaves of `down` ports."""
    cluster = instance.cluster
    per_rail = cluster.gpus // cluster.rails
    fabrics: dict[int, dict[int, int]] = {}
    for gpu in range(cluster.gpus):
        rail, position = gpu % cluster.rails, gpu // cluster.rails
        if mixed:
            fabrics.setdefault(0, {})[gpu] = gpu // down
            continue
        inner = rail % rails_of_fabric
        whole = down // per_rail if sharing != "none" else min(1, down // per_rail)
        leaf = inner // whole if whole else inner * up(per_rail, down) + position // down
        fabrics.setdefault(rail // rails_of_fabric, {})[gpu] = leaf
    used = []
    for leaf_of in fabrics.values():
        ports = [0] * (max(leaf_of.values()) + 1)
        for leaf in leaf_of.values():
            ports[leaf] += 1
        left = cluster.management_ports
        spare = sum(down - port for port in ports)
        ports += [0] * up(max(0, left - spare), down)
        while left:
            for leaf, port in enumerate(ports):
                if port < down and left:
                    ports[leaf] += 1
                    left -= 1
        used.append(tuple(ports))
    return Placing(tuple(fabrics.values()), tuple(used))


@dataclass(frozen=True)
class Level:
    """Uplinks of a leaf or pod that have to be there: intact, and after each failure above the leaves."""

    intact: int
    lost: tuple[int, ...]


class BruteForce:
    """All Clos networks of one instance, in loops."""

    def __init__(self, instance: Instance, traffic: Traffic) -> None:
        self.instance, self.traffic = instance, traffic
        self.catalog, self.requirements, self.search = instance.catalog, instance.requirements, instance.search
        self.pricing = Pricing(instance.objective, instance.energy)
        self.nic = instance.cluster.nic
        self.switches = [
            switch
            for key, switch in self.catalog.switches.items()
            if (self.search.switches is None or key in self.search.switches)
            and any(
                name in self.nic.protocols and (self.search.protocols is None or name in self.search.protocols)
                for name in switch.protocols
            )
        ]
        self.above = [item for item in self.requirements.survive if item.failure in ("switch", "link")]
        self.best = NEVER
        self.best_words = ""
        self.looked_at = 0

    def cheapest_cents(self) -> int | None:
        """Cost of the cheapest network in cents; None when there is none."""
        for mode in self.nic.modes:
            if self.search.planes is None or mode.ports in self.search.planes:
                for mixed, rails in self.orders():
                    self.fabrics_of(mode, mixed, rails)
        return None if self.best == NEVER else int(self.best)

    def orders(self) -> Iterator[tuple[bool, int]]:
        """Mixed or aligned, and how many rails a fabric joins; with one tier it need not be a divisor."""
        rails = self.instance.cluster.rails
        joined = rails > 1 and any(phase.across == "cluster" for phase in self.traffic.phases if phase.steps)
        for number in range(rails if joined else 1, rails + 1):
            yield False, number
        if rails > 1 and (joined or self.search.leaf_sharing == "any"):
            yield True, rails

    def fabrics_of(self, mode, mixed: bool, rails: int) -> None:
        cluster, sharing = self.instance.cluster, self.search.leaf_sharing
        pinned = self.search.leaf
        whole_sets = cluster.rails % rails == 0
        for leaf in self.switches:
            for down_mode in leaf.modes:
                if down_mode.gbps != mode.gbps:
                    continue
                nic_ports = mode.ports * self.nic.nics_per_cage // self.nic.cages_per_nic
                hosts = [
                    medium
                    for medium in self.media((self.nic, nic_ports), (leaf, down_mode.ports_per_cage), mode.gbps, "host")
                    if medium.bundle == 1
                ]
                most = min(leaf.cages * down_mode.ports_per_cage, leaf.max_ports)
                for down in range(1, most + 1):
                    if down > cluster.gpus + cluster.management_ports or pinned.down not in (None, down):
                        continue
                    if sharing == "none" and not mixed and rails > 1 and down * cluster.rails >= 2 * cluster.gpus:
                        continue  # room for two rails
                    place = placing(self.instance, mixed, rails, down, sharing)
                    detour = self.detour(place, mode.ports)
                    if detour == NEVER:
                        continue
                    for medium in hosts:
                        base = self.host_cents(place, mode, leaf, down_mode, medium)
                        one_switch = place.leaves == 1 and (rails == 1 or mixed or sharing != "none")
                        if one_switch and not pinned.up and (pinned.down is not None or down == place.used[0][0]):
                            self.take(base, "one tier", leaf.key, down)
                        if place.leaves > 1 and whole_sets and self.search.max_tiers > 1:
                            self.upper_tiers(mode, place, detour, leaf, down_mode, down, base)

    def take(self, cents: float, *words: object) -> None:
        self.looked_at += 1
        if cents < self.best:
            self.best, self.best_words = cents, " ".join(map(str, words))

    def media(self, lower, upper, gbps: int, where: str) -> Sequence[LinkMedium]:
        length_m = getattr(self.instance.cabling, f"{where}_m")
        ends = (lower[0].cage, lower[1], upper[0].cage, upper[1])
        return link_media(self.catalog, *ends, gbps, length_m)

    def class_cents(self, medium: LinkMedium, lower_cages: int, upper_cages: int, links: int) -> int:
        pieces = (
            (lower_cages, medium.lower_cage_cents, medium.lower_cage_w),
            (upper_cages, medium.upper_cage_cents, medium.upper_cage_w),
            (links, medium.link_cents, medium.link_w),
        )
        return sum(number * self.pricing.unit_cents(cents, watts) for number, cents, watts in pieces)

    def host_cents(self, place: Placing, mode, leaf, down_mode, medium: LinkMedium) -> int:
        """All leaves and host links of the whole network."""
        cluster, nic = self.instance.cluster, self.nic
        planes, per_cage = mode.ports, down_mode.ports_per_cage
        leaves = links = cages = management = 0
        for used in place.used:
            leaves += planes * len(used)
            links += planes * sum(used)
            cages += planes * sum(up(ports, per_cage) for ports in used)
            management += planes * cluster.management_ports
        sockets = sum(
            1
            for nic_number in range(0, cluster.gpus, nic.nics_per_cage)
            for cage in range(nic.cages_per_nic)
            if cage < planes and nic_number < cluster.gpus
        )
        host = self.class_cents(medium, sockets + management, cages, links)
        return host + leaves * self.pricing.switch_cents(leaf)

    def detour(self, place: Placing, planes: int) -> float:
        """What lost leaves and NICs ask on top of the intact need."""
        domain = self.instance.cluster.hb_domain
        together: dict[tuple[int, int, int], int] = {}
        for number, leaf_of in enumerate(place.leaf_of):
            for gpu, leaf in leaf_of.items():
                key = (gpu // domain, number, leaf)
                together[key] = together.get(key, 0) + 1
        worst = 1.0
        floors = [phase.floor for phase in self.traffic.phases if phase.steps]
        for item in self.requirements.survive:
            if item.failure == "link":
                continue
            ways = []
            lost = item.count
            if item.failure == "switch":
                lost = item.count * max(together.values())
                if planes > item.count:
                    ways.append(planes / (planes - item.count))
            if domain > lost:
                left = domain - lost
                ways.append(domain / left if self.requirements.detour == "spread" else 1 + up(lost, left))
            factor = item.throughput * min(ways, default=NEVER)
            if factor * max(floors, default=0.0) > 1 + 1e-9 or factor == NEVER:
                return NEVER
            worst = max(worst, factor)
        return worst

    def level(self, place: Placing, leaves_per_pod: int, detour: float, endpoint_gbps: int, gbps: int) -> Level:
        """Links of `gbps` out of blocks of so many leaves."""
        need = 0.0
        for leaf_of in place.leaf_of:
            block_of = {gpu: leaf // leaves_per_pod for gpu, leaf in leaf_of.items()}
            need = max([need, *block_rates(self.traffic, block_of).values()])
        need *= endpoint_gbps
        lost = tuple(max(1, up(need * item.throughput, gbps)) for item in self.above)
        return Level(max(1, up(need * detour, gbps)), lost)

    def upper_tiers(self, mode, place: Placing, detour: float, leaf, down_mode, down: int, base: int) -> None:
        symmetric, leaves = self.requirements.symmetric_uplinks, place.leaves
        pinned_up = self.search.leaf.up
        fabrics = mode.ports * len(place.leaf_of)
        free_cages = leaf.cages - up(down, down_mode.ports_per_cage)
        pods: dict[tuple[int, int], Level] = {}
        for up_mode in leaf.modes:
            most = min(free_cages * up_mode.ports_per_cage, leaf.max_ports - down)
            if most < 1:
                continue
            need = self.level(place, 1, detour, mode.gbps, up_mode.gbps)
            for spine, spine_mode in self.tiers_at(leaf, up_mode.gbps):
                ends = (leaf, up_mode.ports_per_cage), (spine, spine_mode.ports_per_cage)
                for medium in self.media(*ends, up_mode.gbps, "leaf_spine"):
                    for uplinks, spines in product(range(need.intact, most + 1), range(1, most + 1)):
                        if spines > uplinks or pinned_up not in (None, uplinks):
                            continue
                        uneven = uplinks % spines != 0
                        bundle = up(uplinks, spines)
                        if medium.bundle > 1 and (uneven or bundle % medium.bundle):
                            continue
                        cages = leaves * up(uplinks, up_mode.ports_per_cage)
                        if not (uneven and symmetric):
                            self.two_tiers(
                                base, fabrics, leaves, cages, uplinks, spines, bundle, spine, spine_mode, medium, need
                            )
                        if self.search.max_tiers > 2 and not uneven:
                            self.three_tiers(
                                base,
                                fabrics,
                                place,
                                cages,
                                spines,
                                bundle,
                                spine,
                                spine_mode,
                                medium,
                                need,
                                pods,
                                detour,
                                mode.gbps,
                            )

    def tiers_at(self, lower, gbps: int):
        for switch in self.switches:
            if set(switch.protocols) & set(lower.protocols):
                for mode in switch.modes:
                    if mode.gbps == gbps:
                        yield switch, mode

    def two_tiers(
        self, base, fabrics, leaves, leaf_cages, uplinks, spines, bundle, spine, spine_mode, medium, need
    ) -> None:
        """Links dealt round the spines; each spine must hold its part."""
        radix = min(spine.cages * spine_mode.ports_per_cage, spine.max_ports)
        links = leaves * uplinks
        ports = [links // spines + (number < links % spines) for number in range(spines)]
        if max(ports) > radix or not self.leaves_survive(uplinks, spines, bundle, need):
            return
        cages = sum(up(number, spine_mode.ports_per_cage) for number in ports)
        cost = self.class_cents(medium, leaf_cages, cages, links) + spines * self.pricing.switch_cents(spine)
        self.take(base + fabrics * cost, "two tiers", leaves, uplinks, spines, spine.key, medium.key)

    def leaves_survive(self, uplinks: int, spines: int, bundle: int, need: Level) -> bool:
        for item, left in zip(self.above, need.lost, strict=True):
            if item.failure == "switch":
                remaining = uplinks - item.count * bundle
            elif self.requirements.routing == "ecmp" and bundle > 1:
                # Each loss slows the leaf by a link of every bundle; of several each may also take a whole spine.
                remaining = uplinks - item.count * spines - (item.count * bundle if item.count > 1 else 0)
            else:
                remaining = uplinks - item.count
            if remaining < left:
                return False
        return True

    def three_tiers(
        self, base, fabrics, place, leaf_cages, spines, bundle, spine, spine_mode, medium, need, pods, detour, gbps
    ) -> None:
        leaves, uplinks = place.leaves, spines * bundle
        if base >= self.best or not self.leaves_survive(uplinks, spines, bundle, need):
            return
        per_cage = spine_mode.ports_per_cage
        radix = min(spine.cages * per_cage, spine.max_ports)
        for per_pod in range(1, leaves):
            down = per_pod * bundle
            if down >= radix:
                break
            groups = [min(per_pod, leaves - first) for first in range(0, leaves, per_pod)]
            spine_cages = sum(spines * up(pod_leaves * bundle, per_cage) for pod_leaves in groups)
            lower = self.class_cents(medium, leaf_cages, spine_cages, leaves * uplinks)
            lower += len(groups) * spines * self.pricing.switch_cents(spine)
            if base + fabrics * lower >= self.best:
                continue
            for spine_up in spine.modes:
                free_cages = spine.cages - up(down, per_cage)
                most = min(free_cages * spine_up.ports_per_cage, spine.max_ports - down)
                if most < 1:
                    continue
                key = (per_pod, spine_up.gbps)
                if key not in pods:
                    pods[key] = self.level(place, per_pod, detour, gbps, spine_up.gbps)
                for core, core_mode in self.tiers_at(spine, spine_up.gbps):
                    ends = (spine, spine_up.ports_per_cage), (core, core_mode.ports_per_cage)
                    for core_medium in self.media(*ends, spine_up.gbps, "spine_core"):
                        self.cores(
                            base + fabrics * lower,
                            fabrics,
                            len(groups),
                            spines,
                            bundle,
                            most,
                            spine_up,
                            core,
                            core_mode,
                            core_medium,
                            need,
                            pods[key],
                        )

    def cores(
        self, cents, fabrics, pods, spines, bundle, most, spine_up, core, core_mode, medium, leaf_need, pod_need
    ) -> None:
        """`cores` cores to a group by `links` links from a spine; a core serves `positions` spines of each pod."""
        radix = min(core.cages * core_mode.ports_per_cage, core.max_ports)
        for cores, links in product(range(1, most + 1), range(1, most + 1)):
            spine_uplinks = cores * links
            pod_links = spines * spine_uplinks
            if spine_uplinks > most or pod_links < pod_need.intact or links % medium.bundle:
                continue
            for positions in range(1, spines + 1):
                ports = pods * positions * links
                if spines % positions or ports > radix:
                    continue
                if not self.pods_survive(spines, bundle, cores, links, positions, leaf_need, pod_need):
                    continue
                all_cores = spines // positions * cores
                cost = all_cores * self.pricing.switch_cents(core)
                lower_cages = pods * spines * up(spine_uplinks, spine_up.ports_per_cage)
                upper_cages = all_cores * up(ports, core_mode.ports_per_cage)
                cost += self.class_cents(medium, lower_cages, upper_cages, pods * pod_links)
                self.take(cents + fabrics * cost, "three tiers", pods, spines, bundle, cores, links, positions)

    def pods_survive(self, spines, bundle, cores, links, positions, leaf_need: Level, pod_need: Level) -> bool:
        ecmp = self.requirements.routing == "ecmp"
        total, uplinks = spines * cores * links, spines * bundle
        for item, leaf_left, pod_left in zip(self.above, leaf_need.lost, pod_need.lost, strict=True):
            count = item.count
            remaining = [total - count]
            if item.failure == "switch":
                remaining = [total - count * cores * links]  # spines of the pod
                if not ecmp:
                    remaining.append(total - count * positions * links)
                elif cores > count:
                    remaining.append(total - count * spines * links)
                else:  # the whole group may be gone, and with it the spines below
                    remaining.append(total - count * positions * cores * links)
                    if uplinks - count * positions * bundle < leaf_left:
                        return False
            elif ecmp and links > 1:
                remaining = [total - count * spines * cores - (count * links if count > 1 else 0)]
            if min(remaining) < pod_left:
                return False
        return True


def cheapest_cents(instance: Instance, traffic: Traffic) -> int | None:
    """The optimum of the Clos family by enumeration, in cents; None when no network meets the instance."""
    return BruteForce(instance, traffic).cheapest_cents()
