"""Measures Kafka alone by its own perf-test programs; figures: docs/studies/kafka-alone.md.

    .venv/bin/python -m benchmarks.kafka [--blocks BLOCKS] [--seconds SECONDS] [--bytes]

Three brokers on this machine, a fresh topic for each measurement, all kinds of load in each block in random order. The
rate is what kafka-producer-perf-test and kafka-consumer-perf-test print, so without the start of their JVMs; of several
producers it is their sum. Each ratio is to the first kind, block by block. With --bytes it measures no rates, but what
all brokers send for each byte that is produced, by their own metrics, with 1 and 3 replicas and 0 to 2 groups.

The local stack must be down. It takes about 6 minutes.
"""

import argparse
import random
import re
import socket
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex

from sinkbench.analysis.intervals import ratio_by_block
from sinkbench.plan.plan import Plan
from sinkbench.race.lock import only_race
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.local import LocalStack
from sinkbench.stack.tools import find_java
from sinkbench.topology import load_topology, service_of
from sinkbench.trial.cluster import Cluster

PLAN = Plan.model_validate({"name": "kafka", "pipelines": ["postgres/jdbc"], "seed": 1})
TOPOLOGY = "kafka: {nodes: 3, heap: 768m, replication: 3, min_insync_replicas: 2}\nconnect: {nodes: 1}\n"
PARTITIONS = 6
FIRST_RECORDS = 200_000
TOOLS = "org.apache.kafka.tools"
RECEIVED, SENT = "BytesInPerSec", ("BytesOutPerSec", "ReplicationBytesOutPerSec")
"""Names of the brokers' metrics of bytes."""


@dataclass(frozen=True)
class Kind:
    """A kind of load. `constant`: all records are equal. `reads`: 1 reads a full topic, 2 one that is written."""

    acks: str = "1"
    replication: int = 1
    size: int = 512
    codec: str = "none"
    constant: bool = False
    producers: int = 1
    reads: int = 0


BASE = Kind()
KINDS: Mapping[str, Kind] = {
    "1 replica, acks 1, 512 bytes": BASE,
    "3 replicas, acks 1": replace(BASE, replication=3),
    "3 replicas, acks all": replace(BASE, replication=3, acks="all"),
    "100 bytes": replace(BASE, size=100),
    "256 bytes": replace(BASE, size=256),
    "10,000 bytes": replace(BASE, size=10_000),
    "lz4, random content": replace(BASE, codec="lz4"),
    "lz4, constant content": replace(BASE, codec="lz4", constant=True),
    "zstd, constant content": replace(BASE, codec="zstd", constant=True),
    "2 producers": replace(BASE, producers=2),
    "4 producers": replace(BASE, producers=4),
    "a consumer of a full topic": replace(BASE, reads=1),
    "a producer beside a consumer": replace(BASE, reads=2),
}


@dataclass(frozen=True)
class Seen:
    """Records per second, and bytes of a record on the wire, if known."""

    rate: float
    wire: float | None = None


class Kafka:
    """Kafka's programs on a running stack."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._jars = f"{load_settings().dist / 'kafka' / 'libs'}/*"
        self._bootstrap = cluster.stack.endpoints.kafka
        self._cluster = cluster
        self._equal = folder / "equal"
        self._token, self._count = token_hex(3), 0
        self._running: list[subprocess.Popen[str]] = []

    def _start(self, tool: str, *arguments: str) -> "subprocess.Popen[str]":
        command = ["java", "-Xmx512m", "-cp", self._jars, f"{TOOLS}.{tool}", *arguments]
        self._running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return self._running[-1]

    def ask(self, tool: str, *arguments: str) -> str:
        """Returns what a program prints."""
        return _ended(self._start(tool, *arguments))

    @contextmanager
    def topic(self, kind: Kind) -> Iterator[str]:
        """A new topic, which is removed when all programs have ended; those that are left are killed."""
        self._count += 1
        name = f"tides_{self._token}_{self._count:03}"
        settings = ["--partitions", str(PARTITIONS), "--replication-factor", str(kind.replication)]
        settings += ["--config", f"min.insync.replicas={min(2, kind.replication)}"]
        self.ask("TopicCommand", "--bootstrap-server", self._bootstrap, "--create", "--topic", name, *settings)
        try:
            yield name
        finally:
            while self._running:
                self._running.pop().kill()
            self._cluster.kafka.delete_topic(name)

    def produce(self, topic: str, kind: Kind, records: int) -> Seen:
        """Produces so many records as fast as Kafka takes them."""
        content = ["--record-size", str(kind.size)]
        if kind.constant:
            self._equal.write_bytes(b"x" * kind.size)
            content = ["--payload-file", str(self._equal)]
        each = ["--num-records", str(records // kind.producers), "--throughput", "-1", *content, "--print-metrics"]
        properties = [f"acks={kind.acks}", f"compression.type={kind.codec}", "linger.ms=10", "batch.size=262144"]
        access = ["--bootstrap-server", self._bootstrap, "--command-property", *properties]
        running = [self._start("ProducerPerformance", "--topic", topic, *each, *access) for _ in range(kind.producers)]
        said = [_ended(process) for process in running]
        rates = [float(re.findall(r"records sent, ([\d.]+) records/sec", text)[-1]) for text in said]
        sent = [float(re.findall(r"producer-metrics:outgoing-byte-total\S*\s*:\s*([\d.]+)", text)[-1]) for text in said]
        return Seen(sum(rates), sum(sent) / records)

    def consume(self, topic: str, records: int) -> "subprocess.Popen[str]":
        return self._start(
            *("ConsumerPerformance", "--bootstrap-server", self._bootstrap, "--topic", topic),
            *("--num-records", str(records), "--hide-header", "--timeout", "60000"),
        )

    def measure(self, kind: Kind, records: int) -> Seen:
        with self.topic(kind) as topic:
            if kind.reads != 1:
                reader = self.consume(topic, records) if kind.reads else None
                found = self.produce(topic, kind, records)
                if reader is not None:
                    _ended(reader)
                return found
            self.produce(topic, kind, records)
            # start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s
            return Seen(float(_ended(self.consume(topic, records)).strip().splitlines()[-1].split(",")[9]))


class Brokers:
    """The brokers' metrics of bytes, which their JVMs tell on a port of this machine that is opened for it."""

    def __init__(self, kafka: Kafka, pids: Iterable[int]) -> None:
        self._kafka = kafka
        self._ports = []
        for pid in pids:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self._ports.append(free.getsockname()[1])
            asked = {"port": self._ports[-1], "host": "127.0.0.1", "authenticate": "false", "ssl": "false"}
            words = [f"jmxremote.{name}={value}" for name, value in asked.items()]
            jcmd = [str(find_java() / "bin" / "jcmd"), str(pid), "ManagementAgent.start", *words]
            subprocess.run(jcmd, check=True, capture_output=True)

    def total(self, *metrics: str) -> int:
        """Bytes since the start, of these metrics and all brokers."""
        names = [f"kafka.server:type=BrokerTopicMetrics,name={name}" for name in metrics]
        asked = [word for name in names for word in ("--object-name", name)]
        found = 0
        for port in self._ports:
            url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"
            said = self._kafka.ask("JmxTool", "--jmx-url", url, *asked, "--attributes", "Count", "--one-time")
            found += sum(int(value) for value in said.strip().splitlines()[-1].split(",")[1:])
        return found


