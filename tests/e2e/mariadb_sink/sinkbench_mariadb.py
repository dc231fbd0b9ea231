"""MariaDB as a sink of sinkbench: a table a trial."""
# ruff: noqa: S608 - the names of tables are made by sinkbench, of letters, digits and "_"

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pymysql
from pydantic import Field

from sinkbench.analysis.words import percent
from sinkbench.bottleneck.evidence import Evidence
from sinkbench.bottleneck.rules import Finding, share_of_tasks
from sinkbench.errors import StackError
from sinkbench.services.access import Access
from sinkbench.services.failures import in_one_line, maps_exceptions
from sinkbench.sinks import Capabilities, Created, Destination, SinkKind, SinkReading, SinkSettings
from sinkbench.stack import Endpoint, Endpoints
from sinkbench.stack.registry import About, SinkService
from sinkbench.stack.sections import Secret, SinkSection

# A table without this comment belongs to somebody else, and is left alone.
MARK = "made by sinkbench"
DURABILITY = ("innodb_flush_log_at_trx_commit", "sync_binlog")
TUNING = ("innodb_buffer_pool_size", "innodb_log_file_size")


class Section(SinkSection):
    """The section `mariadb` of a stack file."""

    address_key: ClassVar[str] = "host"

    host: str
    port: int = 3306
    database: str
    user: str
    password: Secret = Field(repr=False)

    def endpoint(self) -> Endpoint:
        address = f"{self.host}:{self.port}/{self.database}"
        return Endpoint(address, access=Access(user=self.user, password=self.password))


def connect(endpoint: Endpoint, timeout_seconds: float = 10.0) -> Any:
    where, _, database = endpoint.address.partition("/")
    host, _, port = where.rpartition(":")
    user, password = endpoint.access.user, endpoint.access.password
    return pymysql.connect(
        host=host,
        port=int(port),
        user=user,
        password=password or "",
        database=database,
        autocommit=True,
        connect_timeout=max(1, round(timeout_seconds)),
    )


def ready(endpoint: Endpoint, shared: bool, timeout_seconds: float) -> str | None:
    try:
        connect(endpoint, timeout_seconds).close()
    except pymysql.MySQLError as error:
        return in_one_line(error)
    return None


@maps_exceptions(pymysql.MySQLError)
class MariaDb:
    """One database."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._connection = connect(endpoint)
        self.capabilities = Capabilities()

    def _ask(self, question: str, *values: object) -> Sequence[tuple[Any, ...]]:
        """All rows of the answer."""
        with self._connection.cursor() as cursor:
            # Without values a "%" in the question is one.
            cursor.execute(question, values or None)
            return list(cursor.fetchall())

    def version(self) -> str:
        return str(self._ask("SELECT VERSION()")[0][0])

    def create(self, target: str, file: Path | None = None) -> Created:
        try:
            self._ask(
                f"CREATE TABLE `{target}` (id BIGINT AUTO_INCREMENT PRIMARY KEY, payload LONGTEXT NOT NULL,"
                f" stored DATETIME(6) NOT NULL DEFAULT UTC_TIMESTAMP(6)) COMMENT '{MARK}'"
            )
        except pymysql.MySQLError as error:
            raise StackError(f"MariaDB did not make the table {target}: {in_one_line(error)}") from None
        return Created()

    def _comments(self, prefix: str) -> dict[str, str]:
        rows = self._ask(
            "SELECT table_name, table_comment FROM information_schema.tables"
            " WHERE table_schema = DATABASE() AND LEFT(table_name, %s) = %s",
            len(prefix),
            prefix,
        )
        return {str(name): str(comment) for name, comment in rows}

    def drop(self, target: str) -> None:
        if self._comments(target).get(target, MARK) != MARK:
            raise StackError(f"MariaDB: sinkbench has not made the table {target}, and does not drop it")
        self._ask(f"DROP TABLE IF EXISTS `{target}`")

    def read(self, target: str) -> SinkReading:
        ((backends,),) = self._ask(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        )
        ((_, locked),) = self._ask("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
        return SinkReading(self.count(target), int(backends), signs={"mariadb_wait_lock": float(locked)})

    def settle(self, target: str) -> None:
        """Nothing to do: what is committed is visible."""

    def writes(self, target: str) -> int | None:
        return None

    def connection_limit(self) -> int | None:
        return int(self._ask("SELECT @@max_connections")[0][0])

    def settings(self, target: str, config: Mapping[str, str]) -> SinkSettings:
        found = {str(name): str(value) for name, value in self._ask("SHOW GLOBAL VARIABLES")}
        return SinkSettings(*({name: found.get(name) for name in names} for names in (DURABILITY, TUNING)))

    def count(self, target: str) -> int:
        return int(self._ask(f"SELECT COUNT(*) FROM `{target}`")[0][0])

    def disk_bytes(self, target: str) -> int | None:
        return None

    def sequences(self, target: str, run: str) -> Iterator[npt.NDArray[np.int64]]:
        with self._connection.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(
                f"SELECT CAST(JSON_VALUE(payload, '$.bench.seq') AS INTEGER) FROM `{target}`"
                " WHERE JSON_VALUE(payload, '$.bench.run') = %s AND JSON_VALUE(payload, '$.bench.seq') IS NOT NULL",
                [run],
            )
            while rows := cursor.fetchmany(50_000):
                yield np.array([seq for (seq,) in rows], dtype=np.int64)

    def leftovers(self, prefix: str) -> list[str]:
        return sorted(name for name, comment in self._comments(prefix).items() if comment == MARK)

    def offer_default(self) -> None:
        if "tides" not in self._comments("tides"):
            self.create("tides")

    def close(self) -> None:
        self._connection.close()


@maps_exceptions(pymysql.MySQLError)
class Insert:
    """A plain client: one INSERT of many rows a batch."""

    def __init__(self, to: Destination) -> None:
        self._connection = connect(to.endpoint)
        self._target = to.target

    def batch(self, records: Sequence[bytes]) -> str:
        rows = ",".join(f"({self._connection.escape(record.decode())})" for record in records)
        return f"INSERT INTO `{self._target}` (payload) VALUES {rows}"

    def write(self, batch: str) -> None:
        self._connection.query(batch)

    def close(self) -> None:
        self._connection.close()


def lock_waits(seen: Evidence) -> Finding | None:
    """Inserts of 30 % of the tasks, on average, wait for a row that another transaction has locked."""
    share = share_of_tasks(seen, "mariadb_wait_lock")
    if share is None or share < 0.3:
        return None
    return Finding("mariadb", "lock waits", f"{percent(share)} of the tasks' inserts wait for a lock", share)


def open_mariadb(endpoints: Endpoints, checkout: Path) -> MariaDb:
    return MariaDb(endpoints.sinks["mariadb"])


def about(endpoint: Endpoint) -> About:
    sink = MariaDb(endpoint)
    try:
        return About(version=sink.version())
    finally:
        sink.close()


KIND = SinkKind(
    name="mariadb",
    services=(SinkService(name="mariadb", title="MariaDB", section=Section, ready=ready, about=about),),
    open=open_mariadb,
    writers={"INSERT": Insert},
    rules=(lock_waits,),
    clients=("PyMySQL",),
)
