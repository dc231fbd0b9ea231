"""What was read of a topic and of a target, in a DuckDB database: it goes on where it stopped, and compares on disk."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from sinkbench.errors import UserError
from sinkbench.verify.content import By, Entry

MEMORY = "400MB"
AT_ONCE, SECONDS = 50_000, 5.0
FAULTS = ("missing", "doubled", "different")
# `due` is the end of what must be stored; what follows may be. `next` is the first offset that was not read.
_TABLES = """
    CREATE TABLE IF NOT EXISTS parts (part INTEGER PRIMARY KEY, start BIGINT, due BIGINT, next BIGINT);
    CREATE TABLE IF NOT EXISTS topic (k1 UBIGINT, k2 UBIGINT, content UBIGINT, part BIGINT, pos BIGINT, hour BIGINT);
    CREATE TABLE IF NOT EXISTS target (k1 UBIGINT, k2 UBIGINT, content UBIGINT);
    CREATE TABLE IF NOT EXISTS state (name VARCHAR PRIMARY KEY, value VARCHAR);
"""
# The last record of each key against its rows. By value, there are as many rows as records. A topic has fewer than a
# million partitions. Content 0 is a tombstone's, 1 is not compared.
_JUDGED = """
    CREATE OR REPLACE TEMP TABLE held AS
    SELECT k1, k2, count(*) AS copies, min(content) AS low FROM target GROUP BY k1, k2;
    CREATE OR REPLACE TEMP TABLE judged AS
    SELECT k1, k2, place % 1000000 AS part, place // 1000000 AS pos, hour, records, content = 0 AS gone,
        {wanted} AS wanted, coalesce(copies, 0) AS found, found - wanted AS doubled,
        CASE WHEN gone THEN 0 ELSE greatest(wanted - found, 0) END AS missing,
        coalesce(content <> 1 AND low <> 1 AND content <> low, false) AS different
    FROM (
        SELECT k1, k2, max(pos * 1000000 + part) AS place, arg_max(hour, pos * 1000000 + part) AS hour,
            arg_max(content, pos * 1000000 + part) AS content, count(*) AS records
        FROM topic JOIN parts USING (part) WHERE pos < due GROUP BY k1, k2
    ) LEFT JOIN held USING (k1, k2);
"""
# What else may be stored of a key with a fault: its last record in any partition, and any later one.
_FAULTS = """
    CREATE OR REPLACE TEMP TABLE odd AS SELECT * FROM judged WHERE missing > 0 OR doubled > 0 OR different;
    CREATE OR REPLACE TEMP TABLE also AS
    SELECT k1, k2, content, 1 AS later FROM topic SEMI JOIN odd USING (k1, k2) JOIN parts USING (part) WHERE pos >= due
    UNION ALL
    SELECT k1, k2, arg_max(content, pos), 0 FROM topic SEMI JOIN odd USING (k1, k2) JOIN parts USING (part)
    WHERE pos < due GROUP BY k1, k2, part;
    CREATE OR REPLACE TEMP TABLE faults AS
    SELECT part, pos, hour, gone, CASE WHEN bare THEN 0 ELSE missing END AS missing,
        greatest(doubled - {excused}, 0) AS doubled, (different AND same IS NULL)::INTEGER AS different
    FROM odd
    JOIN (SELECT k1, k2, bool_or(content = 0) AS bare, sum(later) AS later FROM also GROUP BY k1, k2) USING (k1, k2)
    LEFT JOIN (SELECT DISTINCT k1, k2, true AS same FROM also JOIN target USING (k1, k2, content)) USING (k1, k2);
"""
_BY_KEY, _BY_VALUE = {"wanted": "1", "excused": "0"}, {"wanted": "records", "excused": "later"}
_SLOTS = """
    SELECT {slot}, coalesce(sum(wanted), 0)::BIGINT AS records, coalesce(sum(missing), 0)::BIGINT AS missing,
        coalesce(sum(doubled), 0)::BIGINT AS doubled, coalesce(sum(different), 0)::BIGINT AS different
    FROM (FROM judged SELECT part, hour, wanted UNION ALL BY NAME FROM faults) GROUP BY ALL ORDER BY ALL
"""
_PARTITIONS = _SLOTS.format(slot="part AS partition")
_HOURS = _SLOTS.format(
    slot="CASE WHEN hour >= 0 THEN strftime(make_timestamp(hour * 3600000000), '%Y-%m-%d %H:00') END AS hour"
)
_OTHERS = """
    SELECT * FROM (SELECT count(*) AS rows FROM target),
    (SELECT count(*) FILTER (records > 1 AND found = records) AS several FROM judged),
    (SELECT count(*) FILTER (different > 0 AND gone) AS undeleted, coalesce(sum(missing) FILTER (
        pos > coalesce(reached, -1)), 0)::BIGINT AS behind FROM faults
        LEFT JOIN (SELECT part, max(pos) AS reached FROM judged WHERE found > 0 GROUP BY part) USING (part)),
    (SELECT coalesce(sum(copies) FILTER (old), 0)::BIGINT AS expired,
        coalesce(sum(copies) FILTER (NOT old), 0)::BIGINT AS unknown FROM (
        SELECT copies, coalesce({by_position} AND k2 < start, false) AS old
        FROM held ANTI JOIN topic USING (k1, k2) LEFT JOIN parts ON part = k1))
"""
_EXAMPLES = 'SELECT part AS partition, pos AS "offset" FROM faults WHERE {fault} > 0 ORDER BY ALL LIMIT 5'


class Ledger:
    """The entries of both sides. They are written with the places that were read, in one transaction."""

    def __init__(self, path: str) -> None:
        """Raises UserError if the database is in use, or is none."""
        config: dict[str, Any] = {"memory_limit": MEMORY, "threads": 2, "preserve_insertion_order": False}
        try:
            self._database = duckdb.connect(path, config=config)
            self._database.execute(_TABLES)
        except duckdb.Error as error:
            why = str(error).splitlines()[0]
            raise UserError(f"{path}: cannot be used ({why}); wait for who uses it, or name another --work") from None
        self._records: list[Entry] = []
        self._places: list[tuple[int, int, int]] = []
        self._rows: list[Entry] = []
        self._saved_at = time.monotonic()

    def close(self) -> None:
        self._database.close()

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

    def save(self, after: Mapping[int, int], *, now: bool = False, **state: Any) -> bool:
        """Writes what was added, the offsets behind what was read, and a state to `recall`, if it is much, or old, or
        `now`. Returns whether it did."""
        is_little = len(self._records) + len(self._rows) < AT_ONCE and time.monotonic() < self._saved_at + SECONDS
        if is_little and not now:
            return False
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
        return True

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
        self._database.execute(_JUDGED.format(**words))
        self._database.execute(_FAULTS.format(**words))
        partitions, (others,) = self._all(_PARTITIONS), self._all(_OTHERS.format(by_position=by == "position"))
        sums = {name: sum(each[name] for each in partitions) for name in ("records", *FAULTS)}
        examples = {fault: self._all(_EXAMPLES.format(fault=fault)) for fault in FAULTS}
        return {**sums, **others, "examples": examples, "partitions": partitions, "hours": self._all(_HOURS)}

    def _all(self, query: str) -> list[dict[str, Any]]:
        found = self._database.execute(query)
        names = [each[0] for each in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
