"""Wiring lists read back: nothing differs from what was exported, and each kind of fault is found and named."""

import csv
import random
from pathlib import Path

import pytest
from exported import NAMES, bare_plan, design_file, plan_of, table_of, written
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.errors import InputError
from designer.export.as_built import WiringList, read_wiring
from designer.export.differences import KINDS, WiringCheck, check_wiring
from designer.export.names import names_from_options
from designer.fabric.build import build_clos
from tests.strategies import shapes

SETTINGS = settings(
    derandomize=True, max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
Row = dict[str, str]
Z = ("z_device", "z_port")


class Bench:
    """The wiring plan of a design as rows, to be changed and read back."""

    def __init__(self, name: str, folder: Path) -> None:
        self.plan, self.path = plan_of(name), folder / "found.csv"
        self.rows = table_of(written(self.plan, "wiring-csv", folder))

    def row(self, **cells: str) -> Row:
        return next(row for row in self.rows if all(row[key] == value for key, value in cells.items()))

    def swap(self, one: Row, other: Row, columns: tuple[str, str] = Z) -> None:
        for column in columns:
            one[column], other[column] = other[column], one[column]

    def check(self) -> WiringCheck:
        with self.path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(self.rows[0]))
            writer.writeheader()
            writer.writerows(self.rows)
        return check_wiring(self.plan, read_wiring(self.path, self.plan))


@pytest.fixture
def rails(tmp_path: Path) -> Bench:
    return Bench("rails", tmp_path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["wiring-csv", "ptm"])
def test_what_was_exported_differs_in_nothing(name: str, form: str, tmp_path: Path) -> None:
    plan = plan_of(name)
    check = check_wiring(plan, read_wiring(written(plan, form, tmp_path), plan))
    assert check.ok
    assert check.right == check.planned == len(check.wiring.links) == design_file(name).record.counts.links


@SETTINGS
@given(shapes(), st.randoms(use_true_random=False))
def test_what_was_exported_of_a_random_network_differs_in_nothing_and_every_lost_link_is_missing(
    drawn, chance: random.Random
) -> None:
    instance, shape = drawn
    plan = bare_plan(instance, build_clos(shape))
    names, ports = plan.devices.name, plan.port_names
    links = [
        ((names[a], ports[a_port]), (names[b], ports[b_port]))
        for a, a_port, b, b_port in plan.rows(plan.a.device, plan.a.port, plan.b.device, plan.b.port)
    ]
    assert check_wiring(plan, WiringList("list", "CSV", tuple(links))).ok
    turned = tuple((b, a) for a, b in links)
    assert check_wiring(plan, WiringList("list", "CSV", (*turned, *links))).ok, "listed from both ends"
    kept = [link for link in links if chance.random() < 0.8]
    check = check_wiring(plan, WiringList("list", "CSV", tuple(kept)))
    assert check.counts() == ({"missing": len(links) - len(kept)} if len(kept) < len(links) else {})


def test_two_swapped_uplinks(rails: Bench) -> None:
    one = rails.row(a_device="rail2-plane0-leaf00", a_port="swp18s0")
    other = rails.row(a_device="rail2-plane0-leaf01", a_port="swp18s0")
    rails.swap(one, other)
    check = rails.check()
    assert check.counts() == {"swapped": 1}
    assert check.right == check.planned - 2
    words = str(check.differences[0])
    assert words.startswith("swapped: two cables: rail2-plane0-leaf00:swp18s0 to rail2-plane0-spine00:")
    assert "wrong" not in words


def test_two_swapped_hosts_of_a_rail(rails: Bench) -> None:
    rails.swap(rails.row(a_device="server03", a_port="rail5"), rails.row(a_device="server04", a_port="rail5"))
    (found,) = rails.check().differences
    assert found.kind == "swapped"
    assert {link[0] for link in found.found} == {("server03", "rail5"), ("server04", "rail5")}
    assert set(found.planned).isdisjoint(found.found)
    assert "wrong rail" not in str(found)


