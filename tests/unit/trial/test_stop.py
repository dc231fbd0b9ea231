"""When a drain is over, what its samples say, and what a person is told of JVMs that have no memory left."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.analysis.samples import (
    OTHER_CONNECTIONS,
    OTHER_POOL_CLIENTS,
    Sample,
    connection_peaks,
    cpu_seconds_per_million,
    foreign_cores,
    monitoring_overhead_cores,
    rejected_writes,
    used_up,
)
from sinkbench.errors import ReasonCode
from sinkbench.plan.cells import expand
from sinkbench.services.connect import ConnectorStatus, Task
from sinkbench.stack import ServiceState
from sinkbench.stack.meter import MONITORING
from sinkbench.summary.cells import summarize
from sinkbench.trial.stop import BLIND_SAMPLES, DrainWatch, End, Enough, died_of_memory
from tests.support.fakecluster import FakeCluster, codes, drained
from tests.support.trials import drain_of, plan_of
from tests.support.trials import sample as read_sample

CODES = ReasonCode


def sample(seconds: float, stored: int | None, **read: Any) -> Sample:
    usual = {"tasks_running": 3, "tasks_failed": 0, "cpu_seconds": {"kafka": 1.0}}
    return read_sample(seconds, stored, **{**usual, **read})


def test_rejected_writes_are_those_since_the_first_sample_that_counted_them() -> None:
    def counted(*counts: float | None) -> int:
        signs = [{} if count is None else {"es_write_rejected_total": count} for count in counts]
        samples = [sample(place, 0, signs=each) for place, each in enumerate(signs)]
        return rejected_writes(samples, "es_write_rejected_total")

    assert counted(None, 3, None, 3, 10, None) == 7
    assert counted(4, 4) == counted(None) == counted() == counted(5, 0) == 0


def failed(seconds: float, stored: int, count: int = 3, **read: Any) -> Sample:
    """A sample in which this many of three tasks are FAILED."""
    return sample(seconds, stored, **{"tasks_running": 3 - count, "tasks_failed": count, **read})


def using(seconds: float, troubles: Mapping[str, str] | None = None, **cpu_seconds: float | None) -> Sample:
    return sample(seconds, 10, cpu_seconds=cpu_seconds, troubles=troubles or {})


@pytest.mark.parametrize(
    ("samples", "is_over"),
    [
        ([sample(0, 0), sample(1, 99), sample(2, 100)], True),
        # More than was produced.
        ([sample(1, 130)], True),
        # Where a task has FAILED, everything must be committed, too, if that is seen. It may have been restarted.
        ([sample(0, 0), failed(1, 60, 1, uncommitted=50), failed(2, 100, 1, uncommitted=20)], False),
        ([failed(1, 60, 1, uncommitted=50), failed(2, 100, 1, uncommitted=20), failed(3, 103, 1, uncommitted=0)], True),
        ([failed(1, 60, 1, uncommitted=50), sample(2, 100, uncommitted=None)], True),
        ([failed(1, 60, 1, uncommitted=50), sample(2, 100, uncommitted=5)], False),
        # Progress starts the clock again.
        ([sample(29, 1), sample(58, 2), sample(87, 3)], False),
        # Tasks that were restarted in time, and one of several that is FAILED.
        ([failed(1, 10), failed(2, 10), sample(3, 10), failed(4, 10), failed(5, 10)], False),
        ([failed(1, 10, 1), failed(20, 10, 1)], False),
        # Services that were never seen.
        ([sample(n, n, cpu_seconds={"kafka": None}) for n in range(3)], False),
    ],
)
def test_a_drain_is_over_when_everything_is_stored(samples: list[Sample], is_over: bool) -> None:
    *before, last = map(DrainWatch(100, 3, 30, 300).see, samples)
    assert before == [None] * len(before)
    assert last == (End() if is_over else None)


KILLED = "was killed for memory: its limit is 512 MB (SINKBENCH_CONNECT_MEMORY)"


@pytest.mark.parametrize(
    ("samples", "code", "text"),
    [
        (
            [sample(0, 0), sample(10, 40), sample(40, 40), sample(40.1, 40)],
            *(CODES.NO_PROGRESS, "no progress for 30 s at 40 of 100 records"),
        ),
        (
            [failed(at, 100, 1, in_topic=100, uncommitted=20) for at in (1, 20, 32)],
            *(CODES.NO_PROGRESS, "no progress for 30 s at 100 of 100 records"),
        ),
        (
            [*(sample(at, at // 4) for at in range(0, 302, 10)), sample(301, 76)],
            *(CODES.TIMED_OUT, "not done after 300 s, at 76 of 100 records"),
        ),
        (
            [failed(1, 10), failed(2.5, 10), failed(4, 10)],
            *(CODES.TASKS_FAILED, "all 3 tasks FAILED at 10 of 100 records"),
        ),
        # Tasks that fail because a service died are not the reason: a second later that is seen.
        (
            [using(0, postgres=1.0), failed(1, 10, cpu_seconds={"postgres": 1.0}), using(2, postgres=None)],
            *(CODES.SERVICE_DIED, "postgres died during the trial"),
        ),
        # One that was not read in a sample has not died.
        (
            [using(0, kafka=1.0, postgres=2.0), using(0.2), using(0.5, kafka=1.0, postgres=None)],
            *(CODES.SERVICE_DIED, "postgres died during the trial"),
        ),
        (
            [using(0, kafka=1.0, redis=1.0), using(1, {"kafka": KILLED}, kafka=None, redis=None)],
            *(CODES.SERVICE_DIED, f"redis died during the trial; kafka {KILLED}"),
        ),
        (
            [using(0, {"kafka": "became unhealthy: no answer"}, kafka=1.0)],
            *(CODES.SERVICE_DIED, "kafka became unhealthy: no answer"),
        ),
    ],
)
def test_a_drain_is_given_up_for_a_reason(samples: list[Sample], code: ReasonCode, text: str) -> None:
    *before, end = map(DrainWatch(100, 3, 30, 300).see, samples)
    assert before == [None] * len(before)
    assert (end.reason.code, end.reason.text) == (code, text)
    assert end.dead == tuple(sorted(re.findall(r"(\w+) (?:died during|was killed)", text)))


def test_a_single_reading_that_fails_is_passed_over_but_not_a_row_of_them() -> None:
    samples = [sample(n / 4, None, problems=("gone",)) for n in range(BLIND_SAMPLES)]
    *before, end = map(DrainWatch(100, 3, 30, 300).see, samples)
    assert before == [None] * (BLIND_SAMPLES - 1)
    text = f"the sink could not be read {BLIND_SAMPLES} times: gone"
    assert (end.reason.code, end.reason.text) == (CODES.SINK_UNREADABLE, text)


def pilot_seconds(rates: list[float], compiling: Callable[[int], float] | None) -> float | None:
    """How long a pilot with these records/s, one a second, goes on after its first record.

    `compiling` gives the share of its JVM's one core that went into compiling in each second; None if none can be seen.
    """
    watch = DrainWatch(10**9, 3, 30, 300, Enough(4, 0.1, 45))
    stored = spent = 0.0
    for second, rate in enumerate(rates):
        stored += rate
        spent += 0.0 if compiling is None else compiling(second)
        signs = {} if compiling is None else {"kafka_compiler_cpu_seconds_total": spent}
        if watch.see(sample(second, int(stored), cpu_seconds={"kafka": float(second)}, signs=signs)) is not None:
            return second
    return None


@pytest.mark.parametrize(
    ("rates", "compiling", "seconds"),
    [
        # Two of its lengths at a steady rate, from its first record on.
        ([1000] * 60, lambda second: 0.0, 8),
        ([0] * 12 + [1000] * 60, lambda second: 0.0, 20),
        # The last reading of 4 s in which JVMs compiled for a tenth of the time or less is that of second 24.
        ([1000] * 60, lambda second: 0.5 if second <= 20 else 0.0, 24),
        # What compiles or rises for ever ends all the same.
        ([1000] * 60, lambda second: 0.5, 45),
        ([100 * 1.1**second for second in range(100)], lambda second: 0.0, 45),
    ],
)
def test_a_pilot_ends_when_its_rate_is_steady_and_its_jvms_do_not_compile(
    rates: list[float], compiling: Callable[[int], float], seconds: float
) -> None:
    assert pilot_seconds(rates, compiling) == seconds


@pytest.mark.parametrize(("seen", "second"), [(True, 8), (False, 30)])
def test_a_pilot_whose_compilers_are_seen_may_rise_a_little(seen: bool, second: int) -> None:
    # By a tenth each 4 s, for 22 s.
    rising = [1000 * 1.1 ** (min(second, 22) / 4) for second in range(60)]
    assert pilot_seconds(rising, (lambda second: 0.0) if seen else None) == pytest.approx(second, abs=4)


# The services use 1.2 cores, and sinkbench 0.05.
drain = partial(drain_of, {"kafka": 0.2, "connect-1": 0.5, "connect-2": 0.5, "controller": 0.05})


def test_foreign_load_is_what_the_machine_does_outside_the_stack() -> None:
    machine = {"machine_cpu_seconds_total": 1.75, "machine_stolen_seconds_total": 0.2}
    assert foreign_cores(drain(**machine), 1_000) == (pytest.approx(0.5), pytest.approx(0.2))
    # Two clocks: a little less than nothing is nothing but what was stolen.
    found = foreign_cores(drain(**{**machine, "machine_cpu_seconds_total": 1.2}), 1_000)
    assert found == pytest.approx((0.2, 0.2))


def test_foreign_load_is_not_known_where_something_is_not_seen() -> None:
    machine = {"machine_cpu_seconds_total": 1.75, "machine_stolen_seconds_total": 0.0}
    assert (foreign_cores(drain(), 1_000), foreign_cores(drain(**machine), 2_000)) == (None, None)
    unseen = [dataclasses.replace(each, cpu_seconds={"kafka": None}) for each in drain(**machine)]
    assert foreign_cores(unseen, 1_000) is None


def test_monitoring_overhead_is_sinkbench_itself_and_the_workers_metrics() -> None:
    assert monitoring_overhead_cores(drain(), 1_000) == pytest.approx(0.05)
    # The name by which the meter's figures are sampled.
    metrics = {f"connect_{MONITORING}_cpu_seconds_total": 0.01}
    assert monitoring_overhead_cores(drain(**metrics), 1_000) == pytest.approx(0.06)
    assert monitoring_overhead_cores(drain(), 2_000) is None


def test_connections_are_those_of_clients_and_servers_and_never_zero_where_they_were_not_read() -> None:
    pooled = [
        sample(n, n, backends=b, pool_clients=c, pool_servers=s)
        for n, (b, c, s) in enumerate([(9, 24, 8), (10, 120, 10)])
    ]
    assert connection_peaks(pooled) == (120, 10)
    assert connection_peaks([sample(0, 0, backends=15, pool_clients=0, pool_servers=0)]) == (15, 15)
    assert connection_peaks([sample(0, None)]) == (None, None)


def test_connections_that_were_open_before_are_none_of_the_connectors() -> None:
    direct = [
        sample(0, 0, backends=30, signs={OTHER_CONNECTIONS: 30}),
        sample(1, 9, backends=66, signs={OTHER_CONNECTIONS: 30}),
        # Some of the others have gone.
        sample(2, 9, backends=40, signs={OTHER_CONNECTIONS: 5}),
    ]
    assert connection_peaks(direct) == (36, 36)
    pooled = [sample(0, 0, backends=9, pool_clients=24, pool_servers=10, signs={OTHER_POOL_CLIENTS: 4})]
    assert connection_peaks(pooled) == (20, None)
    others_pool = [sample(0, 0, backends=15, pool_clients=4, pool_servers=2, signs={OTHER_POOL_CLIENTS: 4})]
    assert connection_peaks(others_pool) == (15, 15)


def test_connections_are_used_up_when_all_but_a_few_are_open() -> None:
    assert used_up([sample(0, 0, backends=40), sample(1, 0, backends=97)], 100) == 97
    assert used_up([sample(0, 0, backends=60)], 100) is None
    assert (used_up([sample(0, 0, backends=60)], None), used_up([], 100)) == (None, None)


@given(st.floats(0.01, 2), st.integers(1_000, 100_000))
def test_cpu_seconds_per_million_of_a_steady_drain_is_share_over_rate(share: float, per_second: int) -> None:
    found = cpu_seconds_per_million(drain_of({"kafka": share}, per_second), per_second * 10)["kafka"]
    assert found == pytest.approx(share / per_second * 1e6, rel=0.01, abs=0.001)


def test_the_workers_are_added_up_and_their_sum_is_unknown_where_one_cannot_be_seen() -> None:
    samples = drain_of({"connect-1": 0.5, "connect-2": 0.25, "kafka": 0.1}, 1_000)
    assert cpu_seconds_per_million(samples, 10_000) == pytest.approx({"connect": 750, "kafka": 100}, rel=0.01)
    samples = [sample(n, n * 100, cpu_seconds={"connect-1": n * 0.5, "connect-2": None}) for n in range(11)]
    assert cpu_seconds_per_million(samples, 1_000) == {"connect": None}
    # A drain that ends early has no figure.
    assert cpu_seconds_per_million([sample(0, 0), sample(1, 50)], 100) == {}


PLAN = plan_of("elasticsearch/camel-bulk")
CELL = expand(PLAN, 3)[0]
EXHAUSTED = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:636)
Caused by: java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3541)
"""


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (ServiceState("connect-2", "dead", None, "exit status 3", 3), ["connect-2"]),
        (ServiceState("elasticsearch", "dead", None, "exit status 3", 3), ["elasticsearch"]),
        (ServiceState("connect-2", "dead", None, "killed"), []),
        (ServiceState("connect-1", "dead", None, "exit status 3", 3), []),
        # Of these such an exit code says something else.
        (ServiceState("postgres", "dead", None, "exit status 3", 3), []),
    ],
)
def test_a_jvm_without_heap_is_known_by_its_exit_code(state: ServiceState, found: list[str]) -> None:
    said = died_of_memory([state], ["connect-2", "elasticsearch", "postgres"]) or ""
    assert said.split(" died")[:1] == (found or [""])


