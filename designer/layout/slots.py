"""How many switches a rack holds, by height and power."""

from designer.catalog.components import Catalog, Switch
from designer.errors import InstanceError, Problem
from designer.instance.schema import LayoutSection


def slots_of(layout: LayoutSection, catalog: Catalog, switch: Switch) -> int:
    """How many switches of a model a rack holds, every cage with the hungriest thing that fits it; 0 where none."""
    power_w = full_power_w(catalog, switch)
    by_power = int(layout.rack_power_w / power_w) if power_w > 0 else layout.rack_units
    return min(layout.rack_units // layout.switch_units, by_power)


def full_power_w(catalog: Catalog, switch: Switch) -> float:
    """The most that a switch draws: the hungriest module or cable in every cage, a cable as if it drew all there."""
    cage = switch.cage
    modules = [item.power_w for item in catalog.transceivers.values() if cage in item.cages]
    cables = [item.power_w for item in catalog.cables.values() if cage in item.wide.cages or cage in item.narrow.cages]
    return switch.power_w + switch.cages * max([*modules, *cables], default=0.0)


def switches_per_rack(layout: LayoutSection, catalog: Catalog, switches: list[Switch]) -> int:
    """How many switches of these models a rack holds in any mix.

    Raises:
        InstanceError: it powers none of some model.
    """
    for switch in switches:
        if not slots_of(layout, catalog, switch):
            draws = f"{layout.rack_power_w:g} W, {switch.key} with modules may draw {full_power_w(catalog, switch):g} W"
            raise InstanceError([Problem("instance", None, "layout.rack_power_w", draws, "racks that power a switch")])
    return min(slots_of(layout, catalog, switch) for switch in switches)
