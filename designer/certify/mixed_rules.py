"""What holds for Clos networks of servers of several kinds: a Clos for each, and leaves that serve one kind only."""

import numpy as np

from designer.catalog.components import Catalog
from designer.certify.certificate import Check
from designer.certify.placement_rules import protocol_findings
from designer.certify.ports import told
from designer.certify.wiring import Wiring
from designer.fabric.fabric import LEAF
from designer.instance.instance import Cluster


def mixed_checks(wiring: Wiring, catalog: Catalog, cluster: Cluster) -> list[Check]:
    """What a Clos keeps to, kind by kind, and one protocol for all that is joined."""
    return [
        *wiring.checks(),
        Check.of("kinds of servers", _mixed_leaves(wiring)),
        Check.of("protocols", protocol_findings(wiring, catalog, cluster)),
    ]


def _mixed_leaves(wiring: Wiring) -> list[str]:
    """GPUs on a leaf that serves another kind of servers, where it is not the only switch of its fabric."""
    nodes, links = wiring.fabric.nodes, wiring.fabric.links
    switches = np.bincount(nodes.fabric[wiring.switches].clip(0), minlength=1)
    link = wiring.ports.link
    home = links.b[link]
    own, kind = wiring.kind_of_node[home], wiring.kind[links.a[link]]
    shared = (nodes.kind[home] == LEAF) & (switches[nodes.fabric[home].clip(0)] > 1)
    return told(
        link[shared & (own != kind)],
        lambda row: (
            f"GPU {links.a[row]} is on {wiring.name(int(links.b[row]))}, "
            f"which serves another kind of servers (link {row})"
        ),
    )
