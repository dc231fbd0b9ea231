"""Loads on Kafka alone: what its programs print, what a plan may ask, and what a run and its claims say of them."""

import sys
from collections import Counter
from pathlib import Path
from subprocess import PIPE, Popen
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from sinkbench.analysis.limits import KAFKA_ALONE, with_block
from sinkbench.claims.models import CellOf
from sinkbench.claims.readings import Untold, range_of, ratio_of
from sinkbench.cli.plans import read_plan
from sinkbench.errors import PlanError, ServiceError
from sinkbench.limits.programs import consumed, delayed, java_settings, printed, produced
from sinkbench.limits.traffic import traffic_ratios
from sinkbench.limits.tune import Measured
from sinkbench.plan.checks import check_copies
from sinkbench.plan.plan import load_plan
from sinkbench.plan.schedule import LimitOf, limits_in_blocks
from sinkbench.race.preparation import check_plan
from sinkbench.results import Limit, LimitInBlock
from sinkbench.settings import CHECKOUT
from sinkbench.stack.security import Security
from sinkbench.tables.cells import render
from sinkbench.topology import load_topology
from tests.support.trials import a_cell, cell_summary, plan_of, run_summary

PRODUCED = """101 records sent, 20.2 records/sec (0.01 MB/sec), 3 ms avg latency, 9.0 ms max latency.
1000 records sent, {rate} records/sec (0.49 MB/sec), 2.50 ms avg latency, 9 ms max latency, 2 ms 50th, {p99} ms 99th.
producer-metrics:outgoing-byte-rate:{{client-id=perf}}    : 99.0
producer-metrics:outgoing-byte-total:{{client-id=perf}}   : 260000.000
"""
CONSUMED = "2026-11-29 02:00:00:1, 2026-11-29 02:00:03:2, 97.7, 32.5, 200000, 66600.0, 400, 2600, 37.6, 76923.08\n"


def test_producers_take_as_long_as_the_slowest_and_each_record_has_its_share_of_the_bytes() -> None:
    said = [PRODUCED.format(rate="1000.5", p99=5), PRODUCED.format(rate="2000.0", p99=4)]
    assert produced(said, 2_000) == Measured(2001.0, figures={"wire_bytes": 260.0, "ack_p99_ms": 5.0})
    assert consumed(CONSUMED) == Measured(76923.1)


def test_single_records_have_a_latency_and_the_rate_that_follows_from_it() -> None:
    said = "0\t1.9\nAvg latency: 0.5000 ms\nPercentiles: 50th = 0, 99th = 2, 99.9th = 7\n"
    assert delayed(said) == Measured(2000.0, figures={"end_to_end_p99_ms": 2.0})


def test_brokers_send_and_store_what_is_copied_too() -> None:
    before = Counter(BytesInPerSec=50, BytesOutPerSec=7)
    after = Counter(BytesInPerSec=150, BytesOutPerSec=207, ReplicationBytesInPerSec=100, ReplicationBytesOutPerSec=200)
    assert traffic_ratios(before, after) == {"sent_ratio": 4.0, "stored_ratio": 2.0}
    assert traffic_ratios(after, after) == {}


def test_clients_of_a_secured_stack_have_javas_names() -> None:
    assert java_settings({}) == {}
    found = java_settings(Security(Path("/here"), {"kafka": "secret"}).kafka_settings)
    assert found["ssl.truststore.location"] == "/here/ca.pem"
    assert found["sasl.jaas.config"].endswith('ScramLoginModule required username="sinkbench" password="secret";')


