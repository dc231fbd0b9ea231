"""What trials are made with: the clients of one stack, and the steps of a trial that talk to services."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sinkbench.audit import SeqAudit
from sinkbench.cells import Cell
from sinkbench.connect import ConnectCluster, ConnectorStatus
from sinkbench.errors import ConnectError, PlanError, StackError, TrialFailed
from sinkbench.jmx import ConnectMetrics
from sinkbench.kafka import Kafka, group_of
from sinkbench.leftovers import PREFIX, TRIAL, Book, is_leftover
from sinkbench.load import Loadgens
from sinkbench.plan import Plan
from sinkbench.probes import Sampler, Sources
from sinkbench.sinks import Sink, open_sink, sinks_of
from sinkbench.stack import Access, Stack

__all__ = ["PREFIX", "Bench", "Loaded", "Names"]

# What a connector file leaves to whoever reads it: the workers' config provider, or a stack file's variables.
# How often a sink is asked whether all is stored where nothing else is looked at.
UNWATCHED_SECONDS = 2.0
VARIABLE = re.compile(r"\$\{env:([^}]+)\}")


@dataclass(frozen=True)
class Names:
    """What the things of one trial are called."""

    trial: str
    topic: str
    connector: str

    @classmethod
    def of(cls, trial: str) -> Names:
        """All named after the trial's id."""
        return cls(trial, PREFIX + trial, PREFIX + trial)

    @property
    def target(self) -> str:
        """The index or table: the JDBC sink names it after the topic."""
        return self.topic


@dataclass(frozen=True)
class Loaded:
    """A trial's topic after its load: records that were sent, acknowledged and are in it, and its partitions.

    Attributes:
        records_per_second: acknowledged records over the time that the load took.
        in_time: records sent by the time that the last one was due; None of a load without a rate.
    """

    sent: int
    acknowledged: int
    in_topic: int
    partitions: int
    partitions_with_records: int
    records_per_second: float
    in_time: int | None = None


