"""Runs the network design problems of a folder and compares with a table of what is known of them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from designer.errors import InstanceError, Problem
from designer.formulation.network_design import solve_network_design
from designer.formulation.solvers import SolveLimits
from designer.sndlib import DesignModel, is_model_file, read_design_model, read_network_design
from designer.source import read_text

TABLE = "optima.json"
NONE, SINGLE_LINK = "none", "single link, free rerouting"
AGREES = 1e-6


@dataclass(frozen=True)
class FolderRow:
    """One problem of a folder, solved.

    `known` is the proven optimum of the table, or the best known cost where none is proven; None where the table has
    none. `verdict` is as known, better, worse (of costs), no design, or new (nothing is known).
    """

    instance: str
    survivability: str
    method: str
    solver: str
    termination: str
    cost: float | None
    bound: float
    gap: float
    known: float | None
    proven: bool
    seconds: float

    @property
    def verdict(self) -> str:
        """How the cost compares with the table."""
        if self.cost is None:
            return "no design"
        if self.known is None:
            return "new"
        slack = AGREES * max(1.0, abs(self.known))
        if abs(self.cost - self.known) <= slack:
            return "as known"
        return "better" if self.cost < self.known else "worse"

    @property
    def contradicts(self) -> bool:
        """Whether this result and the table cannot both be right.

        The bound is above a cost that somebody reached, or the cost below an optimum that somebody proved.
        """
        if self.known is None:
            return False
        slack = AGREES * max(1.0, abs(self.known))
        cheaper = self.cost is not None and self.cost < self.known - slack
        return self.bound > self.known + slack or (self.proven and cheaper)


def solve_folder(
    folder: Path | str, solver: str = "highs", *, method: str = "auto", limits: SolveLimits | None = None
) -> Iterator[FolderRow]:
    """Solves every network of a folder for each kind of survivability in the table, or as its model says.

    Networks are the files `*.txt` in SNDlib's native format. A network's model is `NAME.model.txt`, or else the only
    model file of the folder, or else the default of `DesignModel`. The table is `optima.json`: a list of objects with
    instance, survivability (none; single link, free rerouting), optimum (or null) and best_known.

    Raises:
        InstanceError: the folder, the table or a network cannot be read; before any is solved.
        SolverError: the solver is not available.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InstanceError([Problem(str(folder), None, "", "no such folder", "a folder of SNDlib native files")])
    files = sorted(folder.glob("*.txt"), key=lambda path: (len(path.stem), path.stem))
    models = {path.name: read_design_model(path) for path in files if is_model_file(path)}
    shared = next(iter(models.values())) if len(models) == 1 else DesignModel()
    networks = [
        read_network_design(path, models.get(f"{path.stem}.model.txt", shared))
        for path in files
        if path.name not in models
    ]
    if not networks:
        raise InstanceError([Problem(str(folder), None, "", "no networks", "files *.txt in SNDlib native format")])
    table = read_table(folder / TABLE) if (folder / TABLE).exists() else []
    for network in networks:
        rows = [row for row in table if row["instance"] == network.name]
        if not rows:
            survivable = network.model.survivability_model != "NO_SURVIVABILITY"
            rows = [{"survivability": SINGLE_LINK if survivable else NONE}]
        for row in rows:
            survivability = str(row["survivability"])
            report = solve_network_design(
                network, survivable=survivability == SINGLE_LINK, solver=solver, method=method, limits=limits
            )
            optimum, best = cast("float | None", row.get("optimum")), cast("float | None", row.get("best_known"))
            yield FolderRow(
                network.name,
                survivability,
                report.method,
                report.solver,
                report.termination,
                report.cost,
                report.bound,
                report.gap,
                best if optimum is None else optimum,
                optimum is not None,
                report.seconds,
            )


def read_table(path: Path | str) -> list[Mapping[str, Any]]:
    """Reads a table of known optima.

    Raises:
        InstanceError: every entry that cannot be used.
    """
    file = str(path)
    try:
        data: object = json.loads(read_text(path, InstanceError))
    except (ValueError, RecursionError) as broken:
        raise InstanceError([Problem(file, None, "", f"no JSON ({broken})", "JSON")]) from None
    problems: list[Problem] = []
    if not isinstance(data, list):
        raise InstanceError([Problem(file, None, "", type(data).__name__, "a list of objects")])
    for number, row in enumerate(cast("list[object]", data)):
        if not isinstance(row, dict):
            problems.append(Problem(file, None, f"[{number}]", repr(row)[:60], "an object"))
            continue
        entry = cast("dict[str, object]", row)
        if not isinstance(entry.get("instance"), str):
            problems.append(Problem(file, None, f"[{number}].instance", repr(entry.get("instance"))[:60], "a name"))
        if entry.get("survivability") not in {NONE, SINGLE_LINK}:
            found = repr(entry.get("survivability"))[:60]
            problems.append(Problem(file, None, f"[{number}].survivability", found, f"{NONE} or {SINGLE_LINK}"))
        for key in ("optimum", "best_known"):
            value = entry.get(key)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
                problems.append(Problem(file, None, f"[{number}].{key}", repr(value)[:60], "a number or null"))
    if problems:
        raise InstanceError(problems)
    return cast("list[Mapping[str, Any]]", data)


def format_row(row: FolderRow) -> str:
    """One line of a table for people."""
    cost = "-" if row.cost is None else f"{row.cost:.10g}"
    known = "-" if row.known is None else f"{row.known:.10g}{'' if row.proven else ' (not proven)'}"
    survives = "single link" if row.survivability == SINGLE_LINK else "none"
    return (
        f"{row.instance:<12} {survives:<12} {row.termination:<12} cost {cost:>12}  bound {row.bound:>12.10g}  "
        f"gap {100 * row.gap:6.2f} %  known {known:>12}  {row.verdict:<9} {row.seconds:8.2f} s"
    )
