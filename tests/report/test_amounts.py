"""Numbers in words."""

import numpy as np
import pytest

from designer.report.alike import Bundles
from designer.report.amounts import bundle_words, count, link_words, listing, runs, serves


def test_nouns_follow_their_number() -> None:
    assert [count(1, "leaf"), count(2, "leaf"), count(1200, "spine"), count(0, "switch")] == [
        "1 leaf",
        "2 leaves",
        "1,200 spines",
        "0 switches",
    ]


def test_lists_and_links() -> None:
    assert [listing(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert link_words({200: 4, 400: 1000}) == "1,000 × 400 Gb/s and 4 × 200 Gb/s"


def test_runs_of_numbers() -> None:
    assert runs([]) == ""
    assert runs([0, 1, 2, 5, 7, 8]) == "0–2, 5, 7–8"
    assert runs(range(0, 20, 2), most=3) == "0, 2, 4 and 7 more runs"


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ([], "no GPUs"),
        ([0, 4, 8], "rail 0 of domains 0–2"),
        ([1, 2, 5, 6], "rails 1–2 of domains 0–1"),
        ([0, 1, 2, 3, 8, 9, 10, 11], "all rails of domains 0, 2"),
        ([0, 1, 5], "rails 0–1: GPUs 0–1, 5"),
        ([0, 1, 2, 7], "GPUs 0–2, 7"),
    ],
)
def test_gpus_are_told_by_rails_and_domains_where_these_are_whole(gpus: list[int], words: str) -> None:
    assert serves(np.array(gpus, dtype=np.int64), 4, 4) == words


def test_domains_of_several_gpus_to_a_rail() -> None:
    """Domains of 4 on 2 rails have two GPUs on each; with one rail GPUs go by their numbers."""
    assert serves(np.array([0, 2, 4, 6]), 2, 4) == "rail 0 of domains 0–1"
    assert serves(np.array([0, 4]), 2, 4) == "rail 0: GPUs 0, 4"
    assert serves(np.array([0, 1]), 1, 4) == "GPUs 0–1"


def test_bundles_in_words() -> None:
    even = Bundles("leaf", 100, 8, 4, 2, 2)
    assert bundle_words([even], "leaf", 4) == "2 links to each leaf"
    assert bundle_words([even], "leaf", 8) == "2 links to each of 4 leaves"
    assert bundle_words([even, Bundles("leaf", 100, 3, 3, 1, 1)], "leaf", 8) == "1 to 2 links to a leaf"
