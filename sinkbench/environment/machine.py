"""The controller's machine: processors, memory, operating system, and the commit that is checked out."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import psutil
from pydantic import JsonValue

from sinkbench.environment.disk import text_of

__all__ = ["commit", "machine"]


def machine() -> dict[str, JsonValue]:
    """Processors, memory, kernel and distribution; None for what is unknown."""
    return {
        "cpu_model": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "system": _system(),
    }


def commit(checkout: Path) -> str | None:
    """The commit that is checked out, with "+" if its files were changed; None if there is none."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    found = git("rev-parse", "HEAD")
    return None if found is None else found + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def _cpu_model() -> str | None:
    text = text_of(Path("/proc/cpuinfo"))
    if text is None:
        return None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
