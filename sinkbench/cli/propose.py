"""The command `propose`: an index and a table for records of the user's own."""

import json
import uuid
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from loadgen.dataset.source import open_dataset
from loadgen.dataset.store import Dataset, DatasetMaker
from loadgen.errors import UnusableError
from loadgen.records import made_by
from sinkbench.analysis.fields import survey
from sinkbench.analysis.words import few_of
from sinkbench.cli.options import CsvDelimiter, CsvHeader, OnRunningStack, commands, running_stack, say
from sinkbench.errors import EXIT_CHECK_FAILED, ServiceError, UserError
from sinkbench.race.lock import only_race
from sinkbench.race.preparation import create_named_targets
from sinkbench.settings import CHECKOUT, state_folder
from sinkbench.sinks import Destination, open_sink, open_writer, sink_kind, sink_kinds
from sinkbench.stack import Stack

app = commands()
# N records take some seconds to read.
MOST_RECORDS = 100_000
ENDINGS = (".gz", ".gzip", ".ndjson", ".jsonl", ".json", ".csv", ".tsv", ".parquet")


@app.command()
def propose(
    file: Annotated[Path, typer.Argument(help="a file of newline-delimited JSON, a JSON array, CSV or Parquet")],
    to: Annotated[Path, typer.Option(help="folder for what is written")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="write over what is there")] = False,
    delimiter: CsvDelimiter = None,
    header: CsvHeader = None,
    stack_name: OnRunningStack = None,
) -> None:
    """It writes an Elasticsearch index and a PostgreSQL table for records like those of FILE, for you to change.

    It tries them with some of the records on the stack that runs. Exit code 1 if a sink refuses a record."""
    try:
        dataset = open_dataset(str(file), dialect=(delimiter, header))
    except UnusableError as error:
        raise UserError(str(error)) from None
    looked_at = min(dataset.facts.records, MOST_RECORDS)
    found = survey(json.loads(dataset.value(index)) for index in range(looked_at))
    say(dataset.facts.in_words)
    if looked_at < dataset.facts.records:
        say(f"the first {looked_at:,} of them were read")
    made = {kind.name: kind.propose(found, CHECKOUT, file.name) for kind in sink_kinds() if kind.propose is not None}
    stem = file
    while stem.suffix.lower() in ENDINGS:
        stem = stem.with_suffix("")
    paths = {name: to / f"{stem.name}{proposal.ending}" for name, proposal in made.items()}
    there = next((path for path in paths.values() if path.exists()), None)
    if there is not None and not force:
        raise UserError(f"{there}: is there already, and may have been changed; give --force, or another folder: --to")
    for path, proposal in zip(paths.values(), made.values(), strict=True):
        to.mkdir(parents=True, exist_ok=True)
        path.write_text(proposal.text, encoding="utf-8")
        say(f"wrote {path}")
        for why in dict.fromkeys(proposal.left_out.values()):
            names = [name for name, reason in proposal.left_out.items() if reason == why]
            say(f"not indexed there: {few_of(names, 10)}: {why}")
        for note in proposal.notes:
            say(note)
    taken = _try(running_stack(stack_name), paths, dataset)
    say("read and change them; a plan names each as the 'target' of a pipeline: docs/records.md")
    if not taken:
        raise typer.Exit(EXIT_CHECK_FAILED)


def _try(stack: Stack, paths: Mapping[str, Path], dataset: Dataset) -> bool:
    """Whether the sinks of a stack that is up take the first records in what is proposed. Raises TargetError."""
    if stack.start_id() is None:
        say("not tried on a sink: no stack is up (`sinkbench up`)")
        return True
    target, at, refused = f"tides_{uuid.uuid4().hex[:12]}", stack.endpoints, False
    maker = DatasetMaker(dataset, target)
    records = made_by(maker, 0, min(dataset.facts.records, maker.longest_batch(0)))
    try:
        with only_race(stack.lock_file, state_folder(), "propose", stack.own_container):
            for name in paths.keys() & at.sinks.keys():
                with closing(open_sink(name, at, CHECKOUT)) as sink:
                    sink.create(target, paths[name])
                    to = Destination(name, next(iter(sink_kind(name).writers)), target, at.sinks[name])
                    try:
                        with closing(open_writer(to)) as writer:
                            writer.write(writer.batch(records))
                        say(f"{paths[name]}: {name} has created it, and taken {len(records):,} records")
                    except ServiceError as error:
                        refused = True
                        say(f"{paths[name]}: {name} has created it, but refuses records: {error}")
                    finally:
                        sink.drop(target)
            create_named_targets(stack)
    except ServiceError as error:
        say(f"not tried: {error}")
    return not refused
