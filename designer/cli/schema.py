"""`designer schema`: JSON Schema of the files that the program reads and writes."""

from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """The kinds of files of the contract."""

    INSTANCE = "instance"
    CATALOG = "catalog"
    DESIGN = "design"
    STUDY = "study"


def schema(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="instance, catalog, design or study.")] = Kind.INSTANCE,
    as_json: Annotated[bool, typer.Option("--json", help="The output is JSON in any case.")] = False,  # noqa: ARG001
) -> None:
    """Print the JSON Schema of a file, for editors and checks."""
    import json

    from designer.cli.console import write_out

    if kind is Kind.STUDY:
        from designer.study.schema import StudyFile as Model
    elif kind is Kind.INSTANCE:
        from designer.instance.schema import InstanceFile as Model
    elif kind is Kind.CATALOG:
        from designer.catalog.schema import CatalogFile as Model
    else:
        from designer.design_schema import DesignFile as Model
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Model.model_json_schema()}
    write_out(json.dumps(document, indent=2) + "\n")
