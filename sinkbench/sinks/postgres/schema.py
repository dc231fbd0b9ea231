"""All that `schema.sql` makes for one trial: it lives in a schema of the trial's name, and goes with it.

Only the table itself moves on to `public`, where connectors look for it, under the trial's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg import sql

from sinkbench.errors import StackError
from sinkbench.sinks.postgres.audited import audited_in

__all__ = [
    "MARK",
    "SCHEMA_TABLE",
    "FileError",
    "difference",
    "make",
    "names_one_of",
    "remove",
    "schema_comment",
    "set_session",
]

SCHEMA_TABLE = "tides"
"""The table that the file makes; a trial's table is this one, renamed."""
MARK = "made by sinkbench for a trial; it may be dropped"
"""The comment on a table and a schema that sinkbench has made; what lacks it belongs to others."""

Connection = psycopg.Connection[Any]

# All that can lie in a schema, or belongs to the whole database, but for what comes with something else: rows' and
# arrays' types, TOAST. PostgreSQL's own objects have lower numbers, and names of its own schemas begin with pg_.
ELSEWHERE = """
    SELECT kind, found.oid, concat_ws('.', nspname, name) FROM (
        SELECT CASE relkind WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view'
            WHEN 'm' THEN 'materialized view' ELSE 'table' END, oid, relnamespace, relname
            FROM pg_class WHERE relkind NOT IN ('c', 't')
        UNION ALL SELECT 'function', oid, pronamespace, proname FROM pg_proc
        UNION ALL SELECT 'type', oid, typnamespace, typname FROM pg_type AS type
            WHERE typtype <> 'm' AND NOT EXISTS (SELECT FROM pg_type WHERE typarray = type.oid)
            AND NOT EXISTS (SELECT FROM pg_class WHERE pg_class.oid = typrelid AND relkind <> 'c')
        UNION ALL SELECT 'operator', oid, oprnamespace, oprname FROM pg_operator
        UNION ALL SELECT 'collation', oid, collnamespace, collname FROM pg_collation
        UNION ALL SELECT 'schema', oid, NULL, nspname FROM pg_namespace
        UNION ALL SELECT 'extension', oid, NULL, extname FROM pg_extension
        UNION ALL SELECT 'event trigger', oid, NULL, evtname FROM pg_event_trigger
        UNION ALL SELECT 'publication', oid, NULL, pubname FROM pg_publication
        UNION ALL SELECT 'server', oid, NULL, srvname FROM pg_foreign_server
        UNION ALL SELECT 'role', oid, NULL, rolname FROM pg_roles
    ) AS found (kind, oid, namespace, name) LEFT JOIN pg_namespace ON pg_namespace.oid = namespace
    WHERE found.oid >= 16384 AND NOT starts_with(coalesce(nspname, ''), 'pg_')
        AND coalesce(nspname, '') <> %(schema)s
        AND NOT (kind = 'schema' AND (name = %(schema)s OR starts_with(name, 'pg_')))
"""
TABLE = """
    SELECT pg_class.oid::bigint, relkind IN ('r', 'p') FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %s AND relname = %s
"""
IDENTITY = "SELECT FROM pg_attribute WHERE attrelid = %s::oid AND attidentity <> ''"
# ALTER TABLE takes these along to another schema.
BELONGING = """
    SELECT relname FROM pg_class WHERE relkind IN ('i', 'I', 'S') AND oid IN (
        SELECT indexrelid FROM pg_index WHERE indrelid = %(table)s::oid
        UNION ALL SELECT objid FROM pg_depend WHERE classid = 'pg_class'::regclass AND deptype IN ('a', 'i')
            AND refclassid = 'pg_class'::regclass AND refobjid = %(table)s::oid)
"""
# What is written in SQL or a language like it; it is read when it is called.
FUNCTIONS = """
    SELECT pg_proc.oid::regprocedure::text, prosrc, prokind = 'f', proconfig FROM pg_proc
    JOIN pg_namespace ON pg_namespace.oid = pronamespace JOIN pg_language ON pg_language.oid = prolang
    WHERE nspname = %s AND prokind IN ('f', 'p') AND lanname NOT IN ('c', 'internal')
"""
MARKED = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
# Where and what the audit reads.
AUDITED = "SELECT {} FROM {}.{} LIMIT 0"
_WAIT_FOR_NONE = """
    SELECT set_config('synchronous_commit', 'local', false)
    WHERE current_setting('synchronous_commit') IN ('on', 'remote_write', 'remote_apply')
"""
MOST_NAMED = 3
COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)

