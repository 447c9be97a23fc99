"""Wiring plans and bills: lanes and cables, modules, equal files for equal designs."""

import csv
import io
import json
import sys
from collections import Counter
from dataclasses import fields, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from exported import DOCUMENTS, NAMES, design_file, file_of, plan_of, table_of, written

from designer import instance_from_document
from designer.errors import ExportError
from designer.export.bom import HEADER as BOM_HEADER
from designer.export.formats import FORMATS, export_design
from designer.export.plan import make_plan
from designer.export.wiring import HEADER
from designer.fabric.fabric import Links

WIRING_HEADER = (
    "cable_id,a_rack,a_u,a_device,a_port,a_transceiver,z_rack,z_u,z_device,z_port,z_transceiver,medium,length_m,"
    "speed_gbps,plane,rail,label,part_number"
)


def test_the_header_is_the_one_that_other_lists_convert_from() -> None:
    assert ",".join(HEADER) == WIRING_HEADER


def test_a_port_broken_out_to_four_servers_is_two_cables_with_eight_lanes_for_two_switches(tmp_path: Path) -> None:
    plan = plan_of("split")
    rows = table_of(written(plan, "wiring-csv", tmp_path))
    assert len(rows) == 8
    assert Counter(row["cable_id"] for row in rows) == {"C000001": 4, "C000002": 4}
    assert {(row["z_device"], row["z_port"]) for row in rows} == {
        (f"plane{plane}-leaf00", f"swp1s{lane}") for plane in range(2) for lane in range(4)
    }
    bill = {row["item"]: int(row["quantity"]) for row in table_of(written(plan, "bom-csv", tmp_path))}
    assert bill == {"switch": 2, "splitter": 2}


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_has_a_row_for_each_link_and_the_bill_a_piece_for_each_cable_and_module(
    name: str, tmp_path: Path
) -> None:
    """Cables and modules of the plan, counted by number and by cage, are those that are bought."""
    plan = plan_of(name)
    rows = table_of(written(plan, "wiring-csv", tmp_path))
    bill = table_of(written(plan, "bom-csv", tmp_path))
    counts = design_file(name).record.counts
    assert len(rows) == counts.links
    bought: Counter[str] = Counter()
    for line in bill:
        bought[line["item"]] += int(line["quantity"])
    cables = {row["cable_id"]: row["part_number"] for row in rows}
    assert len(cables) == counts.cables
    catalog = design_file(name).catalog
    assert Counter(cables.values()) == {
        key: bought[key] for key in bought if key in {**catalog.fibres, **catalog.cables}
    }
    ends = [(row[f"{side}_device"], row[f"{side}_port"], row[f"{side}_transceiver"]) for row in rows for side in "az"]
    cages = {(device, _cage(name, port), module) for device, port, module in ends if module}
    assert Counter(module for _, _, module in cages) == {
        key: bought[key] for key in bought if key in catalog.transceivers
    }


def _cage(design: str, port: str) -> str:
    """The cage of a port by its name: `swp3s1` sits in cage 3, two rails of a DGX share one."""
    if port.startswith("swp"):
        return port.split("s")[1]
    return f"cage{int(port[4:]) // 2}" if design == "rails" and port.startswith("rail") else port


@pytest.mark.parametrize("name", NAMES)
def test_the_bill_is_that_of_the_design_file(name: str, tmp_path: Path) -> None:
    rows = table_of(written(plan_of(name), "bom-csv", tmp_path))
    lines = [line.model_dump() for line in design_file(name).record.bill_of_materials]
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        assert list(row) == list(BOM_HEADER)
        assert (row["item"], row["used_for"], int(row["quantity"])) == (
            line["item"],
            line["used_for"],
            line["quantity"],
        )
        assert float(row["total_usd"]) == pytest.approx(line["total_usd"])
        assert row["price_assumed"] == ("yes" if line["price_assumed"] else "no")
    assert sum(float(row["total_usd"]) for row in rows) == pytest.approx(design_file(name).record.cost_usd)


def test_rows_go_leaf_by_leaf_and_port_by_port(tmp_path: Path) -> None:
    rows = table_of(written(plan_of("rails"), "wiring-csv", tmp_path))
    hosts = [row for row in rows if row["a_device"].startswith(("server", "management"))]
    assert rows[: len(hosts)] == hosts
    leaves = [key for key, _ in groupby(row["z_device"] for row in hosts)]
    assert len(leaves) == len(set(leaves)) == 16
    assert [row["z_port"] for row in hosts[:4]] == ["swp1s0", "swp1s1", "swp2s0", "swp2s1"]
    assert {row["rail"] for row in hosts if row["z_device"] == "rail5-plane0-leaf01"} == {"5", ""}
    assert hosts[0]["label"] == "server00:rail0 / rail0-plane0-leaf00:swp1s0"


