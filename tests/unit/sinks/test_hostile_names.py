"""Connector files and queries of somebody's own: no other file is read, no command run, no secret sent for them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from sinkbench.plan.connectors import read_connector
from sinkbench.race.keys import beans_named, check_keys, check_url
from sinkbench.sinks.postgres.asking import Columns, Document
from sinkbench.sinks.postgres.jdbc import conninfo_of, refusal
from sinkbench.trial.bench import filled_in
from tests.support.parrots import postgres_parrot

HOSTILE = {
    "connector.class": "../../bin/sh; touch hostile",
    "connection.url": "jdbc:postgresql://h:1/d?sslrootcert=/etc/passwd&passfile=/etc/shadow&service=x&user=$(id)",
    "${file:/etc/passwd:root}": "${file:/etc/passwd:root}",
    "a": "${dir:/etc:passwd}",
    "b": "${env:PATH}",
    "c": "`touch hostile`",
    "d": "$(touch hostile)",
    "e": "!!python/object/apply:os.system ['touch hostile']",
    "camel.beans.x": "#class:java.lang.Runtime",
    "f": "{{7*7}}{% include '/etc/passwd' %}",
    "g": "file:///etc/passwd",
}
TOUCHES = ("open", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "import")
_seen: list[list[str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    # While Python ends, a module's names are gone before its hook is.
    for seen in _seen or ():
        if event in TOUCHES:
            seen.append(f"{event} {arguments[0]}")


@contextmanager
def watched() -> Iterator[list[str]]:
    """Every file that Python opens meanwhile, every process that it starts, and whom it calls."""
    if not hasattr(watched, "hooked"):
        # Such a hook cannot be taken away again.
        sys.addaudithook(_hook)
        watched.hooked = True  # type: ignore[attr-defined]
    seen: list[str] = []
    _seen.append(seen)
    try:
        yield seen
    finally:
        _seen.remove(seen)


def test_a_connector_file_opens_no_other_file_and_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"name": "x", "config": HOSTILE}))
    variables = {"POSTGRES_USER": "u"}
    with watched() as seen:
        config = {key: filled_in(value, variables) for key, value in read_connector(file).items()}
        check_keys(config, frozenset(), {}, beans_named(config.values()))
        check_url(config["connection.url"])
        conninfo_of(config)
    code = (".py", ".pyc", ".so")
    opened = [each.removeprefix("open ") for each in seen if each.startswith("open ")]
    # A number is a file that is open already.
    assert [each for each in opened if not each.endswith(code) and not each.isdigit()] == [str(file)]
    assert [each for each in seen if not each.startswith(("open ", "import "))] == []
    # Nothing is filled in but what the stack file says.
    assert config == HOSTILE


def test_of_a_jdbc_url_only_what_leads_to_the_server_is_taken() -> None:
    found = conninfo_to_dict(conninfo_of(HOSTILE) or "")
    assert found == {"host": "h", "port": "1", "dbname": "d", "user": "$(id)"}


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_part_of_a_jdbc_url_becomes_another_option(host: str, database: str, user: str) -> None:
    url = f"jdbc:postgresql://{host}/{database}?user={user}"
    found = conninfo_of({"connection.url": url, "connection.username": user})
    if found is not None:
        assert set(conninfo_to_dict(found)) <= {"host", "port", "dbname", "user", "password", "sslmode"}
        # That would be a socket of this machine.
        assert not str(conninfo_to_dict(found)["host"]).startswith(("/", "@"))


def test_a_host_that_a_connector_file_names_is_sent_no_password_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".pgpass").write_text("*:*:*:*:swordfish-of-the-home\n")
    (tmp_path / ".pgpass").chmod(0o600)
    with postgres_parrot() as port:
        url = f"jdbc:postgresql://127.0.0.1:{port}/d?sslmode=disable"
        config = {"connection.url": url, "connection.username": "u"}
        assert refusal(config) is None
        monkeypatch.setenv("PGPASSWORD", "swordfish-of-the-shell")
        assert refusal(config) is None
        assert "what kind of password is mine" in (refusal({**config, "connection.password": "mine-own"}) or "")


@pytest.mark.parametrize("field", ["a'); DROP TABLE x; --", "a\"}'); DROP TABLE x; --", "a%s", "a\\'b", 'a"b'])
def test_a_field_of_a_query_stays_within_its_quotes(field: str) -> None:
    literal = Document().text(field).partition("#>> ")[2].removesuffix(")")
    assert literal[0] == literal[-1] == "'"
    assert "'" not in literal[1:-1].replace("''", "")
    column = Columns().text(field)
    assert column[0] == column[-1] == '"'
    assert '"' not in column[1:-1].replace('""', "")
    assert "%" not in (literal + column).replace("%%", "")
