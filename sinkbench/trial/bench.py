"""What trials are made with: the clients of one stack, and the steps of a trial that talk to services."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from loadgen.changes import Changes
from loadgen.changestream import last_versions
from loadgen.forms import DOCUMENT, Form, added_bytes
from loadgen.options import load_from
from loadgen.records import key_names, records_of
from loadgen.topic import topic_config
from sinkbench.analysis.audit import SeqAudit
from sinkbench.analysis.content import Content, documents_of
from sinkbench.analysis.versions import VersionAudit
from sinkbench.errors import PlanError, ReasonCode, ServiceError, TargetError, TrialFailed
from sinkbench.load.loadgens import Loadgens
from sinkbench.load.records import KeptRecords
from sinkbench.plan.cells import Cell
from sinkbench.plan.connectors import read_connector
from sinkbench.plan.forms import filled_columns
from sinkbench.plan.plan import Plan
from sinkbench.plan.queries import load_queries
from sinkbench.plan.sections import PlanChanges
from sinkbench.results import Asked
from sinkbench.services.access import Access
from sinkbench.services.connect import ConnectCluster, ConnectorStatus, placement
from sinkbench.services.connect_metrics import ConnectMetrics
from sinkbench.services.kafka import Kafka, group_of
from sinkbench.sinks import Sink, SinkBloat, SinkPooling, SinkReading, needed, open_sink, sink_kind
from sinkbench.stack import Stack, Usage
from sinkbench.trial.asking import asked
from sinkbench.trial.backgroundprobe import BackgroundSampler
from sinkbench.trial.contents import content_of
from sinkbench.trial.names import Names, is_ours
from sinkbench.trial.others import Others
from sinkbench.trial.readorders import Order
from sinkbench.trial.sampler import Sampler, Sources, throttled
from sinkbench.trial.sent import SentRecords
from sinkbench.trial.values import Loaded, TopicLoad

__all__ = ["VARIABLE", "Bench", "Loaded", "TopicLoad", "filled_in"]

# How often a sink is asked whether all is stored where nothing else is looked at.
UNWATCHED_SECONDS = 2.0
# How often is asked for what changes slowly: a connector commits every few seconds, its tasks rarely change, and CPU
# time is taken over a whole trial.
SLOW_SECONDS = 1.0
# A worker that answers nothing for so long is broken; the next one is asked.
BACKGROUND_SECONDS = 3.0
# Enough to see what happens to every record, or to one in twenty, and few enough to take no time.
COMPARED_RECORDS = 64
# The rows that are there before a trial: copies of so many records, whose `bench.run` is none of any trial's.
DOCUMENTS_BEFORE = 20_000
RUN_BEFORE = "before"
# Of large ones fewer do.
LEAST_COMPARED, COMPARED_BYTES = 4, 8_000_000
# What only leaders have acknowledged is not in the topic, as others see it, until the followers have it, too.
COPIED_SECONDS, AGAIN_SECONDS = 15.0, 0.2
# What a connector file leaves to whoever reads it: the workers' config provider, or a stack file's variables.
VARIABLE = re.compile(r"\$\{env:([^}]+)\}")


class Bench:
    """One stack, its clients and the plan that is run on it.

    Attributes:
        variable_overrides: what ${env:NAME} in a connector file stands for while a trial's connector goes through a
            proxy, or to a new primary.
    """

    def __init__(self, stack: Stack, plan: Plan, checkout: Path, records: KeptRecords | None = None) -> None:
        """`records` are the user's own, if the plan loads these."""
        self.stack = stack
        self.plan = plan
        self.records = records
        self.variable_overrides: Mapping[str, str] = {}
        self._checkout = checkout
        self._sinks: dict[str, Sink] = {}
        self._set: set[str] = set()
        self._queries = [] if plan.queries is None else load_queries(checkout / plan.queries)
        self._find_services()

    @property
    def record_bytes(self) -> float:
        """The mean size of a record as a document, in bytes."""
        return self.plan.load.record_bytes if self.records is None else self.records.facts.mean_bytes

    def value_bytes(self, form: Form) -> float:
        """The mean size of a record's value in a topic, in bytes."""
        return self.record_bytes + added_bytes(form)

    @property
    def _largest_bytes(self) -> int:
        return self.plan.load.record_bytes if self.records is None else self.records.largest_bytes

    def _workers(self) -> list[str]:
        """The workers' addresses as they are now."""
        return list(self.stack.endpoints.connect.values())

    def _find_services(self) -> None:
        self._loadgens = Loadgens(self.stack.endpoints, self.records)
        self._find_others()

    def _find_others(self) -> None:
        """All but the load generators, one of which may be at work."""
        endpoints = self.stack.endpoints
        self.connect = ConnectCluster(self._workers, endpoints.connect_access)
        self.kafka = Kafka(endpoints.kafka, endpoints.kafka_settings)
        # They have addresses of their own, which must not get the user and the password of Connect.
        self._metrics = ConnectMetrics(endpoints.connect_metrics, Access(ca=endpoints.connect_access.ca))

    def sink(self, name: str) -> Sink:
        """The sink of that name; connected once, used by one thread at a time."""
        if name not in self._sinks:
            self._sinks[name] = open_sink(name, self.stack.endpoints, self._checkout)
        return self._sinks[name]

    def close(self) -> None:
        """Closes all connections, and ends the load generator that was started, if any."""
        self._loadgens.close()
        self._close_others()

    def _close_others(self) -> None:
        self.connect.close()
        self._metrics.close()
        for sink in self._sinks.values():
            sink.close()
        self._sinks.clear()

    def others(self, names: Names | None = None, sinks: Sequence[str] = ()) -> Others:
        """Who else is there now, beside the trial of that name, on Connect, in Kafka and in these sinks."""
        own = set() if names is None else {each.connector for each in (names, names.renamed, names.second)}
        running = {name: tasks for name, tasks in self.connect.running().items() if name not in own}
        topics = {name: count for name, count in self.kafka.written().items() if not is_ours(name)}
        known = {name: self.sink(name).capabilities.others for name in sinks}
        asked = {name: others.seen() for name, others in known.items() if others is not None}
        tables = {
            f"{table} of {sink}": count
            for sink, found in asked.items()
            for table, count in found.written.items()
            if not is_ours(table)
        }
        connections = {name: found.connections for name, found in asked.items() if found.connections is not None}
        return Others(running, topics, tables, connections)

    def reconnect(self) -> None:
        """Drops all connections and finds every service anew: one was started again, perhaps at another address."""
        self.close()
        self._find_services()

    def refresh(self) -> None:
        """The same, but the load generators go on."""
        self._close_others()
        self._find_others()

    def another_sink(self, name: str) -> Sink:
        """The sink of that name with a connection of its own, for another thread; to be closed by whoever asks."""
        return open_sink(name, self.stack.endpoints, self._checkout)

    def config(self, cell: Cell, names: Names) -> dict[str, str]:
        """The connector's configuration: its file, with the trial's name, topic and tasks, and the plan's overrides.

        `${env:NAME}` in a value is filled in where the stack file says what it stands for, else left to the workers.

        Raises:
            PlanError: the file is no connector file.
        """
        changed = {**self.file_of(cell), "topics": names.topic, "tasks.max": str(cell.tasks)}
        variables = {**self.stack.endpoints.connect_variables, **self.variable_overrides}
        return {key: filled_in(value, variables) for key, value in changed.items()}

    def file_of(self, cell: Cell) -> dict[str, str]:
        """What the cell's connector file and the plan's overrides say. Raises PlanError if it is no connector file."""
        return {**read_connector(self._checkout / "connectors" / f"{cell.pipeline}.json"), **cell.overrides}

    def check_disk(self, records: int, rows_before: int = 0, form: Form = DOCUMENT) -> None:
        """Makes sure that a trial of so many records, after so many rows that are there before, fits on the disk.

        Raises:
            TrialFailed: it does not. A record is in the topic once and in the sink about three times (its log, its data
                and what is being merged or checkpointed), and a gigabyte stays free.
        """
        free = self.stack.usage().free_bytes
        needed = records * self.value_bytes(form) + (records + rows_before) * 3 * self.record_bytes + 1_000_000_000
        if free is not None and free < needed:
            raise TrialFailed(
                f"{records:,} records need {needed / 1e9:.1f} GB of free disk space, there are {free / 1e9:.1f} GB; "
                "free some, or set SINKBENCH_HOME to another disk",
                ReasonCode.DISK_TOO_SMALL,
            )

    def load(
        self,
        names: Names,
        wanted: TopicLoad,
        progress: Callable[[int], None],
        stop: threading.Event | None = None,
    ) -> Loaded:
        """Fills the trial's topic and says what came of it; see `Loadgens.load`.

        Raises:
            TrialFailed: not all records were acknowledged, or `stop` was set.
        """
        acks = self.plan.load.acks if wanted.acks is None else wanted.acks
        load = self.plan.load.model_copy(update={"form": wanted.form, "acks": acks})
        done = self._loadgens.load(names.topic, names.trial, wanted.records, load, progress, wanted.rate, stop)
        ends = self._ends_with(names.topic, done.acknowledged)
        return Loaded(
            sent=done.sent,
            acknowledged=done.acknowledged,
            in_topic=sum(ends),
            partitions=len(ends),
            partitions_with_records=sum(end > 0 for end in ends),
            records_per_second=done.acknowledged / done.elapsed_seconds if done.elapsed_seconds else 0.0,
            in_time=done.in_time,
        )

    def _ends_with(self, topic: str, records: int) -> Collection[int]:
        """The end offsets of the topic's partitions, as soon as so many records are before them, or after a while."""
        deadline = time.monotonic() + COPIED_SECONDS
        while True:
            ends = self.kafka.end_offsets(topic).values()
            if sum(ends) >= records or time.monotonic() > deadline:
                return ends
            time.sleep(AGAIN_SECONDS)

    def set_services(self, cell: Cell) -> None:
        """Sets the services of the cell's sink as its plan says, until `set_back`; nothing of another trial's stays."""
        self.set_back(cell.sink)
        if cell.settings:
            self._set.add(cell.sink)
            needed(self.sink(cell.sink).capabilities.service_settings, "service_settings").apply(cell.settings)

    def set_back(self, sink: str) -> None:
        """Has the services of a sink be as they were before `set_services`. Raises ServiceError if that fails."""
        if sink in self._set:
            needed(self.sink(sink).capabilities.service_settings, "service_settings").revert()
            self._set.discard(sink)

    def pooling(self, cell: Cell) -> SinkPooling | None:
        """How the pooler before the cell's sink is set; None if it has none, or does not tell."""
        pooler = self.sink(cell.sink).capabilities.pooler
        # Somebody else's may keep that back, which spoils no trial.
        with suppress(ServiceError):
            return None if pooler is None else pooler.read()
        return None

    def create_target(self, cell: Cell, names: Names) -> tuple[str, ...]:
        """Makes the trial's empty index or table, by the cell's target file if it has one.

        Returns:
            What readers of the trial's figures should know of it.

        Raises:
            TargetError: the file cannot be used, or lacks what the cell's connector writes to.
        """
        self.set_services(cell)
        file = None if cell.target is None else self._checkout / cell.target
        created = self.sink(cell.sink).create(names.target, file)
        self._check_columns(cell, names, created.columns)
        if self.plan.changes is not None:
            self._check_keyed(cell, names)
        return created.notes

    def _check_columns(self, cell: Cell, names: Names, there: frozenset[str] | None) -> None:
        """Makes sure that the target has each column that the connector fills, as far as both tell.

        Raises TargetError if it lacks one; then it is gone again.
        """
        wanted = filled_columns({key: str(value).strip() for key, value in self.file_of(cell).items()}, cell.form)
        if wanted is None or there is None:
            return
        if lacking := sorted(wanted - there):
            self.sink(cell.sink).drop(names.target)
            made = "the sink's own file" if cell.target is None else cell.target
            raise TargetError(
                f"{cell.label}: the table of {made} has no column {lacking[0]}, which {cell.pipeline} fills of records"
                f" of form {cell.form}; add it, or name another target or form"
            )

    def fill(self, cell: Cell, names: Names) -> Iterator[int]:
        """Puts the cell's `rows_before` into its index or table, and yields from time to time how many are there.

        Raises PlanError if the sink cannot do that.
        """
        filling = self.sink(cell.sink).capabilities.filling
        if filling is None:
            raise PlanError(f"{cell.label}: the sink {cell.sink} takes no rows_before; leave it out")
        load = self.plan.load
        count = min(cell.rows_before, DOCUMENTS_BEFORE)
        options = {"bootstrap": "-", "topic": "-", "run": RUN_BEFORE, "count": count}
        kept = load_from({**options, "keys": load.keys, "record_bytes": load.record_bytes})
        yield from filling.fill(names.target, cell.rows_before, records_of(kept))

    def _check_keyed(self, cell: Cell, names: Names) -> None:
        """Makes sure, by an audit of the empty target, that changes can be audited in it. Raises PlanError if not."""
        where = f"{self.plan.where('load', 'changes')}: {cell.label}"
        audited = self.sink(cell.sink).capabilities.changes
        if audited is None:
            raise PlanError(f"{where}: the sink {cell.sink} cannot be audited by key; leave the pipeline out")
        try:
            next(audited.versions(names.target, names.trial), None)
        except TargetError as error:
            raise PlanError(f"{where}: {error}") from None

    def create_topic(self, names: Names) -> None:
        """Makes the trial's topic, without records."""
        load, config = self.plan.load, topic_config(self._largest_bytes)
        replication = load.replication or self.stack.endpoints.replication
        self.kafka.create_topic(names.topic, load.partitions, replication, config)

    def start_connector(self, cell: Cell, names: Names) -> str | None:
        """Creates the trial's connector. Raises ConnectError if Connect does not take it.

        Returns:
            Its class, as its configuration names it.
        """
        config = self.config(cell, names)
        self.connect.create(names.connector, config)
        return config.get("connector.class")

    def start_connector_again(self, cell: Cell, names: Names) -> None:
        """Creates it, unless it is there after all: a worker that has just begun does not know yet what there is."""
        self.connect.configure(names.connector, self.config(cell, names))

    def status(self, names: Names) -> ConnectorStatus | None:
        """The trial's connector and its tasks; None if it is not there."""
        return self.connect.status(names.connector)

    def refusal(self, cell: Cell, names: Names) -> str | None:
        """Why the connection that the trial's connector makes to the sink does not come about from here, in one line.

        None if it does, or cannot be tried: the sink knows no way, or only the workers know what it takes.
        """
        ask = sink_kind(cell.sink).refusal
        if ask is None:
            return None
        config = self.config(cell, names)
        with suppress(ServiceError):
            filled_in = self.connect.validate(config).values
            config |= {key: value for key, value in filled_in.items() if key in config}
        return ask(self.stack.endpoints, config)

    def set_tasks(self, cell: Cell, names: Names) -> None:
        """Asks for the cell's number of tasks while the connector runs. Raises ConnectError if Connect refuses it."""
        self.connect.set_tasks(names.connector, cell.tasks)

    def restart(self, names: Names) -> None:
        """Starts the connector and all of its tasks once more."""
        self.connect.restart(names.connector)

    def restart_failed(self, names: Names) -> None:
        """Starts the tasks that have FAILED once more."""
        self.connect.restart_failed(names.connector)

    def redirect(self, cell: Cell, names: Names, variables: Mapping[str, str]) -> None:
        """Gives the trial's connector its configuration anew, with these values for `${env:NAME}`."""
        before, self.variable_overrides = self.variable_overrides, {**self.variable_overrides, **variables}
        try:
            self.connect.configure(names.connector, self.config(cell, names))
        finally:
            self.variable_overrides = before

    def settled(self, cell: Cell, names: Names) -> ConnectorStatus | None:
        """The connector, once the cell's tasks all run and have their partitions; None before."""
        if self.kafka.members(group_of(names.connector)) != cell.tasks:
            return None
        status = self.status(names)
        return status if status is not None and status.settled(cell.tasks) else None

    def placement(self, status: ConnectorStatus) -> dict[str, int]:
        """Tasks on each worker."""
        return placement(status, self.stack.endpoints.worker_ids)

    def machine_cores(self) -> int | None:
        """Cores of the machine that all services share, if that can be seen."""
        found = self.stack.usage().machine
        return None if found is None else found.cores

    def consumed(self, names: Names) -> int:
        """Sum of the offsets that the trial's connector has committed."""
        return self.kafka.committed(group_of(names.connector), names.topic)

    def last_signs(self, names: Names, records: int) -> dict[str, float]:
        """What the metrics of the connector's tasks say once all `records` are stored; empty if there are none."""
        return self._metrics.last(names.connector, records)

    def in_topic(self, names: Names) -> int:
        """Records in the trial's topic."""
        return sum(self.kafka.end_offsets(names.topic).values())

    def sampler(self, cell: Cell, names: Names, records: int, in_topic: Callable[[], int] | None = None) -> Sampler:
        """A sampler of everything that matters for this trial.

        `in_topic` tells how many records the topic holds; without it these are `records` all the time.
        """
        sink = self.sink(cell.sink)
        sources = Sources(
            sink=lambda: _since(sink.read(names.target), cell.rows_before), in_topic=in_topic or (lambda: records)
        )
        if not cell.probes:
            return Sampler(sources, UNWATCHED_SECONDS)
        sources = replace(
            sources,
            consumed=throttled(lambda: self.consumed(names), SLOW_SECONDS),
            status=throttled(lambda: self.connect.status(names.connector), SLOW_SECONDS),
            usage=throttled(self.stack.usage, SLOW_SECONDS, meanwhile=Usage()),
            tasks=lambda: self._metrics.read(names.connector),
        )
        return Sampler(sources, self.plan.probe_interval_ms / 1000)

    def background_sampler(self, cell: Cell, names: Callable[[], Names]) -> Sampler:
        """A sampler for a trial in which services are broken: it has clients of its own, and a thread for each source.

        `names` gives the trial's names as they are at the moment: a connector may be renamed.
        """
        own = Bench(self.stack, self.plan, self._checkout, self.records)
        own.connect.close()
        endpoints = self.stack.endpoints
        own.connect = ConnectCluster(self._workers, endpoints.connect_access, BACKGROUND_SECONDS)
        own.kafka = Kafka(endpoints.kafka, endpoints.kafka_settings, BACKGROUND_SECONDS)

        def read() -> SinkReading:
            try:
                return own.sink(cell.sink).read(names().target)
            except ServiceError:
                # The next look connects anew, also to a server that has started again.
                own.forget_sink(cell.sink)
                raise

        def used() -> Usage:
            found = self.stack.usage()
            # What a fault does to a service is no trouble.
            return Usage(found.cpu_seconds, machine=found.machine)

        sources = Sources(
            sink=read,
            in_topic=lambda: own.in_topic(names()),
            consumed=lambda: own.consumed(names()),
            status=lambda: own.status(names()),
            usage=used,
        )
        return BackgroundSampler(sources, self.plan.probe_interval_ms / 1000, SLOW_SECONDS, own.close)

    def forget_sink(self, name: str) -> None:
        """Closes the connection to a sink; whoever asks for it next gets another one."""
        if (sink := self._sinks.pop(name, None)) is not None:
            with suppress(ServiceError):
                sink.close()

    def stop_connector(self, names: Names) -> ConnectorStatus | None:
        """Deletes the connector and waits until nothing of it can write any more.

        Returns:
            Its status as it was before.
        """
        status = self.connect.status(names.connector)
        self.connect.delete(names.connector)
        self.connect.wait_until_gone(names.connector)
        self.kafka.wait_until_empty(group_of(names.connector))
        return status

    def audit(self, cell: Cell, names: Names, records: int) -> SeqAudit | VersionAudit:
        """Compares what the sink holds with what was produced, record by record, or key by key if they change keys."""
        sink = self.sink(cell.sink)
        sink.settle(names.target)
        if self.plan.changes is not None:
            return self._audit_versions(cell, names, records, self.plan.changes)
        audit = SeqAudit(records)
        found = 0
        for seqs in sink.sequences(names.target, names.trial):
            audit.add(seqs)
            found += len(seqs)
        audit.add_foreign(_foreign(sink, cell, names, found))
        return audit

    def _audit_versions(self, cell: Cell, names: Names, records: int, changes: PlanChanges) -> VersionAudit:
        sink = self.sink(cell.sink)
        keys = self.plan.load.keys
        audit = VersionAudit(records, key_names(keys), *last_versions(Changes(**changes.model_dump()), keys, records))
        found = 0
        for chunk, seqs in needed(sink.capabilities.changes, "changes").versions(names.target, names.trial):
            audit.add(chunk, seqs)
            found += len(chunk)
        audit.add_foreign(_foreign(sink, cell, names, found))
        return audit

    def bloat(self, cell: Cell, names: Names) -> SinkBloat | None:
        """What changes have left in the sink so far; None of a load without changes, or if it does not tell."""
        changes = self.sink(cell.sink).capabilities.changes
        return None if self.plan.changes is None or changes is None else changes.bloat(names.target)

    def content(self, cell: Cell, names: Names, records: int) -> Content | None:
        """Compares a few records of the topic with what the sink holds of them, and many with their own checksums.

        None if the sink does not tell what it holds.
        """
        # Of what changes the sink keeps the last versions.
        count = max(LEAST_COMPARED, min(COMPARED_RECORDS, int(COMPARED_BYTES / self.record_bytes)))
        values = self.kafka.some_records(names.topic, count, last=self.plan.changes is not None)
        sent = documents_of(values, names.trial, cell.form)
        return content_of(self.sink(cell.sink), names, sent, records, self.record_bytes)

    def ask(self, cell: Cell, names: Names, records: int) -> list[Asked]:
        """What the trial's index or table answers to the plan's queries, and whether that is right."""
        queries = self.sink(cell.sink).capabilities.queries
        if not self._queries or queries is None:
            return []
        with SentRecords(records, self.plan.load.keys) as sent:
            return [
                asked(query, partial(queries.ask, names.target, query), sent.answer(query)) for query in self._queries
            ]

    def read_order(self, cell: Cell, names: Names) -> Order:
        """What the process that asks queries beside a cell's load is told."""
        endpoints = self.stack.endpoints
        return Order(endpoints, self._checkout, cell.sink, names.target, self._queries, cell.reads or 0.0)

    def clean(self, cell: Cell, names: Names, topic: bool = True) -> None:
        """Removes everything that the trial has created; what is not there is fine."""
        try:
            self.stop_connector(names)
        finally:
            # What is left of this trial must not change another one.
            self.set_back(cell.sink)
        self.sink(cell.sink).drop(names.target)
        self.kafka.delete_group(group_of(names.connector))
        if topic:
            self.kafka.delete_topic(names.topic)


def _since(reading: SinkReading, rows_before: int) -> SinkReading:
    """The same without the rows that were there before the trial."""
    return replace(reading, stored=reading.stored - rows_before) if rows_before else reading


def _foreign(sink: Sink, cell: Cell, names: Names, found: int) -> int:
    """Rows that are neither the trial's, of which so many were found, nor were put there before it.

    Records of another trial, or without a number, are in the count but not among the sequences.

    Raises:
        TrialFailed: some of those that were put there before are gone.
    """
    others = sink.count(names.target) - found - cell.rows_before
    if others < 0 and cell.rows_before:
        gone = f"{-others:,} of the {cell.rows_before:,} rows that were there before are gone"
        raise TrialFailed(gone, ReasonCode.COUNTS_DISAGREE)
    return others


def filled_in(value: str, variables: Mapping[str, str]) -> str:
    """A value of a connector's configuration with those of its `${env:NAME}` filled in that are known here."""
    # A connector file may hold numbers; Connect takes them as they are.
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(lambda found: variables.get(found[1], found[0]), value)
