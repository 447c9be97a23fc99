"""What fits into a rack: servers of each kind by height and power, whole HB domains together."""

from designer.instance.instance import Cluster, Servers
from designer.instance.schema import LayoutSection

SERVER_UNITS = 8  # assumed where neither instance nor catalog says: those of a DGX H100
SERVER_POWER_W = 10_200.0


def server_units(layout: LayoutSection, kind: Servers) -> int:
    """Height of a server in rack units."""
    return layout.server_units or kind.gpu.server_units or SERVER_UNITS


def server_power_w(layout: LayoutSection, kind: Servers) -> float:
    """Largest power of a server."""
    return layout.server_power_w or kind.gpu.server_power_w or SERVER_POWER_W


def servers_per_rack(layout: LayoutSection, cluster: Cluster, kind: Servers) -> int:
    """Servers of a kind in one rack; 0 where none fits.

    As many as height and power allow, unless the section says how many. Where an HB domain has several servers and a
    rack holds one, no domain is split over racks.
    """
    fitting = _fitting(layout, kind)
    if layout.servers_per_rack is not None:
        return min(layout.servers_per_rack, fitting)
    in_domain = max(1, cluster.hb_domain // kind.gpus)
    return fitting - fitting % in_domain if fitting >= in_domain else fitting


def _fitting(layout: LayoutSection, kind: Servers) -> int:
    by_height = layout.rack_units // server_units(layout, kind)
    return min(by_height, int(layout.rack_power_w / server_power_w(layout, kind)))


def rack_problems(layout: LayoutSection, cluster: Cluster) -> list[tuple[str, str, str]]:
    """Fields that leave no room for a server, or for as many as are asked for: (field, found, allowed)."""
    found: list[tuple[str, str, str]] = []
    if layout.switch_units > layout.rack_units:
        allowed = f"at most the {layout.rack_units} units of a rack"
        found.append(("switch_units", f"{layout.switch_units} units", allowed))
    for kind in {kind.gpu.key: kind for kind in cluster.kinds()}.values():
        asked = layout.servers_per_rack or 1
        units, power_w = asked * server_units(layout, kind), asked * server_power_w(layout, kind)
        what = f"{asked} server{'s' if asked > 1 else ''} of {kind.gpu.key}"
        if units > layout.rack_units:
            found.append(("rack_units", f"{layout.rack_units}, {what} have {units}", "racks that hold the servers"))
        if power_w > layout.rack_power_w:
            said = f"{layout.rack_power_w:g} W, {what} draw {power_w:g} W"
            found.append(("rack_power_w", said, "racks that power the servers"))
    return found
