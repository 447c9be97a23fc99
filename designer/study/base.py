"""The base of a study: an instance as plain data, and the instances that the points make of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from designer.catalog import Catalog, catalog_from_document, catalog_records
from designer.errors import InputError, InstanceError, Problem, StudyError
from designer.instance.instance import Instance
from designer.instance.load import instance_from_document
from designer.instance.schema import InstanceFile
from designer.plain_yaml import dotted, shorten
from designer.source import Source, read_yaml, validate
from designer.study.paths import PathError, steps_into_catalog, steps_of, with_value
from designer.study.points import Axis, Point
from designer.study.schema import StudyOptions

CATALOG, OPTIONS = "catalog.", "options."
LAYER = "study"  # a changed catalog is no longer the one of its name
PATHS = "the path of a field of the instance, or with catalog. or options. before it of a record or an option"
_NO_FIELD = "the path "
_MOST_CATALOGS = 64


@dataclass(frozen=True)
class Base:
    """An instance as its file holds it; paths in it are relative to `folder`."""

    document: Mapping[str, Any]
    folder: Path
    _catalogs: dict[str, Catalog] = field(default_factory=dict[str, Catalog], repr=False, compare=False)
    _layers: dict[str, tuple[dict[str, Any], Catalog]] = field(
        default_factory=dict[str, tuple[dict[str, Any], Catalog]], repr=False, compare=False
    )

    @staticmethod
    def of(base: Path | str | Mapping[str, Any]) -> "Base":
        """The base of an instance file, or of plain data as one holds it, with paths relative to the working folder.

        Raises:
            InstanceError: it cannot be read, or the schema refuses it; whether its fields go together, points show.
        """
        if isinstance(base, Mapping):
            source, folder = Source("base", dict(base)), Path()
        else:
            source, folder = read_yaml(base, InstanceError), Path(base).parent
        validate(InstanceFile, source, InstanceError)
        return Base(cast("Mapping[str, Any]", source.data), folder)

    @property
    def name(self) -> str:
        """Name of the base instance."""
        return str(self.document["name"])

    def instance(self, point: Point) -> Instance:
        """The instance of a point.

        Raises:
            InputError: its fields do not go together, or a path leads nowhere.
        """
        document: Any = dict(self.document)
        of_catalog: dict[str, Any] = {}
        for path, value in point.settings.items():
            if path.startswith(CATALOG):
                of_catalog[path.removeprefix(CATALOG)] = value
            elif not path.startswith(OPTIONS):
                document = _set(document, path, value)
        return instance_from_document(document, self.folder, self.catalog(document, of_catalog))

    def options(self, point: Point, options: StudyOptions) -> StudyOptions:
        """The options of a point.

        Raises:
            StudyError: no option has this name, or the value is not allowed.
        """
        document: Any = options.model_dump()
        for path, value in point.settings.items():
            if path.startswith(OPTIONS):
                document = _set(document, path.removeprefix(OPTIONS), value)
        return validate(StudyOptions, Source("options", document), StudyError)

    def catalog(self, document: Mapping[str, Any], changes: Mapping[str, Any]) -> Catalog | None:
        """The catalog of an instance document with these records or fields of records changed; null removes a record.

        None where it is not known whether the document names a catalog at all: reading the instance tells.

        Raises:
            InputError: a path leads nowhere, or what comes out is no catalog.
        """
        layers = document.get("catalog", "builtin")
        key = json.dumps([layers, changes], sort_keys=True, default=repr)
        if key not in self._catalogs:
            if not _names_layers(layers):
                return None
            if len(self._catalogs) >= _MOST_CATALOGS:
                self._catalogs.clear()
            self._catalogs[key] = self._changed(layers, changes)
        return self._catalogs[key]

    def _changed(self, layers: str | list[str], changes: Mapping[str, Any]) -> Catalog:
        name = json.dumps(layers)
        if name not in self._layers:
            records = catalog_records(layers, self.folder)
            self._layers[name] = (records, catalog_from_document(records))
        records, catalog = self._layers[name]
        touched: dict[str, set[str]] = {}
        for path, value in changes.items():
            records, section, key = _set_record(records, path, value)
            touched.setdefault(section, set()).add(key)
        if not changes:
            return catalog
        # Only the changed records are read anew: a study has thousands of points, a catalog hundreds of records.
        names = [*records["names"], LAYER]
        fresh = {
            section: {key: records[section][key] for key in keys if key in records[section]}
            for section, keys in touched.items()
        }
        part = catalog_from_document({"names": names, **fresh})
        sections: dict[str, Any] = {
            section: {
                key: getattr(part if key in fresh[section] else catalog, section)[key] for key in records[section]
            }
            for section in touched
        }
        return replace(catalog, names=part.names, **sections)


def _names_layers(layers: object) -> bool:
    many = cast("list[object]", layers) if isinstance(layers, list) else [layers]
    return bool(many) and all(isinstance(layer, str) for layer in many)


def _set(data: Any, path: str, value: Any) -> Any:
    try:
        return with_value(data, steps_of(path), value)
    except PathError as error:
        raise _NoFieldError(path, error) from None


def _set_record(records: dict[str, Any], path: str, value: Any) -> tuple[dict[str, Any], str, str]:
    """The records with one changed or, by null, taken away; and its section and key."""
    try:
        section, key, inside = steps_into_catalog(path, records)
        if value is None and not inside:
            kept = {name: record for name, record in records[section].items() if name != key}
            return {**records, section: kept}, section, key
        return with_value(records, (section, key, *inside), value), section, key
    except PathError as error:
        raise _NoFieldError(CATALOG + path, error) from None


class _NoFieldError(StudyError):
    """A path that names no field."""

    def __init__(self, path: str, error: PathError) -> None:
        super().__init__([Problem("axes", None, path, f"the path {path!r}: {error}", PATHS)])


def refused_values(base: Base, axes: tuple[Axis, ...], source: Source | None = None) -> list[Problem]:
    """Every path that names no field, and every value that the schema refuses whatever the other axes say."""
    problems: list[Problem] = []
    for axis in axes:
        for number, path in enumerate(axis.paths):
            values = [None] if axis.function else [entry[number] for entry in axis.values]
            for index, value in enumerate(values):
                found = _refusal(base, path, value, whole=axis.function is None)
                no_field = any(words.startswith(_NO_FIELD) for _, words, _ in found)
                place = axis.place(number, None if no_field else index)
                file, line = (source.path, source.line(place)) if source else ("axes", None)
                problems += [Problem(file, line, dotted(place) + below, *words) for below, *words in found]
                if no_field:
                    break  # the other values would say so again
    return problems


def _refusal(base: Base, path: str, value: Any, *, whole: bool) -> list[tuple[str, str, str]]:
    """Where below the path, what is found and what is allowed: that it names no field or, if `whole`, of its value."""
    try:
        problems = _schema_problems(base, path, value)
    except _NoFieldError as error:
        return [("", problem.found, problem.allowed) for problem in error.problems]
    refused: list[tuple[str, str, str]] = []
    for problem in problems:
        below = problem.field.removeprefix(path)
        if path.startswith(problem.field) and problem.found.startswith("the unknown field"):
            return [("", f"{_NO_FIELD}{path!r}: {problem.found}", problem.allowed)]
        if whole and problem.field.startswith(path) and below[:1] in ("", ".", "["):
            refused.append((below, problem.found if below else shorten(value), problem.allowed))
    return refused


def _schema_problems(base: Base, path: str, value: Any) -> tuple[Problem, ...]:
    """What the schemas say of the base with one field set; fields with their full path."""
    prefix = next((name for name in (CATALOG, OPTIONS) if path.startswith(name)), "")
    try:
        if prefix == CATALOG:
            base.catalog(base.document, {path.removeprefix(CATALOG): value})
        elif prefix == OPTIONS:
            base.options(Point({path: value}, {}), StudyOptions.model_validate({}))
        else:
            validate(InstanceFile, Source("base", _set(dict(base.document), path, value)), InstanceError)
    except _NoFieldError:
        raise
    except InputError as error:
        return tuple(replace(problem, field=prefix + problem.field) for problem in error.problems)
    return ()
