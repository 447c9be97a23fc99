"""Translation between the records of catalog files and the components that the rest of the package uses."""

from dataclasses import asdict
from typing import Any

from designer.catalog.components import (
    Cable,
    CableEnd,
    Fibre,
    Gpu,
    Nic,
    NicMode,
    PortMode,
    Price,
    Switch,
    Transceiver,
)
from designer.catalog.schema import (
    CableRecord,
    FibreRecord,
    GpuRecord,
    NicRecord,
    PriceRecord,
    SwitchRecord,
    TransceiverRecord,
)
from designer.units import cents, usd

Component = Switch | Nic | Transceiver | Fibre | Cable | Gpu


def price_of(record: PriceRecord) -> Price:
    """The price of a record, rounded to whole cents."""
    return Price(cents(record.usd), record.source or "", record.date or "", record.assumed)


def switch_of(key: str, record: SwitchRecord) -> Switch:
    """The switch of a record."""
    modes = tuple(PortMode(mode.ports_per_cage, mode.gbps) for mode in record.modes)
    all_ports = record.cages * max(mode.ports_per_cage for mode in modes)
    return Switch(
        key=key,
        vendor=record.vendor,
        model=record.model,
        protocols=tuple(record.protocols),
        cage=record.cage,
        cages=record.cages,
        cage_gbps=record.cage_gbps,
        modes=modes,
        max_ports=all_ports if record.max_ports is None else record.max_ports,
        power_w=record.power_w,
        power_assumed=record.power_assumed,
        price=price_of(record.price),
        source=record.source,
    )


def nic_of(key: str, record: NicRecord) -> Nic:
    """The NIC of a record."""
    return Nic(
        key=key,
        vendor=record.vendor,
        model=record.model,
        protocols=tuple(record.protocols),
        gbps=record.gbps,
        cage=record.cage,
        cages_per_nic=record.cages_per_nic,
        nics_per_cage=record.nics_per_cage,
        modes=tuple(NicMode(mode.ports, mode.gbps) for mode in record.modes),
        power_w=record.power_w,
        power_assumed=record.power_assumed,
        price=price_of(record.price),
        source=record.source,
    )


def transceiver_of(key: str, record: TransceiverRecord) -> Transceiver:
    """The transceiver of a record."""
    return Transceiver(
        key=key,
        vendor=record.vendor,
        model=record.model,
        cages=record.cages,
        lanes=record.lanes,
        lane_gbps=record.lane_gbps,
        fibre=record.fibre,
        optics=record.optics,
        reach_m=record.reach_m,
        power_w=record.power_w,
        power_assumed=record.power_assumed,
        price=price_of(record.price),
        source=record.source,
    )


def fibre_of(key: str, record: FibreRecord) -> Fibre:
    """The fibre cable of a record."""
    return Fibre(
        key=key,
        vendor=record.vendor,
        model=record.model,
        fibre=record.fibre,
        optics=record.optics,
        reach_m=record.reach_m,
        price=price_of(record.price),
        cents_per_m=cents(record.usd_per_m),
        source=record.source,
        lanes=record.lanes,
    )


def cable_of(key: str, record: CableRecord) -> Cable:
    """The cable of a record."""
    return Cable(
        key=key,
        vendor=record.vendor,
        model=record.model,
        kind=record.kind,
        port_gbps=record.port_gbps,
        wide=CableEnd(record.wide.cages, record.wide.ports),
        narrow=CableEnd(record.narrow.cages, record.narrow.ports),
        reach_m=record.reach_m,
        power_w=record.power_w,
        power_assumed=record.power_assumed,
        price=price_of(record.price),
        source=record.source,
    )


def gpu_of(key: str, record: GpuRecord) -> Gpu:
    """The GPU of a record."""
    return Gpu(
        key=key,
        vendor=record.vendor,
        model=record.model,
        gpus_per_server=record.gpus_per_server,
        hb_domain=record.hb_domain,
        scale_up_gbps=record.scale_up_gbps,
        bf16_tflops=record.bf16_tflops,
        memory_bytes=record.memory_bytes,
        memory_bytes_per_s=record.memory_bytes_per_s,
        price=None if record.price is None else price_of(record.price),
        source=record.source,
        server_units=record.server_units,
        server_power_w=record.server_power_w,
    )


def record_document(component: Component) -> dict[str, Any]:
    """The component as the plain JSON values of its record, without the key."""
    document = {name: _plain(value) for name, value in asdict(component).items() if name != "key"}
    if component.price is not None:
        document["price"] = _price_document(component.price)
    if "cents_per_m" in document:
        document["usd_per_m"] = usd(document.pop("cents_per_m"))
    return document


def _price_document(price: Price) -> dict[str, Any]:
    document: dict[str, Any] = {"usd": usd(price.cents), "assumed": price.assumed}
    if price.source:
        document["source"] = price.source
    if price.date:
        document["date"] = price.date
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType] a tuple of any record
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
