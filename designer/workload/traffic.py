"""Traffic: the phases of every job as demands on endpoints at NIC line rate.

A phase is a list of steps, one after the other. A step demands, of every endpoint of its job, a rate of one NIC in
total, split over components. A component is periodic: with the endpoints of a rail in order, those `stride` apart
form groups of `size`, and inside each group the traffic follows one pattern:

    all-to-all   every member sends evenly to the others
    any          the worst permutation inside the group (the hose model)
    shift        member x sends to x + by, modulo size; by = 1 is a ring
    exchange     member x sends to x XOR by: one partner step of halving-doubling
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Component:
    """One pattern of a step. `stride` and `by` count domains (or GPUs where the phase is `across` the cluster)."""

    pattern: str
    stride: int
    size: int
    by: int
    rate: float


@dataclass(frozen=True)
class Step:
    """What is sent at the same time: components whose rates add up to one NIC; `nic_bytes` a GPU and iteration."""

    name: str
    components: tuple[Component, ...]
    nic_bytes: float


@dataclass(frozen=True)
class Phase:
    """One kind of traffic of one job, with the floor that the requirements set for its rate.

    `domain_bytes` are what a GPU sends inside its HB domain for it. A phase without steps stays inside the domains.
    `across` is "rail" (domain m to domain m', on each rail alike) or "cluster" (GPU to GPU, whatever the rail).
    """

    name: str
    job: str
    steps: tuple[Step, ...]
    floor: float
    domain_bytes: float
    across: str
    first_gpu: int
    gpus: int

    @property
    def nic_bytes(self) -> float:
        """Bytes that a GPU sends through its NIC in one iteration."""
        return sum(step.nic_bytes for step in self.steps)


@dataclass(frozen=True)
class Traffic:
    """All phases on a cluster of `gpus` GPUs in domains of `hb_domain`, on `rails` rails."""

    gpus: int
    hb_domain: int
    rails: int
    phases: tuple[Phase, ...]

    @property
    def network_phases(self) -> tuple[Phase, ...]:
        """The phases that load the network."""
        return tuple(phase for phase in self.phases if phase.steps)

    def needs_joined_rails(self) -> bool:
        """Whether some phase sends from rail to rail through the network."""
        return any(phase.across == "cluster" for phase in self.network_phases) and self.rails > 1

    def concurrent(self) -> Iterator[tuple[Phase, ...]]:
        """Phases in sets that share GPUs and so take turns; phases of different sets run at the same time.

        Jobs whose GPU ranges overlap, directly or through others, are in one set.
        """
        pending = sorted(self.network_phases, key=lambda phase: phase.first_gpu)
        current: list[Phase] = []
        end = 0
        for phase in pending:
            if current and phase.first_gpu >= end:
                yield tuple(current)
                current = []
            current.append(phase)
            end = max(end, phase.first_gpu + phase.gpus)
        if current:
            yield tuple(current)


def mix(name: str, phases: Iterable[Phase], floor: float) -> Phase:
    """The phases at once: one step in which each has a part of the line rate in proportion to its bytes."""
    phases = tuple(phases)
    total = sum(phase.nic_bytes for phase in phases)
    components = tuple(
        Component(part.pattern, part.stride, part.size, part.by, part.rate * step.nic_bytes / total)
        for phase in phases
        for step in phase.steps
        for part in step.components
    )
    step = Step(name, components, total)
    first = phases[0]
    inside = sum(phase.domain_bytes for phase in phases)
    return Phase(name, first.job, (step,), floor, inside, first.across, first.first_gpu, first.gpus)
