"""Cost-optimal networks for training large language models, with a proof.

from designer import design, load_instance
result = design(load_instance("instances/demo/gpt3-175b-1024.yaml"))
print(result.status, result.cost_cents, result.gap)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from designer.certify.read_design import read_design
    from designer.export.formats import export_design
    from designer.instance.instance import Instance
    from designer.instance.load import instance_from_document, load_instance
    from designer.result import Design
    from designer.search import Options, design, templates
    from designer.study.run import study
    from designer.study.table import StudyResult
    from designer.workload.phases import derive_traffic

__all__ = [
    "Design",
    "Instance",
    "Options",
    "StudyResult",
    "derive_traffic",
    "design",
    "export_design",
    "instance_from_document",
    "load_instance",
    "read_design",
    "study",  # the folder of this name, which can be called
    "templates",
]

_HOMES = {
    "Design": "result",
    "Instance": "instance.instance",
    "Options": "search",
    "StudyResult": "study.table",
    "derive_traffic": "workload.phases",
    "design": "search",
    "export_design": "export.formats",
    "instance_from_document": "instance.load",
    "load_instance": "instance.load",
    "read_design": "certify.read_design",
    "templates": "search",
}


def __getattr__(name: str) -> object:
    # Solvers and pydantic take a second to import; `designer --help` does not wait for them.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
