"""Why no network exists: a smallest set of constraints that clash, and single changes that would resolve it."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from designer.costing.pricing import MediaFinder, Pricing
from designer.errors import InfeasibleError, Remedy
from designer.formulation.clos_search import ClosSearch, Limits
from designer.formulation.hardware import leaf_kinds, usable_switches
from designer.instance.instance import Instance
from designer.instance.schema import LeafSection, SurviveSection
from designer.workload.phases import derive_traffic
from designer.workload.traffic import Traffic

# Floors that a remedy may name: two significant digits, down to a hundredth of a percent.
FLOORS = tuple(sorted({digits / scale for scale in (100, 1000, 10_000, 100_000) for digits in range(10, 100)}))
NO_FLOOR = 1e-6
SHORT_M = 3.0


@dataclass(frozen=True)
class _Constraint:
    """A constraint of the instance in the user's words, how to take it out of an instance, and what to do about it.

    `phase` is set for a floor, which a remedy lowers rather than drops.
    """

    name: str
    change: str
    without: Callable[[Instance], Instance]
    phase: str = ""


class _Stopped(Exception):  # noqa: N818 - no error, the user asked for it
    """Nobody waits for the explanation any more."""


def explain_infeasible(
    instance: Instance,
    traffic: Traffic,
    should_stop: Callable[[], bool] = lambda: False,
    exists: Callable[[Instance], bool] | None = None,
) -> InfeasibleError:
    """The error that says what clashes in `instance`, which is proven to have no network.

    `exists` says whether an instance has one; by default, whether it has a Clos. When `should_stop` comes true before
    it is known what clashes the error says so.
    """
    if conflict := _nothing_fits(instance):
        return conflict

    def feasible(changed: Instance) -> bool:
        if should_stop():
            raise _Stopped
        return (exists or _feasible)(changed)

    constraints = list(_constraints(instance, traffic))
    try:
        needed = _clashing(instance, constraints, feasible)
        remedies = list(_remedies(instance, constraints, feasible))
    except _Stopped:
        return InfeasibleError(["interrupted before it was found which of them clash"])
    return InfeasibleError(
        [*needed, f"catalog: switches of {', '.join(instance.catalog.names)} and their ports"], remedies
    )


def _clashing(instance: Instance, constraints: list[_Constraint], feasible: Callable[[Instance], bool]) -> list[str]:
    """A smallest set of constraints that clash, by a deletion filter.

    What can go while the rest still clashes is not part of it. Tried first, and so named last, are the options of the
    search; then what the network has to carry.
    """
    core = instance
    needed: list[str] = []
    for item in reversed(constraints):
        smaller = item.without(core)
        if feasible(smaller):
            needed.append(item.name)
        else:
            core = smaller
    return needed[::-1]


def _remedies(
    instance: Instance, constraints: list[_Constraint], feasible: Callable[[Instance], bool]
) -> Iterator[Remedy]:
    """Single changes after which a network exists; floors by the highest one with which it does."""
    for item in constraints:
        if not feasible(item.without(instance)):
            continue
        change = item.change
        if item.phase:
            floor = instance.requirements.throughput.get(item.phase, 1.0)
            lower = [value for value in FLOORS if value < floor]

            def clashes(value: float, phase: str = item.phase) -> bool:
                return not feasible(_with_floor(instance, phase, value))

            works = bisect_left(lower, True, key=clashes)
            change = f"at most {lower[works - 1]:g}" if works else "less"
        yield Remedy(item.name, change)


def _feasible(instance: Instance) -> bool:
    pricing = Pricing(instance.objective, instance.energy)
    search = ClosSearch(instance, derive_traffic(instance), pricing, MediaFinder(instance.catalog))
    return search.run(Limits(gap=1.0)).shape is not None


def _nothing_fits(instance: Instance) -> InfeasibleError | None:
    """No switch port runs at the NIC's speed, or no medium joins the two: no search needed to say so."""
    cluster, search = instance.cluster, instance.search
    pricing = Pricing(instance.objective, instance.energy)
    switches = usable_switches(instance.catalog, cluster.nic, search, pricing)
    field = "cluster.servers[0].nic" if cluster.irregular else "cluster.nic"
    nic = f"{field}: {cluster.nic.key}, {'/'.join(cluster.nic.protocols)}"
    if not switches:
        allowed = f"search: switches {search.switches or 'all'}, protocols {search.protocols or 'all'}"
        return InfeasibleError([nic, allowed], [Remedy("search", "allow a switch that speaks the NIC's protocol")])
    modes = [mode for mode in cluster.nic.modes if search.planes is None or mode.ports in search.planes]
    speeds = sorted({mode.gbps for mode in modes})
    offered = sorted({mode.gbps for switch in switches for mode in switch.modes})
    if not set(speeds) & set(offered):
        return InfeasibleError(
            [f"{nic}: ports of {speeds} Gb/s", f"switches: ports of {offered} Gb/s"],
            [Remedy(f"search.switches or {field}", "a switch and a NIC with a port speed in common")],
        )
    media = MediaFinder(instance.catalog)
    if not any(
        True
        for mode in modes
        for _ in leaf_kinds(switches, cluster.nic, mode.ports, mode.gbps, media, instance.cabling)
    ):
        length = f"cabling.host_m: {instance.cabling.host_m:g} m"
        change = "a shorter cable, or a catalog with one that fits both cages and reaches as far"
        if instance.layout is not None:
            length = f"layout: {instance.cabling.host_m:g} m from a server to the next switches"
            change = "a smaller floor, or a catalog with a cable that fits both cages and reaches as far"
        field = "layout" if instance.layout is not None else "cabling.host_m"
        return InfeasibleError([nic, length, "catalog: transceivers and cables"], [Remedy(field, change)])
    return None


