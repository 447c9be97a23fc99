"""What is offered beside a network that is there: that network itself, what is cheapest with it, and what moves little.

Every network is laid onto the one that is there, priced by what has to be bought, and its moved links are counted. Of
each family the cheapest is kept, of equal ones that which moves least, of those that move no more links than allowed,
and no more than a network bought anew would have.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from designer.candidates import (
    CLOS,
    GRID,
    LISTED,
    MESH,
    Candidate,
    Drawn,
    Report,
    SearchError,
    carries,
    clos_words,
    listed_candidate,
)
from designer.certify.structure import check_structure
from designer.certify.throughput import Judge
from designer.comparison import Compared
from designer.costing.bill import Bill, bill_of_materials, labour_line
from designer.costing.pricing import MediaFinder, Pricing
from designer.errors import InfeasibleError, NoDesignError, Remedy
from designer.fabric.build import build_clos
from designer.fabric.fabric import LEAF, MANAGEMENT, Fabric
from designer.fabric.shape import ClosShape
from designer.formulation.clos_search import Limits
from designer.formulation.existing_search import ExistingSearch
from designer.instance.existing import ExistingNetwork
from designer.instance.instance import Instance
from designer.rewiring.matching import Matcher
from designer.rewiring.moves import count_moves
from designer.rewiring.ports import with_ports_kept
from designer.rewiring.rewired import Fresh, Rewired
from designer.workload.traffic import Traffic

LINKS = "links"  # the search is done; links are moved by trial
DEAR_CENTS = 1_000_000  # of a link moved, in search of networks that move few
FEWER_S = 30.0  # how long such networks are sought
BESIDE = ", bought beside what is there"
STOCKED = (GRID, MESH)  # families of networks listed by cost that know what is owned
BESIDE_FAMILIES = (CLOS, *STOCKED)


class TooManyLinksError(NoDesignError):
    """Every network that was found moves more links than allowed."""


def lay_onto(
    existing: ExistingNetwork, fabric: Fabric, instance: Instance, pricing: Pricing
) -> tuple[Fabric, Rewired, Bill]:
    """A fabric with ports such that links stay, which switch is which, and the bill of what has to be bought."""
    matching = Matcher(existing.fabric, fabric).run()
    before = bill_of_materials(fabric, instance.catalog, pricing)
    laid = with_ports_kept(existing.fabric, fabric, matching.same_as, instance.catalog)
    if bill_of_materials(laid, instance.catalog, pricing) != before:
        raise SearchError("other ports of the same links change the bill")
    moves = count_moves(existing.fabric, laid, matching.same_as)
    bill = bill_of_materials(laid, instance.catalog, pricing, labour_line(moves.plugged, existing.cents_per_link_moved))
    return laid, Rewired(existing, matching.same_as, moves, matching.kept_at_most), bill


@dataclass(frozen=True)
class Fewest:
    """No Clos network that costs at most `cost_cents` plugs fewer links."""

    cost_cents: int
    links: int


@dataclass(frozen=True)
class Beside:
    """The search for an instance with an existing network."""

    instance: Instance
    traffic: Traffic
    pricing: Pricing
    media: MediaFinder
    limits: Limits
    report: Report

    @property
    def existing(self) -> ExistingNetwork:
        """The network that is there.

        Raises:
            ValueError: the instance has none.
        """
        if self.instance.existing is None:
            raise ValueError("an instance without an existing network")
        return self.instance.existing

    def as_it_is(self) -> Candidate | None:
        """The network that is there, where it serves all GPUs and carries what is required."""
        existing, instance = self.existing, self.instance
        fabric, cluster = existing.fabric, instance.cluster
        ports = int((fabric.nodes.kind == MANAGEMENT).sum())
        if fabric.gpus != cluster.gpus or ports != cluster.management_ports * fabric.counts()["fabrics"]:
            return None
        structure = check_structure(
            fabric,
            instance.catalog,
            cluster,
            {},
            symmetric_uplinks=instance.requirements.symmetric_uplinks,
            family=existing.family,
            any_port=True,
        )
        if not structure.met or not carries(fabric, instance, self.traffic, Judge()):
            return None
        same_as = np.flatnonzero(fabric.nodes.kind >= LEAF)
        moves = count_moves(fabric, fabric, same_as)
        bill = bill_of_materials(fabric, instance.catalog, self.pricing)
        drawn = self._drawn(None, fabric, bill, Rewired(existing, same_as, moves, fabric.n_links))
        # Energy is paid for what runs, so another network may come to less.
        bound = bill.total_cents if not bill.energy_cents else 0
        ended = "optimal" if bound == bill.total_cents else LINKS
        words = "the network that is there, as it is"
        return Candidate(existing.family, words, "certificate", drawn, bound, ended)

    def candidates(self, families: tuple[str, ...], find_fresh: Callable[[], list[Candidate]]) -> list[Candidate]:
        """The best of each family; networks bought anew, which `find_fresh` finds, are laid onto what is there as well.

        Raises:
            TooManyLinksError: networks were found, and all of them move more links than allowed.
            InfeasibleError: any network moves more links than allowed, or needs new switches.
        """
        as_it_is = self.as_it_is()
        if as_it_is is not None and not as_it_is.cost_cents:
            return [as_it_is]
        began = time.monotonic()
        fresh = find_fresh()
        new = self._anew(fresh)
        offers: dict[str, list[Drawn]] = {family: [] for family in families}
        for item in fresh:
            if item.drawn is not None and self.pricing.permits(self._switches(item.drawn.fabric)):
                offers.setdefault(item.family, []).append(self._laid(item.drawn.shape, item.drawn.fabric))
        found: list[Candidate] = []
        fewest: Fewest | None = None
        if CLOS in families:
            clos, fewest = self._clos(offers[CLOS], began)
            found.append(clos)
        for family in LISTED:
            if family.name in families and family.name in STOCKED:
                below = min((cost_of(drawn) for part in offers.values() for drawn in part), default=math.inf)
                limits = self._left(began)
                one = listed_candidate(
                    family, self.instance, self.traffic, self.pricing, self.media, below + 1, limits, self.report
                )
                if one.drawn is not None:
                    offers[family.name].append(self._laid(None, one.drawn.fabric))
                found.append(replace(one, words=one.words + BESIDE))
        worth = self.existing.stock.value_cents
        searched = {item.family for item in found}
        found += [
            replace(item, bound_cents=max(0.0, item.bound_cents - worth))
            for item in fresh
            if item.family not in searched
        ]
        result = [self._best(item, offers[item.family], new) for item in found if item.family in offers]
        result += [] if as_it_is is None else [as_it_is]
        self._check(result, [drawn for part in offers.values() for drawn in part], new)
        return [self._told(item, new, fewest) for item in result]

    def _clos(self, offers: list[Drawn], began: float) -> tuple[Candidate, Fewest | None]:
        """The cheapest Clos and Clos networks with few links to plug, and how few those of the least cost can have."""
        existing, cents = self.existing, self.existing.cents_per_link_moved
        search = ExistingSearch(self.instance, self.traffic, self.pricing, self.media, existing)
        proposal = search.run(self._left(began), None, self.report)
        name, words = "OR-Tools CP-SAT", clos_words(self.instance) + BESIDE
        if proposal.shape is None:
            bound = math.inf if proposal.termination == "infeasible" else float(proposal.bound_cents or 0)
            return Candidate(CLOS, words, name, None, bound, proposal.termination), None
        offers.append(self._laid(proposal.shape, build_clos(proposal.shape)))
        cost = cost_of(offers[-1])
        if cost < (proposal.cost_cents or 0) or (cents == 0 and cost != proposal.cost_cents):
            raise SearchError(f"the bill says {cost} cents, the program {proposal.cost_cents}")
        fewest: Fewest | None = None
        for network, most in self._variants(proposal.cost_cents or 0):
            if self.limits.should_stop():
                break
            left = self._left(began)
            limits = replace(left, time_limit_s=min(left.time_limit_s, FEWER_S))
            other = ExistingSearch(
                self.instance, self.traffic, self.pricing, self.media, network, most_bought_cents=most
            )
            few = other.run(limits)
            if few.shape is not None:
                offers.append(self._laid(few.shape, build_clos(few.shape)))
            if most is not None and few.bound_cents is not None:
                fewest = Fewest(most, max(0, -((most - few.bound_cents) // DEAR_CENTS)))
        return Candidate(CLOS, words, name, offers[0], float(proposal.bound_cents or 0), proposal.termination), fewest

    def _variants(self, cost_cents: int) -> Iterator[tuple[ExistingNetwork, int | None]]:
        """What is there with links that are dear to move, and the most that is then bought.

        Where moving is free, networks of the least cost; where a limit is set, any others as well.
        """
        existing = self.existing
        dear = replace(existing, cents_per_link_moved=DEAR_CENTS)
        if not existing.cents_per_link_moved:
            yield dear, cost_cents
        if existing.most_links_moved is not None:
            yield dear, None

    def _laid(self, shape: ClosShape | None, fabric: Fabric) -> Drawn:
        laid, rewired, bill = lay_onto(self.existing, fabric, self.instance, self.pricing)
        return self._drawn(shape, laid, bill, rewired)

    def _drawn(self, shape: ClosShape | None, fabric: Fabric, bill: Bill, rewired: Rewired) -> Drawn:
        parts: Counter[str] = Counter(leaf=0, host=0)
        for line in bill.lines:
            parts[line.used_for.replace("-", "_")] += line.total_cents
        leaf = None if shape is None else shape.leaf.switch
        compared = Compared(bill.total_cents, dict(parts), fabric.counts(), leaf, shape)
        return Drawn(shape, fabric, bill, compared, rewired=rewired)

    def _left(self, began: float) -> Limits:
        return replace(self.limits, time_limit_s=max(0.0, self.limits.time_limit_s - (time.monotonic() - began)))

    def _switches(self, fabric: Fabric) -> dict[tuple[str, float], int]:
        models: list[int] = fabric.nodes.model[fabric.nodes.kind >= LEAF].tolist()
        return {(fabric.models[model], 0.0): count for model, count in Counter(models).items()}

    @staticmethod
    def _anew(fresh: list[Candidate]) -> Fresh | None:
        """The cheapest network bought anew."""
        best = min(fresh, key=lambda item: item.cost_cents, default=None)
        if best is None or best.drawn is None:
            return None
        return Fresh(best.drawn.bill.total_cents, best.drawn.fabric.n_links)

    def _allowed(self, new: Fresh | None) -> Callable[[Drawn], bool]:
        """Whether a network moves no more links than allowed, and no more than one bought anew has."""
        most = math.inf if self.existing.most_links_moved is None else self.existing.most_links_moved
        most = min(most, math.inf if new is None else new.links)
        return lambda drawn: plugged_by(drawn) <= most

    def _best(self, item: Candidate, offers: list[Drawn], new: Fresh | None) -> Candidate:
        """The cheapest network of a family that is allowed; its bound stays that of all of them."""
        allowed = [drawn for drawn in offers if self._allowed(new)(drawn)]
        best = min(allowed, key=lambda drawn: (cost_of(drawn), plugged_by(drawn)), default=None)
        if best is None:
            return replace(item, drawn=None, termination=LINKS if offers else item.termination)
        ended = item.termination
        if cost_of(best) <= item.bound_cents:
            ended = "optimal"
        elif ended in ("optimal", "infeasible"):
            ended = LINKS
        return replace(item, drawn=best, bound_cents=min(item.bound_cents, cost_of(best)), termination=ended)

    def _told(self, item: Candidate, new: Fresh | None, fewest: Fewest | None) -> Candidate:
        """The candidate, whose network knows what one bought anew comes to, and how few links it could plug."""
        if item.drawn is None or item.drawn.rewired is None:
            return item
        rewired = replace(item.drawn.rewired, fresh=new)
        if fewest is not None and item.family == CLOS and cost_of(item.drawn) <= fewest.cost_cents:
            rewired = replace(rewired, plugged_at_least=fewest.links)
        return replace(item, drawn=replace(item.drawn, rewired=rewired))

    def _check(self, result: list[Candidate], laid: list[Drawn], new: Fresh | None) -> None:
        """Says why nothing is left, where that is so.

        Raises:
            TooManyLinksError, InfeasibleError: as `candidates`.
        """
        if any(item.drawn is not None for item in result):
            return
        existing, cluster = self.existing, self.instance.cluster
        most = existing.most_links_moved
        least = (cluster.gpus - existing.fabric.gpus) * min(mode.ports for mode in cluster.nic.modes)
        if most is not None and most < least:
            words = f"search.existing.most_links_moved: {most}, the GPUs that are added have {least} ports"
            raise InfeasibleError([words], [Remedy("search.existing.most_links_moved", f"at least {least}")])
        if laid and most is not None:
            few = min(plugged_by(drawn) for drawn in laid)
            words = f"no network found that moves at most {most} links; the least that was found is {few}"
            raise TooManyLinksError(words)
        stock = existing.stock
        if not stock.new_switches and new is not None and all(item.termination == "infeasible" for item in result):
            owned = [f"{count} {key}" for (key, _), count in stock.owned.items() if key in stock.catalog.switches]
            words = f"search.existing.new_switches: false, there are {', '.join(owned)}"
            raise InfeasibleError(
                [words, "requirements, with the networks searched"], [Remedy("search.existing.new_switches", "true")]
            )


def cost_of(drawn: Drawn) -> int:
    """What a network costs."""
    return drawn.bill.total_cents


def plugged_by(drawn: Drawn) -> int:
    """Links that a network plugs anew."""
    return 0 if drawn.rewired is None else drawn.rewired.moves.plugged
