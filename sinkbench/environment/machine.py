"""The controller's machine: processors, memory, operating system, container and its limits, and the commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path, PurePosixPath

import psutil
from pydantic import JsonValue

from sinkbench.environment.disk import MOUNTS, mount_of, text_of
from sinkbench.stack import Allowance

_CGROUPS = Path("/sys/fs/cgroup")


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


def container() -> tuple[str, Allowance | None]:
    """Returns the kind of container of this process, or "none", and its limits."""
    cgroups = text_of(Path("/proc/self/cgroup")) or ""
    marks = {name for name in ("/.dockerenv", "/run/.containerenv") if Path(name).exists()}
    kind = container_kind(marks, os.environ, cgroups, text_of(MOUNTS) or "")
    return kind, own_allowance(cgroups, lambda name: text_of(_CGROUPS / name), len(os.sched_getaffinity(0)))


def container_kind(marks: set[str], variables: Mapping[str, str], cgroups: str, mountinfo: str) -> str:
    """Returns kubernetes, podman, docker, lxc, another kind that names itself, or "none". `marks` are the existing ones
    of /.dockerenv and /run/.containerenv; the texts are those of /proc/self.
    """
    root = mount_of(Path("/"), mountinfo)
    # A virtual machine made from a container's image also has these marks, but has a disk.
    if root is not None and root["root"] == "/" and root["source"].startswith("/dev/"):
        marks = set()
    if "KUBERNETES_SERVICE_HOST" in variables or re.search(r"/[^\n]*kubepods", cgroups):
        return "kubernetes"
    if "/run/.containerenv" in marks:
        return "podman"
    named = variables.get("container", "")
    return "docker" if "/.dockerenv" in marks else named if re.fullmatch(r"[a-z][a-z-]{1,30}", named) else "none"


def own_allowance(cgroups: str, read: Callable[[str], str | None], cpus_allowed: int | None = None) -> Allowance | None:
    """Returns the smallest limits of a process's control groups (version 2), parents and affinity mask; None if they
    are unknown, as with version 1.
    """
    group = re.search(r"^0::(.*)$", cgroups, re.MULTILINE)
    if group is None or read("cgroup.controllers") is None:
        return None
    cpus: list[float] = [] if cpus_allowed in (None, os.cpu_count()) else [float(cpus_allowed or 0)]
    memory: list[int] = []
    # All parents, since in a container the path may be the host's, of which only the root is visible.
    inside = PurePosixPath(group[1].strip().lstrip("/"))
    for each in (inside, *inside.parents):
        if quota := re.fullmatch(r"(\d+) (\d+)", read(str(each / "cpu.max")) or ""):
            cpus.append(int(quota[1]) / int(quota[2]))
        if (most := read(str(each / "memory.max")) or "").isdigit():
            memory.append(int(most))
    return Allowance(min(cpus, default=None), min(memory, default=None))


def allowance(found: Allowance | None) -> dict[str, float | int | str | None]:
    """Returns the limits as the environment stores them: "no limit" without one, None if unknown."""
    if found is None:
        return {"cpus": None, "memory_bytes": None}
    return {name: "no limit" if most is None else most for name, most in asdict(found).items()}
