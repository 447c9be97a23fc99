"""Cut functions: closed forms, and an endpoint-by-endpoint count on random traffic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.workload.cuts import CutFunction, Layout
from designer.workload.traffic import Component, Phase, Step, Traffic
from tests.reference.explicit import block_rates


def phase(pattern: str, stride: int, size: int, members: int, by: int = 0, **fields) -> Phase:
    step = Step(pattern, (Component(pattern, stride, size, by, 1.0),), 1.0)
    values = {"floor": 1.0, "across": "rail", "first_gpu": 0, "gpus": members, **fields}
    return Phase(pattern, "job", (step,), values["floor"], 0.0, values["across"], values["first_gpu"], values["gpus"])


def one_rail(*phases: Phase, gpus: int = 24) -> CutFunction:
    return CutFunction(Traffic(gpus, 1, 1, phases), Layout(mixed=False, rails=1, per_rail=gpus))


@pytest.mark.parametrize("down", [1, 2, 3, 5, 7, 8, 11, 12, 24])
class TestClosedForms:
    """24 endpoints of one rail; X(n) of DESIGN.md section 5."""

    def test_all_to_all(self, down):
        """Blocks of n endpoints of a group of 24 send n(24-n)/23; whole groups nothing."""
        leaf = one_rail(phase("all-to-all", 1, 24, 24)).leaf(down)
        assert leaf == pytest.approx(max(n * (24 - n) / 23 for n in (down, 24 % down)))

    def test_any(self, down):
        """The worst permutation sends min(n, 24-n)."""
        assert one_rail(phase("any", 1, 24, 24)).leaf(down) == max(min(n, 24 - n) for n in (down, 24 % down))

    def test_ring(self, down):
        """A ring leaves a block once in its direction; a whole ring never."""
        assert one_rail(phase("shift", 1, 24, 24, by=1)).leaf(down) == (0 if down == 24 else 1)

    @pytest.mark.parametrize("by", [2, 3, 5])
    def test_shift(self, down, by):
        """A shift by k sends min(n, k) out of a block of up to half the endpoints."""
        if down <= 12:
            assert one_rail(phase("shift", 1, 24, 24, by=by)).leaf(down) == min(down, by)

    @pytest.mark.parametrize("pattern", ["all-to-all", "any", "shift", "exchange"])
    def test_whole_groups(self, down, pattern):
        """Blocks of whole groups of 1, 2 .. endpoints send nothing."""
        size = 4 if pattern == "exchange" else down
        if down % size == 0 and 24 % size == 0:
            assert one_rail(phase(pattern, 1, size, 24, by=1 % size)).leaf(down) == 0


def test_strided_groups_leave_every_leaf():
    """Groups of 4 endpoints 6 apart: a leaf of 6 holds one of each group and sends all of it."""
    assert one_rail(phase("any", 6, 4, 24)).leaf(6) == 6
    assert one_rail(phase("any", 6, 4, 24)).leaf(12) == 12
    assert one_rail(phase("all-to-all", 6, 4, 24)).leaf(12) == pytest.approx(12 * 2 / 3)


def test_exchange_counts_partners_outside():
    """Partners 4 apart: blocks of 4 send all, blocks of 8 nothing, some block of 6 all."""
    cuts = one_rail(phase("exchange", 1, 8, 24, by=4))
    assert [cuts.leaf(down) for down in (4, 8)] == [4, 0]
    assert cuts.leaf(6) == 6  # positions 6..11 have their partners at 2, 3 and 12..15


def test_floors_scale():
    """A floor of 0.25 asks for a quarter of the rate, and the dearest phase of those that take turns counts."""
    cuts = one_rail(phase("any", 1, 24, 24, floor=0.25), phase("shift", 1, 24, 24, by=1))
    assert cuts.leaf(8) == 2
    assert cuts.leaf(2) == 1


def test_separate_jobs_add_up_and_shared_gpus_take_turns():
    """Two jobs on one leaf at once send the sum; two phases of the same GPUs the larger."""
    first = phase("any", 1, 12, 12)
    second = phase("any", 1, 12, 12, first_gpu=12)
    assert one_rail(first, second).leaf(9) == 3 + 6  # positions 9..17
    assert one_rail(first, phase("shift", 1, 12, 12, by=3)).leaf(9) == 3
    chain = phase("any", 1, 4, 4, first_gpu=10)  # shares GPUs with both, so all three take turns
    assert one_rail(first, chain, second).leaf(9) == 6


def test_traffic_from_rail_to_rail_needs_joined_rails():
    """A fabric of some of the rails cannot carry it: that is refused, not counted as nothing."""
    traffic = Traffic(16, 4, 4, (phase("any", 1, 16, 16, across="cluster"),))
    with pytest.raises(ValueError, match="join all rails"):
        CutFunction(traffic, Layout(mixed=False, rails=2, per_rail=4))


@st.composite
def traffics(draw):
    """Random periodic demands on up to four rails, jobs with offsets, across rails or on one."""
    rails = draw(st.sampled_from([1, 2, 3, 4]))
    hb_domain = rails * draw(st.sampled_from([1, 1, 2]))
    domains = draw(st.integers(2, 16))
    gpus = domains * hb_domain
    phases = []
    for number in range(draw(st.integers(1, 3))):
        across = draw(st.sampled_from(["rail", "rail", "cluster"]))
        unit = hb_domain if across == "rail" else 1
        first = draw(st.integers(0, domains - 1))
        members = draw(st.integers(1, domains - first)) * hb_domain // unit
        steps = []
        for _ in range(draw(st.integers(1, 2))):
            parts = []
            for rate in draw(st.sampled_from([(1.0,), (0.5, 0.5), (0.75, 0.25)])):
                pattern = draw(st.sampled_from(["any", "all-to-all", "shift", "exchange"]))
                sizes = [size for size in range(1, members + 1) if members % size == 0]
                if pattern == "exchange":
                    sizes = [size for size in sizes if size & (size - 1) == 0]
                size = draw(st.sampled_from(sizes))
                rest = members // size
                stride = draw(st.sampled_from([value for value in range(1, rest + 1) if rest % value == 0]))
                by = draw(st.sampled_from([1 << bit for bit in range((size - 1).bit_length())] or [0]))
                if pattern == "shift":
                    by = draw(st.integers(0, size - 1))
                if size == 1:
                    pattern = "any"
                parts.append(Component(pattern, stride, size, by, rate))
            steps.append(Step("step", tuple(parts), 1.0))
        floor = draw(st.sampled_from([1.0, 0.5, 0.3]))
        first_gpu = first * hb_domain
        phases.append(Phase(f"p{number}", "job", tuple(steps), floor, 0.0, across, first_gpu, members * unit))
    return Traffic(gpus, hb_domain, rails, tuple(phases))


def leaf_of_gpus(traffic: Traffic, layout: Layout, down: int) -> list[dict[int, int]]:
    """Leaf of every GPU in each fabric, by walking over the GPUs."""
    fabrics: dict[int, dict[int, int]] = {}
    for gpu in range(traffic.gpus):
        if layout.mixed:
            fabrics.setdefault(0, {})[gpu] = gpu // down
            continue
        number, rail = divmod(gpu % traffic.rails, layout.rails)
        position = gpu // traffic.rails
        leaf = 0
        for before in range(rail):  # leaves of the rails before this one, those that share one counted once
            leaf += -(-layout.per_rail // down) if down < layout.per_rail else 0
            leaf += down >= layout.per_rail and (before + 1) % (down // layout.per_rail) == 0
        leaf += position // down if down < layout.per_rail else 0
        fabrics.setdefault(number, {})[gpu] = leaf
    return list(fabrics.values())


@settings(derandomize=True, max_examples=250, deadline=None, database=None)
@given(traffic=traffics(), data=st.data())
def test_cuts_equal_an_explicit_count(traffic, data):
    """What leaves every leaf and pod, by closed form and by counting pair by pair, is the same."""
    divisors = [rails for rails in range(1, traffic.rails + 1) if traffic.rails % rails == 0]
    layouts = [Layout(mixed=False, rails=rails, per_rail=traffic.gpus // traffic.rails) for rails in divisors]
    if traffic.needs_joined_rails():
        layouts = layouts[-1:]
    layouts.append(Layout(mixed=True, rails=traffic.rails, per_rail=traffic.gpus // traffic.rails))
    layout = data.draw(st.sampled_from(layouts))
    down = data.draw(st.integers(1, layout.endpoints))
    leaves = layout.leaves(down)
    widths = np.arange(1, min(leaves, 6) + 1)
    cuts = CutFunction(traffic, layout)
    fabrics = leaf_of_gpus(traffic, layout, down)
    assert all(set(leaf_of.values()) == set(range(leaves)) for leaf_of in fabrics)
    expected = [
        max(max(block_rates(traffic, {gpu: leaf // width for gpu, leaf in home.items()}).values()) for home in fabrics)
        for width in widths.tolist()
    ]
    assert cuts.pods(down, widths) == pytest.approx(expected)
    assert cuts.leaf(down) == pytest.approx(expected[0])


@settings(derandomize=True, max_examples=100, deadline=None, database=None)
@given(traffic=traffics(), down=st.integers(1, 20))
def test_leaf_sizes_cover_every_endpoint(traffic, down):
    """Leaves hold all endpoints, none more than it has ports for, as many as `leaves` says."""
    for layout in (
        Layout(mixed=False, rails=traffic.rails, per_rail=traffic.gpus // traffic.rails),
        Layout(mixed=True, rails=traffic.rails, per_rail=traffic.gpus // traffic.rails),
    ):
        sizes = layout.leaf_sizes(down)
        assert len(sizes) == layout.leaves(down)
        assert int(sizes.sum()) == traffic.gpus
        assert int(sizes.max()) <= down
        counted = [0] * len(sizes)
        for leaf in leaf_of_gpus(traffic, layout, down)[0].values():
            counted[leaf] += 1
        assert counted == sizes.tolist()
