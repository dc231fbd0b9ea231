"""The command `dlq`: what is in a dead letter queue, and the way back."""

from contextlib import closing
from itertools import islice
from typing import Annotated

import typer

from sinkbench.analysis.deadletters import HEADERS, QUEUE, causes, one_of_each
from sinkbench.cli.options import OnRunningStack, commands, running_stack, say
from sinkbench.errors import UserError
from sinkbench.services.connect import ConnectCluster
from sinkbench.services.deadletters import DeadLetterQueue
from sinkbench.services.kafka import Record
from sinkbench.stack import Stack
from sinkbench.tables.deadletters import dead_letter_table

app = commands()
# More would fill the memory, not the screen.
MOST = 1_000_000
TELL_EVERY = 100_000


@app.command()
def dlq(
    topic: Annotated[str | None, typer.Argument(help="the queue (default: the one that the connectors name)")] = None,
    play_back: Annotated[
        bool, typer.Option("--play-back", help="send the records back to the topics that they came from")
    ] = False,
    most: Annotated[int, typer.Option(min=1, help="read N records at most")] = MOST,
    stack_name: OnRunningStack = None,
) -> None:
    """It prints how many records it has, why, and from where, without those that were played back.

    --play-back sends each record to its partition once more, without Connect's headers. Fix the cause first: what
    fails again comes back."""
    stack = running_stack(stack_name)
    name = topic or _only_queue(stack)
    with closing(DeadLetterQueue(stack.endpoints.kafka, stack.endpoints.kafka_settings, name)) as queue:
        before, left = queue.played_back, queue.left
        played = f"; {before:,} were played back before" if before else ""
        say(f"{name}: {left:,} dead letters{played}")
        if not left:
            return
        if left > most and play_back:
            raise UserError(f"{name}: {left:,} dead letters are more than are played back at once; give --most {left}")
        letters = list(islice(queue.records(), most))
        if len(letters) < left:
            say(f"the first {len(letters):,} of them were read")
        say(dead_letter_table(causes(letters)).rstrip())
        if nameless := sum(letter.source is None for letter in letters):
            say(f"{nameless:,} do not say where they are from: set {HEADERS} to true in the connector")
        if not play_back:
            return
        if nameless:
            raise UserError(f"{name}: nothing was played back, since {nameless:,} dead letters do not say where to")
        records = one_of_each(letters)
        if len(records) < len(letters):
            say(f"{len(letters):,} letters of {len(records):,} records: each record goes back once")
        originals = [
            Record(letter.source[0], letter.value, letter.key, letter.source[1], letter.own_headers)
            for letter in records
            if letter.source is not None
        ]
        queue.play_back(originals, lambda sent: None if sent % TELL_EVERY else say(f"  {sent:,} sent"))
        say(f"{len(originals):,} played back; what fails again comes to the queue again")


def _only_queue(stack: Stack) -> str:
    """The queue of the connectors that there are. Raises UserError, with their names, if it is not one."""
    with ConnectCluster(stack.endpoints.connect.values(), stack.endpoints.connect_access) as connect:
        named = {config[QUEUE] for config in map(connect.config, connect.connectors()) if config.get(QUEUE)}
    if len(named) == 1:
        return named.pop()
    found = f"the connectors name {', '.join(sorted(named))}" if named else f"no connector has {QUEUE}"
    raise UserError(f"{found}; name the queue: sinkbench dlq TOPIC")
