"""How the certificate's time and memory grow with the fabric, and whether the promised limits hold.

    python benchmarks/certificate_scaling.py [--most ENDPOINTS] [--pairs-limit SECONDS]

Fabrics are three-tier Clos networks, drawn plainly: pods of 32 leaves with 32 endpoints each under 32 spines, every
spine with 32 uplinks into its group of 32 cores; traffic is all-to-all. Every point is a process of its own on at most
two cores. Prints a table and writes benchmarks/results/certificate_scaling.json, from which `pages.py` makes its table.
Ends with 1 when a value is not the known one.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.best_known import version  # noqa: E402
from benchmarks.picture import slope  # noqa: E402

if TYPE_CHECKING:
    from designer.fabric.fabric import Fabric

RESULT = Path(__file__).parent / "results" / "certificate_scaling.json"
CORES = 2
WIDTH = 32  # leaves of a pod, endpoints of a leaf, spines of a pod, uplinks of a spine
GBPS = 400
LIMITS_S = {"intact": 5.0, "one link lost": 3.0, "all single failures": 60.0, "all pairs": 900.0}
LIMIT_MB = 4096.0
# Throughput with one leaf-spine link lost, by an independent program that solves the same quotient.
KNOWN = {32_768: 0.969667, 131_072: 0.968979}


@dataclass(frozen=True)
class Point:
    """One task on one fabric: seconds without drawing it, peak memory in MB, what came out, and the load before it."""

    endpoints: int
    task: str
    seconds: float | None
    peak_mb: float | None
    answer: str
    load: float

    @property
    def met(self) -> bool:
        """Whether it was done within its limits."""
        done = self.seconds is not None and self.peak_mb is not None
        return done and self.seconds <= LIMITS_S[self.task] and self.peak_mb <= LIMIT_MB


def draw(pods: int) -> "Fabric":
    """The fabric, link by link; ports are not told apart, as throughput does not ask for them."""
    import numpy as np

    from designer.fabric.fabric import CORE, GPU, LEAF, SPINE, Fabric, Links, Nodes

    gpus, leaves, spines, cores = pods * WIDTH**2, pods * WIDTH, pods * WIDTH, WIDTH**2
    first = np.cumsum([0, gpus, leaves, spines])
    kind = np.repeat([GPU, LEAF, SPINE, CORE], [gpus, leaves, spines, cores])
    gpu = np.arange(gpus)
    leaf, spine = np.divmod(np.arange(leaves * WIDTH), WIDTH)
    lower, uplink = np.divmod(np.arange(spines * WIDTH), WIDTH)
    a = np.concatenate([gpu, first[1] + leaf, first[2] + lower])
    b = np.concatenate(
        [first[1] + gpu // WIDTH, first[2] + leaf // WIDTH * WIDTH + spine, first[3] + lower % WIDTH * WIDTH + uplink]
    )
    none, zero = np.full(len(kind), -1), np.zeros(len(a), dtype=np.int64)
    nodes = Nodes(kind.astype(np.int64), none, none, none, none, none)
    return Fabric(gpus, 1, (), (), nodes, Links(a, b, zero, zero, zero, zero, np.full(len(a), GBPS), zero))


def work(pods: int, task: str) -> dict[str, object]:
    """Does a task in this process; its seconds, peak memory in MB and answer."""
    from designer.certify.failures import FailureStudy, certify_failures
    from designer.certify.throughput import Judge, certify_phases, phase_bounds
    from designer.certify.view import FabricView, Failure
    from designer.fabric.fabric import LEAF
    from designer.instance.schema import RequirementsSection
    from designer.workload.traffic import Component, Phase, Step, Traffic

    fabric = draw(pods)
    gpus, requirements = fabric.gpus, RequirementsSection()
    steps = (Step("all", (Component("all-to-all", 1, gpus, 1, 1.0),), 1.0),)
    phase = Phase("all-to-all", "all", steps, 1.0, 0.0, "cluster", 0, gpus)
    traffic = Traffic(gpus, 1, 1, (phase,))

    def intact() -> str:
        (result,) = certify_phases(fabric, traffic, requirements, Judge(), 0.0)
        return f"{result.interval.lower:.6f} to {result.interval.upper:.6f}"

    def one_link() -> str:
        link = int((fabric.nodes.kind[fabric.links.a] == LEAF).nonzero()[0][0])
        view = FabricView(fabric, Failure(links=(link,)), FabricView(fabric))
        bounds = phase_bounds(Judge(), view, traffic, phase, 0.0, requirements.detour)
        return f"{bounds.lower:.6f} to {bounds.upper:.6f}"

    def failures(*, pairs: bool) -> str:
        study = FailureStudy(fabric, traffic, requirements, 0.0, Judge())
        results = certify_failures(study, pairs=pairs)
        stands_for = sum(result.stands_for for result in results)
        return f"{len(results)} classes for {stands_for:,} failures, worst {results[0].lower:.6f}"

    tasks: dict[str, Callable[[], str]] = {
        "intact": intact,
        "one link lost": one_link,
        "all single failures": lambda: failures(pairs=False),
        "all pairs": lambda: failures(pairs=True),
    }
    started = time.perf_counter()
    answer = tasks[task]()
    seconds = time.perf_counter() - started
    unit = 1e6 if sys.platform == "darwin" else 1e3 / 1.024  # ru_maxrss is in bytes there, in KiB here
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {"seconds": seconds, "peak_mb": peak_mb, "answer": answer}


def measure(pods: int, task: str, limit_s: float) -> Point:
    """A task in a process of its own; without seconds where the limit ended it."""
    load = os.getloadavg()[0]
    arguments = [sys.executable, __file__, "--work", str(pods), task]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            arguments, env=environment, capture_output=True, text=True, timeout=limit_s, check=True, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return Point(pods * WIDTH**2, task, None, None, f"not done in {limit_s:g} s", load)
    return Point(pods * WIDTH**2, task, load=load, **json.loads(done.stdout))


def table(points: list[Point]) -> str:
    """Seconds of each task by endpoints, with peak memory and the fitted exponents, as Markdown."""
    tasks = list(LIMITS_S)
    by_place = {(point.endpoints, point.task): point for point in points}
    lines = [f"| endpoints | {' | '.join(f'{task}, s' for task in tasks)} | most MB | load before |"]
    lines.append("| ---: |" + " ---: |" * (len(tasks) + 2))
    for endpoints in sorted({point.endpoints for point in points}):
        row = [by_place[endpoints, task] for task in tasks if (endpoints, task) in by_place]
        seconds = ["" if point.seconds is None else f"{point.seconds:.2f}" for point in row]
        seconds = [text or point.answer for text, point in zip(seconds, row, strict=True)]
        seconds += ["not run"] * (len(tasks) - len(row))
        peak_mb = max(point.peak_mb or 0.0 for point in row)
        load = max(point.load for point in row)
        lines.append(f"| {endpoints:,} | {' | '.join(seconds)} | {peak_mb:,.0f} | {load:.1f} |")
    slopes = [
        slope((point.endpoints, point.seconds) for point in points if point.task == task and point.seconds)
        for task in tasks
    ]
    fitted = " | ".join("" if slope is None else f"{slope:.2f}" for slope in slopes)
    lines.append(f"| exponent | {fitted} | | |")
    lines.append(f"| limit at 131,072 | {' | '.join(f'{LIMITS_S[task]:g}' for task in tasks)} | {LIMIT_MB:,.0f} | |")
    return "\n".join(lines)


def write(points: list[Point]) -> None:
    """Writes the result file."""
    document = {
        "version": version(),
        "date": datetime.now(UTC).date().isoformat(),
        "cores": CORES,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "points": [{**asdict(point), "met": point.met} for point in points],
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def as_known(point: Point) -> bool:
    """Whether the answer is the value that is known: 1 intact, and the two of `KNOWN`."""
    value = 1.0 if point.task == "intact" else KNOWN.get(point.endpoints) if point.task == "one link lost" else None
    if value is None:
        return True
    lower, upper = (float(part) for part in point.answer.split(" to "))
    return abs(lower - value) < 2e-6 and abs(upper - value) < 2e-6


def main() -> int:
    """Measures all points, prints them and writes the results."""
    parser = argparse.ArgumentParser(description="Time and memory of the certificate against the size of the fabric.")
    parser.add_argument("--most", type=int, default=131_072, help="most endpoints of a point (default 131072)")
    parser.add_argument("--pairs-most", type=int, default=131_072, help="most endpoints for pairs of failures")
    parser.add_argument("--pairs-limit", type=float, default=600.0, help="seconds after which pairs are given up")
    parser.add_argument("--work", nargs=2, metavar=("PODS", "TASK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(int(options.work[0]), options.work[1])))
        return 0
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    points: list[Point] = []
    for task in LIMITS_S:
        for pods in (1, 2, 4, 8, 16, 32, 64, 128):
            endpoints = pods * WIDTH**2
            if endpoints > (options.pairs_most if task == "all pairs" else options.most):
                continue
            point = measure(pods, task, options.pairs_limit)
            points.append(point)
            verdict = "" if as_known(point) else "  NOT AS KNOWN"
            seconds = "       -" if point.seconds is None else f"{point.seconds:8.2f}"
            print(f"{endpoints:>8,} {task:20} {seconds} s {point.peak_mb or 0:6.0f} MB  {point.answer}{verdict}")
            sys.stdout.flush()
            if options.most >= 131_072:
                write(points)  # each time, as the last points take long
    return 0 if all(as_known(point) for point in points) else 1


if __name__ == "__main__":
    sys.exit(main())
