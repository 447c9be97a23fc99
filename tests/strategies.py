"""Small catalogs, clusters, demands and requirements: builders of plain documents, and Hypothesis strategies of them.

Every catalog here has one kind of socket, `port`. Optics join any two modes; the cables are cheaper and choosier.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from designer.catalog.components import PortMode, Switch
from designer.costing.pricing import MediaFinder, Pricing, with_media
from designer.fabric.shape import ClosShape, Cores, Hosts, Spines, Tier
from designer.instance.instance import Instance
from designer.instance.load import instance_from_document
from designer.workload.cuts import Layout

Document = dict[str, Any]
PLAIN = ((1, 400),)
BREAKOUT = ((1, 400), (2, 200))
HALVES = ((2, 200),)
TWIN_BREAKOUT = ((1, 800), (2, 400))


def _product(usd: float, power_w: float = 0.0, **fields: Any) -> Document:
    return {
        "vendor": "test",
        "model": "test",
        "source": "test",
        "power_w": power_w,
        "price": {"usd": usd, "assumed": True},
        **fields,
    }


def switch(
    cages: int,
    usd: float,
    modes: Sequence[tuple[int, int]] = PLAIN,
    *,
    power_w: float = 0.0,
    max_ports: int | None = None,
) -> Document:
    """A switch record; `modes` are (ports per cage, Gb/s of a port)."""
    record = _product(
        usd,
        power_w,
        protocols=["ethernet"],
        cage="port",
        cages=cages,
        cage_gbps=max(ports * gbps for ports, gbps in modes),
        modes=[{"ports_per_cage": ports, "gbps": gbps} for ports, gbps in modes],
    )
    return record if max_ports is None else record | {"max_ports": max_ports}


def nic(
    modes: Sequence[tuple[int, int]] = PLAIN, *, cages_per_nic: int = 1, nics_per_cage: int = 1, cage: str = "port"
) -> Document:
    """A NIC record; `modes` are (ports, Gb/s of a port)."""
    return _product(
        0,
        protocols=["ethernet"],
        gbps=max(ports * gbps for ports, gbps in modes),
        cage=cage,
        cages_per_nic=cages_per_nic,
        nics_per_cage=nics_per_cage,
        modes=[{"ports": ports, "gbps": gbps} for ports, gbps in modes],
    )


def cable(usd: float, wide: int, narrow: int, gbps: Sequence[int], reach_m: float, power_w: float = 0.0) -> Document:
    """A cable record with `wide` and `narrow` links at its two ends."""
    ends = {name: {"cages": ["port"], "ports": ports} for name, ports in (("wide", wide), ("narrow", narrow))}
    return _product(usd, power_w, kind="aoc", port_gbps=list(gbps), reach_m=reach_m, **ends)


def transceiver(usd: float, lanes: int, power_w: float = 0.0) -> Document:
    """A module record of `lanes` times 100 Gb/s."""
    return _product(usd, power_w, cages=["port"], lanes=lanes, lane_gbps=100, fibre="smf", optics="dr", reach_m=500.0)


def fibre(usd: float, usd_per_m: float = 0.0) -> Document:
    """A fibre record."""
    record = _product(usd, fibre="smf", optics=["dr"], usd_per_m=usd_per_m, reach_m=500.0)
    del record["power_w"]
    return record


def gpu() -> Document:
    """A GPU alone in its server; the cluster says how many form a domain."""
    record = _product(
        0, gpus_per_server=1, hb_domain=1, scale_up_gbps=3600.0, bf16_tflops=989.0, memory_bytes=80 * 10**9
    )
    del record["power_w"]
    return record


LINK_AT_800 = {"cables": {"link": cable(800, 1, 1, (200, 400, 800), 1000.0)}}
OPTICS = {
    "transceivers": {
        "half": transceiver(60, 2, 3.0),
        "module": transceiver(100, 4, 8.0),
        "twin": transceiver(170, 8, 15.0),
    },
    "fibres": {"fibre": fibre(10, 0.5)},
}
COPPER = OPTICS | {
    "cables": {
        "straight": cable(70, 1, 1, (200, 400), 20.0, 1.0),
        "splitter": cable(90, 2, 1, (200,), 30.0, 1.0),
        "pair": cable(80, 2, 2, (200,), 30.0, 1.0),
    }
}
MEDIA = {"link": LINK_AT_800, "optics": OPTICS, "copper": COPPER}


def catalog(
    switches: Mapping[str, Document], media: Document = LINK_AT_800, nic_record: Document | None = None
) -> Document:
    """A catalog document with one NIC, `nic`, and one GPU, `gpu`."""
    return {"switches": dict(switches), "nics": {"nic": nic_record or nic()}, "gpus": {"gpu": gpu()}, **media}


def instance_of(
    catalog_document: Document,
    cluster: Document,
    workload: Sequence[Document] = ({"demand": "any"},),
    **sections: Any,
) -> Instance:
    """The instance of these documents, read as a user's files would be."""
    document = {
        "name": "test",
        "cluster": {"gpu": "gpu", "nic": "nic", "hb_domain": 1, **cluster},
        "workload": list(workload),
        "catalog": "catalog.yaml",
        **sections,
    }
    with TemporaryDirectory() as folder:
        (Path(folder) / "catalog.yaml").write_text(json.dumps(catalog_document), encoding="utf-8")
        return instance_from_document(document, Path(folder))


