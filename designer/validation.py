"""What pydantic finds wrong, in the words of a user: one finding a field, with what is allowed there."""

import difflib
import math
import re
import types
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin

from designer.plain_yaml import shorten

if TYPE_CHECKING:
    from pydantic import ValidationError

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong at one place in the data."""

    location: Location
    found: str
    allowed: str


@dataclass(frozen=True)
class _Error:
    """An error of pydantic, set on the data: `branch` is the member of a union that it comes from."""

    location: Location
    union: Location | None
    branch: str
    kind: str
    message: str
    context: Mapping[str, Any]
    value: object


def false_numbers(model: type[Any], data: object) -> list[Finding]:
    """Every infinite or undefined number, and every true or false where the model has a number.

    pydantic reads true as 1, and infinity as a float: both would be silent wrong answers.
    """
    findings: list[Finding] = []
    todo: list[tuple[Location, object]] = [((), data)]
    while todo:
        location, value = todo.pop()
        if isinstance(value, float) and not math.isfinite(value):
            findings.append(Finding(location, shorten(value), "a finite number"))
        elif isinstance(value, bool):
            kinds = [kind for kind, _ in _types_at(model, location, "")]
            if bool not in kinds and (int in kinds or float in kinds):
                findings.append(Finding(location, shorten(value), "a whole number" if int in kinds else "a number"))
        elif isinstance(value, dict):
            entries = cast("dict[Any, object]", value).items()
            todo.extend((((*location, _name(key)), item)) for key, item in reversed(entries))
        elif isinstance(value, list):
            many = cast("list[object]", value)
            todo.extend(((*location, index), many[index]) for index in reversed(range(len(many))))
    return findings


def explain(model: type[Any], data: object, invalid: "ValidationError") -> list[Finding]:
    """One finding for each place where the data does not fit the model."""
    errors = [_locate(cast("Mapping[str, Any]", error), data) for error in invalid.errors(include_url=False)]
    at: dict[Location, list[_Error]] = defaultdict(list)
    for error in _best_branches(errors):
        at[error.location].append(error)
    findings: list[Finding] = []
    for location, same in at.items():
        allowed = list(dict.fromkeys(_allowed(model, error) for error in same))
        found = "nothing" if same[0].kind == "missing" else shorten(same[0].value)
        if same[0].kind == "extra_forbidden":
            found = f"the unknown field {location[-1]!r}"
        findings.append(Finding(location, found, " or ".join(allowed)))
    return findings


def _name(key: object) -> str | int:
    return key if isinstance(key, str | int) else str(key)


_ABSENT = object()


def _inner(value: object, step: str | int) -> object:
    if isinstance(value, dict):
        return cast("dict[object, object]", value).get(step, _ABSENT)
    if isinstance(value, list) and isinstance(step, int):
        many = cast("list[object]", value)
        return many[step] if step < len(many) else _ABSENT
    return _ABSENT


def _locate(error: Mapping[str, Any], data: object) -> _Error:
    """Walk pydantic's location along the data: what is not there names a branch of a union (or a missing field)."""
    steps = cast("Location", error["loc"])
    location: list[str | int] = []
    union: Location | None = None
    branch = ""
    value = data
    for index, step in enumerate(steps):
        last = index == len(steps) - 1
        inner = _inner(value, step)
        if inner is not _ABSENT:
            value = inner
            location.append(step)
        elif last and error["type"] == "missing":
            location.append(step)
        elif union is None:
            union, branch = tuple(location), str(step)
    context = cast("Mapping[str, Any]", error.get("ctx", {}))
    return _Error(tuple(location), union, branch, error["type"], error["msg"], context, value)


def _best_branches(errors: Iterable[_Error]) -> list[_Error]:
    """Of each union only the branches that the user most likely meant: those whose kind of value fits."""
    errors = list(errors)
    unions: dict[Location, dict[str, list[_Error]]] = defaultdict(lambda: defaultdict(list))
    for error in errors:
        if error.union is not None:
            unions[error.union][error.branch].append(error)
    dropped: set[int] = set()
    for union, branches in unions.items():
        inside = [many for many in branches.values() if all(error.location != union for error in many)]
        if not inside:
            continue
        fewest = min(len(many) for many in inside)
        kept = {id(error) for many in inside if len(many) == fewest for error in many}
        dropped |= {id(error) for many in branches.values() for error in many} - kept
    return [error for error in errors if id(error) not in dropped]


_LIMITS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
_NUMBER = re.compile(r"(int|float|decimal)_|greater_than|less_than|finite_number|multiple_of")
_KINDS = {
    "missing": "a value (the field is required)",
    "none_required": "nothing (null)",
    "dict_type": "a mapping of fields",
    "mapping_type": "a mapping of fields",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "dataclass_type": "a mapping of fields",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "sequence_type": "a list",
    "invalid_key": "fields with names that are texts",
}


