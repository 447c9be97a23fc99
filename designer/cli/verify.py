"""`designer verify`: everything that a design file says, checked again from the file alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from designer.cli.export import NamePatterns, names_of
from designer.cli.search_job import CheckProgress

if TYPE_CHECKING:
    from designer.certify.verify import Verification

FAILED = 7
MOST_FAILURES = 12
MOST_DIFFERENCES = 50


def verify(
    design: Annotated[Path, typer.Argument(metavar="DESIGN.json", help="Design file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Remove every element one by one; for small networks.")
    ] = False,
    wiring: Annotated[
        Path | None,
        typer.Option(
            "--wiring",
            metavar="FILE",
            help="Compare the cables of FILE with the design instead: a wiring CSV, topology.dot, or ibnetdiscover.",
        ),
    ] = None,
    name: NamePatterns = None,
) -> None:
    """Check everything that DESIGN.json says, from the file alone; with --wiring, whether cables are as designed.

    Exit codes: 0 all of it holds, 3 a file cannot be read, 7 something does not hold, with a list of it.
    """
    from designer.certify.verify import verify_design
    from designer.cli.console import render, write_json, write_out

    if wiring is not None:
        if exhaustive:
            raise typer.BadParameter("it removes elements of the design, not cables of FILE", param_hint="--exhaustive")
        raise typer.Exit(_verify_wiring(design, wiring, name, as_json=as_json))
    if name:
        raise typer.BadParameter("names are those of the cables of --wiring", param_hint="--name")
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


def _verify_wiring(design: Path, wiring: Path, patterns: "list[str] | None", *, as_json: bool) -> int:
    from designer.certify.read_design import read_design
    from designer.cli.console import printable, write_json, write_out
    from designer.export.as_built import read_wiring
    from designer.export.differences import check_wiring
    from designer.export.plan import make_plan

    plan = make_plan(read_design(design), names_of(patterns))
    result = check_wiring(plan, read_wiring(wiring, plan))
    if as_json:
        write_json(result.to_document())
        return 0 if result.ok else FAILED
    name, total = printable(result.wiring.path), f"{result.planned:,} links of {printable(plan.file.record.name)}"
    if result.ok:
        write_out(f"{name}: all {total} are as designed\n")
        return 0
    counts = ", ".join(f"{number} {kind}" for kind, number in result.counts().items())
    lines = [f"{name}: {result.right:,} of {total} are as designed: {counts}"]
    lines += [printable(f"- {difference}") for difference in result.differences[:MOST_DIFFERENCES]]
    more = len(result.differences) - MOST_DIFFERENCES
    lines += [f"... and {more:,} more (--json lists all)"] if more > 0 else []
    write_out("\n".join([*lines, ""]))
    return FAILED


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
