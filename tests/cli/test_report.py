"""`designer report`: a page from a design file, or a message that says why not."""

import json
from pathlib import Path

import pytest

from tests.certify.damaged import document_of
from tests.cli.conftest import Run


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A design file in the working folder."""
    monkeypatch.chdir(tmp_path)
    path = Path("small.json")
    path.write_text(json.dumps(document_of("rails")))
    return path


def test_the_page_is_written_and_its_name_printed(run: Run, saved: Path) -> None:
    done = run("report", saved, "-o", "small.html")
    assert (done.code, done.out, done.err) == (0, "small.html\n", "")
    text = Path("small.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n")
    assert "rails: network design" in text
    again = run("report", saved, "-o", "small.html", "--json")
    told = json.loads(again.out)
    assert told == {"path": "small.html", "name": "rails", "bytes": Path("small.html").stat().st_size}


def test_the_same_design_gives_the_same_page(run: Run, saved: Path) -> None:
    for name in ("one.html", "two.html"):
        assert run("report", saved, "-o", name).code == 0
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()


def test_a_page_needs_a_name_and_may_not_replace_its_design(run: Run, saved: Path) -> None:
    before = saved.read_bytes()
    assert run("report", saved).code == 2
    refused = run("report", saved, "-o", saved)
    assert refused.code == 2
    assert "the page would overwrite the design" in refused.err
    assert saved.read_bytes() == before


def test_what_is_no_design_is_named_and_nothing_is_left_behind(run: Run, saved: Path) -> None:
    Path("broken.json").write_text('{"name": 1}')
    refused = run("report", "broken.json", "-o", "page.html")
    assert refused.code == 3
    assert "broken.json" in refused.err
    assert run("report", "missing.json", "-o", "page.html").code == 3
    refused = run("report", saved, "-o", "missing/page.html")
    assert refused.code == 3
    assert "missing does not exist" in refused.err
    assert sorted(path.name for path in Path().iterdir()) == ["broken.json", "small.json"]
