"""Somebody who writes to a sink beside the connectors."""
# ruff: noqa: S608 - of names and numbers of ours

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from elasticsearch import Elasticsearch
from sinkbench.sinks import Destination, Sink, open_writer, sink_kind
from sinkbench.stack.local import LocalStack

AT_ONCE = 2_000


def store(stack: LocalStack, sink: str, target: str, records: Sequence[bytes]) -> None:
    """Writes records as they are, by a plain client."""
    to = Destination(sink, next(iter(sink_kind(sink).writers)), target, stack.endpoints.sinks[sink])
    with closing(open_writer(to)) as writer:
        for at in range(0, len(records), AT_ONCE):
            writer.write(writer.batch(records[at : at + AT_ONCE]))


@contextmanager
def with_target(sink: Sink, target: str, file: Path | None = None) -> Iterator[Sink]:
    """The sink with a target of that file, which is gone afterwards; the sink is closed."""
    with closing(sink):
        sink.create(target, file)
        try:
            yield sink
        finally:
            sink.drop(target)


class InPostgres:
    """A hand on the rows of a trial."""

    def __init__(self, stack: LocalStack, target: str) -> None:
        self._address = stack.endpoints.sinks["postgres"].address
        self._target = target

    def _run(self, statement: str) -> int:
        with psycopg.connect(self._address, application_name="a hand") as connection:
            return connection.execute(statement.encode()).rowcount

    def _one(self, seq: int) -> str:
        return f"WHERE payload #>> '{{bench,seq}}' = '{seq}'"

    def delete(self, seq: int) -> None:
        assert self._run(f"DELETE FROM {self._target} {self._one(seq)}") == 1

    def change(self, seq: int, value: str = "changed") -> None:
        """Gives a member of the data of one record another value."""
        changed = f"jsonb_set(payload, '{{data,0,q}}', '\"{value}\"')"
        assert self._run(f"UPDATE {self._target} SET payload = {changed} {self._one(seq)}") == 1

    @contextmanager
    def hidden(self) -> Iterator[None]:
        self._run(f"ALTER TABLE {self._target} RENAME TO {self._target}_hidden")
        try:
            yield
        finally:
            self._run(f"ALTER TABLE {self._target}_hidden RENAME TO {self._target}")


class InElasticsearch:
    """A hand on the documents of a trial."""

    def __init__(self, stack: LocalStack, target: str) -> None:
        self._address = stack.endpoints.sinks["elasticsearch"].address
        self._target = target

    @contextmanager
    def _one(self, seq: int) -> Iterator[tuple[Elasticsearch, dict[str, Any]]]:
        with Elasticsearch(self._address) as client:
            client.indices.refresh(index=self._target)
            (hit,) = client.search(index=self._target, query={"term": {"bench.seq": seq}})["hits"]["hits"]
            yield client, hit

    def double(self, seq: int) -> None:
        with self._one(seq) as (client, hit):
            client.index(index=self._target, document=hit["_source"])

    def change(self, seq: int, value: str = "changed") -> None:
        """Gives a member of the data of one record another value."""
        with self._one(seq) as (client, hit):
            hit["_source"]["data"][0]["q"] = value
            client.index(index=self._target, id=hit["_id"], document=hit["_source"])


HANDS = {"postgres": InPostgres, "elasticsearch": InElasticsearch}
