"""One point's work: a task that any process or machine can do, and its outcome as plain data.

Tasks with equal keys have equal outcomes, seconds aside, so an outcome is computed once and kept under its key.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, cast

from pydantic import BaseModel

from designer.errors import DesignerError, InfeasibleError, NoDesignError
from designer.fabric.fabric import Fabric
from designer.instance.instance import Instance
from designer.study.schema import StudyOptions

OUTCOME_VERSION = 1  # rises when an outcome holds more, so that older ones are computed anew

Scalar = str | int | float | bool | None

# How a point can end. What is not in FINAL may come out otherwise another time, and is tried again.
OPTIMAL, FEASIBLE, INFEASIBLE, NO_DESIGN = "optimal", "feasible", "infeasible", "no_design"
REFUSED, FAILED, MISSING = "refused", "failed", "missing"
FINAL = (OPTIMAL, FEASIBLE, INFEASIBLE, NO_DESIGN)


@dataclass(frozen=True)
class Piece:
    """A line of a bill: `quantity` pieces of a catalog key for a tier or a class of links, `length_m` long."""

    item: str
    used_for: str
    quantity: int
    length_m: float


@dataclass(frozen=True)
class Outcome:
    """How a point ended: one of the words above, the `reason` where there is no design, and the columns of its row.

    `wall_s` are the seconds it took, which differ from run to run.
    """

    status: str
    reason: str = ""
    values: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    pieces: tuple[Piece, ...] = ()
    wall_s: float | None = field(default=None, compare=False)

    def to_document(self) -> dict[str, Any]:
        """The outcome as plain data."""
        return asdict(self)

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "Outcome":
        """The outcome that `to_document` wrote.

        Raises:
            KeyError, TypeError: the document is not one.
        """
        pieces = tuple(Piece(**piece) for piece in document["pieces"])
        values = cast("dict[str, Scalar]", dict(document["values"]))
        return Outcome(document["status"], document["reason"], values, pieces, document["wall_s"])


@dataclass(frozen=True)
class Task:
    """A point to design: all that a worker needs, no file of this machine among it."""

    key: str
    instance: Instance
    options: StudyOptions
    version: str


def task_of(instance: Instance, options: StudyOptions) -> Task:
    """The task of a point, with its key."""
    from designer.result import package_version

    version = package_version()
    return Task(task_key(instance, options, version), instance, options, version)


def task_key(instance: Instance, options: StudyOptions, version: str) -> str:
    """SHA-256 of all that an outcome depends on: the resolved instance, its catalog, options, version of the package.

    Names, and where the files of catalog and models lie, play no part.
    """
    content = {
        "instance": _plain(instance, leave_out=("name", "document")),
        "options": _plain(options),
        "version": version,
        "outcome": OUTCOME_VERSION,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any, leave_out: Sequence[str] = ()) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Fabric):
        return value.to_document()
    if is_dataclass(value):
        # A catalog's `names` are those of its files.
        named = [item.name for item in fields(value) if item.name not in (*leave_out, "names")]
        return {name: _plain(getattr(value, name)) for name in named}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    return value


def perform(task: Task, should_stop: Callable[[], bool] | None = None) -> Outcome:
    """Design the network of a task; whatever goes wrong is an outcome, too. Missing where it was told to stop."""
    from designer.result import package_version
    from designer.search import Options, design
    from designer.study.row import pieces_of, row_values

    here = package_version()
    if here != task.version:
        return Outcome(FAILED, f"the worker has version {here} of designer, the study {task.version}")
    options = task.options
    limit_s = math.inf if options.time_limit_s is None else options.time_limit_s
    started = time.monotonic()
    stop = should_stop or _never
    search = Options(
        limit_s,
        options.gap,
        threads=1,
        seed=options.seed,
        should_stop=stop,
        certify=options.certify,
        pairs=options.pairs,
    )
    status, reason, values, pieces = FAILED, "", dict[str, Scalar](), tuple[Piece, ...]()
    try:
        found = design(task.instance, search)
        status, values, pieces = found.status, row_values(found), pieces_of(found)
    except InfeasibleError as error:
        status, reason = INFEASIBLE, str(error)
    except NoDesignError as error:
        status, reason = NO_DESIGN, str(error)
    except DesignerError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - one point that fails does not end the study
        reason = f"internal error: {type(error).__name__}: {error}"
    if stop():
        return Outcome(MISSING, "the study ended before")
    return Outcome(status, reason, values, pieces, time.monotonic() - started)


def _never() -> bool:
    return False
