"""What is known of an instance: cost and bound of its best known design, and the version that found it.

A suite keeps it in best_known.json beside its instances. Nothing in it depends on the machine.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from designer.result import Design

FILE = "best_known.json"
COUNTS = ("leaf", "spine", "core", "fabrics", "planes", "endpoint_links", "leaf_spine_links", "spine_core_links")

Record = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """The best known cost of an instance, the bound proven with it, and the version they are of."""

    cost_usd: float
    lower_bound_usd: float
    version: str

    @property
    def proven(self) -> bool:
        """Whether the bound is the cost."""
        return self.lower_bound_usd >= self.cost_usd


def record_of(design: "Design", version: str) -> Record:
    """What is recorded of a design: nothing that depends on the machine."""
    document = design.to_document()
    return {
        **{name: document[name] for name in ("status", "objective", "cost_usd", "lower_bound_usd")},
        "counts": {name: design.counts[name] for name in COUNTS},
        "version": version,
    }


def read_known(folder: Path) -> dict[str, Known]:
    """What is known of the instances of a folder, by name; nothing where it has no such file.

    Raises:
        InstanceError: the file is not one of records.
    """
    from designer.errors import InstanceError, Problem
    from designer.source import read_text

    path = folder / FILE
    if not path.exists():
        return {}
    try:
        data: object = json.loads(read_text(path, InstanceError))
    except (ValueError, RecursionError) as broken:
        raise InstanceError([Problem(str(path), None, "", f"no JSON ({broken})", "JSON")]) from None
    if not isinstance(data, dict):
        raise InstanceError([Problem(str(path), None, "", type(data).__name__, "an object of records by instance")])
    known: dict[str, Known] = {}
    problems: list[Problem] = []
    for name, record in cast("dict[str, object]", data).items():
        found = _known(record)
        if found is None:
            allowed = "an object with the numbers cost_usd and lower_bound_usd and the text version"
            problems.append(Problem(str(path), None, name, repr(record)[:60], allowed))
        else:
            known[name] = found
    if problems:
        raise InstanceError(problems)
    return known


def _known(record: object) -> Known | None:
    if not isinstance(record, Mapping):
        return None
    entry = cast("Mapping[str, object]", record)
    cost, bound, version = entry.get("cost_usd"), entry.get("lower_bound_usd"), entry.get("version")
    if not _is_number(cost) or not _is_number(bound) or not isinstance(version, str):
        return None
    return Known(float(cast("float", cost)), float(cast("float", bound)), version)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
