"""The cheapest Clos network beside what is owned, by looking at every one of them.

The enumeration of `brute_force.py` goes on, with baskets of pieces in place of prices; a basket is compared by what of
it has to be bought.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from designer.catalog.media import LinkMedium, link_media
from designer.costing.stock import Stock
from designer.instance.instance import Instance
from designer.workload.traffic import Traffic
from tests.reference.brute_force import NEVER, BruteForce


@dataclass(frozen=True, eq=False)
class Basket:
    """Pieces with what all of them cost when none is owned, energy included."""

    stock: Stock
    pieces: Counter
    cents: int

    def __add__(self, other: Any) -> "Basket":
        if not isinstance(other, Basket):
            return self
        return Basket(self.stock, self.pieces + other.pieces, self.cents + other.cents)

    __radd__ = __add__

    def __rmul__(self, times: int) -> "Basket":
        return Basket(self.stock, Counter({key: times * n for key, n in self.pieces.items()}), times * self.cents)

    def bought(self) -> float:
        """What is bought; infinite where a switch may not be."""
        cents = self.cents
        for (key, length_m), count in self.pieces.items():
            owned = self.stock.owned.get((key, length_m), 0)
            if not self.stock.new_switches and key in self.stock.catalog.switches and count > owned:
                return NEVER
            if owned:
                cents -= min(count, owned) * self.stock.prices_cents[key, length_m]
        return cents

    def __ge__(self, other: float) -> bool:
        return self.bought() >= other


class BruteStock(BruteForce):
    """All Clos networks of an instance beside a stock."""

    def __init__(self, instance: Instance, traffic: Traffic, stock: Stock) -> None:
        super().__init__(instance, traffic)
        self.stock, self.prices = stock, self.pricing
        self.pricing: Any = self
        self.switches = [
            switch for key, switch in self.catalog.switches.items() if set(switch.protocols) & set(self.nic.protocols)
        ]

    def switch_cents(self, switch) -> Basket:
        """One switch as a basket."""
        return Basket(self.stock, Counter({(switch.key, 0.0): 1}), self.prices.switch_cents(switch))

    def media(self, lower, upper, gbps: int, where: str) -> Sequence[LinkMedium]:
        """All media that fit, marked with their length."""
        length_m = getattr(self.instance.cabling, f"{where}_m")
        ends = (lower[0].cage, lower[1], upper[0].cage, upper[1])
        found = link_media(self.catalog, *ends, gbps, length_m, self.stock.keys)
        return [replace(medium, key=f"{length_m}/{medium.key}") for medium in found]

    def class_cents(self, medium: LinkMedium, lower_cages: int, upper_cages: int, links: int) -> Any:
        """A class of links as a basket."""
        length_m = float(medium.key.split("/")[0])
        pieces: Counter = Counter()
        counts = (lower_cages, upper_cages, links)
        keys = (medium.per_lower_cage, medium.per_upper_cage, medium.per_link)
        for key, count in zip(keys, counts, strict=True):
            if key is not None:
                pieces[key, length_m if key in self.catalog.fibres else 0.0] += count
        units = (
            (lower_cages, medium.lower_cage_cents, medium.lower_cage_w),
            (upper_cages, medium.upper_cage_cents, medium.upper_cage_w),
            (links, medium.link_cents, medium.link_w),
        )
        cents = sum(number * self.prices.unit_cents(each, watts) for number, each, watts in units)
        return Basket(self.stock, pieces, cents)

    def take(self, cents: Any, *words: object) -> None:
        """Takes a network by what of it is bought."""
        super().take(cents.bought(), *words)
