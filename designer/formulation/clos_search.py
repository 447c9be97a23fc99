"""Runs the Clos program over every choice of hardware, best bound first, until nothing cheaper can be left.

For each choice of planes, rails of a fabric, tiers, switch models, port modes and cabling a closed bound says what any
of its networks costs at least: whole switches for the ports that the needs ask for, every link and occupied cage. A
choice whose bound reaches the best design so far is closed without a solve; the others are solved to proven optimality
below that cost.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from designer.catalog.components import PortMode, Switch
from designer.costing.pricing import MediaFinder, Pricing, shape_cents
from designer.fabric.shape import ClosShape, Cores, Hosts, Media, Spines, Tier, leaf_sizes
from designer.formulation.clos import Answer, ClosProgram, Hardware, LeafOption, LostNeed, Rules
from designer.formulation.clos_parts import Attachment, Group, Need, Pods, Slice, link_needs
from designer.formulation.demand import Needs, links_for, whole_links
from designer.formulation.hardware import LeafKind, TierKind, leaf_kinds, tiers_above, usable_switches
from designer.formulation.pod_bounds import pod_bounds
from designer.instance.instance import Instance
from designer.instance.schema import RequirementsSection
from designer.workload.cuts import CutFunction, Ints, layouts
from designer.workload.traffic import Traffic

Report = Callable[[int | None, int | None], None]


@dataclass(frozen=True)
class Limits:
    """When to stop and how to solve. `gap` is the relative gap that is good enough; `should_stop` is asked often."""

    time_limit_s: float = math.inf
    gap: float = 0.0
    threads: int = 1
    seed: int = 0
    should_stop: Callable[[], bool] = lambda: False


@dataclass
class Proposal:
    """The cheapest shape found and what is proven over the family. Costs in cents; None where there is none.

    `termination` is optimal, gap, time_limit, interrupted or infeasible.
    """

    shape: ClosShape | None
    cost_cents: int | None
    bound_cents: int | None
    termination: str
    solves: int = 0


class ClosSearch:
    """The search over the Clos family for one instance."""

    program = ClosProgram

    def __init__(
        self,
        instance: Instance,
        traffic: Traffic,
        pricing: Pricing,
        media: MediaFinder,
        needs_of: Callable[[CutFunction, RequirementsSection, int, int], Needs] = Needs,
    ) -> None:
        """`needs_of` says what leaves and pods need of uplinks, where that is not just the floors."""
        self.instance, self.traffic, self.needs_of = instance, traffic, needs_of
        self.pricing, self.media = pricing, media
        cluster, search = instance.cluster, instance.search
        self.switches = usable_switches(instance.catalog, cluster.nic, search, pricing)
        self.best: ClosShape | None = None
        self.best_cents: int | None = None
        self.solves = 0
        self._leaf_rates: dict[tuple[bool, int], float] = {}

    def run(self, limits: Limits, start: ClosShape | None = None, report: Report | None = None) -> Proposal:
        """Search until proven, or until a limit; `start` is a shape with media that meets the requirements."""
        deadline = time.monotonic() + limits.time_limit_s
        if start is not None:
            self._take(start, self.paid_cents(start))
        slices = list(self._slices())
        for part in slices:
            self._single_tier(part)
        open_bound = math.inf  # the least that networks not looked at can cost
        termination = "optimal"
        for tiers in range(2, self.instance.search.max_tiers + 1):
            groups = sorted(self._groups(slices, tiers), key=lambda group: group.bound_cents)
            for number, group in enumerate(groups):
                if self.best_cents is not None and group.bound_cents >= self.best_cents * (1 - limits.gap):
                    open_bound = min([open_bound, *(rest.bound_cents for rest in groups[number:])])
                    break
                left_s = deadline - time.monotonic()
                if limits.should_stop() or left_s <= 0:
                    open_bound = min([open_bound, *(rest.bound_cents for rest in groups[number:])])
                    termination = "interrupted" if limits.should_stop() else "time_limit"
                    break
                bound = self._solve(group, limits, left_s)
                if bound is not None:
                    open_bound = min(open_bound, bound)
                    termination = "interrupted" if limits.should_stop() else "time_limit"
                if report:
                    report(self.best_cents, self._bound(min(open_bound, group.bound_cents)))
            if termination != "optimal":
                if tiers < self.instance.search.max_tiers:
                    open_bound = min(open_bound, self._least_base_cents(slices))
                break
        return self._proposal(open_bound, termination)

    def _proposal(self, open_bound: float, termination: str) -> Proposal:
        bound = self._bound(open_bound)
        if self.best is None:
            status = "infeasible" if termination == "optimal" else termination
            return Proposal(None, None, bound, status, self.solves)
        if termination == "optimal" and bound is not None and self.best_cents is not None and bound < self.best_cents:
            termination = "gap"
        return Proposal(self.best, self.best_cents, bound, termination, self.solves)

    def _least_base_cents(self, slices: list[Slice]) -> float:
        """What leaves and host links alone cost at least in any network of several tiers."""
        bases = (
            attachment.base_cents
            for part in slices
            for kind in self._leaf_kinds(part)
            for attachment in self._attachments(part, kind)
        )
        return min(bases, default=math.inf)

    def _bound(self, open_bound: float) -> int | None:
        candidates = [value for value in (open_bound, self.best_cents) if value is not None and value < math.inf]
        return int(min(candidates)) if candidates else None

    def _take(self, shape: ClosShape, cost_cents: int) -> None:
        if self.best_cents is None or cost_cents < self.best_cents:
            self.best, self.best_cents = shape, cost_cents

    def paid_cents(self, shape: ClosShape) -> int:
        """What a shape with media costs."""
        return shape_cents(shape, self.pricing)

    def permits(self, shape: ClosShape) -> bool:
        """Whether a shape with media may be built."""
        del shape  # all may, where nothing is owned
        return True

    def _slices(self) -> Iterator[Slice]:
        cluster, search = self.instance.cluster, self.instance.search
        for mode in cluster.nic.modes:
            if search.planes is not None and mode.ports not in search.planes:
                continue
            hosts = Hosts(cluster.gpus, cluster.rails, cluster.nic, mode, cluster.management_ports)
            for layout in layouts(self.traffic, search.leaf_sharing):
                cuts = CutFunction(self.traffic, layout, self._leaf_rates)
                needs = self.needs_of(cuts, self.instance.requirements, mode.ports, mode.gbps)
                yield Slice(hosts, layout, needs)

    def _single_tier(self, part: Slice) -> None:
        """One switch to a fabric: as many whole rails as fit, or all endpoints; no choice is left to solve."""
        layout, hosts = part.layout, part.hosts
        pinned = self.instance.search.leaf
        if pinned.up:
            return
        if layout.rails > 1 and not layout.mixed:
            return  # found from the layout of single rails, which tries every number of them
        alone = layout.mixed or self.instance.search.leaf_sharing == "none"
        rail_counts = [layout.rails] if alone else range(1, hosts.rails + 1)
        for kind in self._leaf_kinds(part):
            for rails in rail_counts:
                wide = replace(layout, rails=rails)
                down = wide.endpoints + hosts.management_ports
                if down > kind.tier.switch.radix(kind.tier.down_mode) or (pinned.down or down) < down:
                    continue
                needs = Needs(CutFunction(self.traffic, wide), self.instance.requirements, hosts.planes, hosts.gbps)
                if math.isinf(needs.detour(down)):
                    continue
                shape = ClosShape(hosts, wide, kind.tier, down, media=Media(kind.medium, self._host_m))
                if not shape.problems() and self.permits(shape):
                    self._take(shape, self.paid_cents(shape))

    @property
    def _host_m(self) -> float:
        return self.instance.cabling.host_m

    def _leaf_kinds(self, part: Slice) -> Iterator[LeafKind]:
        hosts = part.hosts
        return leaf_kinds(self.switches, hosts.nic, hosts.planes, hosts.gbps, self.media, self.instance.cabling)

    def _groups(self, slices: list[Slice], tiers: int) -> Iterator[Group]:
        for part in slices:
            for kind in self._leaf_kinds(part):
                attachments = list(self._attachments(part, kind))
                if not attachments:
                    continue
                for spine in tiers_above(kind.tier, self.switches, self.media, self.instance.cabling.leaf_spine_m):
                    yield from self._groups_of(part, kind, spine, attachments, tiers)

    def _groups_of(
        self, part: Slice, kind: LeafKind, spine: TierKind, attachments: list[Attachment], tiers: int
    ) -> Iterator[Group]:
        if tiers == 2:
            hardware = self._hardware(kind, spine, None)
            options = [self._option(part, hardware, attachment) for attachment in attachments]
            yield from self._kept(part, hardware, options)
            return
        # Before the pods are looked at: with two uplinks in all, does anything below the best design remain?
        flat = self._hardware(kind, spine, None)
        hopeful = [
            attachment
            for attachment in attachments
            if attachment.leaves > 2 and self._hopeful(self._option(part, flat, attachment, spine_uplinks=2))
        ]
        if not hopeful:
            return
        for core in tiers_above(spine.tier, self.switches, self.media, self.instance.cabling.spine_core_m):
            hardware = self._hardware(kind, spine, core)
            options = [option for attachment in hopeful for option in self._pod_options(part, hardware, attachment)]
            yield from self._kept(part, hardware, options)

    def _kept(self, part: Slice, hardware: Hardware, options: list[LeafOption | None]) -> Iterator[Group]:
        kept = [option for option in options if option is not None and self._hopeful(option)]
        if kept:
            yield Group(part, hardware, kept)

    def _hopeful(self, option: LeafOption | None) -> bool:
        return option is not None and (self.best_cents is None or option.bound_cents < self.best_cents)

    def _hardware(self, kind: LeafKind, spine: TierKind, core: TierKind | None) -> Hardware:
        pricing = self.pricing
        return Hardware(
            kind,
            spine,
            core,
            pricing.switch_cents(spine.tier.switch),
            pricing.switch_cents(core.tier.switch) if core else 0,
            pricing.medium_cents(spine.medium),
            pricing.medium_cents(core.medium) if core else (0, 0, 0),
        )

    def _attachments(self, part: Slice, kind: LeafKind) -> Iterator[Attachment]:
        """Numbers of ports to endpoints worth a look, with leaves and what leaves and host links cost."""
        layout, hosts, pinned = part.layout, part.hosts, self.instance.search.leaf
        tier, management = kind.tier, hosts.management_ports
        radix = tier.switch.radix(tier.down_mode)
        length = layout.endpoints if layout.mixed else layout.per_rail
        downs = [*range(1, min(radix, length + management) + 1)]
        if not layout.mixed and self.instance.search.leaf_sharing != "none":
            downs += [whole * layout.per_rail for whole in range(2, layout.rails) if whole * layout.per_rail <= radix]
        if pinned.down is not None:
            downs = [pinned.down] if pinned.down <= radix else []
        if not layout.mixed and layout.rails > 1 and self.instance.search.leaf_sharing == "none":
            downs = [down for down in downs if down < 2 * layout.per_rail]
        for down in sorted(set(downs)):
            leaves_cents = self._switches_cents(tier.switch, part.fabrics * layout.leaves(down))
            if self.best_cents is not None and leaves_cents >= self.best_cents:
                continue
            sizes = leaf_sizes(layout, down, management)
            if len(sizes) < 2 or math.isinf(part.needs.detour(down)):
                continue
            shape = ClosShape(hosts, layout, tier, down, media=Media(kind.medium, self._host_m))
            free_cages = tier.switch.cages - -(-down // tier.down_mode.ports_per_cage)
            free_ports = tier.switch.max_ports - down
            base_cents = shape_cents(shape, self.pricing)
            paid = self.best_cents is None or self.paid_cents(shape) < self.best_cents
            if free_cages > 0 and free_ports > 0 and paid and self.permits(shape):
                yield Attachment(down, len(sizes), base_cents, free_cages, free_ports)

    def _switches_cents(self, switch: Switch, count: int) -> int:
        """What so many switches cost at least, whatever else there is."""
        return count * self.pricing.switch_cents(switch)

    def _option(
        self,
        part: Slice,
        hardware: Hardware,
        attachment: Attachment,
        pods: Pods | None = None,
        spine_uplinks: int = 0,
        bound_cents: int | None = None,
    ) -> LeafOption | None:
        """The option with its needs in links and its closed bound, where not given; None where uplinks cannot fit."""
        uplinks = self._uplinks(part, hardware, attachment)
        if uplinks is None:
            return None
        intact = part.needs.leaf_gbps(attachment.down)
        lost = tuple(
            LostNeed(
                item.kind,
                item.count,
                links_for(intact * item.share, hardware.spine.gbps),
                links_for(pods.intact_gbps * item.share, pods.gbps) if pods else 0,
            )
            for item in part.needs.lost_links
        )
        up_mode = hardware.spine.lower.up_mode or PortMode(1, hardware.spine.gbps)
        if bound_cents is None:
            joined = np.array([pods.pods * pods.links if pods else spine_uplinks])
            several = np.array([pods.pods if pods else 1])
            bound_cents = int(self._closed_bounds(part, hardware, attachment, uplinks, several, joined)[0])
        return LeafOption(
            attachment.down,
            attachment.leaves,
            attachment.base_cents,
            bound_cents,
            attachment.free_cages,
            min(attachment.free_ports, attachment.free_cages * up_mode.ports_per_cage),
            links_for(intact * part.needs.detour(attachment.down), hardware.spine.gbps),
            lost,
            *((pods.leaves_per_pod, pods.pods, pods.last_pod_leaves, pods.links) if pods else ()),
        )

    def _uplinks(self, part: Slice, hardware: Hardware, attachment: Attachment) -> int | None:
        """The fewest uplinks that a leaf can do with; None where they do not fit."""
        needs, gbps = part.needs, hardware.spine.gbps
        up_mode = hardware.spine.lower.up_mode or PortMode(1, gbps)
        intact = needs.leaf_gbps(attachment.down)
        least = links_for(intact * needs.detour(attachment.down), gbps)
        for item in needs.lost_links:
            least = max(least, links_for(intact * item.share, gbps) + item.count)
        free = min(attachment.free_ports, attachment.free_cages * up_mode.ports_per_cage)
        fixed = self.instance.search.leaf.up
        if least > free or (fixed is not None and not least <= fixed <= free):
            return None
        return max(least, fixed or 0)

    def _closed_bounds(
        self, part: Slice, hardware: Hardware, attachment: Attachment, uplinks: int, pods: Ints, spine_core: Ints
    ) -> Ints:
        """What any network with these pods and links above them costs at least, for each entry of the arrays.

        Needed links, the cages they occupy, and whole switches for their ports.
        """
        cents = np.zeros(len(pods), dtype=np.int64)
        for need in self._least_needs(hardware, attachment, uplinks, pods, spine_core):
            cents += need.cents * need.count
        return attachment.base_cents + part.fabrics * cents

    def _least_needs(
        self, hardware: Hardware, attachment: Attachment, uplinks: int, pods: Ints, spine_core: Ints
    ) -> Iterator[Need]:
        """What one fabric needs at least beyond leaves and hosts, for each entry of the arrays."""
        medium, length_m = hardware.spine.medium, self.instance.cabling.leaf_spine_m
        leaf_spine = np.full(len(pods), attachment.leaves * uplinks, dtype=np.int64)
        mode, tier = hardware.spine.lower.up_mode, hardware.spine.tier
        per_cage = mode.ports_per_cage if mode else 1
        down_per_cage = tier.down_mode.ports_per_cage
        lower = np.full(len(pods), attachment.leaves * -(-uplinks // per_cage), dtype=np.int64)
        yield from link_needs(medium, length_m, hardware.leaf_spine_cents, lower, leaf_spine, down_per_cage)
        up_per_cage = max(item.ports_per_cage for item in tier.switch.modes)
        if hardware.core is not None:
            up_mode, core = hardware.core.lower.up_mode, hardware.core.tier
            up_per_cage = up_mode.ports_per_cage if up_mode else 1
            medium, length_m = hardware.core.medium, self.instance.cabling.spine_core_m
            core_per_cage, lower = core.down_mode.ports_per_cage, -(-spine_core // up_per_cage)
            yield from link_needs(medium, length_m, hardware.spine_core_cents, lower, spine_core, core_per_cage)
            yield Need(core.switch.key, 0.0, hardware.core_cents, -(-spine_core // core.switch.radix(core.down_mode)))
        cages = (leaf_spine / down_per_cage + spine_core / up_per_cage) / tier.switch.cages
        by_cages = np.ceil(cages - 1e-9).astype(np.int64)
        by_ports = -(-(leaf_spine + spine_core) // tier.switch.max_ports)
        spines = np.maximum(np.maximum(by_cages, by_ports), pods)
        yield Need(tier.switch.key, 0.0, hardware.spine_cents, spines)

    def _pod_options(self, part: Slice, hardware: Hardware, attachment: Attachment) -> Iterator[LeafOption | None]:
        core, tier = hardware.core, hardware.spine.tier
        uplinks = self._uplinks(part, hardware, attachment)
        most = min(attachment.leaves - 1, tier.switch.radix(tier.down_mode) - 1)
        if core is None or uplinks is None or most < 1:
            return
        sizes = np.arange(1, most + 1)
        intact = part.needs.pods_gbps(attachment.down, most)
        links = whole_links(intact * part.needs.detour(attachment.down), core.gbps)
        pods = -(-attachment.leaves // sizes)
        bounds = self._closed_bounds(part, hardware, attachment, uplinks, pods, pods * links)
        best = np.iinfo(np.int64).max if self.best_cents is None else self.best_cents
        kept = np.flatnonzero(bounds < best)
        if not len(kept):
            return
        bounds[kept] = self._pod_bounds(part, hardware, attachment, uplinks, sizes[kept], links[kept], bounds[kept])
        for index in kept[bounds[kept] < best].tolist():
            last = attachment.leaves - (int(pods[index]) - 1) * int(sizes[index])
            chosen = Pods(int(sizes[index]), int(pods[index]), last, int(links[index]), float(intact[index]), core.gbps)
            yield self._option(part, hardware, attachment, chosen, bound_cents=int(bounds[index]))

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
        """What any network with pods of these sizes costs at least, bundle by bundle; never below `loose_cents`."""
        up_mode = hardware.spine.lower.up_mode or PortMode(1, hardware.spine.gbps)
        leaf_gbps = part.needs.leaf_gbps(attachment.down)
        lost = tuple(
            (links_for(leaf_gbps * item.share, hardware.spine.gbps), item.count)
            for item in part.needs.lost_links
            if item.kind == "switch"
        )
        return pod_bounds(
            hardware,
            part.fabrics,
            attachment.leaves,
            attachment.base_cents,
            uplinks,
            min(attachment.free_ports, attachment.free_cages * up_mode.ports_per_cage),
            lost,
            sizes,
            -(-attachment.leaves // sizes),
            links,
            loose_cents,
        )

    def _solve(self, group: Group, limits: Limits, left_s: float) -> int | None:
        """Solves a group below the best cost; returns the bound it leaves open, None when it is closed."""
        requirements = self.instance.requirements
        group.options = [option for option in group.options if self._hopeful(option)]
        if not group.options:
            return None
        three = group.hardware.core is not None
        rules = Rules(
            group.part.fabrics,
            requirements.routing == "ecmp",
            requirements.symmetric_uplinks or three,
            self.instance.search.leaf.up,
        )
        program = self._program(group, rules)
        self.solves += 1
        cutoff = self.best_cents
        if cutoff is not None and limits.gap:
            cutoff = math.ceil(cutoff * (1 - limits.gap))
        answer = program.solve(cutoff, min(left_s, 1e6), limits.threads, limits.seed, limits.should_stop)
        if answer.option is not None and answer.cost_cents is not None:
            self._take(self._shape(group, answer), answer.cost_cents)
        if answer.status in ("optimal", "infeasible"):
            return cutoff if answer.status == "infeasible" and limits.gap and cutoff is not None else None
        return max(group.bound_cents, answer.bound_cents or 0)

    def _program(self, group: Group, rules: Rules) -> ClosProgram:
        return self.program(group.options, group.hardware, rules)

    def _shape(self, group: Group, answer: Answer) -> ClosShape:
        option, hardware = answer.option, group.hardware
        if option is None:
            raise ValueError("an answer without a solution")
        cabling = self.instance.cabling
        media = Media(hardware.leaf.medium, cabling.host_m, hardware.spine.medium, cabling.leaf_spine_m)
        spine_tier, cores = hardware.spine.tier, None
        if hardware.core is not None:
            media = replace(media, spine_core=hardware.core.medium, spine_core_m=cabling.spine_core_m)
            spine_tier = Tier(spine_tier.switch, spine_tier.down_mode, hardware.core.lower.up_mode)
            cores = Cores(
                hardware.core.tier,
                option.leaves_per_pod,
                answer.spine_uplinks,
                answer.core_bundle,
                answer.core_positions,
            )
        return ClosShape(
            group.part.hosts,
            group.part.layout,
            hardware.spine.lower,
            option.down,
            answer.uplinks,
            Spines(spine_tier, answer.spines, answer.bundle),
            cores,
            media,
        )
