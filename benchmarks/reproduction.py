"""Published figures beside those of this package: rail-only's Table 2, vendors' designs, DeepSeek's and ATOP's tables.

    python benchmarks/reproduction.py

The published side is in tests/published/, where tests hold every number; here the same numbers are written side by
side into results/reproduction.json, from which `pages.py` makes tables. Ends with 1 where one differs. Designs of
ATOP's searches come from instances/atop/best_known.json; what is not reproduced is listed in not_reproduced.json.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "published")]  # the tests there share their parts by bare names

from benchmarks.best_known import read_records, version  # noqa: E402
from tests.published import test_atop as atop  # noqa: E402
from tests.published import test_rail_only_table2 as rail_only  # noqa: E402
from tests.published import test_reference_boms as boms  # noqa: E402

RESULT = Path(__file__).parent / "results" / "reproduction.json"
ATOP = ("switches", "links", "copper", "fibre", "optical_modules")
ONE_SWITCH_FAILS = 0.0003  # at any time (ATOP, section 4)

Record = dict[str, Any]


def rail_only_rows() -> list[Record]:
    """The 7 rows of Table 2: 4 counts and the saving each, published and found."""
    records: list[Record] = []
    for row in rail_only.ROWS:
        known = rail_only.templates_of(row["n_gpus"], row["radix"])
        clos, rails = known["fat-tree"], known["rail-only"]
        design = rail_only.design_of(row["n_gpus"], (row["radix"],))
        found = {
            **{f"sota_{name}": clos.counts[name] for name in ("switches", "transceivers")},
            **{f"rail_{name}": rails.counts[name] for name in ("switches", "transceivers")},
            "cost_reduction_pct": 100 * (clos.cost_cents - rails.cost_cents) // clos.cost_cents,
        }
        records.append(
            {
                "gpus": row["n_gpus"],
                "radix": row["radix"],
                "published": {name: row[name] for name in found},
                "found": found,
                "rail_only_usd": rails.cost_cents / 100,
                "design_usd": design.cost_cents / 100,
                "design_proven": design.status == "optimal",
            }
        )
    return records


def vendor_rows() -> list[Record]:
    """Vendors' reference designs and built clusters: switches of each tier and links of each class."""
    records: list[Record] = []
    for row in boms.ROWS:
        published, found = boms.expected_and_found(row, boms.shape_of(row).counts())
        uniform = row["verdict"] == "symmetry"
        records.append(
            {
                "system": row["system"],
                "gpus": row["gpus"],
                "published": published,
                "found": found,
                "note": "more spines than ports ask for, so that bundles are alike" if uniform else "",
            }
        )
    return records


def atop_rows() -> list[Record]:
    """ATOP's networks from the templates: switches, links over copper and fibre, modules as ATOP counts them."""
    records: list[Record] = []
    for row in atop.ROWS:
        instance = atop.instance_of(row["n_gpus"], row["nic_ports_per_gpu"])
        item = atop.template_of(row)
        copper, fibre = atop.copper_and_fibre(atop.drawn(item), instance)
        found = {
            "switches": item.counts["switches"],
            "links": item.counts["links"],
            "copper": copper,
            "fibre": fibre,
            "optical_modules": 2 * fibre,
        }
        published = {**{name: row[name] for name in ATOP if name != "links"}, "links": row["copper"] + row["fibre"]}
        records.append(
            {
                "gpus": row["n_gpus"],
                "design": row["design"],
                "nic_ports": row["nic_ports_per_gpu"],
                "published": {name: published[name] for name in ATOP},
                "found": {name: found[name] for name in ATOP},
                "cost_usd": item.cost_cents / 100,
                "no_switch_failed_pct": 100 * (1 - ONE_SWITCH_FAILS) ** found["switches"],
            }
        )
    return records


def atop_designs() -> list[Record]:
    """This package's designs of ATOP's searches, as recorded."""
    records: list[Record] = []
    for name, record in read_records("atop").items():
        gpus, job, nic = name.split("-")
        counts = record["counts"]
        switches = sum(counts[tier] for tier in ("leaf", "spine", "core"))
        row = {"instance": name, "gpus": int(gpus), "job": job, "nic": nic, "switches": switches}
        records.append(row | {"cost_usd": record["cost_usd"], "proven": record["status"] == "optimal"})
    return sorted(records, key=lambda row: (row["gpus"], row["job"], row["nic"]))


def main() -> int:
    """Writes the results; 0 where every figure is the published one."""
    sections = {"rail_only": rail_only_rows(), "vendors": vendor_rows(), "atop": atop_rows()}
    document = {"version": version(), **sections, "atop_designs": atop_designs()}
    RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    differ = Counter(
        name for name, records in sections.items() for record in records if record["published"] != record["found"]
    )
    for name, records in sections.items():
        print(f"{name}: {len(records) - differ[name]} of {len(records)} rows as published")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
