"""Processes of this machine: users of ports, leftovers, CPU time of services, and the local stack's supervisord."""

import http.client
import math
import os
import shlex
import socket
import sys
import time
import xmlrpc.client
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from supervisor.childutils import getRPCInterface

from sinkbench.errors import StackError
from sinkbench.settings import HOST
from sinkbench.stack import MachineCpu, ServiceState
from sinkbench.stack.tools import run

SERVICES_OF = "SINKBENCH_SERVICES_OF"
"""The variable that all services of a stack inherit: its home."""
# Services start few children, and finding them reads a file per thread, of which a JVM has about a hundred. Hence the
# interval, and the limit as a share of a core.
CHILDREN_SECONDS, CHILDREN_SHARE = 2.0, 1 / 2000
_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL_LISTS_CHILDREN = Path("/proc/thread-self/children").exists()


def _holder(port: int) -> str:
    """The process that listens on a port, and the command that stops it if it is a service of a stack."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
            if listens and connection.pid:
                process = psutil.Process(connection.pid)
                found = f"{process.name()} (pid {process.pid})"
                with suppress(psutil.Error):
                    if home := process.environ().get(SERVICES_OF):
                        stops = shlex.join(["env", f"SINKBENCH_HOME={home}", "sinkbench", "down"])
                        found += f" of the stack in {home} (`{stops}` stops it)"
                return found
    return "a process of another account"


def check_ports_free(ports: list[tuple[int, str, str]]) -> None:
    """Raises StackError with the process that uses it if one of the ports (port, setting, service) is taken."""
    for number, setting, service in ports:
        with socket.socket() as probe:
            # As servers do; otherwise connections of a server that has just ended would block its port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, number))
            except OSError:
                raise StackError(
                    f"port {number} ({setting}, for {service}) is taken by {_holder(number)}; "
                    f"stop that process, or set {setting}, or move every port with SINKBENCH_PORT_OFFSET=1000"
                ) from None


def end_leftovers(home: Path) -> None:
    """Kills services of the stack in `home` that have outlived their supervisord."""
    leftovers: set[psutil.Process] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(SERVICES_OF) == str(home):
                leftovers |= {process, *process.children(recursive=True)}
    for process in leftovers:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(leftovers, timeout=10)


def descendants(pid: int) -> list[int]:
    # psutil reads every process of the machine for this, which would cost more than the rest of a sample.
    if not _KERNEL_LISTS_CHILDREN:
        with suppress(psutil.Error):
            return [each.pid for each in psutil.Process(pid).children(recursive=True)]
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for thread in threads_of(waiting.pop()):
            with suppress(OSError):
                children = {int(pid) for pid in read_file(f"{thread}/children").split()} - found
                found |= children
                waiting += children
    return sorted(found)


def threads_of(pid: int, proc: Path = Path("/proc")) -> list[str]:
    """Returns the folder in `proc` of each thread of a process; empty if it has ended."""
    try:
        with os.scandir(f"{proc}/{pid}/task") as threads:
            return [thread.path for thread in threads]
    except OSError:
        return []


def read_file(path: str) -> bytes:
    """Reads a small file. `Path` takes several times as long, and probes read hundreds of files a second."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def machine_cpu() -> MachineCpu:
    times = psutil.cpu_times()
    # Linux includes guest time in user time.
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    busy = sum(times) - times.idle - getattr(times, "iowait", 0.0) - guests
    return MachineCpu(busy, getattr(times, "steal", 0.0), psutil.cpu_count() or 1)


def suspend(pid: int) -> None:
    """Stops a process and its descendants (SIGSTOP). Raises StackError if the process is gone."""
    try:
        # The parent first, since a stopped process starts no more children.
        psutil.Process(pid).suspend()
    except psutil.Error as error:
        raise StackError(f"process {pid} cannot be frozen: {error}") from None
    for child in descendants(pid):
        with suppress(psutil.NoSuchProcess):
            psutil.Process(child).suspend()


def resume(pid: int) -> None:
    """Continues a process and its descendants (SIGCONT), as far as they exist."""
    for each in [*descendants(pid), pid]:
        with suppress(psutil.Error):
            psutil.Process(each).resume()


def command_line(pid: int) -> list[str]:
    """Returns the words of a process's command line; empty if it is gone or not visible."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def cpu_seconds(stat: bytes, *, ended_children: bool) -> float:
    """Returns user and system time in seconds from `/proc/PID/stat`, optionally with that of ended children."""
    # The name, in brackets, may contain spaces. After it, the 12th to 15th field are utime, stime, cutime and cstime.
    fields = stat.rpartition(b")")[2].split()
    return sum(map(int, fields[11 : 15 if ended_children else 13])) / _TICKS


class CpuClock:
    """CPU seconds of a service: its process and all descendants, live or ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._children: list[int] = []
        self._direct = b""
        self._look_at = -math.inf

    @property
    def pids(self) -> list[int]:
        return [self.pid, *self._children]

    def seconds(self) -> float | None:
        """Returns user and system time so far; None once the process is gone. Children of the main thread, such as
        PostgreSQL's backends, count at once; other children after two seconds or, with many threads, later."""
        # A child's time is added to its parent's when it ends.
        try:
            total, direct = cpu_seconds(read_file(f"/proc/{self.pid}/stat"), ended_children=True), b""
            with suppress(OSError):
                direct = read_file(f"/proc/{self.pid}/task/{self.pid}/children")
            if direct != self._direct or time.monotonic() >= self._look_at:
                self._direct, before = direct, time.thread_time()
                self._children = descendants(self.pid)
                took = time.thread_time() - before
                self._look_at = time.monotonic() + max(CHILDREN_SECONDS, took / CHILDREN_SHARE)
        except OSError:
            return None
        for child in self._children:
            # A child that has ended since is in its parent's time.
            with suppress(OSError):
                total += cpu_seconds(read_file(f"/proc/{child}/stat"), ended_children=True)
        return total


NO_ANSWER = (OSError, http.client.HTTPException, xmlrpc.client.Error)


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

    def _programs(self) -> list[dict[str, Any]]:
        try:
            with self._rpc() as rpc:
                return list(rpc.supervisor.getAllProcessInfo())
        except NO_ANSWER:
            return []

    def programs(self) -> list[ServiceState]:
        """Every program; empty if supervisord does not run. `exit_code` is -1 after a signal, 0 before it ends."""
        states = []
        for one in self._programs():
            state = ServiceState(one["name"], "stopped", None, "")
            if one["statename"] != "STOPPED":
                kind, code = ("running", None) if one["pid"] else ("dead", one["exitstatus"])
                detail = one["spawnerr"] or one["description"]
                state = ServiceState(one["name"], kind, one["pid"] or None, detail, code)
            states.append(state)
        return states

    def pids(self) -> dict[str, int]:
        return {each.name: each.pid for each in self.programs() if each.pid is not None}

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
        groups = {one["name"]: one["group"] for one in self._programs()}
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
