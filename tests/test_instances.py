"""The shipped instances: they load, their recorded designs hold, published ones come to the published counts."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.best_known import (
    INSTANCES,
    LIMIT_S,
    MARKS,
    Record,
    families,
    instance_files,
    read_records,
    record_of,
    with_table,
)
from designer import Design, design, load_instance
from designer.instance.instance import Instance
from designer.search import Options
from designer.workload.phases import derive_traffic
from tests.reference.explicit import step_flows
from tests.reference.flow_lp import graph_of, line_rate_gbps, throughput

FILES = [path for family in families() for path in instance_files(family)]
OPEN = ("layout",)  # families whose bounds may stay below the best known cost
OWNED = ("rewire",)  # families where nothing may have to be bought
DIRECT = ("direct-14", "groups-32", "two-demands-32", "used-12")
MOST_GPUS = 40_000  # larger ones are left to the benchmarks
MOST_PLAIN_GPUS = 256  # up to here networks without a shape are held to a plain LP
# Certificates that take minutes, and those of cases that a smaller one stands for: left to the benchmarks, too.
LEFT_OUT = (
    "1024-moe-2x200",
    "16384-dense-1x400",
    "16384-dense-2x200",
    "16384-moe-2x200",
    "llama3-405b-16384-long",
    "pods-24576",
)

# RA-11333-001 V11, Tables 3 and 4: leaf, spine, core, links host to leaf, leaf to spine, spine to core
SUPERPOD = {
    "dgx-h100-su01": (8, 4, 0, 252, 256, 0),
    "dgx-h100-su02": (16, 8, 0, 508, 512, 0),
    "dgx-h100-su03": (24, 16, 0, 764, 768, 0),
    "dgx-h100-su04": (32, 16, 0, 1020, 1024, 0),
    "dgx-h100-su08": (64, 32, 0, 2048, 2048, 0),
    "dgx-h100-su16": (128, 128, 64, 4096, 4096, 4096),
    "dgx-h100-su32": (256, 256, 128, 8192, 8192, 8192),
    "dgx-h100-su64": (512, 512, 256, 16384, 16384, 16384),
}
# arXiv 2307.12169v1, Table 2: switches and transceivers of rail-only, by GPUs and radix
RAIL_ONLY = {
    (32768, 32): (3072, 131072),
    (32768, 64): (1536, 131072),
    (32768, 128): (256, 65536),
    (32768, 256): (128, 65536),
    (65536, 64): (3072, 262144),
    (65536, 128): (1536, 262144),
    (65536, 256): (256, 131072),
}


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_every_family_has_instances_a_readme_and_records_of_exactly_its_instances() -> None:
    for family in families():
        names = [path.stem for path in instance_files(family)]
        assert names, family
        assert list(read_records(family)) == names
    assert len(instance_files("small")) >= 10


@pytest.mark.parametrize("family", families())
def test_the_table_in_the_readme_is_that_of_the_records(family: str) -> None:
    text = (INSTANCES / family / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {family}\n")
    assert all(text.count(mark) == 1 for mark in MARKS)
    assert with_table(text, read_records(family)) == text


@pytest.mark.parametrize("family", families())
def test_records_are_proven_and_say_the_same_things(family: str) -> None:
    records = read_records(family)
    first = next(iter(records.values()))
    for name, record in records.items():
        assert record.keys() == first.keys(), name
        assert record["counts"].keys() == first["counts"].keys(), name
        assert record["cost_usd"] >= record["lower_bound_usd"] >= (0 if family in OWNED else 1), name
        proven = record["cost_usd"] == record["lower_bound_usd"]
        assert record["status"] == ("optimal" if proven else "feasible"), name
        assert proven or family in OPEN, name


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_an_instance_loads_is_named_as_its_file_and_opens_with_a_comment(path: Path) -> None:
    instance = load_instance(path)
    assert instance.name == path.stem
    assert path.read_text(encoding="utf-8").startswith("# ")


def _without(record: Record, names: set[str]) -> Record:
    return {name: value for name, value in record.items() if name not in names}


def _short_of_the_plain_lp(result: Design, instance: Instance) -> list[str]:
    """Steps that a network does not carry GPU by GPU and link by link, `any` as two permutations."""
    traffic, graph, rng, short = derive_traffic(instance), graph_of(result.fabric), np.random.default_rng(0), []
    for phase in traffic.network_phases:
        line = phase.floor * line_rate_gbps(result.fabric, phase)
        for step in phase.steps:
            fixed, worst = step_flows(traffic, phase, step)
            for _ in range(2 if worst else 1):
                rates = {(source, target): line * rate for source, target, rate in fixed}
                for rate, members in worst:
                    pairs = zip(members, rng.permutation(members).tolist(), strict=True)
                    rates |= {pair: line * rate for pair in pairs if pair[0] != pair[1]}
                if throughput(graph, rates) < 1 - 1e-6:
                    short.append(f"{phase.name} {step.name}")
    return short


def _is_run(path: Path) -> bool:
    return path.stem not in LEFT_OUT and load_instance(path).cluster.gpus <= MOST_GPUS


@pytest.mark.parametrize("path", [path for path in FILES if _is_run(path)], ids=_name)
def test_the_design_is_proven_and_the_recorded_one(path: Path) -> None:
    """Its certificate holds; a network without a shape, which nothing published speaks for, is held to a plain LP."""
    instance = load_instance(path)
    result = design(instance, Options(time_limit_s=LIMIT_S))
    assert result.certificate is not None
    assert result.certificate.met
    known, left_out = read_records(path.parent.name)[path.stem], {"version"}
    if result.shape is None:
        left_out.add("counts")  # networks of the same cost differ
    assert _without(record_of(result), left_out) == _without(known, left_out)
    if instance.cluster.gpus > MOST_PLAIN_GPUS:
        return
    assert (result.shape is None) == (path.parent.name in ("existing", "irregular") or path.stem in DIRECT)
    if result.shape is None:
        assert _short_of_the_plain_lp(result, instance) == []


def test_atop_designs_need_no_more_switches_than_the_best_row_of_its_tables() -> None:
    """SIGCOMM 2025, Tables 6 to 8: rail-only with NICs of one port, ZCube with NICs of two."""
    for name, record in read_records("atop").items():
        gpus, _, nic = name.split("-")
        rail_only, zcube = {"1024": (96, 64), "4096": (192, 128), "16384": (384, 256)}[gpus]
        switches = sum(record["counts"][tier] for tier in ("leaf", "spine", "core"))
        assert switches <= (rail_only if nic == "1x400" else zcube), name


def test_superpod_designs_have_the_vendors_counts() -> None:
    names = ("leaf", "spine", "core", "endpoint_links", "leaf_spine_links", "spine_core_links")
    found = {name: tuple(record["counts"][key] for key in names) for name, record in read_records("superpod").items()}
    assert found == SUPERPOD


def test_rail_only_designs_have_the_papers_counts_and_cost() -> None:
    records = read_records("rail-only")
    assert {name for name in records if name.startswith("hb256-")} == {f"hb256-{n}-radix{r}" for n, r in RAIL_ONLY}
    for (gpus, radix), (switches, transceivers) in RAIL_ONLY.items():
        record = records[f"hb256-{gpus}-radix{radix}"]
        counts = record["counts"]
        links = counts["endpoint_links"] + counts["leaf_spine_links"]
        assert (counts["leaf"] + counts["spine"] + counts["core"], 2 * links) == (switches, transceivers)
        assert record["cost_usd"] == 748 * switches * radix + 374 * transceivers
