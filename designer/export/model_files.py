"""The link-placement program of a design as an LP or MPS file.

It asks which blocks of endpoints sit on which of the design's switches, and how many links join any two of these, at
least cost. The switches are those of one plane, demands and failures those that the design was made for, and what joins
switches is what its file prices. Columns and rows have the short names x0, x1, ... and r0, r1, ...
"""

import tempfile
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from designer.certify.ports import nic_ports
from designer.costing.pricing import MediaFinder, Pricing
from designer.export.plan import Plan
from designer.fabric.fabric import LEAF
from designer.files import write_bytes_atomically
from designer.formulation.link_placement import Scenario, placement_program
from designer.formulation.placement import PlacementProblem
from designer.formulation.placement_search import PlacementSearch, inapplicable
from designer.formulation.placement_solve import failures
from designer.formulation.pulp_models import write_model
from designer.instance.instance import Instance
from designer.instance.schema import CablingSection, SearchSection
from designer.source import Source, validate

MOST_FLOWS = 300_000


def write_lp(plan: Plan, path: Path) -> None:
    """Writes the program in LP format.

    Raises:
        ExportError: the design is too large for the program, or has what it does not know.
        OutputError: the file cannot be written.
    """
    _write(plan, path, ".lp")


def write_mps(plan: Plan, path: Path) -> None:
    """Writes the program in MPS format.

    Raises:
        ExportError: the design is too large for the program, or has what it does not know.
        OutputError: the file cannot be written.
    """
    _write(plan, path, ".mps")


def _write(plan: Plan, path: Path, ending: str) -> None:
    problem = placement_problem(plan)
    scenarios = [Scenario(1.0), *failures(problem)]
    flows = len(scenarios) * len(problem.demands) * len(problem.blocks) * 2 * len(problem.link_kinds)
    if flows > MOST_FLOWS:
        raise plan.refuse(f"a program of about {flows:,} flows", f"at most {MOST_FLOWS:,}: a smaller design")
    model = placement_program(problem, scenarios).model()
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / f"model{ending}"
        write_model(model, written)
        write_bytes_atomically(path, written.read_bytes())


def placement_problem(plan: Plan) -> PlacementProblem:
    """The link-placement problem on the switches of one plane of a design.

    Raises:
        ExportError: the design is too large for it, or has what it does not know.
    """
    file, nodes = plan.file, plan.fabric.nodes
    allowed = "a design that link placement knows"
    instance = _instance(plan)
    if reason := inapplicable(instance, file.traffic):
        raise plan.refuse(reason, allowed)
    mode = nic_ports(file.fabric, file.cluster).modes[0]
    if mode is None:
        raise plan.refuse("NICs in a mode that they do not have", allowed)
    bought = nodes.kind >= LEAF
    bought[[switch.node for switch in file.fabric.owned]] = False
    planes = len(np.unique(nodes.plane[nodes.kind >= LEAF]))
    times = np.bincount(nodes.model[bought], minlength=len(file.fabric.models)) // planes
    switches = {
        file.catalog.switches[key]: int(count) for key, count in zip(file.fabric.models, times, strict=True) if count
    }
    search = PlacementSearch(
        instance, file.traffic, Pricing(instance.objective, file.energy), MediaFinder(file.catalog)
    )
    problem = search.problem(mode, switches) if search.factor is not None else None
    if problem is None:
        raise plan.refuse("endpoints that fit no switch, or failures that NICs cannot carry", allowed)
    return problem


def _search() -> SearchSection:
    return SearchSection.model_validate({})


def _cabling() -> CablingSection:
    return CablingSection.model_validate({})


class _Parts(BaseModel):
    """The parts of an instance that the program asks for and a design file holds nowhere else."""

    model_config = ConfigDict(extra="ignore")

    search: SearchSection = Field(default_factory=_search)
    cabling: CablingSection = Field(default_factory=_cabling)


def _instance(plan: Plan) -> Instance:
    """The instance as far as the program asks: all but the jobs, whose traffic the design holds."""
    file = plan.file
    given = {name: file.instance[name] for name in ("search", "cabling") if file.instance.get(name) is not None}
    parts = validate(_Parts, Source(file.path, given))
    return Instance(
        file.record.name,
        file.cluster,
        (),
        file.requirements,
        parts.search.model_copy(update={"switches": None}),  # the design has chosen
        parts.cabling,
        file.energy,
        file.record.objective,
        file.catalog,
        file.instance,
    )
