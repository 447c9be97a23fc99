"""The catalogs that ship with the package."""

import pytest

from designer.catalog import Catalog, catalog_names, check_catalog, link_media, load_catalog

LENGTHS_M = (3, 15, 30, 50, 100)


@pytest.fixture(scope="module")
def builtin() -> Catalog:
    return load_catalog("builtin")


@pytest.fixture(scope="module")
def paper() -> Catalog:
    return load_catalog("paper-2023")


def prices(catalog: Catalog):
    for components in (catalog.switches, catalog.nics, catalog.transceivers, catalog.fibres, catalog.cables):
        for key, component in components.items():
            yield key, component.price
    yield from ((key, gpu.price) for key, gpu in catalog.gpus.items() if gpu.price is not None)


def test_both_catalogs_ship():
    """The two shipped catalogs are found by name."""
    assert catalog_names() == ("builtin", "paper-2023")


@pytest.mark.parametrize("name", ["builtin", "paper-2023"])
def test_shipped_catalogs_make_sense(name):
    """The check finds nothing in a shipped catalog."""
    assert check_catalog(load_catalog(name)) == ()


def test_builtin_offers_a_choice(builtin):
    """The builtin catalog has enough real components to choose between."""
    assert len(builtin.switches) >= 14
    assert len(builtin.nics) >= 7
    assert len(builtin.transceivers) + len(builtin.cables) >= 16
    assert len(builtin.gpus) >= 6


@pytest.mark.parametrize("name", ["builtin", "paper-2023"])
def test_every_price_is_sourced_or_assumed(name):
    """A price names its source and date, or says that it is assumed and why."""
    for key, price in prices(load_catalog(name)):
        assert price.source, key
        assert price.assumed or price.date, key


def test_published_prices_are_kept_to_the_cent(builtin):
    """The prices that sources publish stand in the catalog as published."""
    published = {key: price.cents for key, price in prices(builtin) if not price.assumed}
    assert published["qm9700"] == 36_000_00
    assert published["sn5600"] == 64 * 1_400_00
    assert published["cx7-400"] == 1_499_00
    assert published["mms4x00-nm"] == 1_399_00
    assert published["mms4x00-ns400"] == 659_00
    assert published["mma1t00"] == 239_00


@pytest.mark.parametrize(
    ("key", "radices"),
    [
        ("qm8700", {200: 40, 100: 80}),
        ("qm9700", {400: 64, 200: 128}),
        ("q3400-ra", {800: 144}),
        ("q3200-ra", {800: 36}),
        ("sn4600c", {100: 64}),
        ("sn4700", {400: 32, 200: 64, 100: 128}),
        ("sn5400", {400: 64, 200: 128}),
        ("sn5600", {800: 64, 400: 128, 200: 256}),
        ("sn6600", {800: 128}),
    ],
)
def test_radix_of_a_switch_at_each_speed(builtin, key, radices):
    """A switch has the published number of ports at each speed, breakouts included."""
    switch = builtin.switches[key]
    assert {mode.gbps: switch.radix(mode) for mode in switch.modes} == radices


def media_between(catalog: Catalog, nic_key: str, switch_key: str, nic_ports: int, length_m: float):
    nic, switch = catalog.nics[nic_key], catalog.switches[switch_key]
    (nic_mode,) = [mode for mode in nic.modes if mode.ports == nic_ports]
    (mode,) = switch.modes_at(nic_mode.gbps)
    below = nic.ports_per_cage(nic_mode)
    return link_media(catalog, nic.cage, below, switch.cage, mode.ports_per_cage, mode.gbps, length_m)


