"""What sinkbench does to a table itself: as a plain client, before a trial, and to make writes fail."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import sql

from sinkbench.errors import ServiceError
from sinkbench.services.failures import map_exceptions, maps_exceptions
from sinkbench.sinks.kind import SmallDiskMaker
from sinkbench.sinks.postgres.documents import key_table
from sinkbench.sinks.postgres.session import Connection, connect, read_sql
from sinkbench.sinks.values import Destination, Refused
from sinkbench.stack.smalldisk import SmallDisk

ROWS_AT_ONCE = 250_000
# Keys rise with the numbers, which is cheap for the index, and a trial's keys, ids of stations, fall among them.
KEY = "1000000 + number * 9000000 / {} || '-before-' || lpad(number::text, 10, '0'), "
# PostgreSQL's errors about a record, and not about a connection.
REFUSALS = (psycopg.DataError, psycopg.IntegrityError)
NO_CONNECTION = "no connection"
# The server's message and SQLSTATE, by reason. A trigger raises it for a superuser as well, who lacks no right.
SAID: Mapping[str, str] = {
    "read only": "'cannot execute ' || TG_OP || ' in a read-only transaction', ERRCODE = 'read_only_sql_transaction'",
    "no right": "'permission denied for table ' || TG_TABLE_NAME, ERRCODE = 'insufficient_privilege'",
}
REASONS = (*SAID, NO_CONNECTION)
# A client that is disconnected retries at once, and may find a place before it is taken.
CROWD_SECONDS = 10.0
# The tablespace on the small disk. Only one trial at a time has one.
SPACE = sql.Identifier("sinkbench_small_disk")
LOCK_SECONDS, TRIES = 5, 4
THERE = "SELECT FROM pg_tablespace WHERE spcname = 'sinkbench_small_disk'"


@maps_exceptions(psycopg.Error)
class _Connection:
    def __init__(self, to: Destination) -> None:
        self._connection = connect(to.endpoint.address, prepare_threshold=None)
        self.close = self._connection.close
        self._connection.execute("SET search_path TO public")
        self._table = sql.Identifier(to.target)
        if unfilled := self._connection.execute(read_sql("unfilled"), [to.target]).fetchall():
            self.close()
            raise ServiceError(f"PostgreSQL: only a connector fills the column {unfilled[0][0]} of {to.target}")


@maps_exceptions(psycopg.Error)
class Copy(_Connection):
    """One COPY per batch, whose data is encoded in advance."""

    def batch(self, records: Sequence[bytes]) -> bytes:
        return b"".join(_escaped(record) + b"\n" for record in records)

    def write(self, batch: bytes) -> None:
        statement = sql.SQL("COPY {} (payload) FROM STDIN").format(self._table)
        with map_exceptions(*REFUSALS, to=Refused), self._connection.cursor().copy(statement) as copy:
            copy.write(batch)


def _escaped(record: bytes) -> bytes:
    """A value in COPY's text format; a user's record may have several lines."""
    for sign, escape in ((b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t")):
        record = record.replace(sign, escape)
    return record


@maps_exceptions(psycopg.Error)
class Insert(_Connection):
    """One INSERT of many rows per batch, whose statement is made in advance."""

    def batch(self, records: Sequence[bytes]) -> bytes:
        begins = sql.SQL("INSERT INTO {} (payload) VALUES ").format(self._table).as_bytes(self._connection)
        return begins + b",".join(b"('" + record.replace(b"'", b"''") + b"')" for record in records)

    def write(self, batch: bytes) -> None:
        with map_exceptions(*REFUSALS, to=Refused):
            self._connection.execute(batch)


@maps_exceptions(psycopg.Error)
class Writes:
    """Inserts rows before a trial; makes every write to a table fail, as in a read-only transaction, without the right,
    or without a connection; and moves it to a small disk. For both it must be a superuser. What refuses a statement is
    in the trial's own schema, and removed with it."""

    def __init__(self, connection: Connection, dsn: str, rest: Callable[[], None]) -> None:
        """`rest` is called when all rows are inserted."""
        self._connection = connection
        self._dsn = dsn
        self._rest = rest
        # These use up the server's limit (SQLSTATE 53300), and end with this process, however that ends.
        self._crowd: list[Connection] = []

    def fill(self, target: str, rows: int, documents: Sequence[bytes]) -> Iterator[int]:
        table = sql.Identifier(target)
        column, key = ("key, ", KEY) if key_table(self._connection, target) else ("", "")
        keys = sql.SQL(key).format(sql.Literal(rows))
        query = read_sql("copies").format(table=table, column=sql.SQL(column), key=keys)
        texts = [document.decode() for document in documents]
        for first in range(0, rows, ROWS_AT_ONCE):
            end = min(first + ROWS_AT_ONCE, rows)
            self._connection.execute(query, [first, end - 1, texts, len(texts)])
            yield end
        # Otherwise autovacuum would run during the trial.
        self._connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))
        self._rest()

    def refuse(self, target: str, why: str) -> None:
        """Raises ServiceError if others find connections again and again, or this machine has no more of them."""
        if why != NO_CONNECTION:
            said, name = sql.SQL(SAID[why]), sql.Identifier(target)
            self._connection.execute(read_sql("refuse").format(name=name, said=said))
            return
        deadline = time.monotonic() + CROWD_SECONDS
        while True:
            ((others, free),) = self._connection.execute(read_sql("still")).fetchall()
            if not others and free <= 0:
                return
            if time.monotonic() > deadline:
                self.close()
                raise ServiceError(f"PostgreSQL: its connections could not all be taken in {CROWD_SECONDS:g} s")
            self._connection.execute(read_sql("end_others"))
            # Another client may be faster, or is about to leave.
            with suppress(psycopg.OperationalError):
                for _ in range(others + max(free, 0)):
                    self._crowd.append(connect(self._dsn))

    def accept(self, target: str) -> None:
        drop = sql.SQL("DROP FUNCTION IF EXISTS {}.refuse() CASCADE").format(sql.Identifier(target))
        self._connection.execute(drop)
        self.close()

    def discard(self, target: str) -> None:
        self._connection.execute(read_sql("discard").format(name=sql.Identifier(target)))

    def close(self) -> None:
        while self._crowd:
            self._crowd.pop().close()

    @contextmanager
    def disk(self, target: str, small_disk: SmallDiskMaker) -> Iterator[SmallDisk]:
        """Moves a table and its indexes to a small disk of the server's machine, which the server's account owns.
        Raises ServiceError if the table cannot be moved there, or back."""
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
        create = sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(SPACE, sql.Literal(str(directory)))
        self._connection.execute(create)
        for kind, name in self._connection.execute(read_sql("parts"), [target]).fetchall():
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
