"""What a table says of one design: cost and proof, counts, what the certificate found, templates beside it."""

import numpy as np

from designer.catalog.media import item_unit
from designer.certify.certificate import Certificate
from designer.fabric.fabric import CORE, LEAF, LINK_CLASSES, SPINE, Fabric
from designer.result import Design
from designer.study.task import Piece, Scalar
from designer.units import usd

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
        **_switches(design.fabric),
        **_shape(design),
        **({} if design.certificate is None else _certified(design.certificate)),
    }
    for row in design.comparison:
        name = row.template.replace("-", "_")
        values[f"{name}_usd"] = usd(row.cost_cents)
        values[f"{name}_meets"] = row.meets
    values["termination"] = design.provenance.termination
    return values


def _switches(fabric: Fabric) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for tier, kind in TIERS.items():
        used: list[int] = np.unique(fabric.nodes.model[fabric.nodes.kind == kind]).tolist()
        found[f"{tier}_switch"] = ", ".join(fabric.models[model] for model in used) or None
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
    return values


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
        fitting = [
            length
            for length in sorted(lengths.get(line.used_for, {0.0}))
            if item_unit(catalog, line.item, length).price_cents == line.unit_cents
        ]
        pieces.append(Piece(line.item, line.used_for, line.quantity, fitting[0]))
    return tuple(pieces)
