"""Sizes of a transformer, and what follows from them: parameters and floating-point operations."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Transformer:
    """A decoder-only transformer, dense or with mixture-of-experts (MoE) layers.

    Lengths are in elements: `seq_length` in tokens, `hidden`, `ffn_hidden`, `moe_ffn_hidden` and the head dimensions in
    features. `moe_layers` of the `layers` have `experts` routed experts, of which a token visits
    `experts_per_token`, and `shared_experts` that every token visits; the others have a dense MLP of `ffn_hidden`.
    With `kv_lora_rank` > 0 attention is multi-head latent attention (MLA). Modules that predict further tokens are
    not counted.
    """

    name: str
    layers: int
    hidden: int
    ffn_hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    seq_length: int
    gated_mlp: bool
    tied_embeddings: bool
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    moe_ffn_hidden: int = 0
    moe_layers: int = 0
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_rope_head_dim: int = 0
    qk_nope_head_dim: int = 0
    v_head_dim: int = 0
    source: str = ""


def inconsistencies(model: Transformer) -> list[tuple[str, str, str]]:
    """What does not fit together, as (field, what was found, what is allowed); empty for a sound model."""
    positive = ("layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab", "seq_length")
    if model.experts:
        positive += ("experts_per_token", "moe_ffn_hidden", "moe_layers")
    if model.kv_lora_rank:
        positive += ("qk_nope_head_dim", "v_head_dim")
    found = [(name, str(getattr(model, name)), "a whole number >= 1") for name in positive if getattr(model, name) < 1]
    moe = {"experts_per_token", "shared_experts", "moe_layers"}
    if not model.experts:
        found += [
            (name, str(getattr(model, name)), "0 without experts") for name in sorted(moe) if getattr(model, name)
        ]
    if model.experts_per_token > model.experts > 0:
        found.append(("experts_per_token", str(model.experts_per_token), f"at most the {model.experts} experts"))
    if model.moe_layers > model.layers:
        found.append(("moe_layers", str(model.moe_layers), f"at most the {model.layers} layers"))
    if model.kv_heads > 0 and model.heads % model.kv_heads:
        found.append(("kv_heads", str(model.kv_heads), f"a divisor of the {model.heads} heads"))
    return found


def attention_parameters(model: Transformer) -> int:
    """Weights of the attention matrices of one layer.

    Grouped-query attention: `2·h·a·d + 2·h·a_kv·d` for queries and output, keys and values; 4h² with a·d = h and as
    many key-value heads (Narayanan 2021, arXiv 2104.04473, section 5.1). MLA: the low-rank factors of queries, keys and
    values, and the output (DeepSeek-V3, arXiv 2412.19437, section 2.1.1).
    """
    if not model.kv_lora_rank:
        return 2 * model.hidden * (model.heads + model.kv_heads) * model.head_dim
    query_dim = model.heads * (model.qk_nope_head_dim + model.qk_rope_head_dim)
    rank = model.q_lora_rank
    queries = rank * (model.hidden + query_dim) if rank else model.hidden * query_dim
    compressed = model.hidden * (model.kv_lora_rank + model.qk_rope_head_dim)
    keys_values = model.kv_lora_rank * model.heads * (model.qk_nope_head_dim + model.v_head_dim)
    return queries + compressed + keys_values + model.heads * model.v_head_dim * model.hidden


def _mlp_parameters(model: Transformer, ffn_hidden: int) -> int:
    return (3 if model.gated_mlp else 2) * model.hidden * ffn_hidden


def dense_mlp_parameters(model: Transformer) -> int:
    """Weights of the MLP of one dense layer.

    `2·h·f`, which is 8h² with f = 4h (Narayanan 2021, arXiv 2104.04473, section 5.1), or `3·h·f` with a gate
    (Shazeer 2020, arXiv 2002.05202).
    """
    return _mlp_parameters(model, model.ffn_hidden)


def layer_expert_parameters(model: Transformer) -> int:
    """Weights of all routed experts of one MoE layer: `experts` MLPs (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)."""
    return model.experts * _mlp_parameters(model, model.moe_ffn_hidden)


def embedding_parameters(model: Transformer) -> int:
    """Weights of token embedding and output: `V·h` when tied, else `2·V·h`; `s·h` more for learned positions.

    Models without a gated MLP are of the GPT kind, with learned positions: `(V + s)·h` (Narayanan 2021,
    arXiv 2104.04473, equation 2).
    """
    positions = 0 if model.gated_mlp else model.seq_length
    return model.hidden * (model.vocab * (1 if model.tied_embeddings else 2) + positions)


def _small_parameters(model: Transformer) -> int:
    """Norms and biases: 13h a layer of the GPT kind (Narayanan 2021, equation 2), else the scales of two RMS norms."""
    if not model.gated_mlp:
        return 13 * model.hidden * model.layers
    latent = model.q_lora_rank + model.kv_lora_rank
    return (2 * model.hidden + latent) * model.layers + model.hidden


def expert_parameters(model: Transformer) -> int:
    """Weights of all routed experts of all layers: those that expert parallelism spreads.

    `moe_layers` times `layer_expert_parameters` (Rajbhandari 2022, arXiv 2201.05596).
    """
    return model.moe_layers * layer_expert_parameters(model)


def dense_parameters(model: Transformer) -> int:
    """All other weights, those that every expert-parallel rank holds: attention, dense MLPs, shared experts, routers.

    Embeddings, norms and biases are among them. The sum over layers follows Narayanan 2021 (arXiv 2104.04473,
    equation 2), routers (`h·experts`) and shared experts DeepSeek-V3 (arXiv 2412.19437, section 2.1.2).
    """
    shared = model.shared_experts * _mlp_parameters(model, model.moe_ffn_hidden)
    return (
        model.layers * attention_parameters(model)
        + (model.layers - model.moe_layers) * dense_mlp_parameters(model)
        + model.moe_layers * (shared + model.hidden * model.experts)
        + embedding_parameters(model)
        + _small_parameters(model)
    )


def total_parameters(model: Transformer) -> int:
    """All weights of the model: `dense_parameters` and `expert_parameters`."""
    return dense_parameters(model) + expert_parameters(model)


def active_parameters(model: Transformer) -> int:
    """Weights that take part in computing one token: of the routed experts only `experts_per_token` a layer.

    The definition of activated parameters in DeepSeek-V3 (arXiv 2412.19437, section 1).
    """
    visited = model.moe_layers * model.experts_per_token * _mlp_parameters(model, model.moe_ffn_hidden)
    return dense_parameters(model) + visited


def forward_flops_per_sequence(model: Transformer, seq_length: int | None = None) -> int:
    """Floating-point operations of the forward pass of one sequence (by default of the model's `seq_length` tokens).

    Two for each weight of a matrix and token, and `2·s²·a·(d_qk + d_v)` a layer for scores and their product with the
    values: `24·s·h² + 4·s²·h` a layer and `2·s·h·V` for the logits of a GPT (Narayanan 2021, arXiv 2104.04473,
    appendix; Korthikanti 2022, arXiv 2205.05198, appendix A). The causal mask saves nothing in this count; the
    backward pass takes twice as many.
    """
    tokens = model.seq_length if seq_length is None else seq_length
    visited = model.experts_per_token + model.shared_experts
    moe_weights = visited * _mlp_parameters(model, model.moe_ffn_hidden) + model.hidden * model.experts
    weights = (
        model.layers * attention_parameters(model)
        + (model.layers - model.moe_layers) * dense_mlp_parameters(model)
        + model.moe_layers * moe_weights
        + model.vocab * model.hidden
    )
    return 2 * tokens * weights + score_flops_per_sequence(model, tokens)


def head_dims(model: Transformer) -> tuple[int, int]:
    """Features of a head: of its queries and keys, and of its values."""
    if model.kv_lora_rank:
        return model.qk_nope_head_dim + model.qk_rope_head_dim, model.v_head_dim
    return model.head_dim, model.head_dim


def score_flops_per_sequence(model: Transformer, seq_length: int) -> int:
    """The part of `forward_flops_per_sequence` for scores and their product with the values: `2·s²·a·(d_qk + d_v)·L`.

    It is what selective recomputation does again (Korthikanti 2022, arXiv 2205.05198, section 5).
    """
    return 2 * seq_length**2 * model.heads * sum(head_dims(model)) * model.layers


def logit_flops_per_sequence(model: Transformer, seq_length: int) -> int:
    """The part of `forward_flops_per_sequence` for the logits, `2·s·h·V` (Narayanan 2021, arXiv 2104.04473)."""
    return 2 * seq_length * model.hidden * model.vocab
