"""The network that was there before, in a design file: what it is worth, and which of its links stay, counted again."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from designer.certify.ports import Ends, port_checks
from designer.certify.read_design import DesignFile
from designer.costing.bill import BillLine, labour_line, stock_of
from designer.costing.stock import Stock
from designer.design_schema import ExistingRecord
from designer.errors import InputError
from designer.fabric.fabric import LEAF, Column, Fabric
from designer.instance.schema import ExistingNetworkSection, SearchSection
from designer.rewiring.matching import Matcher
from designer.rewiring.moves import Moves, count_moves
from designer.source import Source, validate
from designer.units import cents


def owned_stock(file: DesignFile) -> Stock | None:
    """What the network that was there is made of; None without one.

    Raises:
        CatalogError: the catalog of the file does not hold a part of it.
    """
    if file.old_fabric is None:
        return None
    return stock_of(file.old_fabric, file.catalog)


def plugging(file: DesignFile) -> BillLine | None:
    """The line of the bill for links that are plugged, counted again; None where that costs nothing."""
    record, old = file.record.existing, file.old_fabric
    if record is None or old is None or not record.usd_per_link_moved:
        return None
    moves = _moves(file, record, old)
    plugged = file.fabric.n_links if moves is None else moves.plugged
    return labour_line(plugged, cents(record.usd_per_link_moved))


def _moves(file: DesignFile, record: ExistingRecord, old: Fabric) -> Moves | None:
    """What stays by the file's own word on which switch is which; None where that makes no sense."""
    if any(_same_problems(file, record, old)):
        return None
    return count_moves(old, file.fabric, np.array(record.same_as, dtype=np.int64))


def _same_problems(file: DesignFile, record: ExistingRecord, old: Fabric) -> Iterator[str]:
    """Why switches cannot be the old ones that the file says they are."""
    switches: Column = np.flatnonzero(file.fabric.nodes.kind >= LEAF)
    if len(record.same_as) != len(switches):
        yield f"existing.same_as: {len(record.same_as)} entries for {len(switches)} switches"
        return
    models: list[int] = old.nodes.model.tolist()
    there = set(np.flatnonzero(old.nodes.kind >= LEAF).tolist())
    seen: set[int] = set()
    for number, (node, other) in enumerate(zip(switches.tolist(), record.same_as, strict=True)):
        if other == -1:
            continue
        if other not in there or other in seen:
            yield f"existing.same_as[{number}]: {other} is no switch that was there, or one for the second time"
            return
        seen.add(other)
        here, before = file.fabric.models[int(file.fabric.nodes.model[node])], old.models[models[other]]
        if here != before:
            yield f"existing.same_as[{number}]: a {here}, the switch that was there is a {before}"
            return


def existing_findings(file: DesignFile) -> Iterator[tuple[str, str]]:
    """Moved links, limits and origins that are not what old network, new network and instance give: (kind, message)."""
    stated = _stated(file)
    record, old = file.record.existing, file.old_fabric
    if record is None or old is None:
        if stated is not None:
            yield "existing", "existing: nothing, the instance inside the file names a network that is there"
        return
    if stated is None:
        yield "existing", "existing: a network that was there, the instance inside the file names none"
        return
    for name, right in stated.model_dump().items():
        if getattr(record, name) != right:
            yield "existing", f"existing.{name}: the file says {getattr(record, name)}, its instance {right}"
    yield from (("existing", message) for message in _old_problems(file, old))
    problems = list(_same_problems(file, record, old))
    yield from (("existing", message) for message in problems)
    if not problems:
        yield from (("existing", message) for message in _counts(file, record, old))
    yield from (("existing", message) for message in _limits(file, record))


def _stated(file: DesignFile) -> ExistingNetworkSection | None:
    """What the instance inside the file says of a network that is there."""
    search: Any = file.instance.get("search") or {}
    try:
        named = validate(SearchSection, Source("instance of the design", search)).existing
    except InputError:
        return None  # told with the instance
    return ExistingNetworkSection.model_validate({"file": named}) if isinstance(named, str) else named


def _old_problems(file: DesignFile, old: Fabric) -> Iterator[str]:
    if old.gpus > file.fabric.gpus:
        yield f"existing.fabric.gpus: {old.gpus}, the cluster has {file.fabric.gpus}"
    unknown = [model for model in old.models if model not in file.catalog.switches]
    if unknown:
        yield f"existing.fabric.models: {unknown[0]} is no switch of the file's catalog"
        return
    for check in port_checks(old, file.catalog, Ends(old)):
        yield from (f"existing.fabric: {check.name}: {found}" for found in check.found[:1])


def _counts(file: DesignFile, record: ExistingRecord, old: Fabric) -> Iterator[str]:
    same_as = np.array(record.same_as, dtype=np.int64)
    moves = count_moves(old, file.fabric, same_as)
    for name in ("kept", "plugged", "pulled"):
        said, due = getattr(record, name), getattr(moves, name)
        if said != due:
            yield f"existing.{name}: the file says {said}, the two networks give {due}"
    classes = [item.model_dump(by_alias=True) for item in record.classes]
    if classes != [item.to_document() for item in moves.classes]:
        yield "existing.classes: not what the two networks give"
    most = Matcher(old, file.fabric).bound()
    if record.kept_at_most != most:
        yield f"existing.kept_at_most: the file says {record.kept_at_most}, the two networks give {most}"


def _limits(file: DesignFile, record: ExistingRecord) -> Iterator[str]:
    if record.most_links_moved is not None and record.plugged > record.most_links_moved:
        yield f"existing.plugged: {record.plugged}, at most {record.most_links_moved} are allowed"
    least = record.plugged_at_least
    if least is not None and record.plugged < least:
        yield f"existing.plugged_at_least: {least}, fewer are plugged: {record.plugged}"
    if record.fresh is not None and record.plugged > record.fresh.links:
        yield f"existing.plugged: {record.plugged}, a network bought anew has {record.fresh.links} links"
    if not record.new_switches:
        for line in file.record.bill_of_materials:
            if line.section == "switches" and line.quantity > line.reused:
                yield f"existing.new_switches: false, {line.quantity - line.reused} {line.item} are bought"
