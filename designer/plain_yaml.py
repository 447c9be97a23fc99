"""Plain data out of YAML parser events: no tags that build objects, no recursion, bounded in depth and number."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from designer.errors import Problem

MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_PROBLEMS = 100
MAX_FOUND_CHARS = 60

Key = str | int


@dataclass(slots=True)
class Place:
    """Where a value stands: its own line, and for each key or index inside it that one's line and place."""

    line: int
    inside: dict[object, tuple[int, "Place"]] = field(default_factory=dict[object, "tuple[int, Place]"])


def shorten(value: object) -> str:
    """The value as Python writes it, on one line of at most 60 characters."""
    # Only the head of a long text or list is written out: a repr of megabytes takes memory that nobody reads.
    if isinstance(value, str):
        text = repr(value[: MAX_FOUND_CHARS + 1])
    elif isinstance(value, dict):
        entries = cast("dict[object, object]", value).items()
        text = "{" + _joined(f"{shorten(key)}: {shorten(item)}" for key, item in entries) + "}"
    elif isinstance(value, list):
        text = "[" + _joined(shorten(item) for item in cast("list[object]", value)) + "]"
    else:
        text = repr(value)
    return text if len(text) <= MAX_FOUND_CHARS else text[: MAX_FOUND_CHARS - 1] + "…"


def _joined(texts: Iterable[str]) -> str:
    parts: list[str] = []
    length = 0
    for text in texts:
        parts.append(text)
        length += len(text) + 2
        if length > MAX_FOUND_CHARS + 2:
            break
    return ", ".join(parts)


def dotted(location: tuple[str | int, ...]) -> str:
    """A location as users write it: `workload[0].parallelism.tp`."""
    text = ""
    for key in location:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{key}" if text else key
    return text


def shorten_key(key: object) -> str:
    """A key as it is written, without quotes, of at most 60 characters."""
    text = key if isinstance(key, str) else str(key)
    return text if len(text) <= MAX_FOUND_CHARS else text[: MAX_FOUND_CHARS - 1] + "…"


class TooMuchError(Exception):
    """A limit is exceeded: the rest of the file is not worth reading."""


_MISSING = object()
_MERGE = object()
_REFUSED = object()
_NULL = re.compile(r"(?:~|null|Null|NULL)?")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = {"str", "int", "float", "bool", "null"}
_INT_LIMIT = 2**63


