"""Designs beside a network that is there: cost, moves, limits, their files, and what is refused."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from designer import Design, design, instance_from_document
from designer.candidates import FamilyError
from designer.certify.read_design import design_from_document, read_design
from designer.certify.verify import verify_file
from designer.cli.design_report import design_report
from designer.digest import with_digest
from designer.errors import InfeasibleError, InstanceError, NoDesignError
from designer.report.page import report_page
from designer.search import Options

SMALL = Path(__file__).parents[2] / "instances" / "small"
Document = dict[str, Any]

RAILS: Document = {
    "name": "rails",
    "cluster": {"gpus": 32, "gpu": "pair", "nic": "mini-100", "hb_domain": 2, "rails": 2},
    "workload": [{"demand": "any", "group": 4}],
    "search": {"families": ["clos"], "switches": ["mini-8"]},
    "requirements": {"throughput": {"any": 0.5}},
}
PAIRS: Document = {
    "name": "pairs",
    "cluster": {"gpus": 16, "gpu": "pair", "nic": "mini-2x100", "rails": 1},
    "workload": [{"demand": "all-to-all", "across": "cluster"}],
    "search": {"families": ["clos", "grid", "mesh"]},
}


def changed(document: Document, **changes: Any) -> Document:
    """The document with sections merged."""
    result = copy.deepcopy(document)
    for key, value in changes.items():
        result[key] = {**result[key], **value} if isinstance(result.get(key), dict) else value
    return result


def solve(document: Document, **options: Any) -> Design:
    """The design of an instance on the parts of `instances/small`."""
    instance = instance_from_document({**document, "catalog": str(SMALL / "catalog.yaml")})
    return design(instance, Options(**options))


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the network that is there."""
    path = tmp_path_factory.mktemp("old") / "old.json"
    solve(RAILS).save(path)
    return path


def with_existing(path: Path, document: Document = RAILS, **fields: Any) -> Document:
    """The document beside the network of a file."""
    named: Any = {"file": str(path), **fields} if fields else str(path)
    return changed(document, search={"existing": named})


# Another job, more GPUs, a higher floor, a failure to survive, several families.
NEW: dict[str, Document] = {
    "full rate": changed(RAILS, requirements={"throughput": {"any": 1.0}}),
    "all to all": changed(RAILS, workload=[{"demand": "all-to-all"}], requirements={"throughput": {}}),
    "grown": changed(RAILS, cluster={"gpus": 48}),
    "twice": changed(RAILS, cluster={"gpus": 64}, workload=[{"demand": "any", "group": 8}]),
    "survives": changed(RAILS, requirements={"survive": [{"failure": "switch", "throughput": 0.5}]}),
    "meshes": changed(RAILS, cluster={"gpus": 48}, search={"families": ["clos", "mesh"]}),
    "tco": changed(RAILS, cluster={"gpus": 48}, objective="tco"),
}


@pytest.mark.parametrize("name", NEW)
def test_what_is_there_never_makes_a_network_dearer_nor_plugs_more_links(name: str, there: Path) -> None:
    """Beside a network that is there: no more is bought, no more plugged than anew; the file holds all of it."""
    fresh, result = solve(NEW[name]), solve(with_existing(there, NEW[name]))
    rewired = result.rewired
    assert rewired is not None
    assert result.cost_cents <= fresh.cost_cents
    assert result.bound_cents <= result.cost_cents
    assert result.certificate is not None
    assert result.certificate.met
    if rewired.moves.plugged:
        assert rewired.fresh is not None
        assert rewired.fresh.cost_cents == fresh.cost_cents
        assert rewired.moves.plugged <= rewired.fresh.links == fresh.fabric.n_links
    assert rewired.moves.kept + rewired.moves.plugged == result.fabric.n_links
    assert rewired.moves.kept <= rewired.kept_at_most
    assert (rewired.plugged_at_least or 0) <= rewired.moves.plugged
    file = design_from_document(json.loads(json.dumps(result.to_document())))
    assert verify_file(file).findings == ()
    assert f"{rewired.moves.kept:,}" in report_page(file)
    assert list(design_report(result))


def test_a_network_that_meets_the_demand_stays_as_it_is(there: Path) -> None:
    """Nothing is bought, nothing moves, also where links have a price and no switch may be bought."""
    for fields in ({}, {"new_switches": False, "usd_per_link_moved": 10}, {"most_links_moved": 0}):
        result = solve(with_existing(there, **fields))
        assert (result.cost_cents, result.status) == (0, "optimal")
        assert result.rewired is not None
        assert (result.rewired.moves.plugged, result.rewired.moves.pulled) == (0, 0)
        assert verify_file(design_from_document(result.to_document())).ok


