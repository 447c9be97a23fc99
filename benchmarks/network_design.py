"""Time to proof of the network design problems, against the plain compact flow model on the same solver, in one run.

    python benchmarks/network_design.py [INSTANCE ...]

Every problem of instances/network_design/optima.json is solved by the plain model (HiGHS, capped), and by the method of
`designer.formulation.network_design` with HiGHS and with SCIP, one after the other in this process, one thread each.
Answers count before times: ends with 1 when a proven optimum is missed, or when the claim is: at least 3 times faster
than the plain model, in geometric mean over the problems that take it more than 5 s. Where the plain model reached its
cap the ratio is the least it can be. Writes results/network_design.json.
"""

import json
import math
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.best_known import version  # noqa: E402
from designer.formulation.design_folder import NONE, read_table  # noqa: E402
from designer.formulation.network_design import solve_network_design  # noqa: E402
from designer.formulation.solvers import SolveLimits  # noqa: E402
from designer.sndlib import NetworkDesign, read_network_design  # noqa: E402
from tests.reference.compact_design import compact_optimum  # noqa: E402

FOLDER = ROOT / "instances" / "network_design"
RESULTS = Path(__file__).parent / "results" / "network_design.json"
CAP_S = 300.0
SLOW_S = 5.0
CLAIM = 3.0
SOLVERS = ("highs", "scip")

Record = dict[str, Any]


def measure(network: NetworkDesign, optimum: float, *, survivable: bool) -> Record:
    """One problem by all methods."""
    record: Record = {}
    for solver in SOLVERS:
        report = solve_network_design(network, survivable=survivable, solver=solver, limits=SolveLimits(CAP_S))
        record[solver] = {
            "termination": report.termination,
            "cost": report.cost,
            "bound": report.bound,
            "root_bound": round(report.root_bound, 3),
            "method": report.method,
            "solves": report.solves,
            "cuts": report.cuts,
            "seconds": round(report.seconds, 3),
            "exact": report.termination == "optimal" and report.cost == optimum == report.bound,
        }
    began = time.perf_counter()
    plain = compact_optimum(network, survivable, CAP_S)
    seconds = time.perf_counter() - began
    record["plain"] = {
        "optimal": plain.optimal,
        "cost": plain.objective if math.isfinite(plain.objective) else None,
        "bound": plain.bound if math.isfinite(plain.bound) else None,
        "seconds": round(seconds, 3),
    }
    record["ratio"] = round(seconds / record["highs"]["seconds"], 2)
    return record


def main(chosen: list[str]) -> int:
    """Runs the chosen instances, or all; 0 when every claim holds."""
    records: list[Record] = []
    print("instance  survives     optimum | plain s   ours s (HiGHS)  ratio | SCIP s | root gap  solves")
    for row in read_table(FOLDER / "optima.json"):
        if chosen and row["instance"] not in chosen:
            continue
        network = read_network_design(FOLDER / f"{row['instance']}.txt")
        survivable = row["survivability"] != NONE
        record = {"instance": row["instance"], "survivability": row["survivability"], "optimum": row["optimum"]}
        record |= measure(network, row["optimum"], survivable=survivable)
        records.append(record)
        ours, scip, plain = record["highs"], record["scip"], record["plain"]
        print(
            f"{row['instance']:<9} {'single link' if survivable else 'none':<11} {row['optimum']:>8.0f} |"
            f"{'' if plain['optimal'] else ' >'}{plain['seconds']:8.2f} {ours['seconds']:10.2f} {record['ratio']:12.1f}"
            f" | {scip['seconds']:6.2f} | {100 * (1 - ours['root_bound'] / row['optimum']):6.2f} %  {ours['solves']}"
            f"{'' if ours['exact'] and scip['exact'] else '  NOT EXACT'}",
            flush=True,
        )
    ratios = [record["ratio"] for record in records if record["plain"]["seconds"] > SLOW_S]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    exact = all(record[solver]["exact"] for record in records for solver in SOLVERS)
    print(f"\nall exact: {exact}; plain over {SLOW_S:g} s: {len(ratios)}; geometric mean of their ratios: {mean}")
    if not chosen:
        document = {
            "version": version(),
            "date": time.strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "cap_s": CAP_S,
            "slow_s": SLOW_S,
            "geometric_mean_of_ratios": mean,
            "all_exact": exact,
            "problems": records,
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if exact and (mean is None or mean >= CLAIM) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
