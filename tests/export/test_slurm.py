"""Slurm's topology files: read by a strict parser, and by slurmctld where it is installed."""

import getpass
import re
import shutil
import socket
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from exported import NAMES, plan_of, written

from designer.errors import ExportError
from designer.export.names import names_from_options
from designer.export.plan import SERVER
from designer.export.slurm import block_sizes, hostlist

SWITCH = re.compile(r"SwitchName=([A-Za-z0-9._-]{1,64}) (Nodes|Switches)=(\S+)")
BLOCK = re.compile(r"BlockName=([A-Za-z0-9._-]{1,64}) Nodes=(\S+)")


def expanded(hosts: str) -> list[str]:
    """The names of a host list."""
    names: list[str] = []
    for word in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", hosts):
        match = re.fullmatch(r"([^\[]+)\[([^\]]+)\]", word)
        if match is None:
            names.append(word)
            continue
        for span in match[2].split(","):
            first, _, last = span.partition("-")
            names += [f"{match[1]}{n:0{len(first)}}" for n in range(int(first), int(last or first) + 1)]
    return names


def servers_of(name: str) -> list[str]:
    plan = plan_of(name)
    return [name for name, role in zip(plan.devices.name, plan.devices.role.tolist(), strict=True) if role == SERVER]


def tree_of(text: str) -> dict[str, tuple[str, list[str]]]:
    tree: dict[str, tuple[str, list[str]]] = {}
    for line in text.splitlines():
        match = SWITCH.fullmatch(line)
        assert match, line
        assert match[1] not in tree
        tree[match[1]] = match[2], expanded(match[3])
    return tree


@pytest.mark.parametrize("name", NAMES)
def test_the_tree_has_every_server_once_and_one_top(name: str, tmp_path: Path) -> None:
    tree = tree_of(written(plan_of(name), "slurm-tree", tmp_path).read_text())
    below = [item for kind, items in tree.values() if kind == "Nodes" for item in items]
    assert sorted(below) == sorted(servers_of(name))
    children = [item for kind, items in tree.values() if kind == "Switches" for item in items]
    assert len(children) == len(set(children))
    assert len(set(tree) - set(children)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_servers_of_a_leaf_of_the_tree_share_that_leaf(name: str, tmp_path: Path) -> None:
    plan = plan_of(name)
    neighbours: dict[str, set[str]] = {}
    for a, b in zip(plan.a.device.tolist(), plan.b.device.tolist(), strict=True):
        neighbours.setdefault(plan.devices.name[b], set()).add(plan.devices.name[a])
    for leaf, (kind, items) in tree_of(written(plan, "slurm-tree", tmp_path).read_text()).items():
        if kind == "Nodes":
            assert set(items) <= neighbours[leaf]


def test_pods_are_switches_between_leaves_and_the_top(tmp_path: Path) -> None:
    tree = tree_of(written(plan_of("pods"), "slurm-tree", tmp_path).read_text())
    assert tree["top"] == ("Switches", [f"top-pod{pod}" for pod in range(4)])
    assert tree["top-pod2"] == ("Switches", ["plane0-pod2-leaf00", "plane0-pod2-leaf01"])


@pytest.mark.parametrize("name", NAMES)
def test_blocks_hold_every_server_once_in_sizes_that_double(name: str, tmp_path: Path) -> None:
    *lines, last = written(plan_of(name), "slurm-block", tmp_path).read_text().splitlines()
    blocks = {match[1]: expanded(match[2]) for line in lines if (match := BLOCK.fullmatch(line))}
    assert len(blocks) == len(lines)
    assert sorted(item for items in blocks.values() for item in items) == sorted(servers_of(name))
    sizes = [int(size) for size in last.removeprefix("BlockSizes=").split(",")]
    assert sizes[0] == min(len(items) for items in blocks.values())
    assert all(larger == 2 * smaller for smaller, larger in pairwise(sizes))
    assert sizes[-1] <= sizes[0] * len(blocks) < 2 * sizes[-1]


def test_blocks_are_racks_joined_by_nvlink_where_there_are_any(tmp_path: Path) -> None:
    text = written(plan_of("racks"), "slurm-block", tmp_path).read_text()
    assert text == "BlockName=block00 Nodes=server[00-17]\nBlockName=block01 Nodes=server[18-35]\nBlockSizes=18,36\n"


@pytest.mark.parametrize("name", NAMES)
def test_the_yaml_file_says_what_both_conf_files_say(name: str, tmp_path: Path) -> None:
    plan = plan_of(name)
    tree, block = yaml.safe_load(written(plan, "slurm-yaml", tmp_path).read_text())
    assert (tree["cluster_default"], block["cluster_default"]) == (True, False)
    lines = [
        f"SwitchName={item['switch']} "
        + (f"Nodes={item['nodes']}" if "nodes" in item else f"Switches={item['children']}")
        for item in tree["tree"]["switches"]
    ]
    assert "\n".join(lines) + "\n" == written(plan, "slurm-tree", tmp_path).read_text()
    lines = [f"BlockName={item['block']} Nodes={item['nodes']}" for item in block["block"]["blocks"]]
    lines.append(f"BlockSizes={','.join(map(str, block['block']['block_sizes']))}")
    assert "\n".join(lines) + "\n" == written(plan, "slurm-block", tmp_path).read_text()


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (["a07"], "a07"),
        (["a07", "a08", "a10"], "a[07-08,10]"),
        (["a8", "a9", "a10"], "a[8-9],a10"),
        (["x", "y1", "y2"], "x,y[1-2]"),
        (["r1-n01", "r1-n02", "r2-n01"], "r1-n[01-02],r2-n01"),
    ],
)
def test_host_lists(names: list[str], hosts: str) -> None:
    assert hostlist(names) == hosts
    assert expanded(hosts) == names


