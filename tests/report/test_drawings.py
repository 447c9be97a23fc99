"""Drawings of networks: every switch and joined pair that there is room for, and how many are left out."""

from dataclasses import replace
from xml.etree.ElementTree import tostring

import numpy as np
import pytest

from designer.certify.read_design import DesignFile
from designer.fabric.fabric import CORE, KINDS, LEAF, SPINE, Fabric, Links, MediumUse, Nodes
from designer.report.alike import Anatomy
from designer.report.graph import MOST_SWITCHES, graph_drawing
from designer.report.page import report_page
from designer.report.tiers import tiers_drawing, with_gaps
from tests.report.reading import Page, document, file_of, rows_of


def grid(rows: int, columns: int) -> Fabric:
    """A GPU at each crossing of row and column switches, every row joined to every column: two planes, one network."""
    gpus = rows * columns
    row, column = np.divmod(np.arange(gpus), columns)
    none, ports = np.full(gpus, -1), np.zeros(3 * gpus, dtype=np.int64)
    switches = rows + columns
    nodes = Nodes(
        np.r_[np.zeros(gpus, dtype=np.int64), np.full(switches, LEAF)],
        np.r_[np.zeros(gpus, dtype=np.int64), np.full(switches, -1)],
        np.r_[none, np.zeros(rows, dtype=np.int64), np.ones(columns, dtype=np.int64)],
        np.r_[none, np.full(switches, -1)],
        np.r_[none, np.zeros(switches, dtype=np.int64)],
        np.r_[none, np.zeros(switches, dtype=np.int64)],
    )
    a = np.r_[np.arange(gpus), np.arange(gpus), gpus + row]
    b = np.r_[gpus + row, gpus + rows + column, gpus + rows + column]
    links = Links(a, b, ports, ports, ports, ports, np.full(3 * gpus, 100), ports)
    return Fabric(gpus, 1, ("mini-8",), (MediumUse("mini-module", "mini-module", "mini-fibre", 15),), nodes, links)


def drawn(name: str) -> tuple[DesignFile, Page]:
    file = file_of(document(name))
    return file, Page(report_page(file))


@pytest.mark.parametrize("name", ["rails", "pods", "uneven"])
def test_a_small_network_of_tiers_is_drawn_whole(name: str) -> None:
    """A box a switch, a line for each pair that is joined and for the endpoints of each leaf, and their number."""
    file, page = drawn(name)
    (drawing, *_) = page.section("network").all("svg", "tiers")
    fabric = file.fabric
    inner = fabric.nodes.kind[fabric.links.a] >= LEAF
    pairs = set(zip(fabric.links.a[inner].tolist(), fabric.links.b[inner].tolist(), strict=True))
    counts = fabric.counts()
    assert len(drawing.all("rect", "switch")) == counts["switches"] // counts["fabrics"]
    assert len(drawing.all("line")) == (len(pairs) + counts["leaf"]) // counts["fabrics"]
    below = [text.text for text in drawing.all("text", "quiet") if text.text.isdigit()]
    assert sum(map(int, below)) == counts["endpoint_links"] // counts["fabrics"]
    assert f"{counts['leaf'] // counts['fabrics']} leaves" in [text.text for text in drawing.all("text")]


def test_long_rows_are_cut_and_say_by_how_much() -> None:
    """Boxes that are drawn and numbers that are left out add up, in a network of twenty pods, too."""
    assert with_gaps([3, 4, 5, 6, 7], [3, 4, 7]) == [(3, 0), (4, 0), (None, 2), (7, 0)]
    assert with_gaps([3, 4], [3, 4]) == [(3, 0), (4, 0)]
    assert with_gaps([3, 4, 5], [4]) == [(4, 0), (None, 1)]
    anatomy = Anatomy(grid(30, 30))
    rows = Page(f"<!doctype html>\n{tostring(tiers_drawing(anatomy, anatomy.kinds[0]), 'unicode', method='html')}")
    (left_out,) = [text.text for text in rows.root.all("text") if text.text.startswith("+")]
    assert len(rows.root.all("rect", "switch")) + int(left_out[2:]) == 60


