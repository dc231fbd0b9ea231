"""The controller's machine: processors, memory, operating system, container and its limits, disk, and the commit."""

import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path, PurePosixPath

import psutil
from pydantic import JsonValue

from sinkbench.settings import existing_part
from sinkbench.stack import Allowance

_SYS = Path("/sys")
_CGROUPS = Path("/sys/fs/cgroup")
_NO_LIMIT = 2**62
_NETWORKED = re.compile(r"nfs\d?|cifs|smb\d?|ceph|glusterfs|lustre|9p|virtiofs|fuse\.sshfs|fuse\.glusterfs")
# A hypervisor's disks: their `rotational` flag does not describe the hardware.
_VIRTUAL = re.compile(
    r"x?vd[a-z]+ .*|.*(qemu|vmware|msft|virtual|google|persistentdisk|elastic block store|xen).*", re.IGNORECASE
)


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def mount_of(path: Path) -> tuple[str, str] | None:
    """Returns device and type of the file system that contains `path`."""
    found = [each for each in psutil.disk_partitions(all=True) if path.is_relative_to(each.mountpoint)]
    # The longest mount point wins; of several at one point the last, which hides the others.
    mount = max(reversed(found), key=lambda each: len(each.mountpoint), default=None)
    return None if mount is None else (mount.device, mount.fstype)


def disk(path: Path | None) -> dict[str, str | None]:
    """Returns the type of file system and the kind of disk: nvme, ssd, rotational, virtual, memory or network."""
    place = None if path is None else existing_part(path).resolve()
    if place is None or (mount := mount_of(place)) is None:
        return {"filesystem": None, "kind": None}
    device, filesystem = mount
    if filesystem in ("tmpfs", "ramfs") or _NETWORKED.fullmatch(filesystem):
        return {"filesystem": filesystem, "kind": "network" if _NETWORKED.fullmatch(filesystem) else "memory"}
    number = place.stat().st_dev
    # btrfs and others have device numbers that belong to no block device.
    candidates = [_SYS / f"dev/block/{os.major(number)}:{os.minor(number)}", _SYS / "class/block" / Path(device).name]
    block = next((each.resolve() for each in candidates if each.exists()), None)
    kinds = set() if block is None else set(_kinds(block))
    return {"filesystem": filesystem, "kind": kinds.pop() if len(kinds) == 1 else None}


def kind_of_block(name: str, rotational: str | None, maker: str) -> str | None:
    """Returns the kind of a whole disk from its name (nvme0n1), queue/rotational ("0" or "1"), and vendor and model."""
    if _VIRTUAL.fullmatch(f"{name} {maker}"):
        return "virtual"
    if name.startswith("nvme"):
        return "nvme"
    return {"0": "ssd", "1": "rotational"}.get(rotational or "")


def _kinds(block: Path) -> Iterable[str | None]:
    """The kinds of the disks below a block device, which may be LVM on RAID."""
    slaves = sorted((block / "slaves").iterdir()) if (block / "slaves").is_dir() else []
    for slave in slaves:
        yield from _kinds(slave.resolve())
    if not slaves:
        # A partition's folder is in its disk's folder.
        whole = block.parent if (block / "partition").exists() else block
        maker = " ".join(filter(None, (text_of(whole / "device" / part) for part in ("vendor", "model"))))
        yield kind_of_block(whole.name, text_of(whole / "queue" / "rotational"), maker)


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
    """Returns the checked-out commit, with "+" if files were changed; of a wheel, that of its build; or None."""
    with suppress(FileNotFoundError):
        return (checkout / "COMMIT").read_text(encoding="utf-8") or None

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
    # A virtual machine made from a container's image also has these marks, but has a disk.
    if (root := mount_of(Path("/"))) is not None and root[0].startswith("/dev/"):
        marks = set()
    allowed = own_allowance(cgroups, lambda name: text_of(_CGROUPS / name), len(os.sched_getaffinity(0)))
    return container_kind(marks, os.environ, cgroups), allowed


def container_kind(marks: set[str], variables: Mapping[str, str], cgroups: str) -> str:
    """Returns kubernetes, podman, docker, lxc, another kind that names itself, or "none". `marks` are the existing ones
    of /.dockerenv and /run/.containerenv, `cgroups` the text of /proc/self/cgroup."""
    if "KUBERNETES_SERVICE_HOST" in variables or re.search(r"/[^\n]*kubepods", cgroups):
        return "kubernetes"
    if "/run/.containerenv" in marks:
        return "podman"
    named = variables.get("container", "")
    return "docker" if "/.dockerenv" in marks else named if re.fullmatch(r"[a-z][a-z-]{1,30}", named) else "none"


def own_allowance(cgroups: str, read: Callable[[str], str | None], cpus_allowed: int | None = None) -> Allowance | None:
    """Returns the smallest limits of a process's control groups, their parents and affinity mask; None if unknown."""
    cpus: list[float] = [] if cpus_allowed in (None, os.cpu_count()) else [float(cpus_allowed or 0)]
    memory: list[int] = []
    group = re.search(r"^0::(.*)$", cgroups, re.MULTILINE)
    if group is not None and read("cgroup.controllers") is not None:
        # All parents, since in a container the path may be the host's, of which only the root is visible.
        inside = PurePosixPath(group[1].strip().lstrip("/"))
        for each in (inside, *inside.parents):
            if quota := re.fullmatch(r"(\d+) (\d+)", read(str(each / "cpu.max")) or ""):
                cpus.append(int(quota[1]) / int(quota[2]))
            if (most := read(str(each / "memory.max")) or "").isdigit():
                memory.append(int(most))
    elif (limit := read("memory/memory.limit_in_bytes") or "").isdigit():
        # Version 1, where a container has its own group at the root.
        quota_us, period_us = (int(read(f"cpu/cpu.cfs_{name}_us") or 0) for name in ("quota", "period"))
        cpus += [quota_us / period_us] if quota_us > 0 else []
        memory += [int(limit)] if int(limit) < _NO_LIMIT else []
    else:
        return None
    return Allowance(min(cpus, default=None), min(memory, default=None))


def allowance(found: Allowance | None) -> dict[str, float | int | str | None]:
    """Returns the limits as the environment stores them: "no limit" without one, None if unknown."""
    if found is None:
        return {"cpus": None, "memory_bytes": None}
    return {name: "no limit" if most is None else most for name, most in asdict(found).items()}
