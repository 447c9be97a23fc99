"""Link placement on the command line: families, limits, refusals, designs that verify and damaged ones that do not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from designer.digest import with_digest
from designer.fabric.fabric import Fabric
from tests.certify.damaged import copy_link, drop_link, with_counts
from tests.cli.conftest import ROOT, Run

Document = dict[str, Any]
SMALL = ROOT / "instances" / "small"
SERVERS = [
    {"count": 3, "gpu": "h100-sxm", "nic": "cx7-400"},
    {"count": 2, "gpu": "a100-sxm", "nic": "cx7-200"},
]
LONE = [kind | {"gpus": 1} for kind in SERVERS]

# A network is found at once and its proof takes longer than anybody waits.
UNPROVEN: Document = {
    "cluster": {
        "gpus": 24,
        "gpu": "pair",
        "nic": "mini-100",
        "rails": 1,
        "existing": [
            {"name": name, "switch": "mini-8", "free_ports": free} for name, free in (("a", 7), ("b", 7), ("c", 8))
        ],
    },
    "workload": [{"demand": "all-to-all", "across": "cluster"}],
    "requirements": {"throughput": {"all-to-all": 0.25}},
    "search": {"switches": ["mini-8"], "families": ["link-placement"]},
    "catalog": str(SMALL / "catalog.yaml"),
}


@pytest.fixture
def instance(tmp_path: Path) -> Callable[..., Path]:
    """Writes an instance of a mixed cluster with the given changes."""

    def write(**changes: Any) -> Path:
        document = {"name": "mixed", "cluster": {"servers": SERVERS}, "workload": [{"demand": "ring"}]} | changes
        path = tmp_path / "instance.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return write


def test_a_limit_is_5_with_the_gap_told_and_the_certificate_met(run: Run, instance: Callable[..., Path]) -> None:
    path = instance(**UNPROVEN)
    output = path.with_name("design.json")
    ran = run("design", path, "--time-limit", "3", "-o", output)
    assert ran.code == 5
    assert "feasible, stopped by the time limit: gap" in ran.out
    assert "gap" in ran.err
    document = json.loads(output.read_text())
    assert document["status"] == "feasible"
    assert 0 < document["lower_bound_usd"] < document["cost_usd"]
    assert document["gap"] == pytest.approx(1 - document["lower_bound_usd"] / document["cost_usd"])
    assert document["certificate"]["met"]
    assert run("verify", output).code == 0


def test_without_time_nothing_is_found(run: Run, instance: Callable[..., Path]) -> None:
    ran = run("design", instance(**UNPROVEN), "--time-limit", "0")
    assert ran.code == 6
    assert "no design found before the time limit was hit" in ran.err


def test_more_switches_than_are_looked_at_are_told(run: Run, instance: Callable[..., Path]) -> None:
    """120 endpoints fill thirty switches of four ports: nothing is proven, and no limit of time was hit."""
    servers = [{"count": 60, "gpu": "pair", "nic": "mini-100"}]
    workload = [{"demand": "all-to-all", "across": "cluster"}]
    catalog = str(SMALL / "catalog.yaml")
    ran = run(
        "design",
        instance(cluster={"servers": servers}, workload=workload, catalog=catalog, search={"switches": ["mini-4"]}),
    )
    assert ran.code == 6
    assert "no design found with as many switches as are looked at" in ran.err


INFEASIBLE: list[tuple[Document, tuple[str, ...]]] = [
    (
        {"cluster": {"servers": LONE}, "requirements": {"survive": [{"failure": "switch", "throughput": 0.5}]}},
        ("requirements.survive[0]: 1 switch lost, 0.5 of each floor left", "leave it out or ask for less"),
    ),
    (
        {"search": {"switches": ["sn4600c"]}},
        ("switches: ports of [100] Gb/s", "a switch and a NIC with a port speed in common"),
    ),
    ({"cabling": {"host_m": 5000}}, ("cabling.host_m: 5000 m", "a shorter cable")),
    (
        {"requirements": {"survive": [{"failure": "nic", "throughput": 0.75}]}},
        ("requirements.survive[0]: 1 nic lost, 0.75 of each floor left", "leave it out or ask for less"),
    ),
]


@pytest.mark.parametrize(("changes", "words"), INFEASIBLE)
def test_what_cannot_be_is_4_with_what_clashes(
    run: Run, instance: Callable[..., Path], changes: Document, words: tuple[str, ...]
) -> None:
    """In the words of the file, the smallest set that clashes and a change that would help."""
    ran = run("design", instance(**changes))
    assert ran.code == 4
    assert ran.out == ""
    assert all(word in ran.err for word in words), ran.err


def test_several_failures_at_once_are_refused(run: Run, instance: Callable[..., Path]) -> None:
    survive = [{"failure": "link", "count": 2, "throughput": 0.5}]
    ran = run("design", instance(requirements={"survive": survive}, search={"families": ["link-placement"]}))
    assert ran.code == 3
    assert "requirements.survive asks for several failures at once" in ran.err


@pytest.mark.parametrize(
    ("families", "cost_usd", "family"),
    [
        ("clos", 12_440, "clos"),
        ("link-placement", 6_720, "link-placement"),
        ("clos,link-placement", 6_720, "link-placement"),
    ],
)
def test_families_on_request(run: Run, families: str, cost_usd: int, family: str) -> None:
    """Groups of four on switches of four ports need no links between switches: a Clos network is twice as dear."""
    ran = run("design", SMALL / "groups-32.yaml", "--families", families, "--time-limit", "60", "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert (document["cost_usd"], document["family"]) == (cost_usd, family)
    assert document["lower_bound_usd"] == cost_usd


def test_a_family_that_does_not_apply_is_refused(run: Run, instance: Callable[..., Path]) -> None:
    """No plain Clos network of servers that differ, none of kinds where they do not, management ports for some only."""
    ran = run("design", instance(), "--families", "clos")
    assert ran.code == 3
    assert "search.families: found the families clos for servers of several kinds; allowed: mixed-clos" in ran.err
    ran = run("design", SMALL / "groups-32.yaml", "--families", "mixed-clos,clos")
    assert ran.code == 3
    assert "found the family mixed-clos for servers that are all alike; allowed: clos, grid, mesh" in ran.err
    assert run("design", instance(search={"families": ["clos", "link-placement"]})).code == 3
    cluster = {"gpus": 16, "gpu": "h100-sxm", "nic": "cx7-400", "management_ports": 1}
    ran = run("design", instance(cluster=cluster), "--families", "link-placement")
    assert ran.code == 3
    assert "management ports" in ran.err


@pytest.mark.parametrize("name", ["irregular/lab-52", "irregular/rack-and-servers-104", "existing/added-64-across"])
def test_a_design_verifies(run: Run, tmp_path: Path, name: str) -> None:
    """An irregular cluster with used switches, one that survives the loss of a switch, a regular one."""
    output = tmp_path / "design.json"
    ran = run("design", ROOT / "instances" / f"{name}.yaml", "--time-limit", "60", "-o", output)
    assert ran.code == 0
    assert "switches  2" in ran.out
    ran = run("verify", output)
    assert ran.code == 0, ran.err


def host_beyond_the_free_ports(document: Document) -> None:
    """The cable of GPU 0 in a cage of a used switch that is not free."""
    links = document["fabric"]["links"]
    links["b_cage"][0] = 0


def host_on_the_port_of_another(document: Document) -> None:
    links = document["fabric"]["links"]
    links["b_cage"][0], links["b_lane"][0] = links["b_cage"][1], links["b_lane"][1]


def one_link_more(document: Document) -> None:
    copy_link(document, len(document["fabric"]["links"]["a"]) - 1)
    document["fabric"]["links"]["a_lane"][-1] = document["fabric"]["links"]["b_lane"][-1] = 1


def hosts_swapped(document: Document) -> None:
    """A fast host on the port of a slow one."""
    links = document["fabric"]["links"]
    for name in ("b", "b_cage", "b_lane"):
        links[name][0], links[name][-10] = links[name][-10], links[name][0]


def one_link_less(document: Document) -> None:
    """Of the five links between the rooms one is left out, and the training no longer fits."""
    drop_link(document, len(document["fabric"]["links"]["a"]) - 1)


def another_name(document: Document) -> None:
    document["fabric"]["owned"][0]["name"] = "room-9"


def cheaper(document: Document) -> None:
    document["cost_usd"] -= 100


DAMAGES = [
    (host_beyond_the_free_ports, "switch room-1 (node 52): links in cages 0, free are 17 to 31"),
    (host_on_the_port_of_another, "the same port holds link"),
    (one_link_more, "(mfp7e30 for leaf-leaf): the file says 5, the fabric and its catalog give 6"),
    (one_link_less, "phase training of training: carries 0.40625, required is 0.5"),
    (hosts_swapped, "one cage at two speeds, 200 and 400 Gb/s"),
    (another_name, "switch room-9 (node 52): the cluster has no switch of this name"),
    (cheaper, "cost_usd: the file says $78,618.00, the bill adds up to $78,718.00"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The design file of the laboratory, columns as plain lists."""
    from designer import design, load_instance

    document = design(load_instance(ROOT / "instances" / "irregular" / "lab-52.yaml")).to_document()
    document = json.loads(json.dumps(document))
    fabric = Fabric.from_document(document["fabric"])
    for part in ("nodes", "links"):
        table = getattr(fabric, part)
        document["fabric"][part] = {column: getattr(table, column).tolist() for column in document["fabric"][part]}
    return json.dumps(document)


@pytest.mark.parametrize(("damage", "words"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
def test_damage_of_a_design_is_7(
    run: Run, tmp_path: Path, lab: str, damage: Callable[[Document], None], words: str
) -> None:
    """With its counts and its digest made right, so that what was planned must speak."""
    document = json.loads(lab)
    damage(document)
    with_counts(document)
    path = tmp_path / "design.json"
    path.write_text(json.dumps(with_digest(document)))
    ran = run("verify", path)
    assert ran.code == 7
    assert words in " ".join(ran.out.split()), ran.out


def test_the_undamaged_design_verifies_written_in_full(run: Run, tmp_path: Path, lab: str) -> None:
    path = tmp_path / "design.json"
    path.write_text(json.dumps(with_digest(json.loads(lab))))
    assert run("verify", path).code == 0
