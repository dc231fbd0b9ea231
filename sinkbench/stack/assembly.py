"""Kafka, Connect and loadgen as services (each sink declares its own), and what the specs of all services come to:
addresses, checks, variables and dependencies of a whole stack."""

import time
from collections.abc import Callable, Collection, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

from loadgen.summary import LoadState
from sinkbench.errors import ServiceError, StackError
from sinkbench.secrets import redacted
from sinkbench.services.failures import in_one_line
from sinkbench.services.http import http_client
from sinkbench.services.kafka import Kafka
from sinkbench.services.versions import KAFKA as SUPPORTED
from sinkbench.services.versions import kafka_release
from sinkbench.stack import Endpoint, Endpoints, ProxyTarget, Say
from sinkbench.stack.registry import NOWHERE, Place, ServiceSpec, sink_service, sink_services

Check = Callable[[], str | None]
"""Returns None when ready, else what is missing."""
POLL_SECONDS, LOG_LINES = 0.25, 15
Name = TypeVar("Name")
Answer = TypeVar("Answer")


def at_once(asks: Mapping[Name, Callable[[], Answer]]) -> dict[Name, Answer]:
    """Calls all of these at the same time; returns what they return."""
    with ThreadPoolExecutor(max_workers=max(len(asks), 1)) as pool:
        return dict(zip(asks, pool.map(lambda ask: ask(), asks.values()), strict=True))


def await_ready(
    names: Collection[str],
    checks: Callable[[], Mapping[str, Check]],
    ended: Callable[[], Mapping[str, str]],
    log_tail: Callable[[str], str],
    seconds: float,
    say: Say = lambda line: None,
    start: Callable[[Set[str]], Set[str]] = lambda ready: frozenset(),
) -> None:
    """Waits until the checks of these nodes pass. Raises StackError, with the end of a log, if one ends or is late.

    `ended` returns the states of nodes that do not run. `start` starts those that wait for none but the given nodes,
    which are ready, and returns those that it has not started yet."""
    ready: set[str] = set()
    deadline = time.monotonic() + seconds
    while True:
        waiting, asks = start(ready), checks()
        asked = [name for name in names if name not in ready | waiting]
        reasons = at_once({name: asks.get(name, lambda: "it does not run") for name in asked})
        for name in [name for name, reason in reasons.items() if reason is None]:
            ready.add(name)
            say(f"{name} is ready")
        if not (left := [name for name in names if name not in ready]):
            return
        down = ended()
        for name in left:
            if name in reasons and name in down:
                raise StackError(f"{name} died while starting ({down[name]}); the end of its log:\n{log_tail(name)}")
        if time.monotonic() > deadline:
            why = reasons.get(left[0], "not started")
            raise StackError(f"{left[0]} was not ready in {seconds:.0f} s: {why}\n{log_tail(left[0])}")
        time.sleep(POLL_SECONDS)


def get(endpoint: Endpoint, path: str, timeout_seconds: float) -> httpx.Response | str:
    """Returns the answer of an HTTP service, or in one line why there is none with status 200."""
    try:
        with http_client(endpoint.access, timeout_seconds) as client:
            answer = client.get(f"{endpoint.address}/{path}")
    except (httpx.HTTPError, ServiceError) as error:
        return str(error) or type(error).__name__
    if answer.status_code == httpx.codes.OK:
        return answer
    text = said(answer, 200)
    return f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip() + (f": {text}" if text else "")


def said(answer: httpx.Response, most: int) -> str:
    # Before it is cut, since a part of a secret would not be recognized.
    return " ".join(redacted(answer.text).split())[:most]


def _kafka_ready(endpoint: Endpoint, shared: bool, timeout_seconds: float, number: int | None = None) -> str | None:
    """`number` is that of the broker if there are several."""
    try:
        kafka = Kafka(endpoint.address, endpoint.options)
        problem = kafka.problem(timeout_seconds)
        if problem is not None or number is None or number in kafka.brokers(timeout_seconds):
            return problem
    except ServiceError as error:
        return str(error)
    return f"broker {number} is none of its cluster's yet"


def _kafka_shared(place: Place) -> Mapping[str, str]:
    voters = enumerate(place.hosts("kafka_controller_port"), start=1)
    return {
        "KAFKA_BOOTSTRAP": ",".join(place.hosts("kafka_port")),
        "KAFKA_VOTERS": ",".join(f"{number}@{where}" for number, where in voters),
        "KAFKA_REPLICATION": str(place.layout.kafka.replication),
        "KAFKA_MIN_INSYNC_REPLICAS": str(place.layout.kafka.min_insync_replicas),
        "CONNECT_REPLICATION": str(place.layout.kafka.replication),
    }


def _connect_ready(
    endpoint: Endpoint, shared: bool, timeout_seconds: float, plugins: Collection[str] = ()
) -> str | None:
    # A worker answers this only after it has joined its group and read its configurations.
    listed = get(endpoint, "connectors", timeout_seconds)
    found = listed if isinstance(listed, str) else get(endpoint, "connector-plugins", timeout_seconds)
    if isinstance(found, str):
        return found
    try:
        there = {plugin["class"] for plugin in found.json()}
    except (ValueError, KeyError, TypeError):
        return f"it is no Kafka Connect: {said(found, 100)}"
    if absent := set(plugins) - there:
        raise StackError(
            f"{endpoint.address}: this worker has no plugin {', '.join(sorted(absent))}; see its log, and its"
            " plugin.path"
        )
    return None


