"""What the containers' tests share beside fixtures."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = "sinkbench-test"
# Somebody who is neither root nor in a container; only root can give files away.
OWNER = 12_345

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def compose_in(folder: Path, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    """Runs `docker compose` in a checkout, as a user does."""
    return subprocess.run(
        ["docker", "compose", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=timeout
    )


def summary_of(folder: Path) -> dict[str, Any]:
    """What the newest run in a checkout has come to."""
    return dict(json.loads((folder / "results" / "latest" / "summary.json").read_text()))
