"""One PostgreSQL database and the PgBouncer before it, as trials use them."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from loadgen.reading import read_text
from sinkbench.errors import StackError, TargetError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.kind import Capabilities
from sinkbench.sinks.postgres import session
from sinkbench.sinks.postgres.clients import Clients, PgBouncer, open_pools
from sinkbench.sinks.postgres.documents import Stored, columns_of, key_table
from sinkbench.sinks.postgres.schema import MARK, make, remove, schema_comment
from sinkbench.sinks.postgres.writing import Writes
from sinkbench.sinks.values import Created, SinkReading, SinkSettings
from sinkbench.stack import Endpoint, Endpoints

COMMENT = "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE oid = to_regclass(quote_ident(%s))"
# Only a transaction that writes gets an id, so the ids count commits of records, not the look-ups of the schema that a
# connector makes before every batch, which are transactions, too.
WRITES = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


@maps_exceptions(psycopg.Error)
class PostgresSink:
    name = "postgres"

    def __init__(self, dsn: str, pgbouncer: Endpoint | None, schema_file: Path, *, shared: bool = False) -> None:
        """Connects to PostgreSQL by `dsn`, and to PgBouncer if there is one. `schema_file` is SQL that
        creates the table `tides` and what it needs. No checkpoint is forced if `shared`. May raise StackError."""
        self._schema_file = schema_file
        self._shared = shared
        # The sequence of each table's identity column, and the table's OID if its rows have a key.
        self._counters: dict[str, tuple[int, int]] = {}
        try:
            self._connection = connection = session.connect(dsn)
            session.set_session(connection)
            self._pools = None if pgbouncer is None else open_pools(pgbouncer)
            pooler = None if self._pools is None else PgBouncer(self._pools, connection.info.dbname)
            self._clients = Clients(connection, pooler)
        except psycopg.Error as error:
            raise StackError(f"PostgreSQL does not answer: {str(error).strip().splitlines()[0]}") from None
        self._server = session.Server(connection, self._pools if isinstance(self._pools, psycopg.Connection) else None)
        self._writes = Writes(connection, dsn, self._checkpoint)
        stored = Stored(connection, dsn)
        self.sequences, self.disk_bytes = stored.sequences, stored.disk_bytes
        self.capabilities = Capabilities(
            service_settings=self._server,
            times=stored,
            others=self._clients,
            replication=self._server,
            documents=stored,
            queries=stored,
            changes=stored,
            filling=self._writes,
            pooler=pooler,
            refusing=self._writes,
            discarding=self._writes,
            disk_to_fill=self._writes,
        )

    def _query(self, query: str | sql.SQL, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values or None).fetchall()

    def create(self, target: str, file: Path | None = None) -> Created:
        file = file or self._schema_file
        text = read_text(file, TargetError, if_missing="restore it")
        try:
            make(self._connection, text, target)
            self._checkpoint()
        except (TargetError, psycopg.Error) as error:
            # What a file has committed itself remains.
            if isinstance(error, TargetError) and schema_comment(self._connection, target) == MARK:
                self.drop(target)
            reason = str(error).strip().splitlines()[0]
            to = TargetError if isinstance(error, TargetError) else StackError
            raise to(f"PostgreSQL did not make the table {target} of {file}: {reason}") from None
        # New sessions have other settings than this one.
        set_to = {**self.settings(target, {}).durability, **self._server.given.get("postgres", {})}
        unsafe = ["the table is UNLOGGED"] if session.is_unlogged(self._connection, target) else []
        unsafe += [f"{name} is off" for name in session.UNSAFE_IF_OFF if set_to[name] == "off"]
        notes = [f"what PostgreSQL has stored may be gone after a crash: {', '.join(unsafe)}"] if unsafe else []
        columns = frozenset(name.lower() for name in columns_of(self._connection, target))
        return Created(columns, tuple(notes))

    def _checkpoint(self) -> None:
        """Otherwise the trial would pay for earlier writes."""
        if not self._shared:
            with suppress(psycopg.errors.InsufficientPrivilege):
                self._connection.execute("CHECKPOINT")

    def drop(self, target: str) -> None:
        self._counters.pop(target, None)
        rows = self._query(COMMENT, target)
        if rows and rows[0][0] != MARK:
            raise StackError(f"PostgreSQL: sinkbench has not made the table {target}, and does not drop it")
        if schema_comment(self._connection, target) not in (None, MARK):
            raise StackError(f"PostgreSQL: sinkbench has not made the schema {target}, and does not drop it")
        remove(self._connection, target)

    def leftovers(self, prefix: str) -> list[str]:
        return sorted(str(name) for (name,) in self._query(session.read_sql("leftovers"), prefix, MARK, prefix, MARK))

    def offer_default(self) -> None:
        if not self._query(COMMENT, session.SCHEMA_TABLE):
            self.create(session.SCHEMA_TABLE)

    def read(self, target: str) -> SinkReading:
        if target not in self._counters:
            if not (rows := self._query(session.read_sql("identity"), target, target)):
                raise StackError(f"PostgreSQL: there is no table {target} with an identity column")
            self._counters[target] = rows[0][0], key_table(self._connection, target)
        return self._clients.reading(*self._counters[target])

    def settle(self, target: str) -> None:
        """Does nothing: what is committed is visible."""

    def count(self, target: str) -> int:
        ((rows,),) = self._connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(target)))
        return int(rows)

    def settings(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        return session.settings_of(self._connection, target, config)

    def writes(self, target: str) -> int | None:
        return int(self._query(WRITES)[0][0])

    def connection_limit(self) -> int | None:
        return int(self._query("SHOW max_connections")[0][0])

    def close(self) -> None:
        self._writes.close()
        self._connection.close()
        if self._pools is not None:
            self._pools.close()


def open_postgres(endpoints: Endpoints, checkout: Path) -> PostgresSink:
    address, schema = endpoints.sinks["postgres"].address, checkout / "postgres" / "schema.sql"
    return PostgresSink(address, endpoints.sinks.get("pgbouncer"), schema, shared=endpoints.shared)