def test_switches_that_are_joined_directly_are_drawn_on_a_circle() -> None:
    """Each with its name and GPUs, those that were there marked; a number of links at each line."""
    _, page = drawn("mixed")
    network = page.section("network")
    (drawing,) = network.all("svg", "graph")
    assert len(drawing.all("circle", "switch")) == 2
    assert len(drawing.all("circle", "owned")) == 1
    assert len(drawing.all("line")) == 1
    assert [text.text for text in drawing.all("text", "count")] == ["3"]
    words = [text.text for text in drawing.all("text")]
    assert "old & used (eight)" in words
    assert "4 GPUs, there already" in words
    old, new = rows_of(network.all("table")[0])
    assert old == ["old & used", "eight, 7 free ports", "4", "all rails of domains 0–1", "3 × 400 Gb/s to new 1"]
    assert new[2:] == ["8", "all rails of domains 2–5", "3 × 400 Gb/s to old & used"]


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (12, 12), (16, 16), (40, 20)])
def test_many_switches_are_drawn_by_what_is_alike(rows: int, columns: int) -> None:
    """Up to two dozen one by one, beyond that rows and columns as two places; no link is forgotten in either."""
    drawing = graph_drawing(Anatomy(grid(rows, columns)))
    assert drawing is not None
    page = Page(f"<!doctype html>\n{tostring(drawing, 'unicode', method='html')}")
    few = rows + columns <= MOST_SWITCHES
    assert len(page.root.all("circle", "switch")) == (rows + columns if few else 2)
    assert len(page.root.all("line")) == (rows * columns if few else 1)
    assert f"{rows * columns} links" in page.root.all("svg")[0].attributes["aria-label"]
    if not few:
        assert page.root.all("text", "count")[0].text == f"{rows * columns}"


def test_planes_that_are_networks_of_their_own_are_drawn_once() -> None:
    one = grid(2, 3)
    nodes = replace(one.nodes, fabric=np.where(one.nodes.kind >= LEAF, one.nodes.plane, -1))
    apart = replace(one, nodes=nodes)
    hosts = one.nodes.kind[one.links.a] < LEAF
    links = Links(**{name: getattr(one.links, name)[hosts] for name in vars(one.links)})
    drawing = graph_drawing(Anatomy(replace(apart, links=links)))
    assert drawing is not None
    assert len(drawing.findall("circle")) == 2


def test_a_network_of_too_many_kinds_of_switches_has_no_drawing() -> None:
    """Fifty switches that all differ in their GPUs."""
    gpus = np.repeat(np.arange(50), np.arange(50))
    total = len(gpus)
    zeros = np.zeros(total, dtype=np.int64)
    kind = np.r_[zeros, np.full(50, LEAF)]
    same = np.r_[zeros, np.zeros(50, dtype=np.int64)]
    nodes = Nodes(kind, same, same, same, same, same)
    links = Links(np.arange(total), total + gpus, zeros, zeros, zeros, zeros, zeros + 100, zeros)
    fabric = Fabric(total, 1, ("mini-8",), (MediumUse(None, None, None, 1),), nodes, links)
    assert graph_drawing(Anatomy(fabric)) is None


def test_fabrics_and_pods_open_to_their_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two planes that are alike are rows of a table, of which the rest is told when it grows too long."""
    fabrics = drawn("planes")[1].section("network").all("details")[0]
    counts = document("planes")["counts"]
    assert f"2 alike fabrics: {counts['leaf'] // 2} leaves" in fabrics.all("summary")[0].text
    assert rows_of(fabrics.all("table")[0]) == [["0", "0", "0", "16"], ["1", "1", "0", "16"]]
    switches = rows_of(fabrics.all("table")[1])
    assert len(switches) == counts["switches"] // 2
    assert switches[0][0] == "leaf 0"
    monkeypatch.setattr("designer.report.network.MOST_ROWS", 1)
    fabrics = drawn("planes")[1].section("network").all("details")[0]
    assert [row[0] for row in rows_of(fabrics.all("table")[0])] == ["0", "and 1 more"]
    monkeypatch.setattr("designer.report.network.MOST_LISTED", 2)
    pods = drawn("pods")[1].section("network").all("details")[1]
    assert pods.all("summary")[0].text == "4 alike pods, 0–3: 2 leaves and 2 spines each; those of the first:"
    assert [row[0] for row in rows_of(pods.all("table")[0])] == ["leaf 0–1", "spine 0–1"]


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [("pod", LEAF, -1), ("pod", CORE, 0), ("fabric", LEAF, 7), ("fabric", SPINE, 7), ("kind", LEAF, SPINE)],
)
def test_a_network_that_is_none_is_drawn_as_it_is(column: str, kind: int, value: int) -> None:
    """One switch with another pod, fabric or tier than its like: every switch still has its place on the page."""
    content = document("pods")
    nodes = content["fabric"]["nodes"]
    nodes[column][nodes["kind"].index(kind)] = value
    fabric = file_of(content).fabric
    section = Page(report_page(file_of(content))).section("network")
    listed = sum(kind.switches(tier) * len(kind.fabrics) for kind in Anatomy(fabric).kinds for tier in KINDS[LEAF:])
    assert listed == 20
    assert section.all("svg", "tiers")


def test_a_link_between_gpus_is_no_place_on_a_leaf() -> None:
    content = document("rails")
    content["fabric"]["links"]["b"][0] = 1
    rails = Page(report_page(file_of(content))).section("network").all("details")[-1]
    assert sum(int(row[3]) for row in rows_of(rails.all("table")[0])) == content["counts"]["leaf"]
