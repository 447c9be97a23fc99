"""`designer design`: from an instance file to its cheapest network."""

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from designer.cli.search_job import (
    INTERRUPTED,
    NOT_MET,
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

    from designer.result import Design


class Failures(StrEnum):
    """What the certificate removes from the network."""

    SINGLE = "single"
    PAIRS = "pairs"


def design(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE", help="Instance file (YAML or JSON).")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DESIGN.json", help="Write the design file here.")
    ] = None,
    as_json: Json = False,
    failures: Annotated[
        Failures, typer.Option(help="Certify every single failure, or also every pair of links and of switches.")
    ] = Failures.SINGLE,
    time_limit: TimeLimit = None,
    gap: Gap = 0.0,
    threads: Threads = 1,
    seed: Seed = 0,
    solver: Solver = None,
    families: Families = None,
) -> None:
    """Find the cheapest network for INSTANCE, and prove it; then certify what it carries, intact and under failure.

    Exit codes: 0 optimal or within --gap, 3 bad input, 4 proven infeasible, 5 and 6 a limit was hit with and without a
    design, 7 the certificate falls short (the design is written), 130 interrupted (the best design so far is written,
    without a certificate).
    """
    from designer.cli.console import render, write_error, write_json, write_out
    from designer.errors import OutputError
    from designer.files import check_writable
    from designer.instance.load import load_instance
    from designer.search import Options
    from designer.search import design as search

    if output is not None:
        if output.exists() and instance.exists() and output.samefile(instance):
            raise typer.BadParameter("the design would overwrite the instance", param_hint="-o")
        check_writable(output)
    problem = load_instance(instance)
    write_error(f"{problem.name}: {problem.cluster.gpus:,} GPUs, searching")
    progress, checking = Progress(), CheckProgress()

    def work(should_stop: "Callable[[], bool]") -> "Design":
        limit = math.inf if time_limit is None else time_limit
        pairs = failures is Failures.PAIRS
        chosen = family_names(families)
        return search(
            problem,
            Options(
                limit,
                gap,
                threads,
                seed,
                progress,
                should_stop,
                pairs=pairs,
                checking=checking,
                families=chosen,
                solver=solver,
            ),
        )

    try:
        result, interrupted = run_interruptibly(work)
    finally:
        progress.finish()
        checking.finish()
    certified = result.certificate is None or result.certificate.met
    code = exit_code(result.provenance.termination, result.gap, gap, interrupted=interrupted, certified=certified)
    failed: OutputError | None = None
    if output is not None:
        try:
            result.save(output)
        except OutputError as error:  # what took long to find is shown all the same
            failed = error
    if as_json:
        write_json(result.to_document())
    else:
        from designer.cli.design_report import design_report

        write_out(render(*design_report(result)))
    if failed is not None:
        raise failed
    if output is not None:
        write_error(f"design written to {output}")
    if code:
        write_error(_why_not_done(result, code))
    raise typer.Exit(code)


def _why_not_done(result: "Design", code: int) -> str:
    if code == NOT_MET and result.certificate is not None:
        from designer.report.words import shortfalls

        lines = [f"  - {line}" for line in shortfalls(result.certificate)]
        return "\n".join(["the certificate falls short of the requirements:", *lines])
    if code == INTERRUPTED and result.provenance.termination != "interrupted":
        proven = "optimal" if result.status == "optimal" else f"the best found, with a gap of {100 * result.gap:.2f} %"
        missing = "; it has no certificate" if result.certificate is None else ""
        return f"interrupted after the search: this design is {proven}{missing}"
    what = "interrupted" if code == INTERRUPTED else "the time limit was hit"
    if result.provenance.termination == "open":
        what = "the certificate leaves cheaper networks open"
    elif result.provenance.termination == "size_limit":
        what = "networks of more switches are not searched"
    elif result.provenance.termination == "floor":
        what = "the bound takes cables at their shortest, wherever switches stand"
    elif result.provenance.termination == "links":
        what = "which links move is not part of the proof"
    missing = "; it has no certificate" if result.certificate is None else ""
    return f"{what}: this is the best design so far, with a gap of {100 * result.gap:.2f} %{missing}"
