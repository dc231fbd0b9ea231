"""Kafka alone: the rates of producers and consumers without Connect and a sink, by Kafka's own perf-test programs or a
load generator, as they tell it, without the start of a JVM; of several producers the slowest's times their number."""

import math
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import psutil

from sinkbench.analysis.limits import KAFKA_ALONE
from sinkbench.analysis.samples import Sample
from sinkbench.errors import ServiceError
from sinkbench.limits.measure import LimitJob, kafka_limit
from sinkbench.limits.programs import PerfTest, consumed, delayed, perf_test, printed, produced
from sinkbench.limits.sinklimit import look
from sinkbench.limits.traffic import told_by, traffic_ratios
from sinkbench.limits.tune import Measured, Point, Tuned, lengthen, with_costs
from sinkbench.plan.plan import kafka_loads
from sinkbench.plan.sections import KafkaLoad
from sinkbench.plan.sizing import records_for
from sinkbench.topology import service_of
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning
from sinkbench.trial.observer import Observer

SECONDS = 2.5
MOST_TIMES = 4
"""How many times that of one producer several ones have at most."""
HELD_SECONDS = 10.0
"""Duration where brokers are held to a share of the cores: a compilation that takes half a second takes them five."""
WARM_SECONDS = 60.0
"""Duration with all cores before: in a share of them the JIT compilers take minutes."""
FIRST_RATE = 40_000.0
"""Records per second that the first measurement of a load expects; it also warms the brokers."""
LEAST_REACHED = 0.95
"""A load that has less of its rate has no figures: its queue grows."""
ONE_BY_ONE = 0.02
"""The part of it that single records may have."""
MOST_BYTES = 2e9
NEW_SECONDS, AGAIN_SECONDS = 20.0, 0.5
BACKFILL = KafkaLoad(label="backfill", record_bytes=10_000)
_OF_LOADGEN = {"replication", "acks", "record_bytes", "compression", "linger_ms", "batch_bytes"}


