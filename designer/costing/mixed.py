"""What a network of several kinds of servers costs: the objective in parts, cages where kinds meet counted once."""

from dataclasses import dataclass

from designer.costing.pricing import Pricing
from designer.fabric.fabric import Fabric
from designer.fabric.mixed import MixedShape, build_mixed
from designer.fabric.shape import ClosShape


@dataclass(frozen=True)
class PricedMixed:
    """A mixed shape with what it costs in cents by part: leaf, host and, with spines, spine and leaf_spine."""

    shape: MixedShape
    parts: dict[str, int]

    @property
    def cents(self) -> int:
        """The objective."""
        return sum(self.parts.values())

    def draw(self) -> Fabric:
        """The network link by link, its GPUs numbered kind by kind."""
        return build_mixed(self.shape)


def priced_mixed(shape: MixedShape, pricing: Pricing) -> PricedMixed:
    """The shape with its price.

    Raises:
        ValueError: the shape has no media.
    """
    name = "host" if shape.one_tier else "leaf_spine"
    met = _met_cents(shape, pricing)
    parts = {"leaf": 0, "host": 0} if shape.one_tier else {"leaf": 0, "host": 0, "spine": 0, "leaf_spine": 0}
    for part, tally in zip(shape.parts, shape.tallies(), strict=True):
        if part.media is None:
            raise ValueError("a shape without media")
        parts["host"] += pricing.class_cents(tally["host"], part.media.host)
        if part.spines is not None and part.media.leaf_spine is not None:
            parts["leaf_spine"] += pricing.class_cents(tally["leaf_spine"], part.media.leaf_spine)
            parts["leaf"] += part.all_leaves * pricing.switch_cents(part.leaf.switch)
    parts[name] += met
    first = shape.parts[0]
    if first.spines is None:
        parts["leaf"] = shape.fabrics * pricing.switch_cents(first.leaf.switch)
    else:
        parts["spine"] = shape.fabrics * shape.spines * pricing.switch_cents(first.spines.tier.switch)
    return PricedMixed(shape, parts)


def upper_cents(part: ClosShape, pricing: Pricing) -> int:
    """What a cage takes in which links of this kind end where the kinds meet.

    Raises:
        ValueError: the shape has no media.
    """
    medium = None if part.media is None else part.media.host if part.spines is None else part.media.leaf_spine
    if medium is None:
        raise ValueError("a shape without media")
    return pricing.medium_cents(medium)[1]


def _met_cents(shape: MixedShape, pricing: Pricing) -> int:
    """What all cages take in which links end where the kinds meet."""
    total = 0
    for rail_set in range(shape.fabrics):
        counts: dict[tuple[int, str], int] = {}
        cents: dict[tuple[int, str], int] = {}
        for part, ports in zip(shape.parts, shape.shared_ports(shape.parts[0].set_rails(rail_set)), strict=True):
            pool = ports.mode.ports_per_cage, f"{ports.mode.gbps} {ports.key}"
            counts[pool] = counts.get(pool, 0) + ports.count
            cents[pool] = upper_cents(part, pricing)
        switches = max(1, shape.spines)
        total += switches * sum(cents[pool] * -(-count // pool[0]) for pool, count in counts.items())
    return total
