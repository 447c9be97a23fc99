"""How two ports can be joined."""

from itertools import product

import pytest

from designer.catalog import Cable, CableEnd, Catalog, Fibre, Price, Transceiver, item_unit, link_media, load_catalog
from designer.errors import CatalogError

BUILTIN = load_catalog("builtin")


def price(cents: int) -> Price:
    return Price(cents, "test", "", assumed=True)


def module(key: str, cages: tuple[str, ...], lanes: int = 4, lane_gbps: int = 100, **fields) -> Transceiver:
    values = {
        "fibre": "smf",
        "optics": "dr",
        "reach_m": 100.0,
        "power_w": 9.0,
        "cents": 100,
        **fields,
    }
    return Transceiver(
        key=key,
        vendor="v",
        model=key,
        cages=cages,
        lanes=lanes,
        lane_gbps=lane_gbps,
        fibre=values["fibre"],
        optics=values["optics"],
        reach_m=values["reach_m"],
        power_w=values["power_w"],
        power_assumed=True,
        price=price(values["cents"]),
        source="s",
    )


def fibre(key: str = "f", kind: str = "smf", reach_m: float = 500.0, lanes: int | None = None) -> Fibre:
    return Fibre(key, "v", key, kind, ("dr",), reach_m, price(10), 2, "s", lanes)


def cable(wide: tuple[str, int], narrow: tuple[str, int], gbps: int, reach_m: float = 3.0) -> Cable:
    ends = CableEnd((wide[0],), wide[1]), CableEnd((narrow[0],), narrow[1])
    return Cable("c", "v", "c", "dac", (gbps,), *ends, reach_m, 0.1, True, price(50), "s")


def catalog(modules: tuple[Transceiver, ...] = (), fibres: tuple[Fibre, ...] = (), cables: tuple[Cable, ...] = ()):
    return Catalog(
        ("test",),
        transceivers={one.key: one for one in modules},
        fibres={one.key: one for one in fibres},
        cables={one.key: one for one in cables},
    )


PAIR = (module("low", ("a",)), module("up", ("b",), 8, cents=180, power_w=17.0))


def test_optics_are_counted_per_cage_and_fibre_per_link():
    """Four links on four NIC cages and two twin-port switch cages: 4 + 2 modules, 4 fibres of 30 m."""
    (medium,) = link_media(catalog(PAIR, (fibre(),)), "a", 1, "b", 2, 400, 30)
    assert (medium.per_lower_cage, medium.per_upper_cage, medium.per_link) == ("low", "up", "f")
    assert (medium.kind, medium.bundle, medium.reach_m) == ("optics", 1, 100.0)
    assert medium.cost_cents(4, 2, 4) == 4 * 100 + 2 * 180 + 4 * (10 + 2 * 30)
    assert medium.power_w(4, 2, 4) == pytest.approx(4 * 9 + 2 * 17)


@pytest.mark.parametrize(
    ("modules", "fibres"),
    [
        ((PAIR[0], module("up", ("b",), 8, optics="fr")), (fibre(),)),
        ((PAIR[0], module("up", ("b",), 16, 50)), (fibre(),)),
        ((PAIR[0], module("up", ("b",), 8, fibre="mmf")), (fibre(), fibre("m", "mmf"))),
        ((PAIR[0], module("up", ("c",), 8)), (fibre(),)),
        ((PAIR[0], module("up", ("b",), 4)), (fibre(),)),
        (PAIR, (fibre(kind="mmf"),)),
        (PAIR, (fibre(reach_m=20.0),)),
        (PAIR, (fibre(lanes=2),)),
        ((module("low", ("a",), reach_m=20.0), PAIR[1]), (fibre(),)),
    ],
    ids=["optics", "lane speed", "fibre", "cage", "lanes", "no fibre", "fibre reach", "fibre lanes", "module reach"],
)
def test_both_ends_must_fit(modules, fibres):
    """A link exists only where speed, lanes, optics, fibre, cages and reach fit at both ends."""
    assert link_media(catalog(PAIR, (fibre(),)), "a", 1, "b", 2, 400, 30)
    assert link_media(catalog(modules, fibres), "a", 1, "b", 2, 400, 30) == ()


