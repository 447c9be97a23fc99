"""The structural checks: every template passes, the rules that are told are told, and nothing of the solver is used."""

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from damaged import document_of

import designer
from designer import Instance, instance_from_document, load_instance, templates
from designer.catalog import link_media, load_catalog
from designer.certify.cabling import medium_problem
from designer.certify.certificate import MAX_TOLD, Check, Structure
from designer.certify.rail_only import TemplateClaim, check_rail_only, rail_only_counts
from designer.certify.read_design import design_from_document
from designer.certify.structure import check_structure
from designer.certify.tree_rules import tree_rules
from designer.certify.wiring import components
from designer.comparison import TemplateDesign
from designer.fabric.build import build_clos
from designer.fabric.fabric import Fabric, MediumUse
from designer.fabric.grid import GridShape, build_grid
from designer.fabric.shape import ClosShape
from designer.instance.instance import Cluster

ROOT = Path(__file__).parents[2]
FIELD = ROOT / "tests" / "field"
INSTANCES = [
    "small/planes-16",
    "small/rails-16-shared",
    "small/any-24-uneven",
    "superpod/dgx-h100-su01",
    "moe/mixtral-8x7b-512",
]


def drawn(item: TemplateDesign) -> Fabric | None:
    if isinstance(item.shape, ClosShape):
        return build_clos(item.shape)
    if isinstance(item.shape, GridShape) and item.media is not None:
        return build_grid(item.shape, item.media)
    return None


def structure_of(instance: Instance, fabric: Fabric, *, symmetric: bool = True) -> Structure:
    return check_structure(fabric, instance.catalog, instance.cluster, fabric.counts(), symmetric_uplinks=symmetric)


@pytest.mark.parametrize("name", INSTANCES)
def test_every_template_as_drawn_passes_every_check(name: str) -> None:
    instance = load_instance(ROOT / "instances" / f"{name}.yaml")
    seen = 0
    for item in templates(instance):
        fabric = drawn(item)
        if fabric is not None:
            structure = structure_of(instance, fabric)
            assert structure.met, (item.name, [check for check in structure.checks if not check.met])
            seen += 1
    assert seen >= 3


# Imports.


def modules_imported(module: str) -> set[str]:
    """Modules of this package that a module imports when it runs, inside functions too, types apart."""
    tree = ast.parse(file_of(module).read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] == "designer" and file_of(name).exists()}


def file_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def reached() -> dict[str, str]:
    """Every module that certify reaches, with the one through which it does."""
    start = [f"designer.certify.{path.stem}" for path in (ROOT / "designer" / "certify").glob("*.py")]
    through = dict.fromkeys(start, "")
    todo = list(start)
    while todo:
        module = todo.pop()
        for name in modules_imported(module) - through.keys():
            through[name] = module
            todo.append(name)
    return through


def test_nothing_that_certify_reaches_is_of_the_formulation_or_the_search() -> None:
    forbidden = ("designer.formulation", "designer.search", "designer.comparison", "designer.result")
    bad = {name: by for name, by in reached().items() if name.startswith(forbidden)}
    assert not bad
    assert "designer.fabric.fabric" in reached()
    assert "designer.formulation.clos" in modules_imported("designer.formulation.clos_search")


# Media.


def test_every_offered_medium_is_accepted_and_one_metre_more_than_its_reach_is_not() -> None:
    catalog = load_catalog("builtin")
    sockets = [("osfp", 2), ("osfp", 1), ("osfp-rhs", 1), ("osfp-rhs", 2), ("qsfp112", 1), ("qsfp-dd", 1)]
    seen = 0
    for lower in sockets:
        for upper in sockets:
            for gbps in (200, 400, 800):
                for medium in link_media(catalog, *lower, *upper, gbps, 2.0):
                    keys = (medium.per_lower_cage, medium.per_upper_cage, medium.per_link)
                    assert medium_problem(catalog, MediumUse(*keys, 2.0), lower, upper, gbps) is None
                    far = medium_problem(catalog, MediumUse(*keys, medium.reach_m + 1), lower, upper, gbps)
                    assert far is not None
                    assert "too short" in far
                    seen += 1
    assert seen > 20


def test_a_medium_that_another_beats_is_still_right() -> None:
    """A module pair dearer than a copper cable, which `link_media` does not offer, does carry the link."""
    catalog = load_catalog("builtin")
    use = MediumUse("mms4x00-nm-flt", "mms4x00-nm", "mfp7e30", 2.0)
    assert medium_problem(catalog, use, ("osfp-rhs", 1), ("osfp", 2), 400) is None
    assert medium_problem(catalog, use, ("osfp", 1), ("osfp", 2), 400) is not None


# Properties that are told.


