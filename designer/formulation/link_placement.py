"""Link placement as an integer program: which switches, which block on which switch, how many links between any two.

No shape is assumed. One `add_...` function for each family of constraints; the columns are

    z_s     whether switch s is used                x_bs    whether block b sits on switch s
    y_stk   bundles of links of kind k between s, t c_se    cages of switch s for ends of kind e
    f_ba    Gb/s that block b sends over arc a      u_stk   whether s and t have links of kind k
    h_se    whether ends of kind e are in the cage of switch s that is taken in part

Money is in USD, rates in units of the slowest link. The model is `solvers.LinearModel`: solved from arrays, handed to
PuLP for its solvers and for LP and MPS files.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from designer.formulation.block_demand import SLACK, BlockDemand, Hose
from designer.formulation.placement import Block, End, LinkKind, Placement, PlacementProblem, Slot
from designer.formulation.solvers import INF, Floats, LinearModel, ModelBuilder

Arc = tuple[int, int]
Terms = tuple[list[int], list[float]]


@dataclass(frozen=True)
class Scenario:
    """When demands must flow: nothing lost, a switch, or one `link` of a `kind`; `share` of each demand."""

    share: float
    switch: int | None = None
    link: Arc | None = None
    kind: int = 0


@dataclass
class PlacementProgram:
    """Columns of the program, and the rows so far. The `add_...` functions write into `builder`."""

    problem: PlacementProblem
    builder: ModelBuilder = field(default_factory=ModelBuilder)
    used: list[int] = field(default_factory=list[int])
    attach: dict[Arc, int] = field(default_factory=dict[Arc, int])
    links: dict[Arc, list[int]] = field(default_factory=dict[Arc, list[int]])
    cages: dict[tuple[int, End, bool], int] = field(default_factory=dict[tuple[int, End, bool], int])
    in_part: dict[tuple[int, End, bool], int] = field(default_factory=dict[tuple[int, End, bool], int])
    some: dict[Arc, list[int]] = field(default_factory=dict[Arc, list[int]])

    @cached_property
    def arcs(self) -> list[Arc]:
        """Ordered pairs of switches that can be joined."""
        pairs = [pair for pair, kinds in self.problem.link_kinds.items() if kinds]
        return pairs + [(other, one) for one, other in pairs]

    def kinds(self, arc: Arc) -> list[tuple[int, LinkKind]]:
        """Column and kind of the links of an arc."""
        pair = (min(arc), max(arc))
        return list(zip(self.links[pair], self.problem.link_kinds[pair], strict=True))

    def ports_on(self, slot: int) -> Terms:
        """Endpoint ports on a switch, as terms."""
        found = [(self.attach[b, slot], float(block.ports)) for b, block in self._on(slot)]
        return [column for column, _ in found], [value for _, value in found]

    def _on(self, slot: int) -> Iterator[tuple[int, Block]]:
        for number, block in enumerate(self.problem.blocks):
            if (number, slot) in self.attach:
                yield number, block

    def model(self, *, relaxed: bool = False) -> LinearModel:
        """The program so far."""
        return self.builder.build(relaxed=relaxed)

    def placement(self, values: Floats) -> Placement:
        """The solution in the columns."""
        homes = np.zeros(len(self.problem.blocks), dtype=np.int64)
        for (block, slot), column in self.attach.items():
            if values[column] > 0.5:
                homes[block] = slot
        links: dict[Arc, tuple[int, ...]] = {}
        for pair, columns in self.links.items():
            kinds = self.problem.link_kinds[pair]
            counts = tuple(round(values[column]) * kind.bundle for column, kind in zip(columns, kinds, strict=True))
            if any(counts):
                links[pair] = counts
        return Placement(homes, links)


def placement_program(
    problem: PlacementProblem, scenarios: list[Scenario], fixed: Placement | None = None, *, order: bool = True
) -> PlacementProgram:
    """The whole program for some scenarios; with `fixed` switches, blocks and links stand and only flows are open."""
    program = PlacementProgram(problem)
    add_switches(program)
    add_attachment(program)
    add_links(program)
    add_cages(program)
    add_port_limits(program)
    add_sides(program)
    if fixed is None and order:
        add_order_of_switches(program)
        add_order_of_blocks(program)
    add_crossing(program)
    if any(scenario.link for scenario in scenarios):
        add_some_links(program)
    for scenario in scenarios:
        for demand in problem.demands:
            asked = demand.at(scenario.share)
            loads = [add_flows(program, asked, scenario), add_hoses(program, asked, scenario)]
            add_capacity(program, loads, scenario)
    if fixed is not None:
        _fix(program, fixed)
    elif problem.least_cents:
        add_least_cost(program)
    return program


def _fix(program: PlacementProgram, placement: Placement) -> None:
    for (block, slot), column in program.attach.items():
        program.builder.fix(column, float(placement.slot_of_block[block] == slot))
    for pair, columns in program.links.items():
        counts = placement.links.get(pair, (0,) * len(columns))
        for column, count, kind in zip(columns, counts, program.problem.link_kinds[pair], strict=True):
            program.builder.fix(column, count / kind.bundle)
    for pair, columns in program.some.items():
        for column, count in zip(columns, placement.links.get(pair, (0,) * len(columns)), strict=True):
            program.builder.fix(column, float(count > 0))


def add_switches(program: PlacementProgram) -> None:
    """z_s in {0, 1}: a switch that is bought costs its price; one that is there already costs nothing."""
    for slot in program.problem.slots:
        least = 1.0 if program.problem.all_bought and slot.cents else 0.0
        program.used.append(program.builder.add_column(slot.cents / 100, least, 1.0, integer=True))


def add_attachment(program: PlacementProgram) -> None:
    """Every block sits whole on one switch that its NICs can be joined to: sum_s x_bs = 1, x_bs <= z_s."""
    problem, builder = program.problem, program.builder
    for b, block in enumerate(problem.blocks):
        columns: list[int] = []
        for s in range(len(problem.slots)):
            kind = problem.host_kinds.get((b, s))
            if kind is not None:
                cost = float(kind.cents) * block.ports / 100
                program.attach[b, s] = builder.add_column(cost, 0.0, 1.0, integer=True)
                columns.append(program.attach[b, s])
                builder.add_row(-INF, 0.0, [program.attach[b, s], program.used[s]], [1.0, -1.0])
        builder.add_row(1.0, 1.0, columns, [1.0] * len(columns))


def add_links(program: PlacementProgram) -> None:
    """y_stk whole, at most what the ports of both switches hold, at the price of its fibres."""
    problem = program.problem
    for (one, other), kinds in problem.link_kinds.items():
        program.links[one, other] = []
        for kind in kinds:
            most = min(
                int(slot.port_room / slot.port_weight(end.per_cage))
                for slot, end in ((problem.slots[one], kind.lower), (problem.slots[other], kind.upper))
            )
            most = min(most, *(slot.cages * end.per_cage for slot, end in _ends(problem, (one, other), kind)))
            column = program.builder.add_column(
                kind.bundle * kind.cents / 100, 0.0, float(most // kind.bundle), integer=True
            )
            program.links[one, other].append(column)


def _ends(problem: PlacementProblem, pair: Arc, kind: LinkKind) -> tuple[tuple[Slot, End], tuple[Slot, End]]:
    return (problem.slots[pair[0]], kind.lower), (problem.slots[pair[1]], kind.upper)


def _ports_by_end(program: PlacementProgram) -> dict[tuple[int, End, bool], Terms]:
    """For each switch and kind of ends (to hosts or not): the ports that it has, as terms."""
    problem = program.problem
    found: dict[tuple[int, End, bool], Terms] = {}

    def note(slot: int, end: End, hosts: bool, column: int, ports: float) -> None:
        columns, values = found.setdefault((slot, end, hosts), ([], []))
        columns.append(column)
        values.append(ports)

    for (b, s), column in program.attach.items():
        note(s, problem.host_kinds[b, s].end, True, column, float(problem.blocks[b].ports))
    for (one, other), columns in program.links.items():
        for column, kind in zip(columns, problem.link_kinds[one, other], strict=True):
            note(one, kind.lower, False, column, float(kind.bundle))
            note(other, kind.upper, False, column, float(kind.bundle))
    return found


def add_cages(program: PlacementProgram) -> None:
    """Ports of one kind fill cages of p ports, each with one module: sum of ports <= p c_se, c_se whole.

    Where a used switch has a cage of which q ports are taken, sum of ports <= p c_se - q h_se.
    """
    for (s, end, hosts), (ports, counts) in _ports_by_end(program).items():
        slot, builder = program.problem.slots[s], program.builder
        cage = builder.add_column(end.cage_cents / 100, 0.0, float(slot.cages), integer=True)
        program.cages[s, end, hosts] = cage
        columns, values = [*ports, cage], [*counts, -float(end.per_cage)]
        lost = slot.lost_in_part(end.per_cage)
        if lost is not None:
            part = builder.add_column(0.0, 0.0, 1.0, integer=True)
            program.in_part[s, end, hosts] = part
            columns.append(part)
            values.append(float(lost))
        builder.add_row(-INF, 0.0, columns, values)


def add_port_limits(program: PlacementProgram) -> None:
    """Cages and ports of a switch: sum_e c_se <= cages_s z_s, and sum of weighted ports <= ports_s z_s.

    On a switch that is there already a port of a cage broken out counts as its part of a free port, and a cage that is
    taken in part holds ends of one kind: sum_e c_se <= (cages_s - 1) z_s + sum_e h_se, sum_e h_se <= 1.
    """
    by_end = _ports_by_end(program)
    for s, slot in enumerate(program.problem.slots):
        cages = [column for (at, _, _), column in program.cages.items() if at == s]
        parts = [column for (at, _, _), column in program.in_part.items() if at == s]
        whole = slot.cages - 1 if parts else slot.cages
        terms = [1.0] * len(cages) + [-1.0] * len(parts) + [-float(whole)]
        program.builder.add_row(-INF, 0.0, [*cages, *parts, program.used[s]], terms)
        if parts:
            program.builder.add_row(-INF, 1.0, parts, [1.0] * len(parts))
        columns: list[int] = []
        values: list[float] = []
        for (at, end, _), (ports, counts) in by_end.items():
            if at == s:
                columns += ports
                values += [count * float(slot.port_weight(end.per_cage)) for count in counts]
        program.builder.add_row(-INF, 0.0, [*columns, program.used[s]], [*values, -float(slot.port_room)])


def add_sides(program: PlacementProgram) -> None:
    """A switch serves one side of the HB domains, so that losing it leaves each domain the other.

    With w_s in {0, 1}

    x_bs <= w_s (b on side 1),  x_bs <= 1 - w_s (b on side 0),  and no links between switches of different sides.
    """
    problem, builder = program.problem, program.builder
    if problem.sides == 1:
        return
    side = [builder.add_column(0.0, 0.0, 1.0, integer=True) for _ in problem.slots]
    for (b, s), column in program.attach.items():
        if problem.blocks[b].side:
            builder.add_row(-INF, 0.0, [column, side[s]], [1.0, -1.0])
        else:
            builder.add_row(-INF, 1.0, [column, side[s]], [1.0, 1.0])
    for (one, other), columns in program.links.items():
        for column in columns:
            most = builder.upper_of(column)
            builder.add_row(-INF, most, [column, side[one], side[other]], [1.0, most, -most])
            builder.add_row(-INF, most, [column, side[other], side[one]], [1.0, most, -most])


def add_order_of_switches(program: PlacementProgram) -> None:
    """Of switches that can be swapped the earlier one holds no fewer ports and is used first: z_s >= z_s+1.

    Any solution can be renumbered so.
    """
    slots = program.problem.slots
    for s in range(len(slots) - 1):
        if slots[s].alike != slots[s + 1].alike:
            continue
        program.builder.add_row(0.0, INF, [program.used[s], program.used[s + 1]], [1.0, -1.0])
        columns, values = program.ports_on(s)
        others, theirs = program.ports_on(s + 1)
        program.builder.add_row(0.0, INF, columns + others, values + [-value for value in theirs])


def add_order_of_blocks(program: PlacementProgram) -> None:
    """Of blocks that can be swapped the earlier one sits no further back: sum_s s x_bs <= sum_s s x_b's."""
    blocks, slots = program.problem.blocks, len(program.problem.slots)
    last: dict[int, int] = {}
    for b, block in enumerate(blocks):
        before = last.get(block.alike)
        if block.alike >= 0 and before is not None:
            terms = [(program.attach[before, s], float(s)) for s in range(slots) if (before, s) in program.attach]
            terms += [(program.attach[b, s], -float(s)) for s in range(slots) if (b, s) in program.attach]
            program.builder.add_row(-INF, 0.0, [column for column, _ in terms], [value for _, value in terms])
        last[block.alike] = b