def fan_out(kafka: Kafka, brokers: Brokers, records: int) -> Iterator[str]:
    """The rows of the study's second table. Expected: replicas - 1 + groups (AWS, right-sizing, "EC2 network")."""
    for replicas in (1, 3):
        for groups in (0, 1, 2):
            kind = replace(BASE, replication=replicas, acks="all")
            sent, received = brokers.total(*SENT), brokers.total(RECEIVED)
            with kafka.topic(kind) as topic:
                readers = [kafka.consume(topic, records) for _ in range(groups)]
                kafka.produce(topic, kind, records)
                for reader in readers:
                    _ended(reader)
                received = brokers.total(RECEIVED) - received
                ratio = (brokers.total(*SENT) - sent) / received
            yield f"| {replicas} | {groups} | {received / 1e6:,.0f} | {ratio:.2f} | {replicas - 1 + groups} |"


def _ended(process: "subprocess.Popen[str]") -> str:
    out, error = process.communicate()
    if process.returncode:
        raise SystemExit(f"a program of Kafka's failed: {(error or out).strip().splitlines()[-1]}")
    return out


def line(name: str, kind: Kind, seen: Mapping[int, Seen], base: Mapping[int, float]) -> str:
    """As a row of the study's table."""
    rates = {block: each.rate for block, each in seen.items()}
    median, ratio = statistics.median(rates.values()), ratio_by_block("base", rates, base)
    wire = [each.wire for each in seen.values() if each.wire is not None]
    of_blocks = [rates[block] / base[block] for block in rates]
    return " | ".join(
        [
            f"| {name}",
            f"{median:,.0f} ({min(rates.values()):,.0f}-{max(rates.values()):,.0f})",
            f"{median * kind.size / 1e6:,.0f}",
            f"{statistics.median(wire):,.0f}" if wire else "-",
            f"{ratio.estimate:.2f} ({min(of_blocks):.2f}-{max(of_blocks):.2f}) |" if ratio else "- |",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=3, help="of all kinds, each (3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measurement (2)")
    parser.add_argument("--bytes", action="store_true", help="what the brokers send, and no rates")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sinkbench-") as folder:
        file = Path(folder) / "three-brokers.yaml"
        file.write_text(TOPOLOGY)
        stack = LocalStack(load_settings().with_layout(load_topology(str(file), CHECKOUT, CHECKOUT)))
        if stack.start_id() is not None:
            raise SystemExit("the stack is up; stop it: sinkbench down")
        with only_race(stack.lock_file, CHECKOUT, PLAN.name):
            try:
                stack.up(lambda text: None)
                with closing(Cluster(stack, PLAN, CHECKOUT)) as cluster:
                    kafka = Kafka(cluster, Path(folder))
                    if given.bytes:
                        pids = [each.pid for each in stack.services() if each.pid and service_of(each.name) == "kafka"]
                        for row in fan_out(kafka, Brokers(kafka, pids), FIRST_RECORDS):
                            print(row, flush=True)
                    else:
                        report(kafka, given.blocks, given.seconds)
            finally:
                stack.down()


def report(kafka: Kafka, blocks: int, seconds: float) -> None:
    # One visit each warms the brokers, and says how many records last long enough.
    sizes = {name: _lasting(kafka.measure(kind, FIRST_RECORDS).rate, seconds, kind) for name, kind in KINDS.items()}
    seen: dict[str, dict[int, Seen]] = {name: {} for name in KINDS}
    draw = random.Random(PLAN.seed)
    for block in range(1, blocks + 1):
        for name in draw.sample(list(KINDS), len(KINDS)):
            seen[name][block] = kafka.measure(KINDS[name], sizes[name])
    first = next(iter(KINDS))
    base = {block: each.rate for block, each in seen[first].items()}
    for name, kind in KINDS.items():
        print(line(name, kind, seen[name], base), flush=True)


def _lasting(rate: float, seconds: float, kind: Kind) -> int:
    """Records for so many seconds, of at most 4 GB."""
    return int(min(rate * seconds, 4e9 / kind.size / kind.replication)) // 1_000 * 1_000


if __name__ == "__main__":
    main()