def field_instance(gpus: int, switch: str, *, symmetric: bool = True) -> Instance:
    return instance_from_document(
        {
            "name": "field",
            "cluster": {"gpus": gpus, "gpu": "h100-sxm", "nic": "nic-400", "hb_domain": 1, "rails": 1},
            "workload": [{"demand": "any", "group": "all", "across": "cluster"}],
            "requirements": {"symmetric_uplinks": symmetric},
            "search": {"switches": [switch], "max_tiers": 2},
            "catalog": ["builtin", "parts.yaml"],
        },
        FIELD,
    )


def test_uneven_bundles_are_told_with_the_worst_pair_and_against_the_fat_tree_rules() -> None:
    """FIELD cases 7 and 18: 1,056 hosts on 64-port switches, 33 leaves under 17 spines: the worst pair is 93.75 %."""
    instance = field_instance(1056, "ports-64", symmetric=False)
    fabric = designer.design(instance).fabric
    assert fabric.counts()["spine"] == 17
    structure = structure_of(instance, fabric, symmetric=False)
    assert structure.met
    pair, rules = structure.reported
    assert not pair.met
    assert "93.75 %" in pair.found[0]
    assert not rules.met
    assert any("ports in a up-going group are 1 to 2" in line for line in rules.found)
    strict = structure_of(instance, fabric, symmetric=True)
    assert [check.name for check in strict.checks if not check.met] == ["bundles"]


def test_a_pure_fat_tree_meets_the_fat_tree_rules() -> None:
    for name in ("pods", "rails"):
        check = tree_rules(design_from_document(document_of(name)).fabric)
        assert check.met, check.found


def test_a_single_tier_has_too_few_ranks_for_ftree() -> None:
    instance = load_instance(ROOT / "instances" / "small" / "any-08-one-switch.yaml")
    assert tree_rules(designer.design(instance).fabric).found == ("rank 1, ftree takes 2 to 8",)


# Parts.


def test_components_are_those_of_a_plain_search() -> None:
    random = np.random.default_rng(5)
    for _ in range(50):
        nodes, links = int(random.integers(1, 40)), int(random.integers(0, 40))
        a, b = random.integers(0, nodes, links), random.integers(0, nodes, links)
        label = list(range(nodes))
        for _ in range(nodes):
            for one, other in zip(a.tolist(), b.tolist(), strict=True):
                label[one] = label[other] = min(label[one], label[other])
        assert components(nodes, a, b).tolist() == label


def test_a_check_keeps_the_first_exceptions_and_counts_the_rest() -> None:
    check = Check.of("x", [str(number) for number in range(MAX_TOLD + 5)])
    assert not check.met
    assert check.found[-1] == "and 5 more"
    assert Check.of("x", []).met


def test_rail_only_by_closed_form_is_what_the_published_case_has() -> None:
    """FIELD case 15: 4,096 GPUs on 8 rails, 64 ports: 8 x (16 + 8) = 192 switches."""
    catalog = load_catalog("builtin")
    ends = Cluster(4096, catalog.gpus["h100-sxm"], catalog.nics["cx7-400"], 8, 8, 0)
    counts = next(rail_only_counts(ends, catalog.switches["qm9700"]))
    assert (counts["switches"], counts["leaf"], counts["spine"]) == (192, 128, 64)
    assert counts["links"] == 2 * 4096


def test_a_rail_only_network_that_is_cheaper_and_meets_is_against_the_design() -> None:
    catalog = load_catalog("builtin")
    ends = Cluster(4096, catalog.gpus["h100-sxm"], catalog.nics["cx7-400"], 8, 8, 0)
    counts = next(rail_only_counts(ends, catalog.switches["qm9700"]))
    right = TemplateClaim("qm9700", 100, counts, True, "why")
    assert check_rail_only(ends, catalog, right, 90, counts).met
    dear = check_rail_only(ends, catalog, right, 101, counts)
    assert not dear.met
    assert "the design costs more" in dear.words
    unseen = check_rail_only(ends, catalog, right, 101, counts, searched=False)
    assert unseen.met
    assert "not searched" in unseen.words
    short = check_rail_only(ends, catalog, TemplateClaim("qm9700", 100, counts, False, ""), 101, counts)
    assert short.met
    assert "falls short" in short.words
    wrong = check_rail_only(ends, catalog, TemplateClaim("qm9700", 100, counts | {"leaf": 1}, True, ""), 90, counts)
    assert not wrong.met


def test_the_largest_fabric_is_checked() -> None:
    instance = load_instance(ROOT / "instances" / "scale" / "joined-131072.yaml")
    item = next(item for item in templates(instance) if item.name == "fat-tree")
    fabric = drawn(item)
    assert fabric is not None
    assert fabric.n_links == 393_216
    assert structure_of(instance, fabric).met
