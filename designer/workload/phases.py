"""The phases of a training job or of a stated demand: which groups talk, in which pattern, and how many bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from designer.instance.instance import DirectDemand, Instance, Job
from designer.workload import collectives as volume
from designer.workload import transformer
from designer.workload.placement import Digit, DomainGroup, digits, domain_group, merge
from designer.workload.traffic import Component, Phase, Step, Traffic, mix

DEFAULT_PATTERNS: Mapping[str, str] = {"tp": "ring", "cp": "ring", "ep": "all-to-all", "dp": "any"}


@dataclass(frozen=True)
class _Load:
    """Steps on the network and bytes inside the domain of one exchange."""

    steps: tuple[Step, ...] = ()
    domain_bytes: float = 0.0

    def __add__(self, other: "_Load") -> "_Load":
        return _Load(self.steps + other.steps, self.domain_bytes + other.domain_bytes)


def _pattern_steps(name: str, group: DomainGroup, pattern: str, nic_bytes: float) -> tuple[Step, ...]:
    def step(label: str, kind: str, by: int, size_bytes: float) -> Step:
        return Step(label, (Component(kind, group.stride, group.size, by, 1.0),), size_bytes)

    if pattern == "ring":
        return (step(name, "shift", 1, nic_bytes),)
    if pattern == "halving-doubling":
        whole = nic_bytes / volume.all_reduce_bytes(1.0, group.size)
        distances = [1 << bit for bit in range(group.size.bit_length() - 1)]
        return tuple(
            step(f"{name} {d}", "exchange", d, volume.halving_doubling_bytes(whole, group.size, d)) for d in distances
        )
    return (step(name, pattern, 0, nic_bytes),)


def _all_reduce(name: str, parts: Sequence[Digit], size_bytes: float, pattern: str, hb_domain: int) -> _Load:
    """All-reduce over the ranks of `parts`: inside the domain first, then between domains, dimension by dimension."""
    load = _Load()
    for digit in merge(parts):
        group = domain_group(digit, hb_domain)
        inside = volume.all_reduce_bytes(size_bytes, group.members)
        steps: tuple[Step, ...] = ()
        if group.size > 1:
            between = volume.all_reduce_bytes(size_bytes / group.members, group.size)
            steps = _pattern_steps(name, group, pattern, between)
        load += _Load(steps, inside)
        size_bytes /= digit.size
    return load


def _all_to_all(name: str, digit: Digit, size_bytes: float, pattern: str, hb_domain: int) -> _Load:
    """All-to-all of `size_bytes` a rank, its own part included, over the ranks of `digit`."""
    if digit.size == 1:
        return _Load()
    group = domain_group(digit, hb_domain)
    inside = size_bytes * (group.members - 1) / digit.size
    if group.size == 1:
        return _Load((), inside)
    between = size_bytes * (digit.size - group.members) / digit.size
    return _Load(_pattern_steps(name, group, pattern, between), inside)


def _neighbours(name: str, digit: Digit, size_bytes: float, hb_domain: int, *, both_ways: bool) -> _Load:
    """Ring traffic along `digit`, to the next rank and, `both_ways`, as much to the one before."""
    if digit.size == 1:
        return _Load()
    group = domain_group(digit, hb_domain)
    directions = 2 if both_ways else 1
    if group.size == 1:
        return _Load((), directions * size_bytes)
    # Of the ranks in one domain only the last reaches out; PXN spreads what it sends over the domain's NICs.
    between = size_bytes / group.members
    inside = directions * (size_bytes - between)
    forward = Step(f"{name} next", (Component("shift", group.stride, group.size, 1, 1.0),), between)
    if not both_ways:
        return _Load((forward,), inside)
    backward = Step(f"{name} previous", (Component("shift", group.stride, group.size, group.size - 1, 1.0),), between)
    return _Load((forward, backward), inside)


def _loads(job: Job, patterns: Mapping[str, str], hb_domain: int) -> dict[str, _Load]:
    model, degrees = job.model, job.parallelism
    digit = digits(degrees)
    layers = model.layers / degrees.pp
    kv_hidden = model.kv_heads * model.head_dim
    turns = job.micro_batches
    tokens = job.micro_batch * job.seq_length / degrees.cp / degrees.tp

    tensor = volume.tensor_parallel_bytes(job.micro_batch, job.seq_length / degrees.cp, model.hidden)
    loads = {"tp": _all_reduce("tp", [digit["tp"]], turns * layers * tensor, patterns["tp"], hb_domain)}

    shape = (job.micro_batch, job.seq_length)
    if job.context_exchange == "ring":
        sent = volume.ring_attention_bytes(*shape, kv_hidden, degrees.cp, degrees.tp)
        loads["cp"] = _neighbours("cp", digit["cp"], turns * layers * sent, hb_domain, both_ways=False)
    else:
        sent = volume.ulysses_bytes(*shape, model.hidden, kv_hidden, degrees.cp, degrees.tp)
        loads["cp"] = _all_to_all("cp", digit["cp"], turns * layers * sent, "all-to-all", hb_domain)

    moe_layers = model.moe_layers / degrees.pp
    dispatch = volume.expert_dispatch_bytes(tokens, model.experts_per_token, model.hidden)
    loads["ep"] = _all_to_all("ep", digit["ep"], 4 * turns * moe_layers * dispatch, patterns["ep"], hb_domain)

    shared = transformer.dense_parameters(model) / degrees.tp / degrees.pp * job.gradient_bytes
    experts = transformer.expert_parameters(model) / degrees.tp / degrees.pp / degrees.ep * job.gradient_bytes
    replicas = [digit["cp"], digit["ep"], digit["dp"]]
    loads["dp"] = _all_reduce("dp", replicas, shared, patterns["dp"], hb_domain)
    if experts:
        loads["dp"] += _all_reduce("dp experts", [digit["cp"], digit["dp"]], experts, patterns["dp"], hb_domain)

    boundary = volume.pipeline_bytes(job.micro_batch, job.seq_length / degrees.cp, model.hidden, degrees.tp)
    sent = turns * degrees.interleave * boundary
    loads["pp"] = _neighbours("pp", digit["pp"], sent, hb_domain, both_ways=True)
    return loads


def phases_of_job(job: Job, patterns: Mapping[str, str], floors: Mapping[str, float], hb_domain: int) -> list[Phase]:
    """The phases of a training job, those that stay inside the domains included.

    Raises:
        MisalignedGroupError: a group of ranks cuts the domains unevenly.
    """
    chosen = {**DEFAULT_PATTERNS, **patterns}
    phases: dict[str, Phase] = {}
    for name, load in _loads(job, chosen, hb_domain).items():
        if load.steps or load.domain_bytes:
            floor = floors.get(name, 1.0)
            phases[name] = Phase(name, job.name, load.steps, floor, load.domain_bytes, "rail", job.first_gpu, job.gpus)
    result = list(phases.values())
    for names in job.mixes:
        parts = [phases[name] for name in names if name in phases and phases[name].steps]
        if len(parts) > 1:
            label = "+".join(names)
            result.append(mix(label, parts, floors.get(label, min(part.floor for part in parts))))
    return result


def phase_of_demand(demand: DirectDemand, floors: Mapping[str, float]) -> Phase:
    """The single phase of a demand that the user states directly; it has no bytes, so its step counts as one."""
    group = DomainGroup(1, demand.group, 1)
    if demand.demand == "shift":
        component = Component("shift", 1, demand.group, demand.by % demand.group, 1.0)
        steps: tuple[Step, ...] = (Step(demand.name, (component,), 1.0),)
    else:
        steps = _pattern_steps(demand.name, group, demand.demand, 1.0)
    if demand.group == 1:
        steps = ()
    floor = floors.get(demand.name, 1.0)
    return Phase(demand.name, demand.name, steps, floor, 0.0, demand.across, demand.first_gpu, demand.gpus)


def derive_traffic(instance: Instance) -> Traffic:
    """The phases of every job of the instance, on the endpoints of its cluster.

    Raises:
        MisalignedGroupError: a group of ranks cuts the domains unevenly; `load_instance` refuses such jobs.
    """
    requirements, cluster = instance.requirements, instance.cluster
    patterns = {str(name): str(pattern) for name, pattern in requirements.collectives.items()}
    phases: list[Phase] = []
    for item in instance.workload:
        if isinstance(item, Job):
            phases += phases_of_job(item, patterns, requirements.throughput, cluster.hb_domain)
        else:
            phases.append(phase_of_demand(item, requirements.throughput))
    return Traffic(cluster.gpus, cluster.hb_domain, cluster.rails, tuple(phases))
