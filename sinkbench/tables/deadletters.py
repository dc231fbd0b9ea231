"""What is in a dead letter queue, by cause."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sinkbench.analysis.deadletters import Cause, DeadLetter
from sinkbench.analysis.words import NOT_MEASURED, whole
from sinkbench.tables.text import cut, new_table, plain_text, words

LONGEST_VALUE = 60
LONGEST_REASON = 140


def dead_letter_table(causes: Sequence[Cause]) -> str:
    table = new_table("connector", words("stage"), "records", words("first from"), words("reason"))
    for cause in causes:
        row = [
            cause.connector or NOT_MEASURED,
            cause.stage or NOT_MEASURED,
            whole(len(cause.letters)),
            _source(cause.letters[0]),
            cut(cause.reason, LONGEST_REASON) or NOT_MEASURED,
        ]
        table.add_row(*map(Text, row))
    parts: list[str | Table] = [table]
    for cause in causes:
        letter = cause.letters[0]
        parts.append(f"{_source(letter)}: {_shown(letter.value)}")
    return plain_text(parts)


def _source(letter: DeadLetter) -> str:
    if letter.source is None:
        return NOT_MEASURED
    topic, partition, offset = letter.source
    return f"{topic}-{partition}, offset {offset}"


def _shown(value: bytes | None) -> str:
    """The beginning of a record; binary data is shown as Python bytes."""
    if value is None:
        return "a tombstone (no value)"
    try:
        return cut(value.decode(), LONGEST_VALUE) if value.decode().isprintable() else cut(repr(value), LONGEST_VALUE)
    except UnicodeDecodeError:
        return cut(repr(value), LONGEST_VALUE)
