"""A design as tables and words: what to buy, what it costs, how far from optimal, its shape, phases and templates."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from designer.certify.certificate import Certificate
from designer.cli.certificate_report import failures_table, phases_table
from designer.cli.console import printable, table
from designer.cli.kinds_report import has_tiers, kinds_table, tier_words
from designer.comparison import ComparisonRow
from designer.costing.bill import Bill
from designer.costing.training import TrainingCost
from designer.fabric.fabric import LEAF, Fabric
from designer.fabric.shape import ClosShape
from designer.formulation.step_budget import StepBudget
from designer.layout.words import floor_words
from designer.report.words import (
    MEETS,
    anew_words,
    any_shape_words,
    availability_words,
    beside_words,
    money,
    moved_words,
    percent,
    relay_words,
    status_words,
    structure_words,
)
from designer.result import Design
from designer.rewiring.rewired import Rewired
from designer.workload.cuts import CutFunction
from designer.workload.traffic import Phase, Traffic

MOST_FAILURES = 8
MOST_RUNS = 6
MOST_SWITCHES = 40


def design_report(design: Design) -> Iterator[Any]:
    """The parts of the report, for `render`."""
    from rich.text import Text

    def heading(text: str) -> Text:
        return Text(f"\n{text}", style="bold")

    yield Text(printable(design.name), style="bold")
    yield facts(summary(design))
    yield heading("Network")
    if has_tiers(design):
        yield facts(tier_words(design))
        yield kinds_table(design)
    elif design.shape is None:
        yield facts(network_words(design))
        if design.counts["spine"] == 0:
            yield switch_table(design)
    else:
        yield facts(shape_words(design, design.shape))
    yield heading("What to buy")
    yield bill_table(design.bill)
    yield heading("Phases")
    if design.certificate is None:
        yield phase_table(design)
        yield Text("no certificate: the checks were not done")
    else:
        yield from certificate_parts(design, design.certificate)
    yield heading("Templates on the same catalog and demands")
    yield template_table(design)
    yield from reasons(design.comparison)


def facts(pairs: Iterator[tuple[str, str]]) -> Any:
    """Labels and texts side by side."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in pairs:
        grid.add_row(label, text)
    return grid


def summary(design: Design) -> Iterator[tuple[str, str]]:
    """Cost, how far it is proven, power, and what rests on assumptions."""
    bill = design.bill
    yield "cost", money(design.cost_cents) + (" purchase and energy" if design.objective == "tco" else "")
    if bill.energy_cents:
        energy = design.instance.energy
        yield "", f"{money(bill.capex_cents)} purchase, {money(bill.energy_cents)} energy over {energy.years:g} years"
    yield "status", status_words(design.status, design.provenance.termination, design.gap, design.bound_cents)
    yield "searched", design.searched
    for found in design.families:
        if found.family != design.family:
            words = beside_words(found.searched, found.cost_cents, found.bound_cents, found.termination)
            yield "beside it", words
    if design.any_topology_bound_cents is not None:
        yield "any shape", any_shape_words(design.cost_cents, design.any_topology_bound_cents)
    if design.rewired is not None:
        yield from existing_words(design, design.rewired)
    if design.training is not None:
        yield "training", training_words(design.training, design.instance.cluster.gpus)
    elif (words := step_words(design)) is not None:
        yield "step time", words
    yield "power", f"{design.power_w / 1000:,.1f} kW, switches and modules"
    if design.floor is not None and design.places is not None:
        lengths_m = [use.length_m for use in design.fabric.media]
        yield "floor", floor_words(design.floor, design.places, lengths_m)
    if bill.assumed_cents:
        part = percent(bill.assumed_cents / bill.capex_cents)
        yield "assumed", f"{money(bill.assumed_cents)} of the purchase ({part}) rest on assumed prices, marked *"
    yield "solved", f"in {design.provenance.wall_s:.1f} s by {design.provenance.solver}"


def existing_words(design: Design, rewired: Rewired) -> Iterator[tuple[str, str]]:
    """What stays of the network that was there, and what a new one would come to."""
    moves, switches = rewired.moves, design.counts["switches"]
    left = int((rewired.existing.fabric.nodes.kind >= LEAF).sum()) - rewired.reused_switches
    yield "links", moved_words(moves.kept, rewired.kept_at_most, moves.plugged, moves.pulled, rewired.plugged_at_least)
    words = f"{rewired.reused_switches:,} of {switches:,} switches are there already, {left:,} there are not used"
    if rewired.fresh is not None:
        words += f"; {anew_words(rewired.fresh.cost_cents, rewired.fresh.links)}"
    yield "reused", words


