"""The command that finds problems which invalidate a race: `doctor`."""

import json
import sys
from typing import Annotated

import typer

from sinkbench.cli.options import OnStack, commands, say, the_stack
from sinkbench.cli.plans import read_plan
from sinkbench.doctor.diagnosis import as_values, diagnose, lines, screen
from sinkbench.doctor.look import Look
from sinkbench.doctor.rules import RULES
from sinkbench.errors import EXIT_CHECK_FAILED, PlanError
from sinkbench.secrets import redacted_values
from sinkbench.settings import CHECKOUT

app = commands()


@app.command()
def doctor(
    plan: Annotated[
        str | None, typer.Argument(help="what a race would run, by name or file (default: only what is there)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print it for a program")] = False,
    connector: Annotated[str | None, typer.Option(help="examine this connector alone, and how it goes on")] = None,
    stack_name: OnStack = None,
) -> None:
    """It examines what a race of PLAN needs, or what runs now, and starts nothing. Offsets that do not move are watched
    for a minute. Exit code 1 if something invalidates the race."""
    if plan is not None and connector is not None:
        raise PlanError("--connector: is for what runs; leave out the plan")
    facts = Look(the_stack(stack_name), CHECKOUT, None if plan is None else read_plan(plan), connector).facts()
    found = diagnose(facts, RULES)
    if as_json:
        sys.stdout.write(json.dumps(redacted_values(as_values(found)), indent=2) + "\n")
    else:
        of_one = facts.connectors if connector is not None else ()
        for line in (*(line for each in of_one for line in screen(each)), *lines(found)):
            say(line)
    if found.invalid:
        raise typer.Exit(EXIT_CHECK_FAILED)
