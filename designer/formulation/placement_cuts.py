"""Valid inequalities for link placements whose blocks stand already: they close most of the gap before any branching.

`slots` gives the switch of each block.
"""

import math
from itertools import combinations

import numpy as np

from designer.formulation.block_demand import SLACK, BlockDemand
from designer.formulation.link_placement import PlacementProgram
from designer.formulation.solvers import INF, Ints


def add_shortfalls(program: PlacementProgram, demand: BlockDemand, slots: Ints) -> None:
    """What exceeds the direct links of a pair of switches takes two hops at least.

        q_st >= d_st - R y_st,   q_st >= (d_st - R floor(d_st/R)) (floor(d_st/R) + 1 - y_st),   in both directions,
        sum of all rates, both directions >= sum of d_st + sum of q_st,

    d_st the demand between the blocks that stand on s and t, R the rate of the one kind of links that joins them. The
    second row is the mixed integer rounding of the first (Nemhauser, Wolsey 1990). Nothing where pairs have a choice of
    kinds.
    """
    builder, unit = program.builder, program.problem.unit_gbps
    table = np.zeros((len(program.problem.slots),) * 2)
    np.add.at(table, (slots[:, None], slots[None, :]), demand.gbps / unit)
    np.fill_diagonal(table, 0.0)
    columns: list[int] = []
    values: list[float] = []
    total = 0.0
    if any(len(program.kinds(arc)) > 1 for arc in program.arcs):
        return
    for arc in program.arcs:
        column, kind = program.kinds(arc)[0]
        rate, wanted = kind.gbps * kind.bundle / unit, float(table[arc])
        short = builder.add_column(0.0)
        builder.add_row(wanted, INF, [short, column], [1.0, rate])
        whole = math.floor(wanted / rate + SLACK)
        rest = wanted - whole * rate
        if rest > SLACK:
            builder.add_row(rest * (whole + 1), INF, [short, column], [1.0, rest])
        columns.append(short)
        values.append(-1.0)
        total += wanted
        if arc in program.links:
            columns.append(column)
            values.append(2 * rate)
    builder.add_row(total, INF, columns, values)


def add_cut_sets(program: PlacementProgram, demand: BlockDemand, slots: Ints, most: int) -> None:
    """For every set U of at most `most` switches the links out of it carry what the blocks on it send and receive.

        sum of y over pairs with one end in U >= ceil(max(out of U, into U) / R),

    `any` counting r_G min(m_G(U), m_G - m_G(U)); R is the rate of the fastest link. Rounding up is valid as y is whole.
    Source: cut-set inequalities, Magnanti, Mirchandani, Vachani, Operations Research 43 (1995).
    """
    count = len(program.problem.slots)
    fastest = max((kind.gbps for arc in program.arcs for _, kind in program.kinds(arc)), default=0)
    for size in range(1, most + 1):
        for chosen in combinations(range(count), size):
            inside = np.isin(slots, chosen)
            out, into = demand.gbps[inside][:, ~inside].sum(), demand.gbps[~inside][:, inside].sum()
            need = max(float(out), float(into)) + sum(
                hose.gbps * min(int(hose.members[inside].sum()), int(hose.members[~inside].sum()))
                for hose in demand.hoses
            )
            if need <= SLACK or not fastest:
                continue
            crossing = [arc for arc in program.links if (arc[0] in chosen) != (arc[1] in chosen)]
            terms = [(column, float(kind.bundle)) for arc in crossing for column, kind in program.kinds(arc)]
            least = math.ceil(need / fastest - SLACK)
            program.builder.add_row(least, INF, [column for column, _ in terms], [value for _, value in terms])
