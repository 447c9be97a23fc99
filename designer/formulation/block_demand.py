"""What blocks of endpoints send to each other in each step, as matrices, for networks that have no shape to lean on.

A block is a set of GPUs whose ports sit on one switch. Rates are Gb/s of one plane, at the floors of the phases.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from designer.errors import DesignerError
from designer.workload.cuts import Floats, Ints
from designer.workload.traffic import Component, Phase, Step, Traffic

MOST_TOGETHER = 64  # choices of one step of each job that run at once
SLACK = 1e-9


class TooManyStepsError(DesignerError):
    """More choices of steps that may coincide than a program can hold."""


@dataclass(frozen=True)
class Hose:
    """A group whose members send `gbps` each to the worst permutation; `members` of it are in each block."""

    gbps: float
    members: Ints


@dataclass(frozen=True)
class BlockDemand:
    """What is to be carried at one time: `gbps` (blocks, blocks) between blocks, and groups that mean `any`."""

    name: str
    gbps: Floats
    hoses: tuple[Hose, ...] = ()

    def at(self, share: float) -> "BlockDemand":
        """The same at a part of its rates."""
        hoses = tuple(replace(hose, gbps=share * hose.gbps) for hose in self.hoses)
        return BlockDemand(self.name, share * self.gbps, hoses)

    @property
    def asks(self) -> bool:
        """Whether any block sends to another."""
        return bool((self.gbps > SLACK).any()) or bool(self.hoses)

    def within(self, other: "BlockDemand") -> bool:
        """Whether a network that carries `other` carries this one for certain: each hose has room in one of its."""
        if (self.gbps > other.gbps + SLACK).any():
            return False
        rooms = [hose.gbps * hose.members for hose in other.hoses]
        for mine in self.hoses:
            asked = mine.gbps * mine.members
            place = next((number for number, room in enumerate(rooms) if (asked <= room + SLACK).all()), None)
            if place is None:
                return False
            rooms[place] = rooms[place] - asked
        return True


def block_demands(traffic: Traffic, block_of_gpu: Ints, line_gbps: Floats) -> list[BlockDemand]:
    """Every step at its floor, those of jobs on separate GPUs combined, without those that another one covers.

    Args:
        traffic: the phases; a rate of 1 is the slowest NIC among the GPUs of the phase.
        block_of_gpu: (gpus,) the block of each GPU.
        line_gbps: (gpus,) rate of each GPU's port in the plane.

    Raises:
        TooManyStepsError: jobs that run at once have more than 64 choices of steps.
    """
    blocks = int(block_of_gpu.max()) + 1
    sets: list[list[BlockDemand]] = []
    for phases in traffic.concurrent():
        steps: list[BlockDemand] = []
        for phase in phases:
            line = float(line_gbps[phase.first_gpu : phase.first_gpu + phase.gpus].min())
            found = [_of_step(traffic, phase, step, block_of_gpu, line * phase.floor, blocks) for step in phase.steps]
            steps += [step for step in found if step.asks]
        sets.append(uncovered(steps))
    sets = [steps for steps in sets if steps]
    if int(np.prod([len(steps) for steps in sets])) > MOST_TOGETHER:
        raise TooManyStepsError(f"jobs that run at once have more than {MOST_TOGETHER} choices of their steps")
    return uncovered([_together(chosen) for chosen in product(*sets)]) if sets else []


def uncovered(demands: Sequence[BlockDemand]) -> list[BlockDemand]:
    """The demands without those that another one covers."""
    kept: list[BlockDemand] = []
    for demand in sorted(demands, key=lambda item: -float(item.gbps.sum())):
        if not any(demand.within(other) for other in kept):
            kept = [other for other in kept if not other.within(demand)] + [demand]
    return kept


def _together(chosen: Sequence[BlockDemand]) -> BlockDemand:
    total = np.sum([demand.gbps for demand in chosen], axis=0)
    hoses = tuple(hose for demand in chosen for hose in demand.hoses)
    return BlockDemand(" + ".join(demand.name for demand in chosen), total, hoses)


def _of_step(
    traffic: Traffic, phase: Phase, step: Step, block_of_gpu: Ints, line_gbps: float, blocks: int
) -> BlockDemand:
    unit = traffic.hb_domain if phase.across == "rail" else 1
    gpu = np.arange(phase.first_gpu, phase.first_gpu + phase.gpus)
    place, inside = (gpu - phase.first_gpu) // unit, gpu % unit
    gbps = np.zeros((blocks, blocks))
    hoses: list[Hose] = []
    for part in step.components:
        rate = part.rate * line_gbps
        if part.pattern not in ("any", "all-to-all"):
            target = gpu + (_partner(part, place) - place) * unit
            np.add.at(gbps, (block_of_gpu[gpu], block_of_gpu[target]), rate)
            continue
        period = part.stride * part.size
        group = (place // period * part.stride + place % part.stride) * unit + inside
        for members in _members(np.unique(group, return_inverse=True)[1].reshape(-1), block_of_gpu[gpu], blocks):
            if part.pattern == "all-to-all":
                gbps += np.outer(members, members) * (rate / max(part.size - 1, 1))
            elif np.count_nonzero(members) > 1:
                hoses.append(Hose(rate, members))
    np.fill_diagonal(gbps, 0.0)
    return BlockDemand(f"{phase.job} {phase.name}", gbps, tuple(hoses))


def _partner(part: Component, place: Ints) -> Ints:
    digit = place // part.stride % part.size
    target = (digit + part.by) % part.size if part.pattern == "shift" else digit ^ part.by
    return place + (target - digit) * part.stride


def _members(group: Ints, block: Ints, blocks: int) -> Iterator[Ints]:
    """For each group, how many of its members are in each block."""
    table = np.zeros((int(group.max()) + 1, blocks), dtype=np.int64)
    np.add.at(table, (group, block), 1)
    yield from table


def interchangeable(traffic: Traffic) -> bool:
    """Whether any two endpoints can be swapped without changing any step: one group of all GPUs in each component."""
    phases = traffic.network_phases
    return bool(phases) and all(
        phase.gpus == traffic.gpus
        and (phase.across == "cluster" or traffic.hb_domain == 1)
        and part.pattern in ("any", "all-to-all")
        and part.stride == 1
        and part.size == traffic.gpus
        for phase in phases
        for step in phase.steps
        for part in step.components
    )
