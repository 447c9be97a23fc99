"""Link placement problems built by hand: a few switches, blocks, and ways to join them."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from designer.catalog.components import Nic, NicMode, PortMode, Price, Switch
from designer.catalog.media import LinkMedium
from designer.formulation.block_demand import BlockDemand, Hose
from designer.formulation.placement import Block, End, HostKind, LinkKind

FREE = Price(0, "test", "", assumed=True)
NIC = Nic("nic", "test", "test", ("ethernet",), 200, "port", 1, 1, (NicMode(1, 200),), 0.0, False, FREE, "test")
MEDIUM = LinkMedium("optics", "optics", "module", "module", "fibre", 1, 500.0)


def model(cages: int, ports: int = 1) -> Switch:
    """A switch whose cages are each so many ports of 400 Gb/s, or twice as many of 200."""
    modes = (PortMode(ports, 400), PortMode(2 * ports, 200))
    key, most = f"s{cages}x{ports}", 2 * ports * cages
    return Switch(key, "test", "test", ("ethernet",), "port", cages, 400, modes, most, 0.0, False, FREE, "test")


def blocks_of(*sizes: int, sides: Sequence[int] | None = None, alike: Sequence[int] | None = None) -> tuple[Block, ...]:
    """Blocks of so many GPUs, in order."""
    first = np.cumsum([0, *sizes]).tolist()
    return tuple(
        Block(
            tuple(range(first[number], first[number + 1])),
            NIC,
            NIC.modes[0],
            sides[number] if sides is not None else 0,
            alike[number] if alike is not None else -1,
        )
        for number in range(len(sizes))
    )


def host_kind(per_cage: int = 2) -> HostKind:
    """200 Gb/s for 5 USD, and 30 for each cage of the switch."""
    return HostKind(200, MEDIUM, End("host", per_cage, 3000), Fraction(500))


def link_kind(gbps: int = 400, per_cage: int = 1, bundle: int = 1, usd: int = 10, cage_usd: int = 40) -> LinkKind:
    """Links of one speed between cages of a kind."""
    end = End(f"up{gbps}", per_cage, 100 * cage_usd)
    return LinkKind(gbps, MEDIUM, end, end, bundle, 100 * usd)


def demand(rates: Mapping[tuple[int, int], float], blocks: int, hoses: Sequence[Hose] = ()) -> BlockDemand:
    """Gb/s from block to block, and groups that mean `any`."""
    gbps = np.zeros((blocks, blocks))
    for pair, rate in rates.items():
        gbps[pair] = rate
    return BlockDemand("test", gbps, tuple(hoses))
