"""What a catalog file may hold: typed models of its records, from which the JSON Schema is exported.

Rates are Gb/s in one direction, powers W, lengths m, prices USD. Unknown fields are errors.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

MAX_USD = 1e9
MAX_CAGES = 4096
MAX_PORTS_PER_CAGE = 64
MAX_GBPS = 100_000
MAX_REACH_M = 1e6
MAX_POWER_W = 1e6

ComponentKey = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=64),
    Field(description="short name: lower-case letters, digits, hyphens and dots"),
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
Kind = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=64)]
SourceText = Annotated[str, StringConstraints(min_length=1, max_length=1000, strip_whitespace=True)]
Date = Annotated[str, StringConstraints(pattern=r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$")]
Usd = Annotated[float, Field(strict=True, ge=0, le=MAX_USD, allow_inf_nan=False)]
Watts = Annotated[float, Field(strict=True, ge=0, le=MAX_POWER_W, allow_inf_nan=False)]
Metres = Annotated[float, Field(strict=True, ge=0, le=MAX_REACH_M, allow_inf_nan=False)]
Gbps = Annotated[int, Field(strict=True, ge=1, le=MAX_GBPS)]
Count = Annotated[int, Field(strict=True, ge=1, le=MAX_CAGES)]
PortsPerCage = Annotated[int, Field(strict=True, ge=1, le=MAX_PORTS_PER_CAGE)]
Protocol = Literal["infiniband", "ethernet"]


class Record(BaseModel):
    """Base of all records: immutable, without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PriceRecord(Record):
    """A price in USD; without a source and its date it must say `assumed: true`."""

    usd: Usd = Field(description="price of one piece in USD")
    source: SourceText | None = Field(default=None, description="URL or publication, or why this number was assumed")
    date: Date | None = Field(default=None, description="date of the source: YYYY, YYYY-MM or YYYY-MM-DD, in quotes")
    assumed: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="true when no source published this price"
    )

    @model_validator(mode="after")
    def _has_source_or_is_assumed(self) -> Self:
        if not self.assumed and (self.source is None or self.date is None):
            raise ValueError("a source and its date, or `assumed: true`")
        return self


class ProductRecord(Record):
    """What every product has: who makes it, what it is called, and where its data come from."""

    vendor: Name = Field(description="who makes it")
    model: Name = Field(description="the maker's name of it")
    source: SourceText = Field(
        description="where ports, rates, powers and reaches were published, with what was inferred"
    )


class PoweredRecord(ProductRecord):
    """A product that draws power."""

    power_w: Watts = Field(description="typical power in W, without optics; the maximum where only that is published")
    power_assumed: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="true when no source published this power"
    )
    price: PriceRecord = Field(description="price of one piece")


class PortModeRecord(Record):
    """One way to run a cage."""

    ports_per_cage: PortsPerCage = Field(description="logical ports of one cage")
    gbps: Gbps = Field(description="rate of a logical port in Gb/s")


class SwitchRecord(PoweredRecord):
    """A switch model."""

    protocols: tuple[Protocol, ...] = Field(min_length=1, description="what it speaks: infiniband, ethernet")
    cage: Kind = Field(description="kind of its sockets, such as osfp or qsfp112")
    cages: Count = Field(description="number of sockets")
    cage_gbps: Gbps = Field(description="rate of one socket in Gb/s")
    modes: tuple[PortModeRecord, ...] = Field(min_length=1, description="ways to run a socket")
    max_ports: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=MAX_CAGES * MAX_PORTS_PER_CAGE,
        description="most logical ports the switch runs at once; default: all that its modes give",
    )


class NicModeRecord(Record):
    """One way to run a NIC."""

    ports: PortsPerCage = Field(description="network ports, which are the planes")
    gbps: Gbps = Field(description="rate of one port in Gb/s")


class NicRecord(PoweredRecord):
    """A NIC model as a server carries it."""

    protocols: tuple[Protocol, ...] = Field(min_length=1, description="what it speaks: infiniband, ethernet")
    gbps: Gbps = Field(description="rate of the NIC in Gb/s over all its ports")
    cage: Kind = Field(description="kind of its sockets")
    cages_per_nic: PortsPerCage = Field(default=1, description="sockets of one NIC")
    nics_per_cage: PortsPerCage = Field(default=1, description="NICs that share one socket")
    modes: tuple[NicModeRecord, ...] = Field(min_length=1, description="ways to run it")


