"""Why no network exists: a smallest set of constraints that clash, and single changes that would resolve it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from designer.costing.pricing import MediaFinder, Pricing
from designer.errors import InfeasibleError, Remedy
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.hardware import leaf_kinds, usable_switches
from designer.instance.instance import Instance
from designer.instance.schema import LeafSection, SurviveSection
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Traffic

FLOORS = (0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01)
SHORT_M = 3.0


@dataclass(frozen=True)
class _Relaxation:
    """A constraint of the instance, in the user's words, and the instance without it."""

    constraint: str
    change: str
    relaxed: Instance


def explain_infeasible(instance: Instance, traffic: Traffic) -> InfeasibleError:
    """The error that says what clashes in `instance`, which is proven to have no network."""
    if conflict := _nothing_fits(instance):
        return conflict
    relaxations = list(_relaxations(instance, traffic))
    remedies = [Remedy(item.constraint, item.change) for item in relaxations if _feasible(item.relaxed)]
    # Deletion filter: what can go while the rest still clashes is not part of the conflict.
    core = instance
    needed: list[str] = []
    for item in relaxations:
        without = next((other for other in _relaxations(core, traffic) if other.constraint == item.constraint), None)
        if without is None:
            continue
        if _feasible(without.relaxed):
            needed.append(item.constraint)
        else:
            core = without.relaxed
    names = instance.catalog.names
    conflict_names = [*needed, f"catalog: switches of {', '.join(names)} and their ports"]
    return InfeasibleError(conflict_names, remedies)


def _feasible(instance: Instance) -> bool:
    pricing = Pricing(instance.objective, instance.energy)
    search = ClosSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    return search.run(Limits(gap=1.0)).shape is not None


def _nothing_fits(instance: Instance) -> InfeasibleError | None:
    """No switch port runs at the NIC's speed, or no medium joins the two: no search needed to say so."""
    cluster, search = instance.cluster, instance.search
    pricing = Pricing(instance.objective, instance.energy)
    switches = usable_switches(instance.catalog, cluster.nic, search, pricing)
    nic = f"cluster.nic: {cluster.nic.key}, {'/'.join(cluster.nic.protocols)}"
    if not switches:
        allowed = f"search: switches {search.switches or 'all'}, protocols {search.protocols or 'all'}"
        return InfeasibleError([nic, allowed], [Remedy("search", "allow a switch that speaks the NIC's protocol")])
    modes = [mode for mode in cluster.nic.modes if search.planes is None or mode.ports in search.planes]
    speeds = sorted({mode.gbps for mode in modes})
    offered = sorted({mode.gbps for switch in switches for mode in switch.modes})
    if not set(speeds) & set(offered):
        return InfeasibleError(
            [f"{nic}: ports of {speeds} Gb/s", f"switches: ports of {offered} Gb/s"],
            [Remedy("search.switches or cluster.nic", "a switch and a NIC with a port speed in common")],
        )
    media = MediaFinder(instance.catalog)
    if not any(
        True
        for mode in modes
        for _ in leaf_kinds(switches, cluster.nic, mode.ports, mode.gbps, media, instance.cabling)
    ):
        length = f"cabling.host_m: {instance.cabling.host_m:g} m"
        change = "a shorter cable, or a catalog with one that fits both cages and reaches as far"
        return InfeasibleError([nic, length, "catalog: transceivers and cables"], [Remedy("cabling.host_m", change)])
    return None


def _relaxations(instance: Instance, traffic: Traffic) -> Iterator[_Relaxation]:
    requirements, search = instance.requirements, instance.search
    for name in dict.fromkeys(phase.name for phase in traffic.network_phases):
        floor = requirements.throughput.get(name, 1.0)
        lower = [value for value in FLOORS if value < floor]
        if lower:
            yield _floor(instance, name, floor, lower)
    for number, item in enumerate(requirements.survive):
        rest = [other for index, other in enumerate(requirements.survive) if index != number]
        yield _Relaxation(
            f"requirements.survive[{number}]: {_words(item)}",
            "leave it out or ask for less",
            _with(instance, "requirements", survive=rest),
        )
    if requirements.symmetric_uplinks:
        yield _Relaxation(
            "requirements.symmetric_uplinks: true",
            "false, bundles may then differ by one link",
            _with(instance, "requirements", symmetric_uplinks=False),
        )
    if search.leaf.down is not None or search.leaf.up is not None:
        yield _Relaxation(
            f"search.leaf: {search.leaf.down} ports down, {search.leaf.up} up",
            "leave the ports of a leaf to the search",
            _with(instance, "search", leaf=LeafSection(down=None, up=None)),
        )
    for field, value, free in (
        ("max_tiers", search.max_tiers, 3),
        ("planes", search.planes, None),
        ("switches", search.switches, None),
        ("protocols", search.protocols, None),
        ("leaf_sharing", search.leaf_sharing, "any"),
    ):
        if value != free:
            words = "no restriction" if free is None else str(free)
            yield _Relaxation(f"search.{field}: {value}", words, _with(instance, "search", **{field: free}))
    for field in ("leaf_spine_m", "spine_core_m"):
        length_m = getattr(instance.cabling, field)
        if length_m > SHORT_M:
            relaxed = _with(instance, "cabling", **{field: SHORT_M})
            yield _Relaxation(f"cabling.{field}: {length_m:g}", f"{SHORT_M:g} m, or media with more reach", relaxed)


def _floor(instance: Instance, name: str, floor: float, lower: list[float]) -> _Relaxation:
    """Lowering one floor: to the highest of a few values with which a network exists, else out of the way."""
    for value in lower:
        relaxed = _with_floor(instance, name, value)
        if _feasible(relaxed):
            return _Relaxation(f"requirements.throughput.{name}: {floor:g}", f"at most {value:g}", relaxed)
    return _Relaxation(f"requirements.throughput.{name}: {floor:g}", "less", _with_floor(instance, name, 1e-6))


def _with_floor(instance: Instance, name: str, value: float) -> Instance:
    return _with(instance, "requirements", throughput={**instance.requirements.throughput, name: value})


def _with(instance: Instance, section: str, **changes: object) -> Instance:
    changed = getattr(instance, section).model_copy(update=changes)
    return replace(instance, **{section: changed})


def _words(item: SurviveSection) -> str:
    return f"{item.count} {item.failure} lost, {item.throughput:g} of each floor left"
