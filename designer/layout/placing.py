"""Which switch stands in which rack: assignments that keep cables cheap, and short among equals.

A tier is placed at a time, the others fixed: what a switch's cables cost is then a number for each rack, and the best
places are an assignment problem (OR-Tools' min-cost flow; slots of a rack are alike, and so are switches with the same
costs). Leaves are placed first, by their hosts alone or as if all that they are joined to stood in the one best rack;
spines by their leaves, cores by their spines; then each tier again, with all its links, while that makes cables
cheaper. The better of both beginnings is taken.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow  # pyright: ignore[reportMissingTypeStubs]  it ships none

from designer.catalog.components import Catalog
from designer.costing.pricing import Pricing
from designer.fabric.fabric import CORE, LEAF, MANAGEMENT, SPINE, Column, Fabric
from designer.instance.instance import Cluster
from designer.instance.schema import LayoutSection
from designer.layout.floor import Floor, Places, length_classes, make_floor, server_racks, switch_racks_for
from designer.layout.shortest import least_cents
from designer.layout.slots import switches_per_rack
from designer.layout.sockets import sockets_of

MOST_ROUNDS = 6
WORTH = 1e-4  # improvement of a round below which there is no other
MOST_TARGETS = 32
CENT = 1000  # weight of a cent
DECIMETRES = 10  # weight of a metre: a hundredth of a cent, so that length decides among equal prices only
NO_CABLE_CENTS = 1e8  # of a link that no cable of the catalog can be: to be avoided

Costs = NDArray[np.int64]


class AssignmentError(RuntimeError):
    """The solver found no assignment where one exists."""


def place_switches(
    fabric: Fabric, catalog: Catalog, cluster: Cluster, layout: LayoutSection, pricing: Pricing
) -> tuple[Floor, Places]:
    """The floor with as many racks for switches as they need, and their places.

    Raises:
        InstanceError: a rack powers no switch.
    """
    slots = switches_per_rack(layout, catalog, [catalog.switches[key] for key in fabric.models])
    switches = int((fabric.nodes.kind >= LEAF).sum())
    management = bool((fabric.nodes.kind == MANAGEMENT).any())
    racks = server_racks(layout, cluster, management=management)
    needed = switch_racks_for(layout, racks, -(-switches // slots))
    floor = make_floor(layout, cluster, needed, management=management)
    rack = _Placing(fabric, catalog, cluster, floor, pricing).run(slots)
    return floor, Places(needed, rack, _units(layout, rack))


def _units(layout: LayoutSection, rack: Column) -> Column:
    """Lowest unit of each switch: racks are filled from the top, near the tray, in the order of the nodes."""
    order = np.argsort(rack, kind="stable")
    first = np.searchsorted(rack[order], rack[order])
    number = np.empty(len(rack), dtype=np.int64)
    number[order] = np.arange(len(rack)) - first
    return layout.rack_units + 1 - layout.switch_units * (number + 1)


def assign(costs: Costs, slots: Column) -> Column:
    """The column of each row such that the costs add up to the least, each column taken at most `slots` times.

    Raises:
        AssignmentError: there are fewer slots than rows.
    """
    kinds, kind = np.unique(costs, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    supplies = np.bincount(kind, minlength=len(kinds))
    columns = len(slots)
    row, column = np.divmod(np.arange(len(kinds) * columns), columns)
    sink = len(kinds) + columns
    flow: Any = min_cost_flow.SimpleMinCostFlow()  # its types ask for the width of every array
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        np.concatenate([row, len(kinds) + np.arange(columns)]),
        np.concatenate([len(kinds) + column, np.full(columns, sink)]),
        np.concatenate([supplies[row], slots]),
        np.concatenate([(kinds - kinds.min(axis=1, keepdims=True)).reshape(-1), np.zeros(columns, dtype=np.int64)]),
    )
    flow.set_nodes_supplies(np.arange(len(kinds)), supplies)
    flow.set_node_supply(sink, -len(costs))
    if flow.solve() != flow.OPTIMAL:
        raise AssignmentError(f"{len(costs)} switches for {int(slots.sum())} slots")
    taken = np.asarray(flow.flows(arcs[: len(row)]), dtype=np.int64)
    result = np.empty(len(costs), dtype=np.int64)
    result[np.argsort(kind, kind="stable")] = np.repeat(column, taken)
    return result


@dataclass(frozen=True)
class _Ends:
    """Equal links, counted: of a kind, from `switch` to a rack or to another switch (`other`)."""

    kind: Column
    switch: Column
    other: Column
    count: Column

    def of(self, chosen: NDArray[np.bool_]) -> "_Ends":
        """Some of them."""
        return _Ends(self.kind[chosen], self.switch[chosen], self.other[chosen], self.count[chosen])


class _Placing:
    """Prices of links from rack to rack, and the places of switches, improved tier by tier."""

    def __init__(self, fabric: Fabric, catalog: Catalog, cluster: Cluster, floor: Floor, pricing: Pricing) -> None:
        self.fabric, self.catalog, self.floor, self.pricing = fabric, catalog, floor, pricing
        sockets = sockets_of(fabric, catalog, cluster)
        links = fabric.links
        ends = np.stack([sockets.kind[sockets.lower], sockets.kind[sockets.upper], links.gbps], axis=1)
        rows, kind = np.unique(ends, axis=0, return_inverse=True)
        joined: list[list[int]] = rows.tolist()
        self.kinds = [(sockets.kinds[lower], sockets.kinds[upper], gbps) for lower, upper, gbps in joined]
        first = int(np.flatnonzero(fabric.nodes.kind >= LEAF)[0])
        self.tier = fabric.nodes.kind[first:]
        hosts = links.a < first
        rack = np.full(first, floor.management_rack or 0, dtype=np.int64)
        rack[: fabric.gpus] = floor.rack_of_gpu
        kind = kind.reshape(-1)
        self.hosts = _counted(kind[hosts], links.b[hosts] - first, rack[links.a[hosts]])
        self.pairs = _counted(kind[~hosts], links.b[~hosts] - first, links.a[~hosts] - first)

    @cached_property
    def prices(self) -> list[Costs]:
        """For each kind of links, what one costs from any rack to any of the switches' racks."""
        floor = self.floor
        switches = np.arange(floor.first_switch_rack, floor.racks)
        need_m = floor.need_m(np.arange(floor.racks)[:, None], switches[None, :])
        lengths_m, length = np.unique(length_classes(need_m), return_inverse=True)
        tables: list[Costs] = []
        for lower, upper, gbps in self.kinds:
            found = [least_cents(self.catalog, self.pricing, lower, upper, gbps, each) for each in lengths_m.tolist()]
            cents = np.rint(CENT * np.minimum(found, NO_CABLE_CENTS)).astype(np.int64)
            tables.append(cents[length.reshape(need_m.shape)] + np.rint(DECIMETRES * need_m).astype(np.int64))
        return tables

    def run(self, slots: int) -> Column:
        """The rack of each switch, counted among those of switches; each holds at most `slots`."""
        if self.floor.racks == self.floor.first_switch_rack + 1:
            return np.zeros(len(self.tier), dtype=np.int64)
        beginnings = [self._host_costs[self.tier == LEAF]]
        if len(self.pairs.count):
            beginnings.append(beginnings[0] + self._uplink_costs(beginnings[0]))
        found = [self._improved(costs, slots) for costs in beginnings]
        return min(found, key=lambda item: item[0])[1]

    def _improved(self, costs: Costs, slots: int) -> tuple[int, Column]:
        """Weighted cost and racks, beginning with leaves assigned by these costs."""
        rack = np.full(len(self.tier), -1, dtype=np.int64)
        rack[self.tier == LEAF] = assign(costs, slots - np.zeros(costs.shape[1], dtype=np.int64))
        tiers = [tier for tier in (LEAF, SPINE, CORE) if (self.tier == tier).any()]
        for tier in tiers[1:]:
            rack = self._placed(tier, rack, slots)
        best = self.total(rack)
        for _ in range(MOST_ROUNDS):
            before = best
            for tier in tiers:
                tried = self._placed(tier, rack, slots)
                cost = self.total(tried)
                if cost < best:
                    rack, best = tried, cost
            if best >= before * (1 - WORTH):
                break
        return best, rack

    @cached_property
    def _host_costs(self) -> Costs:
        """(switches, racks): what the links to hosts of each switch cost from each rack."""
        racks = self.floor.racks - self.floor.first_switch_rack
        costs = np.zeros((len(self.tier), racks), dtype=np.int64)
        for kind, table in enumerate(self.prices):
            part = self.hosts.of(self.hosts.kind == kind)
            for rack in range(racks if len(part.count) else 0):
                weights = part.count * table[part.other, rack]
                costs[:, rack] += np.rint(np.bincount(part.switch, weights, len(self.tier))).astype(np.int64)
        return costs

    def _uplink_costs(self, hosts: Costs) -> Costs:
        """What all other links of each leaf cost from each rack, if their other ends were in the best of some racks."""
        shape = len(self.tier), len(self.prices)
        place = [end * shape[1] + self.pairs.kind for end in (self.pairs.switch, self.pairs.other)]
        links = np.bincount(np.concatenate(place), np.tile(self.pairs.count, 2), shape[0] * shape[1]).reshape(shape)
        of_leaf = links[self.tier == LEAF]

        def costs(target: int) -> Costs:
            prices = np.stack([table[self.floor.first_switch_rack + target] for table in self.prices])
            return np.rint(of_leaf @ prices.astype(np.float64)).astype(np.int64)  # exact, as below

        step = -(-hosts.shape[1] // MOST_TARGETS)
        best = min(
            range(step // 2, hosts.shape[1], step), key=lambda target: int((hosts + costs(target)).min(axis=1).sum())
        )
        return costs(best)

    def total(self, rack: Column) -> int:
        """Weighted cost of all links."""
        return int(
            (self.hosts.count * self._each(self.hosts, self.hosts.other, rack[self.hosts.switch])).sum()
            + (
                self.pairs.count
                * self._each(self.pairs, self.floor.first_switch_rack + rack[self.pairs.other], rack[self.pairs.switch])
            ).sum()
        )

    def _each(self, ends: _Ends, rack: Column, switch_rack: Column) -> Costs:
        result = np.zeros(len(rack), dtype=np.int64)
        for kind, table in enumerate(self.prices):
            mine = ends.kind == kind
            result[mine] = table[rack[mine], switch_rack[mine]]
        return result

    def _placed(self, tier: int, rack: Column, slots: int) -> Column:
        """The racks with those of a tier assigned anew, given where hosts and all other placed switches stand."""
        mine = self.tier == tier
        costs = self._host_costs[mine] + self._pair_costs(rack, mine)
        others = rack[~mine & (rack >= 0)]
        result = rack.copy()
        result[mine] = assign(costs, slots - np.bincount(others, minlength=costs.shape[1]))
        return result

    def _pair_costs(self, rack: Column, chosen: NDArray[np.bool_]) -> Costs:
        """What the links of some switches to others cost from each rack, to those of the others that have a place."""
        racks = self.floor.racks - self.floor.first_switch_rack
        number = np.where(chosen, np.cumsum(chosen) - 1, -1)
        costs = np.zeros((int(chosen.sum()), racks))
        for switch, other in ((self.pairs.switch, self.pairs.other), (self.pairs.other, self.pairs.switch)):
            known = (number[switch] >= 0) & (rack[other] >= 0)
            for kind, table in enumerate(self.prices):
                part = known & (self.pairs.kind == kind)
                place = number[switch[part]] * racks + rack[other[part]]
                links = np.bincount(place, self.pairs.count[part], costs.size).reshape(costs.shape)
                # Exact, as all sums of whole numbers below 2^53 are.
                costs += links @ table[self.floor.first_switch_rack :].astype(np.float64)
        return np.rint(costs).astype(np.int64)


def _counted(kind: Column, switch: Column, other: Column) -> _Ends:
    """Links with the same kind and ends, counted."""
    rows, count = np.unique(np.stack([kind, switch, other], axis=1), axis=0, return_counts=True)
    return _Ends(rows[:, 0], rows[:, 1], rows[:, 2], count)
