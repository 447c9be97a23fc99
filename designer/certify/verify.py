"""Everything about a design file checked again from the file alone: what `designer verify` does.

The structure, bill, counts, bound and certificate are computed anew from the fabric, link by link, and set against what
the file declares. Whatever does not agree is a finding with its place.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from designer.catalog import Catalog, catalog_names, load_catalog
from designer.certify.availability import availability, elements_of
from designer.certify.certificate import (
    Certificate,
    FailureResult,
    PhaseResult,
    RailOnlyCheck,
    RoutingResult,
    Structure,
)
from designer.certify.declared import (
    bill_findings,
    bound_findings,
    comparison_findings,
    instance_findings,
    step_findings,
)
from designer.certify.existing import existing_findings
from designer.certify.rail_only import NAME, TemplateClaim, check_rail_only
from designer.certify.read_design import DesignFile, read_design
from designer.certify.relays import RelayOverhead, relay_overhead
from designer.certify.routing import judge_routing
from designer.certify.run import certify_throughput
from designer.certify.structure import CLOS, check_structure
from designer.certify.view import FabricView
from designer.errors import InputError
from designer.fabric.fabric import MANAGEMENT
from designer.units import cents

TOLERANCE = 1e-6
Progress = Callable[[str], None]
Results = tuple[tuple[PhaseResult, ...], tuple[FailureResult, ...]]


@dataclass(frozen=True)
class Finding:
    """One thing that does not hold: its kind in a word, and where and what in a sentence."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class Verification:
    """What a check of a design file found. `notes` are told, they are no fault of the design."""

    file: DesignFile
    certificate: Certificate
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether all that the file says holds."""
        return not self.findings

    def to_document(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "name": self.file.record.name,
            "ok": self.ok,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
            "certificate": self.certificate.to_document(),
        }


def verify_design(path: Path | str, *, exhaustive: bool = False, progress: Progress | None = None) -> Verification:
    """Check a design file from the file alone; `progress` is told each part as it begins.

    `exhaustive` also removes every element one by one rather than one of each class; meant for small fabrics.

    Raises:
        InputError: the file cannot be read as a design.
    """
    tell = progress or _silent
    tell("reading")
    return verify_file(read_design(path), exhaustive=exhaustive, progress=tell)


def verify_file(file: DesignFile, *, exhaustive: bool = False, progress: Progress | None = None) -> Verification:
    """Check the content of a design file; as `verify_design`."""
    tell = progress or _silent
    found: list[tuple[str, str]] = []
    if file.digest != file.true_digest:
        what = "is missing" if file.digest is None else "is not that of the content: the file was edited"
        found.append(("digest", f"digest: {what}"))
    tell("structure")
    structure = structure_of(file)
    found += [
        ("counts" if check.name == "counts" else "structure", f"{check.name}: {exception}")
        for check in structure.checks
        for exception in check.found
    ]
    tell("bill, bound and instance")
    for part in (bill_findings, bound_findings, comparison_findings, instance_findings, existing_findings):
        found += part(file)
    # Flows on a broken fabric mean nothing, and need not even be defined.
    pairs = any("+" in name for name in _failures_said(file)) and not exhaustive
    results: Results = ((), ())
    if structure.met:
        results = throughput_of(file, exhaustive=exhaustive, pairs=pairs, progress=tell)
    routed: tuple[RoutingResult, ...] = ()
    if structure.met and file.routing is not None:
        tell("routes")
        try:
            routed = routing_of(file)
        except InputError as error:
            found += [("routing", f"{problem.field}: {problem.found}; {problem.allowed}") for problem in error.problems]
    certificate = certificate_of(file, structure, results, routed)
    found += _unmet(certificate)
    if structure.met:
        found += step_findings(file, certificate)
        found += _certificate_findings(file, certificate, singles_only=exhaustive)
    notes = [message for kind, message in found if kind == "note"] + _catalog_notes(file)
    findings = tuple(Finding(kind, message) for kind, message in found if kind != "note")
    return Verification(file, certificate, findings, tuple(notes))


def structure_of(file: DesignFile) -> Structure:
    """The structural checks of the file's fabric against its cluster, catalog and declared counts."""
    declared = file.record.counts.model_dump()
    return check_structure(
        file.fabric,
        file.catalog,
        file.cluster,
        declared,
        symmetric_uplinks=file.requirements.symmetric_uplinks,
        family=file.family,
        any_port=file.old_fabric is not None,
    )


