"""Plain clients of the sinks: each writes in one way, on one connection, batches made before the clock starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import psycopg
from psycopg import sql

from elasticsearch import Elasticsearch
from sinkbench.stack import Access
from sinkbench.stack.access import tls

__all__ = ["SINGLY", "WAYS", "Destination", "Refused", "Writer", "open_writer"]

TIMEOUT_SECONDS = 60.0
# The controller's own name, so that no probe counts these connections as a connector's.
APPLICATION = "sinkbench"
HEADERS = {"content-type": "application/x-ndjson", "accept": "application/json"}

WAYS = {"elasticsearch": ("bulk",), "postgres": ("COPY", "INSERT")}
"""The ways to write to each sink that a limit is searched by."""
SINGLY = "INSERT of single rows"
"""A way that is there to compare with."""


class Refused(Exception):
    """The sink answered, but did not store every record of a batch; the text is its reason."""


@dataclass(frozen=True)
class Destination:
    """Where a client writes, and how: it goes to another process, never to a command line.

    Attributes:
        way: one of WAYS, or SINGLY.
        target: the index or table.
        address: base address of Elasticsearch, or PostgreSQL's connection string.
        alias: the name that connectors write to, an alias of the index (Elasticsearch).
        access: what Elasticsearch wants before it answers.
    """

    way: str
    target: str
    address: str = field(repr=False)
    alias: str = ""
    access: Access = field(default_factory=Access)


class Writer(Protocol):
    """One connection to a sink."""

    def batch(self, records: Sequence[bytes]) -> Any:
        """The records (JSON in ASCII, one line each) as `write` sends them. Takes time that is not to be measured."""
        ...

    def write(self, batch: Any) -> None:
        """Stores a batch; every record is durable when this returns.

        Raises:
            Refused: the sink did not store every record.
            Its client's errors, if it does not answer.
        """
        ...

    def close(self) -> None:
        """Closes the connection."""
        ...


class _Bulk:
    """Elasticsearch's Bulk API, with a body that is ready to send."""

    def __init__(self, to: Destination) -> None:
        options: dict[str, Any] = {"ssl_context": tls(to.access)} if to.address.startswith("https:") else {}
        self._client = Elasticsearch(
            to.address,
            request_timeout=TIMEOUT_SECONDS,
            connections_per_node=1,
            # A batch that was sent again would hide that the sink did not take it.
            max_retries=0,
            headers={"user-agent": APPLICATION},
            basic_auth=None if to.access.user is None else (to.access.user, to.access.password or ""),
            api_key=to.access.api_key,
            **options,
        )
        # By the alias, as connectors write; and an index that is dropped meanwhile does not come back.
        self._path = f"/{to.alias}/_bulk?require_alias=true&filter_path=errors,items.*.error.reason"

    def batch(self, records: Sequence[bytes]) -> bytes:
        return b"".join(b'{"index":{}}\n' + record + b"\n" for record in records)

    def write(self, batch: bytes) -> None:
        answer = self._client.perform_request(
            "POST",
            self._path,
            headers={"content-type": "application/x-ndjson", "accept": "application/json"},
            body=batch,
        ).body
        if answer["errors"]:
            reasons = [item["index"]["error"]["reason"] for item in answer["items"]]
            raise Refused(f"{len(reasons):,} records of a bulk request were rejected: {reasons[0]}")

    def close(self) -> None:
        self._client.close()


class _Postgres:
    """A connection that commits each statement."""

    def __init__(self, to: Destination) -> None:
        self._connection = psycopg.connect(
            to.address, autocommit=True, application_name=APPLICATION, prepare_threshold=None
        )
        self._connection.execute("SET search_path TO public")
        self._table = sql.Identifier(to.target)

    def close(self) -> None:
        self._connection.close()


class _Copy(_Postgres):
    """A COPY a batch, with a block of its text format that is ready to send."""

    def __init__(self, to: Destination) -> None:
        super().__init__(to)
        self._statement = sql.SQL("COPY {} (payload) FROM STDIN").format(self._table)

    def batch(self, records: Sequence[bytes]) -> bytes:
        return b"".join(record.replace(b"\\", b"\\\\") + b"\n" for record in records)

    def write(self, batch: bytes) -> None:
        with self._connection.cursor() as cursor, cursor.copy(self._statement) as copy:
            copy.write(batch)


class _Insert(_Postgres):
    """One INSERT of many rows a batch, with a statement that is ready to send."""

    def batch(self, records: Sequence[bytes]) -> bytes:
        begins = sql.SQL("INSERT INTO {} (payload) VALUES ").format(self._table).as_bytes(self._connection)
        return begins + b",".join(b"('" + record.replace(b"'", b"''") + b"')" for record in records)

    def write(self, batch: bytes) -> None:
        self._connection.execute(batch)


class _InsertSingly(_Postgres):
    """An INSERT for each record of a batch, each committed: what batching is compared with."""

    def batch(self, records: Sequence[bytes]) -> list[str]:
        return [record.decode("ascii") for record in records]

    def write(self, batch: Sequence[str]) -> None:
        statement = sql.SQL("INSERT INTO {} (payload) VALUES (%s::jsonb)").format(self._table)
        for record in batch:
            self._connection.execute(statement, (record,), prepare=True)


_WRITERS: dict[str, type[_Bulk | _Copy | _Insert | _InsertSingly]] = {
    "bulk": _Bulk,
    "COPY": _Copy,
    "INSERT": _Insert,
    SINGLY: _InsertSingly,
}


def open_writer(to: Destination) -> Writer:
    """A connection that writes as `to` says. Raises the client's errors if it does not come about."""
    return _WRITERS[to.way](to)
