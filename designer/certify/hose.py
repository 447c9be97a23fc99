"""`any` demands: the worst permutation inside groups (the hose model), on Clos networks by cuts and an oblivious split.

Upper bound: a leaf, or a pod, cannot send more than its links out carry; X says what its endpoints may have to send.
Lower bound: every leaf splits whatever it sends in fixed parts w_j over the columns j of the network (a spine; with
three tiers the spines that share cores, with those cores). No link then sees more than w_j X of its leaf or pod, in
either direction, whatever the permutation. With c_lj links of leaf l into column j and u_pc of pod p to core c of it,
column j carries  C_j = min( min_l c_lj / X_l, sum over c of min_p u_pc / X_p ),  and the network the sum of C_j.
Inside a column only the even part of the links is counted (the least over its spines), so the bound holds for uneven
and damaged networks too; on uniform ones both bounds meet.
"""

from dataclasses import dataclass

import numpy as np

from designer.certify.problem import Floats, FlowProblem, Ints, joined

MAX_PATTERNS = 2000  # different leaves; the comparison takes the square of it


@dataclass(frozen=True)
class HoseBounds:
    """Bounds on the throughput of `any`; `ecmp` is a lower bound under even splitting, None where not known."""

    lower: float
    upper: float
    ecmp: float | None


