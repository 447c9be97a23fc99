"""Pairs and bytes between GPUs against plain enumeration."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.instance.load import instance_from_document
from designer.workload.heatmap import (
    Exchange,
    bytes_between,
    count_pairs,
    counted_phases,
    exchanges,
    heat_map,
    shares,
)
from designer.workload.phases import derive_traffic


def sends(item: Exchange, any_pairs: bool = False) -> dict[tuple[int, int], float]:
    """Bytes from GPU to GPU, one group and one member at a time."""
    found: dict[tuple[int, int], float] = {}
    period = item.stride * item.size
    for base in range(0, item.gpus, period):
        for residue in range(item.stride):
            members = [item.first_gpu + base + residue + digit * item.stride for digit in range(item.size)]
            targets: dict[int, list[int]] = {}
            for digit, gpu in enumerate(members):
                if item.pattern == "all-to-all" or (item.pattern == "any" and any_pairs):
                    targets[gpu] = [other for other in members if other != gpu]
                elif item.pattern == "chain":
                    targets[gpu] = [members[digit + item.by]] if 0 <= digit + item.by < item.size else []
                elif item.pattern == "exchange":
                    targets[gpu] = [members[digit ^ item.by]]
                else:
                    by = 1 if item.pattern == "any" else item.by
                    targets[gpu] = [members[(digit + by) % item.size]]
            count = sum(len(others) for others in targets.values())
            for gpu, others in targets.items():
                for other in others:
                    found[gpu, other] = found.get((gpu, other), 0.0) + item.gpu_bytes * item.size / count
    return {pair: size for pair, size in found.items() if pair[0] != pair[1]}


def table_of(items: list[Exchange], gpus: int) -> np.ndarray:
    """The whole GPU by GPU table."""
    table = np.zeros((gpus, gpus))
    for item in items:
        for pair, size in sends(item).items():
            table[pair] += size
    return table


@st.composite
def random_exchange(draw: st.DrawFn, gpus: int = 48) -> Exchange:
    """An exchange on a part of 48 GPUs."""
    size = draw(st.sampled_from([2, 3, 4, 8]))
    stride = draw(st.sampled_from([1, 2, 3, 6]))
    period = size * stride
    groups = draw(st.integers(1, gpus // period))
    first = draw(st.integers(0, gpus - groups * period))
    pattern = draw(st.sampled_from(["all-to-all", "any", "shift", "chain", *(["exchange"] if size != 3 else [])]))
    by = draw(st.integers(1, size - 1))
    if pattern == "exchange":
        by = 1 << draw(st.integers(0, size.bit_length() - 2))
    if pattern == "chain":
        by = draw(st.sampled_from([1, -1]))
    return Exchange(pattern, stride, size, by, first, groups * period, draw(st.sampled_from([1.0, 2.5])))


@settings(deadline=None, max_examples=100)
@given(st.lists(random_exchange(), max_size=7), st.booleans())
def test_pairs_are_counted_once_each(items: list[Exchange], any_pairs: bool) -> None:
    expected = {frozenset(pair) for item in items for pair in sends(item, any_pairs)}
    count = count_pairs(items, 48, any_pairs=any_pairs)
    assert count.exact
    assert count.exchanging == len(expected)
    assert count.total == 48 * 47 // 2


@settings(deadline=None, max_examples=60)
@given(st.lists(random_exchange(), max_size=4), st.sampled_from([1, 5, 16, 48]))
def test_bins_hold_the_bytes_of_their_pairs(items: list[Exchange], bins: int) -> None:
    width, heat = heat_map(items, 48, bins)
    expected = np.zeros_like(heat)
    for row, column in np.argwhere(whole := table_of(items, 48)):
        expected[row // width, column // width] += whole[row, column]
    assert np.allclose(heat, expected)


def dense(gpus: int, order: str = "tp-cp-ep-dp-pp", **degrees: int) -> dict[str, object]:
    """A job of a small model on `gpus` GPUs."""
    return {
        "name": "job",
        "cluster": {"gpus": gpus, "gpu": "h100-sxm", "nic": "cx7-400"},
        "workload": [
            {
                "model": "gpt3-175b",
                "parallelism": {**degrees, "order": order},
                "global_batch": 16 * degrees.get("dp", 1),
            }
        ],
    }


@pytest.mark.parametrize("order", ["tp-cp-ep-dp-pp", "tp-cp-pp-ep-dp"])
def test_pairs_of_a_job_are_the_rings_of_its_ranks(order: str) -> None:
    """Rings over each dimension, written down rank by rank; a ring of two is one pair."""
    sizes = {"tp": 8, "dp": 4, "pp": 4}
    instance = instance_from_document(dense(128, order, **sizes))
    axes = [name for name in order.split("-") if name in sizes]
    ranks = np.arange(128).reshape([sizes[name] for name in reversed(axes)])
    expected: set[frozenset[int]] = set()
    for axis in range(3):
        following = np.roll(ranks, -1, axis=axis)
        expected |= {frozenset(pair) for pair in zip(ranks.flat, following.flat, strict=True)}
    count = count_pairs(exchanges(instance, derive_traffic(instance)), 128)
    assert count.exchanging == len(expected)


def test_groups_partly_in_a_domain_ring_inside_it_and_on_rails() -> None:
    """TP 4, DP 8: two replicas share a domain, so each DP group is four pairs inside and two rings of four on rails."""
    instance = instance_from_document(dense(32, tp=4, dp=8))
    items = exchanges(instance, derive_traffic(instance))
    tensor = {frozenset((4 * group + i, 4 * group + (i + 1) % 4)) for group in range(8) for i in range(4)}
    inside = {frozenset((8 * domain + i, 8 * domain + i + 4)) for domain in range(4) for i in range(4)}
    rails = {frozenset((8 * domain + i, 8 * ((domain + 1) % 4) + i)) for domain in range(4) for i in range(8)}
    assert count_pairs(items, 32).exchanging == len(tensor | inside | rails)


def test_a_dense_job_on_1024_gpus_leaves_over_99_percent_of_the_pairs_silent() -> None:
    """The sparsity that the rail-only paper reports for dense models."""
    instance = instance_from_document(dense(1024, tp=8, pp=8, dp=16))
    count = count_pairs(exchanges(instance, derive_traffic(instance)), 1024)
    assert count.exchanging == 3 * 1024
    assert count.silent_share > 0.99


def test_bytes_add_up_to_the_phases() -> None:
    instance = instance_from_document(dense(256, tp=4, pp=4, dp=16))
    traffic = derive_traffic(instance)
    table = bytes_between(exchanges(instance, traffic), np.zeros(256, dtype=np.int64), 1)
    expected = sum((phase.nic_bytes + phase.domain_bytes) * phase.gpus for phase in traffic.phases)
    assert table[0, 0] == pytest.approx(expected)
    found = shares(instance, traffic)
    assert found.domain_bytes + found.rail_bytes == pytest.approx(expected)
    assert found.across_rails_bytes == 0


def test_a_mix_counts_its_parts_once() -> None:
    document = dense(256, tp=8, pp=4, dp=8)
    document["workload"][0]["mixes"] = [["dp", "pp"]]  # type: ignore[index]
    instance = instance_from_document(document)
    traffic = derive_traffic(instance)
    assert "dp+pp" in {phase.name for phase in traffic.phases}
    assert {phase.name for phase in counted_phases(instance, traffic)} == {"tp", "dp", "pp"}


def test_all_to_all_over_the_cluster_crosses_rails() -> None:
    document = dense(64, tp=8, dp=8)
    document["workload"] = [{"demand": "all-to-all", "across": "cluster"}]
    instance = instance_from_document(document)
    traffic = derive_traffic(instance)
    items = exchanges(instance, traffic)
    assert count_pairs(items, 64).exchanging == len(list(combinations(range(64), 2)))
    rail = bytes_between(items, np.arange(64) % 8, 8)
    assert np.trace(rail) / rail.sum() == pytest.approx(7 / 63)


def test_many_overlapping_groupings_give_a_bound() -> None:
    """More groupings than inclusion and exclusion can take: the count is an upper bound and says so."""
    items = [Exchange("all-to-all", 1, 2, 0, first, 2, 1.0) for first in range(40)]
    items += [Exchange("all-to-all", stride, 2, 0, 0, 48, 1.0) for stride in (1, 2, 3, 4, 6, 8, 12, 24)]
    items += [Exchange("all-to-all", stride, 3, 0, 0, 48, 1.0) for stride in (1, 2, 4, 8, 16)]
    expected = {frozenset(pair) for item in items for pair in sends(item)}
    count = count_pairs(items, 48)
    assert not count.exact
    assert count.exchanging >= len(expected)
