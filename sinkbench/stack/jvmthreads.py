"""What a JVM spends in addition to its work: the CPU time of its compilers, its garbage collector and its exporter.

HotSpot keeps counters of its own (`jstat -compiler`, JMX's `CompilationMXBean`), but these are elapsed time: on busy
cores a compiler that waits for its turn counts as compiling. Linux tells the CPU time of each thread by its name.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from pathlib import Path

from sinkbench.stack.processes import cpu_seconds, descendants, read_file, threads_of

__all__ = ["COMPILER", "GC", "MONITORING", "JvmClock", "part_of"]

COMPILER, GC, MONITORING = "compiler", "gc", "monitoring"
"""The parts of a JVM's CPU time that are not its program's."""
# Linux cuts a thread's name off after 15 characters.
_PARTS = {
    COMPILER: re.compile(r"C[12] CompilerThre"),
    # The Prometheus JMX exporter's.
    MONITORING: re.compile(r"prometheus-http"),
    GC: re.compile(r"GC Thread#|G1 |ParGC|ZWorker|ZDirector|ZDriver|Shenandoah"),
}
# Compilers' threads come and go with their work.
LOOK_SECONDS = 5.0
# A launcher starts its JVM once; to look for it among the children of a hundred threads takes this share of a core.
DESCENDANTS_SHARE = 1 / 10_000
# How often a thread is asked for its name.
GLANCES = 2


def part_of(thread: str) -> str | None:
    """`COMPILER`, `GC` or `MONITORING` by the name of a thread; None of any other."""
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
        self._pids = [pid]
        self._descend_at = -math.inf

    def seconds(self) -> dict[str, float]:
        """CPU seconds by part so far, of threads that live or have ended; empty if there is no JVM."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            self._find()
        for thread in self._parts:
            # What a thread had used when it ended stays counted.
            with contextlib.suppress(OSError):
                self._used[thread] = cpu_seconds(read_file(f"{thread}/stat"), ended_children=False)
        if COMPILER not in self._parts.values():
            return {}
        return {part: sum(used for each, used in self._used.items() if self._parts[each] == part) for part in _PARTS}

    def _find(self) -> None:
        if time.monotonic() >= self._descend_at:
            before = time.thread_time()
            self._pids = [self.pid, *descendants(self.pid)]
            self._descend_at = time.monotonic() + (time.thread_time() - before) / DESCENDANTS_SHARE
        for thread in (each for pid in self._pids for each in threads_of(pid, self._proc)):
            # A thread that has just begun may have no name of its own yet.
            if thread in self._parts or self._others.get(thread, 0) >= GLANCES:
                continue
            with contextlib.suppress(OSError):
                if (part := part_of(read_file(f"{thread}/comm").decode(errors="replace"))) is not None:
                    self._parts[thread] = part
                self._others[thread] = self._others.get(thread, 0) + 1
