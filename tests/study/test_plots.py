"""Pictures: what they show, and that equal tables give equal files."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from designer.errors import StudyError
from designer.study.plots import draw
from designer.study.schema import PlotSection
from designer.study.table import Row, StudyResult
from designer.study.task import Outcome

pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plots)")


def result() -> StudyResult:
    rows = [
        Row(
            {"cluster.hb_domain": domain, "kind": kind, "nothing": None},
            {},
            Outcome("optimal", "", {"cost_usd": 1e6 / domain + len(kind), "power_w": float(domain)}),
        )
        for domain in (8, 16, 64)
        for kind in ("slow", "quick")
    ]
    rows.append(Row({"cluster.hb_domain": 32, "kind": "slow"}, {}, Outcome("infeasible", "it is")))
    return StudyResult("a study", tuple(rows))


def picture(tmp_path: Path, **fields: Any) -> str:
    section = PlotSection.model_validate({"file": "p.svg", **fields})
    draw(result(), section, tmp_path / section.file)
    content = (tmp_path / section.file).read_bytes()
    draw(result(), section, tmp_path / section.file)
    assert (tmp_path / section.file).read_bytes() == content, "equal tables, equal files"
    elements = ET.fromstring(content).iter()  # noqa: S314 - written just above
    texts = [element.text or "" for element in elements if element.tag.endswith("text")]
    return " | ".join(texts)


def test_lines_name_their_axes_values_and_groups(tmp_path: Path) -> None:
    texts = picture(tmp_path, kind="lines", x="cluster.hb_domain", y="cost", by="kind", log=["x", "y"])
    for text in ("cluster.hb_domain", "cost, USD", "8", "16", "64", "slow", "quick", "a study"):
        assert text in texts.split(" | ")
    assert "32" not in texts.split(" | "), "a point without a design is not drawn"


def test_a_heat_map_has_a_field_for_each_pair_of_values(tmp_path: Path) -> None:
    texts = picture(tmp_path, kind="heat", x="cluster.hb_domain", y="kind", value="cost", log=["value"], title="warm")
    for text in ("kind", "cost, USD", "8", "16", "64", "slow", "quick", "warm"):
        assert text in texts.split(" | ")


def test_a_front_is_drawn_through_the_best_points(tmp_path: Path) -> None:
    texts = picture(tmp_path, kind="front", x="power", y="cost", by="kind")
    for text in ("power, W", "cost, USD", "front", "slow"):
        assert text in texts.split(" | ")


def test_png_is_made_as_the_name_says(tmp_path: Path) -> None:
    section = PlotSection.model_validate({"kind": "front", "x": "power", "y": "cost", "file": "p.png"})
    draw(result(), section, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="found 'costs'"):
        picture(tmp_path, kind="lines", x="power", y="costs")
    with pytest.raises(StudyError, match="no row with values in nothing, cost_usd"):
        picture(tmp_path, kind="lines", x="nothing", y="cost")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(StudyError, match=r"pip install 'designer\[plots\]'"):
        picture(tmp_path, kind="lines", x="power", y="cost")
