"""PostgreSQL and PgBouncer as services: their sections of a stack file, readiness, and versions."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from sinkbench.errors import ServiceError
from sinkbench.services.failures import in_one_line, map_exceptions
from sinkbench.services.versions import Supported
from sinkbench.sinks.postgres import roles
from sinkbench.sinks.postgres.poolmetrics import METRICS, PoolMetrics
from sinkbench.stack import Endpoint
from sinkbench.stack.registry import About, SinkService
from sinkbench.stack.sections import AS_REFERENCE, NOT_A_FILE, Secret, SinkSection, Urls, Variables, existing_file
from sinkbench.stack.tools import find_postgres, find_program
from sinkbench.yamlfile import mistake, shown

DSN_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile")
SHOWN = ("host", "port", "dbname")
STREAMS = "SELECT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')"
CREATE_RIGHTS = "SELECT has_database_privilege(current_database(), 'CREATE'), has_schema_privilege('public', 'CREATE')"


def _dsn(value: object, info: ValidationInfo) -> str:
    """Checks a libpq connection string of key=value pairs without a password, and resolves its files."""
    if not isinstance(value, str):
        raise mistake(f"{{name}} must be a connection string, found {shown(value)}")
    try:
        parts: dict[str, Any] = conninfo_to_dict(value)
    # libpq's error for an unreadable string quotes from it.
    except psycopg.ProgrammingError:
        raise mistake("{name} must be a connection string like 'host=db port=5432 dbname=bench user=bench'") from None
    if "password" in parts:
        raise mistake(f"{{name}} must not hold a password; use the key 'password', and {AS_REFERENCE}")
    if "sslpassword" in parts:
        raise mistake("{name} must not hold sslpassword; give a sslkey that needs none")
    for key in DSN_FILES:
        if key in parts and parts[key] not in NOT_A_FILE:
            parts[key] = str(existing_file(parts[key], info))
    return make_conninfo("", **parts)


class _Dsn(SinkSection):
    address_key: ClassVar[str] = "dsn"

    dsn: Annotated[str, BeforeValidator(_dsn)] = Field(repr=False)
    password: Secret | None = Field(default=None, repr=False)

    def endpoint(self) -> Endpoint:
        parts = conninfo_to_dict(self.dsn)
        where = " ".join(f"{key}={parts[key]}" for key in SHOWN if key in parts)
        return Endpoint(self.dsn if self.password is None else make_conninfo(self.dsn, password=self.password), where)


class Postgres(_Dsn):
    def variables(self) -> Mapping[str, str]:
        # The driver's defaults: workers trust other authorities than the controller.
        return {"POSTGRES_SSLMODE": "prefer", "POSTGRES_CA": ""}


class PgBouncer(_Dsn):
    """PgBouncer's own console, where its pools are counted, or a database through it and its `metrics`."""

    metrics: Urls = Field(default=(), description="if the console is closed: of each pod of CloudNativePG's Pooler")
    settings: Variables = Field(default_factory=dict, description="with metrics: the parameters of PgBouncer")

    @model_validator(mode="after")
    def _has_console_or_metrics(self) -> Self:
        if not self.metrics and conninfo_to_dict(self.dsn).get("dbname") != "pgbouncer":
            raise mistake("{name}.dsn must name dbname=pgbouncer, PgBouncer's own console; or give 'metrics'", "dsn")
        return self

    def endpoint(self) -> Endpoint:
        found = super().endpoint()
        options = {**self.settings, METRICS: " ".join(self.metrics)}
        return replace(found, shown=f"Pooler {found.shown}", options=options) if self.metrics else found


def postgres_ready(endpoint: Endpoint, shared: bool, timeout_seconds: float) -> str | None:
    if endpoint.options.get("role") == "replica":
        return _problem(endpoint, STREAMS, timeout_seconds, "it does not stream from the primary")
    return _problem(endpoint, CREATE_RIGHTS if shared else "SELECT true", timeout_seconds)


def _problem(endpoint: Endpoint, question: str, timeout_seconds: float, otherwise: str = "") -> str | None:
    """Why a question fails, or `otherwise` if its answer is false; the default names missing rights."""
    try:
        seconds = max(2, round(timeout_seconds))
        with psycopg.connect(endpoint.address, connect_timeout=seconds, autocommit=True) as connection:
            user, found = connection.info.user, connection.execute(question.encode()).fetchall()[0]
    except psycopg.Error as error:
        return str(error).strip().splitlines()[0]
    if all(found):
        return None
    return otherwise or f"{user} may not make schemas in this database, or tables in its schema public"


def pgbouncer_ready(endpoint: Endpoint, shared: bool, timeout_seconds: float) -> str | None:
    if METRICS not in endpoint.options:
        return _problem(endpoint, "SHOW VERSION", timeout_seconds)
    with closing(PoolMetrics(endpoint)) as pools:
        try:
            pools.execute(b"SHOW POOLS")
        except ServiceError as error:
            return f"its metrics: {in_one_line(error)}"
    return _problem(endpoint, "SELECT true", timeout_seconds)


def about(endpoint: Endpoint) -> About:
    # Without its console PgBouncer tells the server's version.
    if METRICS in endpoint.options:
        return About()
    with map_exceptions(psycopg.Error), psycopg.connect(endpoint.address, connect_timeout=10) as connection:
        # As the server says at login: "17.2", or "1.18.0/bouncer".
        return About(connection.info.parameter_status("server_version"))


POSTGRES = SinkService(
    name="postgres",
    title="PostgreSQL",
    section=Postgres,
    ready=postgres_ready,
    about=about,
    usable_cores=lambda tasks: (float(tasks), "that a process for each task can use"),
    supported=Supported("13 to 18", (13,), (19,)),
    ports=("postgres_port",),
    script="postgres/run",
    # Fast shutdown: SIGTERM would wait for every client to leave.
    stop_signal="INT",
    programs=lambda: {"POSTGRES_BIN": str(find_postgres())},
    needs=roles.postgres_needs,
    shared=roles.postgres_shared,
    own=roles.postgres_own,
    endpoint=roles.postgres_endpoint,
    variables={"POSTGRES_HOST": "{host}", "POSTGRES_PORT": "{port}"},
    roles=roles.PostgresRoles,
)
PGBOUNCER = SinkService(
    name="pgbouncer",
    title="PgBouncer",
    section=PgBouncer,
    ready=pgbouncer_ready,
    about=about,
    usable_cores=lambda tasks: (1.0, "that its only thread can use"),
    measures="connections through a pooler",
    supported=Supported("1.18 and later", (1, 18)),
    ports=("pgbouncer_port",),
    script="postgres/run-pgbouncer",
    # SIGTERM waits for clients in newer versions; SIGQUIT and SIGINT differ between versions. A SIGKILL loses nothing.
    stop_signal="INT",
    stop_seconds=5,
    programs=lambda: {"PGBOUNCER_BIN": str(find_program("pgbouncer", "pgbouncer"))},
    needs=roles.postgres_needs,
    endpoint=roles.pgbouncer_endpoint,
    variables={"PGBOUNCER_HOST": "{host}", "PGBOUNCER_PORT": "{port}"},
)
