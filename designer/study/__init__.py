"""What-if studies: fields of an instance varied over axes, every point designed once, wherever there are machines.

`schema`, `study_file` say what is studied, `points`, `base` turn it into instances, `run` designs them on `executors`,
`store` keeps what is done, `table`, `pareto`, `robustness` and `plots` say what came out.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from designer.study.run import study
    from designer.study.table import StudyResult

__all__ = ["StudyResult", "study"]

_HOMES = {"StudyResult": "table", "study": "run"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


class _StudyModule(ModuleType):
    """`designer.study` is this folder and, in `from designer import study`, the function: it can be called."""

    def __call__(self, *arguments: object, **options: object) -> object:
        return import_module(f"{__name__}.run").study(*arguments, **options)


sys.modules[__name__].__class__ = _StudyModule
