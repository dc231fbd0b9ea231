"""Measures what Kafka's brokers send for each byte that is produced; figures: docs/studies/kafka-alone.md.

    .venv/bin/python -m benchmarks.kafka [--records RECORDS]

Three brokers on this machine, with 1 and 3 replicas and 0 to 2 consumer groups; the bytes are those of all brokers' own
metrics. Rates are those of `SINKBENCH_TOPOLOGY=brokers sinkbench race kafka-alone`. The local stack must be down. It
takes about 2 minutes.
"""

import argparse
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import closing
from secrets import token_hex

from sinkbench.limits.kafka import PerfTest, perf_test, printed
from sinkbench.plan.plan import Plan
from sinkbench.plan.sections import KafkaLoad
from sinkbench.race.lock import only_race
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.stack.local import LocalStack
from sinkbench.stack.tools import find_java
from sinkbench.topology import service_of
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import cleaning

PLAN = Plan.model_validate({"name": "kafka", "pipelines": ["postgres/jdbc"], "seed": 1})
PARTITIONS = 6
RECEIVED, SENT = "BytesInPerSec", ("BytesOutPerSec", "ReplicationBytesOutPerSec")
"""Names of the brokers' metrics of bytes."""


class Brokers:
    """The brokers' metrics of bytes, which their JVMs tell on a port of this machine that is opened for it."""

    def __init__(self, programs: PerfTest, pids: Iterable[int]) -> None:
        self._programs = programs
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
            read = ("--jmx-url", url, *asked, "--attributes", "Count", "--one-time")
            said = printed(self._programs.start("JmxTool", *read))
            found += sum(int(value) for value in said.strip().splitlines()[-1].split(",")[1:])
        return found


def fan_out(cluster: Cluster, programs: PerfTest, brokers: Brokers, records: int) -> Iterator[str]:
    """The rows of the study's second table. Expected: replicas - 1 + groups (AWS, right-sizing, "EC2 network")."""
    for replicas in (1, 3):
        for groups in (0, 1, 2):
            topic = f"tides_{token_hex(3)}_limit_kafka"
            load = KafkaLoad(label="bytes", replication=replicas, acks="all", linger_ms=10)
            sent, received = brokers.total(*SENT), brokers.total(RECEIVED)
            with cleaning(lambda topic=topic: cluster.kafka.delete_topic(topic)):
                cluster.kafka.create_topic(topic, PARTITIONS, replicas, {"min.insync.replicas": str(min(2, replicas))})
                readers = [programs.consume(topic, records) for _ in range(groups)]
                programs.produce(topic, load, records)
                for reader in readers:
                    printed(reader)
                received = brokers.total(RECEIVED) - received
                ratio = (brokers.total(*SENT) - sent) / received
            yield f"| {replicas} | {groups} | {received / 1e6:,.0f} | {ratio:.2f} | {replicas - 1 + groups} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000, help="of 512 bytes, for each row (200000)")
    given = parser.parse_args()
    stack = LocalStack(load_settings(changed={"topology": "brokers"}))
    if stack.start_id() is not None:
        raise SystemExit("the stack is up; stop it: sinkbench down")
    with only_race(stack.lock_file, CHECKOUT, PLAN.name):
        try:
            stack.up(lambda text: None)
            pids = [each.pid for each in stack.services() if each.pid and service_of(each.name) == "kafka"]
            with closing(Cluster(stack, PLAN, CHECKOUT)) as cluster, perf_test(stack.endpoints.kafka) as programs:
                for row in fan_out(cluster, programs, Brokers(programs, pids), given.records):
                    print(row, flush=True)
        finally:
            stack.down()


if __name__ == "__main__":
    main()
