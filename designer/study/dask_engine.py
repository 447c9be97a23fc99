"""Dask distributed behind the interface of concurrent.futures: a cluster of its own, a running one, or Slurm jobs."""

import contextlib
import logging
import shutil
from collections.abc import Generator
from typing import Any

from designer.errors import Problem, StudyError
from designer.study.executors import Engine
from designer.study.extras import extra

CONNECT_S = 5.0  # a scheduler that is there answers within milliseconds
MEMORY = "4GB"  # of a Slurm job, where dask's configuration names none
INSTALL = "'designer[dask]'"


@contextlib.contextmanager
def dask_engine(executor: str, workers: int) -> Generator[Engine]:
    """The engine of `dask`, `dask:ADDRESS` or `dask-slurm`; clusters that it starts end with the context.

    Raises:
        StudyError: Dask is not installed, nobody answers at the address, or there is no Slurm here.
    """
    distributed = extra("distributed", executor, INSTALL)
    with contextlib.ExitStack() as stack:
        if executor == "dask":
            cluster = stack.enter_context(_local_cluster(distributed, workers))
        elif executor == "dask-slurm":
            cluster = stack.enter_context(_slurm_cluster(workers))
        elif executor.startswith("dask:"):
            cluster = executor.removeprefix("dask:")
        else:
            raise _refused(executor, repr(executor), "dask, dask:ADDRESS or dask-slurm")
        client = stack.enter_context(_client(distributed, cluster, executor))
        pool = client.get_executor(pure=False)
        # Without an end of its own a client that lost its scheduler waits for ever.
        stack.callback(pool.shutdown, wait=False)
        yield Engine(pool, 1000, lambda: pool.shutdown(wait=False))


@contextlib.contextmanager
def _client(distributed: Any, cluster: Any, executor: str) -> Generator[Any]:
    allowed = f"the address of a Dask scheduler that answers within {CONNECT_S:g} s, such as dask:tcp://10.0.0.1:8786"
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what goes wrong is told in the outcome of a point
    try:
        try:
            client = distributed.Client(cluster, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise _refused(executor, f"nobody who answers ({type(error).__name__}: {error})", allowed) from None
        try:
            yield client
        finally:
            client.close(timeout=CONNECT_S)
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _local_cluster(distributed: Any, workers: int) -> Generator[Any]:
    settings = {
        # A point whose worker died twice has failed; no second point waits at a worker, where it would be blamed, too.
        "distributed.scheduler.allowed-failures": 1,
        "distributed.scheduler.worker-saturation": 1.0,
    }
    with extra("dask.config", "dask", INSTALL).set(settings):
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        )
    try:
        yield cluster
    finally:
        cluster.close()


@contextlib.contextmanager
def _slurm_cluster(jobs: int) -> Generator[Any]:
    jobqueue = extra("dask_jobqueue", "dask-slurm", INSTALL)
    if shutil.which("sbatch") is None:
        raise _refused("dask-slurm", "no sbatch on the path", "a machine from which Slurm jobs can be submitted")
    memory = extra("dask.config", "dask-slurm", INSTALL).get("jobqueue.slurm.memory", None) or MEMORY
    cluster = jobqueue.SLURMCluster(cores=1, processes=1, memory=memory)
    try:
        cluster.scale(jobs=jobs)
        yield cluster
    finally:
        cluster.close()


def _refused(executor: str, found: str, allowed: str) -> StudyError:
    return StudyError([Problem("executor", None, executor, found, allowed)])
