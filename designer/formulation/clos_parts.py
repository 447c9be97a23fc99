"""What the Clos search sorts its choices by: hosts and their order, hardware, ports of leaves, pods, least needs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from designer.catalog.media import LinkMedium
from designer.fabric.shape import Hosts
from designer.formulation.clos import Hardware, LeafOption
from designer.formulation.demand import Needs
from designer.workload.cuts import Ints, Layout


@dataclass(frozen=True)
class Slice:
    """One choice of planes and endpoint order, with its needs."""

    hosts: Hosts
    layout: Layout
    needs: Needs

    @property
    def fabrics(self) -> int:
        """Number of equal fabrics."""
        return self.hosts.planes * -(-self.hosts.rails // self.layout.rails)


@dataclass
class Group:
    """Options on one choice of hardware, and the least that any of its networks costs."""

    part: Slice
    hardware: Hardware
    options: list[LeafOption]
    bound_cents: int = field(init=False)

    def __post_init__(self) -> None:
        self.bound_cents = min(option.bound_cents for option in self.options)


@dataclass(frozen=True)
class Need:
    """How many are needed of a component at `cents` each; `length_m` is that of its links, 0 for switches."""

    key: str
    length_m: float
    cents: int
    count: Ints


def link_needs(
    medium: LinkMedium, length_m: float, cents: tuple[int, int, int], lower: Ints, links: Ints, per_cage: int
) -> Iterator[Need]:
    """What links take at their cages below, at full cages above, and each."""
    keys = medium.per_lower_cage, medium.per_upper_cage, medium.per_link
    for key, each, count in zip(keys, cents, (lower, -(-links // per_cage), links), strict=True):
        if key is not None or each:
            yield Need(key or "", length_m, each, count)


@dataclass(frozen=True)
class Attachment:
    """`down` ports of a leaf, hence leaves, their cost with host links, and what is free for uplinks."""

    down: int
    leaves: int
    base_cents: int
    free_cages: int
    free_ports: int


@dataclass(frozen=True)
class Pods:
    """Pods of `leaves_per_pod`, the links of `gbps` that each needs, and the need in Gb/s when nothing is lost."""

    leaves_per_pod: int
    pods: int
    last_pod_leaves: int
    links: int
    intact_gbps: float
    gbps: int
