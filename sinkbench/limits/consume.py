"""The limits before the sink: a plain consumer group's rate, and Connect's rate when it drops all records."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sinkbench.analysis.rates import drain_rate
from sinkbench.errors import ServiceError
from sinkbench.limits.clients import Consume, consume_as_group
from sinkbench.limits.tune import Measured
from sinkbench.plan.cells import Cell
from sinkbench.services.failures import in_one_line
from sinkbench.services.kafka import group_of
from sinkbench.services.worker import WorkerFailed
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning

DROP = "sinkbench_drop"
POLL_SECONDS = 0.1
COMMIT_MS = 200
TOO_SHORT = "the topic was read too fast to be measured; a larger record_bytes would take longer"

Tell = Callable[[int, int], None]
"""Gets the number of records read so far, and of all."""


@dataclass
class _Progress:
    """Records read from a topic over time, until all are read or progress stalls."""

    total: int
    stall_seconds: float
    tell: Tell
    times: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    moved: float = field(default_factory=time.monotonic)

    def see(self, at: float, count: int) -> bool:
        """Takes a reading; returns whether to go on."""
        if not self.counts or count > self.counts[-1]:
            self.moved = time.monotonic()
        self.times.append(at)
        self.counts.append(count)
        self.tell(min(count, self.total), self.total)
        return count < self.total and time.monotonic() - self.moved < self.stall_seconds

    def measured(self) -> Measured:
        """The rate between 10 % and 90 % of the records, as in a trial, or why there is none."""
        reached = self.counts[-1] if self.counts else 0
        if reached != self.total:
            return Measured(None, f"{reached:,} of {self.total:,} records were read")
        rate = drain_rate(self.times, self.counts, self.total)
        return Measured(None, TOO_SHORT) if rate is None else Measured(round(rate.records_per_second, 1))


def kafka_limit(cluster: Cluster, names: Names, records: int, consumers: int, tell: Tell) -> Measured:
    """The rate of a group of `consumers` processes that read a topic of `records`."""
    endpoints = cluster.stack.endpoints
    progress = _Progress(records, cluster.plan.drain.stall_seconds, tell)
    group = group_of(names.connector)
    what = Consume(names.topic, group, {**endpoints.kafka_settings, "bootstrap.servers": endpoints.kafka})

    def clean() -> None:
        cluster.kafka.wait_until_empty(group)
        cluster.kafka.delete_group(group)

    with cleaning(clean):
        try:
            consume_as_group(what, consumers, cluster.plan.load.partitions, progress.see)
            return progress.measured()
        except (WorkerFailed, ServiceError) as error:
            return Measured(None, in_one_line(error))


def dropping(config: dict[str, str]) -> dict[str, str]:
    """A connector's configuration with Connect's `Filter` as last transform, which drops every record. The worker
    polls, converts and transforms, and the connector has nothing to write."""
    transforms = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    return {
        **config,
        "transforms": ",".join([*transforms, DROP]),
        f"transforms.{DROP}.type": "org.apache.kafka.connect.transforms.Filter",
        # Without a sink, progress is the committed offset, which by default changes only every few seconds.
        "consumer.override.enable.auto.commit": "true",
        "consumer.override.auto.commit.interval.ms": str(COMMIT_MS),
    }


def connect_limit(cluster: Cluster, cell: Cell, names: Names, records: int, tell: Tell) -> Measured:
    """The rate at which a cell's tasks read and drop a topic of `records`."""
    progress = _Progress(records, cluster.plan.drain.stall_seconds, tell)
    group = group_of(names.connector)

    def clean() -> None:
        cluster.stop_connector(names.connector)
        cluster.kafka.delete_group(group)

    with cleaning(clean):
        try:
            cluster.connect.create(names.connector, dropping(cluster.config(cell, names)))
            while progress.see(time.monotonic(), cluster.kafka.committed(group, names.topic)):
                time.sleep(POLL_SECONDS)
            measured = progress.measured()
            if measured.records_per_second is not None:
                return measured
            status = cluster.connect.status(names.connector)
            return Measured(None, (None if status is None else status.cause()) or measured.problem)
        except ServiceError as error:
            return Measured(None, in_one_line(error))
