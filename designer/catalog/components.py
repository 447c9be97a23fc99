"""What a network is made of: frozen records of switches, NICs, optics, cables and GPUs, as the catalog files give them.

Rates are Gb/s in one direction, powers W, lengths m, prices whole cents.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Price:
    """A price with where it comes from; `assumed` when no source published it."""

    cents: int
    source: str
    date: str
    assumed: bool


@dataclass(frozen=True)
class PortMode:
    """One way to run a cage: `ports_per_cage` logical ports of `gbps` each (a breakout where more than one)."""

    ports_per_cage: int
    gbps: int


@dataclass(frozen=True)
class Switch:
    """A switch model: `cages` sockets of kind `cage`, each run in one of `modes`, at most `max_ports` logical ports."""

    key: str
    vendor: str
    model: str
    protocols: tuple[str, ...]
    cage: str
    cages: int
    cage_gbps: int
    modes: tuple[PortMode, ...]
    max_ports: int
    power_w: float
    power_assumed: bool
    price: Price
    source: str

    def radix(self, mode: PortMode) -> int:
        """Logical ports of the switch when every cage runs in `mode`."""
        return min(self.cages * mode.ports_per_cage, self.max_ports)

    @property
    def native_mode(self) -> PortMode:
        """The mode with the fastest ports: how the ports of a switch are counted when nothing else is said."""
        return max(self.modes, key=lambda mode: (mode.gbps, mode.ports_per_cage))

    def modes_at(self, gbps: int) -> tuple[PortMode, ...]:
        """The modes whose logical ports run at `gbps`."""
        return tuple(mode for mode in self.modes if mode.gbps == gbps)


@dataclass(frozen=True)
class NicMode:
    """One way to run a NIC: `ports` network ports of `gbps` each; the ports are the planes."""

    ports: int
    gbps: int


@dataclass(frozen=True)
class Nic:
    """A NIC model: total rate, its sockets and its port modes.

    A server may lead several NICs to one socket (`nics_per_cage` > 1) or give one NIC several (`cages_per_nic` > 1);
    one of the two is 1.
    """

    key: str
    vendor: str
    model: str
    protocols: tuple[str, ...]
    gbps: int
    cage: str
    cages_per_nic: int
    nics_per_cage: int
    modes: tuple[NicMode, ...]
    power_w: float
    power_assumed: bool
    price: Price
    source: str

    def ports_per_cage(self, mode: NicMode) -> int:
        """Network ports that one socket carries in `mode`."""
        return mode.ports * self.nics_per_cage // self.cages_per_nic


@dataclass(frozen=True)
class Transceiver:
    """An optical module that fits the kinds `cages` and drives `lanes` lanes of `lane_gbps` each.

    Two modules understand each other over the same kind of `fibre`, with the same `optics` and the same `lane_gbps`.
    """

    key: str
    vendor: str
    model: str
    cages: tuple[str, ...]
    lanes: int
    lane_gbps: int
    fibre: str
    optics: str
    reach_m: float
    power_w: float
    power_assumed: bool
    price: Price
    source: str

    @property
    def gbps(self) -> int:
        """Rate of the whole module."""
        return self.lanes * self.lane_gbps


@dataclass(frozen=True)
class Fibre:
    """A fibre cable that carries one link; its price is a base and a part for each metre.

    `lanes` is the most lanes (or wavelengths) of a link over it, None for any: an MPO-12 cable has fibres for four.
    """

    key: str
    vendor: str
    model: str
    fibre: str
    optics: tuple[str, ...]
    reach_m: float
    price: Price
    cents_per_m: int
    source: str
    lanes: int | None = None

    def price_cents(self, length_m: float) -> int:
        """Price in cents of one cable of `length_m`."""
        return self.price.cents + round(self.cents_per_m * length_m)


@dataclass(frozen=True)
class CableEnd:
    """The head of a cable: the cages it fits and how many links it carries."""

    cages: tuple[str, ...]
    ports: int


@dataclass(frozen=True)
class Cable:
    """A cable with its ends attached (DAC, ACC, AEC, AOC), straight or a splitter.

    `wide` carries at least as many links as `narrow`; a splitter has several ends like `narrow`.
    """

    key: str
    vendor: str
    model: str
    kind: str
    port_gbps: tuple[int, ...]
    wide: CableEnd
    narrow: CableEnd
    reach_m: float
    power_w: float
    power_assumed: bool
    price: Price
    source: str


@dataclass(frozen=True)
class Gpu:
    """A GPU in its server: the server's size, the scale-up network, compute and memory.

    `memory_bytes_per_s` is what its memory reads and writes in a second, None where that is not known; `server_units`
    and `server_power_w` are the height of the server in rack units and its largest power, likewise.
    """

    key: str
    vendor: str
    model: str
    gpus_per_server: int
    hb_domain: int
    scale_up_gbps: float
    bf16_tflops: float
    memory_bytes: int
    memory_bytes_per_s: int | None
    price: Price | None
    source: str
    server_units: int | None = None
    server_power_w: float | None = None


@dataclass(frozen=True)
class Catalog:
    """All components by key. `names` are the layers it was made of, the last one on top."""

    names: tuple[str, ...]
    switches: Mapping[str, Switch] = field(default_factory=dict[str, Switch])
    nics: Mapping[str, Nic] = field(default_factory=dict[str, Nic])
    transceivers: Mapping[str, Transceiver] = field(default_factory=dict[str, Transceiver])
    fibres: Mapping[str, Fibre] = field(default_factory=dict[str, Fibre])
    cables: Mapping[str, Cable] = field(default_factory=dict[str, Cable])
    gpus: Mapping[str, Gpu] = field(default_factory=dict[str, Gpu])
