"""Small clusters on floors for the tests of the layout."""

from typing import Any

from designer import Instance, instance_from_document
from designer.layout.floor import Floor, make_floor

Document = dict[str, Any]


def on_floor(gpus: int, layout: Document | None = None, **sections: Any) -> Instance:
    """H100 servers with 400G NICs on InfiniBand switches of 64 ports, any to any on each rail, on a floor."""
    document: Document = {
        "name": f"floor-{gpus}",
        "cluster": {"gpus": gpus, "gpu": "h100-sxm", "nic": "cx7-400"},
        "workload": [{"demand": "any"}],
        "search": {"families": ["clos"], "switches": ["qm9700"]},
        "layout": layout or {},
        **sections,
    }
    return instance_from_document(document)


def floor_of(instance: Instance, switch_racks: int, *, management: bool = False) -> Floor:
    """The floor of an instance with so many racks for switches."""
    assert instance.layout is not None
    return make_floor(instance.layout, instance.cluster, switch_racks, management=management)


def positions(floor: Floor) -> list[tuple[int, int]]:
    """Row and place of every rack."""
    return list(zip(floor.row.tolist(), floor.place.tolist(), strict=True))
