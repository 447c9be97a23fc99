"""A certificate as tables and words, the same in `designer design` and `designer verify`."""

from collections.abc import Iterator, Mapping
from typing import Any

from designer.certify.certificate import EXACT, Certificate, Structure
from designer.cli.console import printable, table

MET = {True: "met", False: "falls short"}
MOST_UNSEEN = 0.05  # beyond this probability of states not looked at, the availability says little


def part(value: float) -> str:
    """A fraction as percent, with the digits that tell it from its neighbours."""
    return f"{100 * value:.6g} %"


def span(lower: float, upper: float) -> str:
    """Proven bounds: one number where they meet."""
    return part(lower) if upper - lower <= EXACT else f"{part(lower)} to {part(upper)}"


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


def structure_words(structure: Structure) -> Iterator[str]:
    """Whether the structural checks hold, in a line; then what fails, and what is told."""
    failing = [check for check in structure.checks if not check.met]
    if not failing:
        yield f"structure: all {len(structure.checks)} checks hold"
    for check in failing:
        yield f"structure: {check.name} fails: {'; '.join(check.found)}"
    for check in structure.reported:
        if not check.met:
            yield f"{check.name}: {'; '.join(check.found)}"


def structure_table(structure: Structure) -> Any:
    """Every structural check by name."""
    rows = table("structure", "", "")
    for check in structure.checks:
        rows.add_row(check.name, "holds" if check.met else "fails", "")
    for check in structure.reported:
        rows.add_row(check.name, "as a rule" if check.met else "told", printable("; ".join(check.found)))
    return rows


def availability_words(certificate: Certificate) -> Iterator[str]:
    """How often the requirements hold, where the states that were looked at make up nearly all."""
    chances = certificate.availability
    if not chances or chances["not_looked_at"] > MOST_UNSEEN:
        return
    holds = f"{100 * chances['met_lower']:.2f} to {100 * chances['met_upper']:.2f} %"
    carried = f"{100 * chances['throughput_lower']:.2f} to {100 * chances['throughput_upper']:.2f} %"
    yield (
        f"availability: what is required holds {holds} of the time, on average {carried} of the floors are carried, "
        "at published failure rates of links and ToR switches and an assumed 24 h for a repair"
    )


def relay_words(certificate: Certificate) -> Iterator[str]:
    """What an all-to-all from rail to rail pays for the hop inside the HB domain."""
    relays = certificate.relays
    if relays is not None:
        overlapped = "nothing" if relays.overlapped == 0 else f"{100 * relays.overlapped:.1f} %"
        yield (
            f"relays: an all-to-all between rails goes over the HB domain first: {100 * relays.serial:.1f} % longer if "
            f"the two hops follow each other (at most {100 * relays.bound:.1f} %), {overlapped} if they overlap"
        )


def shortfalls(certificate: Certificate) -> Iterator[str]:
    """Everything for which a certificate is not met, a line each."""
    for check in certificate.structure.checks:
        if not check.met:
            yield f"structure, {check.name}: {'; '.join(check.found)}"
    for phase in certificate.phases:
        if not phase.met:
            bounds = phase.interval
            carried = span(bounds.lower, bounds.upper)
            yield f"phase {phase.phase} of {phase.job}: carries {carried}, its floor is {part(phase.required)}"
    for failure in certificate.failures:
        if not failure.met:
            left = f"{span(failure.lower, failure.upper)} of the floor of {failure.worst_phase} is left"
            asked = "nothing" if failure.required is None else part(failure.required)
            cut = f", {failure.gpus_cut_off:,} GPUs cut off" if failure.gpus_cut_off else ""
            yield f"without {failure.removed} ({failure.stands_for:,} cases): {left}{cut}, required is {asked}"
    if certificate.rail_only is not None and not certificate.rail_only.met:
        yield f"rail-only: {certificate.rail_only.words}"
