"""A thin client of supervisord, which runs the local stack's processes: XML-RPC on a Unix socket."""

from __future__ import annotations

import http.client
import sys
import time
import xmlrpc.client
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from supervisor.childutils import getRPCInterface

from sinkbench.errors import StackError
from sinkbench.stack.tools import run

NO_ANSWER = (OSError, http.client.HTTPException, xmlrpc.client.Error)


@dataclass(frozen=True)
class Program:
    """`state` is supervisord's term; `exit_code` that of the last exit: -1 after a signal, 0 before its first exit."""

    name: str
    group: str
    state: str
    pid: int
    detail: str
    exit_code: int = 0

    @property
    def running(self) -> bool:
        return self.pid > 0


class Supervisor:
    def __init__(self, config: Path, socket: Path) -> None:
        self.config = config
        self.socket = socket

    def _rpc(self) -> Any:
        return getRPCInterface({"SUPERVISOR_SERVER_URL": f"unix://{self.socket}"})

    def _daemon(self) -> psutil.Process | None:
        try:
            with self._rpc() as rpc:
                return psutil.Process(rpc.supervisor.getPID())
        except (*NO_ANSWER, psutil.Error):
            return None

    def start_id(self) -> str | None:
        """Its process id and start time; None if it does not run."""
        daemon = self._daemon()
        return None if daemon is None else f"{daemon.pid} {daemon.create_time():.2f}"

    def launch(self, environment: Mapping[str, str]) -> None:
        """Starts supervisord in the background and waits for it. Raises StackError with its output."""
        # The socket file of a killed supervisord would refuse connections.
        self.socket.unlink(missing_ok=True)
        done = run([sys.executable, "-m", "supervisor.supervisord", "-c", str(self.config)], environment)
        deadline = time.monotonic() + 15
        while done.returncode == 0 and time.monotonic() < deadline:
            if self._daemon() is not None:
                return
            time.sleep(0.05)
        raise StackError(f"supervisord did not start: {(done.stderr or done.stdout).strip() or 'no answer in 15 s'}")

    def programs(self) -> list[Program]:
        """Every program, in no particular order; empty if supervisord does not run."""
        try:
            with self._rpc() as rpc:
                infos = rpc.supervisor.getAllProcessInfo()
        except NO_ANSWER:
            return []
        return [
            Program(
                name=one["name"],
                group=one["group"],
                state=one["statename"],
                pid=one["pid"],
                detail=one["spawnerr"] or one["description"],
                exit_code=one["exitstatus"],
            )
            for one in infos
        ]

    def start(self, name: str) -> None:
        """Does not wait until it is ready. Raises StackError."""
        self._do("startProcess", name, False, harmless="ALREADY_STARTED")

    def stop(self, name: str) -> None:
        """Waits for its end. Raises StackError."""
        self._do("stopProcess", name, True)

    def kill(self, name: str) -> None:
        """Kills one program and its children with SIGKILL, if it runs. Raises StackError."""
        self._do("signalProcess", name, "KILL")

    def _do(self, what: str, name: str, argument: object, harmless: str = "NOT_RUNNING") -> None:
        groups = {program.name: program.group for program in self.programs()}
        if name not in groups:
            raise StackError(f"{name}: no such service; there are {', '.join(sorted(groups))}")
        try:
            with self._rpc() as rpc:
                getattr(rpc.supervisor, what)(f"{groups[name]}:{name}", argument)
        except xmlrpc.client.Fault as fault:
            if harmless not in fault.faultString:
                raise StackError(f"{name}: {what} failed: {fault.faultString}") from None

    def shutdown(self) -> None:
        """Stops every program, then supervisord; returns when its process is gone, or after 60 s."""
        if (daemon := self._daemon()) is None:
            return
        with suppress(*NO_ANSWER), self._rpc() as rpc:
            # Workers first: a worker without its broker waits for it instead of stopping.
            rpc.supervisor.stopProcessGroup("connect", True)
            # All others at once: shutdown would stop them one by one.
            rpc.supervisor.stopAllProcesses(True)
            rpc.supervisor.shutdown()
        with suppress(psutil.TimeoutExpired):
            daemon.wait(60)
