"""Assembles a whole stack from its service specs: addresses, checks, variables and dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from sinkbench.errors import ServiceError
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka_release import kafka_refusal, kafka_release
from sinkbench.stack.endpoint import Endpoint, Endpoints
from sinkbench.stack.pipeline import CONNECT, KAFKA, LOADGEN, NODE, PLUGINS
from sinkbench.stack.protocol import ProxyTarget
from sinkbench.stack.registry import sink_service, sink_services
from sinkbench.stack.spec import NOWHERE, Place, ServiceSpec
from sinkbench.topology import Node

Check = Callable[[], str | None]
"""Returns None when ready, else what is missing."""
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
        connect={name: f"{place.scheme}://{host}:{port}" for name, (host, port) in place.workers.items()},
        worker_ids={f"{host}:{port}": name for name, (host, port) in place.workers.items()},
        sinks={spec.name: spec.endpoint(place) for spec in specs().values() if spec.endpoint is not None},
        kafka_settings={} if security is None else security.kafka_settings,
        connect_access=place.access("connect"),
        connect_metrics={name: f"http://{host}:{port}/metrics" for name, (host, port) in place.metrics.items()},
    )


def reached(
    endpoints: Endpoints, plugins: frozenset[str] = frozenset(), *, loadgens: bool = False
) -> dict[str, tuple[ServiceSpec, Endpoint]]:
    """Returns service and endpoint of each reachable node, in starting order; `plugins` is for the workers' check."""
    settings = endpoints.kafka_settings
    found: dict[str, tuple[ServiceSpec, Endpoint]] = {
        name: (KAFKA, Endpoint(address, options={**settings, NODE: str(number)}))
        for number, (name, address) in enumerate(endpoints.brokers.items(), start=1)
    } or {KAFKA.name: (KAFKA, Endpoint(endpoints.kafka, options=settings))}
    for name, endpoint in endpoints.sinks.items():
        found |= {node: (sink_service(name), each) for node, each in (endpoint.nodes or {name: endpoint}).items()}
    wanted = {PLUGINS: ",".join(sorted(plugins))}
    for name, url in endpoints.connect.items():
        found[name] = CONNECT, Endpoint(url, access=endpoints.connect_access, options=wanted)
    for name, url in endpoints.loadgens.items() if loadgens else ():
        found[name] = LOADGEN, Endpoint(url, access=endpoints.loadgen_access)
    return found


def checks(
    endpoints: Endpoints,
    plugins: frozenset[str] = frozenset(),
    timeout_seconds: float = TIMEOUT_SECONDS,
    *,
    loadgens: bool = False,
) -> dict[str, Check]:
    """Returns a readiness check for each node of `reached`."""
    return {
        name: partial(spec.ready, endpoint, endpoints.shared, timeout_seconds)
        for name, (spec, endpoint) in reached(endpoints, plugins, loadgens=loadgens).items()
    }


def unsupported(endpoints: Endpoints, name: str, timeout_seconds: float = RELEASE_SECONDS) -> str | None:
    """Returns in one line why this service cannot be used, with its version; None if it can or is unknown."""
    try:
        if name == KAFKA.name:
            return kafka_refusal(kafka_release(endpoints.kafka, endpoints.kafka_settings, timeout_seconds))
        return sink_service(name).refusal(endpoints.sinks[name]) if name in endpoints.sinks else None
    except ServiceError as error:
        return in_one_line(error)


def needs(place: Place, node: Node) -> frozenset[str]:
    return specs()[node.service].needs(place, node)


def shared_variables(place: Place) -> dict[str, str]:
    """Returns the variables of all services, which connector files also refer to."""
    found: dict[str, str] = {}
    for each in proxy_targets(place).values():
        found |= each.at(each.host, each.port)
    for spec in specs().values():
        found |= spec.shared(place)
    return found


def proxy_targets(place: Place) -> Mapping[str, ProxyTarget]:
    return {
        spec.name: ProxyTarget(*place.address(place.layout.of(spec.name)[0], spec.ports[0]), spec.variables)
        for spec in specs().values()
        if spec.variables
    }
