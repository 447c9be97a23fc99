"""Phases of training jobs: bytes against hand calculation and published figures, groups against hand placement."""

from typing import Any

import pytest

from designer.errors import InstanceError
from designer.instance.load import instance_from_document
from designer.workload import collectives
from designer.workload.phases import derive_traffic
from designer.workload.placement import Digit, DomainGroup, MisalignedGroupError, digits, domain_group, merge
from designer.workload.traffic import Component, Phase, Traffic

TINY = {"layers": 8, "hidden": 64, "heads": 8, "seq_length": 32, "vocab": 100, "tied_embeddings": True}
MOE = TINY | {"experts": 16, "experts_per_token": 2, "moe_ffn_hidden": 32, "gated_mlp": True}


def traffic_of(
    gpus: int, parallelism: dict[str, Any], model: Any = "gpt3-175b", hb_domain: int = 8, **fields: Any
) -> Traffic:
    requirements = fields.pop("requirements", {})
    job = {"model": model, "parallelism": parallelism, "global_batch": 512 * 64, **fields}
    return derive_traffic(
        instance_from_document(
            {
                "name": "test",
                "cluster": {"gpus": gpus, "gpu": "h100-sxm", "nic": "cx7-400", "hb_domain": hb_domain},
                "workload": [job],
                "requirements": requirements,
            }
        )
    )


def phases_of(traffic: Traffic) -> dict[str, Phase]:
    return {phase.name: phase for phase in traffic.phases}


def only_part(phase: Phase) -> Component:
    (part,) = {part for step in phase.steps for part in step.components}
    return part


class TestGpt3:
    """GPT-3 175B with TP 8, PP 8, DP 512: the job of Qian et al., SIGCOMM 2024 (HPN), table 2."""

    @pytest.fixture
    def phases(self):
        return phases_of(traffic_of(32_768, {"tp": 8, "pp": 8, "dp": 512}))

    def test_gradients(self, phases):
        """5.5 GB of gradients per GPU, 175e9 weights x 2 bytes over 64 GPUs, all-reduced by 2(g-1)/g of them."""
        size_bytes = phases["dp"].nic_bytes / (2 * 511 / 512)
        assert size_bytes == pytest.approx(5.5e9, rel=0.01)
        assert size_bytes == pytest.approx(175e9 * 2 / 64, rel=0.01)

    def test_pipeline(self, phases):
        """6 MB per micro-batch and boundary in each direction: 2048 x 12288 x 2 bytes over 8 ranks."""
        forward, backward = phases["pp"].steps
        micro_batches = 512 * 64 / 512
        assert forward.nic_bytes / micro_batches == 2048 * 12288 * 2 / 8
        assert forward.nic_bytes / micro_batches == pytest.approx(6e6, rel=0.05)
        assert backward.nic_bytes == forward.nic_bytes

    def test_tensor_parallelism_stays_in_the_domain(self, phases):
        """4 all-reduces of b s h 2 bytes a layer: 2 x 7/8 of them sent per GPU, none through a NIC."""
        assert not phases["tp"].steps
        expected = 64 * 96 / 8 * 4 * (2 * 7 / 8) * 2048 * 12288 * 2
        assert phases["tp"].domain_bytes == pytest.approx(expected)

    def test_groups(self, phases):
        """One rank of a data-parallel group in each of 512 neighbouring domains; stages are 512 domains apart."""
        assert only_part(phases["dp"]) == Component("any", 1, 512, 0, 1.0)
        steps = [step.components[0] for step in phases["pp"].steps]
        assert [(part.stride, part.size, part.by) for part in steps] == [(512, 8, 1), (512, 8, 7)]

    def test_most_bytes_stay_inside(self, phases):
        """A dense job with TP 8 keeps 93 to 99 % of its bytes in the domains."""
        inside = sum(phase.domain_bytes for phase in phases.values())
        through_nics = sum(phase.nic_bytes for phase in phases.values())
        assert 0.93 < inside / (inside + through_nics) < 0.99


def test_micro_batches_and_interleave_multiply_pipeline_bytes():
    """Bytes go with micro-batches and virtual stages; a micro-batch of twice the size halves their number."""
    plain = phases_of(traffic_of(128, {"tp": 8, "pp": 4, "dp": 4}))["pp"].nic_bytes
    interleaved = phases_of(traffic_of(128, {"tp": 8, "pp": 4, "dp": 4, "interleave": 3}))["pp"].nic_bytes
    larger = phases_of(traffic_of(128, {"tp": 8, "pp": 4, "dp": 4}, micro_batch=2))["pp"].nic_bytes
    assert interleaved == 3 * plain
    assert larger == plain