def network_words(design: Design) -> Iterator[tuple[str, str]]:
    """Switches and links of a network without a shape."""
    counts = design.counts
    owned = len(design.fabric.owned)
    there = f", {owned} of them there already" if owned else ""
    between = counts["links"] - counts["endpoint_links"]
    joined = f"{between:,} between them" if between else "none between them"
    tiers = ", ".join(f"{counts[tier]:,} {tier}" for tier in ("leaf", "spine", "core") if counts[tier])
    switches = f"{counts['switches']:,}" if counts["switches"] == counts["leaf"] else tiers
    yield "switches", f"{switches}{there}; {counts['endpoint_links']:,} links to hosts, {joined}"
    planes = "1 plane" if counts["planes"] == 1 else f"{counts['planes']} planes"
    yield "fabrics", f"{counts['fabrics']} separate, {planes}" if counts["fabrics"] > 1 else f"1 fabric, {planes}"


def switch_table(design: Design) -> Any:
    """Every switch, of planes that are alike those of the first: model, what it serves, and its links to others."""
    result = table("switch", "model", "hosts", "serves", "links to", right=(2,))
    fabric, nodes = design.fabric, design.fabric.nodes
    owned = {switch.node: switch for switch in fabric.owned}
    switches = np.flatnonzero(nodes.kind == LEAF).tolist()
    names = {node: owned[node].name if node in owned else f"new {place}" for place, node in enumerate(switches)}
    first = switches if design.counts["fabrics"] < design.counts["planes"] else _of_first_plane(fabric, switches)
    for node in first[:MOST_SWITCHES]:
        model = fabric.models[int(nodes.model[node])]
        if node in owned:
            model += f", {owned[node].free_ports} ports free"
        gpus = np.unique(fabric.links.a[(fabric.links.b == node) & (fabric.links.a < fabric.gpus)]).tolist()
        serves = _ranges(gpus, design) if gpus else "no hosts"
        result.add_row(printable(names[node]), printable(model), str(len(gpus)), serves, _joined(fabric, node, names))
    if len(first) > MOST_SWITCHES:
        result.add_row(f"and {len(first) - MOST_SWITCHES} more", "", "", "", "")
    return result


def _of_first_plane(fabric: Fabric, switches: list[int]) -> list[int]:
    return [node for node in switches if fabric.nodes.plane[node] == 0]


def _joined(fabric: Fabric, node: int, names: dict[int, str]) -> str:
    """The links of a switch to others in words."""
    links = fabric.links
    counted: Counter[tuple[int, int]] = Counter()
    for own, other in ((links.a, links.b), (links.b, links.a)):
        rows = np.flatnonzero((own == node) & (fabric.nodes.kind[other] >= LEAF))
        counted.update(zip(other[rows].tolist(), links.gbps[rows].tolist(), strict=True))
    words = [f"{count} x {gbps}G to {printable(names[other])}" for (other, gbps), count in sorted(counted.items())]
    return ", ".join(words) or "none"


def _ranges(gpus: list[int], design: Design) -> str:
    """GPUs by rail where whole rails, or runs of them, are on the switch; else as runs of numbers."""
    rails = design.instance.cluster.rails
    on = sorted({gpu % rails for gpu in gpus})
    if rails > 1 and len(on) < rails:
        return f"rails {_runs(on)}: GPUs of {len({gpu // rails for gpu in gpus})} domains"
    return f"GPUs {_runs(gpus)}"


def _runs(numbers: list[int]) -> str:
    starts = [number for number in numbers if number - 1 not in set(numbers)]
    ends = [number for number in numbers if number + 1 not in set(numbers)]
    words = [f"{one}" if one == other else f"{one}-{other}" for one, other in zip(starts, ends, strict=True)]
    return ", ".join(words[:MOST_RUNS]) + (", ..." if len(words) > MOST_RUNS else "")


def step_words(design: Design) -> str | None:
    """How much longer a step takes than at line rate, where the floors were chosen within a budget."""
    share = design.instance.requirements.max_step_overhead
    if share is None or design.certificate is None:
        return None
    carried = {phase.phase: max(phase.interval.lower, 1e-9) for phase in design.certificate.phases}
    longer = StepBudget(design.instance, design.traffic, share).overhead(carried)
    return (
        f"{100 * longer:.2f} % longer than with every phase at line rate, {100 * share:g} % allowed; floors are chosen"
    )


