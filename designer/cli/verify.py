"""`designer verify`: everything that a design file says, checked again from the file alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from designer.certify.verify import Verification

FAILED = 7
MAX_SHOWN = 12


def verify(
    design: Annotated[Path, typer.Argument(metavar="DESIGN.json", help="Design file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Remove every element one by one; for small networks.")
    ] = False,
) -> None:
    """Check everything that DESIGN.json says, from the file alone.

    Exit codes: 0 all of it holds, 3 the file cannot be read as a design, 7 something does not hold, with a list of it.
    """
    from designer.certify.verify import verify_design
    from designer.cli.console import render, write_error, write_json, write_out

    result = verify_design(design, exhaustive=exhaustive, progress=lambda part: write_error(f"checking: {part}"))
    if as_json:
        write_json(result.to_document())
    else:
        write_out(render(*_parts(result)))
    raise typer.Exit(0 if result.ok else FAILED)


def _parts(result: "Verification") -> "list[Any]":
    from rich.text import Text

    from designer.cli.console import printable

    name = printable(result.file.record.name)
    verdict = "holds" if result.ok else f"does not hold: {len(result.findings)} findings"
    parts: list[Any] = [Text(f"{name}: {verdict}", style="bold"), Text("")]
    parts += [Text(printable(f"- {finding}")) for finding in result.findings]
    if result.findings:
        parts.append(Text(""))
    parts.append(_checks(result))
    if result.certificate.phases:
        parts += [Text(""), _phases(result)]
    if result.certificate.failures:
        parts += [Text(""), _failures(result)]
    rail_only = result.certificate.rail_only
    if rail_only is not None:
        parts += [Text(""), Text(printable(rail_only.words))]
    parts += [Text(printable(f"note: {note}")) for note in result.notes]
    return parts


def _checks(result: "Verification") -> Any:
    from designer.cli.console import printable, table

    rows = table("structure", "", "")
    structure = result.certificate.structure
    for check in structure.checks:
        rows.add_row(check.name, "holds" if check.met else "fails", "")
    for check in structure.reported:
        rows.add_row(check.name, "as a rule" if check.met else "told", printable("; ".join(check.found)))
    return rows


def _phases(result: "Verification") -> Any:
    from designer.cli.console import printable, table

    rows = table("job", "phase", "throughput", "ECMP", "required", "", right=(2, 3, 4))
    for phase in result.certificate.phases:
        bounds = phase.interval
        span = f"{bounds.lower:.6g}" if bounds.exact else f"{bounds.lower:.6g} to {bounds.upper:.6g}"
        ecmp = "" if bounds.ecmp is None else f"{bounds.ecmp:.6g}"
        met = "met" if phase.met else "falls short"
        rows.add_row(printable(phase.job), printable(phase.phase), span, ecmp, f"{phase.required:g}", met)
    return rows


def _failures(result: "Verification") -> Any:
    from designer.cli.console import printable, table

    rows = table("without", "cases", "worst phase", "left", "ECMP", "required", "", right=(1, 3, 4, 5))
    worst = sorted(result.certificate.failures, key=lambda failure: (failure.met, failure.lower))
    for failure in worst[:MAX_SHOWN]:
        ecmp = "" if failure.ecmp is None else f"{failure.ecmp:.6g}"
        required = "" if failure.required is None else f"{failure.required:g}"
        met = "met" if failure.met else "falls short"
        cells = (failure.removed, f"{failure.stands_for:,}", failure.worst_phase, f"{failure.lower:.6g}")
        rows.add_row(*map(printable, cells), ecmp, required, met)
    if len(worst) > MAX_SHOWN:
        rows.add_row(f"and {len(worst) - MAX_SHOWN} more, none of them worse")
    return rows
