"""The command `replicate`."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from sinkbench.claims.lines import commands as missing
from sinkbench.claims.lines import last_lines, table, totals
from sinkbench.claims.models import load_claims
from sinkbench.claims.verdict import run_of, verdict
from sinkbench.cli.options import RESULTS, Results, commands, write
from sinkbench.report.replication import write_replication
from sinkbench.runs.reader import list_runs
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.settings import CHECKOUT

app = commands()
CLAIMS = CHECKOUT / "claims"


@app.command()
def replicate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="articles or claims, as part8 (default: all)", show_default=False),
    ] = None,
    results: Results = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="for other programs")] = False,
    html: Annotated[Path | None, typer.Option(help="write one page with all claims to this file")] = None,
) -> None:
    """Each claim: what was published, what the newest run of its plan measured, and the verdict. Starts nothing; names
    the races that are missing."""
    claims = load_claims(CLAIMS, names)
    # A new checkout has no results, and claims all the same.
    rows = list_runs(results) if results.exists() or results != RESULTS else []
    kept = [(row.run, row.summary) for row in rows if row.summary is not None]
    summaries = [summary for _, summary in kept]
    used = {run.run for claim in claims if (run := run_of(claim, summaries)[0]) is not None}
    trials = {run.run: read_trials(RunFolder(results / folder).trials_path) for folder, run in kept if run.run in used}
    found = [verdict(claim, summaries, trials, os.cpu_count()) for claim in claims]
    if html is not None:
        write_replication(found, html)
        write(f"{html}\n")
    elif as_json:
        whole = {"claims": [each.row for each in found], "totals": totals(found), "commands": missing(found)}
        write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    else:
        write("\n".join([*table(found), "", *last_lines(found)]) + "\n")
