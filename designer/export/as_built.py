"""Wiring lists that are read back: the CSV of this package, PTM's `topology.dot`, and what ibnetdiscover prints.

A list is links between (device, port) by the names of a plan; nothing else of a file counts.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from designer.certify.read_design import MAX_BYTES
from designer.errors import InputError, Problem
from designer.export.plan import Plan
from designer.fabric.fabric import GPU, LEAF
from designer.source import read_text

End = tuple[str, str]
Read = Callable[[str, str, list[Problem]], Iterator[tuple[End, End]]]
COLUMNS = ("a_device", "a_port", "z_device", "z_port")
MAX_PROBLEMS = 20

_ID = r'(?:"(?:[^"\\]|\\.)*"|[A-Za-z0-9_.]+)'
_DOT_LINK = re.compile(rf"({_ID})\s*:\s*({_ID})\s*--\s*({_ID})\s*:\s*({_ID})\s*(?:\[.*\])?\s*;?")
_DOT_OTHER = re.compile(rf"(?:strict\s+)?graph\b.*\{{|\}}|{_ID}\s*(?:\[.*\])?\s*;?|{_ID}\s*=\s*{_ID}\s*;?")
_IB_NODE = re.compile(r'(Switch|Ca|Hca|Rt)\s+\d+\s+"([^"]+)"\s*(?:#\s*"([^"]*)")?')
_IB_PORT = re.compile(r'\[(\d+)\](?:\([0-9a-fx]+\))?\s*"([^"]+)"\s*\[(\d+)\]')
_ADAPTER = re.compile(r"(\S+)\s+(mlx5_|HCA-)(\d+)")
_MANAGED = re.compile(r"MF0;([^:]+):")
_AGGREGATION = "Aggregation Node"


@dataclass(frozen=True)
class WiringList:
    """Links of a file as pairs of ends, each once, and what kind of file it is."""

    path: str
    kind: str
    links: tuple[tuple[End, End], ...]


def read_wiring(path: Path | str, plan: Plan) -> WiringList:
    """The links that a file lists; `plan` gives the names of InfiniBand ports.

    Raises:
        InputError: it cannot be read as one of the three; every problem found is named by its line.
    """
    text = read_text(path, max_bytes=MAX_BYTES)
    kind, read = _reader(text, plan)
    if read is None:
        allowed = "a wiring plan as CSV, PTM's topology.dot, or the output of ibnetdiscover"
        raise InputError([Problem(str(path), None, "", "none of the known lists", allowed)])
    problems: list[Problem] = []
    links = tuple(read(str(path), text, problems))
    if problems:
        raise InputError(problems[:MAX_PROBLEMS])
    return WiringList(str(path), kind, links)


def _reader(text: str, plan: Plan) -> tuple[str, Read | None]:
    lines = (line.strip() for line in io.StringIO(text))
    first = next((line for line in lines if line and not line.startswith(("#", "//"))), "")
    if re.match(r"(strict\s+)?(di)?graph\b", first):
        return "topology.dot", _read_dot
    if set(COLUMNS) <= {name.strip() for name in first.split(",")}:
        return "CSV", _read_csv
    if _IB_NODE.search(text):
        return "ibnetdiscover", _InfiniBand(plan).read
    return "", None


def _read_csv(path: str, text: str, problems: list[Problem]) -> Iterator[tuple[End, End]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
    try:
        for row in reader:
            cells = [(row[column] or "").strip() for column in COLUMNS]
            empty = [column for column, cell in zip(COLUMNS, cells, strict=True) if not cell]
            if empty:
                problems.append(Problem(path, reader.line_num, empty[0], "nothing", "the name of a device or port"))
                continue
            yield (cells[0], cells[1]), (cells[2], cells[3])
    except csv.Error as error:
        problems.append(Problem(path, reader.line_num, "", str(error), "a table of comma-separated values"))


def _read_dot(path: str, text: str, problems: list[Problem]) -> Iterator[tuple[End, End]]:
    for number, line in enumerate(io.StringIO(text), start=1):
        statement = line.strip()
        if not statement or statement.startswith(("#", "//")):
            continue
        if match := _DOT_LINK.fullmatch(statement):
            a, a_port, b, b_port = (_unquoted(word) for word in match.groups())
            yield (a, a_port), (b, b_port)
        elif not _DOT_OTHER.fullmatch(statement):
            allowed = 'one statement to a line, as in "leaf1":"swp1" -- "spine1":"swp3"'
            problems.append(Problem(path, number, "", repr(statement[:60]), allowed))


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word


class _InfiniBand:
    """Reads what ibnetdiscover prints; node descriptions are names of devices, with `mlx5_n` after those of servers."""

    def __init__(self, plan: Plan) -> None:
        self._ports = _numbered_ports(plan)
        self._names: dict[str, str] = {}

    def read(self, path: str, text: str, problems: list[Problem]) -> Iterator[tuple[End, End]]:
        """The links of a dump, each once though both of its ends list it."""
        rows: list[tuple[str, int, str, int]] = []
        node = ""
        for number, line in enumerate(io.StringIO(text), start=1):
            if match := _IB_NODE.match(line):
                node = match[2]
                self._names[node] = match[3] or node
            elif match := _IB_PORT.match(line):
                if not node:
                    problems.append(Problem(path, number, "", "a port of no node", "a node before its ports"))
                    continue
                rows.append((node, int(match[1]), match[2], int(match[3])))
        seen: set[frozenset[tuple[str, int]]] = set()
        for one, port, other, far_port in rows:
            link = frozenset(((one, port), (other, far_port)))
            described = (self._names.get(one, one), self._names.get(other, other))
            # Switches hold a node of their own that adds up numbers for collectives: it has no cable.
            if link not in seen and not any(_AGGREGATION in name for name in described):
                yield self._end(one, port), self._end(other, far_port)
            seen.add(link)

    def _end(self, node: str, port: int) -> End:
        name = self._names.get(node, node)
        adapter = _ADAPTER.fullmatch(name)
        if adapter:
            place = int(adapter[3]) - (adapter[2] == "HCA-")
            known = self._ports.get((adapter[1], place, port))
            return adapter[1], known or f"{adapter[2]}{adapter[3]}/{port}"
        managed = _MANAGED.match(name)
        device = managed[1] if managed else name
        return device, self._ports.get((device, -1, port)) or f"port {port}"


def _numbered_ports(plan: Plan) -> dict[tuple[str, int, int], str]:
    """Names of ports by device, NIC in the server (-1 for switches), and number."""
    kind, links = plan.fabric.nodes.kind, plan.fabric.links
    nic = np.full(plan.fabric.n_links, -1)
    nic[kind[links.a] < LEAF] = 0
    hosts = np.flatnonzero(kind[links.a] == GPU)
    nic[hosts] = plan.nic_of(hosts)
    names, ports = plan.devices.name, plan.port_names
    result: dict[tuple[str, int, int], str] = {}
    rows = plan.rows(nic, plan.a.device, plan.a.number, plan.a.port, plan.b.device, plan.b.number, plan.b.port)
    for place, a, number, port, b, far_number, far_port in rows:
        result[names[a], place, number] = ports[port]
        result[names[b], -1, far_number] = ports[far_port]
    return result
