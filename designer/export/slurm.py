"""Slurm's `topology.conf` as a tree and as blocks, and `topology.yaml` with both.

A server stands under one switch of Slurm's tree: the leaf of its first NIC's first port, which is what its other NICs
agree on where rails are cabled alike. As Slurm's guide advises, the tree has these leaves and one switch above each pod
and each network, not every spine; one above all stands for the HB domains that join separate networks. A block is an HB
domain; where a domain is one server it is the servers of a leaf.

Source: Slurm documentation, "Topology Guide", topology.conf(5) and topology.yaml(5).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from designer.certify.wiring import components
from designer.export.plan import SERVER, Plan
from designer.fabric.fabric import GPU, LEAF, Column
from designer.files import text_written_atomically

MAX_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass(frozen=True)
class Branch:
    """A switch of Slurm's tree, with either servers or switches below it."""

    name: str
    servers: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


def write_slurm_tree(plan: Plan, path: Path) -> None:
    """Writes `topology.conf` for `topology/tree`.

    Raises:
        ExportError: a name that Slurm does not take.
        OutputError: it cannot be written.
    """
    branches = slurm_tree(plan)
    with text_written_atomically(path) as file:
        for branch in branches:
            below = "Nodes" if branch.servers else "Switches"
            file.write(f"SwitchName={branch.name} {below}={hostlist(branch.servers or branch.switches)}\n")


def write_slurm_block(plan: Plan, path: Path) -> None:
    """Writes `topology.conf` for `topology/block` (Slurm 23.11 and later).

    Raises:
        ExportError: a name that Slurm does not take.
        OutputError: it cannot be written.
    """
    blocks = slurm_blocks(plan)
    with text_written_atomically(path) as file:
        for name, servers in blocks:
            file.write(f"BlockName={name} Nodes={hostlist(servers)}\n")
        file.write(f"BlockSizes={','.join(map(str, block_sizes(blocks)))}\n")


def write_slurm_yaml(plan: Plan, path: Path) -> None:
    """Writes `topology.yaml` (Slurm 25.05 and later) with the tree, which is the default, and the blocks.

    Raises:
        ExportError: a name that Slurm does not take.
        OutputError: it cannot be written.
    """
    branches, blocks = slurm_tree(plan), slurm_blocks(plan)
    with text_written_atomically(path) as file:
        file.write("- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n")
        for branch in branches:
            below = "nodes" if branch.servers else "children"
            names = hostlist(branch.servers or branch.switches)
            file.write(f'      - switch: "{branch.name}"\n        {below}: "{names}"\n')
        sizes = ", ".join(map(str, block_sizes(blocks)))
        file.write(f"- topology: block\n  cluster_default: false\n  block:\n    block_sizes: [{sizes}]\n    blocks:\n")
        for name, servers in blocks:
            file.write(f'      - block: "{name}"\n        nodes: "{hostlist(servers)}"\n')


def slurm_tree(plan: Plan) -> list[Branch]:
    """The switches of the tree, leaves first.

    Raises:
        ExportError: a name that Slurm does not take.
    """
    names, nodes, home = plan.devices.name, plan.fabric.nodes, _leaf_of_server(plan)
    part_of_node = _parts(plan)
    branches: list[Branch] = []
    by_part: dict[int, dict[int, list[str]]] = {}
    for leaf, servers in _gathered(home, names).items():
        node = int(plan.devices.node[leaf])
        branches.append(Branch(names[leaf], tuple(servers)))
        by_part.setdefault(int(part_of_node[node]), {}).setdefault(int(nodes.pod[node]), []).append(names[leaf])
    highest: list[str] = []
    for number, pods in enumerate(by_part.values()):
        top = f"top{number}" if len(by_part) > 1 else "top"
        below = next(iter(pods.values()))
        if len(pods) > 1:
            width = len(str(max(pods)))
            inside = [Branch(f"{top}-pod{pod:0{width}}", switches=tuple(leaves)) for pod, leaves in pods.items()]
            below = [branch.name for branch in inside]
            branches += inside
        branches += [Branch(top, switches=tuple(below))] if len(below) > 1 else []
        highest.append(branches[-1].name if len(below) > 1 else below[0])
    if len(highest) > 1:
        branches.append(Branch("top", switches=tuple(highest)))
    _check(plan, names[: len(home)])
    _check(plan, [branch.name for branch in branches])
    return branches


