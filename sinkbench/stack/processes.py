"""Processes of this machine: who holds a port, what a dead controller left behind, how much CPU a service has used."""

from __future__ import annotations

import contextlib
import math
import socket
import time
from pathlib import Path

import psutil

from sinkbench.errors import StackError

__all__ = ["CpuClock", "check_ports_free", "command_line", "end_leftovers", "machine_cpu"]

HOST = "127.0.0.1"
# Services start few children, and to look for them means to read a file for each of a JVM's threads.
CHILDREN_SECONDS = 2.0
_KERNEL_LISTS_CHILDREN = Path("/proc/thread-self/children").exists()


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

    They are known by SINKBENCH_SERVICES_OF in their environment, which all services inherit.

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


def _descendants(process: psutil.Process) -> set[int]:
    """Ids of all processes that `process` and its children have started and that are still there.

    psutil reads every process of the machine to answer that, for each service anew, which four times a second is more
    than everything else that a sample costs. Where the kernel lists the children of each thread, only those are read.
    """
    if not _KERNEL_LISTS_CHILDREN:
        return {child.pid for child in process.children(recursive=True)}
    found: set[int] = set()
    waiting = [process.pid]
    while waiting:
        for listed in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children = {int(pid) for pid in listed.read_bytes().split()} - found
                found |= children
                waiting += children
    return found


def machine_cpu() -> tuple[float, int]:
    """CPU seconds that this machine's cores could not give to anybody else so far, and how many cores it has.

    Time that a hypervisor gave to another machine is in it: it was not to be had either.
    """
    times = psutil.cpu_times()
    # Linux counts the time of guests in user time, too.
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return sum(times) - times.idle - getattr(times, "iowait", 0.0) - guests, psutil.cpu_count() or 1


def command_line(pid: int) -> list[str]:
    """The words that a process was started with; none if it is gone, or may not be seen."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


class CpuClock:
    """CPU seconds of a service: its process, its children that live, and its children that have ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process = psutil.Process(pid)
        self._children: dict[int, psutil.Process] = {}
        self._looked = -math.inf

    def _refresh_children(self) -> None:
        if time.monotonic() - self._looked < CHILDREN_SECONDS:
            return
        self._looked = time.monotonic()
        alive = _descendants(self._process)
        for pid in set(self._children) - alive:
            del self._children[pid]
        for pid in alive - set(self._children):
            # One that has ended since is counted by its parent.
            with contextlib.suppress(psutil.NoSuchProcess):
                self._children[pid] = psutil.Process(pid)

    def seconds(self) -> float | None:
        """User and system time so far; None once the process is gone.

        A child's time moves to its parent when it ends (`children_user` of the parent). New children are looked for
        every two seconds; what one has used until it is found is counted then.
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