def add_crossing(program: PlacementProgram) -> None:
    """What any n endpoints send out of their switch: B(n) >= n B(m)/m for n <= m, as B is concave from 0 on.

        sum of link rates at s >= crossing * ports on s.

    Source: the bound of `bounds.py` for any network of these switches.
    """
    problem = program.problem
    if problem.crossing <= SLACK:
        return
    for s in range(len(problem.slots)):
        columns, values = program.ports_on(s)
        values = [-problem.crossing * value for value in values]
        for pair in program.links:
            if s in pair:
                for column, kind in program.kinds(pair):
                    columns.append(column)
                    values.append(float(kind.gbps * kind.bundle))
        program.builder.add_row(0.0, INF, columns, values)


def add_least_cost(program: PlacementProgram) -> None:
    """No network costs less than what is proven of any: the objective is at least that."""
    columns, costs = program.builder.costs()
    program.builder.add_row(program.problem.least_cents / 100, INF, columns, costs)


def add_some_links(program: PlacementProgram) -> None:
    """u_stk = 1 where there are links of a kind: y_stk <= most u_stk and u_stk <= y_stk."""
    for pair, columns in program.links.items():
        program.some[pair] = []
        for column in columns:
            some = program.builder.add_column(0.0, 0.0, 1.0, integer=True)
            program.some[pair].append(some)
            most = program.builder.upper_of(column)
            program.builder.add_row(-INF, 0.0, [column, some], [1.0, -most])
            program.builder.add_row(0.0, INF, [column, some], [1.0, -1.0])


