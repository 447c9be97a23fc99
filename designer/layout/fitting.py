"""Networks of a search on the floor: switches placed, every cable of its own length, the bill counted again.

The search has one length for each class of links, typical of the floor. What it finds, what it would find at the
shortest lengths, and the templates that meet the requirements are then laid out, and the cheapest of them is taken.
Its bound is what the search says at least prices (`shortest.py`).
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

from designer.candidates import ALONE_S, BESIDE_S, CLOS, LISTED, MIXED, Candidate, Drawn
from designer.comparison import Compared, TemplateDesign
from designer.costing.bill import CABLE_SECTIONS, Bill, bill_of_materials
from designer.costing.pricing import MediaFinder, Pricing, with_media
from designer.errors import DesignerError
from designer.fabric.build import build_clos
from designer.fabric.fabric import Fabric
from designer.fabric.grid import GridShape, build_grid
from designer.fabric.shape import ClosShape
from designer.formulation.bounds import any_network_bound
from designer.formulation.clos_search import Limits, Proposal
from designer.formulation.mixed_search import MixedSearch
from designer.formulation.placement_search import PlacementSearch
from designer.instance.instance import Instance
from designer.layout.floor import Places
from designer.layout.floor_search import FloorSearch
from designer.layout.placing import place_switches
from designer.layout.recabling import NoCableError, recabled
from designer.layout.shortest import at_least
from designer.workload.traffic import Traffic

FLOOR = "floor"  # the search is done, and what is left of the gap comes from the floor
LIMITED = ("time_limit", "interrupted", "size_limit")
WORDS = ", placed and cabled in any way on the floor"


def any_network_on_floor(instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder) -> int | None:
    """What any network of the catalog's switches costs at least, on the floor where the instance has one."""
    if instance.layout is None:
        return any_network_bound(instance, traffic, pricing, media).cents
    least, prices, least_media = at_least(instance, pricing)
    return any_network_bound(least, traffic, prices, least_media).cents


class FloorError(DesignerError):
    """A network on the floor costs less than its bound: a bug of this package."""


@dataclass(frozen=True)
class LaidOut:
    """A fabric with a cable of its own length for every link, where its switches stand, and its bill."""

    fabric: Fabric
    places: Places
    bill: Bill


def lay_out(instance: Instance, pricing: Pricing, fabric: Fabric) -> LaidOut:
    """A fabric on the floor of the instance, which has a layout.

    Raises:
        InstanceError: a rack powers no switch.
        NoCableError: nothing in the catalog reaches far enough.
        ValueError: the instance has no layout.
    """
    if instance.layout is None:
        raise ValueError("an instance without a layout")
    catalog, cluster = instance.catalog, instance.cluster
    floor, places = place_switches(fabric, catalog, cluster, instance.layout, pricing)
    cabled = recabled(fabric, catalog, cluster, pricing, floor.link_needs_m(fabric, places))
    return LaidOut(cabled, places, bill_of_materials(cabled, catalog, pricing))


def templates_on_floor(instance: Instance, pricing: Pricing, known: list[TemplateDesign]) -> list[TemplateDesign]:
    """The templates at what they cost on the floor; as they are where there is none.

    Trees too tall to draw keep their price at typical lengths, templates that nothing can cable drop out.
    """
    if instance.layout is None:
        return known
    return [item for item, _ in _templates(instance, pricing, known)]


def on_floor(
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    found: list[Candidate],
    known: list[TemplateDesign],
    limits: Limits,
) -> tuple[list[Candidate], list[TemplateDesign]]:
    """What a search at typical lengths found, and the templates, laid out; bounds hold for any place and cable.

    Raises:
        NoCableError: no network was found that can be cabled.
        InstanceError: a rack powers no switch.
    """
    fitted = _templates(instance, pricing, known)
    meeting = [drawn for template, drawn in fitted if template.meets and drawn is not None]
    offers = [list(meeting) if item.family == CLOS else [] for item in found]
    failed: NoCableError | None = None
    for item, mine in zip(found, offers, strict=True):
        if item.drawn is not None:
            try:
                mine.append(_drawn(instance, pricing, item.drawn.shape, item.drawn.fabric))
            except NoCableError as error:
                failed = error
    below = max((min(map(_cost, mine)) for mine in offers if mine), default=math.inf)
    bounds = _Bounds(instance, traffic, pricing, limits, len(found), below)
    for item, mine in zip(found, offers, strict=True):
        if item.family == CLOS and (shape := bounds.clos_shape) is not None:
            try:
                mine.append(_drawn(instance, pricing, shape, build_clos(shape)))
            except NoCableError as error:
                failed = error
    if failed is not None and not any(offers):
        raise failed
    result = [
        _offer(item, min(mine, key=_cost, default=None), bounds) for item, mine in zip(found, offers, strict=True)
    ]
    return result, [template for template, _ in fitted]


def _cost(drawn: Drawn) -> int:
    return drawn.bill.total_cents


