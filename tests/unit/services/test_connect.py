"""What can be told from Connect's answers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from sinkbench.errors import ConnectError
from sinkbench.services import connect
from sinkbench.services.access import Access
from sinkbench.services.connect import (
    ConnectCluster,
    ConnectorStatus,
    Task,
    Validation,
    first_cause,
    is_even,
    placement,
    validation_of,
)
from tests.support.tlsserver import issue, served

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


def test_a_cause_that_says_nothing_gives_way_to_the_one_around_it() -> None:
    assert first_cause(TRACE + "Caused by: java.io.EOFException\n\tat a.B.c(B.java:1)") == (
        "FATAL: sorry, too many clients already (EOFException)"
    )


def test_the_cause_of_what_was_suppressed_is_not_the_cause() -> None:
    suppressed = "\tSuppressed: a.B: while closing\n\t\tat a.B.c(B.java:1)\n\tCaused by: a.B: closed already\n"
    assert first_cause(TRACE + suppressed) == "FATAL: sorry, too many clients already"


def test_a_dialect_that_was_not_found_is_told_as_what_it_is() -> None:
    hibernate = "Unable to determine Dialect without JDBC metadata (please set 'hibernate.dialect')"
    assert first_cause(f"a.B: wrapped\nCaused by: org.hibernate.HibernateException: {hibernate}").startswith(
        "no connection to the database came about"
    )


def test_a_cause_that_one_task_tells_is_shown_before_that_which_most_have_in_the_log_alone() -> None:
    silent = "a.B: wrapped\nCaused by: a.B: Unable to determine Dialect without JDBC metadata"
    tasks = [Task(0, "FAILED", "a:1", silent), Task(1, "FAILED", "a:1", silent), Task(2, "FAILED", "a:1", TRACE)]
    assert status(*tasks).cause() == "FATAL: sorry, too many clients already"
    assert (status(*tasks[:2]).cause() or "").startswith("no connection to the database came about")


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


def key(name: str, value: object, *errors: str, kind: str | None = "STRING") -> dict[str, object]:
    """A key as Connect answers with it; of no kind if nothing declares it."""
    definition = None if kind is None else {"name": name, "type": kind}
    return {"definition": definition, "value": {"name": name, "value": value, "errors": list(errors)}}


def test_a_validation_lists_what_is_declared_and_keeps_no_secret() -> None:
    answer = {
        "configs": [
            key("batch.size", "many", "Invalid value many:\n  not a number"),
            key("connection.url", "jdbc:postgresql://db/bench"),
            key("connection.password", "[hidden]", kind="PASSWORD"),
            key("consumer.override.max.pol.records", "5", kind=None),
            key("topics", None),
        ]
    }
    assert validation_of(answer) == Validation(
        frozenset({"batch.size", "connection.url", "connection.password", "topics"}),
        {"batch.size": ("Invalid value many: not a number",)},
        {
            "batch.size": "many",
            "connection.url": "jdbc:postgresql://db/bench",
            "consumer.override.max.pol.records": "5",
        },
    )


@pytest.mark.parametrize(
    ("trace", "count"),
    [
        ("java.lang.OutOfMemoryError: Java heap space\n\tat a.B.c(B.java:1)", 1),
        ("a.B: wrapped\nCaused by: java.lang.OutOfMemoryError: Metaspace\n\tat a.B.c(B.java:1)", 1),
        ("java.lang.OutOfMemoryError", 1),
        # The words alone are nobody's exception.
        ("a.B: java.lang.OutOfMemoryError: Java heap space", 0),
        ("a.OutOfMemoryError: mine", 0),
        ("a.B: no\n\tSuppressed: a.C: x\n\tCaused by: java.lang.OutOfMemoryError: x", 0),
        ("", 0),
    ],
)
def test_tasks_without_memory_are_known_by_the_class_of_their_exception(trace: str, count: int) -> None:
    tasks = (Task(0, "RUNNING", "w", trace), Task(1, "FAILED", "w", trace))
    assert ConnectorStatus("RUNNING", "", tasks).out_of_memory == count


def test_a_worker_whose_certificate_has_expired_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
