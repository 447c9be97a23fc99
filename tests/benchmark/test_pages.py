"""Tables and pictures of the READMEs are those that the stored results give."""

import json
from pathlib import Path

import pytest

from benchmarks import pages


@pytest.mark.parametrize("path", pages.READMES, ids=lambda path: str(path.relative_to(pages.ROOT)))
def test_tables_are_the_generated_ones(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert pages.with_tables(text) == text


def test_every_table_has_a_place() -> None:
    texts = [path.read_text(encoding="utf-8") for path in pages.READMES]
    missing = [name for name in pages.TABLES if not any(f"<!-- {name}: begin -->" in text for text in texts)]
    assert missing == []


def test_pictures_are_the_generated_ones() -> None:
    drawn = pages.pictures()
    assert {name: (pages.RESULTS / name).read_text(encoding="utf-8") for name in drawn} == drawn


def test_release_has_its_line() -> None:
    known = json.loads((pages.RESULTS / "releases.json").read_text(encoding="utf-8"))
    assert pages.with_release(known, pages.results("bench")) == known


def test_marks_are_paired() -> None:
    """A table without its end is told, not swallowed."""
    with pytest.raises(ValueError, match="suites"):
        pages.with_tables("<!-- suites: begin -->\n")
