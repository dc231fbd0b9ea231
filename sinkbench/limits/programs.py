"""Kafka's own programs for measuring, and what they print."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from sinkbench.errors import ServiceError
from sinkbench.limits.tune import Measured
from sinkbench.plan.sections import KafkaLoad
from sinkbench.settings import load_settings
from sinkbench.stack.tools import UTF8, find_java

TIMEOUT_SECONDS = 120.0
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
        # Else numbers have the decimal commas of the user's language.
        told = {**os.environ, **UTF8}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, text=True, env=told)
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

    def latency(self, topic: str, load: KafkaLoad, records: int) -> str:
        """Returns what the program printed that sends a record once a consumer has the one before."""
        what = ("--num-records", str(records), "--producer-acks", load.acks, "--record-size", str(load.record_bytes))
        return printed(self.start("EndToEndLatency", *self.access, "--topic", topic, *what))


@contextmanager
def perf_test(bootstrap: str, settings: Mapping[str, str]) -> Iterator[PerfTest]:
    """The programs with the brokers' address, and client settings by librdkafka's names."""
    # Only the owner may read the file.
    with ExitStack() as opened, NamedTemporaryFile("w", prefix="sinkbench-", suffix=".properties") as config:
        config.writelines(f"{name}={value}\n" for name, value in java_settings(settings).items())
        config.flush()
        yield PerfTest(("--bootstrap-server", bootstrap, "--command-config", config.name), opened)


def java_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a secured stack's clients by the names of Kafka's Java client; none without security."""
    found = {name: settings[name] for name in ("security.protocol", "sasl.mechanism") if name in settings}
    if user := settings.get("sasl.username"):
        login = "org.apache.kafka.common.security.scram.ScramLoginModule"
        found["sasl.jaas.config"] = f'{login} required username="{user}" password="{settings["sasl.password"]}";'
    if "ssl.ca.location" in settings:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": settings["ssl.ca.location"]}
    return found


def printed(process: "subprocess.Popen[str]") -> str:
    """What a program prints until it ends. Raises ServiceError if it fails, or takes too long."""
    try:
        out, error = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise ServiceError(f"a program of Kafka's had not ended after {TIMEOUT_SECONDS:.0f} s") from None
    if process.returncode:
        raise ServiceError(f"a program of Kafka's failed: {last_line(error or out)}")
    return out


def last_line(said: str) -> str:
    return next(iter(said.strip().splitlines()[-1:]), "it said nothing")


def produced(said: Sequence[str], records: int) -> Measured:
    """The rate of equal producers that printed this, their bytes for a record, and acknowledgments, by the slowest."""
    rates = [float(re.findall(r"records sent, ([\d.]+) records/sec", text)[-1]) for text in said]
    sent = [float(re.findall(r"producer-metrics:outgoing-byte-total\S*\s*:\s*([\d.]+)", text)[-1]) for text in said]
    slow = [float(re.findall(r"([\d.]+) ms 99th", text)[-1]) for text in said]
    figures = {"wire_bytes": round(sum(sent) / records, 1), "ack_p99_ms": max(slow)}
    return Measured(round(min(rates) * len(rates), 1), figures=figures)


def delayed(said: str) -> Measured:
    """The rate and latency of single records, as the program printed them."""
    mean, p99 = (float(re.findall(pattern, said)[-1]) for pattern in (r"Avg latency: ([\d.]+)", r" 99th = (\d+)"))
    return Measured(round(1000 / mean, 1), figures={"end_to_end_p99_ms": p99})


def consumed(said: str) -> Measured:
    """The rate of a consumer that printed this, from its first to its last record."""
    # start, end, MB, MB/s, records, records/s, ms of the rebalance, ms of fetches, MB/s and records/s of fetches
    return Measured(round(float(said.strip().splitlines()[-1].split(",")[9]), 1))
