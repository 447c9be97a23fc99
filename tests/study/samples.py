"""A base that is designed in a moment, and executors that do harm to their workers."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from designer.study.processes import ProcessExecutor
from designer.study.task import Outcome, Task

BASE: dict[str, Any] = {
    "name": "small",
    "cluster": {"gpus": 64, "gpu": "h100-sxm", "nic": "cx7-400"},
    "workload": [{"model": "gpt-22b", "parallelism": {"tp": 8, "dp": 8}, "global_batch": 64}],
    "search": {"families": ["clos"], "switches": ["qm9700"]},
}
FLOOR = "requirements.throughput.dp"
PRICE = "catalog.switches.qm9700.price.usd"
DOMAIN = "cluster.hb_domain"
PIPELINE = "workload[0].parallelism.pp"
# 12 points: half of them have no consistent degrees, and one price comes twice.
AXES: dict[Any, Any] = {PIPELINE: [1, 2], FLOOR: [0.5, 1.0], PRICE: [30_000, 20_000, 30_000]}
# Larger, so that there is time to do harm in the middle of 8 points.
LARGE = {**BASE, "cluster": {**BASE["cluster"], "gpus": 1024}}
LARGE["workload"] = [{**BASE["workload"][0], "parallelism": {"tp": 8, "pp": 2, "dp": 64}}]
MANY: dict[Any, Any] = {PRICE: {"from": 20_000, "to": 27_000, "step": 1000}}


class Counting(Executor):
    """Does the work at once and keeps the keys of the tasks; after `most` of them it is interrupted."""

    def __init__(self, most: int | None = None) -> None:
        self.keys: list[str] = []
        self.most = most

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.most is not None and len(self.keys) >= self.most:
            raise KeyboardInterrupt
        self.keys.append(args[0].key)
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def die_for(marks: str, deaths: int, price_cents: int, fn: Callable[[Task], Outcome], task: Task) -> Outcome:
    """Kills its own process for the first `deaths` tasks with this switch price; a file in `marks` counts them."""
    if task.instance.catalog.switches["qm9700"].price.cents == price_cents:
        so_far = len(list(Path(marks).iterdir()))
        if so_far < deaths:
            (Path(marks) / str(so_far)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return fn(task)


class Deadly(ProcessExecutor):
    """Workers that are killed by tasks of one price."""

    def __init__(self, marks: Path, deaths: int, price_usd: int) -> None:
        super().__init__(2)
        self.harm = (str(marks), deaths, price_usd * 100)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(die_for, *self.harm, fn, *args, **kwargs)
