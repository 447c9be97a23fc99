"""What ATOP searched for days (SIGCOMM 2025): as few switches as ZCube, certified, and nothing cheaper in any family.

Dense jobs of pipeline depths 4, 8 and 16 in turn, and jobs with 256 experts, every phase at the full rate of the NICs,
with the throughput of all switches together that ATOP allows: 64 of 12.8 Tb/s, 128 of 25.6 Tb/s in halves of it.
"""

from pathlib import Path

import pytest

from designer import load_instance
from designer.candidates import CLOS, GRID, MESH
from designer.search import Options, design

INSTANCES = Path(__file__).parents[2] / "instances" / "atop"
MOST_SWITCHES = {1024: 64, 4096: 128}
CASES = [(1024, "dense"), (1024, "moe"), (4096, "dense")]


@pytest.mark.parametrize(("gpus", "job"), CASES)
def test_the_switches_are_as_few_as_allowed_and_no_family_is_cheaper(gpus: int, job: str) -> None:
    """All phases are certified on the drawn network; each family's own bound is above what the grid costs."""
    instance = load_instance(INSTANCES / f"{gpus}-{job}-2x200.yaml")
    result = design(instance, Options(families=(CLOS, GRID, MESH), certify=False))
    assert result.family == GRID
    assert result.counts["switches"] <= MOST_SWITCHES[gpus]
    assert (result.status, result.gap) == ("optimal", 0.0)
    assert {item.family for item in result.families} == {CLOS, GRID, MESH}
    for item in result.families:
        assert item.bound_cents is None or item.bound_cents >= result.cost_cents
    assert all(phase.floor == 1.0 for phase in result.traffic.network_phases)


def test_a_mesh_is_cheaper_than_a_clos_for_experts_on_single_ports() -> None:
    """All-to-all among 256 GPUs suits a mesh: with NICs of one port it has fewer switches than leaves and spines."""
    instance = load_instance(INSTANCES / "1024-moe-1x400.yaml")
    mesh = design(instance, Options(families=(CLOS, MESH), certify=False))
    clos = design(instance, Options(families=(CLOS,), certify=False))
    assert mesh.family == MESH
    assert mesh.counts["switches"] < clos.counts["switches"]
    assert mesh.cost_cents < clos.cost_cents
