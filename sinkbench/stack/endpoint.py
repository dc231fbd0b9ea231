"""How the services of any stack are reached. Standard library only, as `protocol`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sinkbench.services.access import Access


@dataclass(frozen=True)
class Endpoint:
    """How to reach one service of a sink. `address` may be a connection string; if it contains a secret, `shown`
    replaces it on display. `nodes` has each node by name if there are several; the first one's address is `address`.
    """

    address: str = field(repr=False)
    shown: str = ""
    access: Access = field(default_factory=Access)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    nodes: Mapping[str, Endpoint] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Endpoints:
    """How to reach each service from the controller. Fields with secrets are not printed.

    Attributes:
        kafka: bootstrap servers, host:port, separated by commas.
        brokers: address of each broker by node name, in the order of their ids from 1, if there are several.
        worker_ids: the worker's name by Connect's own id (host:port).
        kafka_settings: further settings by librdkafka's names, such as those for SASL and TLS.
        connect_variables: values of ${env:NAME} in connector files that the workers do not know themselves.
        loadgens: address of each load generator service; if empty, the controller starts one.
        loadgen_kafka: bootstrap servers for the load generators; None if they are `kafka`.
        shared: whether others use these clusters: then only objects of the trial itself may be changed.
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
        """Returns the address of each node by name, for display."""
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