def _alive(program: PlacementProgram, scenario: Scenario) -> list[Arc]:
    return [arc for arc in program.arcs if scenario.switch not in arc]


def _capacity(program: PlacementProgram, arc: Arc, scenario: Scenario) -> Terms:
    """Rate of an arc in a scenario, as terms."""
    unit = program.problem.unit_gbps
    terms: Terms = ([], [])
    for place, (column, kind) in enumerate(program.kinds(arc)):
        terms[0].append(column)
        terms[1].append(kind.gbps * kind.bundle / unit)
        if scenario.link == (min(arc), max(arc)) and scenario.kind == place:
            terms[0].append(program.some[min(arc), max(arc)][place])
            terms[1].append(-kind.gbps / unit)
    return terms


def add_capacity(program: PlacementProgram, loads: list[dict[Arc, Terms]], scenario: Scenario) -> None:
    """What the flows of a demand put on an arc is at most the rate of its links; a pair that loses a link has one less.

    sum of loads on (s, t) <= sum_k r_k y_stk, less r_l u_stl where one of kind l is lost.
    """
    for arc in _alive(program, scenario):
        columns, values = _capacity(program, arc, scenario)
        loaded = [load[arc] for load in loads if arc in load]
        for others, theirs in loaded:
            columns = columns + others
            values = values + [-value for value in theirs]
        if loaded:
            program.builder.add_row(0.0, INF, columns, values)


