"""What a node of a flow problem sends and receives, against the pairs written out one by one."""

from hypothesis import HealthCheck, given, settings

from designer.certify.problem import FlowProblem
from tests.certify.fabrics import flow_problems, hub, problem_of
from tests.reference.flow_lp import rates_of_problem

SETTINGS = settings(
    derandomize=True, max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@SETTINGS
@given(flow_problems())
def test_rows_and_columns_are_the_pairs(problem: FlowProblem) -> None:
    """Row and column of every node hold what the pairs of endpoints add up to, whatever the mix of groups and pairs."""
    rates = rates_of_problem(problem)
    sent: dict[tuple[int, int], float] = {}
    received: dict[tuple[int, int], float] = {}
    for node in range(problem.nodes):
        for other, rate in zip(*problem.row(node), strict=True):
            sent[node, int(other)] = float(rate)
        for other, rate in zip(*problem.column(node), strict=True):
            received[int(other), node] = float(rate)
    assert sent == rates
    assert received == rates
    assert {node for pair in rates for node in pair} <= set(problem.sources.tolist())


def test_a_group_that_meets_itself_at_a_node_sends_nothing_there() -> None:
    """Endpoints of one node need no link to each other; two groups at one node are kept apart."""
    problem = problem_of(3, [(0, 1, 1.0), (1, 2, 1.0)], hubs=[hub([(0, 2), (1, 3)], [(0, 1), (2, 1)], pair_rate=0.5)])
    target, rate = problem.row(0)
    assert dict(zip(target.tolist(), rate.tolist(), strict=True)) == {1: 3.0, 2: 0.5}


def test_an_arc_for_each_direction() -> None:
    """Arc i + links is link i backwards, with the same capacity and the same physical links."""
    problem = problem_of(3, [(0, 1, 1.0), (1, 2, 4.0)], pairs=[(0, 2, 1.0)], links_of=[1, 2])
    assert problem.tail.tolist() == [0, 1, 1, 2]
    assert problem.head.tolist() == [1, 2, 0, 1]
    assert problem.arc_capacity.tolist() == [1, 4, 1, 4]
    assert problem.arc_links.tolist() == [1, 2, 1, 2]
