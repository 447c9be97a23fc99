"""Step time and memory: every term against a hand calculation or a closed form, and what is refused."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from designer.catalog.components import Gpu
from designer.instance.instance import Job
from designer.instance.load import instance_from_document
from designer.workload.phases import derive_traffic
from designer.workload.step_time import StepAssumptions, StepTime, StepTimeError, memory_per_gpu, step_time
from designer.workload.traffic import Traffic

GPT = {
    "layers": 12,
    "hidden": 1024,
    "heads": 16,
    "vocab": 51200,
    "seq_length": 2048,
    "gated_mlp": False,
    "tied_embeddings": True,
}
GATED = GPT | {"gated_mlp": True, "ffn_hidden": 2816, "kv_heads": 4, "head_dim": 64}
MOE = GPT | {"gated_mlp": True, "experts": 16, "experts_per_token": 2, "moe_ffn_hidden": 512}
# A GPU with round figures: 10^14 operations, 10^12 bytes of memory, and 10^11 bytes of NVLink a second.
GPU = Gpu("round", "", "", 8, 8, 800.0, 100.0, 80 * 10**9, 10**12, None, "")
NIC_GBPS = 400.0
WRITTEN = StepAssumptions(fused_attention=False, recompute="none", overlap={})


class Case(NamedTuple):
    job: Job
    traffic: Traffic

    def time(self, assumptions: StepAssumptions = WRITTEN, gpu: Gpu = GPU, **throughput: float) -> StepTime:
        rates = {phase.name: 1.0 for phase in self.traffic.phases} | throughput
        return step_time(self.job, gpu, NIC_GBPS, self.traffic, rates, assumptions)

    def nic_bytes(self, name: str) -> float:
        return next(phase.nic_bytes for phase in self.traffic.phases if phase.name == name)


def case(model: Any = GPT, batch: int = 64, **fields: Any) -> Case:
    degrees = {key: fields.pop(key) for key in ("tp", "pp", "dp", "cp", "ep", "interleave") if key in fields}
    gpus = math.prod(size for name, size in degrees.items() if name in ("tp", "pp", "dp", "cp"))
    job_fields = {"model": model, "parallelism": degrees, "global_batch": batch, "gpus": gpus, **fields}
    cluster = {"gpus": max(8, gpus), "gpu": "h100-sxm", "nic": "cx7-400"}
    instance = instance_from_document({"name": "test", "cluster": cluster, "workload": [job_fields]})
    (job,) = instance.workload
    assert isinstance(job, Job)
    return Case(job, derive_traffic(instance))


class TestCompute:
    def test_flops_are_those_of_the_published_formula(self) -> None:
        """72 B L s h² (1 + s/(6h) + V/(12 h L)), Korthikanti 2022, appendix A."""
        layers, s, h, vocab, batch = 12, 2048, 1024, 51200, 64
        expected = 72 * batch * layers * s * h**2 * (1 + s / (6 * h) + vocab / (12 * h * layers))
        assert case(tp=8).time().flops == pytest.approx(expected)

    def test_one_gpu_by_hand(self) -> None:
        """Matrix products at 0.5e14 a second; 104 bytes per token and feature, 32 a score; Adam takes 28 a weight."""
        tokens = 64 * 2048
        products = 3 * (tokens * 2 * (12 * 12 * 1024**2 + 1024 * 51200) + 64 * 12 * 4 * 2048**2 * 1024)
        moved = 12 * tokens * (1024 * (22 + 42 + 4 * (4 + 6)) + 16 * 2048 * (13 + 19))
        weights = 12 * (12 * 1024**2 + 13 * 1024) + 1024 * (51200 + 2048)
        expected = products / 0.5e14 + moved / 1e12 + 28 * weights / 1e12
        found = case().time(replace(WRITTEN, efficiency=0.5))
        assert found.compute_s == pytest.approx(expected)
        assert found.bubble_s == 0
        assert found.exposed_s == {}
        assert found.total_s == found.compute_s
        assert found.mfu == pytest.approx(found.flops / (expected * 1e14))

    def test_gates_and_shared_keys_by_hand(self) -> None:
        """A gate moves 16 bytes an inner feature; fused attention queries, output, and the fewer keys and values."""
        tokens = 64 * 2048
        products = tokens * 2 * (12 * (2 * 1024 * (1024 + 256) + 3 * 1024 * 2816) + 1024 * 51200)
        core = 64 * 12 * 4 * 2048**2 * 1024
        moved = 12 * tokens * (1024 * (22 + 42) + 2816 * (6 + 10) + 3 * 2 * (1024 + 256 + 256 + 1024))
        weights = 12 * (2 * 1024 * (1024 + 256) + 3 * 1024 * 2816 + 2 * 1024) + 1024 * 51200 + 1024
        expected = (3 * products + 3.5 * core) / 0.5e14 + moved / 1e12 + 28 * weights / 1e12
        assert case(GATED).time(StepAssumptions(efficiency=0.5)).compute_s == pytest.approx(expected)

    def test_what_is_recomputed(self) -> None:
        """Selective: scores and their product once more. Full: every layer once more, without the logits."""
        one = case()
        none, selective, full = (
            one.time(replace(WRITTEN, recompute=kind, efficiency=0.5)).compute_s
            for kind in ("none", "selective", "full")
        )
        tokens = 64 * 2048
        core = 64 * 12 * (4 * 2048**2 * 1024 / 0.5e14 + 2048 * 16 * 2048 * 13 / 1e12)
        rest = 12 * tokens * (2 * 12 * 1024**2 / 0.5e14 + 1024 * (22 + 16) / 1e12)
        assert selective - none == pytest.approx(core)
        assert full - none == pytest.approx(core + rest)

    def test_fused_attention_moves_no_scores_and_computes_them_twice(self) -> None:
        one = case()
        written = one.time(replace(WRITTEN, efficiency=0.5)).compute_s
        fused = one.time(replace(WRITTEN, efficiency=0.5, fused_attention=True)).compute_s
        once_more = 64 * 12 * 2 * 2048**2 * 1024 / 0.5e14
        saved = 64 * 12 * (2048 * 16 * 2048 * 32 - 2048 * 1024 * 24) / 1e12
        assert fused == pytest.approx(written + once_more - saved)
        selective = one.time(replace(WRITTEN, efficiency=0.5, fused_attention=True, recompute="selective"))
        assert selective.compute_s == fused

    def test_sequence_parallelism_splits_norms_and_dropouts(self) -> None:
        with_it, without = (case(tp=8, sequence_parallel=split).time().compute_s for split in (True, False))
        assert without - with_it == pytest.approx(12 * 64 * 2048 * 1024 * 64 / 1e12 * 7 / 8)

    def test_the_stage_with_the_most_layers_sets_the_pace(self) -> None:
        """13 layers on 4 stages take as long as 16, but for the logits and the optimizer."""
        uneven, even = (case(GPT | {"layers": layers}, tp=8, pp=4).time() for layers in (13, 16))
        assert uneven.compute_s == pytest.approx(even.compute_s, rel=1e-6)
        assert uneven.flops < even.flops

    def test_a_token_meets_its_experts_only(self) -> None:
        """Twice the experts make the router twice as wide, and the optimizer's work longer."""
        few, many = (case(MOE | {"experts": experts}).time() for experts in (16, 32))
        router = 3 * 64 * 2048 * 2 * 12 * 1024 * 16
        assert many.flops - few.flops == pytest.approx(router)
        weights = 12 * 16 * (3 * 1024 * 512 + 1024)
        assert many.compute_s - few.compute_s == pytest.approx(router / 0.656e14 + 28 * weights / 1e12)