@pytest.mark.parametrize("words", ["import sys; sys.exit('line one\\nno broker')", "raise SystemExit('no broker')"])
def test_a_program_that_fails_is_told_by_its_last_line(words: str) -> None:
    with pytest.raises(ServiceError, match=r"^a program of Kafka's failed: no broker$"):
        printed(Popen([sys.executable, "-c", words], stdout=PIPE, stderr=PIPE, text=True))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kafka": [{"label": "a"}, {"label": "a"}]}, "two loads are called 'a'"),
        ({"kafka": [{"label": "a"}], "mode": "sustain", "sustain": {"records_per_second": 5}}, "kafka"),
        ({"kafka": [{"label": "a", "by": "loadgen", "mode": "latency"}]}, "loadgen has no mode of 'latency'"),
        ({"kafka": [{"label": "a", "by": "loadgen", "constant": True}]}, "no constant of"),
        ({"kafka": [{"label": "a", "by": "loadgen", "record_bytes": 100}]}, "no record_bytes of 100"),
        ({"kafka": [{"label": "a", "by": "loadgen", "records_per_second": 5}]}, "no records_per_second of 5"),
        ({"kafka": [{"label": "a", "mode": "latency", "producers": 2}]}, "waits for each record, found producers: 2"),
        ({"kafka": [{"label": "a", "mode": "latency", "acks": "0"}]}, "waits for each record, found acks: '0'"),
        ({"kafka": [{"label": "a", "mode": "latency", "linger_ms": 0}]}, "found linger_ms: 0"),
        ({"kafka": [{"label": "a", "producers": 0}]}, "producers"),
        ({"kafka": [{"label": "a", "cores": 0}]}, "cores"),
        ({"kafka": [{"label": "a", "replication": 3, "brokers": 2}]}, "3 replicas need as many brokers, found 2"),
    ],
)
def test_a_plan_says_what_it_cannot_ask_of_kafka(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        plan_of(**fields)


@pytest.mark.parametrize("name", ["backfill", "brokers", "encryption", "fan-out", "kafka-alone"])
def test_a_plan_with_all_of_its_keys_can_be_read_again(name: str, tmp_path: Path) -> None:
    plan, file = read_plan(name), tmp_path / "plan.yaml"
    file.write_text(plan.show())
    assert load_plan(file, CHECKOUT / "connectors", kept=True).show() == plan.show()


def test_what_the_stack_lacks_is_refused_before_the_race() -> None:
    plan, small = read_plan("kafka-alone"), load_topology("small", CHECKOUT, CHECKOUT)
    lacking = list(check_copies(plan, small.kafka))
    assert len(lacking) == 3
    assert lacking[0].endswith("replication is 3, and Kafka has 1 broker; race with SINKBENCH_TOPOLOGY=brokers")
    assert list(check_copies(plan, load_topology("brokers", CHECKOUT, CHECKOUT).kafka)) == []
    endpoints = SimpleNamespace(kafka_settings={}, connect_variables={}, sinks={}, shared=True)
    stack: Any = SimpleNamespace(endpoints=endpoints, layout=None, profiler=None, faults=None, name="k", variables=())
    with pytest.raises(PlanError, match=r"kafka-alone.yaml:\d+: perf-test .* use by: loadgen$"):
        check_plan(plan, [], stack)
    shares = plan_of(kafka=[{"label": "a", "by": "loadgen", "cores": 0.5, "brokers": 5}])
    with pytest.raises(PlanError, match="cores: only root can limit brokers"):
        check_plan(shares, [], stack)
    told = plan_of(kafka=[{"label": "a", "traffic": True}])
    stack.profiler, stack.endpoints.kafka_settings = object(), {"security.protocol": "SASL_SSL"}
    with pytest.raises(PlanError, match="traffic: opens the brokers' metrics"):
        check_plan(told, [], stack)
    (refused,) = check_copies(shares, load_topology("brokers", CHECKOUT, CHECKOUT).kafka)
    assert refused.endswith("brokers is 5, and Kafka has 3 brokers; race with SINKBENCH_TOPOLOGY=five-brokers")
    assert list(check_copies(read_plan("brokers"), load_topology("five-brokers", CHECKOUT, CHECKOUT).kafka)) == []


def limit(label: str, *rates: float | None, figures: dict[str, float] | None = None, **fields: Any) -> Limit:
    found = Limit(sink=KAFKA_ALONE, way=label, connections=1, batch=10, record_bytes=512, **fields)
    for block, rate in enumerate(rates, 1):
        costs = {"kafka": 4.0, "client": 5.0}
        in_block = LimitInBlock(
            block=block, records_per_second=rate, problem="cold", cpu_seconds_per_million=costs, figures=figures or {}
        )
        found = with_block(found, in_block)
    return found


ONE = limit("one", 100_000, 110_000, 90_000, figures={"wire_bytes": 522})
HALF = limit("half", 50_000, 56_000, 46_000, None, figures={"wire_bytes": 6, "ack_p99_ms": 8, "partition_ratio": 1.5})


def test_loads_on_kafka_alone_are_in_each_block_whatever_cell_is_next() -> None:
    assert limits_in_blocks(plan_of(kafka=[{"label": "one"}]), [ONE]) == [LimitOf(KAFKA_ALONE, "one")]
    assert limits_in_blocks(plan_of(), [ONE]) == []
    assert LimitOf(KAFKA_ALONE, "one").needs(a_cell())


def test_the_result_has_a_row_for_each_load_on_kafka_alone() -> None:
    # With one trial a cell a run has the search alone.
    others = [limit("cold", None), limit("once", records_per_second=7_000)]
    lines = render(run_summary(cell_summary("a/x", 5), limits=[ONE, HALF, *others])).splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines if line}
    assert rows["one"] == ["100,000", "(90,000-110,000)", "51.2", "1.00", "9", "4"]
    assert rows["half"] == ["50,000", "(46,000-56,000)", "25.6", "0.51", "9", "4"]
    told = (
        "by half, 6 bytes a record on the wire, acknowledged in 8 ms (p99), fullest partition 1.50 times the emptiest"
    )
    assert f"{told}; not measured in 1 of 4 blocks: cold" in " ".join(lines)
    assert rows["cold"] == ["not", "measured"]
    assert rows["once"] == ["7,000", "3.58", "-", "-", "-"]


def test_claims_read_the_rates_and_the_bytes_of_kafka_alone() -> None:
    one, half = CellOf(label="one"), CellOf(label="half")
    stored = run_summary(limits=[ONE, HALF, limit("once", 5)]), ()
    assert range_of(stored, one, "records_per_second").low == 90_000
    assert ratio_of(stored, (half, one), "records_per_second").high == pytest.approx(56 / 90)
    assert ratio_of(stored, (half, one), "wire_bytes").estimate == pytest.approx(6 / 522)
    with pytest.raises(Untold, match="1 block, of which nothing is told"):
        range_of(stored, CellOf(label="once"), "records_per_second")
    assert range_of((run_summary(limits=[HALF]), ()), half, "partition_ratio").high == 1.5
    with pytest.raises(Untold, match="not finished"):
        range_of((stored[0].model_copy(update={"complete": False}), ()), one, "records_per_second")
