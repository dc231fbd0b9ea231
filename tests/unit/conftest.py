"""What holds for tests without services."""

import os

import pytest

import loadgen.cli
from sinkbench import secrets
from tests.support.commands import Command


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test conceals is no secret in other tests."""
    monkeypatch.setattr(secrets, "_forms", set())


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("SINKBENCH_", "COMPOSE_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def sinkbench(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def loadgen_command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys, loadgen.cli.main)
