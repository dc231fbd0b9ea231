"""What the containers' tests share in addition to fixtures."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sinkbench.settings import Settings, load_settings
from tests.support.commands import skip_without_memory
from tests.support.waiting import until

PROJECT = "sinkbench-test"
# Somebody who is neither root nor in a container; only root can give files away.
OWNER = 12_345


@dataclass(frozen=True)
class Raced:
    """A race of the containers' own: what the controller has printed, and the summary that it has written."""

    log: str
    summary: dict[str, Any]


def compose_in(folder: Path, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    """Runs `docker compose` in a checkout, as a user does."""
    return subprocess.run(
        ["docker", "compose", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=timeout
    )


@contextmanager
def settings_of(folder: Path) -> Iterator[Settings]:
    """The settings of a checkout, if the machine has the memory; the containers of its project are gone afterwards."""
    found = load_settings(folder)
    skip_without_memory(found.layout)
    try:
        yield found
    finally:
        compose_in(folder, "down", "--volumes", "--remove-orphans")


def log_with(folder: Path, text: str, seconds: float) -> str:
    """The log of the controller's container, once it has that text."""
    log = ""

    def read() -> bool:
        nonlocal log
        log = compose_in(folder, "logs", "--no-log-prefix", "controller").stdout
        return text in log

    until(read, seconds)
    return log
