"""A search that is told to stop: the running solver hears of it, and the bound it leaves is a bound all the same."""

import threading
from pathlib import Path

import pytest

from designer import Instance, design, instance_from_document, load_instance
from designer.errors import InfeasibleError, NoDesignError
from designer.formulation.clos import watched
from designer.formulation.infeasible import explain_infeasible
from designer.search import Options
from designer.workload.phases import derive_traffic

INSTANCES = Path(__file__).parents[2] / "instances"


class Solver:
    """Stands in for a solver that runs until it is stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def stop_search(self) -> None:
        self.stopped.set()


def test_a_running_solver_is_stopped_and_its_watcher_ends() -> None:
    solver, asked = Solver(), threading.Event()
    before = threading.active_count()
    with watched(solver, asked.is_set):  # pyright: ignore[reportArgumentType]
        assert not solver.stopped.wait(0.2)
        asked.set()
        assert solver.stopped.wait(60)
    assert threading.active_count() == before


def test_without_a_question_nobody_watches() -> None:
    before = threading.active_count()
    with watched(Solver(), None):  # pyright: ignore[reportArgumentType]
        assert threading.active_count() == before


@pytest.mark.parametrize("name", ["demo/gpt3-175b-1024", "scale/joined-004096"])
def test_stopped_before_three_tiers_the_bound_holds_and_is_not_zero(name: str) -> None:
    """Leaves and host links alone cost something in every network that was not looked at."""
    instance = load_instance(INSTANCES / f"{name}.yaml")
    optimum = design(instance, Options(certify=False))
    stopped = design(instance, Options(certify=False, should_stop=lambda: True))
    assert stopped.provenance.termination == "interrupted"
    assert 0 < stopped.bound_cents <= optimum.bound_cents
    assert optimum.cost_cents <= stopped.cost_cents
    assert stopped.gap < 0.7


def clashing() -> Instance:
    return instance_from_document(
        {
            "name": "clash",
            "cluster": {"gpus": 512, "gpu": "h100-sxm", "nic": "cx7-400"},
            "workload": [{"demand": "any", "across": "cluster"}],
            "search": {"leaf": {"down": 32, "up": 2}, "protocols": ["infiniband"]},
        }
    )


def test_what_clashes_is_named_without_bystanders_and_the_floor_that_works_to_two_digits() -> None:
    """32 endpoints on 2 uplinks get 2/32 = 0.0625 of line rate. That only InfiniBand is allowed plays no part."""
    with pytest.raises(InfeasibleError) as error:
        design(clashing())
    conflict = error.value.conflict
    assert conflict[:2] == ("requirements.throughput.any: 1", "search.leaf: 32 ports down, 2 up")
    assert not any("protocols" in line or "sharing" in line for line in conflict)
    assert {remedy.constraint.split(":")[0]: remedy.change for remedy in error.value.remedies} == {
        "requirements.throughput.any": "at most 0.062",
        "search.leaf": "leave the ports of a leaf to the search",
    }


def test_an_explanation_can_be_stopped() -> None:
    instance = clashing()
    error = explain_infeasible(instance, derive_traffic(instance), lambda: True)
    assert "interrupted" in error.conflict[0]
    assert error.remedies == ()


def test_stopped_without_a_design_says_so() -> None:
    """No template has leaves of 24 ports down, so none is in hand when the search is stopped."""
    instance = instance_from_document(
        {
            "name": "pinned",
            "cluster": {"gpus": 512, "gpu": "h100-sxm", "nic": "cx7-400"},
            "workload": [
                {"demand": "any", "group": 16, "across": "rail"},
                {"demand": "all-to-all", "across": "cluster"},
            ],
            "search": {"leaf": {"down": 24}, "switches": ["qm9700"]},
        }
    )
    with pytest.raises(NoDesignError, match="before the search was interrupted"):
        design(instance, Options(should_stop=lambda: True))