def test_two_swapped_hosts_of_two_rails_are_on_the_wrong_rail(rails: Bench) -> None:
    rails.swap(rails.row(a_device="server03", a_port="rail5"), rails.row(a_device="server03", a_port="rail6"))
    (found,) = rails.check().differences
    assert found.kind == "swapped"
    assert "wrong rail: server03:rail5 is of rail 5, rail6-plane0-leaf00 of rail 6" in str(found)


def test_a_missing_cable(rails: Bench) -> None:
    lost = rails.row(a_device="server63", a_port="rail0")
    rails.rows.remove(lost)
    (found,) = rails.check().differences
    assert str(found) == "missing: server63:rail0 to rail0-plane0-leaf01:swp15s1"


@pytest.mark.parametrize("port", ["swp30s1", "swp1s0"], ids=["a free port", "a port that has a cable"])
def test_a_cable_in_the_wrong_rail(port: str, rails: Bench) -> None:
    rails.row(a_device="server07", a_port="rail3").update(z_device="rail4-plane0-leaf00", z_port=port)
    (found,) = rails.check().differences
    assert found.kind == "wrong rail"
    assert "server07:rail3 is of rail 3, rail4-plane0-leaf00 of rail 4" in str(found)
    assert "planned: server07:rail3 to rail3-plane0-leaf00:swp4s1" in str(found)


def test_a_cable_in_another_port_of_its_leaf(rails: Bench) -> None:
    rails.row(a_device="server07", a_port="rail3").update(z_port="swp31s1")
    (found,) = rails.check().differences
    assert found.kind == "wrong port"
    assert found.planned == ((("server07", "rail3"), ("rail3-plane0-leaf00", "swp4s1")),)


def test_a_cable_in_the_wrong_plane(tmp_path: Path) -> None:
    bench = Bench("planes", tmp_path)
    bench.row(a_device="server07", a_port="rail0n1p0").update(z_device="plane1-leaf00", z_port="swp70s0")
    (found,) = bench.check().differences
    assert found.kind == "wrong plane"
    assert "is of plane 0, plane1-leaf00 of plane 1" in str(found)


def test_an_extra_cable_beside_swapped_ones_hides_neither(rails: Bench) -> None:
    rails.swap(rails.row(a_device="server03", a_port="rail5"), rails.row(a_device="server04", a_port="rail5"))
    extra = {**rails.rows[0], "a_device": "server03", "a_port": "rail5", "z_device": "printer", "z_port": "lan"}
    rails.rows.append(extra)
    assert rails.check().counts() == {"extra": 1, "swapped": 1}


def test_a_leaf_whose_cables_are_all_one_port_further_is_one_finding(rails: Bench) -> None:
    mine = [row for row in rails.rows if row["z_device"] == "rail1-plane0-leaf00"]
    ports = [row["z_port"] for row in mine]
    for row, port in zip(mine, [*ports[1:], ports[0]], strict=True):
        row["z_port"] = port
    (found,) = rails.check().differences
    assert found.kind == "swapped"
    assert len(found.found) == 34
    assert "34 cables" in str(found)
    assert "and 26 more" in str(found)


def test_a_list_of_something_else_has_everything_missing_and_extra(rails: Bench) -> None:
    for row in rails.rows:
        row["a_device"], row["z_device"] = f"x-{row['a_device']}", f"x-{row['z_device']}"
    check = rails.check()
    assert check.counts() == {"missing": check.planned, "extra": check.planned}
    assert list(check.counts()) == [kind for kind in KINDS if kind in check.counts()]


def test_names_of_the_list_are_those_of_the_patterns(tmp_path: Path) -> None:
    names = names_from_options(["leaf=l{index}", "nic=eth{nic}[-{port}]"])
    plan = plan_of("rails", names)
    wiring = read_wiring(written(plan, "ptm", tmp_path), plan)
    assert check_wiring(plan, wiring).ok
    assert not check_wiring(plan_of("rails"), wiring).ok


def test_columns_in_any_order_with_others_between_and_a_byte_order_mark(tmp_path: Path) -> None:
    plan = plan_of("split")
    lines = ["note, Z_PORT,z_port,a_port , z_device,a_device"]
    lines += [
        f"x,,{row['z_port']}, {row['a_port']},{row['z_device']},{row['a_device']}"
        for row in table_of(written(plan, "wiring-csv", tmp_path))
    ]
    path = tmp_path / "list"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, ""]).encode())
    assert check_wiring(plan, read_wiring(path, plan)).ok


