"""How the services of a stack are reached, whichever stack it is. Standard library only, as `protocol`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sinkbench.services.access import Access

__all__ = ["Endpoint", "Endpoints"]


@dataclass(frozen=True)
class Endpoint:
    """How to reach one service of a sink.

    Attributes:
        address: its base address, or a connection string, as its clients take it.
        shown: the same for a person, where `address` holds a secret; "" where it does not.
        access: what it wants before it answers, if it is asked by HTTP.
        options: what else its clients must know, such as the name that connectors write to.
        nodes: each of its nodes by name, where it has several that can be asked; the first one's address is `address`.
    """

    address: str = field(repr=False)
    shown: str = ""
    access: Access = field(default_factory=Access)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    nodes: Mapping[str, Endpoint] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Endpoints:
    """How to reach each service from the controller. What holds a secret is left out where an object is printed.

    Attributes:
        kafka: bootstrap servers, host:port, separated by commas.
        brokers: address of each broker by its node's name, in the order of their ids from 1, where there are several.
        replication: how many replicas a topic's partitions have, by default.
        connect: REST address of each worker by the worker's name ("connect-1").
        worker_ids: the worker's name by the id that Connect's REST gives it (host:port).
        sinks: each service of the sinks by its name: "postgres", and "pgbouncer" before it. Absent: there is none.
        kafka_settings: further settings of Kafka's clients (librdkafka's names), such as those for SASL and TLS.
        connect_access: what the workers want before they answer.
        connect_variables: what ${env:NAME} in a connector file stands for, where the workers do not know it themselves.
        connect_metrics: address of each worker's metrics (Prometheus text) by the worker's name, if they are shown.
        loadgens: address of each load generator that runs as a service; where there is none, the controller starts one.
        loadgen_access: what these want before they answer.
        loadgen_kafka: bootstrap servers as the load generators reach them; None if that is `kafka`, too.
        shared: whether others use these clusters, so that nothing may be touched but what a trial surely has made.
        stack_file: the file that describes them, for messages; None where sinkbench itself knows them.
    """

    kafka: str
    connect: Mapping[str, str]
    worker_ids: Mapping[str, str]
    sinks: Mapping[str, Endpoint] = field(default_factory=dict)
    brokers: Mapping[str, str] = field(default_factory=dict)
    replication: int = 1
    kafka_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_access: Access = field(default_factory=Access)
    connect_variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_metrics: Mapping[str, str] = field(default_factory=dict)
    loadgens: Mapping[str, str] = field(default_factory=dict)
    loadgen_access: Access = field(default_factory=Access)
    loadgen_kafka: str | None = None
    shared: bool = False
    stack_file: Path | None = None

    def addresses(self) -> dict[str, str]:
        """The address of each node, by its name, for a person."""
        sinks = {
            node: each
            for name, endpoint in self.sinks.items()
            for node, each in (endpoint.nodes or {name: endpoint}).items()
        }
        return {
            **(self.brokers or {"kafka": self.kafka}),
            **{name: each.shown or each.address for name, each in sinks.items()},
            **self.connect,
            **self.loadgens,
        }
