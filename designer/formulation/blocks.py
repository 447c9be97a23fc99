"""Blocks of endpoints for link placement: as fine as the program can hold, each small enough for a switch."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from designer.catalog.components import NicMode
from designer.formulation.block_demand import SLACK, BlockDemand
from designer.formulation.placement import Block
from designer.instance.instance import Instance
from designer.workload.cuts import Floats, Ints
from designer.workload.traffic import Traffic

MOST_BLOCKS = 44
MOST_SINGLE = 24  # endpoints up to which each is a block of its own
EACH = "any endpoint on any switch"


def line_rates(instance: Instance, mode: NicMode) -> Floats:
    """(gpus,) rate of each GPU's port in one plane; `mode` is that of a regular cluster's NICs."""
    rates: list[Floats] = []
    for kind in instance.cluster.kinds():
        gbps = one_port(kind.nic.modes).gbps if instance.cluster.irregular else mode.gbps
        rates.append(np.full(kind.count * kind.gpus, float(gbps)))
    return np.concatenate(rates)


def one_port(modes: tuple[NicMode, ...]) -> NicMode:
    """The mode of one port; the loader refuses irregular clusters whose NICs have none."""
    return next(mode for mode in modes if mode.ports == 1)


def blocks_of(
    instance: Instance, traffic: Traffic, mode: NicMode, sides: int, room: int
) -> tuple[tuple[Block, ...], Ints, str]:
    """Blocks, the block of each GPU, and in words what a block is.

    Single endpoints where they are few; else the NICs of a server on one rail; else those of a server (on one side),
    where traffic does not keep to rails; else of ever more servers on one rail. `room` is what the largest switch can
    hold. Two `sides` split the rails.
    """
    server, kind = _servers(instance)
    gpu = np.arange(instance.cluster.gpus)
    rail = gpu % traffic.rails
    side = (rail >= traffic.rails // 2).astype(np.int64) if sides == 2 else np.zeros_like(gpu)
    on_rails = all(phase.across == "rail" for phase in traffic.network_phases)
    chosen, words = gpu, EACH
    for named, key in _keys(gpu, server, kind, rail, side, on_rails=on_rails):
        block = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1)
        first = np.unique(block, return_index=True)[1]
        block = np.argsort(np.argsort(first))[block]  # numbered in the order of their first GPUs
        if np.bincount(block).max() > room:
            continue
        chosen, words = block, named
        if block.max() < MOST_BLOCKS:
            break
    kinds = instance.cluster.kinds()
    members: dict[int, list[int]] = defaultdict(list)
    for number, block in enumerate(chosen.tolist()):
        members[block].append(number)
    blocks: list[Block] = []
    for block in range(len(members)):
        gpus = members[block]
        nic = kinds[int(kind[gpus[0]])].nic
        own = one_port(nic.modes) if instance.cluster.irregular else mode
        blocks.append(Block(tuple(gpus), nic, own, int(side[gpus[0]])))
    return tuple(blocks), chosen, words


def _servers(instance: Instance) -> tuple[Ints, Ints]:
    """For each GPU its server, and the kind of the server."""
    server: list[Ints] = []
    kind: list[Ints] = []
    first = 0
    for number, item in enumerate(instance.cluster.kinds()):
        server.append(first + np.repeat(np.arange(item.count), item.gpus))
        kind.append(np.full(item.count * item.gpus, number))
        first += item.count
    return np.concatenate(server), np.concatenate(kind)


def _keys(gpu: Ints, server: Ints, kind: Ints, rail: Ints, side: Ints, *, on_rails: bool) -> Iterator[tuple[str, Ints]]:
    """Candidates, the preferred ones first: parts of rails where traffic keeps to them, else servers."""
    if len(gpu) <= MOST_SINGLE:
        yield EACH, gpu[None, :]
    yield "the NICs of a server on one rail share a switch", np.stack([server, rail])
    part = " on one side of its domains" if side.any() else ""
    whole = f"the NICs of a server{part} share a switch", np.stack([server, side])
    if not on_rails:
        yield whole
    many = 2
    while many <= 2 * int(server.max() + 1):
        yield f"the NICs of {many} servers on one rail share a switch", np.stack([kind, server // many, rail])
        many *= 2
    if on_rails:
        yield whole


def with_alike(blocks: tuple[Block, ...], demands: tuple[BlockDemand, ...]) -> tuple[int, ...]:
    """For each block the first one that it can be swapped with, without any demand changing."""
    found: list[int] = []
    for number, block in enumerate(blocks):
        leaders = [other for other in dict.fromkeys(found) if _same_kind(blocks[other], block)]
        leader = next((other for other in leaders if _swappable(other, number, demands)), number)
        found.append(leader)
    return tuple(found)


def _same_kind(one: Block, other: Block) -> bool:
    return (one.ports, one.nic.key, one.mode, one.side) == (other.ports, other.nic.key, other.mode, other.side)


def _swappable(one: int, other: int, demands: tuple[BlockDemand, ...]) -> bool:
    for demand in demands:
        order = np.arange(len(demand.gbps))
        order[[one, other]] = order[[other, one]]
        if np.abs(demand.gbps[order][:, order] - demand.gbps).max() > SLACK:
            return False
        hoses = sorted((hose.gbps, hose.members.tolist()) for hose in demand.hoses)
        if hoses != sorted((hose.gbps, hose.members[order].tolist()) for hose in demand.hoses):
            return False
    return True
