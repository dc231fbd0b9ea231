"""What one trial has on a cluster: its names, its topic, its connector, its index or table; and how it is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import Protocol

from loadgen.topic import topic_config
from sinkbench.analysis.samples import Sample
from sinkbench.plan.cells import Cell
from sinkbench.services.connect import ConnectorStatus, placement
from sinkbench.services.kafka import group_of
from sinkbench.sinks import Sink
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names
from sinkbench.trial.readprocess import Order
from sinkbench.trial.values import Loaded, TopicLoad

__all__ = ["Observer", "Resources"]


class Observer(Protocol):
    """Shows a person what a trial is doing."""

    def phase(self, text: str) -> None:
        """The trial goes into another step."""

    def progress(self, done: int, total: int) -> None:
        """Records that are in the topic, or in the sink, so far."""

    def sample(self, sample: Sample) -> None:
        """One reading of everything, while the connector runs. Must return at once."""


class Resources:
    """One trial's part of a cluster. Nothing is created before it is asked for; `remove` removes all of it.

    Attributes:
        names: what the trial's things are called. The trial's thread alone may change them: a connector is renamed.
        records: how many there are to store.
        observer: shows what goes on.
    """

    def __init__(self, cluster: Cluster, cell: Cell, names: Names, records: int, observer: Observer) -> None:
        self.cluster = cluster
        self.cell = cell
        self.names = names
        self.records = records
        self.observer = observer
        self._variables: Mapping[str, str] = {}

    def named(self, names: Names, cluster: Cluster | None = None) -> Resources:
        """The same under other names, as a second connector has them, or by other clients."""
        made = Resources(cluster or self.cluster, self.cell, names, self.records, self.observer)
        made._variables = self._variables
        return made

    @property
    def sink(self) -> Sink:
        """The cell's sink. Raises StackError if it does not answer."""
        return self.cluster.sink(self.cell.sink)

    @property
    def config(self) -> dict[str, str]:
        """The connector's configuration. Raises PlanError if its file is no connector file."""
        return self.cluster.config(self.cell, self.names, self._variables)

    @property
    def read_order(self) -> Order:
        """The order for the process that asks queries during a load."""
        cluster, cell = self.cluster, self.cell
        endpoints = cluster.stack.endpoints
        return Order(endpoints, cluster.checkout, cell.sink, self.names.target, cluster.queries, cell.reads or 0.0)

    @contextmanager
    def overriding(self, variables: Mapping[str, str]) -> Iterator[None]:
        """Has the connector's `${env:NAME}` stand for these values, as long as the context lasts."""
        before, self._variables = self._variables, {**self._variables, **variables}
        try:
            yield
        finally:
            self._variables = before

    def create_topic(self) -> None:
        """Makes the trial's topic, without records."""
        cluster, load = self.cluster, self.cluster.plan.load
        replication = load.replication or cluster.stack.endpoints.replication
        cluster.kafka.create_topic(self.names.topic, load.partitions, replication, topic_config(cluster.largest_bytes))

    def load_topic(
        self, rate: float | None = None, progress: Callable[[int], None] = lambda done: None, stop: Event | None = None
    ) -> Loaded:
        """Fills the trial's topic, at a rate per second or as fast as possible. Raises TrialFailed, see `Cluster`."""
        wanted = TopicLoad(self.records, self.cell.form, rate, self.cell.acks)
        return self.cluster.load(self.names, wanted, progress, stop)

    def start_connector(self) -> str | None:
        """Creates the connector. Raises ConnectError if Connect does not take it.

        Returns:
            Its class, as its configuration names it.
        """
        config = self.cluster.config(self.cell.at_start, self.names, self._variables)
        self.cluster.connect.create(self.names.connector, config)
        return config.get("connector.class")

    def start_connector_again(self) -> None:
        """Creates it, unless it is there after all: a worker that has just begun does not know yet what there is."""
        self.cluster.connect.configure(self.names.connector, self.config)

    def redirect(self, variables: Mapping[str, str]) -> None:
        """Gives the connector its configuration anew, with these values for `${env:NAME}`."""
        with self.overriding(variables):
            self.start_connector_again()

    def set_tasks(self) -> None:
        """Asks for the cell's number of tasks while the connector runs. Raises ConnectError if Connect refuses it."""
        self.cluster.connect.set_tasks(self.names.connector, self.cell.tasks)

    def status(self) -> ConnectorStatus | None:
        """The connector and its tasks; None if it is not there."""
        return self.cluster.connect.status(self.names.connector)

    def settled(self) -> ConnectorStatus | None:
        """The connector, once the cell's tasks all run and have their partitions; None before."""
        if self.cluster.kafka.members(group_of(self.names.connector)) != self.cell.tasks:
            return None
        status = self.status()
        return status if status is not None and status.settled(self.cell.tasks) else None

    def placement(self, status: ConnectorStatus) -> dict[str, int]:
        """Tasks on each worker."""
        return placement(status, self.cluster.stack.endpoints.worker_ids)

    def consumed(self) -> int:
        """Sum of the offsets that the connector has committed."""
        return self.cluster.kafka.committed(group_of(self.names.connector), self.names.topic)

    def in_topic(self) -> int:
        """Records in the trial's topic."""
        return sum(self.cluster.kafka.end_offsets(self.names.topic).values())

    def stop_connector(self) -> None:
        """Deletes the connector and waits until its tasks are gone and its group is empty."""
        self.cluster.stop_connector(self.names.connector)

    def remove_connector(self) -> None:
        """Stops the connector, and deletes its group."""
        self.stop_connector()
        self.cluster.kafka.delete_group(group_of(self.names.connector))

    def remove(self, *, topic: bool = True) -> None:
        """Removes everything that the trial has created; what is not there is fine."""
        try:
            self.stop_connector()
        finally:
            # What is left of this trial must not change another one.
            self.cluster.set_back(self.cell.sink)
        self.sink.drop(self.names.target)
        self.cluster.kafka.delete_group(group_of(self.names.connector))
        if topic:
            self.cluster.kafka.delete_topic(self.names.topic)
