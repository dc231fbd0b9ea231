"""Makes a server refuse records, and moves a table to a small disk, for the faults refuse and fill."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import sql

from sinkbench.errors import ServiceError
from sinkbench.services.failures import map_exceptions, maps_exceptions
from sinkbench.sinks.postgres.session import Connection, connect
from sinkbench.stack.smalldisk import SmallDisk

NO_CONNECTION = "no connection"
# The server's message and SQLSTATE, by reason. A trigger raises it for a superuser as well, who lacks no right.
SAID: Mapping[str, str] = {
    "read only": "'cannot execute ' || TG_OP || ' in a read-only transaction', ERRCODE = 'read_only_sql_transaction'",
    "no right": "'permission denied for table ' || TG_TABLE_NAME, ERRCODE = 'insufficient_privilege'",
}
REFUSE = """
    CREATE FUNCTION {name}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION USING MESSAGE = {said};
    END $$;
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON public.{name}
    FOR EACH STATEMENT EXECUTE FUNCTION {name}.refuse()
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
# The tablespace on the small disk. Only one trial at a time has one.
SPACE = sql.Identifier("sinkbench_small_disk")
LOCK_SECONDS, TRIES = 5, 4
# The table or its partitions, and their indexes. Partitioned tables and indexes have no pages.
PARTS = """
    WITH RECURSIVE parts(oid) AS (
        SELECT to_regclass(quote_ident(%s))::oid UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = oid
    )
    SELECT CASE relkind WHEN 'i' THEN 'INDEX' ELSE 'TABLE' END, oid::regclass::text FROM pg_class
    WHERE relkind IN ('r', 'i') AND oid IN (
        SELECT oid FROM parts UNION SELECT indexrelid FROM pg_index JOIN parts ON indrelid = parts.oid
    )
"""
THERE = "SELECT FROM pg_tablespace WHERE spcname = 'sinkbench_small_disk'"


@maps_exceptions(psycopg.Error)
class Faults:
    """Makes every write to a table fail, as in a read-only transaction, without the right, or without a connection; and
    moves it to a small disk. What refuses a statement is in the trial's own schema, and removed with it.
    """

    def __init__(self, connection: Connection, dsn: str) -> None:
        """`connection` is of a superuser."""
        self._connection = connection
        self._dsn = dsn
        # These use up the server's limit (SQLSTATE 53300), and end with this process, however that ends.
        self._crowd: list[Connection] = []

    def refuse(self, target: str, why: str) -> None:
        """Raises ServiceError if others find connections again and again, or this machine has no more of them."""
        if why != NO_CONNECTION:
            said, name = sql.SQL(SAID[why]), sql.Identifier(target)
            self._connection.execute(sql.SQL(REFUSE).format(name=name, said=said))
            return
        deadline = time.monotonic() + CROWD_SECONDS
        while True:
            ((others, free),) = self._connection.execute(STILL).fetchall()
            if not others and free <= 0:
                return
            if time.monotonic() > deadline:
                self.close()
                raise ServiceError(f"PostgreSQL: its connections could not all be taken in {CROWD_SECONDS:g} s")
            self._connection.execute(END_OTHERS)
            # Another client may be faster, or is about to leave.
            with suppress(psycopg.OperationalError):
                for _ in range(others + max(free, 0)):
                    self._crowd.append(connect(self._dsn))

    def accept(self, target: str) -> None:
        drop = sql.SQL("DROP FUNCTION IF EXISTS {}.refuse() CASCADE")
        self._connection.execute(drop.format(sql.Identifier(target)))
        self.close()

    def close(self) -> None:
        while self._crowd:
            self._crowd.pop().close()

    @contextmanager
    def disk(self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]) -> Iterator[SmallDisk]:
        """Moves a table and its indexes to a small disk of the server's machine, which the server's account owns.
        Raises ServiceError if the table cannot be moved there, or back.
        """
        with small_disk() as disk:
            disk.used = True
            try:
                with map_exceptions(psycopg.Error):
                    self._move_to(target, disk.path)
                yield disk
            finally:
                with map_exceptions(psycopg.Error):
                    self._move_back()
                # A server that is down looks for the tablespace when it starts again.
                disk.used = False

    def _move_to(self, target: str, directory: Path) -> None:
        # Left by a controller that was killed.
        self._move_back()
        create = sql.SQL("CREATE TABLESPACE {} LOCATION {}")
        self._connection.execute(create.format(SPACE, sql.Literal(str(directory))))
        for kind, name in self._connection.execute(PARTS, [target]).fetchall():
            # PostgreSQL has quoted the name itself.
            alter = sql.SQL("ALTER {} {} SET TABLESPACE {}")
            self._connection.execute(alter.format(sql.SQL(kind), sql.SQL(name), SPACE))

    def _move_back(self) -> None:
        """Moves everything in the tablespace back to the default one and drops it, if it exists."""
        if not self._connection.execute(THERE).fetchall():
            return
        self._connection.execute(f"SET lock_timeout TO '{LOCK_SECONDS}s'")
        for kind in ("TABLE", "INDEX"):
            move = sql.SQL("ALTER {} ALL IN TABLESPACE {} SET TABLESPACE pg_default").format(sql.SQL(kind), SPACE)
            for left in reversed(range(TRIES)):
                try:
                    self._connection.execute(move)
                    break
                except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
                    # After Ctrl-C a connector may still write.
                    if not left:
                        raise
        self._connection.execute(sql.SQL("DROP TABLESPACE {}").format(SPACE))
