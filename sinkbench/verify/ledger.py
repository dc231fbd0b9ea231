"""What was read of a topic and of a target, in a DuckDB database: it goes on where it stopped, and compares on disk."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib.resources import files
from typing import Any

import duckdb
import numpy as np

from loadgen.database import database
from sinkbench.errors import UserError
from sinkbench.verify.content import By, Entry

MEMORY = "400MB"
AT_ONCE, SECONDS = 50_000, 5.0
FAULTS = ("missing", "doubled", "different")


def _sql(name: str) -> str:
    return files("sinkbench.verify").joinpath(f"{name}.sql").read_text(encoding="utf-8")


_BY_KEY, _BY_VALUE = {"wanted": "1", "excused": "0"}, {"wanted": "records", "excused": "later"}
_PARTITIONS = _sql("slots").format(slot="part AS partition")
_HOURS = _sql("slots").format(
    slot="CASE WHEN hour >= 0 THEN strftime(make_timestamp(hour * 3600000000), '%Y-%m-%d %H:00') END AS hour"
)
_EXAMPLES = 'SELECT part AS partition, pos AS "offset" FROM faults WHERE {fault} > 0 ORDER BY ALL LIMIT 5'


class Ledger(ExitStack):
    """The entries of both sides. They are written with the places that were read, in one transaction."""

    def __init__(self, path: str) -> None:
        """Raises UserError if the database is in use, or is none."""
        super().__init__()
        try:
            self._database = self.enter_context(database(path, memory_limit=MEMORY, preserve_insertion_order=False))
            self._database.execute(_sql("tables"))
        except duckdb.Error as error:
            why = str(error).splitlines()[0]
            raise UserError(f"{path}: cannot be used ({why}); wait for who uses it, or name another --work") from None
        self._records: list[Entry] = []
        self._places: list[tuple[int, int, int]] = []
        self._rows: list[Entry] = []
        self._saved_at = time.monotonic()

    def recall(self, name: str, default: Any = None) -> Any:
        """A part of the state that was saved."""
        found = self._database.execute("SELECT value FROM state WHERE name = ?", [name]).fetchall()
        return json.loads(found[0][0]) if found else default

    def parts(self) -> dict[int, tuple[int, int, int]]:
        """By partition: its start, the end of what must be stored, and the first offset that was not read."""
        return {part: (start, due, after) for part, start, due, after in self._database.sql("FROM parts").fetchall()}

    def set_parts(self, parts: Mapping[int, tuple[int, int, int]]) -> None:
        for part, found in parts.items():
            self._database.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", [part, *found])

    def add_record(self, entry: Entry, place: tuple[int, int], hour: int) -> None:
        """Adds a record by partition and offset; an hour below 0 is unknown."""
        self._records.append(entry)
        self._places.append((*place, hour))

    def add_rows(self, entries: Iterable[Entry]) -> None:
        self._rows.extend(entries)

    def clear(self, table: str) -> None:
        """Removes what was added to "topic" or "target"."""
        self._database.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant

    def save(self, after: Mapping[int, int], *, now: bool = False, **state: Any) -> None:
        """Writes what was added, the offsets behind what was read, and a state to `recall`, if much, old or `now`."""
        is_little = len(self._records) + len(self._rows) < AT_ONCE and time.monotonic() < self._saved_at + SECONDS
        if is_little and not now:
            return
        self._database.begin()
        part, pos, hour = np.array(self._places, dtype=np.int64).reshape(-1, 3).T
        self._insert("topic", self._records, part=part, pos=pos, hour=hour)
        self._insert("target", self._rows)
        for number, offset in after.items():
            self._database.execute("UPDATE parts SET next = ? WHERE part = ?", [offset, number])
        for name, value in state.items():
            self._database.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", [name, json.dumps(value)])
        self._database.commit()
        self._records, self._places, self._rows, self._saved_at = [], [], [], time.monotonic()

    def _insert(self, table: str, entries: Sequence[Entry], **more: Any) -> None:
        if entries:
            keys = np.frombuffer(b"".join(each.key for each in entries), dtype=np.uint64).reshape(-1, 2)
            content = np.array([each.content for each in entries], dtype=np.uint64)
            columns = {"k1": keys[:, 0], "k2": keys[:, 1], "content": content, **more}
            self._database.register("chunk", {name: np.ascontiguousarray(column) for name, column in columns.items()})
            self._database.execute(f"INSERT INTO {table} BY NAME FROM chunk")
            self._database.unregister("chunk")

    def compare(self, by: By) -> dict[str, Any]:
        """Compares what was added, by hashes on disk beyond `MEMORY`.

        Returns `records` of the topic (by key, the last ones), `rows`, `missing`, `doubled` and `different`, also of
        `partitions` and `hours`, with `examples` as partition and offset. `behind` are missing ones behind the last
        stored one of their partition, `undeleted` different ones whose last record is a tombstone, `several` keys with
        as many rows as several records. `expired` are rows below the start, `unknown` other rows of no record."""
        words = _BY_VALUE if by == "value" else _BY_KEY
        self._database.execute(_sql("compare").format(**words))
        partitions, (others,) = self._all(_PARTITIONS), self._all(_sql("others").format(by_position=by == "position"))
        sums = {name: sum(each[name] for each in partitions) for name in ("records", *FAULTS)}
        examples = {fault: self._all(_EXAMPLES.format(fault=fault)) for fault in FAULTS}
        return {**sums, **others, "examples": examples, "partitions": partitions, "hours": self._all(_HOURS)}

    def _all(self, query: str) -> list[dict[str, Any]]:
        found = self._database.execute(query)
        names = [each[0] for each in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
