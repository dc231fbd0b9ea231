"""Loads on Kafka alone on the real stack: each has a rate, what was produced is in the topic, and nothing is left."""

from contextlib import closing
from pathlib import Path

import psutil
import pytest

from sinkbench.limits import kafka
from sinkbench.limits.kafka import kafka_jobs
from sinkbench.settings import CHECKOUT
from sinkbench.stack.local import LocalStack
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.observer import Observer
from tests.e2e.races import left_behind
from tests.support.trials import plan_of

CONSTANT = {"compression": "lz4", "constant": True, "producers": 2}


@pytest.mark.parametrize(
    ("load", "wire"),
    [
        (CONSTANT, True),
        ({"readers": 1, "traffic": True, "record_bytes": 100, "brokers": 1, "cores": 0.5}, True),
        ({"mode": "consume"}, False),
        ({"mode": "latency", "memory_mb": 512}, False),
        pytest.param({"mode": "latency", "memory_mb": 512, "backfill_mb": 3000}, False, marks=pytest.mark.rare),
        ({"by": "loadgen", "acks": "all"}, False),
        pytest.param({"by": "loadgen", "mode": "consume"}, False, marks=pytest.mark.rare),
    ],
    ids=str,
)
def test_a_load_on_kafka_alone_has_a_rate_and_leaves_nothing(
    stack: LocalStack, monkeypatch: pytest.MonkeyPatch, load: dict[str, object], wire: bool
) -> None:
    for name in ("SECONDS", "HELD_SECONDS", "WARM_SECONDS"):
        monkeypatch.setattr(kafka, name, 0.5)
    with closing(Cluster(stack, plan_of(kafka=[{"label": "it", **load}]), CHECKOUT)) as bench:
        (job,) = kafka_jobs(bench, "abcdef")
        limit = job.run(Observer())
        assert (limit.note, limit.path[-1].confirms) == (None, True)
        block = job.in_block(limit, 1, 1.0, Observer())
        assert block.problem is None
        assert block.records_per_second
        assert (block.cpu_seconds_per_million["kafka"] or 0) > 0
        # Equal records of 512 bytes compress to a fraction.
        assert ("wire_bytes" in block.figures) == ("ack_p99_ms" in block.figures) == wire
        assert ("end_to_end_p99_ms" in block.figures) == (load.get("mode") == "latency")
        if "traffic" in load:
            # One replica, and one group.
            assert block.figures["stored_ratio"] == 1
            assert 0.9 <= block.figures["sent_ratio"] <= 1.2
        assert load is not CONSTANT or 0 < block.figures["wire_bytes"] < 100
    assert not any("perf" in " ".join(each.cmdline()).lower() for each in psutil.Process().children(recursive=True))
    groups = [Path(f"/proc/{each.pid}/cgroup").read_text() for each in stack.services() if each.pid]
    assert not any("sinkbench-" in each for each in groups)
    assert left_behind(stack) == []


def test_a_load_that_kafka_refuses_has_its_reason_and_leaves_nothing(stack: LocalStack) -> None:
    loads = [{"label": "it", "replication": 3}, {"label": "that", "replication": 3, "by": "loadgen"}]
    with closing(Cluster(stack, plan_of(kafka=loads), CHECKOUT)) as bench:
        notes = [job.run(Observer()).note or "" for job in kafka_jobs(bench, "abcdef")]
    assert all("replication factor" in note.lower() for note in notes), notes
    assert left_behind(stack) == []
