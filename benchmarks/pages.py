"""Makes the tables of README.md and benchmarks/README.md, and the pictures, from the stored results.

    python benchmarks/pages.py

Nothing is measured here. A table stands between two marks of its name; results/releases.json keeps a line for every
release and gets that of results/bench.json.
"""

import json
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

from benchmarks import certificate_scaling, picture  # noqa: E402

RESULTS = HERE / "results"
READMES = (ROOT / "README.md", HERE / "README.md")
NOT_REPRODUCED = HERE / "not_reproduced.json"
REFERENCE_HOURS = {1024: 10.6, 4096: 25.4, 16384: 71.2}  # ATOP's search on 256 cores (SIGCOMM 2025)

Record = dict[str, Any]


def results(name: str) -> Any:
    """A stored result file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A Markdown table; columns but those of `left` hold numbers."""
    lines = [f"| {' | '.join(headings)} |"]
    lines.append("| " + " | ".join("---" if column in left else "---:" for column in range(len(headings))) + " |")
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def seconds(value: float | None) -> str:
    """Seconds with three digits or so."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float | None) -> str:
    """A ratio with two digits or so."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def percent(value: float | None, digits: int = 1) -> str:
    """A part in percent."""
    return "" if value is None else f"{100 * value:.{digits}f} %"


def money(usd: float | None) -> str:
    """Whole USD."""
    return "" if usd is None else f"{usd:,.0f}"


def suites() -> str:
    """A line for each suite."""
    rows = [
        (
            f"`{suite['suite']}`",
            str(suite["instances"]),
            str(suite["proven"]),
            str(suite["certified"]),
            percent(suite["mean_any_topology_gap"]),
            seconds(suite["design_s"]),
            seconds(suite["certificate_s"]),
            f"{suite['peak_mb']:,.0f}",
            ", ".join(f"{count} {verdict}" for verdict, count in suite["verdicts"].items()),
        )
        for suite in results("bench")["summary"]
    ]
    headings = (
        "suite",
        "instances",
        "proven",
        "certified",
        "gap to any network",
        "search, s",
        "certificates, s",
        "most MB",
    )
    return markdown((*headings, "against the records"), rows, left=(0, 8))


def savings() -> str:
    """What designs save of the templates' cost, on average over a suite."""
    document = results("bench")
    names = list(dict.fromkeys(item["template"] for suite in document["summary"] for item in suite["savings"]))
    rows: list[tuple[str, ...]] = []
    for suite in document["summary"]:
        means = {item["template"]: f"{percent(item['saving'])} ({item['rows']})" for item in suite["savings"]}
        if means:
            rows.append((f"`{suite['suite']}`", *(means.get(name, "") for name in names)))
    return markdown(("suite", *names), rows)


def release_row(document: Record) -> Record:
    """The line of a release from its run of all suites."""
    rows = document["rows"]
    found = [row for row in rows if row["cost_usd"] is not None]
    return {
        "version": document["version"],
        "date": document["date"],
        "instances": len(rows),
        "proven": sum(row["status"] == "optimal" for row in rows),
        "certified": sum(row["met"] is True for row in rows),
        "missed": sum(row["verdict"] == "worse" for row in rows),
        "mean_gap": statistics.fmean(row["gap"] for row in found),
        "mean_any_topology_gap": statistics.fmean(
            row["any_topology_gap"] for row in found if row["any_topology_gap"] is not None
        ),
        "design_s": sum(row["design_s"] or 0.0 for row in rows),
        "certificate_s": sum(row["certificate_s"] or 0.0 for row in rows),
    }


def releases() -> str:
    """A line for each release."""
    rows = [
        (
            row["version"],
            row["date"],
            str(row["instances"]),
            str(row["proven"]),
            str(row["certified"]),
            str(row["missed"]),
            percent(row["mean_gap"], 2),
            percent(row["mean_any_topology_gap"]),
            seconds(row["design_s"]),
            seconds(row["certificate_s"]),
        )
        for row in results("releases")
    ]
    headings = ("release", "date", "instances", "proven", "certified", "best known missed", "mean gap")
    return markdown((*headings, "gap to any network", "search, s", "certificates, s"), rows, left=(0, 1))


def growth_points() -> dict[str, list[tuple[int, float, float]]]:
    """GPUs, seconds and MB of each kind of work, as measured."""
    design, export = results("design_scaling"), results("export_scaling")
    certificate = results("certificate_scaling")
    found: dict[str, list[tuple[int, float, float]]] = {}
    for family in ("rails", "joined"):
        found[f"design, {family}"] = [
            (point["gpus"], point["median_s"], point["peak_mb"])
            for point in design["points"]
            if point["name"].startswith(f"{family}-")
        ]
    for task, name in (("intact", "intact"), ("all single failures", "failures")):
        found[f"certificate, {name}"] = [
            (point["endpoints"], point["seconds"], point["peak_mb"])
            for point in certificate["points"]
            if point["task"] == task and point["seconds"]
        ]
    found["export of the wiring"] = [
        (point["gpus"], point["read_s"] + point["export_s"], point["peak_mb"]) for point in export["points"]
    ]
    return {name: sorted(points) for name, points in found.items()}


