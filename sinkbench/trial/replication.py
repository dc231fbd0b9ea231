"""What must hold in a trial: copies that are in sync, shards and leaders that are spread. When it is looked at."""

from __future__ import annotations

import time
from collections.abc import Callable

from sinkbench.analysis.durability import acks_in_words, acks_nodes, as_replicated, promise_in_words
from sinkbench.analysis.replication import Broken, ReplicationState, topic_replication
from sinkbench.errors import ServiceError
from sinkbench.plan.cells import Cell
from sinkbench.results import Durability
from sinkbench.services.failures import in_one_line
from sinkbench.sinks.reading import SinkSettings
from sinkbench.trial.bench import Bench
from sinkbench.trial.names import Names

__all__ = ["ReplicationCheck"]

# What was made a moment ago, or was moved, comes to rest within so long.
SETTLE_SECONDS, AGAIN_SECONDS = 10.0, 0.5


class ReplicationCheck:
    """What must hold around one trial: two looks at its sink and its topic, before its connector and after it.

    Nothing is asked while records come. A sink or a topic of which one node holds all, without copies, is looked at
    once: nothing of it can change but that it dies, and a service that died is seen by other means.

    Attributes:
        unchecked: what could not be looked at, and why, each for a person.
    """

    def __init__(self, bench: Bench, cell: Cell, names: Names) -> None:
        self._bench = bench
        self._cell = cell
        self._sink = cell.sink
        self._acks = bench.plan.load.acks if cell.acks is None else cell.acks
        self._names = names
        self._of_sink: ReplicationState | None = None
        self._of_topic: ReplicationState | None = None
        self.unchecked: list[str] = []

    def before(self) -> list[Broken]:
        """What does not hold, although it was waited for."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            broken = self._look()
            if not broken or time.monotonic() > deadline:
                return broken
            time.sleep(AGAIN_SECONDS)

    def after(self) -> list[Broken]:
        """What does not hold at this moment; nothing of what cannot have changed since `before`."""
        return self._look(again=True)

    def durability(self) -> Durability | None:
        """What is on how many nodes when a record counts as stored; None if the sink does not answer."""
        try:
            settings = self._settings()
        except (ServiceError, OSError):
            return None
        kafka, brokers = acks_in_words(self._acks, self._of_topic), acks_nodes(self._acks, self._of_topic)
        settled = {name: value for name, value in settings.durability.items() if value is not None}
        if settings.promise is None:
            return Durability(kafka=kafka, kafka_nodes=brokers, settings=settled)
        promise = as_replicated(settings.promise, self._of_sink)
        return Durability(
            text=promise_in_words(promise),
            nodes=promise.nodes,
            on_disk=promise.on_disk,
            kafka=kafka,
            kafka_nodes=brokers,
            settings=settled,
        )

    def _settings(self) -> SinkSettings:
        config = self._bench.config(self._cell, self._names)
        return self._bench.sink(self._sink).settings(self._names.target, config)

    def _look(self, *, again: bool = False) -> list[Broken]:
        unchecked: list[str] = []
        if not (again and self._of_sink is not None and self._of_sink.alone):
            self._of_sink = self._asked(f"what must hold in {self._sink}", self._ask_sink)
        if not (again and self._of_topic is not None and self._of_topic.alone):
            self._of_topic = self._asked("what must hold of the topic", self._ask_topic)
        for found in (self._of_sink, self._of_topic):
            unchecked += found.unchecked
        # What was not seen once is not known of the whole trial.
        self.unchecked = list(dict.fromkeys([*(self.unchecked if again else []), *unchecked]))
        return [*self._of_sink.broken, *self._of_topic.broken]

    def _asked(self, what: str, ask: Callable[[], ReplicationState]) -> ReplicationState:
        try:
            return ask()
        except (ServiceError, OSError) as error:
            # Why the trial comes to nothing, if it does, is told by what it asks next.
            return ReplicationState(unchecked=(f"{what}: {in_one_line(error)}",))

    def _ask_sink(self) -> ReplicationState:
        replication = self._bench.sink(self._sink).capabilities.replication
        if replication is None:
            return ReplicationState(unchecked=(f"what must hold in {self._sink}: this sink does not tell",))
        return replication.check(self._names.target, self._bench.config(self._cell, self._names))

    def _ask_topic(self) -> ReplicationState:
        brokers, topics = self._bench.kafka.copies(self._names.topic)
        if not topics.get(self._names.topic):
            return ReplicationState(
                unchecked=("whether the topic's copies are in sync: Kafka does not show its partitions",)
            )
        return topic_replication(brokers, topics[self._names.topic])
