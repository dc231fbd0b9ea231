"""What a JDBC connector's URL means for PostgreSQL."""

import pytest

from sinkbench.sinks.postgres.clients import refusal
from sinkbench.sinks.postgres.session import own_commit
from sinkbench.stack import Endpoint
from tests.support.endpoints import endpoints
from tests.support.parrots import postgres_parrot

LOGIN = {"connection.username": "u", "connection.password": "mine-own"}


def test_a_login_that_fails_says_why_and_is_tried_at_the_stacks_own_servers_alone() -> None:
    with postgres_parrot() as port:
        own = Endpoint(f"host=127.0.0.1,127.0.0.1 port=1,{port} user=s password=swordfish dbname=d sslmode=disable")
        there = endpoints(sinks={"postgres": own})
        url = f"jdbc:postgresql://localhost:{port}/d"
        said = refusal(there, {**LOGIN, "connection.url": url}) or ""
        assert "what kind of password is" in said
        assert "\n" not in said
        for other in (f"jdbc:postgresql://127.0.0.2:{port}/d", "jdbc:postgresql://${env:HOST}:1/d", "jdbc:a:b", ""):
            assert refusal(there, {**LOGIN, "connection.url": other}) is None
        # What only the workers know.
        assert refusal(there, {**LOGIN, "connection.url": url, "connection.password": "${env:PASSWORD}"}) is None
        assert refusal(there, {"connection.url": url}) is None


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
