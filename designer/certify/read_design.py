"""Reads a design file, trusting nothing in it, into what the checks start from."""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never, cast

from pydantic import BaseModel, ConfigDict

from designer.catalog import Catalog, catalog_from_document
from designer.catalog.components import Gpu, Nic
from designer.certify.read_columns import ColumnReader
from designer.design_schema import DesignFile as DesignRecord
from designer.design_schema import TrafficRecord
from designer.digest import FIELD, document_digest
from designer.errors import InputError, Problem
from designer.fabric.fabric import Fabric
from designer.instance.cluster import resolve_cluster
from designer.instance.instance import Cluster
from designer.instance.schema import ClusterSection, EnergySection, RequirementsSection
from designer.plain_yaml import dotted
from designer.source import Source, validate
from designer.units import cents
from designer.workload.traffic import Component, Phase, Step, Traffic

MAX_BYTES = 1 << 29
MAX_USD = 1e15
PATTERNS = ("all-to-all", "any", "shift", "exchange")
AMOUNTS = ("cost_usd", "lower_bound_usd", "any_topology_bound_usd", "capex_usd", "energy_usd", "assumed_usd")


class _Parts(BaseModel):
    """The parts of a design file that an instance file has too."""

    model_config = ConfigDict(extra="ignore")

    cluster: ClusterSection
    requirements: RequirementsSection
    energy: EnergySection


@dataclass(frozen=True)
class DesignFile:
    """The content of a design file. `record` holds what it declares; the rest is what the checks recompute it from.

    `family` says which checks of shape apply. `digest` is the one that the file states, `true_digest` that of its
    content. `certificate` is None where the file has none, and so are `routing` and `old_fabric`, the network that was
    there before.
    """

    path: str
    record: DesignRecord
    fabric: Fabric
    traffic: Traffic
    cluster: Cluster
    family: str
    requirements: RequirementsSection
    energy: EnergySection
    catalog: Catalog
    catalog_document: Mapping[str, Any]
    instance: Mapping[str, Any]
    certificate: Mapping[str, Any] | None
    routing: Mapping[str, Any] | None
    old_fabric: Fabric | None
    digest: str | None
    true_digest: str

    def cents(self, field: str) -> int | None:
        """An amount of the record in cents; None where it is null."""
        value = getattr(self.record, field)
        return None if value is None else cents(value)


def read_design(path: Path | str) -> DesignFile:
    """The content of a design file.

    Raises:
        InputError: it cannot be read as one; every problem found is named by its field.
    """
    return design_from_document(_json(path), str(path))


def design_from_document(document: object, path: str = "design") -> DesignFile:
    """The content of a design document; `path` is what messages call it.

    Raises:
        InputError: it is none; every problem found is named by its field.
    """
    record = validate(DesignRecord, Source(path, _without_columns(document)))
    fields = cast("dict[str, Any]", document)
    problems = [
        Problem(path, None, name, f"{fields[name]:g}", f"at most {MAX_USD:g}")
        for name in AMOUNTS
        if fields[name] is not None and fields[name] > MAX_USD
    ]
    for number, line in enumerate(record.bill_of_materials):
        if max(line.unit_usd, line.unit_energy_usd, line.total_usd) > MAX_USD:
            problems.append(Problem(path, None, f"bill_of_materials[{number}]", "a larger amount", f"{MAX_USD:g}"))
    for number, row in enumerate(record.comparison):
        if row.cost_usd > MAX_USD:
            problems.append(Problem(path, None, f"comparison[{number}].cost_usd", "more", f"at most {MAX_USD:g}"))
    parts = validate(_Parts, Source(path, {name: fields[name] for name in ("cluster", "requirements", "energy")}))
    catalog = catalog_from_document(fields["catalog"])
    reader = ColumnReader(path)
    fabric = reader.fabric(fields["fabric"])
    problems += reader.problems
    old_fabric = _old_fabric(fields.get("existing"), path, problems)
    traffic = _traffic(record.traffic, path, problems)
    cluster = _cluster(parts.cluster, catalog, record, path, problems)
    certificate = fields.get("certificate")
    if certificate is not None and not isinstance(certificate, Mapping):
        problems.append(Problem(path, None, "certificate", type(certificate).__name__, "a mapping of fields"))
    routing = fields.get("routing")
    if routing is not None and not isinstance(routing, Mapping):
        problems.append(Problem(path, None, "routing", type(routing).__name__, "a mapping of fields"))
    digest = fields.get(FIELD)
    if problems or fabric is None or cluster is None:
        raise InputError(problems)
    return DesignFile(
        path,
        record,
        fabric,
        traffic,
        cluster,
        record.family,
        parts.requirements,
        parts.energy,
        catalog,
        fields["catalog"],
        fields["instance"],
        cast("Mapping[str, Any] | None", certificate),
        cast("Mapping[str, Any] | None", routing),
        old_fabric,
        digest if isinstance(digest, str) else None,
        document_digest(fields),
    )


