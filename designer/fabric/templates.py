"""The known topologies, from closed forms: any-to-any fat tree, rail-optimized, rail-only, multi-plane, HPN.

All are non-blocking: a leaf has as much capacity up as down. Uniform bundles, as published designs have them: with L
leaves of u uplinks and spines of R ports, the spines are the smallest divisor of u that is at least L u / R. ZCube is
in `zcube.py`.

Sources: Wang et al. 2023, arXiv 2307.12169 (rail-only); Qian et al., SIGCOMM 2024 (HPN: two planes of rail-optimized
leaves, uplinks faster than host links); DeepSeek-AI, ISCA 2025 (multi-plane); vendors' reference designs (the rest).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from designer.catalog.components import PortMode, Switch
from designer.fabric.shape import ClosShape, Cores, Hosts, Spines, Tier
from designer.workload.cuts import Layout

NAMES = ("fat-tree", "rail-optimized", "rail-only", "multi-plane", "hpn", "zcube")


@dataclass(frozen=True)
class Ports:
    """How a template uses a switch model: modes toward and away from the endpoints, ports of a leaf down and up."""

    switch: Switch
    down_mode: PortMode
    up_mode: PortMode
    down: int
    up: int

    @property
    def spine_radix(self) -> int:
        """Ports of a spine at the uplinks' speed."""
        return self.switch.radix(self.up_mode)

    @property
    def leaf(self) -> Tier:
        """The leaf tier."""
        return Tier(self.switch, self.down_mode, self.up_mode)


