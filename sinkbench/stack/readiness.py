"""Whether a service is ready for work: each check asks the service itself for what clients will ask of it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import httpx
import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sinkbench.errors import StackError
from sinkbench.stack import Endpoints

__all__ = ["Check", "checks"]

Check = Callable[[], str | None]
"""None when ready, else what is missing."""

TIMEOUT_SECONDS = 2.0

SILENT = logging.getLogger("sinkbench.readiness.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def _kafka(bootstrap: str) -> str | None:
    # librdkafka prints every refused connection to standard error unless it is told not to.
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT)
    try:
        admin.list_topics(timeout=TIMEOUT_SECONDS)
    except KafkaException as error:
        return str(error.args[0].str())
    return None


# One client for all checks: each new one reads the certificates of the system again. Nothing of the environment is
# trusted: a proxy set there is not meant for loopback.
HTTP = httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False)


def _elasticsearch(url: str) -> str | None:
    try:
        answer = HTTP.get(f"{url}/_cluster/health")
    except httpx.HTTPError as error:
        return str(error)
    if answer.status_code != httpx.codes.OK:
        return f"HTTP {answer.status_code}"
    status = answer.json()["status"]
    return None if status in ("green", "yellow") else f"its state is {status}"


def _connect(url: str, plugins: frozenset[str]) -> str | None:
    try:
        # The worker answers this one only when it has joined its group and read its configurations.
        listed = HTTP.get(f"{url}/connectors")
        found = HTTP.get(f"{url}/connector-plugins")
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    if listed.status_code != httpx.codes.OK or found.status_code != httpx.codes.OK:
        return f"HTTP {listed.status_code}"
    absent = plugins - {plugin["class"] for plugin in found.json()}
    if absent:
        raise StackError(
            f"{url}: this worker has no plugin {', '.join(sorted(absent))}; see its log, and its plugin.path"
        )
    return None


def _postgres(dsn: str) -> str | None:
    try:
        with psycopg.connect(dsn, connect_timeout=2, autocommit=True) as connection:
            connection.execute("SHOW VERSION" if "dbname=pgbouncer" in dsn else "SELECT 1")
    except psycopg.Error as error:
        return str(error).strip().splitlines()[0]
    return None


def checks(endpoints: Endpoints, plugins: frozenset[str] = frozenset()) -> dict[str, Check]:
    """The check of each service, by its name, in the order in which they are started.

    Args:
        endpoints: where the services are.
        plugins: classes of connectors that every worker must have found.
    """
    found: dict[str, Check] = {"kafka": lambda: _kafka(endpoints.kafka)}
    if (elasticsearch := endpoints.elasticsearch) is not None:
        found["elasticsearch"] = lambda: _elasticsearch(elasticsearch)
    if (postgres := endpoints.postgres) is not None:
        found["postgres"] = lambda: _postgres(postgres)
    if (pgbouncer := endpoints.pgbouncer_admin) is not None:
        found["pgbouncer"] = lambda: _postgres(pgbouncer)
    found.update({name: _connect_check(url, plugins) for name, url in endpoints.connect.items()})
    return found


def _connect_check(url: str, plugins: frozenset[str]) -> Check:
    return lambda: _connect(url, plugins)
