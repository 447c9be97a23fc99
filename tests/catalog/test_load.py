"""Loading catalogs: layers, errors, and the copy inside a design file."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designer.catalog import catalog_document, catalog_from_document, catalog_records, load_catalog
from designer.catalog.schema import CatalogFile
from designer.errors import CatalogError

SECTIONS = ("switches", "nics", "transceivers", "fibres", "cables", "gpus")
BUILTIN = load_catalog("builtin")
ALL_KEYS = sorted(key for section in SECTIONS for key in getattr(BUILTIN, section))

SWITCH = """\
switches:
  {key}:
    vendor: Example
    model: X1
    protocols: [ethernet]
    cage: osfp
    cages: 8
    cage_gbps: 800
    modes: [{{ports_per_cage: 2, gbps: 400}}]
    power_w: 100
    price: {{usd: 1234.56, source: "https://example.org/list", date: "2025-03"}}
    source: "https://example.org/x1"
"""


@pytest.fixture
def write(tmp_path):
    def write_file(text: str, name: str = "mine.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def problems_of(spec, base=None):
    with pytest.raises(CatalogError) as caught:
        load_catalog(spec, base)
    return caught.value.problems


def test_an_overlay_adds(write):
    """A key that lower layers lack is added; everything else stays."""
    catalog = load_catalog(["builtin", write(SWITCH.format(key="x1"))])
    assert catalog.switches["x1"].price.cents == 123456
    assert catalog.switches["x1"].max_ports == 16
    assert {key: value for key, value in catalog.switches.items() if key != "x1"} == dict(BUILTIN.switches)
    assert catalog.names[0] == "builtin"


def test_an_overlay_replaces_whole_records(write):
    """A record of the same key replaces the lower one whole: no field of it shines through."""
    catalog = load_catalog(["builtin", write(SWITCH.format(key="qm9700"))])
    switch = catalog.switches["qm9700"]
    assert (switch.vendor, switch.cages, len(switch.modes)) == ("Example", 8, 1)


def test_the_last_layer_wins(write):
    """Order decides: with builtin on top its record is back."""
    assert load_catalog([write(SWITCH.format(key="qm9700")), "builtin"]).switches["qm9700"].cages == 32


def test_null_removes(write):
    """A record set to null is removed, and only that one."""
    catalog = load_catalog(["builtin", write("nics: {cx6-200: null}")])
    assert set(BUILTIN.nics) - set(catalog.nics) == {"cx6-200"}


def test_null_of_an_unknown_key_is_an_error(write):
    """Removing what is not there is a typing error, told with its line."""
    (problem,) = problems_of(["builtin", write("nics:\n  cx9-9: null\n")])
    assert (problem.line, problem.field) == (2, "nics.cx9-9")


def test_a_key_of_another_section_is_an_error(write):
    """One key in two sections would make a bill of materials ambiguous."""
    (problem,) = problems_of(["builtin", write(SWITCH.format(key="cx7-400"))])
    assert (problem.line, problem.field) == (2, "switches.cx7-400")
    assert "nics" in problem.found


def test_a_removed_key_is_free_for_another_section(write):
    """Once a layer has removed a component, a later one may use its key for anything."""
    removal = write("nics: {cx7-400: null}", "removal.yaml")
    catalog = load_catalog(["builtin", removal, write(SWITCH.format(key="cx7-400"))])
    assert "cx7-400" in catalog.switches
    assert "cx7-400" not in catalog.nics


def test_paths_are_relative_to_base(write, tmp_path):
    """A relative path starts at the folder given, not at the working directory."""
    write(SWITCH.format(key="x1"))
    assert "x1" in load_catalog("mine.yaml", base=tmp_path).switches


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    """A misspelt catalog name is answered with what would be right."""
    (problem,) = problems_of("buildin", base=tmp_path)
    assert "builtin, paper-2023" in problem.allowed


def test_no_layer_is_an_error():
    """An empty list is not an empty catalog."""
    assert problems_of([])


def test_all_problems_of_all_layers_at_once(write):
    """Every problem is reported in one go, each with file, line and field."""
    text = SWITCH.format(key="x1").replace("cages: 8", "cages: 0").replace("power_w: 100", "power_w: -1")
    first = write(text.replace("vendor", "vender"), "first.yaml")
    second = write(SWITCH.format(key="x2").replace("gbps: 400", "gbps: 200000"), "second.yaml")
    problems = problems_of([first, second])
    places = {(problem.file.rsplit("/", 1)[-1], problem.line, problem.field) for problem in problems}
    assert {
        ("first.yaml", 3, "switches.x1.vender"),
        ("first.yaml", 7, "switches.x1.cages"),
        ("first.yaml", 10, "switches.x1.power_w"),
        ("second.yaml", 9, "switches.x2.modes[0].gbps"),
    } <= places
    assert all(problem.found and problem.allowed for problem in problems)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("usd: 1234.56", "usd: 2e9", "switches.x1.price.usd"),
        ("usd: 1234.56", "usd: .nan", "switches.x1.price.usd"),
        ("usd: 1234.56", "usd: .inf", "switches.x1.price.usd"),
        ("usd: 1234.56", 'usd: "12"', "switches.x1.price.usd"),
        ("usd: 1234.56", "usd: true", "switches.x1.price.usd"),
        ("usd: 1234.56", "usd: -1", "switches.x1.price.usd"),
        (', date: "2025-03"', "", "switches.x1.price"),
        ('source: "https://example.org/list", ', "", "switches.x1.price"),
        ('date: "2025-03"', 'date: "last year"', "switches.x1.price.date"),
        ("cages: 8", "cages: 5000", "switches.x1.cages"),
        ("cages: 8", "cages: 8.5", "switches.x1.cages"),
        ("protocols: [ethernet]", "protocols: [token-ring]", "switches.x1.protocols"),
        ("protocols: [ethernet]", "protocols: []", "switches.x1.protocols"),
        ("power_w: 100", "power_w: no", "switches.x1.power_w"),
        ("    model: X1\n", "", "switches.x1"),
        ("switches:", "switchs:", "switchs"),
    ],
)
def test_a_bad_value_names_its_field(write, old, new, field):
    """A value that cannot be right is refused with its field and line."""
    text = SWITCH.format(key="x1")
    assert old in text
    problems = problems_of(write(text.replace(old, new)))
    assert any(problem.field.startswith(field) and problem.line for problem in problems), problems


def test_an_assumed_price_needs_no_source(write):
    """`assumed: true` stands for the source that is missing."""
    text = SWITCH.format(key="x1").replace('source: "https://example.org/list", date: "2025-03"', "assumed: true")
    assert load_catalog(write(text)).switches["x1"].price.assumed


@given(st.sets(st.sampled_from(ALL_KEYS)))
def test_document_round_trip(keys):
    """Any part of a catalog written as JSON reads back as the same components."""
    document = json.loads(json.dumps(catalog_document(BUILTIN, keys)))
    read = catalog_from_document(document)
    assert read.names == BUILTIN.names
    for section in SECTIONS:
        components = getattr(BUILTIN, section)
        assert getattr(read, section) == {key: components[key] for key in components if key in keys}


def test_document_of_an_unknown_key():
    """A design cannot hold a component that its catalog lacks."""
    with pytest.raises(CatalogError, match="cx99"):
        catalog_document(BUILTIN, ["cx7-400", "cx99"])


@pytest.mark.parametrize("document", [None, [], {"switches": {"x1": {}}}, {"gpus": {"h100-sxm": None}}, {"nam": 1}])
def test_a_broken_document_is_a_catalog_error(document):
    """A design file with a damaged catalog is refused, never a crash."""
    with pytest.raises(CatalogError):
        catalog_from_document(document)


def test_the_schema_describes_every_field():
    """Every field of the exported JSON Schema says what it is."""
    schema = CatalogFile.model_json_schema()
    for name, record in {"CatalogFile": schema, **schema["$defs"]}.items():
        for field, content in record["properties"].items():
            assert content.get("description"), (name, field)


def test_the_package_imports_without_pydantic():
    """The command line's help must not wait for pydantic or yaml."""
    code = "import sys, designer.catalog; print({'pydantic', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_the_records_read_back_are_the_catalog_and_keep_what_is_left_to_defaults(write):
    """Nothing that follows from other fields is written out, so that a record can be changed."""
    spec = ["builtin", write(SWITCH.format(key="x1"))]
    records = catalog_records(spec)
    assert catalog_from_document(records) == load_catalog(spec)
    assert "max_ports" not in records["switches"]["x1"]
    records["switches"]["x1"]["cages"] = 16
    assert catalog_from_document(records).switches["x1"].max_ports == 32
