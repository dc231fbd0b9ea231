"""Resource usage of services that are processes of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sinkbench.settings import existing_part
from sinkbench.stack.jvmthreads import JvmClock
from sinkbench.stack.memory import resident_bytes
from sinkbench.stack.processes import CpuClock, machine_cpu
from sinkbench.stack.protocol import Usage


class Meter:
    """Reads what each service uses, and finds the process of a restarted one."""

    def __init__(self, names: Sequence[str], pids: Callable[[], Mapping[str, int]], data: Path) -> None:
        """`pids` returns the process of each running service; called only if one is unknown or gone."""
        self._names, self._pids, self._data = names, pids, data
        self._clocks: dict[str, CpuClock] = {}
        self._jvms: dict[str, JvmClock] = {}

    def read(self) -> Usage:
        used = {name: clock.seconds() for name, clock in self._clocks.items()}
        if absent := [name for name in self._names if used.get(name) is None]:
            pids = self._pids()
            for name in absent:
                self._clocks.pop(name, None)
                with suppress(KeyError):
                    self._clocks[name] = CpuClock(pids[name])
                    used[name] = self._clocks[name].seconds()
        for name, clock in self._clocks.items():
            if name not in self._jvms or self._jvms[name].pid != clock.pid:
                self._jvms[name] = JvmClock(clock.pid)
        return Usage(
            cpu_seconds={name: used.get(name) for name in self._names},
            jvm_cpu_seconds={
                name: parts for name, clock in self._jvms.items() if name in self._clocks and (parts := clock.seconds())
            },
            memory_bytes={
                name: resident_bytes(self._clocks[name].pids) if name in self._clocks else None for name in self._names
            },
            machine=machine_cpu(),
            free_bytes=shutil.disk_usage(existing_part(self._data)).free,
        )
