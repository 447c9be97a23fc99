"""Design files of Clos networks of several kinds of servers: whole ones hold, and damage is told kind by kind."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged import check, links_of, swap, told, with_counts

from designer import design, instance_from_document
from designer.certify.hose import clos_hose
from designer.certify.problem import FlowProblem, Hubs
from designer.certify.read_design import design_from_document
from designer.digest import with_digest
from designer.export.formats import export_design
from designer.fabric.fabric import GPU, LEAF, SPINE, Fabric
from designer.fabric.union import Part, united
from designer.search import Options

Document = dict[str, Any]
KINDS = [
    {"count": 12, "gpu": "h100-sxm", "nic": "cx7-400"},
    {"count": 20, "gpu": "a100-sxm", "nic": "cx7-200"},
]
JOINED: Document = {
    "name": "joined",
    "cluster": {"servers": KINDS},
    "workload": [{"demand": "any"}],
    "requirements": {"survive": [{"failure": "switch", "throughput": 0.5}]},
    "search": {"families": ["mixed-clos"], "switches": ["qm9700"], "leaf": {"down": 8}, "leaf_sharing": "none"},
}
ONE_SWITCH: Document = {
    "name": "one switch",
    "cluster": {"servers": KINDS},
    "workload": [{"demand": "any"}],
    "search": {"families": ["mixed-clos"], "switches": ["qm9700"]},
}
APART = ONE_SWITCH | {
    "name": "apart",
    "workload": [
        {"name": "fast", "demand": "any", "across": "cluster", "gpus": 96},
        {"name": "slow", "demand": "ring", "first_gpu": 96},
    ],
}
WHOLE = JOINED | {"name": "whole", "workload": [{"demand": "any", "across": "cluster"}]}
FLOOR = WHOLE | {"name": "floor", "layout": {}, "requirements": {"throughput": {"any": 0.5}}}
INSTANCES = {str(item["name"]): item for item in (JOINED, APART, WHOLE, ONE_SWITCH, FLOOR)}


@cache
def _text(name: str) -> str:
    return json.dumps(design(instance_from_document(INSTANCES[name])).to_document())


def document_of(name: str) -> Document:
    """A fresh document of the design, columns as plain lists."""
    document: Document = json.loads(_text(name))
    fabric = Fabric.from_document(document["fabric"])
    for part in ("nodes", "links"):
        table = getattr(fabric, part)
        document["fabric"][part] = {column: getattr(table, column).tolist() for column in document["fabric"][part]}
    return with_digest(document)


@pytest.mark.parametrize("name", INSTANCES)
def test_a_design_holds(name: str) -> None:
    document = document_of(name)
    assert document["family"] == "mixed-clos"
    assert document["certificate"]["met"]
    result = check(document)
    assert result.ok, told(result)


def test_the_designs_are_what_they_are_named_for() -> None:
    counts = {name: document_of(name)["counts"] for name in INSTANCES}
    assert counts["joined"]["spine"] == 2 * counts["joined"]["fabrics"]
    assert counts["apart"]["fabrics"] > 1
    assert counts["apart"]["spine"]
    assert (counts["whole"]["fabrics"], counts["floor"]["fabrics"]) == (1, 1)
    assert (counts["one switch"]["leaf"], counts["one switch"]["spine"]) == (counts["one switch"]["fabrics"], 0)
    floor = document_of("floor")
    assert len({use["length_m"] for use in floor["fabric"]["media"]}) > 1
    assert floor["lower_bound_usd"] <= floor["cost_usd"]


def _hosts_of_both(document: Document) -> tuple[int, int]:
    """A host link of each kind of servers, at the same fabric."""
    links, fabric = document["fabric"]["links"], document["fabric"]["nodes"]["fabric"]
    rows = links_of(document, GPU, LEAF)
    fast = next(row for row in rows if links["a"][row] < 96)
    home = fabric[links["b"][fast]]
    slow = next(row for row in rows if links["a"][row] >= 96 and fabric[links["b"][row]] == home)
    return fast, slow


def test_a_leaf_of_both_kinds_is_told() -> None:
    document = document_of("joined")
    swap(document, ("b", "b_cage", "b_lane"), *_hosts_of_both(document))
    found = told(check(document))
    assert "which serves another kind of servers" in found


def test_a_bundle_unlike_those_of_its_kind_is_told() -> None:
    """An uplink of a leaf put to another spine: bundles of one kind are alike, those of the kinds need not be."""
    document = document_of("joined")
    links = document["fabric"]["links"]
    up = links_of(document, LEAF, SPINE)
    one = up[0]
    other = next(row for row in up if links["a"][row] == links["a"][one] and links["b"][row] != links["b"][one])
    links["b"][one] = links["b"][other]
    assert "other pairs" in told(check(document))


def test_uplinks_of_two_speeds_in_one_kind_are_told() -> None:
    document = document_of("joined")
    row = links_of(document, LEAF, SPINE)[0]
    document["fabric"]["links"]["gbps"][row] //= 2
    assert "leaf-spine links at" in told(check(document))


def test_hosts_out_of_order_are_told() -> None:
    """Two servers of one kind in each other's place."""
    document = document_of("joined")
    rows = [row for row in links_of(document, GPU, LEAF) if document["fabric"]["links"]["a"][row] in (0, 80)]
    swap(document, ("a",), *rows)
    assert "where the order of the hosts puts" in told(check(document))


