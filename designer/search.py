"""From an instance to its cheapest network: templates, what each family offers, the design and its certificate."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from designer.candidates import (
    CLOS,
    LISTED,
    MIXED,
    OPEN,
    PLACEMENT,
    TILES,
    Candidate,
    FamilyError,
    SearchError,
    clos_candidate,
    families_of,
    listed_candidate,
    mixed_candidate,
    placement_candidate,
)
from designer.certify.certificate import EXACT, Certificate
from designer.certify.read_design import design_from_document
from designer.certify.verify import certificate_of, routing_of, structure_of, throughput_of
from designer.comparison import TemplateDesign, best_templates, comparison_rows
from designer.costing.pricing import MediaFinder, Pricing
from designer.costing.training import COST_OF_TRAINING, TrainingCost, lost_cents
from designer.errors import NoDesignError
from designer.fabric.fabric import Fabric
from designer.fabric.routes import routing_document
from designer.formulation.bounds import any_network_bound
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.infeasible import explain_infeasible
from designer.formulation.mixed_search import MixedSearch
from designer.formulation.placement_search import PlacementSearch, inapplicable
from designer.formulation.routing import route
from designer.formulation.step_budget import StepBudget, WithinBudget, carried_by, given_by, with_floors
from designer.formulation.switch_rates import RoutingError
from designer.formulation.training_cost import clos_trade
from designer.instance.existing import ExistingNetwork
from designer.instance.instance import Instance
from designer.layout.fitting import any_network_on_floor, on_floor, templates_on_floor
from designer.layout.shortest import with_typical_lengths
from designer.result import Design, FamilyResult, Provenance
from designer.rewiring.offers import BESIDE_FAMILIES, LINKS, Beside, plugged_by
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Traffic

NO_RATE = 1e-9  # stands for a throughput of 0, of which a step would never end
EXPLAIN_S = 20.0  # for each question whether a network exists
Progress = Callable[[float, int | None, int | None], None]


@dataclass(frozen=True)
class Options:
    """How to search, and what to certify.

    `progress` is called with seconds, best cost and bound in cents, `checking` with what the certificate looks at;
    `should_stop` ends the search. `pairs` certifies pairs of failures, too; without `certify` there is no certificate.
    `families` are those to search in place of the instance's. `solver` solves link placements; HiGHS by default.
    """

    time_limit_s: float = math.inf
    gap: float = 0.0
    threads: int = 1
    seed: int = 0
    progress: Progress | None = None
    should_stop: Callable[[], bool] = field(default=lambda: False)
    certify: bool = True
    pairs: bool = False
    checking: Callable[[str], None] | None = None
    families: tuple[str, ...] | None = None
    solver: str | None = None


class _StoppedError(Exception):
    """The certificate is not wanted any more."""


def templates(instance: Instance) -> list[TemplateDesign]:
    """The known topologies on the instance's catalog, each in its cheapest variant that meets it, else its cheapest."""
    instance, pricing = with_typical_lengths(instance), Pricing(instance.objective, instance.energy)
    return templates_on_floor(instance, pricing, best_templates(instance, derive_traffic(instance), pricing))


