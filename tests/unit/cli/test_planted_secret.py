"""A secret is planted wherever one can come from, and looked for wherever something is written, printed or shown."""

import base64
import html
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import duckdb
import pytest
from psutil import Process

from sinkbench.errors import PlanError, TrialFailed, UserError
from sinkbench.load.loadgens import Loadgens
from sinkbench.plan.entries import read_connector
from sinkbench.plan.plan import PlanLoad, load_plan
from sinkbench.results import Bottleneck
from sinkbench.runs.reader import load_summary
from sinkbench.runs.store import RunFolder, read_trials
from sinkbench.secrets import HIDDEN
from tests.support.commands import Command
from tests.support.endpoints import endpoints
from tests.support.parrots import HttpParrot, PostgresParrot, served
from tests.support.samplerun import keep_run

# With what addresses, JSON, HTML, connection strings and shells escape.
SECRET = "hush'hush\\<b>&/ü %41;"  # noqa: S105
USER = "bench"
QUOTED = quote(SECRET, safe="")
FORMS = {
    SECRET,
    quote(SECRET),
    QUOTED,
    quote_plus(SECRET),
    html.escape(SECRET),
    repr(SECRET)[1:-1],
    json.dumps(SECRET)[1:-1],
    json.dumps(json.dumps(SECRET))[3:-3],
    SECRET.replace("\\", "\\\\").replace("'", "\\'"),
    SECRET.encode("ascii", "ignore").decode(),
    base64.b64encode(f"{USER}:{SECRET}".encode()).decode(),
}
STACK = """
kafka: {bootstrap: "127.0.0.1:KAFKA", settings: {security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN,
  sasl.username: bench, sasl.password: {env: PLANTED}, socket.timeout.ms: 1000}}
connect: {urls: ["http://127.0.0.1:HTTP"], user: bench, password: {file: planted},
  variables: {POSTGRES_PASSWORD: {env: PLANTED}}}
elasticsearch: {url: "http://127.0.0.1:HTTP", user: bench, password: {env: PLANTED}}
postgres: {dsn: host=127.0.0.1 port=SQL dbname=d user=bench sslmode=disable, password: {file: planted}}
pgbouncer: {dsn: host=127.0.0.1 port=SQL dbname=pgbouncer user=bench, password: {env: PLANTED}}
loadgen: {urls: ["http://127.0.0.1:HTTP"], user: bench, password: {env: PLANTED}}
"""


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLANTED", SECRET)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "planted").write_text(f"{SECRET}\n")


@pytest.fixture
def fds(capfd: pytest.CaptureFixture[str]) -> Command:
    """Hears also what libraries print."""
    return Command(capfd)


def found_in(text: object) -> list[str]:
    """In which forms the secret is in the text."""
    return sorted(form for form in FORMS if form in str(text))


