"""Instances with a network that is there, made in memory, and pairs of networks on one catalog."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from designer.costing.bill import stock_of
from designer.costing.pricing import MediaFinder, Pricing, with_media
from designer.costing.stock import Piece, Stock
from designer.fabric.build import build_clos
from designer.fabric.fabric import Fabric
from designer.fabric.shape import ClosShape
from designer.instance.existing import ExistingNetwork
from designer.instance.instance import Instance
from designer.workload.cuts import Layout
from tests.strategies import _clos, shapes


def existing_of(
    instance: Instance,
    fabric: Fabric,
    *,
    owned: Mapping[Piece, int] | None = None,
    new_switches: bool = True,
    most: int | None = None,
    cents: int = 0,
    family: str = "clos",
) -> ExistingNetwork:
    """A network that is there; `owned` in place of what it is made of."""
    stock = stock_of(fabric, instance.catalog, new_switches=new_switches)
    if owned is not None:
        pieces = tuple((key, length_m, count) for (key, length_m), count in owned.items())
        stock = Stock(instance.catalog, pieces, new_switches)
    return ExistingNetwork("old.json", "0" * 64, fabric, family, stock, most, cents)


def beside(instance: Instance, fabric: Fabric, **options) -> Instance:
    """The instance with a network that is there."""
    return replace(instance, existing=existing_of(instance, fabric, **options))


@st.composite
def pairs(draw: st.DrawFn, most_links: int = 400) -> tuple[Instance, ClosShape, ClosShape]:
    """Two Clos networks of the same endpoints and parts: the one that is there, and a new one."""
    instance, old = draw(shapes())
    hosts, rails = old.hosts, old.hosts.rails
    tiers = draw(st.sampled_from([2, 2, 3, 1]))
    mixed = draw(st.booleans()) and rails > 1
    sets = [value for value in range(1, rails + 1) if tiers == 1 or rails % value == 0]
    layout = Layout(mixed, rails if mixed else draw(st.sampled_from(sets)), hosts.gpus // rails)
    bare = _clos(draw, hosts, layout, list(instance.catalog.switches.values()), tiers)
    pricing = Pricing(instance.objective, instance.energy)
    new = with_media(bare, MediaFinder(instance.catalog), instance.cabling, pricing)
    assume(new is not None)
    assume(max(shape.counts()["links"] for shape in (old, new)) <= most_links)
    return instance, old, new


def drawn(*parts: ClosShape) -> tuple[Fabric, ...]:
    """The fabrics of shapes."""
    return tuple(build_clos(shape) for shape in parts)
