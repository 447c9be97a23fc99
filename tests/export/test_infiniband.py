"""InfiniBand files, judged by OpenSM on a simulated network where it is installed, and by a parser everywhere."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from exported import NAMES, WITHOUT_TIERS, document_of, plan_of, written
from opensm import needs_opensm, simulated

from designer.certify.read_design import design_from_document
from designer.errors import ExportError
from designer.export.as_built import read_wiring
from designer.export.differences import check_wiring
from designer.export.formats import FORMATS
from designer.export.names import names_from_options
from designer.export.plan import Plan, make_plan
from designer.fabric.fabric import CORE, GPU, LEAF, SPINE

NODE = re.compile(r'(Switch|Hca)\t(\d+) "([^"]+)"\t# "([^"]+)"( base port 0 lid 0 lmc 0)?')
PORT = re.compile(r'\[(\d+)\]\t"([^"]+)"\[(\d+)\]')
WITHIN_254_PORTS = [name for name in NAMES if name not in ("planes", "grid")]
UPPER_END = ("b", "b_cage", "b_lane")


def swapped(name: str, one: int, other: int) -> Plan:
    """The plan of a design whose links change places at their upper ends."""
    document = document_of(name)
    links = document["fabric"]["links"]
    for column in UPPER_END:
        links[column][one], links[column][other] = links[column][other], links[column][one]
    return make_plan(design_from_document(document))


def links_between(name: str, lower: int, upper: int) -> list[int]:
    fabric = plan_of(name).fabric
    kind, links = fabric.nodes.kind, fabric.links
    return [row for row in range(fabric.n_links) if (kind[links.a[row]], kind[links.b[row]]) == (lower, upper)]


@pytest.mark.parametrize("name", WITHIN_254_PORTS)
def test_the_net_file_lists_every_link_at_both_ends(name: str, tmp_path: Path) -> None:
    text = written(plan_of(name), "ibsim", tmp_path).read_text()
    ends: Counter[frozenset[tuple[str, int]]] = Counter()
    ports: dict[str, int] = {}
    node = ""
    for line in text.splitlines():
        if match := NODE.fullmatch(line):
            node = match[3]
            assert node not in ports
            ports[node] = int(match[2])
        elif match := PORT.fullmatch(line):
            assert int(match[1]) <= ports[node]
            ends[frozenset(((node, int(match[1])), (match[2], int(match[3]))))] += 1
        else:
            assert re.fullmatch(r"|switchguid=0x([0-9a-f]+)\(0x\1\)|caguid=0x[0-9a-f]+", line), line
    assert set(ends.values()) == {2}
    assert len(ends) == plan_of(name).fabric.n_links


@pytest.mark.parametrize("name", WITHIN_254_PORTS)
def test_the_roots_are_the_switches_of_the_highest_tier(name: str, tmp_path: Path) -> None:
    net = written(plan_of(name), "ibsim", tmp_path)
    if name in WITHOUT_TIERS:
        assert not net.with_name("ibsim.roots").exists()
        return
    roots = {line.removeprefix("0x") for line in net.with_name("ibsim.roots").read_text().splitlines()}
    nodes = [match.groups() for match in NODE.finditer(net.read_text())]
    switches = {node.removeprefix("S-"): told for kind, _, node, told, _ in nodes if kind == "Switch"}
    kinds = plan_of(name).fabric.nodes.kind
    top = next(word for word, kind in (("core", CORE), ("spine", SPINE), ("", LEAF)) if (kinds == kind).any())
    assert {switches[root] for root in roots} == {told for told in switches.values() if top in told}


@needs_opensm
@pytest.mark.parametrize("name", ["joined-64", "joined-704", "joined-1024"])
def test_opensm_takes_uniform_designs_for_fat_trees(name: str, tmp_path: Path) -> None:
    with simulated(written(plan_of(name), "ibsim", tmp_path)) as network:
        assert network.routing("ftree") == "ftree"


@needs_opensm
def test_opensm_needs_the_root_list_for_uneven_bundles_and_the_export_says_so(tmp_path: Path) -> None:
    notes = FORMATS["ibsim"].write(plan_of("uneven-704"), tmp_path / "ibsim") or ()
    assert any("no pure fat tree" in note for note in notes)
    assert not any("no pure" in note for note in FORMATS["ibsim"].write(plan_of("joined-704"), tmp_path / "even") or ())
    with simulated(tmp_path / "ibsim") as network:
        assert network.routing("ftree") == "minhop"
        assert network.routing("ftree", "-a", str(tmp_path / "ibsim.roots")) == "ftree"


@needs_opensm
def test_opensm_refuses_a_design_with_an_uplink_less(tmp_path: Path) -> None:
    document = document_of("joined-1024")
    lost = links_between("joined-1024", LEAF, SPINE)[0]
    for column in document["fabric"]["links"].values():
        del column[lost]
    with simulated(written(make_plan(design_from_document(document)), "ibsim", tmp_path)) as network:
        assert network.routing("ftree") == "minhop"


@needs_opensm
@pytest.mark.skipif(shutil.which("ibnetdiscover") is None, reason="ibnetdiscover (infiniband-diags) is not installed")
@pytest.mark.parametrize(("name", "networks"), [("joined-64", 1), ("uneven-704", 1), ("pods", 1), ("rails", 8)])
def test_what_ibnetdiscover_finds_is_the_design(name: str, networks: int, tmp_path: Path) -> None:
    """Of several networks it finds the one of the first NIC; the links of the others are missing."""
    plan = plan_of(name)
    with simulated(written(plan, "ibsim", tmp_path)) as network:
        network.routing("minhop")
        (tmp_path / "dump").write_text(network.run("ibnetdiscover"))
    check = check_wiring(plan, read_wiring(tmp_path / "dump", plan))
    assert check.right == len(check.wiring.links) == plan.fabric.n_links // networks
    assert check.counts() == ({} if networks == 1 else {"missing": check.planned - check.right})


@needs_opensm
@pytest.mark.skipif(shutil.which("ibnetdiscover") is None, reason="ibnetdiscover (infiniband-diags) is not installed")
def test_two_swapped_uplinks_are_seen_in_what_ibnetdiscover_finds(tmp_path: Path) -> None:
    uplinks = links_between("uneven-704", LEAF, SPINE)
    with simulated(written(swapped("uneven-704", uplinks[0], uplinks[40]), "ibsim", tmp_path)) as network:
        network.routing("minhop")
        (tmp_path / "dump").write_text(network.run("ibnetdiscover"))
    plan = plan_of("uneven-704")
    assert check_wiring(plan, read_wiring(tmp_path / "dump", plan)).counts() == {"swapped": 1}


@needs_opensm
@pytest.mark.skipif(shutil.which("ibtopodiff") is None, reason="ibtopodiff (Debian package ibutils) is not installed")
@pytest.mark.parametrize("exchanged", [False, True], ids=["as designed", "swapped"])
def test_ibtopodiff_names_a_swapped_host_cable(exchanged: bool, tmp_path: Path) -> None:
    """Told where a NIC is, it says at which port of the switch it expected its cable.

    Debian's build of it does not end in order after that, whatever it found: only what it says first counts.
    """
    hosts = links_between("joined-64", GPU, LEAF)
    found = swapped("joined-64", hosts[0], hosts[9]) if exchanged else plan_of("joined-64")
    topo = written(plan_of("joined-64"), "ib-topo", tmp_path)
    net = written(found, "ibsim", tmp_path)
    guid = next(match[3] for match in NODE.finditer(net.read_text()) if match[4] == "server00 mlx5_0")
    with simulated(net) as network:
        network.routing("ftree")
        said = first_words_of_ibtopodiff(topo, network.folder / "opensm-subnet.lst", f"0x{guid[2:-1]}1")
    wrong = "Wrong port number on remote side of cable from:server00/mlx5_0/P1. Expected port:1 but got port:10"
    assert "Fail" not in said
    assert "Ignoring" not in said
    assert (wrong in said) == exchanged
    assert ("Mismatches" in said) == exchanged


def first_words_of_ibtopodiff(topo: Path, subnet: Path, guid: str) -> str:
    process = subprocess.Popen(
        ["ibtopodiff", "-t", topo, "-d", subnet, "-s", "server00/mlx5_0", "-p", "1", "-g", guid],
        env={"PATH": "/usr/bin:/bin", "IBDM_IBNL_PATH": f"{topo}.ibnl"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        if "Starting ports do not match" in line:
            break
    process.kill()
    process.wait()
    process.stdout.close()
    return "".join(said)


def test_the_topo_file_has_a_section_for_each_switch(tmp_path: Path) -> None:
    topo = written(plan_of("rails"), "ib-topo", tmp_path)
    sections = topo.read_text().strip().split("\n\n")
    assert len(sections) == 24
    leaf = next(section for section in sections if section.startswith("MQM9700 rail3-plane0-leaf00\n")).splitlines()
    assert leaf[1] == "   P1 -> HCA_mlx5_8 server00 mlx5_3/P1"
    assert leaf[-1].split()[2:4] == ["MQM9700", "rail3-plane0-spine00"]
    spine = next(section for section in sections if section.startswith("MQM9700 rail3-plane0-spine00\n"))
    assert "MQM9700 rail3-plane0-leaf00" in spine
    kinds = {path.stem for path in topo.with_name("ib-topo.ibnl").iterdir()}
    assert kinds == {"MQM9700", "HCA_mlx5_8", "HCA_mlx5_1"}
    assert topo.with_name("ib-topo.ibnl").joinpath("MQM9700.ibnl").read_text().count("->") == 64


def test_what_is_no_infiniband_is_told_and_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="at most 254 ports"):
        FORMATS["ibsim"].write(plan_of("planes"), tmp_path / "net")
    told = FORMATS["ibsim"].write(plan_of("existing"), tmp_path / "net") or ()
    assert any("no tree" in note for note in told)
    told = FORMATS["ibsim"].write(plan_of("split"), tmp_path / "net") or ()
    assert any("speak no InfiniBand" in note for note in told)
    assert any("2 separate networks" in note for note in told)
    with pytest.raises(ExportError, match="the name 'a\\+00'"):
        FORMATS["ib-topo"].write(plan_of("rails", names_from_options(["server=a+{index}"])), tmp_path / "net")
