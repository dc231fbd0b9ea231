"""The dead letters of one trial's connector: records that it has put aside because they could not be stored."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from sinkbench.analysis.deadletters import QUEUE, DeadLetter
from sinkbench.plan.cells import Cell
from sinkbench.services.deadletters import DeadLetterQueue
from sinkbench.trial.bench import Bench
from sinkbench.trial.names import Names

__all__ = ["DeadLetters"]


class DeadLetters:
    """What comes to a connector's dead letter queue while a trial runs. The queue stays, for whoever looks into it."""

    def __init__(self, bench: Bench, cell: Cell, names: Names) -> None:
        self._bench = bench
        self._cell = cell
        self._names = names
        self._since: Mapping[int, int] = {}
        self.queue: str | None = None

    def exclude_existing(self) -> None:
        """Notes where the queue ends before the connector is there."""
        self.queue = self._bench.config(self._cell, self._names).get(QUEUE) or None
        # Connect makes the topic with the first connector that names it.
        if self.queue is not None and self.queue in self._bench.kafka.topics():
            self._since = self._bench.kafka.end_offsets(self.queue)

    def read(self) -> list[DeadLetter]:
        """Those from the trial's topic. One without Connect's headers may be from anywhere, and is taken as its own."""
        if self.queue is None or self.queue not in self._bench.kafka.topics():
            return []
        endpoints = self._bench.stack.endpoints
        queue = DeadLetterQueue(endpoints.kafka, endpoints.kafka_settings, self.queue, self._since)
        with closing(queue):
            letters = [DeadLetter(*record) for record in queue.records()]
        return [each for each in letters if each.source is None or each.source[0] == self._names.topic]
