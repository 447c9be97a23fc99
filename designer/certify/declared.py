"""What a design file declares, against a recount: bill, money, power, bound, comparison, and the instance inside."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from designer.certify.certificate import EXACT, Certificate
from designer.certify.existing import owned_stock, plugging
from designer.certify.floor import floor_findings
from designer.certify.read_design import DesignFile
from designer.certify.structure import CLOS
from designer.costing.bill import CABLE_SECTIONS, Bill, BillLine, bill_of_materials
from designer.costing.pricing import Pricing
from designer.design_schema import BillLineRecord, TrainingRecord
from designer.errors import CatalogError, InputError
from designer.fabric.fabric import HOST, LEAF_LEAF, LEAF_SPINE, SPINE_CORE, Fabric
from designer.fabric.grid import ROW_HOST_M
from designer.fabric.pairs import worst_leaf_pair
from designer.instance.instance import Instance, Job
from designer.instance.load import instance_from_document
from designer.instance.schema import InstanceFile, JobSection
from designer.source import Source, validate
from designer.units import cents, usd
from designer.workload.model_library import load_model_library
from designer.workload.phases import derive_traffic
from designer.workload.step_time import StepTimeError, step_time

NEAR = 1e-9


def money_text(amount_cents: int) -> str:
    """An amount as messages give it."""
    return f"${usd(amount_cents):,.2f}"


def recounted_bill(file: DesignFile) -> Bill:
    """The bill of the file's fabric at the prices of the file's catalog.

    Raises:
        CatalogError: the fabric names a component that the catalog does not hold.
    """
    pricing = Pricing(file.record.objective, file.energy, stock=owned_stock(file))
    return bill_of_materials(file.fabric, file.catalog, pricing, plugging(file))


def bill_findings(file: DesignFile) -> Iterator[tuple[str, str]]:
    """Lines, totals, power and pieces that are not what the fabric and the catalog give: (kind, message)."""
    try:
        bill = recounted_bill(file)
    except CatalogError as error:
        yield "bill", f"the bill cannot be counted: {error}"
        return
    due = {(line.item, line.used_for, line.description): line for line in bill.lines}
    said: dict[tuple[str, str, str], BillLineRecord] = {}
    for number, line in enumerate(file.record.bill_of_materials):
        key = (line.item, line.used_for, line.description)
        if key in said:
            yield "bill", f"bill_of_materials[{number}]: {line.item} for {line.used_for} stands there twice"
        said[key] = line
        if key not in due:
            yield "bill", f"bill_of_materials[{number}]: {line.item} for {line.used_for} is nowhere in the fabric"
        else:
            for name, found, right in _line_differences(line, due[key]):
                place = f"bill_of_materials[{number}].{name} ({line.item} for {line.used_for})"
                kind = "price" if name == "unit_usd" else "bill"
                yield kind, f"{place}: the file says {found}, the fabric and its catalog give {right}"
    for item, used_for, _ in due.keys() - said.keys():
        yield "bill", f"{item} for {used_for} is missing from the bill"
    yield from _totals(file, bill)


def _line_differences(line: BillLineRecord, due: BillLine) -> Iterator[tuple[str, object, object]]:
    right = due.to_document()
    for name, value in right.items():
        found = getattr(line, name)
        same = cents(found) == cents(str(value)) if name.endswith("_usd") else found == value
        if not same:
            yield name, found, value


def _totals(file: DesignFile, bill: Bill) -> Iterator[tuple[str, str]]:
    for field, kind, right in (
        ("cost_usd", "cost", bill.total_cents),
        ("capex_usd", "cost", bill.capex_cents),
        ("energy_usd", "cost", bill.energy_cents),
        ("assumed_usd", "cost", bill.assumed_cents),
    ):
        if file.cents(field) != right:
            yield kind, f"{field}: the file says {_said(file, field)}, the bill adds up to {money_text(right)}"
    power_w = file.record.power_w
    if abs(power_w - bill.power_w) > NEAR * max(1.0, bill.power_w):
        yield "power", f"power_w: the file says {power_w:g} W, the bill adds up to {bill.power_w:g} W"
    for name, right in (("cables", bill.pieces(*CABLE_SECTIONS)), ("transceivers", bill.pieces("transceivers"))):
        if getattr(file.record.counts, name) != right:
            yield "counts", f"counts.{name}: the file says {getattr(file.record.counts, name)}, the bill {right}"


def _said(file: DesignFile, field: str) -> str:
    amount = file.cents(field)
    return "nothing" if amount is None else money_text(amount)


def bound_findings(file: DesignFile) -> Iterator[tuple[str, str]]:
    """A bound, gap or status that contradict the cost, each other, or a template that meets the requirements."""
    record = file.record
    cost, bound = cents(record.cost_usd), cents(record.lower_bound_usd)
    if bound > cost:
        yield "bound", f"lower_bound_usd: {money_text(bound)} is above the cost {money_text(cost)}"
    gap = (cost - bound) / cost if cost else 0.0
    if abs(gap - record.gap) > NEAR:
        yield "bound", f"gap: the file says {record.gap:g}, cost and lower bound give {gap:g}"
    status = "optimal" if bound >= cost else "feasible"
    if record.status != status:
        yield "status", f"status: the file says {record.status}, the bound {money_text(bound)} makes it {status}"
    any_bound = file.cents("any_topology_bound_usd")
    if any_bound is not None and any_bound > bound:
        yield "bound", f"any_topology_bound_usd: {money_text(any_bound)} is above lower_bound_usd, {money_text(bound)}"
    for number, row in enumerate(record.comparison):
        if row.meets and cents(row.cost_usd) < bound:
            yield "bound", f"lower_bound_usd: comparison[{number}], {row.template}, meets it for less"
    pair = worst_leaf_pair(file.fabric)
    if abs(pair - record.worst_leaf_pair) > NEAR:
        yield "counts", f"worst_leaf_pair: the file says {record.worst_leaf_pair:g}, the fabric has {pair:g}"


def comparison_findings(file: DesignFile) -> Iterator[tuple[str, str]]:
    """Rows whose saving is not what their cost gives, or that contradict themselves or the design."""
    cost = cents(file.record.cost_usd)
    for number, row in enumerate(file.record.comparison):
        at, theirs = f"comparison[{number}] ({row.template})", cents(row.cost_usd)
        saving = 1 - cost / theirs if theirs else 0.0
        if abs(saving - row.saving) > NEAR:
            yield "comparison", f"{at}: saving is said to be {row.saving:g}, the costs give {saving:g}"
        if (row.switches, row.links) != (row.counts.switches, row.counts.links):
            yield "comparison", f"{at}: {row.switches} switches and {row.links} links are not those of its counts"
        if row.meets and theirs < cost:
            yield "comparison", f"{at}: meets the requirements for {money_text(theirs)}, less than the design costs"


def instance_findings(file: DesignFile) -> Iterator[tuple[str, str]]:
    """Parts of the file that do not follow from the instance that it carries; "note" where that cannot be told."""
    document = file.instance
    try:
        stated = validate(InstanceFile, Source("instance of the design", dict(document)))
    except InputError as error:
        yield "instance", f"the instance inside the file is none: {error}"
        return
    for name, here, there in (
        ("name", file.record.name, stated.name),
        ("objective", file.record.objective, stated.objective),
        ("requirements", file.requirements, stated.requirements),
        ("energy", file.energy, stated.energy),
    ):
        if here != there:
            yield "instance", f"{name}: differs from that of the instance inside the file"
    yield from _lengths(file, stated) if stated.layout is None and file.record.layout is None else floor_findings(file)
    names = [item.model for item in stated.workload if isinstance(item, JobSection) and isinstance(item.model, str)]
    if apart := sorted(set(names) - set(load_model_library())):
        # A path in a stranger's file is not followed.
        yield "note", f"the traffic was not derived again: the model {apart[0]} is a file of its own"
        return
    try:
        instance = _instance(file, document)
    except InputError as error:
        yield "instance", f"the instance inside the file cannot be resolved: {error}"
        return
    if instance.cluster != file.cluster:
        yield "instance", "cluster: differs from that of the instance inside the file"
    derived = derive_traffic(instance)
    if derived != file.traffic:
        for one, other in zip(file.traffic.phases, derived.phases, strict=False):
            if one != other:
                yield "traffic", f"phase {one.name} of {one.job}: not what the instance's workload gives"
        if len(derived.phases) != len(file.traffic.phases):
            yield "traffic", f"{len(file.traffic.phases)} phases, the instance's workload gives {len(derived.phases)}"


def step_findings(file: DesignFile, certificate: Certificate) -> Iterator[tuple[str, str]]:
    """A step that takes longer than the requirements allow, or loses other time than said, at the proven throughput."""
    share, training = file.requirements.max_step_overhead, file.record.training
    if share is None and training is None:
        return
    try:
        instance = _instance(file, file.instance)
        (job,) = [item for item in instance.workload if isinstance(item, Job)]
        gpu, gbps = instance.cluster.slowest(job.first_gpu, job.gpus)
        carried = {phase.phase: max(phase.interval.lower, 1e-9) for phase in certificate.phases}
        times = [
            step_time(job, gpu, gbps, file.traffic, throughput).total_s
            for throughput in (carried, dict.fromkeys(carried, 1.0))
        ]
    except (InputError, StepTimeError, ValueError) as error:
        yield "step time", f"cannot be computed: {error}"
        return
    longer = times[0] / times[1] - 1
    if training is not None:
        yield from _training_findings(file, training, instance, max(0.0, longer))
    if share is not None and longer > share + EXACT:
        yield (
            "step time",
            f"a step takes {100 * longer:g} % longer than at line rate, at most {100 * share:g} % is allowed",
        )


def _training_findings(
    file: DesignFile, said: TrainingRecord, instance: Instance, longer: float
) -> Iterator[tuple[str, str]]:
    """Time lost, total and gap that do not follow from the step's time, the price of a GPU and the cost."""
    price = instance.gpu_price
    if price is None or (price.cents, price.assumed) != (cents(said.gpu_usd), said.gpu_assumed):
        yield "training", f"gpu_usd: {said.gpu_usd:g} is not the price of a GPU in instance and catalog"
    if abs(longer - said.step_overhead) > EXACT:
        yield "training", f"step_overhead: the file says {said.step_overhead:g}, the certificate gives {longer:g}"
    lost = round(said.step_overhead * file.cluster.gpus * cents(said.gpu_usd))
    total, bound = cents(file.record.cost_usd) + lost, cents(said.lower_bound_usd)
    for name, found, right in (("lost_usd", said.lost_usd, lost), ("total_usd", said.total_usd, total)):
        if cents(found) != right:
            yield "training", f"{name}: the file says {money_text(cents(found))}, it adds up to {money_text(right)}"
    if bound > total and file.family == CLOS:
        yield "training", f"lower_bound_usd: {money_text(bound)} is above the total {money_text(total)}"
    gap = max(0.0, (total - bound) / total) if total else 0.0
    if abs(gap - said.gap) > NEAR:
        yield "training", f"gap: the file says {said.gap:g}, total and lower bound give {gap:g}"


