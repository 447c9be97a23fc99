"""`designer new`: a commented instance to start from."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Template(StrEnum):
    """The samples under `designer/instance/samples`."""

    DENSE = "dense"
    MOE = "moe"
    MULTI_JOB = "multi-job"
    EXISTING = "existing"


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the instance; the file is NAME.yaml.")],
    template: Annotated[Template, typer.Option(help="What to start from.")] = Template.DENSE,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="PATH", help="Write here instead of NAME.yaml.")
    ] = None,
    force: Annotated[bool, typer.Option("-f", "--force", help="Overwrite a file that exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write a commented instance to start from."""
    from designer.cli.console import write_error, write_json, write_out
    from designer.errors import InputError, Problem
    from designer.files import write_text_atomically

    if not (name.isprintable() and name.strip() and len(name) <= 200):
        raise typer.BadParameter("1 to 200 printable characters", param_hint="NAME")
    if output is None and Path(name).name != name:
        raise typer.BadParameter("a plain name; say with -o where the file goes", param_hint="NAME")
    path = output or Path(f"{name}.yaml")
    if path.exists() and not force:
        raise InputError([Problem(str(path), None, "", "a file that exists", "a new path, or --force to replace it")])
    write_text_atomically(path, sample_text(template.value, name))
    if as_json:
        write_json({"path": str(path), "name": name, "template": template.value})
    else:
        write_out(f"{path}\n")
        write_error(f"edit it, then: designer design {path}")


def sample_text(template: str, name: str) -> str:
    """The text of a sample, with `name` in its first field."""
    import json
    from importlib.resources import files

    text = files("designer.instance").joinpath("samples", f"{template}.yaml").read_text(encoding="utf-8")
    return text.replace("name: NAME\n", f"name: {json.dumps(name)}\n", 1)
