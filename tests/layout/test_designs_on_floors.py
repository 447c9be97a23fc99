"""Designs on floors from the search to the file and back: their floor holds, and what is wrong with it is found."""

import csv
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from floors import on_floor

from designer import Instance, design, instance_from_document
from designer.certify.floor import floor_of
from designer.certify.read_design import DesignFile, design_from_document
from designer.certify.verify import verify_file
from designer.costing.pricing import MediaFinder, Pricing, with_media
from designer.digest import with_digest
from designer.errors import InfeasibleError, InputError, InstanceError, NoDesignError
from designer.export.formats import export_design
from designer.fabric.build import build_clos
from designer.fabric.fabric import LEAF, Fabric
from designer.fabric.shape import Hosts
from designer.fabric.templates import clos_templates
from designer.layout.bundles import bundles_of, one_link_a_cable
from designer.layout.fitting import lay_out
from designer.layout.power import node_power_w
from designer.layout.shortest import with_typical_lengths
from designer.report.page import report_page
from designer.search import Options, templates

Document = dict[str, Any]
ACROSS = [{"demand": "any", "across": "cluster"}]
INSTANCES: dict[str, Callable[[], Instance]] = {
    "rails": lambda: on_floor(256, {"racks_per_row": 4}),
    "spines": lambda: on_floor(
        0,
        {"switches": "network-row", "racks_per_row": 6, "switch_units": 6},
        cluster={"gpus": 192, "gpu": "h100-sxm", "nic": "cx7-400-dgx", "rails": 1, "management_ports": 4},
        workload=ACROSS,
    ),
    "planes": lambda: on_floor(
        0,
        cluster={"gpus": 64, "gpu": "h100-sxm", "nic": "bf3-2x200", "rails": 1},
        workload=[{"demand": "all-to-all", "across": "cluster"}],
        search={"families": ["clos", "grid", "mesh"], "switches": ["sn5600"]},
        objective="tco",
    ),
    "used": lambda: on_floor(
        0,
        {"servers_per_rack": 1},
        cluster={
            "servers": [
                {"count": 2, "gpu": "h100-sxm", "gpus": 8, "nic": "cx7-400"},
                {"count": 1, "gpu": "h100-sxm", "gpus": 4, "nic": "cx7-200"},
            ],
            "existing": [{"name": "used-a", "switch": "qm9700", "free_ports": 13}],
        },
        workload=ACROSS,
        requirements={"throughput": {"any": 0.25}},
        search={"families": ["link-placement"], "switches": ["qm9700"]},
    ),
}


@cache
def _text(name: str) -> str:
    return json.dumps(design(INSTANCES[name](), Options(time_limit_s=20)).to_document())


def _document(name: str) -> Document:
    """A fresh document of a design, columns as plain lists."""
    document: Document = json.loads(_text(name))
    fabric = Fabric.from_document(document["fabric"])
    for part in ("nodes", "links"):
        table = getattr(fabric, part)
        document["fabric"][part] = {column: getattr(table, column).tolist() for column in document["fabric"][part]}
    return document


def _file(name: str) -> DesignFile:
    return design_from_document(json.loads(_text(name)))


def _findings(document: Document) -> list[tuple[str, str]]:
    found = verify_file(design_from_document(with_digest({**document, "digest": None}))).findings
    return [(item.kind, item.message) for item in found]


@pytest.mark.parametrize("name", INSTANCES)
def test_a_design_on_a_floor_holds_by_its_file_alone(name: str) -> None:
    file = _file(name)
    assert verify_file(file).findings == ()
    assert file.record.layout is not None
    assert file.record.lower_bound_usd <= file.record.cost_usd
    assert len(file.record.layout.rack) == file.record.counts.switches


def _swapped(document: Document) -> None:
    rack = document["layout"]["rack"]
    other = next(number for number, each in enumerate(rack) if each != rack[0])
    rack[0], rack[other] = rack[other], rack[0]
    unit = document["layout"]["unit"]
    unit[0], unit[other] = unit[other], unit[0]


def _stacked(document: Document) -> None:
    document["layout"]["rack"][1] = document["layout"]["rack"][0]
    document["layout"]["unit"][1] = document["layout"]["unit"][0] - 1


def _shorter(document: Document) -> None:
    medium = max(document["fabric"]["media"], key=lambda use: use["length_m"])
    medium["length_m"] = 1.0