def _lengths(file: DesignFile, stated: InstanceFile) -> Iterator[tuple[str, str]]:
    """Cable lengths against the instance's cabling; a grid stands its row switches beside the servers.

    Without a shape, links between switches are as long as those from leaf to spine; where NICs have several ports in
    one network, some of the switches may stand beside the servers.
    """
    fabric, classes = file.fabric, file.fabric.link_class()
    if (classes == LEAF_LEAF).any() and file.family == CLOS:
        return
    cabling = stated.cabling
    for name, link_class, length_m in (
        ("host_m", HOST, cabling.host_m),
        ("leaf_spine_m", LEAF_SPINE, cabling.leaf_spine_m),
        ("leaf_spine_m", LEAF_LEAF, cabling.leaf_spine_m),
        ("spine_core_m", SPINE_CORE, cabling.spine_core_m),
    ):
        rows: list[int] = np.unique(fabric.links.medium[classes == link_class]).tolist()
        for row in rows:
            beside = (
                link_class == HOST
                and fabric.media[row].length_m == min(ROW_HOST_M, length_m)
                and (_joins_planes(fabric) or (file.family != CLOS and _whole_servers(file, row)))
            )
            if abs(fabric.media[row].length_m - length_m) > NEAR and not beside:
                found = f"{fabric.media[row].length_m:g} m"
                yield "cabling", f"fabric.media[{row}].length_m: {found}, cabling.{name} is {length_m:g} m"


def _whole_servers(file: DesignFile, medium: int) -> bool:
    """Whether all GPUs of every server that links of this medium go to are on one switch by them."""
    links, rails = file.fabric.links, file.cluster.rails
    row = np.flatnonzero((links.medium == medium) & (links.a < file.fabric.gpus))
    place = np.stack([links.a[row] // rails, links.b[row]])
    homes, gpus = np.unique(place, axis=1, return_counts=True)
    return homes.shape[1] == len(np.unique(homes[0])) and bool((gpus == rails).all())


def _joins_planes(fabric: Fabric) -> bool:
    """Whether switches of several planes are one network."""
    switches = fabric.nodes.plane >= 0
    planes = np.unique(np.stack([fabric.nodes.fabric[switches], fabric.nodes.plane[switches]]), axis=1)
    return planes.shape[1] > len(np.unique(planes[0]))


def _instance(file: DesignFile, document: Mapping[str, object]) -> Instance:
    """The file's instance resolved on the file's own catalog; what was searched does not matter to its traffic."""
    components = {name: part for name, part in file.catalog_document.items() if name != "names"}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.json"
        path.write_text(json.dumps(components), encoding="utf-8")
        return instance_from_document({**document, "catalog": str(path), "search": {}})
