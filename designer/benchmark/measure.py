"""Runs one instance in this process: design, certificate, times, memory."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from designer.benchmark.row import FAILED, INFEASIBLE, NO_DESIGN, OPTIMAL, REFUSED, Measured, Saving
from designer.errors import DesignerError, InfeasibleError, InputError, NoDesignError

if TYPE_CHECKING:
    from designer.instance.instance import Instance
    from designer.result import Design

MB = 1e6
STATUS = Path("/proc/self/status")


# Without a limit, link placements are searched for seconds only, and what is found depends on the machine.
LIMIT_S = 600.0


@dataclass(frozen=True)
class RunOptions:
    """How an instance is run: seconds for its search and its certificate, seed, solver of placements (None: default).

    A certificate that takes longer is given up; the row then has none.
    """

    time_limit_s: float = LIMIT_S
    certificate_limit_s: float = LIMIT_S
    seed: int = 0
    solver: str | None = None


class _Times:
    """Listens to a search: seconds to its first network, to each cheaper one, and to the start of the certificate."""

    def __init__(self, certificate_limit_s: float) -> None:
        self.certificate_limit_s = certificate_limit_s
        self.started_s = time.perf_counter()
        self.costs: list[tuple[float, int]] = []
        self.checking_s: float | None = None

    def now_s(self) -> float:
        return time.perf_counter() - self.started_s

    def progress(self, seconds: float, cost_cents: int | None, bound_cents: int | None) -> None:  # noqa: ARG002 - as Options has it
        if cost_cents is not None and (not self.costs or cost_cents < self.costs[-1][1]):
            self.costs.append((self.now_s(), cost_cents))

    def checking(self, part: str) -> None:  # noqa: ARG002 - as Options has it
        if self.checking_s is None:
            self.checking_s = self.now_s()

    def should_stop(self) -> bool:
        return self.checking_s is not None and self.now_s() - self.checking_s > self.certificate_limit_s


def measure(path: Path, options: RunOptions) -> Measured:
    """Designs and certifies the instance of a file; whatever goes wrong is an outcome, too.

    For a peak of memory that is the instance's own the process must have done nothing before.
    """
    from designer.instance.load import load_instance

    gpus: int | None = None
    try:
        instance = load_instance(path)
        gpus = instance.cluster.gpus
        return _measured(instance, options)
    except InputError as error:
        return Measured(REFUSED, str(error), gpus)
    except InfeasibleError as error:
        return Measured(INFEASIBLE, str(error), gpus, peak_mb=peak_mb())
    except NoDesignError as error:
        return Measured(NO_DESIGN, str(error), gpus, peak_mb=peak_mb())
    except DesignerError as error:
        return Measured(FAILED, str(error), gpus, peak_mb=peak_mb())
    except Exception as error:  # noqa: BLE001 - one instance that fails does not end the others
        return Measured(FAILED, f"internal error: {type(error).__name__}: {error}", gpus, peak_mb=peak_mb())


def _measured(instance: "Instance", options: RunOptions) -> Measured:
    from designer.search import Options, design

    times = _Times(options.certificate_limit_s)
    search = Options(
        options.time_limit_s,
        seed=options.seed,
        solver=options.solver,
        progress=times.progress,
        should_stop=times.should_stop,
        checking=times.checking,
    )
    found = design(instance, search)
    return _of(found, times, times.now_s())


def _of(found: "Design", times: _Times, end_s: float) -> Measured:
    from designer.units import usd

    design_s = end_s if times.checking_s is None else times.checking_s
    any_cents, certificate = found.any_topology_bound_cents, found.certificate
    # What a family has found shows at its end only where the search does not tell of it.
    best_s = next((seconds for seconds, cents in times.costs if cents <= found.cost_cents), design_s)
    return Measured(
        found.status,
        "",
        found.instance.cluster.gpus,
        found.family,
        usd(found.cost_cents),
        usd(found.bound_cents),
        found.gap,
        None if any_cents is None else usd(any_cents),
        None if any_cents is None or not found.cost_cents else 1 - any_cents / found.cost_cents,
        times.costs[0][0] if times.costs else design_s,
        best_s,
        design_s if found.status == OPTIMAL else None,
        design_s,
        None if certificate is None else end_s - design_s,
        peak_mb(),
        None if certificate is None else certificate.met,
        None if certificate is None else all(phase.interval.exact for phase in certificate.phases),
        None if certificate is None else len(certificate.failures),
        tuple(Saving(row.template, usd(row.cost_cents), row.meets, row.saving) for row in found.comparison),
    )


def peak_mb() -> float:
    """The largest resident set of this process so far, in MB."""
    # Linux counts into ru_maxrss what the process was before it became this program; VmHWM is this program's alone.
    if STATUS.exists():
        for line in STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / MB
    import resource  # not everywhere

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MB if sys.platform == "darwin" else peak * 1024 / MB
