"""The certificate on the page: what falls short, phases, failures worst first, checks of structure."""

from collections.abc import Iterator
from dataclasses import fields
from xml.etree.ElementTree import Element

from designer.certify.availability import Availability
from designer.certify.certificate import (
    Certificate,
    Check,
    FailureResult,
    Interval,
    PhaseResult,
    RailOnlyCheck,
    RoutingResult,
    Structure,
)
from designer.certify.read_design import DesignFile
from designer.certify.relays import RelayOverhead
from designer.design_schema import CertificateRecord, PhaseProof
from designer.report.amounts import count
from designer.report.bars import bar
from designer.report.markup import Cell, details, section, table, tag
from designer.report.words import MET, availability_words, part, relay_words, shortfalls, span, structure_words

MOST_FAILURES, MOST_OPENED, MOST_SHORT = 12, 200, 40


def certificate_of(file: DesignFile) -> Certificate | None:
    """The certificate that the file holds, as it stands there; None where it has none."""
    record = file.record.certificate
    if record is None:
        return None
    phases = tuple(
        PhaseResult(said.job, said.phase, _interval(said), said.required, said.met) for said in record.phases
    )
    failures = tuple(
        FailureResult(**{field.name: getattr(item, field.name) for field in fields(FailureResult)})
        for item in record.failures
    )
    structure = Structure(
        tuple(Check(item.name, item.met, tuple(item.found)) for item in record.structure.checks),
        tuple(Check(item.name, item.met, tuple(item.found)) for item in record.structure.reported),
    )
    routing = tuple(
        RoutingResult(item.job, item.phase, item.step, item.weighted, item.ecmp, item.upper) for item in record.routing
    )
    return Certificate(phases, failures, structure, _rail_only(record), _chances(record), _relays(record), routing)


def _interval(said: PhaseProof) -> Interval:
    return Interval(said.lower, said.upper, said.ecmp, said.how)


def _rail_only(record: CertificateRecord) -> RailOnlyCheck | None:
    said = record.rail_only
    if said is None:
        return None
    return RailOnlyCheck(said.met, said.cost_usd, said.design_cost_usd, said.switches, said.links, said.words)


def _chances(record: CertificateRecord) -> dict[str, float]:
    """The probabilities, where all of them are there."""
    known = {field.name for field in fields(Availability)}
    return record.availability if known <= set(record.availability) else {}


def _relays(record: CertificateRecord) -> RelayOverhead | None:
    said = record.relays or {}
    names = [field.name for field in fields(RelayOverhead)]
    return RelayOverhead(*(said[name] for name in names)) if set(names) <= set(said) else None


def verdict_words(file: DesignFile, certificate: Certificate | None) -> tuple[str, str]:
    """Whether the certificate is met: a word for how it stands (good, bad, open), and a sentence."""
    if certificate is None:
        return "open", "no certificate: the checks were not done"
    short = len(list(shortfalls(certificate)))
    if short:
        return "bad", f"the certificate falls short in {count(short, 'point')}"
    words = "the certificate holds: every floor is carried"
    if file.requirements.survive:
        words += ", every failure asked for is survived"
    open_ = sum(not phase.interval.exact for phase in certificate.phases)
    if open_:
        words += f"; of {open_} of {count(len(certificate.phases), 'phase')} the throughput is known as an interval"
    return "good", words


def proof_section(file: DesignFile, certificate: Certificate | None) -> Element:
    """The section: what the network carries, intact and under failure, as the file states it."""
    name, heading = "certificate", "Certificate"
    if certificate is None:
        return section(name, heading, tag("p", "No certificate: the checks were not done, or not finished."))
    parts: list[Element] = []
    short = list(shortfalls(certificate))
    if short:
        more = [f"and {len(short) - MOST_SHORT:,} more"] if len(short) > MOST_SHORT else []
        items = [tag("li", line) for line in [*short[:MOST_SHORT], *more]]
        parts += [tag("h3", "What falls short"), tag("ul", *items, class_="bad")]
    if certificate.phases:
        parts += [tag("h3", "Phases on the intact network"), _phases(certificate)]
    if certificate.failures:
        parts += [tag("h3", "Failures, worst first"), *_failures(file, certificate)]
    parts += [tag("h3", "Checks and further findings"), *_structure(certificate)]
    return section(name, heading, _introduction(file), *parts)


def _introduction(file: DesignFile) -> Element:
    policy = {"single-relay": "one peer's NIC carries it all", "spread": "all its peers share it"}
    routing = {
        "adaptive": "the best splitting of the traffic over paths",
        "ecmp": "an even split over equal paths (ECMP)",
    }
    required = file.requirements
    return tag(
        "p",
        "Parts of the NICs' line rate at which all demands of a phase can be carried at once, computed from the "
        "finished network alone. Where two proven bounds meet the value is exact; where they do not, both stand here "
        f"and only the lower one counts. Floors mean {routing[required.routing]}. Traffic of a GPU that lost its NIC "
        f"goes over the scale-up network: {policy[required.detour]}.",
    )


