"""Reads the network that a cluster has from its design file, and says where instance and file do not go together."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from designer.catalog.components import Catalog
from designer.certify.read_design import DesignFile, read_design
from designer.certify.structure import check_structure
from designer.costing.bill import stock_of
from designer.errors import CatalogError, InputError
from designer.fabric.fabric import Fabric
from designer.instance.cluster import Refuse
from designer.instance.existing import ExistingNetwork
from designer.instance.instance import Cluster
from designer.instance.schema import CablingSection, ExistingNetworkSection, InstanceFile
from designer.source import Source, validate
from designer.units import cents

AT = ("search", "existing")


def read_existing(
    instance: InstanceFile, cluster: Cluster, catalog: Catalog, base: Path, refuse: Refuse
) -> ExistingNetwork | None:
    """The network of `search.existing`, whose path is relative to `base`; None without one, or after `refuse` was told.

    Everything that it is made of has to be in the `catalog`.
    """
    named = instance.search.existing
    if named is None:
        return None
    section = ExistingNetworkSection.model_validate({"file": named}) if isinstance(named, str) else named
    at = AT if isinstance(named, str) else (*AT, "file")
    if barred := list(_barred(instance, cluster)):
        for field, allowed in barred:
            refuse(field, "search.existing beside it", allowed)
        return None
    try:
        file = read_design(base / section.file)
        problems = list(_problems(file, instance, cluster))
        for found, allowed in problems:
            refuse(at, f"{section.file}: {found}", allowed)
        if problems:
            return None
        fabric = _fabric(file, section, base)
        stock = stock_of(fabric, catalog, new_switches=section.new_switches)
    except CatalogError as error:
        missing = ", ".join(problem.field for problem in error.problems)
        refuse(at, f"{section.file}: {missing}", "what it is made of, in the catalog of the instance")
    except _WiringError as error:
        for problem in error.problems:
            refuse((*AT, "wiring"), f"{section.wiring}: {problem.found}", problem.allowed)
    except InputError as error:
        for problem in error.problems:
            place = f"{problem.field}: " if problem.field else ""
            refuse(at, f"{section.file}: {place}{problem.found}", problem.allowed)
    else:
        return ExistingNetwork(
            section.file,
            file.true_digest,
            fabric,
            file.family,
            stock,
            section.most_links_moved,
            cents(section.usd_per_link_moved),
            section.wiring,
        )
    return None


class _WiringError(InputError):
    """Problems of the wiring list."""


def _fabric(file: DesignFile, section: ExistingNetworkSection, base: Path) -> Fabric:
    """The network as it is wired, where that is known, else as it was designed."""
    if section.wiring is None:
        return file.fabric
    # Here, as few instances name a list, and names of devices are much to import.
    from designer.rewiring.as_wired import as_wired

    try:
        return as_wired(file, base / section.wiring, section.wiring)
    except InputError as error:
        raise _WiringError(error.problems) from None


def _barred(instance: InstanceFile, cluster: Cluster) -> Iterator[tuple[tuple[str, ...], str]]:
    """Fields that do not go with an existing network, and what is allowed."""
    if cluster.irregular:
        yield ("cluster", "servers"), "servers that are all alike"
    if cluster.existing:
        yield ("cluster", "existing"), "one of the two: single switches with free ports, or a whole network"
    if instance.layout is not None:
        yield ("layout",), "lengths by class of links (cabling)"
    if instance.objective == "cost_of_training":
        yield ("objective",), "capex or tco"
    if instance.requirements.max_step_overhead is not None:
        yield ("requirements", "max_step_overhead"), "floors by phase (requirements.throughput)"
    if "link-placement" in (instance.search.families or ()):
        yield ("search", "families"), "clos, grid and mesh"


def _problems(file: DesignFile, instance: InstanceFile, cluster: Cluster) -> Iterator[tuple[str, str]]:
    """What keeps the network of a file from being that of the cluster: found, allowed."""
    old = file.cluster
    if old.irregular or old.existing or file.record.layout is not None:
        yield "servers of several kinds, used switches or a layout", "alike servers, no cluster.existing, no layout"
        return
    if old.gpus > cluster.gpus:
        yield f"{old.gpus} GPUs", f"at most the {cluster.gpus} of the cluster"
    for name in ("gpu", "nic", "hb_domain", "rails"):
        here, there = getattr(cluster, name), getattr(old, name)
        here, there = getattr(here, "key", here), getattr(there, "key", there)
        if here != there:
            yield f"{name} {there}", f"{name} {here}, as the cluster has it"
    stated: Any = file.instance.get("cabling") or {}
    try:
        cabling = validate(CablingSection, Source(f"{file.path}, cabling of the instance", stated))
    except InputError as error:
        yield from ((f"cabling.{problem.field}: {problem.found}", problem.allowed) for problem in error.problems)
        return
    if cabling != instance.cabling:
        lengths = ", ".join(f"{name} {value:g}" for name, value in instance.cabling)
        yield f"cabling {', '.join(f'{name} {value:g}' for name, value in cabling)}", f"that of the instance: {lengths}"
    structure = check_structure(
        file.fabric,
        file.catalog,
        old,
        {},
        symmetric_uplinks=file.requirements.symmetric_uplinks,
        family=file.family,
        any_port=file.old_fabric is not None,
    )
    for check in structure.checks:
        if not check.met:
            yield f"{check.name}: {check.found[0]}", "a network that can be plugged as it is said"
