"""Reader of SNDlib's native format: a graph of candidate links with their modules, and the demands to carry on it.

The format is that of SNDlib 1.0 (https://sndlib.put.poznan.pl): a network file, and optionally a model file whose
vocabulary (DEMAND_MODEL, LINK_MODEL, ...) says how the numbers are meant. Neither is trusted.
"""

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from designer.errors import InstanceError, Problem
from designer.source import read_text

MAX_PROBLEMS = 20
MAX_NODES, MAX_LINKS, MAX_DEMANDS, MAX_MODULES = 10_000, 100_000, 1_000_000, 1_000
LARGEST = 1e15
_TOKEN = re.compile(r"[()]|[^\s()]+")
_HEADER = re.compile(r"\?SNDlib native format;\s*type:\s*(network|model);\s*version:\s*1\.\d+\s*$")
_SECTIONS = ("META", "NODES", "LINKS", "DEMANDS", "ADMISSIBLE_PATHS")
_UNLIMITED = "UNLIMITED"


@dataclass(frozen=True)
class Module:
    """A size in which capacity is bought on a link, and the price of one."""

    capacity: float
    cost: float


@dataclass(frozen=True)
class CandidateLink:
    """A link that may get capacity; `source` and `target` are node numbers. Parallel candidate links stay apart.

    `routing_cost` is per unit of flow, in either direction; `setup_cost` is kept but not charged (FIXED_CHARGE_MODEL).
    """

    name: str
    source: int
    target: int
    pre_installed: float
    pre_installed_cost: float
    routing_cost: float
    setup_cost: float
    modules: tuple[Module, ...]


@dataclass(frozen=True)
class Demand:
    """Capacity that the traffic from `source` to `target` needs on every link of its way (value times routing unit)."""

    name: str
    source: int
    target: int
    value: float


@dataclass(frozen=True)
class DesignModel:
    """How the numbers of a network are meant, in SNDlib's vocabulary; the default is what most published networks ask.

    Attributes:
        demand_model: UNDIRECTED (the direction does not matter) or DIRECTED.
        link_model: UNDIRECTED (both directions share the capacity), BIDIRECTED (each direction has it) or DIRECTED
            (source to target alone).
        capacity_model: MODULAR_LINK_CAPACITIES (any whole number of each module), EXPLICIT_LINK_CAPACITIES (at most
            one module), or SINGLE_MODULAR_CAPACITIES (one size for a link, any whole number).
        survivability_model: NO_SURVIVABILITY, or UNRESTRICTED_FLOW_RECONFIGURATION: all demands are carried in full
            after the failure of any one link, everything rerouted freely.
    """

    demand_model: str = "UNDIRECTED"
    link_model: str = "UNDIRECTED"
    capacity_model: str = "MODULAR_LINK_CAPACITIES"
    survivability_model: str = "NO_SURVIVABILITY"

    def __post_init__(self) -> None:
        given = {
            "DEMAND_MODEL": self.demand_model,
            "LINK_MODEL": self.link_model,
            "LINK_CAPACITY_MODEL": self.capacity_model,
            "SURVIVABILITY_MODEL": self.survivability_model,
        }
        for key, value in given.items():
            if value not in _MODEL_VALUES[key]:
                raise ValueError(f"{key}: found {value!r}; allowed: {', '.join(_MODEL_VALUES[key])}")
        if self.link_model != "UNDIRECTED" and self.demand_model == "UNDIRECTED":
            raise ValueError(f"DEMAND_MODEL: found UNDIRECTED; allowed: DIRECTED, as links are {self.link_model}")


@dataclass(frozen=True)
class NetworkDesign:
    """A network design problem: the least cost of modules such that the links carry all demands at once."""

    name: str
    nodes: tuple[str, ...]
    links: tuple[CandidateLink, ...]
    demands: tuple[Demand, ...]
    model: DesignModel = field(default_factory=DesignModel)

    @property
    def fixed_cost(self) -> float:
        """What the pre-installed capacity costs, whatever is added."""
        return sum(link.pre_installed_cost for link in self.links)


