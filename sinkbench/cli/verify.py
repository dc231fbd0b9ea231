"""The command `verify`: whether a topic's records are in a sink that was filled already."""

import hashlib
import json
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from loadgen.errors import UnusableError
from sinkbench.cli.options import OnRunningStack, commands, running_stack, write
from sinkbench.errors import EXIT_CHECK_FAILED, UserError
from sinkbench.secrets import redacted_values
from sinkbench.services.topics import TopicReader
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.sinks import open_existing
from sinkbench.verify.audit import Audit
from sinkbench.verify.content import POSITION, Asked, By, Extractor, members_of
from sinkbench.verify.ledger import FAULTS, Ledger
from sinkbench.verify.report import as_text, notes

app = commands()


@app.command()
def verify(
    topic: Annotated[str, typer.Option(help="the topic")],
    into: Annotated[str, typer.Option(metavar="SINK:TARGET", help="postgres:[SCHEMA.]TABLE or elasticsearch:INDEX")],
    key: Annotated[str | None, typer.Option(help="compare by key: its column, or a path as payload.id, or _id")] = None,
    topic_key: Annotated[str | None, typer.Option(help="its path in a record's value, or @key: its own key")] = None,
    position: Annotated[bool, typer.Option("--position", help="compare by topic, partition and offset")] = False,
    columns: Annotated[str, typer.Option(help="the columns of a position")] = POSITION,
    value: Annotated[bool, typer.Option("--value", help="compare by the whole value")] = False,
    document: Annotated[str | None, typer.Option(help="column of whole records (default: the key's, payload)")] = None,
    group: Annotated[str | None, typer.Option(help="only what it has committed must be stored: connect-NAME")] = None,
    most: Annotated[float | None, typer.Option("--records-per-second", min=1, help="read no faster")] = None,
    form: Annotated[str, typer.Option("--format", help="text or json")] = "text",
    work: Annotated[Path | None, typer.Option(help="folder for what was read (default: var/verify)")] = None,
    stack_name: OnRunningStack = None,
) -> None:
    """It reads the topic, then the sink, and changes neither. Interrupted, the same command goes on.
    Exit code 1 if something is missing, doubled or different."""
    sink, _, target = into.partition(":")
    by: By = "value" if value else "position" if key is None else "key"
    if [key is not None, position, value].count(True) != 1:
        raise UserError("verify: give one of --key PATH, --position and --value")
    if not target or form not in ("text", "json"):
        raise UserError(f"verify: --into {into} --format {form}: give SINK:TARGET, and text or json")
    at = running_stack(stack_name).endpoints
    with ExitStack() as stack:
        table = stack.enter_context(closing(open_existing(sink, target, at)))
        reader = stack.enter_context(closing(TopicReader(at.kafka, at.kafka_settings, topic, group)))
        first = {part: (start, min(start + 1, end)) for part, (start, end) in reader.spans().items()}
        names = members_of(each.value() for some in reader.records(first) for each in some)
        asked = Asked(topic, into, by, table.columns, key, topic_key, columns, document)
        try:
            extractor = Extractor(asked, names)
        except UnusableError as error:
            raise UserError(str(error)) from None
        folder = work or CHECKOUT / load_settings().home / "verify"
        folder.mkdir(parents=True, exist_ok=True)
        arguments = json.dumps([at.kafka, at.sinks[sink].address, *asked, group]).encode()
        path = folder / f"{topic}-{hashlib.sha256(arguments).hexdigest()[:12]}.duckdb"
        ledger = stack.enter_context(Ledger(str(path)))
        columns_shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        screen = Console(stderr=True, soft_wrap=True)
        with Progress(*columns_shown, console=screen, disable=not screen.is_terminal, transient=True) as bars:
            tasks = {name: bars.add_task(name, total=None, visible=False) for name in ("topic", "target", "comparison")}

            def tell(name: str, read: int, of: int | None) -> None:
                bars.update(tasks[name], completed=read, total=of, visible=True)

            found = Audit(ledger, extractor, most, tell).run(reader, table, by, by_group=group is not None)
        found["notes"] = list(notes(ledger, extractor, found))
        if form == "json":
            write(json.dumps(redacted_values({"topic": topic, "into": into, "by": by, **found}), indent=2) + "\n")
        else:
            write(f"{topic} in {into}, by {by}: {as_text(found)}")
        # Another audit reads what is there then.
        ledger.close()
        path.unlink()
    if any(found[fault] for fault in FAULTS):
        raise typer.Exit(EXIT_CHECK_FAILED)
