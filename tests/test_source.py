import os
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, model_validator

from designer.errors import CatalogError, InputError, InstanceError, Problem
from designer.plain_yaml import MAX_DEPTH, MAX_NODES, Reader
from designer.source import Source, read_yaml, validate


def read(tmp_path: Path, text: str | bytes) -> Source:
    path = tmp_path / "input.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path, InstanceError)


def problems(tmp_path: Path, text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(InstanceError) as caught:
        read(tmp_path, text)
    assert all(problem.file == str(tmp_path / "input.yaml") for problem in caught.value.problems)
    return caught.value.problems


def problem(tmp_path: Path, text: str | bytes) -> Problem:
    found = problems(tmp_path, text)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e9", 1e9),
        ("1.5e9", 1.5e9),
        ("1E+9", 1e9),
        ("-2.5", -2.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1024", 1024),
        ("+7", 7),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("TRUE", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("2024-08", "2024-08"),
        ("2024-08-01", "2024-08-01"),
        ("2024-08-01 10:00:00", "2024-08-01 10:00:00"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("'1e9'", "1e9"),
        ("!!str 12", "12"),
        ("!!float 12", 12.0),
        ("! 12", "12"),
        ("=", "="),
    ],
)
def test_scalars_are_those_of_yaml_1_2(tmp_path: Path, text: str, value: object) -> None:
    data = read(tmp_path, f"a: {text}\n").data
    assert data == {"a": value}
    assert isinstance(data, dict)
    assert type(data["a"]) is type(value)


def test_infinity_and_nan_are_read_as_floats(tmp_path: Path) -> None:
    data = read(tmp_path, "[.inf, -.INF, .nan, 1e999]").data
    assert str(data) == "[inf, -inf, nan, inf]"


def test_json_is_read(tmp_path: Path) -> None:
    text = '{\n\t"hidden_size":16384,\n\t"archs": ["A\\/B"], "eps": 1e-05, "tie": false, "x": null}\n'
    source = read(tmp_path, text)
    assert source.data == {"hidden_size": 16384, "archs": ["A/B"], "eps": 1e-05, "tie": False, "x": None}
    assert source.line(("archs", 0)) == 3


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbfa: 1").data == {"a": 1}


def test_every_field_has_the_line_of_its_key(tmp_path: Path) -> None:
    source = read(tmp_path, "a:\n  b:\n  - 1\n  -\n    c: 2\n3: x\n")
    assert [source.line(place) for place in [(), ("a",), ("a", "b"), ("a", "b", 0), ("a", "b", 1)]] == [1, 1, 2, 3, 5]
    assert source.line(("a", "b", 1, "c")) == 5
    assert source.line((3,)) == 6
    assert source.line(("a", "b", 1, "missing", "deeper")) == 5
    assert Source("x", {}).line(("a",)) is None


def test_aliases_and_merge_keys_give_the_values_they_name(tmp_path: Path) -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\none: *b\ntwo:\n  y: 5\n  <<: [*b, *m]\n'<<': text\n"
    source = read(tmp_path, text)
    assert source.data == {
        "base": {"x": 1, "y": 2},
        "more": {"y": 3, "z": 4},
        "one": {"x": 1, "y": 2},
        "two": {"y": 5, "x": 1, "z": 4},
        "<<": "text",
    }
    assert source.line(("one",)) == 3
    assert source.line(("two", "z")) == 2


def test_a_merge_of_something_else_is_refused(tmp_path: Path) -> None:
    assert problem(tmp_path, "a:\n  <<: 3\n").line == 2


def test_all_duplicate_keys_are_reported_with_both_lines(tmp_path: Path) -> None:
    found = problems(tmp_path, "a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert [(entry.line, entry.field) for entry in found] == [(2, "b.c"), (3, "a")]
    assert "first in line 1" in found[1].found


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!python/name:os.system", "!!timestamp", "!mine"])
def test_tags_that_build_objects_are_refused(tmp_path: Path, tag: str) -> None:
    entry = problem(tmp_path, f"a: 1\nb:\n  - {tag} ls\n")
    assert (entry.line, entry.field) == (3, "b[0]")
    assert tag in entry.found


def test_a_python_object_in_a_mapping_is_refused(tmp_path: Path) -> None:
    assert "!!python/object/apply:os.system" in problem(tmp_path, "!!python/object/apply:os.system [ls]").found


@pytest.mark.parametrize("text", ["!!int x", "!!bool 3", "!!null x"])
def test_a_tag_that_does_not_fit_is_refused(tmp_path: Path, text: str) -> None:
    assert problem(tmp_path, text).allowed == "a value that its tag describes"


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("", None, "an empty file"),
        ("# nothing\n", None, "an empty file"),
        ("a: 1\nb: [1, 2\n", 3, "column"),
        ("a: b: c\n", 1, "mapping values are not allowed"),
        ("a: 1\nb: \x00\n", 2, "control character"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        (b"a: 1\nb: \xff\n", 2, "0xff, which is not UTF-8"),
        ("a: *nowhere\n", 1, "unknown alias *nowhere"),
        ("a: &x [*x]\n", 1, "inside the value it names"),
        ("a: 1\n? [b]\n: 2\n", 2, "the key ['b']"),
        ("a: 1\nnull: 2\n", 2, "the key None"),
        ("a: " + "9" * 400, 1, "99999"),
        ("a: " + "9" * 100_000, 1, "99999"),
        ("a: 9223372036854775808", 1, "9223372036854775808"),
    ],
)
def test_broken_files_are_refused_in_plain_words(
    tmp_path: Path, text: str | bytes, line: int | None, found: str
) -> None:
    entry = problem(tmp_path, text)
    assert entry.line == line
    assert found in entry.found
    assert len(str(entry.found)) < 200


def test_a_tab_as_indentation_gets_advice(tmp_path: Path) -> None:
    assert "spaces" in problem(tmp_path, "a:\n\tb: 1\n").allowed


@pytest.mark.parametrize(
    ("text", "most_events"),
    [
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(8)),
            200,
        ),
        ("[" * 100_000, MAX_DEPTH + 5),
        ("- " * 100_000, MAX_DEPTH + 5),
        ("{a: " * 50_000, 2 * MAX_DEPTH + 5),
        ("a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40, 200),
        ("[" + "1," * 300_000 + "]", MAX_NODES + 5),
        ("".join(f"k{i}: 1\n" for i in range(150_000)) * 2, MAX_NODES + 5),
    ],
    ids=["laughs", "brackets", "dashes", "braces", "deep alias", "many", "many duplicates"],
)
def test_hostile_files_are_left_as_soon_as_a_limit_is_exceeded(
    tmp_path: Path, text: str, most_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is counted in parser events taken in, not in seconds."""
    taken = 0
    take = Reader.take

    def counted(reader: Reader, event: object) -> None:
        nonlocal taken
        taken += 1
        take(reader, event)

    monkeypatch.setattr(Reader, "take", counted)
    found = problems(tmp_path, text)
    assert taken <= most_events
    assert len(found) <= 100
    assert "more than" in found[-1].found or "second time" in found[-1].found


def test_a_hundred_megabytes_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("the file was opened"))
    with pytest.raises(InputError, match="a file of 100 MiB"):
        read_yaml(path)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("a: 1")
    for path, found in [
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "a device or pipe"),
        (Path("/dev/zero"), "a device or pipe"),
        (tmp_path / "none.yaml", "no such file"),
        (tmp_path / "file" / "x", "leads through a file"),
        ("a\0b", "character that no file name"),
        (tmp_path / ("n" * 300), "cannot be read"),
    ]:
        with pytest.raises(CatalogError, match=found):
            read_yaml(path, CatalogError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    with pytest.raises(InputError, match="without permission"):
        read_yaml(path)


@given(st.binary(max_size=200))
def test_any_bytes_give_data_or_problems(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.yaml"
    path.write_bytes(content)
    try:
        read_yaml(path)
    except InputError as error:
        assert error.problems  # noqa: PT017 - either outcome is right, an uncaught error is not


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Objective(Enum):
    CAPEX = "capex"
    TCO = "tco"


class Parallelism(Strict):
    tp: int = Field(default=1, ge=1, le=64)
    share: float = Field(default=0.5, gt=0)


class Sizes(Strict):
    layers: int
    hidden: int


class FromFile(Strict):
    config: str


class Job(Strict):
    model: str | Sizes | FromFile
    parallelism: Parallelism = Parallelism()
    batch: int


class Ring(Strict):
    kind: Literal["ring"]
    size: Annotated[int, Field(ge=2)]


class Mesh(Strict):
    kind: Literal["mesh"]


class Instance(Strict):
    workload: list[Job] = Field(default=[], min_length=1)
    objective: Literal["capex", "tco"] = "capex"
    other: Objective = Objective.CAPEX
    gpus: Annotated[int, Field(ge=1)] | None = None
    floors: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    flag: bool = False
    shape: Annotated[Ring | Mesh, Field(discriminator="kind")] | None = None
    budget: float | Literal["any"] = "any"

    @model_validator(mode="after")
    def _check(self) -> "Instance":
        if self.gpus == 13:
            raise ValueError("a number of GPUs other than 13")
        return self


def findings(tmp_path: Path, text: str) -> list[tuple[int | None, str, str, str]]:
    with pytest.raises(InstanceError) as caught:
        validate(Instance, read(tmp_path, text), InstanceError)
    return [(entry.line, entry.field, entry.found, entry.allowed) for entry in caught.value.problems]


def test_a_right_file_becomes_a_model(tmp_path: Path) -> None:
    text = "gpus: 1e3\nworkload: [{model: gpt, batch: 3, parallelism: {tp: 8}}]\nfloors: {dp: 1}\nobjective: tco\n"
    instance = validate(Instance, read(tmp_path, text), InstanceError)
    assert instance.gpus == 1000
    assert instance.workload[0].parallelism.tp == 8


def test_all_problems_come_at_once_with_their_lines(tmp_path: Path) -> None:
    text = "gpu: 4\nobjective: capx\nworkload:\n- model: gpt\n  parallelism:\n    tp: 0\n    share: x\nother: tcoo\n"
    assert findings(tmp_path, text) == [
        (
            1,
            "gpu",
            "the unknown field 'gpu'",
            f"one of the known fields: {', '.join(Instance.model_fields)}; did you mean 'gpus'?",
        ),
        (2, "objective", "'capx'", "one of: capex, tco; did you mean 'capex'?"),
        (4, "workload[0].batch", "nothing", "a value (the field is required)"),
        (6, "workload[0].parallelism.tp", "0", "a whole number >= 1 and <= 64"),
        (7, "workload[0].parallelism.share", "'x'", "a number > 0"),
        (8, "other", "'tcoo'", "one of: capex, tco; did you mean 'tco'?"),
    ]


@pytest.mark.parametrize(
    ("text", "field", "found", "allowed"),
    [
        ("gpus: 2.5", "gpus", "2.5", "a whole number >= 1"),
        ("gpus: many", "gpus", "'many'", "a whole number >= 1"),
        ("gpus: -3", "gpus", "-3", "a whole number >= 1"),
        ("gpus: true", "gpus", "True", "a whole number"),
        ("gpus: .inf", "gpus", "inf", "a finite number"),
        ("gpus: 13", "", "{'gpus': 13}", "a number of GPUs other than 13"),
        ("floors: {dp: .nan}", "floors.dp", "nan", "a finite number"),
        ("floors: {dp: 1.5}", "floors.dp", "1.5", "a number >= 0 and <= 1"),
        ("floors: [1]", "floors", "[1]", "a mapping of fields"),
        ("flag: maybe", "flag", "'maybe'", "true or false"),
        ("workload: {}", "workload", "{}", "a list"),
        ("workload: []", "workload", "[]", "at least 1 entries"),
        ("[1, 2]", "", "[1, 2]", "a mapping of fields"),
        ("workload: [{batch: 1, model: 3}]", "workload[0].model", "3", "a text or a mapping of fields"),
        ("workload: [{batch: 1, model: {config: 3}}]", "workload[0].model.config", "3", "a text"),
        (
            "workload: [{batch: 1, model: {layers: 3}}]",
            "workload[0].model.hidden",
            "nothing",
            "a value (the field is required)",
        ),
        (
            "workload: [{batch: 1, model: {layers: 3, hidden: 4, hiden: 5}}]",
            "workload[0].model.hiden",
            "the unknown field 'hiden'",
            "one of the known fields: layers, hidden; did you mean 'hidden'?",
        ),
        ("shape: {kind: star}", "shape", "{'kind': 'star'}", "one of: ring, mesh"),
        ("shape: {kind: ring, size: 1}", "shape.size", "1", "a whole number >= 2"),
        ("shape: {size: 1}", "shape", "{'size': 1}", "a mapping with the field 'kind'"),
        ("budget: none", "budget", "'none'", "a number or one of: any"),
    ],
)
def test_each_problem_is_told_in_plain_words(tmp_path: Path, text: str, field: str, found: str, allowed: str) -> None:
    assert findings(tmp_path, text) == [(1, field, found, allowed)]


def test_long_values_are_shortened(tmp_path: Path) -> None:
    [(_, _, found, _)] = findings(tmp_path, "gpus: " + "x" * 100_000)
    assert len(found) == 60
    assert found.endswith("…")


def test_a_file_full_of_problems_is_told_briefly(tmp_path: Path) -> None:
    found = findings(tmp_path, "workload: [" + "3, " * 50_000 + "]")
    assert len(found) == 101
    assert found[-1][2] == "49900 more problems"
