"""What a design rests on: assumed prices and powers, lengths, limits of the proof; and where everything comes from."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import yaml

from designer.certify.read_design import DesignFile
from designer.design_schema import BillLineRecord
from designer.fabric.fabric import LINK_CLASSES
from designer.report.amounts import LINK_NAMES, listing
from designer.report.markup import Cell, details, facts, section, table, tag
from designer.report.words import money, percent
from designer.units import cents

MOST_TEXT = 20_000


def assumptions_section(file: DesignFile) -> Element:
    """The section: prices without source first, then all else that was taken as given."""
    return section("assumptions", "Assumptions", *_prices(file), tag("h3", "Further"), tag("ul", *_further(file)))


def _prices(file: DesignFile) -> Iterator[Element]:
    """The lines of the bill whose prices no source published, the dearest first."""
    lines = [line for line in file.record.bill_of_materials if line.price_assumed]
    if not lines:
        yield tag("p", "Every price of the bill has a source.")
        return
    purchase, assumed = file.cents("capex_usd") or 0, file.cents("assumed_usd") or 0
    share = percent(assumed / purchase if purchase else 0.0)
    yield tag("p", f"{money(assumed)} of the purchase ({share}) rest on prices that no source published:")
    rows: list[list[Cell]] = []
    merged = _by_item(lines)
    for item, alike in sorted(merged.items(), key=lambda pair: -_total(pair[1])):
        units = listing(list(dict.fromkeys(money(cents(line.unit_usd)) for line in alike)))
        quantity = sum(line.quantity - line.reused for line in alike)
        why = listing(list(dict.fromkeys(line.source for line in alike if line.source)))
        rows.append([item, f"{quantity:,}", units, money(_total(alike)), why])
    yield table(["component", "quantity", "unit price", "total", "why this price"], rows, right=(1, 2, 3))


def _by_item(lines: list[BillLineRecord]) -> dict[str, list[BillLineRecord]]:
    merged: dict[str, list[BillLineRecord]] = {}
    for line in lines:
        merged.setdefault(line.item, []).append(line)
    return merged


def _total(lines: list[BillLineRecord]) -> int:
    return sum((line.quantity - line.reused) * cents(line.unit_usd) for line in lines)


def _further(file: DesignFile) -> Iterator[Element]:
    powers = dict.fromkeys(line.item for line in file.record.bill_of_materials if line.power_assumed)
    if powers:
        yield tag("li", f"Power without a source: {listing(list(powers))}.")
    if file.record.layout is None:
        yield tag("li", f"Cable lengths are one number for each class of links: {_lengths(file)}.")
    else:
        yield tag("li", f"Cable lengths follow from the floor of the instance and its assumptions: {_lengths(file)}.")
    if file.record.objective == "tco":
        energy = file.energy
        yield tag(
            "li",
            f"Energy counts for {energy.years:g} years at ${energy.usd_per_kwh:g} a kWh, times {energy.pue:g} for "
            "cooling, at the full power of every piece.",
        )
    yield tag("li", "NICs and servers are not in the cost, nor racks, installation, storage and management networks.")
    yield tag(
        "li",
        "The traffic is that of formulas for an iteration, not of a trace; packets, congestion control, hash "
        "collisions and latency are not modelled, and a failure is a clean one.",
    )


def _lengths(file: DesignFile) -> str:
    fabric = file.fabric
    classes = fabric.link_class()
    found: list[str] = []
    for number, name in enumerate(LINK_CLASSES):
        media = np.unique(fabric.links.medium[classes == number])
        used = sorted({fabric.media[int(medium)].length_m for medium in media})
        if used:
            found.append(f"{LINK_NAMES[name]} {listing([f'{length:g} m' for length in used])}")
    return ", ".join(found)


def provenance_section(file: DesignFile) -> Element:
    """The section: program, solver, file and its digest, sources of prices and data, the instance itself."""
    record = file.record
    origin = record.provenance
    solved = f"{origin.solver}, seed {origin.seed}, {origin.wall_s:.1f} s, ended as: {origin.termination}"
    pairs: list[tuple[str, Cell]] = [
        ("design file", PurePath(file.path).name),
        ("made by", f"designer {origin.version}, format {record.schema_version}"),
        ("search", solved),
        ("searched", record.searched),
        ("catalog", ", ".join(file.catalog.names)),
        ("digest", [tag("code", file.digest or "none"), f": {digest_words(file)}"]),
    ]
    words = (
        "This page shows what the design file says. The cost is added up and the certificate computed anew, from the "
        "file alone, by "
    )
    check = tag("p", words, tag("code", "designer verify"), ".")
    return section("provenance", "Provenance", facts(pairs), check, _sources(file), _instance(file.instance))


def digest_words(file: DesignFile) -> str:
    """Whether the content of the file is what its digest was made of."""
    if file.digest is None:
        return "the file states none"
    return "that of the content" if file.digest == file.true_digest else "not that of the content, the file was edited"


def _sources(file: DesignFile) -> Element:
    origins = dict.fromkeys(
        (line.item, ("assumed: " if line.price_assumed else "") + line.source, line.date)
        for line in file.record.bill_of_materials
    )
    return details("Sources of the prices", table(["component", "source of the price", "date"], list(origins)))


def _instance(document: Mapping[str, Any]) -> Element:
    """The question that the design answers, as the file carries it."""
    text = yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=110)
    if len(text) > MOST_TEXT:
        text = f"{text[:MOST_TEXT]}\n... {len(text) - MOST_TEXT:,} further characters are in the design file\n"
    return details("The instance", tag("pre", text))
