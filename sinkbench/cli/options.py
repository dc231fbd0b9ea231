"""What several commands share: the run, the plan or the stack that is meant, and how they write."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from loadgen.reading import printable
from sinkbench.place import IS_INSTALLED
from sinkbench.runs.store import write_text
from sinkbench.secrets import readable, redacted

if TYPE_CHECKING:
    from sinkbench.stack import Stack

RUN = "latest, latest~1, a name or the beginning of one, or a path (default: the newest)"
STACK = "local, compose, kubernetes[:NAMESPACE], or a stack file"
PRICES = "a file of prices, for the cost of a million records"
OptionalRun = Annotated[str | None, typer.Argument(metavar="RUN", help=RUN, show_default=False)]
SeveralRuns = Annotated[list[str] | None, typer.Argument(metavar="RUN", help=RUN, show_default=False)]
RESULTS = Path("results")


def _results(ctx: typer.Context, given: Path) -> Path:
    if not IS_INSTALLED or getattr(ctx.get_parameter_source("results"), "name", "") != "DEFAULT":
        return given
    from sinkbench.settings import state_folder

    return state_folder() / RESULTS


Results = Annotated[Path, typer.Option(help="folder with the results of all runs", callback=_results)]
Baselines = Annotated[Path | None, typer.Option(help="folder of baselines (default: baselines in the results)")]
OnStack = Annotated[str | None, typer.Option("--stack", help=f"{STACK} (default: SINKBENCH_STACK, else local)")]
OnRunningStack = Annotated[str | None, typer.Option("--stack", help=f"{STACK} (default: the one that runs)")]
CsvDelimiter = Annotated[str | None, typer.Option("--delimiter", help="between columns of CSV (default: found out)")]
CsvHeader = Annotated[bool | None, typer.Option("--header/--no-header", help="CSV begins with names or records")]
console = Console(soft_wrap=True)


def commands() -> typer.Typer:
    """A module's commands, whose help is plain text."""
    return typer.Typer(rich_markup_mode=None)


def say(line: str) -> None:
    """Prints a line for a person, without secrets."""
    console.print(printable(readable(line)), markup=False, highlight=False)


def write(text: str, *, err: bool = False) -> None:
    """Writes a result, without secrets, also where the output's encoding lacks letters of a name."""
    out = sys.stderr if err else sys.stdout
    encoding = getattr(out, "encoding", None) or "utf-8"
    shown = printable(redacted(text)) if out.isatty() else redacted(text)
    out.write(shown.encode(encoding, "replace").decode(encoding))


def put(text: str, to: Path | None) -> None:
    """Writes a result to a file, if there is one."""
    if to is None:
        write(text)
    else:
        write_text(to, redacted(text))


def the_stack(choice: str | None, workers: int | None = None) -> "Stack":
    """The stack of `--stack`, else of the settings; one that is down starts with `workers`. Raises StackError."""
    # Imported here, as below: drivers load the services' clients, which few commands need.
    from sinkbench.settings import load_settings
    from sinkbench.stack.choice import open_stack

    settings = load_settings()
    return open_stack(choice or settings.stack, settings.with_workers(workers))


def running_stack(choice: str | None) -> "Stack":
    """The stack of `--stack`; without it the one that runs. Raises StackError if it cannot be used."""
    from sinkbench.settings import load_settings
    from sinkbench.stack.choice import find_stack

    return find_stack(load_settings()) if choice is None else the_stack(choice)