def _offer(item: Candidate, best: Drawn | None, bounds: "_Bounds") -> Candidate:
    cost = math.inf if best is None else _cost(best)
    bound, ended = bounds.of(item, cost)
    if math.isfinite(bound) or best is not None:
        bound = min(bound, bounds.below)  # dearer networks were not looked at
    if bound > cost:
        raise FloorError(f"the bound says {bound} cents, the network on the floor costs {cost}")
    termination = ended or ("infeasible" if math.isinf(bound) else "optimal" if bound == cost else FLOOR)
    return replace(item, words=item.words + WORDS, drawn=best, bound_cents=bound, termination=termination)


class _Bounds:
    """What networks of each family that cost less than `below` cost at least, found when first asked for."""

    def __init__(
        self,
        instance: Instance,
        traffic: Traffic,
        pricing: Pricing,
        limits: Limits,
        families: int,
        below: float,
    ) -> None:
        self.instance, self.traffic, self.pricing = instance, traffic, pricing
        self.limits, self.families, self.below = limits, families, below
        self.least, self.prices, self.media = at_least(instance, pricing)

    @cached_property
    def clos(self) -> Proposal:
        """The Clos network that is cheapest at least prices, and the bound."""
        return FloorSearch(self.least, self.traffic, self.prices, self.media, self.below).run(self.limits)

    @cached_property
    def clos_shape(self) -> ClosShape | None:
        """That network with media of the catalog; None where there is none, or nothing can cable it."""
        if self.clos.shape is None:
            return None
        bare = replace(self.clos.shape, media=None)
        return with_media(bare, MediaFinder(self.instance.catalog), self.instance.cabling, self.pricing)

    def of(self, item: Candidate, cost_cents: float) -> tuple[float, str | None]:
        """The bound in cents for the family of a candidate, and which limit ended a search, if one did."""
        ended = item.termination if item.termination in LIMITED else None
        if item.family == CLOS:
            none = self.clos.termination == "infeasible" and math.isinf(self.below)
            bound = math.inf if none else float(self.clos.bound_cents or 0)
            return bound, ended or (self.clos.termination if self.clos.termination in LIMITED else None)
        if item.family == MIXED:
            # Links to hosts cost the same here wherever a leaf stands: its GPUs are not told apart.
            prices = Pricing(self.prices.objective, self.prices.energy)
            found = MixedSearch(self.least, self.traffic, prices, self.media).run(self.limits)
            return found.bound_cents, ended or (found.termination if found.termination in LIMITED else None)
        for family in LISTED:
            if family.name == item.family:
                cheapest = family.search(self.least, self.traffic, self.prices, self.media, None).cheapest()
                return (math.inf if cheapest is None else float(cheapest.cents)), ended
        if item.drawn is None or math.isinf(cost_cents):
            return float(any_network_bound(self.least, self.traffic, self.prices, self.media).cents or 0), ended
        limits = self.limits
        if math.isinf(limits.time_limit_s):
            alone = self.families == 1 or self.instance.cluster.irregular
            limits = replace(limits, time_limit_s=ALONE_S if alone else BESIDE_S)
        search = PlacementSearch(self.least, self.traffic, self.prices, self.media)
        return math.floor(search.run(limits, cost_cents, _silent).bound_cents), ended


def _silent(best_cents: int | None, bound_cents: int | None) -> None:
    """Nobody listens."""


def _drawn(instance: Instance, pricing: Pricing, shape: ClosShape | None, fabric: Fabric) -> Drawn:
    laid = lay_out(instance, pricing, fabric)
    leaf = None if shape is None else shape.leaf.switch
    compared = Compared(laid.bill.total_cents, _parts(laid.bill), fabric.counts(), leaf, shape)
    return Drawn(shape, laid.fabric, laid.bill, compared, laid.places)


def _parts(bill: Bill) -> dict[str, int]:
    """The bill by tier of switches and class of links."""
    parts: Counter[str] = Counter(leaf=0, host=0)
    for line in bill.lines:
        parts[line.used_for.replace("-", "_")] += line.total_cents
    return dict(parts)


def _templates(
    instance: Instance, pricing: Pricing, known: list[TemplateDesign]
) -> list[tuple[TemplateDesign, Drawn | None]]:
    result: list[tuple[TemplateDesign, Drawn | None]] = []
    for item in known:
        if isinstance(item.shape, ClosShape):
            shape, fabric = item.shape, build_clos(item.shape)
        elif isinstance(item.shape, GridShape) and item.media is not None:
            shape, fabric = None, build_grid(item.shape, item.media)
        else:
            result.append((item, None))
            continue
        try:
            drawn = _drawn(instance, pricing, shape, fabric)
        except NoCableError:
            continue
        bill = drawn.bill
        pieces = {"cables": bill.pieces(*CABLE_SECTIONS), "transceivers": bill.pieces("transceivers")}
        told = replace(item, cost_cents=bill.total_cents, parts=drawn.compared.parts, counts={**item.counts, **pieces})
        result.append((told, drawn))
    return result
