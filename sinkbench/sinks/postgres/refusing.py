"""Makes a server refuse records, for the fault `refuse`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import psycopg
from psycopg import sql

from sinkbench.errors import ServiceError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.postgres.session import Connection, connect

NO_CONNECTION = "no connection"
# The server's message and SQLSTATE, by reason. A trigger raises it for a superuser as well, who lacks no right.
SAID: Mapping[str, tuple[str, str]] = {
    "read only": ("cannot execute % in a read-only transaction', TG_OP", "read_only_sql_transaction"),
    "no right": ("permission denied for table %', TG_TABLE_NAME", "insufficient_privilege"),
}
FUNCTION = """
    CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'SAID USING ERRCODE = 'STATE';
    END $$
"""
TRIGGER = """
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON public.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse()
"""
REASONS = (*SAID, NO_CONNECTION)
OTHERS = """
    FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
    AND application_name <> current_setting('application_name')
"""
END_OTHERS = f"SELECT count(pg_terminate_backend(pid)) {OTHERS}"
# Others' connections, and places that are free or taken by a client that is logging in.
STILL = f"""
    SELECT (SELECT count(*) {OTHERS}), current_setting('max_connections')::int - count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND datname IS NOT NULL
"""  # noqa: S608 - of texts of ours
# A client that is disconnected retries at once, and may find a place before it is taken.
CROWD_SECONDS = 10.0


@maps_exceptions(psycopg.Error)
class Refusing:
    """Makes every write to a table fail: as in a read-only transaction, without the right, or without a connection.
    What refuses a statement is in the trial's own schema, and removed with it.
    """

    def __init__(self, connection: Connection, dsn: str) -> None:
        self._connection = connection
        self._crowd = _Crowd(connection, partial(connect, dsn))

    def refuse(self, target: str, why: str) -> None:
        if why == NO_CONNECTION:
            self._crowd.come()
            return
        said, state = SAID[why]
        function = FUNCTION.replace("SAID", said).replace("STATE", state)
        name = sql.Identifier(target)
        with self._connection.transaction():
            for statement in (function, TRIGGER):
                # It contains no text of a user.
                self._connection.execute(sql.SQL(statement).format(schema=name, table=name))

    def accept(self, target: str) -> None:
        drop = sql.SQL("DROP FUNCTION IF EXISTS {}.refuse() CASCADE")
        self._connection.execute(drop.format(sql.Identifier(target)))
        self._crowd.go()

    def close(self) -> None:
        self._crowd.go()


class _Crowd:
    """Connections that use up the server's limit (SQLSTATE 53300), and end with this process, however that ends."""

    def __init__(self, connection: Connection, connect: Callable[[], Connection]) -> None:
        """`connection` is an open one of a superuser; `connect` opens another one like it."""
        self._connection = connection
        self._connect = connect
        self._here: list[Connection] = []

    def come(self) -> None:
        """Takes all places, also by terminating others' connections. A second call takes places that are free again.
        Raises ServiceError if others find places repeatedly, or this machine has no more connections.
        """
        deadline = time.monotonic() + CROWD_SECONDS
        while (still := self._still()) != (0, 0):
            if time.monotonic() > deadline:
                self.go()
                raise ServiceError(f"PostgreSQL: its connections could not all be taken in {CROWD_SECONDS:g} s")
            others, free = still
            if others:
                self._connection.execute(END_OTHERS)
            for _ in range(others + free):
                try:
                    self._here.append(self._connect())
                except psycopg.OperationalError:
                    # Another client was faster, or is about to leave.
                    break

    def _still(self) -> tuple[int, int]:
        ((others, free),) = self._connection.execute(STILL).fetchall()
        return int(others), max(int(free), 0)

    def go(self) -> None:
        while self._here:
            self._here.pop().close()