class TestBubble:
    @pytest.mark.parametrize("interleave", [1, 3])
    def test_it_is_the_published_part_of_what_micro_batches_take(self, interleave: int) -> None:
        """(p - 1)/(m v), Narayanan 2021, section 2.2.2; the optimizer and gradients come once, whatever p."""
        one = case(tp=8, pp=4, dp=2, interleave=interleave)
        found = one.time()
        weights = 3 * (12 * 1024**2 + 13 * 1024) + 1024 * (51200 + 2048)
        optimizer = weights / 8 / 2 * 28 / 1e12
        turns = found.compute_s - optimizer + found.exposed_s["tp"] + found.exposed_s["pp"]
        assert found.bubble_s == pytest.approx(turns * 3 / (32 * interleave))


class TestCommunication:
    def test_bytes_at_their_rates(self) -> None:
        """NIC bytes at 50 GB/s times throughput, domain bytes at 100 GB/s."""
        one = case(tp=8, pp=4, dp=4)
        found = one.time(pp=0.5, dp=0.25)
        assert found.exposed_s["pp"] == pytest.approx(one.nic_bytes("pp") / 25e9)
        assert found.exposed_s["dp"] == pytest.approx(one.nic_bytes("dp") / 12.5e9)
        tensor = 64 / 4 * 3 * 4 * 2048 * 1024 * 2 * 2 * 7 / 8
        assert found.exposed_s["tp"] == pytest.approx(tensor / 100e9)

    def test_domain_then_network(self) -> None:
        """Two replicas share a domain: their part of the all-reduce goes before that between domains."""
        one = case(tp=4, dp=8)
        phase = next(phase for phase in one.traffic.phases if phase.name == "dp")
        assert phase.domain_bytes > 0
        expected = phase.domain_bytes / 100e9 + phase.nic_bytes / 50e9
        assert one.time().exposed_s["dp"] == pytest.approx(expected)

    def test_a_slower_network_never_helps(self) -> None:
        one = case(tp=8, pp=4, dp=4)
        totals = [one.time(StepAssumptions(), pp=rate, dp=rate).total_s for rate in (1.0, 0.5, 0.1, 0.01)]
        assert totals == sorted(totals)
        assert totals[-1] > totals[0]

    def test_gradients_hide_behind_the_backward_pass_of_one_micro_batch(self) -> None:
        one = case(GPT | {"layers": 1, "vocab": 10}, tp=8, dp=8, batch=64)
        bare = one.time(replace(WRITTEN, distributed_optimizer=False), dp=0.01)
        hiding = replace(WRITTEN, distributed_optimizer=False, overlap={"dp": 1.0})
        hidden = bare.exposed_s["dp"] - one.time(hiding, dp=0.01).exposed_s["dp"]
        products = 2 * 2048 * 2 * (12 * 1024**2 + 10 * 1024) + 2 * 4 * 2048**2 * 1024
        moved = 2048 * (1024 * (42 + 24) + 16 * 2048 * 19)
        assert hidden == pytest.approx((products / 0.656e14 + moved / 1e12) / 8)
        both = one.time(replace(hiding, distributed_optimizer=True), dp=0.01)
        assert bare.exposed_s["dp"] - both.exposed_s["dp"] > 1.4 * hidden
        half = one.time(replace(hiding, overlap={"dp": 0.5}), dp=1.0)
        assert half.exposed_s["dp"] == pytest.approx(one.time(dp=1.0).exposed_s["dp"] / 2)

    def test_nothing_hides_behind_more_compute_than_there_is(self) -> None:
        one = case(tp=8, pp=4, dp=4)
        eager = replace(WRITTEN, overlap={"tp": 1.0, "pp": 1.0, "dp": 1.0})
        bare, found = one.time(pp=1e-3, dp=1e-3), one.time(eager, pp=1e-3, dp=1e-3)
        assert sum(bare.exposed_s.values()) - sum(found.exposed_s.values()) <= found.compute_s

    def test_a_ring_of_keys_and_values_hides_and_an_all_to_all_waits(self) -> None:
        ring, ulysses = (case(tp=8, cp=2, context_exchange=kind) for kind in ("ring", "all-to-all"))
        assert ring.time(StepAssumptions()).exposed_s["cp"] == 0
        assert ulysses.time(StepAssumptions()).exposed_s["cp"] == pytest.approx(ulysses.nic_bytes("cp") / 50e9)

    def test_full_recomputation_repeats_the_forward_exchanges(self) -> None:
        full = replace(WRITTEN, recompute="full")
        dense = case(tp=8, pp=2, cp=2, dp=2)
        experts = case(MOE, tp=8, dp=2, cp=2, ep=2, context_exchange="all-to-all")
        for one, expected in (
            (dense, {"tp": 3 / 2, "cp": 4 / 3, "pp": 1, "dp": 1}),
            (experts, {"ep": 3 / 2, "cp": 3 / 2}),
        ):
            before, after = one.time().exposed_s, one.time(full).exposed_s
            for name, factor in expected.items():
                assert after[name] == pytest.approx(factor * before[name]), name

    def test_a_mix_is_counted_once_at_its_throughput(self) -> None:
        plain = case(tp=8, pp=4, dp=4)
        mixed = case(tp=8, pp=4, dp=4, mixes=[["dp", "pp"]])
        assert mixed.time().exposed_s == pytest.approx(plain.time().exposed_s)
        slow = mixed.time(**{"dp+pp": 0.5}).exposed_s
        assert slow == pytest.approx(plain.time(dp=0.5, pp=0.5).exposed_s)

    def test_each_job_counts_its_own_phases(self) -> None:
        one = case(tp=8, dp=8)
        other = replace(one.traffic.phases[-1], job="another", name="pp")
        shared = Case(one.job, replace(one.traffic, phases=(*one.traffic.phases, other)))
        assert shared.time().exposed_s == one.time().exposed_s


