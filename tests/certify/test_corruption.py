"""Damage to design files: each kind is caught, and named by the words a reader needs to find it.

Where not said otherwise the digest is made right after the damage, and the counts are those of the damaged fabric, so
that it is the check of the thing itself which speaks.
"""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from damaged import (
    INSTANCES,
    Document,
    check,
    copy_link,
    document_of,
    drop_link,
    links_of,
    swap,
    told,
    with_counts,
)

from designer.certify.read_design import design_from_document, read_design
from designer.certify.verify import verify_design
from designer.digest import with_digest
from designer.errors import InputError
from designer.fabric.fabric import CORE, GPU, LEAF, SPINE

Damage = Callable[[Document], None]
LOWER_END, UPPER_END = ("a", "a_cage", "a_lane"), ("b", "b_cage", "b_lane")


@pytest.mark.parametrize("name", INSTANCES)
def test_an_undamaged_design_verifies_without_a_finding(name: str) -> None:
    result = check(document_of(name), seal=False)
    assert result.ok, told(result)


def fibre_dropped(document: Document) -> None:
    drop_link(document, links_of(document, LEAF, SPINE)[3])


def fibre_doubled(document: Document) -> None:
    copy_link(document, links_of(document, LEAF, SPINE)[0])


def host_link_dropped(document: Document) -> None:
    drop_link(document, links_of(document, GPU, LEAF)[5])


def host_attached_twice(document: Document) -> None:
    links = document["fabric"]["links"]
    one, other = links_of(document, GPU, LEAF)[:2]
    links["a"][other] = links["a"][one]


def fibre_moved(document: Document) -> None:
    links = document["fabric"]["links"]
    rows = links_of(document, LEAF, SPINE)
    other = next(row for row in rows if links["b"][row] != links["b"][rows[0]])
    links["b"][rows[0]] = links["b"][other]
    links["b_cage"][rows[0]] = 7


def uplinks_swapped(document: Document) -> None:
    links = document["fabric"]["links"]
    rows = links_of(document, LEAF, SPINE)
    first = rows[0]
    differs = (row for row in rows if links["a"][row] != links["a"][first] and links["b"][row] != links["b"][first])
    swap(document, UPPER_END, first, next(differs))


def hosts_swapped_between_rails(document: Document) -> None:
    links = document["fabric"]["links"]
    rows = links_of(document, GPU, LEAF)
    one, other = (next(row for row in rows if links["a"][row] == gpu) for gpu in (0, 1))
    swap(document, LOWER_END, one, other)


def hosts_swapped(document: Document) -> None:
    links = document["fabric"]["links"]
    rows = links_of(document, GPU, LEAF)
    one, other = (next(row for row in rows if links["a"][row] == gpu) for gpu in (3, 14))
    swap(document, LOWER_END, one, other)


def hosts_of_a_leaf_swapped(document: Document) -> None:
    one, other, *_ = (row for row in links_of(document, GPU, LEAF) if document["fabric"]["links"]["a"][row] % 2 == 0)
    swap(document, LOWER_END, one, other)


def host_speed(document: Document) -> None:
    document["fabric"]["links"]["gbps"][links_of(document, GPU, LEAF)[2]] = 400


def fibre_speed(document: Document) -> None:
    document["fabric"]["links"]["gbps"][links_of(document, LEAF, SPINE)[2]] = 200


def one_lane_slower(document: Document) -> None:
    document["fabric"]["links"]["gbps"][links_of(document, LEAF, SPINE)[2]] = 100


def one_port_too_many(document: Document) -> None:
    links = document["fabric"]["links"]
    row = links_of(document, LEAF, SPINE)[0]
    copy_link(document, row)
    for name in ("a_cage", "b_cage"):
        links[name][-1] = 8


def breakout(document: Document) -> None:
    links = document["fabric"]["links"]
    row = links_of(document, GPU, LEAF)[1]
    links["b_cage"][row], links["b_lane"][row] = links["b_cage"][row - 1], 1


def third_lane(document: Document) -> None:
    row = links_of(document, GPU, LEAF)[1]
    document["fabric"]["links"]["b_lane"][row] = 2


def medium_too_short(document: Document) -> None:
    document["fabric"]["media"][1]["length_m"] = 501


def medium_of_other_cages(document: Document) -> None:
    document["fabric"]["media"][0]["per_upper_cage"] = "mini-module"


def other_length(document: Document) -> None:
    document["fabric"]["media"][0]["length_m"] = 14


