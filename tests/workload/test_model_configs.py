import json
from pathlib import Path
from typing import Any

import pytest

from designer.errors import InstanceError, Problem
from designer.workload.flags import pattern_length_and_sum
from designer.workload.model_files import load_model_library, read_hf_config, read_megatron_args
from designer.workload.transformer import total_parameters

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 16384,
    "intermediate_size": 53248,
    "max_position_embeddings": 131072,
    "model_type": "llama",
    "num_attention_heads": 128,
    "num_hidden_layers": 126,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "aux_loss_alpha": 0.001,
    "ep_size": 1,
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_group": 8,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "tie_word_embeddings": False,
    "topk_group": 4,
    "topk_method": "noaux_tc",
    "v_head_dim": 128,
    "vocab_size": 129280,
}
MIXTRAL = {
    "architectures": ["MixtralForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "model_type": "mixtral",
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.02,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
QWEN3_MOE = {
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 1536,
    "num_attention_heads": 64,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 94,
    "num_key_value_heads": 4,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}
GPT2 = {"model_type": "gpt2", "n_ctx": 1024, "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024}
GPT2 |= {"n_inner": None, "vocab_size": 50257, "architectures": ["GPT2LMHeadModel"]}


def config(tmp_path: Path, data: dict[str, Any], **changes: Any) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in (data | changes).items() if value is not ...}, indent=2))
    return path


