"""Designs the shipped instances and writes what is known of each: instances/<family>/best_known.json and its table.

    python benchmarks/best_known.py [FAMILY ...]

Prints what changed against the files. The table goes into the family's README.md, between the two marks.
"""

import json
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from designer.benchmark import records, suites
from designer.benchmark.measure import LIMIT_S
from designer.benchmark.records import Record

if TYPE_CHECKING:
    from designer import Design

ROOT = Path(__file__).resolve().parent.parent
INSTANCES = ROOT / "instances"
MARKS = ("<!-- best known: begin -->", "<!-- best known: end -->")


def families() -> list[str]:
    """Names of the shipped families."""
    return sorted(path.name for path in INSTANCES.iterdir() if path.is_dir() and any(path.glob("*.yaml")))


def instance_files(family: str) -> list[Path]:
    """The instances of a family."""
    return suites.instance_files(INSTANCES / family)


def version() -> str:
    """The version of this checkout."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def record_of(result: "Design") -> Record:
    """What is recorded of a design of this checkout."""
    return records.record_of(result, version())


def read_records(family: str) -> dict[str, Record]:
    """The recorded designs by name of instance."""
    path = INSTANCES / family / records.FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def table(known: dict[str, Record]) -> str:
    """The records as a Markdown table."""
    lines = [
        "| instance | best known, USD | bound, USD | leaf + spine + core | fabrics | proven by |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, record in known.items():
        counts = record["counts"]
        switches = " + ".join(f"{counts[tier]:,}" for tier in ("leaf", "spine", "core") if counts[tier])
        proven = record["version"] if record["status"] == "optimal" else "open"
        lines.append(
            f"| `{name}` | {_money(record['cost_usd'])} | {_money(record['lower_bound_usd'])} "
            f"| {switches} | {counts['fabrics']:,} | {proven} |"
        )
    return "\n".join(lines)


def _money(usd: float) -> str:
    return f"{usd:,.2f}".removesuffix(".00")


def with_table(text: str, known: dict[str, Record]) -> str:
    """The README `text` with the table between its marks."""
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{table(known)}\n\n{MARKS[1]}{after}"


def main(chosen: list[str]) -> None:
    """Designs the instances of the `chosen` families, or of all."""
    # Here, as the measuring script imports this module: a child's peak memory is never below its parent's.
    from designer import design, load_instance
    from designer.search import Options

    for family in chosen or families():
        old, new = read_records(family), {}
        for path in instance_files(family):
            started = time.monotonic()
            new[path.stem] = record = record_of(
                design(load_instance(path), Options(certify=False, time_limit_s=LIMIT_S))
            )
            news = "" if record == old.get(path.stem) else f"  changed, was {old.get(path.stem)}"
            print(f"{family}/{path.stem}: {record['cost_usd']:,.2f} {record['status']}", end="")
            print(f" in {time.monotonic() - started:.2f} s{news}")
        folder = INSTANCES / family
        (folder / records.FILE).write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
        readme = folder / "README.md"
        readme.write_text(with_table(readme.read_text(encoding="utf-8"), new), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
