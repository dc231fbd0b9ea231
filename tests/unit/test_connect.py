"""What can be told from Connect's answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sinkbench.connect import ConnectorStatus, Task, first_cause, is_even, placement

TRACE = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:636)
\tat java.base/java.lang.Thread.run(Thread.java:1474)
Caused by: org.hibernate.exception.JDBCConnectionException: Unable to open JDBC Connection
\tat org.hibernate.engine.Something.open(Something.java:1)
\t... 12 more
Caused by: org.postgresql.util.PSQLException: FATAL: sorry, too many clients already
\tat org.postgresql.core.v3.ConnectionFactoryImpl.doAuthentication(ConnectionFactoryImpl.java:711)
"""


def status(*tasks: Task, state: str = "RUNNING", trace: str = "") -> ConnectorStatus:
    return ConnectorStatus(state, trace, tasks)


def test_the_innermost_cause_is_shown_without_its_class() -> None:
    assert first_cause(TRACE) == "FATAL: sorry, too many clients already"


def test_a_trace_without_causes_gives_its_first_line() -> None:
    assert first_cause("java.lang.IllegalStateException: no\n\tat a.B.c(B.java:1)") == "no"


def test_an_exception_without_a_message_keeps_its_class() -> None:
    assert first_cause("java.lang.NullPointerException\n\tat a.B.c(B.java:1)") == "java.lang.NullPointerException"


def test_an_empty_trace_says_so() -> None:
    assert first_cause("") == "no trace"


def test_a_worker_without_tasks_is_counted_too() -> None:
    found = placement(
        status(Task(0, "RUNNING", "a:1"), Task(1, "RUNNING", "a:1")), {"a:1": "connect-1", "b:1": "connect-2"}
    )
    assert found == {"connect-1": 2, "connect-2": 0}
    assert not is_even(found)


def test_a_worker_that_is_not_known_stands_for_itself() -> None:
    assert placement(status(Task(0, "RUNNING", "c:1")), {"a:1": "connect-1"}) == {"connect-1": 0, "c:1": 1}


@given(st.integers(1, 16), st.integers(0, 200))
def test_tasks_dealt_round_are_even(workers: int, tasks: int) -> None:
    counts = {f"connect-{n}": tasks // workers + (n < tasks % workers) for n in range(workers)}
    assert is_even(counts)


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 100), min_size=2))
def test_a_difference_of_two_is_uneven(counts: dict[str, int]) -> None:
    least = min(counts, key=lambda worker: counts[worker])
    counts[least + "x"] = max(counts.values()) + 2
    assert not is_even(counts)


def test_the_cause_is_the_connectors_own_before_its_tasks() -> None:
    failed = Task(0, "FAILED", "a:1", TRACE)
    assert status(failed).cause() == "FATAL: sorry, too many clients already"
    assert status(failed, state="FAILED", trace="a.B: no such class").cause() == "no such class"
    assert status(Task(0, "RUNNING", "a:1")).cause() is None
