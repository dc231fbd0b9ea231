"""The command `propose`: an index and a table for records of the user's own."""

import json
from pathlib import Path
from typing import Annotated

import typer

from loadgen.dataset.source import open_dataset
from loadgen.errors import UnusableError
from sinkbench.analysis.fields import survey
from sinkbench.cli.options import commands, say
from sinkbench.errors import UserError
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import sink_kinds

app = commands()
# N records take some seconds to read.
MOST_RECORDS = 100_000
ENDINGS = (".gz", ".gzip", ".ndjson", ".jsonl", ".json", ".csv", ".tsv", ".parquet")


@app.command()
def propose(
    file: Annotated[Path, typer.Argument(help="a file of newline-delimited JSON, a JSON array, CSV or Parquet")],
    to: Annotated[Path, typer.Option(help="folder for what is written")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="write over what is there")] = False,
) -> None:
    """It writes an Elasticsearch index and a PostgreSQL table for records like those of FILE, for you to change."""
    try:
        dataset = open_dataset(str(file))
    except UnusableError as error:
        raise UserError(str(error)) from None
    looked_at = min(dataset.facts.records, MOST_RECORDS)
    found = survey(json.loads(dataset.value(index)) for index in range(looked_at))
    say(dataset.facts.in_words)
    if looked_at < dataset.facts.records:
        say(f"the first {looked_at:,} of them were read")
    proposals = [kind.propose(found, CHECKOUT, file.name) for kind in sink_kinds() if kind.propose is not None]
    paths = [to / f"{_stem(file)}{proposal.ending}" for proposal in proposals]
    there = next((path for path in paths if path.exists()), None)
    if there is not None and not force:
        raise UserError(f"{there}: is there already, and may have been changed; give --force, or another folder: --to")
    for path, proposal in zip(paths, proposals, strict=True):
        to.mkdir(parents=True, exist_ok=True)
        path.write_text(proposal.text, encoding="utf-8")
        say(f"wrote {path}")
        for note in proposal.notes:
            say(note)
    say("read and change them; a plan names each as the 'target' of a pipeline: docs/records.md")


def _stem(file: Path) -> str:
    """A file's name without what says how its records are written."""
    name = file
    while name.suffix.lower() in ENDINGS:
        name = name.with_suffix("")
    return name.name
