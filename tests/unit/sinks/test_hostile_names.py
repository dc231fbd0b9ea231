"""Connector files and queries of a user: no other file is read, no command run, no secret sent for them."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from sinkbench.plan.files import read_connector
from sinkbench.sinks.postgres.asking import Columns, Document
from sinkbench.sinks.postgres.jdbc import NO_FILE, alone, conninfo_of, refusal, with_password
from sinkbench.trial.cluster import filled_in
from tests.support.parrots import kerberos_server, postgres_parrot

HOSTILE = {
    "connector.class": "../../bin/sh; touch hostile",
    "connection.url": "jdbc:postgresql://h:1/d?sslmode=verify-full&sslrootcert=/etc/passwd&sslcert=/etc/passwd"
    "&sslkey=/etc/passwd&passfile=/etc/shadow&service=x&user=$(id)",
    "${file:/etc/passwd:root}": "${file:/etc/passwd:root}",
    "a": "${dir:/etc:passwd}",
    "b": "${env:PATH}",
    "c": "`touch hostile`",
    "camel.beans.x": "#class:java.lang.Runtime",
    "f": "{{7*7}}{% include '/etc/passwd' %}",
}
# Options of libpq that name a file, or a program, and one that would lead elsewhere.
OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile", "service", "hostaddr")
CA = "/stack/ca.pem"
STACKS = (f"host=db user=u password=p sslmode=verify-full sslrootcert={CA}", "host=pooler user=u")
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
        conninfo = conninfo_of(config)
    code = (".py", ".pyc", ".so")
    opened = [each.removeprefix("open ") for each in seen if each.startswith("open ")]
    # A number is a file that is open already.
    assert [each for each in opened if not each.endswith(code) and not each.isdigit()] == [str(file)]
    assert [each for each in seen if not each.startswith(("open ", "import "))] == []
    # Nothing is filled in but what the stack file says.
    assert config == HOSTILE
    # Of a JDBC URL only what leads to the server is taken.
    found = conninfo_to_dict(conninfo or "")
    assert found == {"host": "h", "port": "1", "dbname": "d", "user": "$(id)", "sslmode": "require"}


@given(
    st.text(max_size=20),
    st.text(max_size=20),
    st.text(max_size=20),
    st.lists(
        st.tuples(
            st.sampled_from(OPTIONS),
            st.sampled_from(("verify-full", "verify-ca", "require", "/etc/passwd", CA, f"{CA}/../x")) | st.text(),
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_no_part_of_a_jdbc_url_becomes_another_option(
    host: str, database: str, user: str, options: list[tuple[str, str]], quoted: bool
) -> None:
    query = urlencode(options) if quoted else "&".join(f"{key}={value}" for key, value in options)
    config = {"connection.url": f"jdbc:postgresql://{host}/{database}?user={user}&{query}", "connection.username": user}
    found = conninfo_of(config, STACKS)
    if found is not None:
        options_found = conninfo_to_dict(found)
        files = {key: options_found.pop(key) for key in ("sslrootcert",) if key in options_found}
        assert set(options_found) <= {"host", "port", "dbname", "user", "password", "sslmode"}
        # Without the file that would not be verified.
        assert files == ({"sslrootcert": CA} if str(options_found.get("sslmode", "")).startswith("verify-") else {})
        # That would be a socket of this machine.
        assert not str(options_found["host"]).startswith(("/", "@"))


def test_a_connection_that_is_tried_reads_no_file_but_the_stacks_own_ca() -> None:
    nowhere = dict.fromkeys(("passfile", "sslcert", "sslkey", "sslcrl"), NO_FILE)
    url = "jdbc:postgresql://h/d?sslmode=verify-full&sslrootcert="
    own = conninfo_to_dict(alone(conninfo_of({"connection.url": url + CA}, STACKS) or ""))
    assert {key: own[key] for key in own if own[key] == NO_FILE} == nowhere
    assert (own["sslmode"], own["sslrootcert"]) == ("verify-full", CA)
    for another in (url + "/etc/passwd", "jdbc:postgresql://h/d?sslmode=verify-ca", "jdbc:postgresql://h/d"):
        tried = conninfo_to_dict(alone(conninfo_of({"connection.url": another}, STACKS) or ""))
        # libpq takes ~/.postgresql/root.crt for it unless it is told another, and then verifies.
        assert {key: tried[key] for key in tried if tried[key] == NO_FILE} == {**nowhere, "sslrootcert": NO_FILE}
        # Nor does the environment say how.
        assert tried["sslmode"] == ("require" if "verify" in another else "prefer")


def test_a_host_of_a_connector_file_gets_no_password_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_host_that_a_connector_file_names_is_shown_no_ticket_of_this_account() -> None:
    with kerberos_server() as port:
        said = refusal({"connection.url": f"jdbc:postgresql://127.0.0.1:{port}/b", "connection.username": "u"})
    assert said is not None
    assert "server requested GSSAPI authentication" in said


@pytest.mark.parametrize(("host", "sent"), [("127.0.0.1", True), ("::1", True), ("10.0.0.9", False)])
def test_the_stacks_password_goes_to_no_other_machine(host: str, sent: bool) -> None:
    stack = "host=127.0.0.1 port=15432 user=sinkbench password=swordfish dbname=d"
    asked = f"host={host} port=5433 user=sinkbench dbname=d"
    assert ("password" in conninfo_to_dict(with_password(asked, [stack], anywhere=True))) is sent
    assert "password" not in conninfo_to_dict(with_password(asked, [stack], anywhere=False))


@pytest.mark.parametrize("field", ["a'); DROP TABLE x; --", "a\"}'); DROP TABLE x; --", "a%s", "a\\'b", 'a"b'])
def test_a_field_of_a_query_stays_within_its_quotes(field: str) -> None:
    literal = Document().text(field).partition("#>> ")[2].removesuffix(")")
    assert literal[0] == literal[-1] == "'"
    assert "'" not in literal[1:-1].replace("''", "")
    column = Columns().text(field)
    assert column[0] == column[-1] == '"'
    assert '"' not in column[1:-1].replace('""', "")
    assert "%" not in (literal + column).replace("%%", "")
