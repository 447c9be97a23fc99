"""Where the ranks of a job sit: groups of ranks as groups of HB domains, and endpoints in their order on a fabric.

Rank r of a job sits on GPU first_gpu + r. GPU g is number g mod K of domain g div K (K = `hb_domain`). What leaves a
domain for another GPU travels on that GPU's rail, by way of the peer with the same number in the sender's domain
(NCCL's PXN), so groups of ranks become groups of domains and every rail sees the same pattern.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from designer.instance.instance import Parallelism


class MisalignedGroupError(ValueError):
    """A group of ranks that cuts HB domains unevenly."""


@dataclass(frozen=True)
class Digit:
    """A dimension of the rank order: ranks `stride` apart, `size` of them, form a group."""

    stride: int
    size: int


@dataclass(frozen=True)
class DomainGroup:
    """A group of ranks seen from outside: `size` domains, `stride` domains apart, `members` ranks in each of them."""

    stride: int
    size: int
    members: int


def digits(parallelism: Parallelism) -> dict[str, Digit]:
    """Stride and size of every dimension in ranks; `dp` here is what is left of it beside `ep`."""
    sizes = {
        "tp": parallelism.tp,
        "cp": parallelism.cp,
        "ep": parallelism.ep,
        "dp": parallelism.dp // parallelism.ep,
        "pp": parallelism.pp,
    }
    result: dict[str, Digit] = {}
    stride = 1
    for name in parallelism.order:
        result[name] = Digit(stride, sizes[name])
        stride *= sizes[name]
    return result


def merge(parts: Sequence[Digit]) -> list[Digit]:
    """The group over several dimensions as few digits: neighbours in the rank order become one."""
    merged: list[Digit] = []
    for digit in sorted((part for part in parts if part.size > 1), key=lambda part: part.stride):
        if merged and merged[-1].stride * merged[-1].size == digit.stride:
            merged[-1] = Digit(merged[-1].stride, merged[-1].size * digit.size)
        else:
            merged.append(digit)
    return merged


def domain_group(digit: Digit, hb_domain: int) -> DomainGroup:
    """The group of `digit` as domains of `hb_domain` GPUs.

    Raises MisalignedGroupError when the group neither stays inside domains, nor has one rank in each domain it
    touches, nor fills whole ones evenly.
    """
    span = digit.stride * digit.size
    if hb_domain % span == 0:
        return DomainGroup(1, 1, digit.size)
    if digit.stride % hb_domain == 0:
        return DomainGroup(digit.stride // hb_domain, digit.size, 1)
    if hb_domain % digit.stride == 0 and span % hb_domain == 0:
        return DomainGroup(1, span // hb_domain, hb_domain // digit.stride)
    raise MisalignedGroupError(f"{digit.size} ranks, {digit.stride} apart, on domains of {hb_domain} GPUs")