def _phases(certificate: Certificate) -> Element:
    """Phases by how little they exceed their floors."""
    routed: dict[tuple[str, str], float] = {}
    for step in certificate.routing:
        key = step.job, step.phase
        routed[key] = min(step.weighted, routed.get(key, step.weighted))
    rows: list[list[Cell]] = []

    def margin(phase: PhaseResult) -> tuple[bool, float]:
        return phase.met, phase.interval.lower / phase.required if phase.required else float("inf")

    for phase in sorted(certificate.phases, key=margin):
        bounds = phase.interval
        row: list[Cell] = [phase.phase, phase.job, span(bounds.lower, bounds.upper)]
        row += [f"{'exact' if bounds.exact else 'interval'}: {bounds.how}", _bounds_bar(bounds, phase.required)]
        row += [part(routed[phase.job, phase.phase]) if (phase.job, phase.phase) in routed else ""] * bool(routed)
        row += ["" if bounds.ecmp is None else part(bounds.ecmp), part(phase.required), _met(phase.met)]
        rows.append(row)
    headings = [
        "phase",
        "job",
        "throughput",
        "proof",
        "0 to 100 %",
        *(["its routes"] if routed else []),
        "ECMP",
        "floor",
        "verdict",
    ]
    right = (2, *range(5, len(headings) - 1))
    return table(headings, rows, right=right)


def _bounds_bar(bounds: Interval, required: float | None) -> Element:
    """Proven in full colour, possible in a lighter one; the mark is what is required."""
    marks = [] if required is None else [required]
    return bar([("proven", 0.0, bounds.lower), ("possible", bounds.lower, bounds.upper)], marks)


def _met(met: bool) -> Element:
    return tag("span", MET[met], class_="tag good" if met else "tag bad")


def _failures(file: DesignFile, certificate: Certificate) -> Iterator[Element]:
    """Failures that are not survived as asked first, then by what is left."""
    worst = sorted(certificate.failures, key=lambda failure: (failure.met, failure.lower))
    asked = ", ".join(
        f"{item.count} {item.failure}{'s' if item.count > 1 else ''} lost, {part(item.throughput)} of the floors left"
        for item in file.requirements.survive
    )
    yield tag(
        "p",
        f"Asked for: {asked}. " if asked else "The instance asks for no failure to be survived. ",
        "A row stands for all cases that are alike; what is left is of the floor of the phase that fares worst.",
    )
    yield _failure_table(worst[:MOST_FAILURES])
    rest = worst[MOST_FAILURES:]
    if rest:
        more = len(rest) - MOST_OPENED
        note = [tag("p", f"and {more:,} more")] if more > 0 else []
        yield details(f"{len(rest):,} further classes of failures", _failure_table(rest[:MOST_OPENED]), *note)


def _failure_table(failures: list[FailureResult]) -> Element:
    cut = any(failure.gpus_cut_off for failure in failures)
    headings = ["without", "cases", "worst phase", "left of its floor", "0 to 100 %", "ECMP", "required"]
    rows: list[list[Cell]] = []
    for failure in failures:
        bounds = Interval(failure.lower, failure.upper, failure.ecmp, "")
        row: list[Cell] = [failure.removed, f"{failure.stands_for:,}", failure.worst_phase]
        row += [span(failure.lower, failure.upper), _bounds_bar(bounds, failure.required)]
        row += ["" if value is None else part(value) for value in (failure.ecmp, failure.required)]
        if cut:
            row.append(f"{failure.gpus_cut_off:,}")
        asked = failure.required is not None or not failure.met
        rows.append([*row, _met(failure.met) if asked else "not\N{NO-BREAK SPACE}asked"])
    headings += [*(["GPUs cut off"] if cut else []), "verdict"]
    return table(headings, rows, right=(1, 3, 5, 6, 7) if cut else (1, 3, 5, 6))


def _structure(certificate: Certificate) -> Iterator[Element]:
    lines = [*structure_words(certificate.structure), *availability_words(certificate), *relay_words(certificate)]
    if certificate.rail_only is not None:
        lines.append(certificate.rail_only.words)
    yield tag("ul", *(tag("li", line) for line in lines))
    told = [("holds" if check.met else "fails", check) for check in certificate.structure.checks]
    told += [("as a rule" if check.met else "told", check) for check in certificate.structure.reported]
    rows: list[list[Cell]] = [[check.name, word, "; ".join(check.found)] for word, check in told]
    yield details(f"All {len(rows)} checks of the structure", table(["check", "result", "exceptions"], rows))
    if certificate.routing:
        steps: list[list[Cell]] = []
        for step in certificate.routing[:MOST_OPENED]:
            ecmp = "" if step.ecmp is None else part(step.ecmp)
            steps.append([step.step, step.phase, step.job, part(step.weighted), ecmp, part(step.upper)])
        headings = ["step", "phase", "job", "its routes", "ECMP", "nothing exceeds"]
        yield details("Routes of the design, step by step", table(headings, steps, right=(3, 4, 5)))
