"""What holds for tests without services."""

import pytest

from sinkbench import secrets


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test conceals is no secret in the tests after it."""
    monkeypatch.setattr(secrets, "_forms", set(secrets._forms))
