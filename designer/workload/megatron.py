"""The model and the parallelization that a file of Megatron-LM arguments describes."""

import re
from pathlib import Path
from typing import Any

from designer.errors import InstanceError, Problem
from designer.workload.flags import Flags, pattern_length_and_sum, read_flags
from designer.workload.transformer import Transformer, inconsistencies

_UNDERSTOOD = {
    "--num-experts",
    "--moe-router-topk",
    "--moe-ffn-hidden-size",
    "--moe-layer-freq",
    "--moe-shared-expert-intermediate-size",
    "--expert-model-parallel-size",
    "--expert-tensor-parallel-size",
}
_SIZES_OF_EXPERTS = {"--moe-ffn-hidden-size", "--moe-shared-expert-intermediate-size", "--moe-layer-freq"}
# They steer routing, kernels, overlap or logging, and leave sizes and bytes as they are.
_HARMLESS = {
    "--moe-router-load-balancing-type",
    "--moe-router-dtype",
    "--moe-router-score-function",
    "--moe-router-pre-softmax",
    "--moe-router-num-groups",
    "--moe-router-group-topk",
    "--moe-router-topk-limited-devices",
    "--moe-router-topk-scaling-factor",
    "--moe-router-enable-expert-bias",
    "--moe-router-bias-update-rate",
    "--moe-router-padding-for-fp8",
    "--moe-router-padding-for-quantization",
    "--moe-router-fusion",
    "--moe-router-force-load-balancing",
    "--moe-aux-loss-coeff",
    "--moe-z-loss-coeff",
    "--moe-input-jitter-eps",
    "--moe-grouped-gemm",
    "--moe-use-legacy-grouped-gemm",
    "--moe-token-dispatcher-type",
    "--moe-enable-deepep",
    "--moe-flex-dispatcher-backend",
    "--moe-deepep-num-sms",
    "--moe-hybridep-num-sms",
    "--moe-per-layer-logging",
    "--moe-expert-capacity-factor",
    "--moe-token-drop-policy",
    "--moe-layer-recompute",
    "--moe-permute-fusion",
    "--moe-apply-probs-on-input",
    "--moe-shared-expert-overlap",
    "--overlap-moe-expert-parallel-comm",
}
_SMELLS_OF_MOE = re.compile(r"expert|moe|router|mixture", re.IGNORECASE)
_OTHER_LAYERS = re.compile(r"mamba|hybrid|linear-att|heterogeneous|experimental-attention", re.IGNORECASE)
_TOKENIZER_VOCAB = {"GPT2BPETokenizer": 50257, "Llama2Tokenizer": 32000}


def read_megatron_args(path: Path | str) -> tuple[Transformer, dict[str, object]]:
    """Read Megatron-LM arguments from a shell script, which is not run, or from YAML with a mapping MODEL_ARGS.

    The second result holds `parallelism` (tp, pp, cp, ep, interleave, and order where it is not the default), and
    `global_batch` and `micro_batch` in sequences where they are given. Without --vocab-size the size follows from
    the tokenizer type; it is padded as Megatron-LM pads it. --num-query-groups means grouped-query attention also
    without --group-query-attention.

    Raises:
        InstanceError: the file cannot be read, an argument is missing or wrong, or one speaks of experts in a way
            that is not understood.
    """
    flags = Flags(read_flags(path))
    _refuse_unknown(flags)
    sizes = _sizes(flags)
    options: dict[str, object] = {"parallelism": _parallelism(flags, sizes["layers"])}
    for name, flag in (("global_batch", "--global-batch-size"), ("micro_batch", "--micro-batch-size")):
        if flags.has(flag):
            options[name] = flags.whole(flag)
    model = Transformer(name=Path(path).stem[:200], source=str(path), **sizes)
    if not flags.problems:
        for field, found, allowed in inconsistencies(model):
            flags.refuse(_FLAG_OF.get(field, field), found, allowed)
    if flags.problems:
        raise InstanceError(tuple(dict.fromkeys(flags.problems)))
    return model, options


_FLAG_OF = {
    "kv_heads": "--num-query-groups",
    "experts_per_token": "--moe-router-topk",
    "moe_layers": "--moe-layer-freq",
    "head_dim": "--kv-channels",
}


def _refuse_unknown(flags: Flags) -> None:
    for name in flags.file.flags:
        if _SMELLS_OF_MOE.search(name) and name not in _UNDERSTOOD | _HARMLESS:
            flags.refuse(name, "an argument that is not understood", f"one of: {', '.join(sorted(_UNDERSTOOD))}")
        elif _OTHER_LAYERS.search(name):
            flags.refuse(name, "layers other than attention and MLP", "a plain transformer")
    for name, line in flags.file.unset.items():
        if _SMELLS_OF_MOE.search(name):  # arguments for experts may hide behind it
            allowed = "variables that the file sets, where they may hold arguments for experts"
            flags.problems.append(Problem(flags.file.path, line, "", f"the variable {name}, set elsewhere", allowed))


