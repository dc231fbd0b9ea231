"""Runs the plan's queries on a sink and compares the answers with DuckDB's on the sent records."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import duckdb

from loadgen.database import database
from loadgen.records import columns_of
from sinkbench.analysis.query import Answer, Query, answer_of, members, same_answer, select
from sinkbench.errors import ServiceError
from sinkbench.results import Asked
from sinkbench.services.failures import in_one_line
from sinkbench.trial.resources import Resources

# The column of each member of a record.
MEMBERS = {
    "bench.seq": "seq",
    "metadata.id": "id",
    "metadata.name": "name",
    "metadata.lat": "lat",
    "metadata.lon": "lon",
    "metadata.location": "location",
    "data.0.t": "t",
    "data.0.v": "v",
    "data.0.s": "s",
    "data.0.f": "f",
    "data.0.q": "q",
}
SENT = "records JOIN gauges USING (gauge) JOIN rounds USING (round) JOIN levels USING (level)"


def ask_queries(own: Resources) -> list[Asked]:
    asking, cluster = own.sink.capabilities.queries, own.cluster
    if not cluster.queries or asking is None:
        return []
    with SentRecords(own.records, cluster.plan.load.keys) as sent:
        return [asked(each, partial(asking.ask, own.names.target, each), sent.answer(each)) for each in cluster.queries]


def asked(query: Query, ask: Callable[[], Answer], expected: Answer | None) -> Asked:
    """Compares a query's answer with the expected one; None: not known. An empty expected answer proves nothing."""
    started = time.monotonic()
    try:
        found = ask()
    except ServiceError as error:
        return Asked(query=query.name, right=False, problem=in_one_line(error))
    milliseconds = round((time.monotonic() - started) * 1000, 3)
    same = None if expected is None else same_answer(found, expected)
    right = None if same and not found.found else same
    return Asked(query=query.name, right=right, by_index=found.by_index, found=found.found, milliseconds=milliseconds)


class SentRecords(ExitStack):
    def __init__(self, count: int, keys: int) -> None:
        columns = columns_of(count, keys)
        super().__init__()
        self._database = self.enter_context(database())
        for name in ("records", "gauges", "rounds", "levels"):
            self._database.register(name, columns[name])
        named = ", ".join(f'{column} AS "{path}"' for path, column in MEMBERS.items())
        self._database.execute(f"CREATE VIEW sent AS SELECT {named} FROM {SENT}")  # noqa: S608 - constants

    def answer(self, query: Query) -> Answer | None:
        """Returns the right answer of a sink that stores every record once; None if a record has no such member."""
        try:
            statement, values = select(query, "sent", _Dialect())
            return answer_of(query, self._database.execute(statement, values).fetchall())
        except (duckdb.BinderException, KeyError):
            return None


class _Dialect:
    placeholder = "?"

    def text(self, field: str) -> str:
        return '"' + field.replace('"', '""') + '"'

    def number(self, field: str) -> str:
        return f"CAST({self.text(field)} AS DOUBLE)"

    def seq(self) -> str:
        return '"bench.seq"'

    def lat_lon(self, field: str) -> tuple[str, str]:
        lat, lon = (f"CAST(split_part({self.text(field)}, ',', {part}) AS DOUBLE)" for part in (1, 2))
        return lat, lon

    def within(self, field: str, south: float, west: float, north: float, east: float) -> tuple[str, list[Any]]:
        lat, lon = self.lat_lon(field)
        return f"{lat} BETWEEN ? AND ? AND {lon} BETWEEN ? AND ?", [south, north, west, east]

    def has_words(self, field: str, words: str) -> tuple[str, list[Any]]:
        words_of = f"string_split_regex(lower({self.text(field)}), '[^\\p{{L}}\\p{{N}}]+')"
        return f"list_has_all({words_of}, string_split(lower(?), ' '))", [words]

    def contains(self, part: dict[str, Any]) -> tuple[str, list[Any]]:
        paths = {path.replace(".0.", "."): path for path in MEMBERS}
        found = [(paths[path], value) for path, value in members(part)]
        return " AND ".join(f'"{path}" = ?' for path, _ in found), [value for _, value in found]