def training_words(training: TrainingCost, gpus: int) -> str:
    """Network and the GPUs' time lost to it in one sum, and how far that is proven."""
    mark = "*" if training.gpu_assumed else ""
    below = training.total_cents < training.bound_cents
    return (
        f"{money(training.total_cents)}: the network and {money(training.lost_cents)} of GPU time lost to it, "
        f"{percent(training.step_overhead, 2)} of {gpus:,} GPUs at {money(training.gpu_cents)}{mark}; no Clos network "
        f"comes to less than {money(training.bound_cents)}" + ("" if below else f": gap {percent(training.gap, 2)}")
    )


def shape_words(design: Design, shape: ClosShape) -> Iterator[tuple[str, str]]:
    """Tiers, leaves, uplinks, spines and cores in words."""
    counts = design.counts
    hosts = shape.hosts
    tiers = {1: "one tier", 2: "two tiers", 3: "three tiers"}[shape.tiers]
    switches = ", ".join(f"{counts[tier]:,} {tier}" for tier in ("leaf", "spine", "core") if counts[tier])
    yield "tiers", f"{tiers}: {switches}; {counts['switches']:,} switches, {counts['links']:,} links"
    planes = "1 plane" if hosts.planes == 1 else f"{hosts.planes} planes"
    rails = "all rails" if shape.layout.rails == hosts.rails else f"{shape.layout.rails} of {hosts.rails} rails"
    alike = "1 fabric" if shape.fabrics == 1 else f"{shape.fabrics} separate fabrics"
    yield "fabrics", f"{alike}, {rails} in each, {planes} of {hosts.gbps} Gb/s"
    leaf = f"{shape.leaf.switch.key}, {_ports(shape)}"
    if hosts.management_ports:
        leaf += f", {hosts.management_ports} management ports in each fabric among them"
    yield "leaf", leaf
    if shape.spines is None or shape.leaf.up_mode is None:
        return
    ratio = shape.down * hosts.gbps / (shape.uplinks * shape.leaf.up_mode.gbps)
    yield "oversubscription", f"{ratio:.2f}:1 at a leaf, downlink over uplink capacity"
    in_fabric = " in each fabric" if shape.fabrics > 1 else ""
    where = f" in each of {shape.pods} pods" if shape.cores else in_fabric
    yield "spine", f"{shape.spines.count} of {shape.spines.tier.switch.key}{where}; {_bundle(shape)}"
    if shape.cores is not None:
        cores = shape.cores
        uplinks = f"{cores.uplinks} uplinks of a spine, {_links(cores.bundle)} to each of {shape.cores_per_group} cores"
        yield "core", f"{shape.cores_per_fabric} of {cores.tier.switch.key}{in_fabric}; {uplinks}"
        yield "pod", f"{cores.leaves_per_pod} leaves and {shape.spines.count} spines"
    if design.worst_leaf_pair < 1:
        yield "worst leaf pair", f"two leaves share only {percent(design.worst_leaf_pair, 2)} of their uplinks"


def _links(count: int) -> str:
    return "1 link" if count == 1 else f"{count} links"


def _ports(shape: ClosShape) -> str:
    words = f"{shape.down} ports of {shape.leaf.down_mode.gbps} Gb/s to endpoints"
    if shape.spines is not None and shape.leaf.up_mode is not None:
        words += f", {shape.uplinks} of {shape.leaf.up_mode.gbps} Gb/s up"
    return words


def _bundle(shape: ClosShape) -> str:
    if shape.spines is None:
        return ""
    if shape.spines.bundle is None:
        return f"{shape.uplinks} uplinks of a leaf spread over them, bundles differ by one link"
    return f"{_links(shape.spines.bundle)} from each leaf to each spine"


def bill_table(bill: Bill) -> Any:
    """The bill of materials, a line a component and use."""
    owned = ["reused"] if any(line.reused for line in bill.lines) else []
    columns = ["component", "description", "for", "quantity", *owned, "unit price", "total"]
    result = table(*columns, right=tuple(range(3, len(columns))))
    for line in bill.lines:
        mark = "*" if line.price_assumed else ""
        result.add_row(
            printable(line.item),
            printable(line.description),
            line.used_for,
            f"{line.quantity:,}",
            *([f"{line.reused:,}"] if owned else []),
            money(line.unit_cents) + mark,
            money(line.bought * line.unit_cents) + mark,
        )
    blank = [""] * (len(columns) - 3)
    result.add_section()
    result.add_row("", "purchase", *blank, money(bill.capex_cents))
    if bill.energy_cents:
        result.add_row("", "energy", *blank, money(bill.energy_cents))
    return result


