"""Connections of sinkbench to PostgreSQL, and settings of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psycopg

from sinkbench.analysis.durability import database_promise
from sinkbench.sinks.postgres.configuring import of_database
from sinkbench.sinks.postgres.jdbc import own_commit
from sinkbench.sinks.reading import SinkSettings

Connection = psycopg.Connection[Any]

APPLICATION = "sinkbench"
"""The controller's name, so that its connections do not count as a connector's."""
# What the server promises for a committed row, and what else its speed depends on.
DURABILITY = (
    *("fsync", "synchronous_commit", "full_page_writes", "wal_level"),
    *("synchronous_standby_names", "wal_writer_delay"),
)
TUNING = ("wal_compression", "max_wal_size", "shared_buffers")
UNSAFE_IF_OFF = ("fsync", "synchronous_commit", "full_page_writes")
# As in a connection that sets nothing itself.
SETTINGS = """
    SELECT name, CASE name WHEN 'synchronous_commit' THEN reset_val ELSE current_setting(name) END
    FROM pg_settings WHERE name = ANY(%s)
"""
# The table, or one of its partitions.
UNLOGGED = """
    SELECT coalesce(bool_or(relpersistence = 'u'), false) FROM pg_class WHERE oid = to_regclass(quote_ident(%s))
    OR oid IN (SELECT relid FROM pg_partition_tree(to_regclass(quote_ident(%s))))
"""


def connect(dsn: str) -> Connection:
    """Opens a connection in autocommit mode. Raises psycopg.Error."""
    return psycopg.connect(dsn, autocommit=True, application_name=APPLICATION)


def is_unlogged(connection: Connection, table: str) -> bool:
    return bool(connection.execute(UNLOGGED, [table, table]).fetchall()[0][0])


def settings_of(connection: Connection, table: str, config: Mapping[str, str]) -> SinkSettings:
    """The settings of the server and of a table for sessions of a connector with this configuration."""
    found: dict[str, str] = {}
    with suppress(psycopg.Error):
        found = _set(connection, [*DURABILITY, *TUNING], config)
    # An empty list of names is a setting, too.
    found = {name: value or "none" for name, value in found.items()}
    durability, tuning = ({name: found.get(name) for name in names} for names in (DURABILITY, TUNING))
    return SinkSettings(durability, tuning, database_promise(durability, unlogged=is_unlogged(connection, table)))


def commit_of(connection: Connection, config: Mapping[str, str]) -> str | None:
    return _set(connection, ["synchronous_commit"], config).get("synchronous_commit")


def _set(connection: Connection, wanted: list[str], config: Mapping[str, str]) -> dict[str, str]:
    found = {str(name): str(value) for name, value in connection.execute(SETTINGS, [wanted])}
    # What was set for the database since this connection began applies to connectors' sessions.
    found |= {name: value for name, value in of_database(connection).items() if name in wanted}
    commit = own_commit(config)
    return found if commit is None else {**found, "synchronous_commit": commit}
