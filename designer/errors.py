"""The exceptions that a user of the package can meet, each with the exit code that the command line gives it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input: where it stands, what was found, what is allowed."""

    file: str
    line: int | None
    field: str
    found: str
    allowed: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        field = f" {self.field}:" if self.field else ""
        return f"{place}:{field} found {self.found}; allowed: {self.allowed}"


class DesignerError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code = 1


class InputError(DesignerError):
    """An input file, or an output path, that cannot be used; carries every problem found."""

    exit_code = 3

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InstanceError(InputError):
    """Problems of an instance file."""


class CatalogError(InputError):
    """Problems of a catalog file."""


class StudyError(InputError):
    """Problems of a study: its file, its axes, the columns it names, or the machines it is to run on."""


class OutputError(InputError):
    """An output path that cannot be written."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__([Problem(str(path), None, "", reason, "a path in an existing folder that can be written")])


class ExportError(InputError):
    """A design that a format cannot express, names that do not tell its devices apart, or a missing extra."""


@dataclass(frozen=True)
class Remedy:
    """A single change of the requirements after which a design exists."""

    constraint: str
    change: str


class InfeasibleError(DesignerError):
    """No network of the searched families meets the requirements: the constraints that clash, and what would help."""

    exit_code = 4

    def __init__(self, conflict: Sequence[str], remedies: Sequence[Remedy] = ()) -> None:
        self.conflict = tuple(conflict)
        self.remedies = tuple(remedies)
        lines = ["no network of the searched families meets these constraints together:"]
        lines += [f"  - {constraint}" for constraint in self.conflict]
        if self.remedies:
            lines.append("one of these changes would resolve it:")
            lines += [f"  - {remedy.constraint}: {remedy.change}" for remedy in self.remedies]
        super().__init__("\n".join(lines))


class NoDesignError(DesignerError):
    """A limit was hit before any design was found."""

    exit_code = 6


class VerificationError(DesignerError):
    """A design that does not hold what it says."""

    exit_code = 7
