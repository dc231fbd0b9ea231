"""What PostgreSQL says of the servers that follow it."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping
from typing import Any

import psycopg
from psycopg.rows import dict_row

from sinkbench.analysis.replication import ReplicationState, Standby, database_replication

__all__ = ["ASKED", "look", "standbys_of"]

ASKED = """
    SELECT pg_is_in_recovery() AS follows, current_setting('synchronous_standby_names') AS names, pid,
        application_name AS name, state, sync_state
    FROM (VALUES (1)) AS here LEFT JOIN pg_stat_replication ON true
"""
WRITTEN = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn()::text END"
UNAPPLIED = "SELECT pid FROM pg_stat_replication WHERE replay_lsn < %s::pg_lsn"
# A standby tells at once when it has applied all that it has.
APPLY_SECONDS, AGAIN_SECONDS = 2.0, 0.1


def look(connection: psycopg.Connection[Any], *, applied: bool = False) -> ReplicationState:
    """One look at the server of a connection: one request.

    `applied`: commits wait until standbys have applied them. Then it is also asked which of these do, which takes at
    least two more requests, and `APPLY_SECONDS` if one does not.
    """
    behind = _behind(connection) if applied else set()
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(ASKED).fetchall()
    return database_replication(bool(rows[0]["follows"]), str(rows[0]["names"]), standbys_of(rows, behind))


def _behind(connection: psycopg.Connection[Any]) -> set[int]:
    """The processes that send to standbys which do not apply what is written by now, however long it is waited for."""
    ((written,),) = connection.execute(WRITTEN).fetchall()
    deadline = time.monotonic() + APPLY_SECONDS
    while True:
        found = {int(pid) for (pid,) in connection.execute(UNAPPLIED, [written])}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(AGAIN_SECONDS)


def standbys_of(rows: Iterable[Mapping[str, Any]], behind: Container[int] = ()) -> list[Standby]:
    """The servers that follow, by the answer to `ASKED`, which has one row even if there are none.

    `behind` are the processes that send to those which apply nothing.
    """
    return [
        Standby(row["name"], row["state"], row["sync_state"], row["pid"] not in behind)
        for row in rows
        if row["pid"] is not None
    ]
