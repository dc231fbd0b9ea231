"""What identifies a record, and its content, as digests that are the same in the topic and in the sink. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from struct import pack
from typing import Any, Literal, NamedTuple

from loadgen.checksum import canonical, parse
from loadgen.dataset.source import key_at, steps_of
from sinkbench.errors import UserError
from sinkbench.suggest import did_you_mean

By = Literal["key", "position", "value"]
# Contents that are no digests: no value, as of a tombstone, and one that cannot be compared.
GONE, UNREAD = 0, 1
# Why a record or row has no entry, or none with a content.
NO_KEY, OTHER_TOPICS, NOT_COMPARED = "no key", "other topics", "not compared"
OWN_KEY = "@key"
# Debezium's columns. Without them in Elasticsearch, a document's id is searched for the same.
POSITION = "__connect_topic,__connect_partition,__connect_offset"
# More are values, not names.
MOST_NAMES = 10_000
_UNREADABLE = object()


class Entry(NamedTuple):
    """16 bytes that identify a record, and the digest of its content."""

    key: bytes
    content: int


class Asked(NamedTuple):
    """What is compared. `columns` are the target's, as in `sinkbench.sinks.kind.Existing`; `key` and `topic_key` are
    paths in a row and in a record's value; `position` has three columns; `document` is the column of whole records."""

    topic: str
    into: str
    by: By
    columns: Mapping[str, str]
    key: str | None = None
    topic_key: str | None = None
    position: str = POSITION
    document: str | None = None


class Extractor:
    """Makes an `Entry` of each record of the topic, then of each row of the target.

    Attributes:
        needed: the columns that rows must have; `place` are steps to the key in a record's value.
        compared: the columns that are compared with members of records; None if whole records are.
        names: members of the topic's records; others, which the sink or connector has added, are not compared.
        added: those others.
        counts: what has no entry, by the reason."""

    def __init__(self, asked: Asked, names: set[str]) -> None:
        """`names`: of some records. UserError names the nearest to an absent column; UnusableError: a wrong path."""
        columns, document, self._key = asked.columns, asked.document, steps_of(asked.key) if asked.key else ()
        if columns and document is None:
            likely = (*self._key[:1], "payload") if len(self._key) > 1 else ("payload",)
            # Where records have a member of that name, the column holds this.
            keeps = [name for name in likely if columns.get(name) in ("document", "text") and name not in names]
            document = keeps[0] if keeps else None
        self._asked, self._document, self.names = asked, document, names
        self._position = asked.position.split(",") if asked.by == "position" else []
        places = [*self._key[:1], *self._position, *([document] if document else [])]
        if unknown := [name for name in places if columns and name not in columns]:
            raise UserError(f"{asked.into}: has no column '{unknown[0]}'{did_you_mean(unknown[0], columns)}")
        if len(self._position) not in (0, 3):
            raise UserError(f"--columns {asked.position}: give three, such as {POSITION}")
        by_column = {name: kind for name, kind in columns.items() if kind != "other"}
        self.compared = by_column if columns and document is None else None
        self.needed = list(dict.fromkeys([*places, *(self.compared or ())]))
        self.place = self._key[1:] if document in self._key[:1] else self._key
        if asked.topic_key:
            self.place = () if asked.topic_key == OWN_KEY else steps_of(asked.topic_key)
        self._id = re.compile(rf"(?:^|topic=){re.escape(asked.topic)}[+,](?:partition=)?(\d+)[+,](?:offset=)?(\d+)\b")
        self.added: set[str] = set()
        self.counts: Counter[str] = Counter()

    def record(self, key: bytes | None, value: bytes | None, position: tuple[int, int]) -> Entry | None:
        """The entry of a record; None, counted, if it has nothing that identifies it."""
        found = None if value is None else _unwrapped(_read(value))
        if isinstance(found, dict) and len(self.names) <= MOST_NAMES:
            self.names.update(found)
        inner = key_at(found, self.place) if self.place else None
        own = own_key(key, self.place or self._key) if inner is None else inner
        return self._entry(found, own, position)

    def row(self, row: dict[str, Any]) -> Entry | None:
        """The entry of a row of the target, as its sink reads it; None, counted, as in `record`."""
        position, found = None, row
        if self._position and (position := self._position_of(row)) is None:
            return None
        if self._document is not None:
            found = row[self._document]
            if isinstance(found, str) and self._asked.columns[self._document] == "text":
                found = _read(found)
            row[self._document] = found = _unwrapped(found)
        key = key_at(row, self._key) if self._key else None
        if not self._asked.columns:
            del row["_id"]
        # What the sink adds to a document is no alteration.
        if isinstance(found, dict) and len(self.names) <= MOST_NAMES and not found.keys() <= self.names:
            self.added.update(found.keys() - self.names)
            found = {name: value for name, value in found.items() if name in self.names}
        return self._entry(found, key, position)

    def _entry(self, found: Any, key: bytes | None, position: tuple[int, int] | None) -> Entry | None:
        content, text = GONE if found is None else UNREAD, None
        if self.compared is not None and isinstance(found, dict):
            present = {name: found[name] for name in self.compared if found.get(name) is not None}
            found = {name: _cell(self.compared[name], value) for name, value in present.items()}
        elif self.compared is not None and found is not None:
            found = _UNREADABLE
        if found is not None and found is not _UNREADABLE:
            with suppress(ValueError, RecursionError):
                text = canonical(found).encode()
                content = max(UNREAD + 1, int.from_bytes(_digest(text, 8)))
        if content == UNREAD:
            self.counts[NOT_COMPARED] += 1
        if self._position and position is not None:
            return Entry(pack("=QQ", *position), content)
        if self._asked.by == "value":
            key, content = text, UNREAD
        if key is None:
            self.counts[NO_KEY] += 1
            return None
        return Entry(_digest(key, 16), content)

    def _position_of(self, row: Mapping[str, Any]) -> tuple[int, int] | None:
        topic, partition, offset = (str(row.get(name)) for name in self._position)
        if not self._asked.columns and (match := self._id.search(row["_id"])):
            topic, partition, offset = self._asked.topic, match[1], match[2]
        if topic != self._asked.topic or not (partition + offset).isdecimal():
            self.counts[OTHER_TOPICS if topic != "None" else NO_KEY] += 1
            return None
        return int(partition), int(offset)