def test_a_port_of_part_of_a_lane_has_no_link():
    """A rate that is no whole number of lanes cannot run over a module."""
    assert link_media(catalog(PAIR, (fibre(),)), "a", 1, "b", 2, 350, 30) == ()


def test_a_faster_module_carries_slower_links_on_fewer_lanes():
    """A 400G port pair split into 200G links uses two lanes for each."""
    assert link_media(catalog(PAIR, (fibre(),)), "a", 2, "b", 4, 200, 30)


def test_a_breakout_cable_is_counted_per_cage():
    """One 100G port broken out to 4 x 25G on four servers, two switches: 2 cables with 8 lanes, not 8 cables."""
    (medium,) = link_media(catalog(cables=(cable(("qsfp", 4), ("sfp", 1), 25),)), "sfp", 1, "qsfp", 4, 25, 2)
    assert (medium.per_lower_cage, medium.per_upper_cage, medium.per_link) == (None, "c", None)
    assert medium.bundle == 1
    assert medium.cost_cents(lower_cages=8, upper_cages=2, links=8) == 2 * 50


def test_a_breakout_cable_works_the_other_way_round():
    """With its wide end below, a splitter is counted per lower cage."""
    (medium,) = link_media(catalog(cables=(cable(("qsfp", 4), ("sfp", 1), 25),)), "qsfp", 4, "sfp", 1, 25, 2)
    assert (medium.per_lower_cage, medium.per_upper_cage) == ("c", None)
    assert medium.cost_cents(lower_cages=2, upper_cages=8, links=8) == 2 * 50


def test_a_straight_cable_is_counted_per_link():
    """A cable with one port at each end is bought once a link."""
    (medium,) = link_media(catalog(cables=(cable(("q", 1), ("q", 1), 200),)), "q", 1, "q", 1, 200, 2)
    assert (medium.per_lower_cage, medium.per_upper_cage, medium.per_link) == (None, None, "c")
    assert medium.cost_cents(3, 3, 3) == 150


@pytest.mark.parametrize(("lower", "upper"), [("a", "b"), ("b", "a")])
def test_a_twin_cable_carries_links_in_pairs(lower, upper):
    """A straight twin cable costs once for an upper cage and joins two devices by a multiple of two links."""
    (medium,) = link_media(catalog(cables=(cable(("a", 2), ("b", 2), 400),)), lower, 2, upper, 2, 400, 2)
    assert (medium.per_upper_cage, medium.bundle) == ("c", 2)
    assert medium.cost_cents(lower_cages=5, upper_cages=5, links=10) == 5 * 50


def test_a_splitter_with_pairs_at_its_narrow_ends_bundles_them():
    """One end of four links and two of two: links to a device come in pairs."""
    (medium,) = link_media(catalog(cables=(cable(("a", 4), ("b", 2), 200),)), "b", 2, "a", 4, 200, 2)
    assert (medium.per_upper_cage, medium.bundle) == ("c", 2)


@pytest.mark.parametrize(("ports", "gbps", "length_m"), [(2, 25, 2), (4, 50, 2), (4, 25, 4)])
def test_a_cable_fits_only_its_ports_speed_and_length(ports, gbps, length_m):
    """A cable is no medium where ports a cage, speed or length differ from its own."""
    only = catalog(cables=(cable(("qsfp", 4), ("sfp", 1), 25),))
    assert link_media(only, "sfp", 1, "qsfp", ports, gbps, length_m) == ()