class Bench:
    """One stack, its clients and the plan that is run on it."""

    def __init__(self, stack: Stack, plan: Plan, checkout: Path) -> None:
        self.stack = stack
        self.plan = plan
        self._checkout = checkout
        self._sinks: dict[str, Sink] = {}
        self._find_services()

    def _find_services(self) -> None:
        endpoints = self.stack.endpoints
        self.connect = ConnectCluster(endpoints.connect.values(), endpoints.connect_access)
        self.kafka = Kafka(endpoints.kafka, endpoints.kafka_settings)
        self._loadgens = Loadgens(endpoints)
        # They have an address of their own, which the user and password of Connect are none of the business of.
        self._metrics = ConnectMetrics(endpoints.connect_metrics, Access(ca=endpoints.connect_access.ca))

    def sink(self, name: str) -> Sink:
        """The sink of that name; connected once, used by one thread at a time."""
        if name not in self._sinks:
            self._sinks[name] = open_sink(name, self.stack.endpoints, self._checkout)
        return self._sinks[name]

    def close(self) -> None:
        """Closes all connections, and ends the load generator that was started, if any."""
        self._loadgens.close()
        self.connect.close()
        self._metrics.close()
        for sink in self._sinks.values():
            sink.close()
        self._sinks.clear()

    def reconnect(self) -> None:
        """Drops all connections and finds every service anew: one was started again, perhaps at another address."""
        self.close()
        self._find_services()

    def config(self, cell: Cell, names: Names) -> dict[str, str]:
        """The connector's configuration: its file, with the trial's name, topic and tasks, and the plan's overrides.

        `${env:NAME}` in a value is filled in where the stack file says what it stands for, else left to the workers.

        Raises:
            PlanError: the file is no connector file.
        """
        path = self._checkout / "connectors" / f"{cell.pipeline}.json"
        try:
            config: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))["config"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PlanError(f"{path}: not a connector file (an object with name and config): {error}") from None
        changed = {**config, **cell.overrides, "topics": names.topic, "tasks.max": str(cell.tasks)}
        variables = self.stack.endpoints.connect_variables
        return {key: _filled_in(value, variables) for key, value in changed.items()}

    def preflight(self, cells: Sequence[Cell]) -> dict[str, str | None]:
        """Makes sure, before anything is created, that every cell has its sink and Connect the plugin that it needs.

        Returns:
            The version of each plugin that the cells use, by its class.

        Raises:
            StackError: there is no such sink, or it does not answer.
            ConnectError: Connect has no such plugin; says which sink connectors it has.
            PlanError: a pipeline's file is no connector file.
        """
        for name in dict.fromkeys(cell.sink for cell in cells):
            self.sink(name)
        there = self.connect.plugins()
        used = {}
        for cell in cells:
            wanted = self.config(cell, Names.of("preflight")).get("connector.class", "")
            found = next((name for name in there if wanted in _spellings(name)), None)
            if found is None:
                raise ConnectError(
                    f"{cell.label}: Connect has no plugin {wanted or '(no connector.class)'}; install it on every"
                    f" worker, or leave the pipeline out; its sink connectors: {', '.join(sorted(there)) or 'none'}"
                )
            used[found] = there[found]
        return used

    def begin(self, token: str) -> None:
        """Takes down that a run begins, so that a later one can tell what this one may leave behind."""
        if self.stack.endpoints.shared:
            Book.of(self.stack).begin(token)

    def check_disk(self, records: int) -> None:
        """Makes sure that a trial of so many records fits on the disk.

        Raises:
            TrialFailed: it does not. A record is in the topic once and in the sink about three times (its log, its data
                and what is being merged or checkpointed), and a gigabyte stays free.
        """
        free = self.stack.free_bytes()
        needed = records * self.plan.load.record_bytes * 4 + 1_000_000_000
        if free is not None and free < needed:
            raise TrialFailed(
                f"{records:,} records need {needed / 1e9:.1f} GB of free disk space, there are {free / 1e9:.1f} GB; "
                "free some, or set SINKBENCH_HOME to another disk"
            )

    def load(
        self,
        names: Names,
        records: int,
        progress: Callable[[int], None],
        rate: float | None = None,
        stop: threading.Event | None = None,
    ) -> Loaded:
        """Fills the trial's topic and says what came of it; see `Loadgens.load`.

        Raises:
            TrialFailed: not all records were acknowledged, or `stop` was set.
        """
        done = self._loadgens.load(names.topic, names.trial, records, self.plan.load, progress, rate, stop)
        ends = self.kafka.end_offsets(names.topic).values()
        return Loaded(
            sent=done.sent,
            acknowledged=done.acknowledged,
            in_topic=sum(ends),
            partitions=len(ends),
            partitions_with_records=sum(end > 0 for end in ends),
            records_per_second=done.acknowledged / done.elapsed_seconds if done.elapsed_seconds else 0.0,
            in_time=done.in_time,
        )

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
        if not cell.probes:
            unwatched = Sources(sink=lambda: sink.read(names.target), in_topic=in_topic or (lambda: records))
            return Sampler(unwatched, UNWATCHED_SECONDS)
        sources = Sources(
            sink=lambda: sink.read(names.target),
            consumed=lambda: self.consumed(names),
            status=lambda: self.connect.status(names.connector),
            cpu_seconds=self.stack.cpu_seconds,
            in_topic=in_topic or (lambda: records),
            troubles=self.stack.troubles,
            tasks=lambda: self._metrics.read(names.connector),
            machine=lambda: None if (found := self.stack.machine_cpu()) is None else found[0],
        )
        return Sampler(sources, self.plan.probe_interval_ms / 1000)

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

    def audit(self, cell: Cell, names: Names, records: int) -> SeqAudit:
        """Compares what the sink holds with what was produced, record by record."""
        sink = self.sink(cell.sink)
        sink.settle(names.target)
        audit = SeqAudit(records)
        found = 0
        for seqs in sink.sequences(names.target, names.trial):
            audit.add(seqs)
            found += len(seqs)
        # Records of another trial, or without a number, are in the count but not among the sequences.
        audit.add_foreign(sink.count(names.target) - found)
        return audit

    def clean(self, cell: Cell, names: Names, topic: bool = True) -> None:
        """Removes everything that the trial has created; what is not there is fine."""
        self.stop_connector(names)
        self.sink(cell.sink).drop(names.target)
        self.kafka.delete_group(group_of(names.connector))
        if topic:
            self.kafka.delete_topic(names.topic)

    def sweep(self) -> list[str]:
        """Removes what trials of a run that was killed have left behind.

        Returns:
            What was removed, for a person.
        """
        swept = []
        mine = is_leftover(self.stack)
        for connector in filter(mine, self.connect.connectors()):
            self.stop_connector(Names("", "", connector))
            self.kafka.delete_group(group_of(connector))
            swept.append(f"connector {connector}")
        for name in sinks_of(self.stack.endpoints):
            for target in filter(mine, self.sink(name).leftovers(PREFIX)):
                self.sink(name).drop(target)
                swept.append(f"{name}'s {target}")
        for topic in filter(mine, self.kafka.topics()):
            self.kafka.delete_topic(topic)
            swept.append(f"topic {topic}")
        if self.stack.endpoints.shared:
            Book.of(self.stack).clear()
        return swept

    def check_alone(self) -> None:
        """Makes sure, after `sweep`, that no other run measures here: both would be wrong.

        Raises:
            StackError: a connector of another run's trial is on the Connect cluster.
        """
        others = [name for name in self.connect.connectors() if TRIAL.fullmatch(name)]
        if others:
            raise StackError(
                f"another run's connector {others[0]} is on this Connect cluster, and two races would spoil each"
                " other's figures; wait until that run has ended or, if it was killed, delete the connector"
            )


def _filled_in(value: str, variables: Mapping[str, str]) -> str:
    # A connector file may hold numbers; Connect takes them as they are.
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(lambda found: variables.get(found[1], found[0]), value)


def _spellings(plugin: str) -> tuple[str, ...]:
    """What Connect takes for a plugin's class: its full name, its simple one, and that without "Connector"."""
    simple = plugin.rpartition(".")[2]
    return plugin, simple, simple.removesuffix("Connector")
