"""The `designer` program: its commands, and how every end of them becomes a message and an exit code."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from designer.cli import bench, catalog, compare, design, export, new, report, schema, study, traffic, verify
from designer.cli.console import prepare_streams, write_error
from designer.errors import DesignerError

INTERNAL_ERROR = 1
INTERRUPTED = 130
TRACEBACK = "DESIGNER_TRACEBACK"

# Plain help texts: rich would take longer to import than all the rest of `--help`.
app = typer.Typer(
    name="designer",
    help="Designs the network of a GPU cluster at proven minimum cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        from designer.cli.console import write_out
        from designer.result import package_version

        write_out(f"designer {package_version()}\n")
        raise typer.Exit


@app.callback()
def designer(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Designs the network of a GPU cluster at proven minimum cost."""


app.command("new")(new.new)
app.command("design")(design.design)
app.command("verify")(verify.verify)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("traffic")(traffic.traffic)
app.command("study")(study.study)
app.command("bench")(bench.bench)
app.command("export")(export.export)
app.add_typer(catalog.app, name="catalog")
app.command("schema")(schema.schema)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits with the code of the contract; no exception leaves it but SystemExit."""
    prepare_streams()
    try:
        app(args=arguments, prog_name="designer")
    except DesignerError as error:
        code = error.exit_code
        write_error(f"designer: {error}" if code == INTERNAL_ERROR else str(error))
    except KeyboardInterrupt:
        code = INTERRUPTED
        write_error("interrupted")
    except Exception as error:  # noqa: BLE001 - a user never sees a traceback unasked
        code = INTERNAL_ERROR
        if os.environ.get(TRACEBACK) == "1":
            write_error(traceback.format_exc().rstrip())
        message = str(error).strip().split("\n")[0]
        what = type(error).__name__ + (f": {message}" if message else "")
        write_error(f"internal error: {what} (set {TRACEBACK}=1 to see where)")
    else:
        code = 0
    sys.exit(code)
