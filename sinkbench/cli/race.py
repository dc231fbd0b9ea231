"""The commands that measure: `race` and `resume`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sinkbench.cli.options import PRICES, RUN, OnStack, commands, console, say, the_stack
from sinkbench.errors import EXIT_CHECK_FAILED, StackError
from sinkbench.plan.plan import load_plan
from sinkbench.plan.prices import load_prices
from sinkbench.race.resume import load_unfinished, run_folder
from sinkbench.race.session import resume_run, run_plan
from sinkbench.runs.store import RunFolder, read_summary
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.tables import cells as table

app = commands()
Live = Annotated[bool, typer.Option("--live", help="show the run in a browser on this machine, too")]
LivePort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="its port, 0: any (default: SINKBENCH_LIVE_PORT); means --live")
]


@app.command()
def race(
    plan: Annotated[Path | None, typer.Argument(help="what to measure (default: SINKBENCH_PLAN)")] = None,
    results: Annotated[Path, typer.Option(help="folder for the results of all runs")] = Path("results"),
    records: Annotated[
        str | None,
        typer.Option(help="records of your own in place of the plan's: a file, or kafka://HOST:PORT/TOPIC"),
    ] = None,
    key: Annotated[str | None, typer.Option(help="path in such a record to its key, such as customer.id")] = None,
    prices: Annotated[Path | None, typer.Option(help=f"{PRICES}, instead of the plan's")] = None,
    show: Annotated[bool, typer.Option("--show", help="print the plan with all its defaults, and do nothing")] = False,
    live: Live = False,
    live_port: LivePort = None,
    stack_name: OnStack = None,
) -> None:
    """Runs a plan: starts the stack if it is down, takes all trials, prints the table, and stops what it started.

    Exit code 1 if a cell does not pass: a record was lost, doubled or altered, a trial was not audited, a task FAILED,
    a load was not kept up with, no trial is valid.
    """
    wanted = load_plan(plan or CHECKOUT / load_settings().plan, CHECKOUT / "connectors")
    if records is not None or key is not None:
        asked, wanted = wanted.queries, wanted.with_records(records, key)
        if asked is not None and wanted.queries is None:
            say("the plan's queries are about noaa's records and are not asked: what cells can answer is not checked")
    if prices is not None:
        wanted = wanted.model_copy(update={"prices": load_prices(prices)})
    if show:
        sys.stdout.write(wanted.show())
        return
    folder, _ = run_plan(the_stack(stack_name), wanted, results, console, live_port=_live_port(live, live_port))
    _show_results(folder)


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help=RUN)],
    stack_name: Annotated[
        str | None, typer.Option("--stack", help="local, compose, or a stack file (default: what the run was on)")
    ] = None,
    live: Live = False,
    live_port: LivePort = None,
) -> None:
    """Takes the trials that an interrupted or killed run has left, into the same run, and prints its table.

    Exit code 1 if a cell does not pass, as of `race`.
    """
    unfinished = load_unfinished(run, CHECKOUT / "connectors")
    folder = run_folder(run) if unfinished is None else unfinished.folder
    if unfinished is None:
        say(f"{folder.path}: nothing to do, the run is complete")
    elif not unfinished.left:
        unfinished.finish()
        say(f"{folder.path}: all trials are there; the run is complete")
    else:
        was = unfinished.summary.environment.get("stack")
        if stack_name is None and was not in ("local", "compose"):
            raise StackError(f"{folder.path}: was measured on stack {was}; name its file: --stack FILE.yaml")
        resume_run(the_stack(stack_name or str(was)), unfinished, console, _live_port(live, live_port))
    _show_results(folder)


def _live_port(live: bool, port: int | None) -> int | None:
    """The port of the live page; None without one."""
    return load_settings().port("live_port") if live and port is None else port


def _show_results(folder: RunFolder) -> None:
    """Prints a run's table; exit code 1 if it did not pass."""
    # As stored, without secrets.
    summary = read_summary(folder.path)
    table.show(summary)
    say(f"results: {folder.path}")
    if not summary.passed:
        raise typer.Exit(EXIT_CHECK_FAILED)
