"""The driver of the local stack: processes of this machine under supervisord, on 127.0.0.1."""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from sinkbench.errors import StackError
from sinkbench.settings import CHECKOUT, Settings
from sinkbench.stack import Endpoints, Facts, Faults, Say, ServiceState, Stack, Usage
from sinkbench.stack.assembly import specs
from sinkbench.stack.home import Home
from sinkbench.stack.localnodes import LocalNodes
from sinkbench.stack.meter import Meter
from sinkbench.stack.processes import check_ports_free, command_line, end_leftovers
from sinkbench.stack.smalldisk import unmount_small_disk
from sinkbench.stack.tools import ensure_distributions, find_java
from sinkbench.topology import Topology, check_memory

# Settings, as `Settings.show` prints them, that no process of the stack reads.
OF_NO_SERVICE = re.compile(r"SINKBENCH_(STACK|PLAN|THRESHOLDS|LIVE_PORT|[A-Z]+_(MEMORY|CPUS))=")


class LocalStack(Stack):
    name = "local"

    def __init__(self, settings: Settings, checkout: Path = CHECKOUT) -> None:
        self.settings = settings
        self.checkout = checkout
        self.home = settings.home
        self._home = Home(settings)
        self._nodes = LocalNodes(settings, self._home)
        self._meter = Meter(self._nodes.names, self._nodes.pids, self.home)

    @property
    def workers(self) -> int:
        return self.settings.workers

    @property
    def layout(self) -> Topology:
        return self.settings.layout

    @property
    def endpoints(self) -> Endpoints:
        return self._nodes.endpoints()

    @property
    def lock_file(self) -> Path:
        return self.home / "race.lock"

    @property
    def faults(self) -> Faults:
        return self._nodes.faults(self.checkout)

    def start_id(self) -> str | None:
        return self._nodes.supervisor.start_id()

    def up(self, say: Say) -> None:
        # First, since a missing program is the most common failure.
        find_java()
        for spec in specs().values():
            spec.programs()
        self._home.prepare()
        with self._lock(say):
            if self.start_id() is not None:
                self._refuse_other_settings()
                self._nodes.thaw_all()
                self._nodes.start_missing(say)
                return
            end_leftovers(self.home)
            check_ports_free(self.settings.ports())
            check_memory(self.layout, psutil.virtual_memory().available)
            programs = ensure_distributions(self.checkout, self.settings.dist, say)
            self._home.stage(self.checkout)
            security = self._home.secure()
            try:
                self._nodes.supervisor.launch(self._home.environment(programs, security))
                (self.home / "running.env").write_text(self.settings.show(), encoding="utf-8")
                self._nodes.start_missing(say)
            except BaseException:
                self.down()
                raise

    def install(self, say: Say) -> None:
        self._home.prepare()
        with self._lock(say):
            ensure_distributions(self.checkout, self.settings.dist, say)

    def down(self) -> None:
        # A frozen process does not react to a request to end.
        self._nodes.thaw_all()
        self._nodes.supervisor.shutdown()
        # A killed supervisord leaves its services running.
        end_leftovers(self.home)
        unmount_small_disk(self._home.small_disk)
        shutil.rmtree(self._home.runtime, ignore_errors=True)
        (self.home / "running.env").unlink(missing_ok=True)

    def services(self) -> list[ServiceState]:
        return self._nodes.states()

    def usage(self) -> Usage:
        return self._meter.read()

    def facts(self) -> Facts:
        return Facts(
            command_lines={name: words for name, pid in self._nodes.pids().items() if (words := command_line(pid))},
            data_path=self.home,
        )

    def log_command(self, service: str, lines: int, follow: bool) -> list[str]:
        path = self._nodes.log_file(service)
        if not path.exists():
            raise StackError(f"{service} has no log yet; `sinkbench up` starts it")
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(path)]

    def _refuse_other_settings(self) -> None:
        with suppress(FileNotFoundError):
            running = (self.home / "running.env").read_text(encoding="utf-8", errors="replace").splitlines()
            for was, asked in zip(running, self.settings.show().splitlines(), strict=False):
                if was != asked and not OF_NO_SERVICE.match(asked):
                    raise StackError(f"the stack runs with {was}, asked is {asked}; run `sinkbench down` first")

    @contextmanager
    def _lock(self, say: Say) -> Iterator[None]:
        """One `up` at a time. The kernel releases the lock when its process ends, however that ends."""
        with (self.home / "up.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another `sinkbench up` of this stack is going on; waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
