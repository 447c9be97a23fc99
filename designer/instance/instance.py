"""The instance as the rest of the package sees it: resolved against the catalog, every default filled in."""

from collections.abc import Mapping
from dataclasses import dataclass

from designer.catalog.components import Catalog, Gpu, Nic
from designer.instance.schema import (
    CablingSection,
    EnergySection,
    RequirementsSection,
    SearchSection,
)
from designer.workload.transformer import Transformer


@dataclass(frozen=True)
class Cluster:
    """The GPUs and how they are grouped: `gpus` in HB domains of `hb_domain`, on `rails` rails, one NIC each."""

    gpus: int
    gpu: Gpu
    nic: Nic
    hb_domain: int
    rails: int
    management_ports: int

    @property
    def gpus_per_rail(self) -> int:
        """Endpoints of one rail."""
        return self.gpus // self.rails


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
    """A network design problem, complete and consistent."""

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
