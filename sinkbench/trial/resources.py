"""Creates and removes what one trial uses: its topic, its connector, and its index or table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Event

from loadgen.client import topic_config
from loadgen.options import load_from
from loadgen.records import records_of
from sinkbench.analysis.keyed import keyed_by
from sinkbench.errors import PlanError, TargetError
from sinkbench.plan.cells import Cell
from sinkbench.plan.checks import filled_columns
from sinkbench.services.connect import ConnectorStatus
from sinkbench.services.kafka import OWN_GROUP, group_of
from sinkbench.sinks import Sink
from sinkbench.stack.logs import logs_of
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names
from sinkbench.trial.observer import Observer
from sinkbench.trial.values import Loaded, Pace

# Rows before a trial are copies of N records whose `bench.run` is not a trial's.
DOCUMENTS_BEFORE = 20_000
RUN_BEFORE = "before"


@dataclass(eq=False)
class Resources:
    """One trial's resources on a cluster, created on demand. Only the trial's thread may change `names`. `recording` is
    around the run of the connector, whose `${env:NAME}` have the values of `variables`."""

    cluster: Cluster
    cell: Cell
    names: Names
    records: int
    observer: Observer
    recording: AbstractContextManager[None] = field(default_factory=nullcontext)
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def sink(self) -> Sink:
        """The cell's sink. Raises StackError if it does not answer."""
        return self.cluster.sink(self.cell.sink)

    @property
    def config(self) -> dict[str, str]:
        """The connector's configuration. Raises PlanError if its file is not a connector file."""
        return self.cluster.config(self.cell, self.names, self.variables)

    @property
    def keyed(self) -> bool:
        """Whether the sink keeps only the last record of each key, though the load has no changes of its own."""
        return self.cluster.plan.changes is None and keyed_by(self.config) is not None

    @property
    def group(self) -> str:
        """The consumer group of the connector, which its file may name."""
        return self.config.get(OWN_GROUP) or group_of(self.names.connector)

    def create_topic(self) -> None:
        cluster, load = self.cluster, self.cluster.plan.load
        replication = load.replication or cluster.stack.endpoints.replication
        config = topic_config(cluster.largest_bytes)
        cluster.kafka.create_topic(self.names.topic, self.cell.partitions, replication, config)

    def load_topic(
        self, rate: float | None = None, progress: Callable[[int], None] = lambda done: None, stop: Event | None = None
    ) -> Loaded:
        """Loads the topic at a rate per second, or as fast as possible. Raises TrialFailed; see `Cluster.load`."""
        cell = self.cell
        changed = {"form": cell.form, "partitions": cell.partitions, **({"acks": cell.acks} if cell.acks else {})}
        return self.cluster.load(self.names, self.records, progress, changed, Pace(rate, stop, self.keyed))

    def start_connector(self) -> str | None:
        """Creates the connector and returns its class. Raises ConnectError if Connect refuses it."""
        config = self.cluster.config(self.cell.at_start, self.names, self.variables)
        self.cluster.connect.create(self.names.connector, config)
        return config.get("connector.class")

    def start_connector_again(self) -> None:
        """Creates the connector unless it exists: a worker that has just started does not know its connectors yet."""
        self.cluster.connect.configure(self.names.connector, self.config)

    def status(self) -> ConnectorStatus | None:
        return self.cluster.connect.status(self.names.connector)

    def logs(self, since: float, *, alone: bool = True) -> list[Callable[[], Iterable[str]]]:
        """What is said of the connector besides its status, from `since` on (seconds since the epoch): in the workers'
        logs, in those of the sink's services, and by the sink, to a login like the connector's. Lines that name no
        connector are of this one, unless others run meanwhile."""
        return [
            *logs_of(self.cluster.stack, self.names.connector, since, alone=alone),
            lambda: filter(None, [self.cluster.refusal(self.cell, self.config)]),
        ]

    def settled(self) -> ConnectorStatus | None:
        """Status once all the cell's tasks run and have their partitions; None before."""
        if self.cluster.kafka.members(self.group) != self.cell.tasks:
            return None
        status = self.status()
        return status if status is not None and status.settled(self.cell.tasks) else None

    def consumed(self) -> int:
        return self.cluster.kafka.committed(self.group, self.names.topic)

    def in_topic(self) -> int:
        return sum(self.cluster.kafka.end_offsets(self.names.topic).values())

    def stop_connector(self) -> None:
        self.cluster.stop_connector(self.names.connector, self.group)

    @property
    def reader_groups(self) -> list[str]:
        """The cell's further consumer groups."""
        return [group_of(f"{self.names.connector}-reader{number}") for number in range(self.cell.readers)]

    def remove_connector(self) -> None:
        self.stop_connector()
        self.cluster.kafka.delete_group(self.group)
        for group in self.reader_groups:
            self.cluster.kafka.wait_until_empty(group)
            self.cluster.kafka.delete_group(group)

    def remove(self, *, topic: bool = True) -> None:
        """Removes everything that the trial has created and that still exists."""
        try:
            self.remove_connector()
        finally:
            # The settings must not affect another trial.
            self.cluster.set_back(self.cell.sink)
        self.sink.drop(self.names.target)
        if topic:
            self.cluster.kafka.delete_topic(self.names.topic)