def test_energy_is_paid_for_what_is_there(there: Path) -> None:
    """Under tco the network that is there costs its energy, and is not said to be proven where nothing proves it."""
    result = solve(with_existing(there, changed(RAILS, objective="tco")))
    assert result.bill.capex_cents == 0
    assert result.cost_cents == result.bill.energy_cents > 0
    assert result.provenance.termination != "optimal" or result.status == "optimal"
    assert verify_file(design_from_document(result.to_document())).ok


def test_fewer_links_than_the_bound_are_never_plugged(there: Path) -> None:
    """The least that is said to be plugged is a limit that cannot be kept below, and one that often can be met."""
    met = 0
    for name in ("full rate", "grown", "all to all"):
        rewired = solve(with_existing(there, NEW[name])).rewired
        assert rewired is not None
        least = rewired.plugged_at_least
        if not least:
            continue
        try:
            held = solve(with_existing(there, NEW[name], most_links_moved=least))
        except NoDesignError:
            continue
        assert held.rewired is not None
        assert held.rewired.moves.plugged == least or held.cost_cents > 0
        met += 1
    assert met


def test_a_rewired_network_can_be_there_in_turn(there: Path, tmp_path: Path) -> None:
    """Its ports are in no order any more; it still stays as it is for its own job."""
    path = tmp_path / "again.json"
    result = solve(with_existing(there, NEW["full rate"]))
    result.save(path)
    again = solve(with_existing(path, NEW["full rate"]))
    assert again.cost_cents == 0
    assert again.rewired is not None
    assert again.rewired.moves.plugged == 0


def test_grids_and_meshes_use_what_is_owned(tmp_path: Path) -> None:
    """Two ports to a NIC: whatever the old network is, its switches are not bought again."""
    path = tmp_path / "old.json"
    old = solve(PAIRS)
    old.save(path)
    grown = changed(PAIRS, cluster={"gpus": 24})
    fresh, result = solve(grown), solve(with_existing(path, grown))
    assert old.family in ("grid", "mesh")
    assert result.cost_cents < fresh.cost_cents
    assert {item.family for item in result.families} >= {"clos", "grid", "mesh"}
    assert verify_file(design_from_document(result.to_document())).ok


def test_links_have_a_price_and_a_limit(there: Path) -> None:
    """The price is a line of the bill; a limit that nothing keeps to says what was found, or that nothing can."""
    grown = NEW["grown"]
    free = solve(with_existing(there, grown))
    priced = solve(with_existing(there, grown, usd_per_link_moved=7))
    assert free.rewired is not None
    assert priced.rewired is not None
    labour = [line for line in priced.bill.lines if line.section == "labour"]
    assert [(line.quantity, line.total_cents) for line in labour] == [
        (priced.rewired.moves.plugged, 700 * priced.rewired.moves.plugged)
    ]
    assert priced.cost_cents <= free.cost_cents + 700 * free.rewired.moves.plugged
    assert verify_file(design_from_document(priced.to_document())).ok
    few = priced.rewired.moves.plugged
    held = solve(with_existing(there, grown, most_links_moved=few))
    assert held.rewired is not None
    assert held.rewired.moves.plugged <= few
    with pytest.raises(NoDesignError, match="moves at most 16 links; the least that was found is") as short:
        solve(with_existing(there, grown, most_links_moved=16))
    assert short.value.exit_code == 6
    with pytest.raises(InfeasibleError, match="at least 16"):
        solve(with_existing(there, grown, most_links_moved=15))


def test_without_new_switches_there_may_be_no_network(there: Path) -> None:
    """The message names the switches that are there, and the remedy; where they suffice none is bought."""
    with pytest.raises(InfeasibleError, match="new_switches: false, there are") as error:
        solve(with_existing(there, NEW["twice"], new_switches=False))
    assert [remedy.constraint for remedy in error.value.remedies] == ["search.existing.new_switches"]
    result = solve(with_existing(there, NEW["all to all"]))
    assert result.rewired is not None


def tampered(document: Document, **changes: Any) -> set[str]:
    """Kinds of findings after fields of `existing` were changed."""
    result = copy.deepcopy(document)
    result["existing"].update(changes)
    found = verify_file(design_from_document(with_digest({k: v for k, v in result.items() if k != "digest"})))
    return {finding.kind for finding in found.findings}


