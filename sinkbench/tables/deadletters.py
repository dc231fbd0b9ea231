"""What is in a dead letter queue, by cause."""

from collections.abc import Sequence

from sinkbench.analysis.deadletters import Cause, DeadLetter
from sinkbench.analysis.words import NOT_MEASURED, whole
from sinkbench.tables.text import cut, new_table, plain_text, words

LONGEST_VALUE = 60
LONGEST_REASON = 140


def dead_letter_table(causes: Sequence[Cause]) -> str:
    rows = [
        (
            cause.connector or NOT_MEASURED,
            cause.stage or NOT_MEASURED,
            whole(len(cause.letters)),
            _source(cause.letters[0]),
            cut(cause.reason, LONGEST_REASON) or NOT_MEASURED,
        )
        for cause in causes
    ]
    heads = (words("stage"), "records", words("first from"), words("reason"))
    firsts = [f"{_source(letter)}: {_shown(letter.value)}" for letter in (cause.letters[0] for cause in causes)]
    return plain_text([new_table("connector", *heads, rows=rows), *firsts])


def _source(letter: DeadLetter) -> str:
    if letter.source is None:
        return NOT_MEASURED
    topic, partition, offset = letter.source
    return f"{topic}-{partition}, offset {offset}"


def _shown(value: bytes | None) -> str:
    """The beginning of a record; binary data is shown as Python bytes."""
    if value is None:
        return "a tombstone (no value)"
    text = value.decode(errors="surrogateescape")
    return cut(text if text.isprintable() else repr(value), LONGEST_VALUE)