def _nowhere(document: Document) -> None:
    document["layout"] = None


def _uninvited(document: Document) -> None:
    document["instance"] = {name: part for name, part in document["instance"].items() if name != "layout"}


def _outside(document: Document) -> None:
    document["layout"]["rack"][0] = document["layout"]["switch_racks"]


def _above(document: Document) -> None:
    document["layout"]["unit"][0] = 48


def _one_less(document: Document) -> None:
    document["layout"]["rack"].pop()


def _weak(document: Document) -> None:
    document["instance"]["layout"] |= {"server_power_w": 900.0, "rack_power_w": 4_000.0}


def _low(document: Document) -> None:
    document["instance"]["layout"]["rack_units"] = 7


def _moved(document: Document) -> None:
    document["instance"]["layout"]["row_pitch_m"] = 9.0


@pytest.mark.parametrize(
    ("damage", "kind", "words"),
    [
        (_swapped, "cabling", "the way between its racks asks for"),
        (_stacked, "layout", "overlap in row"),
        (_shorter, "cabling", "is 1 m long"),
        (_nowhere, "layout", "found nothing"),
        (_uninvited, "layout", "the instance has no layout"),
        (_outside, "layout", "layout.rack[0]"),
        (_above, "layout", "layout.unit[0]"),
        (_one_less, "layout", "units; allowed: one each for"),
        (_weak, "layout", "its switches and their modules draw"),
        (_low, "layout", "instance.layout.rack_units"),
        (_moved, "cabling", "asks for"),
    ],
)
def test_a_floor_that_does_not_fit_is_found(damage: Callable[[Document], None], kind: str, words: str) -> None:
    document = _document("spines")
    damage(document)
    found = _findings(document)
    assert [message for each, message in found if each == kind and words in message], found


def test_without_a_layout_a_design_says_nothing_of_a_floor() -> None:
    document = {name: part for name, part in on_floor(64).document.items() if name != "layout"}
    result = design(instance_from_document(document), Options(certify=False))
    assert result.places is None
    assert result.floor is None
    assert result.to_document()["layout"] is None
    assert {use.length_m for use in result.fabric.media} <= {15, 30}


def test_the_bill_is_that_of_the_floor_and_templates_are_priced_on_it_too() -> None:
    instance = INSTANCES["spines"]()
    result = design(instance, Options(certify=False))
    assert result.cost_cents == result.bill.total_cents
    for row in result.comparison:
        assert not row.meets or row.cost_cents >= result.cost_cents
    known = {item.name: item.cost_cents for item in templates(instance)}
    assert known == {row.template: row.cost_cents for row in result.comparison}