@dataclass(slots=True)
class _Value:
    """A finished value, with what it counts once its aliases are expanded."""

    data: object
    place: Place
    nodes: int = 1
    height: int = 0
    plain: bool = False


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end is not reached yet."""

    data: dict[object, object] | list[object]
    place: Place
    anchor: str | None
    key: object = _MISSING
    key_line: int = 0
    nodes: int = 1
    height: int = 0
    merges: list[tuple[int, _Value]] = field(default_factory=list["tuple[int, _Value]"])


class Reader:
    """Builds the data from parser events without recursion, so depth costs no stack."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.data: object = None
        self.place: Place | None = None
        self._open: list[_Open] = []
        self._anchors: dict[str, _Value | None] = {}
        self._nodes = 0
        self._documents = 0

    def refuse(self, line: int | None, where: str, found: str, allowed: str) -> None:
        """Note a problem; after very many of them, stop."""
        self.problems.append(Problem(self.path, line, where, found, allowed))
        if len(self.problems) >= MAX_PROBLEMS:
            raise TooMuchError

    def take(self, event: Any) -> None:
        """Take in the next event of the parser."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._count(1, 0, line)
            self._finish(event.anchor, self._scalar(event, line))
        elif isinstance(event, yaml.AliasEvent):
            self._alias(cast("str", cast("Any", event).anchor), line)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._start(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self.refuse(line, "", "a second document after '---'", "one document a file")
                raise TooMuchError

    def _count(self, nodes: int, height: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            self.refuse(line, self._where(), f"more than {MAX_NODES:,} values, aliases expanded", "a smaller file")
            raise TooMuchError
        if len(self._open) + height > MAX_DEPTH:
            self.refuse(line, "", f"more than {MAX_DEPTH} levels of nesting", "a flatter file")
            raise TooMuchError

    def _where(self) -> str:
        location: list[Key] = []
        for level in self._open:
            if isinstance(level.data, list):
                location.append(len(level.data))
            elif level.key is not _MISSING:
                location.append(level.key if isinstance(level.key, int) else shorten_key(level.key))
        return dotted(tuple(location))

    def _start(self, event: Any, line: int) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        self._count(1, 1, line)
        if event.tag not in (None, "!", _TAG + ("map" if mapping else "seq")):
            self._refuse_tag(event.tag, line)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open({} if mapping else [], Place(line), event.anchor))

    def _end(self) -> None:
        level = self._open.pop()
        data, place = level.data, level.place
        for line, merged in level.merges:
            self._merge(level, line, merged)
        self._finish(level.anchor, _Value(data, place, level.nodes, level.height + 1))

    def _merge(self, level: _Open, line: int, merged: _Value) -> None:
        data = cast("dict[object, object]", level.data)
        source: object = merged.data
        if isinstance(source, list):
            many = cast("list[object]", source)
            values = [_Value(item, merged.place.inside[index][1]) for index, item in enumerate(many)]
        else:
            values = [merged]
        for value in values:  # the first of several merged mappings wins, and a key written out wins over all
            inner: object = value.data
            if not isinstance(inner, dict):
                self.refuse(line, self._where(), f"<<: {shorten(value.data)}", "<<: with an alias of a mapping")
                continue
            for key, item in cast("dict[object, object]", inner).items():
                if key not in data:
                    data[key] = item
                    level.place.inside[key] = value.place.inside[key]

    def _alias(self, name: str, line: int) -> None:
        value = self._anchors.get(name, _MISSING)
        if not isinstance(value, _Value):
            found = f"the alias *{name} inside the value it names" if value is None else f"the unknown alias *{name}"
            self.refuse(line, self._where(), found, "an alias of a complete value further up")
            raise TooMuchError
        self._count(value.nodes, value.height, line)
        self._finish(None, _Value(value.data, value.place, value.nodes, value.height), line)

    def _finish(self, anchor: str | None, value: _Value, line: int | None = None) -> None:
        if anchor is not None:
            self._anchors[anchor] = value
        line = value.place.line if line is None else line
        if not self._open:
            self.data, self.place = value.data, value.place
            return
        level = self._open[-1]
        level.nodes += value.nodes
        level.height = max(level.height, value.height)
        data: Any = level.data
        if isinstance(data, list):
            level.place.inside[len(cast("list[object]", data))] = (line, value.place)
            cast("list[object]", data).append(value.data)
        elif level.key is _MISSING:
            self._take_key(level, value, line)
        else:
            key, level.key = level.key, _MISSING
            if key is _MERGE:
                level.merges.append((level.key_line, value))
            elif key is not _REFUSED:
                data[key] = value.data
                level.place.inside[key] = (level.key_line, value.place)

    def _take_key(self, level: _Open, value: _Value, line: int) -> None:
        level.key_line = line
        key: object = value.data
        if key == "<<" and value.plain:
            level.key = _MERGE
        elif isinstance(key, bool) or not isinstance(key, str | int | float):
            self.refuse(line, self._where(), f"the key {shorten(key)}", "a key that is a text or a number")
            level.key = _REFUSED
        elif key in level.data:
            first = level.place.inside[key][0]
            where = self._where()
            name = f"{where}.{shorten_key(key)}" if where else shorten_key(key)
            self.refuse(line, name, f"a second time (first in line {first})", "each key once")
            level.key = _REFUSED
        else:
            level.key = key

    def _refuse_tag(self, tag: str, line: int) -> None:
        name = "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
        self.refuse(line, self._where(), f"the tag {shorten_key(name)}", "plain texts, numbers, lists and mappings")

    def _scalar(self, event: Any, line: int) -> _Value:
        text, tag = cast("str", event.value), cast("str | None", event.tag)
        place = Place(line)
        if tag is None and event.implicit[0]:
            return _Value(self._plain(text, line), place, plain=True)
        kind = "str" if tag in (None, "!") else tag.removeprefix(_TAG)
        if kind not in _SCALAR_TAGS:
            self._refuse_tag(cast("str", tag), line)
            return _Value(None, place)
        data: object = text if kind == "str" else self._plain(text, line)
        if kind == "float" and isinstance(data, int):
            data = float(data)
        if type(data).__name__ != {"null": "NoneType"}.get(kind, kind):
            self.refuse(line, self._where(), f"!!{kind} {shorten(text)}", "a value that its tag describes")
        return _Value(data, place)

    def _plain(self, text: str, line: int) -> object:
        if _NULL.fullmatch(text):
            return None
        if _BOOL.fullmatch(text):
            return text.lower() == "true"
        if _INT.fullmatch(text):
            return self._whole(text, line)
        if _FLOAT.fullmatch(text):
            return float(text.replace(".", "") if text[-1] in "fFnN" else text)
        return text

    def _whole(self, text: str, line: int) -> int:
        # Python refuses to read very long numbers, and numpy holds 64 bits; neither may surface as a crash.
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        number = int(text, base) if len(text) <= MAX_FOUND_CHARS else _INT_LIMIT
        if -_INT_LIMIT <= number < _INT_LIMIT:
            return number
        self.refuse(line, self._where(), shorten_key(text), "a whole number below 2^63")
        return 0