# What each key of a model file may say: the values that are understood, the default first.
_MODEL_VALUES: dict[str, tuple[str, ...]] = {
    "DEMAND_MODEL": ("UNDIRECTED", "DIRECTED"),
    "LINK_MODEL": ("UNDIRECTED", "BIDIRECTED", "DIRECTED"),
    "LINK_CAPACITY_MODEL": ("MODULAR_LINK_CAPACITIES", "EXPLICIT_LINK_CAPACITIES", "SINGLE_MODULAR_CAPACITIES"),
    "FIXED_CHARGE_MODEL": ("NO",),
    "ROUTING_MODEL": ("CONTINUOUS",),
    "ADMISSIBLE_PATH_MODEL": ("ALL_PATHS",),
    "HOP_LIMIT_MODEL": ("IGNORE_HOP_LIMITS",),
    "NODE_MODEL": ("NO_NODE_HARDWARE",),
    "OBJECTIVE_MODEL": ("MINIMIZE_TOTAL_COST",),
    "SURVIVABILITY_MODEL": ("NO_SURVIVABILITY", "UNRESTRICTED_FLOW_RECONFIGURATION"),
}


def read_network_design(path: Path | str, model: DesignModel | None = None) -> NetworkDesign:
    """Reads a network file.

    A demand's value is multiplied by its routing unit. Where the direction of demands does not matter, those of both
    directions of a pair add up to one, and so do several of one pair. A hop limit is read and ignored
    (IGNORE_HOP_LIMITS). The sections META and ADMISSIBLE_PATHS are skipped.

    Raises:
        InstanceError: every problem found, each with its line.
    """
    return _NetworkReader(str(path), read_text(path, InstanceError), model or DesignModel()).read()


def read_design_model(path: Path | str) -> DesignModel:
    """Reads a model file.

    Raises:
        InstanceError: every problem found; also what SNDlib allows and this package cannot design (integer routing...).
    """
    file, text = str(path), read_text(path, InstanceError)
    problems: list[Problem] = []
    values = {key: allowed[0] for key, allowed in _MODEL_VALUES.items()}
    seen: set[str] = set()
    lines = _content(text)
    number, header = next(lines, (1, ""))
    if (match := _HEADER.match(header)) is None or match[1] != "model":
        problems.append(_problem(file, number, "", header, "?SNDlib native format; type: model; version: 1.0"))
    for number, line in lines:
        key, equals, value = (part.strip() for part in line.partition("="))
        allowed = _MODEL_VALUES.get(key)
        if not equals or allowed is None:
            problems.append(_problem(file, number, "", line, f"KEY = VALUE with one of {', '.join(_MODEL_VALUES)}"))
        elif key in seen:
            problems.append(_problem(file, number, key, "a second value", "one"))
        elif value not in allowed:
            problems.append(_problem(file, number, key, value, " or ".join(allowed)))
        else:
            values[key] = value
        seen.add(key)
    if values["LINK_MODEL"] != "UNDIRECTED" and values["DEMAND_MODEL"] == "UNDIRECTED":
        problems.append(_problem(file, None, "DEMAND_MODEL", "UNDIRECTED", "DIRECTED, where links have directions"))
    _raise(problems)
    return DesignModel(
        values["DEMAND_MODEL"], values["LINK_MODEL"], values["LINK_CAPACITY_MODEL"], values["SURVIVABILITY_MODEL"]
    )


def is_model_file(path: Path | str) -> bool:
    """Whether the first line of a file calls it an SNDlib model file.

    Raises:
        InstanceError: the file cannot be read.
    """
    _, header = next(_content(read_text(path, InstanceError)), (1, ""))
    match = _HEADER.match(header)
    return match is not None and match[1] == "model"