def traffic_from_document(document: object, path: str = "traffic") -> Traffic:
    """The traffic that a design file holds.

    Raises:
        InputError: it is none; every problem found is named by its field.
    """
    record = validate(TrafficRecord, Source(path, document))
    problems: list[Problem] = []
    traffic = _traffic(record, path, problems)
    if problems:
        raise InputError(problems)
    return traffic


def _json(path: Path | str) -> object:
    allowed = f"a design file: JSON in UTF-8 of at most {MAX_BYTES >> 20} MiB"

    def refuse(found: str, line: int | None = None) -> InputError:
        return InputError([Problem(str(path), line, "", found, allowed)])

    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
            raise refuse("a folder" if stat.S_ISDIR(status.st_mode) else "a device or pipe")
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise refuse("no such file") from None
    except ValueError:
        raise refuse("a path with a character that no file name may have") from None
    except OSError as error:
        raise refuse(f"a file that cannot be read ({error.strerror or os.strerror(error.errno or 0)})") from None
    if len(content) > MAX_BYTES:
        raise refuse(f"more than {MAX_BYTES >> 20} MiB")
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise refuse(f"the byte 0x{content[error.start]:02x}, which is not UTF-8") from None
    except json.JSONDecodeError as error:
        whole = error.pos >= len(error.doc.rstrip())
        end = "text that ends too early: it was cut off" if whole else f"no JSON: {error.msg} (column {error.colno})"
        raise refuse(end, error.lineno) from None
    except RecursionError:
        raise refuse("nesting without end") from None
    except ValueError as error:  # a field twice, NaN, a number of thousands of digits
        raise refuse(str(error)[:200]) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r} twice")
    return result


def _no_number(text: str) -> Never:
    raise ValueError(f"{text}, which is not a number")


def _without_columns(document: object) -> object:
    """The document with empty columns: those are read by themselves, half a million entries at a time."""
    if not isinstance(document, Mapping):
        return document
    fields = dict(cast("Mapping[str, Any]", document))
    if isinstance(fields.get("existing"), Mapping):
        fields["existing"] = _without_columns(fields["existing"])
    fabric = fields.get("fabric")
    if isinstance(fabric, Mapping):
        parts = dict(cast("Mapping[str, Any]", fabric))
        for name in ("nodes", "links"):
            if isinstance(parts.get(name), Mapping):
                parts[name] = {
                    column: [] if isinstance(values, list | Mapping) else values
                    for column, values in cast("Mapping[str, Any]", parts[name]).items()
                }
        fields["fabric"] = parts
    return fields


def _old_fabric(existing: object, path: str, problems: list[Problem]) -> Fabric | None:
    """The network that was there before; None where the file names none, or after problems were noted."""
    if not isinstance(existing, Mapping):
        return None
    reader = ColumnReader(path, "existing.fabric")
    fabric = reader.fabric(cast("Mapping[str, Any]", existing)["fabric"])
    problems += reader.problems
    return fabric


