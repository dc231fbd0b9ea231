"""Kafka, Connect and loadgen as services; each sink declares its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from pydantic import ValidationError

from loadgen.summary import LoadState
from sinkbench.errors import ServiceError, StackError
from sinkbench.services.kafka import Kafka
from sinkbench.stack.endpoint import Endpoint
from sinkbench.stack.readiness import refusal, said, shared_client
from sinkbench.stack.spec import Place, ServiceSpec
from sinkbench.topology import Node

NODE, PLUGINS = "node", "plugins"
"""Options of an endpoint: a broker's number in its cluster; the classes that a worker must have found."""


def _kafka_ready(endpoint: Endpoint, shared: bool, timeout_seconds: float) -> str | None:
    settings = {name: value for name, value in endpoint.options.items() if name != NODE}
    number = endpoint.options.get(NODE)
    try:
        kafka = Kafka(endpoint.address, settings)
        problem = kafka.problem(timeout_seconds)
        if problem is not None or number is None or int(number) in kafka.brokers(timeout_seconds):
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


def _kafka_own(place: Place, node: Node) -> Mapping[str, str]:
    host, _ = place.address(node, "kafka_controller_port")
    return {"KAFKA_NODE": str(node.number), "KAFKA_CONTROLLER_HOST": host}


def _connect_ready(endpoint: Endpoint, shared: bool, timeout_seconds: float) -> str | None:
    # A worker answers this only after it has joined its group and read its configurations.
    listed = _asked(endpoint, "connectors", timeout_seconds)
    found = listed if isinstance(listed, str) else _asked(endpoint, "connector-plugins", timeout_seconds)
    if isinstance(found, str):
        return found
    try:
        there = {plugin["class"] for plugin in found.json()}
    except (ValueError, KeyError, TypeError):
        return f"it is no Kafka Connect: {said(found, 100)}"
    if absent := set(filter(None, endpoint.options.get(PLUGINS, "").split(","))) - there:
        raise StackError(
            f"{endpoint.address}: this worker has no plugin {', '.join(sorted(absent))}; see its log, and its"
            " plugin.path"
        )
    return None


def _loadgen_ready(endpoint: Endpoint, shared: bool, timeout_seconds: float) -> str | None:
    # /health would not do, since it requires no password.
    found: Any = _asked(endpoint, "load", timeout_seconds)
    if isinstance(found, str):
        return found
    try:
        LoadState.model_validate_json(found.content)
    except ValidationError:
        return f"it is no load generator of this version: {said(found, 100)}"
    return None


def _asked(endpoint: Endpoint, path: str, timeout_seconds: float) -> httpx.Response | str:
    """An answer with status 200; else the problem, in one line."""
    try:
        answer = shared_client(endpoint.access, timeout_seconds).get(f"{endpoint.address}/{path}")
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    return refusal(answer) or answer


def _all_brokers(place: Place, node: Node) -> frozenset[str]:
    # A worker creates topics with replicas on every broker.
    return frozenset(each.name for each in place.layout.of("kafka"))


KAFKA = ServiceSpec(
    name="kafka",
    title="Kafka",
    ready=_kafka_ready,
    ports=("kafka_port", "kafka_controller_port"),
    in_java=True,
    script="kafka/run",
    shared=_kafka_shared,
    own=_kafka_own,
)
CONNECT = ServiceSpec(
    name="connect",
    title="Connect",
    ready=_connect_ready,
    ports=("connect_port", "connect_metrics_port"),
    in_java=True,
    script="connect/run",
    stop_seconds=20,
    needs=_all_brokers,
)
LOADGEN = ServiceSpec(name="loadgen", title="loadgen", ready=_loadgen_ready)
