"""The limits of a run, one after the other: what a race calls once, between its pilots and its first block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sinkbench.bench import Bench, Names
from sinkbench.cells import Cell
from sinkbench.errors import TrialFailed
from sinkbench.limits.cleaning import cleaning
from sinkbench.limits.consume import connect_limit, kafka_limit
from sinkbench.limits.efficiency import CONNECT, KAFKA
from sinkbench.limits.sinklimit import sink_limit
from sinkbench.limits.tune import Tuned, step_up
from sinkbench.limits.writers import WAYS
from sinkbench.probes import CLIENT_ERRORS, in_one_line
from sinkbench.results import Limit, LimitStep
from sinkbench.sizing import MINIMUM_RECORDS
from sinkbench.watching import Observer

__all__ = ["LimitJob", "jobs"]

# What Kafka and Connect read: enough for some seconds, but no more than this on the disk.
TOPIC_RECORDS = 2_000_000
TOPIC_BYTES = 1_200_000_000


class LimitJob:
    """One limit that is to be measured."""

    def __init__(self, sink: str, way: str, search: Callable[[Observer], Tuned]) -> None:
        self.sink = sink
        self.way = way
        self._search = search

    @property
    def name(self) -> str:
        """For a person who waits: `limit of postgres by COPY`."""
        return f"limit of {self.sink} by {self.way}"

    def run(self, observer: Observer) -> Limit:
        """Measures it; what it creates is removed, however it ends.

        Returns:
            The limit, without a rate if it cannot be measured, with the reason as its note.
        """
        try:
            found = self._search(observer)
        except TrialFailed as error:
            return Limit(sink=self.sink, way=self.way, note=str(error))
        except CLIENT_ERRORS as error:
            return Limit(sink=self.sink, way=self.way, note=in_one_line(error))
        path = [
            LimitStep(
                batch=step.point.batch or None,
                connections=step.point.connections,
                records_per_second=step.measured.records_per_second,
                problem=step.measured.problem,
                confirms=step.confirms,
            )
            for step in found.path
        ]
        if found.best is None:
            problem = next((step.problem for step in path if step.problem is not None), None)
            return Limit(sink=self.sink, way=self.way, path=path, note=problem or "nothing was stored")
        point = found.best.point
        return Limit(
            sink=self.sink,
            way=self.way,
            records_per_second=found.best.measured.records_per_second,
            connections=point.connections,
            batch=point.batch or None,
            path=path,
        )


def jobs(bench: Bench, cells: Sequence[Cell], token: str) -> list[LimitJob]:
    """The limits that matter for a plan's cells: Kafka's, Connect's, and that of each way to write to each sink.

    Args:
        bench: the stack and its clients.
        cells: the plan's.
        token: the run's, which the names of all that is created begin with.
    """
    reading = Names.of(f"{token}_limit")
    # The pipeline with the shortest path is as good as any: its connector gets nothing to do.
    lead = {cell.tasks: cell for cell in reversed(cells) if cell.label == cells[0].label}
    numbers = sorted(lead)

    def kafka(observer: Observer) -> Tuned:
        with _topic(bench, reading, observer) as records:
            observer.phase("reading by a plain consumer group")
            return step_up(lambda number: kafka_limit(bench, reading, records, number, observer.progress), numbers)

    def connect(observer: Observer) -> Tuned:
        with _topic(bench, reading, observer) as records:
            observer.phase("reading by Connect")
            return step_up(
                lambda number: connect_limit(bench, lead[number], reading, records, observer.progress), numbers
            )

    return [
        LimitJob(KAFKA, "consumer group", kafka),
        LimitJob(CONNECT, cells[0].label, connect),
        *_sink_jobs(bench, cells, token),
    ]


def _sink_jobs(bench: Bench, cells: Sequence[Cell], token: str) -> Iterator[LimitJob]:
    for sink in dict.fromkeys(cell.sink for cell in cells):
        for way in WAYS.get(sink, ()):
            yield LimitJob(sink, way, _search_of(bench, sink, way, Names.of(f"{token}_limit_{way.lower()}")))


def _search_of(bench: Bench, sink: str, way: str, names: Names) -> Callable[[Observer], Tuned]:
    return lambda observer: sink_limit(bench, sink, way, names, observer.phase)


@contextmanager
def _topic(bench: Bench, names: Names, observer: Observer) -> Iterator[int]:
    """A loaded topic, for as long as it is read, and how many records it holds.

    Raises TrialFailed or StackError if it cannot be loaded.
    """
    records = max(min(TOPIC_RECORDS, TOPIC_BYTES // bench.plan.load.record_bytes), MINIMUM_RECORDS)
    bench.check_disk(records)
    with cleaning(lambda: bench.kafka.delete_topic(names.topic)):
        observer.phase("loading the topic")
        bench.load(names, records, lambda done: observer.progress(done, records))
        yield records
