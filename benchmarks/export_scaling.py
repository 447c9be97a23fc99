"""How long it takes to read a design file and to write its wiring plan, from 1,024 to 131,072 GPUs.

    python benchmarks/export_scaling.py [--most GPUS]

The designs are those of instances/scale/rails-*. Each is written once, then read and exported in a process of its own,
three times. Ends with 1 where a plan has not a line for every link. Writes results/export_scaling.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from best_known import instance_files, version
from design_scaling import CORES, run

RESULT = Path(__file__).parent / "results" / "export_scaling.json"
RUNS = 3
LIMIT_S = 300.0

WRITE = """
import json, sys
from designer import design, load_instance
from designer.search import Options
result = design(load_instance(sys.argv[1]), Options(certify=False))
result.save(sys.argv[2])
print(json.dumps({"gpus": result.instance.cluster.gpus, "links": result.counts["links"]}))
"""
EXPORT = """
import json, sys, time
from designer.certify.read_design import read_design
from designer.export.formats import export_design
began = time.perf_counter()
design = read_design(sys.argv[1])
read = time.perf_counter()
export_design(design, "wiring-csv", sys.argv[2])
print(json.dumps({"read_s": read - began, "export_s": time.perf_counter() - read}))
"""


@dataclass(frozen=True)
class Point:
    """One design: median seconds to read its file and to write the plan, peak memory, sizes, the load before it."""

    gpus: int
    links: int
    read_s: float
    export_s: float
    peak_mb: float
    file_mb: float
    plan_mb: float
    complete: bool
    load: float


def measure(path: Path, folder: Path) -> Point:
    """The point of an instance."""
    load, design, plan = round(os.getloadavg()[0], 2), folder / "design.json", folder / "wiring.csv"
    found = json.loads(run(["-c", WRITE, str(path), str(design)], LIMIT_S)[2])
    times: list[dict[str, float]] = []
    peaks: list[float] = []
    for _ in range(RUNS):
        _, peak_mb, output = run(["-c", EXPORT, str(design), str(plan)], LIMIT_S)
        times.append(json.loads(output))
        peaks.append(peak_mb)
    with plan.open(encoding="utf-8") as lines:
        complete = sum(1 for _ in lines) == found["links"] + 1
    return Point(
        found["gpus"],
        found["links"],
        statistics.median(item["read_s"] for item in times),
        statistics.median(item["export_s"] for item in times),
        max(peaks),
        design.stat().st_size / 1e6,
        plan.stat().st_size / 1e6,
        complete,
        load,
    )


def main() -> int:
    """Measures all points, prints them and writes the results."""
    parser = argparse.ArgumentParser(description="Time and memory of an export against the size of the cluster.")
    parser.add_argument("--most", type=int, default=131_072, help="most GPUs of a point (default 131072)")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    points: list[Point] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in instance_files("scale"):
            if path.stem.startswith("rails-") and int(path.stem.split("-")[1]) <= options.most:
                points.append(measure(path, Path(folder)))
                print(points[-1], flush=True)
    if options.most >= 131_072:
        document = {"version": version(), "runs": RUNS, "points": [asdict(point) for point in points]}
        RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if all(point.complete for point in points) else 1


if __name__ == "__main__":
    sys.exit(main())
