"""Processes of this machine: who holds a port, what a dead controller left behind, how much CPU a service has used."""

from __future__ import annotations

import socket
from pathlib import Path

import psutil

from sinkbench.errors import StackError

__all__ = ["CpuClock", "check_ports_free", "end_leftovers"]

HOST = "127.0.0.1"


def _holder(port: int) -> str:
    """Who listens on `port`, for a person."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
            if listens and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except psutil.Error:
        pass
    return "a process of another account"


def check_ports_free(ports: list[tuple[int, str, str]]) -> None:
    """Makes sure that every port can be listened on.

    Args:
        ports: (number, the setting that chooses it, the service that wants it).

    Raises:
        StackError: one is taken; names the port, the setting and the process that holds it.
    """
    for number, setting, service in ports:
        with socket.socket() as probe:
            # As servers do: a connection of a server that has just gone does not keep a port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, number))
            except OSError:
                raise StackError(
                    f"port {number} ({setting}, for {service}) is taken by {_holder(number)}; "
                    f"stop that process, or set {setting}, or move every port with SINKBENCH_PORT_OFFSET=1000"
                ) from None


def end_leftovers(home: Path) -> list[str]:
    """Ends every process that was started for the stack in `home` and has outlived its supervisord.

    They are known by SINKBENCH_SERVICES_OF in their environment, which all services inherit; children follow their parents.

    Returns:
        The names of the processes that were ended.
    """
    leftovers: dict[int, psutil.Process] = {}
    me = psutil.Process().pid
    for process in psutil.process_iter():
        try:
            if process.pid != me and process.environ().get("SINKBENCH_SERVICES_OF") == str(home):
                for each in [process, *process.children(recursive=True)]:
                    leftovers[each.pid] = each
        except psutil.Error:
            continue
    names = []
    for process in leftovers.values():
        try:
            names.append(process.name())
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(list(leftovers.values()), timeout=10)
    return names


class CpuClock:
    """CPU seconds of a service: its process, its children that live, and its children that have ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process = psutil.Process(pid)
        self._children: dict[int, psutil.Process] = {}

    def _refresh_children(self) -> None:
        alive = {child.pid: child for child in self._process.children(recursive=True)}
        for pid, child in alive.items():
            self._children.setdefault(pid, child)
        for pid in set(self._children) - set(alive):
            del self._children[pid]

    def seconds(self) -> float | None:
        """User and system time so far; None once the process is gone.

        A child's time moves to its parent when it ends (`children_user` of the parent), so that the sum never falls.
        """
        try:
            own = self._process.cpu_times()
            total = own.user + own.system + own.children_user + own.children_system
            self._refresh_children()
        except psutil.Error:
            return None
        for child in self._children.values():
            try:
                times = child.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total
