"""The command that finds problems which invalidate a race: `doctor`."""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime
from typing import Annotated

import typer

from sinkbench.cli.options import OnStack, commands, say, the_stack
from sinkbench.cli.plans import read_plan
from sinkbench.doctor.diagnosis import Diagnosis, as_values, changes_since, diagnose, finding_lines, lines, that_stays
from sinkbench.doctor.look import look
from sinkbench.doctor.rules import RULES
from sinkbench.errors import EXIT_CHECK_FAILED, SettingsError
from sinkbench.plan.plan import Plan
from sinkbench.secrets import redacted_values
from sinkbench.settings import CHECKOUT
from sinkbench.stack import Stack

app = commands()


@app.command()
def doctor(
    plan: Annotated[
        str | None, typer.Argument(help="what a race would run, by name or file (default: only what is there)")
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="check again and again until Ctrl-C; print what is new and what is gone"),
    ] = False,
    every: Annotated[float, typer.Option(min=1, help="seconds between two checks of --watch")] = 5.0,
    as_json: Annotated[bool, typer.Option("--json", help="print it for a program")] = False,
    stack_name: OnStack = None,
) -> None:
    """It examines what a race of PLAN needs, or what runs now, and starts nothing.
    Exit code 1 if something invalidates the race."""
    if watch and (as_json or plan is not None):
        raise SettingsError("--watch checks what runs; leave out PLAN and --json")
    wanted = None if plan is None else read_plan(plan)
    stack = the_stack(stack_name)
    found = _examined(stack, wanted)
    if as_json:
        sys.stdout.write(json.dumps(redacted_values(as_values(found)), indent=2) + "\n")
    else:
        for line in lines(found):
            say(line)
    if watch:
        _watch(stack, found, every)
    if found.invalid:
        raise typer.Exit(EXIT_CHECK_FAILED)


def _examined(stack: Stack, plan: Plan | None) -> Diagnosis:
    return diagnose(look(stack, CHECKOUT, plan), RULES)


def _watch(stack: Stack, found: Diagnosis, seconds: float) -> None:
    """Until Ctrl-C."""
    say(f"watching every {seconds:g} s; Ctrl-C ends it")
    told_of = looked = found
    while True:
        time.sleep(seconds)
        before, looked = looked, _examined(stack, None)
        now = that_stays(before, looked)
        new, gone, told = changes_since(told_of, now)
        clock = f"{datetime.now():%H:%M:%S}"
        for each in new:
            for number, line in enumerate(finding_lines(each)):
                say(f"{clock} new: {line}" if number == 0 else line)
        for each in gone:
            say(f"{clock} gone: {each.subject}: {each.code}")
        for line in told:
            say(f"{clock} {line}")
        told_of = now
