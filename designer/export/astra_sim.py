"""Network of ASTRA-sim's analytical backend: one dimension for the HB domain, and one for each tier of the network.

A dimension is a switch with a rate for each GPU: the scale-up network; the leaf, at the rate of the NIC; the pod and
the whole network, at what the uplinks leave of it. Source: ASTRA-sim's example networks, whose latencies are taken.
"""

from pathlib import Path

import numpy as np

from designer.errors import ExportError
from designer.export.plan import Plan
from designer.export.uniform import ALLOWED, UniformClos, uniform_clos
from designer.fabric.fabric import GPU, LEAF, LEAF_LEAF, Column
from designer.files import text_written_atomically
from designer.units import BITS_PER_BYTE

DOMAIN_LATENCY_NS, NETWORK_LATENCY_NS = 936.25, 1000.0


def write_astra_sim(plan: Plan, path: Path) -> tuple[str, ...]:
    """Writes the network file; GPUs are numbered as in the cluster, domain by domain.

    Raises:
        ExportError: the network is no tree of leaves, spines and cores.
        OutputError: it cannot be written.
    """
    if (plan.fabric.link_class() == LEAF_LEAF).any():
        raise plan.refuse("leaves that are joined with leaves", ALLOWED)
    cluster = plan.file.cluster
    notes: tuple[str, ...] = ()
    try:
        sizes = _sizes(plan, uniform_clos(plan))
    except ExportError as error:
        sizes = [(cluster.gpus // cluster.hb_domain, _least_share(plan))]
        notes = (f"one dimension for the whole network, at the least share of its leaves ({error.problems[0].found})",)
    nic_gbps = _nic_gbps(plan)
    dimensions = [(cluster.hb_domain, cluster.scale_up_gbps, DOMAIN_LATENCY_NS)]
    dimensions += [(size, nic_gbps * share, NETWORK_LATENCY_NS) for size, share in sizes]
    kept = [dimension for dimension in dimensions if dimension[0] > 1] or dimensions[:1]
    with text_written_atomically(path) as file:
        file.write(f"topology: [ {', '.join('Switch' for _ in kept)} ]\n")
        file.write(f"npus_count: [ {', '.join(str(size) for size, _, _ in kept)} ]\n")
        rates = ", ".join(repr(round(gbps / BITS_PER_BYTE, 6)) for _, gbps, _ in kept)
        file.write(f"bandwidth: [ {rates} ]  # GB/s\n")
        file.write(f"latency: [ {', '.join(repr(latency) for _, _, latency in kept)} ]  # ns\n")
    return notes


def _nic_gbps(plan: Plan) -> float:
    """Rate of the slowest GPU into the network, all planes together."""
    links = plan.fabric.links
    hosts = np.flatnonzero(plan.fabric.nodes.kind[links.a] == GPU)
    total = np.bincount(links.a[hosts], weights=links.gbps[hosts], minlength=plan.fabric.gpus)
    return float(total[: plan.fabric.gpus].min())


def _sizes(plan: Plan, clos: UniformClos) -> list[tuple[int, float]]:
    """Dimensions above the HB domain as (size, share of the NIC's rate): leaf, pod, whole network.

    Raises:
        ExportError: the domains of a leaf, or of a pod, are no block of neighbours like all others.
    """
    domains = plan.file.cluster.gpus // plan.file.cluster.hb_domain
    leaf = _block(plan, plan.fabric.links.b)
    sizes, share, inner = [(leaf, 1.0)], 1.0, leaf
    for number, tier in enumerate(clos.tiers[:-1]):
        up = clos.up(number) * clos.tiers[number + 1].gbps
        share *= min(1.0, up / (tier.down * tier.gbps))
        last = number + 2 == len(clos.tiers)
        outer = domains if last else _block(plan, plan.fabric.nodes.pod[plan.fabric.links.b])
        if outer % inner:
            raise plan.refuse(f"{inner} domains of {outer}", ALLOWED)
        sizes.append((outer // inner, share))
        inner = outer
    if inner != domains:
        raise plan.refuse(f"{inner} domains of {domains} in a network", ALLOWED)
    return sizes


def _block(plan: Plan, group_of_link: Column) -> int:
    """Domains of each group of host links: blocks of neighbours, all of one size.

    Raises:
        ExportError: they are not.
    """
    links = plan.fabric.links
    hosts = np.flatnonzero(plan.fabric.nodes.kind[links.a] == GPU)
    domain, group = links.a[hosts] // plan.file.cluster.hb_domain, group_of_link[hosts]
    pairs = np.unique(group * (int(domain.max(initial=0)) + 1) + domain)
    group, domain = np.divmod(pairs, int(domain.max(initial=0)) + 1)
    _, first, count = np.unique(group, return_index=True, return_counts=True)
    low, high, size = domain[first], domain[first + count - 1], int(count.max(initial=1))
    if (count != size).any() or (high - low + 1 != size).any() or (low % size).any():
        raise plan.refuse("leaves whose domains are no block of neighbours like the others", ALLOWED)
    return size


def _least_share(plan: Plan) -> float:
    """The least rate up over rate down of a leaf that has uplinks, at most 1."""
    links, kind = plan.fabric.links, plan.fabric.nodes.kind
    rate = links.gbps.astype(float)
    lower = kind[links.a]
    down = np.bincount(links.b[lower < LEAF], weights=rate[lower < LEAF], minlength=plan.fabric.n_nodes)
    up = np.bincount(links.a[lower == LEAF], weights=rate[lower == LEAF], minlength=plan.fabric.n_nodes)
    leaves = np.flatnonzero((kind == LEAF) & (down > 0) & (up > 0))
    return float(min(1.0, (up[leaves] / down[leaves]).min())) if len(leaves) else 1.0
