"""Compares loadgen with kafka-producer-perf-test: records per CPU second, on one broker, in one run.

    python benchmarks/loadgen --bootstrap 127.0.0.1:19092 --jars DIR --java java

Both produce the same number of records of the same size into a new topic with equally many partitions, as fast as the
broker takes them, with the same acks, linger and batch size, without compression. They take turns, so that drift of the
machine hits both alike. Each round gives one ratio; the last line gives their minimum, median and maximum.

kafka-producer-perf-test draws its records at random from a file of distinct records (`--payload-file`): its cheapest
way that does not repeat one record for ever.

CPU seconds are user and system time of the whole process (RUSAGE_CHILDREN), with the JVM's start and compilation and
with Python's imports. The median is also given without loadgen's start, which a load of one record measures; the JVM's
compilation cannot be separated.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from loadgen.options import load_from
from loadgen.records import records_of

ROOT = Path(__file__).resolve().parents[2]
PAYLOADS = 100_000
PARTITIONS, ACKS, LINGER_MS, BATCH_BYTES = 6, "all", 10, 262_144


@dataclass(frozen=True)
class Measured:
    """The load of one process."""

    name: str
    records: int
    wall_seconds: float
    cpu_seconds: float

    @property
    def records_per_cpu_second(self) -> float:
        return self.records / self.cpu_seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:19092", help="Kafka's address")
    parser.add_argument("--jars", required=True, help="the folder of Kafka's jars, kafka-tools among them")
    parser.add_argument("--java", default="java", help="the java to run kafka-producer-perf-test with")
    parser.add_argument("--records", type=int, default=1_500_000)
    parser.add_argument("--record-bytes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    stamp = int(time.time())
    with tempfile.TemporaryDirectory() as folder:
        payloads = Path(folder) / "payloads"
        write_payloads(payloads, options)
        start = run_loadgen(options, f"bench-start-{stamp}", records=1)
        rows: list[tuple[Measured, Measured]] = []
        for number in range(options.rounds):
            perf = run_perf(options, f"bench-perf-{stamp}-{number}", payloads)
            ours = run_loadgen(options, f"bench-loadgen-{stamp}-{number}", options.records)
            rows.append((perf, ours))
            for each in (perf, ours):
                print(line(each), flush=True)
            print(f"  ratio {ours.records_per_cpu_second / perf.records_per_cpu_second:.2f}", flush=True)
    ratios = [ours.records_per_cpu_second / perf.records_per_cpu_second for perf, ours in rows]
    without = [
        ours.records / (ours.cpu_seconds - start.cpu_seconds) / perf.records_per_cpu_second for perf, ours in rows
    ]
    print(f"loadgen's start takes {start.cpu_seconds:.2f} CPU s")
    print(
        f"records per CPU second, loadgen to kafka-producer-perf-test: least {min(ratios):.2f}, "
        f"median {statistics.median(ratios):.2f}, most {max(ratios):.2f}; "
        f"without loadgen's start median {statistics.median(without):.2f}"
    )
    return 0


def write_payloads(path: Path, options: argparse.Namespace) -> None:
    """Writes distinct records of loadgen's, one a line."""
    given = {"bootstrap": options.bootstrap, "topic": "none", "count": PAYLOADS, "record_bytes": options.record_bytes}
    path.write_bytes(b"\n".join(records_of(load_from(given))) + b"\n")


def run_loadgen(options: argparse.Namespace, topic: str, records: int) -> Measured:
    command = [
        *(sys.executable, "-m", "loadgen", "run", "--bootstrap", options.bootstrap, "--topic", topic),
        *("--count", str(records), "--record-bytes", str(options.record_bytes), "--acks", ACKS),
        *("--linger-ms", str(LINGER_MS), "--batch-bytes", str(BATCH_BYTES)),
        *("--partitions", str(PARTITIONS), "--replication", "1", "--no-progress"),
    ]
    measured, output = measure("loadgen", command, records, options)
    summary = json.loads(output)
    assert summary["acknowledged"] == records, summary
    return measured


def run_perf(options: argparse.Namespace, topic: str, payloads: Path) -> Measured:
    create = [
        *(options.java, "-cp", f"{options.jars}/*", "org.apache.kafka.tools.TopicCommand"),
        *("--bootstrap-server", options.bootstrap, "--create", "--topic", topic),
        *("--partitions", str(PARTITIONS), "--replication-factor", "1"),
    ]
    subprocess.run(create, check=True, capture_output=True)
    command = [
        *(options.java, "-Xmx512m", "-cp", f"{options.jars}/*", "org.apache.kafka.tools.ProducerPerformance"),
        *("--topic", topic, "--num-records", str(options.records), "--payload-file", str(payloads)),
        *("--throughput", "-1", "--bootstrap-server", options.bootstrap, "--command-property", f"acks={ACKS}"),
        *(f"linger.ms={LINGER_MS}", f"batch.size={BATCH_BYTES}", "buffer.memory=67108864"),
    ]
    measured, output = measure("kafka-producer-perf-test", command, options.records, options)
    assert f"{options.records} records sent" in output, output
    return measured


def measure(name: str, command: list[str], records: int, options: argparse.Namespace) -> tuple[Measured, str]:
    """Runs a command to its end; returns its time and CPU time, and its output."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(name, records, wall, cpu), done.stdout


def line(measured: Measured) -> str:
    return (
        f"{measured.name:<26}{measured.records / measured.wall_seconds:>10,.0f} records/s (whole process)"
        f"{measured.cpu_seconds:>8.2f} CPU s{measured.records_per_cpu_second:>10,.0f} records per CPU second"
    )


if __name__ == "__main__":
    sys.exit(main())
