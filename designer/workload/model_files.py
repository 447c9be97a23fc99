"""Reading of the model descriptions that users already have: Hugging Face config.json and Megatron-LM arguments.

A mixture-of-experts model that is read as dense is a silent wrong answer. So every key that speaks of experts or
routers is either understood, known to leave the sizes alone, or refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from designer.errors import InstanceError, Problem
from designer.plain_yaml import shorten
from designer.source import Source, read_yaml
from designer.workload.megatron import read_megatron_args
from designer.workload.model_library import load_model_library
from designer.workload.transformer import Transformer, inconsistencies

__all__ = ["load_model_library", "read_hf_config", "read_megatron_args"]

MAX_SIZE = 10**9


@dataclass(frozen=True)
class _Family:
    """How one `model_type` spells its sizes; the first spelling is the usual one."""

    gated: bool = True
    tied: bool = False
    moe: str = ""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    harmless: frozenset[str] = frozenset()


_NAMES = {
    "layers": ("num_hidden_layers",),
    "hidden": ("hidden_size",),
    "ffn_hidden": ("intermediate_size",),
    "heads": ("num_attention_heads",),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "vocab": ("vocab_size",),
    "seq_length": ("max_position_embeddings",),
}
_GPT2_NAMES = {
    "layers": ("n_layer", "num_hidden_layers"),
    "hidden": ("n_embd", "hidden_size"),
    "ffn_hidden": ("n_inner",),
    "heads": ("n_head", "num_attention_heads"),
    "vocab": ("vocab_size",),
    "seq_length": ("n_positions", "n_ctx", "max_position_embeddings"),
}
_TOP_K = ("num_experts_per_tok", "num_experts_per_token")
_MIXTRAL_NAMES = {"experts": ("num_local_experts", "num_experts", "n_routed_experts"), "experts_per_token": _TOP_K}
_QWEN_NAMES = {
    "experts": ("num_experts", "num_local_experts", "n_routed_experts"),
    "experts_per_token": _TOP_K,
    "moe_ffn_hidden": ("moe_intermediate_size",),
}
_DEEPSEEK_NAMES = {
    "experts": ("n_routed_experts", "num_local_experts", "num_experts"),
    "experts_per_token": _TOP_K,
    "shared_experts": ("n_shared_experts", "num_shared_experts"),
    "moe_ffn_hidden": ("moe_intermediate_size",),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_rope_head_dim": ("qk_rope_head_dim",),
    "qk_nope_head_dim": ("qk_nope_head_dim",),
    "v_head_dim": ("v_head_dim",),
}
_ROUTER_KEYS = frozenset({"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"})
_DEEPSEEK_HARMLESS = _ROUTER_KEYS | {"routed_scaling_factor"}
_DEEPSEEK = _Family(moe="deepseek", names=_NAMES | _DEEPSEEK_NAMES, harmless=frozenset(_DEEPSEEK_HARMLESS))
_QWEN_MOE = _Family(moe="qwen", names=_NAMES | _QWEN_NAMES, harmless=_ROUTER_KEYS)
_FAMILIES = {
    "llama": _Family(names=_NAMES),
    "mistral": _Family(names=_NAMES),
    "qwen2": _Family(names=_NAMES),
    "qwen3": _Family(names=_NAMES),
    "gpt2": _Family(gated=False, tied=True, names=_GPT2_NAMES),
    "gpt_neox": _Family(gated=False, names=_NAMES),
    "mixtral": _Family(moe="mixtral", names=_NAMES | _MIXTRAL_NAMES, harmless=_ROUTER_KEYS),
    "qwen2_moe": _QWEN_MOE,
    "qwen3_moe": _QWEN_MOE,
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
}
# What decides which layers are MoE, read apart from the plain sizes.
_PLACEMENT_KEYS = {
    "": frozenset[str](),
    "mixtral": frozenset[str](),
    "qwen": frozenset({"decoder_sparse_step", "mlp_only_layers", "shared_expert_intermediate_size"}),
    "deepseek": frozenset({"first_k_dense_replace", "moe_layer_freq"}),
}
_SMELLS_OF_MOE = re.compile(r"expert|moe|rout(er|ed|ing)|sparse_step|mlp_only|mixture|first_k_dense", re.IGNORECASE)
_MOE_CLASS = re.compile(r"moe|mixtral|deepseek|experts", re.IGNORECASE)


class _Config:
    """One configuration file: typed look-ups that collect problems."""

    def __init__(self, source: Source, data: Mapping[str, object]) -> None:
        self.source = source
        self.data = data
        self.problems: list[Problem] = []

    def refuse(self, key: str, found: str, allowed: str) -> None:
        self.problems.append(Problem(self.source.path, self.source.line((key,)), key, found, allowed))

    @property
    def wrong(self) -> set[str]:
        """The keys with problems."""
        return {problem.field for problem in self.problems}

    def whole(self, names: tuple[str, ...], default: int | None = None, minimum: int = 1) -> int:
        """The whole number under one of several spellings, which must agree where several are given."""
        given = [name for name in names if self.data.get(name) is not None]
        if not given:
            if default is None:
                spellings = " or ".join(names)
                self.refuse(names[0], "nothing", f"a value (the field is required; spelled {spellings})")
            return minimum if default is None else default
        value = self.data[given[0]]
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= MAX_SIZE:
            self.refuse(given[0], shorten(value), f"a whole number >= {minimum} and <= {MAX_SIZE}")
            return max(minimum, 1)
        for other in given[1:]:
            if self.data[other] != value:
                self.refuse(other, shorten(self.data[other]), f"the same number as {given[0]}: {value}")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            self.refuse(key, shorten(value), "true or false")
            return default
        return value


def read_hf_config(path: Path | str, seq_length: int | None = None) -> Transformer:
    """Read a Hugging Face config.json.

    `seq_length`, in tokens, is the length of the training sequences; without it, the longest that the model takes.
    Modules that predict further tokens (`num_nextn_predict_layers`) are left out.

    Raises:
        InstanceError: the file cannot be read, the model type is unknown, a size is missing or wrong, or a key speaks
            of experts in a way that is not understood.
    """
    source = read_yaml(path, InstanceError)
    data: object = source.data
    if not isinstance(data, dict):
        raise InstanceError([Problem(source.path, 1, "", shorten(data), "a mapping of fields")])
    config = _Config(source, cast("dict[str, object]", data))
    kind = config.data.get("model_type")
    family = _FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        found = "nothing" if kind is None else shorten(kind)
        config.refuse("model_type", found, f"one of: {', '.join(_FAMILIES)}; or the sizes written into the instance")
        raise InstanceError(config.problems)
    _refuse_unknown_moe(config, family)
    sizes = _sizes(config, family)
    if seq_length is not None:
        sizes["seq_length"] = seq_length
    if not config.problems:
        tied = config.flag("tie_word_embeddings", default=family.tied)
        model = Transformer(
            name=_name(config, path), gated_mlp=family.gated, tied_embeddings=tied, source=str(path), **sizes
        )
        for name, found, allowed in inconsistencies(model):
            spelled = next((key for key in family.names.get(name, ()) if key in config.data), name)
            config.refuse(spelled, found, allowed)
        if not config.problems:
            return model
    raise InstanceError(config.problems)


def _name(config: _Config, path: Path | str) -> str:
    given = config.data.get("_name_or_path")
    name = given.rstrip("/").rsplit("/", 1)[-1] if isinstance(given, str) else ""
    return (name or (Path(path).stem if Path(path).name != "config.json" else str(config.data["model_type"])))[:200]


def _refuse_unknown_moe(config: _Config, family: _Family) -> None:
    understood = {spelling for spellings in family.names.values() for spelling in spellings}
    understood |= family.harmless | _PLACEMENT_KEYS[family.moe]
    for key, value in config.data.items():
        if value is not None and key not in understood and _SMELLS_OF_MOE.search(str(key)):
            allowed = "keys of a mixture of experts that this model type is known to have"
            if not family.moe:
                allowed = f"no experts in the dense model type {config.data['model_type']}"
            config.refuse(str(key), shorten(value), f"{allowed}; or the sizes written into the instance")
    architectures = config.data.get("architectures")
    if not family.moe and architectures is not None and _MOE_CLASS.search(str(architectures)[:1000]):
        config.refuse("architectures", shorten(architectures), f"a dense model, as {config.data['model_type']} is")


def _sizes(config: _Config, family: _Family) -> dict[str, Any]:
    names = family.names
    sizes = {name: config.whole(names[name]) for name in ("layers", "hidden", "heads", "vocab", "seq_length")}
    optional = family.names is _GPT2_NAMES
    sizes["ffn_hidden"] = config.whole(names["ffn_hidden"], 4 * sizes["hidden"] if optional else None)
    sizes["kv_heads"] = config.whole(names.get("kv_heads", ("num_key_value_heads",)), sizes["heads"])
    if family.moe == "deepseek":
        sizes |= {name: config.whole(names[name]) for name in ("kv_lora_rank", "qk_nope_head_dim", "v_head_dim")}
        sizes |= {name: config.whole(names[name], 0, 0) for name in ("q_lora_rank", "qk_rope_head_dim")}
        sizes["head_dim"] = sizes["v_head_dim"]
    else:
        own = max(1, sizes["hidden"] // sizes["heads"])
        sizes["head_dim"] = config.whole(names.get("head_dim", ("head_dim",)), own)
        sound = not config.wrong & {*names["hidden"], *names["heads"]}  # one mistake is one problem
        if sound and config.data.get("head_dim") is None and sizes["hidden"] % sizes["heads"]:
            config.refuse(names["heads"][0], str(sizes["heads"]), f"a divisor of the hidden size {sizes['hidden']}")
    if family.moe:
        sizes |= _moe_sizes(config, family, sizes)
    return sizes


def _dense_layers(config: _Config) -> set[object]:
    layers: Any = config.data.get("mlp_only_layers") or []
    if not isinstance(layers, list) or any(type(layer) is not int for layer in cast("list[object]", layers)):
        config.refuse("mlp_only_layers", shorten(config.data["mlp_only_layers"]), "a list of layer numbers")
        return set()
    return set(cast("list[object]", layers))


def _moe_sizes(config: _Config, family: _Family, sizes: Mapping[str, int]) -> dict[str, int]:
    names, layers = family.names, sizes["layers"]
    moe = {name: config.whole(names[name]) for name in ("experts", "experts_per_token")}
    if family.moe == "mixtral":
        return moe | {"moe_ffn_hidden": sizes["ffn_hidden"], "moe_layers": layers}
    moe["moe_ffn_hidden"] = config.whole(names["moe_ffn_hidden"])
    layers = min(layers, 100_000)  # enough for any model, and few enough to count one by one
    if family.moe == "deepseek":
        first = config.whole(("first_k_dense_replace",), 0, 0)
        step = config.whole(("moe_layer_freq",), 1)
        moe["shared_experts"] = config.whole(names["shared_experts"], 0, 0)
        moe["moe_layers"] = sum(layer >= first and layer % step == 0 for layer in range(layers))
        return moe
    step = config.whole(("decoder_sparse_step",), 1)
    left_out = _dense_layers(config)
    moe["moe_layers"] = sum(layer not in left_out and (layer + 1) % step == 0 for layer in range(layers))
    shared_ffn = config.whole(("shared_expert_intermediate_size",), 0, 0)
    moe["shared_experts"], rest = divmod(shared_ffn, moe["moe_ffn_hidden"])
    if rest:
        allowed = f"a multiple of moe_intermediate_size {moe['moe_ffn_hidden']}"
        config.refuse("shared_expert_intermediate_size", str(shared_ffn), allowed)
    return moe
