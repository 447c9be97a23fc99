"""What goes to which stream: results whole to stdout, all else to stderr; colour and motion on a terminal only."""

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 120
# Rich breaks lines at every kind of space. In its place until the text is written: a sign that no text can bring in, as
# `printable` shows it as an escape.
HELD_SPACE = "\ue000"


def prepare_streams() -> None:
    """Lets a stream whose encoding lacks a sign show a substitute rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at the stream on a terminal that can move its cursor."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def write_out(text: str) -> None:
    """Writes a result to stdout at once; a reader who has gone away is no error."""
    _write(sys.stdout, text)


def write_json(document: object) -> None:
    """Writes one JSON document to stdout."""
    write_out(json.dumps(document, allow_nan=False) + "\n")


def write_error(text: str) -> None:
    """Writes a message to stderr; control characters from a user's file do not reach the terminal."""
    _write(sys.stderr, printable(text) + "\n")


def printable(text: str) -> str:
    """The text with control characters, line ends apart, shown as escapes; a no-break space holds through `render`."""
    shown = {"\n": "\n", "\N{NO-BREAK SPACE}": HELD_SPACE}
    return "".join(shown.get(sign) or (sign if sign.isprintable() else ascii(sign)[1:-1]) for sign in text)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text.replace(HELD_SPACE, " "))
        stream.flush()
    except BrokenPipeError:
        # What is still buffered would fail once more when the interpreter exits.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), stream.fileno())


def render(*parts: "RenderableType") -> str:
    """Tables and texts as they go to stdout: as wide as the terminal, coloured there only and not under NO_COLOR."""
    from rich.console import Console

    terminal = is_terminal(sys.stdout)
    colour = terminal and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size((WIDTH, 24)).columns if terminal else WIDTH
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        force_terminal=colour,
        color_system="auto" if colour else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in buffer.getvalue().split("\n"))


@contextlib.contextmanager
def solver_output_to_stderr() -> Generator[None]:
    """While solvers run, what they write to stdout below Python goes to stderr."""
    try:
        saved = os.dup(1)
    except OSError:  # no stdout at all
        yield
        return
    try:
        _write(sys.stdout, "")
        with contextlib.suppress(OSError):
            os.dup2(2, 1)
        yield
        _write(sys.stdout, "")
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def table(*headings: str, right: tuple[int, ...] = ()) -> Any:
    """An empty rich table with these column headings; the columns of `right` hold numbers."""
    from rich import box
    from rich.table import Table

    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold", show_edge=False)
    for number, heading in enumerate(headings):
        result.add_column(heading, justify="right" if number in right else "left", overflow="fold")
    return result