MODES = (PLAIN, BREAKOUT, HALVES)
NICS = (
    (nic(), MODES),
    (nic(((1, 200),)), (BREAKOUT, HALVES)),
    (nic(((1, 400), (2, 200))), (PLAIN, BREAKOUT)),
    (nic(((2, 200),), cages_per_nic=2), (BREAKOUT, HALVES)),
    (nic(((1, 200),), nics_per_cage=2), (BREAKOUT, HALVES)),
)


@st.composite
def catalogs(draw: st.DrawFn, most_switches: int = 3, most_cages: int = 8) -> Document:
    """One to three switch models of few ports, one NIC, and media that join most of their modes."""
    nic_record, modes = draw(st.sampled_from(NICS))
    switches: dict[str, Document] = {}
    for name in "abc"[: draw(st.sampled_from([2, 3, 1][:most_switches]))]:
        cages = draw(st.sampled_from([value for value in (4, 8, 6, 4, 5, 3) if value <= most_cages]))
        chosen = draw(st.sampled_from(modes))
        ports = cages * max(ports for ports, _ in chosen)
        usd = draw(st.sampled_from(range(100, 200, 7))) * cages
        most = draw(st.sampled_from([None, None, None, max(1, ports - 2)]))
        switches[name] = switch(cages, usd, chosen, power_w=draw(st.sampled_from([0.0, 300.0])), max_ports=most)
    media = draw(st.sampled_from(["optics", "copper", "link", "copper"]))
    return catalog(switches, MEDIA[media], nic_record)


