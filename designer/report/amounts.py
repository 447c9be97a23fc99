"""Numbers of switches, links and GPUs in words."""

from collections.abc import Mapping, Sequence

from designer.report.alike import Alike, Bundles
from designer.workload.cuts import Ints

MOST_RUNS = 6
PLURALS = {"leaf": "leaves", "switch": "switches"}
LINK_NAMES = {
    "host": "host links",
    "leaf-leaf": "leaf–leaf links",
    "leaf-spine": "leaf–spine links",
    "spine-core": "spine–core links",
    "labour": "plugging",
}


def count(number: int, what: str) -> str:
    """A number with its noun: 1 leaf, 2 leaves."""
    return f"{number:,} {what if number == 1 else PLURALS.get(what, what + 's')}"


def listing(words: Sequence[str]) -> str:
    """Words with commas, and `and` before the last."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def link_words(by_speed: Mapping[int, int]) -> str:
    """Links by their speed in Gb/s."""
    return listing([f"{links:,} × {gbps} Gb/s" for gbps, links in sorted(by_speed.items(), reverse=True)])


def bundle_words(bundles: Sequence[Bundles], tier: str, in_tier: int) -> str:
    """How many links lead to one of the nodes of a tier, which has so many in all."""
    fewest, most = min(item.fewest for item in bundles), max(item.most for item in bundles)
    links = f"{fewest} to {most} links" if fewest < most else count(most, "link")
    joined = {item.nodes for item in bundles}
    if joined == {in_tier}:
        return f"{links} to each {tier}"
    return f"{links} to each of {count(joined.pop(), tier)}" if len(joined) == 1 else f"{links} to a {tier}"


def runs(numbers: Sequence[int], most: int = MOST_RUNS) -> str:
    """Increasing numbers as runs: 0–7, 12."""
    words: list[str] = []
    first = last = None
    for value in [*numbers, None]:
        if first is None or last is None or value != last + 1:
            if first is not None:
                words.append(f"{first}" if first == last else f"{first}–{last}")
            first = value
        last = value
    return ", ".join(words[:most]) + (f" and {len(words) - most} more runs" if len(words) > most else "")


def serves(gpus: Ints, rails: int, hb_domain: int) -> str:
    """The GPUs of a switch, or of several, by rails and HB domains where they are whole, else by number."""
    if not len(gpus):
        return "no GPUs"
    on = sorted(set((gpus % rails).tolist()))
    domains = sorted(set((gpus // hb_domain).tolist()))
    name = "all rails" if len(on) == rails else f"{'rail' if len(on) == 1 else 'rails'} {runs(on)}"
    if rails == 1 or len(gpus) != len(on) * len(domains) * (hb_domain // rails):
        by_rail = f"{name}: " if len(on) < rails else ""
        return f"{by_rail}GPUs {runs(gpus.tolist())}"
    return f"{name} of {'domain' if len(domains) == 1 else 'domains'} {runs(domains)}"


def endpoint_words(alike: Alike) -> str:
    """Links to GPUs and management ports of each of some switches; nothing where there are none."""
    words = [f"{item.links:,} × {item.gbps} Gb/s" for item in alike.bundles if item.tier == "gpu"]
    words += [f"{count(item.links, 'management port')}" for item in alike.bundles if item.tier == "management"]
    return listing(words)


def join_words(alike: Alike) -> str:
    """Links to other switches of each of some switches."""
    words: list[str] = []
    for item in alike.bundles:
        if item.tier in ("gpu", "management"):
            continue
        each = f"{item.fewest} to {item.most}" if item.fewest < item.most else f"{item.most}"
        words.append(f"{item.links:,} × {item.gbps} Gb/s, {each} to each of {count(item.nodes, item.tier)}")
    return "; ".join(words) or "none"
