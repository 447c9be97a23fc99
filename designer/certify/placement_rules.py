"""What holds for a network without tiers, rails or planes: any two switches may be joined, and all are leaves."""

import numpy as np

from designer.catalog.components import Catalog
from designer.certify.certificate import Check
from designer.certify.ports import node_name, told
from designer.certify.wiring import Wiring, components, islands, plane_findings
from designer.fabric.fabric import LEAF, Fabric
from designer.instance.instance import Cluster


def placement_checks(wiring: Wiring, catalog: Catalog, cluster: Cluster) -> list[Check]:
    """Fabrics and planes as the links have them, no labels of a shape, and one protocol for all that is joined."""
    return [
        Check.of("connected", islands(wiring)),
        Check.of("planes", plane_findings(wiring)),
        Check.of("labels", _labels(wiring.fabric)),
        Check.of("protocols", protocol_findings(wiring, catalog, cluster)),
    ]


def _labels(fabric: Fabric) -> list[str]:
    """Switches that say more than that they are leaves."""
    nodes = fabric.nodes
    plain = (nodes.kind == LEAF) & (nodes.pod == -1) & (nodes.rail == -1)

    def say(node: int) -> str:
        has = f"pod {nodes.pod[node]}, rail {nodes.rail[node]}"
        return f"{node_name(fabric, node)}: {has}; without a shape all are leaves of no pod and no rail"

    return told(np.flatnonzero((nodes.kind >= LEAF) & ~plain), say)


def protocol_findings(wiring: Wiring, catalog: Catalog, cluster: Cluster) -> list[str]:
    """Joined switches and their NICs that have no protocol in common."""
    fabric, links = wiring.fabric, wiring.fabric.links
    part = components(fabric.n_nodes, links.a[wiring.between], links.b[wiring.between])
    spoken: dict[int, dict[str, tuple[str, ...]]] = {}
    for node in wiring.switches.tolist():
        switch = catalog.switches[fabric.models[int(fabric.nodes.model[node])]]
        spoken.setdefault(int(part[node]), {})[switch.key] = switch.protocols
    for kind, gpus in zip(cluster.kinds(), cluster.kind_ranges(), strict=True):
        own = wiring.ports.link[(links.a[wiring.ports.link] >= gpus.start) & (links.a[wiring.ports.link] < gpus.stop)]
        for home in np.unique(part[links.b[own]]).tolist():
            spoken.setdefault(home, {})[kind.nic.key] = kind.nic.protocols
    return [
        f"the switches joined with {node_name(fabric, home)} and their NICs speak nothing in common: "
        + ", ".join(f"{key} {'/'.join(protocols)}" for key, protocols in devices.items())
        for home, devices in spoken.items()
        if not any(all(name in protocols for protocols in devices.values()) for name in next(iter(devices.values())))
    ]
