"""A closed bound for three tiers that looks at each bundle: how many spines pods of n leaves need at least.

With k links between a leaf and each of its S spines, a spine has n k ports down; what is left of it carries v uplinks,
so S >= need / k for the leaf and S v >= P for the pod. Fewer spines than that no network has, whatever its cores.
"""

import numpy as np

from designer.formulation.clos import Hardware
from designer.workload.cuts import Ints

MOST_BUNDLE = 16


def spines_by_bundle(
    hardware: Hardware,
    uplinks: int,
    lost_switches: tuple[tuple[int, int], ...],
    sizes: Ints,
    pod_links: Ints,
    bundle: int,
) -> Ints:
    """The fewest spines of a pod for each pod size with this bundle; 0 where it does not fit.

    `lost_switches` are (uplinks that must be left, spines lost).
    """
    core, tier = hardware.core, hardware.spine.tier
    up_per_cage = core.lower.up_mode.ports_per_cage if core is not None and core.lower.up_mode is not None else 1
    down = sizes * bundle
    free_cages = tier.switch.cages - -(-down // tier.down_mode.ports_per_cage)
    room = np.minimum(tier.switch.max_ports - down, free_cages * up_per_cage)
    least = -(-uplinks // bundle)
    for left, count in lost_switches:
        least = max(least, -(-left // bundle) + count)
    fits = room >= 1
    spines = np.maximum(least, -(-pod_links // np.maximum(room, 1)))
    return np.where(fits, spines, 0)


def pod_bounds(
    hardware: Hardware,
    fabrics: int,
    leaves: int,
    base_cents: int,
    uplinks: int,
    most_uplinks: int,
    lost_switches: tuple[tuple[int, int], ...],
    sizes: Ints,
    pods: Ints,
    pod_links: Ints,
    loose_cents: Ints,
) -> Ints:
    """What any network with pods of each size costs at least; never below `loose_cents`, which holds for every bundle.

    Bundles up to 16 are looked at one by one; where larger ones fit as well, the loose bound stands.
    """
    core, tier = hardware.core, hardware.spine.tier
    if core is None or core.lower.up_mode is None or hardware.spine.lower.up_mode is None:
        return loose_cents
    lower, upper, link = hardware.leaf_spine_cents
    core_lower, core_upper, core_link = hardware.spine_core_cents
    spine_core = pods * pod_links
    above = core_link * spine_core + hardware.core_cents * -(-spine_core // core.tier.switch.radix(core.tier.down_mode))
    above += core_lower * -(-spine_core // core.lower.up_mode.ports_per_cage)
    above += core_upper * -(-spine_core // core.tier.down_mode.ports_per_cage)
    per_cage = hardware.spine.lower.up_mode.ports_per_cage
    best = np.full(len(sizes), np.iinfo(np.int64).max)
    for bundle in range(1, MOST_BUNDLE + 1):
        spines = spines_by_bundle(hardware, uplinks, lost_switches, sizes, pod_links, bundle)
        up = spines * bundle
        total = leaves * up
        cents = link * total + lower * leaves * -(-up // per_cage) + upper * -(-total // tier.down_mode.ports_per_cage)
        cost = base_cents + fabrics * (cents + above + hardware.spine_cents * pods * spines)
        fits = (spines > 0) & (up <= most_uplinks)
        best = np.where(fits, np.minimum(best, cost), best)
    wider = sizes * (MOST_BUNDLE + 1) < tier.switch.max_ports
    return np.maximum(loose_cents, np.where(wider, np.minimum(best, loose_cents), best))
