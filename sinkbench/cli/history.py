"""The commands `sinkbench history` and `sinkbench history add`."""

from pathlib import Path
from typing import Annotated

import typer

from sinkbench.cli.options import RESULTS, Results, SeveralRuns, commands, write
from sinkbench.environment import commit as commit_of
from sinkbench.place import CHECKOUT
from sinkbench.report.history import write_history
from sinkbench.runs.reader import find_run, load_run
from sinkbench.tables import history as table

app = commands()
history = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
app.add_typer(history, name="history")
File = Annotated[Path | None, typer.Option(help="the history (default: history.parquet in the results)")]
NAME = "history.parquet"


@history.callback()
def show(
    context: typer.Context,
    file: File = None,
    html: Annotated[Path | None, typer.Option(help="write one page with charts and links to this file")] = None,
    results: Results = RESULTS,
) -> None:
    """Print the last figures of each cell, and since which run they differ. `history add` adds runs."""
    if context.invoked_subcommand is not None:
        return
    found = table.read(file or results / NAME)
    if html is not None:
        write_history(found, html, results)
    write(table.history_text(found) if html is None else f"{html}\n")


@history.command()
def add(
    runs: SeveralRuns = None,
    commit: Annotated[str | None, typer.Option(help="what was measured (default: this folder's, or the run's)")] = None,
    file: File = None,
    results: Results = RESULTS,
) -> None:
    """Adds runs; one that is there already is replaced."""
    kept = [load_run(find_run(name, results)) for name in runs or ["latest"]]
    here = commit or (None if Path.cwd().is_relative_to(CHECKOUT) else commit_of(Path.cwd()))
    table.add(file or results / NAME, [row for run in kept for row in table.rows_of(run, here)])
    write(f"{file or results / NAME}: has {', '.join(run.summary.run for run in kept)}\n")
