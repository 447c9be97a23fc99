"""The design file as typed models, from which its JSON Schema is exported.

They say what every design file holds; later versions may hold more, so further fields are allowed.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Usd = Annotated[float, Field(ge=0)]
Part = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(ge=0)]


class Record(BaseModel):
    """A mapping with at least the fields of its class."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class Counts(Record):
    """Totals over all fabrics; one link per physical link at the speed it runs."""

    switches: Count
    leaf: Count
    spine: Count
    core: Count
    fabrics: Count
    planes: Count
    links: Count
    endpoint_links: Count
    leaf_leaf_links: Count
    leaf_spine_links: Count
    spine_core_links: Count
    cables: Count
    transceivers: Count


class BillLineRecord(Record):
    """One line of the bill of materials."""

    item: str = Field(description="key in the catalog")
    section: str
    description: str
    used_for: str = Field(description="tier of a switch, or class of links")
    quantity: Count
    reused: Count = Field(0, description="pieces among them that are owned already: they are not bought")
    unit_usd: Usd
    unit_energy_usd: Usd = Field(description="energy of one piece; 0 where the objective does not count it")
    unit_power_w: Annotated[float, Field(ge=0)]
    total_usd: Usd
    price_assumed: bool = Field(description="no source published the price")
    power_assumed: bool
    source: str
    date: str


class TemplateRow(Record):
    """A template beside the design."""

    template: str
    switch: str
    cost_usd: Usd
    switches: Count
    links: Count
    counts: Counts
    meets: bool | None = Field(description="null where the arithmetic of the Clos family does not apply")
    saving: float = Field(description="part of the template's cost that the design saves", le=1)
    why: str


class ComponentRecord(Record):
    """A pattern of a step."""

    pattern: str
    stride: int
    size: int
    by: int
    rate: float = Field(description="part of the line rate")


class StepRecord(Record):
    """What is sent at the same time."""

    name: str
    components: list[ComponentRecord]
    nic_bytes: float = Field(description="bytes a GPU sends in one iteration")


class PhaseRecord(Record):
    """One kind of traffic of one job."""

    name: str
    job: str
    steps: list[StepRecord]
    floor: Part
    domain_bytes: float = Field(description="bytes a GPU sends inside its HB domain in one iteration")
    across: Literal["rail", "cluster"]
    first_gpu: Count
    gpus: Count


class TrafficRecord(Record):
    """All phases of all jobs."""

    gpus: Count
    hb_domain: Count
    rails: Count
    phases: list[PhaseRecord]


class Runs(Record):
    """A column whose neighbours are often equal: [value, length] of each run."""

    runs: list[tuple[int, int]]


Column = list[int] | Runs


class NodeColumns(Record):
    """One entry a node, GPUs first; -1 is none."""

    kind: Column
    rail: Column
    plane: Column
    pod: Column
    fabric: Column
    model: Column


class LinkColumns(Record):
    """One entry a physical link: its lower end `a`, its upper end `b`, their cages and lanes."""

    a: Column
    b: Column
    a_cage: Column
    a_lane: Column
    b_cage: Column
    b_lane: Column
    gbps: Column
    medium: Column


class OwnedRecord(Record):
    """A switch that was there before."""

    node: Count
    name: str
    free_ports: Count = Field(description="ports of its native speed that it had left; those of its last cages")


class FabricRecord(Record):
    """The network link by link."""

    gpus: Count
    gpus_per_cage: Count
    models: list[str]
    media: list[dict[str, Any]]
    nodes: NodeColumns
    links: LinkColumns
    owned: list[OwnedRecord] = Field(
        default_factory=list[OwnedRecord], description="switches that were there before: no line of the bill"
    )


class MovesRecord(Record):
    """Links of one class: kept and plugged ones of this network, pulled ones of the network that was there."""

    link_class: str = Field(alias="class")
    kept: Count
    plugged: Count
    pulled: Count


class FreshRecord(Record):
    """A network bought anew for the same instance."""

    cost_usd: Usd
    links: Count = Field(description="all of them are plugged")


class ExistingRecord(Record):
    """The network that was there, and what became of it."""

    file: str = Field(description="its design file, as the instance names it")
    wiring: str | None = Field(None, description="the list that its links come from; null where they are as designed")
    digest: str = Field(description="digest of that file", pattern="^[0-9a-f]{64}$")
    new_switches: bool = Field(description="whether switches may be bought")
    most_links_moved: Count | None = Field(description="most links that may be plugged; null where any number may")
    usd_per_link_moved: Usd
    kept: Count = Field(description="links that stay as they are: ports, modules, cable and speed")
    plugged: Count = Field(description="links of this network that were not there")
    pulled: Count = Field(description="links of the old network that go")
    kept_at_most: Count = Field(description="no choice of which switch becomes which keeps more links of this network")
    plugged_at_least: Count | None = Field(
        None, description="no Clos network that costs as little plugs fewer links; null where that is not known"
    )
    classes: list[MovesRecord] = Field(description="the same by class of links")
    fresh: FreshRecord | None = Field(description="null where none was found")
    same_as: list[int] = Field(description="for each switch, in the order of its nodes, its old node; -1 is new")
    fabric: FabricRecord = Field(description="the network that was there")


class LayoutRecord(Record):
    """Where switches stand, in the order of their nodes, on the floor that the instance's layout describes."""

    switch_racks: Count = Field(description="racks set aside for switches")
    rack: list[int] = Field(description="the rack of each switch among these, from 0")
    unit: list[int] = Field(description="the lowest rack unit of each switch, from 1")