def design(instance: Instance, options: Options | None = None) -> Design:
    """The cheapest network of the searched families that meets the instance, with its bound and its certificate.

    Where `should_stop` comes true before the certificate is finished, the design has none. A cheaper network whose
    certificate falls short gives way to the next one.

    Raises:
        InfeasibleError: proven that none exists; names the constraints that clash.
        NoDesignError: a limit was hit before any was found.
        NoPlacementError: link placement is asked for, and does not apply.
        FamilyError: a family is asked for that does not serve the cluster's servers.
    """
    options = options or Options()
    started = time.monotonic()
    instance, pricing = with_typical_lengths(instance), Pricing(instance.objective, instance.energy)
    media = MediaFinder(instance.catalog)
    least_cents: float | None = None
    given = bool(instance.requirements.throughput)
    if instance.objective == COST_OF_TRAINING and not given:
        instance, least_cents = with_best_trade(instance, pricing, media, options)
    elif instance.requirements.max_step_overhead is not None:
        instance = with_chosen_floors(instance, pricing, media, options)
    traffic = derive_traffic(instance)
    budget = None if given else budget_of(instance, traffic)
    known = [] if instance.cluster.irregular else best_templates(instance, traffic, pricing, media)
    if instance.existing is None:
        found = _candidates(instance, traffic, pricing, media, known, options, started, budget)
    else:
        fresh = partial(_candidates, instance, traffic, pricing, media, known, options, started, budget)
        known, pricing, media = _beside(instance.existing, known, instance)
        found = _beside_existing(instance, traffic, pricing, media, fresh, options, started)
        known, pricing, media = _beside(instance.existing, known, instance)
        found = _beside_existing(instance, traffic, pricing, media, fresh, options, started)
    if instance.layout is not None:
        found, known = on_floor(instance, traffic, pricing, found, known, _limits(options, started))
    offers = sorted((item for item in found if item.drawn is not None), key=_order)
    if not offers:
        ended = next((item.termination for item in found if item.termination != "infeasible"), None)
        if ended is not None:
            what = {
                "time_limit": "before the time limit was hit",
                "interrupted": "before the search was interrupted",
                "size_limit": "with as many switches as are looked at",
                OPEN: "whose certificate says that it carries enough",
                LINKS: "that moves no more links than one bought anew would have",
            }
            raise NoDesignError(f"no design found {what.get(ended, ended)}")
        instance = replace(instance, existing=None)
        families = families_of(instance, options.families, traffic)
        raise explain_infeasible(instance, traffic, options.should_stop, partial(_any_network, families=families))
    # Any network within a budget carries the least rates at least; other floors are those of one network.
    least = instance if budget is None else with_floors(instance, budget.least_rates(), budget.share)
    any_cents = any_network_on_floor(least, derive_traffic(least), pricing, media)
    results = [_design(instance, traffic, item, found, any_cents, known, options, started) for item in offers]
    return _with_training(_first_to_hold(results, options), least_cents)


def _order(item: Candidate) -> tuple[float, int]:
    """The cheapest first, of equal ones that which moves fewest links."""
    return item.cost_cents, 0 if item.drawn is None else plugged_by(item.drawn)


def _beside(
    existing: ExistingNetwork, known: list[TemplateDesign], instance: Instance
) -> tuple[list[TemplateDesign], Pricing, MediaFinder]:
    """Templates, prices and media beside a network that is there.

    A template bought anew is none of the networks searched where these may not buy switches or move links at will.
    """
    stock = existing.stock
    if not stock.new_switches or existing.most_links_moved is not None or existing.cents_per_link_moved:
        known = [replace(item, meets=item.meets and None, in_family=False) for item in known]
    pricing = Pricing(instance.objective, instance.energy, stock=stock)
    return known, pricing, MediaFinder(instance.catalog, keep=stock.keys)


def _beside_existing(
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    media: MediaFinder,
    fresh: Callable[[], list[Candidate]],
    options: Options,
    started: float,
) -> list[Candidate]:
    """What each family offers beside the network that is there; `fresh` finds networks bought anew."""

    def report(best_cents: int | None, bound_cents: int | None) -> None:
        if options.progress:
            options.progress(time.monotonic() - started, best_cents, bound_cents)

    families = families_of(instance, options.families, traffic)
    if not set(families) & set(BESIDE_FAMILIES):
        found = f"search.families: found {', '.join(families)} beside a network that is there"
        raise FamilyError(f"{instance.name}: {found}; allowed: {', '.join(BESIDE_FAMILIES)}")
    search = Beside(instance, traffic, pricing, media, _limits(options, started), report)
    return search.candidates(tuple(family for family in families if family in BESIDE_FAMILIES), fresh)


def _first_to_hold(results: list[Design], options: Options) -> Design:
    """The cheapest design that its certificate lets stand, else the cheapest."""
    if not options.certify:
        return results[0]
    first: Design | None = None
    for result in results:
        checked = _with_certificate(result, options)
        if checked.certificate is None or (checked.certificate.met and _within_budget(checked, checked.certificate)):
            return checked
        first = first or checked
    return first or results[0]


def budget_of(instance: Instance, traffic: Traffic) -> StepBudget | None:
    """The budget of step time of an instance; None where it has none."""
    share = instance.requirements.max_step_overhead
    return None if share is None else StepBudget(instance, traffic, share)


