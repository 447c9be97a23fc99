"""What is refused rather than rounded (cases 5, 16).

The expected numbers come from formulas in this file, not from the package.
"""

import pytest
from field_instances import instance_of, ports

from designer import design
from designer.errors import InfeasibleError, InstanceError

# Case 5: a leaf that cannot carry its hosts is refused, not rounded.


@pytest.mark.parametrize(("down", "up"), [(64, 2), (64, 63), (32, 16), (100, 28)])
def test_too_few_uplinks_are_infeasible_and_the_error_names_the_leaf_and_the_throughput(down: int, up: int) -> None:
    leaf = {"down": down, "up": up}
    with pytest.raises(InfeasibleError) as error:
        design(instance_of(2 * down, ports(128), leaf=leaf))
    named = " ".join(error.value.conflict)
    assert "search.leaf" in named
    assert "requirements.throughput" in named
    assert "symmetric_uplinks" not in named
    assert "search.switches" not in named
    assert {remedy.constraint.split(":")[0] for remedy in error.value.remedies} == {
        "search.leaf",
        "requirements.throughput.any",
    }


@pytest.mark.parametrize(("down", "up"), [(64, 2), (64, 48), (32, 16), (64, 64)])
def test_a_pinned_leaf_carries_exactly_the_share_of_its_uplinks(down: int, up: int) -> None:
    leaf, share = {"down": down, "up": up}, up / down
    result = design(instance_of(2 * down, ports(128), leaf=leaf, requirements={"throughput": {"any": share}}))
    assert (result.counts["leaf"], result.counts["leaf_spine_links"]) == (2, 2 * up)
    if share < 1:
        above = {"throughput": {"any": share + 1e-3}}
        with pytest.raises(InfeasibleError):
            design(instance_of(2 * down, ports(128), leaf=leaf, requirements=above))


# Case 16: GPUs that fill no whole server are an error of the instance, found while it is read.


@pytest.mark.parametrize(
    ("gpus", "hb_domain", "part_of", "step"),
    [
        (1001, 8, "server", 8),
        (1004, 8, "server", 8),
        (7, 8, "server", 8),
        (1001, 16, "server", 8),
        (1000, 16, "HB domain", 16),
        (1002, 4, "server", 4),
    ],
)
def test_gpus_in_part_of_a_server_or_domain_are_refused_with_the_nearest_whole_numbers(
    gpus: int, hb_domain: int, part_of: str, step: int
) -> None:
    with pytest.raises(InstanceError) as error:
        instance_of(gpus, ports(64), rails=hb_domain)
    (problem,) = error.value.problems
    assert (problem.field, problem.found) == ("cluster.gpus", str(gpus))
    assert part_of in problem.allowed
    nearest = {number for number in (gpus // step * step, gpus // step * step + step) if number}
    assert all(str(number) in problem.allowed for number in nearest)


@pytest.mark.parametrize("gpus", [8, 1000, 1008])
def test_gpus_in_whole_servers_are_accepted(gpus: int) -> None:
    assert instance_of(gpus, ports(64), rails=8).cluster.gpus == gpus