def half_and_half(switch: Switch, gbps: int, *, native_uplinks: bool) -> Iterator[Ports]:
    """Non-blocking leaves of `switch`: half the cages down at `gbps`, half up, in the same mode or the fastest one."""
    for down_mode in switch.modes_at(gbps):
        fastest = max(switch.modes, key=lambda mode: mode.gbps)
        up_mode = fastest if native_uplinks else down_mode
        radix = switch.radix(down_mode)
        down = radix // 2
        up = -(-down * gbps // up_mode.gbps)
        ports = Ports(switch, down_mode, up_mode, down, up)
        if down and ports.leaf.ports_problem(down, up) is None:
            yield ports


def smallest_divisor(number: int, least: int) -> int | None:
    """The smallest divisor of `number` that is at least `least`; None when there is none."""
    return next((value for value in range(max(least, 1), number + 1) if number % value == 0), None)


def clos_of(
    hosts: Hosts, layout: Layout, ports: Ports, tiers: int | None = None, *, uneven: bool = False
) -> ClosShape | None:
    """A Clos of one switch model with full leaves; the fewest tiers that hold the endpoints, or `tiers` of them.

    None when three tiers do not hold them. `uneven` lets the links of a bundle differ by one (two tiers only).
    """
    flat = ClosShape(hosts, layout, ports.leaf, ports.switch.radix(ports.down_mode))
    if tiers in (None, 1) and flat.leaves == 1 and not flat.problems():
        return flat
    shape = ClosShape(hosts, layout, ports.leaf, ports.down, ports.up)
    leaves, radix = shape.leaves, ports.spine_radix
    spine = Tier(ports.switch, ports.up_mode)
    if tiers in (None, 2):
        least = -(-leaves * ports.up // radix)
        count = least if uneven else smallest_divisor(ports.up, least)
        if count is not None and count <= ports.up:
            bundle = ports.up // count if ports.up % count == 0 else None
            two = replace(shape, spines=Spines(spine, count, bundle))
            if not two.problems():
                return two
    if tiers in (None, 3):
        return _three_tiers(shape, ports)
    return None


def _three_tiers(shape: ClosShape, ports: Ports) -> ClosShape | None:
    """Pods of R/2 leaves and u spines with R/2 uplinks each; then the fewest cores with uniform bundles."""
    half = ports.spine_radix // 2
    pods = -(-shape.leaves // half)
    if pods < 2 or pods > ports.spine_radix:
        return None
    bundle = next(value for value in range(half, 0, -1) if half % value == 0 and pods * value <= ports.spine_radix)
    most_positions = ports.spine_radix // (pods * bundle)
    positions = max(value for value in range(1, most_positions + 1) if ports.up % value == 0)
    spine = Tier(ports.switch, ports.up_mode, ports.up_mode)
    cores = Cores(Tier(ports.switch, ports.up_mode), half, half, bundle, positions)
    three = replace(shape, spines=Spines(spine, ports.up, 1), cores=cores)
    return None if three.problems() else three


def fat_tree(hosts: Hosts, ports: Ports, tiers: int | None = None, *, uneven: bool = False) -> ClosShape | None:
    """Any-to-any: one fabric over all GPUs in each plane; leaves are filled whatever the rail."""
    return clos_of(hosts, _mixed(hosts), ports, tiers, uneven=uneven)


def rail_optimized(hosts: Hosts, ports: Ports, tiers: int | None = None) -> ClosShape | None:
    """One fabric over all GPUs in each plane; every leaf serves a single rail."""
    return clos_of(hosts, Layout(mixed=False, rails=hosts.rails, per_rail=hosts.gpus // hosts.rails), ports, tiers)


def rail_only(hosts: Hosts, ports: Ports) -> ClosShape | None:
    """A fabric for each rail and plane; where a rail takes part of a single switch, whole rails share it."""
    per_rail = hosts.gpus // hosts.rails
    sharing = min(hosts.rails, ports.switch.radix(ports.down_mode) // (per_rail + hosts.management_ports))
    if sharing:
        layout = Layout(mixed=False, rails=sharing, per_rail=per_rail)
        down = sharing * per_rail + hosts.management_ports
        return ClosShape(hosts, layout, ports.leaf, down)
    return clos_of(hosts, Layout(mixed=False, rails=1, per_rail=per_rail), ports)


def _mixed(hosts: Hosts) -> Layout:
    mixed = hosts.rails > 1
    return Layout(mixed=mixed, rails=hosts.rails, per_rail=hosts.gpus // hosts.rails)


def clos_templates(hosts: Hosts, fewest_planes: int, switches: list[Switch]) -> Iterator[tuple[str, ClosShape]]:
    """Every Clos template on each switch model: (name, shape without media), in the given NIC mode."""
    for switch in switches:
        for native in (False, True):
            for ports in half_and_half(switch, hosts.gbps, native_uplinks=native):
                if native and ports.up_mode == ports.down_mode:
                    continue
                shapes: dict[str, ClosShape | None] = {}
                if hosts.planes == fewest_planes:
                    shapes["fat-tree"] = fat_tree(hosts, ports)
                    shapes["rail-optimized"] = rail_optimized(hosts, ports)
                    shapes["rail-only"] = rail_only(hosts, ports)
                if hosts.planes > 1:
                    shapes["multi-plane"] = fat_tree(hosts, ports)
                if hosts.planes == 2 and native:
                    shapes["hpn"] = rail_optimized(hosts, ports)
                for name, shape in shapes.items():
                    if shape is not None:
                        yield name, shape


@dataclass(frozen=True)
class TreeCounts:
    """Counts of a full fat tree with any number of tiers."""

    tiers: int
    switches: int
    links: int
    transceivers: int


def full_tree_counts(endpoints: int, radix: int) -> TreeCounts:
    """Closed form of an any-to-any tree with every port used: (2T-1) n / R switches, T n links, 2 T n transceivers.

    T is the least number of tiers with room: R endpoints for one tier, 2 (R/2)^T for more.

    Raises:
        ValueError: more endpoints than ports, and too few ports for a tree to branch.
    """
    if radix < min(4, endpoints):
        raise ValueError(f"a tree of switches with {radix} ports for {endpoints} endpoints")
    tiers, capacity = 1, radix
    while capacity < endpoints:
        tiers += 1
        capacity = 2 * (radix // 2) ** tiers
    switches = -(-(2 * tiers - 1) * endpoints // radix)
    return TreeCounts(tiers, switches, tiers * endpoints, 2 * tiers * endpoints)
