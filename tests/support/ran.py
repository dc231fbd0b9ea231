"""What stands for the command `docker`."""

from __future__ import annotations

from typing import Any

import pytest

from sinkbench.stack import composecli

__all__ = ["Ran", "ran_instead"]


class Ran:
    """Stands for `docker`: keeps what is asked of it, and gives these answers first, then its version."""

    def __init__(self, version: str = "2.26.1") -> None:
        self.asked: list[tuple[list[str], dict[str, str]]] = []
        self.version = version
        self.answers: list[tuple[int, str, str]] = []

    def __call__(self, command: list[str], environment: dict[str, str] | None = None) -> Any:
        self.asked.append((command, environment or {}))

        class Done:
            returncode, stdout, stderr = self.answers.pop(0) if self.answers else (0, self.version, "")

        return Done()


def ran_instead(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Takes the place of `docker` until the test is over."""
    found = Ran()
    monkeypatch.setattr(composecli, "run", found)
    monkeypatch.setattr(composecli.shutil, "which", lambda name: name)
    return found
