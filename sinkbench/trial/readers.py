"""Further consumer groups, of one member each, that read a trial's topic while a load is offered."""

import math
from contextlib import AbstractContextManager

from sinkbench.services.consumers import JOIN_SECONDS, Consume, consume
from sinkbench.services.failures import maps_exceptions
from sinkbench.services.worker import WorkerFailed, Workers, answer_of, order
from sinkbench.trial.resources import Resources


@maps_exceptions(WorkerFailed)
class Readers(AbstractContextManager["Readers"]):
    """The `readers` of a cell, from the topic's first record on. They commit nothing and end with the context. Methods
    raise ServiceError if one of them does not read."""

    def __init__(self, own: Resources) -> None:
        """Waits until each has all partitions."""
        self._workers = Workers()
        endpoints = own.cluster.stack.endpoints
        try:
            self._ends = [self._workers.start(consume) for _ in own.reader_groups]
            for group, end in zip(own.reader_groups, self._ends, strict=True):
                settings = {**endpoints.kafka_settings, "bootstrap.servers": endpoints.kafka}
                order(end, Consume(own.names.topic, group, settings, math.inf))
            for end in self._ends:
                while answer_of(end, JOIN_SECONDS)[1] != own.cell.partitions:
                    pass
        except BaseException:
            self._workers.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._workers.close()

    def begin(self) -> None:
        """Lets them read."""
        for end in self._ends:
            order(end, True)

    def end(self) -> list[int]:
        """Ends the reading; returns the number of records that each has read."""
        read = []
        for end in self._ends:
            order(end, True)
            read.append(0)
            while (told := answer_of(end, JOIN_SECONDS)) is not None:
                read[-1] = told[2]
        return read