def _sizes(flags: Flags) -> dict[str, Any]:
    gated = flags.has("--swiglu") or flags.has("--quick-geglu")
    hidden = flags.whole("--hidden-size")
    heads = flags.whole("--num-attention-heads")
    groups = 1 if flags.has("--group-query-attention") else heads
    sizes: dict[str, Any] = {
        "layers": flags.whole("--num-layers"),
        "hidden": hidden,
        # With a gate Megatron-LM keeps the number of weights: two thirds of 4h, in whole steps of 64.
        "ffn_hidden": flags.whole("--ffn-hidden-size", default=(hidden * 8 // 3) // 64 * 64 if gated else 4 * hidden),
        "heads": heads,
        "kv_heads": flags.whole("--num-query-groups", default=groups),
        "head_dim": flags.whole("--kv-channels", default=max(1, hidden // heads)),
        "vocab": _vocab(flags),
        "seq_length": flags.whole("--seq-length"),
        "gated_mlp": gated,
        "tied_embeddings": not flags.has("--untie-embeddings-and-output-weights"),
    }
    sound = not flags.wrong & {"--hidden-size", "--num-attention-heads"}  # one mistake is one problem
    if sound and not flags.has("--kv-channels") and hidden % heads:
        flags.refuse("--num-attention-heads", str(heads), f"a divisor of --hidden-size {hidden}")
    if flags.has("--multi-latent-attention"):
        sizes |= {
            "q_lora_rank": flags.whole("--q-lora-rank", default=0),
            "kv_lora_rank": flags.whole("--kv-lora-rank", default=32),
            "qk_nope_head_dim": flags.whole("--qk-head-dim", default=128),
            "qk_rope_head_dim": flags.whole("--qk-pos-emb-head-dim", default=64),
            "v_head_dim": flags.whole("--v-head-dim", default=128),
            "kv_heads": heads,
        }
    if flags.has("--num-experts"):
        sizes |= _moe_sizes(flags, sizes["layers"], sizes["ffn_hidden"])
    elif orphans := [name for name in sorted(_SIZES_OF_EXPERTS) if flags.has(name)]:
        for name in orphans:  # the model is a mixture of experts whose number stands elsewhere
            flags.refuse(name, "a size of experts", "--num-experts with it")
    return sizes


def _vocab(flags: Flags) -> int:
    tokenizer = flags.text("--tokenizer-type") if flags.has("--tokenizer-type") else "GPT2BPETokenizer"
    default = _TOKENIZER_VOCAB.get(tokenizer or "")
    vocab = flags.whole("--vocab-size", default=default)
    step = flags.whole("--make-vocab-size-divisible-by", default=128)
    step *= flags.whole("--tensor-model-parallel-size", default=1)
    return -(-vocab // step) * step


def _moe_sizes(flags: Flags, layers: int, ffn_hidden: int) -> dict[str, int]:
    moe = {
        "experts": flags.whole("--num-experts"),
        "experts_per_token": flags.whole("--moe-router-topk", default=2),
        "moe_ffn_hidden": flags.whole("--moe-ffn-hidden-size", default=ffn_hidden),
        "moe_layers": layers,
    }
    shared = flags.whole("--moe-shared-expert-intermediate-size", default=0)
    moe["shared_experts"], rest = divmod(shared, moe["moe_ffn_hidden"])
    if rest:
        allowed = f"a multiple of --moe-ffn-hidden-size {moe['moe_ffn_hidden']}"
        flags.refuse("--moe-shared-expert-intermediate-size", str(shared), allowed)
    frequency = flags.text("--moe-layer-freq") if flags.has("--moe-layer-freq") else None
    if frequency is None or "--num-layers" in flags.wrong:
        return moe
    if re.fullmatch(r"0*[1-9][0-9]{0,5}", frequency):
        moe["moe_layers"] = -(-layers // int(frequency))
        return moe
    pattern = pattern_length_and_sum(frequency, min(layers, 100_000))
    if pattern is None or pattern[0] != layers:
        flags.refuse(
            "--moe-layer-freq", frequency[:60], f"a whole number, or a list of 0 and 1 for the {layers} layers"
        )
        return moe
    moe["moe_layers"] = pattern[1]
    return moe


def _parallelism(flags: Flags, layers: int) -> dict[str, object]:
    tp = flags.whole("--tensor-model-parallel-size", default=1)
    pp = flags.whole("--pipeline-model-parallel-size", default=1)
    degrees: dict[str, object] = {
        "tp": tp,
        "pp": pp,
        "cp": flags.whole("--context-parallel-size", default=1),
        "ep": flags.whole("--expert-model-parallel-size", default=1),
        "interleave": _interleave(flags, layers, pp),
    }
    if flags.has("--use-tp-pp-dp-mapping"):
        degrees["order"] = "tp-cp-ep-pp-dp"
    if flags.has("--num-experts") and flags.whole("--expert-tensor-parallel-size", default=tp) != tp:
        allowed = f"the tensor parallel size {tp}: experts split otherwise are not modelled"
        flags.refuse("--expert-tensor-parallel-size", flags.text("--expert-tensor-parallel-size") or "", allowed)
    return degrees


def _interleave(flags: Flags, layers: int, pp: int) -> int:
    if flags.has("--num-virtual-stages-per-pipeline-rank"):
        return flags.whole("--num-virtual-stages-per-pipeline-rank")
    name = "--num-layers-per-virtual-pipeline-stage"
    if not flags.has(name):
        return 1
    per_stage = flags.whole(name)
    if not flags.wrong & {"--num-layers", "--pipeline-model-parallel-size"} and layers % (pp * per_stage):
        flags.refuse(name, str(per_stage), f"a divisor of the {layers} / {pp} layers of a pipeline stage")
        return 1
    return max(1, layers // (pp * per_stage))
