"""Whether a service is ready for work: each check asks the service itself for what clients will ask of it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping

import httpx
from pydantic import ValidationError

from loadgen.summary import LoadState
from sinkbench.errors import ServiceError, StackError
from sinkbench.secrets import redacted
from sinkbench.services.access import Access
from sinkbench.services.http import http_client
from sinkbench.services.kafka import Kafka
from sinkbench.stack import Endpoints
from sinkbench.stack.registry import sink_service

__all__ = ["Check", "checks", "loadgen_checks", "refusal", "said", "shared_client"]

Check = Callable[[], str | None]
"""None when ready, else what is missing."""

TIMEOUT_SECONDS = 2.0


# One client for all checks of a kind: each new one reads the certificates of the system again. They are asked for by
# several threads at once, of which the cache alone would let each make its own, and leave it open.
_making = threading.Lock()


@functools.cache
def _cached(access: Access, timeout_seconds: float) -> httpx.Client:
    client = http_client(access, timeout_seconds)
    # Nobody closes it, so no connection may stay open after an answer.
    client.headers["connection"] = "close"
    return client


def shared_client(access: Access, timeout_seconds: float) -> httpx.Client:
    """A client that all checks of such services use. It is not closed, and keeps no connection."""
    with _making:
        return _cached(access, timeout_seconds)


def _kafka(bootstrap: str, number: int | None, settings: Mapping[str, str], timeout_seconds: float) -> str | None:
    """Asks what answers there, and whether the broker of that number takes part in its cluster."""
    try:
        kafka = Kafka(bootstrap, settings)
        problem = kafka.problem(timeout_seconds)
        if problem is not None or number is None or number in kafka.brokers(timeout_seconds):
            return problem
    except ServiceError as error:
        return str(error)
    return f"broker {number} is none of its cluster's yet"


def said(answer: httpx.Response, most: int) -> str:
    """The first characters of an answer, at most so many, in one line."""
    # Before it is cut: half a secret would not be found any more.
    return " ".join(redacted(answer.text).split())[:most]


def refusal(answer: httpx.Response) -> str | None:
    """What a service says that does not answer with 200, in one short line; None if it does."""
    if answer.status_code == httpx.codes.OK:
        return None
    text = said(answer, 200)
    return f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip() + (f": {text}" if text else "")


def _connect(url: str, plugins: frozenset[str], access: Access, timeout_seconds: float) -> str | None:
    http = shared_client(access, timeout_seconds)
    try:
        # The worker answers this one only when it has joined its group and read its configurations.
        listed = http.get(f"{url}/connectors")
        found = http.get(f"{url}/connector-plugins")
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    if (problem := refusal(listed) or refusal(found)) is not None:
        return problem
    try:
        absent = plugins - {plugin["class"] for plugin in found.json()}
    except (ValueError, KeyError, TypeError):
        return f"it is no Kafka Connect: {said(found, 100)}"
    if absent:
        raise StackError(
            f"{url}: this worker has no plugin {', '.join(sorted(absent))}; see its log, and its plugin.path"
        )
    return None


def _loadgen(url: str, access: Access, timeout_seconds: float) -> str | None:
    http = shared_client(access, timeout_seconds)
    try:
        # Not its /health, which answers everybody.
        answer = http.get(f"{url}/load")
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    if (problem := refusal(answer)) is not None:
        return problem
    try:
        LoadState.model_validate_json(answer.content)
    except ValidationError:
        return f"it is no load generator of this version: {said(answer, 100)}"
    return None


def loadgen_checks(endpoints: Endpoints, timeout_seconds: float = TIMEOUT_SECONDS) -> dict[str, Check]:
    """The check of each load generator that runs as a service, by its name: whether it lets us in."""
    access = endpoints.loadgen_access
    return {name: functools.partial(_loadgen, url, access, timeout_seconds) for name, url in endpoints.loadgens.items()}


def checks(
    endpoints: Endpoints, plugins: frozenset[str] = frozenset(), timeout_seconds: float = TIMEOUT_SECONDS
) -> dict[str, Check]:
    """The check of each service, by its name, in the order in which they are started.

    Args:
        endpoints: where the services are.
        plugins: classes of connectors that every worker must have found.
        timeout_seconds: how long a service may take to answer.
    """
    settings = endpoints.kafka_settings
    found: dict[str, Check] = {
        name: functools.partial(_kafka, address, number, settings, timeout_seconds)
        for number, (name, address) in enumerate(endpoints.brokers.items(), start=1)
    } or {"kafka": functools.partial(_kafka, endpoints.kafka, None, settings, timeout_seconds)}
    for name, endpoint in endpoints.sinks.items():
        for node, each in (endpoint.nodes or {name: endpoint}).items():
            found[node] = functools.partial(sink_service(name).ready, each, endpoints.shared, timeout_seconds)
    for name, url in endpoints.connect.items():
        found[name] = functools.partial(_connect, url, plugins, endpoints.connect_access, timeout_seconds)
    return found
