"""The controller's machine: processors, memory, operating system, and the checked-out commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
from pydantic import JsonValue

from sinkbench.environment.disk import text_of


def machine() -> dict[str, JsonValue]:
    cpus, system = text_of(Path("/proc/cpuinfo")), None
    model = None if cpus is None else re.search(r"^model name\s*:\s*(.+)$", cpus, re.MULTILINE)
    with suppress(OSError):
        system = platform.freedesktop_os_release().get("PRETTY_NAME")
    return {
        "cpu_model": None if cpus is None else platform.machine() if model is None else model[1].strip(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "system": system,
    }


def commit(checkout: Path) -> str | None:
    """Returns the checked-out commit, with "+" if its files were changed; None if there is none."""

    def git(*arguments: str) -> str | None:
        with suppress(OSError):
            done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=False)
            return done.stdout.strip() if done.returncode == 0 else None
        return None

    found = git("rev-parse", "HEAD")
    return None if found is None else found + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
