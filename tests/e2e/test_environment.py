"""The environment of a run on the real stack: all of it is known there, and nothing in it says whose machine it is."""

import getpass
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sinkbench.environment import describe
from sinkbench.plan.plan import PlanLoad
from sinkbench.services.kafka import Kafka
from sinkbench.settings import CHECKOUT
from sinkbench.sinks import Sink
from sinkbench.stack.local import LocalStack

TARGET = "tides_test_settings"
# Words that are in every environment, whatever a machine or an account may be called.
COMMON = {"debian", "ubuntu", "linux", "localhost", "sinkbench", "postgres", "kafka", "connect", "elasticsearch"}


@pytest.fixture(scope="module")
def found(stack: LocalStack) -> dict[str, Any]:
    return describe(stack, CHECKOUT, {"a.Plugin": "1.0"}, PlanLoad(acks="1"))


def leaves(content: object, above: str = "") -> Iterator[tuple[str, object]]:
    """Each value that holds no others, by its dotted key."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from leaves(value, f"{above}.{key}" if above else key)
    else:
        yield above, content


def test_everything_is_known_on_a_stack_of_our_own(found: dict[str, Any]) -> None:
    known = dict(leaves(found))
    for key in (
        *("stack", "workers", "cpu_model", "cpu_count", "memory_bytes", "kernel", "system"),
        *("disk.filesystem", "container.kind", "container.cpus", "container.memory_bytes"),
        *("versions.kafka", "versions.connect", "versions.elasticsearch-server", "versions.postgres"),
        *("versions.pgbouncer", "versions.confluent-kafka", "versions.librdkafka", "versions.psycopg"),
        *("jvm.kafka.version", "jvm.connect.version", "jvm.elasticsearch.version"),
        *("jvm.kafka.flags.Xmx", "jvm.connect.flags.Xmx", "jvm.elasticsearch.flags.Xmx"),
        *("jvm.kafka.flags.UseG1GC", "jvm.kafka.flags.MaxGCPauseMillis", "plugins.a.Plugin"),
        *("durability.kafka.acks", "durability.kafka.replication", "durability.kafka.min.insync.replicas"),
        *("durability.kafka.log.flush.interval.messages", "durability.kafka.log.flush.interval.ms"),
    ):
        assert known[key] is not None, key
    # What the kernel does not tell of a layered disk, and git of a checkout that it has not made.
    inconclusive = {key for key, value in known.items() if value is None}
    assert inconclusive <= {"disk.kind", *(() if (CHECKOUT / ".git").exists() else ("commit",))}


def test_what_is_told_is_what_was_set(stack: LocalStack, found: dict[str, Any]) -> None:
    assert found["jvm"]["kafka"]["flags"]["Xmx"] == stack.settings.kafka_heap
    assert found["jvm"]["connect"]["flags"]["Xmx"] == stack.settings.connect_heap
    assert found["jvm"]["elasticsearch"]["flags"]["Xmx"] == stack.settings.elasticsearch_heap
    assert found["jvm"]["kafka"]["version"].split("+")[0] == found["jvm"]["elasticsearch"]["version"].split("+")[0]
    assert found["durability"]["kafka"]["acks"] == "1"
    assert found["durability"]["kafka"]["min.insync.replicas"] == "1"
    assert found["service_limits"] == {}


def test_no_name_of_a_host_or_a_user_and_no_path_is_in_it(stack: LocalStack, found: dict[str, Any]) -> None:
    texts = [str(value) for _, value in leaves(found)] + [key for key, _ in leaves(found)]
    whole = json.dumps(found)
    for path in (Path.home(), CHECKOUT, stack.home, stack.settings.dist):
        assert path == Path("/") or str(path) not in whole
    assert [text for text in texts if text.startswith(("/", "~"))] == []
    names = {socket.gethostname(), socket.getfqdn(), getpass.getuser(), stack.settings.user} - COMMON
    for name in names:
        assert [text for text in texts if re.search(rf"\b{re.escape(name)}\b", text)] == [], name


def test_a_sink_tells_how_it_is_set(sink: Sink) -> None:
    sink.create(TARGET)
    try:
        settings = sink.settings(TARGET, {})
    finally:
        sink.drop(TARGET)
    assert None not in settings.durability.values()
    assert None not in settings.tuning.values()
    if "fsync" in settings.durability:
        assert settings.durability["fsync"] == settings.durability["synchronous_commit"] == "on"
        assert settings.tuning["max_wal_size"] == "4GB"
    else:
        assert settings.durability["index.translog.durability"] == "request"
        assert settings.durability["index.number_of_replicas"] == "0"
        assert settings.tuning["index.number_of_shards"] == "3"


def test_a_broker_tells_no_setting_that_there_is_not(kafka: Kafka) -> None:
    found = kafka.broker_settings(["min.insync.replicas", "no.such.setting"])
    assert found == {"min.insync.replicas": "1", "no.such.setting": None}
