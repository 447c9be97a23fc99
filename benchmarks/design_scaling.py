"""How design time and memory grow with the cluster, and whether the promised limits hold.

    python benchmarks/design_scaling.py [--repeat N] [--most GPUS]

Every point is a process of its own, from its start to the drawn and priced design, on at most two cores. The design's
certificate, intact and under every single failure, is timed apart, in a further process and once. Prints a table and
writes benchmarks/results/design_scaling.json. Ends with 1 when a design is not the recorded one.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from best_known import INSTANCES, ROOT, instance_files, read_records, version

RESULT = Path(__file__).parent / "results" / "design_scaling.json"
CORES = 2
DESIGN_LIMITS = (10.0, 2000.0)  # seconds and MB, any Clos instance up to 131,072 GPUs
DEMO_LIMITS = (5.0, 2000.0)
HELP_LIMITS = (0.5, 2000.0)

CERTIFICATE_S = 600.0  # after that a certificate is given up

DESIGN = """
import json, sys
from designer import design, load_instance
from designer.search import Options
result = design(load_instance(sys.argv[1]), Options(certify=False))
answer = {"status": result.status, "cost_usd": result.cost_cents / 100, "lower_bound_usd": result.bound_cents / 100}
print(json.dumps(answer | {"gpus": result.instance.cluster.gpus}))
"""
CERTIFICATE = """
import json, sys, time
from designer import design, load_instance
from designer.search import Options, certified
result = design(load_instance(sys.argv[1]), Options(certify=False))
started = time.perf_counter()
certificate = certified(result).certificate
print(json.dumps({"seconds": time.perf_counter() - started, "met": certificate.met}))
"""
COMMAND = "from designer.cli import main; main()"


@dataclass(frozen=True)
class Point:
    """One measured command: seconds (median and worst of the runs), peak memory in MB, and what it answered.

    `certificate_s` are the seconds of the certificate alone, `certificate_mb` the peak memory of search and
    certificate, `certificate_met` what came out; None where there is no certificate, or it was given up.
    """

    name: str
    gpus: int
    status: str
    cost_usd: float
    median_s: float
    worst_s: float
    peak_mb: float
    limit_s: float
    limit_mb: float
    as_recorded: bool
    certificate_s: float | None = None
    certificate_mb: float | None = None
    certificate_met: bool | None = None

    @property
    def met(self) -> bool:
        """Whether the worst run kept within the limits."""
        return self.worst_s <= self.limit_s and self.peak_mb <= self.limit_mb


def run(arguments: Sequence[str], limit_s: float | None = None) -> tuple[float, float, str]:
    """Seconds, peak memory in MB and standard output of a Python process, which is ended after `limit_s`.

    Raises:
        RuntimeError: the process failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT
    ) as process:
        alarm = None if limit_s is None else threading.Timer(limit_s, process.kill)
        if alarm is not None:
            alarm.start()
        output = process.stdout.read().decode() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if alarm is not None:
            alarm.cancel()
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(arguments[2:])}")
    unit = 1e6 if sys.platform == "darwin" else 1e3  # ru_maxrss is in bytes there, in KiB here
    return seconds, usage.ru_maxrss / unit * (1.0 if sys.platform == "darwin" else 1.024), output


def measure(arguments: Sequence[str], repeat: int) -> tuple[float, float, float, str]:
    """Median and worst seconds, peak memory in MB and last output of `repeat` runs."""
    runs = [run(arguments) for _ in range(repeat)]
    seconds = [item[0] for item in runs]
    return statistics.median(seconds), max(seconds), max(item[1] for item in runs), runs[-1][2]


def design_point(path: Path, repeat: int) -> Point:
    """Measures the design of one instance of the family `scale`."""
    median_s, worst_s, peak_mb, output = measure(["-c", DESIGN, str(path)], repeat)
    answer = json.loads(output)
    record = read_records(path.parent.name)[path.stem]
    same = all(answer[key] == record[key] for key in ("status", "cost_usd", "lower_bound_usd"))
    return Point(
        path.stem,
        answer["gpus"],
        answer["status"],
        answer["cost_usd"],
        median_s,
        worst_s,
        peak_mb,
        *DESIGN_LIMITS,
        same,
        *certificate_of(path),
    )


def certificate_of(path: Path) -> tuple[float | None, float | None, bool | None]:
    """Seconds, peak memory in MB and verdict of the certificate of an instance's design; None where it was given up."""
    try:
        _, peak_mb, output = run(["-c", CERTIFICATE, str(path)], CERTIFICATE_S)
    except RuntimeError:
        return None, None, None
    answer = json.loads(output)
    return answer["seconds"], peak_mb, answer["met"]


def command_points(repeat: int) -> list[Point]:
    """Measures the demo and the help text as a user runs them."""
    demo = INSTANCES / "demo" / "gpt3-175b-1024.yaml"
    median_s, worst_s, peak_mb, output = measure(["-c", COMMAND, "design", str(demo), "--json"], repeat)
    answer = json.loads(output)
    record = read_records("demo")[demo.stem]
    same = all(answer[key] == record[key] for key in ("status", "cost_usd", "lower_bound_usd"))
    points = [Point("demo", 1024, answer["status"], answer["cost_usd"], median_s, worst_s, peak_mb, *DEMO_LIMITS, same)]
    *times, _ = measure(["-c", COMMAND, "--help"], repeat)
    return [*points, Point("designer --help", 0, "", 0.0, *times, *HELP_LIMITS, as_recorded=True)]


def show(point: Point) -> str:
    """A line of the table."""
    verdict = "within" if point.met else "OVER"
    certificate = "" if point.certificate_s is None else f"{point.certificate_s:.2f}"
    recorded = "" if point.as_recorded else ", NOT AS RECORDED"
    return (
        f"{point.name:16} {point.gpus:>8,} {point.status:9} {point.cost_usd:>15,.0f} {point.median_s:>8.2f} "
        f"{point.worst_s:>8.2f} {point.peak_mb:>8.0f} {certificate:>13}  "
        f"{verdict} {point.limit_s:g} s, {point.limit_mb:g} MB{recorded}"
    )


def main() -> int:
    """Measures all points, prints them and writes the result file."""
    parser = argparse.ArgumentParser(description="Time and memory of design against the size of the cluster.")
    parser.add_argument("--repeat", type=int, default=3, help="runs of every point (default 3)")
    parser.add_argument("--most", type=int, default=131_072, help="most GPUs of a point (default 131072)")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    names = ("instance", "GPUs", "status", "cost USD", "median s", "worst s", "peak MB", "certificate s")
    print("{:16} {:>8} {:9} {:>15} {:>8} {:>8} {:>8} {:>13}".format(*names))
    points: list[Point] = []
    for path in sorted(instance_files("scale"), key=lambda path: (path.stem.split("-")[0], path.stem)):
        if int(path.stem.rsplit("-", 1)[-1]) <= options.most:
            points.append(design_point(path, options.repeat))
            print(show(points[-1]), flush=True)
    for point in command_points(options.repeat):
        points.append(point)
        print(show(point), flush=True)
    document = {
        "version": version(),
        "date": datetime.now(UTC).date().isoformat(),
        "repeat": options.repeat,
        "cores": CORES,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "points": [{**asdict(point), "met": point.met} for point in points],
    }
    if options.most >= 131_072:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if all(point.as_recorded for point in points) else 1


if __name__ == "__main__":
    sys.exit(main())
