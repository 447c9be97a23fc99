"""Looks for components that contradict themselves or that nothing else in their catalog can be used with."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from designer.catalog.components import Cable, Catalog, Fibre, Gpu, Nic, Price, Switch, Transceiver


@dataclass(frozen=True)
class Finding:
    """One thing that makes no sense: the component's key, its field, and why."""

    component: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.component}.{self.field}: {self.message}"


class _Powered(Protocol):
    """What the records of things that draw power have in common."""

    @property
    def key(self) -> str: ...
    @property
    def power_w(self) -> float: ...
    @property
    def power_assumed(self) -> bool: ...
    @property
    def price(self) -> Price: ...


def check_catalog(catalog: Catalog) -> tuple[Finding, ...]:
    """Everything in the catalog that makes no sense, in the order of its sections; empty for a sound catalog."""
    sockets = _socket_gbps(catalog)
    findings = [*_check_keys(catalog)]
    for switch in catalog.switches.values():
        findings += _check_switch(switch)
        findings += _check_socket_is_used(catalog, switch.key, switch.cage)
        findings += _check_values(switch)
    for nic in catalog.nics.values():
        findings += _check_nic(nic)
        findings += _check_socket_is_used(catalog, nic.key, nic.cage)
        findings += _check_values(nic)
    for transceiver in catalog.transceivers.values():
        findings += _check_transceiver(catalog, transceiver, sockets)
        findings += _check_values(transceiver)
    for fibre in catalog.fibres.values():
        findings += _check_fibre(catalog, fibre)
        findings += _check_price(fibre.key, fibre.price)
    for cable in catalog.cables.values():
        findings += _check_cable(cable, sockets)
        findings += _check_values(cable)
    for gpu in catalog.gpus.values():
        findings += _check_gpu(gpu)
        if gpu.price is not None:
            findings += _check_price(gpu.key, gpu.price)
    return tuple(findings)


