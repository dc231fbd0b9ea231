"""Fills a trial's topic by load generators: services that share it by ranges of `seq`, or one child process."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from loadgen.summary import LoadName, Summary
from sinkbench.errors import ServiceError, TrialFailed
from sinkbench.load.part import ANSWER_SECONDS, LocalPart, Part, RemotePart
from sinkbench.load.records import KeptRecords
from sinkbench.plan.plan import PlanLoad
from sinkbench.plan.sections import DrainLoad
from sinkbench.services.http import http_client
from sinkbench.services.worker import Workers
from sinkbench.stack import Endpoints

# Between two looks at a load: a tenth of what it has taken so far, up to the longer one.
FIRST_SECONDS, POLL_SECONDS = 0.05, 0.5
# Keys of a plan's load that are also options of loadgen.
_SHARED = {
    "partitions", "replication", "keys", "changes", "record_bytes", "form", "compression", "acks", "linger_ms",
    "batch_bytes",
}  # fmt: skip
_OF_NOAA = {"keys", "record_bytes"}


def split(records: int, generators: int) -> list[tuple[int, int]]:
    """The (first seq, count) of contiguous ranges of `records`, whose lengths differ by at most one; none is empty."""
    each, more = divmod(records, generators)
    counts = [each + 1] * more + [each] * (generators - more)
    return [(sum(counts[:number]), count) for number, count in enumerate(counts) if count]


class Loadgens(AbstractContextManager["Loadgens"]):
    """The load generators of one stack. A child process, so that its CPU time is counted apart, starts when needed."""

    def __init__(self, endpoints: Endpoints, records: KeptRecords | None = None) -> None:
        """`records` are your own, for loads that use them."""
        self._endpoints = endpoints
        self._records = records
        self._workers = Workers()

    def load(
        self,
        topic: str,
        run: str,
        records: int,
        plan_load: PlanLoad,
        progress: Callable[[int], None],
        rate: float | None = None,
        stop: threading.Event | None = None,
        in_order: bool = False,
    ) -> list[Summary]:
        """Creates the topic, produces records into it, and returns each part's summary. If it ends early, no load
        generator continues the load.

        `run` is the records' `bench.run`, unique to this load. `progress` gets the number of records acknowledged so
        far. `rate` is in records per second, open loop, of all load generators together; None: as fast as possible.
        With `in_order`, the records of a key come in the order of their `seq`.
        `stop`, once set, ends the load as failed. Raises TrialFailed if a record was not acknowledged, or a load
        generator (named) died, is busy or refuses the load."""
        own = self._records if plan_load.own else None
        options = plan_load.model_dump(include=_SHARED - (_OF_NOAA if own is not None else set()))
        options |= {"replication": plan_load.replication or self._endpoints.replication}
        if own is not None:
            options |= {"records": own.facts.sha256}
        options |= {"bootstrap": self._endpoints.loadgen_kafka or self._endpoints.kafka, "topic": topic, "run": run}
        # One load generator, since records of a key must come in order of seq.
        alone = in_order or (isinstance(plan_load, DrainLoad) and plan_load.changes is not None)
        ranges = split(records, 1 if alone else len(self._endpoints.loadgens) or 1)
        names = [LoadName(run=run, topic=topic, first_seq=first_seq, count=count) for first_seq, count in ranges]
        with self._parts(names) as parts:
            try:
                _in_parallel(lambda part: part.give(own), parts)
                shares = {part: {} if rate is None else {"rate": rate * part.count / records} for part in parts}
                _in_parallel(lambda part: part.begin(options | shares[part]), parts)
                summaries = _follow(parts, progress, stop or threading.Event())
            except BaseException as error:
                _in_parallel(lambda part: part.cancel(), parts)
                if isinstance(error, TrialFailed):
                    raise TrialFailed(f"the topic could not be loaded: {error}") from None
                raise
        return summaries

    @contextmanager
    def _parts(self, loads: Sequence[LoadName]) -> Iterator[Sequence[Part]]:
        if not (generators := self._endpoints.loadgens):
            yield [LocalPart(self._workers, self._endpoints.kafka_settings, load) for load in loads]
            return
        # A new client for each load: the other side may have closed an older connection.
        try:
            client = http_client(self._endpoints.loadgen_access, ANSWER_SECONDS)
        except ServiceError as error:
            raise TrialFailed(f"the load generators cannot be asked: {error}") from None
        with client:
            # With fewer records than load generators, some stay idle.
            named = zip(generators.items(), loads, strict=False)
            yield [RemotePart(client, name, url, load) for (name, url), load in named]

    def close(self) -> None:
        """Ends the child process, if there is one. May be called again."""
        self._workers.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _in_parallel(step: Callable[[Part], None], parts: Sequence[Part]) -> None:
    with ThreadPoolExecutor(max_workers=len(parts)) as pool:
        results = pool.map(step, parts)
    # Raise errors only now: every step has ended.
    list(results)


def _follow(parts: Sequence[Part], progress: Callable[[int], None], stop: threading.Event) -> list[Summary]:
    pause = FIRST_SECONDS
    while True:
        summaries = [part.summary or part.look() for part in parts]
        progress(sum(part.acknowledged for part in parts))
        done = [summary for summary in summaries if summary is not None]
        if len(done) == len(parts):
            return done
        if stop.wait(pause):
            raise TrialFailed("the load was broken off")
        pause = min(1.1 * pause, POLL_SECONDS)
