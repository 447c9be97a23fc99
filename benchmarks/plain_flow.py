"""The plain max-concurrent-flow program beside the certificate, on two-tier Clos fabrics under all-to-all.

    python benchmarks/plain_flow.py WIDTH [plain|certificate]

A fabric has WIDTH leaves and WIDTH spines, WIDTH endpoints to a leaf, one link from each leaf to each spine. The plain
program has a flow for each endpoint as a source and each direction of each link, and is solved by HiGHS; commodities
are joined by source already, which is what makes it fit into memory. Prints one JSON line: seconds and throughput.
"""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if TYPE_CHECKING:
    from designer.fabric.fabric import Fabric
    from designer.workload.traffic import Traffic

GBPS = 400


def leaf_spine(width: int) -> "Fabric":
    """The fabric, link by link."""
    from designer.fabric.fabric import GPU, LEAF, SPINE, Fabric, Links, Nodes

    gpus = width * width
    gpu, (leaf, spine) = np.arange(gpus), np.divmod(np.arange(gpus), width)
    a = np.concatenate([gpu, gpus + leaf])
    b = np.concatenate([gpus + gpu // width, gpus + width + spine])
    kind = np.repeat([GPU, LEAF, SPINE], [gpus, width, width]).astype(np.int64)
    none, zero = np.full(len(kind), -1), np.zeros(len(a), dtype=np.int64)
    nodes = Nodes(kind, none, none, none, none, none)
    return Fabric(gpus, 1, (), (), nodes, Links(a, b, zero, zero, zero, zero, np.full(len(a), GBPS), zero))


def all_to_all(gpus: int) -> "Traffic":
    """Every endpoint to every other, as fast as its link."""
    from designer.workload.traffic import Component, Phase, Step, Traffic

    steps = (Step("all", (Component("all-to-all", 1, gpus, 1, 1.0),), 1.0),)
    return Traffic(gpus, 1, 1, (Phase("all-to-all", "all", steps, 1.0, 0.0, "cluster", 0, gpus),))


def by_plain_program(width: int) -> tuple[float, float]:
    """Seconds and throughput of the plain program, from the list of links and rates on."""
    from tests.reference.flow_lp import graph_of, rates_of, throughput

    fabric, traffic = leaf_spine(width), all_to_all(width * width)
    (phase,) = traffic.network_phases
    graph, rates = graph_of(fabric), rates_of(traffic, phase, phase.steps[0], GBPS)
    began = time.perf_counter()
    value = throughput(graph, rates)
    return time.perf_counter() - began, value


def by_certificate(width: int) -> tuple[float, float]:
    """Seconds and lower bound of the certificate, from the fabric on; the upper bound is the same."""
    from designer.certify.throughput import Judge, certify_phases
    from designer.instance.schema import RequirementsSection

    fabric, traffic = leaf_spine(width), all_to_all(width * width)
    began = time.perf_counter()
    (result,) = certify_phases(fabric, traffic, RequirementsSection(), Judge(), 0.0)
    seconds = time.perf_counter() - began
    if not result.interval.exact:
        raise SystemExit("the bounds of the certificate are apart")
    return seconds, result.interval.lower


if __name__ == "__main__":
    methods = {"plain": by_plain_program, "certificate": by_certificate}
    seconds, value = methods[sys.argv[2]](int(sys.argv[1]))
    print(json.dumps({"seconds": seconds, "throughput": value}))
