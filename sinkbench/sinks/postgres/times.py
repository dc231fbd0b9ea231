"""Arrival times in a table, which keeps the server's time of every insertion."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass

import numpy as np
import psycopg
from psycopg import sql

from sinkbench.analysis.rates import HIGH_SHARE, LOW_SHARE
from sinkbench.errors import StackError
from sinkbench.services.failures import maps_exceptions
from sinkbench.sinks.arrivals import Arrivals, ArrivalWatch, clock_offset
from sinkbench.sinks.postgres.audited import audited_in, key_table
from sinkbench.sinks.postgres.schema import set_session
from sinkbench.sinks.postgres.session import Connection, connect

CLOCK_QUESTIONS = 9
CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


@maps_exceptions(psycopg.Error)
class Times:
    def __init__(self, connection: Connection, dsn: str) -> None:
        self._connection = connection
        self._dsn = dsn

    def watch(self, target: str, interval_seconds: float) -> AbstractContextManager[ArrivalWatch]:
        # It connects when it is read: this connection may be lost until then, but a restarted server has the times.
        return nullcontext(_Stamps(self._dsn, target))

    def rate(self, target: str, records: int) -> float | None:
        if key_table(self._connection, target):
            # An update keeps the time of the row's insertion.
            return None
        # Rows are numbered as they are inserted, so two of them suffice, whatever the size of the table.
        first, last = max(1, round(LOW_SHARE * records)), round(HIGH_SHARE * records)
        query = sql.SQL("SELECT extract(epoch FROM stored)::float8 FROM {} WHERE id IN (%s, %s) ORDER BY id")
        try:
            rows = self._connection.execute(query.format(sql.Identifier(target)), [first, last]).fetchall()
        except psycopg.errors.UndefinedColumn:
            return None
        found = [float(stored) for (stored,) in rows]
        if len(found) < 2 or found[1] <= found[0]:
            return None
        return (last - first) / (found[1] - found[0])


@maps_exceptions(psycopg.Error)
@dataclass(frozen=True)
class _Stamps(AbstractContextManager["_Stamps"]):
    """An `ArrivalWatch` of one table."""

    dsn: str
    target: str

    def __exit__(self, *ended: object) -> None:
        return

    def read(self, run: str, one_in: int) -> Arrivals:
        """Raises StackError if the table has no column "stored" with the time of insertion."""
        with closing(connect(self.dsn)) as connection:
            set_session(connection)
            return _stamps(connection, self.target, run, one_in)


def _stamps(connection: Connection, target: str, run: str, one_in: int) -> Arrivals:
    of = audited_in(connection, target)
    query = sql.SQL(
        "SELECT ({due})::bigint, (extract(epoch FROM stored) * 1000000)::bigint FROM {table} "
        "WHERE {run} = %s AND ({seq})::bigint %% %s = 0"
    ).format(due=of.due_us, table=sql.Identifier(target), run=of.run, seq=of.seq)
    try:
        rows = np.array(connection.execute(query, [run, one_in]).fetchall(), dtype=np.float64).reshape(-1, 2)
    except psycopg.errors.UndefinedColumn as error:
        lacks = str(error).strip().splitlines()[0]
        raise StackError(
            f'the latency needs a column "stored" with the insertion time, and when a record was due: {lacks}'
        ) from None
    offset_us, resolution_us = clock_offset([_ask_clock(connection) for _ in range(CLOCK_QUESTIONS)])
    return Arrivals(rows[:, 0], rows[:, 1] - offset_us, resolution_us)


def _ask_clock(connection: Connection) -> tuple[float, float, float]:
    """Microseconds since the epoch: by this machine's clock, by the server's, and by this machine's again."""
    before = time.time_ns() / 1000
    ((theirs,),) = connection.execute(CLOCK).fetchall()
    return before, float(theirs), time.time_ns() / 1000