@pytest.mark.long
def test_services_that_repeat_a_secret_in_their_errors_are_quoted_without_it(tmp_path: Path, fds: Command) -> None:
    file = tmp_path / "clusters.yaml"
    with served(HttpParrot) as http, served(PostgresParrot) as sql:
        file.write_text(STACK.replace("KAFKA", str(http)).replace("HTTP", str(http)).replace("SQL", str(sql)))
        code, *told = fds("up", "--stack", file)
        said = "".join([*told, *fds("status", "--stack", file)[1:]])
    assert code == 2
    for service in ("kafka", "connect", "elasticsearch", "postgres", "pgbouncer", "loadgen"):
        assert f"{service} " in said or f"{service}-1" in said, said
    # They did say it.
    assert f"who is Basic {HIDDEN}, or {USER}:{HIDDEN}?" in said
    assert f"what kind of password is {HIDDEN}" in said
    assert found_in(said) == []


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A run whose connector file, plan, notes, samples and environment all hold the secret."""
    run = keep_run(tmp_path / "results", ("postgres/jdbc",), multiples=(1,), blocks=2, seconds=4)
    connectors = run.parent.parent / "connectors"
    url = f"jdbc:postgresql://h/d?user=u&password={QUOTED}"
    config = {"connector.class": "x", "connection.password": SECRET, "connection.url": url}
    (connectors / "postgres" / "jdbc.json").write_text(json.dumps({"name": "x", "config": config}))
    plan = tmp_path / "mine.yaml"
    entry = {"pipeline": "postgres/jdbc", "overrides": {"connection.password": SECRET, "note": "seen"}}
    plan.write_text(json.dumps({"pipelines": [entry], "name": "mine"}))
    # As a race reads them before it makes its folder.
    read_connector(connectors / "postgres" / "jdbc.json")
    folder = RunFolder.create(run.parent, load_plan(plan, connectors), connectors)
    record = read_trials(run / "trials.jsonl")[0]
    told: dict[str, Any] = {
        "notes": [f"a note of {quote(SECRET)}"],
        "overrides": {"connection.password": SECRET},
        "bottleneck": Bottleneck(component="postgres", cause="WAL", evidence=f"it says {SECRET}"),
        "failure": f'{{"trace": {json.dumps(SECRET)}}}',
    }
    folder.append_trial(record.model_copy(update=told))
    folder.write_samples(record.trial, [{"seconds": 0.0, "stored": 0, "state": SECRET}])
    about = {"run": folder.run, "environment": {"versions": {"x": SECRET}}}
    folder.write_summary(load_summary(run).model_copy(update=about))
    return folder.path


def test_nothing_that_is_kept_exported_or_reported_holds_a_secret(kept: Path, tmp_path: Path, fds: Command) -> None:
    out = tmp_path / "out"
    out.mkdir()
    commands = [["report", kept], ["show", kept], ["show", kept, "--all"], ["runs", "--results", kept.parent]]
    for form in ("csv", "json", "md"):
        commands += [["export", kept, "--format", form], ["export", kept, "--format", form, "--to", out / form]]
    commands.append(["export", kept, "--format", "parquet", "--to", out / "parquet"])
    ends = [fds(*command) for command in commands]
    assert {end.code for end in ends} == {0}
    ends.append(fds("compare", kept, kept))
    assert ends[-1].code == 3
    # Its pages are compressed.
    (out / "rows").write_text(repr(duckdb.read_parquet(str(out / "parquet")).fetchall()))
    written = {path: path.read_bytes() for folder in (kept, out) for path in folder.rglob("*") if path.is_file()}
    assert len(written) > 8
    assert [(path, form) for path, text in written.items() for form in FORMS if form.encode() in text] == []
    assert found_in("".join(end.out + end.err for end in ends)) == []
    # What is no secret is there.
    assert '"note": "seen"' in json.dumps(load_plan(kept / "plan.yaml", kept / "connectors", kept=True).whole())
    assert json.loads((kept / "connectors/postgres/jdbc.json").read_text())["config"]["connection.password"] == HIDDEN


@pytest.mark.long
def test_no_command_line_of_a_process_that_is_started_holds_a_secret() -> None:
    with_secrets = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    with_secrets |= {"sasl.username": USER, "sasl.password": SECRET}
    lines: list[str] = []
    with Loadgens(endpoints(kafka_settings=with_secrets)) as loadgens:
        timer = threading.Timer(3.0, lambda: lines.extend(" ".join(each.cmdline()) for each in Process().children()))
        timer.start()
        with pytest.raises(TrialFailed, match="no broker answers"):
            loadgens.load("tides", "r", 10, PlanLoad(), lambda _: None)
        timer.join()
    assert any("sinkbench.services.worker" in line for line in lines), lines
    assert [found_in(line) for line in lines] == [[] for _ in lines]


def test_a_file_that_cannot_be_read_is_named_and_not_what_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "connectors" / "postgres" / "jdbc.json"
    file.parent.mkdir(parents=True)
    for text in (f'{{"config": {{"connection.password": {json.dumps(SECRET)}', f'{{"config": {json.dumps(SECRET)}}}'):
        file.write_text(text)
        with pytest.raises(PlanError) as refused:
            read_connector(file)
        assert found_in(refused.value) == []
    (tmp_path / "thing.json").write_text(json.dumps(SECRET))
    with pytest.raises(UserError) as unread:
        load_plan(tmp_path / "thing.json", file.parent.parent)
    assert found_in(unread.value) == []