def _allowed(model: type[Any], error: _Error) -> str:
    kind, context = error.kind, error.context
    if "allowed" in context:
        allowed = str(context["allowed"])
    elif kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        allowed = _known_fields(model, error)
    elif kind in {"literal_error", "enum", "union_tag_invalid"}:
        allowed = _one_of(str(context.get("expected", context.get("expected_tags", ""))), error.value)
    elif kind in _KINDS:
        allowed = _KINDS[kind]
    elif _NUMBER.match(kind):
        allowed = _number(model, error)
    elif kind.startswith("string"):
        allowed = _text(kind, context)
    else:
        allowed = _other(error)
    return allowed


def _other(error: _Error) -> str:
    kind, context, message = error.kind, error.context, error.message
    if kind == "union_tag_not_found":
        return f"a mapping with the field {context.get('discriminator', '')}"
    if kind.startswith("bool"):
        return "true or false"
    if kind == "too_short":
        return f"at least {context['min_length']} entries"
    if kind == "too_long":
        return f"at most {context['max_length']} entries"
    for prefix in ("Value error, ", "Assertion failed, ", "Input should be "):
        message = message.removeprefix(prefix)
    return message


def _text(kind: str, context: Mapping[str, Any]) -> str:
    if kind == "string_too_short":
        return "a text" if context["min_length"] == 1 else f"a text of at least {context['min_length']} characters"
    if kind == "string_too_long":
        return f"a text of at most {context['max_length']} characters"
    if kind == "string_pattern_mismatch":
        return f"a text that matches {context['pattern']}"
    return "a text"


def _one_of(expected: str, value: object) -> str:
    choices = [quoted or bare for quoted, bare in re.findall(r"'([^']*)'|(-?\d+(?:\.\d+)?|True|False)", expected)]
    if not choices:
        return expected
    return f"one of: {', '.join(choices)}{_did_you_mean(value, choices)}"


def _did_you_mean(value: object, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(value)[:100].lower(), {choice.lower(): choice for choice in choices}, n=1)
    meant = next((choice for choice in choices if close and choice.lower() == close[0]), None)
    return f"; did you mean {meant!r}?" if meant is not None else ""


def _known_fields(model: type[Any], error: _Error) -> str:
    names: list[str] = []
    for kind, _ in _types_at(model, error.location[:-1], error.branch):
        names += [name for name in _fields(kind) if name not in names]
    if not names:
        return "no such field"
    return f"one of the known fields: {', '.join(names)}{_did_you_mean(error.location[-1], names)}"


def _number(model: type[Any], error: _Error) -> str:
    limits: dict[str, Any] = {name: error.context[name] for name in _LIMITS if name in error.context}
    whole = error.kind.startswith("int")
    numbers = [(kind, rest) for kind, rest in _types_at(model, error.location, "") if kind in (int, float)]
    if numbers and not whole:
        whole = all(kind is int for kind, _ in numbers)
    for kind, metadata in numbers:
        if kind is int or not whole:
            found = {name: getattr(note, name, None) for note in metadata for name in _LIMITS if hasattr(note, name)}
            limits |= {name: limit for name, limit in found.items() if limit is not None}
    text = "a whole number" if whole else "a number"
    bounds = [f"{sign} {limits[name]}" for name, sign in _LIMITS.items() if name in limits]
    if error.kind == "finite_number":
        text = "a finite number"
    if "multiple_of" in error.context:
        text += f" that is a multiple of {error.context['multiple_of']}"
    return f"{text} {' and '.join(bounds)}" if bounds else text


_Types = list[tuple[Any, tuple[Any, ...]]]


def _types_at(model: type[Any], location: Location, branch: str) -> _Types:
    """The types that the model has at a place of the data, each with its annotations; `branch` picks one of several."""
    here: _Types = [(model, ())]
    for step in location:
        inner: _Types = []
        for kind, _ in here:
            inner += _step(kind, step)
        here = inner
    named = [entry for entry in here if getattr(entry[0], "__name__", "") == branch]
    return named or here


def _step(kind: Any, step: str | int) -> _Types:
    origin = get_origin(kind)
    arguments = get_args(kind)
    if arguments and isinstance(origin, type):
        if issubclass(origin, Mapping):
            return _members(arguments[-1], ())
        if origin is tuple and isinstance(step, int) and Ellipsis not in arguments:
            return _members(arguments[step], ()) if step < len(arguments) else []
        return _members(arguments[0], ())
    info = _fields(kind).get(step) if isinstance(step, str) else None
    return [] if info is None else _members(info.annotation, tuple(info.metadata))


def _members(annotation: Any, metadata: tuple[Any, ...]) -> _Types:
    """The annotation without Annotated and with its unions taken apart."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *notes = get_args(annotation)
        for note in notes:  # a Field(ge=1) keeps its limits in a list of its own
            metadata += tuple(getattr(note, "metadata", ())) or (note,)
        return _members(inner, metadata)
    if origin is Union or origin is types.UnionType:
        return [entry for member in get_args(annotation) for entry in _members(member, metadata)]
    return [(annotation, metadata)]


def _fields(kind: Any) -> dict[str, Any]:
    """The fields of a pydantic model or dataclass under the names that users write."""
    fields = cast("dict[str, Any]", getattr(kind, "__pydantic_fields__", {}))
    return {info.alias or name: info for name, info in fields.items()}