def clients_seconds() -> float:
    """CPU seconds of the child processes of this one so far."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [each.cpu_times() for each in psutil.Process().children(recursive=True)]
    return ended.ru_utime + ended.ru_stime + sum(each.user + each.system for each in running)


def kafka_jobs(cluster: Cluster, token: str) -> Iterator[LimitJob]:
    """One job for each load of the plan on Kafka alone; `token` names their topics."""
    for load in kafka_loads(cluster.plan):
        alone = KafkaAlone(cluster, load, Names.of(f"{token}_limit_kafka"))
        yield LimitJob(KAFKA_ALONE, load.label, alone.search, alone.measure, record_bytes=load.record_bytes)


@dataclass(frozen=True)
class KafkaAlone:
    """Measures one load; `names` has its topic."""

    cluster: Cluster
    load: KafkaLoad
    names: Names

    def search(self, observer: Observer) -> Tuned:
        """Finds a number of records that takes long enough. What is held to a share of the cores is warm before."""
        load = self.load
        most = int(MOST_BYTES / load.record_bytes / load.replication)
        first = min(FIRST_RATE * (ONE_BY_ONE if load.mode == "latency" else 1.0), load.records_per_second or math.inf)

        def at(seconds: float, rate: float) -> Point:
            # Each producer has a JVM of its own to warm up.
            longer = seconds * min(load.producers, MOST_TIMES)
            return Point(records_for(rate, longer, maximum=most), load.producers)

        if load.cores is None:
            return lengthen(lambda point: self.measure(point, observer), partial(at, SECONDS), first)
        free = replace(self, load=load.model_copy(update={"cores": None}))
        lengthen(lambda point: free.measure(point, observer), partial(at, WARM_SECONDS), first)
        return lengthen(
            lambda point: self.measure(point, observer), partial(at, HELD_SECONDS), min(load.cores, 1) * first
        )

    def measure(self, point: Point, observer: Observer) -> Measured:
        """Measures it on a topic of its own, which is removed. No rate if that has another number of records."""
        cluster, load = self.cluster, self.load
        records = point.batch // load.producers * load.producers
        bytes_in_all = (load.backfill_mb or 0) * 1e6 + records * load.record_bytes
        cluster.check_disk(round(bytes_in_all * load.replication / cluster.record_bytes))
        endpoints = cluster.stack.endpoints
        with (
            self._held(),
            self._topic(self.names.topic),
            perf_test(endpoints.kafka, endpoints.kafka_settings) as programs,
            self._backfill(programs, observer) as still_reads,
            self._traffic(programs) as traffic,
        ):
            before = None if traffic is None else traffic()
            found = self._of_topic(records, programs, observer)
            if (rate := found.records_per_second) is None or not still_reads():
                return Measured(None, found.problem or "the backfill ended before the load did; raise backfill_mb")
            if load.records_per_second is not None and rate < LEAST_REACHED * load.records_per_second:
                return Measured(None, f"{load.records_per_second:,.0f} records/s were asked, {rate:,.0f} produced")
            told = {} if traffic is None or before is None else traffic_ratios(before, traffic())
            return replace(found, figures={**found.figures, **told})

    @contextmanager
    def _topic(self, topic: str) -> Iterator[None]:
        load, kafka = self.load, self.cluster.kafka
        copies = {"min.insync.replicas": str(min(2, load.replication))}
        with cleaning(lambda: kafka.delete_topic(topic)):
            kafka.create_topic(topic, self.cluster.plan.load.partitions, load.replication, copies, load.brokers)
            self._ends(topic)
            yield

    def _ends(self, topic: str) -> list[int]:
        """Its partitions' end offsets. A broker with a share of a core takes some seconds to have a new partition."""
        deadline = time.monotonic() + NEW_SECONDS
        while True:
            try:
                return [*self.cluster.kafka.end_offsets(topic).values()]
            except ServiceError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(AGAIN_SECONDS)

    @contextmanager
    def _backfill(self, programs: PerfTest, observer: Observer) -> Iterator[Callable[[], bool]]:
        """Has a consumer read another topic from its start, if the load says so; yields whether it still reads."""
        if self.load.backfill_mb is None:
            yield lambda: True
            return
        observer.phase("producing a backfill")
        records, topic = int(self.load.backfill_mb * 1e6 / BACKFILL.record_bytes), f"{self.names.topic}_backfill"
        with self._topic(topic):
            programs.produce(topic, BACKFILL, records)
            reader = programs.consume(topic, records)
            # One that has failed says why.
            yield lambda: reader.poll() is None or not printed(reader)

    def _traffic(self, programs: PerfTest) -> AbstractContextManager[Callable[[], Counter[str]] | None]:
        if not self.load.traffic:
            return nullcontext()
        services = self.cluster.stack.services()
        return told_by(programs, [each.pid for each in services if each.pid and service_of(each.name) == "kafka"])

    def _of_topic(self, records: int, programs: PerfTest, observer: Observer) -> Measured:
        cluster, load, names = self.cluster, self.load, self.names
        observer.phase("producing")
        readers = [programs.consume(names.topic, records) for _ in range(load.readers)]
        before, used = self._look(), clients_seconds()
        if load.by == "loadgen":
            changed = load.model_dump(include=_OF_LOADGEN)
            loaded = cluster.load(names, records, lambda done: observer.progress(done, records), changed)
            found = Measured(round(loaded.records_per_second, 1))
            # They are no children of this process.
            used -= loaded.cpu_seconds
        elif load.mode == "latency":
            found = delayed(programs.latency(names.topic, load, records))
        else:
            found = produced(programs.produce(names.topic, load, records), records)
        for reader in readers:
            printed(reader)
        kept = self._ends(names.topic)
        if load.acks != "0" and sum(kept) != records:
            return Measured(None, f"{records:,} records were produced, and {sum(kept):,} are in the topic")
        if load.mode == "produce" and min(kept) > 0:
            found = replace(found, figures={**found.figures, "partition_ratio": round(max(kept) / min(kept), 3)})
        if load.mode == "consume":
            observer.phase("consuming")
            before, used = self._look(), clients_seconds()
            if load.by == "loadgen":
                found = kafka_limit(cluster, names, records, 1, observer.progress)
            else:
                found = consumed(printed(programs.consume(names.topic, records)))
        if found.records_per_second is None:
            return found
        # Nobody tells the CPU time of loadgen's consumers.
        spent = None if load.mode == "consume" and load.by == "loadgen" else clients_seconds() - used
        costs = with_costs(found.records_per_second, before, self._look(), records, spent)
        return replace(costs, figures=found.figures)

    def _look(self) -> Sample:
        """Without the brokers that have none of its partitions."""
        found, idle = look(self.cluster), [*self.cluster.stack.endpoints.brokers][self.load.brokers or sys.maxsize :]
        return replace(found, cpu_seconds={name: used for name, used in found.cpu_seconds.items() if name not in idle})

    def _held(self) -> AbstractContextManager[None]:
        """Until the context ends the brokers have only what the load gives them. A race without `hold` is refused."""
        load, faults = self.load, self.cluster.stack.faults
        if (load.cores is None and load.memory_mb is None) or faults is None or faults.hold is None:
            return nullcontext()
        return faults.hold("kafka", load.cores, None if load.memory_mb is None else int(load.memory_mb * 1e6))
