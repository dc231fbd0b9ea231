"""Fills a trial's topic by load generators: those that run as services, or one that is started as a child process.

A load generator is a process of its own in either case, so that its CPU time is not the controller's; and it is talked
to in one way, the HTTP interface of `loadgen.server`. Several of them share a load by ranges of `seq`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

import httpx

from loadgen.state import LoadName
from loadgen.summary import Summary
from sinkbench.errors import TrialFailed
from sinkbench.loadchild import LoadgenChild
from sinkbench.loadpart import ANSWER_SECONDS, Part
from sinkbench.plan import Load
from sinkbench.stack import Endpoints

__all__ = ["LoadResult", "Loadgens", "add", "split"]

POLL_SECONDS = 0.5
CHILD = "loadgen"
# What a plan's load says in the words of loadgen.
_SHARED = {
    "partitions", "replication", "keys", "record_bytes", "compression", "acks", "linger_ms", "batch_bytes",
}  # fmt: skip


@dataclass(frozen=True)
class LoadResult:
    """What the parts of a load came to together. Latencies are left out: quantiles of parts have no sum."""

    asked: int
    sent: int
    acknowledged: int
    failed: int
    errors: Mapping[str, int]
    """Why records failed, and how many for each reason."""
    bytes: int
    """The bytes of all values sent."""
    cpu_seconds: float
    """User and system time of all load generators."""
    elapsed_seconds: float
    """Of the part that took longest."""
    in_time: int | None = None
    """Records sent by the time that the last one was due; None of a load without a rate."""


def split(records: int, generators: int) -> list[tuple[int, int]]:
    """The parts of a load: seqs 0 to `records` - 1 in contiguous ranges whose lengths differ by one at most.

    Returns:
        (first seq, how many) for each generator in turn; fewer parts than generators rather than an empty one.
    """
    each, more = divmod(records, generators)
    counts = [each + 1] * more + [each] * (generators - more)
    return [(sum(counts[:number]), count) for number, count in enumerate(counts) if count]


def add(summaries: Sequence[Summary]) -> LoadResult:
    """The sum of what the parts of one load, produced at the same time, came to."""
    errors: Counter[str] = Counter()
    for summary in summaries:
        errors.update(summary.errors)
    return LoadResult(
        asked=sum(summary.asked or 0 for summary in summaries),
        sent=sum(summary.sent for summary in summaries),
        acknowledged=sum(summary.acknowledged for summary in summaries),
        failed=sum(summary.failed for summary in summaries),
        errors=dict(errors),
        bytes=sum(summary.bytes for summary in summaries),
        cpu_seconds=round(sum(summary.cpu_seconds for summary in summaries), 3),
        elapsed_seconds=max((summary.elapsed_seconds for summary in summaries), default=0.0),
        in_time=sum(kept) if len(kept := _in_time(summaries)) == len(summaries) else None,
    )


def _in_time(summaries: Sequence[Summary]) -> list[int]:
    return [summary.behind.records_in_time for summary in summaries if summary.behind is not None]


class Loadgens:
    """The load generators of one stack. Nothing is started before the first load."""

    def __init__(self, endpoints: Endpoints) -> None:
        """`endpoints`: where the load generators are, if there are any, and how they or a child reach Kafka."""
        self._endpoints = endpoints
        self._child: LoadgenChild | None = None

    def load(
        self,
        topic: str,
        run: str,
        records: int,
        plan_load: Load,
        progress: Callable[[int], None],
        rate: float | None = None,
        stop: threading.Event | None = None,
    ) -> LoadResult:
        """Makes the topic and produces `records` records into it, as fast as the broker takes them or at a rate.

        Whatever ends it early, the controller's own interrupt too, no load generator goes on with this load.

        Args:
            topic: the topic to make.
            run: what the records bear as `bench.run`; no other load may have the same.
            records: how many, at least one.
            plan_load: the plan's load.
            progress: is called about twice a second with the number of records acknowledged so far.
            rate: records per second, open loop, of all load generators together; None: as fast as they can.
            stop: once it is set the load is broken off, as a failure.

        Raises:
            TrialFailed: not every record was acknowledged, or a load generator died, is busy or cannot do it; names it.
            StackError: the load generator cannot be started.
        """
        if records < 1:
            raise ValueError(f"records: found {records}; a load has at least one")
        generators = self._generators()
        options = plan_load.model_dump(include=_SHARED)
        options |= {"bootstrap": self._endpoints.loadgen_kafka or self._endpoints.kafka, "topic": topic, "run": run}
        # A client for each load: a connection kept since the last one may have been closed by the other side.
        with httpx.Client(trust_env=False, timeout=ANSWER_SECONDS) as client:
            parts = [
                Part(client, name, url, LoadName(run=run, topic=topic, first_seq=first_seq, count=count))
                for (name, url), (first_seq, count) in zip(
                    generators.items(), split(records, len(generators)), strict=False
                )
            ]
            try:
                _in_parallel(lambda part: part.begin(options | part.share_of(rate, records)), parts)
                summaries = _follow(parts, progress, stop or threading.Event())
            except BaseException as error:
                _in_parallel(Part.cancel, parts)
                if isinstance(error, TrialFailed):
                    raise TrialFailed(f"the topic could not be loaded: {error}{self._last_words()}") from None
                raise
        return add(summaries)

    def close(self) -> None:
        """Ends the child, if there is one; it can be called again."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def __enter__(self) -> Loadgens:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _generators(self) -> Mapping[str, str]:
        if self._endpoints.loadgens:
            return self._endpoints.loadgens
        if self._child is not None and not self._child.answers():
            self.close()
        if self._child is None:
            self._child = LoadgenChild(self._endpoints.kafka_settings)
        return {CHILD: self._child.url}

    def _last_words(self) -> str:
        if self._child is None or self._child.answers():
            return ""
        return f" ({self._child.last_words()})"


def _in_parallel(step: Callable[[Part], None], parts: Sequence[Part]) -> None:
    with ThreadPoolExecutor(max_workers=len(parts)) as pool:
        futures = [pool.submit(step, part) for part in parts]
    # Only now, so that after a failure nothing is still under way.
    for future in futures:
        future.result()


def _follow(parts: Sequence[Part], progress: Callable[[int], None], stop: threading.Event) -> list[Summary]:
    while True:
        summaries = [part.summary or part.look() for part in parts]
        progress(sum(part.acknowledged for part in parts))
        done = [summary for summary in summaries if summary is not None]
        if len(done) == len(parts):
            return done
        if stop.wait(POLL_SECONDS):
            raise TrialFailed("the load was broken off")