def _loadgen_ready(endpoint: Endpoint, shared: bool, timeout_seconds: float) -> str | None:
    # /health would not do, since it requires no password.
    found: Any = get(endpoint, "load", timeout_seconds)
    if isinstance(found, str):
        return found
    try:
        LoadState.model_validate_json(found.content)
    except ValidationError:
        return f"it is no load generator of this version: {said(found, 100)}"
    return None


KAFKA = ServiceSpec(
    name="kafka",
    title="Kafka",
    ready=_kafka_ready,
    ports=("kafka_port", "kafka_controller_port"),
    in_java=True,
    script="kafka/run",
    shared=_kafka_shared,
    own=lambda place, node: {
        "KAFKA_NODE": str(node.number),
        "KAFKA_CONTROLLER_HOST": place.address(node, "kafka_controller_port")[0],
    },
)
CONNECT = ServiceSpec(
    name="connect",
    title="Connect",
    ready=_connect_ready,
    ports=("connect_port", "connect_metrics_port"),
    in_java=True,
    script="connect/run",
    stop_seconds=20,
    # A worker creates topics with replicas on every broker.
    needs=lambda place, node: frozenset(each.name for each in place.layout.of("kafka")),
)
TIMEOUT_SECONDS, RELEASE_SECONDS = 2.0, 10.0


def specs() -> dict[str, ServiceSpec]:
    """Returns every service that sinkbench starts, by name in starting order; without loadgen."""
    sinks = [service for service in sink_services().values() if service.script]
    return {spec.name: spec for spec in (KAFKA, *sinks, CONNECT)}


def endpoints_of(place: Place) -> Endpoints:
    layout, security = place.layout, place.security
    brokers = {node.name: place.address(node, "kafka_port") for node in layout.of("kafka")}
    # A port of 0 would be an invalid setting to Kafka's client.
    reachable = [each for each in brokers.values() if each[1] != NOWHERE] or list(brokers.values())[:1]
    return Endpoints(
        kafka=",".join(f"{host}:{port}" for host, port in reachable),
        brokers={name: f"{host}:{port}" for name, (host, port) in brokers.items()} if len(brokers) > 1 else {},
        replication=layout.kafka.replication,
        connect={name: place.url(where) for name, where in place.workers.items()},
        worker_ids={f"{host}:{port}": name for name, (host, port) in place.workers.items()},
        sinks={spec.name: spec.endpoint(place) for spec in specs().values() if spec.endpoint is not None},
        kafka_settings={} if security is None else security.kafka_settings,
        connect_access=place.access("connect"),
        connect_metrics={name: f"http://{host}:{port}/metrics" for name, (host, port) in place.metrics.items()},
    )


def checks(
    endpoints: Endpoints, plugins: Collection[str] = (), timeout: float = TIMEOUT_SECONDS, *, loadgens: bool = False
) -> dict[str, Check]:
    """Returns a readiness check for each reachable node, in starting order; `plugins` is for the workers' check."""
    settings, how = endpoints.kafka_settings, (endpoints.shared, timeout)
    found: dict[str, Check] = {
        name: partial(_kafka_ready, Endpoint(address, options=settings), *how, number)
        for number, (name, address) in enumerate(endpoints.brokers.items(), start=1)
    } or {KAFKA.name: partial(_kafka_ready, Endpoint(endpoints.kafka, options=settings), *how)}
    for name, endpoint in endpoints.sinks.items():
        nodes = endpoint.nodes or {name: endpoint}
        found |= {node: partial(sink_service(name).ready, each, *how) for node, each in nodes.items()}
    for name, url in endpoints.connect.items():
        found[name] = partial(_connect_ready, Endpoint(url, access=endpoints.connect_access), *how, plugins)
    for name, url in endpoints.loadgens.items() if loadgens else ():
        found[name] = partial(_loadgen_ready, Endpoint(url, access=endpoints.loadgen_access), *how)
    return found


def unsupported(endpoints: Endpoints, name: str, timeout_seconds: float = RELEASE_SECONDS) -> str | None:
    """Returns in one line why this service cannot be used, with its version; None if it can or is unknown."""
    try:
        if name == KAFKA.name:
            release = kafka_release(endpoints.kafka, endpoints.kafka_settings, timeout_seconds)
            return SUPPORTED.refusal(KAFKA.title, release)
        return sink_service(name).refusal(endpoints.sinks[name]) if name in endpoints.sinks else None
    except ServiceError as error:
        return in_one_line(error)


def shared_variables(place: Place) -> dict[str, str]:
    """Returns the variables of all services, which connector files also refer to."""
    places = (each.at(each.host, each.port) for each in proxy_targets(place).values())
    shared = (spec.shared(place) for spec in specs().values())
    return {name: value for some in (*places, *shared) for name, value in some.items()}


def proxy_targets(place: Place) -> Mapping[str, ProxyTarget]:
    return {
        spec.name: ProxyTarget(*place.address(place.layout.of(spec.name)[0], spec.ports[0]), spec.variables)
        for spec in specs().values()
        if spec.variables
    }
