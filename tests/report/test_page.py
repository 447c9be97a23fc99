"""The page as a whole: well-formed, complete, needing nothing but itself, and with nothing of a file as markup."""

import json
from pathlib import Path

import pytest

from designer import load_instance
from designer.report.page import report_page
from designer.report.words import money
from designer.search import Options, design
from designer.units import cents
from tests.report.reading import Document, Node, Page, document, file_of, rows_of

NAMES = ("rails", "pods", "planes", "uneven", "half", "mixed")
INSTANCES = Path(__file__).parents[2] / "instances"
HOSTILE = "<script>alert('1')</script>\"&amp;\x07\u202e%s"
SHOWN = "<script>alert('1')</script>\"&amp;\\x07\\u202e%s"


def page_of(name: str) -> Page:
    return Page(report_page(file_of(document(name))))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_needs_nothing_but_itself(name: str) -> None:
    """No scripts, no files, no network; every link leads to one place of the page."""
    text = report_page(file_of(document(name)))
    page = Page(text)
    for forbidden in ("<script", "<link", "<img", "<iframe", "url(", "@import", "javascript:", " src=", "style="):
        assert forbidden not in text
    assert "default-src 'none'" in text
    ids = [node.attributes["id"] for node in page.root.all("section")]
    assert len(ids) == len(set(ids)) == text.count(" id=")
    assert [link.attributes["href"] for link in page.root.all("a")] == [f"#{one}" for one in ids]
    assert not any(key.startswith("on") for node in _all(page) for key in node.attributes)


