"""`designer report`: a design file as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    design: Annotated[Path, typer.Argument(metavar="DESIGN.json", help="Design file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="REPORT.html", help="Write the page here.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show all that DESIGN.json says as one page that needs nothing but itself.

    Exit codes: 0 written, 3 the file cannot be read as a design, or the page cannot be written.
    """
    from designer.certify.read_design import read_design
    from designer.cli.console import write_json, write_out
    from designer.files import check_writable, write_text_atomically
    from designer.report.page import report_page

    if output.exists() and design.exists() and output.samefile(design):
        raise typer.BadParameter("the page would overwrite the design", param_hint="-o")
    check_writable(output)
    file = read_design(design)
    text = report_page(file)
    write_text_atomically(output, text)
    if as_json:
        write_json({"path": str(output), "name": file.record.name, "bytes": len(text.encode())})
    else:
        write_out(f"{output}\n")
