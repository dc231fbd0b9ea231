"""PostgreSQL as a sink: one table per trial, and PgBouncer's pools for connectors that use it."""

from sinkbench.sinks.kind import SMALL_DISK, SinkKind
from sinkbench.sinks.postgres.asking import propose_table
from sinkbench.sinks.postgres.clients import CHECKUP, RULES, refusal
from sinkbench.sinks.postgres.configs import misfits
from sinkbench.sinks.postgres.documents import ExistingTable
from sinkbench.sinks.postgres.service import PGBOUNCER, POSTGRES
from sinkbench.sinks.postgres.session import SETTABLE
from sinkbench.sinks.postgres.sink import open_postgres
from sinkbench.sinks.postgres.writing import REASONS, Copy, Insert

KIND = SinkKind(
    name="postgres",
    services=(POSTGRES, PGBOUNCER),
    open=open_postgres,
    writers={"COPY": Copy, "INSERT": Insert},
    rules=RULES,
    target_ending=".sql",
    columns=True,
    settable=SETTABLE,
    refuses=REASONS,
    full_disk=SMALL_DISK,
    stamps=True,
    clients=("psycopg",),
    refusal=refusal,
    misfits=misfits,
    propose=propose_table,
    checkup=CHECKUP,
    existing=ExistingTable,
)
