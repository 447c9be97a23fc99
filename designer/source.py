"""Reading of the YAML and JSON files that users write: plain data with the line of every field, nothing trusted."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import yaml

from designer.errors import InputError, Problem
from designer.plain_yaml import MAX_DEPTH, MAX_PROBLEMS, Place, Reader, TooMuchError, dotted

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_BYTES = 16 * 2**20
_M = TypeVar("_M", bound="BaseModel")


@dataclass(frozen=True)
class Source:
    """The content of one file as plain dicts, lists, texts, numbers, booleans and None, and the lines it came from."""

    path: str
    data: object
    place: Place | None = field(default=None, repr=False, compare=False)

    def line(self, location: tuple[str | int, ...]) -> int | None:
        """The 1-based line of a field, or of the nearest parent of it that exists; None without line numbers."""
        if self.place is None:
            return None
        line, place = self.place.line, self.place
        for key in location:
            found = place.inside.get(key)
            if found is None:
                break
            line, place = found
        return line


def read_text(path: Path | str, error: type[InputError] = InputError, max_bytes: int = MAX_BYTES) -> str:
    """The text of a regular UTF-8 file of at most `max_bytes`.

    Raises:
        InputError: (or the given subclass) the file is missing, not regular, too large, unreadable or not UTF-8.
    """
    allowed = f"a text file in UTF-8 of at most {max_bytes // 2**20} MiB"

    def refuse(found: str, line: int | None = None) -> InputError:
        return error([Problem(str(path), line, "", found, allowed)])

    try:
        status = Path(path).stat()
        if stat.S_ISDIR(status.st_mode):
            raise refuse("a folder")
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer, a device may never end
            raise refuse("a device or pipe")
        if status.st_size > max_bytes:
            raise refuse(f"a file of {status.st_size / 2**20:.0f} MiB")
        with Path(path).open("rb") as file:
            content = file.read(max_bytes + 1)  # files such as those of /proc are longer than they say
    except FileNotFoundError:
        raise refuse("no such file") from None
    except PermissionError:
        raise refuse("a file without permission to read") from None
    except NotADirectoryError:
        raise refuse("a path that leads through a file") from None
    except ValueError:
        raise refuse("a path with a character that no file name may have") from None
    except OSError as problem:
        raise refuse(f"a file that cannot be read ({problem.strerror or os.strerror(problem.errno or 0)})") from None
    if len(content) > max_bytes:
        raise refuse(f"more than {max_bytes // 2**20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise refuse(f"the byte 0x{content[problem.start]:02x}, which is not UTF-8", line) from None


def read_yaml(path: Path | str, error: type[InputError] = InputError) -> Source:
    """Read a YAML or JSON file as plain data.

    Numbers and booleans are those of YAML 1.2: `1e9` is a number, `no` and `on` are texts, dates are texts. Anchors,
    aliases and merge keys work, within limits on nesting (64) and on the number of values they expand to (200,000).

    Raises:
        InputError: (or the given subclass) with every problem found, each with its line.
    """
    text = read_text(path, error)
    reader = Reader(str(path))
    try:
        for event in _events(text):
            reader.take(event)
    except TooMuchError:
        raise error(reader.problems) from None
    except yaml.YAMLError as broken:
        raise error([*reader.problems, _syntax_problem(str(path), text, broken)]) from None
    if reader.place is None and not reader.problems:
        reader.refuse(None, "", "an empty file", "a file with content")
    if reader.problems:
        raise error(reader.problems)
    return Source(str(path), reader.data, reader.place)


def _events(text: str) -> Iterator[Any]:
    # The C parser is some fifty times faster; both hand out events one by one, so a reader can stop early.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return cast("Iterator[Any]", yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType]


def _syntax_problem(path: str, text: str, broken: yaml.YAMLError) -> Problem:
    allowed = "YAML or JSON"
    if "maximum nesting depth" in str(broken):  # the C parser has a limit of its own, met before the first value
        found, allowed = f"more than {MAX_DEPTH} levels of nesting", "a flatter file"
        return Problem(path, None, "", found, allowed)
    if isinstance(broken, yaml.MarkedYAMLError):
        mark = broken.problem_mark or broken.context_mark
        found = ", ".join(part for part in (broken.context, broken.problem) if part) or "text that is not YAML"
        if mark is not None:
            found += f" (column {mark.column + 1})"
        if (
            "cannot start any token" in found
            and mark is not None
            and "\t" in text.split("\n")[mark.line][: mark.column + 1]
        ):
            allowed = "spaces for indentation: YAML does not allow tabs there"
        return Problem(path, None if mark is None else mark.line + 1, "", found, allowed)
    position = cast("int | None", getattr(broken, "position", None))
    if position is None:
        return Problem(path, None, "", str(broken), allowed)
    line = next(
        (number for number, row in enumerate(text.split("\n"), 1) if _CONTROL.search(row)),
        text.count("\n", 0, position) + 1,
    )
    return Problem(path, line, "", "a control character", "printable text")


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


def validate(model: type[_M], source: Source, error: type[InputError] = InputError) -> _M:
    """Check the data of a file against a pydantic model.

    Raises:
        InputError: (or the given subclass) with all problems at once, each with line, field, found and allowed.
    """
    from pydantic import ValidationError

    from designer.validation import Finding, explain, false_numbers

    findings: list[Finding] = false_numbers(model, source.data)
    result: _M | None = None
    try:
        result = model.model_validate(source.data)
    except ValidationError as invalid:
        known = {finding.location for finding in findings}
        findings += [finding for finding in explain(model, source.data, invalid) if finding.location not in known]
    if findings or result is None:
        problems = [
            Problem(source.path, source.line(at.location), dotted(at.location), at.found, at.allowed) for at in findings
        ]
        problems.sort(key=lambda problem: problem.line or 0)
        if (more := len(problems) - MAX_PROBLEMS) > 0:
            problems[MAX_PROBLEMS:] = [Problem(source.path, None, "", f"{more} more problems", "none")]
        raise error(problems)
    return result
