"""The design beside the rail-only template: its counts by closed form, its cost, and the difference in words.

Rail-only (Wang et al. 2023, arXiv 2307.12169) keeps a network for each rail and drops what joins the rails. With n
endpoints of a rail and switches of R ports a rail takes part of one switch (n <= R), L = ceil(n / (R/2)) leaves under
the smallest divisor of their uplinks that is at least L u / R spines, or pods of R/2 leaves under cores.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from designer.catalog.components import Catalog, NicMode, PortMode, Switch
from designer.certify.certificate import RailOnlyCheck
from designer.instance.instance import Cluster
from designer.units import usd

NAME = "rail-only"
UNSEEN = "it is one of the Clos networks, which were not searched"
RECOUNTED = ("switches", "leaf", "spine", "core", "endpoint_links", "leaf_spine_links", "spine_core_links", "links")


@dataclass(frozen=True)
class TemplateClaim:
    """What a design file says of the rail-only template."""

    switch: str
    cost_cents: int
    counts: Mapping[str, int]
    meets: bool | None
    why: str


def check_rail_only(
    cluster: Cluster,
    catalog: Catalog,
    claim: TemplateClaim | None,
    cost_cents: int,
    counts: Mapping[str, int],
    *,
    searched: bool = True,
) -> RailOnlyCheck:
    """Whether the claim counts as rail-only does, and costs no less than the design where it meets the requirements.

    It may cost less where Clos networks were not `searched`. For servers of several kinds there is no such template:
    then there must be no claim.
    """
    cost_usd = usd(cost_cents)
    if cluster.irregular:
        words = "rail-only is a network of servers that are all alike: there is none for this cluster"
        return RailOnlyCheck(claim is None, None, cost_usd, None, None, words)
    if claim is None:
        words = "no rail-only network of this catalog holds the cluster"
        return RailOnlyCheck(True, None, cost_usd, None, None, words)
    problems: list[str] = []
    switch = catalog.switches.get(claim.switch)
    if switch is None:
        problems.append(f"its switch {claim.switch} is not in the catalog of the file, so it was not counted again")
    else:
        known = list(rail_only_counts(cluster, switch))
        if not any(all(claim.counts.get(name) == value for name, value in each.items()) for each in known):
            right = " or ".join(f"{each['switches']} switches and {each['links']} links" for each in known) or "none"
            said = f"{claim.counts.get('switches')} switches and {claim.counts.get('links')} links"
            problems.append(f"the file says {said}, rail-only on {claim.switch} has {right}")
    cheaper = claim.meets and claim.cost_cents < cost_cents
    if cheaper and searched:
        problems.append(f"rail-only meets the requirements at ${usd(claim.cost_cents):,.2f}, the design costs more")
    return RailOnlyCheck(
        not problems,
        usd(claim.cost_cents),
        cost_usd,
        claim.counts.get("switches"),
        claim.counts.get("links"),
        "; ".join([*problems, _difference(claim, cost_cents, counts), *([UNSEEN] if cheaper and not searched else [])]),
    )


def _difference(claim: TemplateClaim, cost_cents: int, counts: Mapping[str, int]) -> str:
    does = {True: "meets the requirements", False: "falls short", None: "was not judged"}[claim.meets]
    saved = 1 - cost_cents / claim.cost_cents if claim.cost_cents else 0.0
    there = f"{claim.counts.get('switches', 0):,} switches and {claim.counts.get('links', 0):,} links"
    here = f"{counts.get('switches', 0):,} and {counts.get('links', 0):,}"
    change = f"saves {100 * saved:.1f} %" if saved >= 0 else f"costs {-100 * saved:.1f} % more"
    price = f"${usd(claim.cost_cents):,.0f}"
    words = f"rail-only {does} with {there} for {price}; the design has {here} and {change}"
    return f"{words}: {claim.why}" if claim.why else words


def rail_only_counts(cluster: Cluster, switch: Switch) -> Iterator[dict[str, int]]:
    """Counts of rail-only on a switch model, in every way to run its ports: uplinks as downlinks, or at full speed."""
    fewest = min(mode.ports for mode in cluster.nic.modes)
    for nic_mode in cluster.nic.modes:
        if nic_mode.ports != fewest:
            continue
        for down in switch.modes_at(nic_mode.gbps):
            fastest = max(switch.modes, key=lambda mode: mode.gbps)
            for up in dict.fromkeys((down, fastest)):
                counts = _counts(cluster, nic_mode, switch, down, up)
                if counts is not None:
                    yield counts


def _counts(cluster: Cluster, nic_mode: NicMode, switch: Switch, down: PortMode, up: PortMode) -> dict[str, int] | None:
    per_rail, management = cluster.gpus // cluster.rails, cluster.management_ports
    radix = switch.radix(down)
    sharing = min(cluster.rails, radix // (per_rail + management))
    if sharing:
        fabrics = -(-cluster.rails // sharing) * nic_mode.ports
        return _totals(cluster, nic_mode.ports, fabrics, (1, 0, 0), (0, 0))
    one = _one_rail(per_rail, management, radix // 2, -(-(radix // 2) * down.gbps // up.gbps), switch.radix(up))
    if one is None:
        return None
    return _totals(cluster, nic_mode.ports, cluster.rails * nic_mode.ports, *one)


def _totals(
    cluster: Cluster, planes: int, fabrics: int, tiers: tuple[int, int, int], links: tuple[int, int]
) -> dict[str, int]:
    hosts = cluster.gpus * planes + cluster.management_ports * fabrics
    leaf, spine, core = (fabrics * count for count in tiers)
    leaf_spine, spine_core = (fabrics * count for count in links)
    values = (leaf + spine + core, leaf, spine, core, hosts, leaf_spine, spine_core, hosts + leaf_spine + spine_core)
    return dict(zip(RECOUNTED, values, strict=True))


def _one_rail(
    per_rail: int, management: int, down: int, up: int, radix: int
) -> tuple[tuple[int, int, int], tuple[int, int]] | None:
    """Leaves, spines and cores of one rail, and the links between them; None where three tiers do not hold it."""
    leaves = -(-per_rail // down)
    leaves += -(-max(0, management - (leaves * down - per_rail)) // down)
    spines = _divisor(up, -(-leaves * up // radix))
    if spines is not None:
        return (leaves, spines, 0), (leaves * up, 0)
    half = radix // 2
    pods = -(-leaves // half)
    if not 2 <= pods <= radix:
        return None
    bundle = next(value for value in range(half, 0, -1) if half % value == 0 and pods * value <= radix)
    positions = max(value for value in range(1, radix // (pods * bundle) + 1) if up % value == 0)
    cores = up // positions * (half // bundle)
    return (leaves, pods * up, cores), (leaves * up, pods * up * half)


def _divisor(number: int, least: int) -> int | None:
    return next((value for value in range(max(least, 1), number + 1) if number % value == 0), None)