def island(document: Document) -> None:
    """Two leaves and two spines exchange all links that would leave them."""
    links = document["fabric"]["links"]
    rows = links_of(document, LEAF, SPINE)
    leaves = sorted({links["a"][row] for row in rows})
    spines = sorted({links["b"][row] for row in rows})
    mine, theirs = leaves[: len(leaves) // 2], spines[: len(spines) // 2]
    out = [row for row in rows if links["a"][row] in mine and links["b"][row] not in theirs]
    into = [row for row in rows if links["a"][row] not in mine and links["b"][row] in theirs]
    assert len(out) == len(into) > 0
    for one, other in zip(out, into, strict=True):
        swap(document, UPPER_END, one, other)


def leaf_without_uplink(document: Document) -> None:
    links = document["fabric"]["links"]
    rows = links_of(document, LEAF, SPINE)
    leaf = links["a"][rows[0]]
    for row in sorted((row for row in rows if links["a"][row] == leaf), reverse=True):
        drop_link(document, row)


def spine_without_uplink(document: Document) -> None:
    links = document["fabric"]["links"]
    rows = links_of(document, SPINE, CORE)
    spine = links["a"][rows[0]]
    for row in sorted((row for row in rows if links["a"][row] == spine), reverse=True):
        drop_link(document, row)


def link_between_pods(document: Document) -> None:
    links, pod = document["fabric"]["links"], document["fabric"]["nodes"]["pod"]
    rows = links_of(document, LEAF, SPINE)
    other = next(row for row in rows if pod[links["a"][row]] != pod[links["a"][rows[0]]])
    swap(document, UPPER_END, rows[0], other)


def link_between_planes(document: Document) -> None:
    links, plane = document["fabric"]["links"], document["fabric"]["nodes"]["plane"]
    rows = links_of(document, LEAF, SPINE)
    other = next(row for row in rows if plane[links["a"][row]] != plane[links["a"][rows[0]]])
    swap(document, UPPER_END, rows[0], other)


def nic_ports_swapped(document: Document) -> None:
    links = document["fabric"]["links"]
    one, other = (row for row in links_of(document, GPU, LEAF) if links["a"][row] == 4)
    swap(document, LOWER_END, one, other)


def link_from_gpu_to_spine(document: Document) -> None:
    links = document["fabric"]["links"]
    spine = links["b"][links_of(document, LEAF, SPINE)[0]]
    links["b"][links_of(document, GPU, LEAF)[0]] = spine


def loop(document: Document) -> None:
    links = document["fabric"]["links"]
    row = links_of(document, LEAF, SPINE)[0]
    links["b"][row] = links["a"][row]


def fabric_number(document: Document) -> None:
    fabric = document["fabric"]
    fabric["nodes"]["fabric"][fabric["nodes"]["kind"].index(LEAF)] = 1


def gpu_rail(document: Document) -> None:
    document["fabric"]["nodes"]["rail"][6] = 1


FABRIC_DAMAGE: list[tuple[str, Damage, str, str]] = [
    ("rails", fibre_dropped, "structure", r"leaf node \d+ and spine node \d+: \d links, other pairs \d"),
    ("uneven", fibre_dropped, "structure", r"leaf node \d+: 3 links between tiers, others of its tier 4"),
    (
        "rails",
        fibre_doubled,
        "structure",
        r"ports used once: leaf node \d+, cage \d lane 0 .* the same port holds link",
    ),
    ("rails", host_link_dropped, "structure", r"GPU 5: NIC port 0 is not connected"),
    ("pods", host_attached_twice, "structure", r"GPU 0: NIC port 0 is connected 2 times"),
    ("pods", host_attached_twice, "structure", r"GPU 1: NIC port 0 is not connected"),
    ("rails", fibre_moved, "structure", r"bundles: leaf node 32 and spine node \d+: 0 links, other pairs 1"),
    ("rails", fibre_moved, "structure", r"bundles: spine node \d+: \d links between tiers, others of its tier 8"),
    ("rails", uplinks_swapped, "structure", r"bundles: leaf node 32 and spine node \d+: 0 links, other pairs 1"),
    ("rails", hosts_swapped_between_rails, "structure", r"GPU 1 of rail 1 is on leaf .* of rail 0 .*swapped between"),
    ("pods", hosts_swapped, "structure", r"endpoint order: GPU 14 is on leaf node 17 .* puts GPU 3\n"),
    (
        "rails",
        hosts_of_a_leaf_swapped,
        "structure",
        r"endpoint order: GPU 2 is on leaf .* order of the hosts puts GPU 0",
    ),
    ("rails", host_speed, "structure", r"GPU 2: a link at 400 Gb/s, its NIC runs at 100"),
    (
        "rails",
        host_speed,
        "structure",
        r"at 400 Gb/s: a breakout that mini-8 does not have, it has no mode of this speed",
    ),
    (
        "pods",
        fibre_speed,
        "structure",
        r"one speed for a class: link \d+ from leaf .* at 200 Gb/s, leaf-spine links at 100",
    ),
    ("breakout", one_lane_slower, "structure", r"link \d+ from leaf .* runs at 100 Gb/s, leaf-spine links at 200"),
    ("rails", one_port_too_many, "structure", r"cage 8 lane 0 .* one cage too many, mini-8 has 8"),
    ("rails", breakout, "structure", r"a breakout that mini-8 does not have, a cage gives at most 1"),
    ("breakout", third_lane, "structure", r"a breakout that mini-4x200 does not have, a cage gives at most 2"),
    ("breakout", medium_too_short, "structure", r"reaches 500 m, too short for 501 m"),
    ("breakout", medium_of_other_cages, "structure", r"media: link 0 .*mini-module does not fit a cage mini-twin"),
    ("rails", other_length, "cabling", r"length_m: 14 m, cabling.host_m is 15 m"),
    ("rails", island, "structure", r"an island in fabric 0: 6 switches from leaf node \d+ on"),
    ("rails", leaf_without_uplink, "structure", r"uplinks: leaf node 32 has no uplink, its fabric has other leaves"),
    ("rails", leaf_without_uplink, "structure", r"an island in fabric 0: 1 switches"),
    ("pods", spine_without_uplink, "structure", r"uplinks: spine node \d+ has no uplink, its fabric has cores"),
    (
        "pods",
        link_between_pods,
        "structure",
        r"pods: link \d+ joins leaf node \d+ of pod 0 with spine node \d+ of pod 1",
    ),
    ("planes", link_between_planes, "structure", r"planes: link \d+ joins leaf .* of plane 0 with spine .* of plane 1"),
    ("planes", link_between_planes, "structure", r"connected: link \d+ joins fabric 0 .* with fabric 1"),
    ("planes", nic_ports_swapped, "structure", r"planes: NIC port 1 of GPU 4 is on leaf node \d+ of plane 0"),
    ("pods", link_from_gpu_to_spine, "structure", r"link ends: link 0 joins GPU 0 and spine node \d+"),
    ("rails", loop, "structure", r"link \d+ has both ends at leaf node \d+"),
    ("rails", fabric_number, "structure", r"connected: link \d+ joins fabric 1 \(leaf node 32\) with fabric 0"),
    ("rails", gpu_rail, "structure", r"GPU 6 is said to be on rail 1, it is on rail 0"),
]


@pytest.mark.parametrize(
    ("name", "damage", "kind", "words"),
    FABRIC_DAMAGE,
    ids=[f"{damage.__name__}-{name}-{number}" for number, (name, damage, _, _) in enumerate(FABRIC_DAMAGE)],
)
def test_damage_to_the_fabric_is_named(name: str, damage: Damage, kind: str, words: str) -> None:
    document = document_of(name)
    damage(document)
    with_counts(document)
    result = check(document)
    found = "".join(f"{finding.message}\n" for finding in result.findings if finding.kind == kind)
    assert re.search(words, found), told(result)


def _set(*path: str | int, value: object) -> Damage:
    def damage(document: Document) -> None:
        place = document
        for step in path[:-1]:
            place = place[step]
        assert repr(place[path[-1]]) != repr(value)
        place[path[-1]] = value

    return damage


def catalog_price(document: Document) -> None:
    document["catalog"]["switches"]["mini-8"]["price"]["usd"] = 900


def line_dropped(document: Document) -> None:
    del document["bill_of_materials"][0]


def line_doubled(document: Document) -> None:
    document["bill_of_materials"].append(copy.deepcopy(document["bill_of_materials"][0]))


def weaker_floor(document: Document) -> None:
    document["traffic"]["phases"][0]["floor"] = 0.5


def cheaper_template(document: Document) -> None:
    row = next(row for row in document["comparison"] if row["meets"])
    row["cost_usd"] = document["cost_usd"] - 1000
    row["saving"] = 1 - document["cost_usd"] / row["cost_usd"]


def rail_only_links(document: Document) -> None:
    row = next(row for row in document["comparison"] if row["template"] == "rail-only")
    row["links"] += 2
    row["counts"]["links"] += 2


def management(document: Document) -> None:
    document["cluster"]["management_ports"] = 2


def hidden_gap(document: Document) -> None:
    """A bound lowered with its gap, so that only the status is left to tell."""
    document["lower_bound_usd"] = document["cost_usd"] / 2
    document["gap"] = 0.5


DECLARED_DAMAGE: list[tuple[Damage, str]] = [
    (_set("counts", "spine", value=5), r"counts: counts: spine: 5 declared, 4 in the fabric"),
    (_set("counts", "links", value=63), r"counts: links: 63 declared, 64 in the fabric"),
    (_set("counts", "cables", value=1), r"counts: counts\.cables: the file says 1, the bill 64"),
    (_set("counts", "transceivers", value=1), r"counts: counts\.transceivers"),
    (_set("cost_usd", value=1.0), r"cost: cost_usd: the file says \$1\.00, the bill adds up to"),
    (_set("capex_usd", value=1.0), r"cost: capex_usd: the file says \$1\.00"),
    (_set("energy_usd", value=1.0), r"cost: energy_usd: the file says \$1\.00, the bill adds up to \$0\.00"),
    (_set("assumed_usd", value=1.0), r"cost: assumed_usd"),
    (
        _set("bill_of_materials", 0, "unit_usd", value=1.0),
        r"price: bill_of_materials\[0\]\.unit_usd .* the file says 1\.0",
    ),
    (_set("bill_of_materials", 1, "quantity", value=3), r"bill: bill_of_materials\[1\]\.quantity .* the file says 3"),
    (_set("bill_of_materials", 0, "source", value="me"), r"bill: bill_of_materials\[0\]\.source"),
    (_set("bill_of_materials", 0, "item", value="mini-4"), r"bill: .*mini-4 for leaf is nowhere in the fabric"),
    (catalog_price, r"price: bill_of_materials\[\d\]\.unit_usd \(mini-8 for leaf\): the file says .* give 900"),
    (line_dropped, r"bill: \S+ for \S+ is missing from the bill"),
    (line_doubled, r"bill: bill_of_materials\[\d+\]: \S+ for \S+ stands there twice"),
    (_set("lower_bound_usd", value=1.0), r"bound: gap: the file says 0, cost and lower bound give 0\.99"),
    (_set("lower_bound_usd", value=1e6), r"bound: lower_bound_usd: \$1,000,000\.00 is above the cost"),
    (_set("any_topology_bound_usd", value=1e6), r"bound: any_topology_bound_usd: \$1,000,000\.00 is above"),
    (_set("gap", value=0.1), r"bound: gap: the file says 0\.1, cost and lower bound give 0"),
    (hidden_gap, r"status: status: the file says optimal, the bound .* makes it feasible"),
    (_set("status", value="feasible"), r"status: status: the file says feasible, the bound .* makes it optimal"),
    (_set("power_w", value=7.0), r"power: power_w: the file says 7 W, the bill adds up to"),
    (_set("worst_leaf_pair", value=0.5), r"worst_leaf_pair: the file says 0\.5, the fabric has 1"),
    (_set("comparison", 0, "saving", value=0.9), r"comparison: comparison\[0\] .*: saving is said to be 0\.9"),
    (_set("comparison", 0, "switches", value=1), r"comparison: comparison\[0\] .*not those of its counts"),
    (
        cheaper_template,
        r"comparison: comparison\[\d\] \(.*\): meets the requirements for .*, less than the design costs",
    ),
    (rail_only_links, r"rail-only: the file says \d+ switches and \d+ links, rail-only on \S+ has"),
    (_set("traffic", "phases", 0, "steps", 0, "nic_bytes", value=7.0), r"traffic: phase any of any: not what"),
    (weaker_floor, r"traffic: phase any of any: not what the instance's workload gives"),
    (_set("requirements", "routing", value="ecmp"), r"instance: requirements: differs from that of the instance"),
    (_set("energy", "years", value=9.0), r"instance: energy: differs"),
    (_set("objective", value="tco"), r"instance: objective: differs"),
    (management, r"counts: .*32 GPUs x 1 planes \+ 2 management ports are 34"),
    (management, r"instance: cluster: differs"),
    (_set("name", value="another"), r"instance: name: differs"),
]


@pytest.mark.parametrize(
    ("damage", "words"), DECLARED_DAMAGE, ids=[str(number) for number in range(len(DECLARED_DAMAGE))]
)
def test_an_edited_declaration_is_named(damage: Damage, words: str) -> None:
    document = document_of("rails")
    damage(document)
    result = check(document)
    assert re.search(words, told(result)), told(result)


def unreadable_cases() -> list[tuple[Damage, str]]:
    def shorter(document: Document) -> None:
        document["fabric"]["links"]["a_lane"].pop()

    def missing(document: Document) -> None:
        del document["fabric"]["links"]["b"]

    def no_model(document: Document) -> None:
        document["catalog"]["switches"] = {}

    def endless_runs(document: Document) -> None:
        document["fabric"]["links"]["a"] = {"runs": [[0, 10**12]]}

    return [
        (_set("schema_version", value=2), r"schema_version: found 2; allowed: 1|schema_version.*found 2"),
        (
            _set("fabric", "links", "a", 7, value=-5),
            r"fabric\.links\.a\[7\]: found -5; allowed: a whole number from 0 to",
        ),
        (_set("fabric", "links", "b", 7, value=10**6), r"fabric\.links\.b\[7\]: found 1000000; allowed"),
        (_set("fabric", "links", "b", 7, value=10**30), r"fabric\.links\.b\[7\]: found 10+; allowed"),
        (_set("fabric", "links", "a", 0, value=0.5), r"fabric\.links\.a\[0\]: found 0\.5; allowed: a whole number"),
        (_set("fabric", "links", "a", 0, value=True), r"fabric\.links\.a\[0\]: found True"),
        (_set("fabric", "links", "gbps", 0, value="100"), r"fabric\.links\.gbps\[0\]: found '100'"),
        (_set("fabric", "nodes", "kind", 0, value=2), r"fabric\.nodes\.kind: found 31 GPUs"),
        (_set("fabric", "nodes", "kind", 33, value=9), r"fabric\.nodes\.kind\[33\]: found 9"),
        (_set("fabric", "nodes", "model", 33, value=-1), r"fabric\.nodes\.model\[33\]: found -1 for a switch"),
        (_set("fabric", "links", "medium", 3, value=2), r"fabric\.links\.medium\[3\]: found 2"),
        (_set("fabric", "media", 0, "length_m", value=-1), r"fabric\.media\[0\]\.length_m: found -1"),
        (shorter, r"fabric\.links\.a_lane: found a column of 63 entries; allowed: 64"),
        (missing, r"fabric\.links\.b: found nothing"),
        (endless_runs, r"fabric\.links\.a: found a column of 1000000000000 entries"),
        (no_model, r"fabric\.models\[0\]: found 'mini-8'"),
        (_set("cluster", "rails", value=3), r"cluster.rails: found 3; allowed: a divisor of the hb_domain 2"),
        (_set("traffic", "phases", 0, "steps", 0, "components", 0, "pattern", value="x"), r"the pattern 'x'"),
        (_set("traffic", "phases", 0, "steps", 0, "components", 0, "size", value=5), r"groups of 5, 1 apart"),
        (_set("cost_usd", value=1e300), r"cost_usd: found 1e\+300"),
        (_set("counts", value=3), r"counts: found 3; allowed: a mapping of fields"),
        (_set("certificate", value=[]), r"certificate: found \[\]; allowed: a mapping of fields"),
        (_set("certificate", "phases", value=None), r"certificate\.phases: found None; allowed: a list"),
        (_set("certificate", "phases", value=[3]), r"certificate\.phases\[0\]: found 3; allowed: a mapping of fields"),
        (_set("digest", value="abc"), r"digest: found"),
    ]


UNREADABLE = unreadable_cases()


@pytest.mark.parametrize(("damage", "words"), UNREADABLE, ids=[str(number) for number in range(len(UNREADABLE))])
def test_what_is_no_design_is_refused_with_its_field(damage: Damage, words: str) -> None:
    document = document_of("rails")
    document.setdefault("certificate", None)
    damage(document)
    with pytest.raises(InputError) as refused:
        design_from_document(document)
    assert re.search(words, str(refused.value)), refused.value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[: len(text) // 2], "cut off|no JSON"),
        (lambda text: text[:-1], "cut off"),
        (lambda _: "", "cut off"),
        (lambda _: "[" * 100_000, "nesting without end|cut off"),
        (lambda _: "[1, 2]", "a mapping of fields"),
        (lambda text: text.replace('"gap":', '"name": "x", "gap":', 1), "the field 'name' twice"),
        (lambda text: re.sub(r'"cost_usd":[^,]*', '"cost_usd": NaN', text, count=1), "NaN, which is not a number"),
        (lambda text: text.replace("rails", "r\udcffils", 1), "0xff, which is not UTF-8"),
    ],
    ids=["half", "one sign short", "empty", "deep", "list", "twice", "nan", "bytes"],
)
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, change: Callable[[str], str], words: str) -> None:
    path = tmp_path / "design.json"
    path.write_bytes(change(json.dumps(document_of("rails"))).encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=words):
        read_design(path)


