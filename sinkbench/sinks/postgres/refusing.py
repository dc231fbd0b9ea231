"""A table that refuses every write: for the fault `refuse`."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

__all__ = ["accept", "refuse"]

# What the server says of a write in a transaction that is read-only. A superuser, whom no missing right stops, gets it
# as well.
FUNCTION = """
    CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'cannot execute % in a read-only transaction', TG_OP
            USING ERRCODE = 'read_only_sql_transaction';
    END $$
"""
TRIGGER = """
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON public.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse()
"""


def refuse(connection: psycopg.Connection[Any], target: str) -> None:
    """Every statement that writes to the table fails as in a read-only transaction, from its commit on.

    What does so lies in the trial's own schema, and goes with it.
    """
    name = sql.Identifier(target)
    with connection.transaction():
        for statement in (FUNCTION, TRIGGER):
            connection.execute(sql.SQL(statement).format(schema=name, table=name))


def accept(connection: psycopg.Connection[Any], target: str) -> None:
    """Ends that; nothing if it was not begun."""
    name = sql.Identifier(target)
    connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}.refuse() CASCADE").format(name))
