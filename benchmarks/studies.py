"""Runs the shipped studies and writes what came out: tables and pictures in each folder, the report in its README.

    python benchmarks/studies.py [NAME ...]

Seconds are left out of the tables, so that only a change of the answers changes a file.
"""

import csv
import io
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
STUDIES = ROOT / "instances" / "studies"
MARKS = ("<!-- report: begin -->", "<!-- report: end -->")
COMMAND = "from designer.cli import main; main()"


def names() -> list[str]:
    """The shipped studies."""
    return sorted(path.parent.name for path in STUDIES.glob("*/study.yaml"))


def without_seconds(table: str) -> str:
    """The CSV table without its last column."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows(row[:-1] for row in csv.reader(io.StringIO(table)))
    return buffer.getvalue()


def with_report(readme: str, report: str) -> str:
    """The README with a new report between the marks."""
    head, rest = readme.split(MARKS[0])
    return f"{head}{MARKS[0]}\n\n```\n{report.strip()}\n```\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def update(name: str) -> None:
    """Runs a study and writes its files."""
    folder = STUDIES / name
    with TemporaryDirectory() as made:
        arguments = ["study", str(folder / "study.yaml"), "-o", made]
        report = subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        table = (Path(made) / "table.csv").read_text(encoding="utf-8")
        (folder / "table.csv").write_text(without_seconds(table), encoding="utf-8")
        for made_file in [*Path(made).glob("*.svg"), *Path(made).glob("robustness.json")]:
            (folder / made_file.name).write_bytes(made_file.read_bytes())
    readme = folder / "README.md"
    readme.write_text(with_report(readme.read_text(encoding="utf-8"), report), encoding="utf-8")


def main() -> None:
    """Updates the named studies, or all."""
    for name in sys.argv[1:] or names():
        update(name)
        print(name, flush=True)


if __name__ == "__main__":
    main()
