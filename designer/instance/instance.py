"""The instance as the rest of the package sees it: resolved against the catalog, every default filled in."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

from designer.catalog.components import Catalog, Gpu, Nic, Price, Switch
from designer.instance.existing import ExistingNetwork
from designer.instance.schema import (
    CablingSection,
    EnergySection,
    LayoutSection,
    RequirementsSection,
    SearchSection,
)
from designer.workload.transformer import Transformer


@dataclass(frozen=True)
class Servers:
    """`count` equal servers of `gpus` GPUs each, one NIC per GPU."""

    count: int
    gpus: int
    gpu: Gpu
    nic: Nic


@dataclass(frozen=True)
class ExistingSwitch:
    """A switch that is there already; `free_ports` of its native mode are left for new links.

    Its last ceil(free_ports / ports per cage) cages hold them. A cage may run in any mode: a port of a mode with p
    ports to a cage takes (native ports per cage) / p of a free port, and all together at most `free_ports`.
    """

    name: str
    switch: Switch
    free_ports: int

    @property
    def free_cages(self) -> range:
        """Numbers of the cages that new links may use."""
        needed = -(-self.free_ports // self.switch.native_mode.ports_per_cage)
        return range(self.switch.cages - needed, self.switch.cages)


@dataclass(frozen=True)
class Cluster:
    """The GPUs and how they are grouped: `gpus` in HB domains of `hb_domain`, on `rails` rails, one NIC each.

    An irregular cluster has several kinds of `servers`: its GPUs are numbered kind by kind, server by server.
    `hb_domain` and `rails` are then the greatest common divisor of the servers' sizes: a larger server counts as
    several domains, and its scale-up network carries nothing between them. `gpu` and `nic` are those of the first
    kind. `existing` are switches that are there already.
    """

    gpus: int
    gpu: Gpu
    nic: Nic
    hb_domain: int
    rails: int
    management_ports: int
    servers: tuple[Servers, ...] = ()
    existing: tuple[ExistingSwitch, ...] = ()

    @property
    def gpus_per_rail(self) -> int:
        """Endpoints of one rail."""
        return self.gpus // self.rails

    @property
    def irregular(self) -> bool:
        """Whether the cluster is given by kinds of servers."""
        return bool(self.servers)

    @property
    def scale_up_gbps(self) -> float:
        """Rate of a GPU into its scale-up network, of the slowest kind, in one direction."""
        return min(kind.gpu.scale_up_gbps for kind in self.kinds())

    def kinds(self) -> tuple[Servers, ...]:
        """The kinds of servers in the order of their GPUs; a regular cluster has one."""
        if self.servers:
            return self.servers
        per_server = min(self.gpu.gpus_per_server, self.hb_domain)
        return (Servers(self.gpus // per_server, per_server, self.gpu, self.nic),)

    def slowest(self, first_gpu: int, gpus: int) -> tuple[Gpu, float]:
        """Among some GPUs the one that computes slowest, and the rate of the slowest NIC with all its ports, Gb/s.

        A job on all of them goes on at their pace.
        """
        last = first_gpu + gpus
        kinds = [
            kind
            for kind, own in zip(self.kinds(), self.kind_ranges(), strict=True)
            if own.start < last and first_gpu < own.stop
        ]
        modes = [[mode for mode in kind.nic.modes if mode.ports == 1 or not self.irregular] for kind in kinds]
        gbps = min(max(mode.ports * mode.gbps for mode in offered) for offered in modes)
        return min((kind.gpu for kind in kinds), key=lambda gpu: gpu.bf16_tflops), float(gbps)

    def kind_ranges(self) -> tuple[range, ...]:
        """The GPUs of each kind of server."""
        ends = list(accumulate((kind.count * kind.gpus for kind in self.kinds()), initial=0))
        return tuple(range(first, end) for first, end in pairwise(ends))


@dataclass(frozen=True)
class Parallelism:
    """Degrees of each kind of parallelism and the rank order, fastest dimension first; ep is a part of dp."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    interleave: int
    order: tuple[str, ...]

    @property
    def gpus(self) -> int:
        """GPUs that the job runs on."""
        return self.tp * self.pp * self.dp * self.cp


@dataclass(frozen=True)
class Job:
    """A training job on the GPUs from `first_gpu` on."""

    name: str
    model: Transformer
    parallelism: Parallelism
    global_batch: int
    micro_batch: int
    seq_length: int
    gradient_bytes: int
    sequence_parallel: bool
    context_exchange: str
    mixes: tuple[tuple[str, ...], ...]
    first_gpu: int

    @property
    def gpus(self) -> int:
        """GPUs of the job."""
        return self.parallelism.gpus

    @property
    def micro_batches(self) -> int:
        """Micro-batches that one pipeline runs in an iteration."""
        return self.global_batch // (self.parallelism.dp * self.micro_batch)


@dataclass(frozen=True)
class DirectDemand:
    """Traffic that the user states without a model; `group` and `by` count domains (rail) or GPUs (cluster)."""

    name: str
    demand: str
    group: int
    by: int
    across: str
    first_gpu: int
    gpus: int


@dataclass(frozen=True)
class Instance:
    """A network design problem, complete and consistent. With a `layout` cable lengths follow from it.

    `gpu_price` is what the objective cost_of_training takes a GPU for; None where nothing says it. `existing` is the
    network that the cluster has.
    """

    name: str
    cluster: Cluster
    workload: tuple[Job | DirectDemand, ...]
    requirements: RequirementsSection
    search: SearchSection
    cabling: CablingSection
    energy: EnergySection
    objective: str
    catalog: Catalog
    document: Mapping[str, object]
    layout: LayoutSection | None = None
    gpu_price: Price | None = None
    existing: ExistingNetwork | None = None
