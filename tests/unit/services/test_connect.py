"""What can be told from Connect's answers, and from the metrics of its workers."""

import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sinkbench.errors import ConnectError, ServiceError
from sinkbench.services import connect
from sinkbench.services.access import Access, curl
from sinkbench.services.connect import (
    ConnectCluster,
    ConnectorStatus,
    Task,
    Validation,
    is_even,
    placement,
    validation_of,
)
from sinkbench.services.connect_metrics import ConnectMetrics, WorkerMetrics, parse, signs
from tests.support.ports import free_ports
from tests.support.tlsserver import issue, served
from tests.support.waiting import until


def test_every_worker_is_counted_and_one_that_is_not_known_stands_for_itself() -> None:
    tasks = (Task(0, "RUNNING", "a:1"), Task(1, "RUNNING", "a:1"), Task(2, "RUNNING", "c:1"))
    found = placement(ConnectorStatus("RUNNING", "", tasks), {"a:1": "connect-1", "b:1": "connect-2"})
    assert found == {"connect-1": 2, "connect-2": 0, "c:1": 1}
    assert not is_even(found)
    assert is_even({"a": 2, "b": 1})
    assert is_even({})


def key(name: str, value: object, *errors: str, kind: str | None = "STRING") -> dict[str, object]:
    """A key as Connect answers with it; of no kind if nothing declares it."""
    definition = None if kind is None else {"name": name, "type": kind}
    return {"definition": definition, "value": {"name": name, "value": value, "errors": list(errors)}}


def test_a_validation_lists_what_is_declared_and_keeps_no_secret() -> None:
    given = {"batch.size": "many", "connection.password": "[hidden]", "consumer.override.max.pol.records": "5"}
    (size, password, override) = given
    configs = [
        key(size, given[size], "Invalid value many:\n  not a number"),
        key(password, given[password], kind="PASSWORD"),
        key(override, given[override], kind=None),
        key("topics", None),
    ]
    assert validation_of({"configs": configs}) == Validation(
        frozenset({size, password, "topics"}),
        {"batch.size": ("Invalid value many: not a number",)},
        {name: value for name, value in given.items() if name != "connection.password"},
    )


def test_a_worker_whose_certificate_expired_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So long it would be asked, and the message says so.
    monkeypatch.setattr(connect, "REBALANCE_SECONDS", 2.0)
    day = timedelta(days=1)
    expired, good = issue(tmp_path, "expired", begins=-3 * day, ends=-day), issue(tmp_path, "good")
    none = Starlette(routes=[Route("/connectors", lambda request: JSONResponse([]))])
    with served(none, expired) as there, served(none, good) as other:
        urls = [f"https://127.0.0.1:{port}" for port in (there, other)]
        with (
            ConnectCluster(urls[:1], Access(ca=expired.ca)) as cluster,
            pytest.raises(ConnectError, match=rf"^{urls[0]}: .*certificate has expired"),
        ):
            cluster.connectors()
        # Another one that can be trusted answers for both.
        with ConnectCluster(urls, Access(ca=good.ca)) as cluster:
            assert cluster.connectors() == []


def test_curl_gets_all_that_lets_a_person_in_but_no_secret() -> None:
    access = Access(user="o'neil $HOME", password="swordfish", ca=Path("/a b.pem"))  # noqa: S106
    assert shlex.split(curl(access)) == ["curl", "--cacert", "/a b.pem", "-u", "o'neil $HOME"]
    assert curl(Access()) == "curl"


def test_an_interrupt_shortens_the_wait_of_another_thread_for_dead_workers() -> None:
    (port,) = free_ports(1)
    with ConnectCluster([f"http://127.0.0.1:{port}"]) as cluster, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cluster.delete, "gone")
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.5)
        cluster.patience_seconds = 0.1
        with pytest.raises(ConnectError, match="did not take DELETE"):
            waiting.result(timeout=20)


TASK = """\
# HELP jvm_memory_used_bytes Used bytes of a given JVM memory area.
# TYPE jvm_memory_used_bytes gauge
jvm_memory_used_bytes{area="heap"} 1.0E8
jvm_memory_used_bytes{area="nonheap"} 9.0E7
jvm_gc_collection_seconds_count{gc="G1 Young Generation"} 12
jvm_gc_collection_seconds_sum{gc="G1 Young Generation"} 0.5
jvm_gc_collection_seconds_sum{gc="G1 Old Generation"} 0.25
jvm_threads_current 60.0
# TYPE jvm_compilation_time_seconds_total counter
jvm_compilation_time_seconds_total 12.5
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 40.5
# TYPE kafka_connect_sink_task_metrics_sink_record_send_total untyped
kafka_connect_sink_task_metrics_sink_record_send_total{connector="tides_a_001",task="NUMBER"} SENT
kafka_connect_sink_task_metrics_sink_record_read{connector="tides_a_001",task="NUMBER"} SENT
kafka_connect_sink_task_metrics_sink_record_active_count{connector="tides_a_001",task="NUMBER"} 500
kafka_connect_sink_task_metrics_partition_count{connector="tides_a_001",task="NUMBER"} PARTITIONS
kafka_connect_sink_task_metrics_put_batch_avg_time_ms{connector="tides_a_001",task="NUMBER"} 8.0
kafka_connect_sink_task_metrics_put_batch_max_time_ms{connector="tides_a_001",task="NUMBER"} 30.0
kafka_connect_connector_task_metrics_batch_size_avg{connector="tides_a_001",task="NUMBER"} 400
kafka_connect_connector_task_metrics_running_ratio{connector="tides_a_001",task="NUMBER"} 0.9
kafka_consumer_consumer_metrics_time_between_poll_avg{client_id="connector-consumer-tides_a_001-NUMBER"} 10.0
kafka_consumer_consumer_metrics_poll_idle_ratio_avg{client_id="connector-consumer-tides_a_001-NUMBER"} POLL
kafka_consumer_consumer_metrics_incoming_byte_total{client_id="connector-consumer-tides_a_001-NUMBER"} 5000
kafka_consumer_consumer_fetch_manager_metrics_records_lag_max{client_id="connector-consumer-tides_a_001-NUMBER"} 7000
"""


