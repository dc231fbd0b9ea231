"""Moves a table to a small disk, for the fault `fill`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import sql

from sinkbench.services.failures import map_exceptions
from sinkbench.sinks.postgres.session import Connection
from sinkbench.stack.smalldisk import SmallDisk

SPACE = "sinkbench_small_disk"
"""The tablespace. Only one trial at a time has one."""
USUAL = "pg_default"
LOCK_SECONDS, TRIES = 5, 4
# The table or its partitions, and their indexes. Partitioned tables and indexes have no pages.
PARTS = """
    WITH RECURSIVE parts(oid) AS (
        SELECT to_regclass(quote_ident(%s))::oid UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = oid
    )
    SELECT relkind = 'i', oid::regclass::text FROM pg_class
    WHERE relkind IN ('r', 'i') AND oid IN (
        SELECT oid FROM parts UNION SELECT indexrelid FROM pg_index JOIN parts ON indrelid = parts.oid
    )
"""
THERE = "SELECT FROM pg_tablespace WHERE spcname = %s"


class DiskToFill:
    """Moves a table and its indexes to a small disk of the server's machine, which the server's account owns."""

    def __init__(self, connection: Connection) -> None:
        """`connection` is of a superuser."""
        self._connection = connection

    @contextmanager
    def disk(self, target: str, small_disk: Callable[[], AbstractContextManager[SmallDisk]]) -> Iterator[SmallDisk]:
        """Raises ServiceError if the table cannot be moved there, or back."""
        with small_disk() as disk:
            disk.used = True
            try:
                with map_exceptions(psycopg.Error):
                    _move_to(self._connection, target, disk.path)
                yield disk
            finally:
                with map_exceptions(psycopg.Error):
                    _move_back(self._connection)
                # A server that is down looks for the tablespace when it starts again.
                disk.used = False


def _move_to(connection: Connection, target: str, directory: Path) -> None:
    # Left by a controller that was killed.
    _move_back(connection)
    create = sql.SQL("CREATE TABLESPACE {} LOCATION {}")
    connection.execute(create.format(sql.Identifier(SPACE), sql.Literal(str(directory))))
    for is_index, name in connection.execute(PARTS, [target]).fetchall():
        # PostgreSQL has quoted the name itself.
        alter = sql.SQL("ALTER {} {} SET TABLESPACE {}")
        kind = sql.SQL("INDEX" if is_index else "TABLE")
        connection.execute(alter.format(kind, sql.SQL(name), sql.Identifier(SPACE)))


def _move_back(connection: Connection) -> None:
    """Moves everything in the tablespace back to the default one and drops it, if it exists."""
    if not connection.execute(THERE, [SPACE]).fetchall():
        return
    connection.execute(sql.SQL("SET lock_timeout TO {}").format(sql.Literal(f"{LOCK_SECONDS}s")))
    alter = sql.SQL("ALTER {} ALL IN TABLESPACE {} SET TABLESPACE {}")
    for kind in ("TABLE", "INDEX"):
        move = alter.format(sql.SQL(kind), sql.Identifier(SPACE), sql.Identifier(USUAL))
        for _ in range(TRIES - 1):
            # After Ctrl-C a connector may still write.
            with suppress(psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
                connection.execute(move)
                break
        else:
            connection.execute(move)
    connection.execute(sql.SQL("DROP TABLESPACE {}").format(sql.Identifier(SPACE)))
