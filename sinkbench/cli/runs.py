"""The commands that print what runs have found: `show` and `runs`."""

from typing import Annotated

import typer

from sinkbench.cli.options import RESULTS, OptionalRun, Results, commands, write
from sinkbench.runs.reader import find_run, list_runs, load_run
from sinkbench.tables.cells import render, sections, spaced
from sinkbench.tables.comparison import runs_table
from sinkbench.tables.screen import screen
from sinkbench.tables.text import plain_text

app = commands()


@app.command()
def show(
    run: OptionalRun = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="CPU time by service")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="memory and disk")] = False,
    queries: Annotated[bool, typer.Option("--queries", help="which queries are answered, how, and how fast")] = False,
    pool: Annotated[bool, typer.Option("--pool", help="waits in the connection pool")] = False,
    trials: Annotated[bool, typer.Option("--trials", help="every trial")] = False,
    bottlenecks: Annotated[bool, typer.Option("--bottlenecks", help="what limits each cell, and by how much")] = False,
    everything: Annotated[bool, typer.Option("--all", help="all tables and notes")] = False,
    results: Results = RESULTS,
) -> None:
    """Print a run's result again, or more of it."""
    kept = load_run(find_run(run, results), whole=False)
    if everything:
        write(render(kept.summary, trials=kept.trials))
        return
    asked = {"cpu": cpu, "memory": memory, "queries": queries, "pool": pool, "trials": trials}
    wanted = [key for key, given in (asked | {"bottlenecks": bottlenecks}).items() if given]
    found = {section.key: section for section in sections(kept.summary, trials=kept.trials)}
    for key in wanted:
        text = plain_text(spaced(found[key].parts)) if key in found else f"--{key}: this run has no such data\n"
        write(text)
    if not wanted:
        write(screen(kept, run=kept.summary.run if run else ""))


@app.command()
def runs(results: Results = RESULTS) -> None:
    """Damaged and unfinished ones are among them."""
    found = list_runs(results)
    write(runs_table(found) if found else f"no runs in {results}\n")
