"""Packages that a study needs only for some of what it does, and that may be missing."""

from importlib import import_module
from typing import Any

from designer.errors import Problem, StudyError


def extra(module: str, what: str, install: str) -> Any:
    """The module, for `what`.

    Raises:
        StudyError: it is not installed; says which `pip install` brings it.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        found = f"no {package} in this environment"
        raise StudyError([Problem(what, None, "", found, f"an environment with it: pip install {install}")]) from None
