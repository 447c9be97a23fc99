"""What a table says of one design: cost and proof, counts, what the certificate found, templates beside it."""

from collections.abc import Callable

import numpy as np

from designer.catalog.media import item_unit
from designer.certify.certificate import Certificate
from designer.costing.bill import LABOUR
from designer.fabric.fabric import CORE, LEAF, LINK_CLASSES, SPINE
from designer.instance.instance import Job
from designer.result import Design
from designer.study.task import Piece, Scalar
from designer.units import usd
from designer.workload.step_time import memory_per_gpu, step_time

BYTES_PER_GB = 1e9
TIERS = {"leaf": LEAF, "spine": SPINE, "core": CORE}


def row_values(design: Design) -> dict[str, Scalar]:
    """The columns of a design, units in their names; throughputs are the proven lower bounds, as parts of line rate."""
    any_cents = design.any_topology_bound_cents
    values: dict[str, Scalar] = {
        "cost_usd": usd(design.cost_cents),
        "lower_bound_usd": usd(design.bound_cents),
        "gap": design.gap,
        "any_topology_bound_usd": None if any_cents is None else usd(any_cents),
        "power_w": design.power_w,
        **design.counts,
        **_switches(design),
        **_shape(design),
        **({} if design.certificate is None else _certified(design.certificate)),
        **_steps(design),
    }
    for row in design.comparison:
        name = row.template.replace("-", "_")
        values[f"{name}_usd"] = usd(row.cost_cents)
        values[f"{name}_meets"] = row.meets
    values["termination"] = design.provenance.termination
    return values


def _switches(design: Design) -> dict[str, Scalar]:
    """Models of each tier, and their radix: ports of the speed of the links from below."""
    fabric, found = design.fabric, dict[str, Scalar]()
    kind, links = fabric.nodes.kind, fabric.links
    for tier, number in TIERS.items():
        used: list[int] = np.unique(fabric.nodes.model[kind == number]).tolist()
        models = [design.instance.catalog.switches[fabric.models[model]] for model in used]
        speeds: list[int] = np.unique(links.gbps[(kind[links.b] == number) & (kind[links.a] < number)]).tolist()
        radices = {model.radix(mode) for model in models for gbps in speeds for mode in model.modes_at(gbps)}
        found[f"{tier}_switch"] = ", ".join(model.key for model in models) or None
        found[f"{tier}_radix"] = max(radices, default=None)
    return found


def _shape(design: Design) -> dict[str, Scalar]:
    shape = design.shape
    if shape is None or shape.spines is None or shape.leaf.up_mode is None:
        return {"oversubscription": None, "worst_leaf_pair": design.worst_leaf_pair}
    ratio = shape.down * shape.hosts.gbps / (shape.uplinks * shape.leaf.up_mode.gbps)
    return {"oversubscription": ratio, "worst_leaf_pair": design.worst_leaf_pair}


def _certified(certificate: Certificate) -> dict[str, Scalar]:
    values: dict[str, Scalar] = {"met": certificate.met}
    for phase in certificate.phases:  # of several jobs the one that gets least
        name = f"throughput_{phase.phase}"
        held = values.get(name)
        least = phase.interval.lower
        values[name] = min(held, least) if isinstance(held, float) else least
    worst = min(certificate.failures, key=lambda failure: failure.lower, default=None)
    values["worst_failure"] = None if worst is None else worst.removed
    values["worst_failure_throughput"] = None if worst is None else worst.lower
    values["worst_failure_upper"] = None if worst is None else worst.upper  # between the two nothing is proven
    return values


def _steps(design: Design) -> dict[str, Scalar]:
    """Step time and memory of the job that takes most, at the certified throughputs and the stated assumptions.

    `step_overhead` is the part by which the step is longer than it would be if all of a phase got line rate.
    """
    cluster, certificate = design.instance.cluster, design.certificate
    nic_gbps = min(kind.nic.gbps for kind in cluster.kinds())
    values: dict[str, Scalar] = {}
    jobs = [item for item in design.instance.workload if isinstance(item, Job)]
    for job, gpu in [(job, kind.gpu) for job in jobs for kind in cluster.kinds()]:
        memory = memory_per_gpu(job, gpu)
        _keep(values, "memory_gb", memory.total_bytes / BYTES_PER_GB, max)
        _keep(values, "memory_fits", memory.fits, min)
        if certificate is None or gpu.memory_bytes_per_s is None:
            continue
        carried = {phase.phase: phase.interval.lower for phase in certificate.phases if phase.job == job.name}
        if not all(carried.values()):
            continue
        here = step_time(job, gpu, nic_gbps, design.traffic, carried)
        ideal = step_time(job, gpu, nic_gbps, design.traffic, dict.fromkeys(carried, 1.0))
        _keep(values, "step_time_s", here.total_s, max)
        _keep(values, "step_overhead", here.total_s / ideal.total_s - 1, max)
        _keep(values, "mfu", here.mfu, min)
    return values


def _keep(values: dict[str, Scalar], name: str, value: float, choose: Callable[..., float]) -> None:
    held = values.get(name)
    values[name] = value if not isinstance(held, int | float) else choose(held, value)


def pieces_of(design: Design) -> tuple[Piece, ...]:
    """What the design buys, with the lengths that prices depend on."""
    catalog, fabric = design.instance.catalog, design.fabric
    classes = fabric.link_class()
    lengths: dict[str, set[float]] = {}
    for medium, use in enumerate(fabric.media):
        found: list[int] = np.unique(classes[fabric.links.medium == medium]).tolist()
        for class_ in found:
            lengths.setdefault(LINK_CLASSES[class_], set()).add(use.length_m)
    pieces: list[Piece] = []
    for line in design.bill.lines:
        if line.section == LABOUR or not line.bought:
            continue
        fitting = [
            length
            for length in sorted(lengths.get(line.used_for, {0.0}))
            if item_unit(catalog, line.item, length).price_cents == line.unit_cents
        ]
        pieces.append(Piece(line.item, line.used_for, line.bought, fitting[0]))
    return tuple(pieces)
