"""CPU time of a JVM's compilers, collector and exporter, from its threads. HotSpot's counters (`jstat -compiler`,
`CompilationMXBean`) count elapsed time: a compiler that waits for a busy core counts as compiling.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from pathlib import Path

from sinkbench.stack.processes import cpu_seconds, descendants, read_file, threads_of

COMPILER, GC, MONITORING = "compiler", "gc", "monitoring"
# Linux truncates a thread's name to 15 characters.
_PARTS = {
    COMPILER: re.compile(r"C[12] CompilerThre"),
    # The Prometheus JMX exporter.
    MONITORING: re.compile(r"prometheus-http"),
    GC: re.compile(r"GC Thread#|G1 |ParGC|ZWorker|ZDirector|ZDriver|Shenandoah"),
}
# Compiler threads start and end with their work.
LOOK_SECONDS = 5.0
# A launcher starts its JVM once. The share of a core that a search for the JVM among its children may take.
DESCENDANTS_SHARE = 1 / 10_000
# How often the name of a thread is read.
GLANCES = 2


def part_of(thread: str) -> str | None:
    """Returns `COMPILER`, `GC` or `MONITORING` by a thread's name; None for other threads."""
    return next((part for part, names in _PARTS.items() if names.match(thread)), None)


class JvmClock:
    """CPU time of the parts of a service's JVM, which is its process or a descendant."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self.pid = pid
        self._proc = proc
        self._parts: dict[str, str] = {}
        self._used: dict[str, float] = {}
        self._others: dict[str, int] = {}
        self._looked = -math.inf
        self._pids = [pid]
        self._descend_at = -math.inf

    def seconds(self) -> dict[str, float]:
        """Returns CPU seconds so far by part, including ended threads; empty if there is no JVM."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            self._find()
        for thread in self._parts:
            # The time of a thread that has ended stays counted.
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
            # A new thread may not have its final name yet.
            if thread in self._parts or self._others.get(thread, 0) >= GLANCES:
                continue
            with contextlib.suppress(OSError):
                if (part := part_of(read_file(f"{thread}/comm").decode(errors="replace"))) is not None:
                    self._parts[thread] = part
                self._others[thread] = self._others.get(thread, 0) + 1
