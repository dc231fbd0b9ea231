"""A real local stack for the end-to-end tests: its own data and ports, beside a stack that a user may have up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sinkbench.kafka import Kafka
from sinkbench.settings import CHECKOUT, Settings, load_settings
from sinkbench.sinks import Sink, open_sink
from sinkbench.stack.local import LocalStack

OFFSET = 500

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def settings() -> Iterator[Settings]:
    """The tests' settings, also in the environment, for the commands that tests start. A path may hold a space."""
    usual = load_settings()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SINKBENCH_STACK", "local")
        patch.setenv("SINKBENCH_DIST", str(usual.dist))
        patch.setenv("SINKBENCH_HOME", str(usual.home / "test stack"))
        patch.setenv("SINKBENCH_PORT_OFFSET", str(usual.port_offset + OFFSET))
        yield load_settings()


@pytest.fixture(scope="session")
def stack(settings: Settings) -> Iterator[LocalStack]:
    """The running stack."""
    stack = LocalStack(settings)
    stack.down()
    done = subprocess.run([sys.executable, "-m", "sinkbench", "up"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    yield stack
    stack.down()
    # The logs stay, for whoever asks why a test has failed.
    shutil.rmtree(settings.home / "data")


@pytest.fixture(scope="session")
def bootstrap(stack: LocalStack) -> str:
    """Kafka's address."""
    return stack.endpoints.kafka


@pytest.fixture
def kafka(stack: LocalStack) -> Kafka:
    """A client of the stack's Kafka."""
    return Kafka(stack.endpoints.kafka)


@pytest.fixture(params=["elasticsearch", "postgres"])
def sink(request: pytest.FixtureRequest, stack: LocalStack) -> Iterator[Sink]:
    """Each of the sinks in turn."""
    sink = open_sink(request.param, stack.endpoints, CHECKOUT)
    yield sink
    sink.close()


@pytest.fixture
def sinkbench(settings: Settings, tmp_path: Path) -> Run:
    """Runs the command `sinkbench` in a folder of its own and returns what came of it."""

    def run(*arguments: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sinkbench", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=timeout, env=os.environ
        )

    return run
