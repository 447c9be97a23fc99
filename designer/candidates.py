"""What each family of networks has to offer an instance: its cheapest network, drawn and priced, with its bound.

Nothing is taken from a solver on trust: every proposal is drawn, and the bill counted from the drawing must equal the
objective to the cent.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from designer.certify.certificate import EXACT, PhaseResult
from designer.certify.run import certify_throughput
from designer.certify.throughput import Judge, certify_phases
from designer.comparison import Compared, TemplateDesign
from designer.costing.bill import Bill, bill_of_materials
from designer.costing.pricing import MediaFinder, Pricing, cost_parts
from designer.errors import DesignerError
from designer.fabric.build import build_clos
from designer.fabric.fabric import Fabric
from designer.fabric.placed import build_placement
from designer.fabric.shape import ClosShape
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.grid import GridSearch
from designer.formulation.mesh import MeshSearch
from designer.formulation.mixed_search import MixedSearch
from designer.formulation.placement_search import PlacementSearch, inapplicable
from designer.formulation.solvers import solver_named
from designer.formulation.step_budget import Enough, StepBudget, required, rounded_down, with_floors
from designer.formulation.tiles import TilesSearch
from designer.instance.instance import DirectDemand, Instance
from designer.layout.floor import Places
from designer.rewiring.rewired import Rewired
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Traffic

CLOS, GRID, MESH, TILES, PLACEMENT, MIXED = "clos", "grid", "mesh", "tiled-planes", "link-placement", "mixed-clos"
SAME_SERVERS = (CLOS, GRID, MESH, TILES)  # for clusters whose servers are all alike
GRID_WORDS = "grids: row and column switches of one model in a complete bipartite graph, two NIC ports a GPU"
MESH_WORDS = "meshes: leaves of one model and mode joined each with each by equal bundles, all fabrics alike"
TILES_WORDS = (
    "tiled planes: two planes of switches of one model and mode, the leaves of each serve blocks of ranks of their "
    "own, all alike, with equal uplinks over as few spines as can be or none"
)
CLOS_WORDS = "Clos networks of one switch model and mode per tier"
MIXED_WORDS = (
    "Clos networks of several kinds of servers: leaves of one model and mode for each kind, all kinds under the same "
    "spines by equal bundles, or one switch to a fabric; kinds that no phase joins also apart, each on a Clos network"
)
MESH_GPUS = 4096  # up to here meshes are tried without being asked: the certificate of each takes a second at most
SMALL_GPUS = 128  # up to here link placement is tried beside the Clos networks without being asked
BESIDE_S = 5.0  # how long, where the user sets no limit
LISTED_S = 30.0  # how long listed families propose, where the user sets no limit
EXISTING_S = 30.0  # the same where switches are there already
ALONE_S = 60.0  # the same where it is all there is
OPEN = "open"  # the certificate does not decide whether some cheaper network carries enough
SOLVER_WORDS = {"highs": "HiGHS", "scip": "SCIP", "cbc": "CBC"}
Report = Callable[[int | None, int | None], None]


class SearchError(DesignerError):
    """The search contradicts itself: a bug of this package."""


class FamilyError(DesignerError):
    """A family is asked for whose networks cannot serve the cluster."""

    exit_code = 3


@dataclass(frozen=True)
class Drawn:
    """A network with its bill, its shape where it is a Clos, and where its switches stand if it has a floor.

    Beside a network that is there it knows what stays of that (`rewired`).
    """

    shape: ClosShape | None
    fabric: Fabric
    bill: Bill
    compared: Compared
    places: Places | None = None
    rewired: Rewired | None = None


@dataclass(frozen=True)
class Candidate:
    """What a family offers: `drawn` is None where it found nothing; no network of `words` costs less than the bound.

    `bound_cents` is infinite where none exists. `termination` is the search's own word. `instance` has the floors that
    were chosen for this network within a budget of step time, where there is one.
    """

    family: str
    words: str
    solver: str
    drawn: Drawn | None
    bound_cents: float
    termination: str
    instance: Instance | None = None

    @property
    def cost_cents(self) -> float:
        """Cost of what was found; infinite without."""
        return math.inf if self.drawn is None else self.drawn.bill.total_cents


def families_of(instance: Instance, asked: tuple[str, ...] | None, traffic: Traffic) -> tuple[str, ...]:
    """The families to search: those asked for, else those that suit the instance.

    Where servers differ, networks with leaves for each kind, and link placement where it applies. Else Clos networks,
    and beside them link placement where switches are there already or the cluster is small and the search section pins
    no part of a Clos; grids where NICs have two ports, and tiled planes where the step time has a budget, too; meshes
    up to some thousand GPUs, where nothing is pinned; none of these where `any` is demanded outright.

    Raises:
        FamilyError: networks of servers that are all alike are asked for, and they differ, or the other way round.
    """
    chosen = asked or (tuple(instance.search.families) if instance.search.families is not None else None)
    if chosen is not None:
        _refuse_unfit(instance, chosen)
        return chosen
    placement = (PLACEMENT,) if inapplicable(instance, traffic) is None else ()
    if instance.cluster.irregular:
        # With management ports link placement says that it knows none.
        return (PLACEMENT,) if instance.cluster.management_ports else (MIXED, *placement)
    return (*_shaped(instance), *placement) if _placed(instance) else _shaped(instance)


def _refuse_unfit(instance: Instance, chosen: tuple[str, ...]) -> None:
    """Raises FamilyError where a family cannot serve the cluster."""
    cluster = instance.cluster
    same = [family for family in chosen if family in SAME_SERVERS]
    if cluster.irregular and same:
        found = f"the families {', '.join(same)} for servers of several kinds"
        allowed = f"{MIXED}, which are Clos networks for these, and {PLACEMENT}; the others serve servers all alike"
    elif MIXED in chosen and not cluster.irregular:
        found = f"the family {MIXED} for servers that are all alike"
        allowed = f"{', '.join(SAME_SERVERS)}, {PLACEMENT}"
    elif MIXED in chosen and cluster.management_ports:
        found = f"the family {MIXED} with {cluster.management_ports} management ports"
        allowed = f"no cluster.management_ports; {CLOS} knows them, where servers are all alike"
    else:
        return
    raise FamilyError(f"{instance.name}: search.families: found {found}; allowed: {allowed}")


def _shaped(instance: Instance) -> tuple[str, ...]:
    """The families with a shape that suit servers all alike."""
    cluster = instance.cluster
    # `any` on networks that are no Clos is judged by large programs, and seldom met: asked for only.
    stated = any(isinstance(item, DirectDemand) and item.demand == "any" for item in instance.workload)
    if cluster.existing or cluster.management_ports or stated:
        return (CLOS,)
    grids = (GRID,) if any(mode.ports == 2 for mode in cluster.nic.modes) else ()
    meshes = (MESH,) if cluster.gpus <= MESH_GPUS and not _pinned(instance) else ()
    slower = grids and instance.requirements.max_step_overhead is not None and not _pinned(instance)
    return (CLOS, *grids, *meshes, *((TILES,) if slower else ()))


def _pinned(instance: Instance) -> bool:
    """Whether the search section fixes a part of a Clos."""
    search = instance.search
    return search.leaf.down is not None or search.leaf.up is not None or search.max_tiers < 3


def _placed(instance: Instance) -> bool:
    """Whether link placement is tried beside a Clos without being asked for."""
    small = instance.cluster.gpus <= SMALL_GPUS and not _pinned(instance)
    return bool(instance.cluster.existing) or (small and instance.requirements.routing == "adaptive")


def mixed_candidate(
    instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder, limits: Limits, report: Report
) -> Candidate:
    """The cheapest networks whose leaves serve one kind of servers each."""

    def stands(fabric: Fabric, own: Instance, sent: Traffic) -> bool:
        return carries(fabric, own, sent, Judge()) is True

    proposal = MixedSearch(instance, traffic, pricing, media, stands).run(limits, report)
    words, solver = mixed_words(instance), "tables of leaves and OR-Tools CP-SAT"
    if proposal.network is None:
        return Candidate(MIXED, words, solver, None, proposal.bound_cents, proposal.termination)
    fabric = proposal.network.draw()
    bill = _priced(instance, pricing, fabric, proposal.network.cents)
    compared = Compared(bill.total_cents, proposal.network.parts, fabric.counts(), None, None)
    drawn = Drawn(None, fabric, bill, compared)
    return Candidate(MIXED, words, solver, drawn, proposal.bound_cents, proposal.termination)


def clos_candidate(
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    media: MediaFinder,
    known: list[TemplateDesign],
    limits: Limits,
    report: Report,
) -> Candidate:
    """The cheapest Clos network, started from the cheapest template that meets the requirements.

    Raises:
        SearchError: a template that the search could have found is cheaper.
    """
    meeting = [item for item in known if item.meets and isinstance(item.shape, ClosShape)]
    best = min(meeting, key=lambda item: item.cost_cents, default=None)
    start = best.shape if best is not None and isinstance(best.shape, ClosShape) else None
    proposal = ClosSearch(instance, traffic, pricing, media, required(instance, traffic)).run(limits, start, report)
    words, solver = clos_words(instance), "OR-Tools CP-SAT"
    if proposal.shape is None:
        return Candidate(
            CLOS, words, solver, None, _bound(proposal.bound_cents, proposal.termination), proposal.termination
        )
    fabric = build_clos(proposal.shape)
    bill = _priced(instance, pricing, fabric, proposal.cost_cents)
    for item in known:
        if item.meets and item.in_family and item.cost_cents < bill.total_cents:
            raise SearchError(f"template {item.name} costs {item.cost_cents} cents, the design {bill.total_cents}")
    compared = Compared(
        bill.total_cents,
        cost_parts(proposal.shape, pricing),
        proposal.shape.counts(),
        proposal.shape.leaf.switch,
        proposal.shape,
    )
    drawn = Drawn(proposal.shape, fabric, bill, compared)
    return Candidate(CLOS, words, solver, drawn, proposal.bound_cents or 0, proposal.termination)


def _bound(bound_cents: int | None, termination: str) -> float:
    return math.inf if termination == "infeasible" else float(bound_cents or 0)


def placement_candidate(
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    media: MediaFinder,
    below_cents: float,
    limits: Limits,
    report: Report,
    solver: str | None = None,
) -> Candidate:
    """The cheapest link placement that costs less than `below_cents`, where there is one.

    Without a time limit it searches for a minute; beside another family, where servers are all alike, for half of it
    where switches are there already, else for some seconds.

    Raises:
        NoPlacementError: link placement does not apply.
        SolverError: the solver is not there.
    """
    if math.isinf(limits.time_limit_s):
        beside = EXISTING_S if instance.cluster.existing else BESIDE_S
        alone = math.isinf(below_cents) or instance.cluster.irregular
        limits = replace(limits, time_limit_s=ALONE_S if alone else beside)
    began = time.monotonic()

    def tell(cost: int | None, bound: int | None) -> None:
        report(cost, bound if bound is None or math.isinf(below_cents) else min(bound, int(below_cents)))

    used = solver_named(solver or "highs")
    proposal = PlacementSearch(instance, traffic, pricing, media, used).run(limits, below_cents, tell)
    words, name = proposal.words, f"{SOLVER_WORDS.get(used.name, used.name)} ({time.monotonic() - began:.1f} s)"
    if proposal.network is None:
        return Candidate(PLACEMENT, words, name, None, proposal.bound_cents, proposal.termination)
    fabric = build_placement(proposal.network)
    bill = _priced(instance, pricing, fabric, proposal.cost_cents)
    compared = Compared(bill.total_cents, bill_parts(bill), fabric.counts(), None, None)
    return Candidate(
        PLACEMENT,
        words,
        name,
        Drawn(None, fabric, bill, compared),
        proposal.bound_cents,
        proposal.termination,
    )


class Priced(Protocol):
    """A network of a family with what it costs in cents, in all and by part."""

    @property
    def cents(self) -> int:
        """The objective."""
        ...

    @property
    def parts(self) -> dict[str, int]:
        """The objective by what it is for."""
        ...

    def draw(self) -> Fabric:
        """The network link by link."""
        ...


class Search(Protocol):
    """The networks of a family in the order of their cost."""

    def cheapest(self) -> Priced | None:
        """The cheapest one that is left; None where there is none."""
        ...

    def refuse(self) -> None:
        """Takes the cheapest one out, and with it what carries no more than it."""
        ...


@dataclass(frozen=True)
class Listed:
    """A family whose networks are listed by cost, for the certificate to judge one after the other."""

    name: str
    words: str
    search: Callable[[Instance, Traffic, Pricing, MediaFinder, Enough | None], Search]


LISTED = (
    Listed(GRID, GRID_WORDS, GridSearch),
    Listed(MESH, MESH_WORDS, MeshSearch),
    Listed(TILES, TILES_WORDS, TilesSearch),
)


def listed_candidate(
    family: Listed,
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    media: MediaFinder,
    below_cents: float,
    limits: Limits,
    report: Report,
    budget: StepBudget | None = None,
) -> Candidate:
    """The cheapest network of a listed family that costs less than `below_cents`: propose, certify, cut, propose again.

    The certificate decides of each proposal whether it carries the floors, and stands the failures asked for; with a
    `budget`, whether a step is within it at the rates that the network carries, which become its floors. Where it
    leaves that open, the bound stays at what that network costs.
    """
    began, judge = time.monotonic(), Judge()
    if math.isinf(limits.time_limit_s):
        limits = replace(limits, time_limit_s=LISTED_S)
    search = family.search(instance, traffic, pricing, media, None if budget is None else budget.within)
    open_bound = math.inf

    def offer(drawn: Drawn | None, bound_cents: float, ended: str, own: Instance | None = None) -> Candidate:
        return Candidate(family.name, family.words, "enumeration and certificate", drawn, bound_cents, ended, own)

    while (priced := search.cheapest()) is not None and priced.cents < below_cents:
        report(None if math.isinf(below_cents) else int(below_cents), int(min(priced.cents, open_bound)))
        if time.monotonic() - began > limits.time_limit_s or limits.should_stop():
            ended = "interrupted" if limits.should_stop() else "time_limit"
            return offer(None, min(priced.cents, open_bound), ended)
        fabric = priced.draw()
        own: Instance | None = None
        if budget is None:
            carried = carries(fabric, instance, traffic, judge)
        else:
            carried, own = within_budget(fabric, instance, traffic, judge, budget)
        if carried:
            bill = _priced(instance, pricing, fabric, priced.cents)
            drawn = Drawn(None, fabric, bill, Compared(bill.total_cents, priced.parts, fabric.counts(), None, None))
            ended = "optimal" if open_bound >= priced.cents else OPEN
            return offer(drawn, min(open_bound, priced.cents), ended, own)
        if carried is None:
            open_bound = min(open_bound, priced.cents)
        search.refuse()
    left = math.inf if priced is None else priced.cents
    if math.isinf(min(open_bound, left)):
        return offer(None, math.inf, "infeasible")
    return offer(None, min(open_bound, left), "optimal" if open_bound >= left else OPEN)


def carries(fabric: Fabric, instance: Instance, traffic: Traffic, judge: Judge) -> bool | None:
    """Whether a network carries every step at its floor and stands the failures asked for; None where that is open."""
    short = [item for item in _step_results(fabric, instance, traffic, judge) if not item.met]
    if short:
        return None if all(item.interval.upper >= item.required - EXACT for item in short) else False
    return _stands(fabric, instance, traffic)


def within_budget(
    fabric: Fabric, instance: Instance, traffic: Traffic, judge: Judge, budget: StepBudget
) -> tuple[bool | None, Instance]:
    """Whether a step is within the budget at what a network carries; None where that is open.

    Also the instance with what is carried as its floors, for which failures are looked at.
    """
    adaptive = instance.requirements.routing == "adaptive"
    found = iter(_step_results(fabric, instance, traffic, judge))
    by_phase = [[next(found).interval for _ in phase.steps] for phase in traffic.network_phases]
    rates = [[interval.lower if adaptive else interval.ecmp or 0.0 for interval in row] for row in by_phase]
    floors = {phase.name: rounded_down(min(row)) for phase, row in zip(traffic.network_phases, rates, strict=True)}
    own = with_floors(instance, floors, budget.share)
    if budget.within(rates):
        return _stands(fabric, own, derive_traffic(own)), own
    return None if budget.within([[interval.upper for interval in row] for row in by_phase]) else False, own


def _step_results(fabric: Fabric, instance: Instance, traffic: Traffic, judge: Judge) -> tuple[PhaseResult, ...]:
    """A result for every step: a phase's throughput is a mean over its steps, a floor is meant for each of them."""
    steps = tuple(replace(phase, steps=(step,)) for phase in traffic.network_phases for step in phase.steps)
    alone = replace(traffic, phases=steps)
    return certify_phases(fabric, alone, instance.requirements, judge, instance.cluster.scale_up_gbps)