def throughput_of(file: DesignFile, *, exhaustive: bool, pairs: bool, progress: Progress | None) -> Results:
    """Phases and failures, computed from the fabric."""
    return certify_throughput(
        file.fabric,
        file.traffic,
        file.requirements,
        file.cluster.scale_up_gbps,
        progress,
        pairs=pairs,
        exhaustive=exhaustive,
    )


def routing_of(file: DesignFile) -> tuple[RoutingResult, ...]:
    """What the routes in the file carry of every step.

    Raises:
        InputError: the routes are not of this fabric and traffic.
    """
    return () if file.routing is None else judge_routing(file.fabric, file.traffic, file.routing)


def certificate_of(
    file: DesignFile, structure: Structure, results: Results, routed: tuple[RoutingResult, ...] = ()
) -> Certificate:
    """All results about the file's design in one certificate."""
    phases, failures = results
    chances: dict[str, Any] = {}
    relays: RelayOverhead | None = None
    if phases:
        relays = _relays(file)
        worst = min((_carried(file, phase) / phase.required for phase in phases if phase.required), default=1.0)
        met = structure.met and all(phase.met for phase in phases)
        counts = file.fabric.counts()
        counts["endpoint_links"] -= int((file.fabric.nodes.kind == MANAGEMENT).sum())
        routing = file.requirements.routing
        found = availability(elements_of(counts), failures, routing=routing, intact_throughput=worst, intact_met=met)
        chances = asdict(found)
    return Certificate(phases, failures, structure, _rail_only(file), chances, relays, routed)


def _relays(file: DesignFile) -> RelayOverhead | None:
    """What the hop inside the domain costs an all-to-all whose traffic keeps to the rails; None where there is none."""
    crossing = [
        phase
        for phase in file.traffic.network_phases
        if phase.across == "rail"
        and any(part.pattern == "all-to-all" for step in phase.steps for part in step.components)
    ]
    scale_up_gbps = file.cluster.scale_up_gbps
    if not crossing or file.traffic.hb_domain == 1 or scale_up_gbps <= 0:
        return None
    view = FabricView(file.fabric)
    fastest_gbps = max(view.line_rate_gbps(phase) for phase in crossing)
    return relay_overhead(file.traffic.hb_domain, fastest_gbps, scale_up_gbps)


def _carried(file: DesignFile, phase: PhaseResult) -> float:
    return phase.interval.lower if file.requirements.routing == "adaptive" else phase.interval.ecmp or 0.0


def _rail_only(file: DesignFile) -> RailOnlyCheck:
    row = next((row for row in file.record.comparison if row.template == NAME), None)
    claim = None
    if row is not None:
        claim = TemplateClaim(row.switch, cents(row.cost_usd), row.counts.model_dump(), row.meets, row.why)
    catalog = file.catalog
    if claim is not None and claim.switch not in catalog.switches and (shipped := _shipped(file)):
        catalog = shipped
    counts = file.record.counts.model_dump()
    names = [found.family for found in file.record.families]
    searched = CLOS in names or not names
    return check_rail_only(file.cluster, catalog, claim, cents(file.record.cost_usd), counts, searched=searched)


def _unmet(certificate: Certificate) -> Iterator[tuple[str, str]]:
    for phase in certificate.phases:
        if not phase.met:
            at = f"phase {phase.phase} of {phase.job}"
            yield "requirement", f"{at}: carries {phase.interval.lower:g}, required is {phase.required:g}"
    for failure in certificate.failures:
        if not failure.met:
            required = "nothing" if failure.required is None else f"{failure.required:g}"
            left = f"{failure.lower:g} of {failure.worst_phase} is left, required is {required}"
            yield "requirement", f"without {failure.removed} ({failure.stands_for} such cases): {left}"
    rail_only = certificate.rail_only
    if rail_only is not None and not rail_only.met:
        yield "rail-only", rail_only.words


def _failures_said(file: DesignFile) -> list[str]:
    """Names of the failure classes in the file's own certificate."""
    failures = file.certificate.get("failures") if file.certificate is not None else None
    if not isinstance(failures, list):
        return []
    entries = cast("list[Any]", failures)
    return [str(cast("Mapping[str, Any]", entry).get("removed")) for entry in entries if isinstance(entry, Mapping)]


