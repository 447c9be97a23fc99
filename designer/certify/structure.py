"""The structure of a fabric: whether it can be bought and plugged in as it is said, and is wired as it claims.

All checks start from the plain columns of nodes and links and work on whole columns: half a million links take seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from designer.catalog.components import Catalog, Nic
from designer.certify.cabling import cabling_checks
from designer.certify.certificate import Check, Structure
from designer.certify.ports import Ends, NicPorts, nic_ports, port_checks
from designer.certify.tree_rules import tree_rules
from designer.certify.wiring import Wiring
from designer.fabric.fabric import Fabric
from designer.fabric.pairs import worst_leaf_pair


@dataclass(frozen=True)
class Endpoints:
    """What a fabric must attach: GPUs in HB domains, one NIC each, on `rails` rails.

    `management_ports` are further leaf ports in each fabric.
    """

    gpus: int
    nic: Nic
    hb_domain: int
    rails: int
    management_ports: int = 0


def check_structure(
    fabric: Fabric,
    catalog: Catalog,
    endpoints: Endpoints,
    declared: Mapping[str, int],
    *,
    symmetric_uplinks: bool = True,
) -> Structure:
    """Every structural check of a fabric whose columns are in range.

    `declared` are counts that the recount must equal, by the names of `Fabric.counts`; others are left alone.
    """
    ends = Ends(fabric)
    ports = nic_ports(fabric, endpoints.nic)
    wiring = Wiring(fabric, endpoints.rails, ports, symmetric_uplinks)
    checks = [
        *port_checks(fabric, catalog, ends),
        *ports.checks,
        *cabling_checks(fabric, catalog, endpoints.nic, ends, ports),
        *wiring.checks(),
        Check.of("counts", _counts(fabric, endpoints, ports, declared)),
    ]
    return Structure(tuple(checks), (_leaf_pairs(fabric), tree_rules(fabric)))


def _counts(fabric: Fabric, endpoints: Endpoints, ports: NicPorts, declared: Mapping[str, int]) -> list[str]:
    counted = fabric.counts()
    found = [
        f"{name}: {declared[name]} declared, {count} in the fabric"
        for name, count in counted.items()
        if name in declared and declared[name] != count
    ]
    if fabric.gpus != endpoints.gpus:
        found.append(f"gpus: {endpoints.gpus} in the cluster, {fabric.gpus} in the fabric")
    if ports.mode is not None:
        management = endpoints.management_ports * counted["fabrics"]
        due = endpoints.gpus * ports.mode.ports + management
        if counted["endpoint_links"] != due:
            also = f" + {management} management ports" if management else ""
            found.append(
                f"endpoint_links: {counted['endpoint_links']} in the fabric, "
                f"{endpoints.gpus} GPUs x {ports.mode.ports} planes{also} are {due}"
            )
    return found


def _leaf_pairs(fabric: Fabric) -> Check:
    worst = worst_leaf_pair(fabric)
    found = [f"two leaves share spines for {100 * worst:.2f} % of their uplinks only"] if worst < 1 else []
    return Check.of("worst pair of leaves", found)
