"""`designer compare`: all templates and the optimum side by side."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from designer.cli.search_job import (
    CheckProgress,
    Families,
    Gap,
    Json,
    Progress,
    Seed,
    Solver,
    Threads,
    TimeLimit,
    exit_code,
    family_names,
    run_interruptibly,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from designer.alternatives import Alternative
    from designer.result import Design


def compare(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE", help="Instance file (YAML or JSON).")],
    as_json: Json = False,
    time_limit: TimeLimit = None,
    gap: Gap = 0.0,
    threads: Threads = 1,
    seed: Seed = 0,
    solver: Solver = None,
    families: Families = None,
) -> None:
    """Set templates and the optimum side by side.

    Rows marked + are Pareto-optimal among those that meet the requirements: nothing else is at least as good in cost
    and in the share of uplinks that the worst pair of leaves has in common, and better in one of them.
    """
    from designer.alternatives import alternatives
    from designer.cli.console import render, write_error, write_json, write_out
    from designer.instance.load import load_instance
    from designer.search import Options

    problem = load_instance(instance)
    write_error(f"{problem.name}: {problem.cluster.gpus:,} GPUs, searching")
    progress, checking = Progress(), CheckProgress()

    def work(should_stop: "Callable[[], bool]") -> "tuple[Design, list[Alternative]]":
        limit = math.inf if time_limit is None else time_limit
        chosen = family_names(families)
        options = Options(
            limit, gap, threads, seed, progress, should_stop, checking=checking, families=chosen, solver=solver
        )
        return alternatives(problem, options)

    try:
        (optimum, rows), interrupted = run_interruptibly(work)
    finally:
        progress.finish()
        checking.finish()
    if as_json:
        write_json([row.to_document() for row in rows])
    else:
        write_out(render(*_report(optimum, rows)))
    certified = optimum.certificate is None or optimum.certificate.met
    if not certified and not interrupted:
        write_error("the certificate of the optimum falls short of the requirements; `designer design` says where")
    code = exit_code(optimum.provenance.termination, optimum.gap, gap, interrupted=interrupted, certified=certified)
    raise typer.Exit(code)


def _report(optimum: "Design", rows: "list[Alternative]") -> "list[Any]":
    from rich.text import Text

    from designer.cli.console import printable, table
    from designer.cli.design_report import facts
    from designer.report.words import MEETS, money, percent, status_words

    right = (2, 3, 4, 5, 6, 7, 9)
    result = table(
        "network",
        "switch",
        "leaf",
        "spine",
        "core",
        "links",
        "cost",
        "optimum saves",
        "meets",
        "worst pair",
        "",
        right=right,
    )
    for item in rows:
        row, counts = item.row, item.row.counts
        result.add_row(
            row.template,
            printable(row.switch),
            *(f"{counts[name]:,}" for name in ("leaf", "spine", "core", "links")),
            money(row.cost_cents),
            percent(row.saving),
            MEETS[row.meets],
            "" if item.worst_leaf_pair is None else percent(item.worst_leaf_pair, 2),
            "+" if item.pareto else "",
            style="bold" if row.template == "optimum" else None,
        )
    status = status_words(optimum.status, optimum.provenance.termination, optimum.gap, optimum.bound_cents)
    return [
        Text(printable(optimum.name), style="bold"),
        facts(iter([("optimum", status), ("searched", optimum.searched)])),
        Text(""),
        result,
        Text(
            "+ Pareto-optimal in cost and worst pair: the part of its uplinks that a leaf shares with any other leaf\n"
        ),
        facts((item.row.template, printable(item.row.why)) for item in rows),
    ]
