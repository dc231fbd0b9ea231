"""Resident memory of a service's processes, which share pages, such as PostgreSQL's buffers and a program's code. `Pss`
would be exact but makes the kernel walk all pages, which is too expensive during a trial.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sinkbench.stack.processes import read_file

_LINE = re.compile(rb"^(RssAnon|RssFile|RssShmem):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Resident:
    """Bytes of memory of a process: its own, mapped files, and shared memory."""

    own: int
    files: int
    shared: int


def resident_of(status: bytes) -> Resident | None:
    """Parses `/proc/PID/status`; None for a process that has ended and for a kernel thread."""
    found = {name: 1024 * int(kilobytes) for name, kilobytes in _LINE.findall(status)}
    if len(found) < 3:
        return None
    return Resident(own=found[b"RssAnon"], files=found[b"RssFile"], shared=found[b"RssShmem"])


def together(processes: Iterable[Resident]) -> int | None:
    """Returns the bytes of one service's processes; None without a process. Shared pages (`RssFile`, `RssShmem`) count
    once, as those of the process with most of them: a lower bound.
    """
    known = list(processes)
    if not known:
        return None
    return sum(each.own for each in known) + max(each.files for each in known) + max(each.shared for each in known)


def resident_bytes(pids: Iterable[int], proc: Path = Path("/proc")) -> int | None:
    """Returns `together` of these processes that still exist."""
    found = []
    for pid in pids:
        with suppress(OSError):
            if (resident := resident_of(read_file(f"{proc}/{pid}/status"))) is not None:
                found.append(resident)
    return together(found)