Objects = Mapping[tuple[str, int], str]


class FileError(Exception):
    """Why what the file says cannot be a trial's table: for a person, in one line."""


def set_session(connection: Connection) -> None:
    """Sets what a connection of sinkbench's own needs, for as long as it lasts, or until the end of `RESET ALL`."""
    # A schema of the user's own would come first, and hide what a connector writes to.
    connection.execute("SET search_path TO public")
    # What is made and removed here waits for no standby, which may be the one that is not there.
    connection.execute(_WAIT_FOR_NONE)


def make(connection: Connection, text: str, target: str) -> None:
    """Makes the table `target` in `public`, and a schema of that name with all else that the SQL makes.

    Args:
        connection: commits by itself; its settings are its user's own but for `search_path`, which is `public`.
        text: SQL that makes the table `tides`.
        target: name of the table and of the schema.

    Raises:
        FileError: the SQL is none, its table cannot be used, or it makes or removes what is not the trial's alone.
            There is nothing of it then, unless it ended its transaction.
        psycopg.Error: all else, such as a table of that name.
    """
    run, schema = connection.execute, sql.Identifier(target)
    with connection.transaction():
        # What others make or remove meanwhile is not seen: whatever differs, the file has done.
        run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = _elsewhere(connection, target)
        run(sql.SQL("CREATE SCHEMA {}").format(schema))
        run(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, sql.Literal(MARK)))
        run(sql.SQL("SET LOCAL search_path TO {}, public").format(schema))
        transaction = run("SELECT txid_current()").fetchall()
        try:
            run(text.encode())
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            raise FileError(str(error).strip().splitlines()[0]) from None
        # What the file has set is not to last, on a connection that goes on.
        run("RESET ALL")
        set_session(connection)
        run("DISCARD TEMP")
        if run("SELECT txid_current()").fetchall() != transaction:
            raise FileError("it ends the transaction that it is run in; leave BEGIN and COMMIT out")
        if problem := difference(before, _elsewhere(connection, target)):
            raise FileError(problem)
        table = _checked_table(connection, target)
        belonging = [str(name) for (name,) in run(BELONGING, {"table": table}).fetchall()]
        _fix_functions(connection, target, {SCHEMA_TABLE, *belonging})
        _move(connection, target, belonging)


def remove(connection: Connection, target: str) -> None:
    """Removes the table `target` from `public`, and the schema with all else; what is not there is fine.

    Raises:
        StackError: something that belongs to others would go with it.
    """
    run, name = connection.execute, sql.Identifier(target)
    with connection.transaction():
        run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if schema_comment(connection, target) != MARK:
            run(sql.SQL("DROP TABLE IF EXISTS public.{}").format(name))
            return
        # So that all that is to go lies in one schema.
        run(sql.SQL("ALTER TABLE IF EXISTS public.{} SET SCHEMA {}").format(name, name))
        before = _elsewhere(connection, target)
        run(sql.SQL("DROP SCHEMA {} CASCADE").format(name))
        after = _elsewhere(connection, target)
        if lost := _missing(before, after):
            raise StackError(f"PostgreSQL: {lost} needs what sinkbench has made for {target}; drop that first")


def schema_comment(connection: Connection, target: str) -> str | None:
    """The comment on the schema of that name: `MARK` if it is ours, empty if it has none; None if there is none."""
    found = connection.execute(MARKED, [target]).fetchall()
    return str(found[0][0] or "") if found else None


