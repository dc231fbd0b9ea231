"""Secured containers, really: started as a user starts them, pipelines run, strangers are refused, no secret is shown.

After those of other tests are gone, since there is one project. They are started once.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sinkbench.settings import Settings
from sinkbench.stack.compose import ComposeStack
from sinkbench.stack.security import OF_CONTAINERS, kept_security
from tests.e2e.onetrial import taken
from tests.support.commands import Run, refuses, sinkbench_in, succeeded
from tests.support.refusals import strangers_are_refused

from .composed import PROJECT, compose_in, settings_of

RECORDS = 3_000
# Two workers, since those ask one another; and PgBouncer, behind which is PostgreSQL.
WORKERS = 2
PIPELINES = ("elasticsearch/camel-bulk", "postgres/jdbc-pgbouncer")


@pytest.fixture(scope="module")
def settings(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of secured containers, in a home of their own; what has been started of them is ended."""
    with pytest.MonkeyPatch.context() as patch:
        # What other tests have left.
        assert sinkbench_in(checkout, "down").returncode == 0
        patch.setenv("COMPOSE_FILE", "docker-compose.yml:docker-compose.secure.yml")
        patch.setenv("SINKBENCH_WORKERS", str(WORKERS))
        patch.setenv("SINKBENCH_HOME", str(tmp_path_factory.mktemp("secured") / "a home"))
        with settings_of(checkout) as found:
            yield found


@pytest.fixture(scope="module")
def secured(settings: Settings, checkout: Path) -> ComposeStack:
    """The running containers."""
    succeeded(compose_in(checkout, "up", "--build", "--detach", "--wait", "--scale", "controller=0", timeout=1500))
    # A second start makes another certificate, which nothing that runs has read.
    succeeded(sinkbench_in(checkout, "up"))
    return ComposeStack(settings, checkout)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_pipelines_of_every_stack_run_on_secured_containers(
    pipeline: str, secured: ComposeStack, tmp_path: Path
) -> None:
    record = taken(secured, tmp_path, pipeline, records=RECORDS)
    assert record.audit is not None, record.reasons
    assert (record.audit.lost, record.audit.duplicates, record.audit.stored) == (0, 0, RECORDS)
    assert record.placement == {f"connect-{number}": 1 for number in range(1, WORKERS + 1)}


def test_strangers_are_refused_by_each_service(secured: ComposeStack, tmp_path: Path) -> None:
    strangers_are_refused(secured.endpoints, tmp_path)


def test_the_controllers_container_is_let_in(secured: ComposeStack, checkout: Path) -> None:
    ask = ("run", "--rm", "--no-deps", "--no-TTY", "controller", "sinkbench/run", "status")
    assert f"-connect-{WORKERS}:8083" in succeeded(compose_in(checkout, *ask)).stdout


def test_no_secret_is_in_the_engines_answers_in_a_log_or_in_a_command_line(secured: ComposeStack) -> None:
    assert secured.endpoints
    security = kept_security(secured.settings.home / "containers-secure", OF_CONTAINERS)
    texts = {}
    for state in secured.services():
        container = secured.container(state.name).id
        for asked in ("inspect", "logs", "top"):
            done = subprocess.run(["docker", asked, container], capture_output=True, text=True, check=True)
            texts[f"{asked} {state.name}"] = done.stdout + done.stderr
    for service, password in security.passwords.items():
        assert [name for name, text in texts.items() if password in text] == [], service


def test_a_start_without_security_is_refused_with_what_to_do(
    secured: ComposeStack, sinkbench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMPOSE_FILE")
    refused = refuses(sinkbench("up"))
    assert refused.stderr.strip().endswith(
        "kafka wants TLS and a password; set SINKBENCH_SECURITY=on, or run `sinkbench down --stack compose` first"
    )
    assert len(refused.stderr.strip().splitlines()) == 1


def test_they_stop_and_leave_only_their_data(secured: ComposeStack, sinkbench: Run) -> None:
    assert sinkbench("down").returncode == 0
    assert all(state.detail == "no container" for state in secured.services())
    for kind, left in (("ps -a", False), ("network ls", False), ("volume ls", True)):
        ask = ["docker", *kind.split(), "-q", "--filter", f"label=com.docker.compose.project={PROJECT}"]
        assert bool(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()) is left, kind