def test_four_byte_gradients_double_the_volume():
    """Reduction in float32 sends twice the bytes of bfloat16."""
    volumes = [
        phases_of(traffic_of(128, {"tp": 8, "pp": 4, "dp": 4}, gradient_bytes=size))["dp"].nic_bytes for size in (2, 4)
    ]
    assert volumes[1] == 2 * volumes[0]


def test_data_parallel_group_with_members_in_the_domain():
    """With dp 16 at stride 2 on domains of 8: 4 members inside, 4 domains; the NICs carry 2 x 3/4 of a quarter."""
    phases = phases_of(traffic_of(32, {"tp": 2, "dp": 16}, TINY, global_batch=16))
    dp = phases["dp"]
    size_bytes = dp.domain_bytes / (2 * 3 / 4)
    assert dp.nic_bytes == pytest.approx(2 * 3 / 4 * size_bytes / 4)
    assert only_part(dp) == Component("any", 1, 4, 0, 1.0)


def test_tensor_parallelism_wider_than_the_domain_shows_up():
    """Groups of 16 on domains of 8 ring between 2 domains with an eighth of the volume."""
    phases = phases_of(traffic_of(64, {"tp": 16, "dp": 4}, "gpt3-175b"))
    tp = phases["tp"]
    volume = 512 * 64 / 4 * 96 * 4 * 2048 * 12288 * 2
    assert tp.domain_bytes == pytest.approx(2 * 7 / 8 * volume)
    assert tp.nic_bytes == pytest.approx(2 * 1 / 2 * volume / 8)
    assert only_part(tp) == Component("shift", 1, 2, 1, 1.0)


def test_expert_parallelism_inside_data_parallelism():
    """With ep 8 of dp 32, at stride 2 on domains of 4: 2 members inside, 4 domains; experts reduce over the 4 left."""
    traffic = traffic_of(64, {"tp": 2, "dp": 32, "ep": 8}, MOE, hb_domain=4, global_batch=32)
    phases = phases_of(traffic)
    ep = phases["ep"]
    tokens = 1 * 32 / 2
    sent = 4 * 8 * tokens * 2 * 64 * 2  # dispatch and combine, forward and backward, 8 layers, top 2
    assert ep.domain_bytes == pytest.approx(sent * 1 / 8)
    assert ep.nic_bytes == pytest.approx(sent * 6 / 8)
    assert only_part(ep) == Component("all-to-all", 1, 4, 0, 1.0)
    shared, experts = phases["dp"].steps
    assert shared.components[0] == Component("any", 1, 16, 0, 1.0)
    assert experts.components[0] == Component("any", 4, 4, 0, 1.0)
    weights = 8 * 16 * 3 * 64 * 32 / 2 / 8
    assert experts.nic_bytes == pytest.approx(2 * 3 / 4 * weights * 2)


def test_ring_attention():
    """With cp 4 on whole domains: K and V of a quarter of the sequence, 3 hops, three times in all."""
    phases = phases_of(traffic_of(32, {"tp": 8, "cp": 4}, TINY, global_batch=2))
    key_and_value = 2 * (32 / 4) * 64 * 2 / 8
    assert phases["cp"].nic_bytes == pytest.approx(2 * 8 * 3 * 3 * key_and_value)
    assert only_part(phases["cp"]) == Component("shift", 1, 4, 1, 1.0)


def test_ulysses():
    """All-to-all of Q, K, V and output, forward and backward; 3/4 of it leaves the GPU."""
    phases = phases_of(traffic_of(32, {"tp": 8, "cp": 4}, TINY, global_batch=2, context_exchange="all-to-all"))
    handed = 2 * (32 / 4) * 4 * 64 * 2 / 8
    assert phases["cp"].nic_bytes == pytest.approx(2 * 8 * handed * 3 / 4)
    assert only_part(phases["cp"]).pattern == "all-to-all"


def test_halving_doubling_steps():
    """Steps to partners 1, 2, 4 .. away with S, S/2, S/4 .. bytes; together they are the all-reduce's."""
    requirements = {"collectives": {"dp": "halving-doubling"}}
    phase = phases_of(traffic_of(64, {"tp": 8, "dp": 8}, TINY, global_batch=8, requirements=requirements))["dp"]
    assert [step.components[0].by for step in phase.steps] == [1, 2, 4]
    assert phase.steps[0].nic_bytes == 2 * phase.steps[1].nic_bytes == 4 * phase.steps[2].nic_bytes
    ring = phases_of(traffic_of(64, {"tp": 8, "dp": 8}, TINY, global_batch=8))["dp"]
    assert phase.nic_bytes == pytest.approx(ring.nic_bytes)
    with pytest.raises(ValueError, match="power of two"):
        collectives.halving_doubling_bytes(1.0, 6, 1)