def test_a_link_between_two_planes_is_of_neither(tmp_path: Path) -> None:
    rows = table_of(written(plan_of("grid"), "wiring-csv", tmp_path))
    between = [row["plane"] for row in rows if row["a_device"].startswith("plane")]
    assert between == [""] * 16
    assert {row["plane"] for row in rows if row["a_device"].startswith("server")} == {"0", "1"}


@pytest.mark.parametrize("form", ["wiring-csv", "ptm", "ns3", "ib-topo", "slurm-tree"])
def test_the_order_of_the_links_in_a_design_file_changes_nothing(form: str, tmp_path: Path) -> None:
    file = design_file("uneven-704")
    turn = np.random.default_rng(7).permutation(file.fabric.n_links)
    links = Links(**{field.name: getattr(file.fabric.links, field.name)[turn] for field in fields(Links)})
    shuffled = make_plan(replace(file, fabric=replace(file.fabric, links=links)))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = written(plan_of("uneven-704"), form, tmp_path / "a"), written(shuffled, form, tmp_path / "b")
    assert one.read_bytes() == other.read_bytes()


def test_equal_designs_give_equal_files_in_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two searches, and a second export on another day."""
    again = make_plan(file_of(instance_from_document(DOCUMENTS["joined-64"])))
    for form in FORMATS:
        folders = [tmp_path / f"{form}-{number}" for number in range(2)]
        for folder, plan in zip(folders, (plan_of("joined-64"), again), strict=True):
            folder.mkdir()
            written(plan, form, folder)
            monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        found = [{path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()} for folder in folders]
        assert found[0].keys() == found[1].keys()
        for name, path in found[0].items():
            assert path.read_bytes() == found[1][name].read_bytes(), name


def opened(path: Path) -> openpyxl.Workbook:
    return openpyxl.load_workbook(io.BytesIO(path.read_bytes()))


@pytest.mark.parametrize("form", ["wiring", "bom"])
def test_the_workbook_holds_what_the_csv_file_holds(form: str, tmp_path: Path) -> None:
    plan = plan_of("rails")
    book = opened(written(plan, f"{form}-xlsx", tmp_path))
    rows = [["" if cell is None else cell for cell in row] for row in book.worksheets[0].values]
    text = io.StringIO(written(plan, f"{form}-csv", tmp_path).read_text(), newline="")
    table = list(csv.reader(text))
    numbers = [[isinstance(cell, int | float) for cell in row] for row in rows]
    table = [
        [float(cell) if number else cell for cell, number in zip(row, marks, strict=True)]
        for row, marks in zip(table, numbers, strict=True)
    ]
    assert rows == table


def test_text_that_looks_like_a_formula_stays_text(tmp_path: Path) -> None:
    file = design_file("existing")
    owned = (replace(file.fabric.owned[0], name="=1+1"), *file.fabric.owned[1:])
    plan = make_plan(replace(file, fabric=replace(file.fabric, owned=owned)))
    sheet = opened(written(plan, "wiring-xlsx", tmp_path)).worksheets[0]
    cells = [cell for row in sheet.iter_rows() for cell in row if cell.value == "=1+1"]
    assert cells
    assert {cell.data_type for cell in cells} == {"s"}


def test_a_workbook_without_the_extra_is_refused_with_the_command_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(ExportError, match=r"pip install 'designer\[xlsx\]'"):
        written(plan_of("split"), "wiring-xlsx", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_more_links_than_a_sheet_has_rows_are_refused_before_any_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("designer.export.wiring.MAX_XLSX_ROWS", 8)
    with pytest.raises(ExportError, match="8 links; allowed: fewer than 8 rows"):
        written(plan_of("split"), "wiring-xlsx", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_does_not_exist_is_refused_with_the_names_of_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="'visio'; allowed: one of: node-link, graphml, wiring-csv"):
        export_design(design_file("split"), "visio", tmp_path / "out")
    assert export_design(design_file("split"), "ptm", tmp_path / "out") == ()


def test_a_cable_of_two_links_between_cages_is_one_cable(tmp_path: Path) -> None:
    """Uplinks of 2 m on twin-port copper: half as many cables as links."""
    document = {**DOCUMENTS["joined-64"], "cabling": {"leaf_spine_m": 1}}
    plan = make_plan(file_of(instance_from_document(json.loads(json.dumps(document)))))
    rows = table_of(written(plan, "wiring-csv", tmp_path))
    copper = [row for row in rows if row["part_number"] == "mcp4y10"]
    assert len(copper) == 64
    assert set(Counter(row["cable_id"] for row in copper).values()) == {2}
