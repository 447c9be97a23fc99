"""The templates on an instance's own catalog and demands, and in words how a design differs from each."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from designer.catalog.components import Switch
from designer.costing.grids import priced_grid
from designer.costing.pricing import MediaFinder, Pricing, cost_parts, pieces, with_media
from designer.fabric.grid import GridMedia, GridShape, zcube
from designer.fabric.shape import ClosShape, Hosts
from designer.fabric.templates import NAMES, clos_templates, full_tree_counts
from designer.formulation.demand import Needs, unmet
from designer.formulation.hardware import usable_switches
from designer.formulation.step_budget import required
from designer.instance.instance import Instance
from designer.units import usd
from designer.workload.cuts import CutFunction
from designer.workload.traffic import Traffic

NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class TemplateDesign:
    """A template on one switch model, with its cost in cents, counts, and which requirements it falls short of.

    `meets` is None where the arithmetic of the Clos family does not apply. `in_family` says that the search could
    have found it. `shape` is None for trees too tall to draw.
    """

    name: str
    switch: Switch
    shape: ClosShape | GridShape | None
    media: GridMedia | None
    cost_cents: int
    parts: dict[str, int]
    counts: dict[str, int]
    unmet: tuple[str, ...]
    meets: bool | None
    in_family: bool


@dataclass(frozen=True)
class ComparisonRow:
    """One template beside the design: `saving` is what the design saves of the template's cost."""

    template: str
    switch: str
    cost_cents: int
    counts: dict[str, int]
    meets: bool | None
    saving: float
    why: str

    def to_document(self) -> dict[str, object]:
        """The row as plain data, money in USD."""
        return {
            "template": self.template,
            "switch": self.switch,
            "cost_usd": usd(self.cost_cents),
            "switches": self.counts["switches"],
            "links": self.counts["links"],
            "counts": self.counts,
            "meets": self.meets,
            "saving": self.saving,
            "why": self.why,
        }


def best_templates(
    instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder | None = None
) -> list[TemplateDesign]:
    """Each template in its cheapest variant that meets the instance, or else its cheapest; in the order of `NAMES`."""
    media = media or MediaFinder(instance.catalog)
    best: dict[str, TemplateDesign] = {}
    for candidate in _variants(instance, traffic, pricing, media):
        held = best.get(candidate.name)
        if held is None or _rank(candidate) < _rank(held):
            best[candidate.name] = candidate
    return [best[name] for name in NAMES if name in best]


def _rank(item: TemplateDesign) -> tuple[bool, int]:
    return item.meets is False, item.cost_cents


def _variants(instance: Instance, traffic: Traffic, pricing: Pricing, media: MediaFinder) -> Iterator[TemplateDesign]:
    cluster = instance.cluster
    switches = usable_switches(instance.catalog, cluster.nic, instance.search, pricing)
    fewest = min(mode.ports for mode in cluster.nic.modes)
    needs: dict[object, Needs] = {}
    drawn: set[tuple[str, str]] = set()
    for mode in cluster.nic.modes:
        hosts = Hosts(cluster.gpus, cluster.rails, cluster.nic, mode, cluster.management_ports)
        for name, bare in clos_templates(hosts, fewest, switches):
            shape = with_media(bare, media, instance.cabling, pricing)
            if shape is None:
                continue
            drawn.add((name, shape.leaf.switch.key))
            yield _judged(name, shape, instance, traffic, pricing, needs)
        if mode.ports == 2:
            for switch in switches:
                yield from _zcubes(instance, hosts, switch, pricing, media)
        if mode.ports == fewest:
            for switch in switches:
                if ("fat-tree", switch.key) not in drawn:
                    yield from _tall_tree(instance, hosts, switch, pricing, media)


def _judged(
    name: str,
    shape: ClosShape,
    instance: Instance,
    traffic: Traffic,
    pricing: Pricing,
    known: dict[object, Needs],
) -> TemplateDesign:
    layout = shape.layout
    short: list[str] = []
    if traffic.needs_joined_rails() and layout.rails < traffic.rails:
        short.append("traffic from rail to rail has no path")
    else:
        key = (layout, shape.hosts.nic_mode)
        if key not in known:
            cuts = CutFunction(traffic, layout)
            known[key] = required(instance, traffic)(cuts, instance.requirements, shape.hosts.planes, shape.hosts.gbps)
        short += unmet(shape, known[key], ecmp=instance.requirements.routing == "ecmp")
    outside = _outside_family(shape, instance, traffic)
    parts = cost_parts(shape, pricing)
    counts = shape.counts() | _pieces_of(shape, instance)
    reasons = (*short, *outside)
    return TemplateDesign(
        name,
        shape.leaf.switch,
        shape,
        None,
        sum(parts.values()),
        parts,
        counts,
        reasons,
        not reasons,
        in_family=not outside,
    )


