"""The command `replicate`."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sinkbench.analysis.words import counted
from sinkbench.claims.lines import commands as commands_of
from sinkbench.claims.lines import last_lines, table, totals
from sinkbench.claims.models import Claim, load_claims
from sinkbench.claims.narrowing import is_of, narrowed
from sinkbench.claims.readings import FEWEST_TRIALS
from sinkbench.claims.verdict import Verdict, run_of, verdict
from sinkbench.cli.options import RESULTS, Results, commands, the_stack, write
from sinkbench.cli.plans import duration, read_plan, seconds_of
from sinkbench.errors import ClaimError, SinkbenchError, StackError
from sinkbench.plan.plan import Plan
from sinkbench.report.replication import write_replication
from sinkbench.runs.reader import list_runs
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack import Stack
from sinkbench.topology import SHIPPED, load_topology

app = commands()
CLAIMS = CHECKOUT / "claims"
START_SECONDS = 60.0
"""Start and stop of a stack."""
MINUTES = 90.0
MOST_TRIALS = 6  # of the shipped plans


@app.command()
def replicate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="articles or claims, as part8-12 (default: all)", show_default=False),
    ] = None,
    race: Annotated[bool, typer.Option("--race", help="first take the races that are missing")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="only the core of each article: 15 minutes in all")] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            help=f"for the races, those that test most claims in the time first (default: {MINUTES:g})", min=1
        ),
    ] = None,
    results: Results = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="for other programs")] = False,
    html: Annotated[Path | None, typer.Option(help="write one page with all claims to this file")] = None,
) -> None:
    """Each claim: what was published, what the newest run of its plan measured, and the verdict. Without --race it
    starts nothing, and names the races that are missing."""
    claims, cores = [each for each in load_claims(CLAIMS, names) if each.core or not quick], os.cpu_count() or 1
    if not claims:
        raise ClaimError(f"--quick: {', '.join(names or ())}: is no core of an article; leave out --quick")
    # Quick races have only the cells of these, others those of all claims that this machine can tell.
    among = [each for each in (claims if quick else load_claims(CLAIMS)) if (each.needs.cores or 0) <= cores]
    if minutes is not None and not race:
        raise ClaimError("--minutes: is for the races; add --race")
    if race:
        missing = [each for each in _verdicts(claims, results, is_there=False) if each.command]
        taken = _race(missing, among, results, minutes or MINUTES)
    # A new checkout has no results, and claims all the same.
    found = _verdicts(claims, results, is_there=results != RESULTS and not race)
    if html is not None:
        write_replication(found, html)
        write(f"{html}\n", err=as_json)
    if as_json:
        whole = {"claims": [each.row for each in found], "totals": totals(found), "commands": commands_of(found)}
        write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    elif html is None:
        lasts = last_lines(found, lambda each: f", {duration(*_planned(each))}")
        write("\n".join([*table(found, whole=bool(names)), "", *lasts]) + "\n")
    if race and missing and not taken:
        raise StackError("--race: none of the missing races was taken; what was in the way is said above")


def _verdicts(claims: Sequence[Claim], results: Path, *, is_there: bool) -> list[Verdict]:
    """The verdict of each claim. Raises ResultsError without results that must be there."""
    rows = list_runs(results) if results.exists() or is_there else []
    plans = {each.plan for each in claims}
    kept = [(row.run, row.summary) for row in rows if row.summary is not None and row.summary.plan.name in plans]
    # A plan of somebody's own may have the same name.
    kept = [(folder, run) for folder, run in kept if is_of(run, read_plan(run.plan.name))]
    summaries = [summary for _, summary in kept]
    used = {run.run for claim in claims if (run := run_of(claim, summaries)[0]) is not None}
    trials = {run.run: read_trials(RunFolder(results / folder).trials_path) for folder, run in kept if run.run in used}
    return [verdict(claim, summaries, trials, os.cpu_count()) for claim in claims]


def _planned(found: Verdict) -> tuple[Plan, int]:
    """The plan of a claim, and the workers of the stack that it needs."""
    plan, topology = read_plan(found.claim.plan or ""), found.claim.needs.topology
    workers = load_topology(topology or SHIPPED[0], CHECKOUT, CHECKOUT).connect.nodes
    return plan, plan.workers or workers


def _cut(missing: Mapping[str, Verdict], among: Sequence[Claim], left: float) -> dict[str, tuple[Plan, float, object]]:
    """Each race with only what the plan's claims among these are about, its seconds, and what its stack must be: in as
    many trials as the time that is left gives all of them, and in three at least."""
    cut: dict[str, tuple[Plan, float, object]] = {}
    for trials in range(MOST_TRIALS, FEWEST_TRIALS - 1, -1):
        for command, found in missing.items():
            whole, workers = _planned(found)
            plan = narrowed(whole, [each for each in among if each.plan == whole.name], workers, trials)
            cut[command] = plan, seconds_of(plan, workers), (*found.claim.needs.settings.items(), plan.workers)
        stacks = {stack for *_, stack in cut.values()}
        if sum(seconds for _, seconds, _ in cut.values()) + START_SECONDS * len(stacks) <= left:
            break
    return cut


def _race(missing: Sequence[Verdict], among: Sequence[Claim], results: Path, minutes: float) -> int:
    """Takes the races that test most claims a minute, as many as fit into the time, and returns their number. Those on
    the same stack follow each other, so that it starts, and becomes warm, once."""
    # Imported here, since without races no service's client is needed.
    from sinkbench.race.session import run_plan, stop_kept

    until = time.monotonic() + 60 * minutes
    by_command, claims = {each.command or "": each for each in missing}, commands_of(missing)
    cut = _cut(by_command, among, 60 * minutes)
    waiting = sorted(cut, key=lambda each: cut[each][1] / claims[each])
    progress = Console(soft_wrap=True, stderr=True)

    def next_ones() -> list[list[str]]:
        """Those that fit into what is left, by stack."""
        left, on = until - time.monotonic(), dict[object, list[str]]()
        for command in waiting:
            _, seconds, stack = cut[command]
            if (seconds := seconds + START_SECONDS * (stack not in on)) <= left:
                left -= seconds
                on.setdefault(stack, []).append(command)
        return list(on.values())

    def stop(stack: Stack) -> None:
        # An interrupt meanwhile ends all races.
        try:
            stop_kept(stack)
        except SinkbenchError as error:
            write(f"{error}\n", err=True)

    def take(command: str, opened: ExitStack) -> int:
        write(f"race: {command}    # {counted(claims[command], 'claim')}\n", err=True)
        try:
            plan, settings = cut[command][0], by_command[command].claim.needs.settings
            stack = _stack(settings, plan.workers)
            opened.callback(stop, stack)
            run_plan(stack, plan, results, progress, keep=True)
        except SinkbenchError as error:
            write(f"{command}: {error}; its claims stay open\n", err=True)
            return 0
        return 1

    taken = 0
    while on := next_ones():
        for commands_there in on:
            with ExitStack() as opened:
                for command in commands_there:
                    if cut[command][1] <= until - time.monotonic():
                        waiting.remove(command)
                        taken += take(command, opened)
    for command in waiting:
        took = f"{cut[command][1] / 60:.0f} of {max(until - time.monotonic(), 0) / 60:.0f} min"
        write(f"{command}: left out, it takes {took}; --minutes gives more\n", err=True)
    return taken


def _stack(settings: Mapping[str, str], workers: int | None) -> Stack:
    """The stack of these settings. Raises StackError."""
    from sinkbench.stack.local import LocalStack

    if settings and load_settings().stack != "local":
        wanted = " and ".join(map(" ".join, settings.items()))
        raise StackError(f"needs {wanted}, of the local stack; race it without SINKBENCH_STACK")
    return LocalStack(load_settings(changed=settings).with_workers(workers)) if settings else the_stack(None, workers)