def _problem(file: str, line: int | None, where: str, found: str, allowed: str) -> Problem:
    shown = found if len(found) <= 60 else found[:60] + "..."
    return Problem(file, line, where, repr(shown), allowed)


def _raise(problems: list[Problem]) -> None:
    if problems:
        raise InstanceError(problems[:MAX_PROBLEMS])


def _content(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments and blanks."""
    for number, line in enumerate(text.split("\n"), 1):
        if content := line.partition("#")[0].strip():
            yield number, content


class _StopError(Exception):
    """The text has lost its structure: what follows would be guesses."""


class _NetworkReader:
    """Reads the tokens of one network file and collects what is wrong with them."""

    def __init__(self, file: str, text: str, model: DesignModel) -> None:
        self.file, self.model = file, model
        self.problems: list[Problem] = []
        self.nodes: dict[str, int] = {}
        self.links: dict[str, CandidateLink] = {}
        self.demands: dict[str, Demand] = {}
        lines = _content(text)
        number, header = next(lines, (1, ""))
        if (match := _HEADER.match(header)) is None or match[1] != "network":
            self._refuse(number, "", header, "?SNDlib native format; type: network; version: 1.0")
        self.tokens = [(row, token) for row, line in lines for token in _TOKEN.findall(line)]
        self.at = 0

    def read(self) -> NetworkDesign:
        _raise(self.problems)  # a file of another format would only give noise
        with contextlib.suppress(_StopError):
            self._sections()
        if not self.problems and not self.nodes:
            self._refuse(None, "NODES", "no nodes", "one node or more")
        _raise(self.problems)
        demands = self._joined() if self.model.demand_model == "UNDIRECTED" else tuple(self.demands.values())
        return NetworkDesign(Path(self.file).stem, tuple(self.nodes), tuple(self.links.values()), demands, self.model)

    def _joined(self) -> tuple[Demand, ...]:
        pairs: dict[tuple[int, int], Demand] = {}
        for demand in self.demands.values():
            pair = min(demand.source, demand.target), max(demand.source, demand.target)
            first = pairs.get(pair, Demand(demand.name, *pair, 0.0))
            pairs[pair] = Demand(first.name, *pair, first.value + demand.value)
        return tuple(pairs.values())

    def _sections(self) -> None:
        entries = {"NODES": self._node, "LINKS": self._link, "DEMANDS": self._demand}
        seen: set[str] = set()
        while self.at < len(self.tokens):
            line, name = self._next("a section")
            if name not in _SECTIONS or name in seen:
                self._refuse(line, "", name, f"a section, once: {', '.join(_SECTIONS)}")
                raise _StopError
            seen.add(name)
            self._expect("(", name)
            if name not in entries:
                self._skip(name)
                continue
            while self._peek() != ")":
                entries[name]()
                if len(self.problems) >= MAX_PROBLEMS:
                    raise _StopError
            self._expect(")", name)

    def _node(self) -> None:
        line, name = self._name("NODES")
        if name in self.nodes:
            self._refuse(line, "NODES", name, "each node once")
        elif len(self.nodes) >= MAX_NODES:
            self._refuse(line, "NODES", f"more than {MAX_NODES} nodes", "fewer")
            raise _StopError
        self.nodes.setdefault(name, len(self.nodes))
        if self._peek() == "(":
            self._expect("(", name)
            self._number(f"{name} longitude", -LARGEST)
            self._number(f"{name} latitude", -LARGEST)
            self._expect(")", name)

    def _link(self) -> None:
        line, name = self._name("LINKS")
        source, target = self._ends(name)
        pre_installed, pre_installed_cost, routing_cost, setup_cost = (
            self._number(f"{name} {what}")
            for what in ("pre-installed capacity", "pre-installed capacity cost", "routing cost", "setup cost")
        )
        self._expect("(", name)
        modules: list[Module] = []
        while self._peek() != ")":
            capacity_line = self.tokens[self.at][0]
            capacity, cost = self._number(f"{name} module capacity"), self._number(f"{name} module cost")
            if capacity == 0:
                self._refuse(capacity_line, f"{name} module capacity", "0", "a number above 0")
            modules.append(Module(capacity, cost))
        self._expect(")", name)
        if len(modules) > MAX_MODULES:
            self._refuse(line, name, f"{len(modules)} modules", f"at most {MAX_MODULES}")
        if self.model.capacity_model == "SINGLE_MODULAR_CAPACITIES" and len(modules) > 1:
            self._refuse(line, name, f"{len(modules)} modules", "at most one under SINGLE_MODULAR_CAPACITIES")
        if name in self.links:
            self._refuse(line, "LINKS", name, "each link once")
        elif len(self.links) >= MAX_LINKS:
            self._refuse(line, "LINKS", f"more than {MAX_LINKS} links", "fewer")
            raise _StopError
        self.links[name] = CandidateLink(
            name, source, target, pre_installed, pre_installed_cost, routing_cost, setup_cost, tuple(modules)
        )

    def _demand(self) -> None:
        line, name = self._name("DEMANDS")
        source, target = self._ends(name)
        value = self._number(f"{name} routing unit") * self._number(f"{name} demand value")
        hops_line, hops = self._next("max path length")
        if hops != _UNLIMITED and not hops.isdecimal():
            self._refuse(hops_line, f"{name} max path length", hops, f"{_UNLIMITED} or a whole number")
        if name in self.demands:
            self._refuse(line, "DEMANDS", name, "each demand once")
        elif len(self.demands) >= MAX_DEMANDS:
            self._refuse(line, "DEMANDS", f"more than {MAX_DEMANDS} demands", "fewer")
            raise _StopError
        self.demands[name] = Demand(name, source, target, value)

    def _ends(self, owner: str) -> tuple[int, int]:
        self._expect("(", owner)
        ends: list[int] = []
        for what in ("source", "target"):
            line, name = self._name(f"{owner} {what}")
            if name not in self.nodes:
                self._refuse(line, f"{owner} {what}", name, "a node of the section NODES")
            ends.append(self.nodes.get(name, -1 - len(ends)))
        if ends[0] == ends[1]:
            self._refuse(self.tokens[self.at][0], owner, "the same node twice", "two different nodes")
        self._expect(")", owner)
        return ends[0], ends[1]

    def _number(self, where: str, least: float = 0.0) -> float:
        line, token = self._name(where)
        try:
            value = float(token)
        except ValueError:
            value = math.nan
        if not least <= value <= LARGEST or "_" in token:
            self._refuse(line, where, token, f"a number from {least:g} to {LARGEST:g}")
            return 1.0
        return value

    def _skip(self, name: str) -> None:
        depth = 1
        while depth:
            _, token = self._next(f"the end of {name}")
            depth += (token == "(") - (token == ")")  # noqa: S105

    def _peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else self._next("more")[1]

    def _next(self, wanted: str) -> tuple[int, str]:
        if self.at >= len(self.tokens):
            self._refuse(self.tokens[-1][0] if self.tokens else 1, "", "the end of the file", wanted)
            raise _StopError
        self.at += 1
        return self.tokens[self.at - 1]

    def _name(self, where: str) -> tuple[int, str]:
        line, token = self._next(where)
        if token in {"(", ")"}:
            self._refuse(line, where, token, "a name or number")
            raise _StopError
        return line, token

    def _expect(self, token: str, where: str) -> None:
        line, found = self._next(f"'{token}'")
        if found != token:
            self._refuse(line, where, found, f"'{token}'")
            raise _StopError

    def _refuse(self, line: int | None, where: str, found: str, allowed: str) -> None:
        self.problems.append(_problem(self.file, line, where, found, allowed))
