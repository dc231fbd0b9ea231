"""Kafka alone: the rates of producers and consumers without Connect and a sink, by Kafka's own perf-test programs or a
load generator. The rate is what they tell, so without the start of a JVM; of several producers it is the sum."""

import re
import resource
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType

import psutil

from sinkbench.analysis.limits import KAFKA_ALONE
from sinkbench.errors import ServiceError
from sinkbench.limits.measure import LimitJob, kafka_limit
from sinkbench.limits.sinklimit import look
from sinkbench.limits.tune import Measured, Point, Tuned, lengthen, with_costs
from sinkbench.plan.plan import kafka_loads
from sinkbench.plan.sections import KafkaLoad
from sinkbench.plan.sizing import records_for
from sinkbench.settings import load_settings
from sinkbench.stack import Stack
from sinkbench.stack.tools import find_java
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names, cleaning
from sinkbench.trial.observer import Observer

SECONDS = 2.5
HELD_SECONDS = 10.0
"""Duration where brokers are held to a share of the cores: a compilation that takes half a second takes them five."""
WARM_SECONDS = 60.0
"""Duration with all cores before: in a share of them the JIT compilers take minutes."""
FIRST_RATE = 40_000.0
"""Records per second that the first measurement of a load expects; it also warms the brokers."""
MOST_BYTES = 2e9
TIMEOUT_SECONDS = 120.0
_OF_LOADGEN = {"replication", "acks", "record_bytes", "compression", "linger_ms", "batch_bytes"}
_TOOLS = "org.apache.kafka.tools"


