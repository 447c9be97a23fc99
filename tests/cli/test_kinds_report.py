"""Networks of several kinds of servers on the command line: what a design says of each kind, and what is refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Run

SERVERS = [
    {"count": 12, "gpu": "h100-sxm", "nic": "cx7-400"},
    {"count": 20, "gpu": "a100-sxm", "nic": "cx7-200"},
]


@pytest.fixture
def instance(tmp_path: Path) -> Callable[..., Path]:
    """Writes an instance of two kinds of servers with the given changes."""

    def write(**changes: Any) -> Path:
        document = {"name": "kinds", "cluster": {"servers": SERVERS}, "workload": [{"demand": "any"}]} | changes
        path = tmp_path / "instance.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return write


def test_each_kind_has_a_line_with_its_leaves(run: Run, instance: Callable[..., Path]) -> None:
    """Eight ports of a leaf to hosts, at the 200 Gb/s of the slower NICs: four links of 400 Gb/s, to two spines.

    12 servers on 8 rails are 2 leaves a rail of at most 8 GPUs, 20 servers 3.
    """
    search = {"switches": ["qm9700"], "leaf": {"down": 8, "up": 4}, "leaf_sharing": "none", "families": ["mixed-clos"]}
    survive = {"survive": [{"failure": "switch", "throughput": 0.5}]}
    ran = run("design", instance(search=search, requirements=survive))
    assert ran.code == 0
    lines = [re.sub(r"  +", "|", line.strip()) for line in ran.out.splitlines()]
    assert any(
        re.match(r"12 x 8 h100-sxm, cx7-400\|\d\|qm9700\|16\|8 x 400G\|4 x 400G\|2 qm9700 spines", at) for at in lines
    )
    assert any(
        re.match(r"20 x 8 a100-sxm, cx7-200\|\d\|qm9700\|24\|8 x 200G\|4 x 400G\|2 qm9700 spines", at) for at in lines
    )
    assert any(at.startswith("tiers|two tiers: 40 leaf, ") for at in lines)


def test_management_ports_are_refused(run: Run, instance: Callable[..., Path]) -> None:
    cluster = {"servers": SERVERS, "management_ports": 2}
    ran = run("design", instance(cluster=cluster), "--families", "mixed-clos")
    assert ran.code == 3
    assert "found the family mixed-clos with 2 management ports; allowed: no cluster.management_ports" in ran.err


def test_what_cannot_be_has_exit_code_4(run: Run, instance: Callable[..., Path]) -> None:
    """A leaf of 32 ports of 400 Gb/s has no uplink left; the pinned leaf is named."""
    search = {"switches": ["qm9700"], "leaf": {"down": 64, "up": 8}}
    ran = run("design", instance(search=search), "--families", "mixed-clos")
    assert ran.code == 4
    assert "search.leaf: 64 ports down, 8 up" in ran.err
