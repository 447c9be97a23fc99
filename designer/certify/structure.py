"""The structure of a fabric: whether it can be bought and plugged in as it is said, and is wired as it claims.

All checks start from the plain columns of nodes and links and work on whole columns: half a million links take seconds.
"""

from collections.abc import Mapping

import numpy as np

from designer.catalog.components import Catalog
from designer.certify.cabling import cabling_checks, kinds_of
from designer.certify.certificate import Check, Structure
from designer.certify.mixed_rules import mixed_checks
from designer.certify.owned import owned_findings
from designer.certify.placement_rules import placement_checks
from designer.certify.ports import Ends, NicPorts, nic_ports, port_checks
from designer.certify.tree_rules import tree_rules
from designer.certify.wiring import Wiring
from designer.fabric.fabric import Fabric
from designer.fabric.pairs import worst_leaf_pair
from designer.instance.instance import Cluster

CLOS, MIXED = "clos", "mixed-clos"


def check_structure(
    fabric: Fabric,
    catalog: Catalog,
    cluster: Cluster,
    declared: Mapping[str, int],
    *,
    symmetric_uplinks: bool = True,
    family: str = CLOS,
    any_port: bool = False,
) -> Structure:
    """Every structural check of a fabric whose columns are in range.

    `declared` are counts that the recount must equal, by the names of `Fabric.counts`; others are left alone. A fabric
    of another family than "clos" has no tiers, rails and planes to keep to; one of "mixed-clos" has, with what is alike
    in a Clos alike for each kind of servers. With `any_port` the GPUs of a leaf may be on its ports in any order.
    """
    ends = Ends(fabric)
    ports = nic_ports(fabric, cluster)
    kind = kinds_of(cluster, np.arange(fabric.gpus)) if family == MIXED else np.zeros(fabric.gpus, dtype=np.int64)
    wiring = Wiring(fabric, cluster.rails, ports, symmetric_uplinks, kind, any_port)
    shaped = {CLOS: wiring.checks, MIXED: lambda: mixed_checks(wiring, catalog, cluster)}
    checks = [
        *port_checks(fabric, catalog, ends),
        *ports.checks,
        *cabling_checks(fabric, catalog, cluster, ends, ports),
        *shaped.get(family, lambda: placement_checks(wiring, catalog, cluster))(),
        Check.of("counts", _counts(fabric, cluster, ports, declared)),
    ]
    if fabric.owned:
        checks.append(Check.of("switches there before", owned_findings(fabric, catalog, cluster, ends)))
    return Structure(tuple(checks), (_leaf_pairs(fabric), tree_rules(fabric)))


def _counts(fabric: Fabric, cluster: Cluster, ports: NicPorts, declared: Mapping[str, int]) -> list[str]:
    counted = fabric.counts()
    found = [
        f"{name}: {declared[name]} declared, {count} in the fabric"
        for name, count in counted.items()
        if name in declared and declared[name] != count
    ]
    if fabric.gpus != cluster.gpus:
        found.append(f"gpus: {cluster.gpus} in the cluster, {fabric.gpus} in the fabric")
    modes = [mode for mode in ports.modes if mode is not None]
    if len(modes) == len(ports.modes):
        management = cluster.management_ports * counted["fabrics"]
        hosts = [(len(gpus), mode.ports) for gpus, mode in zip(cluster.kind_ranges(), modes, strict=True)]
        due = sum(gpus * planes for gpus, planes in hosts) + management
        if counted["endpoint_links"] != due:
            parts = [f"{gpus} GPUs x {planes} planes" for gpus, planes in hosts]
            parts += [f"{management} management ports"] if management else []
            found.append(f"endpoint_links: {counted['endpoint_links']} in the fabric, {' + '.join(parts)} are {due}")
    return found


def _leaf_pairs(fabric: Fabric) -> Check:
    worst = worst_leaf_pair(fabric)
    found = [f"two leaves share spines for {100 * worst:.2f} % of their uplinks only"] if worst < 1 else []
    return Check.of("worst pair of leaves", found)