def test_any_edit_shows_in_the_digest() -> None:
    document = document_of("rails")
    document["provenance"]["seed"] += 1
    result = check(document, seal=False)
    assert [finding.kind for finding in result.findings] == ["digest"]


def test_a_missing_digest_is_told() -> None:
    document = document_of("rails")
    del document["digest"]
    with pytest.raises(InputError, match="digest: found nothing"):
        check(document, seal=False)


# The certificate inside the file: here the one that the check itself finds, so that only the damage differs.


def certified(name: str, *, needs: str = "structure") -> Document:
    document = document_of(name)
    document["certificate"] = json.loads(json.dumps(check(document).certificate.to_document()))
    if not document["certificate"][needs]:
        pytest.skip(f"no {needs} are computed")
    return document


def test_the_right_certificate_is_taken() -> None:
    for name in INSTANCES:
        result = check(certified(name))
        assert result.ok, told(result)
        assert not result.notes


CERTIFICATE_DAMAGE: list[tuple[str, Damage, str]] = [
    (
        "phases",
        _set("certificate", "phases", 0, "lower", value=0.123),
        r"phases\[any, any\]\.lower: the file says 0\.123",
    ),
    (
        "phases",
        _set("certificate", "phases", 0, "upper", value=1.001),
        r"phases\[any, any\]\.upper: the file says 1\.001",
    ),
    ("phases", _set("certificate", "phases", 0, "met", value=False), r"phases\[any, any\]\.met: the file says False"),
    ("phases", _set("certificate", "phases", 0, "phase", value="dp"), r"phases\[any, dp\]: 1 entries .* 0 found anew"),
    ("failures", _set("certificate", "failures", 0, "stands_for", value=999), r"failures\[.*\]\.stands_for: .* 999"),
    (
        "failures",
        _set("certificate", "failures", 0, "gpus_cut_off", value=999),
        r"failures\[.*\]\.gpus_cut_off: .* 999",
    ),
    (
        "failures",
        lambda document: document["certificate"]["failures"].pop(),
        r"failures\[.*\]: \d+ entries in the file",
    ),
    ("structure", _set("certificate", "met", value=False), r"\.met: the file says False, found anew True"),
    ("structure", _set("certificate", "met", value=1), r"\.met: the file says 1, found anew True"),
    ("structure", _set("certificate", "structure", "met", value=False), r"structure\.met: the file says"),
    ("structure", _set("certificate", "structure", "checks", 2, "name", value="x"), r"structure\.checks\[2\]\.name"),
    ("structure", _set("certificate", "rail_only", "words", value="cheap"), r"rail_only\.words"),
]


