"""Who talks to whom: bytes between blocks of GPUs, and how many pairs of GPUs exchange anything at all.

Pairs are those that bytes travel between directly, over the scale-up network or from NIC to NIC. Every exchange is
periodic, so nothing here holds a table of all pairs: counts come from groups, bytes from one pass over the GPUs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from designer.instance.instance import Instance, Job
from designer.workload import collectives as volume
from designer.workload.cuts import Floats, Ints
from designer.workload.phases import DEFAULT_PATTERNS
from designer.workload.placement import Digit, digits, domain_group, merge
from designer.workload.traffic import Phase, Traffic

MAX_GROUPINGS = 10


@dataclass(frozen=True)
class Exchange:
    """Members of a group send to each other; `stride` GPUs lie between them, `size` of them form a group.

    Patterns are those of a `Component`, and `chain`: a shift in which what leads out of the group is not sent.
    `gpu_bytes` is what a GPU sends in one iteration, on average over the group.
    """

    pattern: str
    stride: int
    size: int
    by: int
    first_gpu: int
    gpus: int
    gpu_bytes: float


@dataclass(frozen=True)
class PairCount:
    """Unordered pairs of GPUs: all of them, and those that exchange bytes; an upper bound where not `exact`."""

    total: int
    exchanging: int
    exact: bool

    @property
    def silent_share(self) -> float:
        """Part of the pairs that exchange nothing."""
        return 1 - self.exchanging / self.total if self.total else 1.0


@dataclass(frozen=True)
class Shares:
    """Bytes of all GPUs in one iteration by the way they take: inside the domain, on a rail, from rail to rail."""

    domain_bytes: float
    rail_bytes: float
    across_rails_bytes: float

    def fractions(self) -> tuple[float, float, float]:
        """The three as parts of their sum; zeros where there are no bytes."""
        parts = (self.domain_bytes, self.rail_bytes, self.across_rails_bytes)
        total = sum(parts)
        return (parts[0] / total, parts[1] / total, parts[2] / total) if total else (0.0, 0.0, 0.0)


def counted_phases(instance: Instance, traffic: Traffic) -> list[Phase]:
    """The phases whose bytes add up to the traffic: mixes are left out, as their parts are there already."""
    mixes = {
        (item.name, "+".join(names)) for item in instance.workload if isinstance(item, Job) for names in item.mixes
    }
    return [phase for phase in traffic.phases if (phase.job, phase.name) not in mixes]


def network_exchanges(phase: Phase, hb_domain: int) -> list[Exchange]:
    """What a phase sends from NIC to NIC; on a rail the members of a group lie whole domains apart."""
    unit = hb_domain if phase.across == "rail" else 1
    return [
        Exchange(
            part.pattern,
            part.stride * unit,
            part.size,
            part.by,
            phase.first_gpu,
            phase.gpus,
            step.nic_bytes * part.rate,
        )
        for step in phase.steps
        for part in step.components
    ]


def domain_exchanges(job: Job, phases: Sequence[Phase], hb_domain: int, patterns: dict[str, str]) -> list[Exchange]:
    """What the phases of a job send inside HB domains, by the ranks of each group that share a domain.

    An all-reduce over several dimensions takes one after the other with ever smaller parts, as the phases do.
    """
    chosen = {**DEFAULT_PATTERNS, **patterns}
    digit = digits(job.parallelism)
    result: list[Exchange] = []
    for phase in phases:
        if phase.job != job.name or phase.first_gpu != job.first_gpu or not phase.domain_bytes:
            continue
        replicas = [digit["cp"], digit["ep"], digit["dp"]]
        parts = merge(replicas) if phase.name == "dp" else [digit[phase.name]]
        weights, left = list[float](), 1.0
        for part in parts:
            weights.append(volume.all_reduce_bytes(left, domain_group(part, hb_domain).members))
            left /= part.size
        for part, weight in zip(parts, weights, strict=True):
            if weight:
                gpu_bytes = phase.domain_bytes * weight / sum(weights)
                result += _inside(job, part, _pattern(job, phase.name, chosen), hb_domain, gpu_bytes)
    return result


def _pattern(job: Job, phase: str, chosen: dict[str, str]) -> str:
    if phase == "pp":
        return "both ways"
    if phase == "cp":
        return "one way" if job.context_exchange == "ring" else "all-to-all"
    return chosen[phase]


def _inside(job: Job, part: Digit, pattern: str, hb_domain: int, gpu_bytes: float) -> Iterator[Exchange]:
    group = domain_group(part, hb_domain)
    members = group.members

    def exchange(kind: str, by: int, share: float) -> Exchange:
        return Exchange(kind, part.stride, members, by, job.first_gpu, job.gpus, gpu_bytes * share)

    if pattern == "both ways":
        for by in (1, -1):
            yield exchange("chain" if group.size > 1 else "shift", by, 0.5)
    elif pattern in ("ring", "one way"):
        yield exchange("chain" if pattern == "one way" and group.size > 1 else "shift", 1, 1.0)
    elif pattern == "halving-doubling" and members & (members - 1) == 0:
        distances = [1 << bit for bit in range(members.bit_length() - 1)]
        for by in distances:
            yield exchange("exchange", by, volume.halving_doubling_bytes(1.0, members, by) / 2 / (1 - 1 / members))
    else:
        yield exchange("all-to-all" if pattern == "all-to-all" else "any", 0, 1.0)


def exchanges(instance: Instance, traffic: Traffic) -> list[Exchange]:
    """Everything that is sent in one iteration, inside the domains and from NIC to NIC."""
    patterns = {str(name): str(pattern) for name, pattern in instance.requirements.collectives.items()}
    phases = counted_phases(instance, traffic)
    result = [item for phase in phases for item in network_exchanges(phase, traffic.hb_domain)]
    for job in instance.workload:
        if isinstance(job, Job):
            result += domain_exchanges(job, phases, traffic.hb_domain, patterns)
    return result


def _digits(item: Exchange) -> tuple[Ints, Ints]:
    """GPUs of the exchange, and the position of each in its group."""
    offset = np.arange(item.gpus)
    return item.first_gpu + offset, offset // item.stride % item.size


def _group(item: Exchange) -> Ints:
    """Number of the group of each GPU of the exchange."""
    offset = np.arange(item.gpus)
    return offset // (item.stride * item.size) * item.stride + offset % item.stride


def _partners(item: Exchange) -> tuple[Ints, Ints]:
    """Sender and receiver of a pattern in which each sends to one other; `any` stands for a ring here."""
    gpu, digit = _digits(item)
    if item.pattern == "exchange":
        target = digit ^ item.by
    elif item.pattern == "chain":
        target = np.clip(digit + item.by, 0, item.size - 1)
    else:
        target = (digit + (1 if item.pattern == "any" else item.by)) % item.size
    peer = gpu + (target - digit) * item.stride
    sends = peer != gpu
    return gpu[sends], peer[sends]


def bytes_between(items: Sequence[Exchange], key: Ints, keys: int) -> Floats:
    """Bytes that GPUs of each key send to GPUs of each other, as a keys x keys table; `key` has one entry a GPU.

    `any` counts as a ring.
    """
    table = np.zeros((keys, keys))
    for item in items:
        if item.size < 2:
            continue
        if item.pattern == "all-to-all":
            of_gpu = key[item.first_gpu : item.first_gpu + item.gpus]
            groups = item.gpus // item.size
            members = np.bincount(_group(item) * keys + of_gpu, minlength=groups * keys).reshape(groups, keys)
            members = members.astype(np.float64)
            pairs = members.T @ members - np.diag(members.sum(axis=0))
            table += pairs * item.gpu_bytes / (item.size - 1)
        else:
            sender, receiver = _partners(item)
            if len(sender):
                count = np.bincount(key[sender] * keys + key[receiver], minlength=keys * keys).reshape(keys, keys)
                table += count * item.gpu_bytes * item.gpus / len(sender)
    return table


def heat_map(items: Sequence[Exchange], gpus: int, most_bins: int = 32) -> tuple[int, Floats]:
    """GPUs of a bin, and bytes from bin to bin."""
    width = -(-gpus // most_bins)
    return width, bytes_between(items, np.arange(gpus) // width, -(-gpus // width))


def count_pairs(items: Sequence[Exchange], gpus: int, *, any_pairs: bool = False) -> PairCount:
    """How many pairs of GPUs exchange bytes, each pair counted once whatever the number of exchanges it takes part in.

    `any` counts as a ring, or with `any_pairs` as all pairs of its groups, whichever of them an algorithm uses.
    """
    groupings: list[Ints] = []
    lists: list[Ints] = []
    for item in dict.fromkeys(_unweighted(item) for item in items if item.size > 1):
        if item.pattern == "all-to-all" or (item.pattern == "any" and any_pairs):
            _lay(groupings, item, gpus)
        else:
            sender, receiver = _partners(item)
            lists.append(np.minimum(sender, receiver) * gpus + np.maximum(sender, receiver))
    groupings = _coarsest(groupings)
    exact = len(groupings) <= MAX_GROUPINGS
    exchanging = _union(groupings) if exact else sum(_pairs_within(group) for group in groupings)
    if lists:
        low, high = np.divmod(np.unique(np.concatenate(lists)), gpus)
        counted = np.zeros(len(low), dtype=bool)
        for group in groupings:
            counted |= group[low] == group[high]
        exchanging += int((~counted).sum())
    return PairCount(gpus * (gpus - 1) // 2, exchanging, exact)


def _unweighted(item: Exchange) -> Exchange:
    return Exchange(item.pattern, item.stride, item.size, item.by, item.first_gpu, item.gpus, 0.0)


def _lay(groupings: list[Ints], item: Exchange, gpus: int) -> None:
    """Adds the groups of `item` to the first grouping in which its GPUs are alone, or to a new one."""
    own = slice(item.first_gpu, item.first_gpu + item.gpus)
    alone = np.arange(gpus)
    for group in groupings:
        if (group[own] == alone[own]).all():
            break
    else:
        group = alone.copy()
        groupings.append(group)
    group[own] = gpus + item.first_gpu + _group(item)


def _coarsest(groupings: list[Ints]) -> list[Ints]:
    """The groupings without those whose groups all lie within the groups of another."""
    kept: list[Ints] = []
    for group in sorted(groupings, key=_pairs_within, reverse=True):
        if not any(_pairs_within(_meet([group, other])) == _pairs_within(group) for other in kept):
            kept.append(group)
    return kept


def _meet(groupings: Sequence[Ints]) -> Ints:
    """GPUs that are together in every grouping, as a grouping."""
    result = np.unique(groupings[0], return_inverse=True)[1]
    for group in groupings[1:]:
        inverse = np.unique(group, return_inverse=True)[1]
        result = np.unique(result * (int(inverse.max()) + 1) + inverse, return_inverse=True)[1]
    return result


def _pairs_within(group: Ints) -> int:
    count = np.unique(group, return_counts=True)[1]
    return int((count * (count - 1) // 2).sum())


def _union(groupings: Sequence[Ints]) -> int:
    """Pairs together in at least one grouping, by inclusion and exclusion."""
    return sum(
        (-1) ** (number - 1) * _pairs_within(_meet(chosen))
        for number in range(1, len(groupings) + 1)
        for chosen in combinations(groupings, number)
    )


def shares(instance: Instance, traffic: Traffic) -> Shares:
    """Bytes of one iteration by the way they take, over all GPUs; demands without a model have no bytes to count."""
    jobs = {item.name for item in instance.workload if isinstance(item, Job)}
    rail = np.arange(traffic.gpus) % traffic.rails
    inside = same = across = 0.0
    for phase in counted_phases(instance, traffic):
        if phase.job not in jobs:
            continue
        inside += phase.domain_bytes * phase.gpus
        table = bytes_between(network_exchanges(phase, traffic.hb_domain), rail, traffic.rails)
        same += float(np.trace(table))
        across += float(table.sum() - np.trace(table))
    return Shares(inside, same, across)
