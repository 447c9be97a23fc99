"""Time of one training step, and the memory it takes, from the job, the GPU, and what the network carries.

The model of time:

    total = compute + bubble + what of the communication no compute hides

compute: matrix products at `efficiency` of the GPU's peak; then what only moves data through the GPU's memory (norms,
dropout, residuals, activation functions, softmax, the optimizer) at the memory's rate, every kernel reading its inputs
and writing its outputs once. bubble: (p - 1)/(m·v) of what the m micro-batches take on v interleaved chunks of each of
p stages (Narayanan 2021, arXiv 2104.04473, section 2.2). Communication: bytes inside the domain at the scale-up rate,
bytes through the NIC at line rate times throughput, one after the other; `StepAssumptions` says what may hide.

Left out: latencies, the cross-entropy, the routing of tokens to experts, checkpoints, and that stages differ in more
than their number of layers. Every layer counts as the mean over dense and MoE layers.

`efficiency` is calibrated to one measurement: 37.83 s for the model of 530B parameters on 280 A100 with selective
recomputation and sequence parallelism (Korthikanti 2022, arXiv 2205.05198, table 5). The other seven rows of that table
then come out 7 % low to 8 % high: small models low, large ones high, as their matrix products are more efficient. The
choice of row matters: with that of 175B and full recomputation as the base all others are within 8 %, too, with any of
the other six some row is 10 to 19 % off.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from designer.catalog.components import Gpu
from designer.errors import DesignerError
from designer.instance.instance import Job
from designer.units import transfer_s
from designer.workload.traffic import Phase, Traffic
from designer.workload.transformer import (
    Transformer,
    dense_parameters,
    embedding_parameters,
    expert_parameters,
    forward_flops_per_sequence,
    head_dims,
    logit_flops_per_sequence,
    score_flops_per_sequence,
)

TERA = 1e12
BF16_BYTES = 2
ADAM_BYTES = 12
"""FP32 copy of a weight and its two moments (Rajbhandari 2020, arXiv 1910.02054, section 3.1)."""

DEFAULT_OVERLAP: Mapping[str, float] = MappingProxyType({"dp": 1.0, "cp": 1.0})
"""Gradients are reduced while the backward pass goes on (Li 2020, arXiv 2006.15704), and a ring of keys and values
turns while attention is computed (Liu 2023, arXiv 2310.01889). Collectives of tensor parallelism (Narayanan 2021, arXiv
2104.04473), the all-to-all of experts (Rajbhandari 2022, arXiv 2201.05596) and pipeline transfers are waited for."""


class StepTimeError(DesignerError):
    """Assumptions or inputs that a step's time cannot be computed from."""

    exit_code = 3


@dataclass(frozen=True)
class StepAssumptions:
    """What the instance does not say about how a job is run.

    Attributes:
        efficiency: part of the GPU's dense BF16 peak that matrix products reach; the default is calibrated, see above.
        recompute: what the backward pass does again: none; selective, the core of attention; full, every layer.
        fused_attention: scores are never written to memory (Dao 2022, arXiv 2205.14135), and computed again in the
            backward pass in any case.
        distributed_optimizer: optimizer states are spread over the replicas (ZeRO stage 1).
        overlap: phase -> part of its communication that may hide behind compute; phases not named hide nothing. dp
            hides behind the backward pass of one micro-batch (and, with a distributed optimizer, the forward pass of
            one), all others behind the compute of the step; an all-to-all of `cp` hides nothing.
    """

    efficiency: float = 0.656
    recompute: Literal["none", "selective", "full"] = "selective"
    fused_attention: bool = True
    distributed_optimizer: bool = True
    overlap: Mapping[str, float] = field(default_factory=lambda: DEFAULT_OVERLAP)

    def __post_init__(self) -> None:
        if not 0 < self.efficiency <= 1:
            raise StepTimeError(f"efficiency: found {self.efficiency}; allowed: above 0, at most 1")
        if self.recompute not in {"none", "selective", "full"}:
            raise StepTimeError(f"recompute: found {self.recompute!r}; allowed: none, selective, full")
        for phase, part in self.overlap.items():
            if not 0 <= part <= 1:
                raise StepTimeError(f"overlap.{phase}: found {part}; allowed: from 0 to 1")