@pytest.mark.parametrize(
    ("needs", "damage", "words"), CERTIFICATE_DAMAGE, ids=[str(number) for number in range(len(CERTIFICATE_DAMAGE))]
)
def test_an_edited_certificate_is_named(needs: str, damage: Damage, words: str) -> None:
    document = certified("rails", needs=needs)
    damage(document)
    result = check(document)
    assert re.search(f"certificate: .*{words}", told(result)), told(result)


def test_a_planted_certificate_does_not_hide_a_weak_network() -> None:
    """A network for half the rate, whole and well billed, under the demand and the certificate of the full rate."""
    strong, weak = certified("rails", needs="phases"), document_of("half")
    for part in ("certificate", "traffic", "requirements", "instance", "name"):
        weak[part] = strong[part]
    result = check(weak)
    assert re.search(r"requirement: phase any of any: carries 0\.5\d*, required is 1", told(result)), told(result)
    assert re.search(r"certificate: certificate\.phases\[any, any\]\.lower: the file says 1", told(result))


def test_verification_of_a_file_equals_that_of_its_document(tmp_path: Path) -> None:
    path = tmp_path / "design.json"
    path.write_text(json.dumps(with_digest(document_of("pods"))), encoding="utf-8")
    parts: list[str] = []
    assert verify_design(path, progress=parts.append).ok
    assert parts[0] == "reading"