def _stands(fabric: Fabric, instance: Instance, traffic: Traffic) -> bool | None:
    """Whether a network stands the failures asked for; None where that is open."""
    if not instance.requirements.survive:
        return True
    failures = certify_throughput(fabric, traffic, instance.requirements, instance.cluster.scale_up_gbps)[1]
    lost = [failure for failure in failures if not failure.met]
    if not lost:
        return True
    return None if all(item.upper >= (item.required or 0.0) - EXACT for item in lost) else False


def bill_parts(bill: Bill) -> dict[str, int]:
    """The bill by what it is for: switches, host links, links between switches."""
    parts = {"leaf": 0, "host": 0, "leaf_leaf": 0}
    for line in bill.lines:
        parts[line.used_for.replace("-", "_")] += line.total_cents
    return parts


def _priced(instance: Instance, pricing: Pricing, fabric: Fabric, cost_cents: int | None) -> Bill:
    bill = bill_of_materials(fabric, instance.catalog, pricing)
    if bill.total_cents != cost_cents:
        raise SearchError(f"the bill says {bill.total_cents} cents, the program {cost_cents}")
    return bill


def clos_words(instance: Instance) -> str:
    """In words, the Clos networks that the bound of a design speaks of."""
    parts = [CLOS_WORDS, f"up to {instance.search.max_tiers} tiers"]
    parts.append("uniform bundles" if instance.requirements.symmetric_uplinks else "bundles that differ by one link")
    return ", ".join([*parts, *_search_words(instance)])


def mixed_words(instance: Instance) -> str:
    """In words, the networks of several kinds of servers that the bound of a design speaks of."""
    cluster, tiers = instance.cluster, f"of up to {instance.search.max_tiers} tiers"
    parts = [f"{MIXED_WORDS} {tiers}", *_search_words(instance)]
    if cluster.existing:
        parts.append(f"all switches bought, the {len(cluster.existing)} that are there left alone")
    return ", ".join(parts)


def _search_words(instance: Instance) -> list[str]:
    search = instance.search
    parts = [
        {"none": "a rail to a leaf", "whole-rails": "whole rails on a leaf", "any": "rails mixed on leaves"}[
            search.leaf_sharing
        ]
    ]
    if search.switches:
        parts.append(f"switches {', '.join(search.switches)}")
    if search.protocols:
        parts.append("/".join(search.protocols))
    if instance.requirements.max_step_overhead is not None:
        parts.append("carrying the floors that were chosen for the step time")
    return parts
