"""A folder for NetBox 4.6: device types as YAML, and CSV files to import after them.

Import in this order: manufacturers.csv, device-roles.csv, sites.csv, device-types/*.yaml, devices.csv, cables.csv. A
port is an interface of its own where it has a cable of its own; a splitter is one cable with the profile of a breakout,
from the interface of the whole cage to the ports at its other ends. Cells with several values, as for those ends,
separate them by commas. Columns and choices: `dcim/forms/bulk_import.py` and `dcim/choices.py` of NetBox.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from designer.export.cabling import Medium, cable_id
from designer.export.netbox_cables import NetboxCabling, netbox_cabling
from designer.export.netbox_types import DeviceType, device_types
from designer.export.plan import ROLES, Plan
from designer.export.table import Cell, write_csv
from designer.files import make_folder, text_written_atomically

CABLES = (
    "side_a_site",
    "side_a_device",
    "side_a_power_panel",
    "side_a_type",
    "side_a_name",
    "side_b_site",
    "side_b_device",
    "side_b_power_panel",
    "side_b_type",
    "side_b_name",
    "type",
    "status",
    "profile",
    "tenant",
    "bundle",
    "label",
    "color",
    "length",
    "length_unit",
    "description",
    "owner",
    "comments",
    "tags",
)
DEVICES = ("role", "manufacturer", "device_type", "status", "name", "site")
ROLE_COLORS = ("2196f3", "9e9e9e", "4caf50", "ff9800", "f44336")
CABLE_KINDS = {"dac": "dac-passive", "acc": "dac-active", "aec": "dac-active", "aoc": "aoc"}
FIBRES = {"smf": "smf-os2", "mmf": "mmf-om4"}
INTERFACE = "dcim.interface"
MAX_SITE, MAX_DEVICE = 100, 64
"""Characters of the names of a site and of a device in NetBox."""


def write_netbox(plan: Plan, path: Path) -> tuple[str, ...]:
    """Writes the folder; files in it that have other names stay.

    Raises:
        ExportError: names that NetBox does not take.
        OutputError: it cannot be written.
    """
    cabling = netbox_cabling(plan)
    types = device_types(plan, cabling)
    _check(plan)
    site, folder = _site(plan), path / "device-types"
    make_folder(path)
    make_folder(folder)
    for kind in dict.fromkeys(types):
        with text_written_atomically(folder / f"{_type_slug(kind)}.yaml") as file:
            file.writelines(_device_type(kind))
    vendors = sorted({kind.manufacturer for kind in types})
    write_csv(path / "manufacturers.csv", ("name", "slug"), ((name, slug(name)) for name in vendors))
    used: list[int] = np.unique(plan.devices.role).tolist()
    roles = [(ROLES[role], ROLES[role], ROLE_COLORS[role]) for role in used]
    write_csv(path / "device-roles.csv", ("name", "slug", "color"), roles)
    write_csv(path / "sites.csv", ("name", "slug", "status"), [(site, slug(site), "planned")])
    write_csv(path / "devices.csv", DEVICES, _devices(plan, types, site))
    write_csv(path / "cables.csv", CABLES, _cables(plan, cabling, site))
    return ("heights of devices are not known: NetBox takes each for one unit",)


def _check(plan: Plan) -> None:
    for name in plan.devices.name:
        if len(name) > MAX_DEVICE or "," in name:
            raise plan.refuse(f"the name {name!r}", f"at most {MAX_DEVICE} characters, no comma")


def _type_slug(kind: DeviceType) -> str:
    return slug(f"{kind.manufacturer} {kind.model}")


def slug(text: str) -> str:
    """The text as NetBox has it in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def _site(plan: Plan) -> str:
    shown = "".join(sign for sign in plan.file.record.name if sign.isprintable())
    return shown.strip()[:MAX_SITE] or "design"


def _device_type(kind: DeviceType) -> Iterator[str]:
    yield f"manufacturer: {_text(kind.manufacturer)}\nmodel: {_text(kind.model)}\nslug: {_type_slug(kind)}\n"
    if kind.part_number:
        yield f"part_number: {_text(kind.part_number)}\n"
    if kind.interfaces:
        yield "interfaces:\n"
    yield from (f"  - name: {_text(name)}\n    type: {choice}\n" for name, choice in kind.interfaces)


def _text(text: str) -> str:
    """A YAML string between double quotes."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _devices(plan: Plan, types: Sequence[DeviceType], site: str) -> Iterator[Sequence[Cell]]:
    for number, (name, kind) in enumerate(zip(plan.devices.name, types, strict=True)):
        yield ROLES[int(plan.devices.role[number])], kind.manufacturer, kind.model, "planned", name, site


def _cables(plan: Plan, cabling: NetboxCabling, site: str) -> Iterator[Sequence[Cell]]:
    names = plan.devices.name
    for ends in cabling.cables():
        medium = cabling.cabling.media[ends.medium]
        row: dict[str, Cell] = {
            "side_a_site": site,
            "side_a_device": ",".join(names[device] for device, _ in ends.a),
            "side_a_type": INTERFACE,
            "side_a_name": ",".join(port for _, port in ends.a),
            "side_b_site": site,
            "side_b_device": ",".join(names[device] for device, _ in ends.b),
            "side_b_type": INTERFACE,
            "side_b_name": ",".join(port for _, port in ends.b),
            "type": cable_type(medium),
            "status": "planned",
            "profile": ends.profile,
            "label": cable_id(ends.number),
            "length": f"{medium.length_m:g}" if medium.length_m > 0 else "",
            "length_unit": "m" if medium.length_m > 0 else "",
            "description": medium.part,
        }
        yield tuple(row.get(column, "") for column in CABLES)


def cable_type(medium: Medium) -> str:
    """NetBox's choice for the medium; empty where it has none."""
    if medium.cable is not None:
        return CABLE_KINDS.get(medium.kind, "")
    return FIBRES.get(medium.kind.split("-")[0], "")
