"""The limits of a run, one after the other: what a race calls once, between its pilots and its first block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from sinkbench.bench import Bench, Names
from sinkbench.cells import Cell
from sinkbench.errors import TrialFailed
from sinkbench.limits.consume import connect_limit, kafka_limit
from sinkbench.limits.efficiency import CONNECT, KAFKA
from sinkbench.limits.sinklimit import sink_limit
from sinkbench.limits.tune import Tuned, step_up
from sinkbench.limits.writers import WAYS
from sinkbench.probes import CLIENT_ERRORS, in_one_line
from sinkbench.results import Limit, LimitStep
from sinkbench.sizing import MINIMUM_RECORDS
from sinkbench.trial import Observer

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
        with _Topic(bench, reading, observer) as records:
            observer.phase("reading by a plain consumer group")
            return step_up(lambda number: kafka_limit(bench, reading, records, number, observer.progress), numbers)

    def connect(observer: Observer) -> Tuned:
        with _Topic(bench, reading, observer) as records:
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


class _Topic:
    """A loaded topic, for as long as it is read."""

    def __init__(self, bench: Bench, names: Names, observer: Observer) -> None:
        self._bench = bench
        self._names = names
        self._observer = observer

    def __enter__(self) -> int:
        """Returns how many records the topic holds. Raises TrialFailed or StackError if it cannot be loaded."""
        fit = TOPIC_BYTES // self._bench.plan.load.record_bytes
        records = max(min(TOPIC_RECORDS, fit), MINIMUM_RECORDS)
        try:
            self._bench.check_disk(records)
            self._observer.phase("loading the topic")
            self._bench.load(self._names, records, lambda done: self._observer.progress(done, records))
        except BaseException:
            self.__exit__()
            raise
        return records

    def __exit__(self, *ended: object) -> None:
        with suppress(*CLIENT_ERRORS):
            self._bench.kafka.delete_topic(self._names.topic)
