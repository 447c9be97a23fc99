"""What became of the network that was there: links that stay, are plugged and are pulled, and what is reused."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from designer.certify.read_design import DesignFile
from designer.report.amounts import LINK_NAMES
from designer.report.markup import Cell, section, table, tag
from designer.report.words import anew_words, moved_words
from designer.units import cents


def existing_sections(file: DesignFile) -> Iterator[Element]:
    """The section, where the design stands beside a network that was there."""
    record = file.record.existing
    if record is None:
        return
    reused = sum(old >= 0 for old in record.same_as)
    words = f"{reused:,} of {len(record.same_as):,} switches are those of {record.file}."
    links = moved_words(record.kept, record.kept_at_most, record.plugged, record.pulled, record.plugged_at_least)
    rows: list[list[Cell]] = [
        [LINK_NAMES.get(item.link_class, item.link_class), f"{item.kept:,}", f"{item.plugged:,}", f"{item.pulled:,}"]
        for item in record.classes
    ]
    rows.append(["all", f"{record.kept:,}", f"{record.plugged:,}", f"{record.pulled:,}"])
    parts = [tag("p", words), tag("p", f"Of the links {links}.")]
    if record.fresh is not None:
        anew = anew_words(cents(record.fresh.cost_usd), record.fresh.links)
        parts.append(tag("p", f"{anew[:1].upper()}{anew[1:]}."))
    shown = table(["links", "kept", "plugged", "pulled"], rows, right=(1, 2, 3))
    yield section("existing", "Beside what is there", *parts, shown)
