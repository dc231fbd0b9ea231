"""What PostgreSQL and PgBouncer are set to, on stand-ins, what a JDBC URL means, and what a schema file has made."""

import re
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from sinkbench.errors import ServiceError
from sinkbench.sinks.postgres import session
from sinkbench.sinks.postgres.clients import PgBouncer, refusal
from sinkbench.sinks.postgres.schema import Objects, difference
from sinkbench.sinks.values import SinkPooling
from sinkbench.stack import Endpoint
from tests.support.endpoints import endpoints
from tests.support.parrots import PostgresParrot, served

ALTER = re.compile(r'ALTER DATABASE "bench" (?:SET (?P<name>\S+) TO \'(?P<value>.*)\'|RESET (?P<gone>\S+))')
COMMIT = "synchronous_commit"


class Database:
    """Keeps what is set for it; after `left` changes its client is gone."""

    def __init__(self, left: int = 1_000, **there: str) -> None:
        self.there = dict(there)
        self.left = left
        self.info = SimpleNamespace(dbname="bench")

    def execute(self, query: Any) -> Any:
        text = query.as_string(None) if isinstance(query, sql.Composable) else query
        if (found := ALTER.fullmatch(text)) is None:
            return [(f"{name}={value}",) for name, value in self.there.items()]
        if self.left == 0:
            raise psycopg.OperationalError("killed")
        self.left -= 1
        name = (found["name"] or found["gone"]).replace('"', "")
        if found["gone"]:
            self.there.pop(name, None)
        else:
            self.there[name] = found["value"]
        return []


class Console:
    """A PgBouncer: it has a file, and what it runs with."""

    def __init__(self, admins: str = "bench, root", **file: str) -> None:
        usual = {"pool_mode": "transaction", "default_pool_size": "10", "admin_users": admins}
        self.file = {**usual, **file}
        self.runs = dict(self.file)
        self.databases: list[dict[str, Any]] = [{"name": "bench", "pool_size": 10, "pool_mode": None}]
        self.done: list[str] = []
        self.gone = False
        self.info = SimpleNamespace(user="bench")

    def execute(self, query: str | bytes) -> Any:
        text = query.decode() if isinstance(query, bytes) else query
        if text == "SHOW CONFIG":
            return [{"key": key, "value": value} for key, value in self.runs.items()]
        if text == "SHOW DATABASES":
            return self.databases
        if self.gone:
            raise psycopg.OperationalError("gone")
        if "bench" not in self.runs["admin_users"]:
            raise psycopg.errors.InsufficientPrivilege("admin access needed")
        self.done.append(text)
        if text == "RELOAD":
            self.runs = dict(self.file)
        elif (found := re.fullmatch(r"SET (\w+) = '(.*)'", text)) is not None:
            self.runs[found[1]] = found[2]
        return []


def test_a_setting_of_the_database_is_taken_away_again_and_what_was_there_before_comes_back() -> None:
    for before in ({}, {COMMIT: "local", "work_mem": "8MB"}):
        database: Any = Database(**before)
        session.Server(database, None).apply({"postgres": {COMMIT: "off"}})
        # A trial that was killed, and another one after it.
        server = session.Server(database, None)
        server.apply({"postgres": {COMMIT: "remote_apply"}})
        assert database.there[COMMIT] == "remote_apply"
        assert server.revert() == [f"the setting {COMMIT} of postgres"]
        assert database.there == before
        assert server.revert() == []


@given(before=st.sampled_from([None, "local"]), at=st.integers(0, 4), again=st.integers(0, 4))
def test_a_killed_controller_leaves_nothing_that_cannot_be_undone(before: str | None, at: int, again: int) -> None:
    usual = {} if before is None else {COMMIT: before}
    database: Any = Database(at, **usual)
    server = session.Server(database, None)
    with pytest.raises(ServiceError) if at < 2 else nullcontext():
        server.apply({"postgres": {COMMIT: "off"}})
    database.left = again
    with pytest.raises(ServiceError) if database.there != usual and again < 2 else nullcontext():
        server.revert()
    database.left = 1_000
    server.revert()
    assert database.there == usual


def pooler_of(console: Any) -> session.Server:
    database: Any = Database()
    return session.Server(database, console)


