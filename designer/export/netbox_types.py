"""Types of devices for NetBox: model, manufacturer, and an interface for each port or cage.

Switches of one model share a type as long as none of their cages is split in two ways; where leaves and spines differ
in this, each tier has its own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from designer.export.netbox_cables import NetboxCabling
from designer.export.plan import ROLES, SERVER, Plan, groups
from designer.fabric.fabric import GPU, LEAF, MANAGEMENT

MODULAR = {
    ("qsfp28", 100): "100gbase-x-qsfp28",
    ("qsfp56", 200): "200gbase-x-qsfp56",
    ("qsfp112", 400): "400gbase-x-qsfp112",
    ("qsfp-dd", 100): "100gbase-x-qsfpdd",
    ("qsfp-dd", 200): "200gbase-x-qsfpdd",
    ("qsfp-dd", 400): "400gbase-x-qsfpdd",
    ("qsfp-dd", 800): "800gbase-x-qsfpdd",
    ("osfp", 400): "400gbase-x-osfp",
    ("osfp", 800): "800gbase-x-osfp",
    ("osfp-rhs", 400): "400gbase-x-osfp-rhs",
    ("osfp-224", 800): "800gbase-x-osfp",
    ("osfp-224", 1600): "1.6tbase-x-osfp1600",
    ("osfp-rhs-224", 1600): "1.6tbase-x-osfp1600-rhs",
}
INFINIBAND = {
    "qsfp28": "infiniband-edr",
    "qsfp56": "infiniband-hdr",
    "qsfp112": "infiniband-ndr",
    "osfp": "infiniband-ndr",
    "osfp-rhs": "infiniband-ndr",
    "osfp-224": "infiniband-xdr",
    "osfp-rhs-224": "infiniband-xdr",
}
OTHER = "other"
"""Choices of `InterfaceTypeChoices`, by cage and Gb/s, and by cage alone where the network is InfiniBand."""

Usage = Mapping[int, tuple[int, int]]
"""How cages are used, by number: ports of each (1 where one interface stands for it) and Gb/s of each of them."""


@dataclass(frozen=True)
class DeviceType:
    """A type of device with interfaces as (name, choice of type); `part_number` is its key in the catalog."""

    manufacturer: str
    model: str
    part_number: str
    interfaces: tuple[tuple[str, str], ...]


def device_types(plan: Plan, cabling: NetboxCabling) -> list[DeviceType]:
    """The type of each device."""
    ethernet = any("infiniband" not in plan.file.catalog.switches[key].protocols for key in plan.fabric.models)
    switches = _switch_types(plan, cabling, ethernet=ethernet)
    servers, management = _server_types(plan, ethernet=ethernet)
    stops = [gpus.stop for gpus in plan.file.cluster.kind_ranges()]
    result: list[DeviceType] = []
    for device in range(len(plan.devices.name)):
        role, node = int(plan.devices.role[device]), int(plan.devices.node[device])
        if role == SERVER:
            result.append(servers[int(np.searchsorted(stops, node, side="right"))])
        else:
            result.append(switches[device] if role >= LEAF else management)
    return result


def _choice(cage: str, gbps: int, *, ethernet: bool) -> str:
    return MODULAR.get((cage, gbps), OTHER) if ethernet else INFINIBAND.get(cage, OTHER)


def _switch_types(plan: Plan, cabling: NetboxCabling, *, ethernet: bool) -> dict[int, DeviceType]:
    usage = _usage(plan, cabling)
    by_model: dict[int, list[int]] = {}
    for device in np.flatnonzero(plan.devices.role >= LEAF).tolist():
        by_model.setdefault(int(plan.fabric.nodes.model[plan.devices.node[device]]), []).append(device)
    result: dict[int, DeviceType] = {}
    for number, devices in by_model.items():
        key = plan.fabric.models[number]
        parts = _parts(plan, devices, usage)
        for label, members, merged in parts:
            switch = plan.file.catalog.switches[key]
            interfaces: list[tuple[str, str]] = []
            for cage in range(switch.cages):
                ports, gbps = merged.get(cage, (1, switch.cage_gbps))
                choice = _choice(switch.cage, gbps, ethernet=ethernet)
                names = [plan.cage_name(cage)] if ports == 1 else plan.lane_names(cage, ports)
                interfaces += [(name, choice) for name in names]
            model = f"{switch.model} {label}" if len(parts) > 1 else switch.model
            kind = DeviceType(switch.vendor, model, key, tuple(interfaces))
            result |= dict.fromkeys(members, kind)
    return result


def _usage(plan: Plan, cabling: NetboxCabling) -> dict[int, dict[int, tuple[int, int]]]:
    """How the cages of each switch are used."""
    links = plan.fabric.links
    result: dict[int, dict[int, tuple[int, int]]] = {}
    for side, (ends, node, cage) in enumerate(((plan.a, links.a, links.a_cage), (plan.b, links.b, links.b_cage))):
        end = np.flatnonzero(plan.fabric.nodes.kind[node] >= LEAF)
        whole, split, gbps = cabling.whole[side][end], ends.split[end], links.gbps[end]
        columns = (np.where(whole, 1, split), np.where(whole, split * gbps, gbps))
        for device, number, ports, rate in groups(ends.device[end], cage[end], *columns)[0]:
            result.setdefault(device, {})[number] = (ports, rate)
    return result


def _parts(plan: Plan, devices: Sequence[int], usage: Mapping[int, Usage]) -> list[tuple[str, Sequence[int], Usage]]:
    """Devices of one model in as few groups as have no cage in two uses, as (label, devices, use of all)."""
    merged = _merged(devices, usage)
    if merged is not None:
        return [("", devices, merged)]
    result: list[tuple[str, Sequence[int], Usage]] = []
    for role in range(LEAF, len(ROLES)):
        mine = [device for device in devices if plan.devices.role[device] == role]
        merged = _merged(mine, usage)
        if mine and merged is not None:
            result.append((ROLES[role], mine, merged))
        elif mine:
            alike: dict[tuple[tuple[int, tuple[int, int]], ...], list[int]] = {}
            for device in mine:
                alike.setdefault(tuple(sorted(usage.get(device, {}).items())), []).append(device)
            result += [
                (f"{ROLES[role]} {number}", members, dict(use)) for number, (use, members) in enumerate(alike.items())
            ]
    return result


def _merged(devices: Sequence[int], usage: Mapping[int, Usage]) -> Usage | None:
    result: dict[int, tuple[int, int]] = {}
    for device in devices:
        for cage, use in usage.get(device, {}).items():
            if result.setdefault(cage, use) != use:
                return None
    return result


def _server_types(plan: Plan, *, ethernet: bool) -> tuple[list[DeviceType], DeviceType]:
    """Types of servers by kind, and that of management ports, which are cabled as the first NICs are."""
    fabric, links, kinds = plan.fabric, plan.fabric.links, plan.file.cluster.kinds()
    stops = [gpus.stop for gpus in plan.file.cluster.kind_ranges()]
    end = np.flatnonzero(fabric.nodes.kind[links.a] == GPU)
    kind = np.searchsorted(stops, links.a[end], side="right")
    types: list[DeviceType] = []
    ports = groups(kind, plan.a.port[end], links.gbps[end])[0]
    for number, servers in enumerate(kinds):
        interfaces = [
            (plan.port_names[port], _choice(servers.nic.cage, gbps, ethernet=ethernet))
            for row, port, gbps in ports
            if row == number
        ]
        interfaces.sort(key=lambda interface: _natural(interface[0]))
        model = f"{servers.gpus} x {servers.gpu.model}, NIC {servers.nic.key}"
        types.append(DeviceType(servers.gpu.vendor, model, servers.gpu.key, tuple(interfaces)))
    managed = np.flatnonzero(fabric.nodes.kind[links.a] == MANAGEMENT)
    choice = _choice(kinds[0].nic.cage, int(links.gbps[managed].max(initial=0)), ethernet=ethernet)
    names = [plan.port_names[port] for (port,) in groups(plan.a.port[managed])[0]]
    return types, DeviceType("generic", "management port", "", tuple((name, choice) for name in names))


def _natural(name: str) -> tuple[str | int, ...]:
    """Text and numbers of a name, which sort as people count."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))