def worker(number: int, sent: int = 1000, partitions: int = 8, poll: str = "0.15") -> WorkerMetrics:
    text = TASK.replace("NUMBER", str(number)).replace("SENT", str(sent))
    return parse(text.replace("PARTITIONS", str(partitions)).replace("POLL", poll))


def test_the_tasks_of_a_connector_are_added_up_over_all_workers() -> None:
    found = signs([worker(0, 1000), worker(1, 3000)], "tides_a_001")
    assert found["tasks_put_total"] == found["tasks_read_total"] == 4000
    assert (found["tasks_put_share"], found["tasks_poll_share"]) == (pytest.approx(0.8), pytest.approx(0.15))
    assert found["tasks_records_per_put"] == 400
    assert (found["tasks_put_max_ms"], found["tasks_lag_max_records"]) == (30, 7000)
    assert found["tasks_busiest_share"] == pytest.approx(0.75)
    assert found["tasks_without_records"] == found["tasks_without_partitions"] == 0
    assert (found["connect_heap_bytes"], found["tasks_fetched_bytes_total"]) == (2e8, 10_000)
    seconds = [found[f"connect_{name}_seconds_total"] for name in ("gc", "cpu", "compilation")]
    assert seconds == [1.5, 81, 25]


def test_tasks_without_records_are_counted_and_left_out_of_the_shares() -> None:
    found = signs([worker(0), worker(1, 0, 4, "0.99"), worker(2, 0, 0, "0.99")], "tides_a_001")
    assert (found["tasks_without_records"], found["tasks_without_partitions"]) == (2, 1)
    assert (found["tasks_poll_share"], found["tasks_busiest_share"]) == (pytest.approx(0.15), 1)


def test_what_has_not_happened_yet_is_absent_and_not_zero() -> None:
    found = signs([worker(0, poll="NaN")], "tides_a_001")
    assert "tasks_poll_share" not in found
    assert "tasks_put_share" in found
    # Its first put is still under way.
    slow = WorkerMetrics({("tides_a_001", 0): {"sink_record_send": 0.0, "sink_record_read": 500.0}})
    assert signs([slow], "tides_a_001")["tasks_without_records"] == 0
    # Other connectors tell nothing of this one.
    assert not any(name.startswith("tasks_") for name in signs([worker(0)], "tides_b_001"))
    assert signs([], "tides_a_001") == {}


class Exporter:
    """An exporter whose only task has put 1,000 records more at every reading; `answers` until it is cleared."""

    readings = 0
    status = 200

    def __init__(self) -> None:
        self.answers = Event()
        self.answers.set()

    def answer(self, _: Request) -> Response:
        self.answers.wait(30)
        self.readings += 1
        body = TASK.replace("NUMBER", "0").replace("SENT", str(1000 * self.readings)).replace("POLL", "0.1")
        return Response(body.replace("PARTITIONS", "8"), self.status)


@pytest.fixture
def exporter() -> Exporter:
    return Exporter()


@pytest.fixture
def metrics(exporter: Exporter) -> Iterator[ConnectMetrics]:
    with served(Starlette(routes=[Route("/metrics", exporter.answer)])) as port:
        metrics = ConnectMetrics({"connect-1": f"http://127.0.0.1:{port}/metrics"})
        yield metrics
        metrics.close()


def read(metrics: ConnectMetrics) -> dict[str, float]:
    """What it says once all workers have answered, which may take several rounds."""
    return until(lambda: metrics.read("tides_a_001"))


def test_a_value_is_read_once_and_not_again_until_it_is_due(metrics: ConnectMetrics, exporter: Exporter) -> None:
    assert read(metrics)["tasks_put_total"] == 1000
    assert metrics.read("tides_a_001") == {}
    assert exporter.readings == 1


def test_a_slow_worker_holds_up_no_round_and_no_other_and_a_part_is_not_taken_for_the_whole() -> None:
    quick, slow = Exporter(), Exporter()
    slow.answers.clear()
    routes = [Route(f"/{name}", each.answer) for name, each in (("quick", quick), ("slow", slow))]
    with served(Starlette(routes=routes)) as port:
        metrics = ConnectMetrics({name: f"http://127.0.0.1:{port}/{name}" for name in ("slow", "quick")})
        assert metrics.read("tides_a_001") == {}
        until(lambda: quick.readings == 1)
        assert metrics.read("tides_a_001") == {}
        slow.answers.set()
        assert read(metrics)["tasks_put_total"] == 2000
        metrics.close()
    assert (quick.readings, slow.readings) == (1, 1)


def test_the_last_count_waits_for_the_puts_that_are_under_way(metrics: ConnectMetrics) -> None:
    assert metrics.last("tides_a_001", 3000)["tasks_put_total"] == 3000
    assert "tasks_put_total" not in metrics.last("tides_b_001", 3000)


def test_a_worker_that_refuses_is_named_and_then_left_alone(metrics: ConnectMetrics, exporter: Exporter) -> None:
    exporter.status = 500
    with pytest.raises(ServiceError):
        read(metrics)
    assert metrics.read("tides_a_001") == {}
    assert metrics.last("tides_a_001", 1) == {}
    assert ConnectMetrics({}).read("any") == ConnectMetrics({}).last("any", 1) == {}
