"""The commands for runs that were kept: `compare`, `runs`, `export` and `report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.reading import printable
from sinkbench.cli.options import PRICES, RUN, commands
from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_INCONCLUSIVE, ResultsError
from sinkbench.metrics.cost import with_prices
from sinkbench.plan.prices import load_prices
from sinkbench.runs.compare import compare as compare_runs
from sinkbench.runs.gate import gate, percent_of
from sinkbench.runs.listing import list_runs
from sinkbench.runs.reader import load_run, load_summary
from sinkbench.runs.store import write_bytes, write_text
from sinkbench.secrets import redacted
from sinkbench.suggest import did_you_mean
from sinkbench.tables import comparison as comparetable
from sinkbench.tables.export import export as export_run
from sinkbench.tables.runs import runs_table

app = commands()
HTML = "html"
WRITERS = {"text": comparetable.as_text, "markdown": comparetable.as_markdown}


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help=f"the run that is compared with: {RUN}")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="the run that is compared")],
    form: Annotated[
        str, typer.Option("--format", help="text, markdown to paste into a pull request, or html: a page with a chart")
    ] = "text",
    to: Annotated[Path | None, typer.Option(help="file to write (default: the output)")] = None,
    fail_if_slower: Annotated[
        str | None,
        typer.Option(
            help="exit code 1 if a cell of RUN_B is slower by more than this, as 5%; 3 if that is inconclusive"
        ),
    ] = None,
    fail_if_cpu_higher: Annotated[
        str | None, typer.Option(help="the same, if it takes more CPU time for the same records")
    ] = None,
) -> None:
    """Compares two runs cell by cell: what differs, how many times as fast RUN_B is, and whether that is certain."""
    asked = {"--fail-if-slower": fail_if_slower, "--fail-if-cpu-higher": fail_if_cpu_higher}
    slower, more_cpu = (None if text is None else percent_of(text, option) for option, text in asked.items())
    if form not in (*WRITERS, HTML):
        raise ResultsError(f"--format {form}: is not a format of comparisons{did_you_mean(form, (*WRITERS, HTML))}")
    comparison = compare_runs(load_run(run_a), load_run(run_b))
    found = None if slower is None and more_cpu is None else gate(comparison, slower, more_cpu)
    if form == HTML:
        # Imported here: it takes a second.
        from sinkbench.report.comparison import as_html

        text = as_html(comparison, found)
        # The page says that it is UTF-8, which the output may not be.
        _put(text if to else text.encode("ascii", "xmlcharrefreplace").decode(), to)
    else:
        _put(WRITERS[form](comparison), to)
    if found is None:
        return
    options = " ".join(f"{option} {text}" for option, text in asked.items() if text is not None)
    for line in [*found.remarks, *found.inconclusive, *found.failures]:
        _write(f"{options}: {line}\n", err=True)
    if found.failures:
        raise typer.Exit(EXIT_CHECK_FAILED)
    if found.inconclusive:
        raise typer.Exit(EXIT_INCONCLUSIVE)


@app.command()
def runs(results: Annotated[Path, typer.Option(help="folder with the results of all runs")] = Path("results")) -> None:
    """Lists the runs that were kept, the newest first, with those that are damaged or have not ended."""
    found = list_runs(results)
    _write(runs_table(found) if found else f"no runs in {results}\n")


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help=RUN)],
    form: Annotated[
        str, typer.Option("--format", help="csv or parquet (a row a cell), json (the summary) or md (a table)")
    ],
    to: Annotated[Path | None, typer.Option(help="file to write (default: the output)")] = None,
    prices: Annotated[Path | None, typer.Option(help=f"{PRICES}, instead of the run's")] = None,
) -> None:
    """Gives a run's cells to other programs; docs/format.md has the columns."""
    summary = load_summary(run)
    made = export_run(summary if prices is None else with_prices(summary, load_prices(prices).as_kept()), form)
    if isinstance(made, str):
        _put(made, to)
    elif to is not None:
        write_bytes(to, made)
    elif sys.stdout.isatty():
        raise ResultsError(f"--format {form}: is no text for a terminal; give --to FILE, or pipe it to a program")
    else:
        sys.stdout.buffer.write(made)
        sys.stdout.buffer.flush()


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help=RUN)],
    to: Annotated[Path | None, typer.Option(help="file to write (default: report.html in the run's folder)")] = None,
    charts: Annotated[Path | None, typer.Option(help="folder for the charts as SVG files, too")] = None,
    prices: Annotated[Path | None, typer.Option(help=f"{PRICES}, instead of the run's")] = None,
) -> None:
    """Writes a run as one HTML page with charts, and prints its path; docs/report.md says how to read it."""
    # Imported here: it takes a second.
    from sinkbench.report.page import write_report

    paid = None if prices is None else load_prices(prices).as_kept()
    _write(f"{write_report(run, to, charts, paid)}\n")


def _put(text: str, to: Path | None) -> None:
    if to is None:
        _write(text)
    else:
        write_text(to, redacted(text))


def _write(text: str, *, err: bool = False) -> None:
    out = sys.stderr if err else sys.stdout
    # The output's encoding may lack letters of a name.
    encoding = getattr(out, "encoding", None) or "utf-8"
    shown = printable(redacted(text)) if out.isatty() else redacted(text)
    out.write(shown.encode(encoding, "replace").decode(encoding))
