"""One row of a benchmark: an instance, what its design came to, how long it took, and how it compares."""

from dataclasses import asdict, dataclass, field
from typing import Any

from designer.benchmark.records import Known

# How an instance can end beside with a design.
OPTIMAL, FEASIBLE = "optimal", "feasible"
INFEASIBLE, NO_DESIGN, REFUSED, FAILED = "infeasible", "no_design", "refused", "failed"
BETTER, AS_KNOWN, WORSE, NEW, NONE = "better", "as known", "worse", "new", "no design"
CENT = 0.005  # USD: less is no difference


@dataclass(frozen=True)
class Saving:
    """What the design saves of a template's cost; `meets`: whether that meets the requirements (None: not judged)."""

    template: str
    cost_usd: float
    meets: bool | None
    saving: float


@dataclass(frozen=True)
class Measured:
    """What a run of an instance gave; None where there is no design, no proof or no certificate.

    Seconds are counted from the loaded instance: `first_s` to the first network, `best_s` to the one that was returned,
    `proof_s` to the end of the search where that proved it, `design_s` to the end of the search in any case.
    `certificate_s` is the certificate's own. `peak_mb` is the largest resident set of a process that did nothing else.
    """

    status: str
    reason: str = ""
    gpus: int | None = None
    family: str | None = None
    cost_usd: float | None = None
    lower_bound_usd: float | None = None
    gap: float | None = None
    any_topology_bound_usd: float | None = None
    any_topology_gap: float | None = None
    first_s: float | None = None
    best_s: float | None = None
    proof_s: float | None = None
    design_s: float | None = None
    certificate_s: float | None = None
    peak_mb: float | None = None
    met: bool | None = None
    exact: bool | None = None
    failure_classes: int | None = None
    savings: tuple[Saving, ...] = ()


@dataclass(frozen=True)
class BenchRow:
    """An instance of a suite, what it gave, and what was known of it."""

    suite: str
    instance: str
    measured: Measured
    known: Known | None = field(default=None)

    @property
    def verdict(self) -> str:
        """How the cost compares with the best known one."""
        cost = self.measured.cost_usd
        if cost is None:
            return NONE
        if self.known is None:
            return NEW
        if abs(cost - self.known.cost_usd) <= CENT:
            return AS_KNOWN
        return BETTER if cost < self.known.cost_usd else WORSE

    @property
    def bound_verdict(self) -> str:
        """How the bound compares with the recorded one; a bound at the cost is never worse."""
        bound = self.measured.lower_bound_usd
        if bound is None:
            return NONE
        if self.known is None:
            return NEW
        if abs(bound - self.known.lower_bound_usd) <= CENT:
            return AS_KNOWN
        proven = self.measured.status == OPTIMAL
        return BETTER if proven or bound > self.known.lower_bound_usd else WORSE

    @property
    def missed(self) -> bool:
        """Whether a best known cost is missed: a dearer design, or the claim that there is none."""
        return self.verdict == WORSE or (self.known is not None and self.measured.status == INFEASIBLE)

    @property
    def changes(self) -> tuple[str, ...]:
        """In words, what is better or worse than what was known."""
        known, found = self.known, self.measured
        if known is None:
            return ()
        if found.cost_usd is None:
            return (f"{found.status.replace('_', ' ')}, known {_money(known.cost_usd)}",)
        words: list[str] = []
        if self.verdict in (BETTER, WORSE):
            part = (found.cost_usd - known.cost_usd) / known.cost_usd
            words.append(
                f"cost {self.verdict}: {_money(found.cost_usd)} for {_money(known.cost_usd)} ({100 * part:+.2f} %)"
            )
        if self.bound_verdict in (BETTER, WORSE) and found.lower_bound_usd is not None:
            words.append(
                f"bound {self.bound_verdict}: {_money(found.lower_bound_usd)} for {_money(known.lower_bound_usd)}"
            )
        return tuple(words)

    def to_document(self) -> dict[str, Any]:
        """The row as plain data."""
        return {
            "suite": self.suite,
            "instance": self.instance,
            **asdict(self.measured),
            "known": None if self.known is None else asdict(self.known),
            "verdict": self.verdict,
            "bound_verdict": self.bound_verdict,
            "changes": list(self.changes),
        }


def _money(usd: float) -> str:
    return f"${usd:,.2f}".removesuffix(".00")