@dataclass(frozen=True)
class PhaseRate:
    """The part of line rate that a tier's uplinks give a phase while nothing else sends; None if nothing crosses."""

    leaf: float | None
    pod: float | None


def phase_rate(traffic: Traffic, shape: ClosShape, phase: Phase) -> PhaseRate:
    """What the uplinks of leaves and pods leave of the line rate of one phase, in its most demanding step."""
    if shape.spines is None or shape.leaf.up_mode is None:
        return PhaseRate(None, None)
    alone = replace(traffic, phases=(replace(phase, floor=1.0),))
    cuts = CutFunction(alone, shape.layout)

    def rate(sent: float, capacity_gbps: float) -> float | None:
        return min(1.0, capacity_gbps / (sent * shape.hosts.gbps)) if sent > 0 else None

    leaf = rate(cuts.leaf(shape.down), shape.uplinks * shape.leaf.up_mode.gbps)
    if shape.cores is None or shape.spines.tier.up_mode is None:
        return PhaseRate(leaf, None)
    sent = float(cuts.pods(shape.down, np.array([shape.cores.leaves_per_pod]))[0])
    capacity = shape.spines.count * shape.cores.uplinks * shape.spines.tier.up_mode.gbps
    return PhaseRate(leaf, rate(sent, capacity))


def phase_table(design: Design) -> Any:
    """Each phase on the network: the floor, and what the uplinks of each tier give."""
    three = design.shape is not None and design.shape.tiers == 3
    columns = ["phase", "job", "floor", "leaf uplinks give", *(["pod uplinks give"] if three else [])]
    result = table(*columns, right=(2, 3, 4) if three else (2, 3))
    for phase in design.traffic.network_phases:
        result.add_row(printable(phase.name), printable(phase.job), percent(phase.floor), *uplinks_give(design, phase))
    return result


def certificate_parts(design: Design, certificate: Certificate) -> Iterator[Any]:
    """What the design carries, intact and under failure, as proven from its fabric."""
    from rich.text import Text

    given: dict[tuple[str, str], list[str]] = {}
    if design.shape is not None:
        given = {(phase.name, phase.job): uplinks_give(design, phase) for phase in design.traffic.network_phases}
    yield phases_table(certificate, given)
    if certificate.failures:
        yield Text("\nFailures, the worst of each class", style="bold")
        yield failures_table(certificate, MOST_FAILURES)
    elif certificate.phases:
        yield Text("\nFailures: hardly two of them are alike, and none is asked to be survived: not looked at")
    yield Text("")
    for line in (
        *structure_words(certificate.structure),
        *availability_words(certificate),
        *relay_words(certificate),
    ):
        yield Text(printable(line))


def uplinks_give(design: Design, phase: Phase) -> list[str]:
    """For each tier with uplinks, the part of line rate that they leave of the phase."""
    if design.shape is None:
        return ["has none"]
    rate = phase_rate(design.traffic, design.shape, phase)
    given = [rate.leaf, rate.pod] if design.shape.tiers == 3 else [rate.leaf]
    return ["nothing goes up" if part is None else percent(part) for part in given]


def template_table(design: Design) -> Any:
    """What each template would cost, and whether it meets the requirements."""
    result = table("template", "switch", "switches", "links", "cost", "meets", "saving", right=(2, 3, 4, 6))
    for row in design.comparison:
        result.add_row(
            row.template,
            printable(row.switch),
            f"{row.counts['switches']:,}",
            f"{row.counts['links']:,}",
            money(row.cost_cents),
            MEETS[row.meets],
            percent(row.saving),
        )
    if not design.comparison:
        irregular = design.instance.cluster.irregular
        why = "none: they need servers that are all alike" if irregular else "none can be built from this catalog"
        result.add_row(why, *[""] * 6)
    return result


def reasons(rows: list[ComparisonRow]) -> Iterator[Any]:
    """Why the design is cheaper than each template, or what the template falls short of."""
    if rows:
        from rich.text import Text

        yield Text("")
        yield facts((row.template, printable(row.why)) for row in rows)
