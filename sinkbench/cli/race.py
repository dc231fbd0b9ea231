"""The commands that measure: `race` and `resume`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sinkbench.cli import options
from sinkbench.cli.options import commands, console, put, say, the_stack, write
from sinkbench.cli.plans import duration, read_plan
from sinkbench.errors import EXIT_CHECK_FAILED, StackError
from sinkbench.live.events import Ports
from sinkbench.plan.cells import expand
from sinkbench.plan.plan import CapacityPlan, Plan
from sinkbench.plan.sections import load_prices
from sinkbench.race.resume import load_unfinished, run_folder
from sinkbench.race.session import resume_run, run_plan
from sinkbench.runs.reader import BASELINES, baseline_folder, find_run, load_run
from sinkbench.runs.store import RunFolder, copy_run
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack import Stack
from sinkbench.summary.thresholds import exit_code, outcomes
from sinkbench.tables.export import export
from sinkbench.tables.screen import screen
from sinkbench.topology import needed_bytes

app = commands()
Live = Annotated[bool, typer.Option("--live", help="show the run in a browser on this machine, too")]
LivePort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="its port, 0: any (default: SINKBENCH_LIVE_PORT); means --live")
]
MetricsAt = Annotated[str | None, typer.Option(help="PORT for Prometheus on this machine, or HOST:PORT")]
Junit = Annotated[Path | None, typer.Option(help="file for checks and thresholds as JUnit XML")]


@app.command()
def race(
    plan: Annotated[
        str | None, typer.Argument(help="a plan's name, as `plans` lists it, or file (default: SINKBENCH_PLAN)")
    ] = None,
    pipeline: Annotated[
        list[str] | None, typer.Option(help="NAME or NAME:TARGET, not the plan's; any number of them")
    ] = None,
    trials: Annotated[int | None, typer.Option(min=1, max=10_000, help="trials of each cell, not the plan's")] = None,
    results: options.Results = options.RESULTS,
    records: Annotated[
        str | None, typer.Option(help="records of your own in place of the plan's: a file, or kafka://HOST:PORT/TOPIC")
    ] = None,
    key: Annotated[str | None, typer.Option(help="path in such a record to its key, such as customer.id")] = None,
    delimiter: options.CsvDelimiter = None,
    header: options.CsvHeader = None,
    prices: Annotated[Path | None, typer.Option(help=f"{options.PRICES}, instead of the plan's")] = None,
    profile: Annotated[bool, typer.Option("--profile", help="then profile services, in a trial more a cell")] = False,
    show: Annotated[bool, typer.Option("--show", help="print the plan with all its defaults, and do nothing")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print cells, trials, minutes and memory only")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="print the result only")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the summary as JSON; progress to stderr")] = False,
    junit: Junit = None,
    save: Annotated[str | None, typer.Option(help="keep the run, if it passes, as this baseline for `compare`")] = None,
    baselines: options.Baselines = None,
    live: Live = False,
    live_port: LivePort = None,
    metrics: MetricsAt = None,
    stack_name: options.OnStack = None,
) -> None:
    """Starts the stack if it is down, takes all trials, and stops what it started.

    Exit code 1 if a cell does not pass: a record was lost, doubled or altered, a trial was not audited, a task FAILED,
    a load was not kept up with, no trial is valid, a threshold is not met. Code 3 if a threshold is not decided."""
    wanted = read_plan(plan or CHECKOUT / load_settings().plan, pipeline or ())
    out = Console(soft_wrap=True, stderr=as_json, quiet=quiet)
    if any(each is not None for each in (records, key, delimiter, header)):
        asked, wanted = wanted.queries, wanted.with_records(records, key, delimiter=delimiter, header=header)
        if asked is not None and wanted.queries is None:
            out.print("the plan's queries need NOAA's records and are not asked: what cells answer is not checked")
    given = {"trials": trials, "profile": profile or None, "prices": None if prices is None else load_prices(prices)}
    wanted = wanted.model_copy(update={name: value for name, value in given.items() if value is not None})
    if show:
        sys.stdout.write(wanted.show())
        return
    stack = the_stack(stack_name, wanted.workers)
    if dry_run:
        _foresee(wanted, stack)
        return
    if junit is not None:
        # A file that cannot be written is found before the race, not after it.
        put("", junit)
    baseline = None if save is None else baseline_folder(save, baselines or results / BASELINES)
    folder, summary = run_plan(stack, wanted, results, out, ports=_ports(live, live_port, metrics))
    if baseline is not None and summary.passed:
        copy_run(folder.path, baseline)
    elif baseline is not None:
        out.print(f"{baseline}: not saved, since the run did not pass", markup=False)
    _show_results(folder, as_json=as_json, junit=junit)


@app.command()
def resume(
    run: options.OptionalRun = None,
    results: options.Results = options.RESULTS,
    stack_name: Annotated[
        str | None, typer.Option("--stack", help="local, compose, or a stack file (default: what the run was on)")
    ] = None,
    junit: Junit = None,
    live: Live = False,
    live_port: LivePort = None,
    metrics: MetricsAt = None,
) -> None:
    """They go into the same run. Exit code 1 if a cell does not pass, as of `race`."""
    path = find_run(run, results)
    unfinished = load_unfinished(path, CHECKOUT / "connectors")
    folder = run_folder(path) if unfinished is None else unfinished.folder
    if unfinished is None:
        say(f"{folder.path}: nothing to do, the run is complete")
    elif not unfinished.left:
        unfinished.finish()
        say(f"{folder.path}: all trials are there; the run is complete")
    else:
        was = unfinished.summary.environment.get("stack")
        if stack_name is None and str(was).partition(":")[0] not in ("local", "compose", "kubernetes"):
            raise StackError(f"{folder.path}: was measured on stack {was}; name its file: --stack FILE.yaml")
        stack = the_stack(stack_name or str(was), unfinished.cells[0].workers)
        resume_run(stack, unfinished, console, _ports(live, live_port, metrics))
    _show_results(folder, junit=junit)


def _ports(live: bool, port: int | None, metrics: str | None) -> Ports:
    return Ports(load_settings().port("live_port") if live and port is None else port, metrics)


def _foresee(plan: Plan, stack: Stack) -> None:
    cells = expand(plan, stack.workers)
    for cell in cells:
        say(f"  {cell.key}")
    count = "trials by the search" if isinstance(plan, CapacityPlan) else f"{plan.most_blocks} trials"
    stacks = len({(), *(cell.variables for cell in cells)})
    memory = "" if stack.layout is None else f", {stacks * needed_bytes(stack.layout) / 1e9:.1f} GB of memory"
    say(f"{plan.name}: {len(cells)} cells, {count} each, {duration(plan, stack.workers)}{memory}; nothing was started")


def _show_results(folder: RunFolder, *, as_json: bool = False, junit: Path | None = None) -> None:
    """Prints a run's result as it was stored, without secrets; exit code 1 if it did not pass, or by thresholds."""
    kept = load_run(folder.path)
    write(export(kept.summary, "json") if as_json else f"\n{screen(kept)}results: {folder.path}\n")
    if junit is not None:
        put(export(kept.summary, "junit"), junit)
    raise typer.Exit(exit_code(outcomes(kept.summary)) if kept.summary.passed else EXIT_CHECK_FAILED)
