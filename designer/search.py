"""From an instance to its cheapest network: templates first, then the integer programs, then the bill and the design.

Nothing of an answer is taken from the solver on trust: the shape is drawn, and the bill counted from the drawing must
equal the objective to the cent.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from designer.certify.read_design import design_from_document
from designer.certify.verify import certificate_of, structure_of, throughput_of
from designer.comparison import TemplateDesign, best_templates, comparison_rows
from designer.costing.bill import Bill, bill_of_materials
from designer.costing.pricing import MediaFinder, Pricing
from designer.errors import DesignerError, NoDesignError
from designer.fabric.build import build_clos
from designer.fabric.shape import ClosShape
from designer.formulation.bounds import any_network_bound
from designer.formulation.clos_search import ClosSearch, Limits, Proposal
from designer.formulation.infeasible import explain_infeasible
from designer.instance.instance import Instance
from designer.result import Design, Provenance
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Traffic

Progress = Callable[[float, int | None, int | None], None]


@dataclass(frozen=True)
class Options:
    """How to search, and what to certify.

    `progress` is called with seconds, best cost and bound in cents, `checking` with what the certificate looks at;
    `should_stop` ends the search. `pairs` certifies pairs of failures, too; without `certify` there is no certificate.
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


class _StoppedError(Exception):
    """The certificate is not wanted any more."""


class SearchError(DesignerError):
    """The search contradicts itself: a bug of this package."""


def templates(instance: Instance) -> list[TemplateDesign]:
    """The known topologies on the instance's catalog, each in its cheapest variant that meets it, else its cheapest."""
    return best_templates(instance, derive_traffic(instance), Pricing(instance.objective, instance.energy))


def design(instance: Instance, options: Options | None = None) -> Design:
    """The cheapest network of the searched families that meets the instance, with its bound and its certificate.

    Where `should_stop` comes true before the certificate is finished, the design has none.

    Raises:
        InfeasibleError: proven that none exists; names the constraints that clash.
        NoDesignError: a limit was hit before any was found.
    """
    options = options or Options()
    started = time.monotonic()
    traffic = derive_traffic(instance)
    pricing = Pricing(instance.objective, instance.energy)
    media = MediaFinder(instance.catalog)
    known = best_templates(instance, traffic, pricing, media)
    start = _cheapest_start(known)

    def report(best_cents: int | None, bound_cents: int | None) -> None:
        if options.progress:
            options.progress(time.monotonic() - started, best_cents, bound_cents)

    limits = Limits(options.time_limit_s, options.gap, options.threads, options.seed, options.should_stop)
    proposal = ClosSearch(instance, traffic, pricing, media).run(limits, start, report)
    if proposal.shape is None:
        if proposal.termination != "infeasible":
            what = {"time_limit": "the time limit was hit", "interrupted": "the search was interrupted"}
            raise NoDesignError(f"no design found before {what[proposal.termination]}")
        raise explain_infeasible(instance, traffic, options.should_stop)
    bill, result = _drawn(instance, traffic, pricing, proposal, known, options, started)
    _check_against_templates(bill, known)
    return _with_certificate(result, options) if options.certify else result


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


def certified(design: Design, *, pairs: bool = False, progress: Callable[[str], None] | None = None) -> Design:
    """The design with its certificate, computed from what its file would hold and from nothing else."""
    file = design_from_document(design.to_document())
    structure = structure_of(file)
    results = throughput_of(file, exhaustive=False, pairs=pairs, progress=progress)
    return replace(design, certificate=certificate_of(file, structure, results))


def _cheapest_start(known: list[TemplateDesign]) -> ClosShape | None:
    meeting = [item for item in known if item.meets and isinstance(item.shape, ClosShape)]
    best = min(meeting, key=lambda item: item.cost_cents, default=None)
    return best.shape if best is not None and isinstance(best.shape, ClosShape) else None


def _drawn(
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    proposal: Proposal,
    known: list[TemplateDesign],
    options: Options,
    started: float,
) -> tuple[Bill, Design]:
    shape = proposal.shape
    if shape is None or proposal.cost_cents is None:
        raise SearchError("a proposal without a shape")
    fabric = build_clos(shape)
    bill = bill_of_materials(fabric, instance.catalog, pricing)
    if bill.total_cents != proposal.cost_cents:
        raise SearchError(f"the bill says {bill.total_cents} cents, the program {proposal.cost_cents}")
    any_cents = any_network_bound(instance, traffic, pricing, MediaFinder(instance.catalog)).cents
    if any_cents is None or any_cents > bill.total_cents:
        raise SearchError(f"the bound over any network says {any_cents} cents, the design costs {bill.total_cents}")
    bound_cents = max(proposal.bound_cents or 0, any_cents)  # the networks searched are some of all
    provenance = Provenance("OR-Tools CP-SAT", proposal.termination, options.seed, time.monotonic() - started)
    result = Design.of(
        instance,
        traffic,
        shape,
        fabric,
        bill,
        bound_cents,
        comparison_rows(traffic, pricing, shape, known),
        provenance,
    )
    return bill, replace(result, any_topology_bound_cents=any_cents)


def _check_against_templates(bill: Bill, known: list[TemplateDesign]) -> None:
    for item in known:
        if item.meets and item.in_family and item.cost_cents < bill.total_cents:
            raise SearchError(f"template {item.name} costs {item.cost_cents} cents, the design {bill.total_cents}")
