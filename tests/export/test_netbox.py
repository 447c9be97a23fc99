"""The NetBox folder: documented columns and choices, interfaces that exist, breakouts as one cable."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from exported import DOCUMENTS, NAMES, design_file, file_of, plan_of, table_of, written

from designer import instance_from_document
from designer.errors import ExportError
from designer.export.names import names_from_options
from designer.export.netbox import slug
from designer.export.plan import make_plan
from designer.fabric.fabric import MediumUse

CABLE_COLUMNS = (
    "side_a_site, side_a_device, side_a_power_panel, side_a_type, side_a_name, side_b_site, side_b_device, "
    "side_b_power_panel, side_b_type, side_b_name, type, status, profile, tenant, bundle, label, color, length, "
    "length_unit, description, owner, comments, tags"
)
CABLE_TYPES = {"dac-active", "dac-passive", "mmf-om4", "smf-os2", "aoc", ""}
PROFILES = {"single-1c1p", "single-1c2p", "breakout-1c2p-2c1p", "breakout-1c4p-4c1p", "trunk-2c1p", "trunk-4c1p", ""}
INTERFACE_TYPES = {
    "100gbase-x-qsfp28",
    "200gbase-x-qsfp56",
    "400gbase-x-osfp",
    "400gbase-x-qsfp112",
    "400gbase-x-qsfpdd",
    "800gbase-x-osfp",
    "infiniband-hdr",
    "infiniband-ndr",
    "infiniband-xdr",
    "other",
}


def types_of(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Interfaces with their types, by manufacturer and model."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for path in (folder / "device-types").iterdir():
        record = yaml.safe_load(path.read_text())
        assert path.stem == record["slug"]
        assert record["slug"].startswith(slug(record["manufacturer"]))
        interfaces = {item["name"]: item["type"] for item in record.get("interfaces", [])}
        assert len(interfaces) == len(record.get("interfaces", []))
        found[record["manufacturer"], record["model"]] = interfaces
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_cable_joins_interfaces_that_its_devices_have_and_no_interface_has_two(name: str, tmp_path: Path) -> None:
    folder = written(plan_of(name), "netbox", tmp_path)
    types = types_of(folder)
    devices = {row["name"]: types[row["manufacturer"], row["device_type"]] for row in table_of(folder / "devices.csv")}
    assert set(devices) == set(plan_of(name).devices.name)
    cables = table_of(folder / "cables.csv")
    assert ", ".join(cables[0]) == CABLE_COLUMNS
    used: Counter[tuple[str, str]] = Counter()
    for row in cables:
        assert row["type"] in CABLE_TYPES
        assert row["profile"] in PROFILES
        assert (row["status"], row["length_unit"]) == ("planned", "m")
        for side in "ab":
            assert row[f"side_{side}_type"] == "dcim.interface"
            names = row[f"side_{side}_name"].split(",")
            owners = row[f"side_{side}_device"].split(",")
            for device, interface in zip(owners, names, strict=True):
                assert interface in devices[device]
                used[device, interface] += 1
    assert set(used.values()) == {1}
    assert len(cables) == design_file(name).record.counts.cables
    assert {choice for interfaces in types.values() for choice in interfaces.values()} <= INTERFACE_TYPES


@pytest.mark.parametrize("name", NAMES)
def test_what_other_files_name_is_imported_before_them(name: str, tmp_path: Path) -> None:
    folder = written(plan_of(name), "netbox", tmp_path)
    devices = table_of(folder / "devices.csv")
    assert list(devices[0]) == ["role", "manufacturer", "device_type", "status", "name", "site"]
    assert {row["name"] for row in table_of(folder / "sites.csv")} == {row["site"] for row in devices}
    assert {row["name"] for row in table_of(folder / "device-roles.csv")} == {row["role"] for row in devices}
    makers = {row["name"] for row in table_of(folder / "manufacturers.csv")}
    assert makers == {maker for maker, _ in types_of(folder)} == {row["manufacturer"] for row in devices}


def test_a_port_broken_out_to_four_servers_is_one_cable_from_the_cage(tmp_path: Path) -> None:
    folder = written(plan_of("split"), "netbox", tmp_path)
    cables = table_of(folder / "cables.csv")
    assert [(row["profile"], row["side_a_device"], row["side_a_name"]) for row in cables] == [
        ("breakout-1c4p-4c1p", f"plane{plane}-leaf00", "swp1") for plane in range(2)
    ]
    assert cables[0]["side_b_device"] == "server00,server01,server02,server03"
    assert cables[1]["side_b_name"] == "rail0p1,rail0p1,rail0p1,rail0p1"


def test_ports_with_fibres_of_their_own_are_interfaces_and_unused_cages_are_whole(tmp_path: Path) -> None:
    folder = written(plan_of("joined-64"), "netbox", tmp_path)
    switch = types_of(folder)["NVIDIA", "QM9700"]
    assert [name for name in switch if name.startswith(("swp1s", "swp32"))] == [
        "swp1s0",
        "swp1s1",
        "swp32s0",
        "swp32s1",
    ]
    leaves = types_of(written(plan_of("rails"), "netbox", tmp_path))["NVIDIA", "QM9700"]
    assert "swp30" in leaves, "leaves use 26 cages, spines 17"
    assert {row["profile"] for row in table_of(folder / "cables.csv")} == {"single-1c1p"}


@pytest.mark.parametrize(("medium", "profile"), [(0, "trunk-2c1p"), (1, "single-1c2p")], ids=["hosts", "uplinks"])
def test_straight_cables_of_two_links_join_cages_or_the_ports_that_share_one(
    medium: int, profile: str, tmp_path: Path
) -> None:
    """Copper of two links takes the place of the fibres: at servers whose NICs share a socket, and between switches."""
    joined = DOCUMENTS["joined-64"]
    instance = instance_from_document({**joined, "cluster": {**joined["cluster"], "nic": "cx7-400-dgx"}})
    file = file_of(instance)
    media = list(file.fabric.media)
    media[medium] = MediumUse(None, "mcp4y10", None, 1.0)
    file = replace(file, fabric=replace(file.fabric, media=tuple(media)), catalog=instance.catalog)
    folder = written(make_plan(file), "netbox", tmp_path)
    rows = [row for row in table_of(folder / "cables.csv") if row["description"] == "mcp4y10"]
    assert len(rows) == 32
    assert {row["profile"] for row in rows} == {profile}
    sides = {tuple(row[f"side_{side}_name"].count(",") for side in "ab") for row in rows}
    assert sides == ({(0, 0)} if profile.startswith("single") else {(1, 1)})
    devices = {row["name"]: row for row in table_of(folder / "devices.csv")}
    types = types_of(folder)
    leaf = types[devices["plane0-leaf00"]["manufacturer"], devices["plane0-leaf00"]["device_type"]]
    assert ("swp9" in leaf, "swp1s0" in leaf) == ((True, True) if medium else (False, True))


def test_tiers_that_split_a_cage_in_two_ways_have_types_of_their_own(tmp_path: Path) -> None:
    document = {
        **DOCUMENTS["joined-64"],
        "requirements": {"throughput": {"any": 0.25}},
        "search": {**DOCUMENTS["joined-64"]["search"], "leaf": {"down": 16, "up": 8}},
    }
    file = file_of(instance_from_document(document))
    fabric = file.fabric
    halves = replace(fabric.links, gbps=fabric.links.gbps.copy())
    uplinks = fabric.nodes.kind[fabric.links.a] > 1
    halves.gbps[uplinks] = 200
    plan = make_plan(replace(file, fabric=replace(fabric, links=halves)))
    kinds = types_of(written(plan, "netbox", tmp_path))
    assert {model for _, model in kinds if model.startswith("QM")} == {"QM9700 leaf", "QM9700 spine"}
    assert "swp1s3" in kinds["NVIDIA", "QM9700 spine"]
    assert "swp1s3" not in kinds["NVIDIA", "QM9700 leaf"]


@pytest.mark.parametrize("option", ["server=" + "s" * 63 + "{index}"])
def test_names_that_netbox_does_not_take_are_refused(option: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="at most 64 characters"):
        written(plan_of("rails", names_from_options([option])), "netbox", tmp_path)


def test_text_of_the_catalog_and_the_design_cannot_break_the_files(tmp_path: Path) -> None:
    file = design_file("joined-64")
    switch = replace(file.catalog.switches["qm9700"], model='a: "b"\n- c\\', vendor="#x: y")
    catalog = replace(file.catalog, switches={"qm9700": switch})
    record = file.record.model_copy(update={"name": 'n,"\n' + "x" * 200})
    folder = written(make_plan(replace(file, catalog=catalog, record=record)), "netbox", tmp_path)
    assert ("#x: y", 'a: "b" - c\\') in types_of(folder)
    assert all(len(row["name"]) <= 100 for row in table_of(folder / "sites.csv"))