class TransceiverRecord(PoweredRecord):
    """An optical module."""

    cages: tuple[Kind, ...] = Field(min_length=1, description="kinds of sockets it fits")
    lanes: PortsPerCage = Field(description="optical lanes")
    lane_gbps: Gbps = Field(description="rate of a lane in Gb/s")
    fibre: Kind = Field(description="kind of fibre and connector, as in the section fibres")
    optics: Kind = Field(description="optical family; both ends of a link have the same")
    reach_m: Metres = Field(description="longest link in m")


class FibreRecord(ProductRecord):
    """A fibre cable that carries one link."""

    fibre: Kind = Field(description="kind of fibre and connector")
    optics: tuple[Kind, ...] = Field(min_length=1, description="optical families it carries")
    lanes: PortsPerCage | None = Field(default=None, description="most lanes a link over it may have; null for any")
    reach_m: Metres = Field(description="longest cable in m")
    price: PriceRecord = Field(description="price of a cable of length 0")
    usd_per_m: Usd = Field(description="what each metre adds, in USD; as sure as the price")


class CableEndRecord(Record):
    """The head of a cable."""

    cages: tuple[Kind, ...] = Field(min_length=1, description="kinds of sockets it fits")
    ports: PortsPerCage = Field(description="links it carries")


class CableRecord(PoweredRecord):
    """A cable with its ends attached, straight or a splitter."""

    kind: Literal["dac", "acc", "aec", "aoc"] = Field(description="passive, active or retimed copper, or optical")
    port_gbps: tuple[Gbps, ...] = Field(min_length=1, description="rates a link over it can run at, in Gb/s")
    wide: CableEndRecord = Field(description="the end with more links, or either where both have as many")
    narrow: CableEndRecord = Field(description="the other end, or each of the other ends of a splitter")
    reach_m: Metres = Field(description="longest cable in m")


class GpuRecord(ProductRecord):
    """A GPU in its server."""

    gpus_per_server: Count = Field(description="GPUs of one server or tray")
    hb_domain: Count = Field(description="GPUs joined by the scale-up network")
    scale_up_gbps: float = Field(
        strict=True,
        gt=0,
        le=MAX_GBPS * 10,
        allow_inf_nan=False,
        description="scale-up rate of one GPU in Gb/s, one direction",
    )
    bf16_tflops: float = Field(
        strict=True, gt=0, le=1e6, allow_inf_nan=False, description="dense BF16 rate in 10^12 operations per second"
    )
    memory_bytes: int = Field(strict=True, ge=1, le=10**15, description="memory of one GPU in bytes")
    memory_bytes_per_s: int | None = Field(
        default=None, strict=True, ge=1, le=10**16, description="bytes that its memory reads and writes in a second"
    )
    price: PriceRecord | None = Field(default=None, description="price of one GPU, or null")
    server_units: int | None = Field(
        default=None, strict=True, ge=1, le=100, description="height of its server in rack units"
    )
    server_power_w: Watts | None = Field(default=None, description="largest power of its server in W")


class CatalogFile(Record):
    """A catalog file: components by key; in an overlay, null removes the component of a lower layer."""

    switches: dict[ComponentKey, SwitchRecord | None] = Field(
        default_factory=dict[str, SwitchRecord | None], description="switch models by key"
    )
    nics: dict[ComponentKey, NicRecord | None] = Field(
        default_factory=dict[str, NicRecord | None], description="NIC models by key"
    )
    transceivers: dict[ComponentKey, TransceiverRecord | None] = Field(
        default_factory=dict[str, TransceiverRecord | None], description="optical modules by key"
    )
    fibres: dict[ComponentKey, FibreRecord | None] = Field(
        default_factory=dict[str, FibreRecord | None], description="fibre cables by key"
    )
    cables: dict[ComponentKey, CableRecord | None] = Field(
        default_factory=dict[str, CableRecord | None], description="cables with attached ends by key"
    )
    gpus: dict[ComponentKey, GpuRecord | None] = Field(
        default_factory=dict[str, GpuRecord | None], description="GPUs in their servers by key"
    )


class CatalogDocument(CatalogFile):
    """Part of a catalog as a design file holds it."""

    names: tuple[str, ...] = Field(default=(), description="the layers that the catalog was made of")
