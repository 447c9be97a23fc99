"""What is owned already: pieces of the catalog that a network may use without buying them.

A piece is a catalog key, and for a fibre its length; whatever a network needs beyond what is owned is bought.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from designer.catalog.components import Catalog
from designer.catalog.media import LinkMedium, item_unit
from designer.fabric.shape import ClassTally

Piece = tuple[str, float]


def piece_of(catalog: Catalog, key: str, length_m: float) -> Piece:
    """The piece that a link of this length takes of a component: of fibres there is one for each length."""
    return (key, length_m) if key in catalog.fibres else (key, 0.0)


def class_pieces(catalog: Catalog, tally: ClassTally, medium: LinkMedium, length_m: float) -> Counter[Piece]:
    """What a class of links takes."""
    needed: Counter[Piece] = Counter()
    for key, count in (
        (medium.per_lower_cage, tally.lower_cages),
        (medium.per_upper_cage, tally.upper_cages),
        (medium.per_link, tally.links),
    ):
        if key is not None:
            needed[piece_of(catalog, key, length_m)] += count
    return needed


@dataclass(frozen=True)
class Stock:
    """Owned pieces as (key, length, number) with their catalog; without `new_switches` no others are bought."""

    catalog: Catalog
    pieces: tuple[tuple[str, float, int], ...]
    new_switches: bool = True

    def __hash__(self) -> int:
        return hash(self.pieces)

    @cached_property
    def owned(self) -> dict[Piece, int]:
        """How many are owned of each piece."""
        return {(key, length_m): count for key, length_m, count in self.pieces}

    @cached_property
    def keys(self) -> frozenset[str]:
        """Catalog keys of what is owned."""
        return frozenset(key for key, _, _ in self.pieces)

    @cached_property
    def value_cents(self) -> int:
        """What all of it would cost to buy."""
        return sum(count * self.prices_cents[piece] for piece, count in self.owned.items())

    @cached_property
    def prices_cents(self) -> dict[Piece, int]:
        """The purchase of one of each piece."""
        return {piece: item_unit(self.catalog, *piece).price_cents for piece in self.owned}

    def reused(self, needed: Mapping[Piece, int]) -> dict[Piece, int]:
        """How many of the needed pieces are owned."""
        owned = self.owned
        return {piece: min(count, owned[piece]) for piece, count in needed.items() if piece in owned}

    def saved_cents(self, needed: Mapping[Piece, int]) -> int:
        """The purchase that is saved, as owned pieces are used."""
        return sum(count * self.prices_cents[piece] for piece, count in self.reused(needed).items())

    def permits(self, needed: Mapping[Piece, int]) -> bool:
        """Whether no switch is needed that may not be bought."""
        if self.new_switches:
            return True
        return all(
            count <= self.owned.get(piece, 0) for piece, count in needed.items() if piece[0] in self.catalog.switches
        )
