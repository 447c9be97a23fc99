"""Searches link placements for an instance: which NIC mode, which switch model and how many, then the integer program.

Where all endpoints are alike and no switch is there yet, profiles of counts are tried (`profiles.py`): the result holds
for every network of switches of one model. Otherwise endpoints go to switches in blocks, and every number of switches
of every model is a program of its own, cheapest first, until all that are left are dearer than the best network.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from designer.catalog.components import NicMode, Switch
from designer.costing.pricing import MediaFinder, Pricing
from designer.errors import DesignerError
from designer.fabric.placed import PlacedHosts, PlacedLinks, PlacedNetwork, PlacedSwitch
from designer.formulation.block_demand import SLACK, block_demands, interchangeable
from designer.formulation.blocks import blocks_of, line_rates, one_port, with_alike
from designer.formulation.bounds import any_network_bound
from designer.formulation.clos_search import Limits, Report
from designer.formulation.crossing import least_need
from designer.formulation.hardware import usable_switches
from designer.formulation.placement import KindFinder, Placement, PlacementProblem, Slot, Survival, offered
from designer.formulation.placement_solve import solve_placement
from designer.formulation.profiles import AlikeEndpoints, ProfileSearch
from designer.formulation.solvers import INF, HighsSolver, SolveLimits, Solver
from designer.instance.instance import Instance
from designer.workload.traffic import Traffic

MOST_SWITCHES = 10
FIRST_SLICE_S = 1.0
MOST_ENDPOINTS = 512


class NoPlacementError(DesignerError):
    """Link placement does not apply to this instance; the message says why."""

    exit_code = 3


@dataclass(frozen=True)
class PlacementProposal:
    """The best link placement and what is proven: money in cents, None where there is none.

    `bound_cents` holds for the networks of `words`. `termination` is as of `clos_search.Proposal`, or size_limit where
    cheaper networks may exist that have too many switches to be looked at.
    """

    network: PlacedNetwork | None
    cost_cents: int | None
    bound_cents: float
    termination: str
    words: str


@dataclass(frozen=True)
class _Choice:
    """A program to be solved: NIC mode, the model that is bought and how many of it; `least_cents` bounds its cost."""

    mode: NicMode
    switch: Switch | None
    count: int
    least_cents: float


def inapplicable(instance: Instance, traffic: Traffic) -> str | None:
    """Why link placement cannot be used on an instance; None where it can."""
    cluster, requirements = instance.cluster, instance.requirements
    if cluster.gpus > MOST_ENDPOINTS:
        return f"{cluster.gpus} GPUs are more than the {MOST_ENDPOINTS} that link placement takes"
    if cluster.management_ports:
        return "management ports are known to Clos networks only"
    if any(item.count > 1 for item in requirements.survive):
        return "requirements.survive asks for several failures at once, it knows one at a time"
    across = any(phase.across == "cluster" for phase in traffic.network_phases)
    if across and cluster.rails > 1 and any(item.failure == "switch" for item in requirements.survive):
        return "a workload is across the cluster; a lost switch it knows for traffic that keeps to its rail"
    return None


Tell = Callable[[float | None, float | None], None]


@dataclass
class _State:
    """The best placement so far, what it costs, and the bound over all that was left open; for all planes together."""

    upper: float
    report: Report
    open_bound: float = INF
    termination: str = "optimal"
    best: tuple[NicMode, PlacementProblem, Placement] | None = None

    def closes(self, least_cents: float) -> bool:
        """Whether networks of at least this cost are of no interest any more."""
        return least_cents >= self.upper - SLACK

    def ended(self, least_cents: float) -> bool:
        """Whether the search is over before these networks were looked at."""
        if self.termination == "optimal":
            return False
        self.open_bound = min(self.open_bound, least_cents)
        return True

    def leave(self, least_cents: float) -> None:
        """Networks of at least this cost are too large to be looked at."""
        self.open_bound = min(self.open_bound, least_cents)

    def teller(self, mode: NicMode, least_cents: float) -> Tell:
        """Tells what a program finds, (cost, bound) in cents of one plane, as what is known of all."""

        def tell(cost: float | None, bound: float | None) -> None:
            mine = self.upper if cost is None else min(self.upper, mode.ports * cost)
            low = least_cents if bound is None else max(least_cents, mode.ports * bound)
            self.report(_whole(mine), _whole(min(low, self.open_bound, mine)))

        return tell

    def take(self, mode: NicMode, problem: PlacementProblem, placement: Placement) -> None:
        """A placement that was found; kept if it is cheaper."""
        cost = float(placement.cost(problem) * mode.ports)
        if cost < self.upper:
            self.best, self.upper = (mode, problem, placement), cost

    def note(self, termination: str, bound: float) -> None:
        """How a part of the search ended, and its bound."""
        if termination not in ("optimal", "infeasible"):
            self.termination = termination
            self.open_bound = min(self.open_bound, bound)

    def proposal(self, instance: Instance, words: str) -> PlacementProposal:
        """What came out."""
        bound = min(self.upper, self.open_bound)
        proven = self.termination == "optimal"
        if self.best is None:
            end = self.termination if not proven else "size_limit" if bound < self.upper else "infeasible"
            return PlacementProposal(None, None, bound, end, words)
        mode, problem, placement = self.best
        cost = round(placement.cost(problem) * mode.ports)
        network = _network(instance, problem, placement, mode.ports)
        end = "optimal" if cost <= bound + SLACK else "size_limit" if proven else self.termination
        return PlacementProposal(network, cost, bound, end, words)


class PlacementSearch:
    """The search over the link placements of one instance."""

    def __init__(
        self, instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder, solver: Solver | None = None
    ) -> None:
        self.instance, self.traffic, self.pricing, self.media = instance, traffic, pricing, media
        self.solver = solver or HighsSolver()
        self.finder = KindFinder(instance.catalog, instance.cabling, pricing, media)
        self.block_words = ""
        self.factor, self.survivals, self.sides = _survival(instance, traffic)
        cluster = instance.cluster
        modes = [mode for mode in cluster.nic.modes if self._allowed(mode)]
        self.modes = [mode for mode in modes if mode.ports == 1] if cluster.existing or cluster.irregular else modes
        self.switches = usable_switches(instance.catalog, cluster.nic, instance.search, pricing)
        if cluster.irregular:
            nics = {kind.nic.key: kind.nic for kind in cluster.kinds()}
            found = [usable_switches(instance.catalog, nic, instance.search, pricing) for nic in nics.values()]
            self.switches = list({switch.key: switch for part in found for switch in part}.values())
        self.switches = [switch for switch in self.switches if self._holds_hosts(switch)]

    def _holds_hosts(self, switch: Switch) -> bool:
        return any(
            self.finder.host(kind.nic, mode, switch) is not None
            for kind in self.instance.cluster.kinds()
            for mode in kind.nic.modes
        )

    def _allowed(self, mode: NicMode) -> bool:
        planes = self.instance.search.planes
        return planes is None or mode.ports in planes

    def run(self, limits: Limits, below_cents: float, report: Report) -> PlacementProposal:
        """The cheapest placement that costs less than `below_cents`.

        Raises:
            NoPlacementError: link placement does not apply.
        """
        if reason := inapplicable(self.instance, self.traffic):
            raise NoPlacementError(f"{self.instance.name}: link placement does not apply: {reason}")
        if self.factor is None:
            return PlacementProposal(None, None, INF, "infeasible", self._words(alike=False))
        regular = not self.instance.cluster.irregular and not self.instance.cluster.existing
        if regular and self.sides == 1 and interchangeable(self.traffic):
            return self._alike(limits, below_cents, report)
        return self._blocks(limits, below_cents, report)

    def _words(self, *, alike: bool) -> str:
        cluster = self.instance.cluster
        parts = ["link placements: any switches joined by any links"]
        if cluster.existing:
            parts[0] += f", the {len(cluster.existing)} that are there and bought ones"
        parts.append("bought ones of one model that NICs fit")
        if self.sides > 1:
            parts.append("the two sides of every HB domain on switches of their own")
        if not alike and self.block_words:
            parts.append(self.block_words)
        if any(
            part.pattern == "any"
            for phase in self.traffic.network_phases
            for step in phase.steps
            for part in step.components
        ):
            parts.append("any permutation over the same routes")
        if any(mode.ports > 1 for mode in self.modes):
            parts.append("planes alike")
        return ", ".join(parts)

    def _alike(self, limits: Limits, below_cents: float, report: Report) -> PlacementProposal:
        state = _State(below_cents, report)
        began = time.monotonic()
        searches = [(mode, self._profiles(mode, switch)) for mode in self.modes for switch in self.switches]
        searches.sort(key=lambda item: item[0].ports * item[1].least_cents)
        for mode, search in searches:
            if state.closes(mode.ports * search.least_cents):
                break
            if state.ended(mode.ports * search.least_cents):
                continue
            rest = _rest(limits, began)
            found = search.run(rest, state.upper / mode.ports, state.teller(mode, mode.ports * search.least_cents))
            if found.problem is not None and found.placement is not None:
                state.take(mode, found.problem, found.placement)
            state.note(found.termination, mode.ports * found.bound_cents)
        return state.proposal(self.instance, self._words(alike=True))

    def _profiles(self, mode: NicMode, switch: Switch) -> ProfileSearch:
        nic, scale = self.instance.cluster.nic, self.factor or 1.0
        return ProfileSearch(
            AlikeEndpoints(self.traffic, nic, mode, switch, self.finder, self.survivals, scale), self.solver
        )

    def _blocks(self, limits: Limits, below_cents: float, report: Report) -> PlacementProposal:
        """Every choice gets a little time, those that are still open four times as much, and so on.

        So a network that one of them has cuts the others short, wherever in the order it stands.
        """
        state, began, slice_s = _State(below_cents, report), time.monotonic(), FIRST_SLICE_S
        pending = [choice for choice in self._choices() if choice.count <= MOST_SWITCHES]
        state.leave(min((item.least_cents for item in self._choices() if item.count > MOST_SWITCHES), default=INF))
        while pending:
            again: list[_Choice] = []
            for choice in sorted(pending, key=lambda item: (item.least_cents, self._bought_cents(item))):
                if state.closes(choice.least_cents) or state.ended(choice.least_cents):
                    continue
                rest = _rest(limits, began)
                if rest.time_limit_s <= 0 or rest.should_stop():
                    state.note("time_limit" if rest.time_limit_s <= 0 else "interrupted", choice.least_cents)
                    continue
                bound = self._try(choice, replace(rest, time_limit_s=min(slice_s, rest.time_limit_s)), state)
                if bound is not None:
                    again.append(replace(choice, least_cents=max(choice.least_cents, bound)))
            pending, slice_s = again, 4 * slice_s
        return state.proposal(self.instance, self._words(alike=False))

    def _try(self, choice: _Choice, limits: SolveLimits, state: _State) -> float | None:
        """One program for some seconds; its bound where it is still open then."""
        problem = self._problem(choice)
        if problem is None:
            return None
        planes, tell = choice.mode.ports, state.teller(choice.mode, choice.least_cents)

        def tell_usd(cost: float | None, bound: float | None) -> None:
            tell(None if cost is None else 100 * cost, None if bound is None else 100 * bound)

        below = state.upper / planes
        found = solve_placement(problem, limits, below_cents=below, solver=self.solver, progress=tell_usd)
        if found.placement is not None:
            state.take(choice.mode, problem, found.placement)
        if found.termination in ("optimal", "infeasible"):
            return None
        if found.termination == "gap":
            state.note("gap", max(choice.least_cents, planes * found.bound_cents))
            return None
        return planes * found.bound_cents

    def _choices(self) -> Iterator[_Choice]:
        """Numbers of switches to buy, of each model; one more than `MOST_SWITCHES` stands for all above."""
        least = self._least_cents()
        for mode in self.modes:
            if self.instance.cluster.existing:
                yield _Choice(mode, None, 0, max(least, self._host_cents(mode, None)))
            for switch in self.switches:
                if not self._room_for_others(mode, switch):
                    continue
                cents = self.pricing.switch_cents(switch)
                hosts = self._host_cents(mode, switch)
                for count in range(1, MOST_SWITCHES + 2):
                    yield _Choice(mode, switch, count, max(least, mode.ports * count * cents + hosts))

    def _bought_cents(self, choice: _Choice) -> int:
        return 0 if choice.switch is None else choice.count * self.pricing.switch_cents(choice.switch)

    def _room_for_others(self, mode: NicMode, bought: Switch) -> bool:
        """Whether the switches that are there could hold what the bought ones, however many, cannot."""
        cluster, unfit = self.instance.cluster, 0
        for kind in cluster.kinds():
            own = one_port(kind.nic.modes) if cluster.irregular else mode
            if self.finder.host(kind.nic, own, bought) is None:
                unfit += kind.count * kind.gpus
        room = sum(
            item.free_ports
            * max(port.ports_per_cage for port in item.switch.modes)
            // item.switch.native_mode.ports_per_cage
            for item in cluster.existing
        )
        return unfit <= room

    def _host_cents(self, mode: NicMode, bought: Switch | None) -> float:
        """The least that joining all endpoints to the switches of a choice costs, cages shared by full ones."""
        cluster, total = self.instance.cluster, 0.0
        places = [item.switch for item in cluster.existing] + ([] if bought is None else [bought])
        for kind in cluster.kinds():
            own = one_port(kind.nic.modes) if cluster.irregular else mode
            found = [
                own.ports * float(host.cents + Fraction(host.end.cage_cents, host.end.per_cage))
                for switch in places
                if (host := self.finder.host(kind.nic, own, switch)) is not None
            ]
            total += kind.count * kind.gpus * min(found, default=0.0)
        return total

    def problem(self, mode: NicMode, bought: Mapping[Switch, int]) -> PlacementProblem | None:
        """The problem of placing all endpoints on so many bought switches and those that are there.

        None where some endpoints fit none of them.
        """
        one = _Choice(mode, *next(iter(bought.items())), 0.0) if len(bought) == 1 else _Choice(mode, None, 0, 0.0)
        return self._problem_of(one, list(bought.items()))

    def _problem(self, choice: _Choice) -> PlacementProblem | None:
        """The placement problem of a choice; None where some endpoints fit none of its switches."""
        return self._problem_of(choice, [] if choice.switch is None else [(choice.switch, choice.count)])

    def _problem_of(self, choice: _Choice, switches: list[tuple[Switch, int]]) -> PlacementProblem | None:
        cluster = self.instance.cluster
        owned = tuple(
            Slot(item.switch, 0, number, item.name, item.free_ports) for number, item in enumerate(cluster.existing)
        )
        bought: tuple[Slot, ...] = ()
        for number, (switch, count) in enumerate(switches):
            bought += (Slot(switch, self.pricing.switch_cents(switch), len(owned) + number),) * count
        slots = owned + bought
        room = max(min(slot.port_room, slot.cages * 4) for slot in slots)
        blocks, block_of_gpu, self.block_words = blocks_of(self.instance, self.traffic, choice.mode, self.sides, room)
        demands = tuple(block_demands(self.traffic, block_of_gpu, line_rates(self.instance, choice.mode)))
        leaders = with_alike(blocks, demands)
        blocks = tuple(replace(block, alike=leader) for block, leader in zip(blocks, leaders, strict=True))
        hosts, links = offered(self.finder, slots, blocks)
        if any(all((b, s) not in hosts for s in range(len(slots))) for b in range(len(blocks))):
            return None
        scaled = tuple(demand.at(self.factor or 1.0) for demand in demands)
        return PlacementProblem(
            slots,
            blocks,
            scaled,
            hosts,
            links,
            self.survivals,
            self.sides,
            self._crossing(choice),
            int(choice.least_cents) // choice.mode.ports,
            all_bought=True,
        )

    def _crossing(self, choice: _Choice) -> float:
        """Gb/s that a switch sends out for each of its endpoint ports, at least; only where all NICs are one kind."""
        cluster = self.instance.cluster
        if cluster.irregular or cluster.existing or choice.switch is None:
            return 0.0
        most = min(cluster.gpus, choice.switch.max_ports)
        need = least_need(self.traffic, choice.mode.ports, most) * choice.mode.gbps * choice.mode.ports
        return float((need[1:] / np.arange(1, most + 1)).min())

    def _least_cents(self) -> int:
        """The bound over any network."""
        return any_network_bound(self.instance, self.traffic, self.pricing, self.media).cents or 0


def _survival(instance: Instance, traffic: Traffic) -> tuple[float | None, tuple[Survival, ...], int]:
    """What failures ask: a factor on all intact demands, failures with flows of their own, and sides of the HB domains.

    What a NIC or a whole side of its domain no longer carries, the others carry on their rails, on top of their own:
    twice as much with one relay, K/(K - lost) spread. At `throughput` of the floors that is no more than the intact
    network must carry, scaled by the factor where it exceeds 1. The factor is None where NICs cannot carry it.
    """
    requirements, domain, rails = instance.requirements, traffic.hb_domain, traffic.rails
    factor, found, sides = 1.0, list[Survival](), 1
    highest = max((phase.floor for phase in traffic.network_phases), default=0.0)
    for item in requirements.survive:
        if item.failure == "link":
            found.append(Survival("link", item.throughput))
            continue
        if domain < 2 or (item.failure == "switch" and rails < 2):
            return None, (), 1
        lost = domain - rails // 2 * (domain // rails) if item.failure == "switch" else 1
        load = domain / (domain - lost) if requirements.detour == "spread" else 1 + math.ceil(lost / (domain - lost))
        if load * item.throughput * highest > 1 + SLACK:
            return None, (), 1
        factor = max(factor, load * item.throughput)
        if item.failure == "switch":
            found.append(Survival("switch", item.throughput))
            sides = 2
    return factor, tuple(found), sides


def _network(instance: Instance, problem: PlacementProblem, placement: Placement, planes: int) -> PlacedNetwork:
    """The placement as a network to be drawn, without the slots that it does not use."""
    cabling, used = instance.cabling, placement.used(problem)
    number = {slot: place for place, slot in enumerate(used)}
    hosts: list[PlacedHosts] = []
    homes: list[int] = placement.slot_of_block.tolist()
    for block, slot in sorted(enumerate(homes), key=lambda item: (item[1], item[0])):
        kind, item = problem.host_kinds[block, slot], problem.blocks[block]
        hosts.append(
            PlacedHosts(number[slot], item.gpus, item.nic, item.mode, kind.end.per_cage, kind.medium, cabling.host_m)
        )
    links: list[PlacedLinks] = []
    for (one, other), counts in sorted(placement.links.items()):
        for kind, count in zip(problem.link_kinds[one, other], counts, strict=True):
            if count:
                ends = kind.lower.per_cage, kind.upper.per_cage
                links.append(
                    PlacedLinks(number[one], number[other], count, kind.gbps, *ends, kind.medium, cabling.leaf_spine_m)
                )
    switches = tuple(
        PlacedSwitch(slot.switch, slot.name, slot.free_ports) for slot in (problem.slots[at] for at in used)
    )
    return PlacedNetwork(instance.cluster.gpus, instance.cluster.rails, planes, switches, tuple(hosts), tuple(links))


def _rest(limits: Limits, began: float) -> SolveLimits:
    left = limits.time_limit_s - (time.monotonic() - began)
    return SolveLimits(max(left, 0.0), limits.gap, limits.seed, limits.should_stop)


def _whole(cents: float) -> int | None:
    return round(cents) if math.isfinite(cents) else None
