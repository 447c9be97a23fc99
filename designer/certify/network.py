"""From what is left of a fabric, and a demand, to the flow problem of each unit."""

from dataclasses import replace

import numpy as np

from designer.certify.demand import Demand, GroupDemand, PairDemand, common_slots
from designer.certify.problem import Floats, FlowProblem, Hubs, Ints, Pairs, weigh
from designer.certify.symmetry import joint_classes
from designer.certify.view import Bools, FabricView
from designer.fabric.fabric import LEAF


def unit_problems(view: FabricView, demand: Demand) -> list[list[FlowProblem]]:
    """The flow problems of each slot's units: traffic of a pair is split over the units that both GPUs reach.

    Groups are split in proportion to the ports; pairs evenly over what is left.
    """
    table, ports = view.attachment
    total = ports.sum(axis=1)
    parts: list[list[PairDemand]] = [[] for _ in range(table.shape[1])]
    for pair in demand.pairs:
        common = common_slots(view, pair)
        count = np.maximum(common.sum(axis=1), 1)
        for slot, share in enumerate(parts):
            chosen = common[:, slot]
            share.append(PairDemand(pair.source[chosen], pair.target[chosen], pair.rate[chosen] / count[chosen]))
    problems: list[list[FlowProblem]] = [[] for _ in range(table.shape[1])]
    for slot in range(table.shape[1]):
        share = np.divide(ports[:, slot], total, out=np.zeros(len(total)), where=total > 0)
        for unit in np.unique(table[:, slot][table[:, slot] >= 0]).tolist():
            members = table[:, slot] == unit
            typical = float(share[members].max())
            groups = [
                replace(group, pair_rate=group.pair_rate * typical, hose_rate=group.hose_rate * typical)
                for group in demand.groups
            ]
            problems[slot].append(_unit_problem(view, unit, slot, members, groups, parts[slot], demand.scale_up_most))
    return problems


def _unit_problem(
    view: FabricView,
    unit: int,
    slot: int,
    members: Bools,
    groups: list[GroupDemand],
    pairs: list[PairDemand],
    scale_up_most: float,
) -> FlowProblem:
    fabric = view.fabric
    gpus, links = fabric.gpus, fabric.links
    inside = view.unit_of_node == unit
    hosts = np.flatnonzero(view.alive & (links.a < gpus) & inside[links.b])
    every = np.flatnonzero((links.a < gpus) & inside[links.b])
    absorb = len(np.unique(links.a[every])) == len(every)
    switches = np.flatnonzero(inside)
    sites = switches if absorb else np.concatenate([np.flatnonzero(members), switches])
    local = np.full(fabric.n_nodes, -1, dtype=np.int64)
    local[sites] = np.arange(len(sites))
    place = np.full(gpus, -1, dtype=np.int64)
    place[links.a[hosts]] = local[links.b[hosts]] if absorb else local[links.a[hosts]]
    rows = np.flatnonzero(view.alive & (local[links.a] >= 0) & (local[links.b] >= 0))
    a, b, n = local[links.a[rows]], local[links.b[rows]], len(sites)
    key = np.minimum(a, b) * n + np.maximum(a, b)
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    capacity = weigh(index, links.gbps[rows], len(first))
    together = np.bincount(index.reshape(-1), minlength=len(first))
    kind = fabric.nodes.kind[sites]
    sent, received = np.zeros(gpus), np.zeros(gpus)
    hubs = tuple(_hubs(group, members, place, sent, received) for group in groups)
    flows = tuple(_pairs(pair, members, place, n, sent, received) for pair in pairs)
    busiest, nic = np.maximum(sent, received), view.port_gbps[:, slot]
    busy = busiest > 0
    most = float((nic[busy] / busiest[busy]).min(initial=np.inf))
    return FlowProblem(
        n,
        np.where(kind >= LEAF, 1, 0),
        kind >= LEAF,
        a[first],
        b[first],
        capacity,
        together,
        tuple(hub for hub in hubs if len(hub.node)),
        tuple(flow for flow in flows if len(flow.source)),
        min(most, scale_up_most),
    )


def _hubs(group: GroupDemand, members: Bools, place: Ints, sent: Floats, received: Floats) -> Hubs:
    chosen = members[group.gpu] & (place[group.gpu] >= 0)
    gpu = group.gpu[chosen]
    name = np.unique(group.group[chosen], return_inverse=True)[1].reshape(-1)
    others = np.bincount(name)[name] - 1
    rate = np.where(others > 0, group.hose_rate, 0.0) if group.hose_rate else group.pair_rate * others
    sent[gpu] += rate
    received[gpu] += rate
    entry = joint_classes(name, place[gpu])
    _, first, count = np.unique(entry, return_index=True, return_counts=True)
    node, at = place[gpu][first], name[first]
    several = np.bincount(at)[at] > 1 if len(at) else np.zeros(0, dtype=bool)
    names = np.unique(at[several], return_inverse=True)[1].reshape(-1)  # groups within one node need no network
    return Hubs(node[several], names, count[several], group.pair_rate, group.hose_rate)


def _pairs(pair: PairDemand, members: Bools, place: Ints, n: int, sent: Floats, received: Floats) -> Pairs:
    pair = pair.of(members[pair.source] & members[pair.target])
    np.add.at(sent, pair.source, pair.rate)
    np.add.at(received, pair.target, pair.rate)
    one, other = place[pair.source], place[pair.target]
    apart = one != other
    key, index = np.unique(one[apart] * n + other[apart], return_inverse=True)
    return Pairs(key // max(n, 1), key % max(n, 1), weigh(index, pair.rate[apart], len(key)))
