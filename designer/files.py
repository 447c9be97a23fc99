"""Writing of output files: whole or not at all, and tried before the long work rather than after it."""

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO, TextIO

from designer.errors import OutputError

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.ENAMETOOLONG: "the file name is too long",
    errno.ELOOP: "the path is a loop of symbolic links",
}


def write_text_atomically(path: Path | str, text: str) -> None:
    """Write `text` as UTF-8 to `path`: afterwards the file holds all of it, or is what it was before.

    A symbolic link stays and its target is replaced; the mode of the file follows the umask.

    Raises:
        OutputError: the file cannot be written; nothing is left behind.
    """
    with text_written_atomically(path) as file:
        file.write(text)


def write_bytes_atomically(path: Path | str, content: bytes) -> None:
    """Write `content` to `path`, as `write_text_atomically` writes a text.

    Raises:
        OutputError: the file cannot be written; nothing is left behind.
    """
    with bytes_written_atomically(path) as file:
        file.write(content)


@contextlib.contextmanager
def text_written_atomically(path: Path | str) -> Generator[TextIO]:
    """A UTF-8 file to write piece by piece, line ends as they are; once the block ends well, `path` holds all of it.

    Raises:
        OutputError: the file cannot be written; nothing is left behind.
    """
    try:
        with bytes_written_atomically(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            yield text
            text.detach()
    except UnicodeEncodeError as error:
        raise OutputError(path, "the text holds characters that UTF-8 cannot express") from error


@contextlib.contextmanager
def bytes_written_atomically(path: Path | str) -> Generator[BinaryIO]:
    """A file of bytes to write piece by piece, like `text_written_atomically`.

    Raises:
        OutputError: the file cannot be written; nothing is left behind.
    """
    target = _target(path)
    temporary: Path | None = None
    try:
        descriptor, temporary = _create_beside(target)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)  # noqa: PTH105 - the one call whose atomicity POSIX promises, by its own name
        temporary = None
    except OSError as error:
        raise OutputError(path, _reason(target, error)) from error
    finally:
        if temporary is not None:  # an interrupt, too, must leave nothing behind
            with contextlib.suppress(OSError):
                temporary.unlink()


def make_folder(path: Path | str) -> None:
    """Make sure that `path` is a folder; the one above it must exist.

    Raises:
        OutputError: it is none and cannot be made one.
    """
    target = Path(path)
    try:
        target.mkdir(exist_ok=True)
    except FileExistsError as error:
        raise OutputError(path, "a file, not a folder") from error
    except ValueError as error:  # a NUL character in the name
        raise OutputError(path, "the path holds a character that no file name may have") from error
    except OSError as error:
        raise OutputError(path, _reason(target, error)) from error


def check_writable(path: Path | str) -> None:
    """Make sure that `path` can be written, by creating a file beside it and taking it away again.

    Raises:
        OutputError: the file could not be written.
    """
    target = _target(path)
    try:
        descriptor, temporary = _create_beside(target)
        os.close(descriptor)
        temporary.unlink()
    except OSError as error:
        raise OutputError(path, _reason(target, error)) from error


def _target(path: Path | str) -> Path:
    """The file that `path` means once symbolic links are followed; refuses what is not a file."""
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:  # a NUL character in the name
        raise OutputError(path, "the path holds a character that no file name may have") from error
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except OSError as error:
        raise OutputError(path, _reason(target, error)) from error
    if stat.S_ISDIR(mode):
        raise OutputError(path, "a folder, not a file")
    if not stat.S_ISREG(mode):  # replacing /dev/null by a file would break the machine
        raise OutputError(path, "a device or pipe, not a file")
    return target


def _create_beside(target: Path) -> tuple[int, Path]:
    """A new, empty file in the folder of `target`, open for writing."""
    temporary = target.with_name(f".designer-{secrets.token_hex(8)}.tmp")
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), temporary


def _reason(target: Path, error: OSError) -> str:
    folder = target.parent
    if isinstance(error, NotADirectoryError) or (folder.exists() and not folder.is_dir()):
        return f"{folder} is not a folder"
    if isinstance(error, FileNotFoundError):
        return "no file can be created there" if folder.is_dir() else f"the folder {folder} does not exist"
    return _REASONS.get(error.errno or 0, error.strerror or str(error))
