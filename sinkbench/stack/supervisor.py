"""A thin client of supervisord, which keeps the local stack's processes: over its own XML-RPC on a Unix socket."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import SupervisorTransport

from sinkbench.errors import StackError

__all__ = ["Program", "Supervisor"]

RUNNING_STATES = {"STARTING", "RUNNING", "BACKOFF", "STOPPING"}


@dataclass(frozen=True)
class Program:
    """One program as supervisord sees it: its name, its state in supervisord's words, its pid, and its last exit."""

    name: str
    group: str
    state: str
    pid: int
    detail: str

    @property
    def running(self) -> bool:
        """Whether it has a process."""
        return self.state in RUNNING_STATES and self.pid > 0


class Supervisor:
    """The supervisord of one home folder."""

    def __init__(self, config: Path, socket: Path) -> None:
        self.config = config
        self.socket = socket

    @contextmanager
    def _rpc(self) -> Iterator[Any]:
        """The `supervisor` name space of the server; a connection for each use, so that it is safe in any thread."""
        transport = SupervisorTransport(None, None, f"unix://{self.socket}")
        server = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
        try:
            yield server.supervisor
        finally:
            transport.close()

    def answers(self) -> bool:
        """Whether a supervisord is there."""
        try:
            with self._rpc() as rpc:
                rpc.getState()
        except (OSError, http.client.HTTPException, xmlrpc.client.Error):
            return False
        return True

    def launch(self, environment: Mapping[str, str]) -> None:
        """Starts supervisord in the background with `environment`, which all programs inherit; returns when it answers.

        Raises:
            StackError: it did not start; the message is what it printed.
        """
        # A socket file that a killed supervisord left behind would refuse connections for ever.
        self.socket.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "supervisor.supervisord", "-c", str(self.config)],
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 15
        while done.returncode == 0 and time.monotonic() < deadline:
            if self.answers():
                return
            time.sleep(0.05)
        raise StackError(f"supervisord did not start: {(done.stderr or done.stdout).strip() or 'no answer in 15 s'}")

    def programs(self) -> list[Program]:
        """Every program, in no stated order; empty if no supervisord answers."""
        try:
            with self._rpc() as rpc:
                infos = rpc.getAllProcessInfo()
        except (OSError, http.client.HTTPException, xmlrpc.client.Error):
            return []
        return [
            Program(
                name=info["name"],
                group=info["group"],
                state=info["statename"],
                pid=info["pid"],
                detail=info["spawnerr"] or info["description"],
            )
            for info in infos
        ]

    def _full_name(self, name: str) -> str:
        for program in self.programs():
            if program.name == name:
                return f"{program.group}:{program.name}"
        raise StackError(f"{name}: no such service; there are {', '.join(sorted(p.name for p in self.programs()))}")

    def start(self, name: str) -> None:
        """Starts one program. Does not wait for it to be ready. Raises StackError if it cannot be started."""
        try:
            with self._rpc() as rpc:
                rpc.startProcess(self._full_name(name), False)
        except xmlrpc.client.Fault as fault:
            if "ALREADY_STARTED" not in fault.faultString:
                raise StackError(f"{name} could not be started: {fault.faultString}") from None

    def stop(self, name: str) -> None:
        """Stops one program and waits for its end."""
        try:
            with self._rpc() as rpc:
                rpc.stopProcess(self._full_name(name), True)
        except xmlrpc.client.Fault as fault:
            if "NOT_RUNNING" not in fault.faultString:
                raise StackError(f"{name} could not be stopped: {fault.faultString}") from None

    def kill(self, name: str) -> None:
        """Ends one program and all its children by SIGKILL."""
        with self._rpc() as rpc:
            rpc.signalProcess(self._full_name(name), "KILL")

    def shutdown(self) -> None:
        """Stops every program, together, then supervisord itself; returns when its process is gone, or after 60 s."""
        try:
            with self._rpc() as rpc:
                pid = rpc.getPID()
                # The workers first: one that has lost its broker waits for it instead of stopping.
                rpc.stopProcessGroup("connect", True)
                # Then all others at once; the shutdown by itself would stop one after the other.
                rpc.stopAllProcesses(True)
                rpc.shutdown()
        except (OSError, http.client.HTTPException, xmlrpc.client.Error):
            return
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
