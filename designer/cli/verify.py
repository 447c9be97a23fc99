"""`designer verify`: everything that a design file says, checked again from the file alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from designer.cli.search_job import CheckProgress

if TYPE_CHECKING:
    from designer.certify.verify import Verification

FAILED = 7
MOST_FAILURES = 12


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
    from designer.cli.console import render, write_json, write_out

    checking = CheckProgress()
    try:
        result = verify_design(design, exhaustive=exhaustive, progress=checking)
    finally:
        checking.finish()
    if as_json:
        write_json(result.to_document())
    else:
        write_out(render(*_parts(result)))
    raise typer.Exit(0 if result.ok else FAILED)


def _parts(result: "Verification") -> "list[Any]":
    from rich.text import Text

    from designer.cli.certificate_report import failures_table, phases_table, structure_table
    from designer.cli.console import printable
    from designer.report.words import availability_words, relay_words

    name, certificate = printable(result.file.record.name), result.certificate
    verdict = "holds" if result.ok else f"does not hold: {len(result.findings)} findings"
    parts: list[Any] = [Text(f"{name}: {verdict}", style="bold"), Text("")]
    parts += [Text(printable(f"- {finding}")) for finding in result.findings]
    if result.findings:
        parts.append(Text(""))
    parts.append(structure_table(certificate.structure))
    if certificate.phases:
        parts += [Text(""), phases_table(certificate)]
    if certificate.failures:
        parts += [Text(""), failures_table(certificate, MOST_FAILURES)]
    further = [*availability_words(certificate), *relay_words(certificate)]
    if certificate.rail_only is not None:
        further.append(certificate.rail_only.words)
    for text in further:
        parts += [Text(""), Text(printable(text))]
    parts += [Text(printable(f"note: {note}")) for note in result.notes]
    return parts
