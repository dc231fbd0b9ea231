"""What the driver of clusters of others says and refuses; it asks only ports at which nothing listens."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sinkbench.errors import ConnectError, StackError
from sinkbench.plan.plan import load_plan
from sinkbench.race.leftovers import Book, is_leftover
from sinkbench.race.preparation import preflight, version_used
from sinkbench.settings import CHECKOUT, load_settings
from sinkbench.sinks import Capabilities
from sinkbench.stack.choice import open_stack
from sinkbench.stack.external import ExternalStack, advice
from sinkbench.trial.cluster import Cluster
from sinkbench.trial.names import Names
from tests.support.trials import JDBC, OTHER

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
    names = ["tides_ab12cd_001", "tides_ab12cd_pilot", "tides_ab12cd_pilot_3", "tides_ab12cd_1000"]
    names += ["tides_ab12cd_limit", "tides_ab12cd_limit_copy"]
    assert not any(map(is_leftover(stack), names))
    Book.of(stack).begin("ab12cd")
    mine = is_leftover(stack)
    assert all(map(mine, names))
    others = ["tides", "tides_ab12cd", "tides_ab12ce_001", "tides_ab12cd_001_copy", "tides_ab12cd_x"]
    others.append("my_tides_ab12cd_001")
    assert not any(map(mine, others))
    Book.of(stack).clear()
    assert not any(map(is_leftover(stack), names))


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