def test_pgbouncer_is_set_by_its_console_and_back_by_its_file() -> None:
    console = Console()
    pooler = pooler_of(console)
    wanted = {"pool_mode": "session", "default_pool_size": "20"}
    assert pooler.refusal({"pgbouncer": wanted}) is None
    pooler.apply({"pgbouncer": wanted})
    assert (console.runs["pool_mode"], console.done[-1]) == ("session", "RECONNECT")
    assert pooler.revert() == [f"the setting {name} of pgbouncer" for name in ("default_pool_size", "pool_mode")]
    assert (console.runs, console.done[-2:]) == (console.file, ["RELOAD", "RECONNECT"])


def test_what_this_pgbouncer_cannot_be_set_to_is_refused() -> None:
    said = "this PgBouncer has no setting max_prepared_statements; use a later version, or leave it out of the plan"
    assert pooler_of(Console()).refusal({"pgbouncer": {"max_prepared_statements": "100"}}) == said


def test_a_user_who_is_no_admin_of_pgbouncer_is_refused_and_sets_nothing() -> None:
    console = Console(admins="root, root2")
    said = pooler_of(console).refusal({"pgbouncer": {"pool_mode": "session"}}) or ""
    assert "does not let bench set anything; add it to admin_users" in said
    assert pooler_of(console).revert() == []
    assert console.done == []


def test_a_console_that_answers_nothing_more_is_an_error() -> None:
    console = Console()
    console.gone = True
    with pytest.raises(ServiceError):
        pooler_of(console).apply({})


def test_how_the_pools_are_set_is_what_holds_for_this_database() -> None:
    console: Any = Console(max_prepared_statements="200")
    assert PgBouncer(console, "bench").read() == SinkPooling("transaction", 10, 200)
    console.databases = [{"name": "bench", "pool_size": 3, "pool_mode": "statement"}]
    assert PgBouncer(console, "bench").read() == SinkPooling("statement", 3, 200)
    old: Any = Console()
    old.databases = [{"name": "bench", "pool_size": -1, "pool_mode": None}]
    for name in ("bench", "other"):
        assert PgBouncer(old, name).read() == SinkPooling("transaction", 10, 0)


def test_a_login_that_fails_says_why_and_is_tried_at_the_stacks_own_servers_alone() -> None:
    login = {"connection.username": "u", "connection.password": "mine-own"}
    with served(PostgresParrot) as port:
        own = Endpoint(f"host=127.0.0.1,127.0.0.1 port=1,{port} user=s password=swordfish dbname=d sslmode=disable")
        there = endpoints(sinks={"postgres": own})
        url = f"jdbc:postgresql://localhost:{port}/d"
        said = refusal(there, {**login, "connection.url": url}) or ""
        assert "what kind of password is" in said
        assert "\n" not in said
        for other in (f"jdbc:postgresql://127.0.0.2:{port}/d", "jdbc:postgresql://${env:HOST}:1/d", "jdbc:a:b", ""):
            assert refusal(there, {**login, "connection.url": other}) is None
        # What only the workers know.
        assert refusal(there, {**login, "connection.url": url, "connection.password": "${env:PASSWORD}"}) is None
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
    assert session.own_commit({"connection.url": f"jdbc:postgresql://db/bench?{options}"}) == commit
    assert session.own_commit({"camel.beans.pool.url": f"jdbc:postgresql://db/bench?{options}"}) == commit
    # PgBouncer hands no options on.
    pooled = "jdbc:postgresql://${env:PGBOUNCER_HOST}:6432/bench"
    assert session.own_commit({"connection.url": f"{pooled}?{options}"}) is None
    assert session.own_commit({"camel.sink.url": "elasticsearch:docker-cluster"}) is None


TABLE = {("table", 20_001): "public.tides"}
MANY = {("type", 20_000 + number): f"public.t{number}" for number in range(7)}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {}, ""),
        ({}, TABLE, "it makes table public.tides outside of the trial's own schema"),
        (TABLE, {}, "it removes table public.tides, which it has not made; leave that out"),
        # Made anew under its name it was removed.
        (TABLE, {("table", 20_002): "public.tides"}, "it removes table public.tides"),
        ({}, MANY, "it makes type public.t0, type public.t1, type public.t2 and 4 more outside"),
    ],
)
def test_what_was_made_or_removed_elsewhere_is_named(before: Objects, after: Objects, said: str) -> None:
    found = difference(before, after)
    assert (found or "").startswith(said)
    assert (found is None) == (not said)
