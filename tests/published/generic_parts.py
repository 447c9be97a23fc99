"""Switches, NICs and cables without a vendor, for tests that care about ports only."""

from designer.catalog.components import Nic, NicMode, PortMode, Price, Switch
from designer.catalog.media import LinkMedium
from designer.fabric.shape import Hosts, Media
from designer.fabric.templates import Ports

FREE = Price(0, "a test", "2025", assumed=True)
CABLE = LinkMedium("cable", "aoc", None, None, "cable", 1, 1000)
CABLED = Media(CABLE, 15, CABLE, 30, CABLE, 50)


def switch_of(radix: int, gbps: int) -> Switch:
    """A switch of `radix` ports of `gbps`, two to a cage; a cage also runs as one port of twice the rate."""
    modes = (PortMode(2, gbps), PortMode(1, 2 * gbps))
    return Switch(
        f"generic-{radix}",
        "generic",
        f"{radix} x {gbps}G",
        ("ethernet",),
        "cage",
        radix // 2,
        2 * gbps,
        modes,
        radix,
        0.0,
        power_assumed=True,
        price=FREE,
        source="a test",
    )


def hosts_of(gpus: int, *, rails: int, planes: int, gbps: int, management_ports: int = 0) -> Hosts:
    """GPUs with a NIC of one socket and `planes` ports of `gbps`."""
    mode = NicMode(planes, gbps)
    nic = Nic(
        "generic-nic",
        "generic",
        "NIC",
        ("ethernet",),
        planes * gbps,
        "cage",
        1,
        1,
        (mode,),
        0.0,
        power_assumed=True,
        price=FREE,
        source="a test",
    )
    return Hosts(gpus, rails, nic, mode, management_ports)


def clos_ports(switch: Switch, gbps: int, down: int, up: int, *, uplink_gbps: int | None = None) -> Ports:
    """Leaves of `switch` with `down` ports of `gbps` and `up` of `uplink_gbps`, the same rate unless it is given."""
    return Ports(switch, switch.modes_at(gbps)[0], switch.modes_at(uplink_gbps or gbps)[0], down, up)
