"""The readings of a trial from which its figures are computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sinkbench.analysis.samples import Sample


@dataclass(frozen=True)
class Seen:
    """What a trial's probes read, and what is known of the trial.

    Attributes:
        path: services that the records pass.
        counters_go_on: whether counters of services and tasks cover the whole trial; a restart resets them.
        drained: whether the topic was full, and the connector was monitored while it emptied it.
        read_all: whether the connector has committed every record.
        task_metrics: last signs of the tasks that existed all the time.
        pooling: a pooler's settings: fields of `Pool`.
        disk_bytes_per_record: after a flush.
        other_connections: connections that others opened meanwhile.
    """

    samples: Sequence[Sample] = ()
    records: int = 0
    path: Collection[str] = ()
    counters_go_on: bool = True
    drained: bool = True
    read_all: bool = True
    task_metrics: Mapping[str, float] = field(default_factory=dict)
    pooling: Mapping[str, object] = field(default_factory=dict)
    records_per_write: float | None = None
    disk_bytes_per_record: float | None = None
    connection_limit: int | None = None
    other_connections: int = 0

    @property
    def counted(self) -> Sequence[Sample]:
        """Samples whose counters can be subtracted from each other."""
        return self.samples if self.counters_go_on else []


def rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)
