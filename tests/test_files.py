import errno
import os
from pathlib import Path
from typing import Any

import pytest

from designer.errors import OutputError
from designer.files import check_writable, write_text_atomically


def test_the_file_holds_the_text_and_the_mode_of_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    before = os.umask(0o027)
    try:
        write_text_atomically(path, "λ = 1\n")
        write_text_atomically(str(path), "λ = 2\n")
    finally:
        os.umask(before)
    assert path.read_bytes() == "λ = 2\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to("folder/real")
    write_text_atomically(link, "text")
    assert link.is_symlink()
    assert (folder / "real").read_text() == "text"


@pytest.mark.parametrize("write", [check_writable, lambda path: write_text_atomically(path, "x")])
def test_paths_that_cannot_be_written_are_refused_in_plain_words(tmp_path: Path, write: Any) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    os.mkfifo(tmp_path / "pipe")
    for path, reason in [
        (tmp_path, "a folder, not a file"),
        (file / "x", "is not a folder"),
        (tmp_path / "none" / "x", "does not exist"),
        (tmp_path / "pipe", "a device or pipe"),
        (Path("/dev/null"), "a device or pipe"),
        (tmp_path / ("n" * 300), "too long"),
        ("a\0b", "character that no file name"),
    ]:
        with pytest.raises(OutputError, match=reason) as caught:
            write(path)
        assert caught.value.problems[0].file == str(path)
    assert file.read_text() == "kept"
    assert {entry.name for entry in tmp_path.iterdir()} == {"file", "pipe"}


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc here")
def test_a_folder_that_takes_no_files_is_refused() -> None:
    with pytest.raises(OutputError, match=r"no file can be created|no permission"):
        check_writable("/proc/out.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="no permission"):
        check_writable(tmp_path / "x")


@pytest.mark.parametrize(
    ("name", "failure", "reason"),
    [
        ("replace", OSError(errno.ENOSPC, "x"), "the disk is full"),
        ("fsync", OSError(errno.ENOSPC, "x"), "the disk is full"),
        ("fsync", OSError(errno.EIO, "input/output error"), "input/output error"),
        ("open", PermissionError(errno.EACCES, "x"), "no permission"),
        ("open", OSError(errno.EROFS, "x"), "read-only"),
    ],
)
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, failure: OSError, reason: str
) -> None:
    path = tmp_path / "out"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(f"designer.files.os.{name}", fail)
        with pytest.raises(OutputError, match=reason):
            write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("designer.files.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text_atomically(tmp_path / "out", "x")
    assert list(tmp_path.iterdir()) == []


def test_text_that_utf8_cannot_express_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="UTF-8"):
        write_text_atomically(tmp_path / "out", "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_a_check_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out"
    check_writable(path)
    assert not path.exists()
    path.write_text("kept")
    check_writable(path)
    assert path.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [path]
