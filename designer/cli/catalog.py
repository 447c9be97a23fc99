"""`designer catalog`: the components that networks are made of."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from designer.catalog import Catalog

BAD_INPUT = 3

Layers = Annotated[
    list[str] | None,
    typer.Option("--catalog", metavar="SPEC", help="builtin, paper-2023 or a file; repeat it to overlay. [builtin]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

app = typer.Typer(help="List, show and check the components of a catalog.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def catalog(context: typer.Context) -> None:
    """List, show and check the components of a catalog."""
    if context.invoked_subcommand is None:
        list_components()


def _load(layers: list[str] | None, files: list[Path] | None = None) -> "Catalog":
    from designer.catalog import load_catalog

    return load_catalog([*(layers or ["builtin"]), *(files or [])])


def _sections(catalog: "Catalog") -> dict[str, dict[str, Any]]:
    from designer.catalog.load import SECTIONS

    return {section: dict(getattr(catalog, section)) for section in SECTIONS}


@app.command("list")
def list_components(layers: Layers = None, as_json: Json = False) -> None:
    """List the components of a catalog."""
    from designer.cli.console import printable, render, table, write_json, write_out
    from designer.report.words import money

    sections = _sections(_load(layers))
    if as_json:
        write_json({name: [_document(item) for item in records.values()] for name, records in sections.items()})
        return
    result = table("section", "key", "vendor", "model", "price", right=(4,))
    for name, records in sections.items():
        for key, item in records.items():
            price = item.price
            text = "" if price is None else money(price.cents) + ("*" if price.assumed else " ")
            result.add_row(name, printable(key), printable(item.vendor), printable(item.model), text)
    write_out(render(result) + "* assumed: no source published the price\n")


@app.command()
def show(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of the component.")],
    layers: Layers = None,
    as_json: Json = False,
) -> None:
    """Show all that is known of one component."""
    from difflib import get_close_matches

    from designer.cli.console import printable, render, write_json, write_out
    from designer.cli.design_report import facts
    from designer.errors import CatalogError, Problem

    catalog = _load(layers)
    sections = _sections(catalog)
    found = [(name, records[key]) for name, records in sections.items() if key in records]
    if not found:
        known = [other for records in sections.values() for other in records]
        near = get_close_matches(key, known, 3)
        allowed = (
            f"a key of the catalog; did you mean {', '.join(near)}?" if near else "a key of `designer catalog list`"
        )
        raise CatalogError([Problem("+".join(catalog.names), None, "", repr(key), allowed)])
    section, item = found[0]
    document = {"section": section, **_document(item)}
    if as_json:
        write_json(document)
        return
    write_out(render(facts((name, printable(_words(value))) for name, value in document.items())))


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE ...]", help="Catalog files to lay over the catalog.")
    ] = None,
    layers: Layers = None,
    as_json: Json = False,
) -> None:
    """Look for nonsense in a catalog, with the files laid over it in their order.

    Exit code 3 when anything is found.
    """
    from designer.catalog import check_catalog
    from designer.cli.console import printable, write_json, write_out

    catalog = _load(layers, files)
    findings = check_catalog(catalog)
    if as_json:
        write_json({"names": list(catalog.names), "findings": [asdict(finding) for finding in findings]})
    else:
        count = sum(len(records) for records in _sections(catalog).values())
        lines = [str(finding) for finding in findings] or [
            f"{'+'.join(catalog.names)}: {count} components, no findings"
        ]
        write_out(printable("\n".join(lines)) + "\n")
    if findings:
        raise typer.Exit(BAD_INPUT)


def _document(item: Any) -> dict[str, Any]:
    """A record as plain data, money in USD."""
    from designer.units import usd

    document = asdict(item)
    price = document.pop("price", None)
    if price is not None:
        document["price"] = {"usd": usd(price.pop("cents")), **price}
    if "cents_per_m" in document:
        document["usd_per_m"] = usd(document.pop("cents_per_m"))
    return document


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items() if part not in ("", None))  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return "; ".join(_words(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