def test_beaten_media_are_left_out_and_the_cheapest_is_first():
    """What is dearer and draws more is dropped; cheaper but hungrier stays beside dearer but frugal."""
    hungry = module("hungry", ("a",), cents=90, power_w=12.0)
    worse = module("worse", ("a",), cents=95, power_w=13.0)
    twin = module("twin", ("a",))  # equal to "low": the first key stays
    media = link_media(catalog((*PAIR, worse, hungry, twin), (fibre(),)), "a", 1, "b", 2, 400, 30)
    assert [medium.per_lower_cage for medium in media] == ["hungry", "low"]


def test_a_dearer_medium_without_bundles_is_kept():
    """A twin cable is cheaper but joins devices by pairs of links only, so optics stay beside it."""
    modules = (module("low", ("a",), 8), module("up", ("b",), 8))
    media = link_media(catalog(modules, (fibre(),), (cable(("a", 2), ("b", 2), 400),)), "a", 2, "b", 2, 400, 2)
    assert [medium.bundle for medium in media] == [2, 1]


def test_media_do_not_depend_on_the_order_of_the_catalog():
    """The answer is the same whatever order the records stand in."""
    forward = catalog((*PAIR, module("x", ("a", "b"), 8, cents=90, power_w=20.0)), (fibre(), fibre("g")))
    backward = Catalog(
        ("test",),
        transceivers=dict(reversed(forward.transceivers.items())),
        fibres=dict(reversed(forward.fibres.items())),
    )
    assert link_media(forward, "a", 1, "b", 2, 400, 30) == link_media(backward, "a", 1, "b", 2, 400, 30)


SOCKETS = sorted(
    {(switch.cage, mode.ports_per_cage, mode.gbps) for switch in BUILTIN.switches.values() for mode in switch.modes}
    | {(nic.cage, nic.ports_per_cage(mode), mode.gbps) for nic in BUILTIN.nics.values() for mode in nic.modes}
)


@pytest.mark.parametrize(("lower", "upper"), [pair for pair in product(SOCKETS, SOCKETS) if pair[0][2] == pair[1][2]])
def test_longer_links_never_get_cheaper(lower, upper):
    """On the builtin catalog the cheapest medium of a longer link costs at least that of a shorter one."""
    gbps = lower[2]
    best = None
    for length_m in (0, 1, 2, 3, 5, 30, 50, 100, 500, 2000):
        media = link_media(BUILTIN, lower[0], lower[1], upper[0], upper[1], gbps, length_m)
        assert all(medium.reach_m >= length_m for medium in media)
        if not media:
            best = float("inf")
            continue
        cost = media[0].lower_cage_cents / lower[1] + media[0].upper_cage_cents / upper[1] + media[0].link_cents
        assert best is None or cost >= best - 1e-9
        best = cost


def test_the_price_of_a_fibre_has_its_length():
    """A fibre's item has its price for the length, and names it."""
    item = item_unit(BUILTIN, "mfp7e30", 30)
    assert item.price_cents == BUILTIN.fibres["mfp7e30"].price_cents(30) == 55_00 + 30 * 80
    assert item.section == "fibres"
    assert item.description.endswith("30 m")
    assert item.power_w == 0


@pytest.mark.parametrize("section", ["switches", "nics", "transceivers", "cables"])
def test_every_component_can_be_priced(section):
    """An item has the price, power and marks of its component."""
    for key, component in getattr(BUILTIN, section).items():
        item = item_unit(BUILTIN, key, 10)
        assert (item.section, item.price_cents, item.power_w) == (section, component.price.cents, component.power_w)
        assert (item.price_assumed, item.power_assumed) == (component.price.assumed, component.power_assumed)
        assert (item.source, item.date) == (component.price.source, component.price.date)


@pytest.mark.parametrize("key", ["nonsense", "h100-sxm"])
def test_what_has_no_price_is_refused(key):
    """An unknown key and a GPU without a price are errors, not zeros."""
    with pytest.raises(CatalogError, match=key):
        item_unit(BUILTIN, key)
