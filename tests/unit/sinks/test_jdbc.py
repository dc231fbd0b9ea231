"""The connection that a JDBC connector's configuration describes."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from sinkbench.sinks.postgres.jdbc import conninfo_of, own_commit, refusal

LOGIN = {"connection.username": "bench", "connection.password": "it's \\ odd"}


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("jdbc:postgresql://db:6432/bench?stringtype=unspecified", {"host": "db", "port": "6432", "dbname": "bench"}),
        ("jdbc:postgresql://[::1]:5/bench", {"host": "::1", "port": "5", "dbname": "bench"}),
        ("jdbc:postgresql:///bench", {"host": "localhost", "dbname": "bench"}),
    ],
)
def test_an_address_of_jdbc_becomes_one_of_libpq(url: str, where: dict[str, str]) -> None:
    expected = {"port": "5432", "user": "bench", "password": "it's \\ odd", **where}
    camel = {"camel.beans.pool.url": url, "camel.beans.pool.username": "bench"}
    camel["camel.beans.pool.password"] = LOGIN["connection.password"]
    for config in ({**LOGIN, "connection.url": url}, camel):
        assert conninfo_to_dict(conninfo_of(config) or "") == expected


@pytest.mark.parametrize(
    "rest", ["", "jdbc:mariadb://db/bench", "jdbc:postgresql:bench", "jdbc:postgresql://${env:HOST}:1/b",
     "jdbc:postgresql://a:1,b:2/bench"],
)  # fmt: skip
def test_what_is_no_such_address_is_not_tried(rest: str) -> None:
    assert conninfo_of({**LOGIN, "connection.url": rest}) is refusal({**LOGIN, "connection.url": rest}) is None


def test_what_only_the_workers_know_is_left_out_and_their_hosts_are_not_tried() -> None:
    config = {"connection.url": "jdbc:postgresql://db:1/b", **LOGIN, "connection.password": "${env:PASSWORD}"}
    assert "password" not in conninfo_to_dict(conninfo_of(config) or "")
    assert refusal({"connection.url": "jdbc:postgresql://no-such-host.invalid/b", **LOGIN}) is None


def test_a_connection_that_does_not_come_about_says_why_in_one_line() -> None:
    said = refusal({"connection.url": "jdbc:postgresql://127.0.0.1:1/b", **LOGIN}) or ""
    assert "Connection refused" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("options", "commit"),
    [
        ("options=-c%20synchronous_commit=off", "off"),
        ("ssl=true&options=-csynchronous_commit=remote_apply%20-c%20work_mem=4MB", "remote_apply"),
        ("options=--Synchronous-Commit=FALSE", "off"),
        ("options=-c synchronous_commit=off -c synchronous_commit=1", "on"),
        ("options=-c%20my.synchronous_commit=off", None),
        ("stringtype=unspecified", None),
    ],
)
def test_a_url_may_set_how_its_commits_are_stored(options: str, commit: str | None) -> None:
    assert own_commit({"connection.url": f"jdbc:postgresql://db/bench?{options}"}) == commit
    assert own_commit({"camel.beans.pool.url": f"jdbc:postgresql://db/bench?{options}"}) == commit
    # PgBouncer hands no options on.
    pooled = "jdbc:postgresql://${env:PGBOUNCER_HOST}:6432/bench"
    assert own_commit({"connection.url": f"{pooled}?{options}"}) is None
    assert own_commit({"camel.sink.url": "elasticsearch:docker-cluster"}) is None
