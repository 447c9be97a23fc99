"""Components of networks with price, power, reach, source and date: the records, the YAML files, and how to load them.

`load_catalog` reads layered files, `check_catalog` looks for nonsense, `link_media` says how two ports can be joined.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from designer.catalog.components import (
    Cable,
    CableEnd,
    Catalog,
    Fibre,
    Gpu,
    Nic,
    NicMode,
    PortMode,
    Price,
    Switch,
    Transceiver,
)

if TYPE_CHECKING:
    from designer.catalog.check import Finding, check_catalog
    from designer.catalog.load import (
        catalog_document,
        catalog_from_document,
        catalog_names,
        catalog_records,
        load_catalog,
    )
    from designer.catalog.media import ItemUnit, LinkMedium, item_unit, link_media

__all__ = [
    "Cable",
    "CableEnd",
    "Catalog",
    "Fibre",
    "Finding",
    "Gpu",
    "ItemUnit",
    "LinkMedium",
    "Nic",
    "NicMode",
    "PortMode",
    "Price",
    "Switch",
    "Transceiver",
    "catalog_document",
    "catalog_from_document",
    "catalog_names",
    "catalog_records",
    "check_catalog",
    "item_unit",
    "link_media",
    "load_catalog",
]

_HOMES = {
    "Finding": "check",
    "check_catalog": "check",
    "catalog_document": "load",
    "catalog_from_document": "load",
    "catalog_names": "load",
    "catalog_records": "load",
    "load_catalog": "load",
    "ItemUnit": "media",
    "LinkMedium": "media",
    "item_unit": "media",
    "link_media": "media",
}


def __getattr__(name: str) -> object:
    # pydantic and yaml take longer to import than the command line may take to show its help.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