def worst_rate(problem: FlowProblem, block: Ints, blocks: int) -> Floats:
    """X of each block in Gb/s: for `any` the sum over groups of rate x min(members inside, members outside).

    For all-to-all it is rate x inside x outside. What pairs send out of the block, or into it, comes on top.
    `block[v]` is the block of node v, -1 for none.
    """
    total = np.zeros(blocks)
    for pair in problem.pairs:
        one, other = block[pair.source], block[pair.target]
        leaving, entering = (one != other) & (one >= 0), (one != other) & (other >= 0)
        out = np.bincount(one[leaving], pair.rate[leaving], blocks)
        total += np.maximum(out, np.bincount(other[entering], pair.rate[entering], blocks))
    for hub in problem.hubs:
        inside = block[hub.node]
        chosen = inside >= 0
        key = hub.group[chosen] * blocks + inside[chosen]
        keys, index = np.unique(key, return_inverse=True)
        count = np.bincount(index.reshape(-1), hub.members[chosen], len(keys))
        size = np.bincount(hub.group, hub.members, hub.groups)
        others = size[keys // blocks] - count
        sent = hub.hose_rate * np.minimum(count, others) if hub.hose_rate else hub.pair_rate * count * others
        np.add.at(total, keys % blocks, sent)
    return total


def clos_hose(problem: FlowProblem) -> HoseBounds | None:
    """Bounds for a problem with groups that stand for `any`; None where it is no Clos.

    A Clos here: endpoints sit on leaves only; leaves join spines only, spines leaves and cores, cores spines only.
    """
    tiers = _tiers(problem)
    if tiers is None:
        return None
    leaf, spine, core = (np.flatnonzero(tiers == tier) for tier in range(3))
    leaf_x = np.zeros(problem.nodes)
    leaf_x[leaf] = worst_rate(problem, _numbered(problem.nodes, leaf), len(leaf))
    busy = leaf[leaf_x[leaf] > 0]
    if not len(busy):
        return HoseBounds(problem.most, problem.most, problem.most)
    low, high = problem.a, problem.b
    swap = tiers[low] > tiers[high]
    low, high = np.where(swap, high, low), np.where(swap, low, high)
    first = tiers[low] == 0
    pod = joined(problem.nodes, low[first], high[first])
    if len(core) == 0 or len(np.unique(pod[busy])) == 1:
        # What is above the spines, cores or leaves that send nothing, is not needed between leaves of one pod.
        return _two_tiers(problem, busy, spine, leaf_x, low, high)
    return _three_tiers(problem, busy, (leaf, spine, core), leaf_x, (low, high, first))


def _numbered(n: int, nodes: Ints) -> Ints:
    number = np.full(n, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    return number


def _tiers(problem: FlowProblem) -> Ints | None:
    """0 leaf, 1 spine, 2 core by distance from nodes with endpoints; None where links do not join neighbours tiers."""
    tier = np.full(problem.nodes, 3, dtype=np.int64)
    tier[problem.sources] = 0
    if not problem.relays.all():
        return None
    for step in range(2):
        for one, other in ((problem.a, problem.b), (problem.b, problem.a)):
            reached = other[(tier[one] == step) & (tier[other] > step + 1)]
            tier[reached] = step + 1
    used = np.unique(np.concatenate([problem.a, problem.b]))
    if (tier[used] > 2).any() or (np.abs(tier[problem.a] - tier[problem.b]) != 1).any():
        return None
    return tier


def _table(rows: Ints, columns: Ints, row: Ints, column: Ints, value: Floats) -> Floats:
    table = np.zeros((len(rows), len(columns)))
    np.add.at(table, (np.searchsorted(rows, row), np.searchsorted(columns, column)), value)
    return table


def _two_tiers(problem: FlowProblem, busy: Ints, spine: Ints, leaf_x: Floats, low: Ints, high: Ints) -> HoseBounds:
    chosen = np.isin(low, busy)
    table = _table(busy, spine, low[chosen], high[chosen], problem.capacity[chosen])
    links = _table(busy, spine, low[chosen], high[chosen], problem.links_of[chosen].astype(np.float64))
    need = leaf_x[busy][:, None]
    lower = max(float((table / need).min(axis=0).sum()), _by_pairs(table, leaf_x[busy]))
    upper = float((table.sum(axis=1) / leaf_x[busy]).min())
    # ECMP toward leaf m: leaf l splits by links over the spines that reach m.
    ecmp = upper
    for reaches in np.unique(links > 0, axis=0):
        share = links * reaches
        total = share.sum(axis=1, keepdims=True)
        if (total == 0).any():
            return HoseBounds(min(lower, problem.most), min(upper, problem.most), 0.0)
        share = share / total
        ecmp = min(ecmp, float((table / (need * np.maximum(share, 1e-300)))[share > 0].min()))
        targets = np.flatnonzero(((links > 0) == reaches).all(axis=1))
        worst = share.max(axis=0)
        down = table[targets] / (leaf_x[busy][targets][:, None] * np.maximum(worst, 1e-300))
        ecmp = min(ecmp, float(down[:, worst > 0].min()))
    return HoseBounds(min(lower, problem.most), min(upper, problem.most), min(ecmp, problem.most))


def _by_pairs(table: Floats, need: Floats) -> float:
    """Lower bound when leaf l sends to leaf m over spine s in proportion to min(c_ls, c_ms).

    Whatever l sends, at most the largest of these parts of it crosses to s: c_ls / (X_l max_m part) is carried, and
    the same downward. Suits uneven bundles, where the common part of all leaves is small.
    """
    rows, times = np.unique(np.column_stack([table, need]), axis=0, return_counts=True)
    patterns, needs = rows[:, :-1], rows[:, -1]
    if len(patterns) > MAX_PATTERNS:
        return 0.0
    value = np.inf
    for number, pattern in enumerate(patterns):
        shared = np.minimum(pattern, patterns)
        total = shared.sum(axis=1, keepdims=True)
        if times[number] == 1:
            shared, total = np.delete(shared, number, axis=0), np.delete(total, number, axis=0)
        if not len(shared):
            continue
        if (total == 0).any():
            return 0.0
        most = (shared / total).max(axis=0)
        used = most > 0
        value = min(value, float((pattern[used] / (needs[number] * most[used])).min()))
    return value


def _three_tiers(
    problem: FlowProblem,
    busy: Ints,
    tiers: tuple[Ints, Ints, Ints],
    leaf_x: Floats,
    links: tuple[Ints, Ints, np.ndarray],
) -> HoseBounds | None:
    leaf, spine, core = tiers
    low, high, first = links
    pod = joined(problem.nodes, low[first], high[first])
    column = joined(problem.nodes, low[~first], high[~first])
    pods, pod_of = np.unique(pod[spine], return_inverse=True)
    columns, column_of = np.unique(column[spine], return_inverse=True)
    pod_of, column_of = pod_of.reshape(-1), column_of.reshape(-1)
    block = np.full(problem.nodes, -1, dtype=np.int64)
    known = np.isin(pod[leaf], pods)
    block[leaf[known]] = np.searchsorted(pods, pod[leaf[known]])
    if (block[busy] < 0).any():
        return HoseBounds(0.0, 0.0, 0.0)
    pod_x = worst_rate(problem, block, len(pods))
    width = np.zeros((len(pods), len(columns)))  # spines of a pod in a column
    np.add.at(width, (pod_of, column_of), 1)

    # Links of each leaf into each column: as many as its spines have at least, times the spines.
    number = _numbered(problem.nodes, spine)
    up = first & np.isin(low, busy)
    per_spine = np.full((len(busy), len(columns)), np.inf)
    found = np.zeros((len(busy), len(columns)))
    at = (np.searchsorted(busy, low[up]), column_of[number[high[up]]])
    np.minimum.at(per_spine, at, problem.capacity[up])
    np.add.at(found, at, 1)
    leaf_width = width[block[busy]]
    even = np.where(found == leaf_width, np.where(np.isfinite(per_spine), per_spine, 0.0), 0.0) * leaf_width
    by_leaf = (even / leaf_x[busy][:, None]).min(axis=0)

    # Uplinks of each pod to each core: as many as its spines have at least, times the spines.
    above = ~first
    spine_at, core_at = number[low[above]], np.searchsorted(core, high[above])
    pod_core = pod_of[spine_at] * len(core) + core_at
    cell, index = np.unique(pod_core, return_inverse=True)
    index = index.reshape(-1)
    least = np.full(len(cell), np.inf)
    np.minimum.at(least, index, problem.capacity[above])
    spines_found = np.bincount(index, minlength=len(cell))
    core_column = np.zeros(len(core), dtype=np.int64)
    core_column[core_at] = column_of[spine_at]
    full = width[cell // len(core), core_column[cell % len(core)]]
    table = np.zeros((len(pods), len(core)))
    table[cell // len(core), cell % len(core)] = np.where(spines_found == full, least * full, 0.0)
    sending = pod_x > 0
    if sending.any():
        per_core = (table[sending] / pod_x[sending][:, None]).min(axis=0)
        by_pod = np.bincount(core_column, per_core, len(columns))
        lower = float(np.minimum(by_leaf, by_pod).sum())
    else:
        lower = float(by_leaf.sum())
    cut = np.zeros(problem.nodes)
    np.add.at(cut, low[up], problem.capacity[up])
    upper = float((cut[busy] / leaf_x[busy]).min())
    pod_cut = np.bincount(pod_of[spine_at], problem.capacity[above], len(pods))
    if sending.any():
        upper = min(upper, float((pod_cut[sending] / pod_x[sending]).min()))
    return HoseBounds(min(lower, problem.most), min(upper, problem.most), None)
