"""Connector files and queries of a user: no other file is read, and no command run for them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sinkbench.plan.entries import read_connector
from sinkbench.sinks.jdbcurl import jdbc_url
from sinkbench.sinks.postgres.asking import Table
from sinkbench.sinks.postgres.session import own_commit
from sinkbench.trial.cluster import filled_in

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


def test_a_connector_file_opens_no_other_file_and_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"name": "x", "config": HOSTILE}))
    variables = {"POSTGRES_USER": "u"}
    # Files that Python opens, processes that it starts, and whom it calls.
    touches = ("open", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "import")
    seen: list[str] = []
    watching = [True]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event in touches:
            seen.append(f"{event} {arguments[0]}")

    # Such a hook cannot be taken away again.
    sys.addaudithook(hook)
    config = {key: filled_in(value, variables) for key, value in read_connector(file).items()}
    leads = [each(config) for each in (jdbc_url, own_commit)]
    watching.clear()
    code = (".py", ".pyc", ".so")
    opened = [each.removeprefix("open ") for each in seen if each.startswith("open ")]
    # A number is a file that is open already.
    assert [each for each in opened if not each.endswith(code) and not each.isdigit()] == [str(file)]
    assert [each for each in seen if not each.startswith(("open ", "import "))] == []
    # Nothing is filled in but what the stack file says.
    assert config == HOSTILE
    assert leads[0] is not None


@pytest.mark.parametrize("field", ["a'); DROP TABLE x; --", "a\"}'); DROP TABLE x; --", "a%s", "a\\'b", 'a"b'])
def test_a_field_of_a_query_stays_within_its_quotes(field: str) -> None:
    literal = Table(in_columns=False).text(field).partition("#>> ")[2].removesuffix(")").removeprefix("E")
    assert literal[0] == literal[-1] == "'"
    assert "'" not in literal[1:-1].replace("''", "")
    column = Table(in_columns=True).text(field)
    assert column[0] == column[-1] == '"'
    assert '"' not in column[1:-1].replace('""', "")
    assert "%" not in (literal + column).replace("%%", "")