@pytest.mark.parametrize("length_m", LENGTHS_M)
@pytest.mark.parametrize(
    ("nic", "ports", "switch"),
    [
        ("cx6-200", 1, "qm8700"),
        ("cx6-200", 1, "sn4600"),
        ("cx7-200", 1, "qm9700"),
        ("cx7-400", 1, "qm9700"),
        ("cx7-400", 1, "sn5600"),
        ("cx7-400", 1, "sn5400"),
        ("cx7-400", 1, "sn4700"),
        ("cx7-400-dgx", 1, "qm9700"),
        ("cx7-2x200", 2, "qm9700"),
        ("cx7-2x200", 2, "sn5600"),
        ("cx7-2x200", 2, "sn5400"),
        ("cx7-2x200", 2, "sn4700"),
        ("bf3-400", 1, "sn5600"),
        ("cx8-800", 1, "q3400-ra"),
        ("cx8-800", 2, "sn5600"),
        ("cx9-1600", 2, "sn6600"),
        ("thor2-400", 1, "7060x6-64pe"),
        ("pollara-400", 1, "ds5000"),
    ],
)
def test_a_nic_can_be_cabled_to_its_switches(builtin, nic, ports, switch, length_m):
    """Something in the catalog joins each NIC to the switches of its generation at every usual length."""
    assert media_between(builtin, nic, switch, ports, length_m)


@pytest.mark.parametrize("nic", ["cx7-400", "cx7-2x200", "cx7-200"])
def test_short_links_are_passive_copper(builtin, nic):
    """At 3 m a passive copper splitter is the cheapest way from a NIC to a twin-port switch."""
    ports = builtin.nics[nic].modes[0].ports
    assert media_between(builtin, nic, "qm9700", ports, 3)[0].kind == "dac"


@pytest.mark.parametrize("name", ["builtin", "paper-2023"])
@pytest.mark.parametrize("length_m", [30, 50])
def test_a_switch_can_be_cabled_to_itself(name, length_m):
    """Two switches of one model can be joined in every mode at the lengths between racks."""
    catalog = load_catalog(name)
    for switch in catalog.switches.values():
        for mode in switch.modes:
            ports = mode.ports_per_cage
            media = link_media(catalog, switch.cage, ports, switch.cage, ports, mode.gbps, length_m)
            assert media, (switch.key, mode)


def test_dgx_systems_need_a_twin_transceiver_for_two_nics(builtin):
    """127 systems of 8 NICs take 508 transceivers at the NIC side, as in the published bill."""
    nic = builtin.nics["cx7-400-dgx"]
    medium = media_between(builtin, nic.key, "qm9700", 1, 30)[0]
    cages = 127 * 8 * nic.cages_per_nic // nic.nics_per_cage
    assert cages == 508
    assert builtin.transceivers[medium.per_lower_cage].gbps == 800


def test_a_link_of_eight_lanes_takes_two_cables_of_four(builtin):
    """An 800G link between twin-port modules is billed two MPO-12 cables, a 400G link one."""
    wide = link_media(builtin, "osfp", 1, "osfp", 1, 800, 30)[0]
    narrow = link_media(builtin, "osfp", 2, "osfp", 2, 400, 30)[0]
    assert (wide.per_link, narrow.per_link) == ("mfp7e30-pair", "mfp7e30")
    assert wide.link_cents == 2 * narrow.link_cents


@pytest.mark.parametrize("radix", [32, 64, 128, 256])
def test_paper_prices(paper, radix):
    """The rail-only paper's prices hold: $748 a switch port, $374 a transceiver, fibre and NICs free."""
    assert paper.switches[f"paper-{radix}"].price.cents == radix * 748_00
    (medium,) = link_media(paper, "port-400", 1, "port-400", 1, 400, 100)
    assert medium.cost_cents(lower_cages=1, upper_cages=1, links=1) == 2 * 374_00
    assert paper.nics["paper-400"].price.cents == 0


def test_paper_domains(paper):
    """The paper's GPU exists with every scale-up domain from 8 to 256."""
    domains = {gpu.hb_domain for key, gpu in paper.gpus.items() if key.startswith("paper-hb")}
    assert domains == {8, 16, 32, 64, 128, 256}
