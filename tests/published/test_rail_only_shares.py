"""Where the bytes of dense jobs go, as the rail-only paper has it: in the domain, on a rail, none across rails."""

from typing import Any

import pytest

from designer.instance.load import instance_from_document
from designer.workload.heatmap import shares
from designer.workload.phases import derive_traffic

GPT: dict[str, Any] = {"vocab": 51200, "seq_length": 2048, "gated_mlp": False, "tied_embeddings": True}

# The jobs of Narayanan et al. 2021 (arXiv 2104.04473), table 1, with TP 8: model, GPUs, stages, sequences.
JOBS = [
    ({"layers": 80, "hidden": 12288, "heads": 96, **GPT}, 1536, 8, 2304),
    ({"layers": 96, "hidden": 16384, "heads": 128, **GPT}, 1920, 16, 2160),
    ("gpt-530b", 2520, 35, 2520),
    ("gpt-1t", 3072, 64, 3072),
]


@pytest.mark.parametrize(("model", "gpus", "pp", "batch"), JOBS, ids=["146b", "310b", "530b", "1t"])
def test_dense_jobs_stay_in_their_domains(model: Any, gpus: int, pp: int, batch: int) -> None:
    """93 to 99 % inside the domain, 1 to 7 % on a rail, nothing across rails (Wang et al. 2023, arXiv 2307.12169)."""
    job = {"model": model, "parallelism": {"tp": 8, "pp": pp, "dp": gpus // 8 // pp}, "global_batch": batch}
    cluster = {"gpus": gpus, "gpu": "a100-sxm", "nic": "cx6-200"}
    instance = instance_from_document({"name": "dense", "cluster": cluster, "workload": [job]})
    inside, on_rail, across = shares(instance, derive_traffic(instance)).fractions()
    assert 0.93 <= inside <= 0.99
    assert 0.01 <= on_rail <= 0.07
    assert across == 0
