"""The commands that write a run for others: `report` and `export`."""

from pathlib import Path
from typing import Annotated

import typer

from sinkbench.cli.options import PRICES, RESULTS, OptionalRun, Results, SeveralRuns, commands, put, write
from sinkbench.errors import ResultsError
from sinkbench.metrics.cost import with_prices
from sinkbench.plan.sections import load_prices
from sinkbench.runs.reader import find_run, load_run
from sinkbench.tables.export import PARQUET, write_parquet
from sinkbench.tables.export import export as export_run

app = commands()


@app.command()
def export(
    runs: SeveralRuns = None,
    form: Annotated[
        str,
        typer.Option("--format", help="csv or parquet (a row a cell, of several runs), json, md, junit or openmetrics"),
    ] = "csv",
    to: Annotated[Path | None, typer.Option(help="file to write (default: the output)")] = None,
    prices: Annotated[Path | None, typer.Option(help=f"{PRICES}, instead of the run's")] = None,
    results: Results = RESULTS,
) -> None:
    """docs/format.md has the columns."""
    found = [load_run(find_run(name, results)).summary for name in runs or ["latest"]]
    paid = found if prices is None else [with_prices(each, load_prices(prices).as_kept()) for each in found]
    if form != PARQUET:
        put(export_run(paid[0], form, *paid[1:]), to)
    elif to is None:
        raise ResultsError(f"--format {PARQUET}: is not text; name a file to write: --to FILE")
    else:
        write_parquet(to, *paid)


@app.command()
def report(
    run: OptionalRun = None,
    to: Annotated[Path | None, typer.Option(help="file to write (default: report.html in the run's folder)")] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="records/s that you require: headroom, cores and disk a day at it")
    ] = None,
    prices: Annotated[Path | None, typer.Option(help=f"{PRICES}, instead of the run's")] = None,
    results: Results = RESULTS,
) -> None:
    """It prints the page's path; docs/report.md says how to read it."""
    # Imported here: it takes a second.
    from sinkbench.report.page import write_report

    paid = None if prices is None else load_prices(prices).as_kept()
    write(f"{write_report(find_run(run, results), to, paid, rate)}\n")