def _outside_family(shape: ClosShape, instance: Instance, traffic: Traffic) -> list[str]:
    """Search options of the instance that exclude the template, whatever it carries."""
    search, layout = instance.search, shape.layout
    found: list[str] = []
    if layout.mixed and search.leaf_sharing != "any" and not traffic.needs_joined_rails():
        found.append(f"excluded by search.leaf_sharing: {search.leaf_sharing}, it splits rails over leaves")
    shares = not layout.mixed and layout.rails > 1 and shape.down >= 2 * layout.per_rail
    if shares and search.leaf_sharing == "none":
        found.append("excluded by search.leaf_sharing: none, its rails share leaves")
    if shape.tiers > search.max_tiers:
        found.append(f"excluded by search.max_tiers: {search.max_tiers}, it has {shape.tiers}")
    if search.planes is not None and shape.hosts.planes not in search.planes:
        found.append(f"excluded by search.planes: {search.planes}, it has {shape.hosts.planes}")
    if search.leaf.down is not None and shape.down != search.leaf.down:
        found.append(f"excluded by search.leaf.down: {search.leaf.down}, its leaves have {shape.down}")
    if search.leaf.up is not None and shape.uplinks != search.leaf.up:
        found.append(f"excluded by search.leaf.up: {search.leaf.up}, its leaves have {shape.uplinks}")
    return found


def _pieces_of(shape: ClosShape, instance: Instance) -> dict[str, int]:
    bought: Counter[str] = Counter()
    if shape.media is not None:
        tally = shape.tally()
        for name in ("host", "leaf_spine", "spine_core"):
            medium = getattr(shape.media, name)
            if medium is not None:
                bought += pieces(tally[name], medium)
    return piece_counts(bought, instance)


def piece_counts(bought: Counter[str], instance: Instance) -> dict[str, int]:
    """Cables and transceivers among the pieces bought."""
    catalog = instance.catalog
    return {
        "cables": sum(count for key, count in bought.items() if key in catalog.cables or key in catalog.fibres),
        "transceivers": sum(count for key, count in bought.items() if key in catalog.transceivers),
    }


def _zcubes(
    instance: Instance, hosts: Hosts, switch: Switch, pricing: Pricing, media: MediaFinder
) -> Iterator[TemplateDesign]:
    for mode in switch.modes_at(hosts.gbps):
        shape = zcube(hosts, switch, mode)
        priced = None if shape.problems() else priced_grid(shape, instance.cabling, pricing, media)
        if priced is not None:
            counts = shape.counts() | piece_counts(priced.pieces(), instance)
            yield TemplateDesign(
                "zcube", switch, shape, priced.media, priced.cents, priced.parts, counts, (), None, in_family=False
            )


