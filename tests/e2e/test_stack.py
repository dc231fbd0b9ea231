"""The local stack: starting, stopping, and what goes wrong."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sinkbench.errors import StackError
from sinkbench.settings import Settings
from sinkbench.stack.local import LocalStack
from tests.e2e.ownstacks import own_stack
from tests.support.commands import Run, refuses, succeeded
from tests.support.waiting import until


def processes_of(home: Path) -> list[psutil.Process]:
    """Every process that was started for the stack in `home`."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("SINKBENCH_SERVICES_OF") == str(home):
                found.append(process)
    return found


@pytest.fixture
def other(settings: Settings) -> Iterator[Settings]:
    """Settings of a second stack, which is not started; whatever of it a test starts is ended."""
    with own_stack("zweiter Prüfstand", 500, WORKERS="1") as stack:
        yield stack.settings


def test_up_twice_is_one_stack(stack: LocalStack, sinkbench: Run) -> None:
    before = [state.pid for state in stack.services()]
    succeeded(sinkbench("up"))
    assert [state.pid for state in stack.services()] == before


def test_status_shows_every_service_and_where_it_is(stack: LocalStack, sinkbench: Run) -> None:
    done = succeeded(sinkbench("status"))
    for service in (state.name for state in stack.services()):
        assert service in done.stdout
    assert stack.endpoints.kafka in done.stdout


def test_everything_listens_on_loopback_only(stack: LocalStack, settings: Settings) -> None:
    ports = {number for number, _, _ in settings.ports()}
    listening = [
        connection.laddr
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port in ports
    ]
    assert {address.port for address in listening} == ports
    assert {address.ip for address in listening} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def test_services_do_not_run_as_root(stack: LocalStack) -> None:
    assert all(psutil.Process(state.pid).uids().effective != 0 for state in stack.services() if state.pid)


def test_what_does_not_run_can_be_killed_and_stays_so(stack: LocalStack) -> None:
    stack.faults.do("stop", "pgbouncer")
    try:
        stack.faults.do("kill", "pgbouncer")
        assert [state.state for state in stack.services() if state.name == "pgbouncer"] == ["stopped"]
    finally:
        stack.faults.do("start", "pgbouncer")


def test_a_log_is_shown_and_an_unknown_service_is_refused(stack: LocalStack, sinkbench: Run) -> None:
    assert " LOG " in sinkbench("logs", "pgbouncer").stdout
    assert "pgbouncer" in refuses(sinkbench("logs", "pgbounce")).stderr


def test_other_settings_than_the_running_stacks_are_refused(
    stack: LocalStack, sinkbench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # These are nothing that a service is started with.
    for name, value in (("THRESHOLDS", "mine.yaml"), ("PLAN", "mine.yaml"), ("KAFKA_MEMORY", "3g")):
        monkeypatch.setenv(f"SINKBENCH_{name}", value)
    assert sinkbench("up").returncode == 0
    monkeypatch.setenv("SINKBENCH_CONNECT_HEAP", "512m")
    assert "SINKBENCH_CONNECT_HEAP" in refuses(sinkbench("up")).stderr


def test_a_taken_port_is_named_with_its_setting_and_holder_before_anything_starts(other: Settings) -> None:
    port = other.port("pgbouncer_port")
    with socket.create_server(("127.0.0.1", port)), pytest.raises(StackError) as error:
        LocalStack(other).up(lambda line: None)
    assert f"port {port} (SINKBENCH_PGBOUNCER_PORT" in str(error.value)
    assert f"pid {os.getpid()}" in str(error.value)
    assert processes_of(other.home) == []


@pytest.mark.long
def test_a_service_that_dies_while_starting_shows_its_log_and_leaves_nothing(
    other: Settings, monkeypatch: pytest.MonkeyPatch, sinkbench: Run
) -> None:
    # Java refuses so small a heap.
    monkeypatch.setenv("SINKBENCH_KAFKA_HEAP", "1m")
    done = refuses(sinkbench("up"))
    assert "kafka died while starting" in done.stderr
    assert "Too small maximum heap" in done.stderr
    assert "Traceback" not in done.stderr
    assert processes_of(other.home) == []


def test_down_after_a_killed_controller_and_supervisord_leaves_no_process_and_no_lock(
    other: Settings, sinkbench: Run
) -> None:
    starting = subprocess.Popen([sys.executable, "-m", "sinkbench", "up"], stdout=subprocess.DEVNULL)
    until(lambda: len(processes_of(other.home)) >= 4, 120)
    starting.kill()
    starting.wait()
    os.kill(int((other.home / "supervisord.pid").read_text()), signal.SIGKILL)
    assert len(processes_of(other.home)) > 1
    succeeded(sinkbench("down"))
    assert processes_of(other.home) == []
    assert sinkbench("down").returncode == 0
