"""The bytes that processes have sent and received through TCP, as the kernel counts them for each connection.

Processes of one machine talk over the loopback interface, which has no counters by process. Connections have: `ss` of
iproute2 tells them, and `/proc` tells which process holds which connection.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sinkbench.stack import NetworkBytes
from sinkbench.stack.tools import find_ss

__all__ = ["Connection", "TcpCounters", "connections_of"]

OPTIONS = ("--tcp", "--numeric", "--info", "--extended", "--no-header", "--oneline", "state", "established")
TIMEOUT_SECONDS = 10
_INODE, _COOKIE = re.compile(r"\bino:(\d+)"), re.compile(r"\bsk:([0-9a-f]+)")
_RECEIVED, _SENT = re.compile(r"\bbytes_received:(\d+)"), re.compile(r"\bbytes_acked:(\d+)")
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Connection(NamedTuple):
    """One end of a TCP connection.

    Attributes:
        cookie: what tells it from every other end since the machine has started.
        inode: how `/proc` names it.
        received: bytes so far.
        sent: bytes so far that the other end has acknowledged.
    """

    cookie: str
    inode: str
    received: int
    sent: int


def connections_of(listing: str) -> Iterator[Connection]:
    """The connections of a listing by `ss` with one line for each. What has carried nothing is counted as 0."""
    for line in listing.splitlines():
        inode, cookie = _INODE.search(line), _COOKIE.search(line)
        if inode is not None and cookie is not None:
            received, sent = (
                0 if found is None else int(found[1]) for found in (_RECEIVED.search(line), _SENT.search(line))
            )
            yield Connection(cookie[1], inode[1], received, sent)


class TcpCounters:
    """What the processes of each service have received and sent, since they were first asked for.

    A connection that was opened and closed between two readings was never seen, and is in no count.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """`proc` is where the kernel shows processes."""
        self._proc = proc
        self._services: dict[str, str] = {}
        self._seen: dict[str, Connection] = {}

    def read(self, pids: Mapping[str, Iterable[int]]) -> dict[str, NetworkBytes]:
        """Bytes so far of each service whose processes are given; empty if `ss` fails. Raises StackError without it."""
        try:
            done = subprocess.run(
                [find_ss(), *OPTIONS], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return {}
        return self.add(connections_of(done.stdout), pids)

    def add(self, connections: Iterable[Connection], pids: Mapping[str, Iterable[int]]) -> dict[str, NetworkBytes]:
        """As `read`, of connections that are listed already."""
        listed = {each.cookie: each for each in connections}
        if listed.keys() - self._services.keys():
            holders = {inode: name for name, each in pids.items() for pid in each for inode in self._sockets(pid)}
            # A connection that no service holds may be handed to one, as PostgreSQL does with its processes.
            self._services |= {each.cookie: holders[each.inode] for each in listed.values() if each.inode in holders}
        # What a connection had carried when it was closed stays counted.
        self._seen |= {cookie: each for cookie, each in listed.items() if cookie in self._services}
        totals = {name: NetworkBytes(0.0, 0.0) for name in pids}
        for cookie, each in self._seen.items():
            if (name := self._services[cookie]) in totals:
                before = totals[name]
                totals[name] = NetworkBytes(before.received + each.received, before.sent + each.sent)
        return totals

    def _sockets(self, pid: int) -> Iterator[str]:
        """The inodes of a process's sockets; none of one that has ended."""
        with suppress(OSError):
            for file in (self._proc / str(pid) / "fd").iterdir():
                with suppress(OSError):
                    if (found := _SOCKET.match(str(file.readlink()))) is not None:
                        yield found[1]
