"""What PostgreSQL says of the servers that follow it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg.rows import dict_row

from sinkbench.analysis.holding import Held, Standby, database_held

__all__ = ["ASKED", "look", "standbys_of"]

ASKED = """
    SELECT pg_is_in_recovery() AS follows, current_setting('synchronous_standby_names') AS names, pid,
        application_name AS name, state, sync_state
    FROM (VALUES (1)) AS here LEFT JOIN pg_stat_replication ON true
"""


def look(connection: psycopg.Connection[Any]) -> Held:
    """One look at the server of a connection: one request."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(ASKED).fetchall()
    return database_held(bool(rows[0]["follows"]), str(rows[0]["names"]), standbys_of(rows))


def standbys_of(rows: Iterable[Mapping[str, Any]]) -> list[Standby]:
    """The servers that follow, by the answer to `ASKED`, which has one row even if there are none."""
    return [Standby(row["name"], row["state"], row["sync_state"]) for row in rows if row["pid"] is not None]
