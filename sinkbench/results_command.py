"""The commands for runs that were kept: `compare`, `runs`, `export` and `report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sinkbench import comparetable
from sinkbench.compare import compare as compare_runs
from sinkbench.compare import gate, percent_of
from sinkbench.errors import EXIT_CHECK_FAILED, ResultsError
from sinkbench.export import export as export_run
from sinkbench.kept import load_run, load_summary
from sinkbench.runs import list_runs, runs_table
from sinkbench.secrets import redacted
from sinkbench.store import write_bytes, write_text
from sinkbench.suggest import did_you_mean

__all__ = ["compare", "export", "report", "runs"]

RUN = "a run's folder, results/latest, or a summary.json"
HTML = "html"
WRITERS = {"text": comparetable.as_text, "markdown": comparetable.as_markdown}


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help=f"the run that is compared with: {RUN}")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="the run that is compared")],
    form: Annotated[
        str, typer.Option("--format", help="text, markdown to paste into a pull request, or html: a page with a chart")
    ] = "text",
    to: Annotated[Path | None, typer.Option(help="file to write (default: the output)")] = None,
    fail_if_slower: Annotated[
        str | None, typer.Option(help="exit code 1 if a cell of RUN_B is slower by more than this, as 5%")
    ] = None,
) -> None:
    """Compares two runs cell by cell: what differs, how many times as fast RUN_B is, and whether that is certain."""
    percent = None if fail_if_slower is None else percent_of(fail_if_slower)
    if form not in (*WRITERS, HTML):
        raise ResultsError(f"--format {form}: is not a format of comparisons{did_you_mean(form, (*WRITERS, HTML))}")
    comparison = compare_runs(load_run(run_a), load_run(run_b))
    found = None if percent is None else gate(comparison, percent)
    if form == HTML:
        # Here, since what draws takes a second to import.
        from sinkbench.report.comparison import as_html

        text = as_html(comparison, found)
        # The page says that it is UTF-8, which an output of another encoding is not.
        _put(text if to else text.encode("ascii", "xmlcharrefreplace").decode(), to)
    else:
        _put(WRITERS[form](comparison), to)
    if percent is None or found is None:
        return
    for line in [*found.remarks, *found.failures]:
        _write(f"--fail-if-slower {percent:g}%: {line}\n", err=True)
    if found.failures:
        raise typer.Exit(EXIT_CHECK_FAILED)


def runs(results: Annotated[Path, typer.Option(help="folder with the results of all runs")] = Path("results")) -> None:
    """Lists the runs that were kept, the newest first, with those that are damaged or have not ended."""
    found = list_runs(results)
    _write(runs_table(found) if found else f"no runs in {results}\n")


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help=RUN)],
    form: Annotated[
        str, typer.Option("--format", help="csv or parquet (a row a cell), json (the summary) or md (a table)")
    ],
    to: Annotated[Path | None, typer.Option(help="file to write (default: the output)")] = None,
) -> None:
    """Gives a run's cells to other programs; docs/format.md has the columns."""
    made = export_run(load_summary(run), form)
    if isinstance(made, str):
        _put(made, to)
    elif to is not None:
        write_bytes(to, made)
    elif sys.stdout.isatty():
        raise ResultsError(f"--format {form}: is no text for a terminal; give --to FILE, or pipe it to a program")
    else:
        sys.stdout.buffer.write(made)
        sys.stdout.buffer.flush()


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help=RUN)],
    to: Annotated[Path | None, typer.Option(help="file to write (default: report.html in the run's folder)")] = None,
    charts: Annotated[Path | None, typer.Option(help="folder for the charts as SVG files, too")] = None,
) -> None:
    """Writes a run as one HTML page with charts, and prints its path; docs/report.md says how to read it."""
    # Here, since what draws takes a second to import, and no other command needs it.
    from sinkbench.report.page import write_report

    _write(f"{write_report(run, to, charts)}\n")


def _put(text: str, to: Path | None) -> None:
    """Writes to a file, or to the output."""
    if to is None:
        _write(text)
    else:
        write_text(to, redacted(text))


def _write(text: str, *, err: bool = False) -> None:
    out = sys.stderr if err else sys.stdout
    # A name in letters that the output's encoding lacks must not end the command.
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(redacted(text).encode(encoding, "replace").decode(encoding))
