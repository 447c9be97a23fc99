"""Elements of a page. Text and attributes are escaped when the page is written: nothing of a file becomes markup."""

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, tostring

KEPT = {"\n", "\N{NO-BREAK SPACE}"}
Child = Element | str | None
Cell = Element | str | Sequence[Element | str]


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Element:
    """An element; None is left out. Attributes are written with `-` for `_`, and without a `_` at their end."""
    element = Element(name)
    for key, value in attributes.items():
        if value is not None:
            shown = _clean(value) if isinstance(value, str) else number(value)
            element.set(key.rstrip("_").replace("_", "-"), shown)
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        elif child and len(element):
            element[-1].tail = (element[-1].tail or "") + _clean(child)
        elif child:
            element.text = (element.text or "") + _clean(child)
    return element


def _clean(text: str) -> str:
    """The text with control characters, halves of characters and marks of direction as escapes; 5 % is not parted."""
    shown = "".join(sign if sign.isprintable() or sign in KEPT else ascii(sign)[1:-1] for sign in text)
    return shown.replace(" %", "\N{NO-BREAK SPACE}%")


def number(value: float) -> str:
    """A coordinate with as many of two digits after the point as it needs."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def table(headings: Sequence[str], rows: Iterable[Sequence[Cell]], right: Sequence[int] = ()) -> Element:
    """A table whose first column names the rows; the columns of `right` hold numbers."""

    def cell(kind: str, place: int, content: Cell, **attributes: str) -> Element:
        parts = [content] if isinstance(content, Element | str) else content
        return tag(kind, *parts, class_="n" if place in right else None, **attributes)

    head = tag("tr", *(cell("th", place, text, scope="col") for place, text in enumerate(headings)))
    body = [
        tag(
            "tr",
            *(
                cell("td", place, content) if place else cell("th", place, content, scope="row")
                for place, content in enumerate(row)
            ),
        )
        for row in rows
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll", tabindex="0")


def section(name: str, heading: str, *children: Child) -> Element:
    """A section of the page; `name` is what links to it say."""
    return tag("section", tag("h2", heading), *children, id=name)


def details(summary: str, *children: Child) -> Element:
    """A part that a reader opens."""
    return tag("details", tag("summary", summary), *children)


def facts(pairs: Iterable[tuple[str, Cell]]) -> Element:
    """Labels and what they say."""
    items: list[Element] = []
    for label, content in pairs:
        parts = [content] if isinstance(content, Element | str) else content
        items.append(tag("div", tag("dt", label), tag("dd", *parts)))
    return tag("dl", *items)


def page(title: str, css: str, *body: Child) -> str:
    """The text of a page that needs nothing but itself: it may not load anything, nor run anything."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", css),
    )
    root = tag("html", head, tag("body", *body), lang="en")
    return f"<!doctype html>\n{tostring(root, encoding='unicode', method='html')}\n"
