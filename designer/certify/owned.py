"""Switches of a fabric that were there before: they are those of the cluster, and new links take free ports only."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from designer.catalog.components import Catalog, Switch
from designer.certify.ports import Ends
from designer.fabric.fabric import Fabric, OwnedSwitch
from designer.instance.instance import Cluster, ExistingSwitch


def owned_findings(fabric: Fabric, catalog: Catalog, cluster: Cluster, ends: Ends) -> list[str]:
    """Owned switches that the cluster does not have, or has otherwise, and links on ports that were not free."""
    existing = {switch.name: switch for switch in cluster.existing}
    found: list[str] = []
    for switch in fabric.owned:
        model = fabric.models[int(fabric.nodes.model[switch.node])]
        known = existing.get(switch.name)
        said = f"switch {switch.name} (node {switch.node})"
        if known is None:
            found.append(f"{said}: the cluster has no switch of this name, so it has to be bought")
        elif (model, switch.free_ports) != (known.switch.key, known.free_ports):
            here, there = f"{switch.free_ports} free ports", f"{known.free_ports} free ports"
            found.append(f"{said}: model {model}, {here}; the cluster has model {known.switch.key}, {there}")
        else:
            found += [f"{said}: {problem}" for problem in _port_problems(switch, known, catalog.switches[model], ends)]
    return found


def _port_problems(owned: OwnedSwitch, known: ExistingSwitch, switch: Switch, ends: Ends) -> Iterator[str]:
    """Links on the switch against its free ports.

    With c ports of its native mode to a cage, the last ceil(free / c) cages are free, and a port of a cage that runs
    as p ports takes c / p of a free port. What was in use before stays in use: of the first of these cages the last
    (free mod c) / c of its ports are free, where that is not 0.
    """
    native = switch.native_mode
    mine = np.flatnonzero(ends.node == owned.node)
    first = switch.cages - -(-known.free_ports // native.ports_per_cage)
    taken = mine[ends.cage[mine] < first]
    if len(taken):
        cages = ", ".join(map(str, np.unique(ends.cage[taken]).tolist()))
        yield f"links in cages {cages}, free are {first} to {switch.cages - 1}"
    half = Fraction(-known.free_ports % native.ports_per_cage, native.ports_per_cage)
    weight = Fraction(0)
    for gbps, count in zip(*np.unique(ends.gbps[mine], return_counts=True), strict=True):
        finest = max((mode.ports_per_cage for mode in switch.modes_at(int(gbps))), default=native.ports_per_cage)
        weight += Fraction(native.ports_per_cage, finest) * int(count)
        shared = mine[(ends.cage[mine] == first) & (ends.gbps[mine] == gbps)]
        if len(shared) and int(ends.lane[shared].min()) < half * finest:
            yield f"a link at port {int(ends.lane[shared].min())} of cage {first}, a part of which was in use"
    if weight > known.free_ports:
        yield f"links take {float(weight):g} ports, free are {known.free_ports}"
    left = switch.max_ports - (switch.radix(native) - known.free_ports)
    if len(mine) > left:
        yield f"{len(mine)} links, it runs {left} more ports at most"
