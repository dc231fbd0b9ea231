"""What was seen of a trial: what its figures are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sinkbench.analysis.samples import Sample


@dataclass(frozen=True)
class Seen:
    """What a trial's probes have read, and what is known of the trial.

    Attributes:
        samples: read while the connector ran, oldest first; readings that have no field of their own are `signs`.
        records: to be stored.
        path: services that the records pass.
        counters_go_on: whether counters of services and tasks hold for the whole trial; those that were started again
            begin anew.
        drained: whether the topic was full, and the connector watched while it emptied it.
        read_all: whether the connector has committed every record.
        task_metrics: last signs of the tasks that were there all the time.
        pooling: how a pooler was set: fields of `Pool`.
        records_per_write: by the sink's own counts.
        disk_bytes_per_record: after a flush.
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

    @property
    def counted(self) -> Sequence[Sample]:
        """Samples whose counters can be subtracted from each other."""
        return self.samples if self.counters_go_on else []


def rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)
