"""A small disk for a trial: a file system in memory that can be made completely full at any moment."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.stack.tools import find_program, run

# The bit of the right to mount in the kernel's capabilities.
CAP_SYS_ADMIN = 21
STATUS = Path("/proc/self/status")
# A writer may need a page more than was in use a moment ago.
TRIES = 50


class SmallDisk:
    """The file system at `path`. If `used`, it stays mounted, since a service has files on it."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self.path = path
        self.used = False
        self._size_bytes = size_bytes

    def fill(self) -> None:
        """Shrinks the file system to its content: writes fail with "No space left on device". Raises StackError."""
        for attempt in range(TRIES):
            now = os.statvfs(self.path)
            used = (now.f_blocks - now.f_bfree + attempt // 5) * now.f_frsize
            # tmpfs takes size 0 as no limit.
            problem = _problem("mount", "-o", f"remount,size={max(used, now.f_frsize)}", str(self.path))
            if not problem:
                return
        raise StackError(f"{self.path} could not be filled: {problem}")

    def free(self) -> None:
        """Restores the size. Raises StackError if that fails."""
        if problem := _problem("mount", "-o", f"remount,size={self._size_bytes}", str(self.path)):
            raise StackError(f"{self.path} is still full: {problem}")


@dataclass(frozen=True)
class SmallDisks:
    """A small disk at `path` for the account `user`; it uses memory only for its content."""

    path: Path
    user: str

    def check(self, status: Path = STATUS) -> None:
        """Raises StackError if this process may not mount a file system; asks no service."""
        rights = next((line for line in status.read_text().splitlines() if line.startswith("CapEff:")), "CapEff: 0")
        if not int(rights.split()[1], 16) >> CAP_SYS_ADMIN & 1:
            raise StackError("a small disk of the trial's own is mounted by root alone (CAP_SYS_ADMIN); run it as root")
        find_program("mount", "mount")

    @contextmanager
    def mounted(self, size_bytes: int) -> Iterator[SmallDisk]:
        """Mounts it until the context ends, or takes over the one that a killed controller left. Raises StackError."""
        path = self.path
        if path.is_mount():
            left = os.statvfs(path)
            size_bytes = max(size_bytes, 2 * (left.f_blocks - left.f_bfree) * left.f_frsize)
            SmallDisk(path, size_bytes).free()
        elif problem := _problem("mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "sinkbench", str(path)):
            raise StackError(f"no small disk at {path}: {problem}")
        disk = SmallDisk(path, size_bytes)
        try:
            shutil.chown(path, self.user)
            yield disk
        finally:
            if not disk.used:
                unmount_small_disk(path)


def unmount_small_disk(path: Path) -> None:
    """Removes the small disk at `path` if there is one; the folder stays. Raises StackError if this account may not."""
    if not path.is_mount() or not _problem("umount", str(path)):
        return
    # A process that has just ended may keep a file open; --lazy frees the memory when it is closed.
    if said := _problem("umount", "--lazy", str(path)):
        raise StackError(f"{said}; run as root: umount --lazy '{path}'")


def _problem(*command: str) -> str:
    done = run(command)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[0]