def test_lists_of_cables_say_where_both_ends_are_and_how_long_each_is(tmp_path: Path) -> None:
    file = _file("spines")
    export_design(file, "wiring-csv", tmp_path / "wiring.csv")
    with (tmp_path / "wiring.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    found = floor_of(file)
    assert found is not None
    floor, places = found
    assert len(rows) == file.fabric.n_links
    names = [floor.rack_name(rack) for rack in range(floor.racks)]
    for row in rows:
        one, other = names.index(row["a_rack"]), names.index(row["z_rack"])
        need_m = float(floor.need_m(np.array([one]), np.array([other]))[0])
        assert float(row["length_m"]) >= need_m
        assert 1 <= int(row["z_u"]) <= 48
        assert row["a_u"] or row["a_device"].startswith("management")
    slots = {(row["z_rack"], row["z_u"], row["z_device"]) for row in rows}
    assert len({slot[:2] for slot in slots}) == len({slot[2] for slot in slots}) == len(slots)
    assert len({row["z_rack"] for row in rows}) <= places.switch_racks


@pytest.mark.parametrize("name", INSTANCES)
def test_bundles_hold_every_cable_once(name: str) -> None:
    """As many as the bill has, however many lanes each has."""
    file = _file(name)
    found = floor_of(file)
    assert found is not None
    bundles = bundles_of(file.fabric, file.catalog, *found)
    assert sum(item.cables for item in bundles) == file.record.counts.cables
    assert int(one_link_a_cable(file.fabric, file.catalog).sum()) == file.record.counts.cables
    for item in bundles:
        assert item.fewest * item.bundles <= item.cables <= item.most * item.bundles


@pytest.mark.parametrize("name", INSTANCES)
def test_power_by_node_adds_up_to_the_bill(name: str) -> None:
    """What hosts have plugged in is the servers'; all else is somewhere in a switch's rack."""
    file = _file(name)
    power_w = node_power_w(file.fabric, file.catalog)
    hosts = sum(
        line.quantity * line.unit_power_w
        for line in file.record.bill_of_materials
        if line.used_for == "host" and line.section in ("transceivers", "cables")
    )
    models = [file.fabric.models[int(file.fabric.nodes.model[item.node])] for item in file.fabric.owned]
    owned = sum(file.catalog.switches[model].power_w for model in models)
    least = file.record.power_w - hosts + owned
    assert least - 1e-6 <= power_w.sum() <= file.record.power_w + owned + 1e-6
    assert (power_w[file.fabric.nodes.kind < LEAF] == 0).all()


def test_the_page_shows_rows_racks_and_bundles() -> None:
    text = report_page(_file("spines"))
    for words in ("racks of servers in", "Racks of switches", "Bundles of cables", "-rack0", "along a row"):
        assert words in text
    assert "no floor plan" not in text


def test_a_page_of_a_floor_that_cannot_be_drawn_says_why() -> None:
    document = _document("spines")
    _outside(document)
    assert "cannot be drawn" in report_page(design_from_document(document))


def test_places_that_do_not_fit_are_no_floor() -> None:
    document = _document("spines")
    _one_less(document)
    with pytest.raises(InputError, match="one each for"):
        floor_of(design_from_document(document))


def test_a_floor_too_wide_for_every_cable_has_no_design() -> None:
    with pytest.raises(InfeasibleError, match=r"layout: 1500 m from a server to the next switches"):
        design(
            on_floor(128, {"row_pitch_m": 900, "racks_per_row": 1, "switches": "network-row"}), Options(certify=False)
        )


def test_where_only_the_ends_of_the_floor_are_too_far_apart_there_is_no_design_either() -> None:
    """Servers have switches in their own row, but no cable joins rows that are five apart."""
    layout = {"row_pitch_m": 1000, "racks_per_row": 1, "switches": "end-of-row"}
    with pytest.raises(NoDesignError, match=r"no cable of the catalog joins osfp-rhs and osfp at 400 Gb/s over 2500 m"):
        design(on_floor(192, layout), Options(certify=False))


def test_rows_half_a_kilometre_apart_get_switches_each_and_long_cables_between_few_of_them() -> None:
    """The floor decides the shape: without one these GPUs need no third tier."""
    layout = {"row_pitch_m": 600, "racks_per_row": 2, "switches": "end-of-row"}
    result = design(on_floor(192, layout), Options(certify=False))
    assert max(use.length_m for use in result.fabric.media) == 1000
    assert result.counts["core"]


def test_racks_that_power_no_switch_are_refused() -> None:
    with pytest.raises(InstanceError, match="racks that power a switch"):
        design(on_floor(64, {"rack_power_w": 1000, "server_power_w": 100}), Options(certify=False))


def test_the_cost_of_training_is_not_asked_on_a_floor() -> None:
    with pytest.raises(InstanceError, match="capex or tco"):
        on_floor(64, objective="cost_of_training")


def test_131072_gpus_are_laid_out() -> None:
    """Two hundred thousand cables, each with a length of its own; lengths, places and modules hold link by link."""
    instance = with_typical_lengths(on_floor(131_072, {"racks_per_row": 256, "switches": "end-of-row"}))
    cluster, pricing = instance.cluster, Pricing("capex", instance.energy)
    hosts = Hosts(cluster.gpus, cluster.rails, cluster.nic, cluster.nic.modes[0], 0)
    bare = dict(clos_templates(hosts, 1, [instance.catalog.switches["7060xe7-128pe"]]))["rail-only"]
    shape = with_media(bare, MediaFinder(instance.catalog), instance.cabling, pricing)
    assert shape is not None
    laid = lay_out(instance, pricing, build_clos(shape))
    assert laid.fabric.n_links == 131_072 * 3 // 2
    length_m = np.array([use.length_m for use in laid.fabric.media])[laid.fabric.links.medium]
    assert 2 <= length_m.min() < length_m.max() <= 500
    assert laid.bill.pieces("fibres", "cables") <= laid.fabric.n_links