def slurm_blocks(plan: Plan) -> list[tuple[str, tuple[str, ...]]]:
    """Blocks as (name, servers).

    Raises:
        ExportError: a name that Slurm does not take.
    """
    cluster, first = plan.file.cluster, plan.devices.node[plan.devices.role == SERVER]
    domain = first // cluster.hb_domain
    if len(np.unique(domain)) == len(domain):
        domain = _leaf_of_server(plan)
    names = plan.devices.name[: len(first)]
    _check(plan, names)
    servers = list(_gathered(domain, names).values())
    width = max(2, len(str(len(servers) - 1)))
    return [(f"block{number:0{width}}", tuple(below)) for number, below in enumerate(servers)]


def block_sizes(blocks: Sequence[tuple[str, Sequence[str]]]) -> list[int]:
    """The smallest block, and it doubled until all blocks are together: the sizes that NVIDIA's topograph chooses."""
    least = min(len(servers) for _, servers in blocks)
    return [least << power for power in range(len(blocks).bit_length())]


def hostlist(names: Sequence[str]) -> str:
    """Names as Slurm's host list, with ranges of the number at their end."""
    words: list[str] = []
    parsed = [_NUMBERED.fullmatch(name) for name in names]
    keys = [(match[1], len(match[2])) if match else (name, -1) for match, name in zip(parsed, names, strict=True)]
    for (stem, width), members in groupby(zip(keys, parsed, strict=True), key=itemgetter(0)):
        numbers = [int(match[2]) for _, match in members if match]
        words += [f"{stem}{_ranges(numbers, width)}" if numbers else stem]
    return ",".join(words)


def _ranges(numbers: Sequence[int], width: int) -> str:
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    words = [f"{one:0{width}}" + (f"-{last:0{width}}" if last > one else "") for one, last in spans]
    return words[0] if len(numbers) == 1 else f"[{','.join(words)}]"


def _leaf_of_server(plan: Plan) -> Column:
    """For every server the device that the first port of its first connected NIC leads to."""
    links = plan.fabric.links
    host = np.flatnonzero(plan.fabric.nodes.kind[links.a] == GPU)
    host = host[np.lexsort((links.a_lane[host], links.a_cage[host], links.a[host]))]
    server, first = np.unique(plan.a.device[host], return_index=True)
    count = int((plan.devices.role == SERVER).sum())
    if len(server) < count:
        lost = plan.devices.name[int(np.setdiff1d(np.arange(count), server)[0])]
        raise plan.refuse(f"{lost} without a link", "a link from every server")
    return plan.b.device[host[first]]


def _parts(plan: Plan) -> Column:
    """For every node the least switch that links between switches join it with."""
    links = plan.fabric.links
    between = plan.fabric.nodes.kind[links.a] >= LEAF
    return components(plan.fabric.n_nodes, links.a[between], links.b[between])


def _gathered(group: Column, names: Sequence[str]) -> dict[int, list[str]]:
    """Names by group, groups in order."""
    numbers: list[int] = group.tolist()
    result: dict[int, list[str]] = {number: [] for number in sorted(set(numbers))}
    for number, name in zip(numbers, names, strict=False):
        result[number].append(name)
    return result


def _check(plan: Plan, names: Sequence[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise plan.refuse(f"{times} switches of Slurm named {name!r}", "names that differ")
        if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
            allowed = f"at most {MAX_NAME} letters, digits, . _ -, as Slurm takes them"
            raise plan.refuse(f"the name {name!r}", allowed)
