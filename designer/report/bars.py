"""Bars that stand beside the numbers they show; they say nothing that the text does not."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from designer.report.markup import tag

LENGTH = 100.0


def bar(parts: Sequence[tuple[str, float, float]], marks: Sequence[float] = ()) -> Element:
    """Parts of a bar as (class, from, to), and marks across it, all as fractions of its length."""
    drawn = [
        tag("rect", class_=kind, x=LENGTH * start, y=2, width=max(0.0, LENGTH * (min(1.0, end) - start)), height=10)
        for kind, start, end in parts
        if end > start
    ]
    drawn += [
        tag("line", class_="mark", x1=LENGTH * min(1.0, at), x2=LENGTH * min(1.0, at), y1=0, y2=14) for at in marks
    ]
    return tag("svg", *drawn, viewBox="0 0 100 14", preserveAspectRatio="none", class_="bar", aria_hidden="true")


def stacked(parts: Sequence[tuple[str, float]], whole: float) -> Element:
    """Amounts one after the other, as parts of a whole."""
    found: list[tuple[str, float, float]] = []
    end = 0.0
    for kind, amount in parts:
        start, end = end, end + (amount / whole if whole else 0.0)
        found.append((kind, start, end))
    return bar(found)