def test_a_file_that_says_otherwise_is_found_out(there: Path) -> None:
    """Counts, stock, switches, limits and the bill are counted again from the two networks."""
    document = json.loads(json.dumps(solve(with_existing(there, NEW["grown"], usd_per_link_moved=1)).to_document()))
    existing = document["existing"]
    assert tampered(document) == set()
    for name in ("kept", "plugged", "pulled", "kept_at_most"):
        assert "existing" in tampered(document, **{name: existing[name] + 1}), name
    assert "existing" in tampered(document, plugged_at_least=existing["plugged"] + 1)
    same_as = existing["same_as"]
    moved = [-1] * len(same_as)
    assert {"existing", "bill", "cost"} <= tampered(document, same_as=moved), "other switches: other links stay"
    twice = [same_as[0], *same_as[:1], *same_as[2:]]
    assert "existing" in tampered(document, same_as=twice)
    assert "existing" in tampered(document, same_as=same_as[:-1])
    assert "existing" in tampered(document, new_switches=False)
    assert "existing" in tampered(document, most_links_moved=existing["plugged"] - 1)
    assert "existing" in tampered(document, usd_per_link_moved=2.0)
    assert "existing" in tampered(document, fresh={"cost_usd": 1.0, "links": existing["plugged"] - 1})
    richer = copy.deepcopy(existing["fabric"])
    richer["models"] = ["mini-4"]
    assert "bill" in tampered(document, fabric=richer), "another stock: other pieces are bought"
    without = {key: value for key, value in document.items() if key not in ("existing", "digest")}
    kinds = {
        item.kind for item in verify_file(design_from_document(with_digest({**without, "existing": None}))).findings
    }
    assert {"existing", "bill", "cost"} <= kinds
    more = copy.deepcopy({key: value for key, value in document.items() if key != "digest"})
    more["bill_of_materials"][0]["reused"] += 1
    found = verify_file(design_from_document(with_digest(more))).findings
    assert any("reused" in item.message for item in found)


REFUSED: dict[str, tuple[Document, str, str]] = {
    "no file": (changed(RAILS, search={"existing": "none.json"}), "search.existing", "no such file"),
    "fewer GPUs": (changed(RAILS, cluster={"gpus": 16}), "search.existing", "32 GPUs"),
    "another NIC": (changed(RAILS, cluster={"nic": "mini-2x100"}), "search.existing", "nic mini-100"),
    "other rails": (changed(RAILS, cluster={"rails": 1}), "search.existing", "rails 2"),
    "other lengths": (changed(RAILS, cabling={"host_m": 12}), "search.existing", "host_m 15"),
    "a layout": (changed(RAILS, layout={}), "layout", "beside it"),
    "a budget of time": (changed(RAILS, requirements={"max_step_overhead": 0.1}), "max_step_overhead", "beside it"),
    "link placement": (changed(RAILS, search={"families": ["link-placement"]}), "search.families", "beside it"),
    "free ports": (
        changed(RAILS, cluster={"existing": [{"name": "old", "switch": "mini-8", "free_ports": 2}]}),
        "cluster.existing",
        "beside it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused_with_its_field(name: str, there: Path) -> None:
    """File, field, what was found and what is allowed; exit code 3."""
    document, field, words = REFUSED[name]
    if "existing" not in document["search"]:
        document = with_existing(there, document)
    with pytest.raises(InstanceError) as error:
        solve(document)
    assert error.value.exit_code == 3
    told = [problem for problem in error.value.problems if problem.field.endswith(field) or problem.field == field]
    assert any(words in problem.found for problem in told), error.value


def test_a_file_that_is_no_sound_network_is_refused(there: Path, tmp_path: Path) -> None:
    """Two links on one port, and parts that the catalog does not have."""
    document = json.loads(there.read_text(encoding="utf-8"))
    broken = copy.deepcopy({key: value for key, value in document.items() if key != "digest"})
    links = broken["fabric"]["links"]
    columns = read_design(there).fabric.links
    cages = columns.b_cage.tolist()
    cages[columns.b.tolist().index(columns.b[0], 1)] = cages[0]
    links["b_cage"] = cages
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(with_digest(broken)), encoding="utf-8")
    with pytest.raises(InstanceError, match="ports used once"):
        solve(with_existing(path))
    other = changed(with_existing(there), catalog="builtin")
    with pytest.raises(InstanceError):
        instance_from_document(other)


def test_asking_for_link_placement_on_the_command_line_finds_nothing_to_search(there: Path) -> None:
    """Families that do not know what is owned are no answer."""
    with pytest.raises(FamilyError, match="clos, grid, mesh"):
        solve(with_existing(there, NEW["full rate"]), families=("link-placement",))