@dataclass(frozen=True)
class StepTime:
    """One step of a job.

    Attributes:
        compute_s: a GPU computes, on the stage with the most layers.
        bubble_s: it waits for the pipeline to fill and drain.
        exposed_s: phase -> communication that no compute hides.
        flops: of the model in one step on all GPUs, nothing recomputed; the causal mask saves nothing.
        mfu: model FLOPs utilization, flops / (total_s · GPUs · peak) (Chowdhery 2022, arXiv 2204.02311, appendix B).
    """

    compute_s: float
    bubble_s: float
    exposed_s: Mapping[str, float]
    flops: float
    mfu: float

    @property
    def total_s(self) -> float:
        """The step from end to end."""
        return self.compute_s + self.bubble_s + sum(self.exposed_s.values())


@dataclass(frozen=True)
class Memory:
    """Bytes on the fullest GPU of a job, one of the first stage, and whether they fit into its memory.

    Buffers of the communication library and fragmentation are not in it.
    """

    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    fits: bool

    @property
    def total_bytes(self) -> float:
        """All of them."""
        return self.parameters_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes


@dataclass(frozen=True)
class _Passes:
    """Something of the forward pass and of the backward pass, recomputation within the latter."""

    forward: float
    backward: float

    @property
    def both(self) -> float:
        return self.forward + self.backward


def step_time(
    job: Job,
    gpu: Gpu,
    nic_gbps: float,
    traffic: Traffic,
    throughput: Mapping[str, float],
    assumptions: StepAssumptions | None = None,
) -> StepTime:
    """Time of one step of `job`.

    Args:
        job: one of the instance that `traffic` was derived from.
        gpu: where it runs.
        nic_gbps: line rate of a GPU's NIC, one direction.
        traffic: its phases are those whose `job` is this job's name.
        throughput: phase -> part of line rate that the network carries of it, above 0. Phases that stay inside the
            domains need none. Where the job names mixes, a phase gets the least of its own and its mixes' throughput.
        assumptions: by default those of `StepAssumptions`.

    Raises:
        StepTimeError: a phase has no throughput or none above 0; the catalog does not say how fast the GPU's memory is.
    """
    assumptions = assumptions or StepAssumptions()
    degrees, turns = job.parallelism, job.micro_batches
    passes = _compute(job, gpu, assumptions)
    exposed = _exposed(job, gpu, nic_gbps, traffic, throughput, assumptions, passes)
    in_turns = passes.both + sum(seconds for name, seconds in exposed.items() if name != "dp")
    bubble_s = in_turns * (degrees.pp - 1) / (turns * degrees.interleave)
    compute_s = passes.both + _optimizer_s(job, gpu, assumptions)
    total_s = compute_s + bubble_s + sum(exposed.values())
    flops = 3.0 * job.global_batch * forward_flops_per_sequence(job.model, job.seq_length)
    mfu = flops / (total_s * job.gpus * gpu.bf16_tflops * TERA)
    return StepTime(compute_s, bubble_s, MappingProxyType(exposed), flops, mfu)


def memory_per_gpu(job: Job, gpu: Gpu, assumptions: StepAssumptions | None = None) -> Memory:
    """Memory on a GPU of the first stage, which holds the most activations.

    Parameters in BF16, gradients of `job.gradient_bytes`, and 12 bytes of Adam's states: 16 or 18 for a parameter
    (Rajbhandari 2020, arXiv 1910.02054, section 3.1). Activations as in Korthikanti 2022 (arXiv 2205.05198, sections
    4 and 5), `s·b·h·(10 + 24/t + 5·a·s/(h·t))` a layer for a GPT, with what a layer recomputes at a time on top.
    """
    assumptions = assumptions or StepAssumptions()
    dense, experts = _parameters(job)
    parameters = dense + experts
    owned = parameters if not assumptions.distributed_optimizer else _owned_parameters(job)
    sizes = (BF16_BYTES * parameters, job.gradient_bytes * parameters, ADAM_BYTES * owned)
    activations = _activation_bytes(job, assumptions)
    return Memory(*sizes, activations, sum(sizes) + activations <= gpu.memory_bytes)


def _memory_s(size_bytes: float, gpu: Gpu) -> float:
    if gpu.memory_bytes_per_s is None:
        raise StepTimeError(f"gpus.{gpu.key}.memory_bytes_per_s: found null; allowed: bytes per second, for step times")
    return size_bytes / gpu.memory_bytes_per_s


def _stage_layers(job: Job) -> int:
    """Layers of the stage that has the most."""
    chunks = job.parallelism.pp * job.parallelism.interleave
    return math.ceil(job.model.layers / chunks) * job.parallelism.interleave


def _tokens(job: Job) -> float:
    """Tokens of one micro-batch on a GPU."""
    return job.micro_batch * job.seq_length / job.parallelism.cp


