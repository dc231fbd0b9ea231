"""Resource usage and problems of the containers, from the engine and the kernel."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sinkbench.stack.engine import Container, DockerEngine, allowance_of
from sinkbench.stack.meter import JvmClock
from sinkbench.stack.processes import machine_cpu
from sinkbench.stack.protocol import Usage
from sinkbench.topology import service_of

LEAST_SECONDS = 0.5
"""The minimum interval between readings, which are expensive."""


class ContainerMeter:
    def __init__(self, engine: DockerEngine) -> None:
        self._engine = engine
        self._last = Usage()
        self.forget()

    def forget(self) -> None:
        """Drops what is known of the containers, which may be replaced by others."""
        self._read, self._read_at = 0.0, time.time()
        self._jvms: dict[str, JvmClock | None] = {}
        self._disk: Path | None = None

    def read(self, named: Mapping[str, Container]) -> Usage:
        """Returns the usage of these containers; without CPU times within `LEAST_SECONDS` of the last reading."""
        if time.monotonic() - self._read < LEAST_SECONDS:
            return replace(self._last, cpu_seconds={})
        running = {name: each for name, each in named.items() if each.state == "running"}
        used = {name: self._engine.used(each) if name in running else (None, None) for name, each in named.items()}
        before, self._read_at = self._read_at, time.time()
        starved = self._engine.out_of_memory(before, self._read_at)
        jvms = {name: clock.seconds() for name, each in running.items() if (clock := self._jvm(each)) is not None}
        if self._disk is None:
            # Inside a container this folder is missing, and the root file system is on the engine's disk.
            root = Path(self._engine.data_root())
            self._disk = root if root.exists() else Path("/")
        self._last = Usage(
            cpu_seconds={name: seconds for name, (seconds, _) in used.items()},
            jvm_cpu_seconds={name: parts for name, parts in jvms.items() if parts},
            memory_bytes={name: resident for name, (_, resident) in used.items()},
            troubles={n: text for n, each in named.items() if (text := self._trouble(each, each.id in starved))},
            # These are the whole machine's times, also inside a container.
            machine=machine_cpu(),
            free_bytes=shutil.disk_usage(self._disk).free,
        )
        self._read = time.monotonic()
        return self._last

    def _jvm(self, container: Container) -> JvmClock | None:
        if container.id not in self._jvms:
            pid = self._engine.process_id(container)
            self._jvms[container.id] = None if pid is None else JvmClock(pid)
        return self._jvms[container.id]

    def _trouble(self, container: Container, starved: bool) -> str | None:
        inspect = self._engine.inspect
        if starved or (container.exit_code == 137 and inspect(container)["State"].get("OOMKilled")):
            limit = (allowance_of(inspect(container)["HostConfig"]).memory_bytes or 0) / 2**20
            setting = f"SINKBENCH_{service_of(container.service).upper()}_MEMORY"
            return f"was killed for memory, in part or whole: its limit is {limit:,.0f} MB ({setting})"
        if container.health == "unhealthy":
            log = inspect(container)["State"].get("Health", {}).get("Log") or [{}]
            return f"became unhealthy: {' '.join(str(log[-1].get('Output', '')).split())[-200:] or 'no answer'}"
        return None