def members_of(values: Iterable[bytes | None]) -> set[str]:
    """The names of members of these records."""
    found = (_unwrapped(_read(value)) for value in values if value is not None)
    return {name for each in found if isinstance(each, dict) for name in each}


def own_key(key: bytes | None, steps: tuple[str, ...]) -> bytes | None:
    """A record's own key as a text: of an object, the last of `steps` or its only member."""
    if key is None or key[:1] not in (b"{", b'"') or (found := _unwrapped(_read(key))) is _UNREADABLE:
        return key
    if isinstance(found, dict) and not set(steps[-1:]) & found.keys():
        steps = tuple(found) if len(found) == 1 else ("",)
    return key_at(found, steps[-1:]) if isinstance(found, dict) else key_at([found], ("0",))


def _digest(text: bytes, size: int) -> bytes:
    return blake2b(text, digest_size=size).digest()


def _read(value: bytes | str) -> Any:
    """JSON, else plain text; `_UNREADABLE` for anything else."""
    try:
        text = value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return _UNREADABLE
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return _UNREADABLE if text.lstrip()[:1] in ("{", "[") else text


def _unwrapped(value: Any) -> Any:
    """The row in what JsonConverter writes with a schema, and in Debezium's envelope; None if it was deleted."""
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        value = value["payload"]
    return value["after"] if isinstance(value, dict) and {"op", "after", "source"} <= value.keys() else value


def _cell(kind: str, value: Any) -> Any:
    """A member as its column keeps it: a column of numbers has no texts, one of texts nothing else."""
    if isinstance(value, str) and (kind == "number" or value[:1] in ("{", "[")):
        with suppress(ValueError, RecursionError):
            return parse(value)
    return canonical(value) if kind == "text" and not isinstance(value, str | dict | list) else value