def _compute(job: Job, gpu: Gpu, assumptions: StepAssumptions) -> _Passes:
    """Seconds of the two passes over all micro-batches, on the stage with the most layers; without the optimizer."""
    flops, moved = _flops(job, assumptions), _moved_bytes(job, assumptions)
    rate = gpu.bf16_tflops * TERA * assumptions.efficiency
    layers = _stage_layers(job) * job.micro_batches
    return _Passes(
        flops.forward / rate + _memory_s(moved.forward, gpu) * layers,
        flops.backward / rate + _memory_s(moved.backward, gpu) * layers,
    )


def _flops(job: Job, assumptions: StepAssumptions) -> _Passes:
    """Operations of a GPU in a step: the backward pass takes twice the forward one, and what it recomputes.

    `72·B·L·s·h²·(1 + s/(6h) + V/(12·h·L))` of the model and `s/(6h)` more with selective recomputation, `96` in place
    of 72 with full, for a GPT (Korthikanti 2022, arXiv 2205.05198, appendix A). Fused attention computes the scores
    once more, which is half of what its core takes forward (Dao 2022, arXiv 2205.14135, section 3.1).
    """
    model, length = job.model, job.seq_length
    logits = logit_flops_per_sequence(model, length)
    layers = forward_flops_per_sequence(model, length) - logits
    core = score_flops_per_sequence(model, length)
    again = layers if assumptions.recompute == "full" else 0.0
    if assumptions.fused_attention:
        again += core / 2
    elif assumptions.recompute == "selective":
        again += core
    longest = _stage_layers(job) * job.parallelism.pp / model.layers
    share = job.global_batch / job.gpus
    return _Passes((layers * longest + logits) * share, ((2 * layers + again) * longest + 2 * logits) * share)


def _mlp_features(model: Transformer) -> float:
    """Inner features of the MLPs that a token meets in a layer, as the mean over all layers."""
    moe = model.moe_layers * (model.experts_per_token + model.shared_experts) * model.moe_ffn_hidden
    return ((model.layers - model.moe_layers) * model.ffn_hidden + moe) / model.layers


def _attention_features(model: Transformer) -> tuple[int, int, int]:
    """Features of queries, keys and values of a token."""
    qk_dim, v_dim = head_dims(model)
    kv_heads = model.heads if model.kv_lora_rank else model.kv_heads
    return model.heads * qk_dim, kv_heads * qk_dim, kv_heads * v_dim


def _moved_bytes(job: Job, assumptions: StepAssumptions) -> _Passes:
    """Bytes that one layer and micro-batch move through a GPU's memory outside of matrix products.

    Counted by kernel, BF16 elements with byte masks, inputs once and outputs once, forward and backward: two norms (8
    and 20 bytes per token and feature of h), two dropouts with residual (14 and 22), the activation function (4 and 6
    per inner feature, 6 and 10 with a gate), and the core of attention: 13 and 19 per score where scores are written
    (product, softmax, dropout with mask, product), else queries, keys, values and output in their places.
    """
    model, tp = job.model, job.parallelism.tp
    inner, outer = _tokens(job) / tp, _tokens(job) / (tp if job.sequence_parallel else 1)
    queries, keys, values = _attention_features(model)
    if assumptions.fused_attention:
        once = BF16_BYTES * (queries + keys + values + model.heads * head_dims(model)[1])
        core = _Passes(once, 2 * once)
    else:
        scores = model.heads * job.seq_length
        core = _Passes(13 * scores, 19 * scores)
    features = _mlp_features(model)
    activation = _Passes(6 * features, 10 * features) if model.gated_mlp else _Passes(4 * features, 6 * features)
    forward = outer * 22 * model.hidden + inner * (activation.forward + core.forward)
    backward = outer * 42 * model.hidden + inner * (activation.backward + core.backward)
    if assumptions.recompute == "full":
        backward += forward
    elif assumptions.recompute == "selective" and not assumptions.fused_attention:
        backward += inner * core.forward
    return _Passes(forward, backward)


def _parameters(job: Job) -> tuple[float, float]:
    """Parameters on a GPU of the first stage: those of experts, and all others with the embedding of tokens."""
    model, degrees = job.model, job.parallelism
    stage = _stage_layers(job) / model.layers
    embedding = embedding_parameters(model)
    first = embedding
    if degrees.pp > 1 and not model.tied_embeddings:
        first -= model.hidden * model.vocab  # the output's weights are on the last stage
    dense = ((dense_parameters(model) - embedding) * stage + first) / degrees.tp
    return dense, expert_parameters(model) * stage / degrees.tp / degrees.ep