def reset_sink(own: Resources) -> tuple[Sequence[str], int | None]:
    """Creates the target with the cell's `rows_before`; returns notes on it, and the bytes of these rows on disk.

    Raises TrialFailed if the trial does not fit the disk."""
    cell = own.cell
    own.cluster.check_disk(own.records, cell.rows_before, cell.form)
    own.observer.phase("resetting the sink")
    notes = create_target(own)
    if not cell.rows_before:
        return notes, 0
    own.observer.phase("putting in the rows before")
    load, filling = own.cluster.plan.load, own.sink.capabilities.filling
    if filling is None:
        raise PlanError(f"{cell.label}: the sink {cell.sink} takes no rows_before; leave it out")
    options = {"bootstrap": "-", "topic": "-", "run": RUN_BEFORE, "count": min(cell.rows_before, DOCUMENTS_BEFORE)}
    kept = load_from({**options, "keys": load.keys, "record_bytes": load.record_bytes})
    for done in filling.fill(own.names.target, cell.rows_before, records_of(kept)):
        own.observer.progress(done, cell.rows_before)
    return notes, own.sink.disk_bytes(own.names.target)


def create_target(own: Resources) -> Sequence[str]:
    """Applies the service settings, creates the empty target, and returns notes on it.

    Raises TargetError if its file cannot be used or lacks a column, PlanError if changes cannot be audited in it."""
    cluster, cell = own.cluster, own.cell
    cluster.set_services(cell)
    created = own.sink.create(own.names.target, None if cell.target is None else cluster.checkout / cell.target)
    file = {key: str(value).strip() for key, value in cluster.file_of(cell).items()}
    wanted = filled_columns(file, cell.form)
    if wanted is not None and created.columns is not None and (lacking := sorted(wanted - created.columns)):
        own.sink.drop(own.names.target)
        made = "the sink's own file" if cell.target is None else cell.target
        raise TargetError(
            f"{cell.label}: the table of {made} has no column {lacking[0]}, which {cell.pipeline} fills of records"
            f" of form {cell.form}; add it, or name another target or form"
        )
    if cluster.plan.changes is not None:
        where, changes = f"{cluster.plan.where('load', 'changes')}: {cell.label}", own.sink.capabilities.changes
        if changes is None:
            raise PlanError(f"{where}: the sink {cell.sink} cannot be audited by key; leave the pipeline out")
        try:
            # An audit of the empty target.
            next(changes.versions(own.names.target, own.names.trial), None)
        except TargetError as error:
            raise PlanError(f"{where}: {error}") from None
    return created.notes
