"""The check of a catalog finds each kind of nonsense."""

from dataclasses import replace

import pytest

from designer.catalog import Cable, CableEnd, Catalog, NicMode, PortMode, Price, check_catalog, load_catalog

ZERO = Price(0, "a list", "2025-01", assumed=False)
UNSOURCED = Price(100, "", "", assumed=False)


@pytest.fixture(scope="module")
def builtin() -> Catalog:
    return load_catalog("builtin")


def changed(catalog: Catalog, section: str, component: str, fields: dict) -> Catalog:
    components = dict(getattr(catalog, section))
    components[component] = replace(components[component], **fields)
    return replace(catalog, **{section: components})


@pytest.mark.parametrize(
    ("section", "key", "fields", "field"),
    [
        ("switches", "qm9700", {"modes": (PortMode(4, 400),)}, "modes"),
        ("switches", "qm9700", {"modes": (PortMode(2, 400), PortMode(2, 400))}, "modes"),
        ("switches", "qm9700", {"max_ports": 129}, "max_ports"),
        ("switches", "qm9700", {"max_ports": 31}, "max_ports"),
        ("switches", "qm9700", {"cage": "cfp2"}, "cage"),
        ("switches", "qm9700", {"power_w": 0.0}, "power_w"),
        ("switches", "qm9700", {"price": ZERO}, "price"),
        ("switches", "qm9700", {"price": UNSOURCED}, "price"),
        ("switches", "qm9700", {"key": "qm9701"}, "key"),
        ("nics", "cx7-400", {"modes": (NicMode(2, 400),)}, "modes"),
        ("nics", "cx7-400", {"modes": (NicMode(1, 200),)}, "modes"),
        ("nics", "cx7-2x200", {"modes": (NicMode(1, 400),)}, "cages_per_nic"),
        ("nics", "cx7-2x200", {"nics_per_cage": 2}, "nics_per_cage"),
        ("nics", "cx7-400", {"cage": "cfp2"}, "cage"),
        ("transceivers", "mms4x00-nm", {"cages": ("cfp2",)}, "cages"),
        ("transceivers", "mms4x00-nm", {"lanes": 16}, "cages"),
        ("transceivers", "mms4x00-nm", {"reach_m": 0.0}, "reach_m"),
        ("transceivers", "mms4x00-nm", {"fibre": "plastic"}, "fibre"),
        ("transceivers", "mms4x00-nm", {"optics": "zr"}, "fibre"),
        ("fibres", "mfp7e30", {"fibre": "plastic"}, "optics"),
        ("fibres", "mfp7e30", {"optics": ("dr", "zr")}, "optics"),
        ("fibres", "mfp7e30", {"reach_m": 0.0}, "reach_m"),
        ("cables", "mcp7y00", {"narrow": CableEnd(("cfp2",), 1)}, "narrow"),
        ("cables", "mcp7y00", {"wide": CableEnd(("osfp",), 4)}, "wide"),
        ("cables", "mcp7y00", {"narrow": CableEnd(("osfp-rhs",), 4)}, "wide"),
        ("cables", "mcp7y50", {"narrow": CableEnd(("osfp-rhs",), 3)}, "narrow"),
        ("cables", "mcp7y00", {"reach_m": 0.0}, "reach_m"),
        ("gpus", "h100-sxm", {"hb_domain": 12}, "hb_domain"),
        ("gpus", "h100-sxm", {"price": ZERO}, "price"),
    ],
)
def test_each_kind_of_nonsense_is_found(builtin, section, key, fields, field):
    """One change that makes a component nonsense gives a finding at that component and field."""
    findings = check_catalog(changed(builtin, section, key, fields))
    assert (key, field) in {(finding.component, finding.field) for finding in findings}
    assert all(str(finding).startswith(f"{finding.component}.{finding.field}: ") for finding in findings)


def test_a_key_in_two_sections_is_found(builtin):
    """A bill names components by key alone, so no two sections may share one."""
    cable: Cable = builtin.cables["mcp7y00"]
    catalog = replace(builtin, cables={**builtin.cables, "qm9700": replace(cable, key="qm9700")})
    (finding,) = check_catalog(catalog)
    assert (finding.component, finding.field) == ("qm9700", "key")


def test_assumed_zeros_are_allowed(builtin):
    """A price or power of zero that says it is assumed is no finding."""
    free = replace(ZERO, assumed=True)
    assert (
        check_catalog(changed(builtin, "nics", "cx7-400", {"price": free, "power_w": 0.0, "power_assumed": True})) == ()
    )