def test_dot_files_as_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / "topology.dot"
    path.write_text(
        "# cabling\ngraph G {\n\n  // leaf to spine\n  node [shape=box]\n  rankdir = LR;\n"
        '  "leaf1" [role="leaf"];\n  "leaf1":"swp1" -- "spine1":"swp41" [LLDP="match_type=portdescr", BFD="x=4"]\n'
        '  leaf1:swp2 -- "spine\\"1":swp42;\n}\n'
    )
    wiring = read_wiring(path, plan_of("split"))
    assert wiring.kind == "topology.dot"
    assert wiring.links == (
        (("leaf1", "swp1"), ("spine1", "swp41")),
        (("leaf1", "swp2"), ('spine"1', "swp42")),
    )


def test_dumps_of_ibnetdiscover_as_subnets_have_them(tmp_path: Path) -> None:
    """Names with what a managed switch adds, HCAs counted from one, and the node for collectives of a switch."""
    path = tmp_path / "dump"
    path.write_text(
        "#\n# Topology file\n#\n\nvendid=0x2c9\nswitchguid=0x10(10)\n"
        'Switch\t65 "S-0000000000000010"\t\t# "MF0;rail0-plane0-leaf00:MQM9700/U1" enhanced port 0 lid 73 lmc 0\n'
        '[1]\t"H-0000000000000021"[1](21) \t\t# "server00 mlx5_0" lid 647 4xNDR\n'
        '[2]\t"H-0000000000000022"[1](22) \t\t# "server01 HCA-1" lid 648 4xNDR\n'
        '[64]\t"H-0000000000000023"[1](23) \t\t# "stranger" lid 650 4xNDR\n'
        '[65]\t"H-0000000000000024"[1](24) \t\t# "Mellanox Technologies Aggregation Node" lid 5 4xNDR\n\n'
        'Ca\t1 "H-0000000000000021"\t\t# "server00 mlx5_0"\n[1](21) \t"S-0000000000000010"[1]\t\t# lid 647\n\n'
        'Ca\t1 "H-0000000000000022"\t\t# "server01 HCA-1"\n[1](22) \t"S-0000000000000010"[2]\t\t# lid 648\n\n'
        'Ca\t1 "H-0000000000000023"\t\t# "stranger"\n[1](23) \t"S-0000000000000010"[64]\n\n'
        'Ca\t1 "H-0000000000000024"\t\t# "Mellanox Technologies Aggregation Node"\n[1](24) \t"S-0000000000000010"[65]\n'
    )
    leaf = "rail0-plane0-leaf00"
    wiring = read_wiring(path, plan_of("rails"))
    assert wiring.kind == "ibnetdiscover"
    assert wiring.links == (
        ((leaf, "swp1s0"), ("server00", "rail0")),
        ((leaf, "swp1s1"), ("server01", "rail0")),
        ((leaf, "port 64"), ("stranger", "port 1")),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "none of the known lists"),
        ("{}", "none of the known lists"),
        ("a_device,a_port,z_device\nx,y,z\n", "none of the known lists"),
        ("a_device,a_port,z_device,z_port\nx,y,,w\n", r"list:2: z_device: found nothing"),
        ("a_device,a_port,z_device,z_port\nx,y\n", r"list:2: z_device: found nothing"),
        ('a_device,a_port,z_device,z_port\n"' + "x" * 200_000, "field larger than"),
        ("graph G {\n  a:b -- c:d -- e:f\n}\n", r"list:2: found 'a:b -- c:d -- e:f'"),
        ("digraph G {\n  a:b -> c:d\n}\n", r"list:1"),
        ('[1]\t"S-1"[2]\nSwitch 1 "S-1" # "x"\n', "a port of no node"),
    ],
)
def test_files_that_are_no_wiring_list_are_refused_with_the_line(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_wiring(path, plan_of("split"))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "none", tmp_path / "binary"):
        with pytest.raises(InputError):
            read_wiring(path, plan_of("split"))
