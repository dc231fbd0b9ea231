"""Connection strings of a stack's PostgreSQL and PgBouncer, secured or not."""

from __future__ import annotations

from psycopg.conninfo import make_conninfo

from sinkbench.stack.security import ACCOUNT, Security

__all__ = ["dsn", "shown_dsn"]


def dsn(security: Security | None, host: str, port: int | str, database: str) -> str:
    """What a client connects with; `host` and `port` may each name several, separated by commas."""
    if security is None:
        return f"host={host} user={ACCOUNT} password={ACCOUNT} port={port} dbname={database}"
    return make_conninfo(
        host=host,
        user=ACCOUNT,
        password=security.passwords["postgres"],
        port=port,
        dbname=database,
        sslmode="verify-full",
        sslrootcert=str(security.ca),
    )


def shown_dsn(security: Security | None, host: str, port: int | str) -> str:
    """The same of the stack's database, for a person: without a password that is none of everybody's."""
    if security is None:
        return dsn(None, host, port, ACCOUNT)
    return f"host={host} user={ACCOUNT} port={port} dbname={ACCOUNT} sslmode=verify-full"
