"""What kind of disk a folder is on, by what the kernel shows in /proc and /sys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sinkbench.environment.kernel import text_of

__all__ = ["MOUNTS", "Mount", "disk", "kind_of_block", "kind_of_filesystem", "mount_of"]

_SYS = Path("/sys")
MOUNTS = Path("/proc/self/mountinfo")
_IN_MEMORY = {"tmpfs", "ramfs"}
_NETWORKED = re.compile(r"nfs\d?|cifs|smb\d?|ceph|glusterfs|lustre|9p|virtiofs|fuse\.sshfs|fuse\.glusterfs")
# Disks that a hypervisor makes: what it keeps them on cannot be seen from within, whatever they say of turning.
_VIRTUAL_NAMES = re.compile(r"x?vd[a-z]+")
_VIRTUAL_MAKERS = re.compile(r"qemu|vmware|msft|virtual|google|persistentdisk|elastic block store|xen", re.IGNORECASE)
# Of layers on layers, such as LVM on RAID on disks, more than there are in practice.
_DEEPEST = 8


@dataclass(frozen=True)
class Mount:
    """A file system at the place where it is mounted.

    Attributes:
        point: that place.
        root: the folder of the file system that is seen there; "/" if it is all of it.
        filesystem: its type.
        device: the numbers of its device, as 254:0.
        source: what it was mounted from.
    """

    point: str
    root: str
    filesystem: str
    device: str
    source: str


def disk(path: Path | None) -> dict[str, str | None]:
    """The type of the file system that `path` is on, and the kind of the disk below it.

    Returns:
        `filesystem`, and `kind`: nvme, ssd, rotational, virtual (a hypervisor's), memory or network; None for what
        cannot be told. The path itself is not in it.
    """
    unknown: dict[str, str | None] = {"filesystem": None, "kind": None}
    if path is None:
        return unknown
    try:
        mount = mount_of(_existing(path).resolve(), MOUNTS.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return unknown
    if mount is None:
        return unknown
    return {"filesystem": mount.filesystem, "kind": kind_of_filesystem(mount.filesystem) or _kind_below(mount)}


def mount_of(path: Path, mountinfo: str) -> Mount | None:
    """The mount that holds `path`, by the text of /proc/self/mountinfo (proc(5)); None if none does."""
    found: Mount | None = None
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        left, right = before.split(), after.split()
        if not separator or len(left) < 5 or len(right) < 2:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), left[4])
        # The longest of them; of several at the same place the last, which hides those below it.
        if path.is_relative_to(point) and (found is None or len(point) >= len(found.point)):
            found = Mount(point, left[3], right[0], left[2], right[1])
    return found


def kind_of_filesystem(filesystem: str) -> str | None:
    """memory or network, of a file system that needs no disk of this machine; None of any other."""
    if filesystem in _IN_MEMORY:
        return "memory"
    return "network" if _NETWORKED.fullmatch(filesystem) else None


def kind_of_block(name: str, rotational: str | None, maker: str) -> str | None:
    """The kind of a whole disk.

    Args:
        name: the kernel's, as vda or nvme0n1.
        rotational: the content of its queue/rotational, "0" or "1"; None if it has none.
        maker: its vendor and model, as far as they are known.
    """
    if _VIRTUAL_NAMES.fullmatch(name) or _VIRTUAL_MAKERS.search(maker):
        return "virtual"
    if name.startswith("nvme"):
        return "nvme"
    if name.startswith(("zram", "ram", "pmem")):
        return "memory"
    return {"0": "ssd", "1": "rotational"}.get(rotational or "")


def _existing(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.exists())


def _kind_below(mount: Mount) -> str | None:
    # File systems such as btrfs have numbers of their own, which belong to no device.
    candidates = [_SYS / "dev" / "block" / mount.device]
    if mount.source.startswith("/dev/"):
        candidates.append(_SYS / "class" / "block" / Path(mount.source).resolve().name)
    block = next((each.resolve() for each in candidates if each.exists()), None)
    return None if block is None else _one(_kinds(block, _DEEPEST))


def _kinds(block: Path, deepest: int) -> Iterable[str | None]:
    """The kinds of all disks that a block device is made of, by its folder in /sys."""
    slaves = sorted((block / "slaves").iterdir()) if (block / "slaves").is_dir() else []
    if slaves and deepest:
        for slave in slaves:
            yield from _kinds(slave.resolve(), deepest - 1)
        return
    # A partition is a folder within that of its disk.
    whole = block.parent if (block / "partition").exists() else block
    maker = " ".join(filter(None, (text_of(whole / "device" / part) for part in ("vendor", "model"))))
    yield kind_of_block(whole.name, text_of(whole / "queue" / "rotational"), maker)


def _one(kinds: Iterable[str | None]) -> str | None:
    found = set(kinds)
    return found.pop() if len(found) == 1 else None
