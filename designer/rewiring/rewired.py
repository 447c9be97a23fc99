"""What became of a network that was there, as a design tells it and as its file holds it."""

from dataclasses import dataclass
from typing import Any

from designer.fabric.fabric import Column
from designer.instance.existing import ExistingNetwork
from designer.rewiring.moves import Moves
from designer.units import usd


@dataclass(frozen=True)
class Fresh:
    """A network bought anew for the same instance: cost in cents, and its links, all of which are plugged."""

    cost_cents: int
    links: int


@dataclass(frozen=True)
class Rewired:
    """Switch i of the network, in the order of nodes, is the old node `same_as[i]`; -1 where it is new.

    No other choice of the switches keeps more than `kept_at_most` links of this network. No network of its family that
    costs as little plugs fewer than `plugged_at_least` links; None where that is not known.
    """

    existing: ExistingNetwork
    same_as: Column
    moves: Moves
    kept_at_most: int
    fresh: Fresh | None = None
    plugged_at_least: int | None = None

    @property
    def reused_switches(self) -> int:
        """Switches of the network that were there."""
        return int((self.same_as >= 0).sum())

    def to_document(self) -> dict[str, Any]:
        """The part `existing` of a design file; it holds the old network, so that moves can be counted again."""
        existing, moves = self.existing, self.moves
        return {
            "file": existing.file,
            "wiring": existing.wiring,
            "digest": existing.digest,
            "new_switches": existing.stock.new_switches,
            "most_links_moved": existing.most_links_moved,
            "usd_per_link_moved": usd(existing.cents_per_link_moved),
            "kept": moves.kept,
            "plugged": moves.plugged,
            "pulled": moves.pulled,
            "kept_at_most": self.kept_at_most,
            "plugged_at_least": self.plugged_at_least,
            "classes": [item.to_document() for item in moves.classes],
            "fresh": None
            if self.fresh is None
            else {"cost_usd": usd(self.fresh.cost_cents), "links": self.fresh.links},
            "same_as": self.same_as.tolist(),
            "fabric": existing.fabric.to_document(),
        }