def with_chosen_floors(instance: Instance, pricing: Pricing, media: MediaFinder, options: Options) -> Instance:
    """The instance with the floors of the cheapest Clos network whose step time is within the budget.

    Where there is none within the limits it keeps full rates. Families whose networks the certificate judges are then
    searched for any floors within the budget, the others for the same.
    """
    share = instance.requirements.max_step_overhead
    if share is None or instance.requirements.throughput:
        return instance
    traffic = derive_traffic(instance)
    budget = StepBudget(instance, traffic, share)
    limits = Limits(options.time_limit_s, options.gap, options.threads, options.seed, options.should_stop)
    search = ClosSearch(instance, traffic, pricing, media, WithinBudget(budget))
    shape = search.run(limits).shape
    if shape is None:
        return instance
    return with_floors(instance, given_by(shape, traffic), share)


def with_best_trade(
    instance: Instance, pricing: Pricing, media: MediaFinder, options: Options
) -> tuple[Instance, float]:
    """The instance with floors of the least cost of training, and in cents what no Clos network comes to less than.

    Families whose networks the certificate judges are then searched for any floors that cost no more time, the others
    for the same.
    """
    traffic = derive_traffic(instance)
    limits = Limits(options.time_limit_s, options.gap, options.threads, options.seed, options.should_stop)
    trade = clos_trade(instance, traffic, pricing, media, lost_cents(1.0, instance), limits)
    if trade is None:
        return instance, 0.0
    return with_floors(instance, given_by(trade.shape, traffic), trade.overhead), trade.bound_cents


def _candidates(
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    media: MediaFinder,
    known: list[TemplateDesign],
    options: Options,
    started: float,
    budget: StepBudget | None,
) -> list[Candidate]:
    def report(best_cents: int | None, bound_cents: int | None) -> None:
        if options.progress:
            options.progress(time.monotonic() - started, best_cents, bound_cents)

    found: list[Candidate] = []
    families = families_of(instance, options.families, traffic)
    if CLOS in families:
        limits = Limits(options.time_limit_s, options.gap, options.threads, options.seed, options.should_stop)
        found.append(clos_candidate(instance, traffic, pricing, media, known, limits, report))
    if MIXED in families and not options.should_stop():
        found.append(mixed_candidate(instance, traffic, pricing, media, _limits(options, started), report))
    least = instance if budget is None else with_floors(instance, budget.least_rates(), budget.share)
    for family in LISTED:
        if family.name not in families or options.should_stop():
            continue
        below = min((item.cost_cents for item in found), default=math.inf)
        limits = _limits(options, started)
        loads = derive_traffic(least)
        found.append(listed_candidate(family, least, loads, pricing, media, below, limits, report, budget))
    if PLACEMENT in families and not options.should_stop():
        below = min((item.cost_cents for item in found), default=math.inf)
        any_cents = any_network_bound(instance, traffic, pricing, media).cents or 0
        if any_cents < below:  # else what was found is optimal among all networks
            limits = _limits(options, started)
            found.append(placement_candidate(instance, traffic, pricing, media, below, limits, report, options.solver))
    return found


def _limits(options: Options, started: float) -> Limits:
    """What is left of the limits."""
    left_s = max(0.0, options.time_limit_s - (time.monotonic() - started))
    return Limits(left_s, options.gap, options.threads, options.seed, options.should_stop)


def _any_network(instance: Instance, families: tuple[str, ...]) -> bool:
    """Whether any of the families has a network for the instance; a search that a limit ends counts as having none."""
    traffic, pricing = derive_traffic(instance), Pricing(instance.objective, instance.energy)
    media, limits = MediaFinder(instance.catalog), Limits(gap=1.0)
    if CLOS in families and ClosSearch(instance, traffic, pricing, media).run(limits, None).shape is not None:
        return True
    limits = replace(limits, time_limit_s=EXPLAIN_S)
    if MIXED in families and MixedSearch(instance, traffic, pricing, media).run(limits).network is not None:
        return True
    for family in LISTED:
        if family.name in families:
            found = listed_candidate(family, instance, traffic, pricing, media, math.inf, limits, _silent)
            if found.drawn is not None:
                return True
    if PLACEMENT not in families or inapplicable(instance, traffic):
        return False
    return PlacementSearch(instance, traffic, pricing, media).run(limits, math.inf, _silent).network is not None


def _silent(best_cents: int | None, bound_cents: int | None) -> None:
    """Nobody listens."""


def _with_certificate(result: Design, options: Options) -> Design:
    def tell(part: str) -> None:
        if options.should_stop():
            raise _StoppedError
        if options.checking:
            options.checking(part)

    try:
        return certified(result, pairs=options.pairs, progress=tell)
    except _StoppedError:
        return result