def _socket_gbps(catalog: Catalog) -> dict[str, int]:
    """The fastest socket of each kind, in Gb/s."""
    sockets: defaultdict[str, int] = defaultdict(int)
    for switch in catalog.switches.values():
        sockets[switch.cage] = max(sockets[switch.cage], switch.cage_gbps)
    for nic in catalog.nics.values():
        sockets[nic.cage] = max(sockets[nic.cage], nic.gbps * nic.nics_per_cage // nic.cages_per_nic)
    return dict(sockets)


def _check_keys(catalog: Catalog) -> Iterator[Finding]:
    homes: dict[str, str] = {}
    for section, components in (
        ("switches", catalog.switches),
        ("nics", catalog.nics),
        ("transceivers", catalog.transceivers),
        ("fibres", catalog.fibres),
        ("cables", catalog.cables),
        ("gpus", catalog.gpus),
    ):
        for key, component in components.items():
            if component.key != key:
                yield Finding(key, "key", f"the component calls itself {component.key}")
            if key in homes:
                yield Finding(key, "key", f"both in {homes[key]} and in {section}")
            homes[key] = section


def _check_switch(switch: Switch) -> Iterator[Finding]:
    if len(set(switch.modes)) < len(switch.modes):
        yield Finding(switch.key, "modes", "a mode is listed twice")
    for mode in switch.modes:
        mode_gbps = mode.ports_per_cage * mode.gbps
        if mode_gbps > switch.cage_gbps:
            message = f"{mode.ports_per_cage} x {mode.gbps} Gb/s is more than the {switch.cage_gbps} Gb/s of a cage"
            yield Finding(switch.key, "modes", message)
    most = switch.cages * max((mode.ports_per_cage for mode in switch.modes), default=0)
    if switch.max_ports > most:
        yield Finding(switch.key, "max_ports", f"{switch.max_ports} ports, but its modes give at most {most}")
    if switch.max_ports < switch.cages:
        yield Finding(switch.key, "max_ports", f"{switch.max_ports} ports are fewer than its {switch.cages} cages")


def _check_nic(nic: Nic) -> Iterator[Finding]:
    if nic.cages_per_nic > 1 and nic.nics_per_cage > 1:
        yield Finding(nic.key, "nics_per_cage", "a NIC with several cages cannot share each with other NICs")
    if len(set(nic.modes)) < len(nic.modes):
        yield Finding(nic.key, "modes", "a mode is listed twice")
    for mode in nic.modes:
        if mode.ports * mode.gbps != nic.gbps:
            yield Finding(nic.key, "modes", f"{mode.ports} x {mode.gbps} Gb/s is not the NIC's {nic.gbps} Gb/s")
        if mode.ports * nic.nics_per_cage % nic.cages_per_nic:
            message = f"{mode.ports} ports do not spread evenly over {nic.cages_per_nic} cages"
            yield Finding(nic.key, "cages_per_nic", message)


def _check_socket_is_used(catalog: Catalog, key: str, cage: str) -> Iterator[Finding]:
    by_module = any(cage in module.cages for module in catalog.transceivers.values())
    by_cable = any(cage in (*cable.wide.cages, *cable.narrow.cages) for cable in catalog.cables.values())
    if not (by_module or by_cable):
        yield Finding(key, "cage", f"no transceiver and no cable fits a {cage} cage")


def _check_transceiver(catalog: Catalog, module: Transceiver, sockets: dict[str, int]) -> Iterator[Finding]:
    yield from _check_fit(module.key, "cages", module.cages, module.gbps, sockets)
    if module.reach_m == 0:
        yield Finding(module.key, "reach_m", "reaches nowhere")
    fibres = catalog.fibres.values()
    if not any(fibre.fibre == module.fibre and module.optics in fibre.optics for fibre in fibres):
        yield Finding(module.key, "fibre", f"no fibre cable is {module.fibre} and carries {module.optics}")


def _check_fibre(catalog: Catalog, fibre: Fibre) -> Iterator[Finding]:
    if fibre.reach_m == 0:
        yield Finding(fibre.key, "reach_m", "reaches nowhere")
    for optics in fibre.optics:
        modules = catalog.transceivers.values()
        if not any(module.fibre == fibre.fibre and module.optics == optics for module in modules):
            yield Finding(fibre.key, "optics", f"no transceiver sends {optics} over {fibre.fibre}")


def _check_cable(cable: Cable, sockets: dict[str, int]) -> Iterator[Finding]:
    if cable.wide.ports < cable.narrow.ports:
        yield Finding(cable.key, "wide", "the narrow end carries more links than the wide one")
    elif cable.wide.ports % cable.narrow.ports:
        message = f"{cable.wide.ports} links do not split into ends of {cable.narrow.ports}"
        yield Finding(cable.key, "narrow", message)
    if cable.reach_m == 0:
        yield Finding(cable.key, "reach_m", "reaches nowhere")
    fastest = max(cable.port_gbps, default=0)
    for name, end in (("wide", cable.wide), ("narrow", cable.narrow)):
        yield from _check_fit(cable.key, name, end.cages, end.ports * fastest, sockets)


def _check_fit(key: str, field: str, cages: Sequence[str], gbps: int, sockets: dict[str, int]) -> Iterator[Finding]:
    fitting = [sockets[cage] for cage in cages if cage in sockets]
    if not fitting:
        yield Finding(key, field, f"fits no cage of any switch or NIC ({', '.join(cages)})")
    elif gbps > max(fitting):
        yield Finding(key, field, f"carries {gbps} Gb/s, but the fastest cage it fits has {max(fitting)} Gb/s")


def _check_gpu(gpu: Gpu) -> Iterator[Finding]:
    if gpu.hb_domain % gpu.gpus_per_server:
        message = f"{gpu.hb_domain} GPUs are no whole number of servers of {gpu.gpus_per_server}"
        yield Finding(gpu.key, "hb_domain", message)


def _check_values(component: _Powered) -> Iterator[Finding]:
    yield from _check_price(component.key, component.price)
    if component.power_w == 0 and not component.power_assumed:
        yield Finding(component.key, "power_w", "zero, and not marked as assumed")


def _check_price(key: str, price: Price) -> Iterator[Finding]:
    if price.cents == 0 and not price.assumed:
        yield Finding(key, "price", "zero, and not marked as assumed")
    if not price.assumed and not (price.source and price.date):
        yield Finding(key, "price", "neither a source with its date nor marked as assumed")