def growth() -> str:
    """Seconds by size for each kind of work, with the most memory and the fitted exponent."""
    points = growth_points()
    sizes = sorted({gpus for series in points.values() for gpus, _, _ in series})
    rows: list[tuple[str, ...]] = []
    for size in sizes:
        by_name = {name: {gpus: s for gpus, s, _ in series} for name, series in points.items()}
        rows.append((f"{size:,}", *(seconds(by_name[name].get(size)) for name in points)))
    rows.append(("most MB", *(f"{max(mb for _, _, mb in series):,.0f}" for series in points.values())))
    fitted = [picture.slope((gpus, s) for gpus, s, _ in series) for series in points.values()]
    rows.append(("exponent", *("" if value is None else f"{value:.2f}" for value in fitted)))
    return markdown(("GPUs", *(f"{name}, s" for name in points)), rows, left=())


def pictures() -> dict[str, str]:
    """The pictures by file name: growth of all kinds of work, and of the certificate by kind of failure."""
    points = {name: [(gpus, s) for gpus, s, _ in values] for name, values in growth_points().items()}
    certificate: dict[str, list[tuple[int, float]]] = {}
    for point in results("certificate_scaling")["points"]:
        if point["seconds"]:
            certificate.setdefault(point["task"], []).append((point["endpoints"], point["seconds"]))
    drawn = {
        "growth.svg": (points, "Seconds of design, certificate and export over GPUs, both logarithmic", "GPUs"),
        "certificate_scaling.svg": (
            {name: sorted(values) for name, values in certificate.items()},
            "Seconds of the certificate over endpoints of the fabric, both logarithmic",
            "endpoints",
        ),
    }
    return {
        name: picture.draw(series, {key: picture.slope(values) for key, values in series.items()}, title, what)
        for name, (series, title, what) in drawn.items()
    }


def _records(section: str) -> list[Record]:
    return results("comparisons")[section]["records"]


def templates() -> str:
    """The templates' formulas alone against the search."""
    rows = [
        (
            f"`{record['instance']}`",
            record["template"],
            money(record["template_usd"]),
            money(record["ours_usd"]),
            f"{record['cost_ratio']:.2f}",
            seconds(record["ours_s"]),
        )
        for record in _records("templates")
    ]
    headings = ("instance", "cheapest template that meets", "its cost, USD", "ours, USD", "cost ratio", "ours, s")
    return markdown(headings, rows, left=(0, 1))


def textbook() -> str:
    """The textbook program against the search over the same networks."""
    rows = [
        (
            f"`{record['instance']}`",
            f"{record['columns']:,} x {record['rows']:,}",
            money(record["textbook_usd"]),
            "yes" if record["textbook_proven"] else f"no, bound {money(record['textbook_bound_usd'])}",
            money(record["ours_usd"]),
            seconds(record["textbook_s"]),
            seconds(record["ours_s"]),
            ratio(record["time_ratio"]),
        )
        for record in _records("textbook")
    ]
    headings = ("instance", "columns x rows", "its cost, USD", "proven", "ours, USD", "its time, s", "ours, s", "ratio")
    return markdown(headings, rows, left=(0, 3))


def flow() -> str:
    """The plain flow program against the certificate."""
    rows = [
        (
            f"{record['endpoints']:,}",
            seconds(record["plain_s"]) or "not done in 600",
            f"{record['ours_s']:.3f}",
            ratio(record["time_ratio"]),
            str(record["runs"]),
        )
        for record in _records("flow")
    ]
    return markdown(
        ("endpoints", "plain program, s", "certificate, s", "ratio", "runs of the plain one"), rows, left=()
    )


def evolution() -> str:
    """The evolutionary search against ours."""
    rows = [
        (
            f"`{record['instance']}`",
            money(record["ours_usd"]),
            money(record["best_usd"]),
            money(record["median_usd"]),
            f"{record['reached']} of {len(record['runs'])}",
            f"{statistics.median(run['looked_at'] for run in record['runs']):,.0f}",
            seconds(record["ours_s"]),
            seconds(record["theirs_s"]),
            ratio(record["time_ratio"]),
        )
        for record in _records("evolution")
    ]
    headings = ("instance", "ours, USD", "its best", "its median", "runs that reach ours", "networks looked at")
    return markdown((*headings, "ours, s", "its time, s", "ratio"), rows)


def published_times() -> str:
    """ATOP's published search times beside ours."""
    rows: list[tuple[str, ...]] = []
    for row in results("bench")["rows"]:
        if row["suite"] == "atop" and row["instance"].endswith("-2x200"):
            hours = REFERENCE_HOURS[row["gpus"]]
            rows.append(
                (
                    f"`{row['instance']}`",
                    f"{hours:g} h on 256 cores",
                    seconds(row["design_s"]),
                    seconds(row["certificate_s"]),
                    "proven" if row["status"] == "optimal" else percent(row["gap"]),
                )
            )
    rows.sort(key=lambda cells: int(cells[0].strip("`").split("-")[0]))
    headings = ("instance", "ATOP, as published", "our search, s", "our certificate, s", "gap")
    return markdown(headings, rows, left=(0, 1, 4))


