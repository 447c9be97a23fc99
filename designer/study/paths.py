"""Paths to fields: `workload[0].parallelism.tp` as users write it, as steps, and applied to plain data."""

import re
from collections.abc import Mapping
from typing import Any, cast

Location = tuple[str | int, ...]

_STEPS = re.compile(r"([^.\[\]\s]+)((?:\[[0-9]{1,9}\])*)(?:\.|$)")
_INDEX = re.compile(r"\[([0-9]+)\]")


class PathError(ValueError):
    """A path that leads nowhere; its text says where it ends."""


def steps_of(path: str) -> Location:
    """The steps of a path: names of fields, and numbers of entries.

    Raises:
        PathError: it is no path.
    """
    steps: list[str | int] = []
    position = 0
    while position < len(path) and not path.endswith("."):
        match = _STEPS.match(path, position)
        if match is None:
            break
        steps.append(match[1])
        steps += [int(index) for index in _INDEX.findall(match[2])]
        position = match.end()
    else:
        if steps:
            return tuple(steps)
    raise PathError("no path of fields, such as cluster.hb_domain or workload[0].parallelism.tp")


def steps_into_catalog(path: str, records: Mapping[str, Any]) -> tuple[str, str, Location]:
    """Section, key, and the steps inside the record of `switches.qm9700.price.usd`; keys may hold dots themselves.

    Raises:
        PathError: it does not lead to a component or into one.
    """
    section, _, rest = path.partition(".")
    known = records.get(section)
    if section == "names" or not isinstance(known, Mapping):
        sections = ", ".join(name for name in records if name != "names")
        raise PathError(f"no section {section!r}; there are: {sections}")
    components = cast("Mapping[str, Any]", known)
    fitting = [key for key in components if rest == key or rest.startswith((f"{key}.", f"{key}["))]
    key = max(fitting, key=len, default="")
    if not key:
        raise PathError(f"no component {rest.split('.')[0]!r} in {section}; there are: {', '.join(components)}")
    inside = rest[len(key) :].removeprefix(".")
    return section, key, steps_of(inside) if inside else ()


def with_value(data: Any, location: Location, value: Any) -> Any:
    """The data with `value` at a location; only what leads there is copied, mappings that are missing are made.

    Raises:
        PathError: the location leads through something without such a place.
    """
    if not location:
        return value
    step, rest = location[0], location[1:]
    if isinstance(step, int):
        entries: list[Any] = cast("list[Any]", data) if isinstance(data, list) else []
        if step >= len(entries):
            raise PathError(f"no entry [{step}]: the base has {len(entries)} there")
        return [*entries[:step], with_value(entries[step], rest, value), *entries[step + 1 :]]
    if data is not None and not isinstance(data, Mapping):
        raise PathError(f"no field {step!r}: the base has no mapping there")
    fields = cast("Mapping[str, Any]", data or {})
    return {**fields, step: with_value(fields.get(step), rest, value)}