class TestMemory:
    """Korthikanti 2022, section 4: activations of a GPT layer in units of s b h."""

    UNIT = 2 * 2048 * 1024

    def activations(self, assumptions: StepAssumptions = WRITTEN, model: Any = GPT, **fields: Any) -> float:
        """What a layer keeps: the difference from 12 layers to 24, so that nothing at the ends counts."""
        sizes = [
            memory_per_gpu(case(model | {"layers": layers}, micro_batch=2, **fields).job, GPU, assumptions)
            for layers in (12, 24)
        ]
        return (sizes[1].activations_bytes - sizes[0].activations_bytes) / 12 / self.UNIT

    def test_layers_by_the_published_formulas(self) -> None:
        scores = 5 * 16 * 2048 / 1024
        assert self.activations() == pytest.approx(34 + scores)
        assert self.activations(tp=8, sequence_parallel=False) == pytest.approx(10 + 24 / 8 + scores / 8)
        assert self.activations(tp=8) == pytest.approx((34 + scores) / 8)
        selective, full = (replace(WRITTEN, recompute=kind) for kind in ("selective", "full"))
        assert self.activations(selective, tp=8) == pytest.approx(34 / 8)
        assert self.activations(full, tp=8, sequence_parallel=False) == pytest.approx(2)
        assert self.activations(replace(WRITTEN, fused_attention=True), tp=8) == pytest.approx(34 / 8)
        assert self.activations(tp=8, cp=2) == pytest.approx((34 + scores) / 8 / 2)

    def test_layers_of_other_models_by_hand(self) -> None:
        """Inputs of norms and matrices, masks; queries, keys, values, output; gate, its partner and their product."""
        fused = StepAssumptions()
        assert self.activations(fused, GATED) == pytest.approx(10 + 2 * (1 + 0.25 + 0.25 + 1) + 6 * 2816 / 1024)
        assert self.activations(fused, MOE) == pytest.approx(10 + 8 + 6 * 2 * 512 / 1024)
        assert self.activations(fused, MOE | {"experts": 32}) == pytest.approx(24)

    def test_the_ends_of_a_lone_stage(self) -> None:
        """A mask after the embedding; inputs of the last norm and of the output, FP32 logits: 4 s b h (1 + V/h) / t."""
        found = memory_per_gpu(case(micro_batch=2, tp=8).job, GPU, WRITTEN).activations_bytes / self.UNIT
        assert found - 12 * self.activations(tp=8) == pytest.approx((1 + 4 * (1 + 51200 / 1024)) / 8)

    def test_a_stage_holds_as_many_micro_batches_as_are_on_their_way(self) -> None:
        """L layers in all on the first stage; 1 + (p - 1)/(p v) times as many when interleaved."""
        plain = self.activations(tp=8)
        assert self.activations(tp=8, pp=4) == pytest.approx(plain)
        assert self.activations(tp=8, pp=4, interleave=3) == pytest.approx(plain * (1 + 3 / (4 * 3)))
        assert self.activations(tp=8, pp=4, batch=4) == pytest.approx(plain / 4 * 2)

    def test_what_is_recomputed_is_there_one_layer_at_a_time(self) -> None:
        job = case(tp=1, micro_batch=2).job
        none, selective, full = (
            memory_per_gpu(job, GPU, replace(WRITTEN, recompute=kind)).activations_bytes / self.UNIT
            for kind in ("none", "selective", "full")
        )
        scores = 5 * 16 * 2048 / 1024
        assert none - selective == pytest.approx(11 * scores)
        assert none - full == pytest.approx(11 * (34 + scores) - 12 * 2)

    def test_states_take_16_or_18_bytes_a_parameter(self) -> None:
        weights = 12 * (12 * 1024**2 + 13 * 1024) + 1024 * (51200 + 2048)
        for gradient_bytes, expected in ((2, 16), (4, 18)):
            found = memory_per_gpu(case(gradient_bytes=gradient_bytes).job, GPU, WRITTEN)
            states = found.parameters_bytes + found.gradients_bytes + found.optimizer_bytes
            assert states == pytest.approx(expected * weights)
            assert found.total_bytes == states + found.activations_bytes

    def test_replicas_share_optimizer_states(self) -> None:
        job = case(MOE, tp=2, dp=16, ep=4).job
        shared, own = (
            memory_per_gpu(job, GPU, replace(WRITTEN, distributed_optimizer=share)) for share in (True, False)
        )
        assert own.parameters_bytes == shared.parameters_bytes
        assert own.optimizer_bytes == pytest.approx(6 * own.parameters_bytes)
        experts = 12 * 16 * 3 * 1024 * 512 / 2 / 4
        dense = own.parameters_bytes / 2 - experts
        assert shared.optimizer_bytes == pytest.approx(12 * (dense / 16 + experts / 4))

    def test_the_output_of_an_untied_model_is_on_the_last_stage(self) -> None:
        tied, untied = (case(GPT | {"tied_embeddings": tied}, tp=8, pp=4).job for tied in (True, False))
        assert memory_per_gpu(tied, GPU).parameters_bytes == memory_per_gpu(untied, GPU).parameters_bytes
        tied, untied = (case(GPT | {"tied_embeddings": tied}, tp=8).job for tied in (True, False))
        extra = memory_per_gpu(untied, GPU).parameters_bytes - memory_per_gpu(tied, GPU).parameters_bytes
        assert extra == pytest.approx(2 * 1024 * 51200 / 8)

    def test_it_fits_to_the_byte(self) -> None:
        job = case(tp=8).job
        need = memory_per_gpu(job, GPU).total_bytes
        assert need % 1 == 0
        assert memory_per_gpu(job, replace(GPU, memory_bytes=int(need))).fits
        assert not memory_per_gpu(job, replace(GPU, memory_bytes=int(need) - 1)).fits


class TestRefusals:
    def test_a_phase_on_the_network_needs_a_throughput(self) -> None:
        one = case(tp=8, pp=4, dp=4)
        with pytest.raises(StepTimeError, match="dp"):
            step_time(one.job, GPU, NIC_GBPS, one.traffic, {"pp": 1.0})
        with pytest.raises(StepTimeError, match="above 0"):
            one.time(pp=0.0)

    def test_phases_inside_the_domains_need_none(self) -> None:
        one = case(tp=8)
        assert step_time(one.job, GPU, NIC_GBPS, one.traffic, {}).exposed_s["tp"] > 0

    @pytest.mark.parametrize(
        ("field", "value"),
        [("efficiency", 0.0), ("efficiency", 1.1), ("recompute", "some"), ("overlap", {"tp": 1.5})],
    )
    def test_assumptions_out_of_range(self, field: str, value: Any) -> None:
        with pytest.raises(StepTimeError, match=field):
            StepAssumptions(**{field: value})

    def test_a_gpu_whose_memory_has_no_known_rate(self) -> None:
        with pytest.raises(StepTimeError, match="memory_bytes_per_s"):
            case(tp=8).time(gpu=replace(GPU, memory_bytes_per_s=None))
