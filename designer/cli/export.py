"""`designer export`: a design in the formats of those who buy, cable, simulate and schedule."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from designer.export.names import Names


class Format(StrEnum):
    """The formats, by the names of `designer.export.formats.FORMATS`; listed anew so that --help needs no imports."""

    NODE_LINK = "node-link"
    GRAPHML = "graphml"
    WIRING_CSV = "wiring-csv"
    WIRING_XLSX = "wiring-xlsx"
    BOM_CSV = "bom-csv"
    BOM_XLSX = "bom-xlsx"
    NETBOX = "netbox"
    SLURM_TREE = "slurm-tree"
    SLURM_BLOCK = "slurm-block"
    SLURM_YAML = "slurm-yaml"
    PTM = "ptm"
    IB_TOPO = "ib-topo"
    IBSIM = "ibsim"
    NS3 = "ns3"
    ASTRA_SIM = "astra-sim"
    HTSIM = "htsim"
    LP = "lp"
    MPS = "mps"


NamePatterns = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="KIND=PATTERN",
        help="Pattern of names, as in leaf=r{rail}-l{index}; kinds: server, management, leaf, spine, core, port, nic.",
    ),
]


def export(
    design: Annotated[Path, typer.Argument(metavar="DESIGN.json", help="Design file.")],
    format_: Annotated[Format, typer.Option("--format", "-f", help="What to write.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PATH", help="File, or folder for netbox.")],
    name: NamePatterns = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of the path.")] = False,
) -> None:
    """Write DESIGN.json for other tools: wiring plans, bills, inventories, schedulers, subnet managers, simulators.

    Exit codes: 0 written, 2 no such format, 3 a file that cannot be read or written, or a design that the format cannot
    express.
    """
    from designer.certify.read_design import read_design
    from designer.cli.console import write_error, write_json, write_out
    from designer.export.formats import export_design

    names = names_of(name)
    if output.exists() and design.exists() and output.samefile(design):
        raise typer.BadParameter("the export would overwrite the design", param_hint="-o")
    notes = export_design(read_design(design), format_.value, output, names)
    if as_json:
        write_json({"format": format_.value, "path": str(output), "notes": list(notes)})
    else:
        write_out(f"{output}\n")
    for note in notes:
        write_error(f"note: {note}")


def names_of(options: "list[str] | None") -> "Names":
    """Names by the options `--name`; a pattern that cannot be used is a usage error."""
    from designer.export.names import PatternError, names_from_options

    try:
        return names_from_options(options or [])
    except PatternError as error:
        raise typer.BadParameter(str(error), param_hint="--name") from None