def difference(before: Objects, after: Objects) -> str | None:
    """What SQL has made or removed outside of its own schema, for a person; None if nothing.

    Args:
        before, after: what there is outside: kind and number of each object, and its name.
    """
    if removed := _missing(before, after):
        return f"it removes {removed}, which it has not made; leave that out"
    if made := _missing(after, before):
        return (
            f"it makes {made} outside of the trial's own schema, where that would stay; name it without a schema,"
            " or make it once manually"
        )
    return None


def names_one_of(source: str, names: Iterable[str]) -> str | None:
    """The first of the names that the text of a function has as a word, outside of comments; None if none."""
    said = COMMENTS.sub(" ", source)
    for name in sorted(names):
        if re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", said, re.IGNORECASE):
            return name
    return None


def _missing(these: Objects, among: Objects) -> str:
    """The first of these that are not among those, for a person; empty if all are."""
    names = [f"{each[0]} {name}" for each, name in these.items() if each not in among]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _elsewhere(connection: Connection, schema: str) -> dict[tuple[str, int], str]:
    """What there is outside of a schema, what says most first."""
    rows = connection.execute(ELSEWHERE, {"schema": schema}).fetchall()
    ranks = {"extension": 0, "schema": 1, "table": 2}
    rows.sort(key=lambda row: (ranks.get(row[0], len(ranks)), row[0], row[2]))
    return {(str(kind), int(oid)): str(name) for kind, oid, name in rows}


def _checked_table(connection: Connection, schema: str) -> int:
    """The number of the table that the file has made. Raises FileError if it lacks something."""
    found = connection.execute(TABLE, [schema, SCHEMA_TABLE]).fetchall()
    if not found:
        raise FileError(f"it makes no table {SCHEMA_TABLE}")
    ((table, is_table),) = found
    if not is_table:
        raise FileError(f"its {SCHEMA_TABLE} is no table")
    if not connection.execute(IDENTITY, [table]).fetchall():
        raise FileError("the table needs an identity column, by which progress is seen")
    seq = audited_in(connection, SCHEMA_TABLE, schema).seq
    audited = sql.SQL(AUDITED).format(seq, sql.Identifier(schema), sql.Identifier(SCHEMA_TABLE))
    try:
        connection.execute(audited)
    except psycopg.errors.UndefinedColumn:
        raise FileError(
            'the table needs a column "payload", for the record, or columns for its members, among them "bench_run" and'
            ' "bench_seq"'
        ) from None
    except psycopg.errors.UndefinedFunction:
        raise FileError('the table\'s column "payload" must be of jsonb or json') from None
    return int(table)


def _fix_functions(connection: Connection, schema: str, renamed: set[str]) -> None:
    """Has every function find names where the file has made them, whatever calls it.

    Raises:
        FileError: one names what bears another name in every trial.
    """
    for function, source, takes_path, settings in connection.execute(FUNCTIONS, [schema]).fetchall():
        if name := names_one_of(source, renamed):
            raise FileError(
                f"function {function} names {name}, which has another name in each trial; use a transition table, or"
                " TG_TABLE_NAME"
            )
        # A procedure with settings of its own could no longer commit; it takes over its caller's path.
        if takes_path and not any(each.startswith("search_path=") for each in settings or ()):
            # PostgreSQL has quoted the function's name itself.
            altered, path = sql.SQL(function), sql.Identifier(schema)
            connection.execute(sql.SQL("ALTER FUNCTION {} SET search_path TO {}, public").format(altered, path))


def _move(connection: Connection, schema: str, belonging: Iterable[str]) -> None:
    run, within = connection.execute, sql.Identifier(schema)
    if schema != SCHEMA_TABLE:
        rename = sql.SQL("ALTER TABLE {}.{} RENAME TO {}")
        run(rename.format(within, sql.Identifier(SCHEMA_TABLE), within))
        # They move along, and those of the default table have their names in `public`.
        for other in belonging:
            run(rename.format(within, sql.Identifier(other), sql.Identifier(f"{schema}_{other}"[:63])))
    run(sql.SQL("COMMENT ON TABLE {}.{} IS {}").format(within, within, sql.Literal(MARK)))
    run(sql.SQL("ALTER TABLE {}.{} SET SCHEMA public").format(within, within))
