"""Command-line flags out of a file, with the line of each: a shell script, which is never run, or YAML."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from designer.errors import InstanceError, Problem
from designer.plain_yaml import shorten_key
from designer.source import read_text, read_yaml

MAX_SCRIPT_CHARS = 2**20


@dataclass(frozen=True)
class Flag:
    """A flag as it stands in the file: its value as text, None for a bare switch."""

    value: str | None
    line: int | None


@dataclass(frozen=True)
class FlagFile:
    """All flags of a file by name (`--num-layers`), and the variables that it uses but does not set."""

    path: str
    flags: Mapping[str, tuple[Flag, ...]]
    unset: Mapping[str, int]


_YAML_SECTION = "MODEL_ARGS"
_FLAG = re.compile(r"--[A-Za-z]")
_ASSIGNMENT = re.compile(r"(?:export\s+|local\s+|readonly\s+)?([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)(?:\[[@*]\])?\}?")


def read_flags(path: Path | str) -> FlagFile:
    """Read the flags of a YAML file (a mapping, or one under MODEL_ARGS) or of a shell script.

    A variable is replaced by its value where the file sets it, once, to a plain text.

    Raises:
        InstanceError: the file cannot be read or holds no flags.
    """
    file = _yaml_flags(path) if Path(path).suffix.lower() in {".yaml", ".yml"} else _script_flags(path)
    if not file.flags:
        raise InstanceError([Problem(str(path), None, "", "no flags", "arguments such as --num-layers 96")])
    return file


def _yaml_flags(path: Path | str) -> FlagFile:
    source = read_yaml(path, InstanceError)
    data = source.data
    location: tuple[str, ...] = ()
    if isinstance(data, dict) and _YAML_SECTION in data:
        data = cast("dict[object, object]", data)[_YAML_SECTION]
        location = (_YAML_SECTION,)
    if not isinstance(data, dict):
        allowed = f"a mapping of flags, or one under {_YAML_SECTION}"
        raise InstanceError([Problem(source.path, source.line(location), ".".join(location), "no mapping", allowed)])
    flags: dict[str, tuple[Flag, ...]] = {}
    for key, value in cast("dict[object, object]", data).items():
        if not isinstance(key, str) or not _FLAG.match(key) or value is None or value is False:
            continue
        text = None if value is True else str(value)
        flags[key] = (Flag(text, source.line((*location, key))),)
    return FlagFile(source.path, flags, {})


def _script_flags(path: Path | str) -> FlagFile:
    text = read_text(path, InstanceError)
    if len(text) > MAX_SCRIPT_CHARS:
        raise InstanceError([Problem(str(path), None, "", "a very long script", "a script of at most 1 MiB")])
    words = list(_words(text))
    values: dict[str, set[str]] = {}
    for _, word in words:
        assignment = _ASSIGNMENT.fullmatch(word)
        if assignment:
            values.setdefault(assignment[1], set()).add(assignment[2])
    variables = {name: next(iter(given)) for name, given in values.items() if len(given) == 1}
    flags: dict[str, list[Flag]] = {}
    unset: dict[str, int] = {}
    pieces = [(line, piece) for line, word in words for piece in _pieces(word)]
    for index, (line, piece) in enumerate(pieces):
        for name in _VARIABLE.findall(piece):
            if name not in values:
                unset.setdefault(name, line)
        if not _FLAG.match(piece):
            continue
        name, equals, value = piece.partition("=")
        given: str | None = value if equals else None
        if given is None and index + 1 < len(pieces) and not pieces[index + 1][1].startswith(("--", ")")):
            given = pieces[index + 1][1]
        flags.setdefault(name.rstrip(")"), []).append(Flag(_substitute(given, variables), line))
    return FlagFile(str(path), {name: tuple(given) for name, given in flags.items()}, unset)


def _words(text: str) -> Iterator[tuple[int, str]]:
    """The words of a script with their lines; comments are left out and quotes taken off."""
    for number, row in enumerate(text.splitlines(), 1):
        line = row.rstrip().removesuffix("\\")
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # a quote that ends on another line, as around a block of arguments
            words = re.split(r"\s#", " " + re.sub(r"[\"']", " ", line))[0].split()
        yield from ((number, word) for word in words)


def _pieces(word: str) -> Iterator[str]:
    """A word, or the words inside it where it is the quoted text or the list of an assignment."""
    assignment = _ASSIGNMENT.fullmatch(word)
    if assignment and not word.startswith("-"):
        word = assignment[2].removeprefix("(")
    for piece in word.split() if "--" in word else [word]:
        # The bracket that closes a list of arguments may touch the last of them.
        yield piece[:-1] if piece.count(")") > piece.count("(") and len(piece) > 1 else piece


def _substitute(value: str | None, variables: Mapping[str, str]) -> str | None:
    for _ in range(8):  # variables may name variables, but not for ever
        if value is None or "$" not in value or len(value) > MAX_SCRIPT_CHARS:
            break
        value = _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), value)[:MAX_SCRIPT_CHARS]
    return value


class Flags:
    """Typed look-ups of the flags of a file that collect problems."""

    def __init__(self, file: FlagFile) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def refuse(self, name: str, found: str, allowed: str) -> None:
        """Note a problem with a flag."""
        given = self.file.flags.get(name)
        self.problems.append(Problem(self.file.path, given[-1].line if given else None, name, found, allowed))

    @property
    def wrong(self) -> set[str]:
        """The flags with problems."""
        return {problem.field for problem in self.problems}

    def has(self, name: str) -> bool:
        """Whether the flag is given."""
        return name in self.file.flags

    def text(self, name: str) -> str | None:
        """The value of a flag; None where it is not given or not usable, which is then a problem."""
        given = self.file.flags.get(name, ())
        if not given:
            return None
        values = {flag.value for flag in given}
        value = given[-1].value
        if len(values) > 1:
            self.refuse(name, f"{len(values)} different values", "one value")
        elif value is None:
            self.refuse(name, "no value", "a value")
        elif "$" in value or "`" in value:
            self.refuse(name, shorten_key(value), "a value, or a variable that the file sets once, to a plain value")
        else:
            return value.strip("'\" ")
        return None

    def whole(self, *names: str, default: int | None = None, minimum: int = 1) -> int:
        """The whole number of the first of several flags that is given.

        A missing flag without default is a problem; the minimum then stands in for it.
        """
        name = next((name for name in names if self.has(name)), names[0])
        if not self.has(name):
            if default is None:
                self.refuse(name, "nothing", "a value (the flag is required)")
            return minimum if default is None else default
        text = self.text(name)
        if text is None:
            return minimum
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < minimum:
            self.refuse(name, shorten_key(text), f"a whole number >= {minimum}")
            return minimum
        return int(text)


def pattern_length_and_sum(text: str, longest: int) -> tuple[int, int] | None:
    """Number of entries, and of ones, in a list of zeros and ones such as `([0]*3+[1]*58)`; None for anything else."""
    if len(text) > 10 * longest + 1000:
        return None
    try:
        pattern = _pattern(ast.parse(text, mode="eval").body, longest, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return (len(pattern), sum(pattern)) if isinstance(pattern, list) else None


def _pattern(node: ast.expr, longest: int, depth: int) -> list[int] | int:
    """The value of an expression made of lists, whole numbers, + and *, and of nothing else."""
    if depth > 50:
        raise ValueError("nested too deeply")
    if isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= longest:
        return node.value
    if isinstance(node, ast.List) and len(node.elts) <= longest:
        entries = [entry.value for entry in node.elts if isinstance(entry, ast.Constant) and entry.value in (0, 1)]
        return [int(bool(entry)) for entry in entries] if len(entries) == len(node.elts) else _fail()
    if isinstance(node, ast.BinOp):
        left, right = _pattern(node.left, longest, depth + 1), _pattern(node.right, longest, depth + 1)
        if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
            return left + right if len(left) + len(right) <= longest else _fail()
        if isinstance(node.op, ast.Mult):
            many, times = (left, right) if isinstance(left, list) else (right, left)
            if isinstance(many, list) and isinstance(times, int):
                return many * times if len(many) * times <= longest else _fail()
    return _fail()


def _fail() -> list[int]:
    raise ValueError("not a pattern of layers")
