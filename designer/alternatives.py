"""The choice side by side: the templates, the optimum, the optimum with uneven bundles; and which of them are Pareto.

Two aims pull apart: cost, and how much of their uplinks the worst pair of leaves shares. A network is Pareto-optimal
among those that meet the requirements when no other is at least as good in both and better in one.
"""

import time
from dataclasses import dataclass, replace

from designer.candidates import CLOS
from designer.certify.certificate import EXACT, FailureResult, PhaseResult
from designer.certify.run import certify_throughput
from designer.certify.throughput import Judge, certify_phases
from designer.comparison import ComparisonRow, TemplateDesign
from designer.errors import InfeasibleError, NoDesignError
from designer.fabric.build import build_clos
from designer.fabric.grid import GridShape, build_grid
from designer.fabric.pairs import worst_leaf_pair
from designer.fabric.shape import ClosShape
from designer.instance.instance import Instance
from designer.result import Design
from designer.search import Options, design, templates
from designer.workload.traffic import Traffic

MOST_CERTIFIED = 4096  # GPUs up to which templates outside of the Clos family are certified, in seconds each
MOST_LOST = 2  # failures are certified one by one and in pairs


@dataclass(frozen=True)
class Alternative:
    """One network of the list; `worst_leaf_pair` is None where its links were not drawn."""

    row: ComparisonRow
    worst_leaf_pair: float | None
    pareto: bool

    def to_document(self) -> dict[str, object]:
        """The alternative as plain data, as a row of a design file's `comparison` with two more fields."""
        return {**self.row.to_document(), "worst_leaf_pair": self.worst_leaf_pair, "pareto": self.pareto}


def alternatives(instance: Instance, options: Options) -> tuple[Design, list[Alternative]]:
    """The optimum of the instance, and all networks in the order of their cost; the time limit is for all of it.

    Raises:
        InfeasibleError, NoDesignError: as for `design`.
    """
    started = time.monotonic()
    optimum = design(instance, options)
    paired = _paired(optimum, [] if instance.cluster.irregular else templates(instance))
    rows = [(_decided(row, item, instance, optimum.traffic, options), _worst_pair(item)) for row, item in paired]
    rows.append((_row("optimum", optimum, optimum, "the cheapest of those searched"), optimum.worst_leaf_pair))
    left_s = max(0.0, options.time_limit_s - (time.monotonic() - started))
    # Like the templates beside it, by arithmetic: only the optimum has a certificate.
    uneven = _uneven(instance, replace(options, time_limit_s=left_s, certify=False))
    if uneven is not None and uneven.cost_cents != optimum.cost_cents:
        rows.append((_row("optimum-uneven", uneven, optimum, _uneven_words(uneven, optimum)), uneven.worst_leaf_pair))
    rows.sort(key=lambda pair: pair[0].cost_cents)
    return optimum, [Alternative(row, worst, _is_pareto(row, worst, rows)) for row, worst in rows]


def _paired(optimum: Design, known: list[TemplateDesign]) -> list[tuple[ComparisonRow, TemplateDesign]]:
    by_name = {item.name: item for item in known}
    return [(row, by_name[row.template]) for row in optimum.comparison]


def _decided(
    row: ComparisonRow, item: TemplateDesign, instance: Instance, traffic: Traffic, options: Options
) -> ComparisonRow:
    """The row with its verdict where only a certificate of the template's fabric can give one."""
    survive = instance.requirements.survive
    unseen = any(failure.count > MOST_LOST for failure in survive)
    if item.meets is not None or instance.cluster.gpus > MOST_CERTIFIED or unseen or options.should_stop():
        return row
    if not isinstance(item.shape, GridShape) or item.media is None:
        return row
    if options.checking:
        options.checking(f"template {item.name}")
    fabric, scale_up_gbps = build_grid(item.shape, item.media), instance.cluster.gpu.scale_up_gbps
    phases = certify_phases(fabric, traffic, instance.requirements, Judge(), scale_up_gbps)
    failures: tuple[FailureResult, ...] = ()
    if survive and all(phase.met for phase in phases):
        pairs = any(failure.count > 1 for failure in survive)
        failures = certify_throughput(fabric, traffic, instance.requirements, scale_up_gbps, pairs=pairs)[1]
    meets, words = verdict(phases, failures)
    return replace(row, meets=meets, why="; ".join(part for part in (words, row.why) if part))


def verdict(phases: tuple[PhaseResult, ...], failures: tuple[FailureResult, ...]) -> tuple[bool | None, str]:
    """Whether a certificate is met; None where its bounds leave that open. In words what falls short, or is open."""
    found: list[tuple[bool, str]] = []
    for phase in phases:
        bounds = phase.interval
        if not phase.met:
            carried = f"{100 * bounds.lower:.4g} to {100 * bounds.upper:.4g} %"
            if bounds.exact:
                carried = f"{100 * bounds.lower:.4g} %"
            words = f"{phase.phase} is carried at {carried} of line rate, its floor is {100 * phase.required:g} %"
            found.append((bounds.upper >= phase.required - EXACT, words))
    for failure in failures:
        if not failure.met and failure.required is not None:
            left = f"{100 * failure.lower:.4g} % of the floor of {failure.worst_phase}"
            words = f"without {failure.removed} {left} is left, required is {100 * failure.required:g} %"
            found.append((failure.gpus_cut_off == 0 and failure.upper >= failure.required - EXACT, words))
    if not found:
        return True, ""
    still_open, words = min(found)
    return (None, f"not decided: {words}") if still_open else (False, f"falls short: {words}")


def _worst_pair(item: TemplateDesign) -> float | None:
    shape = item.shape
    if shape is None:
        return None
    if isinstance(shape, ClosShape) and shape.spines is not None and shape.spines.bundle is None:
        return worst_leaf_pair(build_clos(shape))
    return 1.0  # equal bundles, a single switch, or a complete bipartite graph: any two leaves share all


def _row(name: str, found: Design, optimum: Design, why: str) -> ComparisonRow:
    saving = 1 - optimum.cost_cents / found.cost_cents if found.cost_cents else 0.0
    meets = found.certificate is None or found.certificate.met
    switch = found.fabric.models[0] if found.shape is None else found.shape.leaf.switch.key
    return ComparisonRow(name, switch, found.cost_cents, found.counts, meets, saving, why)


def _uneven(instance: Instance, options: Options) -> Design | None:
    """The optimum when the links of a bundle may differ by one; None where that is the instance's own rule."""
    if not instance.requirements.symmetric_uplinks or instance.cluster.irregular or options.should_stop():
        return None
    loose = instance.requirements.model_copy(update={"symmetric_uplinks": False})
    try:
        return design(replace(instance, requirements=loose), replace(options, families=(CLOS,)))
    except (InfeasibleError, NoDesignError):  # a limit was hit
        return None


def _uneven_words(uneven: Design, optimum: Design) -> str:
    return (
        f"bundles may differ by one link: {uneven.counts['spine']:,} spines in place of {optimum.counts['spine']:,}, "
        f"two leaves share at least {100 * uneven.worst_leaf_pair:.2f} % of their uplinks"
    )


def _is_pareto(row: ComparisonRow, worst: float | None, rows: list[tuple[ComparisonRow, float | None]]) -> bool:
    if not row.meets or worst is None:
        return False
    return not any(
        other.meets
        and pair is not None
        and other.cost_cents <= row.cost_cents
        and pair >= worst
        and (other.cost_cents < row.cost_cents or pair > worst)
        for other, pair in rows
    )
