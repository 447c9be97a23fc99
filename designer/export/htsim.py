"""Topology file of htsim: a fat tree of two or three tiers, tier by tier.

Source: `FatTreeTopology::load` and `set_custom_params` of csg-htsim, and its sample topologies, whose latencies are
taken. The uplinks of a tier follow from a whole ratio of oversubscription; a spine has core switches of its own
position in the pod only.
"""

from pathlib import Path

import numpy as np

from designer.export.plan import Plan
from designer.export.uniform import ALLOWED, UniformClos, uniform_clos
from designer.fabric.fabric import CORE
from designer.files import text_written_atomically

LINK_LATENCY_NS, SWITCH_LATENCY_NS = 1000, 0


def write_htsim(plan: Plan, path: Path) -> tuple[str, ...]:
    """Writes the topology file of one of the networks, which are all alike.

    Raises:
        ExportError: the network is not uniform, or is none that htsim can build; says why.
        OutputError: it cannot be written.
    """
    clos = uniform_clos(plan)
    ratios = _ratios(plan, clos)
    hosts = clos.tiers[0].count * clos.tiers[0].down
    with text_written_atomically(path) as file:
        file.write(f"Nodes {hosts}\nTiers {len(clos.tiers)}\nPodsize {hosts // clos.pods}\n")
        for number, tier in enumerate(clos.tiers):
            file.write(f"\nTier {number}\nDownlink_speed_Gbps {tier.gbps}\nRadix_Down {tier.down}\n")
            if number < len(ratios):
                file.write(f"Radix_Up {clos.up(number)}\nOversubscribed {ratios[number]}\n")
            if number:
                file.write(f"Bundle {tier.bundle}\n")
            file.write(f"Downlink_Latency_ns {LINK_LATENCY_NS}\nSwitch_Latency_ns {SWITCH_LATENCY_NS}\n")
    return (f"one of {clos.fabrics} equal networks; they are simulated apart",) if clos.fabrics > 1 else ()


def _ratios(plan: Plan, clos: UniformClos) -> list[int]:
    """Rate down over rate up of leaves, and of spines below cores."""
    if len(clos.tiers) < 2:
        raise plan.refuse("one tier of switches", "two or three tiers")
    ratios: list[int] = []
    for number, tier in enumerate(clos.tiers[:-1]):
        down, up = tier.down * tier.gbps, clos.up(number) * clos.tiers[number + 1].gbps
        if down % up:
            raise plan.refuse(f"oversubscription {down}:{up}", "a whole number to 1")
        ratios.append(down // up)
    if len(clos.tiers) == 3:
        _check_cores(plan, clos)
    return ratios


def _check_cores(plan: Plan, clos: UniformClos) -> None:
    """Each core is joined with one spine of each pod."""
    links, nodes = plan.fabric.links, plan.fabric.nodes
    chosen = np.flatnonzero(nodes.kind[links.b] == CORE)
    spines = len(np.unique(links.a[chosen] * plan.fabric.n_nodes + links.b[chosen]))
    pods = len(np.unique(nodes.pod[links.a[chosen]] * plan.fabric.n_nodes + links.b[chosen]))
    if spines != pods or clos.tiers[2].down != clos.pods * clos.tiers[2].bundle:
        raise plan.refuse("cores that are joined with several spines of a pod", ALLOWED)