@dataclass(frozen=True)
class PerfTest:
    """Kafka's own programs, with arguments that reach the brokers. What runs at the end of `opened` is killed."""

    access: tuple[str, ...]
    opened: ExitStack

    def start(self, tool: str, *arguments: str) -> "subprocess.Popen[str]":
        jars = f"{load_settings().dist / 'kafka' / 'libs'}/*"
        command = [str(find_java() / "bin" / "java"), "-Xmx512m", "-cp", jars, f"{_TOOLS}.{tool}", *arguments]
        out = subprocess.PIPE
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, text=True)
        self.opened.callback(process.communicate)
        self.opened.callback(process.kill)
        return process

    def consume(self, topic: str, records: int) -> "subprocess.Popen[str]":
        wanted = ("--num-records", str(records), "--hide-header", "--timeout", "60000")
        return self.start("ConsumerPerformance", *self.access, "--topic", topic, *wanted)

    def produce(self, topic: str, load: KafkaLoad, records: int) -> list[str]:
        """Returns what each of the load's producers printed."""
        with NamedTemporaryFile(prefix="sinkbench-") as equal:
            Path(equal.name).write_bytes(b"x" * load.record_bytes)
            made = ("--payload-file", equal.name) if load.constant else ("--record-size", str(load.record_bytes))
            properties = {
                "acks": load.acks,
                "compression.type": load.compression,
                "linger.ms": f"{load.linger_ms:g}",
                "batch.size": str(load.batch_bytes),
            }
            rate = -1 if load.records_per_second is None else load.records_per_second / load.producers
            told = [f"{name}={value}" for name, value in properties.items()]
            each = ("--num-records", str(records // load.producers), "--throughput", f"{rate:g}", *made)
            to = ("--print-metrics", *self.access, "--topic", topic, "--command-property", *told)
            running = [self.start("ProducerPerformance", *each, *to) for _ in range(load.producers)]
            return [printed(process) for process in running]


@contextmanager
def perf_test(bootstrap: str, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[PerfTest]:
    """The programs with the brokers' address, and client settings by librdkafka's names."""
    # Only the owner may read the file.
    with ExitStack() as opened, NamedTemporaryFile("w", prefix="sinkbench-", suffix=".properties") as config:
        config.writelines(f"{name}={value}\n" for name, value in java_settings(settings).items())
        config.flush()
        yield PerfTest(("--bootstrap-server", bootstrap, "--command-config", config.name), opened)


def java_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a secured stack's clients by the names of Kafka's Java client; none without security."""
    if not settings:
        return {}
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    user, password = settings["sasl.username"], settings["sasl.password"]
    return {
        "security.protocol": settings["security.protocol"],
        "sasl.mechanism": settings["sasl.mechanism"],
        "sasl.jaas.config": f'{login} required username="{user}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": settings["ssl.ca.location"],
    }


def printed(process: "subprocess.Popen[str]") -> str:
    """What a program prints until it ends. Raises ServiceError if it fails, or takes too long."""
    try:
        out, error = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise ServiceError(f"a program of Kafka's had not ended after {TIMEOUT_SECONDS:.0f} s") from None
    if process.returncode:
        last = (error or out).strip().splitlines()[-1:] or ["it said nothing"]
        raise ServiceError(f"a program of Kafka's failed: {last[0]}")
    return out


def produced(said: Sequence[str], records: int) -> Measured:
    """The rate of producers that printed this, what they sent for a record, and the slowest one's acknowledgments."""
    rates = [float(re.findall(r"records sent, ([\d.]+) records/sec", text)[-1]) for text in said]
    sent = [float(re.findall(r"producer-metrics:outgoing-byte-total\S*\s*:\s*([\d.]+)", text)[-1]) for text in said]
    slow = [float(re.findall(r"([\d.]+) ms 99th", text)[-1]) for text in said]
    figures = {"wire_bytes": round(sum(sent) / records, 1), "ack_p99_ms": max(slow)}
    return Measured(round(sum(rates), 1), figures=figures)


def consumed(said: str) -> Measured:
    """The rate of a consumer that printed this, from its first to its last record."""
    # start, end, MB, MB/s, records, records/s, ms of the rebalance, ms of fetches, MB/s and records/s of fetches
    return Measured(round(float(said.strip().splitlines()[-1].split(",")[9]), 1))


def clients_seconds() -> float:
    """CPU seconds of the child processes of this one so far."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [each.cpu_times() for each in psutil.Process().children(recursive=True)]
    return ended.ru_utime + ended.ru_stime + sum(each.user + each.system for each in running)


def kafka_jobs(cluster: Cluster, token: str) -> Iterator[LimitJob]:
    """One job for each load of the plan on Kafka alone; `token` names their topics."""
    for load in kafka_loads(cluster.plan):
        names = Names.of(f"{token}_limit_kafka")
        measure = partial(_measure, cluster, load, names)
        free = partial(_measure, cluster, load.model_copy(update={"cores": None}), names)
        search = partial(_search, load, measure, free)
        yield LimitJob(KAFKA_ALONE, load.label, search, measure, record_bytes=load.record_bytes)


_Measure = Callable[[Point, Observer], Measured]


def _search(load: KafkaLoad, measure: _Measure, free: _Measure, observer: Observer) -> Tuned:
    """`free` measures the load without its share of the cores."""
    most = int(MOST_BYTES / load.record_bytes / load.replication)

    def at(seconds: float, rate: float) -> Point:
        return Point(records_for(rate, seconds, maximum=most), load.producers)

    if load.cores is None:
        return lengthen(lambda point: measure(point, observer), partial(at, SECONDS), FIRST_RATE)
    lengthen(lambda point: free(point, observer), partial(at, WARM_SECONDS), FIRST_RATE)
    return lengthen(lambda point: measure(point, observer), partial(at, HELD_SECONDS), load.cores * FIRST_RATE)


def _measure(cluster: Cluster, load: KafkaLoad, names: Names, point: Point, observer: Observer) -> Measured:
    """Measures a load on a topic of its own, which is removed. No rate if the topic has another number of records."""
    records = point.batch // load.producers * load.producers
    cluster.check_disk(round(records * load.record_bytes * load.replication / cluster.record_bytes))
    copies = {"min.insync.replicas": str(min(2, load.replication))}
    with cleaning(lambda: cluster.kafka.delete_topic(names.topic)), _held(cluster.stack, load):
        cluster.kafka.create_topic(names.topic, cluster.plan.load.partitions, load.replication, copies, load.brokers)
        return _of_topic(cluster, load, names, records, observer)


def _of_topic(cluster: Cluster, load: KafkaLoad, names: Names, records: int, observer: Observer) -> Measured:
    endpoints = cluster.stack.endpoints
    with perf_test(endpoints.kafka, endpoints.kafka_settings) as programs:
        observer.phase("producing")
        reader = programs.consume(names.topic, records) if load.mode == "both" else None
        before, used = look(cluster), clients_seconds()
        if load.by == "loadgen":
            changed = load.model_dump(include=_OF_LOADGEN)
            loaded = cluster.load(names, records, lambda done: observer.progress(done, records), changed)
            found = Measured(round(loaded.records_per_second, 1))
            # They are no children of this process.
            used -= loaded.cpu_seconds
        else:
            found = produced(programs.produce(names.topic, load, records), records)
        if reader is not None:
            printed(reader)
        kept = cluster.kafka.end_offsets(names.topic).values()
        if load.acks != "0" and sum(kept) != records:
            return Measured(None, f"{records:,} records were produced, and {sum(kept):,} are in the topic")
        if load.mode != "consume" and min(kept) > 0:
            found = replace(found, figures={**found.figures, "partition_ratio": round(max(kept) / min(kept), 3)})
        if load.mode == "consume":
            observer.phase("consuming")
            before, used = look(cluster), clients_seconds()
            if load.by == "loadgen":
                found = kafka_limit(cluster, names, records, 1, observer.progress)
            else:
                found = consumed(printed(programs.consume(names.topic, records)))
        if found.records_per_second is None:
            return found
        used = clients_seconds() - used
        costs = with_costs(found.records_per_second, before, look(cluster), records, used)
        return replace(costs, figures=found.figures)


def _held(stack: Stack, load: KafkaLoad) -> AbstractContextManager[None]:
    """Until the context ends the load's brokers have the cores that it gives them. A race without `hold` is refused."""
    if load.cores is None or stack.faults is None or stack.faults.hold is None:
        return nullcontext()
    return stack.faults.hold(load.cores, "kafka")
