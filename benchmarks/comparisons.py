"""Other ways to the same answers beside this package's, on the same machine: what they cost and how long they take.

    python benchmarks/comparisons.py [templates] [textbook] [flow] [evolution]

templates   the known topologies from closed formulas alone
textbook    one mixed-integer program of the Clos problem as a textbook writes it (textbook_clos.py), PuLP and HiGHS
flow        the plain max-concurrent-flow program against the certificate (plain_flow.py)
evolution   an evolutionary search with the same certificate and 100 times the time (evolution.py)

One thread each, one after the other. Seconds are medians: of 5 runs, of fewer where a run takes long (`runs`); no run
of a search is longer than 5 minutes, none of the plain program longer than 10. Answers count before times: ends with 1
where another way finds a cheaper network, where a proven optimum of the textbook program differs, or where the plain
program disagrees with the certificate. Writes the sections that were run into results/comparisons.json, with the
machine's load before each.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.best_known import INSTANCES, version  # noqa: E402
from benchmarks.evolution import Evolution  # noqa: E402
from benchmarks.textbook_clos import Program  # noqa: E402
from designer import design, load_instance, templates  # noqa: E402
from designer.layout.shortest import with_typical_lengths  # noqa: E402
from designer.search import Options  # noqa: E402
from designer.units import usd  # noqa: E402

RESULT = Path(__file__).parent / "results" / "comparisons.json"
RUNS = 5
LIMIT_S = 300.0
FLOW_LIMIT_S = 600.0
LONG_S = 20.0  # what takes longer runs once
TEXTBOOK_LIMIT_S = 240.0
TIMES_OURS = 100
SLACK = 1e-3  # of the textbook program's cost: cages that are filled in part

TEMPLATES = (
    "demo/gpt3-175b-1024",
    "atop/1024-dense-1x400",
    "atop/1024-dense-2x200",
    "atop/4096-moe-1x400",
    "atop/16384-dense-1x400",
    "atop/16384-dense-2x200",
    "dense/llama3-405b-16384",
    "moe/deepseek-v3-2048",
    "nvl72/dense-18432-spread",
    "rail-only/hb256-65536-radix64",
    "superpod/dgx-h100-su64",
)
TEXTBOOK = (
    "small/any-16-two-tiers",
    "small/ring-32",
    "small/half-rate-32",
    "atop/1024-dense-1x400",
    "atop/4096-moe-1x400",
    "rail-only/hb256-32768-radix32",
    "rail-only/hb256-65536-radix64",
    "moe/mixtral-8x7b-512",
    "scale/joined-001024",
    "scale/rails-004096",
)
WIDTHS = (4, 8, 12, 16, 18, 20, 22, 24)  # of the fabrics: as many endpoints as their squares
EVOLUTION = (
    ("small/any-16-two-tiers", 5),
    ("small/any-24-uniform", 5),
    ("small/half-rate-32", 5),
    ("small/ring-32", 5),
    ("small/survive-link-32", 5),
    ("small/survive-switch-64", 5),
    ("moe/mixtral-8x7b-512", 3),
    ("scale/joined-001024", 3),
    ("atop/1024-dense-1x400", 3),
    ("demo/gpt3-175b-1024", 3),
)

Record = dict[str, Any]


def instance_of(name: str) -> Any:
    """An instance of a suite, with cable lengths as the package takes them."""
    return with_typical_lengths(load_instance(INSTANCES / f"{name}.yaml"))


def timed(work: Callable[[], Any], runs: int = RUNS) -> tuple[float, Any, int]:
    """Median seconds, the last answer, and the number of runs: one where that takes long."""
    seconds: list[float] = []
    answer = None
    for _ in range(runs):
        began = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - began)
        if seconds[0] > LONG_S:
            break
    return statistics.median(seconds), answer, len(seconds)


def with_templates() -> list[Record]:
    """Cost and time of the cheapest template that meets an instance, against the search over all families."""
    records: list[Record] = []
    for name in TEMPLATES:
        instance = instance_of(name)
        seconds, known, runs = timed(lambda instance=instance: templates(instance))
        ours_s, ours, _ = timed(lambda instance=instance: design(instance, Options(certify=False)))
        best = min((item for item in known if item.meets), key=lambda item: item.cost_cents)
        records.append(
            {
                "instance": name,
                "template": best.name,
                "template_usd": usd(best.cost_cents),
                "ours_usd": usd(ours.cost_cents),
                "cost_ratio": best.cost_cents / ours.cost_cents,
                "template_s": seconds,
                "ours_s": ours_s,
                "time_ratio": ours_s / seconds,
                "runs": runs,
                "as_promised": ours.cost_cents <= best.cost_cents,
            }
        )
        print(records[-1], flush=True)
    return records


def with_textbook() -> list[Record]:
    """Cost, proof and time of the textbook program, against the package's search over the same networks."""
    records: list[Record] = []
    for name in TEXTBOOK:
        instance = instance_of(name)
        search = Options(certify=False, families=("clos",))
        ours_s, ours, _ = timed(lambda instance=instance, search=search: design(instance, search))
        build_s, program, _ = timed(lambda instance=instance: Program(instance), 1)
        seconds, answer, runs = timed(lambda program=program: program.solve(TEXTBOOK_LIMIT_S), 1)
        cost = usd(ours.cost_cents)
        fits = answer.cost_usd is None or cost <= answer.cost_usd
        proven = not answer.proven or abs((answer.cost_usd or 0.0) - cost) <= SLACK * cost
        records.append(
            {
                "instance": name,
                "columns": answer.columns,
                "rows": answer.rows,
                "textbook_usd": answer.cost_usd,
                "textbook_bound_usd": answer.bound_usd,
                "textbook_proven": answer.proven,
                "ours_usd": cost,
                "ours_proven": ours.status == "optimal",
                "textbook_s": build_s + seconds,
                "ours_s": ours_s,
                "time_ratio": (build_s + seconds) / ours_s,
                "runs": runs,
                "as_promised": fits and proven,
            }
        )
        print(records[-1], flush=True)
    return records


