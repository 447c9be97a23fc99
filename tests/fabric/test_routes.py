"""The document of routes: what is written is read, and nothing else."""

import json
from typing import Any

import pytest

from designer.errors import InputError
from designer.fabric.routes import RoutedPath, StepRouting, routing_document, routing_from_document

STEP = StepRouting(
    "job",
    "dp",
    "ring",
    0.75,
    {(4, 5): (RoutedPath((4, 5), 1 / 3), RoutedPath((4, 6, 5), 2 / 3)), (5, 4): (RoutedPath((5, 4), 1.0),)},
)


def document() -> dict[str, Any]:
    """The document as a file holds it."""
    return json.loads(json.dumps(routing_document([STEP])))


def test_written_and_read() -> None:
    """To the last digit, one step and all."""
    assert routing_from_document(document()) == (STEP,)
    assert StepRouting.from_document(document()["steps"][0]) == STEP


@pytest.mark.parametrize(
    ("where", "value", "field"),
    [
        (("schema_version",), 2, "schema_version"),
        (("steps",), {}, "steps"),
        (("steps", 0, "throughput"), 1.5, "steps[0].throughput"),
        (("steps", 0, "throughput"), float("nan"), "steps[0].throughput"),
        (("steps", 0, "throughput"), True, "steps[0].throughput"),
        (("steps", 0, "hops"), 3, "steps[0].hops"),
        (("steps", 0, "pairs", 0, "paths"), [], "steps[0].pairs[0].paths"),
        (("steps", 0, "pairs", 0, "paths", 0, "weight"), 0.0, "weight"),
        (("steps", 0, "pairs", 0, "paths", 0, "weight"), -0.5, "weight"),
        (("steps", 0, "pairs", 0, "paths", 0, "weight"), 0.5, "steps[0].pairs[0].paths"),
        (("steps", 0, "pairs", 0, "paths", 0, "switches"), [4], "switches"),
        (("steps", 0, "pairs", 0, "paths", 0, "switches"), [4, 5.5], "switches"),
        (("steps", 0, "pairs", 0, "paths", 0, "switches"), [4, 6], "steps[0].pairs[0].paths[0].switches"),
        (("steps", 0, "pairs", 0, "paths", 1, "switches"), [4, 6, 4, 5], "steps[0].pairs[0].paths[1].switches"),
        (("steps", 0, "pairs", 1, "target"), 5, "steps[0].pairs[1]"),
        (("steps", 0, "pairs", 1, "source"), -1, "source"),
    ],
)
def test_what_is_no_document(where: tuple[str | int, ...], value: object, field: str) -> None:
    """Each fault is named by its field."""
    broken = document()
    at: Any = broken
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    with pytest.raises(InputError) as caught:
        routing_from_document(broken, "file.json")
    assert any(field in problem.field for problem in caught.value.problems)
    assert all(problem.file == "file.json" for problem in caught.value.problems)


def test_a_pair_stands_once() -> None:
    """The same pair twice is refused, in a step by itself too."""
    twice = document()["steps"][0]
    twice["pairs"].append(twice["pairs"][0])
    with pytest.raises(InputError, match="again"):
        StepRouting.from_document(twice)
