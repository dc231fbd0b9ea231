"""Resource usage of services that are processes of this machine, and the CPU time that a JVM spends on compiling and
collecting, from its threads. HotSpot's counters (`jstat -compiler`, `CompilationMXBean`) count elapsed time: a compiler
that waits for a busy core counts as compiling."""

import math
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from sinkbench.settings import existing_part
from sinkbench.stack import Usage
from sinkbench.stack.processes import CpuClock, cpu_seconds, descendants, machine_cpu, read_file, threads_of

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
# How often the name of a thread is read.
GLANCES = 2
_LINE = re.compile(rb"^(?:RssAnon|RssFile|RssShmem):\s+(\d+) kB$", re.MULTILINE)


def resident_bytes(pids: Iterable[int], proc: Path = Path("/proc")) -> int | None:
    """Returns the resident memory of one service's processes that still exist; None without one. Shared pages
    (`RssFile`, `RssShmem`) count once, as those of the process with most of them: a lower bound. `Pss` would be exact,
    but makes the kernel walk all pages, which is too expensive during a trial."""
    found: list[list[int]] = []
    for pid in pids:
        with suppress(OSError):
            found.append([1024 * int(kilobytes) for kilobytes in _LINE.findall(read_file(f"{proc}/{pid}/status"))])
    # A process that has ended and a kernel thread have no such lines.
    if not (known := [each for each in found if len(each) == 3]):
        return None
    own, files, shared = ([each[part] for each in known] for part in range(3))
    return sum(own) + max(files) + max(shared)


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

    def seconds(self) -> dict[str, float]:
        """Returns CPU seconds so far by part, including ended threads; empty if there is no JVM."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            self._find()
        for thread in self._parts:
            # The time of a thread that has ended stays counted.
            with suppress(OSError):
                self._used[thread] = cpu_seconds(read_file(f"{thread}/stat"), ended_children=False)
        if COMPILER not in self._parts.values():
            return {}
        return {part: sum(used for each, used in self._used.items() if self._parts[each] == part) for part in _PARTS}

    def _find(self) -> None:
        # A launcher starts its JVM once.
        if not self._parts:
            self._pids = [self.pid, *descendants(self.pid)]
        for thread in (each for pid in self._pids for each in threads_of(pid, self._proc)):
            # A new thread may not have its final name yet.
            if thread in self._parts or self._others.get(thread, 0) >= GLANCES:
                continue
            with suppress(OSError):
                if (part := part_of(read_file(f"{thread}/comm").decode(errors="replace"))) is not None:
                    self._parts[thread] = part
                self._others[thread] = self._others.get(thread, 0) + 1


class Meter:
    """Reads what each service uses, and finds the process of a restarted one."""

    def __init__(self, names: Sequence[str], pids: Callable[[], Mapping[str, int]], data: Path) -> None:
        """`pids` returns the process of each running service; called only if one is unknown or gone."""
        self._names, self._pids, self._data = names, pids, data
        self._clocks: dict[str, tuple[CpuClock, JvmClock]] = {}
        self._one_reader = Lock()

    def read(self) -> Usage:
        """Safe from several threads: canaries of several sinks run at once."""
        with self._one_reader:
            used = {name: clock.seconds() for name, (clock, _) in self._clocks.items()}
            if absent := [name for name in self._names if used.get(name) is None]:
                pids = self._pids()
                for name in absent:
                    self._clocks.pop(name, None)
                    if name in pids:
                        self._clocks[name] = CpuClock(pids[name]), JvmClock(pids[name])
                        used[name] = self._clocks[name][0].seconds()
            jvms = {name: jvm.seconds() for name, (_, jvm) in self._clocks.items()}
            memory = {name: resident_bytes(clock.pids) for name, (clock, _) in self._clocks.items()}
        return Usage(
            cpu_seconds={name: used.get(name) for name in self._names},
            jvm_cpu_seconds={name: parts for name, parts in jvms.items() if parts},
            memory_bytes={name: memory.get(name) for name in self._names},
            machine=machine_cpu(),
            free_bytes=shutil.disk_usage(existing_part(self._data)).free,
        )
