"""`designer traffic`: phases, bytes, cut function and heat map of an instance."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from designer.workload.cuts import Floats
    from designer.workload.heatmap import PairCount
    from designer.workload.traffic_report import TrafficReport

SHADES = " .:-=+*#%@"


def traffic(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE", help="Instance file (YAML or JSON).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:
    """Show phases, bytes, cut function and heat map."""
    from designer.cli.console import render, write_json, write_out
    from designer.instance.load import load_instance
    from designer.workload.traffic_report import traffic_report

    report = traffic_report(load_instance(instance))
    if as_json:
        write_json(report.to_document())
    else:
        write_out(render(*_parts(report)))


def _parts(report: "TrafficReport") -> "list[Any]":
    from rich.text import Text

    from designer.cli.console import printable

    def heading(text: str) -> Text:
        return Text(f"\n{text}", style="bold")

    what = f"{report.gpus:,} GPUs, HB domains of {report.hb_domain}, {report.rails} rails"
    return [
        Text(f"{printable(report.name)}: {what}", style="bold"),
        heading("Phases, bytes a GPU sends in one iteration"),
        _phases(report),
        *_shares(report),
        heading(f"Cut function: what {report.block_of} send out at most, in line rates of one endpoint"),
        _cuts(report),
        heading(f"Bytes from GPU to GPU, {report.bin_gpus:,} GPUs to a character, darker is more (logarithmic)"),
        *heat_lines(report.heat),
        heading("Pairs of GPUs"),
        *_pairs(report),
    ]


def _phases(report: "TrafficReport") -> Any:
    from designer.cli.console import printable, table

    result = table("phase", "job", "pattern", "groups", "by NIC", "in the domain", "floor", right=(4, 5, 6))
    for phase in report.phases:
        result.add_row(
            printable(phase.name),
            printable(phase.job),
            ", ".join(phase.patterns) or "inside the domain",
            ", ".join(phase.groups),
            "as demanded" if phase.nic_bytes is None else _bytes(phase.nic_bytes),
            _bytes(phase.domain_bytes),
            f"{100 * phase.floor:g} %" if phase.patterns else "",
        )
    return result


def _shares(report: "TrafficReport") -> "list[Any]":
    from rich.text import Text

    parts = report.shares.fractions()
    if not any(parts):
        return []
    words = ("inside the HB domain", "on a rail", "from rail to rail")
    text = ", ".join(f"{100 * part:.2f} % {word}" for part, word in zip(parts, words, strict=True))
    return [Text(f"\nOf all bytes {text}.")]


def _cuts(report: "TrafficReport") -> Any:
    from designer.cli.console import printable, table

    names = [name for name, _ in report.cuts]
    result = table("n", *map(printable, names), "all, with floors", right=tuple(range(len(names) + 2)))
    for number, size in enumerate(report.block_sizes):
        result.add_row(
            f"{size:,}", *(f"{values[number]:,.2f}" for _, values in report.cuts), f"{report.total_cut[number]:,.2f}"
        )
    return result


def heat_lines(heat: "Floats") -> "list[Any]":
    """The heat map as lines of characters: blank for nothing, then by the logarithm of the bytes."""
    import numpy as np
    from rich.text import Text

    top = heat.max(initial=0.0)
    if top <= 0:
        return [Text("nothing is sent")]
    least = heat[heat > 0].min()
    span = np.log(top / least) or 1.0
    level = np.zeros(heat.shape, dtype=np.int64)
    sent = heat > 0
    scaled = np.log(heat[sent] / least) / span if top > least else np.ones(int(sent.sum()))
    level[sent] = 1 + np.rint(scaled * (len(SHADES) - 2)).astype(np.int64)
    rows = ["".join(SHADES[int(value)] * 2 for value in row) for row in level]
    edge = "+" + "-" * (2 * len(rows)) + "+"
    return [Text(line) for line in (edge, *(f"|{row}|" for row in rows), edge)]


def _pairs(report: "TrafficReport") -> "list[Any]":
    from rich.text import Text

    ring, every = report.pairs, report.pairs_any
    silent = _silent(ring)
    counted = "from NIC to NIC or inside a domain, with each demand `any` carried as a ring"
    lines = [f"{silent} of the {ring.total:,} pairs exchange nothing; {ring.exchanging:,} do, {counted}."]
    if every.exchanging != ring.exchanging:
        lines.append(f"{_silent(every)} exchange nothing when all pairs in the groups of `any` count, used or not.")
    return [Text(line) for line in lines]


def _silent(count: "PairCount") -> str:
    """The share of silent pairs with as many digits as tell it from all of them."""
    digits = 2
    while digits < 8 and count.exchanging and round(100 * count.silent_share, digits) >= 100:
        digits += 1
    return f"{'' if count.exact else 'at least '}{100 * count.silent_share:.{digits}f} %"


def _bytes(size: float) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:,.2f} {unit}"
    return f"{size:,.0f} B"
