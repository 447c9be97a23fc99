"""The whole throughput certificate of a fabric: every phase intact, every failure by classes, or one by one."""

from collections.abc import Callable

from designer.certify.certificate import FailureResult, PhaseResult
from designer.certify.failures import FailureStudy, certify_failures, exhaustive_singles
from designer.certify.throughput import Judge, certify_phases
from designer.fabric.fabric import Fabric
from designer.instance.schema import RequirementsSection
from designer.workload.traffic import Traffic


def certify_throughput(
    fabric: Fabric,
    traffic: Traffic,
    requirements: RequirementsSection,
    scale_up_gbps: float,
    progress: Callable[[str], None] | None = None,
    *,
    pairs: bool = False,
    exhaustive: bool = False,
) -> tuple[tuple[PhaseResult, ...], tuple[FailureResult, ...]]:
    """Throughput of every phase, and what failures leave of it.

    `scale_up_gbps` is the rate of one GPU into its HB domain, in one direction. `pairs` adds every pair of links and
    of switches, `exhaustive` removes every element one by one in place of one of each class (small fabrics only).

    Raises:
        ValueError: the fabric attaches no GPU of some phase.
    """
    judge = Judge()
    if progress:
        progress("phases")
    phases = certify_phases(fabric, traffic, requirements, judge, scale_up_gbps)
    study = FailureStudy(fabric, traffic, requirements, scale_up_gbps, judge, progress)
    if exhaustive:
        return phases, exhaustive_singles(study)
    return phases, certify_failures(study, pairs=pairs)
