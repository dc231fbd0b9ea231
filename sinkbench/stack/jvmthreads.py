"""What a JVM spends beside its work: the CPU time of its compilers, its garbage collector, and of being looked at.

HotSpot keeps counters of its own (`jstat -compiler`, JMX's `CompilationMXBean`), but these are elapsed time: on busy
cores a compiler that waits for its turn counts as compiling. Linux tells the CPU time of each thread by its name.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from pathlib import Path

import psutil

from sinkbench.stack.processes import descendants, read_file, threads_of

__all__ = ["COMPILER", "GC", "LOOKING", "JvmClock", "part_of"]

COMPILER, GC, LOOKING = "compiler", "gc", "looking"
"""The parts of a JVM's CPU time that are not its program's."""
# Linux cuts a thread's name off after 15 characters.
_PARTS = {
    COMPILER: re.compile(r"C[12] CompilerThre"),
    # The Prometheus JMX exporter's.
    LOOKING: re.compile(r"prometheus-http"),
    GC: re.compile(r"GC Thread#|G1 |ParGC|ZWorker|ZDirector|ZDriver|Shenandoah"),
}
# Compilers' threads come and go with their work.
LOOK_SECONDS = 5.0
# How often a thread is asked for its name.
GLANCES = 2
_TICKS = os.sysconf("SC_CLK_TCK")


def part_of(thread: str) -> str | None:
    """`COMPILER`, `GC` or `LOOKING` by the name of a thread; None of any other."""
    return next((part for part, names in _PARTS.items() if names.match(thread)), None)


class JvmClock:
    """The CPU time of the parts of a service's JVM: of its process and its descendants."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        """`proc` is where the kernel shows processes."""
        self.pid = pid
        self._proc = proc
        self._parts: dict[str, str] = {}
        self._used: dict[str, float] = {}
        self._others: dict[str, int] = {}
        self._looked = -math.inf

    def seconds(self) -> dict[str, float]:
        """CPU seconds by part so far, of threads that live or have ended; empty if there is no JVM."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            self._find()
        for thread in self._parts:
            # What a thread had used when it ended stays counted.
            with contextlib.suppress(OSError):
                self._used[thread] = _cpu_seconds(read_file(f"{thread}/stat"))
        if COMPILER not in self._parts.values():
            return {}
        return {part: sum(used for each, used in self._used.items() if self._parts[each] == part) for part in _PARTS}

    def _find(self) -> None:
        try:
            process = psutil.Process(self.pid)
            pids = [each.pid for each in (process, *descendants(process))]
        except psutil.Error:
            return
        for thread in (each for pid in pids for each in threads_of(pid, self._proc)):
            # A thread that has just begun may have no name of its own yet.
            if thread in self._parts or self._others.get(thread, 0) >= GLANCES:
                continue
            with contextlib.suppress(OSError):
                if (part := part_of(read_file(f"{thread}/comm").decode(errors="replace"))) is not None:
                    self._parts[thread] = part
                self._others[thread] = self._others.get(thread, 0) + 1


def _cpu_seconds(stat: bytes) -> float:
    # The name, in brackets, may hold spaces; user and system time are the 12th and 13th field after it.
    fields = stat.rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
