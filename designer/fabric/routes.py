"""Routes of a fabric for the steps of its traffic: paths with weights between switches, and their document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from designer.errors import InputError, Problem
from designer.source import Source, validate

SCHEMA_VERSION = 1
MAX_STEPS = 10_000
WEIGHTS = 1e-9


@dataclass(frozen=True)
class RoutedPath:
    """A path over switches, by their node numbers in the fabric; `weight` is the part of the traffic that takes it."""

    switches: tuple[int, ...]
    weight: float


@dataclass(frozen=True)
class StepRouting:
    """How one step of a phase is routed: for every ordered pair of switches that exchanges traffic its paths.

    `source` and `target` are the switches that the endpoints are attached to. The weights of a pair add up to 1, and
    are the same whatever an `any` step sends. `throughput` is the part of the demanded rates that is carried at once,
    at most 1.
    """

    job: str
    phase: str
    step: str
    throughput: float
    paths: Mapping[tuple[int, int], tuple[RoutedPath, ...]]

    def to_document(self) -> dict[str, Any]:
        """Plain data for JSON."""
        pairs = [
            {
                "source": source,
                "target": target,
                "paths": [{"switches": list(path.switches), "weight": path.weight} for path in paths],
            }
            for (source, target), paths in sorted(self.paths.items())
        ]
        return {
            "job": self.job,
            "phase": self.phase,
            "step": self.step,
            "throughput": self.throughput,
            "pairs": pairs,
        }

    @staticmethod
    def from_document(document: object, path: str = "step") -> "StepRouting":
        """The step that `to_document` wrote; `path` is what messages call the document.

        Raises:
            InputError: the document is none; every problem found is named by its field.
        """
        step, problems = _step(validate(_Step, Source(path, document)), path, "")
        if problems:
            raise InputError(problems)
        return step


def routing_document(steps: Sequence[StepRouting]) -> dict[str, Any]:
    """The routes of all steps as plain data for JSON."""
    return {"schema_version": SCHEMA_VERSION, "steps": [step.to_document() for step in steps]}


def routing_from_document(document: object, path: str = "routing") -> tuple[StepRouting, ...]:
    """The steps that `routing_document` wrote; `path` is what messages call the document.

    Raises:
        InputError: the document is none; every problem found is named by its field.
    """
    record = validate(_Routing, Source(path, document))
    read = [_step(step, path, f"steps[{number}].") for number, step in enumerate(record.steps)]
    if problems := [problem for _, found in read for problem in found]:
        raise InputError(problems)
    return tuple(step for step, _ in read)


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class _Path(_Record):
    switches: list[int] = Field(min_length=2)
    weight: float = Field(gt=0, le=1 + WEIGHTS)


class _Pair(_Record):
    source: int = Field(ge=0)
    target: int = Field(ge=0)
    paths: list[_Path] = Field(min_length=1)


class _Step(_Record):
    job: str
    phase: str
    step: str
    throughput: float = Field(ge=0, le=1)
    pairs: list[_Pair]


class _Routing(_Record):
    schema_version: Literal[1]
    steps: list[_Step] = Field(max_length=MAX_STEPS)


def _step(record: _Step, file: str, at: str) -> tuple[StepRouting, list[Problem]]:
    problems: list[Problem] = []
    paths: dict[tuple[int, int], tuple[RoutedPath, ...]] = {}
    for number, pair in enumerate(record.pairs):
        field, ends = f"{at}pairs[{number}]", (pair.source, pair.target)
        if pair.source == pair.target or ends in paths:
            found = f"switches {pair.source} and {pair.target}" + (" again" if ends in paths else "")
            problems.append(Problem(file, None, field, found, "every pair of different switches once"))
        total = sum(path.weight for path in pair.paths)
        if abs(total - 1) > WEIGHTS:
            problems.append(
                Problem(file, None, f"{field}.paths", f"weights of {total:.9g}", "weights that add up to 1")
            )
        for place, path in enumerate(pair.paths):
            if (path.switches[0], path.switches[-1]) != ends or len(set(path.switches)) < len(path.switches):
                found = "-".join(map(str, path.switches[:40]))
                allowed = f"a path from {pair.source} to {pair.target} that passes no switch twice"
                problems.append(Problem(file, None, f"{field}.paths[{place}].switches", found, allowed))
        paths[ends] = tuple(RoutedPath(tuple(path.switches), path.weight) for path in pair.paths)
    return StepRouting(record.job, record.phase, record.step, record.throughput, paths), problems