def _certificate_findings(
    file: DesignFile, certificate: Certificate, *, singles_only: bool
) -> Iterator[tuple[str, str]]:
    """Where the certificate in the file is not the one computed; `singles_only` leaves pairs and what rests on them."""
    if file.certificate is None:
        yield "certificate", "certificate: the file holds none"
        return
    due = certificate.to_document()
    said = file.certificate.get("failures")
    if singles_only and isinstance(said, list):
        entries = cast("list[Mapping[str, Any]]", said)
        said = [entry for entry in entries if "+" not in str(entry.get("removed"))]
    yield from _list_differences("phases", file.certificate.get("phases"), due["phases"], ("job", "phase"))
    yield from _list_differences(
        "routing", file.certificate.get("routing", []), due["routing"], ("job", "phase", "step")
    )
    yield from _list_differences("failures", said, due["failures"], ("removed", "worst_phase"))
    for part in ("structure", "rail_only", *(() if singles_only else ("availability", "relays", "met"))):
        yield from _differences(f"certificate.{part}", file.certificate.get(part), due[part])


def _list_differences(
    part: str, said: object, due: list[dict[str, Any]], keys: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    at = f"certificate.{part}"
    entries = cast("list[object]", said) if isinstance(said, list) else []
    if not isinstance(said, list) or not all(isinstance(entry, Mapping) for entry in entries):
        yield "certificate", f"{at}: no list of entries"
        return
    theirs, ours = _by_key(cast("list[Mapping[str, Any]]", said), keys), _by_key(due, keys)
    for key in dict.fromkeys([*ours, *theirs]):
        name = f"{at}[{', '.join(str(word) for word in key)}]"
        here, there = theirs.get(key, []), ours.get(key, [])
        if len(here) != len(there):
            yield "certificate", f"{name}: {len(here)} entries in the file, {len(there)} found anew"
            continue
        for one, other in zip(here, there, strict=True):
            yield from _differences(name, one, other)


def _by_key(entries: list[Any], keys: tuple[str, ...]) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        found[tuple(str(entry.get(key)) for key in keys)].append(entry)
    return found


def _differences(at: str, said: Any, due: Any) -> Iterator[tuple[str, str]]:
    """Every leaf of plain data that differs: numbers by more than 1e-6, all else at all."""
    if isinstance(due, Mapping) and isinstance(said, Mapping):
        here, there = cast("Mapping[str, Any]", said), cast("Mapping[str, Any]", due)
        for name in dict.fromkeys([*there, *here]):
            yield from _differences(f"{at}.{name}", here.get(name), there.get(name))
    elif isinstance(due, list | tuple) and isinstance(said, list | tuple):
        here, there = cast("list[Any]", said), cast("list[Any]", due)
        if len(here) != len(there):
            yield "certificate", f"{at}: {len(here)} entries in the file, {len(there)} found anew"
        for number, (one, other) in enumerate(zip(here, there, strict=False)):
            yield from _differences(f"{at}[{number}]", one, other)
    elif not _same(cast("object", said), cast("object", due)):
        yield "certificate", f"{at}: the file says {said!r}, found anew {due!r}"


def _same(said: object, due: object) -> bool:
    real = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (said, due))
    if real and (isinstance(said, float) or isinstance(due, float)):
        one, other = cast("float", said), cast("float", due)
        return abs(one - other) <= TOLERANCE * max(1.0, abs(other))
    return type(said) is type(due) and said == due


def _shipped(file: DesignFile) -> Catalog | None:
    """The catalogs that the file names, as they ship with this package; None where one is a user's own."""
    names = file.catalog.names
    return load_catalog(list(names)) if names and set(names) <= set(catalog_names()) else None


def _catalog_notes(file: DesignFile) -> list[str]:
    """Entries of the file's catalog that the same release ships differently."""
    try:
        here = version("designer")
    except PackageNotFoundError:
        here = "unknown"  # as a package that is not installed writes it
    shipped = _shipped(file)
    if shipped is None or file.record.provenance.version != here:
        return []
    notes: list[str] = []
    for section in ("switches", "nics", "transceivers", "fibres", "cables", "gpus"):
        known: Mapping[str, object] = getattr(shipped, section)
        entries: Mapping[str, object] = getattr(file.catalog, section)
        notes += [
            f"catalog.{section}.{key}: not as catalog {'+'.join(file.catalog.names)} of version {here} has it"
            for key, entry in entries.items()
            if known.get(key) != entry
        ]
    return notes


def _silent(_: str) -> None:
    """Nobody listens."""
