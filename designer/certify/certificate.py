"""What a certificate says: throughput of every phase, failures by classes, structure, the rail-only comparison."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from designer.certify.relays import RelayOverhead

EXACT = 1e-6
MAX_TOLD = 12


@dataclass(frozen=True)
class Interval:
    """Throughput as a fraction of the demanded rates: proven `lower` and `upper`, and what ECMP gives (None: unknown).

    `how` names the arguments, e.g. "symmetric flow", "oblivious split and cuts".
    """

    lower: float
    upper: float
    ecmp: float | None
    how: str

    @property
    def exact(self) -> bool:
        """Whether both bounds meet within 1e-6."""
        return self.upper - self.lower <= EXACT


@dataclass(frozen=True)
class PhaseResult:
    """Throughput of one phase of one job against its floor; `required` is on the routing that the instance means."""

    job: str
    phase: str
    interval: Interval
    required: float
    met: bool


@dataclass(frozen=True)
class FailureResult:
    """What is left after a failure: the worst phase, for each element class.

    `removed` reads like "switch:spine" or "link:leaf-spine + link:leaf-spine"; the class `stands_for` so many real
    scenarios. `lower`, `upper`, `ecmp` are the throughput of the worst phase relative to its floor's demand, under
    the detour policy that the requirements name; `spread` and `single_relay` are the lower bounds under each policy
    where GPUs lost their NIC. `gpus_cut_off` have no way left to their peers.
    """

    removed: str
    stands_for: int
    worst_phase: str
    lower: float
    upper: float
    ecmp: float | None
    gpus_cut_off: int
    required: float | None
    met: bool
    spread: float | None = None
    single_relay: float | None = None


@dataclass(frozen=True)
class Check:
    """One structural check: what was looked at, whether it holds, and every exception found (shortened)."""

    name: str
    met: bool
    found: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, found: Sequence[str]) -> "Check":
        """A check that holds when nothing was found; what was found is kept up to `MAX_TOLD` lines."""
        kept = tuple(found[:MAX_TOLD])
        more = len(found) - len(kept)
        return Check(name, not found, (*kept, f"and {more} more") if more else kept)


@dataclass(frozen=True)
class Structure:
    """The structural checks; `reported` are properties that are told, not required (OpenSM rules, worst leaf pair)."""

    checks: tuple[Check, ...]
    reported: tuple[Check, ...] = ()

    @property
    def met(self) -> bool:
        """Whether every required check holds."""
        return all(check.met for check in self.checks)


@dataclass(frozen=True)
class RailOnlyCheck:
    """The design beside the rail-only template on the same catalog and demands."""

    met: bool
    cost_usd: float | None
    design_cost_usd: float
    switches: int | None
    links: int | None
    words: str


@dataclass(frozen=True)
class RoutingResult:
    """Throughput of one step, at most 1: under the weights, under ECMP (None: unknown), and what nothing exceeds."""

    job: str
    phase: str
    step: str
    weighted: float
    ecmp: float | None
    upper: float


@dataclass(frozen=True)
class Certificate:
    """All that was proven about a fabric under its traffic; `routing` only where the design comes with routes."""

    phases: tuple[PhaseResult, ...]
    failures: tuple[FailureResult, ...]
    structure: Structure
    rail_only: RailOnlyCheck | None = None
    availability: dict[str, Any] = field(default_factory=dict[str, Any])
    relays: RelayOverhead | None = None
    routing: tuple[RoutingResult, ...] = ()

    @property
    def met(self) -> bool:
        """Whether structure, floors and required failures all hold."""
        return (
            self.structure.met
            and all(phase.met for phase in self.phases)
            and all(failure.met for failure in self.failures)
            and (self.rail_only is None or self.rail_only.met)
        )

    def to_document(self) -> dict[str, Any]:
        """The certificate as plain data, as the design file holds it."""
        phases = [
            {
                "job": phase.job,
                "phase": phase.phase,
                "lower": phase.interval.lower,
                "upper": phase.interval.upper,
                "exact": phase.interval.exact,
                "ecmp": phase.interval.ecmp,
                "how": phase.interval.how,
                "required": phase.required,
                "met": phase.met,
            }
            for phase in self.phases
        ]
        return {
            "phases": phases,
            "failures": [asdict(failure) for failure in self.failures],
            "structure": {"met": self.structure.met, **asdict(self.structure)},
            "rail_only": asdict(self.rail_only) if self.rail_only else None,
            "availability": self.availability,
            "relays": asdict(self.relays) if self.relays else None,
            "routing": [asdict(step) for step in self.routing],
            "met": self.met,
        }