def _constraints(instance: Instance, traffic: Traffic) -> Iterator[_Constraint]:
    """What may be changed: floors, failures, pinned leaves, uniform bundles, the rest of the search, cabling."""
    requirements, search = instance.requirements, instance.search
    for name in dict.fromkeys(phase.name for phase in traffic.network_phases):
        floor = requirements.throughput.get(name, 1.0)
        drop = partial(_with_floor, name=name, value=NO_FLOOR)
        yield _Constraint(f"requirements.throughput.{name}: {floor:g}", "less", drop, name)
    for number, item in enumerate(requirements.survive):
        drop = partial(_without_failure, item=item)
        yield _Constraint(f"requirements.survive[{number}]: {_words(item)}", "leave it out or ask for less", drop)
    if search.leaf.down is not None or search.leaf.up is not None:
        yield _Constraint(
            f"search.leaf: {'any' if search.leaf.down is None else search.leaf.down} ports down, "
            f"{'any' if search.leaf.up is None else search.leaf.up} up",
            "leave the ports of a leaf to the search",
            partial(_with, section="search", leaf=LeafSection(down=None, up=None)),
        )
    if requirements.symmetric_uplinks:
        yield _Constraint(
            "requirements.symmetric_uplinks: true",
            "false, bundles may then differ by one link",
            partial(_with, section="requirements", symmetric_uplinks=False),
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
            drop = partial(_with, section="search", **{field: free})
            yield _Constraint(f"search.{field}: {value}", words, drop)
    for field in ("leaf_spine_m", "spine_core_m") if instance.layout is None else ():
        length_m = getattr(instance.cabling, field)
        if length_m > SHORT_M:
            drop = partial(_with, section="cabling", **{field: SHORT_M})
            yield _Constraint(f"cabling.{field}: {length_m:g}", f"{SHORT_M:g} m, or media with more reach", drop)


def _with_floor(instance: Instance, name: str, value: float) -> Instance:
    return _with(instance, "requirements", throughput={**instance.requirements.throughput, name: value})


def _without_failure(instance: Instance, item: SurviveSection) -> Instance:
    rest = [other for other in instance.requirements.survive if other is not item]
    return _with(instance, "requirements", survive=rest)


def _with(instance: Instance, section: str, **changes: object) -> Instance:
    changed = getattr(instance, section).model_copy(update=changes)
    return replace(instance, **{section: changed})


def _words(item: SurviveSection) -> str:
    return f"{item.count} {item.failure} lost, {item.throughput:g} of each floor left"
