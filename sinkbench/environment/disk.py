"""The kind of disk that a folder is on, from /proc and /sys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from sinkbench.settings import existing_part

_SYS = Path("/sys")
MOUNTS = Path("/proc/self/mountinfo")
_NETWORKED = re.compile(r"nfs\d?|cifs|smb\d?|ceph|glusterfs|lustre|9p|virtiofs|fuse\.sshfs|fuse\.glusterfs")
# A hypervisor's disks: their `rotational` flag does not describe the hardware.
_VIRTUAL = re.compile(
    r"x?vd[a-z]+ .*|.*(qemu|vmware|msft|virtual|google|persistentdisk|elastic block store|xen).*", re.IGNORECASE
)
# Format: proc(5); ids of the mount and its parent, then these; optional fields end with the "-".
_MOUNT = re.compile(
    r"^\S+ \S+ (?P<device>\S+) (?P<root>\S+) (?P<point>\S+) .*? - (?P<filesystem>\S+) (?P<source>\S+)", re.MULTILINE
)


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def disk(path: Path | None) -> dict[str, str | None]:
    """Returns the type of file system and the kind of disk: nvme, ssd, rotational, virtual, memory or network."""
    mount = None if path is None else mount_of(existing_part(path).resolve(), text_of(MOUNTS) or "")
    if mount is None:
        return {"filesystem": None, "kind": None}
    # btrfs and others have device numbers that belong to no block device.
    candidates = [_SYS / "dev" / "block" / mount["device"], _SYS / "class" / "block" / Path(mount["source"]).name]
    block = next((each.resolve() for each in candidates if each.exists()), None)
    kinds = set() if block is None else set(_kinds(block))
    kind = kind_of_filesystem(mount["filesystem"]) or (kinds.pop() if len(kinds) == 1 else None)
    return {"filesystem": mount["filesystem"], "kind": kind}


def mount_of(path: Path, mountinfo: str) -> dict[str, str] | None:
    """Returns the mount that contains `path`, from the text of /proc/self/mountinfo (proc(5)): `device` is its number
    (254:0), `root` the folder of it that is mounted at `point`, then `filesystem` and `source`.
    """
    found: dict[str, str] | None = None
    for line in _MOUNT.finditer(mountinfo):
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), line["point"])
        # The longest mount point wins; of several at one point the last, which hides the others.
        if path.is_relative_to(point) and (found is None or len(point) >= len(found["point"])):
            found = {**line.groupdict(), "point": point}
    return found


def kind_of_filesystem(filesystem: str) -> str | None:
    """Returns memory or network for file systems without a local disk, else None."""
    if filesystem in ("tmpfs", "ramfs"):
        return "memory"
    return "network" if _NETWORKED.fullmatch(filesystem) else None


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
