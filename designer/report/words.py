"""A design and its certificate in words, the same on the command line and on the page."""

from collections.abc import Iterator

from designer.certify.certificate import EXACT, Certificate, Structure
from designer.units import usd

MET = {True: "met", False: "falls short"}
MEETS = {True: "yes", False: "no", None: "not judged"}
MOST_UNSEEN = 0.05  # beyond this probability of states not looked at, the availability says little
ENDS = {
    "gap": "within the gap asked for",
    "time_limit": "stopped by the time limit",
    "interrupted": "interrupted",
    "floor": "the search is done, and the bound takes cables at their shortest",
    "links": "the search is done, which links move is not part of the proof",
    "size_limit": "cheaper ones may have more switches than are looked at",
    "template": "a template beyond the networks searched",
}


def money(amount_cents: int) -> str:
    """An amount in whole USD, cents where they are not zero."""
    return f"${usd(amount_cents):,.0f}" if amount_cents % 100 == 0 else f"${usd(amount_cents):,.2f}"


def percent(part: float, digits: int = 1) -> str:
    """A part as percent."""
    return f"{100 * part:.{digits}f} %"


def part(value: float) -> str:
    """A fraction as percent, with the digits that tell it from its neighbours."""
    return f"{100 * value:.6g} %"


def span(lower: float, upper: float) -> str:
    """Proven bounds: one number where they meet."""
    return part(lower) if upper - lower <= EXACT else f"{part(lower)} to {part(upper)}"


def status_words(status: str, termination: str, gap: float, bound_cents: int) -> str:
    """Optimal, or the gap and the bound, and why the search ended (`termination`)."""
    if status == "optimal":
        return "optimal: proven that no network of those searched costs less"
    reason = ENDS.get(termination, termination)
    if not bound_cents:
        return f"{status}, {reason}: nothing is proven yet of what the optimum costs"
    return (
        f"{status}, {reason}: gap {percent(gap, 2)}, "
        f"as no network of those searched costs less than {money(bound_cents)}"
    )


def any_shape_words(cost_cents: int, bound_cents: int) -> str:
    """How far the design is from what any network of these switches costs, the ones not searched included."""
    gap = (cost_cents - bound_cents) / cost_cents if cost_cents else 0.0
    return f"no network of these switches costs less than {money(bound_cents)}, whatever its shape: gap {percent(gap)}"


def beside_words(searched: str, cost_cents: int | None, bound_cents: int | None, termination: str) -> str:
    """What the search of another family came to."""
    what = searched.split(":", maxsplit=1)[0].split(" of ", maxsplit=1)[0]
    if cost_cents is not None:
        return f"{what}: {money(cost_cents)} at best"
    if bound_cents is None:
        return f"{what}: none meets the requirements"
    if termination == "optimal":
        return f"{what}: none is cheaper"
    return f"{what}: none cheaper was found; none costs less than {money(bound_cents)}"


def moved_words(kept: int, kept_at_most: int, plugged: int, pulled: int, plugged_at_least: int | None) -> str:
    """What happens to the links of a network that is there."""
    if not plugged and not pulled:
        return f"all {kept:,} stay as they are"
    best = "no other choice of the switches keeps more"
    if kept < kept_at_most:
        best = f"whichever switch becomes which, at most {kept_at_most:,} can"
    fewest = ""
    if plugged_at_least is not None:
        than = "" if plugged_at_least == plugged else f" than {plugged_at_least:,}"
        fewest = f" (no Clos network of this cost plugs fewer{than})"
    return f"{kept:,} stay as they are ({best}), {plugged:,} are plugged{fewest}, {pulled:,} pulled"


def anew_words(cost_cents: int, links: int) -> str:
    """What a network costs for which nothing is reused."""
    return f"a network bought anew costs {money(cost_cents)} and plugs {links:,} links"


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
