"""Whether this process runs in a container, and the limits of its control groups."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from sinkbench.environment.disk import MOUNTS, mount_of, text_of
from sinkbench.stack import Allowance

_ROOT = Path("/sys/fs/cgroup")
_BY_PATH = (("kubepods", "kubernetes"), ("libpod", "podman"), ("docker", "docker"), ("lxc", "lxc"))
# Version 1 shows "no limit" as the largest number of bytes that is whole pages.
_NO_LIMIT_BYTES = 2**60

Read = Callable[[str], str | None]


def container() -> tuple[str, Allowance]:
    """Returns the kind of container of this process, or "none", and its limits."""
    cgroups = text_of(Path("/proc/self/cgroup")) or ""
    marks = {name for name in ("/.dockerenv", "/run/.containerenv") if Path(name).exists()}
    kind = container_kind(marks, os.environ, cgroups, text_of(MOUNTS) or "")
    return kind, own_allowance(cgroups, lambda name: text_of(_ROOT / name), len(os.sched_getaffinity(0)))


def container_kind(marks: set[str], variables: Mapping[str, str], cgroups: str, mountinfo: str) -> str:
    """Returns kubernetes, podman, docker, lxc, another kind that names itself, or "none". `marks` are the existing ones
    of /.dockerenv and /run/.containerenv; the texts are those of /proc/self.
    """
    root = mount_of(Path("/"), mountinfo)
    # A virtual machine made from a container's image also has these marks, but has a disk.
    if root is not None and root.root == "/" and root.source.startswith("/dev/"):
        marks = set()
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "kubernetes"
    if "/run/.containerenv" in marks:
        return "podman"
    if "/.dockerenv" in marks:
        return "docker"
    named = variables.get("container", "")
    if re.fullmatch(r"[a-z][a-z-]{1,30}", named):
        return named
    return next((kind for part, kind in _BY_PATH if re.search(rf"/[^\n]*{part}", cgroups)), "none")


def own_allowance(cgroups: str, read: Read, cpus_allowed: int | None = None) -> Allowance:
    """Returns the smallest limits of a process's control groups (version 1 or 2), parents and affinity mask."""
    cpus: list[float] = [] if cpus_allowed in (None, os.cpu_count()) else [float(cpus_allowed or 0)]
    memory: list[int] = []
    for line in cgroups.splitlines():
        _, controllers, path = line.split(":", 2)
        for folder in _upwards(path):
            if not controllers:
                cpus += _quota((read(f"{folder}cpu.max") or "").split())
                memory += _bytes(read(f"{folder}memory.max"))
            if "cpu" in controllers.split(","):
                for mount in (controllers, "cpu"):
                    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
                    cpus += _quota([read(f"{mount}/{folder}{name}") or "" for name in names])
            if "memory" in controllers.split(","):
                memory += _bytes(read(f"memory/{folder}memory.limit_in_bytes"))
    return Allowance(min(cpus, default=None), min(memory, default=None))


def allowance(found: Allowance | None) -> dict[str, float | int | str | None]:
    """Returns the limits as the environment stores them: "no limit" without one, None if unknown."""
    if found is None:
        return {"cpus": None, "memory_bytes": None}
    return {name: "no limit" if most is None else most for name, most in asdict(found).items()}


def _upwards(path: str) -> Iterator[str]:
    """A control group and its parents, each with a trailing slash; the root's is empty."""
    # All of them, since in a container the path may be the host's, of which only the root is visible.
    inside = PurePosixPath(path.strip().lstrip("/"))
    for each in (inside, *inside.parents):
        yield "" if str(each) == "." else f"{each}/"


def _quota(parts: list[str]) -> list[float]:
    """Cores of a quota and a period in microseconds; empty for "max" or -1."""
    if len(parts) != 2 or not all(part.isdigit() and int(part) for part in parts):
        return []
    return [int(parts[0]) / int(parts[1])]


def _bytes(text: str | None) -> list[int]:
    return [int(text)] if text is not None and text.isdigit() and int(text) < _NO_LIMIT_BYTES else []
