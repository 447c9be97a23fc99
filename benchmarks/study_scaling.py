"""Whether two processes do a study nearly twice as fast as one, and whether a study that is killed resumes.

    python benchmarks/study_scaling.py [--points N]

The same points of the 1,024-GPU demo instance are designed and certified three times: one after the other in one
process, by two worker processes, and by two worker processes of which one, and later the study itself, is killed, after
which the study is started anew. The three tables must be equal, and no point may be designed twice. Writes
benchmarks/results/study_scaling.json. Ends with 1 where tables differ, a point is designed twice, or two processes are
less than 1.7 times as fast as one.
"""

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from best_known import INSTANCES, ROOT, version

from designer.study.store import RESULTS, keys_of

RESULT = Path(__file__).parent / "results" / "study_scaling.json"
BASE = INSTANCES / "demo" / "gpt3-175b-1024.yaml"
POINTS = 500
WORKERS = 2
TIMES_FASTER = 1.7
KILL_WORKER_AT, KILL_STUDY_AT = 0.3, 0.5  # parts of the points

STUDY = """
import json, pathlib, sys
from designer import study
base, points, executor, workers, folder = sys.argv[1:]
axes = {
    "catalog.switches.qm9700.price.usd": {"from": 30_000, "to": 29_900 + 100 * (int(points) // 5), "step": 100},
    "requirements.throughput.pp": [0.2, 0.25, 0.3, 0.4, 0.5],
}
done = lambda now: print(now.done, file=sys.stderr, flush=True)
result = study(base, axes, executor=executor, workers=int(workers), folder=folder, progress=done)
table = json.dumps([{**row.values(), "wall_s": None} for row in result])
pathlib.Path(folder, "table").write_text(table)
"""


@dataclass(frozen=True)
class Measured:
    """Seconds of each run, from the start of its process to its end, and what came out.

    `..._cpu_s` are those of the processors, which other work on the machine hardly changes.
    """

    points: int
    serial_s: float
    serial_cpu_s: float
    processes_s: float
    processes_cpu_s: float
    times_faster: float
    equal_tables: bool
    done_when_killed: int
    equal_after_resuming: bool
    designed_twice: int
    load_before: float

    @property
    def met(self) -> bool:
        """Whether tables are equal, nothing was designed twice, and two processes are fast enough."""
        right = self.equal_tables and self.equal_after_resuming and not self.designed_twice
        return right and self.times_faster >= TIMES_FASTER


def run(
    points: int, executor: str, folder: Path, watch: Callable[[int, int], None] | None = None
) -> tuple[float, float, str]:
    """Seconds, seconds of the processors, and table of a study; `watch` is told its process id and the points done."""
    arguments = [str(BASE), str(points), executor, str(WORKERS), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        [sys.executable, "-c", STUDY, *arguments], stderr=subprocess.PIPE, env=environment, text=True
    ) as process:
        for line in process.stderr or ():
            if watch is not None and line.strip().isdecimal():
                watch(process.pid, int(line))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    table = folder / "table"
    table = folder / "table"
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds = time.perf_counter() - started
    return seconds, cpu_s, table.read_text(encoding="utf-8") if table.exists() else ""


def harm(points: int) -> Callable[[int, int], None]:
    """Kills a worker of the study, and later the study."""
    killed: list[int] = []

    def watch(study: int, done: int) -> None:
        if not killed and done >= KILL_WORKER_AT * points:
            killed.append(workers_of(study)[0])
            os.kill(killed[0], signal.SIGKILL)
        if len(killed) == 1 and done >= KILL_STUDY_AT * points:
            killed.append(study)
            os.kill(study, signal.SIGKILL)

    return watch


def workers_of(study: int) -> list[int]:
    """The worker processes of a study."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    lines = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [int(pid) for pid, parent, command in lines if int(parent) == study and "spawn_main" in command]


def measure(points: int) -> Measured:
    """All three runs."""
    load_before = os.getloadavg()[0]
    with TemporaryDirectory() as name:
        folder = Path(name)
        serial_s, serial_cpu_s, serial = run(points, "serial", folder / "serial")
        print(f"serial     {serial_s:8.1f} s", flush=True)
        processes_s, processes_cpu_s, processes = run(points, "processes", folder / "processes")
        print(f"processes  {processes_s:8.1f} s, {serial_s / processes_s:.2f} times as fast", flush=True)
        run(points, "processes", folder / "killed", harm(points))
        done = len(list(keys_of(folder / "killed" / RESULTS)))
        print(f"killed     after {done} points", flush=True)
        *_, resumed = run(points, "processes", folder / "killed")
        keys = list(keys_of(folder / "killed" / RESULTS))
    return Measured(
        points,
        serial_s,
        serial_cpu_s,
        processes_s,
        processes_cpu_s,
        serial_s / processes_s,
        serial == processes,
        done,
        serial == resumed,
        len(keys) - len(set(keys)),
        load_before,
    )


def main() -> int:
    """Measures, prints and writes the result file."""
    parser = argparse.ArgumentParser(description="A study on one and on two processes, and after being killed.")
    parser.add_argument("--points", type=int, default=POINTS, help=f"points of the study (default {POINTS})")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:WORKERS])
    measured = measure(options.points)
    document = {
        "version": version(),
        "date": datetime.now(UTC).date().isoformat(),
        "cores": WORKERS,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **asdict(measured),
        "limit_times_faster": TIMES_FASTER,
        "met": measured.met,
    }
    print(json.dumps(document, indent=1))
    if options.points == POINTS:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if measured.met else 1


if __name__ == "__main__":
    sys.exit(main())
