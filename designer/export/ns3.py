"""Topology file of SimAI's ns-3 network: GPUs, NVSwitches and switches by number, and links with rates.

The simulator keeps one link of a pair of nodes, so parallel links are merged into one of their total rate. Source of
the format: `SetupNetwork` of SimAI's ns-3 frontend, and the topologies its generator writes; the delays are those of
the generator. Management ports send nothing and are left out.
"""

from pathlib import Path

import numpy as np

from designer.export.plan import Plan, groups
from designer.fabric.fabric import GPU, LEAF
from designer.files import text_written_atomically

LINK_DELAY, DOMAIN_DELAY = "0.0005ms", "0.000025ms"
GPU_TYPES = ("A100", "A800", "H100", "H800")


def write_ns3(plan: Plan, path: Path) -> tuple[str, ...]:
    """Writes the topology file; GPU n of the cluster is node n of the simulator.

    Raises:
        OutputError: it cannot be written.
    """
    fabric, cluster = plan.fabric, plan.file.cluster
    links, kind = fabric.links, fabric.nodes.kind
    domains = cluster.gpus // cluster.hb_domain if cluster.hb_domain > 1 else 0
    switches = np.flatnonzero(kind >= LEAF)
    number = np.arange(fabric.n_nodes)
    number[switches] = cluster.gpus + domains + np.arange(len(switches))
    kept = np.flatnonzero((kind[links.a] == GPU) | (kind[links.a] >= LEAF))
    ends = np.sort(np.stack([number[links.a[kept]], number[links.b[kept]]]), axis=0)
    pairs, pair = groups(ends[0], ends[1])
    gbps = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(gbps, pair, links.gbps[kept])
    in_domains = cluster.gpus if domains else 0
    nodes = cluster.gpus + domains + len(switches)
    with text_written_atomically(path) as file:
        header = (nodes, cluster.hb_domain, domains, len(switches), in_domains + len(pairs), _gpu_type(plan))
        file.write(f"{' '.join(map(str, header))}\n")
        file.write(f"{' '.join(map(str, range(cluster.gpus, nodes)))}\n")
        for servers, gpus in zip(cluster.kinds(), cluster.kind_ranges(), strict=True):
            rate = f"{servers.gpu.scale_up_gbps:g}Gbps {DOMAIN_DELAY} 0"
            file.writelines(f"{gpu} {cluster.gpus + gpu // cluster.hb_domain} {rate}\n" for gpu in gpus if in_domains)
        for (a, b), rate in zip(pairs, gbps.tolist(), strict=True):
            file.write(f"{a} {b} {rate}Gbps {LINK_DELAY} 0\n")
    merged = len(kept) - len(pairs)
    notes = [f"{merged} parallel links are merged into others, whose rates they add to"] if merged else []
    if left := fabric.n_links - len(kept):
        notes.append(f"{left} management ports are left out")
    return tuple(notes)


def _gpu_type(plan: Plan) -> str:
    """The simulator's name of the GPU; NONE for those it does not know, and for a mixture."""
    names = {kind.gpu.key.split("-")[0].upper() for kind in plan.file.cluster.kinds()}
    name = names.pop() if len(names) == 1 else ""
    return name if name in GPU_TYPES else "NONE"