def test_block_sizes_of_blocks_that_differ() -> None:
    assert block_sizes([("a", "xx"), ("b", "xxx"), ("c", "xx")]) == [2, 4]
    assert block_sizes([("a", "x" * 18)]) == [18]


@pytest.mark.parametrize("option", ["leaf=a/{index}", "leaf=" + "a" * 63 + "{index}"])
def test_names_that_slurm_does_not_take_are_refused(option: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="as Slurm takes them"):
        written(plan_of("rails", names_from_options([option])), "slurm-tree", tmp_path)


@pytest.mark.skipif(shutil.which("slurmctld") is None, reason="slurmctld (Debian package slurmctld) is not installed")
@pytest.mark.parametrize("name", ["joined-1024", "rails", "racks", "pods"])
def test_slurmctld_reads_the_tree(name: str, tmp_path: Path) -> None:
    """The controller says at its start what each switch reaches."""
    path = written(plan_of(name), "slurm-tree", tmp_path)
    tree = tree_of(path.read_text())
    path.rename(tmp_path / "topology.conf")
    (tmp_path / "state").mkdir()
    (tmp_path / "slurm.conf").write_text(
        f"ClusterName=test\nSlurmctldHost=localhost\nAuthType=auth/none\nCredType=cred/none\n"
        f"SlurmctldPort={free_port()}\nSlurmUser={getpass.getuser()}\nStateSaveLocation={tmp_path}/state\n"
        f"SlurmctldPidFile={tmp_path}/pid\nTopologyPlugin=topology/tree\nSelectType=select/cons_tres\n"
        f"NodeName={hostlist(servers_of(name))} CPUs=1 State=UNKNOWN\nPartitionName=all Nodes=ALL Default=YES\n"
    )
    said = start_of_slurmctld(tmp_path / "slurm.conf")
    found = (re.search(r"Switch level:\d+ name:(\S+) nodes:(\S+) switches:(\S+)", line) for line in said)
    reached = {match[1]: expanded(match[2]) for match in found if match}
    assert set(reached) == set(tree), "".join(said[-20:])
    for switch, (kind, items) in tree.items():
        below = items if kind == "Nodes" else [server for item in items for server in reached[item]]
        assert sorted(reached[switch]) == sorted(below)
    assert not [line for line in said if "no switch can reach all nodes" in line]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def start_of_slurmctld(conf: Path) -> list[str]:
    """What the controller says until it has read the topology, or failed to."""
    process = subprocess.Popen(
        ["slurmctld", "-D", "-vvv", "-f", str(conf)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if "switches_dist[0]" in line or "fatal" in line or "Running as primary" in line:
                break
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return said