def add_flows(program: PlacementProgram, demand: BlockDemand, scenario: Scenario) -> dict[Arc, Terms]:
    """Flows by source block: d_bh Gb/s from block b to block h, wherever the two sit.

    At every switch v

        sum of f_ba into v - sum of f_ba out of v = sum_h d_bh x_hv - D_b x_bv,   D_b = sum_h d_bh.

    One commodity a source gives the same relaxation as one a pair. Returned are the loads of the arcs, sum_b f_ba.
    Source: Bienstock, Chopra, Günlük, Tsai, Mathematical Programming 81 (1998); the sites are variables here.

    Where switch v is lost, blocks on it neither send nor receive: block b sends i_bt <= D_b x_bt at the switches t
    left, and what arrives at t is at least sum_h d_bh x_ht - D_b x_bv (nothing, where b itself is lost).
    """
    builder, unit = program.builder, program.problem.unit_gbps
    arcs = _alive(program, scenario)
    loads: dict[Arc, Terms] = {}
    for b in range(len(program.problem.blocks)):
        wanted = demand.gbps[b] / unit
        total = float(wanted.sum())
        if total <= SLACK:
            continue
        own = {arc: builder.add_column(0.0, 0.0, total) for arc in arcs}
        for arc, column in own.items():
            columns, values = loads.setdefault(arc, ([], []))
            columns.append(column)
            values.append(1.0)
        for v in range(len(program.problem.slots)):
            if v != scenario.switch:
                _balance(program, b, v, wanted, own, scenario)
    return loads


