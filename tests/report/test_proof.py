"""The certificate on the page: intervals as intervals, what falls short first, nothing claimed that is not there."""

import json
from typing import Any

import pytest

from designer.report.page import report_page
from designer.report.proof import certificate_of
from tests.report.reading import Document, Page, document, file_of, rows_of


def page_with(certificate: dict[str, Any] | None, name: str = "rails") -> Page:
    content = document(name)
    content["certificate"] = certificate
    return Page(report_page(file_of(content)))


def failure(removed: str, lower: float, **changes: Any) -> Document:
    plain: Document = {"stands_for": 3, "worst_phase": "any", "upper": lower, "ecmp": None, "gpus_cut_off": 0}
    plain |= {"required": None, "met": True, "spread": None, "single_relay": None}
    return plain | {"removed": removed, "lower": lower} | changes


@pytest.mark.parametrize("name", ["rails", "pods", "uneven", "mixed"])
def test_the_certificate_of_a_file_is_read_whole(name: str) -> None:
    """What is read and written again is what stands in the file."""
    content = document(name)
    certificate = certificate_of(file_of(content))
    assert certificate is not None
    assert json.loads(json.dumps(certificate.to_document())) == content["certificate"]


def test_phases_show_both_bounds_where_they_do_not_meet() -> None:
    certificate = document("rails")["certificate"]
    phase = certificate["phases"][0]
    certificate["phases"] = [
        phase | {"phase": "wide", "lower": 0.625, "upper": 0.875, "exact": False, "ecmp": 0.5, "required": 0.5},
        phase | {"phase": "tight", "lower": 0.5, "upper": 0.5, "exact": True, "ecmp": None, "required": 0.5},
    ]
    page = page_with(certificate)
    table = page.section("certificate").all("table")[0]
    tight, wide = rows_of(table)
    assert tight[0] == "tight", "the phase with the least to spare comes first"
    assert tight[2] == "50 %"
    assert tight[3].startswith("exact")
    assert wide[2] == "62.5 % to 87.5 %"
    assert wide[3].startswith("interval")
    proven, possible = table.all("tr")[2].all("rect")
    assert (proven.attributes["x"], proven.attributes["width"]) == ("0", "62.5")
    assert (possible.attributes["x"], possible.attributes["width"]) == ("62.5", "25")
    assert table.all("tr")[2].all("line")[0].attributes["x1"] == "50"
    assert "of 1 of 2 phases the throughput is known as an interval" in page.root.all("header")[0].text


def test_failures_stand_worst_first_and_those_that_are_not_survived_before_all_others() -> None:
    certificate = document("rails")["certificate"]
    certificate["failures"] = [
        failure("gpu", 1.0),
        failure("nic", 0.25),
        failure("switch:leaf", 0.5, required=0.75, met=False, upper=0.6, gpus_cut_off=4),
        failure("link:leaf-spine", 0.9, required=0.9),
    ]
    certificate["met"] = False
    page = page_with(certificate)
    section = page.section("certificate")
    rows = rows_of(section.all("table")[1])
    assert [row[0] for row in rows] == ["switch:leaf", "nic", "link:leaf-spine", "gpu"]
    assert [row[-1].replace("\N{NO-BREAK SPACE}", " ") for row in rows] == [
        "falls short",
        "not asked",
        "met",
        "not asked",
    ]
    assert "the certificate falls short in 1 point" in page.root.all("header")[0].text
    (short,) = section.all("ul", "bad")
    words = "without switch:leaf (3 cases): 50 % to 60 % of the floor of any is left, 4 GPUs cut off, required is 75 %"
    assert words in short.text


def test_a_broken_structure_is_told_on_top_and_in_its_place() -> None:
    certificate = document("rails")["certificate"]
    check = certificate["structure"]["checks"][0]
    check |= {"met": False, "found": ["port 3 twice"]}
    certificate["structure"]["met"] = certificate["met"] = False
    page = page_with(certificate)
    assert "falls short in 1 point" in page.root.all("header")[0].text
    assert f"structure, {check['name']}: port 3 twice" in page.section("certificate").all("ul", "bad")[0].text


def test_hundreds_of_classes_of_failures_stay_closed_and_are_cut_at_a_number_that_is_told() -> None:
    certificate = document("rails")["certificate"]
    certificate["failures"] = [failure(f"pair {place}", place / 300) for place in range(300)]
    section = page_with(certificate).section("certificate")
    shown, opened = section.all("table")[1:3]
    assert [row[0] for row in rows_of(shown)] == [f"pair {place}" for place in range(12)]
    assert len(rows_of(opened)) == 200
    assert "and 88 more" in section.text


def test_without_a_certificate_nothing_is_claimed() -> None:
    page = page_with(None)
    top = page.root.all("header")[0].text
    assert "no certificate: the checks were not done" in top
    assert "holds" not in top
    assert not page.section("certificate").all("table")


def test_numbers_that_are_missing_are_left_out() -> None:
    """Availability and relays of another version of the program may lack what this one shows."""
    certificate = document("rails")["certificate"]
    assert "availability" in page_with(certificate).section("certificate").text
    certificate["availability"] = {"met_lower": 0.5}
    certificate["relays"] = {"serial": 0.5}
    text = page_with(certificate).section("certificate").text
    assert "availability" not in text
    assert "relays" not in text


def test_what_the_routes_of_a_design_carry_has_a_column() -> None:
    certificate = document("rails")["certificate"]
    phase = certificate["phases"][0]
    step = {"job": phase["job"], "phase": phase["phase"], "ecmp": None, "upper": 1.0}
    certificate["routing"] = [step | {"step": "one", "weighted": 0.75}, step | {"step": "two", "weighted": 0.5}]
    tables = page_with(certificate).section("certificate").all("table")
    head = [cell.text for cell in tables[0].all("tr")[0].children]
    assert rows_of(tables[0])[0][head.index("its routes")] == "50 %"
    assert [row[3] for row in rows_of(tables[-1])] == ["75 %", "50 %"]
