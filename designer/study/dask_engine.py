"""Dask distributed behind the interface of concurrent.futures: a cluster of its own, a running one, or Slurm jobs."""

import contextlib
import logging
import shutil
import socket
from collections.abc import Generator
from typing import Any

from designer.errors import Problem, StudyError
from designer.study.executors import Engine
from designer.study.extras import extra

CONNECT_S = 5.0  # a scheduler that is there answers within milliseconds
MOST_GREETING_BYTES = 1 << 20  # its length comes first, in 8 bytes
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
        stack.enter_context(_quiet())
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
    try:
        if isinstance(cluster, str):
            _check_speaks_dask(cluster)
        client = distributed.Client(cluster, timeout=CONNECT_S, set_as_default=False)
    except Exception as error:  # noqa: BLE001 - who answers need not be a scheduler, and may send anything
        found = f"no scheduler that answers ({type(error).__name__}: {error})"
        raise _refused(executor, found, allowed) from None
    try:
        yield client
    finally:
        client.close(timeout=CONNECT_S)


def _check_speaks_dask(address: str) -> None:
    """A scheduler greets who connects; Dask's client itself waits for ever for a stranger who says nothing.

    Raises:
        OSError, ValueError: nobody is there, or somebody else.
    """
    scheme, _, place = address.rpartition("://")
    if scheme not in {"tcp", ""}:
        return
    host, port = extra("distributed.comm.addressing", "dask", INSTALL).parse_host_port(place)
    with socket.create_connection((host, port), timeout=CONNECT_S) as connection:
        greeting = connection.recv(8, socket.MSG_WAITALL)
    if len(greeting) < 8 or int.from_bytes(greeting, "little") > MOST_GREETING_BYTES:
        raise ValueError("who answers is no Dask scheduler")


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Dask's own log, with its tracebacks, is off: what goes wrong is told in an outcome or as the end of the study."""
    known = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    levels = {name: logging.getLogger(name).level for name in known}
    try:
        for name in levels:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


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
