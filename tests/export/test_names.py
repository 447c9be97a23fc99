"""Patterns of names: what they take, what they leave out, and what they refuse."""

import pytest

from designer.export.names import FIELDS, Names, Pattern, PatternError, names_from_options

VALUES = {"index": "07", "rail": "3", "plane": "0", "pod": None, "fabric": None}


def test_a_part_in_brackets_is_left_out_where_a_field_of_it_has_no_value() -> None:
    pattern = Names().pattern("leaf")
    assert pattern.render(VALUES) == "rail3-plane0-leaf07"
    assert pattern.render({**VALUES, "rail": None, "fabric": "1", "pod": "2"}) == "fabric1-plane0-pod2-leaf07"
    assert pattern.render({**VALUES, "rail": None, "plane": None}) == "leaf07"


def test_ports_of_a_cage_that_is_not_split_have_no_lane() -> None:
    pattern = Names().pattern("port")
    assert pattern.render({"cage": "12", "lane": "1", "split": "2"}) == "swp12s1"
    assert pattern.render({"cage": "12", "lane": None, "split": None}) == "swp12"
    assert Pattern("port", "{cage}/{split}").render({"cage": "12", "lane": "1", "split": "2"}) == "12/2"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("leaf", "KIND=PATTERN"),
        ("tree=x{index}", "kinds: server, management, leaf"),
        ("leaf=leaf", "would not differ"),
        ("leaf={row}{index}", "unknown field 'row'"),
        ("port=swp{cage}", "would not differ"),
        ("nic=rail{rail}", "would not differ"),
        ("leaf={index}[", "'['"),
        ("leaf={index}[]", "'['"),
        ("leaf={index} x", "' '"),
        ('leaf={index}"', "'\"'"),
        ("leaf={index.__class__}", "'{'"),
        ("leaf={index:02d}", "'{'"),
        ("leaf=[[{rail}]]{index}", "'['"),
    ],
)
def test_patterns_that_cannot_be_used_are_refused_in_words(option: str, words: str) -> None:
    with pytest.raises(PatternError) as caught:
        names_from_options([option])
    assert words in str(caught.value)


def test_a_kind_has_one_pattern_and_the_others_stay() -> None:
    names = names_from_options(["leaf=l{index}", "port=p{cage}[.{lane}]"])
    assert (names.leaf, names.port, names.spine) == ("l{index}", "p{cage}[.{lane}]", Names().spine)
    with pytest.raises(PatternError, match="two patterns"):
        names_from_options(["leaf=l{index}", "leaf=x{index}"])


def test_a_field_without_a_value_outside_brackets_is_refused() -> None:
    with pytest.raises(PatternError, match="pod has no value"):
        Pattern("leaf", "pod{pod}-leaf{index}").render(VALUES)


def test_every_default_is_a_pattern_of_its_kind() -> None:
    for kind in FIELDS:
        assert Names().pattern(kind).parts
