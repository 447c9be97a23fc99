from dataclasses import replace

import pytest

from designer.workload.model_library import load_model_library
from designer.workload.transformer import (
    active_parameters,
    attention_parameters,
    dense_mlp_parameters,
    dense_parameters,
    embedding_parameters,
    expert_parameters,
    forward_flops_per_sequence,
    inconsistencies,
    layer_expert_parameters,
    total_parameters,
)

MODELS = load_model_library()


@pytest.mark.parametrize(
    ("key", "total", "tolerance"),
    [
        ("gpt-22b", 22e9, 0.02),
        ("gpt3-175b", 174.6e9, 0.003),
        ("gpt-530b", 530e9, 0.005),
        ("gpt-1t", 1008e9, 0.005),
        ("llama3-8b", 8.03e9, 0.002),
        ("llama3-70b", 70.55e9, 0.001),
        ("llama3-405b", 405.85e9, 0.0005),
        ("mixtral-8x7b", 46.7e9, 0.001),
        ("qwen3-235b-a22b", 235.1e9, 0.001),
        ("deepseek-v3", 671e9, 0.001),
    ],
)
def test_totals_are_the_published_ones(key: str, total: float, tolerance: float) -> None:
    assert total_parameters(MODELS[key]) == pytest.approx(total, rel=tolerance)


@pytest.mark.parametrize(
    ("key", "active", "tolerance"),
    [("mixtral-8x7b", 12.9e9, 0.005), ("deepseek-v3", 37e9, 0.02), ("qwen3-235b-a22b", 22.2e9, 0.005)],
)
def test_active_parameters_are_the_published_ones(key: str, active: float, tolerance: float) -> None:
    assert active_parameters(MODELS[key]) == pytest.approx(active, rel=tolerance)


def test_deepseek_v3_counts_as_its_weight_files_do() -> None:
    """The notes on the weights say 36.6e9 activated parameters, with the output head and without the embedding."""
    model = MODELS["deepseek-v3"]
    assert active_parameters(model) - model.vocab * model.hidden == pytest.approx(36.6e9, rel=0.002)


def test_llama3_405b_has_exactly_the_published_number_of_weights() -> None:
    assert total_parameters(MODELS["llama3-405b"]) == 405_853_388_800


@pytest.mark.parametrize("key", ["gpt-22b", "gpt3-175b", "gpt-530b", "gpt-1t"])
def test_gpt_models_follow_the_closed_formulas(key: str) -> None:
    model = MODELS[key]
    h, layers, v, s = model.hidden, model.layers, model.vocab, model.seq_length
    assert attention_parameters(model) == 4 * h**2
    assert dense_mlp_parameters(model) == 8 * h**2
    assert total_parameters(model) == pytest.approx(
        12 * layers * h**2 * (1 + 13 / (12 * h) + (v + s) / (12 * layers * h))
    )
    # Narayanan 2021: 96·B·s·l·h²·(1 + s/6h + V/16lh) with recomputation is four forward passes of the layers.
    forward = 24 * s * layers * h**2 * (1 + s / (6 * h) + v / (12 * layers * h))
    assert forward_flops_per_sequence(model) == pytest.approx(forward)


@pytest.mark.parametrize("key", MODELS)
def test_parts_add_up_and_sizes_fit(key: str) -> None:
    model = MODELS[key]
    assert model.name == key
    assert model.source
    assert inconsistencies(model) == []
    assert dense_parameters(model) + expert_parameters(model) == total_parameters(model)
    assert expert_parameters(model) == model.moe_layers * layer_expert_parameters(model)
    assert active_parameters(model) <= total_parameters(model)
    assert 0 < embedding_parameters(model) < dense_parameters(model)


@pytest.mark.parametrize("key", MODELS)
def test_a_short_sequence_takes_two_operations_a_visited_weight(key: str) -> None:
    model = MODELS[key]
    matrices = active_parameters(model) - (model.vocab * model.hidden if not model.tied_embeddings else 0)
    assert forward_flops_per_sequence(model, 1) == pytest.approx(2 * matrices, rel=0.01)


def test_untying_and_growing_add_parameters() -> None:
    model = MODELS["gpt-22b"]
    assert (
        total_parameters(replace(model, tied_embeddings=False)) - total_parameters(model) == model.vocab * model.hidden
    )
    assert total_parameters(replace(model, layers=49)) > total_parameters(model)
    assert total_parameters(replace(model, gated_mlp=True, kv_heads=8)) != total_parameters(model)


def test_direct_queries_replace_the_low_rank_ones() -> None:
    model = replace(MODELS["deepseek-v3"], q_lora_rank=0)
    difference = attention_parameters(model) - attention_parameters(MODELS["deepseek-v3"])
    assert difference == 7168 * 128 * 192 - 1536 * (7168 + 128 * 192)


@pytest.mark.parametrize(
    ("key", "change", "field"),
    [
        ("gpt-22b", {"layers": 0}, "layers"),
        ("gpt-22b", {"moe_layers": 3}, "moe_layers"),
        ("gpt-22b", {"kv_heads": 5}, "kv_heads"),
        ("mixtral-8x7b", {"experts_per_token": 9}, "experts_per_token"),
        ("mixtral-8x7b", {"experts_per_token": 0}, "experts_per_token"),
        ("mixtral-8x7b", {"moe_layers": 33}, "moe_layers"),
        ("mixtral-8x7b", {"moe_ffn_hidden": 0}, "moe_ffn_hidden"),
        ("deepseek-v3", {"v_head_dim": 0}, "v_head_dim"),
    ],
)
def test_sizes_that_do_not_fit_are_named(key: str, change: dict[str, int], field: str) -> None:
    assert [name for name, _, _ in inconsistencies(replace(MODELS[key], **change))] == [field]


def test_the_library_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        MODELS["x"] = MODELS["gpt-22b"]  # type: ignore[index]
