"""Every single failure, and every pair of links and of switches, by classes of elements that give equal results.

Two elements of a unit are in one class when a verified automorphism of its graph, its GPUs, their HB domains and all
demands together maps one to the other. A pair in one unit is classed by removing its first element and looking for
automorphisms of the rest. Pairs over two units act on each other only through the GPUs that lose ports in one, and
their domains: these are told apart in the other unit before its classes are looked for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations

import numpy as np

from designer.certify.certificate import EXACT, FailureResult
from designer.certify.demand import step_groups
from designer.certify.failure_bounds import bounded_failures, spread_of
from designer.certify.problem import FlowProblem, Hubs, Ints, Pairs, digest, weigh
from designer.certify.symmetry import Orbits, SymmetryFinder, joint_classes
from designer.certify.throughput import POLICIES, Bounds, Judge, pair_share, phase_bounds
from designer.certify.view import FabricView, Failure
from designer.fabric.fabric import GPU, HOST, KINDS, LEAF, LINK_CLASSES, Fabric
from designer.instance.schema import RequirementsSection
from designer.workload.traffic import Traffic

Progress = Callable[[str], None]
MAX_CLASSES = 150
# Classes of single failures that are looked at without being asked for; of large networks that are no leaves under
# spines fewer, as each takes long.
MOST_CLASSES = 400
FEW_CLASSES = 100
MOST_ASKED = 2000  # classes that are looked at in any case, where kinds of failures can be bounded as a whole
MOST_NODES = 100_000  # of all classes together, where they are not few


@dataclass(frozen=True)
class Element:
    """Something that can fail: what it is, what its failure removes, and a name for its class.

    `kind` is link, nic, switch, gpu or domain; `where` says more, like "leaf-spine" or "spine".
    """

    kind: str
    where: str
    failure: Failure
    unit: int
    orbit: int

    @property
    def name(self) -> str:
        """Like "switch:spine"."""
        return f"{self.kind}:{self.where}" if self.where else self.kind


@dataclass(frozen=True)
class ElementClass:
    """Elements that give equal results: one of them, and how many there are."""

    element: Element
    stands_for: int


@dataclass
class FailureStudy:
    """Failures of one fabric under one traffic."""

    fabric: Fabric
    traffic: Traffic
    requirements: RequirementsSection
    scale_up_gbps: float
    judge: Judge
    progress: Progress | None = None
    _units: dict[int, "_Unit"] = field(default_factory=dict[int, "_Unit"])

    def __post_init__(self) -> None:
        self.intact = FabricView(self.fabric)
        self.share = pair_share(self.fabric, self.requirements)
        self.whole = self._worst_phase(self.intact, self.requirements.detour)

    def singles(self) -> list[ElementClass]:
        """Classes of single links, NICs, switches, GPUs and HB domains; those of like units count together."""
        merged: dict[tuple[str, str, str, int], ElementClass] = {}
        for unit in self.units():
            for found in unit.classes():
                element = found.element
                key = (element.kind, element.where, unit.digest, element.orbit)
                held = merged.get(key)
                if held is None:
                    merged[key] = found
                else:
                    merged[key] = replace(held, stands_for=held.stands_for + found.stands_for)
        return [*merged.values(), *self._gpus_and_domains()]

    def units(self) -> list["_Unit"]:
        """The units of the intact fabric with their symmetries; like units share them."""
        if not self._units:
            known: dict[str, Orbits] = {}
            for number in range(int(self.intact.unit_of_node.max(initial=-1)) + 1):
                if self.progress:
                    self.progress(f"symmetries of unit {number + 1}")
                self._units[number] = _Unit.of(self, number, known)
        return list(self._units.values())

    def _gpus_and_domains(self) -> Iterator[ElementClass]:
        """GPUs by their classes in all their units; domains by the classes of their GPUs."""
        gpus, domain = self.fabric.gpus, self.traffic.hb_domain
        table, _ = self.intact.attachment
        names: list[Ints] = []
        for slot in range(table.shape[1]):
            name = np.full(gpus, -1, dtype=np.int64)
            for unit in self.units():
                members = unit.gpus[table[unit.gpus, slot] == unit.number]
                name[members] = unit.gpu_class(members)
            names.append(name - name.min(initial=0))
        gpu_class = joint_classes(*names)
        for number, count in zip(*np.unique(gpu_class, return_counts=True), strict=True):
            first = int(np.flatnonzero(gpu_class == number)[0])
            yield ElementClass(Element("gpu", "", Failure(nodes=(first,)), -1, int(number)), int(count))
        if domain > 1:
            rows = np.sort(gpu_class.reshape(-1, domain), axis=1)
            _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
            for number, (start, count) in enumerate(zip(first.tolist(), counts.tolist(), strict=True)):
                nodes = tuple(range(start * domain, (start + 1) * domain))
                yield ElementClass(Element("domain", "", Failure(nodes=nodes), -1, number), count)

    def judged(self, elements: tuple[Element, ...], stands_for: int) -> FailureResult:
        """What is left when these elements are gone, for the phase that fares worst against its floor."""
        failure = Failure(
            tuple(link for element in elements for link in element.failure.links),
            tuple(node for element in elements for node in element.failure.nodes),
        )
        if all(element.kind in ("gpu", "domain") for element in elements) and self.whole[1].lower >= 1 - EXACT:
            # Less traffic on the same network: what carried every floor carries it still.
            return FailureResult(names_of(elements), stands_for, *_plain(self.whole), 0, None, met=True)
        view = FabricView(self.fabric, failure, self.intact)
        stranded = self.traffic.hb_domain > 1 and not view.has_nic[view.gpus_alive].all()
        own = self.requirements.detour
        by_policy = {policy: self._worst_phase(view, policy) for policy in (POLICIES if stranded else (own,))}
        name, bounds = by_policy[own]
        share = self._required(elements)
        if share is not None:
            share *= self.share
        met = share is None or (self._carried(bounds) >= share - EXACT and bounds.cut_off == 0)
        return FailureResult(
            names_of(elements),
            stands_for,
            name,
            bounds.lower,
            bounds.upper,
            bounds.ecmp,
            bounds.cut_off,
            share,
            met,
            by_policy["spread"][1].lower if stranded else None,
            by_policy["single-relay"][1].lower if stranded else None,
        )

    def _worst_phase(self, view: FabricView, policy: str) -> tuple[str, Bounds]:
        """The phase that carries the least of its floor, with its bounds as parts of the floor."""
        worst = ("", Bounds(1.0, 1.0, 1.0, "nothing to send"))
        for phase in self.traffic.network_phases:
            bounds = phase_bounds(self.judge, view, self.traffic, phase, self.scale_up_gbps, policy)
            relative = _relative(bounds, phase.floor)
            if worst[0] == "" or self._carried(relative) < self._carried(worst[1]):
                worst = (phase.name, relative)
        return worst

    def _carried(self, bounds: Bounds) -> float:
        return bounds.lower if self.requirements.routing == "adaptive" else (bounds.ecmp or 0.0)

    def _required(self, elements: tuple[Element, ...]) -> float | None:
        """What the requirements ask to be left of each floor after this failure; None when nothing is asked."""
        kinds = Counter(element.kind for element in elements)
        asked = [
            item.throughput
            for item in self.requirements.survive
            if len(kinds) == 1 and kinds[item.failure] and item.count >= kinds[item.failure]
        ]
        return max(asked, default=None)

    def pairs(self) -> Iterator[tuple[tuple[Element, Element], int]]:
        """Classes of pairs of links between switches, of host links with them, and of switches; with their numbers."""
        units = self.units()
        like: dict[str, list[_Unit]] = {}
        for unit in units:
            like.setdefault(unit.digest, []).append(unit)
        for group in like.values():
            yield from self._pairs_inside(group[0], len(group))
        yield from self._pairs_across(units)

    def _pairs_inside(self, unit: "_Unit", copies: int) -> Iterator[tuple[tuple[Element, Element], int]]:
        for one in unit.classes():
            if self.progress:
                self.progress(f"pairs with {one.element.name}")
            for other in unit.without(one.element).classes():
                if _pairable(one.element, other.element):
                    yield (one.element, other.element), copies * one.stands_for * other.stands_for

    def _pairs_across(self, units: list["_Unit"]) -> Iterator[tuple[tuple[Element, Element], int]]:
        """Pairs over two units, one pair of units for each way in which two units can stand to each other."""
        alike: dict[tuple[object, ...], tuple[_Unit, _Unit, int]] = {}
        for apart in (False, True):
            alike.clear()
            for one, two in permutations(units, 2):
                *relation, turn = one.relation(two)
                key = (one.digest, two.digest, *relation, 0 if apart else turn)
                held = alike.get(key)
                alike[key] = (one, two, 1) if held is None else (*held[:2], held[2] + 1)
            for one, two, times in alike.values():
                yield from self._pairs_of_units(one, two, times, apart=apart)

    def _pairs_of_units(
        self, one: "_Unit", two: "_Unit", times: int, *, apart: bool
    ) -> Iterator[tuple[tuple[Element, Element], int]]:
        """Pairs of an element of each unit: those `apart` take no port of a GPU, the others do.

        What takes ports comes first where one of them does, and stands for both orders then.
        """
        for first in one.classes():
            hosts = one.served(first.element)
            if apart == bool(len(hosts)):
                continue
            if self.progress:
                self.progress(f"pairs with {first.element.name} over two networks")
            twins = apart and one.digest == two.digest and len(np.intersect1d(one.gpus, two.gpus)) > 0
            marked = two.marked(hosts, one.places(first.element) if twins else None)
            for second in marked.classes():
                if not _pairable(first.element, second.element):
                    continue
                serves = bool(len(two.served(second.element)))
                if apart and serves:
                    continue
                orders = 1 if apart or serves else 2
                yield (first.element, second.element), times * orders * first.stands_for * second.stands_for


def names_of(elements: tuple[Element, ...]) -> str:
    """Like "link:leaf-spine + nic"."""
    return " + ".join(sorted(element.name for element in elements))


def _plain(worst: tuple[str, Bounds]) -> tuple[str, float, float, float | None]:
    return worst[0], worst[1].lower, worst[1].upper, worst[1].ecmp


def _relative(bounds: Bounds, floor: float) -> Bounds:
    """Bounds as parts of the floor, at most 1."""
    return replace(
        bounds,
        lower=min(1.0, bounds.lower / floor),
        upper=min(1.0, bounds.upper / floor),
        ecmp=None if bounds.ecmp is None else min(1.0, bounds.ecmp / floor),
    )


def _pairable(one: Element, other: Element) -> bool:
    links = ("link", "nic")
    return (one.kind in links and other.kind in links) or (one.kind == other.kind == "switch")


@dataclass
class _Unit:
    """A unit with its GPUs as nodes and every demand of every phase, and its symmetries.

    `node_of[i]` is node i's number in the fabric; row `rows[j]` of the fabric's links is part of link `link_of[j]` of
    the problem. `gone` are nodes that were removed.
    """

    study: FailureStudy
    number: int
    problem: FlowProblem
    node_of: Ints
    rows: Ints
    link_of: Ints
    orbits: Orbits
    digest: str
    gone: tuple[int, ...] = ()

    @staticmethod
    def of(study: FailureStudy, number: int, known: dict[str, Orbits]) -> "_Unit":
        """The unit of this number; `known` are the symmetries of units met before, by digest."""
        fabric, links = study.fabric, study.fabric.links
        inside = study.intact.unit_of_node == number
        rows = np.flatnonzero(inside[links.b] & (inside[links.a] | (fabric.nodes.kind[links.a] < LEAF)))
        ends = np.unique(np.concatenate([links.a[rows], links.b[rows]]))
        local = np.full(fabric.n_nodes, -1, dtype=np.int64)
        local[ends] = np.arange(len(ends))
        a, b, n = local[links.a[rows]], local[links.b[rows]], len(ends)
        _, first, index = np.unique(np.minimum(a, b) * n + np.maximum(a, b), return_index=True, return_inverse=True)
        index = index.reshape(-1)
        kind = fabric.nodes.kind[ends]
        hubs, pairs = _all_demands(study, local, ends[ends < fabric.gpus])
        problem = FlowProblem(
            n,
            np.where(kind == GPU, 0, np.where(kind >= LEAF, 2, 1)),
            kind >= LEAF,
            a[first],
            b[first],
            weigh(index, links.gbps[rows], len(first)),
            np.bincount(index, minlength=len(first)),
            tuple(hubs),
            tuple(pairs),
        )
        name = digest(problem)
        if name not in known:
            known[name] = _orbits(problem)
        return _Unit(study, number, problem, ends, rows, index, known[name], name)

    @property
    def gpus(self) -> Ints:
        """GPUs attached to the unit."""
        return self.node_of[self.node_of < self.study.fabric.gpus]

    def gpu_class(self, gpus: Ints) -> Ints:
        """Class of GPUs of this unit, a number that like units share."""
        return self.orbits.node[np.searchsorted(self.node_of, gpus)]

    def classes(self) -> list[ElementClass]:
        """Classes of links, NICs and switches of the unit."""
        fabric = self.study.fabric
        kind = fabric.nodes.kind[self.node_of]
        there = kind >= LEAF
        there[np.searchsorted(self.node_of, np.array(self.gone, dtype=np.int64))] = False
        switches = np.flatnonzero(there)
        found: list[ElementClass] = []
        for orbit, node, count in _representatives(self.orbits.node[switches], switches):
            gone = Failure(nodes=(int(self.node_of[node]),))
            found.append(ElementClass(Element("switch", kind_name(int(kind[node])), gone, self.number, orbit), count))
        class_of = fabric.link_class()[self.rows]
        counted = (class_of != HOST) | (fabric.links.a[self.rows] < fabric.gpus)
        rows = self.rows[counted]
        kinds: dict[int, int] = dict(zip(self.rows.tolist(), class_of.tolist(), strict=True))
        for orbit, row, count in _representatives(self._link_orbits[self.link_of[counted]], rows):
            where = LINK_CLASSES[kinds[row]]
            name = ("nic", "") if where == "host" else ("link", where)
            found.append(ElementClass(Element(*name, Failure(links=(row,)), self.number, orbit), count))
        return found

    @cached_property
    def _link_orbits(self) -> Ints:
        m = len(self.problem.a)
        return np.minimum(self.orbits.arc[:m], self.orbits.arc[m:])

    def without(self, element: Element) -> "_Unit":
        """The unit less an element, with the symmetries that are left."""
        links, problem = self.study.fabric.links, self.problem
        lost = np.isin(self.rows, np.array(element.failure.links, dtype=np.int64))
        nodes = np.array(element.failure.nodes, dtype=np.int64)
        lost |= np.isin(links.a[self.rows], nodes) | np.isin(links.b[self.rows], nodes)
        rows, link_of = self.rows[~lost], self.link_of[~lost]
        capacity = weigh(link_of, links.gbps[rows], len(problem.a))
        together = np.bincount(link_of, minlength=len(problem.a))
        keep = together > 0
        label = problem.label.copy()
        label[np.searchsorted(self.node_of, nodes)] = 3
        smaller = replace(
            problem,
            label=label,
            a=problem.a[keep],
            b=problem.b[keep],
            capacity=capacity[keep],
            links_of=together[keep],
        )
        link_of = (np.cumsum(keep) - 1)[link_of]
        orbits = _orbits(smaller)
        return _Unit(
            self.study, self.number, smaller, self.node_of, rows, link_of, orbits, self.digest, element.failure.nodes
        )

    def relation(self, other: "_Unit") -> tuple[int, ...]:
        """How another unit stands to this one: GPUs and domains in both, the same plane, the next rail or the last."""
        domain, table = self.study.traffic.hb_domain, self.study.intact.attachment[0]
        mine, theirs = self.gpus, other.gpus
        shared = np.intersect1d(mine, theirs, assume_unique=True)
        domains = np.intersect1d(mine // domain, theirs // domain)
        planes = [(table == unit.number).any(axis=0) for unit in (self, other)]
        rails = [np.unique(gpus % domain) for gpus in (mine, theirs)]
        single = len(rails[0]) == len(rails[1]) == 1
        turn = int(rails[1][0] - rails[0][0]) % domain if single else 0
        turn = turn if turn in (1, domain - 1) else 0  # a single relay is on the next rail
        return len(shared), len(domains), int(np.array_equal(*planes)), turn

    def served(self, element: Element) -> Ints:
        """GPUs that lose a port with this element."""
        links = self.study.fabric.links
        gone = np.isin(links.b, np.array(element.failure.nodes, dtype=np.int64))
        gone[list(element.failure.links)] = True
        return np.unique(links.a[gone & (links.a < self.study.fabric.gpus)])

    def places(self, element: Element) -> Ints:
        """Nodes of the problem that the element is, or joins."""
        links = self.study.fabric.links
        rows = np.array(element.failure.links, dtype=np.int64)
        nodes = np.concatenate([np.array(element.failure.nodes, dtype=np.int64), links.a[rows], links.b[rows]])
        return np.searchsorted(self.node_of, nodes)

    def marked(self, hosts: Ints, twin: Ints | None) -> "_Unit":
        """The unit with some nodes told apart.

        `hosts` are GPUs that lost ports elsewhere, told apart from the others of their domains, and these from the
        rest. `twin` are the places of what another plane lost: planes that lose the same are still alike.
        """
        if not len(hosts) and twin is None:
            return self
        domain, gpu = self.study.traffic.hb_domain, self.node_of < self.study.fabric.gpus
        near = gpu & np.isin(self.node_of // domain, hosts // domain)
        same = gpu & np.isin(self.node_of, hosts)
        label = self.problem.label + 10 * near + 10 * same
        if twin is not None:
            label[twin] += 40 + np.arange(len(twin))
        problem = replace(self.problem, label=label)
        return replace(self, problem=problem, orbits=_orbits(problem))


def kind_name(kind: int) -> str:
    """The name of a kind of node."""
    return KINDS[kind]


def _representatives(orbit: Ints, elements: Ints) -> Iterator[tuple[int, int, int]]:
    numbers, first, counts = np.unique(orbit, return_index=True, return_counts=True)
    for number, index, count in zip(numbers.tolist(), first.tolist(), counts.tolist(), strict=True):
        yield number, int(elements[index]), count


def _orbits(problem: FlowProblem) -> Orbits:
    """Classes of a unit's elements.

    Where domains cut across pods and rails so that hardly two elements are alike, the classes are those of the network
    and its demands alone.
    """
    orbits = SymmetryFinder(problem).find()
    if orbits.node_count > MAX_CLASSES and any(hub.pair_rate == 0 for hub in problem.hubs):
        alone = replace(problem, hubs=tuple(hub for hub in problem.hubs if hub.pair_rate))
        return SymmetryFinder(alone).find()
    return orbits


def _all_demands(study: FailureStudy, local: Ints, gpus: Ints) -> tuple[list[Hubs], list[Pairs]]:
    """Every step of every phase, and the HB domains, as structure that symmetries must keep."""
    hubs: list[Hubs] = []
    pairs: list[Pairs] = []
    inside = np.zeros(study.fabric.gpus, dtype=bool)
    inside[gpus] = True
    domain = gpus // study.traffic.hb_domain
    if len(np.unique(domain)) < len(gpus):
        name = np.unique(domain, return_inverse=True)[1].reshape(-1)
        hubs.append(Hubs(local[gpus], name, np.ones(len(gpus), dtype=np.int64), 0.0))
    for phase in study.traffic.network_phases:
        line_gbps = study.intact.line_rate_gbps(phase)
        for step in phase.steps:
            groups, flows = step_groups(study.traffic, phase, step, line_gbps)
            for group in groups:
                chosen = inside[group.gpu]
                name = np.unique(group.group[chosen], return_inverse=True)[1].reshape(-1)
                each = np.ones(len(name), dtype=np.int64)
                hubs.append(Hubs(local[group.gpu[chosen]], name, each, group.pair_rate, group.hose_rate))
            for flow in flows:
                part = flow.of(inside[flow.source] & inside[flow.target])
                order = np.lexsort((part.target, part.source))
                pairs.append(Pairs(local[part.source][order], local[part.target][order], part.rate[order]))
    return hubs, pairs


def certify_failures(study: FailureStudy, *, pairs: bool = True) -> tuple[FailureResult, ...]:
    """Every class of single failures and, when asked, of pairs; the worst first.

    Classes with the same outcome are told together. Networks of little symmetry have as many classes as elements: where
    they are too many, kinds of failures are bounded as a whole (`failure_bounds`). Where that cannot be, each is looked
    at if the requirements speak of failures, else none (`unseen_failures`). With pairs, which are asked for, all are.
    """
    singles = study.singles()
    unseen = unseen_failures(study, singles)
    if not pairs and (unseen or len(singles) > MOST_ASKED):
        known = bounded_failures(study.intact, study.traffic, study.requirements, study.scale_up_gbps, study.share)
        if unseen or known is not None:
            return tuple(sorted(known or (), key=lambda result: (result.lower, result.removed)))
    results: list[FailureResult] = []
    for found in singles:
        if study.progress:
            study.progress(f"{found.element.name} lost")
        results.append(study.judged((found.element,), found.stands_for))
    if pairs:
        both = _together(study.judged(elements, twice) for elements, twice in study.pairs())
        # Every unordered pair was met twice, once from each of its elements.
        results += [replace(result, stands_for=result.stands_for // 2) for result in both]
    return tuple(sorted(_together(results), key=lambda result: (result.lower, result.removed, -result.stands_for)))


def unseen_failures(study: FailureStudy, singles: list[ElementClass]) -> bool:
    """Whether classes of single failures are not looked at, as they are too many and nothing is asked of them."""
    many = len(singles)
    if study.requirements.survive or many <= FEW_CLASSES:
        return False
    nodes = many * max((unit.problem.nodes for unit in study.units()), default=0)
    return many > MOST_CLASSES or (nodes > MOST_NODES and spread_of(study.intact, study.traffic) is None)


def _together(results: Iterable[FailureResult]) -> list[FailureResult]:
    """Results that differ only in what they stand for, as one."""
    merged: dict[FailureResult, int] = {}
    for result in results:
        rounded = {
            name: None if value is None else round(value, 9)
            for name, value in (
                ("lower", result.lower),
                ("upper", result.upper),
                ("ecmp", result.ecmp),
                ("spread", result.spread),
                ("single_relay", result.single_relay),
            )
        }
        key = replace(result, stands_for=0, **rounded)
        merged[key] = merged.get(key, 0) + result.stands_for
    return [replace(result, stands_for=count) for result, count in merged.items()]


def exhaustive_singles(study: FailureStudy) -> tuple[FailureResult, ...]:
    """Every link, NIC, switch, GPU and HB domain removed, one after the other; like outcomes told together."""
    fabric, domain = study.fabric, study.traffic.hb_domain
    kind, classes = fabric.nodes.kind, fabric.link_class()
    elements: list[Element] = []
    for row, class_ in enumerate(classes.tolist()):
        if class_ != HOST:
            elements.append(Element("link", LINK_CLASSES[int(class_)], Failure(links=(row,)), -1, 0))
        elif fabric.links.a[row] < fabric.gpus:
            elements.append(Element("nic", "", Failure(links=(row,)), -1, 0))
    elements += [
        Element("switch", kind_name(int(kind[node])), Failure(nodes=(node,)), -1, 0)
        for node in np.flatnonzero(kind >= LEAF).tolist()
    ]
    elements += [Element("gpu", "", Failure(nodes=(gpu,)), -1, 0) for gpu in range(fabric.gpus)]
    if domain > 1:
        starts = range(0, fabric.gpus, domain)
        elements += [
            Element("domain", "", Failure(nodes=tuple(range(start, start + domain))), -1, 0) for start in starts
        ]
    if study.progress:
        study.progress(f"{len(elements)} elements, one by one")
    results = _together(study.judged((element,), 1) for element in elements)
    return tuple(sorted(results, key=lambda result: (result.lower, result.removed, -result.stands_for)))