def _owned_parameters(job: Job) -> float:
    """Parameters that a GPU keeps the optimizer's states of when replicas share them."""
    dense, experts = _parameters(job)
    replicas = job.parallelism.dp * job.parallelism.cp
    return dense / replicas + experts / (replicas / job.parallelism.ep)


def _optimizer_s(job: Job, gpu: Gpu, assumptions: StepAssumptions) -> float:
    """Adam reads gradients and its states, and writes states and weights, all through the memory."""
    owned = _owned_parameters(job) if assumptions.distributed_optimizer else sum(_parameters(job))
    return _memory_s(owned * (job.gradient_bytes + 2 * ADAM_BYTES + BF16_BYTES), gpu)


def _activation_bytes(job: Job, assumptions: StepAssumptions) -> float:
    """Activations kept for the backward pass on the first stage (Korthikanti 2022, arXiv 2205.05198, section 4).

    Its stage holds p micro-batches, interleaved p + (p - 1)/v of them, or all there are.
    """
    model, degrees = job.model, job.parallelism
    inner, outer = _tokens(job) / degrees.tp, _tokens(job) / (degrees.tp if job.sequence_parallel else 1)
    queries, keys, values = _attention_features(model)
    attention = BF16_BYTES * (queries + keys + values + model.heads * head_dims(model)[1])
    mlp = (6 if model.gated_mlp else 4) * _mlp_features(model)
    scores = 0 if assumptions.fused_attention else 5 * model.heads * job.seq_length
    without_scores = outer * 10 * model.hidden + inner * (attention + mlp)
    kept, at_a_time = {
        "none": (without_scores + inner * scores, 0.0),
        "selective": (without_scores, inner * scores),
        "full": (outer * BF16_BYTES * model.hidden, without_scores + inner * scores),
    }[assumptions.recompute]
    waiting = degrees.pp + ((degrees.pp - 1) / degrees.interleave if degrees.interleave > 1 else 0)
    in_flight = min(job.micro_batches, waiting)
    ends = outer * model.hidden * in_flight  # mask of the dropout after the embedding
    if degrees.pp == 1:
        ends += 4 * (outer * model.hidden + inner * model.vocab)
    return kept * _stage_layers(job) * in_flight + at_a_time + ends


def _exposed(
    job: Job,
    gpu: Gpu,
    nic_gbps: float,
    traffic: Traffic,
    throughput: Mapping[str, float],
    assumptions: StepAssumptions,
    passes: _Passes,
) -> dict[str, float]:
    """Seconds of each phase that no compute hides; what hides shares the compute there is."""
    mixes = {"+".join(names): names for names in job.mixes}
    micro_batch = _Passes(passes.forward / job.micro_batches, passes.backward / job.micro_batches)
    limits = {"dp": micro_batch.both if assumptions.distributed_optimizer else micro_batch.backward}
    if job.context_exchange != "ring":
        limits["cp"] = 0.0
    left, exposed = passes.both, dict[str, float]()
    for phase in traffic.phases:
        if phase.job != job.name or phase.name in mixes:
            continue
        rate_gbps = nic_gbps * _carried(phase, mixes, throughput) if phase.steps else math.inf
        seconds = transfer_s(phase.domain_bytes, gpu.scale_up_gbps) + transfer_s(phase.nic_bytes, rate_gbps)
        seconds *= _again(phase.name, job, assumptions)
        hidden = min(seconds * assumptions.overlap.get(phase.name, 0.0), limits.get(phase.name, math.inf), left)
        left -= hidden
        exposed[phase.name] = seconds - hidden
    return exposed


def _carried(phase: Phase, mixes: Mapping[str, tuple[str, ...]], throughput: Mapping[str, float]) -> float:
    """The part of line rate at which the network carries the phase, in the worst of its mixes."""
    names = [phase.name, *(label for label, parts in mixes.items() if phase.name in parts and label in throughput)]
    values = [throughput.get(name, 0.0) for name in names]
    if not all(value > 0 for value in values):
        found = {name: throughput.get(name) for name in names}
        raise StepTimeError(f"throughput of {phase.job}: found {found}; allowed: above 0 for {', '.join(names)}")
    return min(values)


def _again(name: str, job: Job, assumptions: StepAssumptions) -> float:
    """With full recomputation the forward half of an exchange is done again; a third of ring attention's."""
    if assumptions.recompute != "full" or name not in {"tp", "ep", "cp"}:
        return 1.0
    return 4 / 3 if name == "cp" and job.context_exchange == "ring" else 3 / 2