def _within_budget(design: Design, certificate: Certificate) -> bool:
    """Whether a step is within the budget of the requirements, at the proven throughput of every phase."""
    share = design.instance.requirements.max_step_overhead
    return share is None or _overhead(design, certificate) <= share + EXACT


def _overhead(design: Design, certificate: Certificate | None) -> float:
    """How much longer a step takes than at line rate; without a certificate by a Clos's uplinks, else by the floors."""
    if certificate is not None:
        carried = {phase.phase: max(phase.interval.lower, NO_RATE) for phase in certificate.phases}
    elif design.shape is not None:
        carried = carried_by(design.shape, design.traffic)
    else:
        carried = {phase.name: phase.floor for phase in design.traffic.network_phases}
    return max(0.0, StepBudget(design.instance, design.traffic, 0.0).overhead(carried))


def _with_training(design: Design, least_cents: float | None) -> Design:
    """The design with the time lost to it, where the objective counts that.

    No Clos network comes to less than `least_cents` with its own; without, the floors are given, and the design's bound
    speaks of the networks that carry them.
    """
    price = design.instance.gpu_price
    if design.objective != COST_OF_TRAINING or price is None:
        return design
    overhead = _overhead(design, design.certificate)
    lost = lost_cents(overhead, design.instance)
    total = design.cost_cents + lost
    # A total in whole cents is at most half a cent below what the bound speaks of.
    bound = design.bound_cents if least_cents is None else math.ceil(least_cents - 0.5 - 1e-6)
    if design.family == CLOS:
        bound = min(total, bound)
    return replace(design, training=TrainingCost(price.cents, price.assumed, overhead, lost, total, bound))


def certified(design: Design, *, pairs: bool = False, progress: Callable[[str], None] | None = None) -> Design:
    """The design with its certificate, computed from what its file would hold and from nothing else."""
    file = design_from_document(design.to_document())
    structure = structure_of(file)
    results = throughput_of(file, exhaustive=False, pairs=pairs, progress=progress)
    routed = routing_of(file) if structure.met else ()
    return replace(design, certificate=certificate_of(file, structure, results, routed))


def _design(
    instance: Instance,
    traffic: Traffic,
    chosen: Candidate,
    found: list[Candidate],
    any_cents: int | None,
    known: list[TemplateDesign],
    options: Options,
    started: float,
) -> Design:
    """The design of a candidate, with the bound of its own family; where a cheaper one exists, it is not its bound."""
    drawn = chosen.drawn
    if drawn is None:
        raise SearchError("a candidate without a network")
    if chosen.instance is not None:
        instance, traffic = chosen.instance, derive_traffic(chosen.instance)
    cost = drawn.bill.total_cents
    if any_cents is not None and drawn.rewired is not None and not drawn.rewired.moves.plugged:
        any_cents = min(any_cents, cost)  # a network that is there need not keep to what the search is restricted to
    if any_cents is not None and any_cents > cost:
        raise SearchError(f"the bound over any network says {any_cents} cents, the design costs {cost}")
    # The networks searched are some of all; a bound in fractions of a cent is rounded up to what a cost can be.
    bound = min(cost, max(math.ceil(chosen.bound_cents - 1e-6), any_cents or 0))
    provenance = Provenance(chosen.solver, chosen.termination, options.seed, time.monotonic() - started)
    families = tuple(
        FamilyResult(
            item.family,
            item.words,
            None if item.drawn is None else item.drawn.bill.total_cents,
            None if math.isinf(item.bound_cents) else math.floor(item.bound_cents),
            item.termination,
            item.solver,
        )
        for item in found
    )
    rows = comparison_rows(traffic, drawn.compared, known)
    result = Design.of(instance, traffic, drawn, bound, chosen.family, chosen.words, families, rows, provenance)
    return replace(result, any_topology_bound_cents=any_cents, routing=_routes(chosen, drawn.fabric, traffic))


def _routes(chosen: Candidate, fabric: Fabric, traffic: Traffic) -> dict[str, Any] | None:
    """Routes for a network without a shape, where even splitting over shortest paths may carry less than there is."""
    if chosen.family in (CLOS, MIXED, TILES):
        return None
    try:
        return routing_document(route(fabric, traffic))
    except RoutingError:
        return None
