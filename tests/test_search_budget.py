"""Designs within a budget of step time: what is bought, what the certificate and the checks of the file say of it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from designer import design, instance_from_document
from designer.certify.read_design import design_from_document
from designer.certify.verify import verify_file
from designer.digest import with_digest
from designer.errors import InstanceError
from designer.formulation.step_budget import StepBudget
from designer.result import Design
from designer.search import Options
from designer.workload.step_time import StepTimeError
from tests.formulation.test_step_budget import SPLIT, SWITCHES, TWO_PLANES, parts, problem, propose
from tests.strategies import catalog, instance_of

ATOP = Path(__file__).parents[1] / "instances" / "atop"
CLOS = Options(families=("clos",))
HALVING = {"collectives": {"dp": "halving-doubling"}}


def longer(result: Design) -> float:
    """How much longer a step takes at what the certificate proves of every phase."""
    assert result.certificate is not None
    carried = {phase.phase: phase.interval.lower for phase in result.certificate.phases}
    return StepBudget(result.instance, result.traffic, 0.0).overhead(carried)


@pytest.mark.parametrize(
    ("degrees", "switches", "share"),
    [
        ({"dp": 32}, SPLIT, 0.8),
        ({"dp": 32}, SPLIT, 1.2),
        ({"dp": 16, "tp": 2}, SPLIT, 0.5),
        ({"dp": 16}, SWITCHES, 0.3),
        ({"dp": 8, "pp": 4}, SPLIT, 0.5),
    ],
    ids=["dp 32, 0.8", "dp 32, 1.2", "dp 16 tp 2", "dp 16", "dp 8 pp 4"],
)
def test_a_design_is_the_cheapest_within_its_budget(degrees, switches, share):
    """Its floors, of the most demanding step, do not let in a cheaper network whose other steps are slower."""
    instance = problem(degrees, share, parts(switches), requirements=HALVING)
    shape, cents = propose(instance)
    assert shape is not None
    result = design(instance, CLOS)
    assert result.cost_cents == cents
    assert result.bound_cents == cents
    assert longer(result) <= share + 1e-6


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_another_family_is_within_the_budget_too(share):
    """Grids are taken only where the certificate's mean over the steps is within the budget."""
    instance = problem({"dp": 4, "pp": 4}, share, parts(SPLIT, TWO_PLANES), requirements=HALVING)
    assert longer(design(instance, Options(families=("clos", "grid")))) <= share + 1e-6


def test_three_tiers_are_within_the_budget_by_certificate():
    result = design(problem({"dp": 4, "pp": 4}, 1.0, parts({"s4": SWITCHES["s4"]})), CLOS)
    assert result.counts["core"] > 0
    assert 0 < longer(result) <= 1.0


@cache
def _budgeted() -> str:
    return json.dumps(design(problem({"dp": 4, "pp": 4}, 0.5), CLOS).to_document())


def _findings(document: dict[str, Any]) -> list[str]:
    result = verify_file(design_from_document(with_digest(document)))
    return [f"{finding.kind}: {finding.message}" for finding in result.findings]


def test_a_file_within_its_budget_holds():
    assert _findings(json.loads(_budgeted())) == []


def test_a_budget_that_the_network_breaks_is_found():
    """The budget is edited below what the network does, with a right digest, in all the places that must agree."""
    document = json.loads(_budgeted())
    for place in (document["requirements"], document["instance"]["requirements"]):
        place["max_step_overhead"] = 0.25
    (finding,) = _findings(document)
    assert finding.startswith("step time: a step takes ")
    assert finding.endswith("% longer than at line rate, at most 25 % is allowed")


def test_a_floor_below_the_chosen_one_is_found_by_the_traffic():
    """A floor edited alone differs from the instance inside the file."""
    document = json.loads(_budgeted())
    document["requirements"]["throughput"]["pp"] = 0.01
    assert any(finding.startswith("instance: requirements") for finding in _findings(document))


DEMAND = {"demand": "ring"}
JOB = {"model": "gpt-22b", "parallelism": {"dp": 4}, "global_batch": 16}


@pytest.mark.parametrize(
    "workload", [[DEMAND], [JOB, JOB | {"name": "again"}], [JOB, DEMAND]], ids=["demand", "two jobs", "job and demand"]
)
def test_a_budget_asks_for_one_job_with_a_model(workload):
    with pytest.raises(InstanceError, match=r"requirements\.max_step_overhead: found 0\.1; allowed: a workload of one"):
        instance_of(parts(), {"gpus": 4}, workload, requirements={"max_step_overhead": 0.1})


def test_a_gpu_without_a_memory_rate_has_no_step_time():
    """The error names the catalog's field; on the command line it is bad input."""
    with pytest.raises(StepTimeError, match=r"gpus\.gpu\.memory_bytes_per_s: found null") as error:
        design(problem({"dp": 4}, 0.1, catalog(SWITCHES)))
    assert error.value.exit_code == 3


def atop(nic: str, **requirements: Any) -> Design:
    """The dense job of 1,024 GPUs on the parts of ATOP's comparison."""
    degrees = {"tp": 8, "pp": 8, "dp": 16, "interleave": 3}
    document = {
        "name": "1024",
        "cluster": {"gpus": 1024, "gpu": "h100-sxm", "nic": nic},
        "workload": [
            {"model": "gpt3-175b", "parallelism": degrees, "global_batch": 1536, "mixes": [["dp", "pp"]]},
        ],
        "requirements": HALVING | requirements,
        "search": {"switches": ["generic-12.8t"]},
        "catalog": ["builtin", "catalog.yaml"],
    }
    return design(instance_from_document(document, ATOP))


def _percent(result: Design) -> dict[str, int]:
    assert result.certificate is not None
    return {phase.phase: round(100 * phase.interval.lower) for phase in result.certificate.phases}


def test_one_percent_of_a_step_saves_a_third_of_the_switches_with_ports_of_400g():
    """With NICs of one port pp gets 56 % of the line rate, dp 99 %, both at once all of it: 64 switches for 96.

    Against rail-only, the cheapest template that meets full rates, 31 % less. ZCube, which needs two ports, costs less
    still: its servers stand beside a row switch, so that half of their links are copper.
    """
    full, slower = atop("nic-1x400"), atop("nic-1x400", max_step_overhead=0.01)
    carried = _percent(slower)
    assert carried["dp"] >= 99
    assert (carried["pp"], carried["dp+pp"]) == (56, 100)
    assert (full.counts["switches"], slower.counts["switches"]) == (96, 64)
    rail_only = next(row for row in slower.comparison if row.template == "rail-only")
    assert slower.cost_cents <= 0.69 * rail_only.cost_cents
    assert slower.status == "optimal"
    assert 0 < longer(slower) <= 0.01


def test_one_percent_of_a_step_saves_a_quarter_of_zcubes_switches_with_two_ports_of_200g():
    """With two ports pp gets 56 % of the line rate, dp and both at once all of it: 48 switches for ZCube's 64.

    Of the cost a tenth is saved, not a quarter: ZCube's servers stand beside their row switches, so that half of their
    links are copper, while all of these are optical.
    """
    slower = atop("nic-2x200", max_step_overhead=0.01)
    zcube = next(row for row in slower.comparison if row.template == "zcube")
    carried = _percent(slower)
    assert carried["dp"] >= 98
    assert (carried["pp"], carried["dp+pp"]) == (56, 100)
    assert slower.counts["switches"] <= 0.75 * zcube.counts["switches"]
    assert slower.cost_cents <= 0.9 * zcube.cost_cents
    assert slower.status == "optimal"
    assert 0 < longer(slower) <= 0.01