def refused(tmp_path: Path, data: dict[str, Any], **changes: Any) -> tuple[Problem, ...]:
    path = config(tmp_path, data, **changes)
    with pytest.raises(InstanceError) as caught:
        read_hf_config(path)
    assert all(problem.file == str(path) and problem.line for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(
    ("data", "key"),
    [(LLAMA, "llama3-405b"), (DEEPSEEK, "deepseek-v3"), (MIXTRAL, "mixtral-8x7b"), (QWEN3_MOE, "qwen3-235b-a22b")],
)
def test_published_configurations_give_the_models_of_the_library(tmp_path: Path, data: Any, key: str) -> None:
    known = load_model_library()[key]
    model = read_hf_config(config(tmp_path, data), known.seq_length)
    assert {**vars(model), "name": "", "source": ""} == {**vars(known), "name": "", "source": ""}


def test_the_sequence_length_is_the_models_own_by_default(tmp_path: Path) -> None:
    assert read_hf_config(config(tmp_path, LLAMA)).seq_length == 131072


def test_gpt2_spells_everything_its_own_way(tmp_path: Path) -> None:
    model = read_hf_config(config(tmp_path, GPT2))
    assert (model.layers, model.hidden, model.ffn_hidden, model.heads) == (48, 1600, 6400, 25)
    assert (model.kv_heads, model.head_dim) == (25, 64)
    assert not model.gated_mlp
    assert model.tied_embeddings
    assert total_parameters(model) == pytest.approx(1.558e9, rel=0.001)


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2", "qwen3", "gpt_neox"])
def test_dense_types_share_the_usual_spelling(tmp_path: Path, kind: str) -> None:
    model = read_hf_config(config(tmp_path, LLAMA, model_type=kind, architectures=...))
    assert model.gated_mlp == (kind != "gpt_neox")
    assert (model.experts, model.layers) == (0, 126)


@pytest.mark.parametrize(
    ("data", "usual"), [(MIXTRAL, "num_local_experts"), (DEEPSEEK, "n_routed_experts"), (QWEN3_MOE, "num_experts")]
)
@pytest.mark.parametrize("spelling", ["num_local_experts", "n_routed_experts", "num_experts"])
def test_every_spelling_of_the_expert_count_is_read(tmp_path: Path, data: Any, usual: str, spelling: str) -> None:
    path = config(tmp_path, {**data, usual: ..., spelling: 16})
    assert read_hf_config(path).experts == 16


def test_two_spellings_must_agree(tmp_path: Path) -> None:
    assert read_hf_config(config(tmp_path, DEEPSEEK, num_experts=256)).experts == 256
    assert [problem.field for problem in refused(tmp_path, DEEPSEEK, num_experts=8)] == ["num_experts"]


def test_a_moe_without_its_expert_count_is_refused(tmp_path: Path) -> None:
    for data, key in [(MIXTRAL, "num_local_experts"), (DEEPSEEK, "n_routed_experts"), (QWEN3_MOE, "num_experts")]:
        [problem] = refused(tmp_path, data, **{key: ...})
        assert (problem.field, problem.found) == (key, "nothing")


@pytest.mark.parametrize(
    "key",
    [
        "num_local_experts",
        "n_routed_experts",
        "num_experts",
        "moe_num_experts",
        "expert_count",
        "use_moe",
        "router_top",
    ],
)
@pytest.mark.parametrize("data", [LLAMA, GPT2], ids=["llama", "gpt2"])
def test_a_moe_is_never_read_as_dense(tmp_path: Path, data: Any, key: str) -> None:
    [problem] = refused(tmp_path, data, **{key: 8})
    assert problem.field == key
    assert "no experts" in problem.allowed


def test_a_moe_architecture_under_a_dense_type_is_refused(tmp_path: Path) -> None:
    [problem] = refused(tmp_path, LLAMA, architectures=["MixtralForCausalLM"])
    assert problem.field == "architectures"


@pytest.mark.parametrize("data", [MIXTRAL, DEEPSEEK, QWEN3_MOE], ids=["mixtral", "deepseek", "qwen"])
def test_a_moe_with_an_unknown_key_of_experts_is_refused(tmp_path: Path, data: Any) -> None:
    [problem] = refused(tmp_path, data, num_zero_experts=4)
    assert problem.field == "num_zero_experts"


def test_an_empty_moe_key_is_no_moe(tmp_path: Path) -> None:
    assert read_hf_config(config(tmp_path, LLAMA, num_experts=None)).experts == 0


def test_unknown_types_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    for kind in ("dbrx", 3, ["llama"], ...):
        [problem] = refused(tmp_path, LLAMA, model_type=kind)
        assert "llama, mistral, qwen2" in problem.allowed
        assert "deepseek_v3" in problem.allowed


@pytest.mark.parametrize(
    ("data", "changes", "field"),
    [
        (LLAMA, {"hidden_size": "big"}, "hidden_size"),
        (LLAMA, {"num_hidden_layers": 0}, "num_hidden_layers"),
        (LLAMA, {"num_hidden_layers": True}, "num_hidden_layers"),
        (LLAMA, {"num_hidden_layers": 10**12}, "num_hidden_layers"),
        (LLAMA, {"intermediate_size": ...}, "intermediate_size"),
        (LLAMA, {"num_key_value_heads": 7}, "num_key_value_heads"),
        (LLAMA, {"num_attention_heads": 120}, "num_attention_heads"),
        (LLAMA, {"tie_word_embeddings": "no"}, "tie_word_embeddings"),
        (MIXTRAL, {"num_experts_per_tok": 9}, "num_experts_per_tok"),
        (DEEPSEEK, {"kv_lora_rank": ...}, "kv_lora_rank"),
        (QWEN3_MOE, {"mlp_only_layers": "all"}, "mlp_only_layers"),
        (QWEN3_MOE, {"shared_expert_intermediate_size": 1000}, "shared_expert_intermediate_size"),
    ],
)
def test_wrong_sizes_are_named(tmp_path: Path, data: Any, changes: dict[str, Any], field: str) -> None:
    assert [problem.field for problem in refused(tmp_path, data, **changes)] == [field]


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    found = refused(tmp_path, LLAMA, hidden_size=..., vocab_size=-1, num_experts=8)
    assert {problem.field for problem in found} == {"hidden_size", "vocab_size", "num_experts"}


def test_layers_of_experts_are_counted_where_they_stand(tmp_path: Path) -> None:
    changes = {"num_hidden_layers": 10, "decoder_sparse_step": 2, "mlp_only_layers": [1, 2]}
    assert read_hf_config(config(tmp_path, QWEN3_MOE, **changes)).moe_layers == 4
    shared = read_hf_config(config(tmp_path, QWEN3_MOE, shared_expert_intermediate_size=3072))
    assert shared.shared_experts == 2
    changes = {"num_hidden_layers": 10, "moe_layer_freq": 2, "first_k_dense_replace": 1}
    assert read_hf_config(config(tmp_path, DEEPSEEK, **changes)).moe_layers == 4


def test_files_that_are_no_configuration_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for text in ("[1]", "{", ""):
        path.write_text(text)
        with pytest.raises(InstanceError):
            read_hf_config(path)


GPT3 = """#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
TP=8
PP=$TP   # one node
# --num-experts 8 is for later
MODEL_ARGS=(
    --num-layers 96 \\
    --hidden-size 12288
    --num-attention-heads=96
    --seq-length 2048 --max-position-embeddings 2048)
TRAINING="
    --micro-batch-size 1 # small
    --global-batch-size 1536
    --vocab-size 51200"
PARALLEL="--tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP} --sequence-parallel"
torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py ${MODEL_ARGS[@]} $TRAINING ${PARALLEL} \\
    --num-layers-per-virtual-pipeline-stage 3 --data-path $1 --save $(touch {canary})
"""
MIXTRAL_SCRIPT = """
MODEL_ARGS=(
    --disable-bias-linear --seq-length 4096 --max-position-embeddings 32768
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --swiglu --untie-embeddings-and-output-weights
)
MOE_ARGS=(
    --num-experts 8 --moe-router-topk 2 --moe-router-load-balancing-type aux_loss
    --moe-aux-loss-coeff 1e-2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall
)
DATA_ARGS=(--tokenizer-type Llama2Tokenizer --make-vocab-size-divisible-by 1)
torchrun pretrain_gpt.py ${MODEL_ARGS[@]} ${MOE_ARGS[@]} ${DATA_ARGS[@]} --micro-batch-size 1 --global-batch-size 256 \\
   --tensor-model-parallel-size 1 --pipeline-model-parallel-size 4 --expert-model-parallel-size 8
"""
DENSE = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --vocab-size 51200 "
MOE = DENSE + "--num-experts 4 "


def script(tmp_path: Path, text: str, name: str = "train.sh") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def megatron_problems(tmp_path: Path, text: str, name: str = "train.sh") -> tuple[Problem, ...]:
    with pytest.raises(InstanceError) as caught:
        read_megatron_args(script(tmp_path, text, name))
    return caught.value.problems


def test_a_script_is_read_and_never_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    model, options = read_megatron_args(script(tmp_path, GPT3.replace("{canary}", str(canary))))
    known = load_model_library()["gpt3-175b"]
    assert {**vars(model), "name": "", "source": ""} == {**vars(known), "name": "", "source": ""}
    assert options == {
        "parallelism": {"tp": 8, "pp": 8, "cp": 1, "ep": 1, "interleave": 4},
        "global_batch": 1536,
        "micro_batch": 1,
    }
    assert not canary.exists()


def test_a_moe_script_gives_the_model_of_the_library(tmp_path: Path) -> None:
    model, options = read_megatron_args(script(tmp_path, MIXTRAL_SCRIPT))
    known = load_model_library()["mixtral-8x7b"]
    assert {**vars(model), "name": "", "source": "", "seq_length": 0} == {
        **vars(known),
        "name": "",
        "source": "",
        "seq_length": 0,
    }
    assert options["parallelism"] == {"tp": 1, "pp": 4, "cp": 1, "ep": 8, "interleave": 1}


def test_yaml_arguments_with_latent_attention_give_deepseek(tmp_path: Path) -> None:
    text = """
ENV_VARS: {NCCL_DEBUG: INFO}
MODEL_ARGS:
  --num-layers: 61
  --hidden-size: 7168
  --ffn-hidden-size: 18432
  --num-attention-heads: 128
  --kv-channels: 128
  --seq-length: 4096
  --vocab-size: 129280
  --make-vocab-size-divisible-by: 1
  --swiglu: true
  --untie-embeddings-and-output-weights: true
  --multi-latent-attention: true
  --q-lora-rank: 1536
  --kv-lora-rank: 512
  --qk-head-dim: 128
  --qk-pos-emb-head-dim: 64
  --v-head-dim: 128
  --num-experts: 256
  --moe-router-topk: 8
  --moe-ffn-hidden-size: 2048
  --moe-shared-expert-intermediate-size: 2048
  --moe-layer-freq: ([0]*3+[1]*58)
  --moe-router-dtype: fp32
  --expert-model-parallel-size: 64
  --pipeline-model-parallel-size: 16
  --use-tp-pp-dp-mapping: true
  --save: ${CHECKPOINT_SAVE_PATH}
TEST_TYPE: ckpt
"""
    model, options = read_megatron_args(script(tmp_path, text, "model_config.yaml"))
    known = load_model_library()["deepseek-v3"]
    assert {**vars(model), "name": "", "source": ""} == {**vars(known), "name": "", "source": ""}
    assert options == {
        "parallelism": {"tp": 1, "pp": 16, "cp": 1, "ep": 64, "interleave": 1, "order": "tp-cp-ep-pp-dp"}
    }


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        (DENSE, "ffn_hidden", 2048),
        (DENSE + "--swiglu", "ffn_hidden", 1344),
        (DENSE, "kv_heads", 8),
        (DENSE + "--group-query-attention", "kv_heads", 1),
        (DENSE + "--num-query-groups 2", "kv_heads", 2),
        (DENSE + "--kv-channels 128", "head_dim", 128),
        (DENSE + "--tensor-model-parallel-size 3", "vocab", 51456),
        (DENSE.replace("--vocab-size 51200", "--tensor-model-parallel-size 8"), "vocab", 51200),
        (DENSE + "--untie-embeddings-and-output-weights", "tied_embeddings", False),
        (MOE, "experts_per_token", 2),
        (MOE, "moe_ffn_hidden", 2048),
        (MOE, "moe_layers", 4),
        (MOE + "--moe-layer-freq 3", "moe_layers", 2),
        (MOE + "--moe-layer-freq '([0]*2+[1])+[1]'", "moe_layers", 2),
        (MOE + "--moe-layer-freq \"'([1,0])*2'\"", "moe_layers", 2),
        (MOE + "--moe-shared-expert-intermediate-size 4096", "shared_experts", 2),
        (MOE + "--moe-router-num-groups 8 --moe-permute-fusion", "experts", 4),
    ],
)
def test_defaults_and_spellings_are_those_of_megatron(tmp_path: Path, text: str, field: str, value: object) -> None:
    model, _ = read_megatron_args(script(tmp_path, text))
    assert getattr(model, field) == value


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        (DENSE + "\n--moe-unknown-size 8", 2, "--moe-unknown-size"),
        (DENSE + "\n--num-experts-per-layer 8", 2, "--num-experts-per-layer"),
        (DENSE + "\n--num_experts 8", 2, "--num_experts"),
        (DENSE + "\n--num-expert 8", 2, "--num-expert"),
        (DENSE + "\n--moe-ffn-hidden-size 8", 2, "--moe-ffn-hidden-size"),
        (MOE + "\n--moe-latent-size 8", 2, "--moe-latent-size"),
        (MOE + "\n--expert-tensor-parallel-size 2", 2, "--expert-tensor-parallel-size"),
        (MOE + "\n--moe-router-topk 5", 2, "--moe-router-topk"),
        (MOE + "\n--moe-layer-freq [1]*3", 2, "--moe-layer-freq"),
        (MOE + "\n--moe-layer-freq __import__('os')", 2, "--moe-layer-freq"),
        (MOE + "\n--moe-shared-expert-intermediate-size 100", 2, "--moe-shared-expert-intermediate-size"),
        (DENSE + "\n$MOE_ARGS", 2, ""),
        (DENSE + "\n--hybrid-override-pattern M*", 2, "--hybrid-override-pattern"),
        (DENSE + "\n--context-parallel-size ${CP}", 2, "--context-parallel-size"),
        (DENSE + "\n--context-parallel-size $((2 * 2))", 2, "--context-parallel-size"),
        ("CP=2\nCP=4\n" + DENSE + "\n--context-parallel-size $CP", 4, "--context-parallel-size"),
        ("CP=$1\n" + DENSE + "\n--context-parallel-size $CP", 3, "--context-parallel-size"),
        ("A=$B\nB=$A\n" + DENSE + "\n--context-parallel-size $A", 4, "--context-parallel-size"),
        (DENSE + "\n--context-parallel-size two", 2, "--context-parallel-size"),
        (DENSE + "\n--context-parallel-size 0", 2, "--context-parallel-size"),
        (DENSE + "\n--context-parallel-size", 2, "--context-parallel-size"),
        (DENSE + "\n--num-layers 8", 2, "--num-layers"),
        (DENSE + "\n--num-query-groups 3", 2, "--num-query-groups"),
        (DENSE + "\n--num-layers-per-virtual-pipeline-stage 3", 2, "--num-layers-per-virtual-pipeline-stage"),
        (DENSE.replace("--seq-length 1024", ""), None, "--seq-length"),
        (DENSE.replace("--num-layers 4", ""), None, "--num-layers"),
        (DENSE.replace("--vocab-size 51200", "--tokenizer-type Other"), None, "--vocab-size"),
        (MOE.replace("--num-layers 4", "--moe-layer-freq [0,1]"), None, "--num-layers"),
        (DENSE.replace("--hidden-size 512", ""), None, "--hidden-size"),
        ("echo hello", None, ""),
        ("x" * 2**21, None, ""),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str, line: int | None, field: str) -> None:
    assert [(problem.line, problem.field) for problem in megatron_problems(tmp_path, text)] == [(line, field)]


def test_yaml_that_holds_no_arguments_is_refused(tmp_path: Path) -> None:
    for text in ("[1]", "MODEL_ARGS: 3", "a: 1", "MODEL_ARGS: {--num-layers: 4}"):
        assert megatron_problems(tmp_path, text, "args.yml")


def test_virtual_stages_are_the_interleave(tmp_path: Path) -> None:
    _, options = read_megatron_args(script(tmp_path, DENSE + "--num-virtual-stages-per-pipeline-rank 2"))
    assert options["parallelism"] == {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "interleave": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("([0]*3+[1]*58)", (61, 58)),
        ("[0,1]*2", (4, 2)),
        ("2*[1]", (2, 2)),
        ("[True]*2", (2, 2)),
        ("[2]*2", None),
        ("[1]*1000000000", None),
        ("2*3", None),
        ("f()", None),
        ("(" * 500 + "[1]" + ")" * 500, None),
        ("[1]+" * 400 + "[1]", None),
        ("9**9**9", None),
    ],
)
def test_layer_patterns_are_read_without_being_run(text: str, expected: tuple[int, int] | None) -> None:
    assert pattern_length_and_sum(text, 100) == expected