def _all(page: Page) -> list[Node]:
    names = ("html", "body", "nav", "a", "table", "td", "span", "details", "svg", "rect", "line", "circle", "text")
    return [node for name in names for node in page.root.all(name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_read_by_a_program_that_reads_aloud(name: str) -> None:
    """Headings in order, names for drawings, rows and columns of tables."""
    page = page_of(name)
    assert page.root.all("html")[0].attributes["lang"] == "en"
    assert len(page.root.all("h1")) == len(page.root.all("main")) == 1
    for table in page.root.all("table"):
        head, *rows = table.all("tr")
        assert all(cell.attributes["scope"] == "col" and cell.text for cell in head.children)
        for row in rows:
            assert len(row.children) == len(head.children)
            assert row.children[0].attributes["scope"] == "row"
            assert row.children[0].text
    for drawing in page.root.all("svg"):
        assert drawing.attributes.get("aria-hidden") == "true" or drawing.attributes["aria-label"]


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_on_top_and_agrees_with_the_tables(name: str) -> None:
    content = document(name)
    page = page_of(name)
    (header,) = page.root.all("header")
    cost = money(cents(content["cost_usd"]))
    assert header.all("strong")[0].text == cost
    assert f"{content['cluster']['gpus']} GPUs" in header.text
    assert "optimal: proven that no network of those searched costs less" in header.text
    assert content["searched"] in header.text
    assert "the certificate holds" in header.text
    parts, bill = page.section("cost").all("table")
    *used, total = rows_of(parts)
    assert total[:2] == ["all", cost]
    assert sum(_dollars(row[1]) for row in used) == pytest.approx(content["cost_usd"])
    *lines, purchase = rows_of(bill)
    assert purchase[-1] == money(cents(content["capex_usd"]))
    assert len(lines) == len(content["bill_of_materials"])
    assert sum(_dollars(row[-1]) for row in lines) == pytest.approx(content["cost_usd"])


def _dollars(text: str) -> float:
    return float(text.strip("$*").replace(",", ""))


def test_energy_has_its_own_part_where_the_objective_counts_it() -> None:
    content = document("rails")
    content["objective"] = "tco"
    for line in content["bill_of_materials"]:
        line["unit_energy_usd"] = 2.0
        line["total_usd"] += 2 * line["quantity"]
    content["energy_usd"] = 2.0 * sum(line["quantity"] for line in content["bill_of_materials"])
    content["cost_usd"] += content["energy_usd"]
    page = Page(report_page(file_of(content)))
    energy = money(cents(content["energy_usd"]))
    assert "purchase and energy" in page.root.all("header")[0].text
    assert energy in page.root.all("header")[0].text
    assert ["energy", energy] == [rows_of(page.section("cost").all("table")[1])[-1][place] for place in (0, -1)]
    assert f"energy {energy}" in page.section("cost").all("ul", "legend")[0].text
    assert "a kWh" in page.section("assumptions").text


def test_texts_of_a_file_are_shown_and_never_markup() -> None:
    """Names of everything hold a script, quotes, an ampersand, a bell and a mark that turns the direction."""
    content = document("mixed")
    hostile = [HOSTILE % place for place in range(12)]
    content["name"], content["searched"] = hostile[:2]
    content["provenance"] |= {"solver": hostile[2], "termination": hostile[3], "version": hostile[4]}
    line = content["bill_of_materials"][0]
    line |= {"description": hostile[5], "source": hostile[6], "used_for": hostile[7]}
    content["traffic"]["phases"][0] |= {"name": hostile[8], "job": hostile[9]}
    content["fabric"]["owned"][0]["name"] = hostile[10]
    content["certificate"]["failures"][0] |= {"removed": hostile[11], "worst_phase": hostile[8]}
    content["instance"] = {hostile[0]: hostile[1]}
    text = report_page(file_of(content))
    page = Page(text)
    assert "<script" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    for place in range(12):
        assert SHOWN % place in page.root.text


def test_a_file_that_was_edited_says_so_on_top() -> None:
    content = document("rails")
    assert "digest" not in page_of("rails").root.all("header")[0].text
    content["cost_usd"] -= 1
    top = Page(report_page(file_of(content, seal=False))).root.all("header")[0].text
    assert "the digest is not that of the content, the file was edited" in top
    del content["digest"]
    content["digest"] = "0" * 64
    assert "edited" in Page(report_page(file_of(content, seal=False))).root.all("header")[0].text


def test_a_design_short_of_optimal_tells_its_gap_and_why_the_search_ended() -> None:
    content = document("rails")
    cost = content["cost_usd"]
    content |= {"status": "feasible", "lower_bound_usd": cost * 0.75, "gap": 0.25, "any_topology_bound_usd": cost / 2}
    content["provenance"]["termination"] = "time_limit"
    page = Page(report_page(file_of(content)))
    top = page.root.all("header")[0].text
    bound = money(cents(cost * 0.75))
    assert (
        f"feasible, stopped by the time limit: gap 25.00 %, as no network of those searched costs less than {bound}"
        in top
    )
    assert "whatever its shape: gap 50.0 %" in top
    (table,) = page.section("comparison").all("table")
    lengths = {row.children[0].text: float(row.all("rect")[0].attributes["width"]) for row in table.all("tr")[1:]}
    most = max(cost, *(row["cost_usd"] for row in content["comparison"]))
    assert lengths["this design"] == pytest.approx(100 * cost / most, abs=0.01)
    assert lengths["networks searched, at least"] == pytest.approx(75 * cost / most, abs=0.01)
    assert lengths["any network of these switches, at least"] == pytest.approx(50 * cost / most, abs=0.01)


def test_templates_stand_beside_the_design_with_their_reasons() -> None:
    content = document("planes")
    comparison = Page(report_page(file_of(content))).section("comparison")
    rows = {row[0]: row for row in rows_of(comparison.all("table")[0])}
    assert content["comparison"]
    for template in content["comparison"]:
        row = rows[f"{template['template']} ({template['switch']})"]
        assert row[1] == money(cents(template["cost_usd"]))
        assert row[2] == {True: "yes", False: "no", None: "not judged"}[template["meets"]]
        for reason in template["why"].split("; "):
            assert reason.replace("\N{NO-BREAK SPACE}", " ") in [item.text for item in comparison.all("li")]


def test_assumed_prices_are_listed_with_their_reason_and_sources_with_their_date() -> None:
    content = document("rails")
    for place, line in enumerate(content["bill_of_materials"]):
        line |= {"price_assumed": place == 0, "source": f"source {place}", "date": f"2024-0{place + 1}"}
    first = content["bill_of_materials"][0]
    content["assumed_usd"] = first["quantity"] * first["unit_usd"]
    page = Page(report_page(file_of(content)))
    (table,) = page.section("assumptions").all("table")
    assert [row[0] for row in rows_of(table)] == [first["item"]]
    assert "source 0" in rows_of(table)[0][-1]
    assert "source 1" in page.section("provenance").text
    assert "2024-01" in page.section("provenance").text
    for line in content["bill_of_materials"]:
        line["price_assumed"] = False
    assert "Every price of the bill has a source." in Page(report_page(file_of(content))).section("assumptions").text


def test_what_has_to_find_a_place_is_counted() -> None:
    content = document("pods")
    switches, links = Page(report_page(file_of(content))).section("racks").all("table")
    rows = rows_of(switches)
    assert [(row[0], int(row[2])) for row in rows] == [("leaves", 8), ("spines", 8), ("cores", 4), ("all switches", 20)]
    assert [row[1] for row in rows_of(links)] == ["16", "16", "16"]


def test_131072_gpus_make_a_page_as_short_as_64_do() -> None:
    """The largest network, without a certificate: below a megabyte, nothing left out of the answer."""
    problem = load_instance(INSTANCES / "scale" / "rails-131072.yaml")
    content: Document = json.loads(json.dumps(design(problem, Options(certify=False)).to_document()))
    text = report_page(file_of(content))
    page = Page(text)
    assert len(text.encode()) < 200_000
    assert "131,072 GPUs" in page.root.all("header")[0].text
    assert "no certificate: the checks were not done" in page.root.all("header")[0].text
    assert "No certificate" in page.section("certificate").text
    assert "8 alike fabrics: 128 leaves and 64 spines each" in page.section("network").text
    rails = page.section("network").all("details")[-1].all("table")[0]
    assert [row[0] for row in rows_of(rails)] == [str(rail) for rail in range(8)]
    assert all(row[3] == "128" for row in rows_of(rails))
