"""What the services tell of themselves: their versions, their Java virtual machines, and how Kafka keeps records."""

from __future__ import annotations

import platform
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import confluent_kafka
import httpx
import psycopg
from pydantic import JsonValue

from sinkbench.connect import ConnectCluster
from sinkbench.environment.jvm import common, flags_of, java_of, jvm, version_shown
from sinkbench.errors import StackError
from sinkbench.kafka import Kafka
from sinkbench.plan import Load
from sinkbench.probes import CLIENT_ERRORS, in_one_line
from sinkbench.stack import Access, Endpoints
from sinkbench.stack.access import http_client

__all__ = ["elasticsearch_node", "jvms", "kafka_durability", "versions"]

MAVEN = "{http://maven.apache.org/POM/4.0.0}"
TIMEOUT_SECONDS = 10.0
CLIENTS = ("confluent-kafka", "psycopg", "elasticsearch")
# When a broker writes to the disk by itself, and how many copies of a record there are before it counts as written.
BROKER = ("min.insync.replicas", "log.flush.interval.messages", "log.flush.interval.ms")

Node = Mapping[str, Any]
Told = TypeVar("Told")


def versions(endpoints: Endpoints, checkout: Path, node: Node) -> dict[str, JsonValue]:
    """The version of sinkbench, its clients, and every service; None for one that clusters of others keep back.

    Args:
        endpoints: where the services are.
        checkout: where sinkbench's own files are.
        node: what `elasticsearch_node` has returned.

    Raises:
        StackError: a service of our own does not tell.
    """
    found: dict[str, JsonValue] = {"sinkbench": version("sinkbench"), "python": platform.python_version()}
    found.update({client: version(client) for client in CLIENTS})
    found["librdkafka"] = confluent_kafka.libversion()[0]
    # Kafka's own protocol does not tell a version; our own brokers are those that Maven has brought.
    found.update({"kafka": None} if endpoints.shared else _shipped(checkout))
    asked: dict[str, Callable[[], str]] = {"connect": lambda: _connect_version(endpoints)}
    if endpoints.postgres is not None:
        asked["postgres"] = lambda: _sql_version(str(endpoints.postgres), "SHOW server_version")
    if endpoints.pgbouncer_admin is not None:
        asked["pgbouncer"] = lambda: _sql_version(str(endpoints.pgbouncer_admin), "SHOW VERSION")
    for name, ask in asked.items():
        found[name] = _told(name, ask, endpoints)
    if endpoints.elasticsearch is not None:
        found["elasticsearch-server"] = node.get("version")
    return found


def jvms(endpoints: Endpoints, commands: Mapping[str, Sequence[str]], node: Node) -> dict[str, JsonValue]:
    """Version and flags of the Java of Kafka, Connect and Elasticsearch; None for what is not shown to us.

    Args:
        endpoints: where the services are.
        commands: the words of each service's command line, by the service's name; of those that can be seen.
        node: what `elasticsearch_node` has returned.
    """
    workers = {name: words for name, words in commands.items() if name.startswith("connect-") and java_of(words)}
    shown = common(version_shown(text) for text in _metrics(endpoints))
    connect = str(shown) if shown else None
    broker = commands.get("kafka", ())
    # A broker shows no version of its Java; ours is started by the very program that starts our workers.
    same = java_of(broker) is not None and {java_of(broker)} == {java_of(words) for words in workers.values()}
    found: dict[str, JsonValue] = {
        "kafka": jvm(connect if same else None, flags_of(broker) if java_of(broker) else None),
        "connect": jvm(connect, common(flags_of(words) for words in workers.values())),
    }
    if endpoints.elasticsearch is not None:
        told = node.get("jvm", {})
        arguments = told.get("input_arguments")
        found["elasticsearch"] = jvm(told.get("version"), None if arguments is None else flags_of(arguments))
    return found


def elasticsearch_node(endpoints: Endpoints) -> Node:
    """What a node of Elasticsearch says of itself and its Java; empty if it does not show that to us.

    Raises:
        StackError: Elasticsearch of our own does not answer.
    """
    if endpoints.elasticsearch is None:
        return {}
    asked = {"filter_path": "nodes.*.version,nodes.*.jvm.version,nodes.*.jvm.input_arguments"}

    def ask() -> Node:
        with http_client(endpoints.elasticsearch_access, TIMEOUT_SECONDS) as http:
            answer = http.get(f"{endpoints.elasticsearch}/_nodes/_local", params=asked)
        nodes = answer.json().get("nodes", {}) if answer.status_code == httpx.codes.OK else {}
        return dict(next(iter(nodes.values()), {}))

    return _told("Elasticsearch", ask, endpoints) or {}


def kafka_durability(endpoints: Endpoints, load: Load | None) -> dict[str, JsonValue]:
    """What Kafka promises of a record that it has acknowledged: what the load asks for, and how a broker is set."""
    wanted: dict[str, JsonValue] = {} if load is None else {"acks": load.acks, "replication": load.replication}
    return {**wanted, **Kafka(endpoints.kafka, endpoints.kafka_settings).broker_settings(BROKER)}


def _told(name: str, ask: Callable[[], Told], endpoints: Endpoints) -> Told | None:
    """What a service answers; None if one that belongs to others does not. StackError if one of ours does not."""
    try:
        return ask()
    except (*CLIENT_ERRORS, ValueError) as error:
        if endpoints.shared:
            return None
        raise StackError(f"{name} did not tell its version: {in_one_line(error)}") from None


def _connect_version(endpoints: Endpoints) -> str:
    with ConnectCluster(endpoints.connect.values(), endpoints.connect_access) as connect:
        return connect.version()


def _sql_version(dsn: str, question: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return str(connection.execute(question.encode()).fetchall()[0][0])


def _shipped(checkout: Path) -> dict[str, JsonValue]:
    """What a stack of our own is made of: the programs that Maven has brought."""
    found: dict[str, JsonValue] = {}
    properties = ET.parse(checkout / "connect" / "pom.xml").getroot().find(f"{MAVEN}properties")  # noqa: S314 - ours
    for element in [] if properties is None else properties:
        name = element.tag.removeprefix(MAVEN)
        if name.endswith(".version"):
            found[name.removesuffix(".version")] = element.text
    return found


def _metrics(endpoints: Endpoints) -> list[str]:
    """The metrics of each worker that shows some."""
    shown = []
    # They have an address of their own, which the user and password of Connect are none of the business of.
    with http_client(Access(ca=endpoints.connect_access.ca), TIMEOUT_SECONDS) as http:
        for url in endpoints.connect_metrics.values():
            try:
                answer = http.get(url)
            except httpx.HTTPError:
                continue
            if answer.status_code == httpx.codes.OK:
                shown.append(answer.text)
    return shown
