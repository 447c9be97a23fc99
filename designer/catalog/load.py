"""Loading of catalogs: shipped ones by name, files by path, and lists of both in which later layers win."""

from collections.abc import Collection, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from designer.catalog.components import Catalog
from designer.catalog.convert import (
    cable_of,
    fibre_of,
    gpu_of,
    nic_of,
    record_document,
    switch_of,
    transceiver_of,
)
from designer.catalog.schema import CatalogDocument, CatalogFile
from designer.errors import CatalogError, Problem
from designer.source import Source, read_yaml, validate

SECTIONS = ("switches", "nics", "transceivers", "fibres", "cables", "gpus")

_SUFFIX = ".yaml"


def catalog_names() -> tuple[str, ...]:
    """Names of the catalogs that ship with the package."""
    entries = files("designer.catalog").joinpath("data").iterdir()
    return tuple(sorted(entry.name.removesuffix(_SUFFIX) for entry in entries if entry.name.endswith(_SUFFIX)))


def load_catalog(spec: str | Path | Sequence[str | Path], base: Path | None = None) -> Catalog:
    """Load a catalog from one layer or from several that overlay.

    A layer is the name of a shipped catalog or the path of a YAML file, relative to `base`. A record of a later layer
    replaces the whole record of the same key below, adds to what is there, or removes it when it is null.

    Raises:
        CatalogError: with every problem of every layer: file, line, field, what was found and what is allowed.
    """
    return _catalog(*_read_layers(spec, base))


def catalog_records(spec: str | Path | Sequence[str | Path], base: Path | None = None) -> dict[str, Any]:
    """The merged records of a catalog as its files write them, without defaults, as plain JSON values.

    A copy of them can be changed and then read by `catalog_from_document`.

    Raises:
        CatalogError: as for `load_catalog`.
    """
    names, merged = _read_layers(spec, base)
    document: dict[str, Any] = {"names": list(names)}
    for section in SECTIONS:
        records = merged[section].items()
        document[section] = {key: record.model_dump(mode="json", exclude_unset=True) for key, record in records}
    return document


def _read_layers(
    spec: str | Path | Sequence[str | Path], base: Path | None
) -> tuple[tuple[str, ...], dict[str, dict[str, Any]]]:
    """The names of the layers, and the records of all by section and key."""
    layers = [spec] if isinstance(spec, str | Path) else list(spec)
    if not layers:
        raise CatalogError([Problem("catalog", None, "", "no layer", _allowed_layers())])
    problems: list[Problem] = []
    read: list[tuple[Source, CatalogFile]] = []
    for layer in layers:
        try:
            source = _read_layer(layer, base)
            read.append((source, validate(CatalogFile, source, CatalogError)))
        except CatalogError as error:
            problems += error.problems
    # What layers say about each other means nothing while some of them are missing.
    merged: dict[str, dict[str, Any]] = {} if problems else _merge(read, problems)
    if problems:
        raise CatalogError(problems)
    return tuple(str(layer) for layer in layers), merged


def catalog_from_document(document: object) -> Catalog:
    """Read back what `catalog_document` gave, such as the catalog inside a design file.

    Raises:
        CatalogError: with every problem of the document.
    """
    source = Source(path="catalog of the design", data=document)
    read = validate(CatalogDocument, source, CatalogError)
    problems: list[Problem] = []
    merged = _merge([(source, read)], problems)
    if problems:
        raise CatalogError(problems)
    return _catalog(read.names, merged)


def catalog_document(catalog: Catalog, keys: Collection[str]) -> dict[str, Any]:
    """The components with these keys as plain JSON values, from which `catalog_from_document` reads them back.

    Raises:
        CatalogError: a key is not in the catalog.
    """
    document: dict[str, Any] = {"names": list(catalog.names)}
    missing = set(keys)
    for section in SECTIONS:
        chosen = {key: record_document(component) for key, component in _section(catalog, section) if key in keys}
        missing -= set(chosen)
        if chosen:
            document[section] = chosen
    if missing:
        problems = [
            Problem("+".join(catalog.names), None, key, "no such component", "a key of the catalog")
            for key in sorted(missing)
        ]
        raise CatalogError(problems)
    return document


def _section(catalog: Catalog, section: str) -> list[tuple[str, Any]]:
    components: Mapping[str, Any] = getattr(catalog, section)
    return sorted(components.items())


def _allowed_layers() -> str:
    return f"one of {', '.join(catalog_names())}, or the path of a YAML file"


def _read_layer(layer: str | Path, base: Path | None) -> Source:
    if isinstance(layer, str) and layer in catalog_names():
        with as_file(files("designer.catalog").joinpath("data", layer + _SUFFIX)) as path:
            data = read_yaml(path, CatalogError)
        # The name tells a user more than the place of the installation.
        return Source(f"catalog {layer}", data.data, data.place)
    path = Path(layer) if base is None else base / layer
    if isinstance(layer, str) and not path.exists():
        raise CatalogError([Problem(str(path), None, "catalog", repr(layer), _allowed_layers())])
    return read_yaml(path, CatalogError)


def _merge(layers: Sequence[tuple[Source, CatalogFile]], problems: list[Problem]) -> dict[str, dict[str, Any]]:
    """The records of all layers by section and key; adds what does not fit together to `problems`."""
    merged: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    homes: dict[str, str] = {}
    for source, layer in layers:
        for section in SECTIONS:
            records: Mapping[str, Any] = getattr(layer, section)
            for key, record in records.items():
                location = (section, key)
                if record is None and key not in merged[section]:
                    allowed = "null only for a component of a lower layer"
                    problems.append(_problem(source, location, "null", allowed))
                elif record is None:
                    del merged[section][key]
                    del homes[key]
                elif homes.get(key, section) != section:
                    allowed = "a key that no other section has"
                    problems.append(_problem(source, location, f"a key of {homes[key]}", allowed))
                else:
                    merged[section][key] = record
                    homes[key] = section
    return merged


def _problem(source: Source, location: tuple[str, str], found: str, allowed: str) -> Problem:
    return Problem(source.path, source.line(location), ".".join(location), found, allowed)


def _catalog(names: tuple[str, ...], merged: Mapping[str, Mapping[str, Any]]) -> Catalog:
    return Catalog(
        names=names,
        switches={key: switch_of(key, record) for key, record in merged["switches"].items()},
        nics={key: nic_of(key, record) for key, record in merged["nics"].items()},
        transceivers={key: transceiver_of(key, record) for key, record in merged["transceivers"].items()},
        fibres={key: fibre_of(key, record) for key, record in merged["fibres"].items()},
        cables={key: cable_of(key, record) for key, record in merged["cables"].items()},
        gpus={key: gpu_of(key, record) for key, record in merged["gpus"].items()},
    )
