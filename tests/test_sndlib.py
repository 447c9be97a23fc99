"""SNDlib files: the reading rules, and clear problems instead of guesses."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.errors import InstanceError
from designer.sndlib import Demand, DesignModel, Module, is_model_file, read_design_model, read_network_design

SHIPPED = Path(__file__).parent.parent / "instances" / "network_design"
HEADER = "?SNDlib native format; type: network; version: 1.0\n"
NETWORK = (
    HEADER
    + """# a comment
META ( granularity = 5min ( nested ) )
NODES (
  A ( 1.0 -2.5 )
  B
  C ( 0 0 )
)
LINKS (
  L1 ( A B ) 5.00 7.00 0.50 3.00 ( 10.00 64.00 40.00 166.00 )
  L2 ( B A ) 0.00 0.00 0.00 0.00 ( )  # parallel to L1
  L3 ( B C ) 0 0 0 0 ( 1e1 2 )
)
DEMANDS (
  D1 ( A B ) 1 26.00 UNLIMITED
  D2 ( B A ) 2 4.50 3
  D3 ( C A ) 1 1 UNLIMITED
)
ADMISSIBLE_PATHS ( D1 ( P ( L1 ) ) )
"""
)
MODEL = "?SNDlib native format; type: model; version: 1.0\n"


def write(folder: Path, text: str, name: str = "net.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(path: Path, model: DesignModel | None = None) -> list[str]:
    with pytest.raises(InstanceError) as caught:
        read_network_design(path, model)
    return [str(problem) for problem in caught.value.problems]


def test_all_fields_are_read_and_undirected_demands_of_a_pair_add_up(tmp_path: Path) -> None:
    network = read_network_design(write(tmp_path, NETWORK))
    assert network.name == "net"
    assert network.nodes == ("A", "B", "C")
    first, second, third = network.links
    assert (first.pre_installed, first.pre_installed_cost, first.routing_cost, first.setup_cost) == (5, 7, 0.5, 3)
    assert first.modules == (Module(10, 64), Module(40, 166))
    assert (second.source, second.target, second.modules) == (1, 0, ())
    assert third.modules == (Module(10, 2),)
    assert network.demands == (Demand("D1", 0, 1, 35.0), Demand("D3", 0, 2, 1.0))
    assert network.fixed_cost == 7


def test_directed_demands_stay_apart(tmp_path: Path) -> None:
    network = read_network_design(write(tmp_path, NETWORK), DesignModel("DIRECTED", "BIDIRECTED"))
    assert [(each.source, each.target, each.value) for each in network.demands] == [(0, 1, 26), (1, 0, 9), (2, 0, 1)]


def test_shipped_networks_have_the_sizes_of_the_table() -> None:
    sizes = {path.stem: read_network_design(path) for path in SHIPPED.glob("nd*.txt")}
    assert len(sizes) == 11
    assert (len(sizes["nd24"].nodes), len(sizes["nd24"].links), len(sizes["nd24"].demands)) == (24, 34, 50)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version: 1.0", "version: 2.0", "net.txt:1:"),
        ("type: network", "type: model", "net.txt:1:"),
        ("26.00", "-26.00", "net.txt:15: D1 demand value: found '-26.00'; allowed: a number from 0 to 1e+15"),
        ("26.00", "nan", "net.txt:15: D1 demand value: found 'nan'"),
        ("26.00", "1_0", "net.txt:15: D1 demand value: found '1_0'"),
        ("D3 ( C A )", "D3 ( C X )", "net.txt:17: D3 target: found 'X'; allowed: a node"),
        ("L3 ( B C )", "L3 ( B B )", "net.txt:12: L3: found 'the same node twice'"),
        ("L3 ( B C )", "L1 ( B C )", "net.txt:12: LINKS: found 'L1'; allowed: each link once"),
        ("  B\n", "  A\n", "net.txt:6: NODES: found 'A'; allowed: each node once"),
        ("( 1e1 2 )", "( 0 2 )", "net.txt:12: L3 module capacity: found '0'"),
        ("( 1e1 2 )", "( 10 )", "net.txt:12: L3 module cost: found ')'"),
        ("4.50 3", "4.50 three", "net.txt:16: D2 max path length: found 'three'"),
        ("DEMANDS (", "DEMAND (", "net.txt:14: found 'DEMAND'; allowed: a section"),
        ("( P ( L1 ) ) )", "( P ( L1 ) )", "found 'the end of the file'"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in problems_of(write(tmp_path, NETWORK.replace(old, new, 1)))[0]


def test_several_problems_come_at_once_and_not_without_end(tmp_path: Path) -> None:
    assert len(problems_of(write(tmp_path, NETWORK.replace("26.00", "x").replace("4.50", "y")))) == 2
    many = "".join(f" D{at} ( X Y ) 1 1 UNLIMITED\n" for at in range(1000))
    assert len(problems_of(write(tmp_path, HEADER + "NODES ( A )\nDEMANDS (\n" + many + ")"))) == 20


def test_folders_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    assert "a folder" in problems_of(tmp_path)[0]
    assert "no such file" in problems_of(tmp_path / "none.txt")[0]
    assert problems_of(write(tmp_path, ""))
    assert "no nodes" in problems_of(write(tmp_path, HEADER))[0]


def test_single_modules_are_held_to_one(tmp_path: Path) -> None:
    model = DesignModel(capacity_model="SINGLE_MODULAR_CAPACITIES")
    assert "L1: found '2 modules'" in problems_of(write(tmp_path, NETWORK), model)[0]


def test_a_model_file_says_how_numbers_are_meant(tmp_path: Path) -> None:
    text = MODEL + "DEMAND_MODEL = DIRECTED\nLINK_MODEL = BIDIRECTED\nLINK_CAPACITY_MODEL = EXPLICIT_LINK_CAPACITIES\n"
    path = write(tmp_path, text + "SURVIVABILITY_MODEL = UNRESTRICTED_FLOW_RECONFIGURATION\nROUTING_MODEL=CONTINUOUS\n")
    expected = DesignModel("DIRECTED", "BIDIRECTED", "EXPLICIT_LINK_CAPACITIES", "UNRESTRICTED_FLOW_RECONFIGURATION")
    assert read_design_model(path) == expected
    assert is_model_file(path)
    assert not is_model_file(write(tmp_path, NETWORK, "other.txt"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ROUTING_MODEL = INTEGER", ":2: ROUTING_MODEL: found 'INTEGER'; allowed: CONTINUOUS"),
        ("FIXED_CHARGE_MODEL = YES", ":2: FIXED_CHARGE_MODEL: found 'YES'; allowed: NO"),
        ("COLOUR = RED", ":2: found 'COLOUR = RED'"),
        ("NODE_MODEL", ":2: found 'NODE_MODEL'"),
        ("LINK_MODEL = UNDIRECTED\nLINK_MODEL = UNDIRECTED", ":3: LINK_MODEL: found 'a second value'"),
        ("LINK_MODEL = BIDIRECTED", "DEMAND_MODEL: found 'UNDIRECTED'; allowed: DIRECTED"),
    ],
)
def test_a_model_that_cannot_be_designed_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InstanceError) as caught:
        read_design_model(write(tmp_path, MODEL + line + "\n"))
    assert said in str(caught.value)


def test_a_model_with_unknown_or_clashing_values_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="LINK_MODEL"):
        DesignModel(link_model="SIDEWAYS")
    with pytest.raises(ValueError, match="DEMAND_MODEL"):
        DesignModel(link_model="DIRECTED")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_is_read_or_refused_never_anything_else(tmp_path: Path, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(NETWORK) - 1))
    length = data.draw(st.integers(0, 30))
    text = NETWORK[:start] + data.draw(st.text("()ABD #\n1e9-.x", max_size=12)) + NETWORK[start + length :]
    path = write(tmp_path, text)
    with contextlib.suppress(InstanceError):
        network = read_network_design(path)
        assert all(each.value >= 0 and each.source != each.target for each in network.demands)