def test_mix_splits_the_line_rate_by_bytes():
    """Two phases at once: one step, rates in proportion to bytes, adding up to one NIC."""
    phases = phases_of(traffic_of(128, {"tp": 8, "pp": 4, "dp": 4}, mixes=[["dp", "pp"]]))
    mixed = phases["dp+pp"]
    (step,) = mixed.steps
    assert sum(part.rate for part in step.components) == pytest.approx(1)
    assert mixed.nic_bytes == pytest.approx(phases["dp"].nic_bytes + phases["pp"].nic_bytes)
    assert step.components[0].rate == pytest.approx(phases["dp"].nic_bytes / mixed.nic_bytes)


class TestPlacement:
    """Groups of ranks as groups of domains."""

    @pytest.mark.parametrize(
        ("order", "strides"),
        [
            ("tp-cp-ep-dp-pp", {"tp": 1, "cp": 8, "ep": 16, "dp": 32, "pp": 64}),
            ("tp-pp-dp-cp-ep", {"tp": 1, "pp": 8, "dp": 32, "cp": 64, "ep": 128}),
            ("dp-ep-cp-tp-pp", {"dp": 1, "ep": 2, "cp": 4, "tp": 8, "pp": 64}),
        ],
    )
    def test_orders(self, order, strides):
        """A dimension's stride is the product of those before it; dp is what is left of it beside ep."""
        instance = instance_from_document(
            {
                "name": "test",
                "cluster": {"gpus": 256, "gpu": "h100-sxm", "nic": "cx7-400"},
                "workload": [
                    {
                        "model": MOE,
                        "global_batch": 4,
                        "parallelism": {"tp": 8, "cp": 2, "ep": 2, "dp": 4, "pp": 4, "order": order},
                    }
                ],
            }
        )
        found = digits(instance.workload[0].parallelism)
        assert {name: digit.stride for name, digit in found.items()} == strides
        assert {name: digit.size for name, digit in found.items()} == {"tp": 8, "cp": 2, "ep": 2, "dp": 2, "pp": 4}

    @pytest.mark.parametrize(
        ("digit", "group"),
        [
            (Digit(1, 8), DomainGroup(1, 1, 8)),
            (Digit(2, 4), DomainGroup(1, 1, 4)),
            (Digit(8, 16), DomainGroup(1, 16, 1)),
            (Digit(64, 4), DomainGroup(8, 4, 1)),
            (Digit(1, 16), DomainGroup(1, 2, 8)),
            (Digit(2, 16), DomainGroup(1, 4, 4)),
        ],
    )
    def test_groups(self, digit, group):
        """Inside a domain, one rank in each, or whole domains."""
        assert domain_group(digit, 8) == group

    @pytest.mark.parametrize("digit", [Digit(1, 12), Digit(3, 4), Digit(6, 4), Digit(12, 2), Digit(1, 6)])
    def test_misaligned_groups_are_refused(self, digit):
        """Groups that cut domains unevenly are an error, not a guess."""
        with pytest.raises(MisalignedGroupError):
            domain_group(digit, 8)

    def test_merge(self):
        """Neighbours in the rank order become one group, others stay apart; groups of one rank vanish."""
        assert merge([Digit(16, 4), Digit(8, 2)]) == [Digit(8, 8)]
        assert merge([Digit(32, 4), Digit(8, 2), Digit(16, 1)]) == [Digit(8, 2), Digit(32, 4)]

    def test_misaligned_jobs_are_refused_by_field(self):
        """With tp 6 on domains of 8 is told with its field."""
        model = TINY | {"heads": 6, "hidden": 66}
        with pytest.raises(InstanceError, match=r"parallelism\.tp"):
            traffic_of(48, {"tp": 6, "dp": 8}, model, global_batch=8)


class TestDirectDemands:
    """Traffic stated without a model."""

    @staticmethod
    def part(**fields: Any) -> Phase:
        document = {
            "name": "test",
            "cluster": {"gpus": 64, "gpu": "h100-sxm", "nic": "cx7-400"},
            "workload": [fields],
        }
        (phase,) = derive_traffic(instance_from_document(document)).phases
        return phase

    def test_groups_count_domains_on_a_rail(self):
        """All 64 GPUs in domains of 8 are groups of 8 on each rail."""
        assert only_part(self.part(demand="any")) == Component("any", 1, 8, 0, 1.0)
        assert only_part(self.part(demand="ring", group=4)) == Component("shift", 1, 4, 1, 1.0)

    def test_groups_count_gpus_across_the_cluster(self):
        """Any NIC to any NIC: groups of GPUs."""
        assert only_part(self.part(demand="all-to-all", across="cluster")).size == 64
        assert only_part(self.part(demand="shift", by=70, across="cluster")) == Component("shift", 1, 64, 6, 1.0)

    def test_a_group_of_one_sends_nothing(self):
        """No steps, so no load on the network."""
        assert not self.part(demand="any", group=1).steps
