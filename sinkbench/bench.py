"""What trials are made with: the clients of one stack, and the steps of a trial that talk to services."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sinkbench.audit import SeqAudit
from sinkbench.cells import Cell
from sinkbench.connect import ConnectCluster, ConnectorStatus
from sinkbench.errors import PlanError, TrialFailed
from sinkbench.kafka import Kafka, group_of
from sinkbench.load import Loadgens
from sinkbench.plan import Plan
from sinkbench.probes import Sampler, Sources
from sinkbench.sinks import SINKS, Sink, open_sink
from sinkbench.stack import Stack

__all__ = ["PREFIX", "Bench", "Names"]

# Begins the name of everything that a trial creates; also a legal name of a table that needs no quotes.
PREFIX = "tides_"


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


class Bench:
    """One stack, its clients and the plan that is run on it."""

    def __init__(self, stack: Stack, plan: Plan, checkout: Path) -> None:
        self.stack = stack
        self.plan = plan
        self._checkout = checkout
        self.connect = ConnectCluster(stack.endpoints.connect.values())
        self.kafka = Kafka(stack.endpoints.kafka)
        self._loadgens = Loadgens(stack.endpoints)
        self._sinks: dict[str, Sink] = {}

    def sink(self, name: str) -> Sink:
        """The sink of that name; connected once, used by one thread at a time."""
        if name not in self._sinks:
            self._sinks[name] = open_sink(name, self.stack.endpoints, self._checkout)
        return self._sinks[name]

    def close(self) -> None:
        """Closes all connections, and ends the load generator that was started, if any."""
        self._loadgens.close()
        self.connect.close()
        for sink in self._sinks.values():
            sink.close()
        self._sinks.clear()

    def reconnect(self) -> None:
        """Drops the connections to the sinks: one of them has been started anew."""
        for sink in self._sinks.values():
            sink.close()
        self._sinks.clear()

    def config(self, cell: Cell, names: Names) -> dict[str, str]:
        """The connector's configuration: its file, with the trial's name, topic and tasks, and the plan's overrides.

        Raises:
            PlanError: the file is no connector file.
        """
        path = self._checkout / "connectors" / f"{cell.pipeline}.json"
        try:
            config: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))["config"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PlanError(f"{path}: not a connector file (an object with name and config): {error}") from None
        return {**config, **cell.overrides, "topics": names.topic, "tasks.max": str(cell.tasks)}

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

    def load(self, names: Names, records: int, progress: Callable[[int], None]) -> None:
        """Fills the trial's topic. Raises TrialFailed if not every record is in it."""
        self._loadgens.load(names.topic, names.trial, records, self.plan.load, progress)
        stored = sum(self.kafka.end_offsets(names.topic).values())
        if stored != records:
            raise TrialFailed(f"{records:,} records were acknowledged, but the topic holds {stored:,}")

    def sampler(self, cell: Cell, names: Names, records: int) -> Sampler:
        """A sampler of everything that matters for this trial."""
        sink = self.sink(cell.sink)
        sources = Sources(
            sink=lambda: sink.read(names.target),
            consumed=lambda: self.kafka.committed(group_of(names.connector), names.topic),
            status=lambda: self.connect.status(names.connector),
            cpu_seconds=self.stack.cpu_seconds,
        )
        return Sampler(sources, records, self.plan.probe_interval_ms / 1000)

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
        for connector in [name for name in self.connect.connectors() if name.startswith(PREFIX)]:
            self.stop_connector(Names("", "", connector))
            self.kafka.delete_group(group_of(connector))
            swept.append(f"connector {connector}")
        for name in SINKS:
            for target in self.sink(name).leftovers(PREFIX):
                self.sink(name).drop(target)
                swept.append(f"{name}'s {target}")
        for topic in [topic for topic in self.kafka.topics() if topic.startswith(PREFIX)]:
            self.kafka.delete_topic(topic)
            swept.append(f"topic {topic}")
        return swept
