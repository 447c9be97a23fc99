"""The instance file as the user writes it: cluster, workload, requirements, search options, cabling, cost.

These models check a single file by itself; what depends on the catalog is checked in `load.py`.
"""

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

DIMENSIONS = ("tp", "cp", "ep", "dp", "pp")
DEFAULT_ORDER = "tp-cp-ep-dp-pp"
MAX_GPUS = 1 << 20

Pattern = Literal["any", "ring", "halving-doubling", "all-to-all"]
Fraction = Annotated[float, Field(gt=0, le=1)]
Degree = Annotated[int, Field(ge=1, le=MAX_GPUS)]
Key = Annotated[str, Field(min_length=1, max_length=200)]


class Section(BaseModel):
    """A mapping of the file; unknown keys and non-finite numbers are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ServersSection(Section):
    """One kind of servers of an irregular cluster."""

    count: Degree = Field(description="servers of this kind")
    gpu: Key = Field(description="catalog key of the GPU in its server")
    gpus: Degree | None = Field(None, description="GPUs of one server; default: the catalog's")
    nic: Key = Field(description="catalog key of the NIC; one NIC per GPU")


class ExistingSection(Section):
    """A switch that is there already and costs nothing."""

    name: Key = Field(description="name of the switch, as the design speaks of it")
    switch: Key = Field(description="catalog key of its model")
    free_ports: Degree = Field(
        description="ports left, counted at the speed of its fastest mode; they are those of its last cages"
    )


class ClusterSection(Section):
    """The GPUs, their servers and their NICs: `gpus`, `gpu` and `nic` where all servers are alike, else `servers`."""

    gpus: Degree | None = Field(None, description="number of GPUs; a whole number of servers and of HB domains")
    gpu: Key | None = Field(None, description="catalog key of the GPU in its server")
    nic: Key | None = Field(None, description="catalog key of the NIC; one NIC per GPU")
    hb_domain: Degree | None = Field(None, description="GPUs joined by one scale-up network; default: the catalog's")
    rails: Degree | None = Field(None, description="rails of the cluster, a divisor of hb_domain; default: hb_domain")
    servers: list[ServersSection] | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="kinds of servers in the order of their GPUs, in place of gpus, gpu, nic, hb_domain and rails; "
        "hb_domain and rails are then the greatest common divisor of the servers' sizes: a larger server counts as "
        "several domains, and its scale-up network carries nothing between them",
    )
    existing: list[ExistingSection] = Field(
        default_factory=list[ExistingSection], max_length=256, description="switches that are there already"
    )
    management_ports: int = Field(
        0, ge=0, le=4096, description="further leaf ports in each fabric, for a subnet manager or monitoring"
    )


class ParallelismSection(Section):
    """How a job is spread: tp * cp * dp * pp GPUs; ep divides dp."""

    tp: Degree = Field(1, description="tensor parallel degree")
    pp: Degree = Field(1, description="pipeline parallel degree")
    dp: Degree = Field(1, description="data parallel degree")
    cp: Degree = Field(1, description="context parallel degree")
    ep: Degree = Field(1, description="expert parallel degree, inside data parallelism")
    interleave: int = Field(1, ge=1, le=1024, description="virtual pipeline stages of a GPU")
    order: str = Field(DEFAULT_ORDER, description="rank order, the fastest dimension first")

    @field_validator("order")
    @classmethod
    def _names_every_dimension_once(cls, order: str) -> str:
        if Counter(order.split("-")) != Counter(DIMENSIONS):
            raise ValueError("tp, cp, ep, dp and pp, each once, joined by '-'")
        return order


class ModelSection(Section):
    """A transformer by its sizes, for models that no catalog knows."""

    layers: int = Field(ge=1, le=100_000)
    hidden: int = Field(ge=1, le=10_000_000)
    heads: int = Field(ge=1, le=100_000)
    seq_length: int = Field(ge=1, le=100_000_000)
    vocab: int = Field(50_304, ge=1, le=100_000_000)
    ffn_hidden: int | None = Field(None, ge=1, le=100_000_000, description="default: 4 * hidden")
    kv_heads: int | None = Field(None, ge=1, le=100_000, description="default: heads")
    head_dim: int | None = Field(None, ge=1, le=100_000, description="default: hidden / heads")
    gated_mlp: bool = False
    tied_embeddings: bool = True
    experts: int = Field(0, ge=0, le=1_000_000)
    experts_per_token: int = Field(0, ge=0, le=1_000_000)
    shared_experts: int = Field(0, ge=0, le=1_000_000)
    moe_ffn_hidden: int | None = Field(None, ge=1, le=100_000_000, description="default: ffn_hidden")
    moe_layers: int | None = Field(None, ge=0, le=100_000, description="default: every layer, when there are experts")

    @model_validator(mode="after")
    def _experts_belong_together(self) -> "ModelSection":
        if self.experts and not 1 <= self.experts_per_token <= self.experts:
            raise ValueError("experts_per_token from 1 to the number of experts")
        if not self.experts and (self.experts_per_token or self.shared_experts or self.moe_layers):
            raise ValueError("experts_per_token, shared_experts and moe_layers only together with experts")
        return self


class PlacedSection(Section):
    """Where a job runs; jobs on separate GPUs run at once, jobs that share GPUs take turns."""

    name: Key | None = Field(None, description="name of the job in tables; default: its model or demand")
    first_gpu: int = Field(0, ge=0, le=MAX_GPUS, description="index of the job's first GPU")


class JobSection(PlacedSection):
    """A training job: model, parallelization and batch."""

    model: Key | ModelSection = Field(
        description="catalog key, inline sizes, path of a Hugging Face config.json or of a file of Megatron arguments"
    )
    parallelism: ParallelismSection | None = Field(None, description="default: all 1, or what the Megatron file says")
    global_batch: int | None = Field(None, ge=1, le=10**9, description="sequences of one iteration")
    micro_batch: int | None = Field(None, ge=1, le=10**9, description="sequences of one micro-batch; default 1")
    seq_length: int | None = Field(None, ge=1, le=10**8, description="default: the model's")
    gradient_bytes: Literal[2, 4] = Field(2, description="bytes of a gradient element in the data-parallel reduction")
    sequence_parallel: bool = Field(True, description="tensor parallelism with all-gather and reduce-scatter")
    context_exchange: Literal["ring", "all-to-all"] = Field("ring", description="ring attention or Ulysses")
    gpus: Degree | None = Field(None, description="GPUs of the job, where it does not fill the cluster")
    mixes: list[list[Literal["tp", "cp", "ep", "dp", "pp"]]] = Field(
        default_factory=list[list[Literal["tp", "cp", "ep", "dp", "pp"]]],
        description="phases that run at the same time, each list one mix, named like dp+pp",
    )


class DemandSection(PlacedSection):
    """Traffic stated directly, without a model."""

    demand: Literal["any", "ring", "halving-doubling", "all-to-all", "shift"]
    group: Degree | Literal["all"] = Field("all", description="members of a group on one rail (or of the cluster)")
    by: Degree = Field(1, description="distance of a shift, in members")
    gpus: Degree | None = Field(None, description="GPUs that take part; default: all from first_gpu on")
    across: Literal["rail", "cluster"] = Field(
        "rail", description="rail: what leaves a domain stays on a rail (PXN); cluster: any NIC to any NIC"
    )


def _workload_tag(value: Any) -> str:
    if isinstance(value, DemandSection) or (isinstance(value, dict) and "demand" in value):
        return "demand"
    return "job"


WorkloadItem = Annotated[
    Annotated[JobSection, Tag("job")] | Annotated[DemandSection, Tag("demand")], Discriminator(_workload_tag)
]


class SurviveSection(Section):
    """A failure that the network must stand: after it, `throughput` of every floor is still carried."""

    failure: Literal["switch", "link", "nic"] = Field(
        description="switch: any switch; link: a link between switches; nic: a NIC or its link to the leaf"
    )
    count: int = Field(1, ge=1, le=16, description="how many fail at once")
    throughput: Fraction = Field(description="fraction of the intact floor that is left")


class RequirementsSection(Section):
    """What the network must carry."""

    throughput: dict[str, Fraction] = Field(
        default_factory=dict[str, float],
        description="floor of each phase's rate as a fraction of the NIC's line rate, for every step; default 1.0",
    )
    collectives: dict[Literal["tp", "cp", "ep", "dp"], Pattern] = Field(
        default_factory=dict[Literal["tp", "cp", "ep", "dp"], Pattern],
        description="algorithm of each phase; default any for dp, all-to-all for ep, ring for tp and cp",
    )
    max_step_overhead: float | None = Field(
        None,
        ge=0,
        le=1e6,
        description="the search chooses the floors, so that a training step takes at most this part longer than with "
        "every phase at line rate; in place of throughput",
    )
    routing: Literal["adaptive", "ecmp"] = Field("adaptive", description="best splitting, or even over equal paths")
    detour: Literal["single-relay", "spread"] = Field(
        "single-relay", description="how traffic of a lost NIC goes over the HB domain: one peer's NIC, or all peers'"
    )
    survive: list[SurviveSection] = Field(default_factory=list[SurviveSection], max_length=16)
    symmetric_uplinks: bool = Field(True, description="every leaf reaches every spine by the same number of links")


class LeafSection(Section):
    """Ports of a leaf that are fixed beforehand, as reference designs do."""

    down: int | None = Field(None, ge=1, le=4096, description="ports to endpoints")
    up: int | None = Field(None, ge=0, le=4096, description="ports to spines")


class ExistingNetworkSection(Section):
    """A network that the cluster has: it is owned, and its links can be re-plugged."""

    file: Key = Field(description="its design file; its GPUs are the first ones of the cluster")
    wiring: Key | None = Field(
        None,
        description="wiring list of what is plugged in fact, between ports of the design: the CSV of designer export, "
        "topology.dot, or the output of ibnetdiscover; default: as designed",
    )
    new_switches: bool = Field(True, description="may switches be bought beside those that are there")
    most_links_moved: int | None = Field(
        None, ge=0, le=10**8, description="most links of the new network that are not there yet; default: any number"
    )
    usd_per_link_moved: float = Field(
        0, ge=0, le=10_000, description="what plugging a link costs that is not there yet"
    )


class SearchSection(Section):
    """Which networks are looked at."""

    families: list[Literal["clos", "grid", "mesh", "tiled-planes", "mixed-clos", "link-placement"]] | None = Field(
        None,
        min_length=1,
        description="kinds of networks; default: clos, grid where NICs have two ports, tiled-planes where the "
        "step time has a budget, too, mesh up to 4,096 GPUs, and "
        "link-placement where switches are there already or the cluster has at most 128 GPUs; where servers differ "
        "mixed-clos, and link-placement up to 512 GPUs",
    )
    planes: list[Annotated[int, Field(ge=1, le=64)]] | None = Field(
        None, min_length=1, description="numbers of planes to try; default: all that the NIC offers"
    )
    max_tiers: int = Field(3, ge=1, le=3)
    switches: list[Key] | None = Field(None, min_length=1, description="catalog keys to choose from; default: all")
    protocols: list[Literal["infiniband", "ethernet"]] | None = Field(
        None, min_length=1, description="default: all that the NIC speaks"
    )
    leaf_sharing: Literal["none", "whole-rails", "any"] = Field(
        "whole-rails", description="may a leaf serve several rails: no, if it holds each of them whole, or in any mix"
    )
    leaf: LeafSection = Field(default_factory=lambda: LeafSection(down=None, up=None))
    existing: Key | ExistingNetworkSection | None = Field(
        None, description="design file of the network that is there, or a mapping that says more; default: none"
    )


class CablingSection(Section):
    """Cable lengths by class, in metres; the defaults follow ATOP (SIGCOMM 2025), section 4.1."""

    host_m: float = Field(15, gt=0, le=10_000, description="GPU to leaf")
    leaf_spine_m: float = Field(30, gt=0, le=10_000)
    spine_core_m: float = Field(50, gt=0, le=10_000)


class LayoutSection(Section):
    """Racks in rows on the floor, from which the length of every cable follows; in place of `cabling`.

    Servers fill racks from below in the order of their GPUs, racks fill rows. A cable rises from a device to the trays
    above the racks, runs along rows and across them, and comes down again. All defaults are assumptions.
    """

    switches: Literal["end-of-row", "middle-of-row", "network-row"] = Field(
        "middle-of-row",
        description="where the racks of switches stand: after the servers of every row, between its halves, or in rows "
        "of their own in the middle of the room",
    )
    servers_per_rack: int | None = Field(
        None, ge=1, le=100, description="default: as many as height and power allow, in whole HB domains where one fits"
    )
    server_units: int | None = Field(
        None, ge=1, le=100, description="height of a server in rack units; default: the catalog's, 8 where it has none"
    )
    server_power_w: float | None = Field(
        None, gt=0, le=1e6, description="largest power of a server in W; default: the catalog's, 10,200 W without one"
    )
    rack_units: int = Field(48, ge=1, le=100, description="height of a rack in rack units")
    rack_power_w: float = Field(45_000, gt=0, le=1e7, description="largest power of a rack in W")
    racks_per_row: int = Field(
        16, ge=1, le=1000, description="racks of servers in a row; racks of switches come on top"
    )
    rack_pitch_m: float = Field(0.6, gt=0, le=100, description="from one rack of a row to the next")
    row_pitch_m: float = Field(2.4, gt=0, le=1000, description="from one row to the next: depth of a rack and an aisle")
    switch_units: int = Field(2, ge=1, le=100, description="height of a switch with its cable guide in rack units")
    server_rise_m: float = Field(1.5, ge=0, le=100, description="from a server up to the tray")
    switch_rise_m: float = Field(0.5, ge=0, le=100, description="from a switch up to the tray")
    slack_m: float = Field(0.5, ge=0, le=1000, description="what every cable has beyond its way")


class EnergySection(Section):
    """What the objective tco adds to the purchase."""

    years: float = Field(4, gt=0, le=50)
    usd_per_kwh: float = Field(0.10, ge=0, le=100)
    pue: float = Field(1.3, ge=1, le=10, description="facility power over equipment power")


class TrainingSection(Section):
    """What the objective cost_of_training counts beside the network."""

    gpu_usd: float | None = Field(
        None, ge=0, le=1e7, description="price of one GPU in its server over its years; default: the catalog's"
    )


class InstanceFile(Section):
    """A network design problem."""

    schema_version: Literal[1] = 1
    name: Key
    cluster: ClusterSection
    workload: list[WorkloadItem] = Field(min_length=1, max_length=1000)
    requirements: RequirementsSection = Field(default_factory=lambda: RequirementsSection.model_validate({}))
    search: SearchSection = Field(default_factory=lambda: SearchSection.model_validate({}))
    cabling: CablingSection = Field(default_factory=lambda: CablingSection.model_validate({}))
    layout: LayoutSection | None = Field(None, description="default: none, lengths are those of `cabling`")
    energy: EnergySection = Field(default_factory=lambda: EnergySection.model_validate({}))
    catalog: Key | list[Key] = Field("builtin", description="builtin, paper-2023, a file, or a list that overlays")
    training: TrainingSection = Field(default_factory=lambda: TrainingSection(gpu_usd=None))
    objective: Literal["capex", "tco", "cost_of_training"] = Field(
        "capex", description="purchase, purchase and energy, or purchase and the GPUs' time lost to the network"
    )
