"""Axes, and the points that they span: every combination of their values, in the order written."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import prod
from typing import Any, cast

from designer.errors import Problem, StudyError
from designer.plain_yaml import shorten
from designer.source import Source, validate
from designer.study.paths import Location
from designer.study.schema import MAX_VALUES, RangeSection

PointFunction = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Axis:
    """Fields that change together, by path, with their `values`: each has one entry a path.

    With a `function` there is one path, whose value follows from those of the axes before. `places` say where the
    values of each path stand in the study file. `labels` are texts for a column `name`.
    """

    paths: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...] = ()
    function: PointFunction | None = None
    name: str | None = None
    labels: tuple[str, ...] = ()
    places: tuple[Location, ...] = field(default=(), compare=False)

    def place(self, path: int, value: int | None = None) -> Location:
        """Where a value stands, or the path itself."""
        at = self.places[path] if self.places else (self.paths[path],)
        if value is not None:
            return (*at, value)
        return (*at[:-1], "path") if at[-1] == "values" else at


@dataclass(frozen=True)
class Point:
    """One combination: the value of each path, and the labels by the name of their column."""

    settings: dict[str, Any]
    labels: dict[str, str]


def axes_of(axes: Mapping[Any, Any]) -> tuple[Axis, ...]:
    """The axes of a mapping from paths to values.

    A key is one path, or a tuple of paths that change together. A value is a list, a mapping with `from`, `to` and
    `step` or `factor`, or, for one path, a function of the settings so far, a dictionary by path.

    Raises:
        StudyError: a key or a value is nothing of this kind.
    """
    return tuple(_axis(key, given) for key, given in axes.items())


def _axis(key: Any, given: Any) -> Axis:
    paths: tuple[Any, ...] = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
    if not paths or not all(isinstance(path, str) for path in paths):
        raise _refused("", repr(paths), "a path, or a tuple of paths")
    name = ", ".join(paths)
    if callable(given):
        if len(paths) > 1:
            raise _refused(name, "a function", "a function for one path, lists for several")
        return Axis(paths, function=given)
    if isinstance(given, Mapping):
        given = range_values(_range(name, cast("Mapping[str, Any]", given)))
    given = given.tolist() if hasattr(given, "tolist") else given  # numpy's numbers are none of JSON's
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _refused(name, shorten(given), "a list of values, a range, or a function")
    entries = list(cast("Iterable[Any]", given))
    if len(paths) == 1:
        return Axis(paths, tuple((entry,) for entry in entries))
    for entry in entries:
        if not isinstance(entry, list | tuple) or len(cast("Sequence[Any]", entry)) != len(paths):
            raise _refused(name, shorten(cast("object", entry)), f"{len(paths)} values, one a path")
    return Axis(paths, tuple(tuple(entry) for entry in entries))


def _range(name: str, given: Mapping[str, Any]) -> RangeSection:
    return validate(RangeSection, Source(f"axis {name}", dict(given)), StudyError)


def _refused(where: str, found: str, allowed: str) -> StudyError:
    return StudyError([Problem("axes", None, where, found, allowed)])


def range_values(section: RangeSection) -> list[int | float]:
    """The numbers of a range, in decimal arithmetic: 0.1, 0.2, 0.3 and not 0.30000000000000004.

    Raises:
        StudyError: there are too many of them.
    """
    by = section.step if section.step is not None else section.factor
    whole = all(isinstance(number, int) for number in (section.start, by))
    value, end, change = (Decimal(str(number)) for number in (section.start, section.to, by))
    values: list[int | float] = []
    while value <= end:
        if len(values) == MAX_VALUES:
            raise _refused("", f"more than {MAX_VALUES:,} values", "a shorter range")
        values.append(int(value) if whole else float(value))
        value = value + change if section.step is not None else value * change
    return values


def check_points(axes: Sequence[Axis]) -> int:
    """The number of points.

    Raises:
        StudyError: an axis has no values, two set one path, or there are too many points.
    """
    paths = [path for axis in axes for path in axis.paths]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise _refused(twice, "a second axis of this path", "one axis a path")
    for axis in axes:
        if axis.function is None and not axis.values:
            raise _refused(", ".join(axis.paths), "no values", "at least one value")
    number = prod(len(axis.values) for axis in axes if axis.function is None)
    if number > MAX_VALUES:
        raise _refused("", f"{number:,} points", f"at most {MAX_VALUES:,}")
    return number


def points_of(axes: Sequence[Axis]) -> Iterator[Point]:
    """Every combination of the values; the last axis changes fastest.

    Raises:
        StudyError: the function of an axis failed.
    """
    numbers = [range(len(axis.values)) if axis.function is None else (0,) for axis in axes]
    for chosen in itertools.product(*numbers):
        settings: dict[str, Any] = {}
        labels: dict[str, str] = {}
        for axis, number in zip(axes, chosen, strict=True):
            if axis.function is not None:
                settings[axis.paths[0]] = _called(axis.paths[0], axis.function, settings)
                continue
            settings |= zip(axis.paths, axis.values[number], strict=True)
            if axis.name is not None:
                labels[axis.name] = axis.labels[number]
        yield Point(settings, labels)


def _called(path: str, function: PointFunction, settings: dict[str, Any]) -> Any:
    try:
        return function(dict(settings))
    except Exception as error:  # a user's function may fail in any way
        found = f"{type(error).__name__}: {error} at {settings}"
        raise _refused(path, found, "a function of the settings of the axes before") from error