def _balance(
    program: PlacementProgram, b: int, v: int, wanted: Floats, own: dict[Arc, int], scenario: Scenario
) -> None:
    builder = program.builder
    total = float(wanted.sum())
    columns = [column for arc, column in own.items() if v in arc]
    values = [1.0 if arc[1] == v else -1.0 for arc in own if v in arc]
    arriving = [
        (program.attach[h, v], float(wanted[h]))
        for h in np.flatnonzero(wanted > 0).tolist()
        if (h, v) in program.attach
    ]
    home = program.attach.get((b, v))
    if scenario.switch is None:
        leaving = [(home, total)] if home is not None else []
        columns += [column for column, _ in arriving] + [column for column, _ in leaving]
        values += [-value for _, value in arriving] + [value for _, value in leaving]
        builder.add_row(0.0, 0.0, columns, values)
        return
    sent = builder.add_column(0.0, 0.0, total)
    if home is not None:
        builder.add_row(-INF, 0.0, [sent, home], [1.0, -total])
    else:
        builder.fix(sent, 0.0)
    received = builder.add_column(0.0, 0.0, total)
    terms = [(received, 1.0), *((column, -value) for column, value in arriving)]
    if (b, scenario.switch) in program.attach:
        terms.append((program.attach[b, scenario.switch], total))
    builder.add_row(0.0, INF, [column for column, _ in terms], [value for _, value in terms])
    builder.add_row(0.0, 0.0, [*columns, received, sent], [*values, -1.0, 1.0])


def add_hoses(program: PlacementProgram, demand: BlockDemand, scenario: Scenario) -> dict[Arc, Terms]:
    """Groups that mean `any`, by one routing for all permutations.

    With unit flows g_bha from block b to block h

        sum of g_bha into v - out of v = x_hv - x_bv,
        load of arc a = sum over groups G of r_G (sum_b m_Gb alpha_aGb + sum_h m_Gh beta_aGh),
        alpha_aGb + beta_aGh >= g_bha,   alpha, beta >= 0,

    the dual of the worst matrix with row and column sums r_G m_G. Where switch v is lost, a pair with a block on it
    needs no flow. Returned are the loads of the arcs.
    Source: Altin, Amaldi, Belotti, Pinar, Networks 49 (2007), of the hose model of Duffield et al., SIGCOMM 1999.
    """
    builder, arcs = program.builder, _alive(program, scenario)
    pairs = sorted({(b, h) for hose in demand.hoses for b in _in(hose) for h in _in(hose) if b != h})
    flow = {(pair, arc): builder.add_column(0.0, 0.0, 1.0) for pair in pairs for arc in arcs}
    for pair in pairs:
        for v in range(len(program.problem.slots)):
            if v != scenario.switch:
                own = {arc: flow[pair, arc] for arc in arcs if v in arc}
                _unit_balance(program, pair, v, own, scenario)
    loads: dict[Arc, Terms] = {}
    for arc in arcs if pairs else []:
        columns, values = loads[arc] = [], []
        for hose in demand.hoses:
            rate, members = hose.gbps / program.problem.unit_gbps, _in(hose)
            out = {b: builder.add_column(0.0, 0.0, 1.0) for b in members}
            into = {b: builder.add_column(0.0, 0.0, 1.0) for b in members}
            for b in members:
                columns.extend((out[b], into[b]))
                values.extend([rate * float(hose.members[b])] * 2)
                for h in members:
                    if b != h:
                        builder.add_row(0.0, INF, [out[b], into[h], flow[(b, h), arc]], [1.0, 1.0, -1.0])
    return loads


def _in(hose: Hose) -> list[int]:
    return np.flatnonzero(hose.members > 0).tolist()


def _unit_balance(program: PlacementProgram, pair: Arc, v: int, own: dict[Arc, int], scenario: Scenario) -> None:
    builder, (b, h) = program.builder, pair
    terms = [(column, 1.0 if arc[1] == v else -1.0) for arc, column in own.items()]
    home, away = program.attach.get((b, v)), program.attach.get((h, v))
    terms += [(home, 1.0)] if home is not None else []
    terms += [(away, -1.0)] if away is not None else []
    if scenario.switch is None:
        builder.add_row(0.0, 0.0, [column for column, _ in terms], [value for _, value in terms])
        return
    # At v arrives no less than x_hv - x_bv, less 1 for each end of the pair that is lost.
    lost = [program.attach[end, scenario.switch] for end in pair if (end, scenario.switch) in program.attach]
    terms += [(column, 1.0) for column in lost]
    builder.add_row(0.0, INF, [column for column, _ in terms], [value for _, value in terms])