def _cluster(
    section: ClusterSection, catalog: Catalog, record: DesignRecord, path: str, problems: list[Problem]
) -> Cluster | None:
    """The cluster of the file on its catalog. Beside servers the other fields say again what follows from them."""
    before = len(problems)

    def refuse(location: tuple[str | int, ...], found: object, allowed: str) -> None:
        problems.append(Problem(path, None, dotted(location), str(found), allowed))

    for number, key in enumerate(record.fabric.models):
        if key not in catalog.switches:
            refuse(("fabric", "models", number), repr(key), f"one of: {', '.join(catalog.switches) or 'none'}")
    said = (section.gpus, section.hb_domain, section.rails)
    if None in said:
        refuse(("cluster",), "no gpus, hb_domain or rails", "all three")
    derived: dict[str, None] = dict.fromkeys(("gpus", "gpu", "nic", "hb_domain", "rails"))
    stated = section if section.servers is None else section.model_copy(update=derived)
    cluster = resolve_cluster(stated, catalog, refuse)
    if cluster is None or len(problems) > before:
        return None
    for field in derived:
        due = getattr(cluster, field)
        due = due.key if isinstance(due, Gpu | Nic) else due
        if getattr(section, field) != due:
            refuse(("cluster", field), repr(getattr(section, field)), f"{due!r}, as the servers have it")
    if (record.traffic.gpus, record.traffic.hb_domain, record.traffic.rails) != said:
        refuse(("traffic",), "another cluster", "gpus, hb_domain and rails of the cluster")
    return None if len(problems) > before else cluster


def _traffic(record: TrafficRecord, path: str, problems: list[Problem]) -> Traffic:
    phases: list[Phase] = []
    for number, phase in enumerate(record.phases):
        at = f"traffic.phases[{number}]"
        if not 1 <= phase.gpus <= record.gpus - phase.first_gpu:
            found = f"{phase.gpus} GPUs from {phase.first_gpu} on"
            problems.append(Problem(path, None, at, found, f"GPUs within the {record.gpus} of the cluster"))
        units = phase.gpus // record.hb_domain if phase.across == "rail" and record.hb_domain else phase.gpus
        steps: list[Step] = []
        for place, step in enumerate(phase.steps):
            parts = tuple(
                Component(part.pattern, part.stride, part.size, part.by, part.rate) for part in step.components
            )
            here = f"{at}.steps[{place}]"
            wrong = [found for part in parts if (found := _component_problem(part, units))]
            problems += [Problem(path, None, here, found, f"a pattern on {units} members") for found in wrong]
            if sum(part.rate for part in parts) > 1 + 1e-9:
                problems.append(Problem(path, None, here, "more than one NIC", "rates that add up to 1"))
            steps.append(Step(step.name, parts, step.nic_bytes))
        phases.append(
            Phase(
                phase.name,
                phase.job,
                tuple(steps),
                phase.floor,
                phase.domain_bytes,
                phase.across,
                phase.first_gpu,
                phase.gpus,
            )
        )
    return Traffic(record.gpus, record.hb_domain, record.rails, tuple(phases))


def _component_problem(part: Component, units: int) -> str | None:
    if part.pattern not in PATTERNS:
        return f"the pattern {part.pattern!r}, none of {', '.join(PATTERNS)}"
    if part.stride < 1 or part.size < 1 or part.by < 0 or not 0 < part.rate <= 1:
        return f"stride {part.stride}, size {part.size}, by {part.by}, rate {part.rate:g}"
    if units % (part.stride * part.size):
        return f"groups of {part.size}, {part.stride} apart"
    if part.pattern == "shift" and part.by >= part.size:
        return f"a shift by {part.by} in groups of {part.size}"
    if part.pattern == "exchange" and (part.by < 1 or part.by & (part.by - 1) or part.size % (2 * part.by)):
        return f"an exchange at distance {part.by} in groups of {part.size}"
    return None
