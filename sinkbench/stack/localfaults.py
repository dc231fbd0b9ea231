"""Faults of single services of a local stack."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

from sinkbench.errors import StackError
from sinkbench.stack import Faults, Promotion, Proxies, SmallDisks
from sinkbench.stack.assembly import proxy_targets
from sinkbench.stack.localnodes import LocalNodes
from sinkbench.stack.processes import SERVICES_OF, resume, suspend
from sinkbench.stack.proxyserver import BuiltProxies
from sinkbench.stack.smalldisk import SmallDisk, check_small_disk, small_disk

# The process of a killed service ends at once, except for pending writes in the kernel.
GONE_SECONDS, POLL_SECONDS = 10.0, 0.05


class LocalFaults(Faults):
    isolation = None

    def __init__(self, nodes: LocalNodes, checkout: Path) -> None:
        self._nodes = nodes
        self._checkout = checkout

    def kill(self, service: str) -> None:
        self._nodes.supervisor.kill(service)
        # Otherwise an immediate start would find it running.
        deadline = time.monotonic() + GONE_SECONDS
        while service in self._nodes.pids() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def stop(self, service: str) -> None:
        self._nodes.supervisor.stop(service)

    def start(self, service: str) -> None:
        self._nodes.log_file(service)
        self._nodes.supervisor.start(service)
        self._nodes.wait_for(service)

    def freeze(self, service: str) -> None:
        suspend(self._process_of(service))

    def thaw(self, service: str) -> None:
        resume(self._process_of(service))
        self._nodes.wait_for(service)

    def _process_of(self, service: str) -> int:
        self._nodes.log_file(service)
        if (found := self._nodes.pids().get(service)) is None:
            raise StackError(f"{service} does not run; `sinkbench up` starts it")
        return found

    @property
    def proxies(self) -> Proxies:
        home = self._nodes.home
        return BuiltProxies(
            self._checkout,
            self._nodes.settings.dist,
            home.path / "log",
            lambda: proxy_targets(home.place()),
            # `down` finds the proxy by this variable.
            {SERVICES_OF: str(home.path)},
        )

    def small_disks(self, sink: str) -> SmallDisks | None:
        # A replica would write to the same small disk.
        return _LocalSmallDisks(self._nodes) if len(self._nodes.settings.layout.of(sink)) == 1 else None

    def promotion(self, sink: str) -> Promotion | None:
        return self._nodes.roles.get(sink)


class _LocalSmallDisks(SmallDisks):
    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    def check(self) -> None:
        check_small_disk()

    def mounted(self, size_bytes: int) -> AbstractContextManager[SmallDisk]:
        return small_disk(self._nodes.home.small_disk, size_bytes, self._nodes.settings.user)
