"""What is done is kept: across runs, crashes, torn lines, damaged lines and parts."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from designer.errors import OutputError, StudyError
from designer.study.store import RESULTS, Store, keys_of, part_file
from designer.study.task import Outcome, Piece
from tests.cli.conftest import environment

DONE = Outcome("optimal", "", {"cost_usd": 1.5, "met": True, "core_switch": None}, (Piece("a", "leaf", 3, 0.0),), 0.25)
CLASH = Outcome("infeasible", "no network can", wall_s=0.5)


def kept(folder: Path, *keys: str) -> list[Outcome | None]:
    with Store(folder) as store:
        return [store.get(key) for key in keys]


def test_outcomes_come_back_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with Store(folder) as store:
        assert store.get("a") is None
        store.add("a", DONE, {"x": [1]})
        store.add("b", CLASH, {"x": {"y": None}})
        assert store.get("a") == DONE
    assert kept(folder, "a", "b", "c") == [DONE, CLASH, None]
    with Store(folder) as store:
        assert store.get("a").wall_s == DONE.wall_s
    assert [json.loads(line)["point"] for line in (folder / RESULTS).open()] == [{"x": [1]}, {"x": {"y": None}}]
    assert list(keys_of(folder / RESULTS)) == ["a", "b"]


def test_what_failed_is_written_down_and_tried_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add("a", Outcome("failed", "the worker died"), {})
        assert store.get("a") is None
    assert kept(tmp_path, "a") == [None]
    with Store(tmp_path) as store:
        store.add("a", DONE, {})
    assert kept(tmp_path, "a") == [DONE]


@pytest.mark.parametrize("cut", [1, 2, 40, 10_000])
def test_a_last_line_that_a_crash_tore_is_skipped_and_harms_no_other(tmp_path: Path, cut: int) -> None:
    with Store(tmp_path) as store:
        store.add("a", DONE, {})
        store.add("b", CLASH, {})
    path = tmp_path / RESULTS
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[: -min(cut, len(second) - 1)])
    torn = cut > 1  # without its line end alone a line is whole
    with Store(tmp_path) as store:
        assert store.get("a") == DONE
        assert store.get("b") == (None if torn else CLASH)
        store.add("c", CLASH, {})
    assert kept(tmp_path, "a", "b", "c") == [DONE, None if torn else CLASH, CLASH]


def test_damaged_lines_are_skipped_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Store(tmp_path) as store:
        store.add("a", DONE, {})
    path = tmp_path / RESULTS
    other = b'[]\n3\n{"key": "a"}\n\xff\xfe\n{"key": "z", "status": "optimal", "reason": "", "values": 3}\n\n'
    path.write_bytes(other + path.read_bytes())
    assert kept(tmp_path, "a", "z") == [DONE, None]
    assert "5 lines" in caplog.text


def test_two_studies_do_not_write_to_one_file(tmp_path: Path) -> None:
    with Store(tmp_path), pytest.raises(StudyError, match="another study"), Store(tmp_path):
        pass
    with Store(tmp_path):
        pass


def test_the_lock_of_a_process_that_was_killed_is_gone(tmp_path: Path) -> None:
    program = f"""
import os, signal
from designer.study.store import Store
with Store({str(tmp_path)!r}):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", program], env=environment(), check=False, timeout=60)
    assert ended.returncode == -9
    assert kept(tmp_path, "a") == [None]


def test_parts_write_their_own_files_and_all_read_all(tmp_path: Path) -> None:
    assert part_file((3, 12)) == "results-part-03-of-12.jsonl"
    with Store(tmp_path, (1, 2)) as one, Store(tmp_path, (2, 2)) as two, Store(tmp_path) as whole:
        one.add("a", DONE, {})
        two.add("b", CLASH, {})
        whole.add("c", CLASH, {})
    (tmp_path / "results-of-mine.jsonl").write_text("not a part")
    assert kept(tmp_path, "a", "b", "c") == [DONE, CLASH, CLASH]
    with Store(tmp_path, (1, 2)) as store:
        assert [store.get(key) for key in "abc"] == [DONE, CLASH, CLASH]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / RESULTS).mkdir(parents=True)
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "folder"):
        with pytest.raises(OutputError), Store(folder):
            pass


def test_a_full_disk_ends_the_study_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Store(tmp_path) as store:
        store.add("a", DONE, {})
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OutputError, match="No space left"):
                store.add("b", DONE, {})
    assert kept(tmp_path, "a", "b") == [DONE, None]
