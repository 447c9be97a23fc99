"""The programs that the package is compared with: each finds what is known, on a small case."""

from pathlib import Path

import pytest

from benchmarks import certificate_scaling, plain_flow
from benchmarks.evolution import Evolution
from benchmarks.textbook_clos import Program
from designer import design, load_instance
from designer.instance.instance import Instance
from designer.search import Options

SMALL = Path(__file__).parents[2] / "instances" / "small"


def small(name: str) -> Instance:
    return load_instance(SMALL / f"{name}.yaml")


def clos_cost(instance: Instance) -> float:
    return design(instance, Options(certify=False, families=("clos",))).cost_cents / 100


@pytest.mark.parametrize("name", ["any-08-one-switch", "any-16-two-tiers", "half-rate-32", "rails-16-shared"])
def test_the_textbook_program_proves_the_cost_of_the_design(name: str) -> None:
    instance = small(name)
    answer = Program(instance).solve(60)
    assert answer.proven
    assert answer.cost_usd == clos_cost(instance)
    assert answer.bound_usd == pytest.approx(answer.cost_usd, rel=1e-3)


def test_the_textbook_program_refuses_what_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="failures"):
        Program(small("survive-link-32"))


def test_an_evolutionary_search_finds_a_small_optimum_and_nothing_below() -> None:
    instance = small("any-16-two-tiers")
    found = Evolution(instance, seed=1).run(2.0)
    assert found.cost_usd is not None
    assert found.cost_usd >= clos_cost(instance)
    assert found.looked_at > found.certified > 0


def test_the_plain_flow_program_says_what_the_certificate_says() -> None:
    assert plain_flow.by_plain_program(3)[1] == pytest.approx(plain_flow.by_certificate(3)[1], abs=1e-6)


@pytest.mark.parametrize(("task", "answer"), [("intact", "1.000000 to 1.000000"), ("one link lost", "0.999023 to")])
def test_the_scaling_of_the_certificate_has_its_values(task: str, answer: str) -> None:
    """32 endpoints with 31 uplinks left: 31 / (32 x 992 / 1023) of an all-to-all of 1,024."""
    assert str(certificate_scaling.work(1, task)["answer"]).startswith(answer)
