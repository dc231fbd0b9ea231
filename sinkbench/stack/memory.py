"""The memory that the processes of a service hold, as the kernel tells it.

A process shares memory with others: PostgreSQL's all hold the same buffers, and every process of a program its code. To
add up what each holds would count these many times. The kernel tells a process's own pages (`RssAnon`) from those of
files and of shared memory (`RssFile`, `RssShmem`), so the shared ones are counted once, as those of the process that
holds most of them. The exact figure, `Pss`, makes the kernel walk all pages, which costs too much while a trial runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sinkbench.stack.processes import read_file

__all__ = ["Resident", "resident_bytes", "resident_of", "together"]

_LINE = re.compile(rb"^(RssAnon|RssFile|RssShmem):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Resident:
    """Bytes of memory that a process holds: its own, those of files that it has mapped, and shared memory."""

    own: int
    files: int
    shared: int


def resident_of(status: bytes) -> Resident | None:
    """Reads a `/proc/PID/status`; None of a process that has ended, or a thread of the kernel: these hold none."""
    found = {name: 1024 * int(kilobytes) for name, kilobytes in _LINE.findall(status)}
    if len(found) < 3:
        return None
    return Resident(own=found[b"RssAnon"], files=found[b"RssFile"], shared=found[b"RssShmem"])


def together(processes: Iterable[Resident]) -> int | None:
    """Bytes that the processes of one service hold, what they share counted once; None of no process.

    Of what they share it is the least: the process that holds most of it may lack what another one holds.
    """
    known = list(processes)
    if not known:
        return None
    return sum(each.own for each in known) + max(each.files for each in known) + max(each.shared for each in known)


def resident_bytes(pids: Iterable[int], proc: Path = Path("/proc")) -> int | None:
    """`together` of the processes of these ids that still live; `proc` is where the kernel shows them."""
    found = []
    for pid in pids:
        with suppress(OSError):
            if (resident := resident_of(read_file(f"{proc}/{pid}/status"))) is not None:
                found.append(resident)
    return together(found)
