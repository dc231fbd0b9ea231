"""Creates `schema.sql` in a schema of a trial's name, and removes it. The table moves to `public`, for connectors."""

from collections.abc import Iterable, Mapping

import psycopg
from psycopg import sql

from sinkbench.analysis.words import few_of
from sinkbench.errors import StackError, TargetError
from sinkbench.sinks.postgres.documents import audited_in
from sinkbench.sinks.postgres.session import SCHEMA_TABLE, Connection, read_sql, set_session

# The comment on tables and schemas that sinkbench created; what lacks it belongs to others.
MARK = "made by sinkbench for a trial; it may be dropped"

MARKED = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"

Objects = Mapping[tuple[str, int], str]


def make(connection: Connection, text: str, target: str) -> None:
    """Creates the table `target` in `public`, and a schema of that name with all else that the SQL creates.

    `text` is SQL that creates the table `tides`; the connection is in autocommit mode. Raises TargetError if the SQL is
    invalid, its table cannot be used, or it creates or drops what is not the trial's alone; nothing of it remains then,
    unless it ended its transaction. Raises psycopg.Error for anything else, such as an existing table of that name."""
    run, schema = connection.execute, sql.Identifier(target)
    with connection.transaction():
        # Others' concurrent changes are not visible: every difference is the file's.
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
            raise TargetError(str(error).strip().splitlines()[0]) from None
        # The file's settings must not outlast it, on a connection that continues.
        run("RESET ALL")
        set_session(connection)
        run("DISCARD TEMP")
        if run("SELECT txid_current()").fetchall() != transaction:
            raise TargetError("it ends the transaction that it is run in; leave BEGIN and COMMIT out")
        if problem := difference(before, _elsewhere(connection, target)):
            raise TargetError(problem)
        table = _checked_table(connection, target)
        belonging = [str(name) for (name,) in run(read_sql("belonging"), {"table": table}).fetchall()]
        for (function,) in run(read_sql("functions"), [target]).fetchall():
            # PostgreSQL has quoted the function's name itself.
            run(sql.SQL("ALTER FUNCTION {} SET search_path TO {}, public").format(sql.SQL(function), schema))
        _move(connection, target, belonging)


def remove(connection: Connection, target: str) -> None:
    """Drops the table in `public` and the schema with all else. Raises StackError if that drops others' objects."""
    run, name = connection.execute, sql.Identifier(target)
    with connection.transaction():
        run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if schema_comment(connection, target) != MARK:
            run(sql.SQL("DROP TABLE IF EXISTS public.{}").format(name))
            return
        # So that all that is dropped is in one schema.
        run(sql.SQL("ALTER TABLE IF EXISTS public.{} SET SCHEMA {}").format(name, name))
        before = _elsewhere(connection, target)
        run(sql.SQL("DROP SCHEMA {} CASCADE").format(name))
        if lost := _missing(before, _elsewhere(connection, target)):
            raise StackError(f"PostgreSQL: {lost} needs what sinkbench has made for {target}; drop that first")


def schema_comment(connection: Connection, target: str) -> str | None:
    """The comment on a schema: `MARK` if it is sinkbench's, empty if it has none; None if there is no such schema."""
    found = connection.execute(MARKED, [target]).fetchall()
    return str(found[0][0] or "") if found else None


def difference(before: Objects, after: Objects) -> str | None:
    """What SQL has created or dropped outside of its own schema, for a person; None if nothing differs."""
    if removed := _missing(before, after):
        return f"it removes {removed}, which it has not made; leave that out"
    if made := _missing(after, before):
        stays = "outside of the trial's own schema, where that would stay"
        return f"it makes {made} {stays}; name it without a schema, or make it once manually"
    return None


def _missing(these: Objects, among: Objects) -> str:
    """The first of `these` that are not in `among`, for a person; empty if all are."""
    return few_of([f"{each[0]} {name}" for each, name in these.items() if each not in among])


def _elsewhere(connection: Connection, schema: str) -> dict[tuple[str, int], str]:
    """The objects outside of a schema, the most informative first."""
    rows = connection.execute(read_sql("elsewhere"), {"schema": schema}).fetchall()
    ranks = ["extension", "schema", "table"]
    rows.sort(key=lambda row: (ranks.index(row[0]) if row[0] in ranks else len(ranks), row[0], row[2]))
    return {(str(kind), int(oid)): str(name) for kind, oid, name in rows}


def _checked_table(connection: Connection, schema: str) -> int:
    """The OID of the table that the file created. Raises TargetError if it lacks something."""
    if not (found := connection.execute(read_sql("table"), [schema, SCHEMA_TABLE]).fetchall()):
        raise TargetError(f"it makes no table {SCHEMA_TABLE}")
    ((table, is_table, has_identity),) = found
    if not is_table:
        raise TargetError(f"its {SCHEMA_TABLE} is no table")
    if not has_identity:
        raise TargetError("the table needs an identity column, by which progress is seen")
    seq = audited_in(connection, SCHEMA_TABLE, schema).seq
    audited = sql.SQL("SELECT {} FROM {} LIMIT 0").format(seq, sql.Identifier(schema, SCHEMA_TABLE))
    try:
        connection.execute(audited)
    except psycopg.errors.UndefinedColumn:
        members = 'columns for its members, among them "bench_run" and "bench_seq"'
        raise TargetError(f'the table needs a column "payload", for the record, or {members}') from None
    except psycopg.errors.UndefinedFunction:
        raise TargetError('the table\'s column "payload" must be of jsonb or json') from None
    return int(table)


def _move(connection: Connection, schema: str, belonging: Iterable[str]) -> None:
    run, within = connection.execute, sql.Identifier(schema)
    if schema != SCHEMA_TABLE:
        rename = sql.SQL("ALTER TABLE {}.{} RENAME TO {}")
        run(rename.format(within, sql.Identifier(SCHEMA_TABLE), within))
        # They move with the table; those of the default table are named so in `public`.
        for other in belonging:
            run(rename.format(within, sql.Identifier(other), sql.Identifier(f"{schema}_{other}"[:63])))
    run(sql.SQL("COMMENT ON TABLE {}.{} IS {}").format(within, within, sql.Literal(MARK)))
    run(sql.SQL("ALTER TABLE {}.{} SET SCHEMA public").format(within, within))