def test_what_is_said_names_memory_the_setting_and_what_tasks_hold() -> None:
    def said_of(*names: str) -> str:
        return str(died_of_memory([ServiceState(name, "dead", None, "", 3) for name in names], names))

    said = said_of("connect-1", "connect-3")
    assert said.startswith("connect-1 and connect-3 died, out of memory: their Java heaps were used up (exit code 3)")
    remedy = "give them more (SINKBENCH_CONNECT_HEAP), or have tasks hold less: consumer.override.max.poll.records"
    assert remedy in said
    assert said_of("elasticsearch-2").endswith("give it more (SINKBENCH_ELASTICSEARCH_HEAP)")
    assert "\n" not in said


def test_a_worker_that_dies_for_memory_makes_its_trial_invalid_for_that_and_is_audited_once_it_is_back() -> None:
    cluster = FakeCluster(PLAN, dies=5.0, mortal="connect-2", dead=["connect-2"], exit_code=3)
    record = drained(cluster, cluster.revive)
    assert codes(record) == [ReasonCode.OUT_OF_MEMORY]
    assert record.audit is not None
    (cell,) = summarize([CELL], [record])
    assert not cell.passed
    assert cell.verdict.startswith("invalid: connect-2 died, out of memory: its Java heap was used up")


def test_tasks_that_fail_for_memory_say_so_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [("RUNNING", ""), ("RUNNING", ""), ("FAILED", EXHAUSTED)]
    tasks = tuple(Task(number, state, f"w{number}", trace) for number, (state, trace) in enumerate(states))
    cluster = FakeCluster(PLAN)
    monkeypatch.setattr(cluster, "status", lambda name: ConnectorStatus("RUNNING", "", tasks))
    record = drained(cluster)
    assert record.reasons[0].code == ReasonCode.OUT_OF_MEMORY
    assert record.reasons[0].figures == {"failed": 1, "tasks": 3}
    (cell,) = summarize([CELL], [record])
    assert cell.verdict.startswith("1 of 3 tasks FAILED: out of memory, Java heap space (consumer.override.max.poll.")
    assert "give the workers more heap (SINKBENCH_CONNECT_HEAP)" in cell.verdict


def test_workers_that_die_while_their_connector_is_stopped_are_why_it_made_no_progress() -> None:
    cluster = FakeCluster(PLAN, stuck=True, exit_code=3)
    cluster.stop_connector = lambda *names: cluster.dead.append("connect-2")
    record = drained(cluster)
    assert codes(record)[0] == ReasonCode.OUT_OF_MEMORY
    assert record.invalid[0].startswith("connect-2 died, out of memory")
    assert ReasonCode.NO_PROGRESS in codes(record)