class FamilyRecord(Record):
    """What the search of one family of networks came to."""

    family: str
    searched: str
    cost_usd: Usd | None = Field(description="of its best network; null where none was found")
    lower_bound_usd: Usd | None = Field(description="null where the family has no network that meets the requirements")
    termination: str
    solver: str


class ProvenanceRecord(Record):
    """How the design came about."""

    version: str
    solver: str
    termination: str
    seed: int
    wall_s: float


class PhaseProof(Record):
    """Proven throughput of one phase, as parts of the NIC's line rate."""

    job: str
    phase: str
    lower: Rate
    upper: Rate
    exact: bool = Field(description="both bounds meet within 1e-6")
    ecmp: Rate | None = Field(description="with even splitting over shortest paths; null where it was not found")
    how: str = Field(description="the arguments of the proof")
    required: Rate
    met: bool


class FailureProof(Record):
    """What a failure leaves of the floors, in the phase that fares worst; one entry a class of cases."""

    removed: str = Field(description='like "switch:spine" or "link:leaf-spine + nic"')
    stands_for: Count = Field(description="real failures of this class")
    worst_phase: str
    lower: Rate
    upper: Rate
    ecmp: Rate | None
    gpus_cut_off: Count
    required: Rate | None = Field(description="part of every floor that must be left; null where nothing is asked")
    met: bool
    spread: Rate | None = Field(description="lower bound when NVLink peers share the traffic of a lost NIC")
    single_relay: Rate | None = Field(description="lower bound when one peer carries all of it")


class CheckRecord(Record):
    """One structural check and every exception from it, shortened."""

    name: str
    met: bool
    found: list[str]


class StructureProof(Record):
    """Structural checks that must hold, and properties that are told only."""

    met: bool
    checks: list[CheckRecord]
    reported: list[CheckRecord]


class RailOnlyProof(Record):
    """The design beside the rail-only template."""

    met: bool
    cost_usd: Usd | None
    design_cost_usd: Usd
    switches: Count | None
    links: Count | None
    words: str


class RoutingProof(Record):
    """Throughput of one step under the weights of the design's routes and under ECMP, and what nothing exceeds."""

    job: str
    phase: str
    step: str
    weighted: Rate
    ecmp: Rate | None
    upper: Rate


class CertificateRecord(Record):
    """What was proven from the fabric and its traffic alone; `met` is all of it together."""

    phases: list[PhaseProof]
    failures: list[FailureProof]
    structure: StructureProof
    rail_only: RailOnlyProof | None
    availability: dict[str, float] = Field(description="probabilities at a random moment, as bounds")
    routing: list[RoutingProof] = Field(
        default_factory=list[RoutingProof], description="what the routes of the design carry of every step"
    )
    relays: dict[str, float] | None = Field(
        description="extra time of an all-to-all from rail to rail over the HB domain, as parts of its own time"
    )
    met: bool


class TrainingRecord(Record):
    """The network's cost with the GPUs' time lost to it, for the objective cost_of_training."""

    gpu_usd: Usd = Field(description="price of one GPU")
    gpu_assumed: bool = Field(description="no source published the price")
    step_overhead: float = Field(ge=0, description="how much longer a step takes than at line rate, as a part of that")
    lost_usd: Usd = Field(description="step overhead x GPUs x price")
    total_usd: Usd = Field(description="cost_usd + lost_usd")
    lower_bound_usd: Usd = Field(description="no Clos network, whatever its floors, comes to less")
    gap: Part = Field(description="(total - lower bound) / total; 0 below the bound, with another family")


class DesignFile(Record):
    """A network design: what to buy, what it costs, how far it is from proven optimal, and the network itself."""

    schema_version: Literal[1]
    name: str
    status: Literal["optimal", "feasible", "infeasible", "no_solution"]
    objective: Literal["capex", "tco", "cost_of_training"]
    cost_usd: Usd
    lower_bound_usd: Usd = Field(description="no network of `searched` costs less")
    gap: Part = Field(description="(cost - lower bound) / cost")
    searched: str = Field(description="the set of networks that the bound speaks of")
    families: list[FamilyRecord] = Field(
        default_factory=list[FamilyRecord], description="each family that was searched, the one of the design included"
    )
    any_topology_bound_usd: Usd | None = Field(
        description="no network of the catalog's switches of any shape costs less"
    )
    capex_usd: Usd
    energy_usd: Usd
    assumed_usd: Usd = Field(description="part of the purchase that rests on assumed prices")
    power_w: Annotated[float, Field(ge=0)]
    counts: Counts
    worst_leaf_pair: Part
    bill_of_materials: list[BillLineRecord]
    comparison: list[TemplateRow]
    traffic: TrafficRecord
    requirements: dict[str, Any]
    energy: dict[str, Any]
    cluster: dict[str, Any]
    instance: dict[str, Any]
    catalog: dict[str, Any]
    provenance: ProvenanceRecord
    fabric: FabricRecord
    family: Literal["clos", "grid", "mesh", "tiled-planes", "mixed-clos", "link-placement"] = Field(
        "clos",
        description="clos: tiers, pods, rails and planes; grid: row and column switches; mesh: leaves joined each with "
        "each; mixed-clos: leaves for each kind of servers; link-placement: any links between switches",
    )
    layout: LayoutRecord | None = Field(None, description="null where the instance has no layout")
    training: TrainingRecord | None = Field(None, description="null for other objectives")
    existing: ExistingRecord | None = Field(None, description="null where the instance names no existing network")
    certificate: CertificateRecord | None = Field(description="null where the checks were not finished")
    digest: str = Field(description="SHA-256 of all other fields as JSON with sorted keys", pattern="^[0-9a-f]{64}$")
