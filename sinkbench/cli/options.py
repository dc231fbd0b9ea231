"""What several commands share: the stack that is meant, and how they speak."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from loadgen.reading import printable
from sinkbench.secrets import redacted
from sinkbench.settings import load_settings
from sinkbench.stack import Stack
from sinkbench.stack.choice import find_stack, open_stack

RUN = "a run's folder, results/latest, or a summary.json"
PRICES = "a file of prices, for the cost of a million records"
OnStack = Annotated[
    str | None, typer.Option("--stack", help="local, compose, or a stack file (default: SINKBENCH_STACK, else local)")
]
OnRunningStack = Annotated[
    str | None, typer.Option("--stack", help="local, compose, or a stack file (default: the one that runs)")
]
console = Console(soft_wrap=True)


def commands() -> typer.Typer:
    """A module's commands, whose help is plain text."""
    return typer.Typer(rich_markup_mode=None)


def say(line: str) -> None:
    """Prints a line for a person, without secrets."""
    console.print(printable(redacted(line)), markup=False, highlight=False)


def the_stack(choice: str | None) -> Stack:
    """The stack of `--stack`; without it that of the settings. Raises StackError if it cannot be used."""
    settings = load_settings()
    return open_stack(choice or settings.stack, settings)


def running_stack(choice: str | None) -> Stack:
    """The stack of `--stack`; without it the one that runs. Raises StackError if it cannot be used."""
    return find_stack(load_settings()) if choice is None else the_stack(choice)