def _flow(width: int, method: str) -> Record | None:
    """One run in a process of its own; None where the limit ended it."""
    command = [sys.executable, str(Path(__file__).parent / "plain_flow.py"), str(width), method]
    try:
        done = subprocess.run(command, capture_output=True, timeout=FLOW_LIMIT_S, check=True, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


def with_flow() -> list[Record]:
    """Seconds of the plain program and of the certificate on growing fabrics, until the plain one is given up."""
    records: list[Record] = []
    for width in WIDTHS:
        ours = [_flow(width, "certificate") for _ in range(RUNS)]
        plain = [_flow(width, "plain")]
        while plain[0] is not None and plain[0]["seconds"] < LONG_S and len(plain) < RUNS:
            plain.append(_flow(width, "plain"))
        if any(run is None for run in ours):
            raise RuntimeError(f"the certificate of {width} leaves took longer than {FLOW_LIMIT_S:g} s")
        ours_s = statistics.median(run["seconds"] for run in ours if run)
        known = [run for run in plain if run]
        plain_s = statistics.median(run["seconds"] for run in known) if known else None
        records.append(
            {
                "endpoints": width * width,
                "plain_s": plain_s,
                "ours_s": ours_s,
                "time_ratio": None if plain_s is None else plain_s / ours_s,
                "runs": len(plain),
                "as_promised": all(abs(run["throughput"] - 1) < 1e-6 for run in (*known, *ours) if run),
            }
        )
        print(records[-1], flush=True)
        if plain_s is None:
            break
    return records


def with_evolution() -> list[Record]:
    """Cost of the evolutionary search in 100 times our seconds, its certificate's included, several seeds."""
    records: list[Record] = []
    for name, seeds in EVOLUTION:
        instance = instance_of(name)
        search = Options(families=("clos",))
        ours_s, ours, _ = timed(lambda instance=instance, search=search: design(instance, search))
        limit_s = min(TIMES_OURS * ours_s, LIMIT_S)
        found = [Evolution(instance, seed).run(limit_s) for seed in range(seeds)]
        costs = [run.cost_usd for run in found]
        reached = [cost for cost in costs if cost is not None]
        cost = usd(ours.cost_cents)
        records.append(
            {
                "instance": name,
                "ours_usd": cost,
                "ours_s": ours_s,
                "theirs_s": limit_s,
                "time_ratio": limit_s / ours_s,
                "runs": [dataclasses.asdict(run) for run in found],
                "reached": sum(abs(value - cost) < 0.01 for value in reached),
                "without": len(costs) - len(reached),
                "best_usd": min(reached, default=None),
                "median_usd": statistics.median(reached) if reached else None,
                "as_promised": all(value >= cost - 0.01 for value in reached),
            }
        )
        print({key: value for key, value in records[-1].items() if key != "runs"}, flush=True)
    return records


SECTIONS = {
    "templates": with_templates,
    "textbook": with_textbook,
    "flow": with_flow,
    "evolution": with_evolution,
}


def main(chosen: list[str]) -> int:
    """Runs the chosen sections, or all, and writes them."""
    document: Record = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    for name in chosen or SECTIONS:
        load = round(os.getloadavg()[0], 2)
        document[name] = {
            "version": version(),
            "date": datetime.now(UTC).date().isoformat(),
            "load_before": load,
            "records": SECTIONS[name](),
        }
        RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    kept = all(record["as_promised"] for name in chosen or SECTIONS for record in document[name]["records"])
    return 0 if kept else 1


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(SECTIONS)
    if unknown:
        sys.exit(f"no such section: {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    sys.exit(main(sys.argv[1:]))
