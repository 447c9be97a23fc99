"""Reads a page as a browser would, as far as the tests ask: elements, texts, tables, and whether it is well-formed."""

import json
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from typing import Any

from designer.certify.read_design import DesignFile, design_from_document
from designer.digest import with_digest
from tests.certify.damaged import document_of
from tests.certify.unshaped import Wires, design_document, mixed_instance

VOID = {"meta", "link", "img", "br", "hr", "input", "source", "base"}
BLOCKS = {"p", "div", "ul", "dl", "table", "figure", "section", "details", "h2", "h3", "pre"}
HOLDS_WORDS_ONLY = {"p", "h1", "h2", "h3", "summary", "dt", "span"}
Document = dict[str, Any]


@dataclass
class Node:
    """An element with its attributes, and all text in it."""

    name: str
    attributes: dict[str, str]
    children: list["Node"] = field(default_factory=list)
    text: str = ""

    def all(self, name: str, kind: str = "") -> list["Node"]:
        """Elements of a name, and of a class, inside this one."""
        found: list[Node] = []
        for child in self.children:
            if child.name == name and (not kind or kind in child.attributes.get("class", "").split()):
                found.append(child)
            found += child.all(name, kind)
        return found


class Page(HTMLParser):
    """The tree of a page; an assertion fails where tags do not match or a block stands in a line of text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("document", {})
        self.open = [self.root]
        assert text.startswith("<!doctype html>\n")
        self.feed(text)
        self.close()
        assert self.open == [self.root], "elements that are never closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {names}"
        node = Node(tag, {name: value or "" for name, value in attrs})
        if tag in BLOCKS:
            assert not {node.name for node in self.open} & HOLDS_WORDS_ONLY, f"{tag} in a line of text"
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        for node in self.open:
            node.text += data.replace("\N{NO-BREAK SPACE}", " ")

    def section(self, name: str) -> Node:
        """The section with this id."""
        (found,) = [node for node in self.root.all("section") if node.attributes["id"] == name]
        return found


def rows_of(table: Node) -> list[list[str]]:
    """The cells of the body of a table."""
    return [[cell.text for cell in row.children] for row in table.all("tbody")[0].children]


@cache
def mixed_document() -> str:
    """A design file for servers of two kinds on two switches, one of them there before, as JSON."""
    instance = mixed_instance(
        [{"demand": "any", "across": "rail"}], [{"name": "old & used", "switch": "eight", "free_ports": 7}]
    )
    wires = Wires(instance)
    old, new = wires.use(instance.cluster.existing[0]), wires.buy("sixteen")
    wires.attach(old, range(4))
    wires.attach(new, range(4, 12))
    wires.join(old, new, 3)
    return json.dumps(design_document(instance, wires.fabric()))


def document(name: str) -> Document:
    """A fresh design document: one of the small designs, or `mixed`."""
    return json.loads(mixed_document()) if name == "mixed" else document_of(name)


def file_of(content: Document, *, seal: bool = True) -> DesignFile:
    """A document as the report reads it."""
    return design_from_document(with_digest(content) if seal else content)
