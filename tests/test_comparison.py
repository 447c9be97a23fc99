"""The templates beside a design: trees too tall to draw, what excludes a template, and the words of the difference."""

from pathlib import Path

import pytest

from designer import design, instance_from_document, load_instance, templates
from designer.alternatives import alternatives, verdict
from designer.certify.certificate import FailureResult, Interval, PhaseResult
from designer.search import Options

INSTANCES = Path(__file__).parents[1] / "instances"


def test_a_tall_tree_has_2n_over_r_switches_a_tier_and_half_at_the_top() -> None:
    """32,768 endpoints on 32 ports need four tiers: 2n/R, 2n/R, 2n/R, n/R switches, n links between two tiers."""
    instance = load_instance(INSTANCES / "rail-only" / "hb256-32768-radix32.yaml")
    n, radix, tiers = 32_768, 32, 4
    tree = next(item for item in templates(instance) if item.name == "fat-tree")
    counts = tree.counts
    assert (counts["leaf"], counts["core"]) == (2 * n // radix, n // radix)
    assert counts["spine"] == (tiers - 2) * 2 * n // radix
    assert counts["switches"] == counts["leaf"] + counts["spine"] + counts["core"] == (2 * tiers - 1) * n // radix
    assert counts["leaf_spine_links"] == n
    assert counts["spine_core_links"] == (tiers - 2) * n
    assert counts["links"] == counts["endpoint_links"] + counts["leaf_spine_links"] + counts["spine_core_links"]
    assert sum(tree.parts.values()) == tree.cost_cents
    assert tree.unmet == ("excluded by search.max_tiers: 3, it has 4",)


def test_words_keep_sign_number_and_unit_together_and_group_thousands() -> None:
    instance = load_instance(INSTANCES / "rail-only" / "hb256-32768-radix32.yaml")
    row = next(row for row in design(instance, Options(certify=False)).comparison if row.template == "fat-tree")
    assert (
        "2,048 leaf, 1,024 spine in place of 2,048 leaf, 4,096 spine, 1,024 core: −36.4\N{NO-BREAK SPACE}%" in row.why
    )
    assert " %" not in row.why


def test_an_excluded_template_is_said_to_be_excluded_not_to_fall_short() -> None:
    document = {
        "name": "excluded",
        "cluster": {"gpus": 512, "gpu": "h100-sxm", "nic": "cx7-400"},
        "workload": [{"demand": "any", "across": "rail"}],
        "search": {"switches": ["qm9700"]},
    }
    rows = {row.template: row for row in design(instance_from_document(document), Options(certify=False)).comparison}
    assert rows["fat-tree"].meets is False
    assert rows["fat-tree"].why.startswith("excluded by search.leaf_sharing: whole-rails")
    assert "falls short" not in rows["fat-tree"].why


ZCUBE = {
    "name": "zcube",
    "cluster": {"gpus": 64, "gpu": "h100-sxm", "nic": "cx7-2x200"},
    "search": {"switches": ["qm9700"]},
}


@pytest.mark.parametrize(
    ("demand", "floor", "survive", "meets", "words"),
    [
        ("all-to-all", 1.0, [], True, ""),
        ("all-to-all", 1.0, [{"failure": "switch", "throughput": 0.4}], True, ""),
        ("any", 0.5, [], True, ""),
        ("any", 0.6, [], None, "not decided: any is carried at 50.79 to 100 % of line rate, its floor is 60 %"),
        ("any", 1.0, [], None, "not decided"),
    ],
)
def test_compare_judges_zcube_by_a_certificate(
    demand: str, floor: float, survive: list[dict[str, object]], meets: bool | None, words: str
) -> None:
    """8 x 8: two legs of an all-to-all at 64/63 carry half of it; no cut forbids all of an `any`."""
    requirements = {"throughput": {demand: floor}, "survive": survive}
    workload = [{"demand": demand, "across": "cluster"}]
    instance = instance_from_document({**ZCUBE, "workload": workload, "requirements": requirements})
    optimum, rows = alternatives(instance, Options())
    row = next(item.row for item in rows if item.row.template == "zcube")
    assert next(item for item in optimum.comparison if item.template == "zcube").meets is None
    assert row.meets is meets
    assert row.why.startswith(words)


def test_bounds_decide_or_leave_open() -> None:
    def phase(lower: float, upper: float) -> PhaseResult:
        return PhaseResult("job", "dp", Interval(lower, upper, None, "planted"), 0.9, lower >= 0.9)

    def lost(upper: float) -> FailureResult:
        return FailureResult("nic", 1, "dp", 0.4, upper, None, 0, 0.5, met=False)

    assert verdict((phase(0.9, 1.0),), ()) == (True, "")
    assert verdict((phase(0.5, 0.95),), ())[0] is None
    assert verdict((phase(0.5, 0.8),), ())[0] is False
    assert verdict((phase(0.5, 0.95), phase(0.5, 0.8)), ())[0] is False
    assert verdict((phase(0.9, 1.0),), (lost(0.6),))[0] is None
    assert verdict((phase(0.9, 1.0),), (lost(0.4),))[0] is False
