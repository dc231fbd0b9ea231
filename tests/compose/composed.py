"""What the containers' tests share in addition to fixtures."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def sinkbench_in(folder: Path, *arguments: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
    """Runs the command `sinkbench` of a checkout, on this machine."""
    return subprocess.run(
        [sys.executable, "-m", "sinkbench", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
