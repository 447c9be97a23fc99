"""What `designer traffic` shows, as plain data: phases, bytes, cut function by block size, heat map, pairs."""

from dataclasses import asdict, dataclass

from designer.instance.instance import DirectDemand, Instance
from designer.workload.cuts import CutFunction, Floats, Layout
from designer.workload.heatmap import PairCount, Shares, count_pairs, exchanges, heat_map, shares
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Phase, Traffic


@dataclass(frozen=True)
class PhaseRow:
    """One phase; `nic_bytes` is None for a demand that the user states without a model."""

    name: str
    job: str
    patterns: tuple[str, ...]
    groups: tuple[str, ...]
    across: str
    nic_bytes: float | None
    domain_bytes: float
    floor: float


@dataclass(frozen=True)
class TrafficReport:
    """The traffic of an instance. Cuts are in line rates of one endpoint, one value a block size.

    `block_of` says what the blocks are made of; `cuts` has the worst step of each phase without its floor, `total_cut`
    what all phases need with their floors. `pairs` takes each `any` as a ring, `pairs_any` as all pairs of its groups.
    """

    name: str
    gpus: int
    hb_domain: int
    rails: int
    phases: tuple[PhaseRow, ...]
    shares: Shares
    block_of: str
    block_sizes: tuple[int, ...]
    cuts: tuple[tuple[str, tuple[float, ...]], ...]
    total_cut: tuple[float, ...]
    bin_gpus: int
    heat: Floats
    pairs: PairCount
    pairs_any: PairCount

    def to_document(self) -> dict[str, object]:
        """The report as plain data."""
        inside, rail, across = self.shares.fractions()
        return {
            "name": self.name,
            "gpus": self.gpus,
            "hb_domain": self.hb_domain,
            "rails": self.rails,
            "phases": [asdict(phase) for phase in self.phases],
            "bytes": asdict(self.shares),
            "shares": {"domain": inside, "rail": rail, "across_rails": across},
            "cut_function": {
                "blocks": self.block_of,
                "block_sizes": self.block_sizes,
                "phases": [{"phase": name, "line_rates": values} for name, values in self.cuts],
                "total_line_rates": self.total_cut,
            },
            "heat_map": {"bin_gpus": self.bin_gpus, "bytes": self.heat.tolist()},
            "pairs": _pair_document(self.pairs),
            "pairs_any": _pair_document(self.pairs_any),
        }


def _pair_document(count: PairCount) -> dict[str, object]:
    return {**asdict(count), "silent_share": count.silent_share}


def traffic_report(instance: Instance) -> TrafficReport:
    """Phases, bytes, cut function, heat map and pairs of an instance."""
    traffic = derive_traffic(instance)
    items = exchanges(instance, traffic)
    width, heat = heat_map(items, traffic.gpus)
    joined = traffic.needs_joined_rails()
    layout = Layout(mixed=joined, rails=traffic.rails if joined else 1, per_rail=traffic.gpus // traffic.rails)
    sizes = block_sizes(traffic, layout)
    cuts = CutFunction(traffic, layout)
    several = len({phase.job for phase in traffic.network_phases}) > 1
    return TrafficReport(
        instance.name,
        traffic.gpus,
        traffic.hb_domain,
        traffic.rails,
        tuple(_row(instance, phase) for phase in traffic.phases),
        shares(instance, traffic),
        "n GPUs in a row" if joined else "n endpoints of a rail in a row",
        sizes,
        tuple(
            (f"{phase.job} {phase.name}" if several else phase.name, _phase_cuts(cuts, phase, sizes))
            for phase in traffic.network_phases
        ),
        tuple(cuts.leaf(size) for size in sizes),
        width,
        heat,
        count_pairs(items, traffic.gpus),
        count_pairs(items, traffic.gpus, any_pairs=True),
    )


def _row(instance: Instance, phase: Phase) -> PhaseRow:
    stated = any(isinstance(item, DirectDemand) and item.name == phase.job == phase.name for item in instance.workload)
    parts = [part for step in phase.steps for part in step.components]
    unit = "domains" if phase.across == "rail" else "GPUs"
    return PhaseRow(
        phase.name,
        phase.job,
        tuple(dict.fromkeys(part.pattern for part in parts)),
        tuple(dict.fromkeys(f"{part.size} {unit}, {part.stride} apart" for part in parts)),
        phase.across,
        None if stated else phase.nic_bytes,
        phase.domain_bytes,
        phase.floor,
    )


def _phase_cuts(cuts: CutFunction, phase: Phase, sizes: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(max((cuts.phase_leaf(phase, step, size) for step in phase.steps), default=0.0) for size in sizes)


def block_sizes(traffic: Traffic, layout: Layout) -> tuple[int, ...]:
    """Sizes worth a look: powers of two, the domain, and what a group of each phase spans."""
    length = layout.endpoints if layout.mixed else layout.per_rail
    sizes = {1 << bit for bit in range(length.bit_length())} | {length}
    if layout.mixed:
        sizes.add(traffic.hb_domain)
    for phase in traffic.network_phases:
        unit = 1
        if phase.across == "rail":
            unit = traffic.hb_domain if layout.mixed else traffic.hb_domain // traffic.rails
        for step in phase.steps:
            for part in step.components:
                sizes |= {part.size, part.stride * unit, part.stride * part.size * unit}
    return tuple(sorted(size for size in sizes if 1 <= size <= length))