def rail_only() -> str:
    """Table 2 of the rail-only paper: published / found."""
    rows = [
        (
            f"{record['gpus']:,}",
            str(record["radix"]),
            *(_both(record, name) for name in record["published"]),
            money(record["design_usd"]),
            f"{record['rail_only_usd'] / record['design_usd']:.2f}",
        )
        for record in results("reproduction")["rail_only"]
    ]
    headings = ("GPUs", "radix", "Clos switches", "Clos transceivers", "rail-only switches", "rail-only transceivers")
    return markdown((*headings, "saving, %", "our design, USD", "rail-only / ours"), rows, left=())


def _both(record: Record, name: str) -> str:
    published, found = record["published"][name], record["found"][name]
    return f"{published:,} / {found:,}"


def vendors() -> str:
    """Vendors' reference designs: published / found."""
    names = {
        "leaf": "leaf",
        "spine": "spine",
        "core": "core",
        "total_switches": "switches",
        "node_leaf_links": "host links",
        "leaf_spine_links": "leaf-spine links",
        "spine_core_links": "spine-core links",
    }
    rows = [
        (
            record["system"],
            "" if record["gpus"] is None else f"{record['gpus']:,}",
            *(_both(record, name) if name in record["published"] else "" for name in names),
            record["note"],
        )
        for record in results("reproduction")["vendors"]
    ]
    return markdown(("design", "GPUs", *names.values(), "note"), rows, left=(0, 9))


def atop() -> str:
    """ATOP's networks: published / found, and our designs of its searches."""
    document = results("reproduction")
    rows: list[tuple[str, ...]] = []
    for record in document["atop"]:
        cells = [_both(record, name) for name in record["published"]]
        rows.append((f"{record['gpus']:,}", record["design"], *cells, f"{record['no_switch_failed_pct']:.0f} %"))
    headings = ("GPUs", "network", "switches", "links", "copper", "fibre", "modules", "no switch down")
    table = markdown(headings, rows, left=(1,))
    designs = [
        (
            f"`{record['instance']}`",
            f"{record['switches']:,}",
            money(record["cost_usd"]),
            "yes" if record["proven"] else "no",
            *(_template(document, record["gpus"], name) for name in ("ROFT", "Rail-only", "HPN", "ZCube")),
        )
        for record in document["atop_designs"]
    ]
    headings = ("our design", "switches", "cost, USD", "proven", "ROFT", "rail-only", "HPN", "ZCube")
    return f"{table}\n\n{markdown(headings, designs, left=(0, 3))}"


def _template(document: Record, gpus: int, design: str) -> str:
    """Published switches of a network, and what it costs on our catalog."""
    row = next(row for row in document["atop"] if row["gpus"] == gpus and row["design"].startswith(design))
    return f"{row['published']['switches']:,}; {money(row['cost_usd'])}"


def not_reproduced() -> str:
    """What is not reproduced, and why."""
    rows = [
        (record["what"], record["source"], record["reason"])
        for record in json.loads(NOT_REPRODUCED.read_text(encoding="utf-8"))
    ]
    return markdown(("figure", "source", "why not"), rows, left=(0, 1, 2))


def certificates() -> str:
    """Growth of the certificate, by kind of failure."""
    points = results("certificate_scaling")["points"]
    names = certificate_scaling.Point.__dataclass_fields__
    return certificate_scaling.table(
        [certificate_scaling.Point(**{key: point[key] for key in names}) for point in points]
    )


TABLES: dict[str, Callable[[], str]] = {
    "suites": suites,
    "savings": savings,
    "releases": releases,
    "growth": growth,
    "certificate scaling": certificates,
    "templates": templates,
    "textbook": textbook,
    "flow": flow,
    "evolution": evolution,
    "published times": published_times,
    "rail-only": rail_only,
    "vendors": vendors,
    "atop": atop,
    "not reproduced": not_reproduced,
}


def with_tables(text: str) -> str:
    """A README with every table that it has marks for made anew.

    Raises:
        ValueError: a mark is there twice, or without its end.
    """
    for name, make in TABLES.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin not in text:
            continue
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"marks of the table {name!r}: one begin and one end")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{make()}\n\n{end}{rest.split(end)[1]}"
    return text


def with_release(known: list[Record], document: Record) -> list[Record]:
    """The lines of releases with that of a run of all suites, in place of an earlier one of the same version."""
    return [*(row for row in known if row["version"] != document["version"]), release_row(document)]


def main() -> None:
    """Writes the line of the release, the tables and the picture."""
    path = RESULTS / "releases.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    path.write_text(json.dumps(with_release(known, results("bench")), indent=1) + "\n", encoding="utf-8")
    for readme in READMES:
        readme.write_text(with_tables(readme.read_text(encoding="utf-8")), encoding="utf-8")
    for name, drawing in pictures().items():
        (RESULTS / name).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