@st.composite
def clusters(draw: st.DrawFn, most_per_rail: int = 12, most_rails: int = 4) -> Document:
    """Rails, domains and GPUs; at times two NICs of a domain on one rail, at times a management port."""
    rails = draw(st.sampled_from([value for value in (1, 1, 2, 3, 4) if value <= most_rails]))
    doubled = draw(st.sampled_from([1, 1, 2]))
    domains = draw(st.sampled_from(range(max(2, most_per_rail // doubled), 1, -1)))
    gpus = domains * rails * doubled
    gpus += gpus % 2 * rails * doubled  # twin NIC sockets want an even number
    gpus += gpus % 2 * rails * doubled
    return {
        "gpus": gpus,
        "hb_domain": rails * doubled,
        "rails": rails,
        "management_ports": draw(st.sampled_from([0, 0, 0, 1])),
    }


@st.composite
def demands(
    draw: st.DrawFn, cluster: Document, across: Sequence[str] = ("rail", "rail", "rail", "cluster")
) -> Document:
    """One direct demand on all GPUs of the cluster, its groups dividing what takes part."""
    where = draw(st.sampled_from(list(across)))
    members = cluster["gpus"] if where == "cluster" else cluster["gpus"] // cluster["hb_domain"]
    pattern = draw(st.sampled_from(["any", "any", "ring", "all-to-all", "halving-doubling", "shift"]))
    sizes = [size for size in range(2, members + 1) if members % size == 0]
    if pattern == "halving-doubling":
        sizes = [size for size in sizes if size & (size - 1) == 0]
    if not sizes:
        pattern, sizes = "any", [members]
    demand: Document = {"demand": pattern, "group": draw(st.sampled_from([*sizes, sizes[-1]])), "across": where}
    if pattern == "shift":
        demand["by"] = draw(st.integers(1, 3))
    return demand


@st.composite
def requirements(draw: st.DrawFn, names: Sequence[str] = ()) -> Document:
    """Floors of the named phases, failures to survive, routing and bundles."""
    section: Document = {
        "routing": draw(st.sampled_from(["adaptive", "adaptive", "ecmp"])),
        "detour": draw(st.sampled_from(["single-relay", "spread"])),
        "symmetric_uplinks": draw(st.sampled_from([True, True, False])),
    }
    floors = {name: draw(st.sampled_from([1.0, 1.0, 0.5, 0.3])) for name in names}
    section["throughput"] = {name: floor for name, floor in floors.items() if floor < 1}
    count = draw(st.sampled_from([0, 0, 0, 1, 1, 2]))
    section["survive"] = [
        {
            "failure": draw(st.sampled_from(["switch", "link", "link", "nic"])),
            "count": draw(st.sampled_from([1, 1, 2])),
            "throughput": draw(st.sampled_from([0.25, 0.5, 0.75])),
        }
        for _ in range(count)
    ]
    return section


@st.composite
def problems(draw: st.DrawFn, tiers: Sequence[int] = (1, 2, 3), most_per_rail: int = 12, **options: Any) -> Document:
    """A small problem of the Clos family: the arguments of `instance_of`, which are short to print."""
    cluster = draw(clusters(most_per_rail))
    workload = [draw(demands(cluster)) for _ in range(draw(st.sampled_from([1, 1, 2])))]
    names = sorted({item["demand"] for item in workload})
    return {
        "catalog_document": draw(catalogs(**options)),
        "cluster": cluster,
        "workload": workload,
        "requirements": draw(requirements(names)),
        "search": {
            "max_tiers": draw(st.sampled_from(list(tiers))),
            "leaf_sharing": draw(st.sampled_from(["whole-rails", "whole-rails", "any", "none"])),
        },
        "objective": draw(st.sampled_from(["capex", "capex", "tco"])),
    }


@st.composite
def shapes(draw: st.DrawFn) -> tuple[Instance, ClosShape]:
    """A Clos with media, whatever it carries, and the instance whose catalog it is made of."""
    nic_record, modes = draw(st.sampled_from(NICS))
    switches = {
        name: switch(draw(st.sampled_from([8, 12, 16, 5])), usd, draw(st.sampled_from(modes)), power_w=usd / 10)
        for name, usd in (("a", 900), ("b", 2000))
    }
    cluster = draw(clusters(draw(st.sampled_from([48, 24, 8]))))
    objective = draw(st.sampled_from(["capex", "tco"]))
    media = MEDIA[draw(st.sampled_from(["optics", "copper"]))]
    instance = instance_of(catalog(switches, media, nic_record), cluster, objective=objective)
    hosts = _hosts(draw, instance)
    mixed = draw(st.booleans()) and hosts.rails > 1
    tiers = draw(st.sampled_from([2, 3, 3, 1]))
    rails = [value for value in range(1, hosts.rails + 1) if tiers == 1 or hosts.rails % value == 0]
    layout = Layout(mixed, hosts.rails if mixed else draw(st.sampled_from(rails)), hosts.gpus // hosts.rails)
    shape = _clos(draw, hosts, layout, list(instance.catalog.switches.values()), tiers)
    pricing = Pricing(instance.objective, instance.energy)
    cabled = with_media(shape, MediaFinder(instance.catalog), instance.cabling, pricing)
    assume(cabled is not None)
    return instance, cabled


def _hosts(draw: st.DrawFn, instance: Instance) -> Hosts:
    cluster = instance.cluster
    mode = draw(st.sampled_from(cluster.nic.modes))
    return Hosts(cluster.gpus, cluster.rails, cluster.nic, mode, cluster.management_ports)


def _clos(draw: st.DrawFn, hosts: Hosts, layout: Layout, switches: list[Switch], tiers: int) -> ClosShape:
    """A shape without port problems; mostly of the tiers asked for."""

    def mode_at(gbps: int) -> tuple[Switch, PortMode]:
        found = [(one, mode) for one in switches for mode in one.modes_at(gbps)]
        assume(found)
        return draw(st.sampled_from(found))

    model, down_mode = mode_at(hosts.gbps)
    if tiers == 1:
        shape = ClosShape(hosts, layout, Tier(model, down_mode), layout.endpoints + hosts.management_ports)
        assume(not shape.problems())
        return shape
    up_mode = draw(st.sampled_from(model.modes))
    down = draw(st.integers(1, model.radix(down_mode) - 1))
    spine, spine_mode = mode_at(up_mode.gbps)
    free = (model.cages - -(-down // down_mode.ports_per_cage)) * up_mode.ports_per_cage
    assume(free >= 1)
    uplinks = draw(st.integers(1, free))
    count = draw(st.integers(1, uplinks))
    even = uplinks % count == 0
    if tiers == 3 and not even:
        uplinks, even = uplinks // count * count, True
    leaf = Tier(model, down_mode, up_mode)
    shape = ClosShape(hosts, layout, leaf, down, uplinks, Spines(Tier(spine, spine_mode), count, None))
    if even:
        shape = replace(shape, spines=replace(shape.spines, bundle=uplinks // count))
    assume(shape.leaves > 1)
    if tiers == 3:
        spine_up = draw(st.sampled_from(spine.modes))
        core, core_mode = mode_at(spine_up.gbps)
        per_pod = draw(st.integers(1, shape.leaves))
        bundle, cores_of_group = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (3, 1)]))
        positions = draw(st.sampled_from([value for value in range(1, count + 1) if count % value == 0]))
        cores = Cores(Tier(core, core_mode), per_pod, bundle * cores_of_group, bundle, positions)
        shape = replace(shape, spines=replace(shape.spines, tier=Tier(spine, spine_mode, spine_up)), cores=cores)
    assume(not shape.problems())
    return shape
