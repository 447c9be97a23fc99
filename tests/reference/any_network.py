"""Every network of a few tiny switches, one by one: which endpoints sit where, and which links join which switches.

Nothing is assumed but that a port is a port and that GPUs pass nothing on. Whether a network carries a demand is a
plain linear program. Only for a handful of endpoints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np
from scipy.optimize import linprog

Rates = np.ndarray


@dataclass(frozen=True)
class Model:
    """A switch with `ports` ports, each of any of the `speeds`."""

    ports: int
    cents: int
    speeds: tuple[int, ...]


@dataclass(frozen=True)
class Parts:
    """What networks are made of: models, the price of a link of each speed, of a NIC port's link, and NIC ports."""

    models: tuple[Model, ...]
    link_cents: dict[int, int]
    host_cents: int
    ports_per_gpu: int
    gbps: int


def demands_of(pattern: str, groups: Sequence[Sequence[int]], gpus: int, by: int = 1) -> Iterator[Rates]:
    """The demands of a pattern inside each group, one matrix each, in line rates; for `any` every permutation."""
    if pattern == "any":
        members = [one for group in groups for one in group]
        for images in product(*(permutations(group) for group in groups)):
            targets = dict(zip(members, (one for image in images for one in image), strict=True))
            if all(one != other for one, other in targets.items()):
                yield _of_targets(targets, gpus)
        return
    if pattern == "all-to-all":
        rates = np.zeros((gpus, gpus))
        for group in groups:
            for one, other in permutations(group, 2):
                rates[one, other] = 1 / (len(group) - 1)
        yield rates
        return
    targets = {}
    for group in groups:
        for place, one in enumerate(group):
            targets[one] = group[(place + by) % len(group)] if pattern == "shift" else group[place ^ by]
    yield _of_targets(targets, gpus)


def _of_targets(targets: dict[int, int], gpus: int) -> Rates:
    rates = np.zeros((gpus, gpus))
    for one, other in targets.items():
        if one != other:
            rates[one, other] = 1
    return rates


def carries(attached: Sequence[Sequence[int]], links: Sequence[tuple[int, int, int]], rates: Rates, gbps: int) -> bool:
    """Whether rates in Gb/s pass: GPU i has a port on each switch of `attached[i]`; links are (a, b, Gb/s)."""
    gpus = len(attached)
    switches = 1 + max(number for pair in (*attached, *(link[:2] for link in links)) for number in pair)
    sink = gpus + switches  # a GPU sends from one node and receives at another, so that it passes nothing on
    arcs = [(gpu, gpus + number, gbps) for gpu, where in enumerate(attached) for number in where]
    arcs += [(gpus + number, sink + gpu, gbps) for gpu, where in enumerate(attached) for number in where]
    arcs += [(gpus + a, gpus + b, rate) for one, other, rate in links for a, b in ((one, other), (other, one))]
    balance = np.zeros((sink + gpus, len(arcs)))
    for column, (tail, head, _) in enumerate(arcs):
        balance[tail, column] += 1
        balance[head, column] -= 1
    sources = [gpu for gpu in range(gpus) if rates[gpu].any()]
    sent = np.zeros((len(sources), sink + gpus))
    for row, source in enumerate(sources):
        sent[row, source] = rates[source].sum()
        sent[row, sink:] = -rates[source]
    found = linprog(
        np.zeros(len(sources) * len(arcs)),
        np.kron(np.ones((1, len(sources))), np.eye(len(arcs))),
        [room for _, _, room in arcs],
        np.kron(np.eye(len(sources)), balance),
        sent.reshape(-1),
        method="highs",
    )
    return found.status == 0


def _attachments(models: Sequence[Model], gpus: int, parts: Parts) -> Iterator[tuple[tuple[int, ...], ...]]:
    able = [number for number, model in enumerate(models) if parts.gbps in model.speeds]
    for attached in product(combinations_with_replacement(able, parts.ports_per_gpu), repeat=gpus):
        used = [sum(where.count(number) for where in attached) for number in range(len(models))]
        if any(count > model.ports for count, model in zip(used, models, strict=True)):
            continue
        first = [
            next((gpu for gpu, where in enumerate(attached) if number in where), gpus) for number in range(len(models))
        ]
        alike = zip(models, models[1:], first, first[1:], strict=False)
        if all(one != other or before <= after for one, other, before, after in alike):  # one of each order
            yield attached


def _wirings(
    models: Sequence[Model], free: Sequence[int], parts: Parts, budget: int
) -> Iterator[tuple[tuple[int, int, int], ...]]:
    kinds = [
        (a, b, speed)
        for a, b in combinations(range(len(models)), 2)
        for speed in sorted(set(models[a].speeds) & set(models[b].speeds))
        if parts.link_cents[speed] <= budget
    ]
    count = 0
    while kinds and count * min(parts.link_cents.values()) < budget and 2 * count <= sum(free):
        for wiring in combinations_with_replacement(kinds, count):
            used = [sum(number in (a, b) for a, b, _ in wiring) for number in range(len(models))]
            cents = sum(parts.link_cents[speed] for _, _, speed in wiring)
            if cents < budget and all(one <= most for one, most in zip(used, free, strict=True)):
                yield wiring
        count += 1
    if not kinds and budget > 0:
        yield ()


def _cuts_hold(attached, wiring, demands: Sequence[Rates], switches: int) -> bool:
    """Whether each set of switches has the links for what GPUs wholly on it exchange with GPUs wholly elsewhere."""
    for size in range(1, switches):
        for chosen in combinations(range(switches), size):
            inside = np.array([all(number in chosen for number in where) for where in attached])
            outside = np.array([all(number not in chosen for number in where) for where in attached])
            room = sum(speed for a, b, speed in wiring if (a in chosen) != (b in chosen))
            if any(rates[inside][:, outside].sum() > room + 1e-9 for rates in demands):
                return False
    return True


def cheaper_network(parts: Parts, gpus: int, demands: Sequence[Rates], limit_cents: int) -> str | None:
    """A network below `limit_cents` that carries each demand, in words; None when all of them fail. Demands in Gb/s."""
    hosts = gpus * parts.ports_per_gpu * parts.host_cents
    cheapest = min(model.cents for model in parts.models)
    most = max(0, (limit_cents - 1 - hosts)) // cheapest
    for number in range(1, most + 1):
        for models in combinations_with_replacement(parts.models, number):
            budget = limit_cents - hosts - sum(model.cents for model in models)
            if budget <= 0 or sum(model.ports for model in models) < gpus * parts.ports_per_gpu:
                continue
            for attached in _attachments(models, gpus, parts):
                free = [
                    model.ports - sum(where.count(place) for where in attached) for place, model in enumerate(models)
                ]
                for wiring in _wirings(models, free, parts, budget):
                    if not _cuts_hold(attached, wiring, demands, number):
                        continue
                    if all(carries(attached, wiring, rates, parts.gbps) for rates in demands):
                        return f"{models} {attached} {wiring}"
    return None