def _tall_tree(
    instance: Instance, hosts: Hosts, switch: Switch, pricing: Pricing, media: MediaFinder
) -> Iterator[TemplateDesign]:
    """A full tree of four or more tiers: counted and priced, not drawn.

    With n endpoints and T tiers of radix R, tiers 1 to T-1 have 2n/R switches each, the top n/R. Tier 1 counts as
    leaf, the top as core, all between as spine; links likewise.
    """
    for mode in switch.modes_at(hosts.gbps):
        radix, per_cage = switch.radix(mode), mode.ports_per_cage
        if radix < 4:
            continue  # a tree of such switches does not branch
        tree = full_tree_counts(hosts.gpus, radix)
        end, cabling = (switch.cage, per_cage), instance.cabling
        nic_end = (hosts.nic.cage, hosts.nic.ports_per_cage(hosts.nic_mode))
        host = next(iter(media.between(nic_end, end, hosts.gbps, cabling.host_m)), None)
        inner = next(iter(media.between(end, end, hosts.gbps, cabling.spine_core_m)), None)
        if tree.tiers < 4 or host is None or inner is None:
            continue
        cages = -(-hosts.gpus // per_cage)
        lower, upper, link = pricing.medium_cents(host)
        nic_cages = -(-hosts.gpus // hosts.nic.nics_per_cage) * min(hosts.nic.cages_per_nic, hosts.nic_mode.ports)
        host_cents = lower * nic_cages + upper * cages + link * hosts.gpus
        lower, upper, link = pricing.medium_cents(inner)
        inner_cents = (tree.tiers - 1) * ((lower + upper) * cages + link * hosts.gpus)
        leaf = -(-2 * hosts.gpus // radix)
        core = -(-hosts.gpus // radix)
        tiers = {"leaf": leaf, "spine": max(0, tree.switches - leaf - core), "core": core}
        planes, price = hosts.planes, pricing.switch_cents(switch)
        above = tree.tiers - 1
        parts = {
            **{tier: count * price * planes for tier, count in tiers.items()},
            "host": host_cents * planes,
            "leaf_spine": inner_cents // above * planes,
            "spine_core": inner_cents // above * (above - 1) * planes,
        }
        counts = {
            "switches": sum(tiers.values()) * planes,
            **{tier: count * planes for tier, count in tiers.items()},
            "fabrics": planes,
            "planes": planes,
            "links": tree.links * planes,
            "endpoint_links": hosts.gpus * planes,
            "leaf_leaf_links": 0,
            "leaf_spine_links": hosts.gpus * planes,
            "spine_core_links": (above - 1) * hosts.gpus * planes,
            "cables": tree.links * planes,
            "transceivers": 2 * ((tree.tiers - 1) * cages + cages) * planes,
        }
        short = f"excluded by search.max_tiers: {instance.search.max_tiers}, it has {tree.tiers}"
        for name in ("fat-tree", "rail-optimized"):
            yield TemplateDesign(
                name, switch, None, None, sum(parts.values()), parts, counts, (short,), False, in_family=False
            )


@dataclass(frozen=True)
class Compared:
    """What the templates are set against: cost and its parts in cents, counts; leaf model and shape of a Clos."""

    cost_cents: int
    parts: dict[str, int]
    counts: dict[str, int]
    leaf: Switch | None
    shape: ClosShape | None


def comparison_rows(traffic: Traffic, found: Compared, known: list[TemplateDesign]) -> list[ComparisonRow]:
    """The templates beside a design, cheapest saving last, each with the difference in words."""
    rows = [
        ComparisonRow(
            item.name,
            item.switch.key,
            item.cost_cents,
            item.counts,
            item.meets,
            1 - found.cost_cents / item.cost_cents if item.cost_cents else 0.0,
            _why(item, found, traffic),
        )
        for item in known
    ]
    return sorted(rows, key=lambda row: -row.saving)


def _why(item: TemplateDesign, found: Compared, traffic: Traffic) -> str:
    """What the design does differently from a template and what each difference is worth, largest first."""
    shape, parts, counts = found.shape, found.parts, found.counts
    if shape is not None and _same(item.shape, shape):
        return "the same network"
    total = item.cost_cents
    sentences: list[tuple[int, str]] = []
    switches = ("leaf", "spine", "core")
    before = sum(item.parts.get(name, 0) for name in switches)
    saved = before - sum(parts.get(name, 0) for name in switches)
    here = ", ".join(f"{counts[tier]:,} {tier}" for tier in switches if counts[tier])
    there = ", ".join(f"{item.counts[tier]:,} {tier}" for tier in switches if item.counts[tier])
    if shape is None:
        here = f"{counts['switches']:,} switches joined directly"
    other_leaf = found.leaf is not None and found.leaf != item.switch
    if shape is None or other_leaf or counts["switches"] != item.counts["switches"]:
        models = f" ({found.leaf.key} leaves for {item.switch.key})" if other_leaf and found.leaf is not None else ""
        sentences.append((saved, f"{here} in place of {there}{models}: {_percent(saved, total)}"))
    upper = ("leaf_spine", "leaf_leaf", "spine_core")
    saved = sum(item.parts.get(name, 0) for name in upper) - sum(parts.get(name, 0) for name in upper)
    links_here = counts["links"] - counts["endpoint_links"]
    links_there = item.counts["links"] - item.counts["endpoint_links"]
    if links_here != links_there:
        reason = oversubscription(shape, traffic) if shape is not None else ""
        because = f", {reason}" if reason and saved > 0 else ""
        sentences.append(
            (saved, f"{links_here:,} links between switches for {links_there:,}{because}: {_percent(saved, total)}")
        )
    saved = item.parts.get("host", 0) - parts["host"]
    if saved:
        sentences.append((saved, f"host cabling: {_percent(saved, total)}"))
    sentences.sort(key=lambda pair: -pair[0])
    words = "; ".join(sentence for _, sentence in sentences)
    if item.meets is False:
        # What the network lacks goes before what the instance's search leaves out.
        first = item.unmet[0] if item.unmet[0].startswith("excluded") else f"falls short: {item.unmet[0]}"
        words = first + (f"; {words}" if words else "")
    return words or "the same switches and links"


def _same(one: ClosShape | GridShape | None, other: ClosShape) -> bool:
    return isinstance(one, ClosShape) and replace(one, media=None) == replace(other, media=None)


def _percent(saved: int, total: int) -> str:
    """The change of the whole cost; sign, number and unit stay on one line."""
    part = -100 * saved / total if total else 0.0
    return f"{part:+.1f}{NO_BREAK}%".replace("-", "−")


def oversubscription(shape: ClosShape, traffic: Traffic) -> str:
    """In words: how far the leaves of a design are oversubscribed, and which traffic allows it."""
    if shape.spines is None or shape.leaf.up_mode is None:
        return "no uplinks, as each fabric is one switch"
    ratio = shape.down * shape.hosts.gbps / (shape.uplinks * shape.leaf.up_mode.gbps)
    if ratio <= 1.001:
        return ""
    cuts = CutFunction(traffic, shape.layout)
    crossing = sorted(
        {
            phase.name
            for phase in traffic.network_phases
            for step in phase.steps
            if cuts.phase_leaf(phase, step, shape.down) > 0
        }
    )
    allowed = f"only {' and '.join(crossing)} leave a leaf" if crossing else "no traffic leaves a leaf"
    floors = {phase.floor for phase in traffic.network_phases if phase.name in crossing}
    at = f" at {min(floors):g} of line rate" if floors and min(floors) < 1 else ""
    return f"leaves oversubscribed {ratio:.1f}:1 as {allowed}{at}"
