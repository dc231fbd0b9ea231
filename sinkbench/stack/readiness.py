"""Whether a service is ready for work: each check asks the service itself for what clients will ask of it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import httpx
import psycopg

from sinkbench.errors import StackError
from sinkbench.kafka import Kafka
from sinkbench.secrets import redacted
from sinkbench.stack import Access, Endpoints
from sinkbench.stack.access import http_client

__all__ = ["Check", "checks"]

Check = Callable[[], str | None]
"""None when ready, else what is missing."""

TIMEOUT_SECONDS = 2.0
CREATE_RIGHTS = "SELECT has_database_privilege(current_database(), 'CREATE'), has_schema_privilege('public', 'CREATE')"


# One client for all checks of a kind: each new one reads the certificates of the system again. They are asked for by
# several threads at once, of which the cache alone would let each make its own, and leave it open.
_cached = functools.cache(http_client)
_making = threading.Lock()


def _http(access: Access, timeout_seconds: float) -> httpx.Client:
    with _making:
        return _cached(access, timeout_seconds)


def _kafka(endpoints: Endpoints, timeout_seconds: float) -> str | None:
    try:
        return Kafka(endpoints.kafka, endpoints.kafka_settings).problem(timeout_seconds)
    except StackError as error:
        return str(error)


def _said(answer: httpx.Response, most: int) -> str:
    # Before it is cut: half a secret would not be found any more.
    return " ".join(redacted(answer.text).split())[:most]


def _refusal(answer: httpx.Response) -> str | None:
    """What a service says that does not answer with 200, in one short line; None if it does."""
    if answer.status_code == httpx.codes.OK:
        return None
    said = _said(answer, 200)
    return f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip() + (f": {said}" if said else "")


def _elasticsearch(url: str, access: Access, timeout_seconds: float) -> str | None:
    try:
        answer = _http(access, timeout_seconds).get(f"{url}/_cluster/health")
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    # Whoever may not ask for the cluster's health has shown who they are all the same.
    if answer.status_code == httpx.codes.FORBIDDEN:
        return None
    if (refusal := _refusal(answer)) is not None:
        return refusal
    try:
        status = answer.json()["status"]
    except (ValueError, KeyError, TypeError):
        return f"it is no Elasticsearch: {_said(answer, 100)}"
    return None if status in ("green", "yellow") else f"its state is {status}"


def _connect(url: str, plugins: frozenset[str], access: Access, timeout_seconds: float) -> str | None:
    http = _http(access, timeout_seconds)
    try:
        # The worker answers this one only when it has joined its group and read its configurations.
        listed = http.get(f"{url}/connectors")
        found = http.get(f"{url}/connector-plugins")
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    if (refusal := _refusal(listed) or _refusal(found)) is not None:
        return refusal
    try:
        absent = plugins - {plugin["class"] for plugin in found.json()}
    except (ValueError, KeyError, TypeError):
        return f"it is no Kafka Connect: {_said(found, 100)}"
    if absent:
        raise StackError(
            f"{url}: this worker has no plugin {', '.join(sorted(absent))}; see its log, and its plugin.path"
        )
    return None


def _postgres(dsn: str, timeout_seconds: float, *, rights: bool) -> str | None:
    try:
        with psycopg.connect(dsn, connect_timeout=max(2, round(timeout_seconds)), autocommit=True) as connection:
            asked = CREATE_RIGHTS if rights else "SELECT true, true"
            ((in_database, in_public),) = connection.execute(asked).fetchall()
            user = connection.info.user
    except psycopg.Error as error:
        return str(error).strip().splitlines()[0]
    if not (in_database and in_public):
        return f"{user} may not make schemas in this database, or tables in its schema public"
    return None


def _pgbouncer(dsn: str, timeout_seconds: float) -> str | None:
    try:
        with psycopg.connect(dsn, connect_timeout=max(2, round(timeout_seconds)), autocommit=True) as connection:
            connection.execute("SHOW VERSION")
    except psycopg.Error as error:
        return str(error).strip().splitlines()[0]
    return None


def checks(
    endpoints: Endpoints, plugins: frozenset[str] = frozenset(), timeout_seconds: float = TIMEOUT_SECONDS
) -> dict[str, Check]:
    """The check of each service, by its name, in the order in which they are started.

    Args:
        endpoints: where the services are.
        plugins: classes of connectors that every worker must have found.
        timeout_seconds: how long a service may take to answer.
    """
    patience = timeout_seconds
    found: dict[str, Check] = {"kafka": lambda: _kafka(endpoints, patience)}
    if (elasticsearch := endpoints.elasticsearch) is not None:
        found["elasticsearch"] = lambda: _elasticsearch(elasticsearch, endpoints.elasticsearch_access, patience)
    if (postgres := endpoints.postgres) is not None:
        found["postgres"] = lambda: _postgres(postgres, patience, rights=endpoints.shared)
    if (pgbouncer := endpoints.pgbouncer_admin) is not None:
        found["pgbouncer"] = lambda: _pgbouncer(pgbouncer, patience)
    for name, url in endpoints.connect.items():
        found[name] = functools.partial(_connect, url, plugins, endpoints.connect_access, patience)
    return found
