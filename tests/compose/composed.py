"""What the containers' tests share beside fixtures."""

from __future__ import annotations

import subprocess
from pathlib import Path

PROJECT = "sinkbench-test"
# Somebody who is neither root nor in a container; only root can give files away.
OWNER = 12_345


def compose_in(folder: Path, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    """Runs `docker compose` in a checkout, as a user does."""
    return subprocess.run(
        ["docker", "compose", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=timeout
    )
