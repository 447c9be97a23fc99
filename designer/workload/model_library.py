"""The models that users may name by key, with their published sizes."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from designer.errors import InstanceError, Problem
from designer.source import read_yaml
from designer.workload.transformer import Transformer, inconsistencies

_FILE = Path(__file__).with_name("models.yaml")


@cache
def load_model_library() -> Mapping[str, Transformer]:
    """Every model of the library by its key; read once.

    Raises:
        InstanceError: the library file is damaged.
    """
    source = read_yaml(_FILE, InstanceError)
    models: dict[str, Transformer] = {}
    problems: list[Problem] = []
    for key, sizes in cast("dict[str, dict[str, Any]]", source.data).items():
        defaults = {
            "ffn_hidden": 4 * sizes["hidden"],
            "kv_heads": sizes["heads"],
            "head_dim": sizes["hidden"] // sizes["heads"],
        }
        models[key] = Transformer(name=key, **(defaults | sizes))
        problems += [
            Problem(source.path, source.line((key, field)), f"{key}.{field}", found, allowed)
            for field, found, allowed in inconsistencies(models[key])
        ]
    if problems:
        raise InstanceError(problems)
    return MappingProxyType(models)
