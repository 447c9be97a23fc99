"""What a study has done so far: a file of JSON lines that only grows, one line a finished point, safe against crashes.

A line is written whole, then flushed to the disk. What a crash leaves of a last line is skipped and overwritten by
nothing: the next line starts on a line of its own. One study at a time writes to a file.
"""

import errno
import fcntl
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from designer.errors import OutputError, Problem, StudyError
from designer.study.task import FINAL, Outcome

RESULTS = "results.jsonl"
_PART_FILE = re.compile(r"results-part-[0-9]+-of-[0-9]+\.jsonl")
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
_log = logging.getLogger(__name__)


def part_file(part: tuple[int, int] | None) -> str:
    """Name of the file that part I of N writes; the whole study reads those of all parts."""
    if part is None:
        return RESULTS
    return f"results-part-{part[0]:0{len(str(part[1]))}d}-of-{part[1]}.jsonl"


class Store:
    """The outcomes in a folder by key; use it as a context, which holds the lock."""

    def __init__(self, folder: Path | str, part: tuple[int, int] | None = None) -> None:
        self.folder = Path(folder)
        self.path = self.folder / part_file(part)
        self._known: dict[str, Outcome] = {}
        self._descriptor: int | None = None

    def __enter__(self) -> "Store":
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise OutputError(self.path, error.strerror or str(error)) from error
        try:
            self._lock(self._descriptor)
            for path in self._files():
                self._known |= _outcomes(path)
            self._end_torn_line(self._descriptor)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # the lock goes with it, as it does when the process is killed
            self._descriptor = None

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found, allowed = "results that another study is writing", "one study at a time in a folder"
            raise StudyError([Problem(str(self.path), None, "", found, allowed)]) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise OutputError(self.path, error.strerror or str(error)) from error
            _log.warning("%s: no locks on this file system; do not run two studies in one folder", self.path)

    def _files(self) -> list[Path]:
        others = sorted(path for path in self.folder.iterdir() if _PART_FILE.fullmatch(path.name))
        if _PART_FILE.fullmatch(self.path.name):
            others = [self.folder / RESULTS, *others]
        return [*(path for path in others if path != self.path and path.exists()), self.path]

    def _end_torn_line(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            self._write(descriptor, b"\n")

    def get(self, key: str) -> Outcome | None:
        """The final outcome under a key; None where there is none, or one that another try may better."""
        return self._known.get(key)

    def add(self, key: str, outcome: Outcome, settings: Mapping[str, Any]) -> None:
        """Keep an outcome, with the settings of its point for whoever reads the file.

        Raises:
            OutputError: the file cannot be written.
        """
        if self._descriptor is None:
            raise ValueError("the store is not open")
        line = json.dumps({"key": key, "point": settings, **outcome.to_document()}, separators=(",", ":"))
        self._write(self._descriptor, line.encode() + b"\n")
        if outcome.status in FINAL:
            self._known[key] = outcome

    def _write(self, descriptor: int, content: bytes) -> None:
        try:
            while content:
                content = content[os.write(descriptor, content) :]
            os.fsync(descriptor)
        except OSError as error:
            raise OutputError(self.path, error.strerror or str(error)) from error


def _outcomes(path: Path) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    skipped = 0
    try:
        with path.open("rb") as file:
            for line in file:
                entry = _entry(line)
                if entry is None:
                    skipped += bool(line.strip())
                elif entry[1].status in FINAL:
                    found[entry[0]] = entry[1]
    except OSError as error:
        found_words = f"a file that cannot be read ({error.strerror})"
        raise StudyError([Problem(str(path), None, "", found_words, "the results of a study")]) from error
    if skipped:
        _log.warning("%s: %d lines are torn or damaged; their points are designed again", path, skipped)
    return found


def _entry(line: bytes) -> tuple[str, Outcome] | None:
    try:
        document = cast("dict[str, Any]", json.loads(line))
        return str(document["key"]), Outcome.from_document(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def keys_of(path: Path) -> Iterator[str]:
    """The keys of all lines of a results file, in order; a key that comes twice was designed twice."""
    for line in path.read_bytes().splitlines():
        entry = _entry(line)
        if entry is not None:
            yield entry[0]