def test_networks_apart_that_a_link_joins_are_told() -> None:
    document = document_of("apart")
    links, fabric = document["fabric"]["links"], document["fabric"]["nodes"]["fabric"]
    row = links_of(document, LEAF, SPINE)[0]
    other = next(at for at in links_of(document, GPU, LEAF) if fabric[links["b"][at]] != fabric[links["b"][row]])
    links["b"][row] = links["b"][other]
    assert "joins fabric" in told(check(document))


def test_as_a_plain_clos_it_would_not_pass() -> None:
    """Bundles and speeds that differ by kind are no Clos of one kind."""
    document = document_of("joined")
    document["family"] = "clos"
    with_counts(document)
    assert not check(document).ok


@pytest.mark.parametrize("name", ["joined", "apart", "one switch"])
@pytest.mark.parametrize("form", ["wiring-csv", "bom-csv", "netbox", "graphml", "slurm-tree"])
def test_exports(tmp_path: Path, name: str, form: str) -> None:
    """Every link has its line, every kind its server."""
    file = design_from_document(document_of(name))
    output = tmp_path / "out"
    export_design(file, form, output)
    if form == "wiring-csv":
        lines = output.read_text().splitlines()
        assert len(lines) == 1 + file.fabric.n_links
        assert sum(",400," in line for line in lines) >= 96


def test_parts_become_one_fabric() -> None:
    """Two fabrics with a switch each: nodes follow each other, GPUs have the numbers that they are given."""
    document = document_of("one switch")
    whole = Fabric.from_document(document["fabric"])
    twice = united(
        [Part(whole, np.arange(0, 512, 2)), Part(whole, np.arange(1, 512, 2))],
        512,
        8,
    )
    switches = whole.n_nodes - 256
    assert twice.n_nodes == 512 + 2 * switches
    assert twice.counts()["fabrics"] == 2 * whole.counts()["fabrics"]
    assert np.array_equal(twice.links.a[: whole.n_links], 2 * whole.links.a)
    assert np.array_equal(twice.links.b[whole.n_links :], whole.links.b + 256 + switches)
    assert (twice.nodes.rail[:512] == np.arange(512) % 8).all()
    with pytest.raises(ValueError, match="every GPU once"):
        united([Part(whole, np.arange(256))], 512, 8)


def test_leaves_that_send_nothing_are_no_cores() -> None:
    """Two leaves that send to each other, two that only hang on the spines, a link of the first two lost.

    3 of 4 uplinks are left, for any permutation; the idle leaves take nothing from that.
    """
    a = np.repeat(np.arange(4), 4)
    b = 4 + np.tile(np.arange(4), 4)
    links = np.ones(16, dtype=np.int64)
    capacity = np.where((a == 0) & (b == 4), 0.5, 1.0)
    hub = Hubs(np.array([0, 1]), np.array([0, 0]), np.array([4, 4]), 0.0, 1.0)
    label = np.ones(8, dtype=np.int64)
    problem = FlowProblem(8, label, np.ones(8, dtype=bool), a, b, capacity, links, (hub,), ())
    found = clos_hose(problem)
    alone = clos_hose(FlowProblem(8, label, np.ones(8, dtype=bool), a[:8], b[:8], capacity[:8], links[:8], (hub,), ()))
    assert found is not None
    assert alone is not None
    assert (found.lower, found.upper, found.ecmp) == (alone.lower, alone.upper, alone.ecmp)
    assert found.lower == pytest.approx(3.5 / 4)


def test_a_copy_of_the_design_is_the_design() -> None:
    """Saved, read, saved again: nothing changes."""
    document = document_of("joined")
    again = design(instance_from_document(copy.deepcopy(JOINED)), Options()).to_document()
    assert {name: again[name] for name in ("cost_usd", "counts", "searched")} == {
        name: document[name] for name in ("cost_usd", "counts", "searched")
    }
