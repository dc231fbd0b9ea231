"""The state of PostgreSQL's standbys."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping
from typing import Any

import psycopg
from psycopg.rows import dict_row

from sinkbench.analysis.replication import ReplicationState, Standby, database_replication
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.postgres.session import Connection, commit_of

ASKED = """
    SELECT pg_is_in_recovery() AS follows, current_setting('synchronous_standby_names') AS names, pid,
        application_name AS name, state, sync_state
    FROM (VALUES (1)) AS here LEFT JOIN pg_stat_replication ON true
"""
WRITTEN = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn()::text END"
UNAPPLIED = "SELECT pid FROM pg_stat_replication WHERE replay_lsn < %s::pg_lsn"
# A standby reports at once when it has applied all that it has.
APPLY_SECONDS, AGAIN_SECONDS = 2.0, 0.1


@maps_exceptions(psycopg.Error)
class Replication:
    """Checks the standbys with one request. Where commits wait until standbys have applied them, at least two more
    requests find those that do not, which then takes `APPLY_SECONDS`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def check(self, target: str, config: Mapping[str, str]) -> ReplicationState:
        applied = commit_of(self._connection, config) == "remote_apply"
        behind = _behind(self._connection) if applied else set()
        with self._connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(ASKED).fetchall()
        return database_replication(bool(rows[0]["follows"]), str(rows[0]["names"]), standbys_of(rows, behind))


def _behind(connection: Connection) -> set[int]:
    """The WAL senders of standbys that do not apply, within `APPLY_SECONDS`, what is written by now."""
    ((written,),) = connection.execute(WRITTEN).fetchall()
    deadline = time.monotonic() + APPLY_SECONDS
    while True:
        found = {int(pid) for (pid,) in connection.execute(UNAPPLIED, [written])}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(AGAIN_SECONDS)


def standbys_of(rows: Iterable[Mapping[str, Any]], behind: Container[int] = ()) -> list[Standby]:
    """The standbys in rows of `ASKED`, one even without any; `behind` are WAL senders of those that do not apply."""
    return [
        Standby(row["name"], row["state"], row["sync_state"], row["pid"] not in behind)
        for row in rows
        if row["pid"] is not None
    ]
