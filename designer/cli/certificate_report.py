"""A certificate as tables and words, the same in `designer design` and `designer verify`."""

from collections.abc import Mapping
from typing import Any

from designer.certify.certificate import Certificate, Structure
from designer.cli.console import printable, table
from designer.report.words import MET, part, span


def phases_table(certificate: Certificate, given: Mapping[tuple[str, str], list[str]] | None = None) -> Any:
    """Throughput of every phase against its floor; `given` adds what the uplinks of each tier give a phase.

    `given` is by phase and job, with an entry for leaves and, with three tiers, one for pods.
    """
    width = max(map(len, given.values()), default=0) if given else 0
    uplinks = ("leaf uplinks give", "pod uplinks give")[:width]
    routed = _routed(certificate)
    columns = ["phase", "job", *uplinks, "throughput", "", *(["its routes"] if routed else []), "ECMP", "floor", ""]
    right = (*range(2, 3 + width), *range(4 + width, len(columns) - 1))
    result = table(*columns, right=right)
    for phase in certificate.phases:
        bounds = phase.interval
        more = given.get((phase.phase, phase.job), [""] * width) if given else []
        result.add_row(
            printable(phase.phase),
            printable(phase.job),
            *more,
            span(bounds.lower, bounds.upper),
            "exact" if bounds.exact else "interval",
            *([part(routed[phase.job, phase.phase])] if (phase.job, phase.phase) in routed else [""] * bool(routed)),
            "" if bounds.ecmp is None else part(bounds.ecmp),
            part(phase.required),
            MET[phase.met],
        )
    return result


def _routed(certificate: Certificate) -> dict[tuple[str, str], float]:
    """What the routes of the design carry of each phase, by job and phase: that of the slowest step."""
    found: dict[tuple[str, str], float] = {}
    for step in certificate.routing:
        key = step.job, step.phase
        found[key] = min(step.weighted, found.get(key, step.weighted))
    return found


def failures_table(certificate: Certificate, shown: int) -> Any:
    """What single failures, or pairs, leave of the floors: at most `shown` rows, the worst first."""
    cut = any(failure.gpus_cut_off for failure in certificate.failures)
    headings = ["without", "cases", "worst phase", "left of floor", "ECMP", "required"]
    right = (1, 3, 4, 5)
    if cut:
        headings.append("GPUs cut off")
        right = (*right, 6)
    result = table(*headings, "", right=right)
    worst = sorted(certificate.failures, key=lambda failure: (failure.met, failure.lower))
    for failure in worst[:shown]:
        cells = [failure.removed, f"{failure.stands_for:,}", failure.worst_phase, span(failure.lower, failure.upper)]
        cells.append("" if failure.ecmp is None else part(failure.ecmp))
        cells.append("" if failure.required is None else part(failure.required))
        if cut:
            cells.append(f"{failure.gpus_cut_off:,}")
        asked = failure.required is not None or not failure.met
        result.add_row(*map(printable, cells), MET[failure.met] if asked else "not asked")
    if len(worst) > shown:
        result.add_row(f"and {len(worst) - shown} more")
    return result


def structure_table(structure: Structure) -> Any:
    """Every structural check by name."""
    rows = table("structure", "", "")
    for check in structure.checks:
        rows.add_row(check.name, "holds" if check.met else "fails", "")
    for check in structure.reported:
        rows.add_row(check.name, "as a rule" if check.met else "told", printable("; ".join(check.found)))
    return rows
