"""The cluster of an instance file, resolved against the catalog: servers all alike, or several kinds of them."""

from collections.abc import Callable, Sequence
from math import gcd

from designer.catalog.components import Catalog, Gpu, Nic
from designer.instance.instance import Cluster, ExistingSwitch, Servers
from designer.instance.schema import MAX_GPUS, ClusterSection, ServersSection

Location = tuple[str | int, ...]
Refuse = Callable[[Location, object, str], None]
AT: Location = ("cluster",)


def resolve_cluster(section: ClusterSection, catalog: Catalog, refuse: Refuse) -> Cluster | None:
    """The cluster, or None after `refuse` was told, place by place, what was found and what is allowed."""
    refused = False

    def tell(location: Location, found: object, allowed: str) -> None:
        nonlocal refused
        refused = True
        refuse(location, found, allowed)

    cluster = _regular(section, catalog, tell) if section.servers is None else _irregular(section, catalog, tell)
    existing = _existing(section, catalog, cluster, tell)
    if refused or cluster is None:
        return None
    return Cluster(
        cluster.gpus,
        cluster.gpu,
        cluster.nic,
        cluster.hb_domain,
        cluster.rails,
        section.management_ports,
        cluster.servers,
        existing,
    )


def _regular(section: ClusterSection, catalog: Catalog, refuse: Refuse) -> Cluster | None:
    gpus, gpu, nic = section.gpus, _gpu(section.gpu, catalog, AT, refuse), _nic(section.nic, catalog, AT, refuse)
    if gpus is None:
        refuse((*AT, "gpus"), "nothing", "the number of GPUs, where there are no servers")
    if gpus is None or gpu is None or nic is None:
        return None
    domain = section.hb_domain or gpu.hb_domain
    rails = section.rails or domain
    per_server = min(gpu.gpus_per_server, domain)
    if gpus % per_server:
        allowed = f"a multiple of the {per_server} GPUs of a server ({_near(gpus, per_server)})"
        refuse((*AT, "gpus"), gpus, allowed)
    elif gpus % domain:
        refuse((*AT, "gpus"), gpus, f"a multiple of the {domain} GPUs of an HB domain ({_near(gpus, domain)})")
    if domain % rails:
        divisors = [str(value) for value in range(1, domain + 1) if domain % value == 0]
        refuse((*AT, "rails"), rails, f"a divisor of the hb_domain {domain}: {', '.join(divisors)}")
    if gpus % nic.nics_per_cage:
        refuse((*AT, "gpus"), gpus, f"a multiple of {nic.nics_per_cage} NICs to a socket")
    return Cluster(gpus, gpu, nic, domain, rails, section.management_ports)


def _near(value: int, step: int) -> str:
    below, above = value // step * step, (value // step + 1) * step
    return f"{below} or {above}" if below else str(above)


def _gpu(key: str | None, catalog: Catalog, at: Location, refuse: Refuse) -> Gpu | None:
    if key is not None and key in catalog.gpus:
        return catalog.gpus[key]
    found = "nothing" if key is None else repr(key)
    refuse((*at, "gpu"), found, f"a component of the catalog, one of: {', '.join(catalog.gpus)}")
    return None


def _nic(key: str | None, catalog: Catalog, at: Location, refuse: Refuse) -> Nic | None:
    if key is not None and key in catalog.nics:
        return catalog.nics[key]
    found = "nothing" if key is None else repr(key)
    refuse((*at, "nic"), found, f"a component of the catalog, one of: {', '.join(catalog.nics)}")
    return None


def _irregular(section: ClusterSection, catalog: Catalog, refuse: Refuse) -> Cluster | None:
    for field in ("gpus", "gpu", "nic", "hb_domain", "rails"):
        value = getattr(section, field)
        if value is not None:
            refuse((*AT, field), repr(value), "no such field beside servers, which say it kind by kind")
    found = [
        _servers(kind, catalog, (*AT, "servers", number), refuse) for number, kind in enumerate(section.servers or ())
    ]
    kinds = tuple(kind for kind in found if kind is not None)
    if len(kinds) < len(found):
        return None
    total = sum(kind.count * kind.gpus for kind in kinds)
    if total > MAX_GPUS:
        refuse((*AT, "servers"), f"{total} GPUs", f"at most {MAX_GPUS}")
    domain = gcd(*(kind.gpus for kind in kinds))
    return Cluster(total, kinds[0].gpu, kinds[0].nic, domain, domain, section.management_ports, kinds)


def _servers(section: ServersSection, catalog: Catalog, at: Location, refuse: Refuse) -> Servers | None:
    gpu, nic = _gpu(section.gpu, catalog, at, refuse), _nic(section.nic, catalog, at, refuse)
    if nic is not None and (nic.nics_per_cage != 1 or all(mode.ports != 1 for mode in nic.modes)):
        fitting = [key for key, other in catalog.nics.items() if _lone(other)]
        refuse((*at, "nic"), repr(nic.key), f"a NIC with a socket of its own and one port: {', '.join(fitting)}")
    if gpu is None or nic is None:
        return None
    gpus = section.gpus or gpu.gpus_per_server
    if gpus > gpu.hb_domain:
        refuse((*at, "gpus"), gpus, f"at most the {gpu.hb_domain} GPUs that the scale-up network of {gpu.key} joins")
    return Servers(section.count, gpus, gpu, nic)


def _lone(nic: Nic) -> bool:
    return nic.nics_per_cage == 1 and any(mode.ports == 1 for mode in nic.modes)


def _existing(
    section: ClusterSection, catalog: Catalog, cluster: Cluster | None, refuse: Refuse
) -> tuple[ExistingSwitch, ...]:
    result: list[ExistingSwitch] = []
    names: set[str] = set()
    spoken: set[str] = set() if cluster is None else _protocols([kind.nic for kind in cluster.kinds()])
    for number, item in enumerate(section.existing):
        at = (*AT, "existing", number)
        if item.name in names:
            refuse((*at, "name"), repr(item.name), "a name that no other switch has")
        names.add(item.name)
        switch = catalog.switches.get(item.switch)
        if switch is None:
            allowed = f"a switch of the catalog, one of: {', '.join(catalog.switches)}"
            refuse((*at, "switch"), repr(item.switch), allowed)
            continue
        if cluster is not None and not spoken & set(switch.protocols):
            found = f"{item.switch}, which speaks {', '.join(switch.protocols)}"
            refuse((*at, "switch"), found, f"a switch that speaks with the NICs: {', '.join(sorted(spoken))}")
        radix = switch.radix(switch.native_mode)
        if item.free_ports > radix:
            refuse((*at, "free_ports"), item.free_ports, f"1 to the {radix} ports of a {item.switch}")
        result.append(ExistingSwitch(item.name, switch, item.free_ports))
    return tuple(result)


def _protocols(nics: Sequence[Nic]) -> set[str]:
    return {protocol for nic in nics for protocol in nic.protocols}
