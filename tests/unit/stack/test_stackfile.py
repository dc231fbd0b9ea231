"""What a stack file says, and what is refused of it and of its clusters; only ports are asked where nothing listens."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trustme

from sinkbench import secrets
from sinkbench.errors import ConnectError, StackError
from sinkbench.plan.plan import load_plan
from sinkbench.race.leftovers import book_of, leftover_names, note_run
from sinkbench.race.preparation import preflight, version_used
from sinkbench.services.access import Access
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.sinks import Capabilities
from sinkbench.stack.choice import open_stack
from sinkbench.stack.external import ExternalStack, advice, load_stack_file
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names
from tests.support.trials import JDBC, OTHER

SECRET = "hunter2-and-more"  # noqa: S105
LEAST = "kafka: {bootstrap: 'b1:9092,b2:9092'}\nconnect: {urls: ['http://c1:8083', 'http://c2:8083/']}\n"
WHOLE = """
kafka:
  bootstrap: b1:9092
  settings:
    security.protocol: SASL_SSL
    sasl.username: bench
    sasl.password: {env: KAFKA_PASSWORD}
    ssl.ca.location: ca.pem
    socket.timeout.ms: 5000
    socket.keepalive.enable: true
connect:
  urls: https://connect:8083/rest/
  workers: 3
  user: bench
  password: {file: password}
  ca: ca.pem
  metrics: [http://connect1:9404/metrics, http://connect2:9404/metrics]
  variables:
    POSTGRES_HOST: db.internal
    POSTGRES_PORT: 5432
    POSTGRES_PASSWORD: {env: KAFKA_PASSWORD}
elasticsearch:
  url: https://es:9200
  index: others
  api_key: {env: KAFKA_PASSWORD}
  ca: ca.pem
postgres:
  dsn: postgresql://bench@db/bench?sslmode=verify-full&sslrootcert=ca.pem
  password: {file: password}
pgbouncer:
  dsn: host=db port=6432 dbname=pgbouncer user=stats
loadgen: {urls: [http://gen1:18090, http://gen2:18090]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    (tmp_path / "password").write_text("from-a-file\n")
    (tmp_path / "nothing").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfd\xfc")
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    return tmp_path


def refusal(folder: Path, text: str) -> str:
    (folder / "mine.yaml").write_text(text)
    with pytest.raises(StackError) as raised:
        load_stack_file(folder / "mine.yaml")
    return str(raised.value).replace(f"{folder}/", "")


def test_the_least_file_takes_the_defaults(folder: Path) -> None:
    (folder / "mine.yaml").write_text(LEAST)
    file = load_stack_file(folder / "mine.yaml")
    found = file.endpoints()
    assert file.workers == 2
    assert found.kafka == "b1:9092,b2:9092"
    assert found.connect == {"connect-1": "http://c1:8083", "connect-2": "http://c2:8083"}
    assert found.shared
    assert (found.sinks, found.worker_ids, found.connect_access) == ({}, {}, Access())


def test_a_whole_file_gives_every_endpoint_with_its_secrets(folder: Path) -> None:
    (folder / "mine.yaml").write_text(WHOLE)
    file = load_stack_file(folder / "mine.yaml")
    found = file.endpoints()
    ca = folder / "ca.pem"
    assert file.workers == 3
    assert found.kafka_settings == {
        **{"security.protocol": "SASL_SSL", "sasl.username": "bench", "sasl.password": SECRET},
        **{"ssl.ca.location": str(ca), "socket.timeout.ms": "5000", "socket.keepalive.enable": "true"},
    }
    assert found.connect == {"connect-1": "https://connect:8083/rest"}
    assert found.connect_access == Access(user="bench", password="from-a-file", ca=ca)  # noqa: S106
    assert found.connect_metrics == {f"connect-{number}": f"http://connect{number}:9404/metrics" for number in (1, 2)}
    assert found.connect_variables == {
        **{"ELASTICSEARCH_INDEX": "others", "POSTGRES_HOST": "db.internal", "POSTGRES_PORT": "5432"},
        **{"POSTGRES_PASSWORD": SECRET, "POSTGRES_SSLMODE": "prefer", "POSTGRES_CA": ""},
        **dict.fromkeys(("ELASTICSEARCH_CA", "ELASTICSEARCH_PASSWORD", "ELASTICSEARCH_USER"), ""),
    }
    assert found.sinks["elasticsearch"].access == Access(api_key=SECRET, ca=ca)
    assert found.sinks["elasticsearch"].options == {"index": "others"}
    assert all(part in found.sinks["postgres"].address for part in (f"sslrootcert={ca}", "password=from-a-file"))
    assert found.loadgens == {"loadgen-1": "http://gen1:18090", "loadgen-2": "http://gen2:18090"}
    assert found.loadgen_access == Access()
    assert file.lines()["loadgen-2"] == f"{folder / 'mine.yaml'}:32"
    # Neither the file nor its endpoints print a secret.
    printed = repr(file) + str(file) + repr(found)
    assert [each for each in (SECRET, "from-a-file") if each in printed] == []
    assert secrets.redacted(f"{SECRET} from-a-file") == "*** ***"


AS_REFERENCE = r"write it as \{env: NAME\} or \{file: PATH\}"
CONNECT = "kafka: {bootstrap: b}\nconnect:\n  urls: 'http://c:1'\n"
VARIABLES = CONNECT + "  variables:\n    "
ELASTIC = "elasticsearch:\n  url: http://e:1\n"
SASL = "kafka:\n  bootstrap: b:1\n  settings:\n    {}\nconnect: {{urls: ['http://c:1']}}\n"
POSTGRES = "postgres:\n  dsn: host=db\n  password: {}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r"^mine.yaml:1: a stack file must be a mapping"),
        ("connect: {urls: ['http://c:1']}", r"^mine.yaml:1: stack file has no 'kafka', which it needs"),
        (LEAST + "postgress: {}\n", r"^mine.yaml:3: unknown key 'postgress' in stack file; did you mean 'postgres'\?"),
        (LEAST + f"elasticsearch: https://me:{SECRET}@e\n", r"mine.yaml:3: elasticsearch must be a mapping"),
        (LEAST.replace("http://c1:8083", "c1:8083"), r"mine.yaml:2: connect.urls must be an address like"),
        (LEAST.replace("http://c1", f"http://me:{SECRET}@c1"), rf"mine.yaml:2: connect.urls must not .*{AS_REFERENCE}"),
        (LEAST.replace("http://c1", f"me:{SECRET}@c1"), rf"mine.yaml:2: connect.urls must not .*{AS_REFERENCE}"),
        (LEAST.replace("c2:8083/", "c1:8083"), r"mine.yaml:2: urls lists http://c1:8083 twice"),
        ("kafka: {bootstrap: b}\nconnect: {urls: []}", r"mine.yaml:2: connect.urls must not be empty"),
        (CONNECT + "  workers: 0", r"mine.yaml:4: connect.workers must be at least 1, found 0"),
        (CONNECT + "  user: x", r"mine.yaml:4: connect has 'user' and no 'pass"),
        (CONNECT + "  password: {env: KAFKA_PASSWORD}", r"mine.yaml:4: connect has 'password' and no 'user'"),
        (LEAST + POSTGRES.format(SECRET), rf"^mine.yaml:5: postgres.password must not stand .*; {AS_REFERENCE}"),
        (LEAST + POSTGRES.format("{env: UNSET}"), r"mine.yaml:5: .*environment variable UNSET is not set; set it"),
        (LEAST + POSTGRES.format("{env: EMPTY}"), r"mine.yaml:5: .*environment variable EMPTY is empty; set it"),
        (LEAST + POSTGRES.format("{file: absent}"), r"mine.yaml:5: postgres.password: absent: there is no such file"),
        (LEAST + POSTGRES.format("{file: nothing}"), r"mine.yaml:5: postgres.password: nothing: is empty"),
        (LEAST + POSTGRES.format("{file: bytes}"), r"mine.yaml:5: postgres.password: bytes:1: is not UTF-8"),
        (LEAST + f"postgres: {{dsn: 'host=db password={SECRET}'}}", rf"yaml:3: postgres.dsn must .*{AS_REFERENCE}"),
        (LEAST + f"postgres: {{dsn: 'postgresql://me:{SECRET}@db/x'}}", r"mine.yaml:3: postgres.dsn must not hold a"),
        (LEAST + f"postgres: {{dsn: 'db {SECRET}'}}", r"mine.yaml:3: postgres.dsn must be a connection string like"),
        (LEAST + "postgres: {dsn: 'host=db sslrootcert=nope.pem'}", r"yaml:3: postgres.dsn: nope.pem: there is no"),
        (LEAST + "pgbouncer: {dsn: 'host=db dbname=x'}", r"mine.yaml:3: pgbouncer.dsn must name dbname=pgbouncer"),
        (LEAST + ELASTIC + "  ca: password", r"mine.yaml:5: elasticsearch.ca: password: holds no cert"),
        (
            LEAST + ELASTIC + "  user: x\n  password: {env: KAFKA_PASSWORD}\n  api_key: {env: KAFKA_PASSWORD}",
            r"mine.yaml:7: elasticsearch has both 'user' and 'api_key'",
        ),
        (LEAST + "elasticsearch: {url: 'http://e:1', index: Tides}", r"mine.yaml:3: elasticsearch.index must match"),
        (SASL.format("acks: 1"), r"mine.yaml:4: kafka.settings.acks is not a setting for SASL, TLS or addresses"),
        (SASL.format(f"sasl.jaas.config: x {SECRET};"), "sasl.jaas.config is .* Java's .*; write sasl.username and"),
        (SASL.format("ssl.truststore.location: a.jks"), "yaml:4: .*truststore.location is .*; write ssl.ca.loc"),
        (SASL.format(f"ssl.truststore.password: {SECRET}"), "yaml:4: .*truststore.password is .*; leave it out"),
        *(
            (SASL.format(f"{name}: {SECRET}"), rf"mine.yaml:4: kafka.settings.{name} must not .*{AS_REFERENCE}")
            for name in ("sasl.password", "ssl.key.password", "sasl.oauthbearer.client.secret")
        ),
        (SASL.format(f"sasl.password: {SECRET}\n    sasl.password: x"), 'yaml:5: .*duplicate key "sasl.password"$'),
        (VARIABLES + f"PGPASSWORD: {SECRET}", rf"yaml:5: connect.variables.PGPASSWORD must not .*{AS_REFERENCE}"),
        (VARIABLES + f"URL: x://me:{SECRET}@db", rf"yaml:5: connect.variables.URL holds a password; {AS_REFERENCE}"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_no_secret_is_shown(folder: Path, text: str, complaint: str) -> None:
    said = refusal(folder, text)
    assert re.search(complaint, said), said
    assert SECRET not in said
    assert SECRET[:8] not in said


def test_several_mistakes_are_shown_at_once_in_the_files_order(folder: Path) -> None:
    said = refusal(folder, "kafka: {bootstrap: b, x: 1}\nconnect: {urls: ['c']}\npgbouncer: {}\n").splitlines()
    assert [line.split(":")[1] for line in said] == ["1", "2", "3"]
    with pytest.raises(StackError, match=r"other.yaml: there is no such stack file"):
        load_stack_file(folder / "other.yaml")


STACK = """
kafka: {bootstrap: '127.0.0.1:1'}
connect:
  urls:
    - http://127.0.0.1:1
    - http://127.0.0.1:2
  variables: {POSTGRES_HOST: db.internal, POSTGRES_DB: bench}
postgres: {dsn: host=127.0.0.1 port=1 dbname=bench user=bench}
"""
SERVICES = ["kafka", "postgres", "connect-1", "connect-2"]


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExternalStack:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "mine.yaml").write_text(STACK)
    return cast(ExternalStack, open_stack(str(tmp_path / "mine.yaml"), load_settings()))


@pytest.fixture
def bench(stack: ExternalStack, tmp_path: Path) -> Cluster:
    (tmp_path / "plan.yaml").write_text("pipelines: [postgres/jdbc]\n")
    return Cluster(stack, load_plan(tmp_path / "plan.yaml", CHECKOUT / "connectors"), CHECKOUT)


def test_it_always_runs_and_is_never_started_or_stopped(stack: ExternalStack) -> None:
    assert stack.start_id() is not None
    assert stack.faults is None
    with pytest.raises(StackError, match="nothing is started or stopped"):
        stack.down()


@pytest.mark.long
def test_endpoints_that_do_not_answer_are_all_named_with_their_lines(stack: ExternalStack) -> None:
    with pytest.raises(StackError) as raised:
        stack.up(lambda line: None)
    lines = str(raised.value).splitlines()
    assert [line.split(": ")[0].split(":")[-1] for line in lines] == ["2", "8", "5", "6"]
    assert all(re.search("refused.*; check host and port, and that it runs$", line) for line in lines), lines
    assert [(state.name, state.state) for state in stack.services()] == [(name, "dead") for name in SERVICES]


def test_nothing_is_measured_of_its_services_and_that_is_said(stack: ExternalStack) -> None:
    assert stack.usage().cpu_seconds == dict.fromkeys(SERVICES)
    assert stack.usage().free_bytes is None
    assert {f"CPU time of {name}" for name in ("Kafka", "PostgreSQL", "Connect")} < set(stack.facts().unmeasured)


def test_its_lock_is_in_a_folder_that_no_other_account_can_enter(stack: ExternalStack, tmp_path: Path) -> None:
    folder = stack.lock_file.parent
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StackError, match="belongs to another account"):
        _ = stack.lock_file


def test_only_what_a_run_of_this_account_has_made_is_a_leftover(stack: ExternalStack) -> None:
    names = ["tides_ab12cd_001", "tides_ab12cd_pilot_3", "tides_ab12cd_limit"]
    assert not any(map(leftover_names(stack).fullmatch, names))
    note_run(stack, "ab12cd")
    mine = leftover_names(stack).fullmatch
    assert all(map(mine, names))
    assert not any(map(mine, ["tides", "tides_ab12ce_001", "tides_ab12cd_x"]))
    book_of(stack).unlink()
    assert not any(map(leftover_names(stack).fullmatch, names))


def test_variables_of_the_stack_file_are_filled_in_and_a_sink_that_it_lacks_is_named(bench: Cluster) -> None:
    config = bench.config(JDBC, Names.of("t"))
    assert config["connection.url"].startswith("jdbc:postgresql://db.internal:${env:POSTGRES_PORT}/bench?")
    assert config["connection.password"] == "${env:POSTGRES_PASSWORD}"
    with pytest.raises(StackError, match=r"mine.yaml: has no 'elasticsearch', which a pipeline .*; add that key"):
        preflight(bench, [OTHER])


def test_a_plugin_is_found_by_every_name_or_the_others_are_named(
    bench: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "sink", lambda name: None)
    monkeypatch.setattr(bench.connect, "plugins", lambda: {"a.FileSinkConnector": ["1"], "b.JdbcSinkConnector": [None]})
    said = r"^postgres/jdbc: .* io.debezium.connector.jdbc.JdbcSinkConnector; .*"
    with pytest.raises(ConnectError, match=said) as no:
        preflight(bench, [JDBC])
    assert "its sink connectors: a.FileSinkConnector, b.JdbcSinkConnector" in str(no.value)
    for spelt in ("a.FileSinkConnector", "FileSinkConnector", "FileSink"):
        monkeypatch.setattr(bench, "config", lambda cell, names, spelt=spelt: {"connector.class": spelt})
        assert preflight(bench, [JDBC]) == {"a.FileSinkConnector": "1"}


@pytest.mark.parametrize(
    ("wanted", "there", "used", "problem"),
    [
        (None, ["1"], "1", ""),
        (None, [None], None, ""),
        (None, ["1", "2"], None, "1 and 2; set connector.plugin.version"),
        ("2", ["1", "2"], "2", ""),
        ("3", ["1", "2"], "3", "1 and 2, but not 3; install it"),
        ("[1,2)", ["1", "2"], "[1,2)", ""),
    ],
)
def test_a_connector_runs_in_the_version_that_it_names_or_the_only_one(
    wanted: str | None, there: list[str | None], used: str | None, problem: str
) -> None:
    found = version_used(wanted, there)
    assert found[0] == used
    assert found[1].startswith(problem) if problem else not found[1]


def test_what_a_sink_refuses_to_be_set_to_is_said_at_once(bench: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "PgBouncer 1.18.0 has no setting max_prepared_statements"
    settings: Any = SimpleNamespace(refusal=lambda given: said)
    sink = SimpleNamespace(capabilities=Capabilities(service_settings=settings))
    monkeypatch.setattr(bench, "sink", lambda name: sink)
    cell = replace(JDBC, settings={"pgbouncer": {"max_prepared_statements": "100"}})
    with pytest.raises(StackError, match=f"^postgres/jdbc: cannot be set as the plan says: {said}$"):
        preflight(bench, [cell])


@pytest.mark.parametrize(
    ("answer", "fix"),
    [
        ("SASL authentication error: Authentication failed", "check sasl.mechanism"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate", "as the CA"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired", "have a new one made"),
        ('FATAL:  password authentication failed for user "bench"', "check user and password"),
        ("something else", "check that it runs"),
    ],
)
def test_an_answer_comes_with_what_to_do(answer: str, fix: str) -> None:
    assert fix in advice(answer)
