"""What the rows of a benchmark come to: a line for each suite, and the document of all."""

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from designer.benchmark.measure import RunOptions
from designer.benchmark.row import FEASIBLE, OPTIMAL, BenchRow
from designer.study.executors import cores

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class MeanSaving:
    """The geometric mean of what designs cost of a template's cost, as a saving, over the `rows` that it meets."""

    template: str
    rows: int
    saving: float


@dataclass(frozen=True)
class SuiteSummary:
    """A suite in a line: numbers of instances, and seconds of search and certificate, each added up over them."""

    suite: str
    instances: int
    designs: int
    proven: int
    certified: int
    verdicts: dict[str, int]
    mean_gap: float | None
    mean_any_topology_gap: float | None
    design_s: float
    certificate_s: float
    peak_mb: float
    savings: tuple[MeanSaving, ...]


def summaries(rows: Sequence[BenchRow]) -> list[SuiteSummary]:
    """A summary for every suite of the rows, in their order."""
    names = dict.fromkeys(row.suite for row in rows)
    return [_summary(name, [row for row in rows if row.suite == name]) for name in names]


def _summary(name: str, rows: Sequence[BenchRow]) -> SuiteSummary:
    found = [row.measured for row in rows]
    verdicts = [row.verdict for row in rows]
    return SuiteSummary(
        name,
        len(rows),
        sum(item.status in (OPTIMAL, FEASIBLE) for item in found),
        sum(item.status == OPTIMAL for item in found),
        sum(item.met is True for item in found),
        {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        _mean([item.gap for item in found]),
        _mean([item.any_topology_gap for item in found]),
        sum(item.design_s or 0.0 for item in found),
        sum(item.certificate_s or 0.0 for item in found),
        max((item.peak_mb or 0.0 for item in found), default=0.0),
        mean_savings(rows),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def mean_savings(rows: Sequence[BenchRow]) -> tuple[MeanSaving, ...]:
    """For every template the mean saving over the rows where it meets the requirements, the greatest first."""
    ratios: dict[str, list[float]] = {}
    for row in rows:
        for item in row.measured.savings:
            if item.meets and item.saving < 1:
                ratios.setdefault(item.template, []).append(math.log1p(-item.saving))
    means = [MeanSaving(name, len(logs), 1 - math.exp(sum(logs) / len(logs))) for name, logs in ratios.items()]
    return tuple(sorted(means, key=lambda item: -item.saving))


def document_of(
    rows: Sequence[BenchRow], options: RunOptions, *, quick: bool, workers: int | None, load: float | None
) -> dict[str, Any]:
    """All of a run as plain data; `load` is the machine's load (1 minute) before it."""
    from designer.result import package_version

    return {
        "schema_version": SCHEMA_VERSION,
        "version": package_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "quick": quick,
        **asdict(options),
        "workers": workers or cores(),
        "cores": cores(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "load_before": load,
        "rows": [row.to_document() for row in rows],
        "summary": [asdict(summary) for summary in summaries(rows)],
    }


def load_now() -> float | None:
    """The machine's load over the last minute, where the system tells it."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
